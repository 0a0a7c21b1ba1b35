"""The checkpoint questions of notebook 05."""

from lesson_utils.classroom.quiz import Option, Question

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
        "In an untrained post-norm stack of 48 layers, W_Q and W_K of the top layers get almost no gradient. Why?",
        (
            Option(
                "Up there all tokens are nearly one vector.",
                "Then all keys are equal, and so are all scores, whatever W_Q and W_K are.",
                right=True,
            ),
            Option(
                "The norm divides the gradient by a stream that has grown.",
                "In post-norm the stream keeps its size. It grows in pre-norm.",
            ),
            Option(
                "A gradient gets smaller on its way from the top to the bottom.",
                "The top is where it comes in. Other parameters of the same layers get plenty.",
            ),
            Option(
                "Softmax is saturated: each query looks at one key only.",
                "The opposite: with equal keys, each query's weights are even.",
            ),
        ),
    ),
    Question(
        "Our 12-layer post-norm model did not learn at the full rate without warm-up. What does that show?",
        (
            Option(
                "Its gradients vanish in the early layers before training begins.",
                "Before the first step its bottom layer got half as much as the top. It lost its share in the steps after.",
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
                "That is what was seen: the same model learns with a slow start, and with a third of the rate.",
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
        "The reversing model did as well when it was trained without feed-forward layers. What follows?",
        (
            Option(
                "This task does not need them.",
                "Moving letters is attention's job. The next characters of a text were 0.4 bits worse without them.",
                right=True,
            ),
            Option(
                "They can be left out of any Transformer.",
                "Without them, the next characters of a text cost 0.4 bits more.",
            ),
            Option(
                "They had not been trained for long enough to be of use.",
                "With them the model got every string right, too: there was nothing left to gain.",
            ),
            Option(
                "Attention can replace them, given as many parameters.",
                "Not on text: six layers of attention alone, with as many parameters, stayed behind.",
            ),
        ),
    ),
)
