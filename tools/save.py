"""`python course.py save`: run the notebooks, and store them with outputs that a reader without a kernel can use.

What changes from run to run without meaning anything (identifiers, timings, versions) is taken out, so that a diff
shows what a change did. The repository's address is written into texts and notebooks from pyproject.toml, and the
tables of notebooks and their minutes from what the lessons say of themselves.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from lesson_utils.classroom import course
from lesson_utils.classroom.course import Lesson
from lesson_utils.classroom.files import put
from lesson_utils.classroom.stand_in import WIDGET_VIEW
from tools import prose, release

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
SLUG = r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+"
TEACHING = Path("docs", "teaching.md")  # it holds the table for teachers
# Where OWNER/REPO stands in texts and notebooks, by what stands before it.
BEFORE = (
    "git+https://github.com/",
    "git clone https://github.com/",
    "mybinder.org/v2/gh/",
    "research.google.com/github/",
    "ghcr.io/",
    "{https://github.com/",  # BibTeX
    "repository-code: https://github.com/",  # CITATION.cff
    "url: https://github.com/",  # .github/ISSUE_TEMPLATE
)
NEW_ISSUE = rf"(?<=https://github\.com/){SLUG}(?=/issues/new)"
ADDRESSES = re.compile("|".join([*(f"(?<={re.escape(before)}){SLUG}" for before in BEFORE), NEW_ISSUE]))
TABLE = re.compile(r"(\| \| Notebook \| Its question \|\n\|---\|---\|---\|)((?:\n\|.*\|)*)")
MINUTES = re.compile(r"(\| \| Minutes \| Project \|.*\n(?:\|---)+\|)((?:\n\|.*\|)*)")
PATHS = re.compile(r"(\| \| Take \| Minutes \|\n\|---\|---\|---\|)((?:\n\|.*\|)*)")
HOURS = re.compile(r"(core of the course takes )\d+( hours, and everything in it )\d+")
FURTHER = re.compile(r"#+ .*\*Further\*")  # the heading of a section that can be left out
CONTENTS = re.compile(r"\n\n\*\*Contents:\*\* .*")
MINUTES_BELOW = re.compile(r"\A(.*)(?:\n\n\*\d+ minutes?\.\*)?")  # a heading, and the minutes of its section
EDITION = re.compile(r"\n\n\*Edition of [-\d]+\.\*")
PAGES = re.compile(  # where the site is
    r"https://[A-Za-z0-9-]+\.github\.io/[A-Za-z0-9._-]+(?=/(?:(?:lite|notebooks|docs|chat)/|index\.html))"
)


def slug() -> str:
    """OWNER/REPO, from the one place where it stands.

    Raises:
        ValueError: the address in pyproject.toml is not of the form https://github.com/OWNER/REPO.
    """
    url = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    match = re.fullmatch(rf"https://github\.com/({SLUG})", url)
    if not match:
        raise ValueError(f"Repository = {url!r} in pyproject.toml must look like https://github.com/OWNER/REPO")
    return match[1]


def with_address(text: str, address: str) -> str:
    """`text` with every copy of the repository's address replaced."""
    owner, repository = address.split("/")
    return PAGES.sub(f"https://{owner}.github.io/{repository}", ADDRESSES.sub(address, text))


def with_table(text: str, folder: str = "") -> str:
    """`text` with the table of all notebooks written anew, if there is one; `folder` stands before their names.

    Without a folder it is the table in the first notebook, which needs no link to itself.
    """
    rows = []
    for lesson in course.LESSONS:
        link = f"[{lesson.title}]({folder}{lesson.notebook})" if folder or lesson.number else lesson.title
        rows.append(f"\n| {lesson.number:02} | {link} | {lesson.question} |")
    return TABLE.sub(lambda table: table[1] + "".join(rows), text)


