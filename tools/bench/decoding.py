"""Generation with the key–value cache against generation without it: the same text, in less time."""

from functools import partial

import numpy as np

from lesson_utils.maths import models
from tools.bench.clock import compare


def run() -> None:
    """Print both times for texts of several lengths."""
    for length in (64, 128, 256):
        config = models.GPTConfig(vocab=100, d_model=128, num_heads=4, num_layers=4, max_length=length + 1)
        model = models.GPT(config, np.random.default_rng(0))
        generate = partial(model.generate, np.array([[1]]), length)
        cached = partial(generate, np.random.default_rng(1))
        same = (cached() == generate(np.random.default_rng(1), use_cache=False)).all()
        times = compare(3, cached=cached, uncached=partial(cached, use_cache=False))
        cached_ms, uncached_ms = times["cached"] * 1e3, times["uncached"] * 1e3
        print(f"  {length:3} symbols: cached {cached_ms:5.0f} ms, uncached {uncached_ms:5.0f} ms", end="")
        print(f": {uncached_ms / cached_ms:.1f} times as fast, {'the same' if same else 'ANOTHER'} text", flush=True)
