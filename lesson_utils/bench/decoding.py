"""Generation with and without the key–value cache: the same text, in how much less time?"""

import numpy as np

from lesson_utils import models
from lesson_utils.bench.clock import compare


def run() -> None:
    for length in (64, 128, 256):
        config = models.GPTConfig(vocab=100, d_model=128, num_heads=4, num_layers=4, max_length=length + 1)
        model = models.GPT(config, np.random.default_rng(0))
        texts = {}

        def generate(use_cache: bool, model: models.GPT = model, length: int = length, texts: dict = texts) -> None:
            prompt = np.array([[1]])
            texts[use_cache] = model.generate(prompt, length, np.random.default_rng(1), use_cache=use_cache)

        times = compare(3, cached=lambda: generate(True), uncached=lambda: generate(False))
        same = "the same text" if (texts[True] == texts[False]).all() else "ANOTHER TEXT"
        print(f"  {length:3} symbols: cached {times['cached'] * 1e3:6.0f} ms, uncached {times['uncached'] * 1e3:6.0f} ms", end="")
        print(f": {times['uncached'] / times['cached']:.1f} times as fast, {same}", flush=True)
