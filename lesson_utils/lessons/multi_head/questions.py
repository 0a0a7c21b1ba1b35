"""The checkpoint questions of notebook 03."""

from lesson_utils.quiz import Option, Question

QUESTIONS = (
    Question(
        "A layer with d_model = 512 has 8 heads. You change it to 16 heads, at the same d_model. Its parameters …",
        (
            Option("double.", "Each head is half as wide now, d_k = 32. Twice as many, half as wide: the same."),
            Option(
                "stay as many.",
                "The four matrices are 512 × 512 whatever h is; the heads share their columns out.",
                right=True,
            ),
            Option("halve.", "Each head has half as many, but there are twice as many heads."),
        ),
    ),
    Question(
        "One trained head put about a quarter of its weight on each of four places. What could it not tell?",
        (
            Option(
                "Which four symbols stand there.",
                "It could: nearly all its answers were among the four wanted symbols.",
            ),
            Option(
                "Which symbol stands at which of the places.",
                "An average of four values is the same in any order, unless the weights differ.",
                right=True,
            ),
            Option("Where the places are.", "Its map had four diagonals, on just those offsets."),
        ),
    ),
    Question(
        "`x` has shape (T, d_model). What is wrong with `x.reshape(num_heads, T, d_k)` as a split?",
        (
            Option("The shape is wrong.", "The shape is right, and that is what makes the bug hard to find."),
            Option(
                "Nothing, if merging undoes it.",
                "The round trip gives x again. But in between, attention ran over rows that are not tokens.",
            ),
            Option(
                "Head 0 holds all columns of the first tokens.",
                "Reshape keeps the order of the entries: it fills head 0 with the first tokens, cut into pieces.",
                right=True,
            ),
            Option("It copies the array.", "It makes a view if it can. That would be no mistake either."),
        ),
    ),
    Question(
        "Why did 16 heads of width 2 do so much worse than 4 of width 8, in the same training?",
        (
            Option(
                "They have fewer parameters.",
                "Parameters and multiply-adds are the same; the table was computed from the library's own counts.",
            ),
            Option(
                "They all looked the same way.",
                "They were less alike than untrained heads. Different is not yet useful.",
            ),
            Option(
                "In two dimensions, it takes huge scores to single out one key of 24.",
                "The right key's neighbours on the circle point nearly the same way. The heads stayed blurred.",
                right=True,
            ),
        ),
    ),
    Question(
        "Heads of an untrained model have diversity of about 0.45. What does that show?",
        (
            Option(
                "That the heads have found different tasks.",
                "They have learned nothing yet: chance alone makes them differ.",
            ),
            Option(
                "That a diversity needs something to compare it with.",
                "Random heads differ too. Only the gap to them, and what a head is needed for, says something.",
                right=True,
            ),
            Option("That half of the heads can be removed.", "The measure does not say what is lost without a head."),
        ),
    ),
)
