"""The checkpoint questions of notebook 07."""

from lesson_utils.classroom.quiz import Option, Question

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
        "A memory of 32 × 64 numbers adds up pairs of keys and values. Which pairs does it lose first, when it is too full?",
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
