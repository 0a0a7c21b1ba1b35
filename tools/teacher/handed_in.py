"""A handed-in notebook, read without running anything: its exercises, and the code that each of them needs.

Cells may have been moved, renamed, deleted, copied, or be no Python at all: nothing is taken for granted but JSON.
"""

import ast
import itertools
import json
import linecache
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

from lesson_utils.classroom.course import LESSONS

MOST_BYTES = 50_000_000  # figures included; the course's own have less than 2 million
ROOT = Path(__file__).resolve().parents[2]
Homes = dict[str, tuple[str, str]]


class Unreadable(Exception):
    """An error for a file that is no notebook; the message tells the teacher why."""


@dataclass(frozen=True)
class Statement:
    """A statement of a cell that stands outside every function, with the names that it makes and needs."""

    node: ast.stmt
    file: str  # its cell, as errors name it
    uses: frozenset[str]
    binds: frozenset[str]

    def compiled(self) -> CodeType:
        return compile(ast.Module([self.node], []), self.file, "exec")


@dataclass(frozen=True)
class Answer:
    """A learner's function for an exercise."""

    exercise: str
    expression: str = ""  # what was handed to the check, as `my_softmax`
    statements: tuple[Statement, ...] = ()  # what has to run before, and no more
    code: str = ""  # to be shown
    problem: str = ""  # why it can't be run


@dataclass
class HandedIn:
    """A notebook, cell by cell."""

    statements: list[Statement] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)  # the source of cells that are no Python, and why
    calls: dict[str, ast.expr] = field(default_factory=dict)  # exercise: what its check is given
    stubs: dict[str, str] = field(default_factory=dict)  # exercise: the function in the cell that the course had for it
    sources: dict[str, str] = field(default_factory=dict)  # of cells, by the names that errors give them


def read(path: Path, homes: Homes) -> HandedIn:
    """Read the notebook in a file, or raise Unreadable; `homes` comes from the function of this name."""
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable(f"{path.stat().st_size // 10**6} MB are more than a notebook of this course can have")
    try:
        cells = json.loads(path.read_text(encoding="utf-8-sig"))["cells"]
        sources = [(cell, "".join(cell["source"])) for cell in cells if cell.get("cell_type") == "code"]
    except MemoryError:
        raise Unreadable("reading it takes more memory than a notebook of this course can need") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable("the file is empty" if not path.stat().st_size else f"no notebook ({_short(error)})") from None
    found, by_cell = HandedIn(), {cell: name for name, (cell, _) in homes.items()}
    for number, (cell, source) in enumerate(sources, 1):
        _read_cell(found, f"<cell {number}>", source, by_cell.get(str(cell.get("id"))))
    return found


def _read_cell(found: HandedIn, file: str, source: str, home: str | None) -> None:
    try:
        source, tree = _parsed(source)
        statements = [Statement(node, file, *_names(node)) for node in tree.body]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found.broken.append((source, _short(error)))
        return
    found.sources[file] = source
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # as IPython does: errors show lines
    found.statements += statements
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("check"), attr=name), args=[given, *_]):
                found.calls[name] = given  # the last one counts
            case ast.FunctionDef(name=name) if home and node in tree.body:
                found.stubs[home] = name


def _parsed(source: str) -> tuple[str, ast.Module]:
    """Return the source, without the lines that only IPython understands, and its syntax tree."""
    try:
        return source, ast.parse(source)
    except SyntaxError:
        plain = re.sub(r"^%%(?:time|timeit|capture)\b.*", "", source.lstrip())
        if plain.startswith("%%"):  # another language
            return "", ast.parse("")
        plain = re.sub(r"^([ \t]*)(?:[%!?].*|[\w.]+\?{1,2}[ \t]*)$", r"\1pass", plain, flags=re.M)
        return plain, ast.parse(plain)


