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
        "added",
        ("dog and man", "all three", "none"),
        right="all three",
        happened="Even the word that stays where it is gets another vector, because the words it looks at have moved.",
    ),
    Prediction(
        "whole",
        ("neither", "only the GPT", "both"),
        right="only the GPT",
        happened="The encoder treats a sentence as a set of words. The mask of the GPT says what came before, so the "
        "order matters.",
    ),
    Prediction(
        "digits",
        ("bounded", "the same at any length", "different in each row", "without jumps"),
        right="without jumps",
        happened="From position 7 to position 8 four digits change at once. The other three demands are met.",
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
        "maps",
        ("all four", "sinusoidal, rotary and ALiBi", "rotary and ALiBi", "ALiBi alone"),
        right="rotary and ALiBi",
        happened="These two are built so. Random matrices destroy what the bare sinusoidal table would have promised.",
    ),
    Prediction(
        "recall",
        ("sinusoidal", "rotary", "ALiBi", "none of the five"),
        right="none of the five",
        happened="At that distance all five fail. Rotary positions hold for a while, and the table breaks at the edge.",
        usual="sinusoidal",
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
        "A model with sinusoidal positions was trained on 32 tokens, and fails at token 40. Why?",
        (
            Option(
                "The table has no row 40: it was made for 32 tokens.",
                "The formula has a value for any position. The learned table is the one that ends.",
            ),
            Option(
                "The values of row 40 are larger than those before.",
                "Sines and cosines stay between −1 and 1, and every row has the same length.",
            ),
            Option(
                "Row 40 is there, but was never trained on.",
                "A value for each position is not yet a model that knows what to do with it.",
                right=True,
            ),
        ),
    ),
)
