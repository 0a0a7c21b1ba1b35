"""Every exercise accepts what is right in any style, rejects what is wrong, and names each mistake it knows."""

import ast
import builtins
import html
import itertools
import json
import keyword
import random
import re
import signal
import sys
import textwrap
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from blind_answers import BLIND
from learners import EXERCISES, cell, checked, verdict, written
from right_answers import RIGHT, STRANGE, bodies

from lesson_utils.classroom import course
from lesson_utils.exercises import check
from lesson_utils.mistakes import judge
from lesson_utils.mistakes.exercise import change
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.mutation_testing.mutants import slips
from lesson_utils.mistakes.recognise import search
from lesson_utils.mistakes.recognise.fault_bank import bank_of
from lesson_utils.mistakes.run import limits
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import attempt, quick, quiet
from lesson_utils.mistakes.verdict import code_to_html

pytestmark = pytest.mark.walks

ALL = [exercise for exercise in EXERCISES.values() if not exercise.broken]  # those share the mistakes of another
each = pytest.mark.parametrize("exercise", ALL, ids=lambda e: e.name)


def solved(exercise):
    return cell(exercise.solution, exercise.names())[exercise.function_name]


@each
def test_the_solution_shown_passes_when_pasted(exercise):
    result = run(replace(exercise, library=()), solved(exercise))
    assert (result.passed, result.message) == (True, exercise.praise)


@each
def test_the_stub_is_not_attempted_and_says_what_is_given_and_asked_for(exercise):
    stub = cell(exercise.stub, exercise.names())[exercise.function_name]
    assert run(exercise, stub).passed is None
    assert all(name in exercise.task for name in exercise.parameters), "shapes of what is given"
    assert "eturns" in exercise.task, "shapes of what is asked for"
    if any(isinstance(x, np.ndarray) and x.ndim for case in exercise.drawn for x in case.arguments):
        assert re.search(r"stays?\s+as\s+(it\s+was|they\s+were)", exercise.task), "what the check refuses is said"
    assert ("dtype" in exercise.task or "float64" in exercise.task) == (exercise.dtype == "kept")
    assert len(exercise.stub.splitlines()) <= 15


@each
def test_texts_are_complete(exercise):
    assert len(exercise.hints) >= 2
    assert len({m.message for m in exercise.mistakes}) == len(exercise.mistakes) >= 4
    assert exercise.praise


def parsed(code):
    """Code of a message: lines, arguments, what stands behind something, or the head of a block; `…` is anything."""
    for form in ("{}", "print({})", "...{}", "{} pass"):
        with suppress(SyntaxError):
            return [*ast.walk(ast.parse(form.format(code.replace("…", "..."))))]
    raise AssertionError(f"no Python: {code}")


@each
def test_the_code_of_a_message_names_only_what_every_learner_has(exercise):
    """Not a variable of the solution, which means something else in the learner's code, or nothing."""
    in_the_task = re.findall(r"`[^`]*`|\b(?:[A-Za-z]|[A-Z]\w*|\w+_\w+)\b", exercise.task)
    known = {*dir(builtins), *exercise.names(), *exercise.parameters, *exercise.returns, exercise.function_name}
    known.update(re.findall(r"\w+", " ".join(in_the_task)))
    for mistake in exercise.mistakes:
        codes = [code for code in re.findall(r"`([^`]+)`", mistake.message) if re.search("[A-Za-z]", code)]
        nodes = [n for code in codes if not (keyword.iskeyword(code) or hasattr(np, code)) for n in parsed(code)]
        methods = [n.func for n in nodes if isinstance(n, ast.Call) and hasattr(np, getattr(n.func, "id", ""))]
        names = [n for n in nodes if isinstance(n, ast.Name) and n not in methods]
        bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        assert {n.id for n in names} <= known | bound, mistake


