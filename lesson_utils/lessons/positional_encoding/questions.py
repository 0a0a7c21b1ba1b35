"""The checkpoint questions of notebook 04."""

from lesson_utils.classroom.quiz import Option, Question

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
        "M moves the encoding on: PE(pos + 5) = M PE(pos). What does M depend on?",
        (
            Option(
                "On 5, d_model and base.",
                "Each pair of columns turns by 5 / base^(2i/d_model). One matrix serves all positions.",
                right=True,
            ),
            Option(
                "On pos and on 5: the angles grow with pos.",
                "Each hand turns by the same angle wherever it starts: pos drops out.",
            ),
            Option(
                "On the tokens that stand there.",
                "The table knows nothing of tokens. It is the same for every sentence.",
            ),
            Option(
                "On nothing that we know: it has to be learned.",
                "It can be written down; what a model may learn is to use it.",
            ),
        ),
    ),
    Question(
        "d_model = 64, base = 10 000. The longest wave of the table repeats after …",
        (
            Option(
                "64 positions, one for each column.",
                "The width says how many waves there are, not how long they are.",
            ),
            Option(
                "10 000 positions, as many as the base says.",
                "An angle of pos / 10 000 needs 2π · 10 000 positions to come full circle.",
            ),
            Option(
                "exactly 10 000 · 2π positions.",
                "The last exponent is 62/64, not 1: the longest wave falls short of that.",
            ),
            Option(
                "a little less than 10 000 · 2π.",
                "2π · 10 000^(62/64), about 47 100. With a larger d_model it comes closer.",
                right=True,
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
