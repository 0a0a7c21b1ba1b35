"""Notebook 04's exercises, as learners write them: what is right passes in any style, what is wrong is named."""

import pytest
from learners import assert_named, checked

# A right table, line by line; each wrong one changes a line or two.
TABLE = {
    "pos": "pos = np.arange(length)[:, None]",
    "power": "power = base ** (np.arange(0, d_model, 2) / d_model)",
    "angles": "angles = pos / power",
    "table": "table = np.zeros((length, d_model))",
    "even": "table[:, 0::2] = np.sin(angles)",
    "odd": "table[:, 1::2] = np.cos(angles)",
    "answer": "return table",
}
SHIFT = {
    "start": "M = np.zeros((d_model, d_model))",
    "loop": "for i in range(d_model // 2):",
    "angle": "    a = offset / base ** (2 * i / d_model)",
    "cosines": "    M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = np.cos(a)",
    "upper": "    M[2 * i, 2 * i + 1] = np.sin(a)",
    "lower": "    M[2 * i + 1, 2 * i] = -np.sin(a)",
    "answer": "return M",
}


def table(**changed):
    return "\n".join((TABLE | changed).values())


def shift(**changed):
    return "\n".join((SHIFT | changed).values())


RIGHT = {
    "sinusoids": [
        table(),
        table(power="power = np.power(base, 2 * np.arange(d_model // 2) / d_model)"),
        table(power="rate = np.exp(-np.log(base) * np.arange(0, d_model, 2) / d_model)", angles="angles = pos * rate"),
        table(angles="angles = np.outer(np.arange(length), 1 / power)"),
        table(table="table = np.empty((length, d_model)).astype(float)"),
        "a = np.arange(length)[:, None] / base ** (2 * (np.arange(d_model) // 2) / d_model)\n"
        "return np.where(np.arange(d_model) % 2 == 0, np.sin(a), np.cos(a))",
        "a = np.einsum('p,i->pi', np.arange(length), base ** -(np.arange(0, d_model, 2) / d_model))\n"
        "return np.stack([np.sin(a), np.cos(a)], axis=-1).reshape(length, d_model)",
        """
        table = np.zeros((length, d_model))
        for pos in range(length):
            for i in range(d_model // 2):
                table[pos, 2 * i] = math.sin(pos / base ** (2 * i / d_model))
                table[pos, 2 * i + 1] = math.cos(pos / base ** (2 * i / d_model))
        return table
        """,
    ],
    "shift_matrix": [
        shift(),
        shift(start="M = np.eye(d_model)"),
        """
        a = offset / base ** (np.arange(0, d_model, 2) / d_model)
        even = np.arange(0, d_model, 2)
        M = np.zeros((d_model, d_model))
        M[even, even] = M[even + 1, even + 1] = np.cos(a)
        M[even, even + 1], M[even + 1, even] = np.sin(a), -np.sin(a)
        return M
        """,
        """
        a = offset / base ** (np.arange(0, d_model, 2) / d_model)
        c, s = np.repeat(np.cos(a), 2), np.repeat(np.sin(a), 2)[:-1]
        s[1::2] = 0
        return np.diag(c) + np.diag(s, 1) - np.diag(s, -1)
        """,
    ],
    "add_positions": [
        "X + table[:X.shape[1]].astype(X.dtype)",
        "B, T, d = X.shape; return (X + table[:T]).astype(X.dtype)",
        "X + table[None, :X.shape[1]].astype(X.dtype)",
        "X + table[np.arange(X.shape[-2])].astype(X.dtype)",
        "Y = X.copy(); Y += table[:X.shape[1]]; return Y",
        """
        Y = np.empty_like(X)
        for t in range(X.shape[1]):
            Y[:, t] = X[:, t] + table[t]
        return Y
        """,
    ],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in RIGHT for body in RIGHT[e]])
def test_what_is_right_passes_in_any_style(exercise, body):
    result = checked(exercise, body)
    assert result.passed is True, result.message


