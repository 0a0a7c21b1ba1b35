"""Published models in our own `models.GPT`: which of our layers they have, and which of their arrays go where.

A Llama differs from GPT-2 by what notebook 12 builds: RMS norm, positions that turn queries and keys, keys and values
that heads share, SwiGLU, no biases. Qwen2 is a Llama with biases on queries, keys and values.

Source: Radford et al. (2019), section 2.3; Touvron et al. (2023), section 2.2; Yang et al. (2024), "Qwen2", 2.2.
"""

from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import Embedding, Param
from lesson_utils.maths.layers.basic import LinearCache
from lesson_utils.maths.positions import Rotary
from lesson_utils.maths.pretrained.arrays import Arrays

# Of each of our parameters, the arrays of a file that it is made of, and their shapes. A matrix of theirs has a row for
# each output, one of ours a column.
Table = dict[str, dict[str, str]]
WHOLE: Table = {"tokens.embedding.table": {"token_embd.weight": "V d"}, "stack.norm.gamma": {"output_norm.weight": "d"}}
OWN_OUTPUT: Table = {"tokens.embedding.output": {"output.weight": "V d"}}
OF_EACH_LAYER: Table = {
    "attention.norm.gamma": {"attn_norm.weight": "d"},
    "attention.inner.W_Q": {"attn_q.weight": "d d"},
    "attention.inner.W_K": {"attn_k.weight": "kv d"},
    "attention.inner.W_V": {"attn_v.weight": "kv d"},
    "attention.inner.W_O": {"attn_output.weight": "d d"},
    "feed_forward.norm.gamma": {"ffn_norm.weight": "d"},
    "feed_forward.inner.wide.W": {"ffn_gate.weight": "ff d", "ffn_up.weight": "ff d"},
    "feed_forward.inner.narrow.W": {"ffn_down.weight": "d ff"},
}
QKV_BIASES: Table = {
    "attention.inner.b_Q": {"attn_q.bias": "d"},
    "attention.inner.b_K": {"attn_k.bias": "kv"},
    "attention.inner.b_V": {"attn_v.bias": "kv"},
}
GPT2_WHOLE: Table = {"tokens.learned": {"position_embd.weight": "T d"}, "stack.norm.beta": {"output_norm.bias": "d"}}
GPT2_OF_EACH_LAYER: Table = {
    "attention.norm.beta": {"attn_norm.bias": "d"},
    "attention.inner.b_O": {"attn_output.bias": "d"},
    "feed_forward.norm.beta": {"ffn_norm.bias": "d"},
    "feed_forward.inner.wide.W": {"ffn_up.weight": "ff d"},
    "feed_forward.inner.wide.b": {"ffn_up.bias": "ff"},
    "feed_forward.inner.narrow.b": {"ffn_down.bias": "d"},
}


class Architecture(NamedTuple):
    """A kind of model: the options of `models.GPTConfig`, where its arrays go, and the pairs that a GGUF turns."""

    options: dict[str, Any]
    whole: Table
    of_each_layer: Table
    pairs: str = "adjacent"


_OF_TODAY = {"norm_kind": "rms", "activation": "swiglu", "positions": "rotary"}
_OF_2019 = {"norm_kind": "layer", "activation": "gelu", "positions": "learned"}
ARCHITECTURES = {
    "llama": Architecture(_OF_TODAY, WHOLE, OF_EACH_LAYER),
    "qwen2": Architecture(_OF_TODAY, WHOLE, OF_EACH_LAYER | QKV_BIASES, "halves"),
    "gpt2": Architecture(_OF_2019, WHOLE | GPT2_WHOLE, OF_EACH_LAYER | QKV_BIASES | GPT2_OF_EACH_LAYER),
}


class TwoTables(Embedding):
    """An embedding whose output layer has a table of its own. Both are made, but not filled."""

    def __init__(self, V: int, d_model: int) -> None:
        super().__init__(V, d_model, None)
        self.output = Param(self.table.value)

    def logits_forward(self, x: Array) -> tuple[Array, LinearCache]:
        return ops.linear_forward(x, self.output.value.T)

    def logits_backward(self, dlogits: Array, cache: LinearCache) -> Array:
        dx, dW, _ = ops.linear_backward(dlogits, cache)
        self.output.grad += dW.T
        return dx


def build(file: Arrays, vocab: int, max_length: int | None) -> tuple[models.GPT, dict[str, list[str]]]:
    """Make the model that a file describes, not filled, and list the names in the file for each of its parameters.

    Args:
        max_length: default: 1,024, or what the model was trained for, if that is less.

    Raises:
        ValueError: something is not known, an array has no place, a place has no array, or a shape does not fit.
    """
    name = file.facts.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        known = ", ".join(map(repr, ARCHITECTURES))
        raise ValueError(f"{file.path} holds a model of the kind {name!r}; those that have a place here are {known}")
    kind = ARCHITECTURES[name]
    norm = "rms_epsilon" if kind.options["norm_kind"] == "rms" else "epsilon"
    eps, limit = _number(file, f"attention.layer_norm_{norm}"), _number(file, "context_length")
    config = _config(file, kind, vocab, min(1024, limit) if max_length is None else max_length)
    if config.max_length > limit:
        raise ValueError(f"max_length={max_length} is more than this model was trained for; at most {limit}")
    if name == "gpt2":
        _split(file, config, limit)
    sources = _sources(file, config, kind)
    model = models.GPT(config, rng=None)
    if "output.weight" in file.arrays:
        model.tokens.embedding = TwoTables(vocab, config.d_model)
    model.tokens.embedding.scale = 1.0  # their embeddings are as in the table
    norms: list[Any] = [model.stack.norm]
    for block in model.stack.blocks:
        norms += [block.attention.norm, block.feed_forward.norm]
        feed, heads = block.feed_forward.inner, block.attention.inner
        if "feed_forward.inner.wide.b" not in kind.of_each_layer:
            feed.wide.b = feed.narrow.b = None
        for letter in "QKVO":
            if f"attention.inner.b_{letter}" in kind.of_each_layer:
                width = getattr(heads, f"W_{letter}").value.shape[1]
                setattr(heads, f"b_{letter}", Param(np.zeros(width, np.float32)))
    for layer in norms:
        layer.eps = float(eps)
    return model, sources


