"""The predictions and the checkpoint questions of notebook 03."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "one_head",
        ("about 1 in 20", "about a third", "about two thirds", "all"),
        right="about a third",
        happened="The head finds all four symbols, but their average does not say which symbol stood where.",
    ),
    Prediction(
        "split",
        ("[2, 1, 2]", "[1, 2, 2]", "[2, 2, 1]"),
        right="[1, 2, 2]",
        happened="The reshape cuts token 2 into pieces, and the swap brings the heads to the front: the entry is in "
        "head 1, token 2, last column.",
    ),
    Prediction(
        "scrambled",
        ("half of each token", "tokens 0 and 1, in pieces", "every other column"),
        right="tokens 0 and 1, in pieces",
        happened="A reshape keeps the order of the entries, so the first tokens fill head 0, cut into pieces.",
    ),
    Prediction(
        "bug",
        ("none", "those of neighbours", "all four"),
        right="those of neighbours",
        happened="Most neighbours stand in the same head, so the model learns them. What is further away never meets "
        "the query.",
    ),
    Prediction(
        "cost",
        ("all three", "only the memory", "memory and multiply-adds", "none"),
        right="only the memory",
        happened="The heads share the columns of the same four matrices, so parameters and multiply-adds stay the same. "
        "Each head keeps a map of its own, so the memory grows.",
    ),
    Prediction(
        "experiment",
        ("2 heads", "4 heads", "8 heads", "16 heads"),
        right="4 heads",
        happened="Four heads get all answers right from each of the three starts, and eight nearly all. Fewer heads "
        "blur the four offsets, and heads of width 2 learn slowly.",
    ),
    Prediction(
        "circle",
        ("nearly 1", "about a third", "hardly more than the others"),
        right="about a third",
        happened="The neighbours on the circle get nearly the same score, so they share the weight.",
    ),
    Prediction(
        "digits",
        ("no, it stays at a quarter each", "yes, nearly"),
        right="yes, nearly",
        happened="With a wider network and eight times the steps, the weights come close to 8 : 4 : 2 : 1.",
    ),
    Prediction(
        "fetch",
        ("each takes one", "each takes all four", "one head does most"),
        right="each takes one",
        happened="Each of the four maps has one diagonal, and no two heads have the same.",
    ),
    Prediction(
        "removal",
        ("all four, a little", "those at one offset", "none, the others step in"),
        right="those at one offset",
        happened="The answers at the offset of head 0 are lost, and the other three stay right.",
    ),
    Prediction(
        "one_query",
        ("at the same place", "one place further", "at the same symbol elsewhere"),
        right="one place further",
        happened="The head looks by position: it keeps its distance from the query, whatever symbol stands there.",
    ),
    Prediction(
        "diversity",
        ("the most diverse", "the one in between", "the least diverse"),
        right="the least diverse",
        happened="In the best of the three models both heads look at the same places, with other weights.",
    ),
)

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
)