def with_minutes(text: str) -> str:
    """Return `text` with the minutes in the table for teachers as the notebooks state them.

    A new lesson gets a row with its first live figure; its author fills in the rest.
    """
    table = MINUTES.search(text)
    if not table:
        return text
    rest = dict(re.findall(r"^\| (\d\d) \|[^|]*(\|.*)", table[2], re.M))
    rows = [table[1]]
    for lesson in course.LESSONS:
        number = f"{lesson.number:02}"
        end = rest.get(number) or f"| `lab.{next(iter(lesson.figures()), '')}` | | |"
        rows.append(f"| {number} | {', '.join(map(str, minutes(lesson)))} {end}")
    return text.replace(table[0], "\n".join(rows))


def with_paths(text: str) -> str:
    """Return `text` with the minutes of each way through the course: the cores of the notebooks in its row."""
    table = PATHS.search(text)
    if not table:
        return text
    cores = {lesson.notebook: minutes(lesson)[0] for lesson in course.LESSONS}
    rows = [table[1]]
    for row in table[2].strip().splitlines():
        _, who, what, time, _ = row.split("|")
        if taken := re.findall(r"\(notebooks/(\w+\.ipynb)\)", what):
            time = f" {sum(cores[name] for name in taken)} "
        rows.append(f"|{who}|{what}|{time}|")
    return text.replace(table[0], "\n".join(rows))


def with_hours(text: str) -> str:
    """Return `text` with the hours that all notebooks together take."""
    core, whole = (round(sum(some) / 60) for some in zip(*map(minutes, course.LESSONS), strict=True))
    return HOURS.sub(rf"\g<1>{core}\g<2>{whole}", text)


def with_contents(lesson: Lesson, notebook: Any) -> None:
    """Write into a notebook's first cell its sections as links, and below headings marked *Further* their minutes.

    A link names the notebook and a cell, which JupyterLab scrolls to; it does not follow a link to a heading alone.
    """
    links = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (heading := re.match(r"## (\d+) · (.*)", cell.source)):
            title = heading[2].removesuffix(" · *Further*")
            links.append(f"[{heading[1]} {title}]({lesson.notebook}#cell-id={cell.id})")
    first = notebook.cells[0]
    first.source = CONTENTS.sub("", first.source)
    if links:
        head, sep, rest = first.source.partition("\n\n**You need**")
        first.source = f"{head}\n\n**Contents:** {' · '.join(links)}{sep}{rest}"
    for name, time in prose.minutes_of_further(lesson, notebook).items():
        (cell,) = (cell for cell in notebook.cells if cell.id == name)
        said = "minute" in cell.source.split("\n", 1)[0]  # by the heading of an exercise
        below = "" if said else f"\n\n*{time} minute{'s' * (time != 1)}.*"
        cell.source = MINUTES_BELOW.sub(rf"\1{below}", cell.source, count=1)


def with_edition(notebook: Any, before: str) -> str:
    """Return a notebook as text, with the date of its edition in its first cell: today's, if something is new in it."""
    import nbformat

    first = notebook.cells[0]
    dates = EDITION.findall(first.source)
    bare = first.source = EDITION.sub("", first.source)
    for date in (*dates, f"\n\n*Edition of {datetime.date.today()}.*"):
        first.source = bare + date
        text = nbformat.writes(notebook).rstrip("\n") + "\n"
        if text == before:
            break
    return text


def minutes(lesson: Lesson) -> tuple[int, int]:
    """Return the minutes of a notebook's core, and of all of it, as its first cell states them."""
    first = json.loads((NOTEBOOKS / lesson.notebook).read_text(encoding="utf-8"))["cells"][0]
    found = re.search(r"\*\*Time:\*\* about (\d+) minutes(?:, (\d+) with)?", "".join(first["source"]))
    if not found:
        raise ValueError(f"{lesson.notebook}: its first cell must say how long it takes: **Time:** about 60 minutes")
    return int(found[1]), int(found[2] or found[1])


def texts() -> list[Path]:
    """Return the files in which the repository's address stands, beside pyproject.toml."""
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / ".github").glob("*.md"), *(ROOT / ".github").glob("*/config.yml")]
    return [ROOT / "README.md", ROOT / "CITATION.cff", *sorted(pages), *sorted(NOTEBOOKS.glob("*.ipynb"))]


