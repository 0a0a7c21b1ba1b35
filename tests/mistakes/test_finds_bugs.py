"""`check.finds_bugs`: a test is judged by the bugs that it finds, and what hides the others is named."""

import textwrap

import numpy as np
import pytest
from learners import EXERCISES, cell

from lesson_utils.classroom import course
from lesson_utils.exercises import check
from lesson_utils.lessons.published_bugs import PUBLISHED
from lesson_utils.maths import attention, ops
from lesson_utils.mistakes.mutation_testing.mutants import bugs_of
from lesson_utils.mistakes.recognise.fault_bank import bank_of
from lesson_utils.mistakes.run.outcome import same

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


OFTEN = ("attention", "causal_mask", "decode_step", "grouped_attention", "layer_norm", "rotary_halves", "softmax")
BANKS = [pytest.param(e, marks=[] if e.name in OFTEN else pytest.mark.long_form, id=e.name) for e in EXERCISES.values()]


@pytest.mark.parametrize("exercise", BANKS)
def test_the_bugs_run_and_are_wrong_each_in_its_own_way(exercise):
    bugs, wanted = bugs_of(exercise, PUBLISHED), bank_of(exercise).wanted
    assert 12 <= len(bugs) <= 16
    typed = {mistake.name for mistake in exercise.mistakes}
    assert all(bug.name in typed or bug.name == "another slip" for bug in bugs)
    for i, bug in enumerate(bugs):
        differs = [not same(*pair) for pair in zip(bug.outcomes, wanted, strict=True)]
        assert any(d and not o.error for d, o in zip(differs, bug.outcomes, strict=True)), bug.name
        assert len(bug.cases) == sum(differs)
        for other in bugs[:i]:
            assert not all(map(same, bug.outcomes, other.outcomes))


def test_what_was_seen_in_public_is_a_mistake_of_some_exercise():
    names = {mistake.name for exercise in course.exercises().values() for mistake in exercise.mistakes}
    assert {name for together, _, _ in PUBLISHED for name in together} <= names


# Tests that learners write; how many bugs they find, of how many; and the names of what hides the others.
HIDDEN = {
    "only shapes": (
        """
        def my_test(attention):
            rng = np.random.default_rng(0)
            Q, K, V = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 4, 5)), rng.normal(size=(2, 4, 6))
            output, weights = attention(Q, K, V)
            assert output.shape == (2, 3, 6)
            assert weights.shape == (2, 3, 4)
        """,
        (3, 16),
        ("random results pass", "no mask"),
    ),
    "equal sizes": (
        "def my_test(causal_mask): m = causal_mask(4, 4); assert (m == np.tril(np.ones((4, 4), bool))).all()",
        (13, 16),
        ("equal sizes",),
    ),
    "one sample": (
        """
        def my_test(softmax):
            scores = np.random.default_rng(0).normal(size=5)
            for x in (scores, 1000 * scores):
                assert np.allclose(softmax(x), ops.softmax(x))
        """,
        (9, 16),
        ("equal sizes", "one sample"),
    ),
    "tolerance .1": (
        """
        def my_test(multi_head_attention):
            rng = np.random.default_rng(0)
            x, W = 0.1 * rng.normal(size=(2, 5, 6)), [0.3 * rng.normal(size=(6, 6)) for _ in range(4)]
            output, weights = multi_head_attention(x, *W, 2)
            Q, K, V = (library.split_heads(x @ w, 2) for w in W[:3])
            expected, maps = library.scaled_dot_product_attention(Q, K, V)
            assert np.allclose(output, library.merge_heads(expected) @ W[3], atol=0.1)
            assert np.abs(weights - maps).max() < 0.1
        """,
        (0, 16),
        ("too loose",),
    ),
    "its own reference": (
        """
        def my_test(causal_mask):
            for n in range(1, 6):
                assert np.array_equal(causal_mask(n, n + 2), causal_mask(n, n + 2))
        """,
        (1, 16),
        ("no assert",),
    ),
    "a pair in brackets": (
        """
        def my_test(causal_mask):
            assert (np.array_equal(causal_mask(3, 5), np.tri(3, 5, 2) > 0), "wrong mask")
        """,
        (1, 16),
        ("no assert",),
    ),
    "only errors": (
        """
        def my_test(attention):
            try:
                attention(np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 4)))
            except ValueError:
                pass
            else:
                raise AssertionError("shapes do not fit")
        """,
        (0, 16),
        ("only errors",),
    ),
}


