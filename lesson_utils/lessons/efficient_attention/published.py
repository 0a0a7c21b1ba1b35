"""What published models keep of each token, and what SmolLM2 loses when it keeps less: stored results."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from lesson_utils.classroom import tables
from lesson_utils.lessons.efficient_attention.measured import as_bytes
from lesson_utils.maths import costs
from lesson_utils.maths.checks import Array

ALL_TEXTS = "all three"


@cache
def real() -> dict[str, Any]:
    """Perplexities of SmolLM2-135M-Instruct on three texts from token 160 on, measured once and stored."""
    return dict(json.loads((Path(__file__).parent / "real.json").read_text(encoding="utf-8")))


def perplexity(part: str, key: object, text: str = ALL_TEXTS) -> float:
    """Look up a stored perplexity of one text, or the geometric mean of all: "window" "64 1", "channel" 3, …"""
    stored = real()[part][str(key)]
    if text != ALL_TEXTS:
        return float(stored[text])
    return math.exp(sum(math.log(p) for p in stored.values()) / len(stored))


# --- 3 · Look at fewer keys -------------------------------------------------------------------------------------------

WINDOWS, KEPT = (16, 32, 64, 128, 256), (0, 1, 4)
TEXTS = (ALL_TEXTS, "story", "report", "manual")
FRONTS = {"\n": "a line break", " zebra": "“ zebra”"}  # put in front of a text


def sink_table() -> tables.Table:
    """List SmolLM2's perplexity on each text with the last tokens, and something in place of the first (stored)."""
    ways = {
        "all tokens": ("full", "all"),
        "the last 256": ("window", "256 0"),
        "the last 64": ("window", "64 0"),
        "… and the first": ("window", "64 1"),
        **{f"… and {name} in front": ("front", front) for front, name in FRONTS.items()},
        "… and the first line break within": ("other", "\n"),
        "… and the score of the first, without its value": ("sink", "score"),
    }
    rows = [(name, *(perplexity(*way, text) for text in TEXTS)) for name, way in ways.items()]
    return tables.table(("perplexity of SmolLM2, which sees", *TEXTS), rows, ".1f")


def best_table() -> tables.Table:
    """List SmolLM2's perplexity when each query keeps its k largest weights, beside a window of k tokens (stored)."""
    full = perplexity("full", "all")
    rows = []
    for k in (8, 16, 32, 64):
        window = f"{perplexity('window', f'{k} 1'):.1f}" if k in WINDOWS else ""
        rows.append((str(k), f"{perplexity('best', k):.1f}", f"{perplexity('best', k) / full - 1:+.0%}", window))
    rows.append(("all", f"{full:.1f}", "", ""))
    return tables.table(("keys a query may use", "the best", "more than all", "the last and the first"), rows)


def longer_table() -> tables.Table:
    """List by how much the 64 best keys raise the perplexity further on in four texts (stored)."""
    longer = real()["longer"]
    rows = [
        (f"{name}, tokens {part}", f"{whole:.1f}", f"{best:.1f}", f"{best / whole - 1:+.0%}")
        for name, parts in longer.items()
        for part, (whole, best) in parts.items()
    ]
    return tables.table(("Python's manual", "all keys", "the best 64", "more than all"), rows)


# --- 4 · Caches, by the published configurations ----------------------------------------------------------------------


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

    def cache(self, tokens: int) -> float:
        """Bytes of its cache in 16 bits. A latent counts as one head whose key and value are half as wide each."""
        kv_heads, d_head = (1, self.latent // 2) if self.latent else (self.kv_heads, self.d_head)
        return costs.cache_bytes(tokens, self.layers, kv_heads, d_head, 16, self.local_layers, self.window)

    def without(self, tokens: int) -> float:
        """Bytes that the cache would have with keys and values for all heads, in all layers, of all tokens."""
        d_head = self.d_full // (2 * self.heads) if self.d_full else self.d_head
        return costs.cache_bytes(tokens, self.layers, self.heads, d_head, 16)

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


def savings_table(tokens: int = 8192) -> tables.Table:
    """List each model's cache beside the one that all heads and tokens would take, and beside its weights."""
    rows = []
    for m in MODELS:
        whole, kept = m.without(tokens), m.cache(tokens)
        rows.append((f"{m.name}: {m.kept}", as_bytes(whole), as_bytes(kept), f"{m.weights / kept:,.0f}"))
    head = (
        f"a cache of {tokens:,} tokens",
        "all heads, all tokens",
        "as published",
        "caches that weigh as much as the model",
    )
    return tables.table(head, rows)


# --- 4 · Keys and values in a few bits; which numbers share a scale decides what that costs ---------------------------


def rounded(x: Array, bits: SupportsIndex, axis: int) -> Array:
    """Round x to 2^bits levels from the smallest to the largest number along `axis`; each such row has its own."""
    low = x.min(axis=axis, keepdims=True)
    step = (x.max(axis=axis, keepdims=True) - low) / (2 ** int(bits) - 1)
    step[step == 0] = 1  # all are alike: there is nothing to round
    return low + np.round((x - low) / step) * step


SHARING = ("each vector", "each channel")
STORED = {SHARING[0]: "vector", SHARING[1]: "channel"}  # parts of real.json


@cache
def sample() -> Array:
    """Return 96 keys of SmolLM2, (96, 64): layer 11, head 0, text "story", behind the first token."""
    return np.load(Path(__file__).parent / "keys.npy").astype(np.float32)


def perplexity_rounded(sharing: str, bits: int) -> float:
    """Look up the perplexity with keys rounded so, and values rounded by vector."""
    return perplexity("full", "all") if bits == 16 else perplexity(STORED[sharing], bits)
