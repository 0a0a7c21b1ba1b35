"""A class's results: a table for the teacher, and the mistakes as a page to be shown, which names nobody."""

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from lesson_utils.classroom.course import LESSONS
from lesson_utils.mistakes.verdict import to_html

STATES = {  # what stands in the table, and above a mistake without a name
    "right": "right",
    "wrong": "wrong",
    "untouched": "not attempted",
    "unreadable": "does not run",
    "missing": "no function",
    "stopped": "stopped",
}
STYLE = """
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; font-size: 1rem }
table { border-collapse: collapse } td, th { padding: .1rem .8rem .1rem 0; text-align: right }
td:first-child, th:first-child { text-align: left }
"""


@dataclass(frozen=True)
class Result:
    """The result of one exercise in one notebook."""

    state: str  # of STATES
    name: str | None = None  # of the mistake; of several, with "; " between
    message: str = ""
    code: str = ""


@dataclass
class Row:
    """A student: a notebook, or several of different lessons."""

    student: str
    results: dict[str, Result] = field(default_factory=dict)
    problem: str = ""  # why a notebook could not be read


@dataclass(frozen=True)
class Mistake:
    """A mistake that several students made in the same way."""

    exercise: str
    name: str
    message: str
    code: str  # of one of them
    count: int


def exercises(rows: Sequence[Row]) -> list[str]:
    """Return the exercises that anybody handed in, in the order of the course."""
    return [name for lesson in LESSONS for name in lesson.exercises if any(name in row.results for row in rows)]


def mistakes(rows: Sequence[Row]) -> list[Mistake]:
    """Return the mistakes of the class, the commonest first."""
    found = []
    for exercise in exercises(rows):
        made: dict[str, list[Result]] = {}
        for result in (row.results[exercise] for row in rows if exercise in row.results):
            if result.state in ("wrong", "unreadable", "stopped"):
                for name in _names(result):
                    made.setdefault(name, []).append(result)
        lesson = next(lesson for lesson in LESSONS if exercise in lesson.exercises)
        known = {mistake.name: mistake.message for mistake in lesson.exercise(exercise).mistakes}
        for name, results in made.items():
            best = min(results, key=lambda r: (not r.code, "; " in (r.name or ""), len(r.code)))  # a short, pure case
            found.append(Mistake(exercise, name, known.get(name, best.message), best.code, len(results)))
    return sorted(found, key=lambda mistake: -mistake.count)


def _names(result: Result) -> list[str]:
    """Return the names of a result's mistakes; what has none is named by the first sentence that was said of it."""
    if result.name:
        return result.name.split("; ")
    head, *parts = re.split(r"^\d\. ", result.message, flags=re.MULTILINE)  # of "Two things to mend.", each
    return [_title(part) for part in parts or [head]]


def _title(message: str) -> str:
    """Return the first sentence of a message, without the case and the line, which differ from student to student."""
    known = r"An error on .*\n(Python's words for it: )?|On .*?: |Lines? [\d, and]+: |The numbers are right; one .*?\. "
    words = re.sub(f"^({known})", "", message)
    first = re.split(r"(?<=[.?!])\s|\n", words, maxsplit=1)[0].rstrip(".")
    first = re.sub(r",? in line \d+[^`]{,15}`[^`]*`", "", first)
    if message.startswith("An error on ") and (kind := re.search(r"\((\w+)\)$", words, re.MULTILINE)):
        first = f"{kind[1]}: {first.partition(': ')[0]}"
    return shorten(first[:1].upper() + first[1:], 200, placeholder=" …")


def counts(rows: Sequence[Row]) -> list[list[str]]:
    """Return a table of how often each exercise came to each state, under a line of headings."""
    lines = [["", *STATES.values()]]
    for name in exercises(rows):
        found = Counter(row.results[name].state for row in rows if name in row.results)
        lines.append([name, *(str(found[state]) for state in STATES)])
    return lines


def table(rows: Sequence[Row]) -> str:
    """Return a table of student by exercise as CSV: "right", or the mistakes as on the page, or another state."""
    names, text = exercises(rows), io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["student", *names, "right", "note"])
    for row in rows:
        results = [row.results.get(name) for name in names]
        cells = [_cell(result) if result else "" for result in results]
        writer.writerow(map(_tame, [row.student, *cells, str(cells.count("right")), row.problem]))
    return text.getvalue()


def _cell(result: Result) -> str:
    return "; ".join(_names(result)) if result.state == "wrong" else STATES[result.state]


def _tame(cell: str) -> str:
    """Quote a text that a spreadsheet would take for a formula, and compute."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def text(rows: Sequence[Row]) -> str:
    """Return the page as text, for a terminal or a mail."""
    parts = [_head(rows)]
    for number, mistake in enumerate(mistakes(rows), 1):
        code = "\n".join(f"    {line}" for line in mistake.code.splitlines())
        parts.append(f"{number}. {_heading(mistake)}\n\n{mistake.message}\n\n{code}".rstrip())
    lines = counts(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])] for name, *numbers in lines)
    parts.append("\n".join(map("  ".join, padded)))
    return "\n\n\n".join(parts) + "\n"


def page(rows: Sequence[Row]) -> str:
    """Return the page as HTML. Students' code stands in it as text, and cannot act in the browser."""
    parts = [f"<h1>What to say tomorrow</h1><p>{html.escape(_head(rows))}</p>"]
    for number, mistake in enumerate(mistakes(rows), 1):
        code = f"<pre>{html.escape(mistake.code)}</pre>" if mistake.code else ""
        parts.append(f"<h2>{number}. {to_html(_heading(mistake))}</h2><p>{to_html(mistake.message)}</p>{code}")
    head, *lines = counts(rows)
    table = "".join([_line("th", head), *(_line("td", line) for line in lines)])
    parts.append(f"<h2>Each exercise</h2><table>{table}</table>")
    about = f'<meta charset="utf-8"><title>What to say tomorrow</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html><html lang="en"><head>{about}</head><body>{"".join(parts)}</body></html>'


def _line(kind: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>\n"


def _head(rows: Sequence[Row]) -> str:
    found = Counter(result.state for row in rows for result in row.results.values())
    right, untried, unread = found["right"], found["untouched"], sum(bool(row.problem) for row in rows)
    tried = _some(found.total() - untried, "attempt")
    parts = [f"{_some(len(rows), 'student')}. Of {tried}, {right} {'is' if right == 1 else 'are'} right."]
    if untried:
        parts.append(f"{_some(untried, 'exercise')} {'was' if untried == 1 else 'were'} not attempted.")
    if unread:
        parts.append(f"{_some(unread, 'student')} handed in what could not be read: table.csv says why.")
    return " ".join(parts)


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _heading(mistake: Mistake) -> str:
    return f"{mistake.exercise}: {mistake.name} ({_some(mistake.count, 'student')})"
