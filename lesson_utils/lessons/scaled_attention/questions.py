"""The predictions and the checkpoint questions of notebook 02."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "bank",
        ("to water", "to money", "it stays between"),
        right="to money",
        happened="Two words of this sentence pull towards money, and only `river` pulls towards water.",
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
        "typical",
        ("about 1", "about 8", "about 23", "about 512"),
        right="about 23",
        happened="The variances of independent terms add up to `d_k`, so a typical score has the size √512.",
    ),
    Prediction(
        "keys",
        ("the unscaled one", "the scaled one", "they are alike"),
        right="the unscaled one",
        happened="Scaled, the weights spread over hundreds of keys, and each becomes too small to move much. Unscaled, "
        "the query looks at two or three keys only, and the slope stays large.",
        usual="the scaled one",
    ),
    Prediction(
        "order",
        ("yes", "no", "only for a large d_k"),
        right="no",
        happened="Dividing by a positive number keeps the order of the scores, and softmax keeps it, too.",
    ),
    Prediction(
        "mask",
        ("they keep their ratio", "the larger gains more", "they stay as they are"),
        right="they keep their ratio",
        happened="Their exponentials are the same as before and only the sum is smaller, so both grow by one factor.",
    ),
    Prediction(
        "without",
        ("all four", "one", "none"),
        right="one",
        happened="Each query puts all its weight on a single place. It fetches that symbol and guesses the others.",
    ),
    Prediction(
        "start",
        ("tame start, no root", "wild start, with root", "both", "neither"),
        right="neither",
        happened="From a wild start no run learns, in spite of the root. From a tame start without the root, one run of "
        "two learns.",
        usual="tame start, no root",
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
        "With 512 keys and d_k = 64, the median query has more slope without the scaling. What does √d_k still buy?",
        (
            Option("Protection against overflow.", "A stable softmax gives that, with or without scaling."),
            Option("A better order of the keys.", "Dividing by a positive number never changes the order."),
            Option(
                "More keys looked at, so more slope.",
                "It does look at more keys, about 311 of 512. But each weight is then so small that the slope is smaller.",
            ),
            Option(
                "Slopes that are nearly the same for all queries.",
                "Scaled, nine of ten slopes lie within a factor of 1.5. Unscaled, some queries have none at all.",
                right=True,
            ),
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
