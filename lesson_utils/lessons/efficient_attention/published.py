"""What published models keep of each token, and what SmolLM2 loses when it keeps less: stored results."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from lesson_utils.classroom import plots, tables
from lesson_utils.classroom.formats import three_figures
from lesson_utils.lessons.efficient_attention.measured import as_bytes
from lesson_utils.maths import costs
from lesson_utils.maths.checks import Array

ALL_TEXTS = "all three"


@cache
def real() -> dict[str, Any]:
    """Perplexities of SmolLM2-135M-Instruct on three texts, measured once and stored."""
    return dict(json.loads((Path(__file__).parent / "real.json").read_text(encoding="utf-8")))


def perplexity(part: str, key: object, text: str = ALL_TEXTS) -> float:
    """Look up a stored perplexity of one text, or the geometric mean of all: "window" "64 1", "best" 16, "bits" 8, …"""
    stored = real()[part][str(key)]
    if text != ALL_TEXTS:
        return float(stored[text])
    return math.exp(sum(math.log(p) for p in stored.values()) / len(stored))


# --- 3 · Look at fewer keys -------------------------------------------------------------------------------------------

WINDOWS, KEPT = (16, 32, 64, 128, 256), (0, 1, 4)  # stored are 2 first tokens, too: they do what 1 and 4 do
TEXTS = (ALL_TEXTS, "story", "report", "manual")
SHOWN = ("64 0", "128 0", "64 1")  # windows of the table


def window_table() -> tables.Table:
    """List SmolLM2's perplexity on each text with all tokens, the last 64 or 128, or the last 64 and the first."""
    ways = (("full", "all"), *(("window", shown) for shown in SHOWN))
    rows = [(text, *(perplexity(*way, text) for way in ways)) for text in TEXTS]
    return tables.table(("perplexity", "all", "last 64", "last 128", "last 64 and the first"), rows, ".1f")


def sink_table() -> tables.Table:
    """List SmolLM2's perplexity with the last 64 tokens and something in place of the first (stored)."""
    rows = (
        ("the last 64, and nothing else", perplexity("window", "64 0")),
        ("… and token 0", perplexity("window", "64 1")),
        ("… and token 1 in its place", perplexity("other", 1)),
        ("… and token 20 in its place", perplexity("other", 20)),
        ("… and the score of token 0, not its value", perplexity("sink", "score")),
        ("… and one number for each head as a score", perplexity("sink", "constant")),
        ("all tokens", perplexity("full", "all")),
    )
    return tables.table(("SmolLM2 sees", "perplexity"), rows, ".1f")


@plots.still(9.0, 3.4)
def best_keys(figure: "plots.Figure") -> str:
    """Perplexity when each query keeps its k largest weights, beside a window of k tokens (stored)."""
    best = sorted(int(k) for k in real()["best"])
    kept, window = [perplexity("best", k) for k in best], [perplexity("window", f"{k} 1") for k in WINDOWS]
    full = perplexity("full", "all")
    ax = figure.add_subplot()
    ax.plot(best, kept, "o-", color=plots.GREEN)
    ax.plot(np.array(WINDOWS) + 1, window, "o-", color=plots.BLUE)
    ax.axhline(full, color=plots.INK, ls="--", lw=1.6)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set(xlabel="keys that a query may use", ylabel="perplexity", ylim=(0.7 * full, 1.3 * max(kept)))
    ticks = [*best, 128, 256]
    ax.set_xticks(ticks, [str(k) for k in ticks])
    ax.set_yticks((20, 50, 200, 1000, 5000), ("20", "50", "200", "1,000", "5,000"))
    ax.minorticks_off()
    ax.annotate(
        "the best k, chosen by score", (best[1], kept[1]), (10, 4), textcoords="offset points", color=plots.GREEN
    )
    ax.annotate(
        "the last and the first", (WINDOWS[0], window[0]), (0, 10), textcoords="offset points", color=plots.BLUE
    )
    ax.annotate("all keys", (1, full), (0, 5), textcoords="offset points")
    fixed = perplexity("hitters", "32 32")
    ax.plot([64], [fixed], "D", color=plots.ORANGE, ms=9)
    ax.annotate(
        "the last 32, and the 32 that got most so far",
        (64, fixed),
        (-30, 70),
        textcoords="offset points",
        color=plots.ORANGE,
        arrowprops={"arrowstyle": "-", "color": plots.ORANGE},
    )
    few, wide = 16, 2  # this many of the best keys; this window of WINDOWS
    chosen, recent = (three_figures(p) for p in (perplexity("best", few), window[wide]))
    ax.set_title(f"{few} well-chosen keys ({chosen}) beat a window of {WINDOWS[wide]} ({recent})")
    listed = ", ".join(f"{k}: {three_figures(p)}" for k, p in zip(best, kept, strict=True))
    return (
        f"… The window keeps the first token as well. The last 32 keys with the 32 that got most weight so far give "
        f"{three_figures(fixed)}, all keys {three_figures(full)}. Best keys, by number: {listed}. Stored results of "
        "SmolLM2-135M, three texts."
    )


# --- 4 · Caches, by the published configurations ----------------------------------------------------------------------

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


def savings_table(cache_bytes: Count, tokens: int = 131_072) -> tables.Table:
    """List each model's cache beside the one that it would have if all its heads kept all tokens."""
    rows = []
    for m in MODELS:
        whole, kept = m.without(tokens, 16, cache_bytes), m.cache(tokens, 16, cache_bytes)
        rows.append((m.name, as_bytes(whole), as_bytes(kept), f"{whole / kept:.1f}×"))
    return tables.table((f"one text of {tokens:,} tokens", "all heads, all tokens", "as published", "smaller by"), rows)


def directions_table() -> tables.Table:
    """List SmolLM2's perplexity when all keys and values go through fewer numbers, without training (stored)."""
    rows = [("384, as it was trained", three_figures(perplexity("full", "all")), "")]
    for rank in sorted(real()["directions"], key=int, reverse=True):
        of_weights = three_figures(perplexity("rank", rank)) if rank in real()["rank"] else "–"
        rows.append((rank, of_weights, three_figures(perplexity("directions", rank))))
    rows.append(("128: 3 heads averaged to 1", three_figures(perplexity("heads", 1)), ""))
    head = ("numbers a token in a layer", "perplexity: directions of the weights", "of its keys and values")
    return tables.table(head, rows)


# --- 4 · Keys and values in a few bits; which numbers share a scale decides what that costs ---------------------------


def rounded(x: Array, bits: SupportsIndex, axis: int) -> Array:
    """Round x to 2^bits levels from the smallest to the largest number along `axis`; each such row has its own."""
    low = x.min(axis=axis, keepdims=True)
    step = (x.max(axis=axis, keepdims=True) - low) / (2 ** int(bits) - 1)
    step[step == 0] = 1  # all are alike: there is nothing to round
    return low + np.round((x - low) / step) * step


KINDS = ("keys", "values")
SHARING = ("each vector", "each channel")
STORED = {SHARING[0]: "vector", SHARING[1]: "channel"}  # parts of real.json


@cache
def sample() -> dict[str, Array]:
    """Return 96 keys and values of SmolLM2, (96, 64) each: layer 11, head 0, text "story", behind the first token."""
    with np.load(Path(__file__).parent / "keys.npz") as stored:
        return {kind: stored[kind].astype(np.float32) for kind in KINDS}


def perplexity_rounded(sharing: str, bits: int) -> float:
    """Look up the perplexity with keys rounded so, and values rounded by vector."""
    return perplexity("full", "all") if bits == 16 else perplexity(STORED[sharing], bits)
