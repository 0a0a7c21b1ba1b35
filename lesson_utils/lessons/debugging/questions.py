"""The predictions and the checkpoint questions of notebook 10."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "which_outputs",
        ("none", "only 5", "4 and 5", "all of them"),
        right="4 and 5",
        happened="Output 5 sees symbol 6 in the first layer. In the second layer output 4 sees what place 5 has learnt.",
        usual="only 5",
    ),
    Prediction(
        "start",
        ("It stays near ln V.", "It grows with the width.", "It falls with the width."),
        right="It grows with the width.",
        happened="An untrained model of this course expects each symbol to be repeated, the wider the more.",
        usual="It stays near ln V.",
    ),
    Prediction(
        "by_heart",
        ("the healthy model", "the wrong backward pass", "softmax twice", "unshifted targets"),
        right="unshifted targets",
        happened="A model that is asked for the symbol it was given has nothing to learn. The healthy one comes second.",
        usual="the healthy model",
    ),
    Prediction(
        "task",
        ("copy", "reverse", "dates", "gather-k"),
        right="gather-k",
        happened="The other three are learnt to the last symbol, because the model learns around the bug or uses what leaks.",
    ),
    Prediction(
        "rounding",
        ("rounding", "a bug"),
        right="a bug",
        happened="Rounding is some hundred times smaller here, and the difference begins at one part of the model.",
        usual="rounding",
    ),
    Prediction(
        "weak_test",
        ("none", "one", "two", "all three"),
        right="none",
        happened="Where all numbers are equal and all sizes are equal, no bug can show.",
    ),
    Prediction(
        "too_good",
        ("no causal mask", "no scale", "softmax twice", "groups tiled"),
        right="no causal mask",
        happened="Without the mask each token sees what comes next, and predicting it is easy.",
    ),
)

QUESTIONS = (
    Question(
        "A new model of 106 symbols has a loss of 18 before its first step. What do you look at?",
        (
            Option(
                "How the tables and the last layer begin.",
                "ln 106 = 4.7 is what it costs to know nothing, and a healthy model starts at 5. A model at 18 is sure and "
                "wrong: its logits are far too large.",
                right=True,
            ),
            Option("The learning rate.", "There has been no step yet, so that no rate can have done it."),
            Option("The mask.", "A leak in an untrained model helps nobody: it does not know how to use it."),
        ),
    ),
    Question(
        "Since yesterday's change the perplexity on held-out text is 6. It was 29. What do you do first?",
        (
            Option(
                "Celebrate, and write the paper.",
                "Maybe tomorrow. What is too good is a symptom, and the check for it takes a second.",
            ),
            Option(
                "Train with another seed, to see whether the result is stable.",
                "A leak is stable: models with other seeds use it, too.",
            ),
            Option(
                "Replace a late symbol and see whether earlier outputs move.",
                "If they do, it reads what it has to predict. In section 2 every leak in time that training could use gave "
                "a loss below a healthy one's.",
                right=True,
            ),
            Option("Look for duplicates in the text.", "Worth doing, and slower. The leak meter takes a second."),
        ),
    ),
    Question(
        "Training and held-out loss are as they should be. What it writes by itself is garbage from the first symbol after "
        "the prompt on. Which instrument?",
        (
            Option("The leak meter.", "A leak shows in the loss: it would be too good."),
            Option(
                "Cache parity.",
                "Training never uses the cache, writing does. Compare with all at once: the first place that differs names "
                "the culprit.",
                right=True,
            ),
            Option(
                "The gradient check.",
                "The loss is right, so the slopes did their work. Writing takes none.",
            ),
        ),
    ),
    Question(
        "A function takes booleans, True = may attend. It is given a causal mask of 0 and −∞ to add. What becomes visible?",
        (
            Option("Everything: both are numbers.", "As a boolean, 0 is False."),
            Option("Nothing: −∞ is no boolean.", "`np.asarray(mask, bool)` makes True of everything that is not 0."),
            Option(
                "The past, as it should be.",
                "The past has 0 in such a mask, and 0 is False: hidden.",
            ),
            Option(
                "Exactly the future.",
                "0 becomes False, −∞ True. It is the mask inverted, and nothing crashes.",
                right=True,
            ),
        ),
    ),
    Question(
        "It trains to 100 % on your toy task. What has been shown?",
        (
            Option(
                "The attention is right: wrong attention could not have learnt it.",
                "With scrambled heads copy, reverse and dates came to 1.00 in training, too.",
            ),
            Option(
                "That this task does not need what may be broken.",
                "And that the loss can fall. A task is a test of what it needs, and only if it is judged as it will be used.",
                right=True,
            ),
            Option("Nothing at all.", "Something: the loss, the targets and the backward pass work together."),
        ),
    ),
    Question(
        "Your test compares a causal mask with `np.tri(T, T)` for T = 1 … 100, and passes. With a cache the model fails. Why?",
        (
            Option(
                "Sizes: T_q and T_k are equal in each of them.",
                "With a cache there are fewer queries than keys, and only then does it matter at which corner the mask begins.",
                right=True,
            ),
            Option(
                "100 is too small; long contexts begin later.",
                "It fails at the second symbol, in a context of any length.",
            ),
            Option("`np.tri` gives floats.", "1.0 == True: the comparison is not the trouble."),
        ),
    ),
)
