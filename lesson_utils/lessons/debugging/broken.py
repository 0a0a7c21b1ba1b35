"""The clinic's patients: small GPTs with a bug, and instruments that find bugs without reading code."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.lessons import bugs
from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array, Ids, as_ids
from lesson_utils.maths.layers import KeyValueCache
from lesson_utils.maths.models.gpt import GPTCache
from lesson_utils.mistakes.run.outcome import Explained


class CountsCalls(KeyValueCache):
    """A cache that counts calls, not positions: after a prompt of T tokens it writes on at place 1."""

    def append(self, K: Array, V: Array) -> tuple[Array, Array]:
        found = super().append(K, V)
        self.length -= K.shape[-2] - 1
        return found


class Patient(models.GPT):
    """A GPT that may be wrong from the loss on, in its cache, or in how it is trained and used."""

    softmax_first = False  # the loss gets probabilities, and takes them for logits
    shifted = True  # the targets are the next symbols
    cache: type[KeyValueCache] = KeyValueCache
    noise: np.random.Generator | None = None  # dropout draws from it, also where nothing is trained
    repeats = False  # the same batch in each step of training

    def forward(
        self, ids: ArrayLike, past: Any = None, rng: Any = None, mask: ArrayLike | None = None, last: bool = False
    ) -> tuple[Array, GPTCache]:
        return super().forward(ids, past, rng or self.noise, mask, last)

    def loss(self, batch: Any) -> float:
        logits, _ = self.forward(batch[0])
        return ops.cross_entropy_forward(self._outputs(logits), self._targets(batch))[0]

    def loss_and_grad(self, batch: Any, rng: Any = None) -> float:
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        given = self._outputs(logits)
        loss, cross = ops.cross_entropy_forward(given, self._targets(batch))
        dlogits = ops.cross_entropy_backward(1.0, cross)
        if self.softmax_first:
            dlogits = ops.softmax_backward(dlogits, given)
        dx = self.tokens.embedding.logits_backward(dlogits, output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def _targets(self, batch: Any) -> Ids:
        return np.asarray(batch[1] if self.shifted else batch[0])

    def _outputs(self, logits: Array) -> Array:
        return ops.softmax(logits) if self.softmax_first else logits

    def new_past(self, keep: int | None = None) -> list[KeyValueCache]:
        return [self.cache(self.config.max_length, keep) for _ in self.stack.blocks]


DROPPING = "dropout left on"
OF_PATIENTS: dict[str, tuple[str, Any]] = {  # bugs around the model's parts
    "softmax twice": ("softmax_first", True),
    "targets not shifted": ("shifted", False),
    "cache counts calls": ("cache", CountsCalls),
    "the same batch again": ("repeats", True),
    DROPPING: ("noise", None),  # a generator for each model
}


def patient(bug: str, vocab: int, seed: int = 0, **sizes: Any) -> Patient:
    """Make a small GPT with a bug; "" is a healthy one. The same seed, the same parameters."""
    chosen: dict[str, Any] = {"d_model": 32, "num_heads": 4, "num_layers": 2, "max_length": 64} | sizes
    if bug == "groups tiled":
        chosen["num_kv_heads"] = 2
    if bug == DROPPING:
        chosen["dropout"] = 0.1
    model = Patient(models.GPTConfig(vocab=vocab, **chosen), np.random.default_rng(seed))
    bugs.plant(model, "")  # right heads by the same code: patients differ in their bug alone, not in rounding
    if bug in OF_PATIENTS:
        name, value = OF_PATIENTS[bug]
        setattr(model, name, np.random.default_rng(0) if bug == DROPPING else value)
    else:
        bugs.plant(model, bug)
    return model


def twin(model: Patient) -> Patient:
    """Make a model of right code with the same parameters."""
    right = Patient(model.config, rng=None)
    for name, param in right.params().items():
        param.value = model.params()[name].value
    return right


# --- Instruments: they run a model twice, and compare -----------------------------------------------------------------
# Each takes a model whose `forward(ids, past, mask=mask)` returns logits, (B, T, V), and something else.

Forward = Callable[..., tuple[Array, Any]]
ROUNDING = 1e-3  # of logits in float32: what moves less has not moved


def leak_in_time(model: Any, ids: Ids, place: int) -> Array:
    """Measure how far each output moves when the symbol at `place` is replaced, (T,). Before `place`, none may move.

    Args:
        ids: (T,).
    """
    changed = ids.copy()
    around = np.roll(ids, -place)  # the nearest symbol before it comes last
    changed[place] = around[around != ids[place]][-1]
    before, after = (model.forward(row[None])[0][0] for row in (ids, changed))  # (T, V) each
    return np.abs(after - before).max(axis=-1)


def leak_across_rows(model: Any, ids: Ids, others: Ids) -> Array:
    """Measure how far a row's outputs move when it stands behind others, and not alone: (T,).

    Args:
        ids: (T,). others: (n, T).
    """
    alone = model.forward(ids[None])[0][0]  # (T, V)
    together = model.forward(np.concatenate([others, ids[None]]))[0][-1]
    return np.abs(together - alone).max(axis=-1)


def order(model: Any, ids: Ids, shuffle: Ids) -> Array:
    """Measure how far outputs are from being shuffled with their inputs, where all see all: (T,).

    Without a mask and without positions attention treats a sentence as a set; then these are 0.

    Args:
        ids: (T,). shuffle: (T,), a permutation of 0 … T − 1.
    """
    everything = np.ones((len(ids), len(ids)), bool)
    straight, shuffled = (model.forward(row[None], mask=everything)[0][0] for row in (ids, ids[shuffle]))
    return np.abs(shuffled - straight[shuffle]).max(axis=-1)


def cache_parity(model: Any, ids: Ids, prompt: int) -> Array:
    """Measure how far outputs with a cache are from those without, (T,): `prompt` symbols at once, then one by one.

    Args:
        ids: (T,).
    """
    whole, past = model.forward(ids[None])[0][0], model.new_past()
    steps = [model.forward(ids[None, :prompt], past)[0][0]]
    steps += [model.forward(ids[None, t : t + 1], past)[0][0] for t in range(prompt, len(ids))]
    return np.abs(np.concatenate(steps) - whole).max(axis=-1)


INSTRUMENTS = (leak_in_time, leak_across_rows, cache_parity, order)


def again(model: Any, ids: Ids) -> float:
    """Measure how far outputs move when nothing is changed, and the model runs once more."""
    first, second = (model.forward(ids[None])[0] for _ in range(2))
    return float(np.abs(second - first).max())


def row_sums(model: Any, ids: Ids) -> Array:
    """Measure how far each query's attention weights are from summing to 1, in the worst head of all layers: (T,)."""
    _, cache = model.forward(ids[None])
    return np.max([np.abs(map_[0].sum(axis=-1) - 1).max(axis=0) for map_ in model.maps(cache)["decoder"]], axis=0)


