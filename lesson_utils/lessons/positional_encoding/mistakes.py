"""The ways to get positions wrong, as learners type them: the table, the rotation, the addition."""

# fmt: off
from collections.abc import Callable

from lesson_utils.mistakes.exercise import Change, change


def _exponents(of: Callable[[str], str], line: str) -> tuple[Change, ...]:
    """Make the mistakes in base^(2i/d_model), for the table and the rotation; `of` makes a line of an exponent."""
    return (
        change('exponent doubled', 'Your exponent is twice too large. 2i in the formula counts 0, 2, 4 … up to d_model − 2, as `np.arange(0, d_model, 2)` does: divide that by d_model, and do not double it again.', **{line: of("2 * np.arange(0, d_model, 2) / d_model")}),
        change('exponent halved', 'Your exponent is half as large as it should be: pair i has 2i / d_model, not i / d_model.', **{line: of("np.arange(d_model // 2) / d_model")}),
        change('pairs counted from 1', 'You count pairs from 1. Pair i counts from 0: the first exponent is 0, the last (d_model − 2) / d_model.', **{line: of("np.arange(2, d_model + 1, 2) / d_model")}),
        change('last exponent 1', 'Your exponents run from 0 to 1 with 1 included. In the formula the last one is (d_model − 2) / d_model: the exponents are 2i / d_model. (Some libraries do it your way; the paper does not.)', **{line: of("np.linspace(0, 1, d_model // 2)")}),
        change("not divided by d_model", "Your exponents are not divided by d_model: they are 2i / d_model, from 0 to nearly 1.", **{line: of("np.arange(0, d_model, 2)")}),
        change("divided by d_model − 1", "You divide by d_model − 1. The exponents are 2i / d_model: the last is a little less than 1.", **{line: of("np.arange(0, d_model, 2) / (d_model - 1)")}),
    )


