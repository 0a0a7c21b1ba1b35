"""The checkpoint questions of notebook 08."""

from lesson_utils.classroom.quiz import Option, Question

QUESTIONS = (
    Question(
        "The loss has fallen below the rung *all before*. What must the model be doing?",
        (
            Option(
                "It has learnt the training dates by heart, one after the other.",
                "Nothing says so: half of the held-out dates come out right soon after, and those it has never seen.",
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
            Option("ε is still too large.", "The secant's own error falls as ε² at first. This one does not move."),
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
        "Why is the sum of all outputs a bad loss to check a softmax's backward pass with?",
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
        "Two recipes are compared at one learning rate, from one start. The first gets more dates right. What follows?",
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
        "Heads were ranked on one format of dates. Four could go, and 0.9 of such dates stayed right. In a product you would …",
        (
            Option(
                "cut them: 0.9 is what it costs.",
                "On the other formats it cost more. The ranking knew nothing of them.",
            ),
            Option(
                "cut four others, the most important ones.",
                "Without one of those nearly every date was lost.",
            ),
            Option(
                "judge on all that it will meet.",
                "What is unimportant depends on the text that was asked. Choose on one set, judge on another, of every kind.",
                right=True,
            ),
        ),
    ),
)