def looks_ahead(model: Any, ids: Ids) -> float:
    """Return the share of the attention weights that lies on later symbols, over all heads and layers."""
    _, cache = model.forward(ids[None])
    maps = np.stack(model.maps(cache)["decoder"])  # (layers, 1, h, T, T)
    return float(np.triu(maps, 1).sum() / maps.sum())


def single_symbols(model: Any, symbols: Ids) -> float:
    """Measure how far the outputs of symbols, each one alone, are from being all the same. They should not be.

    Args:
        symbols: (n,), different ones.
    """
    outputs = np.stack([model.forward(symbol[None, None])[0][0, 0] for symbol in symbols])  # (n, V)
    return float(np.abs(outputs - outputs[0]).max())


def loss_by_hand(model: Any, rows: Ids) -> float:
    """Return the cross-entropy of the next symbols, in nats, from nothing but the logits.

    Args:
        rows: (B, T + 1).
    """
    logits = model.forward(rows[:, :-1])[0]
    log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return float(-np.take_along_axis(log_p, rows[:, 1:, None], axis=-1).mean())


def gradient(model: Any, batch: Any, rng: np.random.Generator, looks: int = 3, eps: float = 1e-5) -> float:
    """Return the largest relative error of the backward pass, over some numbers of W_Q and W_K, in float64."""
    params = model.params()
    for param in params.values():
        param.grad[...] = 0
    model.loss_and_grad(batch)
    worst = 0.0
    for name, param in params.items():
        if not name.endswith(("W_Q", "W_K")):
            continue
        at = np.unravel_index(np.abs(param.grad).argsort(axis=None)[-looks:], param.grad.shape)
        for place in zip(*at, strict=True):
            value = param.value[place]
            losses = []
            for sign in (1, -1):
                param.value[place] = value + sign * eps
                losses.append(model.loss(batch))
            param.value[place] = value
            slope = (losses[0] - losses[1]) / (2 * eps)
            worst = max(worst, abs(slope - param.grad[place]) / (abs(slope) + abs(param.grad[place]) + 1e-9))
    return float(worst)


