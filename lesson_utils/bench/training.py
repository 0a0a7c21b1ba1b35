"""A training step (loss, gradients, clipping, Adam) of our models against the same models in PyTorch, run eagerly.

Same sizes, same initial parameters, same batches: the two losses must agree, or there is nothing to compare.
"""

from typing import Any

import numpy as np

from lesson_utils import models, training
from lesson_utils.bench.clock import compare
from lesson_utils.layers import Param


def run(rounds: int = 15) -> None:
    try:
        import torch
    except ModuleNotFoundError:
        print("  needs PyTorch: python course.py test --parity installs it")
        return
    torch.set_num_threads(int(torch.get_num_threads()))
    for name, make in (("seq2seq", _seq2seq), ("encoder-decoder", _transformer), ("GPT", _gpt)):
        for label, model, loss, batch in make(torch):
            theirs, forward = loss
            optimizer = training.Adam(model.params(), 1e-3)
            torch_optimizer = torch.optim.Adam(theirs, 1e-3)
            fast_optimizer = torch.optim.Adam(theirs, 1e-3, fused=True)

            def ours(model: Any = model, optimizer: Any = optimizer, batch: Any = batch) -> float:
                optimizer.zero_grad()
                value = model.loss_and_grad(batch)
                training.clip_gradients(optimizer, 1.0)
                optimizer.step()
                return float(value)

            def eager(forward: Any = forward, theirs: Any = theirs, optimizer: Any = torch_optimizer) -> float:
                optimizer.zero_grad()
                value = forward()
                value.backward()
                torch.nn.utils.clip_grad_norm_(theirs, 1.0)
                optimizer.step()
                return float(value)

            def fused(eager: Any = eager, optimizer: Any = fast_optimizer) -> float:
                return float(eager(optimizer=optimizer))

            a, b = ours(), eager()
            agree = "losses agree" if abs(a - b) < 1e-4 else f"LOSSES DIFFER: {a} and {b}"
            times = compare(rounds, ours=ours, eager=eager, fused=fused)
            print(f"  {name:15} {label:34} ours {times['ours'] * 1e3:6.1f} ms, PyTorch {times['eager'] * 1e3:6.1f} ms", end="")
            print(f": {times['ours'] / times['eager']:.2f}×; to its fused Adam {times['ours'] / times['fused']:.2f}× ({agree})", flush=True)


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
    from lesson_utils.positions import sinusoidal_encoding

    return sinusoidal_encoding(T, d_model).astype(np.float32)


def _seq2seq(torch: Any) -> Any:
    yield from ()