TABLE = (
    *_exponents(lambda e: f"exponents = {e}", "exponents"),
    change('multiplied by the power', 'You multiply by base^(2i/d_model), so later pairs turn faster. Divide by it: they turn more slowly.', angles="angles = pos * power"),
    change('base ignored', 'You use 10 000, whatever `base` is. Take the argument.', power="power = 10000**exponents"),
    change('one speed for all', 'All your pairs turn at the same speed, 1 radian a position. Pair i is slower: divide by base^(2i/d_model).', angles="angles = pos * np.ones(d_model // 2)"),
    change('with 2π', 'There is a factor 2π in your angles. The angle is pos / base^(2i/d_model), in radians; 2π appears in the wavelength only.', angles="angles = 2 * np.pi * pos / power"),
    change("base times the exponent", "You multiply base and exponent. It is a power: `base ** exponents`.", power="power = base * exponents"),
    change("exponent and base exchanged", "You raise the exponent to the power of the base. It is `base ** exponents`.", power="power = exponents**base"),
    change("a minus too much", "`np.exp(-exponents * np.log(base))` is 1 / base^exponents already. Multiply by it, or leave the minus out and divide.", power="power = np.exp(-exponents * np.log(base))"),
    change("log of another base", "`np.log10` and `np.log2` belong to powers of 10 and 2. With `np.exp` goes `np.log`.", power=("power = np.exp(exponents * np.log10(base))", "power = np.exp(exponents * np.log2(base))")),
    change("degrees", "You turn the angles into degrees, or take them for degrees. `np.sin` takes radians, and so is the formula.", angles=("angles = np.deg2rad(pos / power)", "angles = np.rad2deg(pos / power)")),
    change("divided by the length", "Your exponents are divided by the number of positions. Divide by d_model: 2i / d_model.", exponents="exponents = np.arange(0, d_model, 2) / length"),
    change("positions divided by the length", "You divide the positions by their number. They stay whole: 0, 1, 2 …", pos="pos = np.arange(length)[:, None] / length"),
    change(
        'brackets', '`pos / base ** 2 * i / d_model` is worked out from the left: put the exponent in brackets, `base ** (2 * i / d_model)`.',
        angles=("i = np.arange(d_model // 2)\nangles = pos / base ** 2 * i / d_model", "angles = pos / base ** np.arange(0, d_model, 2) / d_model"),
    ),
    change('twice as wide', 'You have a pair for each column, twice as many as there is room for. There are d_model / 2 pairs: `np.arange(0, d_model, 2)`.', exponents=("exponents = np.arange(d_model) / d_model", "exponents = 2 * np.arange(d_model) / d_model"), table="", sines="", cosines="", answer="return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)"),
    change("a divisor for each column", "You have an exponent for each column, d_model of them, and the table has room for d_model / 2 sines: `np.arange(0, d_model, 2)`.", exponents=("exponents = np.arange(d_model) / d_model", "exponents = 2 * np.arange(d_model) / d_model")),
    change('sine and cosine swapped', 'Sine and cosine have changed places: sines belong in the even columns 0, 2, 4 …, cosines in the odd ones.', sines="table[:, 0::2] = np.cos(angles)", cosines="table[:, 1::2] = np.sin(angles)"),
    change('sines only', 'All your columns are sines. The odd columns hold the cosines of the same angles.', cosines="table[:, 1::2] = np.sin(angles)"),
    change('cosines only', 'All your columns are cosines. The even columns hold the sines of the same angles.', sines="table[:, 0::2] = np.cos(angles)"),
    change("sines missing", "The even columns are never written. They hold the sines: `table[:, 0::2]`.", table="table = np.zeros((length, d_model))", sines=""),
    change("cosines missing", "The odd columns are never written. They hold the cosines: `table[:, 1::2]`.", table="table = np.zeros((length, d_model))", cosines=""),
    change('halves', "You have put the sines in the first half of the columns and the cosines in the second. In the formula they take turns: `table[:, 0::2]` and `table[:, 1::2]`. (Some libraries use halves; a model can't tell, but a stored table can.)", sines="table[:, : d_model // 2] = np.sin(angles)", cosines="table[:, d_model // 2 :] = np.cos(angles)"),
    change('halves, cosines first', 'Two things to mend.\n1. Sines and cosines take turns, column by column; yours stand in two halves.\n2. Sines come first.', sines="table[:, : d_model // 2] = np.cos(angles)", cosines="table[:, d_model // 2 :] = np.sin(angles)"),
    change("into rows", "You write into rows. A row is a position; sines and cosines take turns over the *columns*: `table[:, 0::2]`.", sines="table[0::2] = np.sin(angles)", cosines="table[1::2] = np.cos(angles)"),
    change('pairs not joined', 'Your result has an axis of length 2 too many: the pairs are not joined yet. Reshape it to (length, d_model), or write sines and cosines into `table[:, 0::2]` and `table[:, 1::2]`.', answer="return np.stack([np.sin(angles), np.cos(angles)], axis=-1)"),
    change('transposed', 'Your table lies on its side. A row is a position, a column an entry of its vector: shape (length, d_model).', answer="return table.T"),
    change('whole numbers', 'Your table holds whole numbers: everything behind the point was cut off. Make it without `dtype=int`.', table="table = np.zeros((length, d_model), dtype=int)"),
    change('angles', 'These are the angles. Take the sine of each for an even column, and the cosine for the odd one beside it.', sines="", cosines="", answer=("return angles", "return np.repeat(angles, 2, axis=1)")),
    change(
        'an exponent for each column', 'Your sine and its cosine have different angles: each column got an exponent of its own. A pair of columns, 2i and 2i + 1, shares the exponent 2i / d_model.',
        *(f"a = np.arange(length)[:, None] / base ** ({e} / d_model)\nreturn np.where(np.arange(d_model) % 2, np.cos(a), np.sin(a))" for e in ("np.arange(d_model)", "2 * np.arange(d_model)")),
    ),
    change('column number for pair number', 'Your pairs share their exponents, but they are twice too large: for column c the pair is i = c // 2, and its exponent is 2 * (c // 2) / d_model.', "c = np.arange(d_model)\na = np.arange(length)[:, None] / base ** (c % 2 * 2 * (c // 2) / d_model)\nreturn np.where(c % 2, np.cos(a), np.sin(a))"),
    change('positions from 1', 'Your positions begin at 1. They begin at 0: the first row is 0, 1, 0, 1 …', pos="pos = np.arange(1, length + 1)[:, None]"),
    change('axes do not line up', '`np.arange(length)` has shape (length,), the divisors (d_model / 2,). For all combinations make the positions a column: `np.arange(length)[:, None]`.', pos="pos = np.arange(length)"),
    change("row and column exchanged", "Your positions lie in a row and your divisors in a column, or the shape of the table is turned around. Positions are a column, `np.arange(length)[:, None]`.", "pos = np.arange(length)\nangles = pos / base ** (np.arange(0, d_model, 2) / d_model)[:, None]\ntable = np.empty((length, d_model))\ntable[:, 0::2] = np.sin(angles)\ntable[:, 1::2] = np.cos(angles)\nreturn table", table="table = np.empty((d_model, length))"),
)

