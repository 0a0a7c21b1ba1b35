"""A model for the chat's page that the tests write themselves: small, and packed as the published one is."""

import numpy as np
import tiny_llama

D, HEADS, KV_HEADS, LAYERS, FF = 64, 4, 2, 3, 96
Q4_1, Q8_0, BLOCK = 3, 8, 32
PART = 20_000  # bytes of the parts in which a page fetches it
VOCABULARY = 272  # a multiple of 16, as the products in WebAssembly have it
SIZES = {
    "llama.block_count": LAYERS,
    "llama.context_length": 1024,
    "llama.embedding_length": D,
    "llama.feed_forward_length": FF,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.rope.dimension_count": D // HEADS,
}


def write(path):
    """Write it. Its words mean nothing, but it never ends an answer by itself for long."""
    facts = tiny_llama.facts() | SIZES
    more = VOCABULARY - len(facts["tokenizer.ggml.tokens"])
    facts["tokenizer.ggml.tokens"] += [f"<|{n}|>" for n in range(more)]
    facts["tokenizer.ggml.token_type"] += [3] * more
    d_kv = D // HEADS * KV_HEADS
    of_layer = {"attn_norm": (D,), "attn_q": (D, D), "attn_k": (d_kv, D), "attn_v": (d_kv, D), "attn_output": (D, D)}
    of_layer |= {"ffn_norm": (D,), "ffn_gate": (FF, D), "ffn_up": (FF, D), "ffn_down": (D, FF)}
    shapes = {"token_embd": (VOCABULARY, D), "output_norm": (D,)}
    shapes |= {f"blk.{i}.{name}": shape for i in range(LAYERS) for name, shape in of_layer.items()}
    rng = np.random.default_rng(1)
    arrays = {f"{name}.weight": packed(name, shape, rng) for name, shape in shapes.items()}
    path.write_bytes(tiny_llama.gguf(facts, arrays))
    return path


def packed(name, shape, rng):
    """Draw the blocks of a matrix: the table with 8 bits a number, the others with 4."""
    if len(shape) == 1:
        return rng.normal(size=shape).astype(np.float32) / 2
    blocks = shape[0] * shape[1] // BLOCK
    scale = (rng.random(blocks) / 20).astype("<f2")
    if name == "token_embd":
        layout, kind = [("scale", "<f2"), ("packed", "i1", BLOCK)], Q8_0
        numbers = rng.integers(-128, 128, (blocks, BLOCK)) // 4
    else:
        layout, kind = [("scale", "<f2"), ("least", "<f2"), ("packed", "u1", BLOCK // 2)], Q4_1
        numbers = rng.integers(0, 256, (blocks, BLOCK // 2))
    data = np.zeros(blocks, layout)
    data["scale"], data["packed"] = scale, numbers
    if kind == Q4_1:
        data["least"] = -7.5 * scale
    return kind, shape, data.tobytes()
