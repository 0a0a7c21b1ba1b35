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
        happened="The heads divide the same four matrices among them, so parameters and multiply-adds stay the same. "
        "Each head has a map of its own, so the memory grows.",
    ),
    Prediction(
        "experiment",
        ("1 or 2 heads", "4 or 8 heads", "16 heads"),
        right="4 or 8 heads",
        happened="Four and eight heads have medians of 0.99 and 0.98. Fewer heads blur the four offsets, and sixteen "
        "heads of width 2 fall short in 500 steps at this learning rate.",
    ),
    Prediction(
        "width",
        ("wider keys", "wider values", "neither: 16 are too many"),
        right="wider keys",
        happened="With keys of width 8, the sixteen heads solve the task from all three starts, although their values "
        "are still 2 wide.",
    ),
    Prediction(
        "slow",
        ("only more steps", "only a higher rate", "more steps, or a higher rate", "a larger network"),
        right="more steps, or a higher rate",
        happened="All three starts get every answer right after 4,000 steps, and nearly every answer at four times the "
        "rate. With the larger network it is about half.",
    ),
    Prediction(
        "circle",
        ("nearly 1", "about a third", "hardly more than the others"),
        right="about a third",
        happened="The neighbours on the circle get nearly the same score, so they share the weight.",
    ),
    Prediction(
        "tasks",
        ("1 head", "2 heads", "4 or more heads"),
        right="4 or more heads",
        happened="Four and eight heads get every answer right from all three starts, and two heads from only one.",
        usual="2 heads",
    ),
    Prediction(
        "digits",
        ("no, it stays at a quarter each", "yes, nearly"),
        right="yes, nearly",
        happened="With a wider network and eight times the steps, the weights come close to 8 : 4 : 2 : 1.",
    ),
    Prediction(
        "removal",
        ("all four, a little", "those at one offset", "none, the others step in"),
        right="those at one offset",
        happened="The answers at the offset of head 0 fall to guessing, and the other three stay right.",
    ),
    Prediction(
        "all_starts",
        ("only in this one", "in about half", "in about three quarters", "in all of them"),
        right="in about three quarters",
        happened="In 9 of 12. In the other three starts, heads share offsets.",
    ),
    Prediction(
        "one_query",
        ("at the same place", "one place further", "at the same symbol elsewhere"),
        right="one place further",
        happened="The head looks by position: it keeps its distance from the query, whatever symbol stands there.",
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
                "Head 0 gets pieces of the first tokens only.",
                "Reshape keeps the order of the entries, so it fills head 0 with the first tokens, cut into pieces. Head "
                "0 never sees the other tokens.",
                right=True,
            ),
        ),
    ),
    Question(
        "With d_model = 32, four heads got nearly all answers right in 500 steps, and sixteen heads about a third. Which "
        "change let sixteen heads catch up in as many steps, at the same learning rate?",
        (
            Option(
                "None: sixteen looks are too many for four offsets.",
                "Sixteen heads with wider keys got every answer right. Each offset had three to five heads.",
            ),
            Option(
                "Keys of width 8 in place of 2.",
                "With wider keys a head learns faster to single out one place of 24. Wider values helped too, but less.",
                right=True,
            ),
            Option(
                "As many parameters as four heads have.",
                "They have as many: 4,096. The heads only divide the same matrices among them.",
            ),
        ),
    ),
)
