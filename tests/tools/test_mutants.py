"""`python -m tools.mutants`: what is changed and what is left alone, which tests meet it, and what counts."""

import ast
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import mutants

ROOT = Path(__file__).parents[2]
NAME = "lesson_utils.maths.tiny"
MODULE = f"{NAME.replace('.', '/')}.py"
SOURCE = '''"""Double a number."""


def double(x: int | float) -> int | float:
    if x == 5:
        raise ValueError(f"{x} is not doubled, nor is {x + 1}")
    return x + x
'''
TESTS = """
from lesson_utils.maths import tiny

def test_nothing_is_doubled():
    assert tiny.double(0) == 0
"""
LISTED = f"""
[[mutant]]
function = "{NAME}.double"
line = "if x == 5:"
becomes = "if x == 6:"
why = "an example: nobody calls it with either"
"""


def becomes(source):
    """Return what the lines of a program may become."""
    return [becomes for *_, becomes in mutants.changed_trees(source, "")]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("y = a + b", ["y = a - b"]),
        ("y = -a", ["y = a"]),
        ("y = -1", ["y = -2", "y = -0"]),
        ("y = a[2]", ["y = a[3]", "y = a[1]"]),
        ("y = 0.5", ["y = 1.0"]),
        ("y = a <= b", ["y = a < b", "y = a > b"]),
        ("y = a is None or b", ["y = a is None and b", "y = a is not None or b"]),
        ("y += a", ["y -= a", "y = a", "pass"]),
        ("y[a] = b", ["pass"]),
        ("np.exp(x, out=x)", ["pass"]),
        ("y = f(a, axis=b, copy=True)", ["y = f(a, copy=True)", "y = f(a, axis=b, copy=False)"]),
        (
            "y = f(a, axis=-1, strict=True, **b)",
            ["y = f(a, axis=-2, strict=True, **b)", "y = f(a, axis=-0, strict=True, **b)"],
        ),
        ("y = np.maximum(a, b)", ["y = np.minimum(a, b)"]),
        ("y = a.reshape(2, -1)", ["y = a.reshape(3, -1)", "y = a.reshape(1, -1)"]),
        ("if a < b:\n    y = c", ["if a <= b:", "if a >= b:"]),
        ("while a:\n    y = c", ["while not a:"]),
        ("y = a if b else c", ["y = a if not b else c"]),
        ("raise ValueError(f'{a + 1} is not {2 * b}')", ["pass"]),
        ("y: int | None = a", []),
        ("y = f'{a + 1} is not {2 * b}'", []),
        ("@f(1)\ndef g() -> 'int | None':\n    'A docstring.'", []),
    ],
)
def test_what_a_line_may_become(line, changes):
    assert becomes(line) == changes


def test_each_change_stands_alone_and_says_where_it_is(tmp_path):
    (tmp_path / MODULE).parent.mkdir(parents=True)
    (tmp_path / MODULE).write_text(
        "class A:\n    def f(self, n=3):\n        if n > 5:\n            n += 1\n        return n\n"
    )
    found = list(mutants.mutants(tmp_path, MODULE))
    assert {mutant.function for mutant in found} == {f"{NAME}.A.f"}
    lines = {mutant.line: mutant.lines for mutant in found}
    assert lines == {
        "def f(self, n=3):": range(2, 6),  # tests meet a default where they call the function
        "if n > 5:": range(3, 4),
        "n += 1": range(4, 5),
    }
    source = (tmp_path / MODULE).read_text()
    before = ast.unparse(ast.parse(source)).splitlines()
    for mutant in found:
        after = mutants.changed(source, mutant.number).splitlines()
        ((was, now),) = [(a.strip(), b.strip()) for a, b in zip(before, after, strict=True) if a != b]
        assert (was, now) == (mutant.line, mutant.becomes)


def mutant(line, becomes):
    return mutants.Mutant(MODULE, f"{NAME}.double", line, becomes, 0, range(1))


