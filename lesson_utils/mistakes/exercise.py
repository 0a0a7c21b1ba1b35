"""The form of an exercise: what to write, the solution line by line, and the mistakes as changes of its lines.

A whole exercise in twenty lines:

    from lesson_utils.mistakes.exercise import Case, Exercise, change

    EXERCISES = (
        Exercise(
            name="softmax",  # the check is `check.softmax(my_softmax)`
            called="my_softmax",
            takes="x",
            task="Softmax over the last axis.\\n\\nx: (..., n). Returns the weights, (..., n), in x's dtype. NumPy only.",
            steps={
                "shift": "shifted = x - x.max(axis=-1, keepdims=True)",
                "exp": "e = np.exp(shifted)",
                "divide": "return e / e.sum(axis=-1, keepdims=True)",
            },
            cases=lambda rng: [Case("a row of 5", (rng.normal(size=5),)), Case("(2, 3, 4)", (rng.normal(size=(2, 3, 4)),))],
            returns=("weights",),
            hints=("Three steps: make the scores safe, exponentiate, divide.", "Subtract each row's own maximum."),
            mistakes=(
                change("not stable", "`np.exp` of a large score overflows. Subtract the maximum first.", shift="shifted = x"),
                change("sigmoid", "This squashes each score by itself.", "1 / (1 + np.exp(-x))"),  # a whole answer
            ),
            praise="Right for any leading axes.",
        ),
    )

A mistake is typed as a learner types it. Of several spellings, those are needed that give other results. The machine
composes pairs by itself, and knows the slips that any line can have: axes, transposes, signs, brackets, order.

Steps are compiled apart, with `return x` as `raise Answer(x)`: a `Program` runs any row of them, a mistake's beside the
solution's.
"""

import ast
import inspect
import itertools
import linecache
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import CodeType
from typing import Any

import numpy as np

from lesson_utils.mistakes.run.kernel import guard
from lesson_utils.mistakes.verdict import listed

SCOPE = {"np": np, "math": math}  # what every cell can use


@dataclass(frozen=True)
class Case:
    """One call: its arguments, and what is special about it, in words that fit behind "on"."""

    label: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """A mistake: its name, the message that explains it, and its spellings as steps replaced ("" = the whole body)."""

    name: str
    message: str
    ways: tuple[Mapping[str, str], ...]


def change(name: str, message: str, *bodies: str, **steps: str | Sequence[str]) -> Change:
    """Return a mistake, as a change of named steps, and as whole answers.

    Args:
        name: short and unique within the exercise.
        message: what was done, why it is wrong, what to do. It must be true of every code that returns the same, and
            beside another mistake: say what is computed, and not which call or line is there or missing.
            Its code names what every learner has, such as the parameters, and writes … for the rest.
        bodies: whole answers that make the mistake: an expression, or lines with a `return`.
        steps: for each step that changes, the line in its place, or several spellings of it; "" leaves it out.
    """
    spellings = [[text] if isinstance(text, str) else list(text) for text in steps.values()]
    ways = [dict(zip(steps, combined, strict=True)) for combined in itertools.product(*spellings)] if steps else []
    return Change(name, message, (*ways, *({"": body} for body in bodies)))


def both(first: Change, second: Change, *bodies: str) -> Change:
    """Return two mistakes at once, made by whole answers: who mends only the one that is named would be no further."""
    return change(f"{first.name}; {second.name}", listed([first.message, second.message]), *bodies)


class Answer(BaseException):
    """Holds the value behind `return`; not an Exception, so that no `except Exception` catches it."""