def write_address(address: str) -> int:
    """Write it into pyproject.toml, the texts and the notebooks, which are not run; how many files that changed.

    Raises:
        ValueError: the address is not of the form OWNER/REPO.
    """
    if not re.fullmatch(SLUG, address):
        raise ValueError(f"{address!r} is not the address of a repository; it must look like OWNER/REPO")
    changed = 0
    for path in (ROOT / "pyproject.toml", *texts()):
        old = path.read_text(encoding="utf-8")
        new = with_address(old, address)
        if path.suffix == ".toml":
            new = new.replace(f"https://github.com/{slug()}", f"https://github.com/{address}")
        if new != old:
            put(path, new)
            changed += 1
    return changed


def run(notebook: Any) -> None:
    """Execute in place, in a fresh kernel."""
    from nbclient import NotebookClient

    os.environ["COURSE_STRICT"] = "1"  # see `plots.picture`
    os.environ["COURSE_PROGRESS"] = "off"  # what the maintainer has solved is not the reader's
    os.environ["COURSE_TRAIN"] = "no"  # outputs that anyone can make again in seconds: tests compare them with a run
    options: dict[str, Any] = {"kernel_name": "python3", "store_widget_state": False}
    # Coalesced, a progress bar leaves its last line only.
    NotebookClient(notebook, timeout=300, coalesce_streams=True, **options).execute(cwd=str(NOTEBOOKS))


def normalise(notebook: Any) -> None:
    """Take out what differs between two runs of the same notebook."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
        if cell.cell_type == "markdown" and FURTHER.match(cell.source):
            cell.metadata["jp-MarkdownHeadingCollapsed"] = (
                True  # JupyterLab opens the notebook with this section folded
            )
        outputs = cell.get("outputs", [])
        views = [o.data[WIDGET_VIEW] for o in outputs if WIDGET_VIEW in o.get("data", {})]
        for n, view in enumerate(views):  # widgets of a kernel long gone: their numbers only have to differ
            old, new = view["model_id"], hashlib.md5(f"{cell.id} {n}".encode()).hexdigest()
            view["model_id"] = new
            for output in outputs:
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = output.data["text/html"].replace(old, new)


def save(path: Path, address: str) -> None:
    """Run one notebook and write it back."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = with_table(with_address(cell.source, address))
    run(notebook)
    normalise(notebook)
    text = nbformat.writes(notebook).rstrip("\n") + "\n"
    for lesson in course.LESSONS:
        if lesson.notebook == path.name:
            with_contents(lesson, notebook)
            text = with_edition(notebook, before=path.read_text(encoding="utf-8"))
    put(path, text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="course.py save", description="Run notebooks and store their outputs.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all")
    parser.add_argument("--film", action="store_true", help="only draw README's moving picture anew")
    words = parser.parse_args()
    if words.film:
        from tools.site import readme_film

        readme_film.make()
        print(f"{readme_film.FILM.name}, {readme_film.FILM.stat().st_size // 1000} kB")
        return
    paths = words.notebooks or sorted(NOTEBOOKS.glob("*.ipynb"))
    try:
        address = slug()
    except ValueError as error:
        parser.error(str(error))
    for path in texts():
        if path.suffix != ".ipynb":
            text = with_address(path.read_text(encoding="utf-8"), address)
            for write in (with_minutes, with_paths, with_hours, release.with_version):
                text = write(text)
            put(path, with_table(text, "notebooks/"))
    for number in re.findall(r"^\| (\d\d) \|.*\| \| \|$", (ROOT / TEACHING).read_text(encoding="utf-8"), re.M):
        print(f"{TEACHING}: write into the table for teachers what to ask about notebook {number}, and what turns out")
    for path in paths:
        save(path, address)
        print(f"saved {path.name}, {path.stat().st_size // 1000} kB")
