"""Change the maths in one place at a time, and count how often a test notices: `python -m tools.mutants [module ...]`.

Such a change is a mutant: `+` becomes `-`, `<` becomes `<=`, a number moves by one, a condition is negated, `max`
becomes `min`, an argument is forgotten, a statement or an error is gone. For each mutant, those tests of tests/maths
run that execute the line, the fastest first. A mutant is noticed if a test fails, or if the tests take far too long.

A mutant that no test can tell from the original stands in tests/maths/equivalent_mutants.toml, with the reason. The
command fails if fewer than 97 % of the others are noticed. GitHub's workflow runs it weekly, each time on another
sample, which `--seed` draws again.

These are left alone: strings, and so the texts of errors; type annotations; decorators; the arguments `out`, which
saves memory, and `strict`, which guards against what cannot happen; the -1 of `reshape`, for which NumPy takes any
negative number; and commands (`__main__`), which run elsewhere.
Tests that compare with PyTorch do not run, because PyTorch need not be there.

No library does this here. mutmut 3.8 leaves functions with a decorator alone, such as online attention, and more than
half of what it changes are arguments of calls that become None. cosmic-ray 8.7 runs all tests for each mutant, and
changes no `+=`, with which gradients are added up.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
MATHS = "lesson_utils/maths"
EQUIVALENT = "tests/maths/equivalent_mutants.toml"
ENOUGH = 0.97
SAMPLE = 600
PATIENCE = 60  # seconds for one test; all tests of a mutant may take ten times of what they take otherwise, too
MEMORY = 8 * 2**30  # bytes; a mutant may ask for more than there is
SECONDS = "seconds.json"  # how long each test takes
COVERED = ".coverage"  # which test executes which line

OTHER: dict[type[ast.AST], tuple[type[Any], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
PAIRS = [
    ("max", "min"),
    ("maximum", "minimum"),
    ("argmax", "argmin"),
    ("any", "all"),
    ("ones", "zeros"),
    ("sin", "cos"),
]
NAMES = {name: other for pair in PAIRS for name, other in (pair, pair[::-1])}
SPARED = (None, "out", "strict")  # names of arguments that change no result; None: **others
NO_CODE = ("annotation", "returns", "decorator_list", "bases")  # attributes of parts of a program that compute nothing


class Mutant(NamedTuple):
    """A change of one line; `number` counts a module's mutants, and `lines` are where tests meet this one."""

    module: str
    function: str
    line: str
    becomes: str
    number: int
    lines: range

    @property
    def name(self) -> tuple[str, str, str]:
        """Return what the list of equivalent mutants calls it: numbers change with every edit."""
        return self.function, self.line, self.becomes


def instead(part: Any) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a part of a program."""
    match part:
        case ast.Constant(value=bool()):
            yield ast.Constant(not part.value)
        case ast.Constant(value=int() as n):
            yield from (ast.Constant(n + 1), ast.Constant(n - 1))
        case ast.Constant(value=float() as x):
            yield ast.Constant(2 * x or 1.0)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            pass  # a negative number: it moves by one, as others do
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield part.operand
        case ast.BinOp():
            yield from (ast.BinOp(part.left, other(), part.right) for other in OTHER.get(type(part.op), ()))
        case ast.BoolOp():
            yield from (ast.BoolOp(other(), part.values) for other in OTHER[type(part.op)])
        case ast.Compare():
            for i, op in enumerate(part.ops):
                for other in OTHER[type(op)]:
                    yield ast.Compare(part.left, [*part.ops[:i], other(), *part.ops[i + 1 :]], part.comparators)
        case ast.IfExp() | ast.If() | ast.While() if not isinstance(part.test, ast.Compare | ast.UnaryOp):
            kind: Any = type(part)
            yield kind(ast.UnaryOp(ast.Not(), part.test), part.body, part.orelse)  # comparisons become their opposite
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield ast.Name(NAMES[name], part.ctx)
        case ast.Attribute(attr=name) if name in NAMES:
            yield ast.Attribute(part.value, NAMES[name], part.ctx)
        case ast.Call():
            for i, given in enumerate(part.keywords):
                if given.arg not in SPARED and not isinstance(given.value, ast.Constant | ast.UnaryOp):
                    yield ast.Call(part.func, part.args, [*part.keywords[:i], *part.keywords[i + 1 :]])
        case ast.AugAssign():
            yield from (ast.AugAssign(part.target, other(), part.value) for other in OTHER.get(type(part.op), ()))
            yield from (ast.Assign([part.target], part.value), ast.Pass())
        case ast.Expr(value=ast.Constant()):
            pass  # a docstring
        case ast.Expr() | ast.Raise() | ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass()


def places(node: ast.AST, function: str, statement: Any = None) -> Iterator[tuple[Any, Any, str, Any]]:
    """Yield where each part below a node hangs (a list or a dict, and a key), with its function and its statement."""
    for field, value in ast.iter_fields(node):
        if field in NO_CODE or isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        reshaped = field == "args" and getattr(getattr(node, "func", None), "attr", "") == "reshape"
        holder: Any = value if isinstance(value, list) else vars(node)
        keys: Iterable[Any] = range(len(value)) if isinstance(value, list) else [field]
        for key in keys:
            part = holder[key]
            if not isinstance(part, ast.AST) or (isinstance(part, ast.keyword) and part.arg in SPARED):
                continue
            if reshaped and isinstance(part, ast.UnaryOp):
                continue
            own = part if isinstance(part, ast.stmt) else statement
            yield holder, key, function, own
            inside = f"{function}.{part.name}" if isinstance(part, ast.FunctionDef | ast.ClassDef) else function
            yield from places(part, inside, own)


def changed_trees(source: str, function: str) -> Iterator[tuple[ast.Module, str, Any, str, str]]:
    """Yield a module's tree with one change, until the next: with function, statement, line, and what it becomes."""
    tree = ast.parse(source)
    for holder, key, inside, statement in places(tree, function):
        part = holder[key]
        for new in instead(part):
            before = ast.unparse(statement)
            holder[key] = ast.copy_location(new, part)
            after = ast.unparse(new if part is statement else statement)
            both = zip(before.splitlines(), after.splitlines(), strict=False)
            line, becomes = next((was.strip(), is_.strip()) for was, is_ in both if was != is_)
            yield tree, inside, statement, line, becomes
            holder[key] = part


