"""The experiment of notebook 03: models that must fetch from four places at once, and what can be measured on them."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom.formats import signed
from lesson_utils.lessons import bugs
from lesson_utils.lessons.attention_bugs import SPLIT, Instead
from lesson_utils.maths import attention, layers, models, tasks
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models.experiments import Change, changed

MultiHeadAttention = Callable[..., tuple[Array, Array]]  # (x, W_Q, W_K, W_V, W_O, num_heads) -> output, weights

LENGTH, PLACES, NUM_SYMBOLS = 24, 4, 20  # of a sequence; to fetch from; to draw from


def short_way(offset: int) -> int:
    """Return the same offset the short way round: +23 is −1."""
    return (offset + LENGTH // 2 - 1) % LENGTH - LENGTH // 2 + 1


OFFSETS = tuple(map(short_way, tasks.scattered_offsets(LENGTH, PLACES)))
SYMBOLS = tasks.letters(NUM_SYMBOLS)


def held_out(n: int = 500) -> tuple[Any, Any]:
    """Draw sequences to test on, the same each time: source (n, T) and target (n, T, 4)."""
    return tasks.gather(np.random.default_rng(99), n, LENGTH, PLACES, NUM_SYMBOLS)


def uneven(source: Array, target: Array) -> tuple[Array, Array]:
    """Let one symbol fill half of the places of sequences (n, T), and return source and target as before."""
    half = np.random.default_rng(0).random(source.shape) < 0.5
    source = np.where(half, source[0, 0], source)
    return source, source[:, (np.arange(LENGTH)[:, None] + OFFSETS) % LENGTH]


def untrained(num_heads: int) -> models.Encoder:
    """Make a model of the notebook's sizes, for the live figures' examples."""
    sizes: Any = {"d_model": 32, "num_layers": 1, "d_ff": 16, "positions": "learned", "max_length": LENGTH}
    symbols = len(SYMBOLS)
    config = models.EncoderConfig(vocab=symbols, classes=symbols, num_heads=num_heads, outputs=PLACES, **sizes)
    return models.Encoder(config, np.random.default_rng(num_heads))


class Result(NamedTuple):
    """The results of a trained model on sequences that it was not trained on."""

    right: Array  # share of right answers, by offset, (4,)
    among: float  # share of answers that are at least one of the four wanted symbols
    maps: Array  # attention weights, mean over the sequences, (h, T, T)
    profile: Array  # of each head: its mean weight by offset, as in `by_offset`, (h, T)
    sharpness: float  # mean of the largest weight of a row

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())


def examine(
    model: models.Encoder, n: int = 500, multi_head: MultiHeadAttention | None = None, W_O: Array | None = None
) -> Result:
    """Run a model on `held_out` sequences, and look at its first layer.

    Args:
        n: how many sequences.
        multi_head: takes the place of our own multi-head attention.
        W_O: takes the place of the layer's own.
    """
    source, target = held_out(n)
    layer, *_ = model.heads()["encoder"]
    changes: list[Change] = [] if W_O is None else [(layer.W_O, "value", W_O)]
    if multi_head:
        changes.append((model.stack.blocks[0].attention, "inner", SimpleNamespace(forward=_by(multi_head, layer))))
    with changed(changes):
        logits, cache = model.forward(source)  # (n, T, 4, V)
    weights = model.maps(cache)["encoder"][0]  # (n, h, T, T)
    answers = logits.argmax(axis=-1)  # (n, T, 4)
    maps = weights.mean(axis=0)  # (h, T, T)
    return Result(
        right=(answers == target).mean(axis=(0, 1)),
        among=float((answers[..., None] == target[:, :, None, :]).any(axis=-1).mean()),
        maps=maps,
        profile=by_offset(maps),
        sharpness=float(weights.max(axis=-1).mean()),
    )


class Survey(NamedTuple):
    """The results of several trained models with h heads each, on sequences that they were not trained on."""

    right: Array  # share of right answers, by offset, (models, 4)
    profile: Array  # of a single head: its mean weight by offset, as in `by_offset`, (models, 1, T); of more, (0,)
    sharpness: Array  # mean of the largest weight of a row, (models,)
    zeros: Array  # shares of right answers with one head's output replaced by zeros, (models, h, 4); or (0,)
    means: Array  # the same, with the head's output replaced by its mean

    @property
    def accuracy(self) -> Array:
        """The share of right answers of each model, (models,)."""
        return np.asarray(self.right.mean(axis=-1))


def survey(several: Sequence[models.Encoder], removed: bool = False) -> Survey:
    """Examine several models of one layer.

    Args:
        removed: measure them without each of their heads, too.
    """
    results = [examine(model) for model in several]
    without: dict[str, Any] = {"zero": np.zeros(0), "mean": np.zeros(0)}
    if removed:
        without = {by: np.stack([_without_each(model, by) for model in several]) for by in without}
    right, profile, sharpness = (
        np.stack([np.asarray(getattr(result, name)) for result in results])
        for name in ("right", "profile", "sharpness")
    )
    profile = profile if profile.shape[1] == 1 else np.zeros(0)
    return Survey(right, profile, sharpness, zeros=without["zero"], means=without["mean"])


def _without_each(model: models.Encoder, by: str, n: int = 200) -> Array:
    """Measure the share of right answers by offset without each head in turn, (h, 4)."""
    source, target = held_out(n)
    (layer,) = model.heads()["encoder"]
    right = []
    for head in range(layer.num_heads):
        with models.trying(model, {"encoder": {0: [head]}}, by):
            answers = model.forward(source)[0].argmax(axis=-1)  # (n, T, 4)
        right.append((answers == target).mean(axis=(0, 1)))
    return np.stack(right)


def widths(d_k: int, d_v: int, seed: int) -> Callable[[models.Encoder], None]:
    """Return a function that gives the heads of a new model keys of width d_k and values of width d_v."""

    def change(model: models.Encoder) -> None:
        (layer,) = model.heads()["encoder"]
        d_model, h, rng = model.config.d_model, layer.num_heads, np.random.default_rng([seed, d_k, d_v])
        layer.W_Q, layer.W_K = (layers.glorot(d_model, h * d_k, rng, np.float32) for _ in range(2))
        layer.W_V = layers.glorot(d_model, h * d_v, rng, np.float32)
        layer.W_O = layers.glorot(h * d_v, d_model, rng, np.float32)

    change.__name__ = f"widths_{d_k}_{d_v}_{seed}"  # by this name its results are stored
    return change


def faster(*names: str, times: float = 4.0) -> Callable[[models.Encoder], Callable[..., None]]:
    """Return a function that makes each step of some parameters of a new model longer, as a higher rate would.

    Args:
        names: of the parameters, or of the parts that hold them.
        times: how many times as long. What the function returns lengthens each step after it, for `training.fit`.
    """

    def change(model: models.Encoder) -> Callable[..., None]:
        params = [param for name, param in model.params().items() if set(names) & set(name.split("."))]
        before = [param.value.copy() for param in params]

        def after_step(*_: object) -> None:
            for n, param in enumerate(params):
                param.value = before[n] + np.float32(times) * (param.value - before[n])
                before[n] = param.value.copy()

        return after_step

    change.__name__ = f"faster_{'_'.join(names)}"  # by this name its results are stored
    return change


class _Held(Instead, layers.MultiHead):
    """One head whose scores are given, the same on every sequence: a model learns all but where to look."""

    def __init__(self, right: layers.MultiHead, scores: Array) -> None:
        super().__init__(right)
        self.scores = scores
        for W in (self.W_Q, self.W_K):  # at 0 they add nothing to the scores, and have no gradient
            W.value = np.zeros_like(W.value)

    def forward(self, x: Array, *_: Any, **__: Any) -> Any:
        return super().forward(x, bias=self.scores)


def weights_held(*shares: float) -> Callable[[models.Encoder], None]:
    """Return a function that holds the weights of a new model's single head at these proportions, by offset."""
    scores = np.full((LENGTH, LENGTH), -30, np.float32)  # so little that the weight counts as 0
    rows = np.arange(LENGTH)
    for offset, share in zip(OFFSETS, shares, strict=True):
        scores[rows, (rows + offset) % LENGTH] = np.log(share)

    def change(model: models.Encoder) -> None:
        (layer,) = model.heads()["encoder"]
        model.stack.blocks[0].attention.inner = _Held(layer, scores)

    change.__name__ = f"weights_held_{'_'.join(map(str, shares))}"  # by this name its results are stored
    return change