@each
def test_each_mistake_is_named_as_typed(exercise):
    """Its first spelling, or by a name that does the same: an error hides what comes behind it."""
    names = [mistake.name for mistake in exercise.mistakes]
    for mistake in exercise.mistakes:
        result = checked(exercise.name, exercise.body(mistake.ways[0]))
        assert result.passed is False, mistake.name
        assert result.misconception in names, (mistake.name, result.message)


@each
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_what_is_right_passes_in_any_style(exercise):
    for body in bodies(RIGHT, exercise):
        result = checked(exercise.name, body)
        assert result.passed is True, (body, result.message)


@pytest.fixture
def in_a_hurry(monkeypatch):
    """The searches end early."""
    monkeypatch.setattr(search, "EDITS", 250)
    monkeypatch.setattr(search, "PAIRS", 1000)


@each
@pytest.mark.slow
@pytest.mark.long_form
def test_what_is_wrong_in_other_ways_is_answered_in_words(exercise, in_a_hurry, monkeypatch):
    """However short the searches are."""
    monkeypatch.setattr(search, "EDITS", 80)
    for body in bodies(STRANGE, exercise):
        result = checked(exercise.name, body)
        assert result.passed is False, body
        assert len(result.message) > 40
        assert not re.search(r"<locals>|<lambda>|__answer__|<answer>|_Returns", result.message), result.message


def tells(bank, known):
    """Is it wrong, and not only an error or zeros?"""
    outcomes = [known.outcome(i) for i in range(len(bank.cases))]
    return any(not same(o, w) and o.is_telling() for o, w in zip(outcomes, bank.wanted, strict=True))