@pytest.mark.parametrize(("noticed", "code", "share"), [(97, 0, "97.0"), (96, 1, "96.0")])
def test_the_share_counts_what_is_not_listed(noticed, code, share, capsys):
    equal, unseen = mutant("if a > b:", "if a >= b:"), mutant("y = a", "y = b")
    found = [(mutant("y = 1", "y = 2"), True)] * noticed + [(unseen, False)] * (100 - noticed) + [(equal, False)] * 50
    assert mutants.report(found, {equal.name: "an example"}) == code
    said = capsys.readouterr().out
    assert said.count(f"{NAME}.double\n  - y = a\n  + y = b") == 100 - noticed
    assert "150 mutants were tried; 50 of them are listed as equivalent." in said
    assert f"Of the others, {share} % were noticed; {100 - noticed} were not." in said
    assert ">=" not in said


def test_what_is_listed_and_noticed_is_told(capsys):
    equal = mutant("if a > b:", "if a >= b:")
    assert mutants.report([(equal, True)], {equal.name: "an example"}) == 0
    assert "listed as equivalent, but noticed\n  + if a >= b:" in capsys.readouterr().out


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course whose library is one module, with one test."""
    files = {MODULE: SOURCE, "tests/maths/test_tiny.py": TESTS, mutants.EQUIVALENT: LISTED}
    files |= {"lesson_utils/__init__.py": "", "lesson_utils/maths/__init__.py": ""}
    files |= {path: (ROOT / path).read_text() for path in ("pyproject.toml", "conftest.py")}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_from_the_copies_to_the_report(course, monkeypatch, capsys):
    """One mutant is noticed, one is listed, and three are not noticed."""
    monkeypatch.setattr("sys.argv", ["mutants", "--jobs", "2", "--all"])
    assert mutants.main() == 1
    said = capsys.readouterr().out
    changes = (("if x == 5:", "if x == 4:"), ("raise ValueError(", "pass"), ("return x + x", "return x - x"))
    for line, becomes in changes:
        assert re.search(rf"{NAME}\.double\n  - {re.escape(line)}.*\n  \+ {re.escape(becomes)}\n", said), line
    assert "if x != 5" not in said
    assert "5 mutants were tried; 1 of them are listed as equivalent.\nOf the others, 25.0 % were noticed; 3 " in said
    assert (course / MODULE).read_text() == SOURCE


@pytest.mark.slow
def test_every_test_meets_a_cached_function(course):
    """Although only the first one makes Python execute it."""
    (course / MODULE).write_text(
        "import functools\n\n\ndef one():\n    return 1\n\n\n@functools.cache\ndef two():\n    return one() + 1\n"
    )
    test = "    assert tiny.one() == 1 and tiny.two() == 2\n"
    imported = "from lesson_utils.maths import tiny\n"
    (course / "tests/maths/test_tiny.py").write_text(f"{imported}def test_a():\n{test}def test_b():\n{test}")
    tests = mutants.Tests(course)
    (plus,) = [one for one in mutants.mutants(course, MODULE) if one.becomes == "return one() - 1"]
    assert len(tests.meeting(plus)) == 2


@pytest.mark.slow
def test_what_never_ends_is_ended(course):
    (course / "tests/maths/test_tiny.py").write_text("import time\n\ndef test():\n    time.sleep(600)\n")
    began = time.monotonic()
    assert not mutants.run_tests(course, ["tests/maths"], limit=2)
    assert 2 <= time.monotonic() - began < 60


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="Windows has no alarms")
def test_an_alarm_rings_when_a_test_of_a_mutant_never_ends():
    item = SimpleNamespace(nodeid="tests/maths/test_tiny.py::test")
    running = mutants.pytest_runtest_protocol(item)
    next(running)
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= mutants.PATIENCE
    running.close()
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.slow
def test_tests_that_fail_without_any_change_say_nothing_about_mutants(course):
    (course / "tests/maths/test_tiny.py").write_text("def test():\n    assert False\n")
    with pytest.raises(SystemExit, match="Without any change, the tests fail already"):
        mutants.Tests(course)


def test_every_mutant_on_the_list_is_still_there_and_has_a_reason():
    listed = mutants.equivalent()
    modules = {path for path in mutants.all_modules() if any(name.startswith(dotted(path)) for name, *_ in listed)}
    there = {mutant.name for module in modules for mutant in mutants.mutants(ROOT, module)}
    assert listed.keys() <= there
    assert all(len(why) > 20 for why in listed.values())


def dotted(path):
    return path.removesuffix(".py").replace("/", ".")
