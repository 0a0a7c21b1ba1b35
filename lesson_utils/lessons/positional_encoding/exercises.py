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
    change('whole numbers', 'Your table holds nothing but 0 and 1: either an array of whole numbers has cut off everything behind the point, or all rows but the first were never written.', table="table = np.zeros((length, d_model), dtype=int)"),
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
    change("brackets", "Only a part of your exponent stands in the power: `**` comes before `*` and `/`. Put the whole exponent in brackets: `base ** (…)`.",
           angles=("angles = positions[:, None] * base ** -2 * np.arange(x.shape[-1] // 2) / x.shape[-1]", "angles = positions[:, None] / base ** np.arange(0, x.shape[-1], 2) / x.shape[-1]")),
    change("the width from len(x)", "`len(x)` is the length of the first axis of x. The width d is that of the last one: `x.shape[-1]`.", exponents="exponents = np.arange(0, len(x), 2) / len(x)"),
    change("columns i and i + 1", "You take pair i from the columns i and i + 1, so that the pairs overlap. Pair i has the columns 2i and 2i + 1.",
           "turned = x.copy()\nfor i in range(x.shape[-1] // 2):\n    angle = positions / base ** (2 * i / x.shape[-1])\n    a, b = x[..., i], x[..., i + 1]\n    turned[..., i], turned[..., i + 1] = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)\nreturn turned"),
    change("halves, with the angles of neighbours", "Your angles stand for pairs of neighbours, a₀, a₀, a₁, a₁ …, but you pair column i with column i + d/2, as rotate_half in Hugging Face's Llama does. Here a pair is two neighbours, 2i and 2i + 1.",
           out="wide = np.repeat(angles, 2, axis=-1)", first="other = np.concatenate([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], axis=-1)", second="turned = x * np.cos(wide) + other * np.sin(wide)"),
    change("pairs not joined", "Your result has an axis of length 2 too many: the pairs are not joined yet. Reshape it to the shape of x, or write the pairs into `turned[..., 0::2]` and `turned[..., 1::2]`.",
           out="", first="", second="", answer="return np.stack([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)"),
    change("turned twice", "The second column of a pair is made from a first one that is already turned. Keep both old columns until both new ones are computed.", second="turned[..., 1::2] = turned[..., 0::2] * np.sin(angles) + b * np.cos(angles)"),
)

