"""Every exercise accepts what is right in any style, rejects what is wrong, and names each mistake it knows."""

import ast
import builtins
import html
import json
import keyword
import random
import re
import signal
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from learners import EXERCISES, cell, checked, written
from right_answers import RIGHT, STRANGE, bodies

from lesson_utils.classroom import course
from lesson_utils.exercises import check
from lesson_utils.mistakes.exercise import Case, Exercise, change
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.recognise.fault_bank import bank_of
from lesson_utils.mistakes.run import limits
from lesson_utils.mistakes.run.outcome import Outcome, same
from lesson_utils.mistakes.run.sandbox import attempt, quiet
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
    assert all(name in exercise.task for name in exercise.parameters), "the task says what each parameter is"
    assert "eturns" in exercise.task, "the task says what the function `Returns`"
    if any(isinstance(x, np.ndarray) and x.ndim for case in exercise.drawn for x in case.arguments):
        assert re.search(r"stays?\s+as\s+(it\s+was|they\s+were)", exercise.task), (
            "say that what is given stays as it was"
        )
    said = "dtype" in exercise.task or "float64" in exercise.task
    assert said == (exercise.dtype == "kept"), 'a task names the dtype if it has dtype="kept", and only then'
    assert len(exercise.stub.splitlines()) <= 15, "the stub is a cell of at most 15 lines: shorten the task"


@each
def test_texts_are_complete(exercise):
    assert len(exercise.hints) >= 2, "give at least two hints"
    assert len(exercise.mistakes) >= 4, "type at least four mistakes"
    assert len({m.message for m in exercise.mistakes}) == len(exercise.mistakes), "each has a message of its own"
    assert exercise.praise, "say in `praise` what a right function has shown"


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
        unknown = {n.id for n in names} - known - bound
        assert not unknown, f"{mistake.name!r}: its message names {unknown}; name what the task names, or write …"


@each
def test_each_mistake_is_named_as_typed(exercise):
    """Its first spelling, or by a name that does the same: an error hides what comes behind it."""
    names = [mistake.name for mistake in exercise.mistakes]
    for mistake in exercise.mistakes:
        result = checked(exercise.name, exercise.body(mistake.ways[0]))
        assert result.passed is False, f"{mistake.name!r} passes: add a case that tells it from what is right"
        assert result.misconception in names, f"{mistake.name!r} is not named; the check says: {result.message}"


@each
def test_no_spelling_of_a_mistake_passes(exercise):
    bank = bank_of(exercise)
    with quiet():
        for known in bank.changes:
            wrong = [i for i, w in enumerate(bank.wanted) if not same(known.outcome(i), w)]
            assert wrong, f"{known.name!r} passes: add a case that tells each of its spellings from what is right"


@each
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_what_is_right_passes_in_any_style(exercise):
    for body in bodies(RIGHT, exercise):
        result = checked(exercise.name, body)
        assert result.passed is True, (body, result.message)


@pytest.mark.slow
@pytest.mark.long_form
@pytest.mark.parametrize("exercise", [e for e in ALL if e.name in STRANGE], ids=lambda e: e.name)
def test_what_is_wrong_in_other_ways_is_answered_in_words(exercise):
    for body in bodies(STRANGE, exercise):
        result = checked(exercise.name, body)
        assert result.passed is False, body
        assert len(result.message) > 40
        assert not re.search(r"<locals>|<lambda>|__answer__|<answer>|_Returns", result.message), result.message


NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.parametrize("lesson", course.LESSONS, ids=lambda lesson: lesson.name)
def test_each_stub_stands_in_the_notebook_as_the_exercise_says(lesson):
    """And the solution, written into it, passes the notebook's own check."""
    book = json.loads((NOTEBOOKS / lesson.notebook).read_text(encoding="utf-8"))
    sources = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    for name in lesson.exercises:
        exercise = EXERCISES[name]
        stubs = [s for s in sources if f"def {exercise.function_name}(" in s]
        assert len(stubs) == 1, f"the stub of {name} stands in one cell"
        assert exercise.stub.strip() in stubs[0], f"{lesson.notebook}: write the stub of {name} as\n{exercise.stub}"
        checks = [s for s in sources if f"check.{name}(" in s]
        assert checks == [f"check.{name}({exercise.function_name})"], f"one cell holds the check of {name} alone"
        filled = stubs[0].replace(exercise.stub.strip(), exercise.solution.strip())
        names = cell(filled, exercise.names() | {"check": check})
        assert eval(checks[0], names).passed is True


@each
def test_the_arguments_survive_the_reference(exercise):
    for case in exercise.drawn:
        outcome = attempt(exercise.right, case.arguments)
        assert not outcome.changed, "the solution, or `reference`, changes what it is given"
        assert not outcome.error, f"{case.label}: the solution, or `reference`, fails"


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


