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
        happened="The encoder treats a sentence as a set of words. The mask of the GPT says what came before, so the "
        "order matters.",
    ),
    Prediction(
        "table",
        ("all of them", "about half", "about a quarter", "only the first"),
        right="about a quarter",
        happened="Nine of the pairs come full circle. The others are too slow for so few positions.",
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
        happened="So far out all five fail. Rotary positions hold for a while, and both tables break at the edge.",
        usual="sinusoidal",
    ),
    Prediction(
        "turns",
        ("at the nearest keys", "at the first keys", "5 and whole turns back", "at all keys alike"),
        right="5 and whole turns back",
        happened="The fastest hand shows the same again after every turn, and the head takes its turns for one another.",
    ),
    Prediction(
        "held",
        ("pair 0", "pair 1", "pair 2", "none of them alone"),
        right="pair 1",
        happened="In training this hand made half a turn. With it stopped there, the model is right at every position.",
    ),
    Prediction(
        "window",
        ("all that had learned the task", "rotary", "sinusoidal and rotary", "none"),
        right="rotary",
        happened="With a window rotary positions meet no new distance. To the two tables the positions themselves are "
        "new.",
    ),
    Prediction(
        "text",
        ("none of them", "the learned table alone", "all but ALiBi", "all four"),
        right="all but ALiBi",
        happened="Positions that a model has never met do more harm than no positions. ALiBi only knows distances.",
    ),
    Prediction(
        "stretch",
        ("interpolation", "a larger base", "a window"),
        right="a window",
        happened="On this text what is near matters most, so the window has the lowest loss at every length. It can "
        "never look far back.",
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
                "A hand that made half a turn in training turns on, and no longer tells the fast hand's turns apart.",
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
