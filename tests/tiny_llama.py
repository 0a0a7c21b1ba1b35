"""A Llama of a few thousand numbers in a GGUF file that the tests write themselves."""

import struct

import numpy as np

D, HEADS, KV_HEADS, LAYERS, FF, V = 16, 4, 2, 2, 32, 261
SIGNS = [*range(33, 127), *range(161, 173), *range(174, 256)]


def alphabet():
    """GPT-2's 256 characters for bytes, in the order of the bytes."""
    others = iter(range(256, 512))
    return [chr(byte if byte in SIGNS else next(others)) for byte in range(256)]


def facts():
    tokens = [*alphabet(), "he", "Ġt", "Ġthe", "<|im_start|>", "<|im_end|>"]
    return {
        "general.architecture": "llama",
        "general.name": "Tiny",
        "llama.block_count": LAYERS,
        "llama.context_length": 64,
        "llama.embedding_length": D,
        "llama.feed_forward_length": FF,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-4,
        "llama.rope.freq_base": 500.0,
        "llama.rope.dimension_count": D // HEADS,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 2) + [3, 3],
        "tokenizer.ggml.merges": ["h e", "Ġ t", "Ġt he"],
        "tokenizer.ggml.eos_token_id": V - 1,
        "tokenizer.chat_template": "{% for message in messages %}<|im_start|>{% endfor %}",
    }


def arrays(rng):
    """By name, as a file has them: a row for each output."""
    d_kv = D // HEADS * KV_HEADS
    of_layer = {"attn_norm": (D,), "attn_q": (D, D), "attn_k": (d_kv, D), "attn_v": (d_kv, D), "attn_output": (D, D)}
    of_layer |= {"ffn_norm": (D,), "ffn_gate": (FF, D), "ffn_up": (FF, D), "ffn_down": (D, FF)}
    shapes = {"token_embd": (V, D), "output_norm": (D,)}
    shapes |= {f"blk.{i}.{name}": shape for i in range(LAYERS) for name, shape in of_layer.items()}
    return {f"{name}.weight": rng.normal(size=shape).astype(np.float32) / 2 for name, shape in shapes.items()}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(thing):
    """Kind and content of a fact."""
    if isinstance(thing, str):
        return struct.pack("<I", 8) + string(thing)
    if isinstance(thing, list):
        kind = struct.pack("<I", 8 if isinstance(thing[0], str) else 5)
        content = b"".join(string(x) if isinstance(x, str) else struct.pack("<i", x) for x in thing)
        return struct.pack("<I", 9) + kind + struct.pack("<Q", len(thing)) + content
    if isinstance(thing, bool):
        return struct.pack("<I?", 7, thing)
    return struct.pack("<If", 6, thing) if isinstance(thing, float) else struct.pack("<II", 4, thing)


def gguf(facts, arrays, version=3):
    """The bytes of a file. `arrays`: name -> float32 array, or (kind, shape, bytes)."""
    header = b"GGUF" + struct.pack("<IQQ", version, len(arrays), len(facts))
    header += b"".join(string(name) + value(thing) for name, thing in facts.items())
    content = b""
    for name, array in arrays.items():
        kind, shape, data = array if isinstance(array, tuple) else (0, array.shape, array.tobytes())
        header += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        header += struct.pack("<IQ", kind, len(content))
        content += data + b"\0" * (-len(data) % 32)
    return header + b"\0" * (-len(header) % 32) + content


def logits(arrays, ids, eps=1e-4, base=500.0):
    """The same model once more, written down anew, in float64 and one head at a time. (T,) → (T, V)."""
    w = {name.removesuffix(".weight"): array.astype(np.float64) for name, array in arrays.items()}
    T, d_k = len(ids), D // HEADS

    def norm(x, gain):
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * gain

    def turned(x):
        y = np.empty_like(x)
        for t in range(T):
            for i in range(0, d_k, 2):
                angle = t * base ** (-i / d_k)
                a, b = x[t, i], x[t, i + 1]
                y[t, i], y[t, i + 1] = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
        return y

    x = w["token_embd"][ids]
    for layer in range(LAYERS):
        of = {name.split(".")[-1]: array for name, array in w.items() if name.startswith(f"blk.{layer}.")}
        h, heads = norm(x, of["attn_norm"]), []
        for head in range(HEADS):
            shared = head * KV_HEADS // HEADS
            q = turned(h @ of["attn_q"][head * d_k : (head + 1) * d_k].T)
            k = turned(h @ of["attn_k"][shared * d_k : (shared + 1) * d_k].T)
            v = h @ of["attn_v"][shared * d_k : (shared + 1) * d_k].T
            for t in range(T):
                weights = np.exp(q[t] @ k[: t + 1].T / np.sqrt(d_k))
                heads.append(weights / weights.sum() @ v[: t + 1])
        x = x + np.array(heads).reshape(HEADS, T, d_k).swapaxes(0, 1).reshape(T, D) @ of["attn_output"].T
        h = norm(x, of["ffn_norm"])
        gate = h @ of["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ of["ffn_up"].T)) @ of["ffn_down"].T
    return norm(x, w["output_norm"]) @ w["token_embd"].T
