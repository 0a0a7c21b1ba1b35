"""Models of a few lines, with a bug or without: on them a learner's instruments are tried, in microseconds."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Array, as_ids
from lesson_utils.mistakes.run.outcome import Explained

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
        mixes_rows: a share of the mean over the batch gets into each row.
        counts_rows: a row is told how many stand before it.
        starts_again: behind a past, positions are counted from 0.
        counts_calls: a past grows by 1 with each call, however many symbols came.
        looks_ahead: each symbol sees the next one, if it is there.
        rounds_past: with a past, numbers are rounded to halves, those of the first symbols, too.
    """

    seed: int
    mixes_rows: bool = False
    counts_rows: bool = False
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
        B, T = ids.shape
        if isinstance(past, Rest):
            raise Explained(
                "What this line hands over as `past` is the second part of the pair that `forward` returned, and not "
                "the cache. Keep the one from `model.new_past()` in a variable, and hand it over in each call."
            )
        kept = past[0] if past else ToyPast()
        at = 0 if self.starts_again else kept.length
        x = symbols[ids] + places[at : at + T]  # (B, T, V)
        if self.counts_rows:
            x = x + 0.3 * np.arange(B)[:, None, None] * places[0]
        if self.mixes_rows:
            x = x + 0.3 * (x.mean(axis=0) - x)
        if self.looks_ahead:
            x[:, :-1] += 0.3 * symbols[ids[:, 1:]]
        if self.rounds_past and past:
            x = np.round(2 * x) / 2
        total = kept.total + np.cumsum(x, axis=1)
        logits = np.tanh(total / (kept.length + 1 + np.arange(T))[:, None])
        kept.total = total[:, -1:]
        kept.length += 1 if self.counts_calls else T
        return logits, Rest()
