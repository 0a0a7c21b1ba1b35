"""The table of pitfalls: each is found where it stands, and right answers hold none that is sure."""

import ast
import copy
import string
import textwrap

import numpy as np
import pytest
from learners import EXERCISES, checked
from right_answers import RIGHT, bodies

from lesson_utils.mistakes.recognise import pitfalls
from lesson_utils.mistakes.recognise.tree_edits import all_applied

STANDS_FOR = {letter: ast.Name(f"my_{letter}") for letter in pitfalls.LETTERS} | {
    "C": ast.Constant("keys"),
    "D": ast.Constant("key"),
    "N": ast.Constant(2),
}
ROWS = [(old, *row[1:]) for row in pitfalls.ROWS for old in row[0]]


def found(text):
    """What the edits make of a text, with their kinds and words."""
    body = ast.parse(textwrap.dedent(text)).body
    for edit in pitfalls.pitfalls(body):
        with all_applied([edit]):
            yield "\n".join(map(ast.unparse, body)), edit


@pytest.mark.parametrize(("old", "news", "words", "sure"), ROWS, ids=[ast.unparse(row[0]) for row in ROWS])
def test_each_row_is_found_and_says_what_to_write(old, news, words, sure):
    fill = pitfalls._Filled(STANDS_FOR)
    text = ast.unparse(fill.visit(copy.deepcopy(old)))
    made = dict(reversed([*found(f"y = {text}")]))
    for new in news:
        edit = made[f"y = {ast.unparse(fill.visit(copy.deepcopy(new)))}"]
        assert edit.kind == ("pitfall" if sure else "habit")
        assert edit.why.endswith(".")
        letters = {name for said in words for _, name, _, _ in string.Formatter().parse(said) if name}
        assert letters <= {*pitfalls.LETTERS, "old"}


LINES = [  # what is written, what is meant, and whether that is sure
    ("y = base ** -2 * i / d", "y = base ** (-2 * i / d)", True),
    ("y = past & (near | key < keep)", "y = past & (near | (key < keep))", True),
    ("y = a < b & c < d", "y = (a < b) & (c < d)", True),
    ("a = b\nb = a", "a, b = (b, a)", True),
    ("y = [lambda x: x + i for i in rows]", "y = [lambda x, i=i: x + i for i in rows]", True),
    ("for i in rows:\n    y.append(lambda x: x + i)", "for i in rows:\n    y.append(lambda x, i=i: x + i)", True),
    ("a = b = np.zeros(3)", "if True:\n    a = np.zeros(3)\n    b = np.zeros(3)", True),
    ("m = max(m, n)\nold = m", "if True:\n    old = m\n    m = max(m, n)\npass", False),
    ("rows[-1] = row", "rows = np.concatenate([rows, row[None]])", False),
    ("count[ids] += 1", "np.add.at(count, ids, 1)", False),
    ("if a:\n    x = 1\nif b:\n    x = 2", "if a:\n    x = 1\nelif b:\n    x = 2\npass", False),
    ("for i in ids:\n    ids.remove(i)", "for i in list(ids):\n    ids.remove(i)", True),
    ("for t in T:\n    y[t, ..., 0] = x[t]", "for t in T:\n    y[..., t, 0] = x[t]", False),
    ("s = 0\nfor i in rows:\n    s += i", "for i in rows:\n    s = 0\n    s += i\npass", False),
    (
        "for i in range(n):\n    s = 0\n    s += i",
        "if True:\n    s = 0\n    for i in range(n):\n        s += i",
        False,
    ),
    (
        "for i in range(n):\n    s += i\n    return s",
        "if True:\n    for i in range(n):\n        s += i\n    return s",
        True,
    ),
    (
        "for i in range(n):\n    i += 1",
        "if True:\n    i = 0\n    while i < n:\n        i += 1\n        i += 1",
        True,
    ),
]


@pytest.mark.parametrize(("text", "meant", "sure"), LINES)
def test_whole_lines_are_found(text, meant, sure):
    kinds = {after.replace("\npass", ""): edit.kind for after, edit in reversed([*found(text)])}
    assert kinds[meant.replace("\npass", "")] == ("pitfall" if sure else "habit")


@pytest.mark.parametrize(
    "text",
    [
        "y = (a | b) == c",
        "y = i & 1 == 0",
        "y = (base ** -2) * i",
        "y = a < (b & c)",
        "for i in x:\n    if i:\n        continue\n    return i",
        "y = np.linspace(1, n, n)",
    ],
)
def test_what_is_meant_so_is_no_pitfall(text):
    assert not [edit.why for _, edit in found(text) if edit.kind == "pitfall"]


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_answers_hold_no_sure_pitfall(exercise):
    for body in [exercise.body({}), *bodies(RIGHT, exercise)]:
        text = "def answer():\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
        answer = ast.parse(text).body[0]
        assert not [edit.why for edit in pitfalls.pitfalls(answer.body) if edit.kind == "pitfall"]


CLAIMS = {  # sentences of the table, and what NumPy does
    "np.ptp is the largest minus the smallest": np.ptp([-1, -3]) == 2,
    "argmax of a row without any True is 0": np.array([False, False]).argmax() == 0,
    "0 times infinity is NaN": np.isnan(0.0 * float("inf")),
    "np.trace takes the first two axes": np.trace(np.ones((2, 3, 3))).shape == (3,),
    "np.hstack joins along axis 1": np.hstack([np.ones((2, 3, 4))] * 2).shape == (2, 6, 4),
    "np.resize reads on, past the end of a row": np.resize([[1, 2], [3, 4]], (1, 3)).tolist() == [[1, 2, 3]],
    "a slice from -0 is the whole array": [1, 2][-0:] == [1, 2],
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_numpy_does_what_the_table_says(claim):
    assert CLAIMS[claim]


@pytest.mark.parametrize(
    ("exercise", "body", "says"),
    [
        (
            "patched_inputs",
            """
            full, less = norm(x), norm(x - written)
            if into == "queries":
                return less @ W_Q, full @ W_K, full @ W_V
            elif into == "keys" or "key":
                return full @ W_Q, less @ W_K, full @ W_V
            return full @ W_Q, full @ W_K, less @ W_V
            """,
            'write `into == "keys"`',
        ),
        (
            "merge_pairs",
            """
            result = []
            for i in range(len(ids)):
                if i + 1 < len(ids) and ids[i] == pair[0] and ids[i + 1] == pair[1]:
                    result.append(new)
                    i += 1
                else:
                    result.append(ids[i])
            return np.array(result, dtype=int)
            """,
            "A `for` sets `i` to the next number of its `range` in every round",
        ),
        (
            "patched_inputs",
            """
            full = {"query": norm(x), "keys": norm(x), "values": norm(x)}
            full[into] = norm(x - written)
            return full["query"] @ W_Q, full["keys"] @ W_K, full["values"] @ W_V
            """,
            "No text that comes in is `'query'`; there are `'keys'`, `'queries'`, `'values'`.",
        ),
        ("merge_heads", "np.hstack([x[..., i, :, :] for i in range(x.shape[-3])])", "joins along axis 1"),
        (
            "online_softmax",
            """
            if np.isneginf(scores).all():
                return largest, total, output.copy()
            largest = max(largest, scores.max())
            before = largest
            factor = np.exp(before - largest)
            tile = np.exp(scores - largest)
            total = total * factor + tile.sum()
            output = output * factor + tile @ values
            return largest, total, output
            """,
            "exchange `largest = max(largest, scores.max())` and the line below it",
        ),
    ],
)
def test_a_check_names_the_pitfall(exercise, body, says):
    assert says in checked(exercise, body).message
