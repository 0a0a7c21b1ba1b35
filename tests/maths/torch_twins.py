"""The course's models written once more in PyTorch, with the same parameters under the same names.

Tests compare their losses and gradients with ours. They know the usual settings of our models: pre-norm, ReLU,
sinusoidal positions.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch.nn import functional as F

from lesson_utils.maths import models, positions
from lesson_utils.maths.layers import Layer

Parameters = dict[str, Any]  # tensors
GRU = "W_x", "W_h", "b", "b_h"


def twin(model: Layer) -> tuple[Parameters, Callable[[Any, Any], Any]]:
    """Return copies of a model's parameters as tensors, and the function that gives a batch's loss."""
    p = {name: torch.from_numpy(param.value.copy()).requires_grad_() for name, param in model.params().items()}
    losses: dict[type[Layer], Callable[..., Any]] = {
        models.GPT: gpt,
        models.Transformer: transformer,
        models.Seq2Seq: seq2seq,
    }
    loss, config = losses[type(model)], model.config  # type: ignore[attr-defined]
    return p, lambda source, target: loss(config, p, torch.from_numpy(source), torch.from_numpy(target))


def gpt(config: models.GPTConfig, p: Parameters, x: Any, y: Any) -> Any:
    """Return a GPT's mean cross-entropy."""
    h = embedded(p["tokens.embedding.table"], x)
    for i in range(config.num_layers):
        h = block(p, f"stack.blocks.{i}.", h, causal(h), config.num_heads)
    h = norm(p, "stack.norm", h)
    return F.cross_entropy((h @ p["tokens.embedding.table"].T).flatten(0, 1), y.flatten())


def transformer(config: models.TransformerConfig, p: Parameters, source: Any, target: Any) -> Any:
    """Return an encoder–decoder's mean cross-entropy over the target's symbols after the first."""
    real = source != config.pad
    mask = None if real.all() else real[:, None, None]
    memory = embedded(p["source.embedding.table"], source)
    for i in range(config.num_layers):
        memory = block(p, f"encoder.blocks.{i}.", memory, mask, config.num_heads)
    memory = norm(p, "encoder.norm", memory)
    h = embedded(p["target.embedding.table"], target[:, :-1])
    for i in range(config.num_layers):
        h = block(p, f"blocks.{i}.", h, causal(h), config.num_heads, memory, mask)
    logits = norm(p, "norm", h) @ p["target.embedding.table"].T
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=config.pad)


def embedded(table: Any, ids: Any) -> Any:
    """Return the vectors of these ids, with their positions added."""
    d_model = table.shape[1]
    return F.embedding(ids, table) * d_model**0.5 + sinusoids(ids.shape[1], d_model).to(table.dtype)


@lru_cache
def sinusoids(length: int, d_model: int) -> Any:
    """Return the encoding of positions as a tensor, computed once."""
    return torch.from_numpy(positions.sinusoidal_encoding(length, d_model))


