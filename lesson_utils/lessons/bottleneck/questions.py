"""The predictions and the checkpoint questions of notebook 01."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "missing",
        ("none", "two", "five", "eight"),
        right="none",
        happened="The answer has every letter as often as the word, and only their order is wrong.",
    ),
    Prediction(
        "length",
        ("4", "8", "12", "20"),
        right="8",
        happened="All lengths up to 20 were in the training, and yet most strings of ten letters already go wrong.",
        usual="20",
    ),
    Prediction(
        "doubling",
        ("twice as long", "a few letters", "not at all"),
        right="a few letters",
        happened="Each doubling of the vector, and of the network with it, buys two to four letters. Every size fails at "
        "some length.",
        usual="twice as long",
    ),
    Prediction(
        "beyond",
        ("nearly all", "about half", "hardly any"),
        right="hardly any",
        happened="Within the lengths of the training nearly all strings are right. Beyond them attention guarantees "
        "nothing: Luong's model still gets most of these right, and Bahdanau's next to none.",
    ),
    Prediction(
        "states",
        ("nearly all", "about half", "few"),
        right="few",
        happened="Every fourth state gives about one string in seven, although it is the same network with the same "
        "training.",
    ),
    Prediction(
        "shift",
        ("that of letter s", "the one before it", "the one after it"),
        right="the one after it",
        happened="The state after it has read letter s as well, and all answers are right. As an explanation, this map "
        "is wrong about every letter but the first.",
        usual="that of letter s",
    ),
    Prediction(
        "influence",
        ("the one it writes", "the one before", "both, half each"),
        right="the one it writes",
        happened="Its attention is shared between two letters, but only a change of the letter that it writes changes "
        "the answer.",
        usual="both, half each",
    ),
    Prediction(
        "alike",
        ("concat's", "Bahdanau's", "neither"),
        right="Bahdanau's",
        happened="The control has concat's score, and yet its map is like Bahdanau's, because it asks before the step.",
    ),
    Prediction(
        "gradient",
        ("about a half", "about a hundredth", "about a ten-thousandth"),
        right="about a ten-thousandth",
        happened="Twenty factors of about two thirds multiply, so hardly anything is left.",
    ),
    Prediction(
        "gates",
        ("much longer", "about as long", "shorter"),
        right="about as long",
        happened="Half-open gates replace half of the state at every step. The gates have to learn to stay open.",
        usual="much longer",
    ),
    Prediction(
        "reach",
        ("one fixed vector", "Luong", "Bahdanau"),
        right="one fixed vector",
        happened="Its encoder must carry everything to its ends, and training gave it a long memory in both "
        "directions.",
    ),
)

QUESTIONS = (
    Question(
        "Three letters and one place of padding have the scores 2, 2, 2 and −∞. What are the weights?",
        (
            Option("1/4 each.", "The scores of the letters are equal, but −∞ gives the padding no weight at all."),
            Option(
                "1/3, 1/3, 1/3 and 0.",
                "Equal scores give equal weights, and e to the power of −∞ is 0. The weights sum to 1 without the padding.",
                right=True,
            ),
            Option("2, 2, 2 and 0.", "Those are no weights yet: softmax makes numbers of the scores that sum to 1."),
            Option("Not a number: −∞ can't be averaged.", "Softmax takes the exponential first, and that of −∞ is 0."),
        ),
    ),
    Question(
        "The model with one fixed vector fails on strings of 16 letters. What goes wrong?",
        (
            Option("It has never seen strings that long.", "It has: the training had lengths from 3 to 20."),
            Option(
                "Most letters are lost on their way through the vector.",
                "Nine of ten are somewhere in the answer; of another string's letters, little more than a third.",
            ),
            Option(
                "64 numbers can never hold 16 letters, however long the training.",
                "Too strong: with more training, the same size brings some of them back whole.",
            ),
            Option(
                "Most letters arrive, but many of them in a wrong place.",
                "A larger network, or more training, moves the limit to longer strings. It stays a limit.",
                right=True,
            ),
        ),
    ),
    Question(
        "Luong's model has fewer parameters than the one with a fixed vector, and does better. What has it more of?",
        (
            Option(
                "Numbers to read, the more the longer the string.",
                "Parameters are not memory: the states are computed for each string, and all of them are kept.",
                right=True,
            ),
            Option(
                "Nothing: in this run, it was lucky.",
                "At 12 letters it gets nearly all of 200 strings right, the other one of eight.",
            ),
            Option("Training: it took more steps on such strings.", "Both took the same, on the same kind of strings."),
            Option("Letters in its alphabet.", "Both read the same 26."),
        ),
    ),
    Question(
        "c_t = Σ α_ts h_s. What is different from one step t to the next?",
        (
            Option("The states h_s of the encoder.", "It has read the string once; its states stay as they are."),
            Option("The width of c_t.", "An average of vectors has their width, at every step."),
            Option(
                "The weights α_ts.", "The query changes with each step, and with it scores and weights.", right=True
            ),
            Option("The parameters of the score.", "They are set in training, and the same at every step."),
        ),
    ),
    Question(
        "Change one letter of the string, and one letter of the answer changes, the mirrored one. The weights peak "
        "beside it. What follows?",
        (
            Option(
                "The model solves the task in a wrong way.",
                "Its answers are right. Only our reading of the map would be wrong.",
            ),
            Option(
                "The weights are noise, and might as well be equal.",
                "Noise would not walk along the word, step by step, beside the letter that is written.",
            ),
            Option(
                "The state it reads holds neighbours, too.",
                "A weight says which state was read. What is in that state is another question; only changing the "
                "input answered it.",
                right=True,
            ),
            Option("The map must be transposed.", "Rows are steps of the answer, columns are letters read, in both."),
        ),
    ),
)
