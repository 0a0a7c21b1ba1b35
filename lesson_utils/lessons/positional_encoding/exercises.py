"""The exercises of notebook 04, and the ways to get them wrong, as learners type them."""

from collections.abc import Callable, Sequence

import numpy as np

from lesson_utils.maths import positions as library
from lesson_utils.maths.checks import Array
from lesson_utils.mistakes.exercise import Case, Change, Exercise, change

# fmt: off

def _exponents(of: Callable[[str], str], line: str) -> tuple[Change, ...]:
    """Make the mistakes in base^(2i/d_model), for the table and the rotation; `of` makes a line of an exponent."""
    return (
        change('exponent doubled', 'Your exponents are twice as large as they should be. In the formula 2i counts 0, 2, 4 … up to d_model − 2 and is divided by d_model.', **{line: of("2 * np.arange(0, d_model, 2) / d_model")}),
        change('exponent halved', 'Your exponent is half as large as it should be: pair i has 2i / d_model, not i / d_model.', **{line: of("np.arange(d_model // 2) / d_model")}),
        change('pairs counted from 1', 'Your exponents count pairs from 1. Count from 0: the first exponent is 0, the last (d_model − 2) / d_model.', **{line: of("np.arange(2, d_model + 1, 2) / d_model")}),
        change('last exponent 1', 'Your exponents run from 0 to 1 with 1 included. In the formula the last one is (d_model − 2) / d_model: the exponents are 2i / d_model. (Some libraries do it your way; the paper does not.)', **{line: of("np.linspace(0, 1, d_model // 2)")}),
        change("not divided by d_model", "Your exponents are not divided by d_model: they should be 2i / d_model, from 0 to nearly 1.", **{line: of("np.arange(0, d_model, 2)")}),
        change("divided by d_model − 1", "You divide by d_model − 1. The exponents are 2i / d_model: the last is a little less than 1.", **{line: of("np.arange(0, d_model, 2) / (d_model - 1)")}),
    )


