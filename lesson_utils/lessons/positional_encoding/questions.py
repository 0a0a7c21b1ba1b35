"""The predictions and the checkpoint questions of notebook 04."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "swap",
        ("both change", "only that of dog", "neither changes"),
        right="neither changes",
        happened="Each word gets the same vector in both sentences, because a sum does not care in which order its "
        "terms come.",
    ),
    Prediction(
        "whole",
        ("neither", "only the GPT", "both"),
        right="only the GPT",
        happened="The encoder treats a sentence as a set of words. The mask shows each token of the GPT another set.",
    ),
    Prediction(
        "table",
        ("all of them", "about half", "about a quarter", "only the first"),
        right="about a quarter",
        happened="Nine of the pairs make a full turn. The others are too slow for so few positions.",
    ),
    Prediction(
        "rotary",
        ("it falls", "it goes up and down", "it stays"),
        right="it stays",
        happened="Both hands turn by the same angle, so the angle between them stays, and q · k with it.",
    ),
    Prediction(
        "recall",
        ("sinusoidal", "rotary", "ALiBi", "none of the five"),
        right="none of the five",
        happened="So far out all five fail. The rotary model is right for a while, and both tables fail soon after the edge.",
    ),
    Prediction(
        "turns",
        ("at the nearest keys", "at the first keys", "5 back, plus whole turns", "at all keys alike"),
        right="5 back, plus whole turns",
        happened="The fastest hand points the same way after every whole turn. The head mistakes one turn for another.",
    ),
    Prediction(
        "held",
        ("pair 0", "pair 1", "pair 2", "none of them alone"),
        right="pair 1",
        happened="In training this hand made half a turn. If it stops there, the model is right at the later positions, too.",
    ),
    Prediction(
        "window",
        ("all that had learned the task", "rotary", "sinusoidal and rotary", "none"),
        right="rotary",
        happened="With a window the rotary model meets no new distance. For the two tables the positions themselves are "
        "new.",
    ),
    Prediction(
        "text",
        ("none of them", "the learned table alone", "all but ALiBi", "all four"),
        right="all but ALiBi",
        happened="The two tables and rotary positions do more harm there than no positions. ALiBi loses nothing.",
    ),
    Prediction(
        "stretch",
        ("interpolation", "a larger base", "a window"),
        right="a window",
        happened="The window has the lowest loss at every length. But it can never look far back.",
    ),
)

QUESTIONS = (
    Question(
        "Self-attention without positions and without a mask: the tokens of the input change places. The outputs …",
        (
            Option(
                "stay where they are, each at its old place.",
                "That would be invariance. It holds for their mean, not for the outputs: each follows its token.",
            ),
            Option(
                "change places in the same way.",
                "That is equivariance. Each token gets the same vector, wherever it stands.",
                right=True,
            ),
            Option(
                "all become different vectors, since other terms are added.",
                "A weighted average does not care in which order its terms come: no vector changes.",
            ),
        ),
    ),
    Question(
        "Rotary positions turn …",
        (
            Option(
                "the embeddings, once, at the input.",
                "Nothing is done to the embeddings: the turning happens inside attention.",
            ),
            Option(
                "queries, keys and values.",
                "Values carry what is handed over, and stay as they are.",
            ),
            Option(
                "the attention weights.",
                "Weights are numbers between 0 and 1; there is nothing to turn.",
            ),
            Option(
                "queries and keys.",
                "Then q · k depends on what they hold and on how far apart they stand, not on where.",
                right=True,
            ),
        ),
    ),
    Question(
        "A rotary head has learned to look five back within 32 positions. At position 60 it looks 49 or 55 back. Why?",
        (
            Option(
                "Its fastest hand has never been seen at these angles.",
                "The fastest hand has come round nearly five times in training. It has shown all of its angles.",
            ),
            Option(
                "A hand that made half a turn in training keeps turning, and gives far keys as much score as near ones.",
                "Stop this one hand at the longest distance of the training, and the head looks five back again.",
                right=True,
            ),
            Option(
                "Rotary positions are absolute, so position 60 is new to the model.",
                "They are relative: the score depends on the distance. It is the long distances that are new.",
            ),
        ),
    ),
)
