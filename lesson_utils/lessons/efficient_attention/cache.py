"""Section 4: what six published models keep of each token, beside their weights; and what keeps less."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import three_figures
from lesson_utils.lessons.efficient_attention.bill import as_bytes
from lesson_utils.lessons.efficient_attention.reach import perplexity, real
from lesson_utils.maths import costs

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
    d_full: int = 0  # numbers that its heads' keys and values would have, where this is not 2 · heads · d_head

    def cache(self, tokens: int, bits: int, cache_bytes: Count) -> float:
        """Bytes of its cache. A latent counts as one head whose key and value are half as wide each."""
        kv_heads, d_head = (1, self.latent // 2) if self.latent else (self.kv_heads, self.d_head)
        return cache_bytes(tokens, self.layers, self.heads, kv_heads, d_head, bits, self.local_layers, self.window)

    def without(self, tokens: int, bits: int, cache_bytes: Count) -> float:
        """Bytes that the cache would have with keys and values for all heads, in all layers, of all tokens."""
        d_head = self.d_full // (2 * self.heads) if self.d_full else self.d_head
        return cache_bytes(tokens, self.layers, self.heads, self.heads, d_head, bits, 0, 0)

    @property
    def weights(self) -> float:
        """Bytes of its parameters in 16 bits."""
        return 2 * self.parameters


# The parameters are counted from the configurations, too (Falcon's with an output matrix of its own, Gemma's with what
# reads pictures). DeepSeek-V3's latent: 512 numbers for keys and values, 64 for a key that is rotated. Its heads' keys
# have 192 numbers, their values 128.
MODELS = (
    Model("Llama 2 7B", "32 heads, 32 kept", 32, 32, 32, 128, 6.74e9, 4096),
    Model("Llama 3.1 8B", "32 heads, 8 kept", 32, 32, 8, 128, 8.03e9, 131_072),
    Model("SmolLM2 135M", "9 heads, 3 kept", 30, 9, 3, 64, 0.135e9, 8192),
    Model("Falcon 7B", "71 heads, 1 kept", 32, 71, 1, 64, 7.22e9, 2048),
    Model("Gemma 3 12B", "5 of 6 layers: window", 48, 16, 8, 256, 12.2e9, 131_072, 40, 1024),
    Model("DeepSeek-V3", "a latent of 576", 61, 128, 128, 128, 671e9, 131_072, latent=576, d_full=128 * (192 + 128)),
)
CONTEXTS = tuple(1024 * 2**n for n in range(8))  # 1k … 128k
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@live.lab(
    height=3.7,
    neutral="With one text of 1,024 tokens every cache is far smaller than its model's weights.",
    context=live.Choice("tokens of each text", CONTEXTS, CONTEXTS[0]),
    texts=live.Choice("texts at once", BATCHES, 1),
)
def cache_lab(figure: "Figure") -> live.Update:
    """Show the caches of six models in units of their weights, by the length and the number of texts."""
    ax, y = figure.add_subplot(), np.arange(len(MODELS))
    ax.axvline(1, color=plots.INK, lw=1.8)
    stems = [ax.plot([1, 1], [n, n], lw=7, solid_capstyle="butt")[0] for n in range(len(MODELS))]
    words = [ax.text(1, n, "", va="center", ha="left") for n in range(len(MODELS))]
    ax.set_yticks(y, [f"{m.name}: {m.kept}" for m in MODELS])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xscale("log")
    ax.set(
        xlim=(2e-5, 3e4),
        xlabel="caches, against the weights (striped: not made for this length)",
    )
    ax.set_xticks((1e-4, 1e-2, 1, 100), ("1 / 10,000", "1 / 100", "as large", "100 times"))
    ax.minorticks_off()

    def update(context: int, texts: int) -> str:
        sizes = [texts * m.cache(context, 16, count) for m in MODELS]
        for n, (stem, word, size, model) in enumerate(zip(stems, words, sizes, MODELS, strict=True)):
            ratio = size / model.weights
            stem.set_data([1, ratio], [n, n])
            stem.set_color(plots.ORANGE if ratio > 1 else plots.BLUE)
            stem.set_linestyle("-" if context <= model.context else (0, (0.5, 0.35)))
            word.set_position((1.25 * max(ratio, 1), n))
            word.set_text(as_bytes(size))
        more = sum(size > m.weights for size, m in zip(sizes, MODELS, strict=True))
        s = "s" * (texts > 1)
        exceed = f"{more or 'no'} cache{'s exceed' if more > 1 else ' exceeds'} the weights"
        ax.set_title(f"{texts} text{s} of {context:,} tokens: {exceed}")
        listed = "; ".join(f"{m.name} ({m.kept}) {as_bytes(size)}" for m, size in zip(MODELS, sizes, strict=True))
        beyond = [m.name for m in MODELS if context > m.context]
        return (
            f"{texts} text{s} of {context} tokens each: {more} of {len(MODELS)} caches are larger than the weights: "
            f"{listed}. 16 bits a number. Made for shorter texts: {', '.join(beyond) or 'none'}."
        )

    return update


def savings_table(cache_bytes: Count, tokens: int = 131_072) -> str:
    """List each model's cache beside the one that it would have if all its heads kept all tokens."""
    lines = [f"one text of {tokens:,} tokens    all heads, all tokens   as published   smaller by"]
    for m in MODELS:
        whole, kept = m.without(tokens, 16, cache_bytes), m.cache(tokens, 16, cache_bytes)
        lines.append(f"{m.name:29}{as_bytes(whole):>22}{as_bytes(kept):>15}{whole / kept:12.1f}×")
    return "\n".join(lines)


def directions_table() -> str:
    """List SmolLM2's perplexity when all keys and values go through fewer numbers, without training (stored)."""
    lines = [f"numbers a token in a layer{'perplexity: directions of the weights':>40}{'of its keys and values':>26}"]
    lines.append(f"{'384, as it was trained':26}{three_figures(perplexity('full', 'all')):>40}")
    for rank in sorted(real()["directions"], key=int, reverse=True):
        of_weights = three_figures(perplexity("rank", rank)) if rank in real()["rank"] else "–"
        lines.append(f"{rank:26}{of_weights:>40}{three_figures(perplexity('directions', rank)):>26}")
    lines.append(f"{'128: 3 heads averaged to 1':26}{three_figures(perplexity('heads', 1)):>40}")
    return "\n".join(lines)