def _number(file: Arrays, name: str, default: Any = None) -> Any:
    """Return a fact that must be a positive number."""
    name = f"{file.facts['general.architecture']}.{name}"
    value = file.facts.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
        raise ValueError(f"{file.path} is no model: {name} is {value!r}, expected a positive number")
    return value


def _config(file: Arrays, kind: Architecture, vocab: int, max_length: int) -> models.GPTConfig:
    """Make our config from the facts of a file."""
    names = ("embedding_length", "attention.head_count", "block_count", "feed_forward_length")
    d_model, num_heads, num_layers, d_ff = (_number(file, name) for name in names)
    num_kv_heads = _number(file, "attention.head_count_kv", num_heads)
    rotary = _rotary(file, kind, d_model / num_heads) if kind.options["positions"] == "rotary" else None
    sizes = {"d_model": d_model, "num_heads": num_heads, "num_kv_heads": num_kv_heads, "num_layers": num_layers}
    try:
        return models.GPTConfig(**kind.options, **sizes, d_ff=d_ff, vocab=vocab, max_length=max_length, rotary=rotary)
    except ValueError as error:
        raise ValueError(f"{file.path} is no model: {error}") from None


def _rotary(file: Arrays, kind: Architecture, d_k: float) -> Rotary:
    """Return how a file's model turns queries and keys."""
    facts, name = file.facts, file.facts["general.architecture"]
    if (turned := facts.get(f"{name}.rope.dimension_count", d_k)) != d_k:
        raise ValueError(f"{file.path} turns {turned!r} columns of each head by its position; here, it is all {d_k:g}")
    slower, scale = np.array([]), 1.0
    if "rope_freqs.weight" in file.arrays:  # Llama 3's scaling, by how much each pair turns slower
        slower = file.read("rope_freqs.weight")
        del file.arrays["rope_freqs.weight"]
        if slower.shape != (d_k // 2,) or not (np.isfinite(slower) & (slower > 0)).all():
            file.fail(f"rope_freqs.weight has shape {slower.shape}, expected {d_k // 2:g} positive numbers")
    scaling = facts.get(f"{name}.rope.scaling.type", "none")
    if scaling == "linear":
        scale = 1 / float(_number(file, "rope.scaling.factor"))
    elif scaling != "none":
        raise ValueError(
            f"{file.path} has positions scaled by {scaling!r}; known are 'linear', and 'llama3' in folders"
        )
    base = float(_number(file, "rope.freq_base", 10000.0))
    return Rotary(base, scale, file.pairs or kind.pairs, tuple(slower.astype(float).tolist()))


def _split(file: Arrays, config: models.GPTConfig, limit: int) -> None:
    """Part what a GPT-2 keeps as one: matrices and biases of Q, K and V; and take the first positions of its table."""
    for name in [name for name in file.arrays if ".attn_qkv." in name]:
        file.cut(name, [name.replace("_qkv", f"_{of}") for of in "qkv"])
    if (info := file.arrays.get(name := "position_embd.weight")) is not None:
        if info.shape != (limit, config.d_model):
            file.fail(f"{name} has shape {info.shape}, expected {(limit, config.d_model)}")
        file.arrays[name] = info.rows(0, config.max_length)


def _sources(file: Arrays, c: models.GPTConfig, kind: Architecture) -> dict[str, list[str]]:
    """List the names in the file for each parameter; see `build`."""
    arrays = file.arrays
    d_kv = c.d_model // c.num_heads * (c.num_kv_heads or c.num_heads)
    sizes = {"V": c.vocab, "d": c.d_model, "kv": d_kv, "ff": c.ff_width, "T": c.max_length}
    if c.num_layers > len(arrays):
        file.fail(f"{c.num_layers} layers, of {len(arrays)} arrays")
    places = [("", "", kind.whole | (OWN_OUTPUT if "output.weight" in arrays else {}))]
    places += [(f"stack.blocks.{i}.", f"blk.{i}.", kind.of_each_layer) for i in range(c.num_layers)]
    sources: dict[str, list[str]] = {}
    for ours, theirs, table in places:
        for name, parts in table.items():
            sources[ours + name] = [theirs + part for part in parts]
            for part, letters in parts.items():
                full, shape = theirs + part, tuple(sizes[letter] for letter in letters.split())
                if full not in arrays:
                    raise ValueError(f"{file.path} is not complete: {full} is missing")
                if arrays[full].shape != shape:
                    file.fail(f"{full} has shape {arrays[full].shape}, expected {shape}")
    if strange := sorted(set(arrays) - {part for parts in sources.values() for part in parts}):
        raise ValueError(f"{file.path} has {strange[0]}, which has no place in this model")
    return sources