LOOP = "Does a loop never end?"


@pytest.mark.parametrize(("function", "why"), [(forever, LOOP), (stubborn, LOOP), (sleeps, "takes too long")])
def test_what_never_ends_is_stopped(function, why):
    says(function, "had not returned", why, time_limit=0.2)


@pytest.mark.parametrize("function", [forever, stubborn])
def test_without_signals_a_trace_function_stops_it(function):
    """As in a thread, and on Windows."""
    with ThreadPoolExecutor() as pool:
        result = pool.submit(run, EXERCISES["softmax"], function, 0.2).result()
    assert "had not returned" in result.message


@pytest.mark.slow
def test_what_is_printed_is_cut(capsys):
    def prints(x):
        for i in range(2_000):
            print(i)
        return x

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


def test_what_np_empty_holds_is_the_same_each_time():
    """Memory that nobody wrote makes no answer right by luck, and no mistake unknown."""
    real = np.empty
    body = "angles = np.arange(length)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)\n"
    body += "table = np.empty((length, d_model))\ntable[:, 0::2] = np.sin(angles)\nreturn table"
    first, again = checked("sinusoids", body), checked("sinusoids", body)
    assert first.message == again.message
    assert "part of yours is never written" in first.message
    assert not checked("causal_mask", "m = np.empty((T_q, T_k), bool)\nreturn m").passed
    assert np.empty is real


HUGE = ["np.ones((10**6, 10**6))", "np.zeros(10**13)", "np.zeros((2000, 2000))"]  # two that no system has, one too many
if sys.platform == "linux":  # where what has no limit would end the kernel
    HUGE += ["np.zeros(10**9)", "np.arange(0, 1e9, 2)", "np.eye(30_000)", "np.ones((10**4, 10**5))"]


def address_space():
    return limits.resource and limits.resource.getrlimit(limits.resource.RLIMIT_AS)


@pytest.mark.parametrize("made", HUGE)
def test_nobody_waits_for_a_huge_array(made):
    before = address_space()
    message = checked("softmax", f"{made} + x[..., :1]").message
    assert re.search(r"of shape `\([\d, ]{10,}\)`; no case needs that many numbers", message), message
    assert address_space() == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_grows_in_a_loop_is_stopped():
    """The clock may ring in Hypothesis's hook in the garbage collector, which pytest would warn of."""
    message = checked("softmax", "while len(x) < 10**8:\n    x = np.concatenate([x, x])\nreturn x").message
    ends = "no case needs that many" if sys.platform == "linux" else "no case needs that many|had not returned"
    assert re.search(ends, message), message


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


def leaves(x):
    sys.exit()


def contains_itself(x):
    found = []
    for _ in x:
        found.append(found)
    return found


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (awaited, "`async`"),
        (generator, "`yield`"),
        (Softmax, "a class"),
        (np.zeros(3), "value (ndarray)"),
        (leaves, "`return` ends a function"),
        pytest.param(contains_itself, "contains itself", marks=pytest.mark.slow),
    ],
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


def test_texts_and_comments_are_not_read_as_code():
    """The task of this exercise, which stands in the stub, writes 2^bits for a power."""
    body = "low = x.min(axis=axis, keepdims=True)  # 2^bits − 1 gaps\nreturn low + 0 * x"
    result = checked("rounded", f'"""{EXERCISES["rounded"].task}"""\n{body}')
    assert result.passed is False
    assert "**" not in result.message


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


def test_a_loop_over_what_is_written_out_is_no_reproach():
    body = "for part, norm in ((attend, norm_1), (feed_forward, norm_2)):\n    x = x + part(norm(x))\nreturn x"
    result = checked("pre_norm_block", body)
    assert (result.passed, "loop" in result.message) == (True, False), result.message


# --- Not attempted yet ----------------------------------------------------------------------------------------------

STUBS = ["...", "pass", "return", "'Words.'", "'Words.'; return None"]
WITH_SOURCE = ["# your code here\n    ...", "shifted = ...\n    return np.exp(x) / shifted"]


@pytest.mark.parametrize("body", [*STUBS, *WITH_SOURCE])
def test_stubs_are_not_attempted(body):
    assert check.softmax(cell(f"def my_softmax(x):\n    {body}\n", {"np": np})["my_softmax"]).passed is None


def test_without_a_source_a_stub_is_known_by_its_code():
    names = {}
    for body in STUBS:
        exec(f"def without_source(x): {body}", names)
        assert check.softmax(names["without_source"]).passed is None
    exec("def without_source(x): return x", names)
    assert check.softmax(names["without_source"]).passed is False
    assert check.softmax(None).passed is check.softmax(...).passed is None