@each
@pytest.mark.slow
@pytest.mark.long_form
def test_slips_that_nobody_typed_are_rejected(exercise, in_a_hurry):
    """The machine's slips, and pairs of typed mistakes: those that do something else than the solution are rejected."""
    bank = judge.bank_of(exercise)
    rng = np.random.default_rng(5)
    with quiet():
        made = [*slips(bank, every=3)]  # neighbours differ by little, and go the same ways
        single = (k for k in map(made.__getitem__, rng.permutation(len(made))) if tells(bank, k))
        pairs = (k for k in itertools.islice(bank.pairs(bank.changes), 0, 3000, 7) if tells(bank, k))
        chosen = [*itertools.islice(pairs, 12)]
        chosen += itertools.islice(single, 30 - len(chosen))
    assert len(chosen) >= min(12, len(made) // 10), "short solutions have fewer, and answers of 0s and 1s"
    results = [run(exercise, written(exercise.name, known.text)) for known in chosen]
    assert [r.passed for r in results] == [False] * len(results)
    named = sum(r.misconception is not None for r in results)
    print(f"{exercise.name}: {named} of {len(results)} generated mistakes are named")
    assert named >= 0.5 * len(results), "what no learner writes may be told by measurements"


def sample(exercise):
    """Some wrong answers: typed ones, also two or beside a mutant, mutants with and without a source, strange ones."""
    bank = judge.bank_of(exercise)
    with quiet():
        mutants = [m for m in slips(bank, every=60) if tells(bank, m)]
        pairs = [p for p in itertools.islice(bank.pairs(bank.changes), 3, 3000, 1000) if tells(bank, p)]
    typed = [fault.text for fault in bank.changes[2::9]]
    partial = [f for f in bank.changes[1::11] if not f.whole]
    beside = [(f, m) for f, m in zip(partial, mutants, strict=False) if not f.texts.keys() & m.replaced.keys()]
    for body in [
        *typed,
        *(p.text for p in pairs),
        *(m.text for m in mutants),
        *(exercise.body({**f.texts, **m.texts}) for f, m in beside),
        *list(bodies(STRANGE, exercise))[3::8],
    ]:
        yield written(exercise.name, body)
    yield from (m.program for m in mutants[:1])
    if len(exercise.parameters) > 1:
        takes = ", ".join(reversed(exercise.parameters))
        turned = f"def {exercise.function_name}({takes}):\n{textwrap.indent(exercise.body({}), '    ')}\n"
        yield cell(turned, exercise.names())[exercise.function_name]


@pytest.mark.long_form
@pytest.mark.own_job
def test_each_stage_of_the_search_names_something(in_a_hurry, monkeypatch):
    """Print how many of a sample of wrong answers each stage names; one that names nothing is not worth its lines."""
    named = Counter()

    def counted(stage):
        def search_and_count(one):
            found = stage.search(one)
            named[stage.name] += found is not None
            return found

        return replace(stage, search=search_and_count)

    monkeypatch.setattr(search, "STAGES", tuple(map(counted, search.STAGES)))
    results = [run(exercise, answer) for exercise in ALL[::3] for answer in sample(exercise)]
    results += [
        verdict(answer)
        for answer in BLIND
        if answer.exercise in ("merge_heads", "masked_attention", "rolling_mask", "shift_matrix", "rotary_halves")
    ]
    wrong = [r for r in results if r.passed is False]
    print(f"{len(wrong)} wrong answers")
    for stage in search.STAGES:
        print(f"{named[stage.name]:5} {named[stage.name] / len(wrong):6.1%}  {stage.name}")
    assert all(named[stage.name] for stage in search.STAGES)
    assert sum(r.misconception is not None for r in wrong) >= 0.8 * len(wrong)


@each
def test_no_spelling_of_a_mistake_passes(exercise):
    bank = bank_of(exercise)
    with quiet():
        for known in bank.changes:
            wrong = [i for i, w in enumerate(bank.wanted) if not same(known.outcome(i), w)]
            assert wrong, f"{known.name} passes every case"


NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def cells_of(lesson):
    book = json.loads((NOTEBOOKS / lesson.notebook).read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]


@pytest.mark.parametrize("lesson", course.LESSONS, ids=lambda lesson: lesson.name)
def test_each_stub_stands_in_the_notebook_as_the_exercise_says(lesson):
    """And the solution, written into it, passes the notebook's own check."""
    sources = cells_of(lesson)
    for name in lesson.exercises:
        exercise = EXERCISES[name]
        stubs = [s for s in sources if f"def {exercise.function_name}(" in s]
        assert len(stubs) == 1, f"the stub of {name} stands in one cell"
        assert exercise.stub.strip() in stubs[0], f"{lesson.notebook}: write the stub of {name} as\n{exercise.stub}"
        checks = [s for s in sources if f"check.{name}(" in s]
        assert checks == [f"check.{name}({exercise.function_name})"]
        filled = stubs[0].replace(exercise.stub.strip(), exercise.solution.strip())
        names = cell(filled, exercise.names() | {"check": check})
        assert eval(checks[0], names).passed is True
        ast.parse(filled)


@each
def test_the_arguments_survive_the_reference(exercise):
    for case in exercise.drawn:
        outcome = attempt(exercise.right, case.arguments)
        assert not outcome.changed
        assert not outcome.error


def test_written_functions_are_as_in_a_cell():
    assert written("softmax", "x").__name__ == "my_softmax"


# --- Time and tricks ------------------------------------------------------------------------------------------------


def says(function, *parts, exercise="softmax", **options):
    result = run(EXERCISES[exercise], function, **options)
    assert result.passed is False
    for part in parts:
        assert part in result.message, result.message
    return result


def forever(x):
    while True:
        pass


def stubborn(x):
    while True:
        try:  # noqa: SIM105  # as a learner writes it
            x = x + 1
        except Exception:
            pass


def sleeps(x):
    time.sleep(60)


@pytest.mark.parametrize("function", [forever, stubborn, sleeps])
def test_what_never_ends_is_stopped(function):
    start = time.monotonic()
    says(function, "had not returned", "Does a loop never end?", time_limit=0.2)
    assert time.monotonic() - start < 30  # a bound on hanging, not on speed


@pytest.mark.parametrize("function", [forever, stubborn])
def test_without_signals_a_trace_function_stops_it(function):
    """As in a thread, and on Windows."""
    with ThreadPoolExecutor() as pool:
        result = pool.submit(run, EXERCISES["softmax"], function, 0.2).result()
    assert "had not returned" in result.message


def contains_itself(x):
    found = []
    for _ in x:
        found.append(found)
    return found


@pytest.mark.slow
def test_a_list_that_contains_itself_is_answered():
    says(contains_itself, "contains itself")


def leaves(x):
    sys.exit()


def prints(x):
    for i in range(2_000):
        print(i)
    return x


def test_leaving_python_is_answered():
    says(leaves, "`return` ends a function")


@pytest.mark.slow
def test_what_is_printed_is_cut(capsys, in_a_hurry):
    says(prints, "x", time_limit=60)
    shown = capsys.readouterr().out
    assert len(shown) < 9 * 3000
    assert "are left out" in shown


def test_the_kernel_is_as_before():
    numbers, random_state = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    options, handler, warned = np.get_printoptions(), signal.getsignal(signal.SIGINT), list(warnings.filters)

    def careless(x):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        np.seterr(all="raise")
        np.set_printoptions(precision=2)
        return x

    says(careless)
    assert (np.random.get_state()[1] == numbers).all()  # noqa: NPY002
    assert random.getstate() == random_state
    assert np.get_printoptions() == options
    assert signal.getsignal(signal.SIGINT) == handler
    assert sys.gettrace() is None
    assert warnings.filters == warned
    assert np.geterr()["over"] == "warn"


def test_what_a_learners_line_sets_ends_with_its_call():
    def careless(x):
        np.seterr(all="raise")
        return x

    far = (np.array([-1e4, 1e4]),)
    with quiet():
        quick(careless, far)
        assert quick(np.exp, far).error is None


def test_what_np_empty_holds_is_the_same_each_time(in_a_hurry):
    """Memory that nobody wrote makes no answer right by luck, and no mistake unknown."""
    body = "angles = np.arange(length)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)\n"
    body += "table = np.empty((length, d_model))\ntable[:, 0::2] = np.sin(angles)\nreturn table"
    first, again = checked("sinusoids", body), checked("sinusoids", body)
    assert first.message == again.message
    assert "part of yours is never written" in first.message
    assert not checked("causal_mask", "m = np.empty((T_q, T_k), bool)\nreturn m").passed
    assert np.empty is real_empty


real_empty = np.empty


HUGE = ["np.ones((10**6, 10**6))", "np.zeros(10**13)", "np.zeros((2000, 2000))"]  # two that no system has, one too many
if sys.platform == "linux":  # where what has no limit would end the kernel
    HUGE += ["np.zeros(10**9)", "np.arange(0, 1e9, 2)", "np.eye(30_000)", "np.ones((10**4, 10**5))"]


def address_space():
    return limits.resource and limits.resource.getrlimit(limits.resource.RLIMIT_AS)


@pytest.mark.parametrize("made", HUGE)
def test_nobody_waits_for_a_huge_array(made, in_a_hurry):
    before = address_space()
    message = checked("softmax", f"{made} + x[..., :1]").message
    assert re.search(r"of shape `\([\d, ]{10,}\)`; no case needs that many numbers", message), message
    assert address_space() == before


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the clock may ring in Hypothesis's gc hook
def test_what_grows_in_a_loop_is_stopped(in_a_hurry):
    message = checked("softmax", "while len(x) < 10**8:\n    x = np.concatenate([x, x])\nreturn x").message
    assert re.search("no case needs that many|had not returned", message), message


def test_overwritten_functions_are_named_and_put_back():
    real, answer = np.exp, solved(EXERCISES["softmax"])
    np.exp = lambda x: x
    try:
        result = run(EXERCISES["softmax"], answer)
        assert result.passed is True
        assert "`np.exp`" in result.message
        assert np.exp is real
    finally:
        np.exp = real


async def awaited(x):
    return x


def generator(x):
    yield x


class Softmax:
    pass


@pytest.mark.parametrize(
    ("function", "part"),
    [(awaited, "`async`"), (generator, "`yield`"), (Softmax, "a class"), (np.zeros(3), "value (ndarray)")],
)
def test_what_is_no_plain_function_is_told_so(function, part):
    says(function, part)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda w: w.tolist(), "put `np.array(...)` around it"),
        (lambda w: w.astype(object), "Python objects"),
        (lambda w: np.ma.array(w, mask=w > 0.5), "masked array"),
        (lambda w: 2 * w[..., None], "an axis of length 1 too many"),
        (lambda w: "done", "is a str"),
        (lambda w: None, "returned None"),
        (lambda w: w * np.nan, "NaN"),
        (lambda w: np.random.default_rng().random(w.shape), "another result each time"),
    ],
)
def test_odd_results_are_told_apart(change, part):
    names = {"change": change, "softmax": softmax}
    exec("def answer(x): return change(softmax(x))", names)  # without a source, so that no line of it can be mended
    result = run(EXERCISES["softmax"], names["answer"])
    assert result.passed is False
    assert part.lower() in result.message.lower(), result.message