RATES = (
    change("all hands slowed", "You slow every hand. Then the fast hands lose the distances that they learned. Divide the rates of the pairs in `slow` alone: `rates[slow]`.", slowed="rates = rates / factor"),
    change("multiplied", "Your hands in `slow` turn faster, not more slowly. Divide their rates by `factor`.", slowed="rates[slow] *= factor"),
    change("the others slowed", "You slow the hands that are not in `slow`, and leave those in `slow` as they are. It should be the other way round.", slowed="rates[np.setdiff1d(np.arange(d // 2), slow)] /= factor"),
    change("nothing slowed", "Every hand keeps its rate. Divide the rates of the pairs in `slow` by `factor`.", slowed=""),
    change("the factor in place of the rate", "In `slow` all rates are alike. Each hand keeps its own rate, divided by `factor`: `/=`, not `=`.", slowed="rates[slow] = 1 / factor"),
    change("stopped", "You stop the hands in `slow`. They should go on turning, `factor` times as slowly.", slowed="rates[slow] = 0"),
    change("subtracted", "You subtract. A hand that turns `factor` times as slowly has its rate *divided* by `factor`.", slowed="rates[slow] -= factor"),
    change("the base multiplied", "You multiply the base by `factor`. That slows all hands but the first, each by another amount. Divide the rates in `slow` by `factor` instead.", rates="rates = (base * factor) ** (-exponents)", slowed=""),
    change("the exponent divided", "You divide the exponents in `slow` by `factor`, which makes these hands faster. Divide the rates: base^(−2i/d) / factor.", exponents="exponents = np.arange(0, d, 2) / d\nexponents[slow] /= factor", slowed=""),
    change("from the first one on", "You slow every hand from the first one in `slow` on. Slow only those in `slow`.", slowed="rates[min(slow, default=d):] /= factor"),
    change("numbers of columns", "You read `slow` as numbers of columns. They are numbers of pairs: pair i has the columns 2i and 2i + 1.", slowed="rates[[i // 2 for i in slow]] /= factor"),
    change("pairs read as columns", "`slow` holds numbers of pairs, not of columns, and `rates` has one entry for each pair. Its index is the pair's number: `rates[slow]`.", slowed=("rates[2 * np.array(slow)] /= factor", "rates[2 * np.array(slow, dtype=int)] /= factor")),
    change("a tuple as an index", "A tuple as an index is one place on several axes, and `rates` has only one axis. A list stands for several places: `rates[slow]`.", slowed="rates[tuple(slow)] /= factor"),
    change("an empty array as an index", "The array of an empty list holds floats, and floats cannot be an index. An empty list can: `rates[slow]`.", slowed="rates[np.array(slow)] /= factor"),
    change("a slice", "You slow a whole range of hands, from one in `slow` to another. Slow only those in `slow`, whatever their order, and none if it is empty: `rates[slow]`.", slowed=("rates[slow[0] : slow[-1] + 1] /= factor", "if slow: rates[slow[0] : slow[-1] + 1] /= factor", "rates[min(slow) : max(slow) + 1] /= factor", "if slow: rates[min(slow) : max(slow) + 1] /= factor")),
    change("wavelengths", "You return the reciprocals of the rates, which grow from pair to pair. The rate of pair i is base^(−2i/d), with a minus.", answer=("return 1 / rates", "return 2 * np.pi / rates")),
    change("no minus in the exponent", "The minus is missing in your exponent. The rate is base^(−2i/d): later pairs turn more slowly.", rates="rates = base**exponents"),
    change("exponent doubled", "Your exponents are twice as large as they should be. `np.arange(0, d, 2)` is the 2i of base^(−2i/d) already.", exponents="exponents = 2 * np.arange(0, d, 2) / d"),
    change("exponent halved", "Your exponents are half as large as they should be: pair i has 2i / d, not i / d.", exponents="exponents = np.arange(d // 2) / d"),
    change("pairs counted from 1", "You count pairs from 1. The first is pair 0, and its rate is 1.", exponents="exponents = np.arange(2, d + 1, 2) / d"),
    change("not divided by d", "Your exponents are not divided by d: they should be 2i / d, from 0 to nearly 1.", exponents="exponents = np.arange(0.0, d, 2)"),
    change("base ignored", "You use 10 000, whatever `base` is. Take the argument.", rates="rates = 10000.0**-exponents"),
    change("a rate for each column", "You return a rate for each column. A pair of columns has one rate, so there are d / 2 of them.", exponents="exponents = np.arange(d) / d", answer=("return rates", "return np.repeat(rates, 2)")),
    change("a rate for each column, by the formula", "You return d rates, one for each column. A pair of columns has one rate, so there are d / 2 of them: `np.arange(d // 2)`.", exponents="exponents = 2 * np.arange(d) / d"),
    change("with 2π", "There is a factor 2π in your rates. A rate is an angle in radians; 2π belongs to wavelengths.", answer=("return 2 * np.pi * rates", "return rates / (2 * np.pi)")),
    change("to the power", "You raise the rates in `slow` to a power. Divide them by `factor`.", slowed="rates[slow] **= factor"),
    change("factor ignored", "You divide by 2, whatever `factor` is. Take the argument.", slowed="rates[slow] /= 2"),
    change("the first one only", "You slow only the first pair in `slow`. Slow all of them: a list can be an index.", slowed="rates[slow[:1]] /= factor"),
    change("the slowed ones only", "You return the rates of the slowed hands only. Return those of all d / 2 pairs.", answer=("return rates[slow]", "return rates[sorted(slow)]")),
    change("numbers from 1", "You count the pairs in `slow` from 1. They are counted from 0: pair 0 is the fastest hand, and pair 1 the next.", slowed="rates[np.isin(np.arange(1, d // 2 + 1), slow)] /= factor"),
    change("as many as in the list", "You slow the first hands, as many as `slow` has entries. Slow those whose numbers stand in `slow`: `rates[slow]`.", slowed="rates[: len(slow)] /= factor"),
    change("compared with rates", "You look for the rates in `slow`, but `slow` holds numbers of pairs. A pair's number is its index: `rates[slow]`.", slowed="rates[np.isin(rates, slow)] /= factor"),
    change("another base for the slow hands", "You change the base of the hands in `slow`. The rate itself is divided: base^(−2i/d) / factor.", rates=("bases = np.full(d // 2, float(base))\nbases[slow] /= factor\nrates = bases**-exponents", "bases = np.full(d // 2, float(base))\nbases[slow] *= factor\nrates = bases**-exponents"), slowed=""),
    change("rounded down", "`//` rounds down to a whole number, and no rate is above 1. Divide with `/`.", slowed="rates[slow] //= factor"),
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

# --- Slow one hand ---------------------------------------------------------------------------------------------------


def _slow_reference(d: int, slow: Sequence[int], factor: float, base: float = 10_000.0) -> Array:
    return np.array([base ** (-2 * i / d) / (factor if i in slow else 1) for i in range(d // 2)])


_SLOW = Exercise(
    name="slow_hands",
    called="my_rates",
    takes="d, slow, factor, base=10000.0",
    task="""The rate of each hand in radians per position, some hands slowed.

d: the width of queries, even. slow: a list with the numbers of the pairs to slow,
perhaps empty. factor: a number above 0. Returns (d / 2,), float64: base^(−2i/d) for
pair i, divided by factor if i is in slow. The list stays as it was. NumPy only.""",
    reference=_slow_reference,
    steps={
        "exponents": "exponents = np.arange(0, d, 2) / d  # (d / 2,)",
        "rates": "rates = base**-exponents",
        "slowed": "rates[slow] /= factor  # those of the pairs in the list, and no other",
        "answer": "return rates",
    },
    cases=lambda rng: [
        Case("d = 8, pair 1 by 2", (8, [1], 2.0, 10000.0)),
        Case("d = 8, no pair", (8, [], 2.0, 10000.0)),
        Case("d = 12, the pairs 3 and 5 by 3", (12, [3, 5], 3.0, 10000.0)),
        Case("d = 6, all pairs by 4, base 500,000", (6, [0, 1, 2], 4.0, 500_000.0)),
        Case("d = 10, the pairs 4, 0 and 2 by 1.5, base 100", (10, [4, 0, 2], 1.5, 100.0)),
        Case("d = 4, pair 0 by a half", (4, [0], 0.5, 50.0)),
    ],
    returns=("rates",),
    hints=(
        "First the rates of all pairs, as in your `my_rotate`: one power of the base for each pair. Then change those in "
        "`slow`, and no other.",
        "`rates = base ** (-np.arange(0, d, 2) / d)` are the rates of all hands.",
        "NumPy takes a list as an index: `rates[slow]` are the rates of these pairs, and `/=` divides them in place.",
    ),
    mistakes=RATES,
    praise="One hand, several, none and all. Slowing the slow hands alone is the idea of YaRN.",
    dtype="kept",
    in_pytorch="""rates = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # `inv_freq` in Hugging Face's Llama
rates[slow] /= factor  # a list as an index, as in NumPy; a tuple would be one place on several axes""",
)

EXERCISES = (_TABLE, _ROTATE, _SLOW)