POWER = "power = base ** ({})"
JOINED = "return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)"
COLUMNS = "a = np.arange(length)[:, None] / base ** ({})\nreturn np.where(np.arange(d_model) % 2, np.cos(a), np.sin(a))"
WRONG = {
    "sinusoids": [
        (table(power=POWER.format("np.arange(2, d_model + 1, 2) / d_model")), "pairs counted from 1"),
        (table(power=POWER.format("2 * np.arange(1, d_model // 2 + 1) / d_model")), "pairs counted from 1"),
        (table(angles="angles = pos / base ** 2 * np.arange(d_model // 2) / d_model"), "brackets"),
        (
            table(power=POWER.format("np.arange(d_model) / d_model"), even="", odd="", answer=JOINED),
            "twice as wide",
        ),
        (COLUMNS.format("2 * (np.arange(d_model) - np.arange(d_model) % 2) / d_model"), "exponent doubled"),
        (table(power=POWER.format("2 * np.arange(0, d_model, 2) / d_model")), "exponent doubled"),
        (table(power=POWER.format("np.arange(0, d_model, 2) / (d_model / 2)")), "exponent doubled"),
        (table(power=POWER.format("np.arange(d_model // 2) / d_model")), "exponent halved"),
        (table(angles="angles = pos * power"), "multiplied by the power"),
        (
            table(
                power="power = np.exp(np.log(base) * np.arange(0, d_model, 2) / d_model)", angles="angles = pos * power"
            ),
            "multiplied by the power",
        ),
        (table(power=POWER.format("np.linspace(0, 1, d_model // 2)")), "last exponent 1"),
        (table(power="power = 10000 ** (np.arange(0, d_model, 2) / d_model)"), "base ignored"),
        (
            table(power="power = np.exp(math.log(10000.0) * np.arange(0, d_model, 2) / d_model)"),
            "base ignored",
        ),
        (table(angles="angles = pos * np.ones(d_model // 2)"), "one speed for all"),
        (table(angles="angles = 2 * np.pi * pos / power"), "with 2π"),
        (table(power=POWER.format("np.arange(0, d_model, 2) / length")), "divided by the length"),
        (
            table(even="table[:, 0::2] = np.cos(angles)", odd="table[:, 1::2] = np.sin(angles)"),
            "sine and cosine swapped",
        ),
        (table(odd="table[:, 1::2] = np.sin(angles)"), "sines only"),
        (table(even="table[:, 0::2] = np.cos(angles)"), "cosines only"),
        (
            table(even="table[:, :d_model // 2] = np.sin(angles)", odd="table[:, d_model // 2:] = np.cos(angles)"),
            "halves",
        ),
        (table(answer="return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)"), "halves"),
        (table(answer="return np.hstack([np.cos(angles), np.sin(angles)])"), "halves, cosines first"),
        (table(answer="return np.stack([np.sin(angles), np.cos(angles)], axis=-1)"), "pairs not joined"),
        (table(answer="return table.T"), "transposed"),
        (table(table="table = np.zeros((length, d_model), dtype=int)"), "whole numbers"),
        (table(answer="return angles"), "angles"),
        (COLUMNS.format("np.arange(d_model) / d_model"), "an exponent for each column"),
        (COLUMNS.format("2 * np.arange(d_model) / d_model"), "an exponent for each column"),
        (table(pos="pos = np.arange(1, length + 1)[:, None]"), "positions from 1"),
        (table(pos="pos = np.arange(length)"), "axes do not line up"),
        (table(pos="pos = np.arange(length)", angles="angles = (1 / power) * pos"), "axes do not line up"),
        (
            table(power=POWER.format("2 * np.arange(0, d_model, 2) / d_model"), odd="table[:, 1::2] = np.sin(angles)"),
            "exponent doubled; sines only",
        ),
        ("positions.sinusoidal_encoding(length, d_model, base)", "the library's own"),
    ],
    "shift_matrix": [
        (shift(cosines="    M[2 * i, 2 * i] = np.cos(a)", lower=""), "half a block"),
        (
            "a = offset / base ** (np.arange(0, d_model, 2) / d_model)\nrow = np.empty(d_model)\n"
            "row[0::2], row[1::2] = np.sin(a), np.cos(a)\nreturn row",
            "encoding of the offset",
        ),
        (
            shift(
                upper="    M[2 * i, 2 * i + 1] = -np.sin(a)",
                lower="    M[2 * i + 1, 2 * i] = np.sin(a)",
            ),
            "turned back",
        ),
        (shift(answer="return M.T"), "turned back"),
        (shift(lower="    M[2 * i + 1, 2 * i] = np.sin(a)"), "no minus"),
        (shift(upper="    M[2 * i, 2 * i + 1] = -np.sin(a)"), "two minuses"),
        (
            shift(
                cosines="    M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = np.sin(a)",
                upper="    M[2 * i, 2 * i + 1] = np.cos(a)",
                lower="    M[2 * i + 1, 2 * i] = -np.cos(a)",
            ),
            "sine and cosine swapped",
        ),
        (shift(upper="", lower=""), "diagonal only"),
        (shift(angle="    a = offset"), "one speed for all"),
        (shift(angle="    a = offset / base ** (4 * i / d_model)"), "exponent doubled"),
        (shift(angle="    a = offset / base ** (i / d_model)"), "exponent halved"),
        (shift(angle="    a = offset * base ** (2 * i / d_model)"), "multiplied by the power"),
        (shift(angle="    a = offset / 10000 ** (2 * i / d_model)"), "base ignored"),
        (shift(angle="    a = 2 * np.pi * offset / base ** (2 * i / d_model)"), "with 2π"),
        (shift(angle="    a = 1 / base ** (2 * i / d_model)"), "offset ignored"),
        (shift(answer="    return M"), "first block only"),
        (shift(start="M = np.ones((d_model, d_model))"), "ones outside the blocks"),
        (
            """
            M = np.zeros((d_model, d_model))
            for i in range(d_model // 2):
                a = offset / base ** (2 * i / d_model)
                M[i:i + 2, i:i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
            return M
            """,
            "blocks overlap",
        ),
        (
            """
            a = offset / base ** (np.arange(0, d_model, 2) / d_model)
            C, S = np.diag(np.cos(a)), np.diag(np.sin(a))
            return np.block([[C, S], [-S, C]])
            """,
            "halves",
        ),
        (
            """
            a = offset / base ** (np.arange(0, d_model, 2) / d_model)
            return np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])
            """,
            "blocks not placed",
        ),
        (
            shift(angle="    a = offset / base ** (4 * i / d_model)", answer="return M.T"),
            "exponent doubled; turned back",
        ),
        ("positions.shift_matrix(offset, d_model, base)", "the library's own"),
    ],
    "add_positions": [
        ("np.concatenate([X, np.broadcast_to(table[:X.shape[1]], X.shape)], axis=-1)", "concatenated"),
        ("X + table[:len(X), None]", "along the batch axis"),
        ("X + table[:X.shape[0]][:, None, :]", "along the batch axis"),
        ("B = len(X); return X + table[np.arange(B)].reshape(B, 1, -1)", "along the batch axis"),
        ("X + table[:len(X)]", "cut to the number of sequences"),
        ("X + table[:X.shape[2]]", "cut to the width"),
        ("X + table", "table not cut"),
        ("X + table[:X.shape[1], None]", "axis in the wrong place"),
        ("X + table[:X.shape[1]].T", "positions across the width"),
        ("X + table[0]", "one row for all tokens"),
        ("X + table[:X.shape[1]].sum(axis=0)", "one row for all tokens"),
        ("X + table[:X.shape[0] * X.shape[1]].reshape(X.shape)", "running on through the batch"),
        ("X + table[-X.shape[1]:]", "last rows"),
        ("X + table[1:X.shape[1] + 1]", "rows from 1"),
        ("X * table[:X.shape[1]]", "multiplied"),
        ("table[:X.shape[1]]", "positions only"),
        ("np.sqrt(X.shape[-1]) * X + table[:X.shape[1]]", "embeddings scaled"),
        ("X", "nothing added"),
    ],
}