def test_a_changed_argument_and_another_dtype_are_named():
    def in_place(x):
        x -= x.max(-1, keepdims=True)
        return softmax(x)

    says(in_place, "changes its argument `x` in place")
    says(
        lambda x: softmax(x.astype(float)),
        "float32 went in",
        "came out as float64",
        "write `x.astype(x.dtype)` instead of",
    )
    says(lambda x: softmax(x) * np.ones(1), "float32 went in", "`np.ones(1, dtype=x.dtype)`")


def test_the_librarys_own_function_is_no_solution():
    result = says(written("softmax", "ops.softmax(x)"), "is the library's own, and right")
    assert result.misconception == "the library's own"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "body", "parts"),
    [
        ("softmax", "x.softmax()", ["An array has no `softmax`", "`x` has shape (5,)"]),
        ("softmax", "e = np.exp(y)\nreturn e", ["There is no `y` here"]),
        ("softmax", "np.exp(x, dim=-1)", ["`dim=` is PyTorch's; NumPy's is `axis=`"]),
        ("sinusoids", "a = np.arange(length) ^ base\nreturn a", ["`^`", "a power is `**`"]),
        ("feed_forward", "x @ W_1 @ W_1 @ W_2", ["`x @ W_1` has shape (4, 7), `W_1` has shape (3, 7)"]),
        ("attention", "7 * Q @ K.swapaxes(-1, -2), V", ["has shape"]),
        (
            "pre_norm_block",
            "norm_2(x) + 3 * attend(x)",
            ["Yours: `y = norm_2(x) + 3·attend(x)`", "Asked for: `y = x +"],
        ),
    ],
)
def test_what_has_no_name_is_located(exercise, body, parts, in_a_hurry):
    result = checked(exercise, body)
    assert result.passed is False
    for part in parts:
        assert part in result.message, result.message


