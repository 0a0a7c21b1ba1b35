"""The predictions and the checkpoint questions of notebook 07."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "forgotten",
        ("the early keys", "the late keys", "all alike"),
        right="the early keys",
        happened="The keys before a jump of the maximum should have shrunk, and they did not.",
    ),
    Prediction(
        "ways",
        ("to one kept array", "to a few rows", "to tiles"),
        right="to one kept array",
        happened="Fetching fresh memory for each large array takes more time than anything that the later steps save.",
        usual="to tiles",
    ),
    Prediction(
        "first",
        ("64 more tokens", "the first token", "both about the same"),
        right="the first token",
        happened="The first token brings the perplexity down further than 64 recent ones, on each of three texts.",
        usual="64 more tokens",
    ),
    Prediction(
        "best",
        ("about 8", "about 64", "about 250"),
        right="about 64",
        happened="A small share of the keys holds nearly all of the weight.",
    ),
    Prediction(
        "texts",
        ("about 2", "about 15", "about 150"),
        right="about 15",
        happened="The weights are kept once, and each text brings a cache of 1.07 GB.",
    ),
    Prediction(
        "scale",
        ("all numbers of one key", "one channel of many keys", "it makes no difference"),
        right="one channel of many keys",
        happened="A few channels are large in nearly every key. With a scale of their own they spoil no others.",
        usual="all numbers of one key",
    ),
    Prediction(
        "roof",
        ("about eight times", "about three times", "about as long"),
        right="about as long",
        happened="Most of the time is the cost of a pass over the weights, and the tokens share it.",
        usual="about eight times",
    ),
    Prediction(
        "price",
        ("about 1", "a few", "about 32"),
        right="a few",
        happened="What is done once for a pass, such as reading the parameters, is shared by all new tokens.",
        usual="about 32",
    ),
    Prediction(
        "accepted",
        ("about a tenth", "about half", "most of them"),
        right="most of them",
        happened="Greedy text of so small a model repeats itself, so a table of pairs often guesses right.",
    ),
    Prediction(
        "choice",
        ("a window of 256", "4 bits, all tokens", "both together"),
        right="4 bits, all tokens",
        happened="4 bits just fit, if the weights of pairs are not written down, and lose least. A window saves more bytes.",
    ),
    Prediction(
        "hold",
        ("about half", "nearly all", "about a tenth"),
        right="nearly all",
        happened="Random keys are nearly perpendicular, so their values hardly mix.",
        usual="about half",
    ),
    Prediction(
        "elu",
        ("about half", "nearly all", "about a tenth"),
        right="about a tenth",
        happened="All features are positive, so all keys overlap, and each answer holds a piece of every value.",
    ),
    Prediction(
        "pays",
        ("from 64 on", "from about 500 on", "from 4,096 on"),
        right="from about 500 on",
        happened="Under a causal mask the chunks cost something, and tiles are a faster rival than all weights.",
    ),
)

QUESTIONS = (
    Question(
        "A model of width 1,024 reads 512 tokens. Somebody makes its attention twice as fast. By the counts, the block …",
        (
            Option(
                "becomes a few percent faster.",
                "At T = 512 and d = 1,024 pairs are 512 / (512 + 6,144), 8 % of the multiply-adds. Long texts are another matter.",
                right=True,
            ),
            Option(
                "becomes twice as fast.",
                "Only if attention between pairs were all of it. Most goes to projections and feed-forward.",
            ),
            Option(
                "becomes slower at longer texts.",
                "The longer the text, the more it gains: the pairs' share rises with T.",
            ),
            Option(
                "needs half the memory.",
                "Speed says nothing about memory: twice as fast can mean as many bytes, or more.",
            ),
        ),
    ),
    Question(
        "Online softmax: a tile brings a score 2 above the running maximum. What happens to the sums so far?",
        (
            Option(
                "They stay, since they are done.",
                "They are relative to the old maximum. Added to a tile that is relative to the new one, they would count too much.",
            ),
            Option(
                "They are multiplied by e².",
                "The sign is wrong: the sums are relative to a lower maximum, so they must shrink.",
            ),
            Option(
                "They are multiplied by e⁻².",
                "exp(old − new) = exp(−2), the sum and the output alike. Then the tile is added.",
                right=True,
            ),
            Option("They are computed anew from the keys.", "Then nothing would be saved. One factor does it."),
        ),
    ),
    Question(
        "A trained model is run with a window, and its perplexity explodes once the first token is out of sight. Why?",
        (
            Option(
                "The first token holds the topic of the text.",
                "Xiao et al. put line breaks in its place, and that did nearly as well. Its content is not what is missed.",
            ),
            Option(
                "Its heads put weight there when they have no other use for it.",
                "Softmax must spend 1, and this model learned to spend the rest on the first token. Its heads use that value, too.",
                right=True,
            ),
            Option(
                "Positions are counted wrongly without it.",
                "Nothing was renumbered: the mask changed, the positions did not.",
            ),
            Option(
                "The window hides most of the recent past.",
                "The recent past is what the window keeps. One token more brings most of it back.",
            ),
        ),
    ),
    Question(
        "A model writes one text at a time. Then it writes 16 texts at once. What becomes of the multiply-adds for each number read?",
        (
            Option(
                "They rise for the weights, and stay for the caches.",
                "All texts share the weights, so each weight is used 16 times. Each text has a cache of its own.",
                right=True,
            ),
            Option(
                "They rise for both.",
                "The caches of 16 texts are 16 different caches. Each is read for one new token.",
            ),
            Option(
                "They stay for both.",
                "Each weight that is read once now serves 16 tokens.",
            ),
            Option(
                "They rise for the caches only.",
                "It is the other way round: the weights are shared by all texts, a cache by none.",
            ),
        ),
    ),
)