@pytest.mark.filterwarnings("ignore:assertion is always true:SyntaxWarning")
@pytest.mark.parametrize(("source", "count", "mistakes"), HIDDEN.values(), ids=HIDDEN)
def test_bugs_are_counted_and_what_hides_the_others_is_named(source, count, mistakes):
    result = judged(source)
    assert result.passed is False
    assert (len(result.found), result.total) == count
    assert f"finds {count[0] or 'none'} of {count[1]} bugs. " in result.message
    assert result.mistakes == mistakes
    for why, lines in result.groups:
        assert why in result.text
        assert all(line.startswith("One ") and "It shows, for instance, on " in line for line in lines)
    code = dict(result.more)["The code of all that survive"]
    assert [line[2:] for line in code.splitlines() if line.startswith("# ")] == list(result.survivors)


THOROUGH = {
    "reference, many shapes": REFERENCE
    + """
def my_test(attention):
    rng = np.random.default_rng(0)
    for lead in ((), (2,), (2, 3)):
        for T_q, T_k, d_k, d_v in ((3, 5, 6, 4), (2, 7, 3, 5)):
            Q, K, V = (rng.normal(size=(*lead, a, b)) for a, b in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
            mask = rng.random((T_q, T_k)) < 0.5
            mask[:, 0] = True
            for m in (None, mask):
                for got, want in zip(attention(Q, K, V, mask=m), reference(Q, K, V, m)):
                    np.testing.assert_allclose(got, want, rtol=1e-6)
""",
    "each step of a cache against the whole": """
def my_test(decode_step):
    rng = np.random.default_rng(4)
    x, (W_Q, W_K), W_V = rng.normal(size=(6, 5)), rng.normal(size=(2, 5, 3)), rng.normal(size=(5, 4))
    whole, _ = library.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V, library.causal_mask(6, 6))
    K, V = np.empty((0, 3)), np.empty((0, 4))
    for t in range(6):
        output, K, V = decode_step(x[t : t + 1], W_Q, W_K, W_V, K, V)
        np.testing.assert_allclose(output[0], whole[t], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(K, x @ W_K)
    np.testing.assert_allclose(V, x @ W_V)
""",
    "raises": """
def my_test(causal_mask):
    def compare(T_q, T_k):
        if not np.array_equal(causal_mask(T_q, T_k), np.tri(T_q, T_k, T_k - T_q) > 0):
            raise ValueError("wrong")
    for T_q in range(1, 4):
        compare(T_q, T_q + 2)
""",
}


@pytest.mark.parametrize("source", THOROUGH.values(), ids=THOROUGH)
def test_a_thorough_test_in_any_style_finds_all(source):
    result = judged(source)
    assert (result.passed, result.survivors, result.mistakes) == (True, (), ())
    assert len(result.found) == result.total >= 12