def test_texts_and_comments_are_not_read_as_code():
    """The task of this exercise, which stands in the stub, writes 2^bits for a power."""
    body = "low = x.min(axis=axis, keepdims=True)  # 2^bits − 1 gaps\nreturn low + 0 * x"
    result = checked("rounded", f'"""{EXERCISES["rounded"].task}"""\n{body}')
    assert result.passed is False
    assert "**" not in result.message


def test_one_edit_of_the_learners_own_line_is_found():
    body = "m = x.mean(-1, keepdims=True)\nv = np.mean(x - m, axis=-1, keepdims=True) ** 2\n"
    result = checked("layer_norm", f"{body}return gamma * (x - m) / np.sqrt(v + eps) + beta")
    assert "Line 3" in result.message
    assert "np.mean((x - m) ** 2, axis=-1, keepdims=True)" in result.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "body", "parts"),
    [
        (
            "adam_step",
            "a = beta_1 * m + (1 - beta_1) * grad\nb = beta_2 * v + (1 - beta_2) * grad**2\nc = a / (1 + beta_1**t)\n"
            "d = b / (1 + beta_2 * t)\nreturn value - lr * c / (np.sqrt(d) + eps), a, b",
            ["`m` and `v` are right in every case; `value` is not"],
        ),
    ],
)
def test_of_three_slips_that_nobody_typed_together_nothing_is_made_up(exercise, body, parts):
    """Edits that lead to a typed mistake misled too often: where no two edits mend the lines, results are measured."""
    result = checked(exercise, body)
    assert (result.passed, result.misconception) == (False, None), result.message
    assert "would be right" not in result.message
    for part in parts:
        assert part in result.message, result.message


