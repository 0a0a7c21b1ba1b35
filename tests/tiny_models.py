"""Models like Llama, Qwen2 and GPT-2 of a few thousand numbers: each as a GGUF file, and as a folder of Hugging Face's.

The same weights stand in both, each in its own names and order.
"""

import json
import struct

import numpy as np
import tiny_llama
from tiny_llama import FF, HEADS, KV_HEADS, LAYERS, D, V

KINDS = ("llama", "qwen2", "gpt2")
CONTEXT = 64
BASE, EPS = 500.0, 1e-4
D_KV = D // HEADS * KV_HEADS


def facts(kind):
    """What a GGUF says of it."""
    words = {name: fact for name, fact in tiny_llama.facts().items() if not name.startswith(("llama.", "general."))}
    norm = "epsilon" if kind == "gpt2" else "rms_epsilon"
    sizes = {"block_count": LAYERS, "context_length": CONTEXT, "embedding_length": D, "feed_forward_length": FF}
    sizes |= {"attention.head_count": HEADS, f"attention.layer_norm_{norm}": EPS}
    if kind != "gpt2":
        sizes |= {"attention.head_count_kv": KV_HEADS, "rope.freq_base": BASE}
    named = {"general.architecture": kind, "general.name": f"Tiny {kind}"}
    return named | {f"{kind}.{name}": size for name, size in sizes.items()} | words


# GGUF's name, a Llama's or Qwen2's in a folder, and a GPT-2's, which keeps one matrix for queries, keys and values.
NAMES = (
    ("token_embd.weight", "model.embed_tokens.weight", "wte.weight"),
    ("output_norm.weight", "model.norm.weight", "ln_f.weight"),
    ("output_norm.bias", None, "ln_f.bias"),
    ("position_embd.weight", None, "wpe.weight"),
)
LAYER_NAMES = (
    ("attn_norm.weight", "input_layernorm.weight", "ln_1.weight"),
    ("attn_q.weight", "self_attn.q_proj.weight", None),
    ("attn_k.weight", "self_attn.k_proj.weight", None),
    ("attn_v.weight", "self_attn.v_proj.weight", None),
    ("attn_q.bias", "self_attn.q_proj.bias", None),
    ("attn_k.bias", "self_attn.k_proj.bias", None),
    ("attn_v.bias", "self_attn.v_proj.bias", None),
    ("attn_qkv.weight", None, "attn.c_attn.weight"),
    ("attn_qkv.bias", None, "attn.c_attn.bias"),
    ("attn_output.weight", "self_attn.o_proj.weight", "attn.c_proj.weight"),
    ("attn_output.bias", None, "attn.c_proj.bias"),
    ("attn_norm.bias", None, "ln_1.bias"),
    ("ffn_norm.weight", "post_attention_layernorm.weight", "ln_2.weight"),
    ("ffn_norm.bias", None, "ln_2.bias"),
    ("ffn_gate.weight", "mlp.gate_proj.weight", None),
    ("ffn_up.weight", "mlp.up_proj.weight", "mlp.c_fc.weight"),
    ("ffn_up.bias", None, "mlp.c_fc.bias"),
    ("ffn_down.weight", "mlp.down_proj.weight", "mlp.c_proj.weight"),
    ("ffn_down.bias", None, "mlp.c_proj.bias"),
)


def shape_of(name, kind):
    stem, _, what = name.partition(".")
    rows, columns = {
        "token_embd": (V, D), "position_embd": (CONTEXT, D), "attn_k": (D_KV, D), "attn_v": (D_KV, D),
        "attn_qkv": (3 * D, D), "ffn_gate": (FF, D), "ffn_up": (FF, D), "ffn_down": (D, FF),
    }.get(stem, (D, D))  # fmt: skip
    return (rows, columns) if what == "weight" and "norm" not in stem else (rows,)


