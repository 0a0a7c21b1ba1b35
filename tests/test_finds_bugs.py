"""`check.finds_bugs`: a test is judged by the bugs that it finds, and what hides the others is named."""

import textwrap

import numpy as np
import pytest
from learners import EXERCISES, cell

from lesson_utils import attention, lessons, ops
from lesson_utils.exercises import check
from lesson_utils.exercises.bank import bank_of
from lesson_utils.exercises.bugs import bugs_of
from lesson_utils.exercises.trial import quick, quiet, same
from lesson_utils.exercises.wild import SEEN

REFERENCE = """
def reference(Q, K, V, mask=None):
    s = np.einsum("...qd,...kd->...qk", Q, K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return np.einsum("...qk,...kd->...qd", w, V), w
"""


def judged(source, of=None):
    names = cell(textwrap.dedent(source).strip() + "\n", {"np": np, "ops": ops, "library": attention})
    return check.finds_bugs(names["my_test"], *([of] if of else []))


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.name)
def test_the_bugs_run_and_are_wrong_each_in_its_own_way(exercise):
    bugs, bank = bugs_of(exercise), bank_of(exercise)
    assert 12 <= len(bugs) <= 16
    typed = {mistake.name for mistake in exercise.mistakes}
    assert all(bug.name in typed or bug.name == "another slip" for bug in bugs)
    with quiet():
        outcomes = [[quick(bug.function, case.arguments) for case in bank.cases] for bug in bugs]
    for bug, mine in zip(bugs, outcomes, strict=True):
        wrong = [not same(o, w) for o, w in zip(mine, bank.wanted, strict=True)]
        assert any(w and not o.error for w, o in zip(wrong, mine, strict=True)), bug.name
        assert len(bug.labels) == sum(wrong)
    for i, mine in enumerate(outcomes):
        for other in outcomes[:i]:
            assert not all(same(a, b) for a, b in zip(mine, other, strict=True))


def test_what_was_seen_in_public_is_a_mistake_of_some_exercise():
    names = {mistake.name for exercise in lessons.exercises().values() for mistake in exercise.mistakes}
    assert set(SEEN) <= names


def test_a_thorough_test_finds_all():
    result = judged(
        """
        def my_test(causal_mask):
            for T_q, T_k in [(1, 1), (3, 3), (2, 5), (1, 6)]:
                m = causal_mask(T_q, T_k)
                assert m.shape == (T_q, T_k) and m.dtype == bool
                for i in range(T_q):
                    for j in range(T_k):
                        assert m[i, j] == (j <= i + T_k - T_q), f"{i}, {j}"
        """
    )
    assert result.passed is True
    assert len(result.found) == result.total >= 12


def test_the_answer_counts_describes_and_explains():
    result = judged(
        """
        def my_test(causal_mask):
            m = causal_mask(4, 4)
            assert (m == np.tril(np.ones((4, 4), bool))).all()
        """
    )
    assert result.passed is False
    assert result.mistakes == ("equal sizes",)
    assert f"finds {len(result.found)} of {result.total} bugs" in result.message
    assert "`T_q` and `T_k` are both 4 in every call" in result.message
    assert "queries counted from the start: `return j <= i`" in result.message
    page = result._repr_mimebundle_()
    assert "<code>T_q</code>" in page["text/html"]
    assert 'href="https://github.com/' in page["text/html"]
    assert page["text/plain"].startswith("Not yet. Your test passes the right `causal_mask`")