TABLE = (
    *_exponents(lambda e: f"exponents = {e}", "exponents"),
    change('multiplied by the power', 'You multiply the positions by the power. Divide by it, pos / base^(2i/d_model): later pairs turn more slowly.', angles="angles = pos * power"),
    change('base ignored', 'You use 10 000, whatever `base` is. Take the argument.', power="power = 10000**exponents"),
    change('one speed for all', 'All your pairs turn at the same speed. Pair i should turn by pos / base^(2i/d_model), and 2i / d_model is a fraction (`//` makes it 0).', angles="angles = pos * np.ones(d_model // 2)"),
    change('with 2π', 'There is a factor 2π in your angles. The angle is pos / base^(2i/d_model), in radians; 2π appears in the wavelength only.', angles="angles = 2 * np.pi * pos / power"),
    change("base times the exponent", "You multiply base and exponent. It is a power, base^(2i/d_model): `base ** (…)`.", power="power = base * exponents"),
    change("exponent and base exchanged", "You raise the exponent to the power of the base. It is the base to the power of the exponent: `base ** (…)`.", power="power = exponents**base"),
    change("a minus too much", "Divide by a power with a plus, or multiply by one with a minus: base^(−2i/d_model) is 1 / base^(2i/d_model) already.", power="power = np.exp(-exponents * np.log(base))"),
    change("log of another base", "`np.log10` and `np.log2` belong to powers of 10 and 2. With `np.exp` goes `np.log`.", power=("power = np.exp(exponents * np.log10(base))", "power = np.exp(exponents * np.log2(base))")),
    change("degrees", "You turn the angles into degrees, or take them for degrees. `np.sin` takes radians, and so is the formula.", angles=("angles = np.deg2rad(pos / power)", "angles = np.rad2deg(pos / power)")),
    change("divided by the length", "Your exponents are divided by the number of positions. Divide by d_model: 2i / d_model.", exponents="exponents = np.arange(0, d_model, 2) / length"),
    change("positions divided by the length", "You divide the positions by their number. They stay whole: 0, 1, 2 …", pos="pos = np.arange(length)[:, None] / length"),
    change(
        'brackets', 'Only a part of your exponent stands in the power: `**` comes before `*` and `/`. Put the whole exponent in brackets: `base ** (…)`.',
        angles=("i = np.arange(d_model // 2)\nangles = pos / base ** 2 * i / d_model", "angles = pos / base ** np.arange(0, d_model, 2) / d_model"),
    ),
    change('twice as wide', 'You have a pair for each column, twice as many as there is room for. There are d_model / 2 pairs: `np.arange(0, d_model, 2)`.', exponents=("exponents = np.arange(d_model) / d_model", "exponents = 2 * np.arange(d_model) / d_model"), table="", sines="", cosines="", answer="return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)"),
    change("a divisor for each column", "You have an exponent for each column, d_model of them, and the table has room for d_model / 2 sines: `np.arange(0, d_model, 2)`.", exponents=("exponents = np.arange(d_model) / d_model", "exponents = 2 * np.arange(d_model) / d_model")),
    change('sine and cosine swapped', 'Sine and cosine have changed places: sines belong in the even columns 0, 2, 4 …, cosines in the odd ones.', sines="table[:, 0::2] = np.cos(angles)", cosines="table[:, 1::2] = np.sin(angles)"),
    change('sines only', 'All your columns are sines. The odd columns hold the cosines of the same angles.', cosines="table[:, 1::2] = np.sin(angles)"),
    change('cosines only', 'All your columns are cosines. The even columns hold the sines of the same angles.', sines="table[:, 0::2] = np.cos(angles)"),
    change("sines missing", "Your even columns hold no sines. Write them into `table[:, 0::2]`.", table="table = np.zeros((length, d_model))", sines=""),
    change("cosines missing", "Your odd columns hold no cosines. Write them into `table[:, 1::2]`.", table="table = np.zeros((length, d_model))", cosines=""),
    change('halves', "You have put the sines in the first half of the columns and the cosines in the second. In the formula they take turns: `table[:, 0::2]` and `table[:, 1::2]`. (Some libraries use halves; a model can't tell, but a stored table can.)", sines="table[:, : d_model // 2] = np.sin(angles)", cosines="table[:, d_model // 2 :] = np.cos(angles)"),
    change('halves, cosines first', 'Two things to mend.\n1. Sines and cosines take turns, column by column; yours stand in two halves.\n2. Sines come first.', sines="table[:, : d_model // 2] = np.cos(angles)", cosines="table[:, d_model // 2 :] = np.sin(angles)"),
    change("into rows", "You write into rows. A row is a position; sines and cosines take turns over the *columns*: `table[:, 0::2]`.", sines="table[0::2] = np.sin(angles)", cosines="table[1::2] = np.cos(angles)"),
    change('pairs not joined', 'Your result has an axis of length 2 too many: the pairs are not joined yet. Reshape it to (length, d_model), or write sines and cosines into `table[:, 0::2]` and `table[:, 1::2]`.', answer="return np.stack([np.sin(angles), np.cos(angles)], axis=-1)"),
    change('transposed', 'Your table lies on its side. A row is a position, a column an entry of its vector: shape (length, d_model).', answer="return table.T"),
    change('whole numbers', 'Your table holds whole numbers: everything behind the point was cut off. Let the array hold floats.', table="table = np.zeros((length, d_model), dtype=int)"),
    change('angles', 'These are the angles. Take the sine of each for an even column, and the cosine for the odd one beside it.', sines="", cosines="", answer=("return angles", "return np.repeat(angles, 2, axis=1)")),
    change(
        'an exponent for each column', 'Your sine and its cosine have different angles: each column got an exponent of its own. A pair of columns, 2i and 2i + 1, shares the exponent 2i / d_model.',
        *(f"a = np.arange(length)[:, None] / base ** ({e} / d_model)\nreturn np.where(np.arange(d_model) % 2, np.cos(a), np.sin(a))" for e in ("np.arange(d_model)", "2 * np.arange(d_model)")),
    ),
    change('column number for pair number', 'Your odd columns have the right exponents, but those of the even columns are all 0. Both columns of a pair share one: for column c it is 2 * (c // 2) / d_model.', "c = np.arange(d_model)\na = np.arange(length)[:, None] / base ** (c % 2 * 2 * (c // 2) / d_model)\nreturn np.where(c % 2, np.cos(a), np.sin(a))"),
    change('positions from 1', 'Your positions begin at 1. They should begin at 0: the first row is 0, 1, 0, 1 …', pos="pos = np.arange(1, length + 1)[:, None]"),
    change('axes do not line up', '`np.arange(length)` has shape (length,), the divisors (d_model / 2,). For all combinations make the positions a column: `np.arange(length)[:, None]`.', pos="pos = np.arange(length)"),
    change("row and column exchanged", "Your positions lie in a row and your divisors in a column, or the shape of the table is turned around. Positions are a column, `np.arange(length)[:, None]`.", "pos = np.arange(length)\nangles = pos / base ** (np.arange(0, d_model, 2) / d_model)[:, None]\ntable = np.empty((length, d_model))\ntable[:, 0::2] = np.sin(angles)\ntable[:, 1::2] = np.cos(angles)\nreturn table", table="table = np.empty((d_model, length))"),
    change("columns i and i + 1", "You write pair i into columns i and i + 1, and the next pair overwrites it. Pair i has the columns 2i and 2i + 1.", "table = np.zeros((length, d_model))\nfor i in range(d_model // 2):\n    a = np.arange(length) / base ** (2 * i / d_model)\n    table[:, i], table[:, i + 1] = np.sin(a), np.cos(a)\nreturn table"),
)