def arrays(kind, seed=0):
    """By GGUF's names, a row for each output, with the pairs of a head as a folder has them."""
    rng, made = np.random.default_rng(seed), {}
    of = 2 if kind == "gpt2" else 1
    wanted = [(name, row[0]) for row in NAMES if (name := row[0]) and row[of]]
    wanted += [(f"blk.{i}.{row[0]}", row[0]) for i in range(LAYERS) for row in LAYER_NAMES if row[of]]
    for name, short in wanted:
        if kind == "llama" and short.endswith(".bias"):
            continue
        made[name] = rng.normal(size=shape_of(short, kind)).astype(np.float32) / 2
    return made


def gguf(kind, seed=0, **facts_too):
    """The bytes of a GGUF."""
    named = {
        name: side_by_side(array, name) if kind == "llama" else array for name, array in arrays(kind, seed).items()
    }
    return tiny_llama.gguf(facts(kind) | facts_too, named)


def side_by_side(array, name):
    """A Llama's queries or keys with the pairs of a head side by side."""
    if not name.endswith(("attn_q.weight", "attn_k.weight")):
        return array
    return array.reshape(-1, 2, D // HEADS // 2, D).swapaxes(1, 2).reshape(array.shape)


def config(kind):
    if kind == "gpt2":
        sizes = {"n_layer": LAYERS, "n_positions": CONTEXT, "n_embd": D, "n_inner": FF, "n_head": HEADS}
        return {"model_type": kind, "layer_norm_epsilon": EPS, "eos_token_id": V - 1} | sizes
    sizes = {"num_hidden_layers": LAYERS, "max_position_embeddings": CONTEXT, "hidden_size": D, "intermediate_size": FF}
    sizes |= {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "rms_norm_eps": EPS, "rope_theta": BASE}
    return {"model_type": kind, "tie_word_embeddings": True, "eos_token_id": V - 1} | sizes


def words():
    """The same tokenizer as in `tiny_llama.facts`."""
    known = tiny_llama.facts()
    tokens = known["tokenizer.ggml.tokens"]
    special = [{"id": id_, "content": tokens[id_], "special": True} for id_ in (V - 2, V - 1)]
    steps = [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": False}]
    model = {"type": "BPE", "merges": known["tokenizer.ggml.merges"]}
    model["vocab"] = {token: id_ for id_, token in enumerate(tokens[: V - 2])}
    return {"model": model, "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}, "added_tokens": special}


def named_arrays(kind, seed=0):
    """By the names of a folder, in its order."""
    of, found = 2 if kind == "gpt2" else 1, {}
    theirs = {row[0]: row[of] for row in NAMES}
    before = "h" if kind == "gpt2" else "model.layers"
    theirs |= {f"blk.{i}.{row[0]}": f"{before}.{i}.{row[of]}" for i in range(LAYERS) for row in LAYER_NAMES}
    for name, array in arrays(kind, seed).items():
        turned = kind == "gpt2" and array.ndim == 2 and name.startswith("blk")
        found[theirs[name]] = np.ascontiguousarray(array.T) if turned else array
    return found


DTYPES = {"float32": "F32", "float16": "F16", "uint16": "BF16"}  # NumPy has only the bits of the last


def safetensors(named):
    """The bytes of a file. `named`: name -> array."""
    described, content = {"__metadata__": {"format": "pt"}}, b""
    for name, array in named.items():
        offsets = [len(content), len(content) + array.nbytes]
        described[name] = {"dtype": DTYPES.get(array.dtype.name, "F64"), "shape": array.shape, "data_offsets": offsets}
        content += array.tobytes()
    head = json.dumps(described).encode()
    return struct.pack("<Q", len(head)) + head + content


def folder(kind, path, named=None, **also):
    """Write a folder; `also` are changes of config.json. Returns its path."""
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config(kind) | also))
    (path / "tokenizer.json").write_text(json.dumps(words()))
    (path / "model.safetensors").write_bytes(safetensors(named or named_arrays(kind)))
    return path
