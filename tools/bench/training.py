"""A training step (loss, gradients, clipping, Adam) of our models against the same models in PyTorch, run eagerly.

Same sizes, same initial parameters, same batches: the two losses must agree, or there is nothing to compare.
"""

from typing import Any

import numpy as np

from lesson_utils.maths import models, training
from lesson_utils.maths.layers import Param
from lesson_utils.maths.machine import keep_freed_memory
from tools.bench.clock import compare


def run(rounds: int = 15) -> None:
    try:
        import torch
    except ModuleNotFoundError:
        print("  needs PyTorch: python course.py test --parity installs it")
        return
    keep_freed_memory()  # as `training.fit` does; in this process, PyTorch profits from it, too
    for name, make in (("seq2seq", _seq2seq), ("encoder-decoder", _transformer), ("GPT", _gpt)):
        for label, model, loss, batch in make(torch):
            theirs, forward = loss
            optimizer = training.Adam(model.params(), 1e-3)
            torch_optimizer = torch.optim.Adam(theirs, 1e-3)
            fast_optimizer = torch.optim.Adam(theirs, 1e-3, fused=True)

            def ours(model: Any = model, optimizer: Any = optimizer, batch: Any = batch) -> float:
                optimizer.zero_grad()
                value = model.loss_and_grad(batch)
                training.clip_gradients(model.params(), 1.0)
                optimizer.step()
                return float(value)

            def eager(forward: Any = forward, theirs: Any = theirs, optimizer: Any = torch_optimizer) -> float:
                optimizer.zero_grad()
                value = forward()
                value.backward()
                torch.nn.utils.clip_grad_norm_(theirs, 1.0)
                optimizer.step()
                return float(value.detach())

            def fused(eager: Any = eager, optimizer: Any = fast_optimizer) -> float:
                return float(eager(optimizer=optimizer))

            a, b = ours(), eager()
            agree = "losses agree" if abs(a - b) < 1e-4 else f"LOSSES DIFFER: {a} and {b}"
            times = compare(rounds, ours=ours, eager=eager, fused=fused)
            ratios = [times["ours"] / times[way] for way in ("eager", "fused")]
            print(f"  {name:15} {label:34} ours {times['ours'] * 1e3:6.1f} ms", end="")
            print(f", PyTorch {times['eager'] * 1e3:6.1f} ms: {ratios[0]:.2f}×", end="")
            print(f"; with its fused Adam {ratios[1]:.2f}× ({agree})", flush=True)


def _copies(torch: Any, params: dict[str, Param]) -> dict[str, Any]:
    return {name: torch.from_numpy(param.value.copy()).requires_grad_() for name, param in params.items()}


