"""Section 7: all savings together, chosen for a memory and a number of texts; judged by bytes, seconds and loss."""

from typing import TYPE_CHECKING, NamedTuple

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import three_figures
from lesson_utils.lessons.efficient_attention.bill import as_bytes, as_time
from lesson_utils.lessons.efficient_attention.reach import perplexity
from lesson_utils.maths import costs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOKENS, LAYERS, HEADS, KV_HEADS, D_HEAD = 8192, 30, 9, 3, 64  # of each text; of SmolLM2
WEIGHTS = 2 * 0.135e9  # bytes of its parameters in 16 bits
READ = 50e9  # bytes a second, of a good laptop's memory
ROWS = 64  # queries at a time in a prompt
MEMORIES = (1, 4, 16)  # GB
TEXTS = (1, 4, 16, 64)
WAYS = ("all weights", "64 rows")
WINDOWS = ("all", "256", "128", "64")
BITS = (16, 4, 3)
SCALES = 0.75  # bits a number more, where keys are rounded by channel and values by vector


class Chosen(NamedTuple):
    """A choice of savings: its bytes and its loss."""

    weights_of_pairs: float  # bytes while one prompt is read, in one layer
    caches: float  # bytes of all texts
    perplexity: float  # stored, on texts of some 500 tokens

    @property
    def total(self) -> float:
        """Bytes of everything."""
        return WEIGHTS + self.weights_of_pairs + self.caches

    @property
    def seconds(self) -> float:
        """One new token in each text, if reading is all that takes time."""
        return (WEIGHTS + self.caches) / READ


def stored(window: str, bits: int) -> float:
    """Look up the perplexity of SmolLM2 with this window, the first token, and keys rounded by channel."""
    if bits == 16:
        return perplexity("full", "all") if window == "all" else perplexity("window", f"{window} 1")
    return perplexity("channel", bits) if window == "all" else perplexity("together", f"{window} {bits}")


def choice(texts: int, way: str, window: str, bits: int) -> Chosen:
    """Count the bytes of a choice, and look up its loss."""
    rows = TOKENS if way == WAYS[0] else ROWS
    kept = TOKENS if window == "all" else int(window) + 1
    width = 16 if bits == 16 else bits + SCALES
    cache = costs.cache_bytes(kept, LAYERS, KV_HEADS, D_HEAD, 16) * width / 16
    return Chosen(2.0 * HEADS * rows * TOKENS, texts * cache, stored(window, bits))


@live.lab(
    height=3.4,
    neutral="Without any saving the choice does not fit; what each saving brings is seen only when it is chosen.",
    memory=live.Choice("memory (GB)", MEMORIES, 4),
    texts=live.Choice("texts at once", TEXTS, 64),
    way=live.Choice("a prompt with", WAYS, WAYS[0]),
    window=live.Choice("window (and the first)", WINDOWS, "all"),
    bits=live.Choice("bits of the cache", BITS, 16),
)
def choose_lab(figure: "Figure") -> live.Update:
    """Show the bytes, the seconds and the loss of a choice of savings, for SmolLM2 and texts of 8,192 tokens."""
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    names = ("the model", "weights of pairs", "caches")
    bars = left.barh([0, 1, 2], [1, 1, 1], 0.55, color=[plots.GREY, plots.ORANGE, plots.BLUE])
    words = [left.text(1, n, "", va="center", bbox={"fc": "white", "ec": "none", "pad": 1}) for n in range(3)]
    (limit,) = left.plot([1, 1], [-0.5, 2.5], "--", color=plots.INK, lw=1.8)
    left.set_yticks(range(3), names)
    left.invert_yaxis()
    left.tick_params(axis="y", length=0)
    left.set(xlim=(0, 21), xlabel="GB (dashed: the memory)")
    (others,) = right.plot([1], [20], "o", color="#BBBBBB", ms=8)
    (dot,) = right.plot([1], [20], "o", color=plots.BLUE, ms=12)
    right.set_xscale("log")
    right.set(xlabel="bytes of one text's cache", ylabel="perplexity", xlim=(2e5, 4e8), ylim=(18, 46))
    right.set_xticks((1e6, 1e7, 1e8), ("1 MB", "10 MB", "100 MB"))
    right.minorticks_off()

    def update(memory: int, texts: int, way: str, window: str, bits: int) -> str:
        found = choice(texts, way, window, bits)
        shown = [(w, b) for w in WINDOWS for b in BITS if WINDOWS.index(w) <= WINDOWS.index(window) and b >= bits]
        sizes = (WEIGHTS, found.weights_of_pairs, found.caches)
        for bar, word, n, size in zip(bars, words, range(3), sizes, strict=True):
            bar.set_width(min(size / 1e9, 20))
            word.set_position((min(size / 1e9, 16) + 0.3, n))
            word.set_text(as_bytes(size))
        limit.set_xdata([memory, memory])
        points = [choice(1, way, *one) for one in shown]
        others.set_data([p.caches for p in points], [p.perplexity for p in points])
        dot.set_data([found.caches / texts], [found.perplexity])
        over = found.total - 1e9 * memory
        fits = f"fits into {memory} GB" if over <= 0 else f"{as_bytes(over)} too much for {memory} GB"
        left.set_title(f"{as_bytes(found.total)}: {fits}")
        right.set_title(f"Perplexity {three_figures(found.perplexity)}; {as_time(found.seconds)} a token")
        listed = ", ".join(f"{name} {as_bytes(size)}" for name, size in zip(names, sizes, strict=True))
        return (
            f"{as_bytes(found.total)}, which {'' if over <= 0 else 'is '}{fits}: {listed}. {texts} texts of {TOKENS} "
            f"tokens, {way}, window {window}, {bits} bits. One new token in each text takes {as_time(found.seconds)} "
            f"at {READ / 1e9:.0f} GB a second. Perplexity, stored, on texts of some 500 tokens: "
            f"{three_figures(found.perplexity)}."
        )

    return update
