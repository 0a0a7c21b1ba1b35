"""What the book's Run button runs: a check, the exercise above it, and the cells that these need, in silence.

JupyterLite's Python finds this module, and docs/_static/run_worker.js calls it in a worker of the book's page.
"""

import ast
import html
import io
import json
import symtable
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

shell: Any = InteractiveShell.instance(colors="NoColor")
shown: list[str] = []


def show(value: Any) -> None:
    """Keep what a cell's last line gives, as a notebook would show it."""
    if value is not None:
        data, _ = shell.display_formatter.format(value)
        shown.append(data.get("text/html") or f"<pre>{html.escape(data['text/plain'])}</pre>")


shell.display_trap.hook = show


def run(cells: str) -> str:
    """Run the last of these cells, a list in JSON, after those that it needs; return what the last two show, as HTML.

    All begins anew, so that no function of an earlier press is left. A cell that ends in an error is the last.
    """
    shell.reset(new_session=False)
    codes = needed(json.loads(cells))
    for after, code in zip(reversed(range(len(codes))), codes, strict=True):
        if after:  # what the exercise itself prints stays, above the verdict
            printed = io.StringIO()
            shown.clear()
        try:
            ast.parse(shell.transform_cell(code))
        except SyntaxError as error:
            where = " of an exercise above" if after > 1 else ""
            return f"<pre>{html.escape(f'Line {error.lineno}{where} is not Python: {error.msg}.')}</pre>"
        with redirect_stdout(printed), redirect_stderr(printed):
            if not shell.run_cell(code).success:
                break
    text = html.escape(printed.getvalue().replace("still looking…\n", "").strip("\n"))
    return "".join([f"<pre>{text}</pre>"] * bool(text) + shown)


def needed(cells: list[str]) -> list[str]:
    """Return the set-up, the last two cells, and the others that make a name which a cell kept below them uses."""
    kept, wanted = [], set[str]()
    for number in reversed(range(len(cells))):
        try:
            top = symtable.symtable(shell.transform_cell(cells[number]), "cell", "exec")
        except SyntaxError:  # the learner's
            made, used = set(), set()
        else:
            made = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
            used = set(globals_of(top))
        if number == 0 or number >= len(cells) - 2 or wanted & made:
            kept.append(cells[number])
            wanted = wanted - made | used
    return kept[::-1]


def globals_of(table: symtable.SymbolTable) -> Iterator[str]:
    """Yield the names of the notebook that a piece of code, or a function in it, uses."""
    for name in table.get_symbols():
        if name.is_referenced() and (name.is_global() or table.get_type() == "module"):
            yield name.get_name()
    for child in table.get_children():
        yield from globals_of(child)
