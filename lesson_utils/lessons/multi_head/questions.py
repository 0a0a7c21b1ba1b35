"""The checkpoint questions of notebook 03."""

from lesson_utils.classroom.quiz import Option, Question

QUESTIONS = (
    Question(
        "A layer with d_model = 512 has 8 heads. You change it to 16 heads, at the same d_model. Its parameters …",
        (
            Option("double, with twice as many heads.", "Each head is half as wide now, d_k = 32, not 64."),
            Option(
                "stay as many.", "The four matrices are 512 × 512 whatever h is; the heads share them out.", right=True
            ),
            Option("halve, with half the width.", "Each head has half as many, but there are twice as many heads."),
        ),
    ),
    Question(
        "One trained head put about a quarter of its weight on each of four places. What was lost in its output?",
        (
            Option(
                "Which symbol stood where.",
                "A sum of four equal shares is the same in any order. Unequal shares, such as 8 : 4 : 2 : 1, would keep it.",
                right=True,
            ),
            Option(
                "Which four symbols were there.",
                "Nearly all answers were among the four wanted symbols: those it knew.",
            ),
            Option("On which offsets it has to look.", "Its map had four diagonals, on just those offsets."),
            Option(
                "All: one head can't do such a task.",
                "With a wider network and eight times the steps, one head reached 0.87. It is slow, not unable.",
            ),
        ),
    ),
    Question(
        "`x` has shape (T, d_model). What is wrong with `x.reshape(num_heads, T, d_k)` as a split?",
        (
            Option("The shape of what it returns.", "The shape is right, and that makes the bug hard to find."),
            Option(
                "Nothing, if merging undoes it.",
                "The round trip gives x again. But in between, attention ran over rows that are not tokens.",
            ),
            Option(
                "It copies the array, which takes time.", "It makes a view if it can. That would be no mistake either."
            ),
            Option(
                "Head 0 gets the first tokens, whole.",
                "Reshape keeps the order of the entries: it fills head 0 with the first tokens, cut into pieces. What "
                "stands further away, that head can't see.",
                right=True,
            ),
        ),
    ),
    Question(
        "Why did 16 heads of width 2 do so much worse than 4 of width 8, in the same training?",
        (
            Option(
                "They had fewer parameters and did fewer multiply-adds.",
                "Both are the same; the table was computed from the library's own counts.",
            ),
            Option(
                "To single out one of 24 keys takes huge scores in a plane.",
                "Neighbours on the circle get nearly the same score. The heads were still smears when training ended.",
                right=True,
            ),
            Option(
                "They all came to look at the same places in the end.",
                "They differed more than untrained heads do. Different is not yet useful.",
            ),
        ),
    ),
    Question(
        "Heads of an untrained model have a diversity of about 0.45. What does that show?",
        (
            Option(
                "They have found different tasks.", "They have learned nothing yet: chance alone makes them differ."
            ),
            Option("Half of them can be removed.", "The measure does not say what is lost without a head."),
            Option(
                "A diversity needs a baseline.",
                "Random heads differ, too. Only the gap to them, and what is lost without a head, says something.",
                right=True,
            ),
        ),
    ),
)