@pytest.mark.parametrize(
    ("exercise", "body", "part"),
    [
        ("weighted_average", "t = 0\nfor w, v in zip(weights, values):\n    t = t + w * v\nreturn t", "a loop"),
        ("softmax", "e = np.exp(x - x.max(-1, keepdims=True))\nreturn e / (e.sum(-1, keepdims=True) + 1e-12)", "1e-12"),
        (
            "context_vector",
            "w = ops.softmax(np.where(mask, scores, -1e9))\nreturn (w[:, None] @ keys)[:, 0], w",
            "float16",
        ),
        ("additive_score", "np.tanh((query @ W_q)[:, None] + keys @ W_k) @ v.astype(float)", "came out as float64"),
    ],
)
def test_remarks_stand_with_the_praise(exercise, body, part):
    result = checked(exercise, body)
    assert result.passed is True, result.message
    assert "Right, and yet: " in result.message
    assert part in result.message


def test_what_overflows_is_not_said_to_ignore_its_arguments():
    message = checked(
        "sampling_probabilities",
        """
        kth = np.sort(logits)[..., -top_k][..., None] if top_k else -np.inf
        kept = np.exp(logits / temperature) * (logits >= kth)
        return kept / kept.sum(axis=-1, keepdims=True)
        """,
    ).message
    assert "does not depend" not in message, message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "body", "parts"),
    [
        (
            "add_positions",  # the mistake is the argument's, not the line's that an edit would mend by chance
            "X[0] += table[:X.shape[1]].astype(X.dtype)\nreturn X",
            [
                "changes its argument `X` in place in line 2",
                "The results are wrong, too",
                "Along axis 0, the parts with index 1 and 2 are wrong",
            ],
        ),
        ("score_variance", "d_k * a**4 / 12", ["it is 3/4 of what it should be, in every case"]),
        (
            "context_vector",
            "w = ops.softmax(np.where(mask, scores, -np.inf))\nreturn np.stack([w[0] @ k for k in keys]), w",
            ["`weights` is right in every case", "Row 1 is wrong"],
        ),
        (
            "softmax",
            "e, last = np.exp(x - x.max(-1, keepdims=True)), dict(axis=-1, keepdims=True)\n"
            "return (e + e.mean(**last)) / (e.sum(**last) + x.shape[-1])",
            ["Each row of `weights` should sum to 1; yours sums to 0.6461"],
        ),
        (
            "merge_heads",
            "np.concatenate([x[..., 1, :, :], x[..., 0, :, :]], axis=-1)",
            ["it holds the columns 2, 3, 0, 1 of the right result. Columns 4 and 5 are missing"],
        ),
        (
            "multi_head_attention",
            """
            out, w = attention.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)
            return out @ W_O, np.stack([w] * num_heads, axis=-3)
            """,
            ["Right on: one head; a batch of one, a single token (2 of 8 cases are right)"],
        ),
        (
            "additive_score",
            "ops.softmax(np.tanh((query @ W_q)[:, None] + keys @ W_k).sum(-1))",
            ["You return weights.", "`np.tanh(…) @ v`"],
        ),
        (
            "sampling_probabilities",  # writing into a copy would do nothing, as a known mistake does
            "p = ops.softmax(logits / temperature)\np[np.argsort(logits)[top_k:]] = 0\nreturn p",
            ["should sum to 1"],
        ),
    ],
)
def test_what_is_said_was_measured(exercise, body, parts):
    """Of answers that edits by chance, or made-up pairs of mistakes, once explained."""
    result = checked(exercise, body)
    assert result.passed is False
    for part in parts:
        assert part in result.message, result.message


