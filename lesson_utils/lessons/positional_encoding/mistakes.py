"""The ways to get a table of sinusoids, its rotation matrix, and the adding of positions wrong."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson_utils._checks import Array
from lesson_utils.exercises.old_checker import Misconception, together

Rates = Callable[[int, int, float], Array]  # (length or offset, d_model, base) → radians a position, for each pair


def _right(n: int, d_model: int, base: float) -> Array:
    return base ** (-np.arange(0, d_model, 2) / d_model)


# Ways to turn the hands too fast or too slowly; the same for the table and for the matrix.
_RATES: list[tuple[str, str, list[Rates]]] = [
    (
        "exponent doubled",
        "Your exponent is twice too large. 2i in the formula counts 0, 2, 4 … up to d_model − 2, as `np.arange(0, d_model, 2)` "
        "does: divide that by d_model, and do not double it again.",
        [lambda n, d, base: base ** (-2 * np.arange(0, d, 2) / d)],
    ),
    (
        "exponent halved",
        "Your exponent is half as large as it should be: pair i has 2i / d_model, not i / d_model.",
        [lambda n, d, base: base ** (-np.arange(d // 2) / d)],
    ),
    (
        "pairs counted from 1",
        "You count pairs from 1. Pair i counts from 0: the first exponent is 0, the last (d_model − 2) / d_model.",
        [lambda n, d, base: base ** (-np.arange(2, d + 1, 2) / d)],
    ),
    (
        "multiplied by the power",
        "You multiply by base^(2i/d_model), so later pairs turn faster. Divide by it: they turn more slowly.",
        [lambda n, d, base: base ** (np.arange(0, d, 2) / d)],
    ),
    (
        "last exponent 1",
        "Your exponents run from 0 to 1 with 1 included. In the formula the last one is (d_model − 2) / d_model: the exponents "
        "are 2i / d_model. (Some libraries do it your way; the paper does not.)",
        [lambda n, d, base: base ** -np.linspace(0, 1, d // 2)],
    ),
    (
        "base ignored",
        "You use 10 000, whatever `base` is. Take the argument.",
        [lambda n, d, base: 10000.0 ** (-np.arange(0, d, 2) / d)],
    ),
    (
        "one speed for all",
        "All your pairs turn at the same speed, 1 radian a position. Pair i is slower: divide by base^(2i/d_model).",
        [lambda n, d, base: np.ones(d // 2)],
    ),
    (
        "with 2π",
        "There is a factor 2π in your angles. The angle is pos / base^(2i/d_model), in radians; 2π appears in the wavelength "
        "only.",
        [lambda n, d, base: 2 * math.pi * base ** (-np.arange(0, d, 2) / d)],
    ),
]

# --- The table ------------------------------------------------------------------------------------------------------

Layout = Callable[[Array], Array]  # angles (length, d_model / 2) → table


def _interleaved(first: Array, second: Array) -> Array:
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


def _table(rates: Rates, layout: Layout, start: int = 0) -> Callable[..., Array]:
    def wrong(length: int, d_model: int, base: float) -> Array:
        return layout(np.arange(start, start + length)[:, None] * rates(length, d_model, base))

    return wrong


def _columns(exponent: Callable[[Any, int], Any]) -> Callable[..., Array]:
    """Each column with a speed of its own."""

    def wrong(length: int, d_model: int, base: float) -> Array:
        angles = np.arange(length)[:, None] / base ** exponent(np.arange(d_model), d_model)
        return np.where(np.arange(d_model) % 2, np.cos(angles), np.sin(angles))

    return wrong


_RIGHT_LAYOUT: Layout = lambda a: _interleaved(np.sin(a), np.cos(a))  # noqa: E731

_LAYOUTS: list[tuple[str, str, list[Layout]]] = [
    (
        "sine and cosine swapped",
        "Sine and cosine have changed places: sines belong in the even columns 0, 2, 4 …, cosines in the odd ones.",
        [lambda a: _interleaved(np.cos(a), np.sin(a))],
    ),
    (
        "sines only",
        "All your columns are sines. The odd columns hold the cosines of the same angles.",
        [lambda a: _interleaved(np.sin(a), np.sin(a))],
    ),
    (
        "cosines only",
        "All your columns are cosines. The even columns hold the sines of the same angles.",
        [lambda a: _interleaved(np.cos(a), np.cos(a))],
    ),
    (
        "halves",
        "You have put the sines in the first half of the columns and the cosines in the second. In the formula they take turns: "
        "`table[:, 0::2]` and `table[:, 1::2]`. (Some libraries use halves; a model can't tell, but a stored table can.)",
        [lambda a: np.concatenate([np.sin(a), np.cos(a)], axis=1)],
    ),
    (
        "halves, cosines first",
        "Two things to mend.\n1. Sines and cosines take turns, column by column; yours stand in two halves.\n2. Sines come first.",
        [lambda a: np.concatenate([np.cos(a), np.sin(a)], axis=1)],
    ),
    (
        "pairs not joined",
        "Your result has an axis of length 2 too many: the pairs are not joined yet. Reshape it to (length, d_model), or write "
        "sines and cosines into `table[:, 0::2]` and `table[:, 1::2]`.",
        [lambda a: np.stack([np.sin(a), np.cos(a)], axis=-1)],
    ),
    (
        "transposed",
        "Your table lies on its side. A row is a position, a column an entry of its vector: shape (length, d_model).",
        [lambda a: _interleaved(np.sin(a), np.cos(a)).T],
    ),
    (
        "whole numbers",
        "Your table holds whole numbers: everything behind the point was cut off. Make it without `dtype=int`.",
        [lambda a: _interleaved(np.sin(a), np.cos(a)).astype(int)],
    ),
    (
        "angles",
        "These are the angles. Take the sine of each for an even column, and the cosine for the odd one beside it.",
        [lambda a: a, lambda a: np.repeat(a, 2, axis=1)],
    ),
]

_TABLE_RATES = [
    *_RATES,
    (
        "brackets",
        "`pos / base ** 2 * i / d_model` is worked out from the left: put the exponent in brackets, `base ** (2 * i / d_model)`.",
        [lambda n, d, base: np.arange(d // 2) / base**2 / d],
    ),
    (
        "divided by the length",
        "Your exponents are divided by the number of positions. Divide by d_model: 2i / d_model.",
        [lambda n, d, base: base ** (-np.arange(0, d, 2) / n)],
    ),
    (
        "twice as wide",
        "You have a pair for each column, twice as many as there is room for. There are d_model / 2 pairs: "
        "`np.arange(0, d_model, 2)`.",
        [lambda n, d, base: base ** (-np.arange(d) / d), lambda n, d, base: base ** (-2 * np.arange(d) / d)],
    ),
]

_SLOW = [(Misconception(n, m, *(_table(r, _RIGHT_LAYOUT) for r in ways)), ways) for n, m, ways in _TABLE_RATES]
_LAID = [(Misconception(n, m, *(_table(_right, way) for way in ways)), ways) for n, m, ways in _LAYOUTS]


def _not_lined_up(angles: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def wrong(length: int, d_model: int, base: float) -> Array:
        return angles(np.arange(length), base ** (np.arange(0, d_model, 2) / d_model))

    return wrong


TABLE = (
    *(mistake for mistake, _ in _SLOW),
    *(mistake for mistake, _ in _LAID),
    Misconception(
        "an exponent for each column",
        "Your sine and its cosine have different angles: each column got an exponent of its own. A pair of columns, 2i and "
        "2i + 1, shares the exponent 2i / d_model.",
        _columns(lambda column, d: column / d),
        _columns(lambda column, d: 2 * column / d),
    ),
    Misconception(
        "column number for pair number",
        "Your pairs share their exponents, but they are twice too large: for column c the pair is i = c // 2, and its exponent "
        "is 2 * (c // 2) / d_model.",
        _columns(lambda column, d: (column % 2) * 2 * (column // 2) / d),
    ),
    Misconception(
        "positions from 1",
        "Your positions begin at 1. They begin at 0: the first row is 0, 1, 0, 1 …",
        _table(_right, _RIGHT_LAYOUT, start=1),
    ),
    Misconception(
        "axes do not line up",
        "`np.arange(length)` has shape (length,), the divisors (d_model / 2,). For all combinations make the positions a column: "
        "`np.arange(length)[:, None]`.",
        _not_lined_up(lambda pos, power: pos / power),
        _not_lined_up(lambda pos, power: power * pos),
    ),
)
TABLE_PAIRS = tuple(
    together(slow, laid, *(_table(rate, way) for rate in rates for way in ways))
    for slow, rates in _SLOW
    for laid, ways in _LAID
)

# --- The rotation matrix --------------------------------------------------------------------------------------------

Block = Callable[[Array, Array], list[list[Any]]]  # cos a, sin a → the entries of a 2 × 2 block


def _shift(rates: Rates, block: Block, halves: bool = False) -> Callable[..., Array]:
    def wrong(offset: int, d_model: int, base: float) -> Array:
        angles = offset * rates(offset, d_model, base)
        first = np.arange(d_model // 2) if halves else np.arange(0, d_model, 2)
        second = first + (d_model // 2 if halves else 1)
        (aa, ab), (ba, bb) = block(np.cos(angles), np.sin(angles))
        M = np.zeros((d_model, d_model))
        M[first, first], M[first, second], M[second, first], M[second, second] = aa, ab, ba, bb
        return M

    return wrong


_TURN: Block = lambda c, s: [[c, s], [-s, c]]  # noqa: E731

_BLOCKS: list[tuple[str, str, list[Block]]] = [
    (
        "turned back",
        "Your matrix turns the other way: it moves back by `offset`. Sine comes first in a pair, so the block is "
        "[[cos a, sin a], [−sin a, cos a]]. (Textbooks' [[cos, −sin], [sin, cos]] is for cosine first, or for rows, `P @ M`.)",
        [lambda c, s: [[c, -s], [s, c]]],
    ),
    (
        "no minus",
        "Both sines in your blocks are positive. One needs a minus: cos(x + a) = cos x cos a − sin x sin a.",
        [lambda c, s: [[c, s], [s, c]]],
    ),
    (
        "two minuses",
        "Both sines in your blocks are negative. The first is positive: sin(x + a) = sin x cos a + cos x sin a.",
        [lambda c, s: [[c, -s], [-s, c]]],
    ),
    (
        "sine and cosine swapped",
        "Sine and cosine have changed places. For offset 0 the matrix must change nothing, so cos 0 = 1 belongs on the diagonal.",
        [lambda c, s: [[s, c], [-c, s]], lambda c, s: [[s, c], [c, -s]], lambda c, s: [[s, c], [c, s]]],
    ),
    (
        "diagonal only",
        "Your matrix has entries on the diagonal only. Each pair mixes its two columns: sin a and −sin a stand beside the "
        "cosines.",
        [lambda c, s: [[c, 0 * c], [0 * c, c]], lambda c, s: [[s, 0 * c], [0 * c, c]]],
    ),
    (
        "half a block",
        "One of the two rows of your blocks is missing: both the sine and the cosine of a pair have to be computed anew.",
        [lambda c, s: [[c, s], [0 * c, 0 * c]], lambda c, s: [[0 * c, 0 * c], [-s, c]]],
    ),
]
_TURNED = [(Misconception(n, m, *(_shift(_right, way) for way in ways)), ways) for n, m, ways in _BLOCKS]
_SHIFT_SLOW = [(Misconception(n, m, *(_shift(r, _TURN) for r in ways)), ways) for n, m, ways in _RATES]


def _overlapping(offset: int, d_model: int, base: float) -> Array:
    M = np.zeros((d_model, d_model))
    for i, rate in enumerate(_right(offset, d_model, base)):
        c, s = np.cos(offset * rate), np.sin(offset * rate)
        M[i : i + 2, i : i + 2] = [[c, s], [-s, c]]
    return M


def _blocks(offset: int, d_model: int, base: float) -> Array:
    a = offset * _right(offset, d_model, base)
    return np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])  # (2, 2, d_model / 2)


def _first_block(offset: int, d_model: int, base: float) -> Array:
    M = np.zeros((d_model, d_model))
    c, s = np.cos(offset), np.sin(offset)
    M[:2, :2] = [[c, s], [-s, c]]
    return M


def _on_ones(offset: int, d_model: int, base: float) -> Array:
    M = _shift(_right, _TURN)(offset, d_model, base)
    pair = np.arange(d_model) // 2
    return np.where(pair[:, None] == pair, M, 1.0)


SHIFT = (
    *(mistake for mistake, _ in _TURNED),
    *(mistake for mistake, _ in _SHIFT_SLOW),
    Misconception(
        "halves",
        "Your blocks join column i with column i + d_model / 2. In this table sine and cosine stand side by side: join 2i with "
        "2i + 1.",
        _shift(_right, _TURN, halves=True),
        _shift(_right, lambda c, s: [[c, -s], [s, c]], halves=True),
    ),
    Misconception(
        "offset ignored",
        "Your matrix moves on by one position, whatever `offset` is. The angle is offset / base^(2i/d_model).",
        lambda offset, d, base: _shift(_right, _TURN)(1, d, base),
    ),
    Misconception(
        "blocks overlap",
        "Your blocks overlap: pair i begins at row and column 2i, not at i.",
        _overlapping,
    ),
    Misconception(
        "first block only",
        "Only the first 2 × 2 block is filled. If you wrote a loop, does `return` stand inside it? It belongs below, as far left "
        "as `for`.",
        _first_block,
    ),
    Misconception(
        "blocks not placed",
        "These are the 2 × 2 blocks, in an array with three axes. Put them along the diagonal of a (d_model, d_model) matrix of "
        "zeros.",
        _blocks,
        lambda offset, d, base: _blocks(offset, d, base).transpose(2, 0, 1),
    ),
    Misconception(
        "encoding of the offset",
        "This is the row PE(offset). A matrix is asked for that takes PE(pos) to PE(pos + offset) for every pos.",
        lambda offset, d, base: _table(_right, _RIGHT_LAYOUT, start=offset)(1, d, base)[0],
    ),
    Misconception(
        "ones outside the blocks",
        "Outside the blocks your matrix holds ones. There it must be 0, so that pairs do not mix: begin with `np.zeros`.",
        _on_ones,
    ),
)
SHIFT_PAIRS = tuple(
    together(slow, turned, *(_shift(rate, way) for rate in rates for way in ways))
    for slow, rates in _SHIFT_SLOW
    for turned, ways in _TURNED
)

# --- Adding positions -----------------------------------------------------------------------------------------------

ADD = (
    Misconception(
        "along the batch axis",
        "This is the bug itself: `len(X)` is B, the number of sequences. All tokens of a sequence get the same vector, that of the "
        "sequence's place in the batch. Each *token* needs a row: `table[:T]`, with T = `X.shape[1]`.",
        lambda X, table: X + table[: len(X), None],
    ),
    Misconception(
        "cut to the number of sequences",
        "You cut the table to `len(X)` rows, the number of sequences. One row for each token is needed: `table[:X.shape[1]]`.",
        lambda X, table: X + table[: len(X)],
    ),
    Misconception(
        "cut to the width",
        "You cut the table to d_model rows. One row for each token is needed: `table[:X.shape[1]]`.",
        lambda X, table: X + table[: X.shape[-1]],
        lambda X, table: X + table[: X.shape[2], None],
    ),
    Misconception(
        "table not cut",
        "The table can have more rows than there are tokens. Take the first T of them: `table[:X.shape[1]]`.",
        lambda X, table: X + table,
        lambda X, table: X + table[None],
    ),
    Misconception(
        "axis in the wrong place",
        "You take T rows, which is right, and then move them to the first axis, which counts sequences. Leave out the `None`: "
        "(T, d_model) lines up with the last two axes of X by itself.",
        lambda X, table: X + table[: X.shape[1], None],
    ),
    Misconception(
        "positions across the width",
        "You add a number to a column of X for each position. A row of the table belongs to a token: (T, d_model) as it is, without "
        "transposing.",
        lambda X, table: X + table[: X.shape[1]].T,
    ),
    Misconception(
        "one row for all tokens",
        "All tokens get the same row of the table, so they still do not know where they stand. Token t needs row t.",
        lambda X, table: X + table[0],
        lambda X, table: X + table[X.shape[1] - 1],
        lambda X, table: X + table[-1],
        lambda X, table: X + table[: X.shape[1]].mean(axis=0),
        lambda X, table: X + table[: X.shape[1]].sum(axis=0),
    ),
    Misconception(
        "running on through the batch",
        "Your positions run on from one sequence to the next. Each sequence starts at position 0 again.",
        lambda X, table: X + table[: X.shape[0] * X.shape[1]].reshape(X.shape),
    ),
    Misconception(
        "last rows",
        "You add the last T rows of the table. Token 0 has position 0: take the first T rows.",
        lambda X, table: X + table[-X.shape[1] :],
    ),
    Misconception(
        "rows from 1",
        "You start with row 1 of the table. Token 0 has position 0.",
        lambda X, table: X + table[1 : X.shape[1] + 1],
    ),
    Misconception(
        "multiplied",
        "You multiply by the positions. They are added: X + P.",
        lambda X, table: X * table[: X.shape[1]],
    ),
    Misconception(
        "positions only",
        "These are the positions; the tokens are gone. Add the two: X + P.",
        lambda X, table: np.zeros_like(X) + table[: X.shape[1]],
        lambda X, table: table[: X.shape[1]],
    ),
    Misconception(
        "concatenated",
        "You put the positions beside the tokens, which makes the vectors wider. They are added, and the width stays d_model.",
        lambda X, table: np.concatenate([X, np.zeros_like(X) + table[: X.shape[1]]], axis=-1),
    ),
    Misconception(
        "embeddings scaled",
        "You multiply the embeddings by √d_model. The paper does that (section 3.4), but as part of the embedding; here X has come "
        "through it already.",
        lambda X, table: X * math.sqrt(X.shape[-1]) + table[: X.shape[1]],
    ),
    Misconception(
        "nothing added",
        "Your function gives X back as it came. Add the first T rows of the table, `table[:X.shape[1]]`.",
        lambda X, table: X,
    ),
)
