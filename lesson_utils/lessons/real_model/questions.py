"""The predictions and the checkpoint questions of notebook 09."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "jump",
        ("step by step", "all at once", "not at all"),
        right="all at once",
        happened="For a long time next to nothing is right. Then both heads appear together, and most of the copy is right.",
        usual="step by step",
    ),
    Prediction(
        "positions",
        ("none", "about half of them", "all"),
        right="none",
        happened="They copy three quarters by another mechanism, and no head of their first layer looks one back.",
        usual="all",
    ),
    Prediction(
        "sqrt",
        ("as long", "twice as long", "many times as long"),
        right="many times as long",
        happened="All weights of the model are converted to another type for each token.",
        usual="as long",
    ),
    Prediction(
        "lens",
        ("It climbs in each layer.", "It jumps in the last layers.", "It is first early."),
        right="It jumps in the last layers.",
        happened="It stays in the thousands for most layers. Then it is first within five layers.",
        usual="It climbs in each layer.",
    ),
    Prediction(
        "names",
        ("They stay as they are.", "They are harder, but known.", "They are as if never told."),
        right="They are harder, but known.",
        happened="Nearly all of the names cost more, and all of them cost far less than a name that was never told.",
        usual="They are as if never told.",
    ),
    Prediction(
        "wire",
        ("in the queries", "in the keys", "in the values", "alike in all three"),
        right="in the keys",
        happened="A key has to say which symbol came before it, and this is what the previous-token head writes.",
    ),
    Prediction(
        "moved",
        ("at the answer", "one place earlier", "one place later", "at the first token"),
        right="one place later",
        happened="The keys say which token came before. They say so one place later now, and the heads follow what they say.",
    ),
    Prediction(
        "writes",
        ("the previous-token head 16.0", "the five heads that read it", "heads of later layers"),
        right="heads of later layers",
        happened="The five heads of layers 17 and 18 find the surname. Heads from layer 23 on push it ahead.",
        usual="the five heads that read it",
    ),
    Prediction(
        "knock",
        ("4 induction heads", "1 previous-token head", "4 other heads"),
        right="4 other heads",
        happened="In eight draws, four other heads of the same layers cost far less than one previous-token head.",
        usual="1 previous-token head",
    ),
    Prediction(
        "page",
        ("none", "one", "two", "all three"),
        right="one",
        happened="Each head alone was not missed by its page. As zeros, all of them together are missed by two pages of three.",
        usual="all three",
    ),
    Prediction(
        "sink",
        ("half as much", "about as much", "many times as much"),
        right="many times as much",
        happened="Hidden from the start, the first token has a successor. Hidden later, it has none.",
        usual="half as much",
    ),
    Prediction(
        "effect",
        ("the first token", "key", "looked", "table"),
        right="looked",
        happened="The verb decides what comes next. Hidden in this way, the first token has a successor, and little effect.",
        usual="the first token",
    ),
    Prediction(
        "window",
        ("a window of 128", "the first token kept", "more bits"),
        right="the first token kept",
        happened="On this text the window's harm is mostly the lost sink.",
        usual="a window of 128",
    ),
    Prediction(
        "refers",
        ("It predicts it as before.", "It does a little worse.", "It loses it."),
        right="It loses it.",
        happened="What it should copy lies outside the window. The first token holds no summary of it.",
        usual="It does a little worse.",
    ),
    Prediction(
        "divisor",
        ("half the root", "twice the root", "both the same"),
        right="twice the root",
        happened="So far from the root, a softmax that is too even did more harm than one that is too sharp, on all three texts.",
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
)

QUESTIONS = (
    Question(
        "A head scores 0.95 for induction, on texts that repeat every 12 tokens. What do you know of it?",
        (
            Option(
                "It is an induction head.",
                "The one-layer model scored just as high, and copied no other period but the half of 12.",
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
        "Head A is off, and copying ends. Head B is off, and copying ends. Which experiment shows that B reads what A writes?",
        (
            Option("Both off at once.", "Copying ends again. That tells nothing about who reads whom."),
            Option(
                "A's output missing in B's input only.",
                "If copying ends although everybody else still reads A, then B needed it, and you know in which input.",
                right=True,
            ),
            Option(
                "A map of B that points at A's position.",
                "Maps show positions. What is read there may come from any layer.",
            ),
            Option("A higher score of both heads.", "Two high scores describe two heads, and no connection."),
        ),
    ),
    Question(
        "Copying ends when the output of head 16.0 is missing in the keys of five induction heads. Missing in their values, it costs only half a nat. Why do they need it in their keys?",
        (
            Option(
                "The keys say which token came before.",
                "The query brings its own token, and finds the key that has this token before it.",
                right=True,
            ),
            Option(
                "Keys are used by more heads than values.",
                "Here keys and values are shared by the same groups of heads.",
            ),
            Option(
                "The values hold the answer.",
                "They do hold it. The answer is the token at the position itself, so the values need nothing from head 16.0.",
            ),
            Option(
                "Any change of the keys ends copying.",
                "The outputs of other previous-token heads can be taken out of the same keys, and this costs little.",
            ),
        ),
    ),
    Question(
        "Hidden from the start, the first token costs next to nothing. Hidden from the middle of the text on, it costs a lot. Why?",
        (
            Option(
                "It holds a summary of the text.",
                "It stands first: under a causal mask it has seen nothing but itself.",
            ),
            Option(
                "From the start, the text just begins one token later.",
                "The second token sees only itself then, and becomes the sink. In the middle no token does.",
                right=True,
            ),
            Option(
                "The second half of a text needs its beginning more.",
                "Hidden from the start, it is hidden from the second half, too.",
            ),
            Option("Its effect is large because its weight is large.", "The weight was as large in the first case."),
        ),
    ),
)
