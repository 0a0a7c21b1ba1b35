"""What can be counted in a notebook's text: the minutes that a learner needs, its words, and whether a title finds.

`python course.py prose` prints the minutes.
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat

from lesson_utils.classroom import stand_in
from lesson_utils.classroom.course import LESSONS, Lesson
from lesson_utils.classroom.stand_in import is_live_figure

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
# An auxiliary (or "Shows …"); or, behind the first word, one that ends as verbs do. Plurals pass, too: no list is kept.
VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|do|does|did|can|could|may|might|must|will|would|should|shows)\b"
    r"|n['’]t\b|(?<=\s)\w+(?:[^su\W]s|ed)(?=[\s,:]|$)",
    re.I,
)
NUMBER = re.compile(r"\d|\b(?:one|two|three|four|half|no|not|none|all|every|each)\b", re.I)


def main() -> None:
    parser = argparse.ArgumentParser(prog="course.py prose", description="Count the minutes that a learner needs.")
    parser.add_argument("notebooks", nargs="*", help="by number or name (default: all)")
    names = parser.parse_args().notebooks
    for lesson in LESSONS:
        if names and not any(name in lesson.notebook for name in names):
            continue
        core, whole = minutes(lesson, read(lesson))
        print(f"{lesson.notebook}: {core:.0f} minutes, {whole:.0f} with the sections marked Further")


def read(lesson: Lesson) -> Any:
    """Return a lesson's notebook."""
    return nbformat.read(NOTEBOOKS / lesson.notebook, as_version=4)


def with_places(notebook: Any) -> Iterator[tuple[Any, bool, bool]]:
    """Yield each cell, whether it stands in a part marked *Further*, and whether it stands below the references.

    Such a part begins with a heading that says so, and ends at the next heading of the same or a higher level.
    """
    level, references = math.inf, False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for marks, heading in re.findall(r"^(#+) (.+)$", cell.source, re.M):
                if "*Further*" in heading:
                    level = len(marks)
                elif len(marks) <= level:
                    level = math.inf
                references = heading == "References"
        yield cell, level < math.inf, references


def words(text: str) -> list[str]:
    """Return the words of a text, without displayed formulas, code, HTML tags, the addresses of links, and what
    `course.py save` writes into it.
    """
    text = re.sub(r"^\*\*Contents:\*\* .*|^\*(?:Edition of [-\d]+|\d+ minutes?)\.\*$", "", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$|```.*?```|<[^>]+>", " ", text, flags=re.S)
    return [word for word in re.sub(r"\]\([^)]*\)", "]", text).split() if re.search(r"\w", word)]


def minutes(lesson: Lesson, notebook: Any) -> tuple[float, float]:
    """Return how long a learner takes for the core, and for the whole notebook.

    The learner reads English as a second language: a minute for 120 words, for 10 lines of code, for a still picture
    and for a prediction; three for a live figure; one for a question of the quiz, at most five; for an exercise 1.4
    times what its heading says, its stub included. The set-up cell, the line that says what is solved, and lines that
    say what comes trained are not read.
    """
    core = whole = 0.0
    for cell, further, references in with_places(notebook):
        time = 0.0 if references else minutes_of(lesson, cell)
        whole += time
        core += time * (not further)
    return core, whole


def minutes_of(lesson: Lesson, cell: Any) -> float:
    """Return how long a learner takes for one cell."""
    if cell.id in ("setup", "progress") or "exercise" in cell.metadata.get("tags", []):
        return 0
    if cell.cell_type == "markdown":
        exercises = re.findall(r"^### .*\*\((\d+) minutes?\b", cell.source, re.M)
        return len(words(cell.source)) / 120 + 1.4 * sum(map(int, exercises))
    lines = [line for line in without_bookkeeping(cell.source).splitlines() if line.strip()]
    quiz = min(5, len(lesson.questions())) * ("quiz.checkpoint(" in cell.source)
    return len(lines) / 10 + _looking(cell.outputs) + quiz


def minutes_of_further(lesson: Lesson, notebook: Any) -> dict[str, int]:
    """Return, by the id of the cell with its heading, the minutes of each section marked *Further*."""
    found: dict[str, float] = {}
    heading = ""
    for cell, further, _ in with_places(notebook):
        if further and cell.cell_type == "markdown" and "*Further*" in cell.source.split("\n", 1)[0]:
            heading = cell.id
        if further and heading:
            found[heading] = found.get(heading, 0) + minutes_of(lesson, cell)
    return {name: max(1, round(time)) for name, time in found.items()}


def _looking(outputs: Sequence[Any]) -> float:
    """Return the minutes for what a cell shows."""
    if is_live_figure(outputs):
        return 3
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    return kinds.count("image/png") + (stand_in.WIDGET_VIEW in kinds)  # the other widgets are predictions


def without_bookkeeping(source: str) -> str:
    """Return the code of a cell without the lines that fetch trained models and those that ask for predictions."""
    lines = r"^@trained\..*|^TRAIN = .*|^from lesson_utils import trained$|^quiz\.predict\(.*"
    return re.sub(lines, "", source, flags=re.M)


def states_a_finding(title: str) -> bool:
    """Return whether a figure's title has a number or a verb, so that it may be a finding and not a label."""
    return bool(NUMBER.search(title) or VERB.search(title))
