"""`check.finds_bugs`: a test is judged by the bugs that it finds, and what hides the others is named."""

import re
import textwrap

import numpy as np
import pytest
from learners import EXERCISES, cell

from lesson_utils.classroom import course
from lesson_utils.exercises import check
from lesson_utils.lessons.published_bugs import PUBLISHED
from lesson_utils.maths import attention, ops
from lesson_utils.mistakes.mutation_testing import analysis, spy
from lesson_utils.mistakes.mutation_testing.mutants import bugs_of
from lesson_utils.mistakes.mutation_testing.subject import subject
from lesson_utils.mistakes.recognise.fault_bank import bank_of
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import quick, quiet

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
    names = cell(
        textwrap.dedent(source).strip() + "\n",
        {"np": np, "ops": ops, "library": attention, "runs": [], "library_layer_norm": ops.layer_norm},
    )
    return check.finds_bugs(names["my_test"], *([of] if of else []))


OFTEN = ("attention", "causal_mask", "decode_step", "grouped_attention", "layer_norm", "rotary_halves", "softmax")
BANKS = [pytest.param(e, marks=[] if e.name in OFTEN else pytest.mark.long_form, id=e.name) for e in EXERCISES.values()]


@pytest.mark.parametrize("exercise", BANKS)
def test_the_bugs_run_and_are_wrong_each_in_its_own_way(exercise):
    bugs, bank = bugs_of(exercise, PUBLISHED), bank_of(exercise)
    assert 12 <= len(bugs) <= 16
    typed = {mistake.name for mistake in exercise.mistakes}
    assert all(bug.name in typed or bug.name == "another slip" for bug in bugs)
    with quiet():
        outcomes = [[quick(bug.function, case.arguments) for case in bank.cases] for bug in bugs]
    for bug, mine in zip(bugs, outcomes, strict=True):
        wrong = [not same(o, w) for o, w in zip(mine, bank.wanted, strict=True)]
        assert any(w and not o.error for w, o in zip(wrong, mine, strict=True)), bug.name
        assert len(bug.cases) == sum(wrong)
    for i, mine in enumerate(outcomes):
        for other in outcomes[:i]:
            assert not all(same(a, b) for a, b in zip(mine, other, strict=True))


def test_what_was_seen_in_public_is_a_mistake_of_some_exercise():
    names = {mistake.name for exercise in course.exercises().values() for mistake in exercise.mistakes}
    assert {name for together, _, _ in PUBLISHED for name in together} <= names