class _Raised(ast.NodeTransformer):
    """`raise Answer(x)` in the place of `return x`; not in inner functions."""

    def visit_Return(self, node: ast.Return) -> ast.Raise:
        call = ast.Call(ast.Name("__answer__", ast.Load()), [node.value or ast.Constant(None)], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Raise(call), node))

    def visit_FunctionDef(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef


@cache
def compiled(source: str) -> CodeType:
    """Return a part of a body as code that runs by itself; its lines can be looked up, as those of a cell."""
    file = f"<part {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return compile(_Raised().visit(ast.parse(source)), file, "exec")


class Program:
    """A function made of parts of a body, which run one after another with the arguments as variables."""

    def __init__(self, codes: Sequence[CodeType], names: Mapping[str, Any], parameters: Sequence[str]) -> None:
        self.codes, self.parameters = codes, parameters
        self.names = {"__name__": "answer", **names, "__answer__": Answer}

    def __call__(self, *arguments: Any) -> Any:
        variables = {**self.names, **dict(zip(self.parameters, arguments, strict=False))}
        try:
            for code in self.codes:
                exec(code, variables)
        except Answer as answer:
            return answer.args[0]
        return None


def expressions(body: Sequence[ast.stmt]) -> list[ast.expr]:
    """Return all expressions in a body, the outer ones before those inside them."""
    return [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.expr)]


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise: its task, the cases that judge it, and the help. Texts may hold `code` in backticks."""

    name: str
    takes: str  # the parameters, as in the first line of the stub
    task: str  # the stub's docstring: what is given and returned, whether dtype matters, what may be used
    steps: Mapping[str, str]  # the solution, in named parts of a line or a few; shown on request, so written to be read
    cases: Callable[[np.random.Generator], Sequence[Case]]
    returns: tuple[str, ...]  # the names of what comes back, in order
    hints: tuple[str, ...]
    mistakes: tuple[Change, ...]
    praise: str  # what a passing function has shown
    # Right steps in other words: they go wrong otherwise, or make another result where nothing depends on it.
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    called: str = ""  # the function's name in the notebook, if it is not that of the check
    reference: Callable[..., Any] | None = None  # the library's own, to judge by; else the solution is
    # What the course has written already, and the learner shall write; a `partial`, where only such calls are meant.
    library: tuple[Callable[..., Any], ...] = ()
    dtype: str = "any"  # "kept" where the task says so; else another float is worth a remark only
    scope: Mapping[str, Any] = field(default_factory=dict)  # what the notebook's cell can use besides SCOPE
    foreign: tuple[tuple[str, str], ...] = ()  # patterns of what belongs elsewhere → what to write here, for errors
    broken: Mapping[str, str] = field(default_factory=dict)  # steps replaced in the stub, where a bug is to be found
    symptom: str = ""  # what is to be seen of it: the check's answer while it is still there
    # The same in PyTorch, which has `torch` and `F`: it makes the names of `returns` from the parameters, in one to five
    # lines, and a comment tells the trap that there is. A test runs it and compares.
    in_pytorch: str = ""

    def __post_init__(self) -> None:
        names = [mistake.name for mistake in self.mistakes]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"{self.name}: more than one mistake is called {sorted(twice)}")
        for mistake in self.mistakes:
            for step in {step for way in mistake.ways for step in way} - {"", *self.steps}:
                raise ValueError(f"{self.name}, {mistake.name!r}: no step {step!r}; there are {list(self.steps)}")
        guard(self.names())

    @property
    def function_name(self) -> str:
        return self.called or self.name

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function()).parameters)

    def _definition(self, body: str) -> str:
        return f"def {self.function_name}({self.takes}):\n{textwrap.indent(body, '    ')}\n"

    @property
    def solution(self) -> str:
        """The source of the solution, to be read, and to be pasted over the stub."""
        return self._definition(self.body({}))

    def function(self) -> Callable[..., Any]:
        """Return the solution as a function, to be called as the learner's is: by keyword, too, and with defaults."""
        file = f"<solution of {self.name}>"
        linecache.cache[file] = (len(self.solution), None, self.solution.splitlines(True), file)
        names = {"__name__": "solution", **self.names()}
        exec(compile(self.solution, file, "exec"), names)
        function: Callable[..., Any] = names[self.function_name]
        return function

    @property
    def stub(self) -> str:
        """The cell of the notebook in which the learner writes."""
        end = "\n" if "\n" in self.task else ""
        rest = self.body(self.broken) if self.broken else "# your code, in place of the three dots\n..."
        return self._definition(f'"""{self.task}{end}"""\n{rest}')

    def body(self, way: Mapping[str, str]) -> str:
        """Return the body with steps replaced."""
        if "" in way:
            text = textwrap.dedent(way[""]).strip("\n")
            return text if "return" in text else f"return {text.strip()}"
        return "\n".join(textwrap.dedent(text).strip("\n") for text in ({**self.steps, **way}).values() if text.strip())

    def names(self) -> dict[str, Any]:
        """Return the names that the notebook's cell can use."""
        return {**SCOPE, **self.scope}

    def program(self, way: Mapping[str, str]) -> Program:
        """Return the body with steps replaced, as something to call."""
        return Program([compiled(self.body(way))], self.names(), self.parameters)

    @cached_property
    def right(self) -> Callable[..., Any]:
        """The function that answers are compared with."""
        return self.reference or self.program({})

    @cached_property
    def drawn(self) -> Sequence[Case]:
        """The cases; the same in every check."""
        return self.cases(np.random.default_rng(2017))
