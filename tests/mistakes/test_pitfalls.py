"""The table of pitfalls: each is found where it stands, and right answers hold none that is sure."""

import ast
import re
import textwrap

import pytest
from learners import EXERCISES, checked
from right_answers import RIGHT, bodies

from lesson_utils.mistakes.recognise.pitfalls import MAYBE, SURE, pitfalls
from lesson_utils.mistakes.recognise.tree_edits import all_applied

STANDS_FOR = {"C": "'keys'", "D": "'key'", "N": "2"}  # for a letter of a pattern; else a name
ROWS = [
    (old, new, kind)
    for table, kind in ((SURE, "pitfall"), (MAYBE, "habit"))
    for olds, news, *_ in table
    for old in olds.split("; ")
    for new in news.split("; ")
]


def found(text):
    """What the edits make of a text, and the edits; the first that makes it."""
    body, made = ast.parse(textwrap.dedent(text)).body, {}
    for edit in pitfalls(body):
        with all_applied([edit]):
            made.setdefault("\n".join(map(ast.unparse, body)), edit)
    return made


def filled(pattern):
    text = re.sub(r"\b[A-GMP]\b|\bN\b", lambda letter: STANDS_FOR.get(letter[0], f"my_{letter[0]}"), pattern)
    return f"y = {ast.unparse(ast.parse(text))}"


@pytest.mark.parametrize(("old", "new", "kind"), ROWS)
def test_each_row_is_found_and_says_why(old, new, kind):
    edit = found(filled(old))[filled(new)]
    assert edit.kind == kind
    assert edit.why.endswith(".")
    assert "{" not in edit.why + edit.cure


LINES = [  # what is written, what is meant, and whether that is sure
    ("y = base ** -2 * i / d", "y = base ** (-2 * i / d)", True),
    ("y = d_k * a ^ 2", "y = d_k * a ** 2", True),
    ("y = (d_k * a) ^ 2", "y = (d_k * a) ** 2", True),
    ("y = d_k * (a ^ 2 / 3) ^ 2", "y = d_k * (a ** 2 / 3) ** 2", True),
    ("y = 2 ^ bits - 1", "y = 2 ** bits - 1", True),
    ("y = base ^ (i / d)", "y = base ** (i / d)", False),
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
    kinds = {after.replace("\npass", ""): edit.kind for after, edit in found(text).items()}
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
    assert not [edit.why for edit in found(text).values() if edit.kind == "pitfall"]


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_right_answers_hold_no_sure_pitfall(exercise):
    for body in [exercise.body({}), *bodies(RIGHT, exercise)]:
        text = "def answer():\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
        answer = ast.parse(text).body[0]
        assert not [edit.why for edit in pitfalls(answer.body) if edit.kind == "pitfall"]


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
            "patched_inputs",
            """
            full = {"query": norm(x), "keys": norm(x), "values": norm(x)}
            full[into] = norm(x - written)
            return full["query"] @ W_Q, full["keys"] @ W_K, full["values"] @ W_V
            """,
            "No text that comes in is `'query'`; there are `'keys'`, `'queries'`, `'values'`.",
        ),
    ],
)
def test_a_check_names_the_pitfall(exercise, body, says):
    assert says in checked(exercise, body).message