SHIFT = (
    *_exponents(lambda e: f"power = base ** ({e})", "power"),
    change('multiplied by the power', 'Your angles are offset · base^(2i/d_model), but should be offset / base^(2i/d_model): later pairs turn more slowly.', angles="a = offset * power"),
    change('base ignored', 'You use 10 000, whatever `base` is. Take the argument.', power="power = 10000 ** (np.arange(0, d_model, 2) / d_model)"),
    change('one speed for all', 'All your pairs turn at the same speed. Pair i should turn by offset / base^(2i/d_model), and 2i / d_model is a fraction (`//` makes it 0).', angles="a = offset * np.ones(d_model // 2)"),
    change('with 2π', 'There is a factor 2π in your angles. The angle is offset / base^(2i/d_model), in radians; 2π appears in the wavelength only.', angles="a = 2 * np.pi * offset / power"),
    change("offset ignored", "Your matrix is that of one step for any `offset`. The angle is offset / base^(2i/d_model).", angles="a = 1 / power"),
    change("brackets", "Brackets are missing, or stand at the wrong place: base^(2i/d_model) is one power, `base ** (…)`, and `offset` is divided by it.", angles=("a = offset / base ** np.arange(0, d_model, 2) / d_model", "a = (offset / base) ** (np.arange(0, d_model, 2) / d_model)")),
    change('turned back', "Your matrix turns the other way. Sine comes first in a pair, so the block is [[cos a, sin a], [−sin a, cos a]], with a = offset / base^(2i/d_model). (Textbooks' [[cos, −sin], [sin, cos]] is for cosine first, or for a row in front of the matrix.)", above="M[i, i + 1] = -np.sin(a)", below="M[i + 1, i] = np.sin(a)"),
    change('no minus', 'Both sines in your blocks have a plus. In the second row the sine of the angle a needs a minus: cos(x + a) = cos x cos a − sin x sin a.', below="M[i + 1, i] = np.sin(a)"),
    change('two minuses', 'Both sines in your blocks have a minus. In the first row the sine of the angle a needs a plus: sin(x + a) = sin x cos a + cos x sin a.', above="M[i, i + 1] = -np.sin(a)"),
    change("minus before the cosine", "One of your cosines has a minus. Both stand on the diagonal as they are; the minus belongs to the sine in the second row.", cosines=("M[i, i] = np.cos(a)\nM[i + 1, i + 1] = -np.cos(a)", "M[i, i] = -np.cos(a)\nM[i + 1, i + 1] = np.cos(a)"), below=("M[i + 1, i] = -np.sin(a)", "M[i + 1, i] = np.sin(a)")),
    change('sine and cosine swapped', 'Sine and cosine have changed places. For offset 0 the matrix must change nothing, so cos 0 = 1 belongs on the diagonal.', cosines="M[i, i] = M[i + 1, i + 1] = np.sin(a)", above="M[i, i + 1] = np.cos(a)", below=("M[i + 1, i] = -np.cos(a)", "M[i + 1, i] = np.cos(a)")),
    change("sine and cosine swapped in one row", "In your blocks a sine and a cosine have changed places. For offset 0 the matrix changes nothing: both cosines stand on the diagonal.", cosines="M[i, i] = np.sin(a)\nM[i + 1, i + 1] = -np.sin(a)", above="M[i, i + 1] = np.cos(a)", below="M[i + 1, i] = np.cos(a)"),
    change('diagonal only', 'Your matrix has entries on the diagonal only. Each pair mixes its two columns: the sine of the angle, once with a plus and once with a minus, stands beside the cosines.', above="", below="", cosines=("M[i, i] = M[i + 1, i + 1] = np.cos(a)", "M[i, i] = np.sin(a)\nM[i + 1, i + 1] = np.cos(a)")),
    change('half a block', 'One of the two rows of your blocks is missing: both the sine and the cosine of a pair have to be computed anew.', cosines="M[i, i] = np.cos(a)", below=""),
    change("the other half of a block", "The first row of your blocks is missing. It makes the new sine, with the angle a: sin(x + a) = sin x cos a + cos x sin a.", cosines="M[i + 1, i + 1] = np.cos(a)", above=""),
    change('halves', 'Your blocks join column i with column i + d_model / 2. In this table sine and cosine stand side by side: join 2i with 2i + 1.', places="i, j = np.arange(d_model // 2), np.arange(d_model // 2, d_model)", cosines="M[i, i] = M[j, j] = np.cos(a)", above=("M[i, j] = np.sin(a)", "M[i, j] = -np.sin(a)"), below=("M[j, i] = -np.sin(a)", "M[j, i] = np.sin(a)")),
    change('blocks overlap', 'Your blocks overlap: pair i begins at row and column 2i, not at i.', "M = np.zeros((d_model, d_model))\nfor i in range(d_model // 2):\n    a = offset / base ** (2 * i / d_model)\n    M[i : i + 2, i : i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]\nreturn M", *(f"M = {start}\nfor i in range(d_model // 2):\n    a = offset / base ** (2 * i / d_model)\n    M[i, i] = np.cos(a)\n    M[i, i + 1] = np.sin(a)\n    M[i + 1, i] = -np.sin(a)\n    M[i + 1, i + 1] = np.cos(a)\nreturn M" for start in ("np.zeros((d_model, d_model))", "np.eye(d_model)"))),
    change('first block only', 'Only the first 2 × 2 block is filled. If you wrote a loop, does `return` stand inside it? It belongs below, as far left as `for`.', "M = np.zeros((d_model, d_model))\nM[:2, :2] = [[np.cos(offset), np.sin(offset)], [-np.sin(offset), np.cos(offset)]]\nreturn M"),
    change(
        'blocks not placed', 'These are the 2 × 2 blocks, in an array with three axes. Put them along the diagonal of a (d_model, d_model) matrix of zeros.',
        "a = offset / base ** (np.arange(0, d_model, 2) / d_model)\nreturn np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])",
        "a = offset / base ** (np.arange(0, d_model, 2) / d_model)\nreturn np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]).transpose(2, 0, 1)",
    ),
    change('encoding of the offset', 'This is the row PE(offset). A matrix is asked for that takes PE(pos) to PE(pos + offset) for every pos.', "a = offset / base ** (np.arange(0, d_model, 2) / d_model)\nrow = np.empty(d_model)\nrow[0::2], row[1::2] = np.sin(a), np.cos(a)\nreturn row"),
    change('ones outside the blocks', 'Outside the blocks your matrix holds ones. There it must be 0, so that pairs do not mix: begin with `np.zeros`.', M="M = np.ones((d_model, d_model))"),
    change("the identity outside", "Your diagonal holds 1 plus the cosines, as if the identity were added. The cosines are all there is on it: begin with zeros, and add no 1.", M="M = np.eye(d_model)", cosines="M[i, i] += np.cos(a)\nM[i + 1, i + 1] += np.cos(a)"),
    change("the power of each entry", "You raise each entry to the power. `**` works entry by entry; the matrix times itself is `np.linalg.matrix_power`, or simply `offset` times the angle.", "one = np.zeros((d_model, d_model))\nfor i in range(0, d_model, 2):\n    a = base ** (-i / d_model)\n    one[i : i + 2, i : i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]\nreturn one**offset"),
    change("a multiple of the matrix", "You multiply the matrix of one step by `offset`. Several steps turn by a larger angle: multiply the angle.", "one = np.zeros((d_model, d_model))\nfor i in range(0, d_model, 2):\n    a = base ** (-i / d_model)\n    one[i : i + 2, i : i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]\nreturn one * offset"),
)

