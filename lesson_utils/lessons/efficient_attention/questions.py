"""The predictions and the checkpoint questions of notebook 07."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "half",
        ("at 512 tokens", "at 3,072 tokens", "at 32,768 tokens"),
        right="at 3,072 tokens",
        happened="Pairs cost half of a block at six times its width. Before that, most of the work is done token by token.",
    ),
    Prediction(
        "clock",
        ("earlier", "later", "at the same length"),
        right="earlier",
        happened="Softmax multiplies little, but it reads and writes all scores several times, and that takes time.",
        usual="at the same length",
    ),
    Prediction(
        "tile_size",
        ("one key a tile", "all keys in one tile", "all are the same"),
        right="all are the same",
        happened="Online softmax is exact with tiles of any size. Only rounding differs.",
    ),
    Prediction(
        "forgotten",
        ("the early keys", "the late keys", "all alike"),
        right="the early keys",
        happened="The keys before a jump of the maximum should have shrunk, and they did not.",
    ),
    Prediction(
        "slower",
        ("yes, it computes more", "no, mostly faster"),
        right="no, mostly faster",
        happened="The scores of a tile stay in the fast cache. Less traffic to memory saves more than the extra products cost.",
        usual="yes, it computes more",
    ),
    Prediction(
        "first",
        ("64 more tokens", "the first token", "both about the same"),
        right="the first token",
        happened="One token brings the perplexity down further than 64 others, because many heads put weight on it when "
        "they have nothing to look for.",
        usual="64 more tokens",
    ),
    Prediction(
        "layers",
        ("12 layers", "16 layers", "48 layers"),
        right="16 layers",
        happened="Each layer adds three positions, because the position itself is one of the four in its window.",
        usual="12 layers",
    ),
    Prediction(
        "best",
        ("about 8", "about 64", "about 250"),
        right="about 64",
        happened="A small share of the keys holds nearly all of the weight.",
    ),
    Prediction(
        "larger",
        ("none", "three", "all six"),
        right="three",
        happened="Both Llamas and SmolLM2 would keep more for the text than for the model itself.",
    ),
    Prediction(
        "bits",
        ("nothing to be seen", "some 40 % more perplexity", "a ruined model"),
        right="some 40 % more perplexity",
        happened="At 8 bits there is nothing to be seen, and at 3 bits the perplexity is more than fourfold.",
    ),
    Prediction(
        "time",
        ("only the second", "only the third", "both"),
        right="only the second",
        happened="Shared heads save time because less is read. NumPy must turn whole numbers of 8 bits into floats first.",
        usual="both",
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
        ("from 16 on", "from a few hundred on", "from some thousands on"),
        right="from a few hundred on",
        happened="The work grows with the length in place of its square, and short texts have little to save.",
    ),
    Prediction(
        "price",
        ("about 1", "a few", "about 32"),
        right="a few",
        happened="A pass is mostly reading: every parameter and the whole cache. That is done once for all new tokens.",
        usual="about 32",
    ),
    Prediction(
        "accepted",
        ("about a tenth", "about half", "most of them"),
        right="most of them",
        happened="Greedy text of so small a model repeats itself, so a table of pairs often guesses right.",
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
                "Speed says nothing about memory, and the weights of pairs were never most of it at this length.",
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
                "That is the sign that goes wrong most: they counted relative to a lower maximum, so they must shrink.",
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
                "Xiao et al. put line breaks in its place, and that did as well. Its content is not what is missed.",
            ),
            Option(
                "Its heads put weight there when they have no other use for it.",
                "Softmax must spend 1. The first token is where this model learned to spend what it does not need.",
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
        "*Further*, section 5: a memory of 32 × 64 numbers adds up pairs of keys and values. Which pairs does it lose first, when it is too full?",
        (
            Option("The oldest.", "That is fading, with a decay. A plain sum knows no order."),
            Option(
                "All alike: the answers blur.",
                "Each pair adds noise to every answer, and none is older or newer than another.",
                right=True,
            ),
            Option("The newest.", "They are added like all others. A full memory refuses nothing."),
            Option(
                "Those whose key comes twice.",
                "For those it adds up both values, which is another loss: it can't correct.",
            ),
        ),
    ),
    Question(
        "Llama 3.1 has 32 heads of queries and 8 of keys and values. Against 32 of each, its cache takes …",
        (
            Option("a quarter of the bytes.", "Keys and values are kept, queries are not: 8 / 32.", right=True),
            Option(
                "a sixteenth of the bytes.",
                "Keys and values shrink by 4 each, but they add up; the factors do not multiply.",
            ),
            Option(
                "as many bytes, read four times less often.",
                "Fewer vectors are kept: it is the memory itself that shrinks.",
            ),
            Option(
                "five eighths of the bytes.",
                "That counts queries among what is kept. The queries of the past are never asked again.",
            ),
        ),
    ),
)
