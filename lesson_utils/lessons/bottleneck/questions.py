"""The checkpoint questions of notebook 01."""

from lesson_utils.classroom.quiz import Option, Question

QUESTIONS = (
    Question(
        "The gradients of a recurrent network are clipped. What does that help against?",
        (
            Option(
                "Vanishing: every gradient gets at least a certain length.",
                "Clipping makes long gradients shorter. It leaves the short ones as they are.",
            ),
            Option(
                "Exploding.",
                "A gradient that is too long is cut. One that has vanished stays as it is; that takes another network.",
                right=True,
            ),
            Option("Both: all gradients get the same length.", "Only those that are too long are changed."),
            Option(
                "Forgetting: the states last longer.",
                "Clipping changes the step that training makes, not how the network computes its states.",
            ),
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
                "The letters arrive, but not in order.",
                "A larger vector, or more training, moves the limit to longer strings. It stays a limit.",
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
            Option("Nothing: in this run, it was lucky.", "Three runs agree, at every length from 8 on."),
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