# Tests that learners write; how many bugs they find, of how many; and the names of the reasons why others survive.
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
        (1, 16),
        ("random results pass", "no mask", "inputs"),
    ),
    "equal sizes": (
        "def my_test(causal_mask): m = causal_mask(4, 4); assert (m == np.tril(np.ones((4, 4), bool))).all()",
        (12, 15),
        ("equal sizes",),
    ),
    "equal sizes, beside a bug that no size hides": (
        """
        def my_test(attention):
            x = np.ones((4, 4))
            output, weights = attention(x, x, x)
            assert np.allclose(weights, 0.25)
            assert np.allclose(output, 1)
        """,
        (2, 16),
        ("no mask", "special numbers", "equal sizes", "one sample", "inputs"),
    ),
    "saturated": (
        """
        def my_test(attention):
            rng = np.random.default_rng(0)
            Q, K, V = 100 * rng.normal(size=(2, 3, 5)), 100 * rng.normal(size=(2, 4, 5)), rng.normal(size=(2, 4, 6))
            output, weights = attention(Q, K, V)
            best = (Q @ K.swapaxes(-1, -2)).argmax(-1)
            assert np.allclose(weights, np.eye(4)[best])
            assert np.allclose(output, np.take_along_axis(V, best[..., None], -2))
        """,
        (6, 16),
        ("no mask", "special numbers"),
    ),
    "a sum as loss": (
        """
        def my_test(softmax_backward):
            weights = ops.softmax(np.random.default_rng(0).normal(size=(2, 3, 4, 5)))
            assert np.allclose(softmax_backward(np.ones((2, 3, 4, 5)), weights), 0)
        """,
        (11, 16),
        ("special numbers",),
    ),
    "a sum compared": (
        """
        def my_test(softmax):
            x = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
            e = np.exp(x)
            assert np.isclose(softmax(x).sum(), (e / e.sum(-1, keepdims=True)).sum())
        """,
        (8, 16),
        ("only a sum", "no large numbers"),
    ),
    "one sample": (
        """
        def my_test(add_positions):
            rng = np.random.default_rng(0)
            X, table = rng.normal(size=(1, 4, 6)), rng.normal(size=(10, 6))
            assert np.allclose(add_positions(X, table), X + table[:4])
        """,
        (13, 14),
        ("one sample",),
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
        (1, 15),
        ("its own reference",),
    ),
    "K = Q": (
        """
        def my_test(multi_head_attention):
            rng = np.random.default_rng(0)
            x, (W, W_V, W_O) = rng.normal(size=(2, 5, 6)), rng.normal(size=(3, 6, 6))
            output, weights = multi_head_attention(x, W, W, W_V, W_O, 2)
            Q, V = library.split_heads(x @ W, 2), library.split_heads(x @ W_V, 2)
            expected, maps = library.scaled_dot_product_attention(Q, Q, V)
            assert np.allclose(output, library.merge_heads(expected) @ W_O)
            assert np.allclose(weights, maps)
        """,
        (14, 16),
        ("special numbers",),
    ),
    "zeros": (
        """
        def my_test(gru_step):
            z = np.zeros
            h = gru_step(z((2, 3)), z((2, 4)), z((3, 12)), z((4, 12)), z(12), z(4))
            assert np.allclose(h, 0)
        """,
        (0, 16),
        ("special numbers",),
    ),
    "memorised": (
        """
        def my_test(layer_norm):
            y = layer_norm(np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones(4), np.zeros(4), 1e-5)
            assert abs(y[0, 0] + 1.3416) < 1e-3
        """,
        (6, 16),
        ("too narrow", "special numbers", "one sample", "inputs"),
    ),
    "only the norm": (
        """
        def my_test(rotate):
            x = np.random.default_rng(0).normal(size=(2, 5, 8))
            y = rotate(x, np.array([3, 1, 4, 15, 9]), 100.0)
            assert np.allclose(np.linalg.norm(x, axis=-1), np.linalg.norm(y, axis=-1))
        """,
        (4, 16),
        ("too narrow",),
    ),
    "no assert": (
        "def my_test(causal_mask): print(causal_mask(3, 5))",
        (1, 15),
        ("no assert",),
    ),
    "only printed": (
        """
        def my_test(causal_mask):
            if not np.array_equal(causal_mask(3, 5), np.tri(3, 5, 2) > 0):
                print("wrong")
        """,
        (1, 15),
        ("no assert",),
    ),
    "compared, then forgotten": (
        "def my_test(causal_mask): same = np.array_equal(causal_mask(3, 5), np.tri(3, 5, 2) > 0)",
        (1, 15),
        ("no assert",),
    ),
    "returned": (
        "def my_test(causal_mask): return np.array_equal(causal_mask(3, 5), np.tri(3, 5, 2) > 0)",
        (1, 15),
        ("no assert",),
    ),
    "caught": (
        """
        def my_test(causal_mask):
            try:
                assert np.array_equal(causal_mask(3, 5), np.tri(3, 5, 2) > 0)
            except Exception:
                print("failed")
        """,
        (0, 15),
        ("no assert",),
    ),
    "a pair in brackets": (
        """
        def my_test(causal_mask):
            assert (np.array_equal(causal_mask(3, 5), np.tri(3, 5, 2) > 0), "wrong mask")
        """,
        (1, 15),
        ("no assert",),
    ),
    "all, not called": (
        "def my_test(causal_mask): assert (causal_mask(3, 5) == (np.tri(3, 5, 2) > 0)).all",
        (3, 15),
        ("no assert",),
    ),
    "any": (
        "def my_test(causal_mask): assert (causal_mask(3, 5) == (np.tri(3, 5, 2) > 0)).any()",
        (6, 15),
        ("random results pass",),
    ),
    "never reached": (
        """
        def my_test(causal_mask):
            def compare(T_q, T_k):
                assert np.array_equal(causal_mask(T_q, T_k), np.tri(T_q, T_k, T_k - T_q) > 0)

            causal_mask(3, 5)
        """,
        (1, 15),
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
    assert all(text in result.text for text, _ in result.groups)
    described = "\n".join(line for _, lines in result.groups for line in lines)
    more = sum(map(int, re.findall(r"And (\d+) more, whose code stands below", described)))
    assert len(re.findall(r"^One (?:has|leaves out) ", described, re.MULTILINE)) + more == len(result.survivors)
    assert not more or "The code of those that survive" in dict(result.more)
    assert described.count("It shows, for instance, on ") >= len(result.groups)


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
    "plain Python": """
def my_test(my_softmax):
    x = np.array([[1.0, 2.0, 3.0], [4.0, 4.0, 1.0], [1000.0, 999.0, 0.0]])
    for row, weights in zip(x, my_softmax(x)):
        e = [np.exp(v - max(row)) for v in row]
        for a, b in zip(e, weights):
            assert abs(a / sum(e) - b) < 1e-8
    y = np.random.default_rng(0).normal(size=(2, 3, 4)) * [[[1000]], [[1]]]
    for i in range(2):
        assert np.allclose(my_softmax(y)[i], my_softmax(y[i]))
        for j in range(3):
            assert np.allclose(my_softmax(y)[i, j], my_softmax(y[i, j]))
""",
    "slopes": """
def my_test(attention_backward):
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))]
    G = rng.normal(size=(3, 2))
    loss = lambda *a: (library.scaled_dot_product_attention(*a)[0] * G).sum()
    found = attention_backward(G, *arguments, library.scaled_dot_product_attention(*arguments)[1])
    for array, slopes in zip(arguments, found):
        for i in np.ndindex(array.shape):
            before = array[i]
            array[i] = before + 1e-5
            up = loss(*arguments)
            array[i] = before - 1e-5
            assert abs((up - loss(*arguments)) / 2e-5 - slopes[i]) < 1e-6
            array[i] = before
""",
    "drawn at random, any seed": """
def my_test(score_variance):
    s = np.random.uniform(-2, 2, (2, 200_000, 3)).prod(0).sum(-1)
    assert abs(s.var() / score_variance(3, 2.0) - 1) < 0.05
    s = np.random.uniform(-1, 1, (2, 100_000, 8)).prod(0).sum(-1)
    assert abs(s.var() / score_variance(8, 1.0) - 1) < 0.05
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
    "exact": (
        """
        def my_test(softmax):
            x = np.random.default_rng(0).normal(size=(3, 7))
            e = np.exp(x - x.max(axis=-1, keepdims=True))
            assert np.array_equal(softmax(x), e / e.sum(axis=-1, keepdims=True))
        """,
        "rounds otherwise",
    ),
    "exactly 1": (
        """
        def my_test(softmax):
            assert (softmax(np.random.default_rng(0).normal(size=(30, 7))).sum(-1) == 1).all()
        """,
        "differ in the last digits",
    ),
    "another formula": (
        """
        def my_test(attention):
            rng = np.random.default_rng(0)
            Q, K, V = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
            e = np.exp(Q @ K.T)
            assert np.allclose(attention(Q, K, V)[1], e / e.sum(-1, keepdims=True))
        """,
        r"But it passes a wrong one, which leaves out `scores = ",
    ),
    "fails at times": (
        "def my_test(softmax): assert softmax(np.random.normal(size=4)).max() < 0.6",
        "seed",
    ),
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
        "passes lists",
    ),
    "an error that nobody promised": (
        """
        def my_test(causal_mask):
            try:
                causal_mask(5, 3)
            except ValueError:
                return
            raise AssertionError
        """,
        "does not promise",
    ),
    "a row of the mask that hides everything": (
        """
        def my_test(attention):
            rng = np.random.default_rng(0)
            Q, K, V = rng.normal(size=(3, 5)), rng.normal(size=(4, 5)), rng.normal(size=(4, 6))
            mask = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]], bool)
            output, weights = attention(Q, K, V, mask)
            assert np.all(weights[~mask] == 0)
        """,
        "Let each row of the mask hold a True",
    ),
    "too tight for float32": (
        """
        def my_test(layer_norm):
            rng = np.random.default_rng(0)
            x, gamma = (100 + rng.normal(size=(9, 50))).astype(np.float32), np.ones(50, np.float32)
            y = layer_norm(x, gamma, gamma, 1e-5)
            assert np.array_equal(y, library_layer_norm(x, gamma, gamma, 1e-5))
        """,
        "as right and rounds otherwise",
    ),
    "right by chance": (
        """
        def my_test(attention):
            rng = np.random.default_rng()
            output, weights = attention(*rng.normal(size=(3, 4, 4)))
            runs.append(0)
            assert len(runs) not in (15, 16, 17, 18, 19)
        """,
        "fails on the right one in 4 of 12 runs",
    ),
    "NumPy overwritten": (
        "def my_test(softmax): np.exp = np.exp2; softmax(np.zeros(3))",
        "in the place of `np.exp`",
    ),
    "left by exit": (
        """
        def my_test(softmax):
            softmax(np.zeros(3))
            raise SystemExit
        """,
        "leaves Python",
    ),
    "no parameter": ("def my_test(): assert True", "the function under test"),
    "two parameters": ("def my_test(attention, Q): assert attention", "Yours takes `(attention, Q)`"),
    "a name that nobody knows": ("def my_test(causal_musk): assert causal_musk(1, 1)", "Did you mean `causal_mask`"),
    "a class": ("class my_test: pass", "a class"),
    "a value": ("my_test = 3", "a value (int)"),
    "a result": ("my_test = True", "without calling it"),
    "a generator": ("def my_test(softmax): yield 1", "`yield`"),
    "awaited": ("async def my_test(softmax): assert softmax", "`async def`"),
}


@pytest.mark.parametrize(("source", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_test_of_the_right_function_is_answered_in_words(source, words):
    result = judged(source)
    assert result.passed is False
    assert result.total == 0
    assert words in result.message
    assert np.exp(0.0) == 1.0


@pytest.mark.parametrize("body", ["...", "pass", '"""Words."""\n    ...', "return ..."])
def test_an_untouched_stub_is_not_attempted(body):
    result = judged(f"def my_test(attention):\n    {body}")
    assert result.passed is None
    assert result.message.endswith("run its cell, then run this one again.")
    assert check.finds_bugs(None).passed is None


def test_no_bug_is_found_because_the_machine_stood_still(monkeypatch):
    real, stopped = analysis.run, set()

    def run(test, exercise, function, *rest, seconds=None, **options):
        if seconds and function not in stopped:
            stopped.add(function)
            return spy.Run(Outcome(timed_out=True), [], [], seconds)
        return real(test, exercise, function, *rest, seconds=seconds, **options)

    monkeypatch.setattr(analysis, "run", run)
    result = judged(HIDDEN["only errors"][0])
    assert len(stopped) == result.total
    assert result.found == ()


def test_an_endless_loop_is_stopped(monkeypatch):
    monkeypatch.setattr(spy, "TIME_LIMIT", 0.2)
    assert "had not come to an end" in judged("def my_test(softmax):\n    while True: pass").message


@pytest.mark.parametrize("passes", ["n <= 1", "n <= 5", "n <= 9", "n <= 15", "n < 6 or n > 18"])
def test_a_test_that_counts_its_runs_does_not_tell_right_from_wrong(passes):
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
    assert "does not tell right from wrong" in result.message


def test_what_is_wrong_in_another_way_is_noticed_by_an_assert_in_a_helper():
    """No `assert` stands in the test itself, and shapes are all that the helper compares."""
    result = judged("""
        def compare(a, shape):
            assert a.shape == shape

        def my_test(softmax):
            compare(softmax(np.arange(6.0).reshape(2, 3)), (2, 3))
        """)
    assert result.mistakes[0] == "random results pass"


def test_the_function_is_found_by_any_of_its_names():
    for name in ("attention", "my_attention", "scaled_dot_product_attention", "attention_fn"):
        assert subject(cell(f"def f({name}): ...\n", {})["f"], None, EXERCISES).name == "attention"
    for exercise in EXERCISES.values():
        assert subject(cell(f"def f({exercise.function_name}): ...\n", {})["f"], None, EXERCISES) is exercise
    assert subject(cell("def test_softmax(f): ...\n", {})["test_softmax"], None, EXERCISES).name == "softmax"
    assert subject(len, "layer_norm", EXERCISES).name == subject(len, ops.layer_norm, EXERCISES).name == "layer_norm"
    assert "yours is a int" in subject(len, 3, EXERCISES)
    fails = "Your test fails on the right `causal_mask`"
    assert judged("def my_test(f): assert not f(1, 1)", "causal_mask").message.startswith(fails)


def test_the_answer_counts_describes_and_explains():
    result = judged(HIDDEN["equal sizes"][0])
    assert "All sizes are equal in each call" in result.text
    assert "One has `return j <= i`. Seen: a server hid" in result.text
    assert "It shows, for instance, on T_q = 2 and T_k = 5" in result.text
    page = result._repr_mimebundle_()
    assert "return j &lt;= i</code>" in page["text/html"]
    assert 'href="https://github.com/hyprstream/hyprstream/issues/1521"' in page["text/html"]
    assert 'aria-label="12 of 15 bugs found"' in page["text/html"]
    assert page["text/plain"].startswith("Not yet. Your test passes the right `causal_mask`")