SHIFT = (
    *_exponents(lambda e: f"power = base ** ({e})", "power"),
    change('multiplied by the power', 'You multiply by base^(2i/d_model), so later pairs turn faster. Divide by it: they turn more slowly.', angles="a = offset * power"),
    change('base ignored', 'You use 10 000, whatever `base` is. Take the argument.', power="power = 10000 ** (np.arange(0, d_model, 2) / d_model)"),
    change('one speed for all', 'All your pairs turn at the same speed, 1 radian a position. Pair i is slower: divide by base^(2i/d_model).', angles="a = offset * np.ones(d_model // 2)"),
    change('with 2π', 'There is a factor 2π in your angles. The angle is pos / base^(2i/d_model), in radians; 2π appears in the wavelength only.', angles="a = 2 * np.pi * offset / power"),
    change("offset ignored", "Your matrix moves on by one position, whatever `offset` is. The angle is offset / base^(2i/d_model).", angles="a = 1 / power"),
    change("brackets", "The exponent is in the wrong brackets: `base ** (2 * i / d_model)` is one power, and `offset` is divided by it.", angles=("a = offset / base ** np.arange(0, d_model, 2) / d_model", "a = (offset / base) ** (np.arange(0, d_model, 2) / d_model)")),
    change('turned back', "Your matrix turns the other way: it moves back by `offset`. Sine comes first in a pair, so the block is [[cos a, sin a], [−sin a, cos a]]. (Textbooks' [[cos, −sin], [sin, cos]] is for cosine first, or for rows, `P @ M`.)", above="M[i, i + 1] = -np.sin(a)", below="M[i + 1, i] = np.sin(a)"),
    change('no minus', 'Both sines in your blocks are positive. One needs a minus: cos(x + a) = cos x cos a − sin x sin a.', below="M[i + 1, i] = np.sin(a)"),
    change('two minuses', 'Both sines in your blocks are negative. The first is positive: sin(x + a) = sin x cos a + cos x sin a.', above="M[i, i + 1] = -np.sin(a)"),
    change("minus before the cosine", "One of your cosines has a minus. Both stand on the diagonal as they are; the minus belongs to the sine below it.", cosines=("M[i, i] = np.cos(a)\nM[i + 1, i + 1] = -np.cos(a)", "M[i, i] = -np.cos(a)\nM[i + 1, i + 1] = np.cos(a)"), below=("M[i + 1, i] = -np.sin(a)", "M[i + 1, i] = np.sin(a)")),
    change('sine and cosine swapped', 'Sine and cosine have changed places. For offset 0 the matrix must change nothing, so cos 0 = 1 belongs on the diagonal.', cosines="M[i, i] = M[i + 1, i + 1] = np.sin(a)", above="M[i, i + 1] = np.cos(a)", below=("M[i + 1, i] = -np.cos(a)", "M[i + 1, i] = np.cos(a)")),
    change("sine and cosine swapped in one row", "In one row of your blocks sine and cosine have changed places. For offset 0 the matrix changes nothing: both cosines stand on the diagonal.", cosines="M[i, i] = np.sin(a)\nM[i + 1, i + 1] = -np.sin(a)", above="M[i, i + 1] = np.cos(a)", below="M[i + 1, i] = np.cos(a)"),
    change('diagonal only', 'Your matrix has entries on the diagonal only. Each pair mixes its two columns: sin a and −sin a stand beside the cosines.', above="", below="", cosines=("M[i, i] = M[i + 1, i + 1] = np.cos(a)", "M[i, i] = np.sin(a)\nM[i + 1, i + 1] = np.cos(a)")),
    change('half a block', 'One of the two rows of your blocks is missing: both the sine and the cosine of a pair have to be computed anew.', cosines="M[i, i] = np.cos(a)", below=""),
    change("the other half of a block", "The first row of your blocks is missing: the new sine is sin x cos a + cos x sin a.", cosines="M[i + 1, i + 1] = np.cos(a)", above=""),
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
    change("the identity outside", "You begin with the identity, or add to it. Begin with zeros: the cosines are all there is on the diagonal.", M="M = np.eye(d_model)", cosines="M[i, i] += np.cos(a)\nM[i + 1, i + 1] += np.cos(a)"),
)

