"""The findings say what the notebooks' stored outputs say."""

import html
import re
from functools import cache

import nbformat
import pytest

from lesson_utils.classroom.stand_in import is_live_figure
from tools import save
from tools.site import findings

every_finding = pytest.mark.parametrize("finding", findings.FINDINGS, ids=lambda finding: finding["name"])


@cache
def notebook(name):
    return nbformat.read(save.NOTEBOOKS / f"{name}.ipynb", as_version=4)


def stored(cell):
    """What a cell printed, and what its pictures say."""
    outputs = cell.get("outputs", [])
    pictures = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    return "\n".join([*(output.get("text", "") for output in outputs), *re.findall(r'<img alt="([^"]*)"', pictures)])


def as_numbers(text):
    return re.findall(r"\d+(?:[.,]\d+)*", text.replace(" %", "%"))


@every_finding
def test_its_numbers_stand_in_the_notebook(finding):
    cells = notebook(finding["notebook"]).cells
    (cell,) = (cell for cell in cells if cell.id == finding["stands_in"])
    said = html.unescape(stored(cell))
    assert re.search(rf"(?<![\d.]){re.escape(finding['number'])}(?!\d)", said)
    everywhere = {*as_numbers("".join(stored(cell) + cell.source for cell in cells))}
    assert {*as_numbers(finding["means"] + finding["says"])} <= everywhere


@every_finding
def test_it_has_a_picture_and_a_place(finding):
    cells = notebook(finding["notebook"]).cells
    assert '<img alt="' in findings.figure(cells, finding["figure"])
    assert "<em>" not in findings.figure(cells, finding["figure"])
    (outputs,) = (cell.outputs for cell in cells if cell.id == finding["figure"])
    assert is_live_figure(outputs) == ("drag" in finding)
    assert re.search(rf"{finding['notebook']}\.html#[a-z]", findings.link(cells, finding))


@every_finding
def test_it_is_cited_by_its_own_address(finding):
    cited = findings.bibtex(finding)
    assert cited.count("{") == cited.count("}")
    assert f"docs/findings.html#{finding['name']}}}" in cited
    assert "√" not in cited


def test_there_are_ten_and_each_has_a_name_of_its_own():
    names = {finding["name"] for finding in findings.FINDINGS}
    assert len(names) == len(findings.FINDINGS) == 10
    index = (save.ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert "[ten findings](docs/findings.md)" in index


def test_the_way_that_takes_them_says_how_long_they_take():
    (row,) = re.findall(r"^.*\(docs/findings\.md\).*\| (\d+) \|$", (findings.ROOT / "docs/index.md").read_text(), re.M)
    assert int(row) == 5 * round(findings.minutes() / 5)
