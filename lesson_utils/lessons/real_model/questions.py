"""The predictions and the checkpoint questions of notebook 09."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "jump",
        ("step by step", "all at once", "not at all"),
        right="all at once",
        happened="Neither of the two heads is of use without the other, so nothing happens until both are there.",
        usual="step by step",
    ),
    Prediction(
        "link",
        ("nearly all", "about half", "less than a fifth"),
        right="less than a fifth",
        happened="The induction heads read what the previous-token head has written. Without it they find nothing.",
        usual="about half",
    ),
    Prediction(
        "trap",
        ("learn nothing", "copy every period", "copy period 12 only"),
        right="copy period 12 only",
        happened="It looks 11 back by position, which is right at period 12 and, by chance, at the half of 12.",
    ),
    Prediction(
        "positions",
        ("rotary", "learned", "sinusoidal", "ALiBi"),
        right="rotary",
        happened="Turned queries and keys offer “one back” at once, and the same at every place.",
    ),
    Prediction(
        "cache",
        ("RMS norm", "rotary positions", "grouped queries", "SwiGLU"),
        right="grouped queries",
        happened="The cache holds keys and values, and a group of heads shares them.",
    ),
    Prediction(
        "miss",
        ("norm before", "RMS norm", "rotary positions", "SwiGLU"),
        right="rotary positions",
        happened="Without rotary positions each of the three seeds loses several times more than without any other change.",
    ),
    Prediction(
        "sqrt",
        ("as long", "twice as long", "many times as long"),
        right="many times as long",
        happened="All weights of the model are converted to another type for each token.",
        usual="as long",
    ),
    Prediction(
        "heads",
        ("none", "a few", "about half", "nearly all"),
        right="a few",
        happened="A handful of heads look behind the same token. An untrained model has none.",
    ),
    Prediction(
        "sink",
        ("evenly on all", "on the second token", "on the nearest token"),
        right="on the second token",
        happened="The next token takes over, because the heads need a place for weight that they have no other use for.",
        usual="evenly on all",
    ),
    Prediction(
        "effect",
        ("the first token", "key", "looked", "table"),
        right="looked",
        happened="The verb decides what comes next. The first token has the largest weight, and little effect.",
        usual="the first token",
    ),
    Prediction(
        "lens",
        ("the first few", "the middle ones", "the last few"),
        right="the last few",
        happened="The lens reads with the eyes of the last layer, and only the last layers write in that form.",
        usual="the middle ones",
    ),
    Prediction(
        "knock",
        ("4 induction heads", "1 previous-token head", "16 heads at random"),
        right="16 heads at random",
        happened="Most heads have no part in copying. A chain of two kinds of heads has, and it breaks at either link.",
        usual="1 previous-token head",
    ),
    Prediction(
        "page",
        ("It gets worse.", "It stays as it is.", "It gets better."),
        right="It gets better.",
        happened="The heads were chosen by this very page. Another page tells another story.",
        usual="It gets worse.",
    ),
    Prediction(
        "window",
        ("a window of 128", "the first token kept", "more bits"),
        right="the first token kept",
        happened="The model does not miss the memory. It misses the place where its weight rests.",
        usual="a window of 128",
    ),
    Prediction(
        "sum",
        ("much less than the sum", "about the sum", "much more than the sum"),
        right="about the sum",
        happened="These losses add up nearly. Larger ones can come to more than their sum, or to less.",
    ),
    Prediction(
        "divisor",
        ("dividing by too little", "dividing by too much", "both the same"),
        right="dividing by too much",
        happened="A look that is too even does more harm than a look that is too sharp.",
    ),
)

QUESTIONS = (
    Question(
        "What does an induction head look at?",
        (
            Option(
                "The last place where the same token stood.",
                "There it would find the token it has. What comes next stands one further.",
            ),
            Option("The token just before.", "That is a previous-token head, the other half of the pair."),
            Option(
                "What came after the same token.",
                "And hands it over: what followed last time is likely to follow again.",
                right=True,
            ),
            Option(
                "The first token of the text.",
                "It rests there while it finds nothing to copy; but that is not its work.",
            ),
        ),
    ),
    Question(
        "Why does one layer not learn to copy with a random period?",
        (
            Option(
                "No key tells what came before it.",
                "Behind one layer it does: a previous-token head has written it there. So the second layer can ask for it.",
                right=True,
            ),
            Option("It has too few parameters.", "Twice the width and twice the steps did not help in our runs."),
            Option(
                "Its heads can't look as far back as 16.",
                "They can: with a fixed period, one layer looks 11 back without fail.",
            ),
            Option(
                "Softmax can't put enough weight on one key.",
                "In the trap, one layer puts 0.9 and more on a single key.",
            ),
        ),
    ),
    Question(
        "A head scores 0.95 for induction, on texts that repeat every 12 tokens. What do you know of it?",
        (
            Option(
                "It is an induction head.",
                "The one-layer model scored just so, and copied no other period but its half.",
            ),
            Option("It copies whatever repeats.", "That would have to be seen with other periods."),
            Option("It looks for the token that it has.", "Perhaps. The test can't tell that from counting positions."),
            Option(
                "It looks 11 back on such texts.",
                "By content or by position? A second test with another spacing tells the two apart.",
                right=True,
            ),
        ),
    ),
    Question(
        "Copying is nearly gone in SmolLM2 when a single previous-token head is off. Why?",
        (
            Option(
                "That head copies the tokens itself.",
                "It looks one back, and nowhere else. What it writes is read later.",
            ),
            Option(
                "The induction heads read what it writes.",
                "A chain breaks at either link: without it, the induction heads have nothing to find.",
                right=True,
            ),
            Option(
                "Any head that is off does that.",
                "Eight random heads changed little, and the story did not suffer from this one.",
            ),
            Option(
                "Without it the model can't tell positions.",
                "The story costs as much as before; its word order is understood.",
            ),
        ),
    ),
    Question(
        "With a window of 64 keys perplexity goes from 17 to 52; with the first token kept as well, to 21. What is the first token for?",
        (
            Option(
                "It holds a summary of the text.",
                "It stands first: under a causal mask it has seen nothing but itself.",
            ),
            Option("It marks where the text begins.", "Then “zebra” or a line end could not do the same; they do."),
            Option(
                "Its values tell the model the topic.",
                "Its values are a quarter as long as others: it hands over very little.",
            ),
            Option(
                "Weight that has no other use rests there.",
                "Softmax must spend its 1. Without that place it goes to keys that do hand something over.",
                right=True,
            ),
        ),
    ),
    Question(
        "27 of 270 heads were chosen by a page and switched off, and the loss on that page has even fallen. Are they useless?",
        (
            Option(
                "Yes: the model is better without them.",
                "On this page, by which they were chosen. On the next one it is worse.",
            ),
            Option(
                "On this page, which chose them; not on another, and not for copying.",
                "What is chosen by a text has to be judged on another one. The loss of the next page rose, that of copying more.",
                right=True,
            ),
            Option(
                "No: each of them is needed for any text.",
                "Switched off one by one, most heads change next to nothing.",
            ),
        ),
    ),
)
