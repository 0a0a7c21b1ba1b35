"""The exercises of notebook 04."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.positional_encoding import mistakes
from lesson_utils.maths import positions as library
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Exercise

# --- The table ------------------------------------------------------------------------------------------------------


def _table_cases(rng: np.random.Generator) -> Sequence[Case]:
    sizes = ((7, 10, 10000.0), (5, 8, 100.0), (4, 6, 10.0), (12, 4, 50.0), (150, 16, 10000.0), (1, 6, 10000.0))
    return [
        Case(f"{length} positions, d_model = {d_model}, base {base:g}", (length, d_model, base))
        for length, d_model, base in sizes
    ]


_TABLE = Exercise(
    name="sinusoids",
    called="my_table",
    takes="length, d_model, base=10000.0",
    task="""The sinusoidal table: row pos is the vector of position pos, counted from 0.

length: how many positions. d_model: an even width. base: a number above 1.
Returns (length, d_model), float64: sin(pos / base^(2i/d_model)) in column 2i,
the cosine of the same angle in column 2i + 1. NumPy only.""",
    reference=library.sinusoidal_encoding,
    steps={
        "pos": "pos = np.arange(length)[:, None]  # (length, 1)",
        "exponents": "exponents = np.arange(0, d_model, 2) / d_model  # (d_model / 2,)",
        "power": "power = base**exponents",
        "angles": "angles = pos / power  # (length, d_model / 2)",
        "table": "table = np.empty((length, d_model))",
        "sines": "table[:, 0::2] = np.sin(angles)",
        "cosines": "table[:, 1::2] = np.cos(angles)",
        "answer": "return table",
    },
    cases=_table_cases,
    returns=("table",),
    hints=(
        "For the angles you need a column of positions, (length, 1), and a row of divisors, (d_model / 2,). Which exponents "
        "stand in that row? Write down the first three.",
        "`np.arange(length)[:, None]` is a column of positions, `base ** (np.arange(0, d_model, 2) / d_model)` a row of "
        "divisors. Dividing one by the other, NumPy forms all combinations. (`np.arange(0, d_model, 2)` counts 0, 2, 4 …: "
        "it is the 2i of the formula already.)",
        "Make `table = np.empty((length, d_model))`. `table[:, 0::2]` are its even columns, `table[:, 1::2]` the odd ones.",
    ),
    mistakes=mistakes.TABLE,
    library=(library.sinusoidal_encoding,),
    praise="Six tables, from 4 columns to 16, three bases besides 10 000. This is section 3.5 of “Attention Is All You Need”.",
    dtype="kept",
)

# --- The rotation matrix --------------------------------------------------------------------------------------------


def _shift_cases(rng: np.random.Generator) -> Sequence[Case]:
    sizes = ((3, 8, 10000.0), (-2, 6, 100.0), (1, 2, 10.0), (0, 4, 10000.0), (250, 10, 1000.0))
    return [
        Case(f"offset {offset}, d_model = {d_model}, base {base:g}".replace("-", "−"), (offset, d_model, base))
        for offset, d_model, base in sizes
    ]


_SHIFT = Exercise(
    name="shift_matrix",
    called="my_shift_matrix",
    takes="offset, d_model, base=10000.0",
    task="""The matrix M with M @ PE(pos) = PE(pos + offset), for every pos.

offset: a whole number, of any sign. d_model: an even width. base: as in the
table. Returns (d_model, d_model). NumPy; a loop over the pairs is fine.""",
    reference=library.shift_matrix,
    steps={
        "M": "M = np.zeros((d_model, d_model))",
        "power": "power = base ** (np.arange(0, d_model, 2) / d_model)",
        "angles": "a = offset / power  # an angle for each pair",
        "places": "i = np.arange(0, d_model, 2)  # the first column of each pair",
        "cosines": "M[i, i] = M[i + 1, i + 1] = np.cos(a)",
        "above": "M[i, i + 1] = np.sin(a)",
        "below": "M[i + 1, i] = -np.sin(a)",
        "answer": "return M",
    },
    cases=_shift_cases,
    returns=("M",),
    hints=(
        "The matrix is all zeros but for d_model / 2 blocks of 2 × 2 along its diagonal, one for each pair of columns. Each "
        "block needs its own angle.",
        "The pair in the columns 2i and 2i + 1 turns by `a = offset / base ** (2 * i / d_model)`. A loop over the pairs is fine.",
        "The block is [[cos a, sin a], [−sin a, cos a]]: it makes (sin(x + a), cos(x + a)) out of (sin x, cos x).",
    ),
    mistakes=mistakes.SHIFT,
    library=(library.shift_matrix,),
    praise="Forwards, backwards, not at all, and 250 steps: one matrix an offset, for every position.",
)

# --- Find the bug ---------------------------------------------------------------------------------------------------


def _add_reference(X: Array, table: Array) -> Array:
    return np.asarray([[x + table[t] for t, x in enumerate(sequence)] for sequence in X]).astype(X.dtype)


def _add_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, B: int, T: int, d_model: int, rows: int, dtype: type = np.float64) -> Case:
        return Case(label, (rng.normal(size=(B, T, d_model)).astype(dtype), rng.normal(size=(rows, d_model))))

    cancelled = 1000 * rng.normal(size=(9, 5))  # in the small differences, a table rounded to float32 shows
    return [
        case("3 sequences of 5 tokens", 3, 5, 4, 20),
        case("2 sequences as long as the table", 2, 6, 8, 6),
        case("4 sequences of 4 tokens", 4, 4, 6, 17),
        case("1 sequence of 7 tokens", 1, 7, 2, 12),
        case("6 sequences of 2 tokens", 6, 2, 3, 13),
        Case("2 sequences that nearly cancel the table", (rng.normal(size=(2, 4, 5)) - cancelled[:4], cancelled)),
        case("float32 input", 2, 3, 7, 10, np.float32),
        case("as many tokens as columns", 2, 5, 5, 8),
        case("1 sequence of 1 token", 1, 1, 4, 9),
    ]


_ADD = Exercise(
    name="add_positions",
    takes="X, table",
    task="""Add to each token the row of the table for its position, counted from 0.