ADD = (
    change('along the batch axis', "This is the bug itself: `len(X)` is B, the number of sequences. All tokens of a sequence get the same vector, that of the sequence's place in the batch. Each *token* needs a row: `table[:T]`, with T = `X.shape[1]`.", T="T = len(X)", rows="rows = table[:T, None]"),
    change('cut to the number of sequences', 'You cut the table to `len(X)` rows, the number of sequences. One row for each token is needed: `table[:X.shape[1]]`.', T="T = len(X)"),
    change('cut to the width', 'You cut the table to d_model rows. One row for each token is needed: `table[:X.shape[1]]`.', T="T = X.shape[-1]", rows=("rows = table[:T]", "rows = table[:T, None]")),
    change('table not cut', 'The table can have more rows than there are tokens. Take the first T of them: `table[:X.shape[1]]`.', rows=("rows = table", "rows = table[None]")),
    change('axis in the wrong place', 'You take T rows, which is right, and then move them to the first axis, which counts sequences. Leave out the `None`: (T, d_model) lines up with the last two axes of X by itself.', rows="rows = table[:T, None]"),
    change('positions across the width', 'You add a number to a column of X for each position. A row of the table belongs to a token: (T, d_model) as it is, without transposing.', rows="rows = table[:T].T"),
    change('one row for all tokens', 'All tokens get the same row of the table, so they still do not know where they stand. Token t needs row t.', rows=("rows = table[0]", "rows = table[T - 1]", "rows = table[-1]", "rows = table[:T].mean(axis=0)", "rows = table[:T].sum(axis=0)", "rows = table[T % len(table)]")),
    change('running on through the batch', 'Your positions run on from one sequence to the next. Each sequence starts at position 0 again.', rows="rows = table[: X.shape[0] * T].reshape(X.shape)"),
    change('last rows', 'You add the last T rows of the table. Token 0 has position 0: take the first T rows.', rows="rows = table[-T:]"),
    change('rows from 1', 'You start with row 1 of the table. Token 0 has position 0.', rows=("rows = table[1 : T + 1]", "rows = table[1:]")),
    change("backwards", "Your rows are in the opposite order. Token t gets row t: `table[:T]`.", rows=("rows = table[:T][::-1]", "rows = table[::-1][:T]")),
    change("a row too few", "You take a row too few. `table[:T]` ends before row T: it has T rows already.", rows=("rows = table[: T - 1]", "rows = table[1:T]")),
    change("a row too many", "You take a row too many. `table[:T]` has T rows, 0 to T − 1.", rows="rows = table[: T + 1]"),
    change('multiplied', 'You multiply by the positions. They are added: X + P.', answer="return X * rows.astype(X.dtype)"),
    change("subtracted", "You subtract the positions. They are added: X + P.", answer=("return X - rows.astype(X.dtype)", "return rows.astype(X.dtype) - X")),
    change('positions only', 'These are the positions; the tokens are gone. Add the two: X + P.', answer=("return np.zeros_like(X) + rows.astype(X.dtype)", "return rows.astype(X.dtype)")),
    change('concatenated', 'You put the positions beside the tokens, which makes the vectors wider. They are added, and the width stays d_model.', answer="return np.concatenate([X, np.zeros_like(X) + rows.astype(X.dtype)], axis=-1)"),
    change('embeddings scaled', 'You multiply the embeddings by √d_model. The paper does that (section 3.4), but as part of the embedding; here X has come through it already.', answer="return X * math.sqrt(X.shape[-1]) + rows.astype(X.dtype)"),
    change("added twice", "You add the positions twice. Once is enough: X + P.", answer="return X + 2 * rows.astype(X.dtype)"),
    change('nothing added', 'Your function gives X back as it came. Add the first T rows of the table, `table[:X.shape[1]]`.', answer="return X"),
    change("the sum rounded", "You convert to whole numbers, and everything behind the point is cut off.", answer="return (X + rows).astype(int)"),
)


