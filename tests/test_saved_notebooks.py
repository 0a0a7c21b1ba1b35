"""What a reader without a kernel gets from the committed notebooks.

On GitHub, in nbviewer, in a built book, or in Jupyter before anything has run, the widget of a live figure does not
exist. A picture with alternative text has to stand there.
"""

import base64
import configparser
import copy
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from lesson_utils.classroom.stand_in import WIDGET_VIEW, is_live_figure

bleach = pytest.importorskip("bleach", reason="comes with nbconvert, in the extra lab")
nbconvert = pytest.importorskip("nbconvert", reason="comes with jupyterlab, in the extra lab")

pytestmark = pytest.mark.slow
MAX_BYTES = 60_000
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


class Pictures(HTMLParser):
    """The (alt, src) of every picture in a page, as a browser reads them."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.found.append((dict(attrs).get("alt") or "", dict(attrs).get("src") or ""))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def live_cells(notebook):
    return [cell for cell in code_cells(notebook) if is_live_figure(cell.outputs)]


def stills(cell):
    """The outputs of a cell that are pictures."""
    return [output.data for output in cell.outputs if "image/png" in output.get("data", {})]


@pytest.mark.parametrize(
    ("stored", "run", "same"),
    [
        ("loss 1.5995 after", "loss 1.5991 after", True),
        ("off by 3e-15", "off by 2e-16", True),
        ('<img alt="a" src="data:image/png;base64,AB+/=">', '<img alt="a" src="data:image/png;base64,CD">', True),
        ('<img alt="0.34 on cat" src="x">', '<img alt="0.43 on cat" src="x">', False),
        ("additive  8,256   0   0", "additive  8,256   16,640   1,075", False),
        ("0.0123", "0.0132", False),
        ("1.59", "2.59", False),
        ("12 rows", "13 rows", False),
    ],
)
def test_what_the_comparison_of_outputs_passes_over(stored, run, same):
    rules = configparser.ConfigParser(interpolation=None)
    rules.read(Path(__file__).with_name("nbval.cfg"), encoding="utf-8")
    for rule in map(rules.__getitem__, rules.sections()):
        stored, run = (re.sub(rule["regex"], rule["replace"], text) for text in (stored, run))
    assert (stored == run) == same


def test_outputs_are_those_of_one_clean_run_from_top_to_bottom(notebook):
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run: python course.py save"
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs
    assert not [output.evalue for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert "widgets" not in notebook.metadata, "no state of widgets is stored"


def test_each_live_figure_has_a_picture_in_every_form(notebook):
    assert live_cells(notebook), "a notebook has one live figure at least"
    for cell in live_cells(notebook):
        (still,) = stills(cell)
        assert WIDGET_VIEW not in still, "who has run and saved the notebook would get the dead widget in its place"
        ((alt, src),) = Pictures(still["text/html"]).found
        assert alt == still["text/plain"]
        assert src == "data:image/png;base64," + "".join(still["image/png"].split())


def test_every_picture_is_small_and_has_alternative_text(notebook):
    for cell in code_cells(notebook):
        for still in stills(cell):
            assert len(base64.b64decode(still["image/png"])) <= MAX_BYTES, f"{cell.id}: more than {MAX_BYTES} bytes"
            assert Pictures(still["text/html"]).found, f"{cell.id}: without text/html there is no alternative text"
        for output in cell.outputs:
            for alt, _ in Pictures(output.get("data", {}).get("text/html", "")).found:
                assert alt.strip(), cell.id


def exported(notebook):
    return nbconvert.HTMLExporter().from_notebook_node(copy.deepcopy(notebook))[0]


def as_on_github(notebook):
    """A stand-in for GitHub's notebook page, which nobody can run at home.

    What is known of it: it is nbconvert's HTML without any style or script; it knows nothing of widgets; what is left
    of an output's HTML goes through a list of harmless elements and attributes. It keeps pictures that are data
    addresses, since every plot in every notebook is one.
    """
    notebook = copy.deepcopy(notebook)
    for cell in live_cells(notebook):
        for output in cell.outputs:
            output.get("data", {}).pop(WIDGET_VIEW, None)
    page, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    page = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return bleach.clean(
        page,
        tags=bleach.ALLOWED_TAGS | {"details", "div", "h1", "h2", "h3", "img", "p", "pre", "span", "summary", "table"},
        attributes={"a": ["href"], "img": ["alt", "src", "width", "height"]},
        protocols={"data", "https"},
        strip=True,
    )


@pytest.mark.long_form
@pytest.mark.parametrize("page_of", [exported, as_on_github])
def test_html_shows_every_live_figure(notebook, page_of):
    page = page_of(notebook)
    expected = {picture for cell in live_cells(notebook) for picture in Pictures(stills(cell)[0]["text/html"]).found}
    assert expected <= set(Pictures(page).found)
    assert f'<script type="{WIDGET_VIEW}">' not in page