def _names(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a statement takes from outside itself, and those that it makes."""
    uses: set[str] = set()

    def look(table: symtable.SymbolTable, top: bool) -> None:
        uses.update(s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global()))
        for child in table.get_children():
            look(child, False)

    top = symtable.symtable(ast.unparse(node), "<statement>", "exec")
    look(top, True)
    binds = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        binds.add("*")
    return frozenset(uses), frozenset(binds)


def answers(found: HandedIn, homes: Homes) -> Iterator[Answer]:
    """Yield the learner's function for each exercise that has left a trace; nothing is run."""
    traces = {*found.calls, *found.stubs}
    names = [name for lesson in LESSONS if traces & {*lesson.exercises} for name in lesson.exercises]
    for name in names or homes:  # without any trace of a lesson, functions are looked for by their names
        if answer := _answer(found, name, homes[name][1] if name in homes else name):
            yield answer


def _answer(found: HandedIn, name: str, called: str) -> Answer | None:
    given = found.calls.get(name)
    bound = frozenset[str]().union(*(s.binds for s in found.statements))
    for expression in dict.fromkeys([ast.unparse(given) if given else called, found.stubs.get(name, called), called]):
        uses, _ = _names(ast.parse(expression).body[0])
        if uses & bound or (given and not uses):
            needed = _needed(found.statements, uses)
            return Answer(name, expression, needed, _code(found, needed, expression))
        for source, why in found.broken:
            if re.search(rf"^\s*def\s+{re.escape(expression)}\b", source, re.M):
                return Answer(name, code=source.strip(), problem=f"The cell is no Python: {why}")
    return Answer(name, problem="Its check is in the notebook, the function is not.") if given else None


def _needed(statements: list[Statement], names: frozenset[str]) -> tuple[Statement, ...]:
    """Return the statements that make these names, and those that they need, in the order of the notebook.

    Loops are left out: one that makes names in passing is a demonstration, or a training.
    """
    statements = [s for s in statements if not isinstance(s.node, ast.For | ast.While)]
    wanted = {*names, "*"}
    chosen: set[int] = set()
    while True:
        new = {i for i, s in enumerate(statements) if s.binds & wanted} - chosen
        if not new:
            break
        chosen |= new
        wanted |= {name for i in new for name in statements[i].uses}
    written = {_function(statements[i]) for i in chosen if not _idle(statements[i])}
    return tuple(s for i, s in enumerate(statements) if i in chosen and not (_idle(s) and _function(s) in written))


def _function(statement: Statement) -> str:
    return statement.node.name if isinstance(statement.node, ast.FunctionDef) else ""


def _idle(statement: Statement) -> bool:
    """Say whether a statement is a function without a body, as the exercise's cell came."""
    node = statement.node
    return isinstance(node, ast.FunctionDef) and all(
        isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )


def _code(found: HandedIn, statements: tuple[Statement, ...], expression: str) -> str:
    """Return the learner's function as it was typed."""
    for statement in reversed(statements):
        if expression in statement.binds:
            lines = found.sources[statement.file].splitlines()
            return "\n".join(lines[statement.node.lineno - 1 : statement.node.end_lineno])
    return expression


def homes() -> Homes:
    """Return, for each exercise, the id of its cell in the course's notebook and the function's name there."""
    found: Homes = {}
    for lesson in LESSONS:
        cells = json.loads((ROOT / "notebooks" / lesson.notebook).read_text(encoding="utf-8"))["cells"]
        for cell, check in itertools.pairwise(cells):
            called = re.match(r"check\.(\w+)\((\w+)\)", "".join(check["source"]))
            if called and "exercise" in cell["metadata"].get("tags", ()):
                found[called[1]] = (cell["id"], called[2])
    return found


def _short(error: BaseException) -> str:
    """Return an error in one line."""
    if isinstance(error, SyntaxError) and error.lineno:
        line = (error.text or "").strip()
        return f"{type(error).__name__}, {error.msg}, in line {error.lineno}" + (f": `{line[:80]}`" if line else "")
    return f"{type(error).__name__}: {str(error)[:100]}"
