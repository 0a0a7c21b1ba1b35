"""The checkpoint questions of notebook 05."""

from lesson_utils.quiz import Option, Question

QUESTIONS = (
    Question(
        "Layer norm takes x of shape (B, T, d_model). Over which numbers are mean and variance taken?",
        (
            Option(
                "Over all B · T · d_model numbers of the whole batch.",
                "Then a token's output would depend on what else is in the batch.",
            ),
            Option(
                "Over the T tokens of a sequence.",
                "Tokens do not meet in layer norm. Only attention mixes them.",
            ),
            Option(
                "Over the d_model features of one token.",
                "One mean and one variance for each of the B · T tokens.",
                right=True,
            ),
            Option(
                "Over each feature, along the batch.",
                "That is batch norm. It needs many examples at once.",
            ),
        ),
    ),
    Question(
        "Before training, in a pre-norm stack, how does the last layer's gradient change with depth L?",
        (
            Option(
                "It falls, about as 1/√L.",
                "The stream grows about as √L, and the norm at the top divides by its size.",
                right=True,
            ),
            Option(
                "It stays the same, at any depth.",
                "That is what we measured for post-norm.",
            ),
            Option(
                "It grows, as the stream does.",
                "The *stream* grows. The norms divide by its size, and so does the gradient.",
            ),
            Option(
                "It vanishes within a few layers.",
                "From 2 to 48 layers it fell four- to fivefold; that is no vanishing.",
            ),
        ),
    ),
    Question(
        "Our 12-layer post-norm model did not learn without warm-up. What does that show?",
        (
            Option(
                "Its gradients vanish in the early layers before training begins.",
                "At 12 layers, before training, its first layer gets about as much gradient as its last: we measured it.",
            ),
            Option(
                "Post-norm can't be trained at all.",
                "With 200 steps of warm-up it learnt the task.",
            ),
            Option(
                "12 layers are too many for this task.",
                "Pre-norm with 12 layers learns it, without warm-up.",
            ),
            Option(
                "Its first steps must be small, at this depth and rate.",
                "That is what was seen: the same model, only with a slow start, learns.",
                right=True,
            ),
        ),
    ),
    Question(
        "A bug leaves out the causal mask during training. Which measure gives it away?",
        (
            Option(
                "The training loss: it is higher than it should be.",
                "It can be as low as with a mask, or lower: the answer can be read off the input.",
            ),
            Option(
                "What the model writes on its own.",
                "Writing, it has no future to read from. Accuracy with the right symbols given stays near 1.",
                right=True,
            ),
            Option(
                "The gradient: it becomes NaN after some steps.",
                "Nothing overflows. The bug is quiet, and that is what makes it bad.",
            ),
            Option(
                "The shapes: the scores no longer fit.",
                "A mask has no influence on any shape.",
            ),
        ),
    ),
    Question(
        "From d_model = 512, d_ff = 2048 and 8 heads you go to 16 heads. How many parameters are added?",
        (
            Option(
                "None.",
                "Each head becomes half as wide: the same four matrices, cut into more pieces.",
                right=True,
            ),
            Option(
                "Twice as many as there were in attention.",
                "Heads share d_model among them: d_k = d_model / h.",
            ),
            Option(
                "One matrix W_O more for each head.",
                "There is one W_O behind the joined heads.",
            ),
        ),
    ),
)