ADD = (
    change('along the batch axis', "You give each sequence the row of its place in the batch, so that all its tokens get the same vector. Each *token* needs a row: add `table[:T]`, with T = `X.shape[1]`.", T="T = len(X)", rows="rows = table[:T, None]"),
    change('cut to the number of sequences', 'You cut the table to `len(X)` rows, the number of sequences. One row for each token is needed: `table[:X.shape[1]]`.', T="T = len(X)"),
    change('cut to the width', 'You cut the table to d_model rows. One row for each token is needed: `table[:X.shape[1]]`.', T="T = X.shape[-1]", rows=("rows = table[:T]", "rows = table[:T, None]")),
    change('table not cut', 'The table can have more rows than there are tokens. Take the first T of them: `table[:X.shape[1]]`.', rows=("rows = table", "rows = table[None]")),
    change('axis in the wrong place', 'You add the rows along the first axis, which counts sequences. The tokens lie along the second one: (T, d_model) lines up with the last two axes of X by itself, without a loop or a `None`.', rows="rows = table[:T, None]"),
    change('positions across the width', 'You add a number to a column of X for each position. A row of the table belongs to a token: (T, d_model) as it is, without transposing.', rows="rows = table[:T].T"),
    change('one row for all tokens', 'All your tokens get the same numbers added, so they still do not know where they stand. Token t needs row t.', rows=("rows = table[0]", "rows = table[T - 1]", "rows = table[-1]", "rows = table[:T].mean(axis=0)", "rows = table[:T].sum(axis=0)", "rows = table[T % len(table)]", "rows = table[T]", "rows = table[T + 1]")),
    change('running on through the batch', 'Your positions run on from one sequence to the next. Each sequence starts at position 0 again.', rows="rows = table[: X.shape[0] * T].reshape(X.shape)"),
    change('last rows', 'You add the last T rows of the table. Token 0 has position 0: take the first T rows.', rows="rows = table[-T:]"),
    change('rows from 1', 'You start with row 1 of the table. Token 0 has position 0.', rows=("rows = table[1 : T + 1]", "rows = table[1:]")),
    change("backwards", "Your rows are in the opposite order. Token t gets row t: `table[:T]`.", rows=("rows = table[:T][::-1]", "rows = table[::-1][:T]")),
    change("a row too few", "You take a row too few. `table[:T]` ends before row T: it has T rows already.", rows=("rows = table[: T - 1]", "rows = table[1:T]")),
    change("a row too many", "You take a row too many. `table[:T]` has T rows, 0 to T − 1.", rows="rows = table[: T + 1]"),
    change('multiplied', 'You multiply by the positions. They are added to X.', answer="return X * rows.astype(X.dtype)"),
    change("subtracted", "You subtract. Positions are added to X.", answer=("return X - rows.astype(X.dtype)", "return rows.astype(X.dtype) - X")),
    change('positions only', 'These are the positions; the tokens are gone. Add the positions to X.', answer=("return np.zeros_like(X) + rows.astype(X.dtype)", "return rows.astype(X.dtype)")),
    change('concatenated', 'You put the positions beside the tokens, which makes the vectors wider. They are added, and the width stays d_model.', answer="return np.concatenate([X, np.zeros_like(X) + rows.astype(X.dtype)], axis=-1)"),
    change('embeddings scaled', 'You multiply the embeddings by √d_model. The paper does that (section 3.4), but as part of the embedding; here X has come through it already.', answer="return X * math.sqrt(X.shape[-1]) + rows.astype(X.dtype)"),
    change("added twice", "You add the positions twice. Once is enough.", answer="return X + 2 * rows.astype(X.dtype)"),
    change('nothing added', 'Your function gives X back as it came. Return the sum of X and the first T rows of the table, `table[:X.shape[1]]`.', answer="return X"),
    change("the sum rounded", "You convert to whole numbers, and everything behind the point is cut off.", answer="return (X + rows).astype(int)"),
)