# What does not get as far as the bugs, and words of the answer.
REFUSED = {
    "exactly 1": (
        """
        def my_test(softmax):
            assert (softmax(np.random.default_rng(0).normal(size=(30, 7))).sum(-1) == 1).all()
        """,
        "last digits may differ",
    ),
    "fails at times": ("def my_test(softmax): assert softmax(np.random.normal(size=4)).max() < 0.6", "seed"),
    "never called": (
        "def my_test(attention): library.scaled_dot_product_attention(*np.ones((3, 2, 2)))",
        "never calls the function that it is given, `attention`",
    ),
    "a pair not unpacked": (
        "def my_test(attention): assert attention(*np.ones((3, 2, 2))).shape == (2, 2)",
        "returns 2 things: `output, weights = attention(...)`",
    ),
    "a mask the wrong way round, compared exactly": (
        """
        def my_test(attention):
            rng = np.random.default_rng(1)
            mask = np.arange(5) > np.arange(3)[:, None]
            _, weights = attention(rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2)), mask)
            assert (weights[mask] == 0).all()
            assert np.allclose(weights.sum(axis=-1), 1)
        """,
        "But it passes a wrong one, which has `if mask is not None: ⏎ scores = np.where(mask, -np.inf, scores)`",
    ),
    "assert in front of np.testing": (
        "def my_test(softmax): assert np.testing.assert_allclose(softmax(np.zeros(4)), 0.25)",
        "Leave out the `assert`",
    ),
    "lists": (
        "def my_test(softmax): assert np.allclose(softmax([0.0, 0.0]), 0.5)",
        "lists in the place of arrays",
    ),
    "NumPy overwritten": (
        "def my_test(softmax): np.exp = np.exp2; softmax(np.zeros(3))",
        "in the place of `np.exp`",
    ),
    "two parameters": ("def my_test(attention, Q): assert attention", "Yours takes `(attention, Q)`"),
    "a name that nobody knows": ("def my_test(causal_musk): assert causal_musk(1, 1)", "Did you mean `causal_mask`"),
    "a class": ("class my_test: pass", "a class"),
    "a generator": ("def my_test(softmax): yield 1", "`yield`"),
    "awaited": ("async def my_test(softmax): assert softmax", "`async def`"),
}


@pytest.mark.parametrize(("source", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_test_of_the_right_function_is_answered_in_words(source, words):
    result = judged(source)
    assert (result.passed, result.total) == (False, 0)
    assert words in result.message
    assert np.exp(0.0) == 1.0


@pytest.mark.parametrize("body", ["...", "pass", '"""Words."""\n    ...', "return ..."])
def test_an_untouched_stub_is_not_attempted(body):
    result = judged(f"def my_test(attention):\n    {body}")
    assert result.passed is None
    assert result.message.endswith("run its cell, then run this one again.")
    assert check.finds_bugs(None).passed is None


def test_an_endless_loop_is_stopped():
    assert "had not come to an end" in judged("def my_test(softmax):\n    while True: pass").message


@pytest.mark.parametrize("passes", ["n <= 1", "n <= 5", "n <= 15"])
def test_a_test_that_counts_its_runs_is_refused(passes):
    """It passes the first functions, and refuses the rest: with every bug refused, it would seem perfect."""
    result = judged(f"""
        runs = []

        def my_test(softmax):
            softmax(np.zeros(3))
            runs.append(1)
            n = len(runs)
            assert {passes}
        """)
    assert (result.passed, result.total) == (False, 0)


def test_the_function_is_found_by_any_of_its_names():
    fails = "Your test fails on the right `{}`"
    for name in ("attention", "my_attention", "scaled_dot_product_attention"):
        assert judged(f"def my_test({name}): assert not {name}").message.startswith(fails.format("attention"))
    for of in ("layer_norm", ops.layer_norm):
        assert judged("def my_test(f): assert not f", of).message.startswith(fails.format("layer_norm"))
    assert "yours is a int" in judged("def my_test(f): assert f", 3).message


def test_the_answer_counts_describes_and_explains():
    result = judged(HIDDEN["equal sizes"][0])
    assert "All sizes are equal in each call" in result.text
    assert "One has `return j <= i`. Seen: a server hid" in result.text
    assert "It shows, for instance, on T_q = 2 and T_k = 5" in result.text
    page = result._repr_mimebundle_()
    assert "return j &lt;= i</code>" in page["text/html"]
    assert 'href="https://github.com/hyprstream/hyprstream/issues/1521"' in page["text/html"]
    assert 'aria-label="13 of 16 bugs found"' in page["text/html"]
    assert page["text/plain"].startswith("Not yet. Your test passes the right `causal_mask`")