def all_modules() -> list[str]:
    """Return the files of the maths."""
    paths = sorted((ROOT / MATHS).rglob("*.py"))
    return [path.relative_to(ROOT).as_posix() for path in paths if path.name != "__main__.py"]


def mutants(root: Path, module: str) -> Iterator[Mutant]:
    """Yield the mutants of a module."""
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    source = (root / module).read_text(encoding="utf-8")
    for number, (_, function, statement, line, becomes) in enumerate(changed_trees(source, name)):
        start, end = statement.lineno, statement.end_lineno + 1
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):  # its first line, without its body
            end = max(start + 1, statement.body[0].lineno)
        yield Mutant(module, function, line, becomes, number, range(start, end))


def changed(source: str, number: int) -> str:
    """Return a module's source with this one of its mutants in it."""
    return next(ast.unparse(tree) for i, (tree, *_) in enumerate(changed_trees(source, "")) if i == number)


# --- A plugin for pytest, and how the tests run -----------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Limit the memory, where the system can."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def forget() -> None:
    """Empty the caches of the maths, or coverage would see a cached function in the first test that calls it only."""
    modules = [module for name, module in sys.modules.items() if name.startswith(MATHS.replace("/", "."))]
    for thing in [thing for module in modules for thing in vars(module).values()]:
        if hasattr(thing, "cache_clear"):
            thing.cache_clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tell coverage, if it is there, which test executes what follows; else let a test end that never would."""
    if measuring := coverage.Coverage.current():
        forget()
        measuring.switch_context(item.nodeid)
    elif hasattr(signal, "alarm"):  # not on Windows
        signal.alarm(PATIENCE)  # nobody handles it, and so it ends the process
    try:
        return (yield)
    finally:
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write down how long each test took."""
    if coverage.Coverage.current():
        reports = [report for one in terminalreporter.stats.values() for report in one if hasattr(report, "duration")]
        seconds = {report.nodeid: report.duration for report in reports if report.when == "call"}
        Path(SECONDS).write_text(json.dumps(seconds), encoding="utf-8")


def run_tests(folder: Path, words: Sequence[str], limit: float | None = None, measure: bool = False) -> bool:
    """Run tests of a copy of the course, and say whether all pass within the time limit (in seconds)."""
    coverage_ = ["-m", "coverage", "run", f"--include={MATHS}/*", f"--data-file={COVERED}"] if measure else []
    command = [sys.executable, *coverage_, "-m", "pytest", "-x", "-q", "--tb=short", "-p", "tools.mutants"]
    command += ["-p", "no:cacheprovider", "-o", "addopts=--strict-markers", *words]
    path = os.pathsep.join([str(folder), str(Path(__file__).resolve().parents[1])])
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "COVERAGE_CORE": "ctrace"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # Jupyter's takes longer to start than most tests to run
    quiet = None if measure else subprocess.DEVNULL
    tests = subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        return tests.wait(limit) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if tests.poll() is None:
            if os.name == "nt":
                tests.kill()
            else:
                os.killpg(tests.pid, signal.SIGKILL)  # with the processes that tests have started
            tests.wait()


