"""The findings say what the notebooks' stored outputs say."""

import html
import re
from functools import cache

import nbformat
import pytest

from lesson_utils.classroom.stand_in import is_live_figure
from tools import save
from tools.site import findings, frames


@cache
def notebook(name):
    return nbformat.read(save.NOTEBOOKS / f"{name}.ipynb", as_version=4)


def stored(cell):
    """What a cell printed, and what its tables and pictures say."""
    outputs = cell.get("outputs", [])
    pages = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    shown = re.findall(r'<img alt="([^"]*)"|<t[dh][^>]*>([^<]*)', pages)
    return "\n".join([*(output.get("text", "") for output in outputs), *map("".join, shown)])


def as_numbers(text):
    return re.findall(r"\d+(?:[.,]\d+)*", text.replace(" %", "%"))


@pytest.mark.parametrize("finding", findings.FINDINGS, ids=lambda finding: finding["name"])
def test_a_finding_stands_in_its_notebook(finding):
    """Its numbers, its picture, its place; and it is cited by its own address."""
    cells = notebook(finding["notebook"]).cells
    said = html.unescape(stored(next(cell for cell in cells if cell.id == finding["stands_in"])))
    assert re.search(rf"(?<![\d.]){re.escape(finding['number'])}(?!\d)", said)
    everywhere = {*as_numbers("".join(stored(cell) + cell.source for cell in cells))}
    assert {*as_numbers(finding["means"] + finding["says"])} <= everywhere

    path = save.NOTEBOOKS / f"{finding['notebook']}.ipynb"
    assert '<img alt="' in frames.still(path, finding["figure"])
    assert "<em>" not in frames.still(path, finding["figure"])
    (outputs,) = (cell.outputs for cell in cells if cell.id == finding["figure"])
    assert is_live_figure(outputs) == ("drag" in finding)
    assert re.search(rf"{finding['notebook']}\.html#[a-z]", findings.link(path, finding["figure"]))

    cited = findings.bibtex(finding)
    assert cited.count("{") == cited.count("}")
    assert f"docs/findings.html#{finding['name']}}}" in cited
    assert "√" not in cited


def test_there_are_ten_and_the_front_page_says_how_long_they_take():
    assert len({finding["name"] for finding in findings.FINDINGS}) == len(findings.FINDINGS) == 10
    index = (save.ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert "[ten findings](docs/findings.md)" in index
    (row,) = re.findall(r"^.*\(docs/findings\.md\).*\| (\d+) \|$", index, re.M)
    assert int(row) == 5 * round(findings.minutes() / 5)
