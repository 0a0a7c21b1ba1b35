"""The findings say what the notebooks' stored outputs say."""

import html
import re
from functools import cache

import nbformat
import pytest

from lesson_utils.classroom.stand_in import is_live_figure
from lesson_utils.lessons.llama import another
from tools import save
from tools.site import findings, frames


@cache
def notebook(name):
    return nbformat.read(save.NOTEBOOKS / f"{name}.ipynb", as_version=4)


def stored(cell):
    """What a cell printed, its tables, and what its pictures say."""
    outputs = cell.get("outputs", [])
    pictures = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    texts = [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join([*texts, *re.findall(r'<img alt="([^"]*)"', pictures)])


def as_numbers(text):
    return re.findall(r"\d+(?:[.,]\d+)*", text.replace(" %", "%"))


@pytest.mark.parametrize("finding", findings.FINDINGS, ids=lambda finding: finding["name"])
def test_a_finding_stands_in_its_notebook(finding):
    """Its numbers, its picture, its place; and it is cited by its own address."""
    cells = notebook(finding["notebook"]).cells
    said = html.unescape(stored(next(cell for cell in cells if cell.id == finding["stands_in"])))
    assert re.search(rf"(?<![\d.]){re.escape(finding['number'])}(?!\d)", said)
    everywhere = {*as_numbers("".join(stored(cell) + cell.source for cell in cells))}
    ours = [" ".join(row) for row in finding["tried"] if "](https://" not in " ".join(row)]
    assert {*as_numbers(" ".join([finding["means"], finding["says"], *ours]))} <= everywhere

    path = save.NOTEBOOKS / f"{finding['notebook']}.ipynb"
    assert '<img alt="' in frames.still(path, finding["figure"])
    assert "<em>" not in frames.still(path, finding["figure"])
    (outputs,) = (cell.outputs for cell in cells if cell.id == finding["figure"])
    assert is_live_figure(outputs) == ("drag" in finding)
    assert re.search(rf"{finding['notebook']}\.html#[a-z]", findings.link(path, finding["figure"]))

    assert re.search(r"\]\(https://|1953|found no", finding["known"]), "with its source, or that there is none"
    assert {len(row) for row in finding["tried"]} == {3}
    cited = findings.bibtex(finding)
    assert cited.count("{") == cited.count("}")
    assert f"docs/findings.html#{finding['name']}}}" in cited
    assert "√" not in cited


def test_there_are_eleven_and_the_front_page_says_how_long_they_take():
    assert len({finding["name"] for finding in findings.FINDINGS}) == len(findings.FINDINGS) == 11
    index = (save.ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert "[eleven findings](docs/findings.md)" in index
    (row,) = re.findall(r"^.*\(docs/findings\.md\).*\| (\d+) \|$", index, re.M)
    assert int(row) == 5 * round(findings.minutes() / 5)


def test_models_that_were_asked_stand_in_a_table():
    """SmolLM2 with what is stored, the grown model with what notebook 12 shows, and others with a link."""
    first, second, *others = findings.MODELS
    assert another.Answers(*first["answers"]) == another.SMOLLM2
    shown = stored(next(cell for cell in notebook("12_llama").cells if cell.id == "ask-another"))
    for row in another.rows(another.Answers(*second["answers"])):
        assert row.found in shown
    assert all(model["by"].startswith("[") for model in others), "a link to the report"
    table = findings.models().splitlines()
    assert len(table) == 2 + len(findings.MODELS)
    assert {line.count("|") for line in table} == {8}