# --- Models of a few lines, on which a learner's instruments are tried ------------------------------------------------


VOCAB, LONGEST = 6, 16
_GIVEN = ("a single symbol", "a single row, (T,)")


class Rest:
    """The second part of what `forward` returns, which no instrument needs: who computes with it is told so."""

    __array_ufunc__ = None  # so that NumPy leaves the answer to `_refuse`

    def _refuse(self, *_: object) -> Any:
        raise Explained(
            "`forward` returns a pair, and this line computes with its second part. The logits are the first: "
            "`model.forward(batch)[0]`."
        )

    __array__ = __getitem__ = __iter__ = __len__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _refuse


@dataclass
class ToyPast:
    """The past of a toy: the sum of all that it has seen, and how many symbols those were."""

    total: Array | float = 0.0
    length: int = 0


@dataclass(frozen=True, eq=False)
class Toy:
    """A causal model: each output is a mean of the symbols so far, each with its position, made less even by tanh.

    Args:
        starts_again: behind a past, positions are counted from 0.
        counts_calls: a past grows by 1 with each call, however many symbols came.
        looks_ahead: each symbol sees the next one, if it is there.
        rounds_past: with a past, numbers are rounded to halves, those of the first symbols, too.
    """

    seed: int
    starts_again: bool = False
    counts_calls: bool = False
    looks_ahead: bool = False
    rounds_past: bool = False
    tables: tuple[Array, Array] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        tables = rng.normal(size=(VOCAB, VOCAB)), rng.normal(size=(LONGEST, VOCAB))
        object.__setattr__(self, "tables", tables)

    def new_past(self) -> list[ToyPast]:
        """Return an empty past, for a layer; a toy has one."""
        return [ToyPast()]

    def forward(self, ids: ArrayLike, past: list[ToyPast] | None = None) -> tuple[Array, Any]:
        """Predict what comes after each symbol, as `GPT.forward` does: ids (B, T) -> logits (B, T, V), and a cache."""
        axes = np.ndim(ids)
        if axes < 2:
            row = "`ids[None]` is a batch of one row" if axes else "`ids[None, t : t + 1]` is one row of one symbol"
            raise Explained(f"`forward` takes a batch, (B, T), and this line gives it {_GIVEN[axes]}: {row}.")
        ids = as_ids(ids, "ids", ndim=2)
        symbols, places = self.tables
        T = ids.shape[1]
        if isinstance(past, Rest):
            raise Explained(
                "What this line hands over as `past` is the second part of the pair that `forward` returned, and not "
                "the cache. Keep the one from `model.new_past()` in a variable, and hand it over in each call."
            )
        kept = past[0] if past else ToyPast()
        at = 0 if self.starts_again else kept.length
        x = symbols[ids] + places[at : at + T]  # (B, T, V)
        if self.looks_ahead:
            x[:, :-1] += 0.3 * symbols[ids[:, 1:]]
        if self.rounds_past and past:
            x = np.round(2 * x) / 2
        total = kept.total + np.cumsum(x, axis=1)
        logits = np.tanh(total / (kept.length + 1 + np.arange(T))[:, None])
        kept.total = total[:, -1:]
        kept.length += 1 if self.counts_calls else T
        return logits, Rest()
