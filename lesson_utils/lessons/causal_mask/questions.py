"""The predictions and the checkpoint questions of notebook 06."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "too_late",
        ("yes", "no"),
        right="yes",
        happened="The map has its zeros, but softmax has divided by a sum in which the future still counts.",
    ),
    Prediction(
        "wrong_number",
        ("replace by −∞", "replace by −1e9", "add −1e9"),
        right="add −1e9",
        happened="In float16 that number is −∞, and 0 · (−∞) is NaN for the keys that are visible.",
    ),
    Prediction(
        "padding",
        ("none", "the first two", "the last two"),
        right="the first two",
        happened="Their past is all padding, so nothing is left that they may attend to.",
    ),
    Prediction(
        "table",
        ("the GPT", "the table", "both the same"),
        right="the table",
        happened="A table of the last four characters is a strong opponent. A loss by itself does not show what attention brings.",
    ),
    Prediction(
        "part",
        ("four heads", "the feed-forward layer", "residual connections", "positions"),
        right="positions",
        happened="Without positions a head sees which characters came before, but not in which order.",
    ),
    Prediction(
        "loss",
        ("the honest one", "the one that peeks", "both the same"),
        right="the one that peeks",
        happened="It copies its right-hand neighbour, which is the answer. When it writes, it has no such neighbour.",
    ),
    Prediction(
        "further_back",
        ("the lower", "the upper", "both alike"),
        right="the upper",
        happened="In this model the upper layer spreads its weight further back. With rotary positions it is the other way round.",
    ),
    Prediction(
        "greedy",
        ("it repeats itself", "it invents words", "it stops early"),
        right="it repeats itself",
        happened="Greedy drawing leaves nothing to chance, so even a similar context can bring the same text.",
    ),
    Prediction(
        "real_words",
        ("τ = 0", "τ = 0.8", "τ = 1.5", "τ = 1.5, top-p = 0.5"),
        right="τ = 0",
        happened="Greedy drawing repeats a few phrases of real words. It also has the fewest different words.",
    ),
    Prediction(
        "positions",
        ("12", "78", "144"),
        right="78",
        happened="At each step the model runs over all symbols so far: one, then two, and so on.",
    ),
    Prediction(
        "speed",
        ("less than 50 times", "about 100 times", "about 256 times"),
        right="less than 50 times",
        happened="Every pass has a cost that does not depend on the number of symbols, so a short pass over all symbols takes less than twice as long as a pass over one.",
    ),
)

QUESTIONS = (
    Question(
        "Weights of the future are set to 0 after softmax, and nothing else is done. What is wrong with the outputs?",
        (
            Option(
                "The future is still in softmax's sum.",
                "It stands in the denominator, and the leak meter saw it. Dividing again by what is left would mend it, up to rounding.",
                right=True,
            ),
            Option(
                "Nothing: the weights are 0 where they should be.",
                "That is the trap: the map looks right. The visible weights are too small, by an amount that depends on the future.",
            ),
            Option(
                "They are all too large, by the same factor.",
                "They are too small, and each row by a factor of its own: what its hidden keys took.",
            ),
            Option(
                "They hold NaN, since a weight must never be exactly 0.",
                "A weight may be 0: exp(−∞) is exactly 0. NaN comes from 0/0, in a row where all is hidden.",
            ),
        ),
    ),
    Question(
        "On the same text a GPT has a loss of 1.99 bits, and a table of the last four characters has 1.83. What follows?",
        (
            Option(
                "The GPT has not learned anything.",
                "It has learned a lot: without any knowledge it would pay log₂ V bits. But counting learned a little more.",
            ),
            Option(
                "The loss alone does not show that attention was needed.",
                "A strong simple opponent shows what a loss is worth. In section 4 no causal GPT beat the longest tables.",
                right=True,
            ),
            Option(
                "Attention can't learn what a table counts.",
                "This is one small GPT after 1,200 steps. After 2,400 steps it is nearly as good as this table.",
            ),
            Option(
                "The two losses can't be compared.",
                "They can: both are bits a character, on the same windows of held-out text.",
            ),
        ),
    ),
    Question(
        "The causal mask of a GPT lets each query see one key too many: the next one. What happens in training?",
        (
            Option(
                "The loss becomes NaN in the first steps.",
                "Nothing overflows. The code runs, and its loss looks splendid.",
            ),
            Option(
                "Nothing to speak of: one key more in 64 hardly matters.",
                "That one key is the symbol to be predicted.",
            ),
            Option(
                "The loss does not fall: the model is confused.",
                "It falls faster than it should.",
            ),
            Option(
                "The loss falls too low, and the samples are useless.",
                "The next key is the answer. Copying it is easy, and at generation there is nothing to copy.",
                right=True,
            ),
        ),
    ),
    Question(
        "Why may keys and values of earlier positions be kept in a cache?",
        (
            Option(
                "Because they change only a little, and that evens out.",
                "They do not change at all: the leak is exactly 0.",
            ),
            Option(
                "Because memory is cheap, and computing is not.",
                "For long texts the cache itself can become the largest thing in memory.",
            ),
            Option(
                "Because later tokens do not change them.",
                "Under a causal mask an earlier position never looks ahead, in any layer. What was computed stays right.",
                right=True,
            ),
            Option(
                "Because an encoder keeps them, too.",
                "A bidirectional encoder can't: there a new token changes every earlier output from the first layer on.",
            ),
        ),
    ),
)