ROTATE = (
    change("halves for pairs", "You pair column i with column i + d/2. That is the order of GPT-NeoX and of Hugging Face's Llama, and just as good, but another one: here a pair is two neighbours, 2i and 2i + 1. A model that was trained with one and run with the other writes nonsense.",
           pairs="a, b = np.split(x, 2, axis=-1)", out="", first="", second="", answer="return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)"),
    change("pairs not put back", "The pairs come back as two halves: all first entries, then all second ones. Write each to its own columns, `turned[..., 0::2]` and `turned[..., 1::2]`.",
           out="", first="", second="", answer="return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)"),
    change("written into x", "The columns that you write last are made from columns that are turned already: what you write into is also what you read from. Read from x, and write into another array; a slice is no copy.",
           out="turned = x"),
    change("exponent doubled", "Your exponents are twice too large. Without their sign they should be 2i / d, and `np.arange(0, d, 2)` is 2i already.",
           exponents="exponents = 2 * np.arange(0, x.shape[-1], 2) / x.shape[-1]"),
    change("exponent halved", "Your exponent is half as large as it should be: pair i has 2i / d, not i / d.",
           exponents="exponents = np.arange(x.shape[-1] // 2) / x.shape[-1]"),
    change("multiplied by the power", "Your angles are position · base^(2i/d), but should be position / base^(2i/d): later pairs turn more slowly.",
           angles="angles = positions[:, None] * base**exponents"),
    change("one speed for all", "All your pairs turn at one speed. Pair i should turn by position / base^(2i/d), and 2i / d is a fraction (`//` makes it 0).",
           angles="angles = positions[:, None] * np.ones(x.shape[-1] // 2)"),
    change("base ignored", "You use 10 000, whatever `base` is. Take the argument.",
           angles="angles = positions[:, None] / 10000**exponents"),
    change("positions counted anew", "You count positions from 0, whatever `positions` says. When a model writes with a cache, new queries begin where the cache ends.",
           angles="angles = np.arange(x.shape[-2])[:, None] / base**exponents"),
    change("turned back", "You turn by the negative angle. A pair (a, b) becomes (a cos − b sin, a sin + b cos), with the angle position / base^(2i/d).",
           first="turned[..., 0::2] = a * np.cos(angles) + b * np.sin(angles)", second="turned[..., 1::2] = b * np.cos(angles) - a * np.sin(angles)"),
    change("angles tiled", "Your angles stand as a₀, a₁, … and then once more; neighbouring columns must share one: a₀, a₀, a₁, a₁, … That is `np.repeat(…, 2, axis=-1)`, not `np.tile` or `np.concatenate`.",
           out="wide = np.concatenate([angles, angles], axis=-1)", first="other = np.stack([-b, a], axis=-1).reshape(x.shape)", second="turned = x * np.cos(wide) + other * np.sin(wide)"),
    change("added", "You add sines and cosines to x. Rotary positions add nothing: each pair is turned, so that its length stays.",
           first="turned[..., 0::2] = a + np.sin(angles)", second="turned[..., 1::2] = b + np.cos(angles)"),
    change("sine and cosine exchanged", "Sine and cosine have changed places. At position 0 nothing may turn, and cos 0 is 1: a pair (a, b) becomes (a cos − b sin, a sin + b cos).", first="turned[..., 0::2] = a * np.sin(angles) - b * np.cos(angles)", second="turned[..., 1::2] = a * np.cos(angles) + b * np.sin(angles)"),
    change("sine and cosine exchanged in the first line", "In the first column of each pair (a, b) sine and cosine have changed places: a cos − b sin.", first="turned[..., 0::2] = a * np.sin(angles) - b * np.cos(angles)"),
    change("sine and cosine exchanged in the second line", "In the second column of each pair (a, b) sine and cosine have changed places: a sin + b cos.", second="turned[..., 1::2] = a * np.cos(angles) + b * np.sin(angles)"),
    change("no minus", "You add in both columns of a pair (a, b). The first column has a minus, a cos − b sin; the second one a plus, a sin + b cos.", first="turned[..., 0::2] = a * np.cos(angles) + b * np.sin(angles)"),
    change("two minuses", "You subtract in both columns of a pair (a, b). The second column has a plus: a sin + b cos.", second="turned[..., 1::2] = a * np.sin(angles) - b * np.cos(angles)"),
    change("read as halves", "You read the pairs as halves, but write them as neighbours. Here a pair is two neighbours: `x[..., 0::2]` and `x[..., 1::2]`.", pairs="a, b = np.split(x, 2, axis=-1)"),
    change("halves for pairs, turned back", "Two things to mend.\n1. You pair column i with column i + d/2, as GPT-NeoX and Hugging Face's Llama do. Here a pair is two neighbours, 2i and 2i + 1.\n2. You turn by the negative angle. A pair (a, b) becomes (a cos − b sin, a sin + b cos).", pairs="a, b = np.split(x, 2, axis=-1)", out="", first="", second="", answer="return np.concatenate([a * np.cos(angles) + b * np.sin(angles), b * np.cos(angles) - a * np.sin(angles)], axis=-1)"),
    change("positions across the columns", "Your positions run along the columns. A position belongs to a token: `positions[:, None]`.", angles="angles = positions / base**exponents"),
    change("not divided by d", "Your exponents are not divided by d: they should be 2i / d, from 0 to nearly 1.", exponents="exponents = np.arange(0, x.shape[-1], 2)"),
    change("turned twice", "The second column of a pair is made from a first one that is already turned. Keep both old columns until both new ones are computed.", second="turned[..., 1::2] = turned[..., 0::2] * np.sin(angles) + b * np.cos(angles)"),
)

