"""The predictions and the checkpoint questions of notebook 08."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "learned",
        ("about half", "about 90 %", "99 % and more"),
        right="99 % and more",
        happened="Dates are regular, so the model can learn them nearly without error.",
    ),
    Prediction(
        "early",
        ("20 and the dashes", "the month", "the day"),
        right="20 and the dashes",
        happened="The dashes need no source, and the century is a choice between only two.",
    ),
    Prediction(
        "month",
        ("at the day's 3", "at the letters of March", "at nothing special"),
        right="at the letters of March",
        happened="The month's number stands nowhere in the source. Its letters say which number it is.",
    ),
    Prediction(
        "unseen",
        ("3 March, 2021", "2021/3/3", "3 August 1850", "all three"),
        right="3 March, 2021",
        happened="This new mixture of known parts comes out right. A new order and a new century do not.",
    ),
    Prediction(
        "epsilon",
        ("yes, always", "no, some middle ε is best", "no, a larger one does"),
        right="no, some middle ε is best",
        happened="A large step leaves the place whose slope is asked for, and a tiny one is lost in rounding.",
    ),
    Prediction(
        "notice",
        ("all three", "all but W_V", "only W_V"),
        right="all but W_V",
        happened="No softmax of attention lies between cross-attention's W_V and the loss. W_Q and the embedding act through one.",
    ),
    Prediction(
        "sum",
        ("only yours", "yours and the zeros", "all three"),
        right="all three",
        happened="Each row of weights sums to 1, whatever the scores are. The true slope of that loss is 0.",
    ),
    Prediction(
        "warmup",
        ("at low rates", "at high rates", "at all alike"),
        right="at high rates",
        happened="Warm-up lets a recipe survive higher rates. At low ones it hardly changes the result.",
    ),
    Prediction(
        "survive",
        ("three", "one", "none"),
        right="none",
        happened="Post-norm keeps one rate without warm-up, and no rate without warm-up and clipping. Pre-norm keeps all "
        "of its rates, whatever is left out.",
    ),
    Prediction(
        "blind",
        ("for all", "only near 2.29", "only near 0.94"),
        right="only near 2.29",
        happened="Those models do not read the source at all. The others read a little of it.",
    ),
    Prediction(
        "one_head",
        ("all, a little", "a few, very much", "none"),
        right="a few, very much",
        happened="Some heads do work that no other head does. Some can go without a loss.",
    ),
    Prediction(
        "add_up",
        ("about as much", "more", "less"),
        right="more",
        happened="Some dates survive each removal but not all four. What one head costs does not say what four cost.",
    ),
)

QUESTIONS = (
    Question(
        "The loss has fallen below the rung *all before*. What must the model be doing?",
        (
            Option(
                "It has learnt the training dates by heart, one after the other.",
                "The rung is the loss of exactly such a model: it knows all training dates and guesses among those that "
                "fit. Below the rung, more is needed.",
            ),
            Option(
                "It reads the source.",
                "That rung is the best that can be done from the target alone. What is below it must come from the "
                "encoder, through cross-attention.",
                right=True,
            ),
            Option(
                "It looks ahead in the target.",
                "The causal mask forbids it. What it may see besides is the source.",
            ),
        ),
    ),
    Question(
        "A gradient check in float64: for ε = 10⁻¹, 10⁻⁵ and 10⁻¹² secant and backward differ by 40 % each time. Then …",
        (
            Option("ε is still too large.", "The secant's own error shrinks with ε. This one does not move."),
            Option("rounding spoils it.", "Rounding grows as ε shrinks; at 10⁻⁵ it is far below a millionth here."),
            Option(
                "float64 is not precise enough for a check of this kind.",
                "At ε near 10⁻⁵ right slopes agree to eight digits and more in float64.",
            ),
            Option(
                "the backward pass is wrong.",
                "An error that no ε changes is not the secant's. You saw it without the row's sum.",
                right=True,
            ),
        ),
    ),
    Question(
        "*Further*, section 4: why is the sum of all outputs a bad loss to check a softmax's backward pass with?",
        (
            Option(
                "Its true gradient is 0.",
                "Each row sums to 1, whatever the scores. So a backward pass that returns zeros would pass, and others, too.",
                right=True,
            ),
            Option("It is too large for float32.", "It is the number of rows: a small whole number."),
            Option(
                "The derivative of a sum does not exist at 0.",
                "A sum has a derivative everywhere: 1 for each term. That is the trouble: the ones add up to nothing.",
            ),
        ),
    ),
    Question(
        "*Further*, section 7: two recipes are compared at one learning rate, from one start. The first gets more dates right. What follows?",
        (
            Option(
                "The first recipe is better.",
                "At another rate it can be the other way round: recipes move the best rate.",
            ),
            Option(
                "Little: try several rates and starts.",
                "A recipe is a curve over rates, with a spread over starts. One point of each does not compare them.",
                right=True,
            ),
            Option(
                "The second recipe needs more steps.",
                "It may, or another rate, or another start. One run cannot say which.",
            ),
            Option(
                "The second recipe has a bug somewhere in its backward pass.",
                "A gradient check would tell. A lower score alone does not.",
            ),
        ),
    ),
    Question(
        "In an attention, only softmax's backward pass is wrong. Which gradient is right all the same?",
        (
            Option("dQ", "dQ = dS K / √d_k is made from the gradient at the scores, which comes out of softmax."),
            Option("dK", "dK = dSᵀ Q / √d_k is made from the gradient at the scores, which comes out of softmax."),
            Option(
                "dV",
                "dV = Aᵀ dO needs the weights and the gradient at the output. It does not pass through softmax.",
                right=True,
            ),
            Option("None of the three.", "One of them needs no gradient at the scores. Look at the table's last row."),
        ),
    ),
)
