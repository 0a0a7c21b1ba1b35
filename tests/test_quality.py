"""The notebooks' own rules of style."""

import ast
import dis
import re
from pathlib import Path
from types import CodeType

import nbformat
import pytest

from tools import save

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def cells(path, kind):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def test_all_notebooks_share_one_set_up_cell():
    """But for the line that imports its own lab."""
    sources = set()
    for path in NOTEBOOKS:
        own = f"from lesson_utils.lessons.{path.stem[3:]} import lab\n"
        source = cells(path, "code")[0].source
        assert own in source, (
            f"{path.name}: copy the set-up cell of another notebook, and let it import the lesson's lab"
        )
        sources.add(source.replace(own, ""))
    assert len(sources) == 1, "copy the set-up cell of another notebook"


@every_notebook
def test_every_exercise_has_its_check_behind_it(path):
    code = cells(path, "code")
    stubs = [i for i, cell in enumerate(code) if "exercise" in cell.metadata.get("tags", [])]
    assert stubs, "the cell in which the learner writes has the tag `exercise`, and there is one at least"
    for i in stubs:
        name = re.search(r"^def (\w+)", code[i].source, re.M)[1]
        assert re.fullmatch(rf"check\.\w+\({name}\)", code[i + 1].source), f"the check of {name} follows its cell"


@every_notebook
def test_a_question_comes_before_every_live_figure(path):
    all_cells = nbformat.read(path, as_version=4).cells
    for i, cell in enumerate(all_cells):
        if re.search(r"^lab\.\w+_l(ab|ook)\(|^lab\.first_look", cell.source, re.M) and cell.cell_type == "code":
            asked = next(c for c in all_cells[i - 1 :: -1] if c.cell_type == "markdown")
            said = re.search(r"\*\*Predict:\*\*|\b(drag|move|type)\b", asked.source, re.I)
            assert said, f"above {cell.source!r}, ask what to predict, or say what to drag, move or type"


# Names that two cells of a notebook bind on purpose: to the same thing, to a newer one of the same kind, or to yours.
BOUND_AGAIN = {"model", "mine", "my_causal_mask", "recallers", "rng"}


@every_notebook
def test_a_name_that_other_cells_read_is_bound_by_one_cell(path):
    """Cells run in any order: where a name has two meanings, a third cell may get the wrong one."""
    sources = {cell.id: re.sub(r"^( *)%.*", r"\1pass", cell.source, flags=re.M) for cell in cells(path, "code")}
    own = {cell: set(bound(ast.parse(source))) for cell, source in sources.items()}
    read = {cell: set(read_by(compile(source, cell, "exec"))) for cell, source in sources.items()}
    for name in set().union(*own.values()) - BOUND_AGAIN:
        makers = [cell for cell in own if name in own[cell]]
        readers = [cell for cell in read if name in read[cell] - own[cell]]
        assert len(makers) < 2 or not readers, f"{name}: bound in {makers}, read in {readers}"


def bound(tree):
    """Yield the names that a cell binds at its top level, also in loops; imports bind the same thing everywhere."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from bound(node)


def read_by(code):
    """Yield the global names that code reads, also in functions within it."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_NAME", "LOAD_GLOBAL"))
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from read_by(part)


PAGES = [path for path in save.texts() if path.suffix == ".md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_of_a_page_exist(page):
    """Those of docs/index.md are written for where it will stand, beside README; the site's builder makes one page."""
    folder = ROOT if page.name == "index.md" else page.parent
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        made = page.name == "index.md" and target == "docs/findings.md"
        assert made or target.startswith("https://") or (folder / target).exists(), target
    for target, heading in re.findall(r"\]\((?!https:)([^)#]+\.md)#([^)]+)\)", page.read_text(encoding="utf-8")):
        headings = re.findall(r"^#+ (.+)$", (folder / target).read_text(encoding="utf-8"), re.M)
        assert heading in [re.sub(r"[^\w-]", "", words.lower().replace(" ", "-")) for words in headings], heading


def test_the_files_to_read_first_exist_and_are_short():
    page = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Read these eight files first")[2].partition("\n## ")[0]
    files = re.findall(r"^- \[`(.+)`\]\(\.\./\1\): ", section, re.M)
    assert len(files) == 8
    for file in files:
        assert len((ROOT / file).read_text(encoding="utf-8").splitlines()) <= 280, file