@pytest.mark.parametrize(("exercise", "body", "name"), [(e, *case) for e in WRONG for case in WRONG[e]])
def test_what_learners_write_is_named(exercise, body, name):
    assert_named(exercise, body, name)


STRANGE = {
    "sinusoids": ["np.zeros((length, d_model))", table(angles="angles = pos / power + 0.1"), "np.random.rand(3)", "0"],
    "shift_matrix": [
        "np.eye(d_model)",
        "np.zeros((d_model, d_model))",
        "2 * np.eye(d_model)",
        "raise ValueError('return')",
    ],
    "add_positions": ["X + 1", "0 * X", "X - table[:X.shape[1]]", "X @ table.T"],
}


@pytest.mark.parametrize(("exercise", "body"), [(e, body) for e in STRANGE for body in STRANGE[e]])
def test_what_is_wrong_otherwise_gets_no_name(exercise, body):
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, None), result.message


def test_what_is_left_when_the_numbers_are_right():
    assert "came out as float64" in checked("add_positions", "X + table[:X.shape[1]]").message
    assert "changes its argument `X` in place" in checked("add_positions", "X += table[:X.shape[1]]; return X").message


def test_the_bug_of_the_notebook_is_named_as_such():
    """The stub is empty: the notebook's broken function, copied into it, is what a learner starts from."""
    result = checked("add_positions", "X + table[: len(X), None]")
    assert result.message.startswith("This is the bug itself")
