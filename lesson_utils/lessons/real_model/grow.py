"""Grow one: small GPTs that read repeats, and what their heads do while they learn."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.lessons.real_model.measures import of_next, run
from lesson_utils.maths import ops, training
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT, GPTConfig

SYMBOLS, LENGTH = 24, 40  # different symbols, and how many a sequence has
PERIODS = (6, 16)
MAP_PERIOD = 12  # the period of the sequence whose maps are shown
FRAMES = 30
PEAK = 3e-3  # learning rate: with 8e-3, one of three seeds never gets there in 600 steps


def repeats(rng: np.random.Generator, batch: int, periods: tuple[int, int] = PERIODS) -> tuple[Ids, Ids]:
    """Random symbols, repeated with a period that is drawn for each sequence: ids (B, T), and the periods, (B,).

    A sequence has one symbol more than `LENGTH`, so that each of the others has a next one.
    """
    drawn = rng.integers(periods[0], periods[1] + 1, size=batch)
    ids = rng.integers(SYMBOLS, size=(batch, LENGTH + 1))
    at = np.arange(LENGTH + 1) % drawn[:, None]  # (B, T + 1): where in the first copy
    return np.take_along_axis(ids, at, axis=1), drawn


def pairs(rng: np.random.Generator, batch: int, periods: tuple[int, int] = PERIODS) -> tuple[Ids, Ids]:
    """Make a batch to train on: symbols, and those that follow them, (B, T) each."""
    ids, _ = repeats(rng, batch, periods)
    return ids[:, :-1], ids[:, 1:]


def induction(maps: Array, periods: Ids) -> Array:
    """Return the induction score: the second copy's mean weight on the position after the same symbol.

    maps: (B, ..., T, T). periods: (B,). Returns (...,).
    """
    per_sequence = [
        np.diagonal(weights, 1 - P, -2, -1)[..., 1 : P + 1].mean(axis=-1)
        for weights, P in zip(maps, periods, strict=True)
    ]
    return np.asarray(np.mean(per_sequence, axis=0))


def previous(maps: Array) -> Array:
    """Return the mean weight on the position before: (B, ..., T, T) → (...,)."""
    mean: Array = np.diagonal(maps, -1, -2, -1).mean(axis=-1).mean(axis=0)
    return mean


class Moment(NamedTuple):
    """A model at one step of its training, on sequences that it has not seen."""

    step: int
    loss: float  # nats, of what a repeat has settled
    right: float  # share, of the same
    induction: Array  # (layers, heads)
    previous: Array
    map: Array  # (T, T): of the sequence that is shown, and the head that ends as the best copyist


class Film(NamedTuple):
    """One training, moment by moment."""

    model: GPT
    moments: list[Moment]


def new_model(num_layers: int, positions: str = "rotary", seed: int = 0, d_model: int = 32) -> GPT:
    sizes: dict[str, Any] = {
        "vocab": SYMBOLS,
        "d_model": d_model,
        "num_heads": 2,
        "num_layers": num_layers,
        "max_length": LENGTH,
    }
    return GPT(GPTConfig(positions=positions, **sizes), np.random.default_rng(seed))


def measured(model: GPT, ids: Ids, periods: Ids, **trying: Any) -> tuple[float, float, Array]:
    """Return loss and share right of what is settled, and the maps, (B, layers, h, T, T).

    The other arguments are those of `measures.run`.
    """
    logits, cache = run(model, ids[:, :-1], **trying)  # (B, T, V)
    maps = np.stack(model.maps(cache)["decoder"], axis=1)
    settled = np.arange(1, LENGTH + 1) >= periods[:, None]  # the next symbol has been seen a period ago
    losses = of_next(logits, ids)
    right = logits.argmax(axis=-1) == ids[:, 1:]
    return float(losses[settled].mean()), float(right[settled].mean()), maps


def shown_sequence() -> Ids:
    """Make the sequence whose maps are shown, (1, T + 1)."""
    return repeats(np.random.default_rng(12), 1, (MAP_PERIOD, MAP_PERIOD))[0]


def moment(model: GPT, step: int, test: tuple[Ids, Ids]) -> Moment:
    """Measure with the maps of all heads, (layers, heads, T, T): which one ends as the best, only the end can tell."""
    loss, right, maps = measured(model, *test)
    shown = np.stack(model.maps(model.forward(shown_sequence()[:, :-1])[1])["decoder"])[:, 0]
    return Moment(step, loss, right, induction(maps, test[1]), previous(maps), shown)


def grow(
    num_layers: int,
    steps: int,
    positions: str = "rotary",
    periods: tuple[int, int] = PERIODS,
    seed: int = 0,
    progress: bool = True,
    every: int | None = None,
    d_model: int = 32,
) -> Film:
    """Train a GPT on repeats; measure it, on periods from 6 to 16, at regular steps."""
    model = new_model(num_layers, positions, seed, d_model)
    test = repeats(np.random.default_rng(99), 128)
    moments = [moment(model, 0, test)]

    def look(step: int, loss: float, history: training.History) -> None:
        moments.append(moment(model, step, test))

    schedule: Callable[[int], float] = partial(
        training.warmup_linear, peak=PEAK, warmup=min(50, steps // 2), total=steps + 1
    )
    every = every or max(1, steps // FRAMES)
    training.fit(
        model,
        lambda rng: pairs(rng, 32, periods),
        steps,
        schedule=schedule,
        callback=look,
        every=every,
        seed=seed,
        progress=progress,
    )
    best = np.unravel_index(moments[-1].induction.argmax(), moments[-1].induction.shape)
    return Film(model, [m._replace(map=m.map[best]) for m in moments])


def copied(model: GPT, **trying: Any) -> float:
    """Return the share right of what a repeat has settled, on sequences not seen in training.

    The other arguments are those of `measures.run`.
    """
    return measured(model, *repeats(np.random.default_rng(99), 128), **trying)[1]


SHARPNESS = 50.0  # of scores that are 0 or 1


def by_hand(make: Callable[[int, int], Any]) -> None:
    """Run two heads that were written by hand on random repeats, and say how well they copy.

    make: (V, T) -> QK_0, OV_0, QK_1, OV_1, as the exercise asks for.
    """
    matrices = make(SYMBOLS, LENGTH)
    ids, periods = repeats(np.random.default_rng(99), 128)
    answers = run_by_hand(ids[:, :-1], *matrices)  # (B, T)
    settled = np.arange(1, LENGTH + 1) >= periods[:, None]
    print(f"{(answers == ids[:, 1:])[settled].mean():.0%} of the copy right, without any training")


def run_by_hand(ids: Ids, QK_0: Array, OV_0: Array, QK_1: Array, OV_1: Array) -> Ids:
    """Run two heads without norms, feed-forward layers and positions of their own: ids (B, T) → answers (B, T)."""
    T = ids.shape[1]
    x = np.zeros((*ids.shape, 3 * SYMBOLS + T))  # (B, T, d): symbol, position, symbol before, answer
    x[..., :SYMBOLS] = np.eye(SYMBOLS)[ids]
    x[..., SYMBOLS : SYMBOLS + T] = np.eye(T)
    for QK, OV in ((QK_0, OV_0), (QK_1, OV_1)):
        scores = np.where(np.tri(T, dtype=bool), SHARPNESS * x @ QK @ x.swapaxes(-1, -2), -np.inf)  # (B, T, T)
        x = x + ops.softmax(scores) @ x @ OV
    answers: Ids = x[..., -SYMBOLS:].argmax(axis=-1)
    return answers
