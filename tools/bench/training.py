"""A training step (loss, gradients, clipping, Adam) of our models against the same models in PyTorch, run eagerly.

Same sizes, same initial parameters, same batches: the two losses must agree, or there is nothing to compare.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from lesson_utils.maths import models, training
from lesson_utils.maths.machine import keep_freed_memory
from tools.bench.clock import compare


def run(rounds: int = 15) -> None:
    """Print a line for each model."""
    try:
        import torch

        from tools.bench.torch_twins import twin
    except ModuleNotFoundError:
        print("  needs PyTorch: python course.py test --parity installs it")
        return
    keep_freed_memory()  # as `training.fit` does; in this process, PyTorch profits from it, too
    for name, model, batch in cases():
        params, loss = twin(model)
        tensors = list(params.values())
        ours = step_of(model, batch)
        eager, fused = (torch_step(torch, tensors, partial(loss, *batch), fused) for fused in (False, True))
        a, b = ours(), eager()
        agree = "losses agree" if abs(a - b) < 1e-4 else f"LOSSES DIFFER: {a} and {b}"
        times = compare(rounds, ours=ours, eager=eager, fused=fused)
        ratios = [times["ours"] / times[way] for way in ("eager", "fused")]
        print(f"  {name:50} ours {times['ours'] * 1e3:6.1f} ms", end="")
        print(f", PyTorch {times['eager'] * 1e3:6.1f} ms: {ratios[0]:.2f}×", end="")
        print(f"; with its fused Adam {ratios[1]:.2f}× ({agree})", flush=True)


def cases() -> Iterator[tuple[str, Any, tuple[Any, Any]]]:
    """Yield each model with a name and a batch."""
    rng, V, B, T = np.random.default_rng(0), 29, 64, 12
    batch = rng.integers(3, V, size=(B, T)), rng.integers(3, V, size=(B, T + 2))
    for attention in (None, "additive", "general"):
        model: Any = models.Seq2Seq(models.Seq2SeqConfig(V, V, attention=attention), rng)
        yield f"seq2seq, {attention or 'fixed context'}, length {T}, batch {B}", model, batch
    rng, V, B, T = np.random.default_rng(0), 30, 32, 24
    model = models.Transformer(models.TransformerConfig(vocab=V, d_model=64, num_heads=4, num_layers=2), rng)
    batch = rng.integers(1, V, size=(B, T)), rng.integers(1, V, size=(B, T + 1))
    yield f"encoder–decoder, d 64, 2+2 layers, T {T}, batch {B}", model, batch
    rng, V, B, T = np.random.default_rng(0), 100, 32, 64
    model = models.GPT(models.GPTConfig(vocab=V, d_model=128, num_heads=4, num_layers=4, max_length=T), rng)
    yield f"GPT, d 128, 4 layers, T {T}, batch {B}", model, (rng.integers(V, size=(B, T)), rng.integers(V, size=(B, T)))


def step_of(model: Any, batch: Any) -> Callable[[], float]:
    """Return a function that trains our model for a step, and returns the loss."""
    params = model.params()
    optimizer = training.Adam(params, 1e-3)

    def step() -> float:
        optimizer.zero_grad()
        value = model.loss_and_grad(batch)
        training.clip_gradients(params, 1.0)
        optimizer.step()
        return float(value)

    return step


def torch_step(torch: Any, tensors: list[Any], loss: Callable[[], Any], fused: bool) -> Callable[[], float]:
    """Return a function that does the same with PyTorch."""
    optimizer = torch.optim.Adam(tensors, 1e-3, fused=fused)

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(tensors, 1.0)
        optimizer.step()
        return float(value.detach())

    return step
