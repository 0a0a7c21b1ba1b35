"""The predictions and the checkpoint questions of notebook 02."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "itself",
        ("it", "cat", "the"),
        right="cat",
        happened="The vector of `cat` points a similar way as that of `it` and is nearly three times as long. In a dot "
        "product length counts as well as direction.",
        usual="it",
    ),
    Prediction(
        "values",
        ("yes, at a low τ", "yes, at a high τ", "never"),
        right="never",
        happened="An average of keys lies among the keys, so a question about a taste gets a taste for an answer.",
    ),
    Prediction(
        "films",
        ("film 1", "film 2", "film 5"),
        right="film 1",
        happened="A score measures how far a key reaches in the direction of the query, and film 1 reaches furthest. "
        "The nearest key need not be the best match.",
        usual="film 2",
    ),
    Prediction(
        "bank",
        ("to water", "to money", "it stays between"),
        right="to money",
        happened="Two words of this sentence pull towards money, and only `river` pulls towards water.",
    ),
    Prediction(
        "typical",
        ("about 1", "about 8", "about 23", "about 512"),
        right="about 23",
        happened="The variances of independent terms add up to `d_k`, so a typical score has the size √512.",
    ),
    Prediction(
        "slope",
        ("it falls all the way", "it rises, then falls", "it stays the same"),
        right="it rises, then falls",
        happened="A little spread of the scores does no harm, and the norm rises. Then one key takes nearly all the "
        "weight, and the norm falls to almost 0.",
        usual="it falls all the way",
    ),
    Prediction(
        "order",
        ("yes", "no", "only for a large d_k"),
        right="no",
        happened="Dividing by a positive number keeps the order of the scores, and softmax keeps it, too.",
    ),
    Prediction(
        "query",
        ("it is smaller", "about the same", "it is larger"),
        right="it is larger",
        happened="Unscaled, a few queries get a gradient so large that the mean is larger, although most queries get "
        "almost nothing.",
        usual="it is smaller",
    ),
    Prediction(
        "mask",
        ("they keep their ratio", "the larger gains more", "they stay as they are"),
        right="they keep their ratio",
        happened="Their exponentials are the same as before and only the sum is smaller, so both grow by one factor.",
    ),
)

QUESTIONS = (
    Question(
        "Queries and keys have independent entries with mean 0 and variance 1. From d_k = 16 to d_k = 64, the standard "
        "deviation of the unscaled scores …",
        (
            Option("grows fourfold.", "That is the variance, d_k: from 16 to 64. The standard deviation is its root."),
            Option(
                "stays the same.",
                "Only after dividing by √d_k does it stay at 1. Each further dimension adds variance 1.",
            ),
            Option("doubles.", "It is √d_k: from 4 to 8. The variance, d_k, grows fourfold.", right=True),
            Option("halves.", "More terms make a mean steadier. A dot product is a sum, and sums spread out."),
        ),
    ),
    Question(
        "Hand over the keys in the place of the values, V = K. What can the output not be?",
        (
            Option(
                "Longer than every key.",
                "An average with positive weights that sum to 1 lies among what it averages, so it is never longer "
                "than the longest. For anything that is no mixture of keys, such as a running time, values are needed.",
                right=True,
            ),
            Option("Equal to one of the keys.", "It comes as near to one as you like, at a low temperature."),
            Option("The mean of all keys.", "It is, at a high temperature, or when all scores are equal."),
        ),
    ),
    Question(
        "At d_k = 512 without scaling, the median query's gradient at the scores is almost 0. Why?",
        (
            Option("The scores themselves are near 0.", "They are large: their standard deviation is about 22.6."),
            Option(
                "All weights are equal.",
                "They are far from equal: one is almost 1. With 32 equal weights the norm of the Jacobian would be 0.17.",
            ),
            Option("exp overflows.", "A stable softmax has no overflow. It is exact here, and flat."),
            Option(
                "One weight is almost 1, the others almost 0.",
                "Each entry of the Jacobian is w_i (δ_ij − w_j). With weights near 0 and 1 every entry is near 0.",
                right=True,
            ),
        ),
    ),
    Question(
        "Scores from XXᵀ, or from XU(XU)ᵀ, have a limit that QKᵀ does not have. Which?",
        (
            Option("They have no parameters.", "XXᵀ has none, but U in XU(XU)ᵀ is learned. The limit stays."),
            Option(
                "The score of i for j equals that of j for i.",
                "Both matrices are symmetric. W_Q ≠ W_K lets 'it' look for 'cat' while 'cat' looks elsewhere.",
                right=True,
            ),
            Option(
                "They can't be negative.",
                "Dot products have any sign; only those of a vector with itself are never negative.",
            ),
            Option("They can't be scaled.", "Any score can be divided by √d_k."),
        ),
    ),
    Question(
        "A mask must hide a key. Why set its score to −∞, rather than its weight to 0 after softmax?",
        (
            Option(
                "Because NaN would follow otherwise.",
                "Setting weights to 0 gives no NaN, which makes the mistake hard to see.",
            ),
            Option("Because 0 is not a legal weight.", "It is: −∞ gives a weight of exactly 0."),
            Option(
                "Because then the visible weights still sum to 1.",
                "exp(−∞) = 0 drops out of the sum as well. A weight set to 0 afterwards leaves a row that sums to less than 1.",
                right=True,
            ),
            Option("Because it is faster.", "Speed is not the reason. The two give different outputs."),
        ),
    ),
)
