"""The predictions and the checkpoint questions of notebook 05."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
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
        "batch",
        ("layer norm", "batch norm", "both"),
        right="layer norm",
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
        happened="When the model writes, there is no future to see. With any other part off, it makes mistakes.",
    ),
    Prediction(
        "small_start",
        ("only pre-norm", "pre-norm and the small start", "all three"),
        right="pre-norm and the small start",
        happened="Both begin with a stream of ordinary size. With the usual start and no norm, nothing is learnt.",
    ),
    Prediction(
        "higher_rate",
        ("both", "only pre-norm", "only the small start", "neither"),
        right="both",
        happened="In these runs the small start does well at each rate at which pre-norm does.",
    ),
    Prediction(
        "no_mask",
        ("both", "one", "none"),
        right="one",
        happened="One reads the answer off the later symbols. The other does not use what the later symbols are.",
    ),
    Prediction(
        "readers",
        ("2 layers", "2 layers without", "6 layers without"),
        right="2 layers",
        happened="Attention does not make up for the feed-forward layer here, even with as many parameters.",
    ),
    Prediction(
        "neurons",
        ("fewer than one in ten", "about a third", "nearly all"),
        right="about a third",
        happened="A third end in the same character. In most neurons the strongest places have less in common.",
    ),
    Prediction(
        "erased",
        ("about 1", "about a half", "about 0"),
        right="about a half",
        happened="The parts have learnt to subtract, because the output uses the same table.",
    ),
    Prediction(
        "vanishes",
        ("at the bottom", "at the top", "nowhere"),
        right="at the top",
        happened="In the top layers all tokens are nearly one vector, so what queries and keys do hardly matters there.",
    ),
    Prediction(
        "learners",
        ("none", "two", "all three"),
        right="two",
        happened="Post-norm learns if its first steps are small: with warm-up, or at a third of the rate.",
    ),
    Prediction(
        "starved",
        ("starved, and it fails", "starved, but it learns", "not starved, and slow"),
        right="not starved, and slow",
        happened="Its share never falls below 1/33. It learns something, but far less than at a third of the rate.",
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
                "Each of the B · T tokens has its own mean and its own variance.",
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
                "1 + 12 · 0.36 = 5.3, and its root is 2.3. The untrained stack of section 5 grew in this way.",
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
        "Leave “x +” out of an untrained stack of 48 layers, but keep the norms. What did we measure at the top and at the bottom?",
        (
            Option(
                "The stream explodes.",
                "It does so with “x +” and without norms. A norm keeps what each part reads at size 1.",
            ),
            Option(
                "The gradient falls below 10⁻¹³.",
                "It does so without “x +” and without norms. With norms it fell to 0.07.",
            ),
            Option(
                "The tokens become one vector, and some gradient is left.",
                "With norms, what is lost first without the plus sign is the tokens.",
                right=True,
            ),
            Option(
                "Nothing changes, because the norms replace “x +”.",
                "The tokens had cosine 1.00 after four layers, with all norms in place.",
            ),
        ),
    ),
    Question(
        "Our 12 layers without any norm learnt the task when W_O and W_2 began at a fifth of their size. What follows?",
        (
            Option(
                "Norms are useless.",
                "With the usual start, the stack without norms learnt nothing, and pre-norm learnt.",
            ),
            Option(
                "Here the stream must not explode at the start, and a norm is one way to prevent this.",
                "Both learners began with a stream of ordinary size.",
                right=True,
            ),
            Option(
                "Twelve layers are too few to need a norm.",
                "With the usual start they did: without norms nothing was learnt.",
            ),
            Option(
                "A smaller learning rate would have done the same.",
                "At a tenth of the rate, the usual start without norms learnt nothing either.",
            ),
        ),
    ),
)