def test_a_loop_over_what_is_written_out_is_no_reproach():
    result = checked(
        "pre_norm_block",
        """
        for part, norm in ((attend, norm_1), (feed_forward, norm_2)):
            x = x + part(norm(x))
        return x
        """,
    )
    assert (result.passed, "loop" in result.message) == (True, False), result.message


# --- Not attempted yet ----------------------------------------------------------------------------------------------


def stub(x): ...


def stub_with_words(x):
    """Softmax."""
    # your code here


def stub_used(x):
    shifted = ...
    return np.exp(x) / shifted


def idle(x):
    pass


@pytest.mark.parametrize("function", [stub, stub_with_words, stub_used, idle, None, ...])
def test_stubs_are_not_attempted(function):
    assert check.softmax(function).passed is None


def test_without_a_source_a_stub_is_known_by_its_code():
    names = {}
    for body in ("...", "pass", "return", "'Words.'", "'Words.'; return None"):
        exec(f"def without_source(x): {body}", names)
        assert check.softmax(names["without_source"]).passed is None
    exec("def without_source(x): return x", names)
    assert check.softmax(names["without_source"]).passed is False


def test_the_name_of_a_mistake_is_not_given_twice():
    with pytest.raises(ValueError, match="more than one mistake is called"):
        replace(EXERCISES["softmax"], mistakes=(*EXERCISES["softmax"].mistakes, EXERCISES["softmax"].mistakes[0]))
    with pytest.raises(ValueError, match="no step 'shfit'"):
        replace(EXERCISES["softmax"], mistakes=(change("typo", "A typo.", shfit=""),))


# --- What is shown --------------------------------------------------------------------------------------------------


def test_hints_open_one_by_one_and_the_solution_comes_last():
    page = check.softmax(stub)._repr_mimebundle_()["text/html"]
    found = re.findall(r"<summary[^>]*>([^<]+)</summary>", page)
    assert found == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Show a solution"]
    assert page.count("</details></details></details></details>") == 1  # each inside the one before


def test_a_solution_is_shown_as_it_stands():
    for exercise in EXERCISES.values():
        shown = code_to_html(exercise.solution)
        assert html.unescape(re.sub(r"</?(pre|span)[^>]*>", "", shown)) == exercise.solution, exercise.name
    assert code_to_html('x = "if <b>"  # or not').count("<span") == 2  # neither word in them is a keyword


def test_who_has_passed_sees_the_solution_and_no_hints():
    page = check.softmax(softmax)._repr_mimebundle_()["text/html"]
    assert "Compare with our solution" in page
    assert "Hint" not in page


def test_what_a_learner_wrote_is_escaped():
    def tags(x):
        raise ValueError("<b>bold</b>")

    page = check.softmax(tags)._repr_mimebundle_()["text/html"]
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize("number", [0.0, 5.0, np.inf, np.nan])
def test_an_infinite_result_is_like_no_other(number):
    assert not same(Outcome(np.array([1.0, number])), Outcome(np.array([1.0, -np.inf])))
    assert not same(Outcome(np.array([1.0, -np.inf])), Outcome(np.array([1.0, number])))
    assert same(Outcome(np.array([number])), Outcome(np.array([number])))


@pytest.mark.parametrize(
    "numbers", [[], [0.0], [2.5], [2.5, 2.5], [0.0, 2.5], [1.0, 0.0], [np.nan, 2.5, -3.0], [np.inf]]
)
def test_results_tell_something_if_two_of_their_numbers_differ(numbers):
    """Beside 0 and 1, which many mistakes have in common."""
    different = {x for x in numbers if np.isfinite(x)} - {0, 1}
    assert Outcome(np.array(numbers)).is_telling() == (len(different) >= min(2, len(numbers)))