# fmt: on

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
    mistakes=TABLE,
    library=(library.sinusoidal_encoding,),
    praise="Six tables, from 4 columns to 16, three bases besides 10 000. This is section 3.5 of “Attention Is All You Need”.",
    dtype="kept",
    in_pytorch="""# In bfloat16 neighbours beyond position 256 would fall together: round the finished table, not the positions.
positions = torch.arange(length, dtype=torch.float64)[:, None]
angles = positions / base ** (torch.arange(0, d_model, 2) / d_model)
table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # sine, cosine, sine, cosine …""",
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
    mistakes=SHIFT,
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
    mistakes=ADD,
    praise="Nine batches, with as many sequences as tokens among them, and float32 stays float32. The bug is gone.",
    dtype="kept",
    in_pytorch="output = X + table[: X.shape[1]].to(X.dtype)  # without `to`, a float64 table makes float64 of a float32 X",
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
    mistakes=ROTATE,
    library=(library.rotary,),
    praise="Nine cases, with positions below 0 and from 40 on among them. Llama, Mistral, Qwen and Gemma turn their queries and keys so.",
    in_pytorch="""angles = positions[:, None] / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))  # a pair (a, b) is the number a + bi …
turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)  # … and turns by a product
# Hugging Face's Llama pairs (i, i + d/2) in place of (2i, 2i + 1). With weights that were trained the other way nothing
# crashes, and nearly every answer is wrong.""",
)

EXERCISES = (_TABLE, _ADD, _SHIFT, _ROTATE)
