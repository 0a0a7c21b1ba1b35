"""The checkpoint questions of notebook 01."""

from lesson_utils.quiz import Option, Question

QUESTIONS = (
    Question(
        "A gradient passes back through 5 logistic functions, one behind the other. What is the largest factor that "
        "they can "
        "leave of it?",
        (
            Option(
                "1/4", "That is the limit for one of them, reached at 0. There are five, and their slopes multiply."
            ),
            Option("5/4", "Slopes of functions one behind the other multiply; they do not add up."),
            Option("1/1024", "Each slope is at most 1/4, and (1/4)⁵ = 1/1024.", right=True),
            Option("1/32", "That would be slopes of 1/2. The logistic function's steepest slope is 1/4."),
        ),
    ),
    Question(
        "The model with one fixed vector fails on strings of 16 letters. Why?",
        (
            Option("It has never seen strings that long.", "It has: the training had lengths from 3 to 20."),
            Option(
                "All 16 letters have to pass through one vector, and in this size and training it does not hold them.",
                "A larger vector, or more training, moves the limit to longer strings. It stays a limit.",
                right=True,
            ),
            Option(
                "64 numbers can never hold 16 letters.",
                "Too strong: with more training the same size holds more. The section on size shows it.",
            ),
            Option(
                "Its decoder can't count.",
                "It does miscount at times, but most of its answers to 16 letters have the right length, and most of "
                "the letters in them are wrong.",
            ),
        ),
    ),
    Question(
        "c_t = Σ α_ts h_s. What is different from one step t to the next?",
        (
            Option("The states h_s.", "The encoder has read the string once; its states stay as they are."),
            Option(
                "The weights α_ts.", "The query changes with each step, and with it scores and weights.", right=True
            ),
            Option("The width of c_t.", "An average of vectors has their width, at every step."),
            Option("Nothing.", "That describes the fixed context: one vector for all steps."),
        ),
    ),
    Question(
        "With which matrix W does the general score q W h become the dot score?",
        (
            Option("W = 0.", "Then every score is 0, and all weights are equal."),
            Option("The identity.", "q I h = q · h. The general score contains the dot score.", right=True),
            Option("Any orthogonal one.", "That compares q with a turned h: a dot product, but not that of q and h."),
            Option("None.", "One of them leaves every vector as it is."),
        ),
    ),
    Question(
        "Change one letter of the string, and one letter of the answer changes, the mirrored one. The weights peak "
        "beside it. "
        "What follows?",
        (
            Option(
                "The model is wrong.",
                "Its answers are right. Only our reading of the map would be wrong.",
            ),
            Option(
                "The weights are noise.",
                "Noise would not walk along the word, step by step, beside the letter that is written.",
            ),
            Option(
                "The state it looks at also holds what came before or after.",
                "A weight says which state was read. What is in that state is another question; only changing the "
                "input "
                "answered it.",
                right=True,
            ),
            Option("The map must be transposed.", "Rows are steps of the answer, columns are letters read, in both."),
        ),
    ),
)
