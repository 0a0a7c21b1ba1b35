"""The predictions and the checkpoint questions of notebook 05."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "boxes",
        ("attention", "feed-forward", "add & norm"),
        right="add & norm",
        happened="One such box follows each attention and each feed-forward layer, so there are five.",
    ),
    Prediction(
        "alike",
        ("about 0", "about 0.5", "about 1"),
        right="about 1",
        happened="Attention averages, and after four layers of averages all tokens are nearly the same vector.",
    ),
    Prediction(
        "explodes",
        ("about 7", "about 50", "over a billion"),
        right="over a billion",
        happened="What a part adds grows with what it reads, so the factors multiply. With norms the stream stays below 8.",
    ),
    Prediction(
        "pattern",
        ("what it makes of the first", "100 times that", "that plus 7"),
        right="what it makes of the first",
        happened="Layer norm forgets size and offset, and keeps the pattern.",
    ),
    Prediction(
        "batch",
        ("layer norm's", "batch norm's", "both"),
        right="layer norm's",
        happened="Layer norm looks at one token only. With batch norm the other tokens count, too.",
    ),
    Prediction(
        "parameters",
        ("attention", "feed-forward", "both the same"),
        right="feed-forward",
        happened="The feed-forward layer has twice as many: 8d² against 4d².",
    ),
    Prediction(
        "still_writes",
        ("the norms", "feed-forward", "the mask", "the scaling"),
        right="the mask",
        happened="When the model writes, there is no future to see. Every other part is missed.",
    ),
    Prediction(
        "no_mask",
        ("next symbols and strings", "next symbols only", "neither"),
        right="next symbols only",
        happened="Next symbols are right because the model looks ahead. On its own it finds nothing ahead, and fails.",
    ),
    Prediction(
        "readers",
        ("2 layers", "2 layers without", "6 layers without"),
        right="2 layers",
        happened="Attention does not make up for the feed-forward layer here, even with as many parameters.",
    ),
    Prediction(
        "neurons",
        ("one letter anywhere", "a letter in a certain place", "a whole word"),
        right="a letter in a certain place",
        happened="One neuron waits for an n after an i, another for a quotation mark that opens.",
    ),
    Prediction(
        "vanishes",
        ("at the bottom", "at the top", "nowhere"),
        right="at the top",
        happened="In the top layers all tokens are nearly one vector, so what queries and keys do hardly matters there.",
        usual="at the bottom",
    ),
    Prediction(
        "learners",
        ("only pre-norm", "three", "all five"),
        right="three",
        happened="Post-norm learns, too, if its first steps are small. Without any norm nothing is learnt.",
    ),
    Prediction(
        "starved",
        ("both", "one", "none"),
        right="one",
        happened="Both runs fail. In one of them the bottom layer gets nearly as much as in a run that learns.",
    ),
    Prediction(
        "seven",
        ("every step", "cross-attention", "none"),
        right="none",
        happened="Cross-attention's weights have a column for each source position, but each output has the target's length.",
    ),
    Prediction(
        "table",
        ("none", "as many as the table", "d_model²"),
        right="none",
        happened="The output uses the table that was counted at the source.",
    ),
    Prediction(
        "shares",
        ("the table", "attention", "feed-forward"),
        right="the table",
        happened="The table grows with d_model and everything else with its square, so a small model is mostly its table.",
    ),
    Prediction(
        "reach",
        ("encoder-only", "decoder-only", "both", "neither"),
        right="encoder-only",
        happened="Without a mask every output depends on every input. A mask hides the later ones.",
    ),
)

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
        "Twelve parts add to a stream of size 1, each a vector of size 0.6 in a random direction. How large is the stream then?",
        (
            Option(
                "About 2.3: squares add up.",
                "1 + 12 · 0.36 = 5.3, and its root is 2.3. So the untrained stack grew.",
                right=True,
            ),
            Option(
                "About 8.2: sizes add up.",
                "They would if all parts wrote in the same direction.",
            ),
            Option(
                "About 1: each part's norm brings the stream back.",
                "In pre-norm the norm works on a copy. The stream itself stays as it is.",
            ),
            Option(
                "About 0.002: factors of 0.6 multiply.",
                "A part adds to the stream. It does not replace it.",
            ),
        ),
    ),
    Question(
        "(From section 7.) Our 12-layer post-norm model did not learn at the full rate without warm-up. What does that show?",
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