def causal(x: Any) -> Any:
    """Return the causal mask, (T, T)."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()


def norm(p: Parameters, name: str, x: Any) -> Any:
    """Normalise the last axis."""
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.gamma"], p[f"{name}.beta"])


def block(
    p: Parameters, at: str, x: Any, mask: Any, num_heads: int, memory: Any = None, memory_mask: Any = None
) -> Any:
    """Run one layer of a stack; with a memory, it has cross-attention."""
    x = x + attend(p, f"{at}attention.inner.", norm(p, f"{at}attention.norm", x), None, mask, num_heads)
    if memory is not None:
        x = x + attend(p, f"{at}cross.inner.", norm(p, f"{at}cross.norm", x), memory, memory_mask, num_heads)
    wide, narrow = f"{at}feed_forward.inner.wide.", f"{at}feed_forward.inner.narrow."
    hidden = torch.relu(norm(p, f"{at}feed_forward.norm", x) @ p[f"{wide}W"] + p[f"{wide}b"])
    return x + hidden @ p[f"{narrow}W"] + p[f"{narrow}b"]


def attend(p: Parameters, at: str, x: Any, memory: Any, mask: Any, num_heads: int) -> Any:
    """Run multi-head attention, to `memory` or within `x`."""
    B, T, d_model = x.shape

    def heads(y: Any) -> Any:
        return y.view(B, -1, num_heads, d_model // num_heads).transpose(1, 2)

    if memory is None:
        W = torch.cat([p[f"{at}W_Q"], p[f"{at}W_K"], p[f"{at}W_V"]], dim=1)
        Q, K, V = (heads(y) for y in (x @ W).chunk(3, dim=-1))
    else:
        W = torch.cat([p[f"{at}W_K"], p[f"{at}W_V"]], dim=1)
        Q, (K, V) = heads(x @ p[f"{at}W_Q"]), (heads(y) for y in (memory @ W).chunk(2, dim=-1))
    scores = Q @ K.transpose(-1, -2) / (d_model // num_heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return (torch.softmax(scores, dim=-1) @ V).transpose(1, 2).reshape(B, T, d_model) @ p[f"{at}W_O"]


def seq2seq(config: models.Seq2SeqConfig, p: Parameters, source: Any, target: Any) -> Any:
    """Return the mean cross-entropy of a recurrent encoder–decoder.

    All steps of the decoder run in one call; with "additive" each step waits for the state of the one before.
    """
    keys, summary = encoded(p, p["source.table"][source], source != config.pad)
    state = torch.tanh(summary @ p["bridge.W"] + p["bridge.b"])
    x = p["target.table"][target[:, :-1]]
    W_ih, W_hh, b_ih, b_hh = gru_weights(*(p[f"decoder.cell.{name}"] for name in GRU))
    if config.attention in (None, "additive"):  # the context is an input of the cell
        W_ih = torch.cat([W_ih, p["decoder.context.W"].T], dim=1)
    look = look_back(config, p, keys, source != config.pad)
    if config.attention == "additive":
        states, contexts = [], []
        for t in range(x.shape[1]):
            contexts.append(look(state[:, None])[:, 0])
            state = torch.gru_cell(torch.cat([x[:, t], contexts[-1]], dim=-1), state, W_ih, W_hh, b_ih, b_hh)
            states.append(state)
        h, context = torch.stack(states, dim=1), torch.stack(contexts, dim=1)
    else:
        fixed = summary[:, None].expand(-1, x.shape[1], -1)
        inputs = x if config.attention else torch.cat([x, fixed], dim=-1)
        h, _ = run_gru([W_ih, W_hh, b_ih, b_hh], inputs, state[None])
        context = look(h) if config.attention else fixed
    read = torch.tanh(torch.cat([h, context], dim=-1) @ p["read.W"] + p["read.b"])
    logits = read @ p["out.W"] + p["out.b"]
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=config.pad)


def encoded(p: Parameters, x: Any, real: Any) -> tuple[Any, Any]:
    """Return the states of a bidirectional encoder, (B, S, d_hidden), and its last ones, (B, d_hidden)."""
    both = [p[f"encoder.{name}"] for name in GRU]
    weights = [weight for direction in (0, 1) for weight in gru_weights(*(values[direction] for values in both))]
    if real.all():
        keys, last = run_gru(weights, x)
    else:
        lengths = real.sum(dim=1)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed, last = run_gru(weights, packed)
        keys, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    return keys, torch.cat([last[0], last[1]], dim=-1)


def look_back(config: models.Seq2SeqConfig, p: Parameters, keys: Any, real: Any) -> Callable[[Any], Any]:
    """Return the function that gives the contexts of queries, (B, T, d_hidden)."""
    W = [p[name] for name in ("decoder.score.0", "decoder.score.1") if name in p]
    projected: Any = keys @ p["decoder.key.W"] if config.attention == "additive" else None

    def contexts(queries: Any) -> Any:
        if config.attention == "dot":
            scores = queries @ keys.transpose(1, 2)
        elif config.attention == "general":
            scores = queries @ W[0] @ keys.transpose(1, 2)
        elif config.attention == "additive":
            scores = torch.tanh((queries @ p["decoder.query.W"])[:, :, None] + projected[:, None]) @ p["decoder.v"]
        else:
            pairs = torch.broadcast_tensors(queries[:, :, None], keys[:, None])
            scores = torch.tanh(torch.cat(pairs, dim=-1) @ W[0]) @ W[1]
        if not real.all():
            scores = scores.masked_fill(~real[:, None], -torch.inf)
        return torch.softmax(scores, dim=-1) @ keys

    return contexts


def gru_weights(W_x: Any, W_h: Any, b: Any, b_h: Any) -> list[Any]:
    """Return PyTorch's weights of a GRU; it has a second bias for all three gates, ours for the third only."""
    return [W_x.T, W_h.T, b, F.pad(b_h, (2 * len(b_h), 0))]


def run_gru(weights: list[Any], x: Any, state: Any = None) -> Any:
    """Run a GRU over all steps; with the weights of two, one of them runs backwards."""
    names = [f"{kind}_l0{way}" for way in ("", "_reverse") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    module = gru_module(weights[0].shape[1], weights[1].shape[1], len(weights) == 8, weights[0].dtype)
    return torch.func.functional_call(module, dict(zip(names, weights, strict=False)), (x, state))


@lru_cache
def gru_module(d_in: int, d_hidden: int, both_ways: bool, dtype: Any) -> Any:
    """Return PyTorch's GRU, whose own weights are not used."""
    return torch.nn.GRU(d_in, d_hidden, batch_first=True, bidirectional=both_ways, dtype=dtype)
