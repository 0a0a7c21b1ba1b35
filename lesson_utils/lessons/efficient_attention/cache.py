"""Section 4: what six published models keep of each token, and what it costs to keep less without training."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import three_figures
from lesson_utils.lessons.efficient_attention.bill import Measured, as_bytes, seconds
from lesson_utils.lessons.efficient_attention.reach import perplexity, real
from lesson_utils.maths import costs
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Count = Callable[..., float]  # the exercise's: tokens, layers, heads, kv_heads, d_head, bits, local_layers, window


def count(tokens: int, layers: int, heads: int, *rest: int) -> float:
    """Count the bytes of a cache as the exercise does: queries are not kept, so their number does not matter."""
    return costs.cache_bytes(tokens, layers, *rest)


class Model(NamedTuple):
    """The numbers of a model's published configuration."""

    name: str
    kept: str  # how it saves
    layers: int
    heads: int
    kv_heads: int
    d_head: int
    parameters: float
    context: int  # tokens it was made for
    local_layers: int = 0
    window: int = 0
    latent: int = 0  # numbers that are kept of a token in a layer, in place of keys and values

    def cache(self, tokens: int, bits: int, cache_bytes: Count) -> float:
        """Bytes of its cache. A latent counts as one head whose key and value are half as wide each."""
        kv_heads, d_head = (1, self.latent // 2) if self.latent else (self.kv_heads, self.d_head)
        return cache_bytes(tokens, self.layers, self.heads, kv_heads, d_head, bits, self.local_layers, self.window)


# The parameters are counted from the configurations, too (Falcon's with an output matrix of its own, Gemma's with what
# reads pictures). DeepSeek-V3's latent: 512 numbers for keys and values, 64 for a key that is rotated.
MODELS = (
    Model("Llama 2 7B", "32 heads, 32 kept", 32, 32, 32, 128, 6.74e9, 4096),
    Model("Llama 3.1 8B", "32 heads, 8 kept", 32, 32, 8, 128, 8.03e9, 131_072),
    Model("SmolLM2 135M", "9 heads, 3 kept", 30, 9, 3, 64, 0.135e9, 8192),
    Model("Falcon 7B", "71 heads, 1 kept", 32, 71, 1, 64, 7.22e9, 2048),
    Model("Gemma 3 12B", "5 of 6 layers: window", 48, 16, 8, 256, 12.2e9, 131_072, 40, 1024),
    Model("DeepSeek-V3", "a latent of 576", 61, 128, 128, 128, 671e9, 131_072, latent=576),
)
CONTEXTS = tuple(1024 * 2**n for n in range(8))  # 1k … 128k
BITS = (2, 3, 4, 5, 6, 8, 16)


def bits_perplexity(bits: int) -> float:
    """Stored; 16 bits are taken for all that there is."""
    return perplexity("full", "all") if bits == 16 else perplexity("bits", bits)


@live.lab(
    height=4.3,
    example=lambda: count,
    neutral="At 1,024 tokens no cache is larger than its model's weights, and only 16 bits are drawn on the right.",
    context=live.Choice("context (tokens)", CONTEXTS, CONTEXTS[0]),
    bits=live.Choice("bits a number", BITS, 16),
)
def cache_lab(figure: "Figure", cache_bytes: Count) -> live.Update:
    """Show the caches of six models beside their weights; and what fewer bits do to one of them (stored).

    Args:
        cache_bytes: the learner's.
    """
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    y = np.arange(len(MODELS))
    bars = left.barh(y, [1e9] * len(MODELS), 0.6, color=plots.BLUE, left=1e5)
    weights = [2 * m.parameters for m in MODELS]
    left.plot(weights, y, "D", color=plots.ORANGE, ms=8, zorder=3)
    left.set_yticks(y, [f"{m.name}\n{m.kept}" for m in MODELS], fontsize=9.5)
    left.invert_yaxis()
    left.set_xscale("log")
    left.set(xlim=(3e6, 3e14), xlabel="bytes (diamond: the weights in 16 bits; grey: made for less)")
    left.set_xticks((1e7, 1e8, 1e9, 1e10, 1e11, 1e12), ("10 MB", "", "1 GB", "", "100 GB", ""))
    left.minorticks_off()
    texts = [left.text(4e12, n, "", va="center") for n in y]
    curve = [bits_perplexity(b) for b in BITS]
    (line,) = right.plot(range(len(BITS)), curve, "o-", color=plots.GREEN)
    (dot,) = right.plot([0], [20], "o", ms=14, mfc="none", mec=plots.INK, mew=2.2)
    right.set_yscale("log")
    right.set(xlabel="bits a number", ylabel="perplexity of SmolLM2", ylim=(10, 1.5 * max(curve)))
    right.set(xlim=(-0.4, len(BITS) - 0.6))
    right.set_xticks(range(len(BITS)), [str(b) for b in BITS])
    right.set_yticks((20, 50, 100, 200, 500), ("20", "50", "100", "200", "500"))
    right.minorticks_off()

    def update(context: int, bits: int) -> str:
        sizes = [m.cache(context, bits, cache_bytes) for m in MODELS]
        for bar, text, size, model in zip(bars, texts, sizes, MODELS, strict=True):
            bar.set_width(max(size - 1e5, 1))
            bar.set_facecolor(plots.BLUE if context <= model.context else "#CCCCCC")
            text.set_text(as_bytes(size))
        more = sum(size > weight for size, weight in zip(sizes, weights, strict=True))
        left.set_title(f"{context:,} tokens: {more or 'no'} cache{'s' * (more != 1)} beyond the weights")
        here, tried = bits_perplexity(bits), range(BITS.index(bits), len(BITS))
        line.set_data(tried, [curve[n] for n in tried])
        dot.set_data([BITS.index(bits)], [here])
        right.set_title(f"{bits} bits: {three_figures(here)}")
        listed = "; ".join(f"{m.name} ({m.kept}) {as_bytes(size)}" for m, size in zip(MODELS, sizes, strict=True))
        return (
            f"At {context} tokens and {bits} bits a number {more} of {len(MODELS)} caches are larger than the weights: "
            f"{listed}. Perplexity of SmolLM2 with a cache of {bits} bits, stored: {three_figures(here)}."
        )

    return update


def untrained_table() -> str:
    """List SmolLM2's perplexity when less is kept of each token, without training (stored)."""
    full = perplexity("full", "all")
    rows = [("as it was trained: 3 heads, 16 bits", 1.0, full)]
    rows += [(f"{bits} bits a number", bits / 16, perplexity("bits", bits)) for bits in (8, 4, 3)]
    rows += [
        (f"3 × 2 × 64 numbers through {rank}", int(rank) / 384, perplexity("rank", rank)) for rank in real()["rank"]
    ]
    rows += [("3 heads averaged to 1", 1 / 3, perplexity("heads", 1))]
    lines = [f"{'kept of each token':36}{'bytes':>8}{'perplexity':>12}"]
    return "\n".join([*lines, *(f"{name:36}{share:8.0%}{three_figures(p):>12}" for name, share, p in rows)])


# --- The three numbers of keeping less ------------------------------------------------------------------------------


def one_step(q: Array, K: Array, V: Array) -> Array:
    """Attention of one new token: q (h, d), the cache K, V (h_kv, T, d); heads in a row share. Returns (h, d)."""
    groups = q.reshape(len(K), -1, q.shape[-1])  # (h_kv, h / h_kv, d)
    scores = groups @ K.swapaxes(-1, -2) / q.shape[-1] ** 0.5  # a Python float: float32 stays
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights @ V / weights.sum(axis=-1, keepdims=True)).reshape(q.shape)


def three_caches(tokens: int = 8192, heads: int = 8, d_head: int = 64) -> list[Measured]:
    """Measure a step of decoding from a cache of all heads, of a quarter of them, and of all in 8 bits; in float32."""
    q = np.ones((heads, d_head), np.float32)
    K, V = np.random.default_rng(3).normal(size=(2, heads, tokens, d_head)).astype(np.float32)
    few_K, few_V = K[: heads // 4], V[: heads // 4]
    step = np.abs((K, V)).max() / 127
    small_K, small_V = (np.round(x / step).astype(np.int8) for x in (K, V))

    def from_8_bits() -> Array:
        return one_step(q, small_K * step, small_V * step)

    free = f"almost nothing: perplexity\n{perplexity('full', 'all'):.1f}, then {perplexity('bits', 8):.1f}"
    trained = "little, if trained in"
    return [
        Measured("8 heads, 32 bits", K.nbytes + V.nbytes, seconds(lambda: one_step(q, K, V)), ""),
        Measured("2 heads, 32 bits", few_K.nbytes + few_V.nbytes, seconds(lambda: one_step(q, few_K, few_V)), trained),
        Measured("8 heads, 8 bits", small_K.nbytes + small_V.nbytes, seconds(from_8_bits), free),
    ]