ROTATE = (
    change("halves for pairs", "You pair column i with column i + d/2. That is the order of GPT-NeoX and of Hugging Face's Llama, and just as good, but another one: here a pair is two neighbours, 2i and 2i + 1. A model that was trained with one and run with the other writes nonsense.",
           pairs="a, b = np.split(x, 2, axis=-1)", out="", first="", second="", answer="return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)"),
    change("pairs not put back", "The pairs are turned rightly, but come back as two halves: all first entries, then all second ones. Write each to its own columns, `turned[..., 0::2]` and `turned[..., 1::2]`.",
           out="", first="", second="", answer="return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)"),
    change("written into x", "Your second line reads columns that the first has already turned: what you write into is also what you read from. Write into a new array, `np.empty_like(x)`.",
           out="turned = x"),
    change("exponent doubled", "Your exponent is twice too large: `np.arange(0, d, 2)` is 2i already.",
           exponents="exponents = 2 * np.arange(0, x.shape[-1], 2) / x.shape[-1]"),
    change("exponent halved", "Your exponent is half as large as it should be: pair i has 2i / d, not i / d.",
           exponents="exponents = np.arange(x.shape[-1] // 2) / x.shape[-1]"),
    change("multiplied by the power", "You multiply by base^(2i/d), so later pairs turn faster. Divide by it: they turn more slowly.",
           angles="angles = positions[:, None] * base**exponents"),
    change("one speed for all", "All your pairs turn at one speed, 1 radian a position. Pair i is slower: base^(−2i/d).",
           angles="angles = positions[:, None] * np.ones(x.shape[-1] // 2)"),
    change("base ignored", "You use 10 000, whatever `base` is. Take the argument.",
           angles="angles = positions[:, None] / 10000**exponents"),
    change("positions counted anew", "You count positions from 0, whatever `positions` says. When a model writes with a cache, new queries begin where the cache ends.",
           angles="angles = np.arange(x.shape[-2])[:, None] / base**exponents"),
    change("turned back", "You turn by the negative angle. A pair (a, b) becomes (a cos − b sin, a sin + b cos): the minus belongs to the first line.",
           first="turned[..., 0::2] = a * np.cos(angles) + b * np.sin(angles)", second="turned[..., 1::2] = b * np.cos(angles) - a * np.sin(angles)"),
    change("angles tiled", "Your angles stand as a₀, a₁, … and then once more; neighbouring columns must share one: a₀, a₀, a₁, a₁, … That is `np.repeat(angles, 2, axis=-1)`, not `np.tile` or `np.concatenate`.",
           out="wide = np.concatenate([angles, angles], axis=-1)", first="other = np.stack([-b, a], axis=-1).reshape(x.shape)", second="turned = x * np.cos(wide) + other * np.sin(wide)"),
    change("added", "You add sines and cosines to x. Rotary positions add nothing: each pair is turned, so that its length stays.",
           first="turned[..., 0::2] = a + np.sin(angles)", second="turned[..., 1::2] = b + np.cos(angles)"),
)