@pytest.mark.parametrize(
    ("name", "called", "known"),
    [
        ("attention", "softmax", "my_softmax"),
        ("context_vector", "softmax", "ops.softmax"),
        ("context_vector", "my_softmax", "ops.softmax"),
        ("multi_head_attention", "split_heads", "attention.split_heads"),
        ("multi_head_attention", "multi_head_attention", None),
        ("softmax", "softmax", None),
        ("softmax", "exp", "np.exp"),
    ],
)
def test_a_name_without_what_stands_in_front_of_it_is_told_so(name, called, known):
    exercise = EXERCISES[name]
    given = cell(EXERCISES["softmax"].solution, exercise.names()) if known == "my_softmax" else exercise.names()
    source = f"def {exercise.function_name}({exercise.takes}):\n    return {called}({exercise.parameters[0]})\n"
    message = run(exercise, cell(source, given)[exercise.function_name]).message
    assert f"There is no `{called}` here. {f'Write `{known}`.' if known else 'Is it spelled'}" in message


@pytest.mark.parametrize(("earlier", "name"), [("softmax", "attention"), ("softmax_backward", "attention_backward")])
def test_a_stub_of_an_earlier_exercise_is_named_and_no_mistake(earlier, name):
    stub, exercise = EXERCISES[earlier], EXERCISES[name]
    source = exercise.solution.replace(f"ops.{earlier}(", f"{stub.function_name}(")
    assert source != exercise.solution
    names = cell(stub.stub, exercise.names())
    message = run(exercise, cell(source, names)[exercise.function_name]).message
    mine = stub.function_name
    assert message.startswith(f"Your function uses `{mine}`, which returns nothing yet. Write `{mine}` first")
    assert "\n" not in message
    assert run(exercise, cell(stub.solution, names)[exercise.function_name]).passed is True


def test_the_name_of_a_mistake_is_not_given_twice():
    with pytest.raises(ValueError, match="more than one mistake is called"):
        replace(EXERCISES["softmax"], mistakes=(*EXERCISES["softmax"].mistakes, EXERCISES["softmax"].mistakes[0]))
    with pytest.raises(ValueError, match="no step 'shfit'"):
        replace(EXERCISES["softmax"], mistakes=(change("typo", "A typo.", shfit=""),))


# --- What is shown --------------------------------------------------------------------------------------------------


def shown(function):
    return check.softmax(function)._repr_mimebundle_()["text/html"]


def test_hints_open_one_by_one_and_the_solution_comes_last():
    page = shown(None)
    found = re.findall(r"<summary[^>]*>([^<]+)</summary>", page)
    assert found == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Show a solution"]
    assert page.count("</details></details></details></details>") == 1  # each inside the one before


def test_who_has_passed_sees_the_solution_and_no_hints():
    assert "Compare with our solution" in shown(softmax)
    assert "Hint" not in shown(softmax)


def test_a_solution_is_shown_as_it_stands():
    for exercise in EXERCISES.values():
        page = code_to_html(exercise.solution)
        assert html.unescape(re.sub(r"</?(pre|span)[^>]*>", "", page)) == exercise.solution, exercise.name
    assert code_to_html('x = "if <b>"  # or not').count("<span") == 2  # neither word in them is a keyword


def test_what_a_learner_wrote_is_escaped():
    def tags(x):
        raise ValueError("<b>bold</b>")

    assert "<b>" not in shown(tags)
    assert "&lt;b&gt;" in shown(tags)


@pytest.mark.parametrize("number", [0.0, 5.0, np.inf, np.nan])
def test_an_infinite_result_is_like_no_other(number):
    assert not same(Outcome(np.array([1.0, number])), Outcome(np.array([1.0, -np.inf])))
    assert not same(Outcome(np.array([1.0, -np.inf])), Outcome(np.array([1.0, number])))
    assert same(Outcome(np.array([number])), Outcome(np.array([number])))


def test_results_of_a_class_of_another_library_are_compared():
    """As a Series of pandas is, in tests/platforms/test_graders.py."""

    class Series:
        def __init__(self, values):
            self.values = np.asarray(values, float)

        def __array__(self, dtype=None, copy=None):
            return self.values

    exercise = Exercise(
        name="doubled",
        takes="x",
        task="Twice x.",
        steps={"return": "return Series(2 * x)"},
        cases=lambda rng: [Case("three numbers", (rng.normal(size=3),))],
        returns=("twice",),
        hints=("Two.",),
        mistakes=(change("squared", "This is the square.", "return Series(x**2)"),),
        praise="Right.",
        scope={"Series": Series},
    )
    assert run(exercise, lambda x: Series(x + x)).passed
    assert run(exercise, lambda x: Series(x * x)).message == "This is the square."
    assert re.match(r"On three numbers: `twice\[0\]` is ", run(exercise, lambda x: Series(x - 7)).message)
    assert "has shape (2,); expected (3,)" in run(exercise, lambda x: Series(x[:2])).message