def _by(multi_head: MultiHeadAttention, layer: layers.MultiHead) -> Callable[..., Any]:
    """Return a forward pass with the layer's matrices; there is no way back through it."""

    def forward(x: Array, *_: Any) -> Any:
        matrices = (W.value for W in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O))
        y, weights = multi_head(x, *matrices, layer.num_heads)
        return y, SimpleNamespace(attended=SimpleNamespace(weights=weights))

    return forward


def self_attention(x: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, num_heads: int) -> tuple[Array, Array]:
    """Run our own multi-head attention as the exercise has it, for the live figures' examples."""
    return attention.multi_head_attention(x, x, W_Q, W_K, W_V, W_O, num_heads)


def by_offset(weights: Array) -> Array:
    """Average what weights (..., T, T) put on each offset from the query, around the circle: (..., T).

    Entry o is for the offset o, negative ones from the end, as in Python's own indexing.
    """
    size = weights.shape[-1]
    rows = np.arange(size)
    return np.stack([weights[..., rows, (rows + o) % size].mean(axis=-1) for o in range(size)], axis=-1)


def main_offset(profile: Array, least: float = 0.5) -> str:
    """Name the offset that gets most of a head's weight, if one does."""
    best = int(profile.argmax())
    return signed(short_way(best)) if profile[best] >= least else ""


def scramble(model: models.Encoder) -> None:
    """Plant the classic bug in a model of one layer: its heads are split and merged by `reshape` alone."""
    bugs.plant(model, SPLIT)