def copy_course(folder: Path) -> Path:
    """Copy what the tests need, and return where."""
    for name in ("lesson_utils", "tests", "tools"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, folder)
    return folder


class Tests:
    """The tests that execute a line, and how long each takes, as measured in a copy of the course."""

    def __init__(self, folder: Path) -> None:
        if not run_tests(folder, ["tests/maths", "-m", "not long_form and not parity"], measure=True):
            sys.exit("Without any change, the tests fail already. Mend that first.")
        self.seconds: dict[str, float] = json.loads((folder / SECONDS).read_text(encoding="utf-8"))
        data = coverage.CoverageData(str(folder / COVERED))
        data.read()
        self.of: dict[str, dict[int, list[str]]] = {}
        for file in data.measured_files():
            self.of[Path(file).relative_to(folder.resolve()).as_posix()] = data.contexts_by_lineno(file)
        execute = {test for of in self.of.values() for tests in of.values() for test in tests}
        self.that_look = set(self.seconds) - execute  # at defaults, say; or they start processes

    def meeting(self, mutant: Mutant) -> list[str]:
        """Return the tests that meet a mutant.

        What is executed when a module is imported has no test of its own: there, all tests of its function or else of
        its module count. Tests that execute nothing here always count.
        """
        of = self.of.get(mutant.module, {})
        met = {test for line in mutant.lines for test in of.get(line, ()) if test}
        met = met or {test for tests in of.values() for test in tests if test}
        return sorted(met | self.that_look, key=lambda test: self.seconds.get(test, 0.0))


def is_noticed(mutant: Mutant, tests: Tests, folder: Path) -> bool:
    """Say whether a test fails, or the tests take far too long, with a mutant in a copy of the course."""
    met = tests.meeting(mutant)
    if not met:
        return False
    module = folder / mutant.module
    source = module.read_text(encoding="utf-8")
    (folder / "words").write_text("\n".join(met), encoding="utf-8")
    limit = PATIENCE + 10 * sum(tests.seconds.get(test, 0.0) for test in met)
    try:
        module.write_text(changed(source, mutant.number), encoding="utf-8")
        shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)  # it may look as new as the mutant
        return not run_tests(folder, ["@words"], limit)
    finally:
        module.write_text(source, encoding="utf-8")
        shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)


def try_all(chosen: Iterable[Mutant], jobs: int) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant, and whether it is noticed."""
    with tempfile.TemporaryDirectory() as name:
        folders: SimpleQueue[Path] = SimpleQueue()
        for i in range(jobs):
            folders.put(copy_course(Path(name) / str(i)))
        first = folders.get()
        tests = Tests(first)
        folders.put(first)

        def noticed(mutant: Mutant) -> tuple[Mutant, bool]:
            folder = folders.get()
            try:
                return mutant, is_noticed(mutant, tests, folder)
            finally:
                folders.put(folder)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(noticed, chosen)


# --- The report -------------------------------------------------------------------------------------------------------


def equivalent() -> dict[tuple[str, str, str], str]:
    """Return the mutants that no test can notice, each with the reason."""
    entries = tomllib.loads((ROOT / EQUIVALENT).read_text(encoding="utf-8"))["mutant"]
    return {(entry["function"], entry["line"], entry["becomes"]): entry["why"] for entry in entries}


def report(found: Iterable[tuple[Mutant, bool]], listed: Mapping[tuple[str, str, str], str]) -> int:
    """Print each mutant that nobody noticed, and the share of the others; return an exit code."""
    tried = survived = equal = 0
    for mutant, noticed in found:
        tried += 1
        if not noticed and mutant.name in listed:
            equal += 1
        elif not noticed:
            survived += 1
            print(f"\n{mutant.function}\n  - {mutant.line}\n  + {mutant.becomes}", flush=True)
        elif mutant.name in listed:
            print(f"\n{mutant.function}: listed as equivalent, but noticed\n  + {mutant.becomes}", flush=True)
    share = 1 - survived / max(1, tried - equal)
    print(f"\n{tried} mutants were tried; {equal} of them are listed as equivalent.")
    print(f"Of the others, {100 * share:.1f} % were noticed; {survived} were not.")
    return int(share < ENOUGH)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("modules", nargs="*", help=f"files such as {MATHS}/scores.py (default: all in {MATHS})")
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help=f"try N of them (default: {SAMPLE})")
    parser.add_argument("--all", action="store_true", help="try all of them, which takes hours")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives another sample (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    options = parser.parse_args()
    modules = options.modules or all_modules()
    chosen = [mutant for module in modules for mutant in mutants(ROOT, module)]
    print(f"{len(chosen)} mutants of {len(modules)} modules; seed {options.seed}", flush=True)
    if not options.all:
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    return report(try_all(chosen, options.jobs), equivalent())


if __name__ == "__main__":
    sys.exit(main())
