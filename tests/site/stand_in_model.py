"""A model for the chat's page that the tests write themselves: small, and packed as the published one is."""

from unittest.mock import patch

import numpy as np
import tiny_llama

SIZES = {"D": 64, "HEADS": 4, "KV_HEADS": 2, "LAYERS": 3, "FF": 96}
Q4_1, Q8_0, BLOCK = 3, 8, 32
VOCABULARY = 272  # a multiple of 16, as the products in WebAssembly have it


def write(path):
    """Write it. Its words mean nothing, but it never ends an answer by itself for long."""
    with patch.multiple(tiny_llama, **SIZES):
        facts = tiny_llama.facts() | {"llama.context_length": 1024}
        more = VOCABULARY - len(facts["tokenizer.ggml.tokens"])
        facts["tokenizer.ggml.tokens"] += [f"<|{n}|>" for n in range(more)]
        facts["tokenizer.ggml.token_type"] += [3] * more
        with patch.object(tiny_llama, "V", VOCABULARY):
            rng = np.random.default_rng(1)
            arrays = {name: packed(name, array, rng) for name, array in tiny_llama.arrays(rng).items()}
    path.write_bytes(tiny_llama.gguf(facts, arrays))
    return path


def packed(name, array, rng):
    """Draw the blocks of a matrix: the table with 8 bits a number, the others with 4."""
    if array.ndim == 1:
        return array
    blocks = array.size // BLOCK
    scale = (rng.random(blocks) / 20).astype("<f2")
    if name == "token_embd.weight":
        layout, kind = [("scale", "<f2"), ("packed", "i1", BLOCK)], Q8_0
        numbers = rng.integers(-128, 128, (blocks, BLOCK)) // 4
    else:
        layout, kind = [("scale", "<f2"), ("least", "<f2"), ("packed", "u1", BLOCK // 2)], Q4_1
        numbers = rng.integers(0, 256, (blocks, BLOCK // 2))
    data = np.zeros(blocks, layout)
    data["scale"], data["packed"] = scale, numbers
    if kind == Q4_1:
        data["least"] = -7.5 * scale
    return kind, array.shape, data.tobytes()