X: (B, T, d_model). table: (rows, d_model), float64, with T rows or more.
Returns (B, T, d_model), in the dtype of X; X stays as it was. NumPy only.""",
    reference=_add_reference,
    steps={
        "T": "T = X.shape[-2]",
        "rows": "rows = table[:T]  # (T, d_model) lines up with the last two axes of X",
        "answer": "return X + rows.astype(X.dtype)",
    },
    cases=_add_cases,
    returns=("output",),
    hints=(
        "Write the shapes down: X is (B, T, d_model). How many rows of the table are needed, and which axis of X must they "
        "line up with?",
        "One row for each *token*: `table[:T]`, where T is `X.shape[1]`. `len(X)` is B, the number of sequences.",
        "NumPy lines up shapes from the right: (B, T, d_model) + (T, d_model) is just right, without `None`. The table is "
        "float64: `.astype(X.dtype)` keeps a float32 X what it was.",
    ),
    mistakes=mistakes.ADD,
    praise="Nine batches, with as many sequences as tokens among them, and float32 stays float32. The bug is gone.",
    dtype="kept",
)

# --- Rotary positions -----------------------------------------------------------------------------------------------


def _rotate_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("5 positions from 0 on, d = 8", (rng.normal(size=(5, 8)), np.arange(5), 10000.0)),
        Case("3 positions from 40 on, d = 6", (rng.normal(size=(3, 6)), np.arange(40, 43), 10000.0)),
        Case("leading axes (2, 3), 4 positions, d = 10", (rng.normal(size=(2, 3, 4, 10)), np.arange(4), 10000.0)),
        Case("base 10", (rng.normal(size=(6, 4)), np.arange(6), 10.0)),
        Case("a single pair of columns", (rng.normal(size=(7, 2)), np.arange(7), 50.0)),
        Case("positions in no order", (rng.normal(size=(4, 12)), np.array([9, 2, 2, 31]), 10000.0)),
        Case("positions below 0", (rng.normal(size=(4, 6)), np.arange(-3, 1), 10000.0)),
        Case("as many sequences as positions", (rng.normal(size=(4, 4, 6)), np.arange(4), 10000.0)),
        Case("a single position", (rng.normal(size=(1, 6)), np.array([7]), 10000.0)),
    ]


_ROTATE = Exercise(
    name="rotate",
    called="my_rotate",
    takes="x, positions, base=10000.0",
    task="""Turn each pair of neighbouring columns of x, (2i, 2i + 1), by position · base^(−2i/d).

x: queries or keys, (..., T, d) with d even. positions: (T,), whole numbers.
Returns x turned, (..., T, d); x stays as it was. NumPy only.""",
    reference=library.rotary,
    steps={
        "exponents": "exponents = np.arange(0, x.shape[-1], 2) / x.shape[-1]  # (d / 2,)",
        "angles": "angles = positions[:, None] / base**exponents  # (T, d / 2)",
        "pairs": "a, b = x[..., 0::2], x[..., 1::2]  # (..., T, d / 2)",
        "out": "turned = np.empty_like(x)",
        "first": "turned[..., 0::2] = a * np.cos(angles) - b * np.sin(angles)",
        "second": "turned[..., 1::2] = a * np.sin(angles) + b * np.cos(angles)",
        "answer": "return turned",
    },
    cases=_rotate_cases,
    returns=("turned",),
    hints=(
        "First all angles, (T, d / 2): a column of positions against a row of divisors, base^(2i/d). Then two lines for the two "
        "entries of a pair.",
        "`a, b = x[..., 0::2], x[..., 1::2]` are the first and the second entries of all pairs, (..., T, d / 2) each.",
        "`turned = np.empty_like(x)`; its even columns are `a * np.cos(angles) - b * np.sin(angles)`, its odd ones "
        "`a * np.sin(angles) + b * np.cos(angles)`.",
    ),
    mistakes=mistakes.ROTATE,
    library=(library.rotary,),
    praise="Nine cases, with positions below 0 and from 40 on among them. Llama, Mistral, Qwen and Gemma turn their queries and keys so.",
)

EXERCISES = (_TABLE, _ADD, _SHIFT, _ROTATE)
