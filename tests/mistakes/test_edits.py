"""Edits of a body: they leave it as it was, compose, and never put a list into itself."""

import ast
import contextlib
import itertools

import pytest
from learners import checked

from lesson_utils.exercises import check
from lesson_utils.mistakes.recognise.edit_messages import contradict
from lesson_utils.mistakes.recognise.fault_bank import tokens
from lesson_utils.mistakes.recognise.ingredients import Ingredients
from lesson_utils.mistakes.recognise.nearness import distance
from lesson_utils.mistakes.recognise.tree_edits import all_applied, edits, repairs
from lesson_utils.mistakes.run.outcome import Outcome

BODY = """
a = x - x.max(axis=-1) / 2
b = np.exp(a)
if n > 1:
    a = b
c = b.sum(axis=-1)
return b / c
"""
WHAT = Ingredients(("x", "n", "a", "b", "c"), modules=frozenset({"np"}))


def every_edit(text, what=WHAT):
    body = ast.parse(text).body
    return body, [edit for family in repairs(body, what) for edit in family]


def after(body, *some):
    with all_applied(some):
        return "\n".join(map(ast.unparse, body))


def test_edits_leave_the_body_as_it_was():
    body, found = every_edit(BODY)
    before = after(body)
    for pair in itertools.combinations(found[::7], 2):
        with contextlib.suppress(ValueError):  # both change the same place
            after(body, *pair)
        assert after(body) == before


def test_two_edits_of_different_lines_do_what_each_does():
    body, found = every_edit(BODY)
    lines = after(body).splitlines()
    in_line = {n: [e for e in found if e.line == n and not e.also and not e.words] for n in (2, 6, 7)}
    for a, b in itertools.product(in_line[2][::5], in_line[7][::3]):
        one, other, both = (after(body, *some).splitlines() for some in ((a,), (b,), (a, b)))
        assert both == [one[0], *lines[1:-1], other[-1]]


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [("a * 2", "a", "return b"), ("a * 2", "a / 2", "return b / 2"), ("a * 2", "a * 3", "return a * 3")],
)
def test_an_edit_inside_another_one_is_seen(first, second, wanted):
    """Though the outer one put a copy of the node, or a part of it, in its place."""
    body = ast.parse(f"return {first}").body
    found = list(edits(body, Ingredients(("a", "b"))))
    outer = [e for e in found if isinstance(e.old, ast.BinOp) and ast.unparse(e.new) == second]
    inner = [e for e in found if not isinstance(e.old, ast.BinOp)]
    outer += [e for e in found if ast.unparse(e.new) == "3"]
    made = set()
    for a, b in itertools.product(outer, inner):
        try:
            made.add(after(body, a, b))
        except ValueError:
            made.add(after(body, a))
    assert wanted in made


def test_no_edit_puts_a_list_into_itself():
    """NumPy would unpack it for seconds, in C, where nothing ends it."""
    body, found = every_edit(
        "for i in ids:\n    m.append(m[-1])\n    m += [new]\n    m[-1] = m[:-1]", Ingredients(("m", "new"))
    )
    texts = {after(body, edit) for edit in found}
    assert len(texts) > 20
    for inside in ("m.append(m)", "m.append(m[:-1])", "m += [m]", "m[-1] = m\n"):
        assert not any(inside in text for text in texts), inside


def test_the_same_slip_in_several_places_is_one_edit():
    _, found = every_edit(
        "u = np.mean(x, axis=0)\nv = np.mean(x * x, axis=0)\nreturn u * beta_1 + v * beta_2",
        Ingredients(("x", "u", "v", "beta_1", "beta_2"), modules=frozenset({"np"})),
    )
    several = {(edit.kind, edit.words) for edit in found if edit.also}
    assert ("axis", ("axis=0", "axis=-1")) in several
    assert ("function", ("mean", "sum")) in several
    assert ("exchanged", ("beta_1", "beta_2")) in several


def test_what_one_edit_puts_in_another_does_not_take_out():
    _, found = every_edit("return z + x", Ingredients(("x", "z"), terms=("x + {}",)))
    signs = [e for e in found if e.kind == "sign" and isinstance(e.old, ast.Name)]
    terms = [e for e in found if e.kind == "term"]
    assert signs
    assert all(contradict(a, b) and contradict(b, a) for a in signs for b in terms)


def test_what_two_edits_show_in_one_place_is_told_once():
    """Told one after the other, the second would be sought in vain, and take back what the first one did."""
    message = checked(
        "induction_head",
        """
        symbol, before, position, answer, d = 0, V, 2 * V, 2 * V + T, 3 * V + T
        mats = np.zeros((4, d, d))
        mats[0, position : position + T, position : position + T] = np.eye(T, k=-1)
        mats[1, symbol : symbol + V, before : before + V] = np.eye(V)
        mats[2, symbol : symbol + V, before : before + V] = np.eye(V)
        mats[3, symbol : symbol + V, answer : answer + V] = np.eye(V)
        return tuple(mats)
        """,
    ).message
    assert "write `0, V + T, V, 2 * V + T, 3 * V + T` instead of `0, V, 2 * V, 2 * V + T, 3 * V + T`" in message
    assert message.count("instead of") == 1


def test_numbers_are_words_whatever_their_spelling():
    assert tokens("1e-5") == tokens("1e-05") == tokens("0.00001")
    assert tokens("x_2")["x_2"] == 1


def test_a_row_of_another_length_is_nearer_if_its_ends_are_right():
    right = Outcome(ast.literal_eval("[1, 2, 3, 4, 5]"))
    half, none = Outcome([1, 2, 3, 5]), Outcome([9, 9, 9, 9])
    assert distance(half, right) < distance(none, right) == 3


def test_a_function_that_was_called_is_asked_for_without_brackets():
    for value in ([0.5, 0.5], 3.0, (1, 2)):
        result = check.softmax(value)
        assert result.passed is False
        assert "without brackets: `check.softmax(my_softmax)`" in result.message
    assert "without brackets: `check.softmax(my_softmax)`" in check.softmax(None).message


def test_a_list_beside_another_mistake_is_told():
    body = """
    merged = []
    for id_ in ids:
        if merged and {merged[-1], id_} == set(pair):
            merged[-1] = new
        else:
            merged.append(id_)
    return merged
    """
    message = checked("merge_pairs", body).message
    assert "turned round" in message
    assert "`merged` is a list" in message
