"""Models trained for real, three seeds each; the notebooks' claims rest on them. This takes some minutes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils.maths import models, tasks, training
from tools.bench import trial

SEEDS = (0,) if trial.on() else (0, 1, 2)
LENGTHS = (6, 12, 16, 20, 24, 28)


def run() -> None:
    """Train on each task."""
    gather()
    dates()
    reversal()


def gather() -> None:
    """Train on four symbols to fetch at every position: one head blurs them, sixteen are too narrow."""
    print("  gather-4, d 32, one layer: share of right answers")
    for heads in (1, 4, 16):
        for seed in SEEDS:
            sizes: dict[str, Any] = {"d_model": 32, "num_heads": heads, "num_layers": 1, "d_ff": 16, "max_length": 24}
            config = models.EncoderConfig(vocab=23, classes=23, outputs=4, positions="learned", **sizes)
            model = models.Encoder(config, np.random.default_rng(seed))
            history = training.fit(
                model,
                lambda rng: tasks.gather(rng, 64),
                trial.steps(500),
                schedule=lambda step: training.warmup_linear(step, 5e-3, 50, 650),
                seed=seed,
                progress=False,
            )
            source, target = tasks.gather(np.random.default_rng(99), 500)
            right = float((model.forward(source)[0].argmax(axis=-1) == target).mean())
            print(f"    {heads:2} heads, seed {seed}: {right:.3f}, {history.seconds:.0f} s", flush=True)


def dates() -> None:
    """Train on written dates to ISO dates; one day in ten is never trained on."""
    print("  written dates to ISO dates, d 32, 1+1 layers: exact match on dates never seen")
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        sizes: dict[str, Any] = {"vocab": len(tasks.WRITTEN), "target_vocab": len(tasks.ISO)}
        config = models.TransformerConfig(d_model=32, num_layers=1, **sizes)
        model = models.Transformer(config, rng)

        def batch(rng: np.random.Generator) -> tuple[Any, Any]:
            source, _, target = tasks.dates(rng, 64)
            return source, target

        history = _fit(model, batch, steps=trial.steps(1500), peak=4e-3, seed=seed)
        source, _, target = tasks.dates(np.random.default_rng(99), 1000, held_out=True)
        ids = model.decode(source, target.shape[1] - 1)
        exact = float((ids == target[:, 1:]).all(axis=1).mean())
        print(f"    seed {seed}: {exact:.3f}, {history.seconds:.0f} s", flush=True)


def reversal() -> None:
    """Train recurrent models to reverse strings of lengths 3 to 20."""
    draw = tasks.reversal_batches(64)

    def batch(rng: np.random.Generator) -> tuple[Any, Any]:
        source, target = draw(rng)
        return source, tasks.with_ends(target)

    print(f"  reversing strings, trained on lengths 3-20: share of strings without error at lengths {LENGTHS}")
    for kind in (None, "additive", "general"):
        for seed in SEEDS:
            config = models.Seq2SeqConfig(26 + 3, 26 + 3, attention=kind)
            model = models.Seq2Seq(config, np.random.default_rng(seed))
            history = _fit(model, batch, steps=trial.steps(4000), peak=3e-3, seed=seed)
            accuracies = []
            for length in LENGTHS:
                source, target = tasks.reversal(np.random.default_rng(99), 200, length)
                ids, _ = model.decode(source, length + 1)
                wanted = np.insert(target, length, tasks.EOS, axis=1)
                accuracies.append(float((ids == wanted).all(axis=1).mean()) if ids.shape == wanted.shape else 0.0)
            row = " ".join(f"{accuracy:5.2f}" for accuracy in accuracies)
            print(f"    {kind or 'fixed':9} seed {seed}: {row}   {history.seconds:.0f} s", flush=True)


def _fit(model: training.Trainable, batch: Callable[..., Any], steps: int, peak: float, seed: int) -> training.History:
    def schedule(step: int) -> float:
        return training.warmup_linear(step, peak, min(100, steps // 2), steps)

    return training.fit(model, batch, steps, schedule=schedule, seed=seed, progress=False)