def _attend(torch: Any, p: dict[str, Any], at: str, x: Any, memory: Any, mask: Any, num_heads: int) -> Any:
    B, T, d = x.shape

    def heads(y: Any) -> Any:
        return y.view(B, -1, num_heads, d // num_heads).transpose(1, 2)

    if memory is None:
        W = torch.cat([p[f"{at}W_Q"], p[f"{at}W_K"], p[f"{at}W_V"]], dim=1)
        Q, K, V = (heads(y) for y in (x @ W).chunk(3, dim=-1))
    else:
        W = torch.cat([p[f"{at}W_K"], p[f"{at}W_V"]], dim=1)
        Q, (K, V) = heads(x @ p[f"{at}W_Q"]), (heads(y) for y in (memory @ W).chunk(2, dim=-1))
    scores = Q @ K.transpose(-1, -2) / (d // num_heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return (torch.softmax(scores, dim=-1) @ V).transpose(1, 2).reshape(B, T, d) @ p[f"{at}W_O"]


def _block(torch: Any, p: dict[str, Any], at: str, x: Any, mask: Any, num_heads: int, memory: Any = None) -> Any:
    F, d = torch.nn.functional, x.shape[-1]

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, (d,), p[f"{at}{name}.norm.gamma"], p[f"{at}{name}.norm.beta"])

    x = x + _attend(torch, p, f"{at}attention.inner.", norm(x, "attention"), None, mask, num_heads)
    if memory is not None:
        x = x + _attend(torch, p, f"{at}cross.inner.", norm(x, "cross"), memory, None, num_heads)
    hidden = norm(x, "feed_forward") @ p[f"{at}feed_forward.inner.wide.W"] + p[f"{at}feed_forward.inner.wide.b"]
    return x + torch.relu(hidden) @ p[f"{at}feed_forward.inner.narrow.W"] + p[f"{at}feed_forward.inner.narrow.b"]


def _gpt(torch: Any) -> Any:
    F, rng, V, B, T = torch.nn.functional, np.random.default_rng(0), 100, 32, 64
    config = models.GPTConfig(vocab=V, d_model=128, num_heads=4, num_layers=4, max_length=T)
    model = models.GPT(config, rng)
    batch = rng.integers(V, size=(2, B, T))
    p, (x, y) = _copies(torch, model.params()), torch.from_numpy(batch)
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    table = torch.from_numpy(_sinusoids(T, config.d_model))

    def forward() -> Any:
        h = F.embedding(x, p["tokens.embedding.table"]) * config.d_model**0.5 + table
        for i in range(config.num_layers):
            h = _block(torch, p, f"stack.blocks.{i}.", h, mask, config.num_heads)
        h = F.layer_norm(h, (config.d_model,), p["stack.norm.gamma"], p["stack.norm.beta"])
        return F.cross_entropy((h @ p["tokens.embedding.table"].T).view(-1, V), y.view(-1))

    yield "d 128, 4 layers, T 64, batch 32", model, (list(p.values()), forward), tuple(batch)


def _transformer(torch: Any) -> Any:
    F, rng, V, B, T = torch.nn.functional, np.random.default_rng(0), 30, 32, 24
    config = models.TransformerConfig(vocab=V, d_model=64, num_heads=4, num_layers=2)
    model = models.Transformer(config, rng)
    source, target = rng.integers(1, V, size=(B, T)), rng.integers(1, V, size=(B, T + 1))
    p, d = _copies(torch, model.params()), config.d_model
    source_, target_ = torch.from_numpy(source), torch.from_numpy(target)
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    table = torch.from_numpy(_sinusoids(T, d))

    def forward() -> Any:
        memory = F.embedding(source_, p["source.embedding.table"]) * d**0.5 + table
        for i in range(config.num_layers):
            memory = _block(torch, p, f"encoder.blocks.{i}.", memory, None, config.num_heads)
        memory = F.layer_norm(memory, (d,), p["encoder.norm.gamma"], p["encoder.norm.beta"])
        h = F.embedding(target_[:, :-1], p["target.embedding.table"]) * d**0.5 + table
        for i in range(config.num_layers):
            h = _block(torch, p, f"blocks.{i}.", h, mask, config.num_heads, memory)
        h = F.layer_norm(h, (d,), p["norm.gamma"], p["norm.beta"])
        return F.cross_entropy((h @ p["target.embedding.table"].T).view(-1, V), target_[:, 1:].reshape(-1))

    yield "d 64, 2+2 layers, T 24, batch 32", model, (list(p.values()), forward), (source, target)


def _sinusoids(T: int, d_model: int) -> Any:
    from lesson_utils.maths.positions import sinusoidal_encoding

    return sinusoidal_encoding(T, d_model).astype(np.float32)


def _seq2seq(torch: Any) -> Any:
    rng, V, B, T = np.random.default_rng(0), 29, 64, 12
    source, target = rng.integers(3, V, size=(B, T)), rng.integers(3, V, size=(B, T + 2))
    for attention in (None, "additive", "general"):
        model = models.Seq2Seq(models.Seq2SeqConfig(V, V, attention=attention), rng)
        forward, params = _recurrent(torch, model, torch.from_numpy(source), torch.from_numpy(target))
        yield f"{attention or 'fixed context'}, length {T}, batch {B}", model, (params, forward), (source, target)


def _recurrent(torch: Any, model: models.Seq2Seq, source: Any, target: Any) -> tuple[Any, list[Any]]:
    """With nn.GRU for the decoder, too, wherever its inputs are known beforehand; a loop of cells for "additive"."""
    F, c, p = torch.nn.functional, model.config, _copies(torch, model.params())
    context_first = c.attention in (None, "additive")
    encoder = torch.nn.GRU(c.d_embed, c.d_hidden // 2, batch_first=True, bidirectional=True)
    both_directions = [p.pop(f"encoder.{key}") for key in KEYS]
    for direction, suffix in enumerate(("_l0", "_l0_reverse")):
        _fill(torch, encoder, suffix, [values[direction] for values in both_directions])
    d_in = c.d_embed + c.d_hidden * context_first
    loop = c.attention == "additive"
    decoder = torch.nn.GRUCell(d_in, c.d_hidden) if loop else torch.nn.GRU(d_in, c.d_hidden, batch_first=True)
    values = [p.pop(f"decoder.cell.{key}") for key in KEYS]
    if context_first:
        values[0] = torch.cat([values[0], p.pop("decoder.context.W")], dim=0)
    _fill(torch, decoder, "" if loop else "_l0", values)

    def look(queries: Any, keys: Any, projected: Any = None) -> Any:  # queries (B, T_q, d)
        if c.attention == "general":
            scores = queries @ p["decoder.score.0"] @ keys.transpose(1, 2)
        else:
            scores = torch.tanh((queries @ p["decoder.query.W"])[:, :, None] + projected[:, None]) @ p["decoder.v"]
        return torch.softmax(scores, dim=-1) @ keys

    def forward() -> Any:
        keys, last = encoder(p["source.table"][source])
        summary = torch.cat([last[0], last[1]], dim=-1)
        state = torch.tanh(summary @ p["bridge.W"] + p["bridge.b"])
        x = p["target.table"][target[:, :-1]]
        if loop:
            projected, states, contexts = keys @ p["decoder.key.W"], [], []
            for t in range(x.shape[1]):
                contexts.append(look(state[:, None], keys, projected)[:, 0])
                state = decoder(torch.cat([x[:, t], contexts[-1]], dim=-1), state)
                states.append(state)
            h, context = torch.stack(states, dim=1), torch.stack(contexts, dim=1)
        else:
            context = summary[:, None].expand(-1, x.shape[1], -1)
            h, _ = decoder(torch.cat([x, context], dim=-1) if context_first else x, state[None])
            context = look(h, keys) if c.attention else context
        read = torch.tanh(torch.cat([h, context], dim=-1) @ p["read.W"] + p["read.b"])
        return F.cross_entropy((read @ p["out.W"] + p["out.b"]).flatten(0, 1), target[:, 1:].flatten())

    return forward, [*p.values(), *encoder.parameters(), *decoder.parameters()]


KEYS = ("W_x", "W_h", "b", "b_h")


def _fill(torch: Any, network: Any, suffix: str, values: list[Any]) -> None:
    """Copy our GRU's parameters; its second bias stands at the third gate only, PyTorch's at all three."""
    W_x, W_h, b, b_h = values
    with torch.no_grad():
        for name, value in (("weight_ih", W_x.T), ("weight_hh", W_h.T), ("bias_ih", b)):
            getattr(network, name + suffix).copy_(value)
        getattr(network, f"bias_hh{suffix}").copy_(torch.nn.functional.pad(b_h, (2 * len(b_h), 0)))
