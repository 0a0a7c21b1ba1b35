"""The book as a reader without a kernel or a connection sees it: `python course.py test tests/site/test_book.py`."""

import html
import json
import re
import shutil
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import axe
import nbformat
import pytest

from lesson_utils.classroom import legible, plots
from lesson_utils.classroom.stand_in import WIDGET_VIEW, is_live_figure
from lesson_utils.lessons.start_here import lab as start_here
from tools import save
from tools.browser import driver, firefox

pytestmark = pytest.mark.long_form

NOTEBOOKS = {f"notebooks/{path.stem}": nbformat.read(path, 4) for path in sorted(save.NOTEBOOKS.glob("*.ipynb"))}
OWN = "findings platforms teaching own_exercises own_figures other_courses 65_million contributing security changelog"
OWN = [f"docs/{name}" for name in OWN.split()]
PAGES = ["index", *NOTEBOOKS, *OWN]
START, SCALED = "notebooks/00_start_here", "notebooks/02_scaled_attention"
FEW_FRAMES = 8  # all that differs between the book that is published and this one: its figures have fewer pictures
every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)
every_page = pytest.mark.parametrize("name", [*PAGES, "search"])


def some(names, *here):
    """Cases of which CI runs these; GitHub's workflow has time for all."""
    return [pytest.param(name, marks=[] if name in here else [pytest.mark.own_job]) for name in names]


# What is on the page as text, apart from code and what was printed.
PROSE = """() => {
    const copy = document.querySelector('main').cloneNode(true)
    copy.querySelectorAll('pre, code, script, style, mjx-container').forEach(node => node.remove())
    return copy.textContent
}"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    if missing := [name for name in ("sphinx", "myst_nb", "sphinx_book_theme") if not find_spec(name)]:
        pytest.skip(f"{', '.join(missing)} missing; install with: python course.py test --site tests/site")
    from tools.site import build, fetch

    folder = tmp_path_factory.mktemp("book")
    try:
        build.build_book(folder, with_lite=True, most_frames=FEW_FRAMES)
    except fetch.Unreachable as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="module")
def address(book):
    with driver.served(book) as address:
        yield address


@pytest.fixture
def visit(address, chromium):
    """A function that opens a page. What pages ask of other hosts, or the browser complains of, fails the test."""
    opened, problems = [], []

    def note(is_problem, text):
        if is_problem:
            problems.append(text)

    def visit(name, width=1200, **options):
        page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme="light", **options)
        page.on("request", lambda request: note(not request.url.startswith((address, "data:")), request.url))
        page.on("response", lambda response: note(response.status >= 400, f"{response.status}: {response.url}"))
        page.on("console", lambda line: note(line.type in ("error", "warning"), line.text))
        page.on("pageerror", lambda error: note(True, str(error)))
        page.goto(f"{address}{name}.html")
        page.evaluate("window.MathJax?.startup.promise")
        opened.append(page)
        return page

    visit.problems = problems
    yield visit
    for page in opened:
        page.close()
    assert problems == []


def in_the_dark(page):
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.evaluate("Promise.all(document.getAnimations().map(it => it.timeline === document.timeline && it.finished))")


def outputs(cells):
    return [output for cell in cells for output in cell.get("outputs", [])]


def html_outputs(cells):
    return "".join(output.get("data", {}).get("text/html", "") for output in outputs(cells))


def alternative_texts(cells):
    return [html.unescape(alt) for alt in re.findall(r'<img alt="([^"]*)"', html_outputs(cells))]


def before_an_answer(name):
    """The live figures that stand below a prediction and above its answer."""
    waits = False
    for cell in NOTEBOOKS[name].cells:
        if cell.cell_type == "markdown":
            for mark in re.findall(r'\*\*Predict:|class="answer"', cell.source):
                waits = "Predict" in mark
        elif waits and is_live_figure(cell.outputs):
            yield cell


def first_lines(name):
    """A notebook's title and its question."""
    return re.match(r"# (.+)\n\*(.+)\*\n", NOTEBOOKS[name].cells[0].source).groups()


# Every page


def test_these_pages_and_no_others(book):
    found = {path.relative_to(book).with_suffix("").as_posix() for path in book.rglob("*.html")}
    assert {page for page in found if not page.startswith("_static/")} == {*PAGES, "search"}


@every_page
def test_a_page_keeps_nobody_out(name, visit):
    """It fits, its text comes first and in order, and axe finds nothing: in the light, in the dark, on a phone."""
    page = visit(name)
    headings = "nodes => nodes.filter(node => node.checkVisibility()).map(node => Number(node.tagName[1]))"
    levels = page.locator("main").locator("h1, h2, h3, h4, h5, h6").evaluate_all(headings)
    assert levels.count(1) == levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    if name in NOTEBOOKS:
        assert page.title() == f"{first_lines(name)[0]} — Attention, measured"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").strip() == "Skip to main content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main-content"

    page.locator("details").evaluate_all("nodes => nodes.forEach(node => node.open = true)")
    page.evaluate("Promise.all(document.getAnimations().map(it => it.timeline === document.timeline && it.finished))")
    assert axe.violations(page, rules=[*axe.RULES, "wcag22aa"]) == []
    in_the_dark(page)
    assert axe.violations(page, rules=axe.COLOURS) == []
    look = "image => [getComputedStyle(image).backgroundColor, getComputedStyle(image).filter].join()"
    looks = page.locator(".cell_output img").evaluate_all(f"images => images.map({look})")
    assert {*looks} <= {"rgb(255, 255, 255),brightness(0.85)"}, "pictures keep their colours"

    bad = "images => images.filter(image => !image.alt.trim() || !image.naturalWidth).map(image => image.outerHTML)"
    for width in (1200, 400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("img:not(.panel)").evaluate_all(bad) == []
    page.reload()  # the theme looks once, whether a block of code is wider than its page
    page.evaluate("window.MathJax?.startup.promise")
    assert axe.violations(page, rules=["scrollable-region-focusable"]) == []


@every_page
def test_a_page_says_what_it_is_to_those_who_link_to_it(name, book):
    text = (book / f"{name}.html").read_text(encoding="utf-8")
    owner, repository = save.slug().split("/")
    base = f"https://{owner}.github.io/{repository}/"
    assert f'<link rel="canonical" href="{base}{name}.html"' in text
    found = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', text))
    if name != "search":
        assert found["og:url"] == f"{base}{name}.html"
        assert 10 < len(found["description"]) < 200
        assert re.search(r"[.?:…]$", found["description"])
        preview = f"_static/previews/{Path(name).name if name in NOTEBOOKS else 'index'}.png"
        assert found["og:image"] == base + preview
        assert (book / preview).is_file()
        assert found["og:title"] == re.search(r"<h1>(.+?)<", text)[1]
        assert f"<loc>{base}{name}.html</loc>" in (book / "sitemap.xml").read_text(encoding="utf-8")
    assert "icon.svg" in re.search(r'<link rel="icon"[^>]*>', text)[0]
    assert save.slug() in re.findall(rf'href="https://github\.com/({save.SLUG})"', text)
    assert {*save.ADDRESSES.findall(text)} <= {save.slug()}
    assert "OWNER" not in text or save.slug() == "OWNER/REPO"


@every_page
def test_links_lead_somewhere(name, book):
    page = book / f"{name}.html"
    text = page.read_text(encoding="utf-8")
    found = re.findall(r'<a\s[^>]*?href="([^"]*)"', text)
    assert len(found) > len(NOTEBOOKS)
    for link in found:
        address, _, fragment = unquote(html.unescape(link)).partition("#")
        if address.startswith(("https://", "../lite/", "lite/", "chat/")):
            continue
        target = page.parent / address if address else page
        assert target.is_file(), link
        there = target.read_text(encoding="utf-8")
        place, _, state = fragment.partition("?")
        if state:  # of a figure
            assert all(f'"{part}"' in there for part in state.split("&")), link
            assert f'/{place}"' in there, link
        else:
            assert f'id="{place}"' in there or not place, link
    if name in PAGES:  # from one page to the next, and back
        ways = re.findall(r'<a class="(left-prev|right-next)"\s+href="([^"]+)"', text)
        ways = {way: (page.parent / link).resolve().relative_to(book.resolve()).as_posix() for way, link in ways}
        number = PAGES.index(name)
        neighbours = {"left-prev": number - 1, "right-next": number + 1}
        assert ways == {way: f"{PAGES[n]}.html" for way, n in neighbours.items() if 0 <= n < len(PAGES)}


def test_the_front_page_leads_to_the_chat_and_to_the_first_notebook_before_anything_else(book):
    text = (book / "index.html").read_text(encoding="utf-8")
    first = "lite/lab/index.html?path=00_start_here.ipynb"
    parts = ("live-stops", 'href="chat/index.html"', f'href="{first}"', "Is it for you?<a")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "/chat/index.html" not in text.replace('"chat/index.html"', ""), "nothing leads to another site's"


# Notebooks


@every_notebook
def test_a_notebook_is_shown_as_it_is_stored(name, visit):
    page = visit(name)
    text = "\n".join(cell.source for cell in NOTEBOOKS[name].cells if cell.cell_type == "markdown")
    formulas = re.findall(r"\$\$.+?\$\$|\$[^$]+\$", re.sub(r"(`+).+?\1", "", text, flags=re.S), re.S)
    assert page.locator("mjx-container").count() == page.locator(".math").count() == len(formulas)
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert not re.search(r"\$|\\[()\[\]]", page.evaluate(PROSE))

    folds = page.locator(".cell_output details")
    assert folds.count() == html_outputs(NOTEBOOKS[name].cells).count("<details")
    shown = [fold for fold in (folds.first, folds.last) if fold.is_visible()]  # a hint, and an answer
    assert shown
    for fold in shown:
        answer = fold.locator("> :not(summary)").first
        assert not answer.is_visible()
        fold.locator("> summary").click()
        assert answer.is_visible()
        fold.locator("> summary").press("Enter")
        assert not answer.is_visible()

    page.get_by_label("Open all answers on this page").check()
    stored, answers = map(alternative_texts, (NOTEBOOKS[name].cells, before_an_answer(name)))
    pictures = page.locator(".cell_output img")
    shown = pictures.evaluate_all("nodes => nodes.map(node => node.alt)")
    assert len(shown) == len(stored)
    as_stored = [alt for alt, now in zip(stored, shown, strict=True) if alt.endswith(now)]  # the last of several in one
    assert as_stored == [alt for alt in stored if alt not in answers]
    assert all(picture.is_visible() for picture in pictures.all())
    assert page.locator(".live-controls").count() == len(live_figures(name))
    assert not any(view.is_visible() for view in page.locator(f'[type="{WIDGET_VIEW}"], .widget-subarea').all())
    streams = [output.text.strip("\n") for output in outputs(NOTEBOOKS[name].cells) if output.output_type == "stream"]
    printed = [text for text in streams if not text.startswith("From here on our ")]
    lines = page.locator(".cell_output .stream pre").evaluate_all("nodes => nodes.map(node => node.textContent)")
    assert [text.strip("\n") for text in lines] == printed

    launch = page.locator(".dropdown-launch-buttons")
    launch.get_by_role("button").click()
    buttons = {link.inner_text().strip(): link.get_attribute("href") for link in launch.locator("a").all()}
    assert all(link.is_visible() for link in launch.locator("a").all())
    assert buttons == {
        "JupyterLite": f"../lite/lab/index.html?path={Path(name).name}.ipynb",
        "Binder": f"https://mybinder.org/v2/gh/{save.slug()}/main?urlpath=lab/tree/{name}.ipynb",
        "Colab": f"https://colab.research.google.com/github/{save.slug()}/blob/main/{name}.ipynb",
    }
    ways = page.locator("article p").locator("a", has_text="Open in ").all()
    assert [way.get_attribute("href") for way in ways] == [buttons[s] for s in ("JupyterLite", "Colab", "Binder")]


def test_without_scripts_a_live_figure_is_a_picture(address, chromium):
    page = chromium.new_page(java_script_enabled=False)
    page.goto(f"{address}{SCALED}.html")
    sentences = page.get_by_text("A picture of a live figure. Run this cell to move").all()
    assert len(sentences) == len(live_figures(SCALED))
    assert all(sentence.is_visible() for sentence in sentences)
    assert not page.locator(".live-controls").count()
    page.close()


# Live figures


def live_figures(name):
    return [cell for cell in NOTEBOOKS[name].cells if is_live_figure(cell.get("outputs", []))]


class Moving:
    """A live figure on a page, and the pictures that were drawn for it."""

    def __init__(self, form, book):
        self.node = form.locator("xpath=ancestor::div[starts-with(@class, 'still-')]")
        self.told = json.loads(self.node.locator(".live-stops").text_content())
        script = (book / "_static" / "frames" / f"{self.told['figure']}.js").read_text(encoding="utf-8").strip()
        _, self.drawn = json.loads(f"[{script.removeprefix('liveFrames(').removesuffix(')')}]")
        self.inputs = form.locator("input, select").all()

    def ends(self):
        """Move each control to its ends, in turn; after each move, compare."""
        for number, (node, control) in enumerate(zip(self.inputs, self.told["controls"], strict=True)):
            last = len(control["texts"]) - 1
            if not last:
                assert not node.is_visible()
                continue
            assert node.evaluate("node => node.labels[0].textContent") == control["label"]
            for place in (0, last):
                if self.places()[number] == place:
                    continue
                if control["kind"] == "select":
                    node.select_option(index=place)
                elif control["kind"] == "checkbox":
                    node.set_checked(bool(place))
                else:
                    node.press("End" if place else "Home")
                    assert node.get_attribute("aria-valuetext") == control["texts"][place]
                self.compare()

    def places(self):
        place = "node => Number(node.type === 'checkbox' ? node.checked : node.selectedIndex ?? node.value)"
        return [node.evaluate(place) for node in self.inputs]

    def compare(self):
        """What is seen and said was drawn for the controls where they are."""
        number, code = 0, self.node.locator("code").text_content()
        for control, place in zip(self.told["controls"], self.places(), strict=True):
            number = number * len(control["texts"]) + place
            assert control["call"][place] in code
        file, alt, cuts = self.drawn["pictures"][self.drawn["frames"][number]]
        self.node.locator("img:not([aria-busy])").wait_for()
        picture = self.node.locator("img")
        assert picture.get_attribute("alt") == alt
        assert picture.get_attribute("src").endswith(file)
        assert (picture.get_attribute("data-cuts") or "") == cuts


@pytest.mark.parametrize("name", some(NOTEBOOKS, SCALED))
def test_live_figures_move(name, visit, book):
    """Each control goes to its ends, and the page stays as it was; no picture came before somebody asked for it."""
    page = visit(name)
    assert not page.evaluate("performance.getEntriesByType('resource').filter(r => r.name.includes('/frames/')).length")
    forms = page.locator(".live-controls").all()
    assert len(forms) == len(live_figures(name))
    asked = list(before_an_answer(name))
    for form, cell in zip(forms, live_figures(name), strict=True):
        figure = Moving(form, book)
        is_moved = "=" in figure.node.locator("code").text_content()
        assert is_moved != (cell in asked), "it tells, or begins as its cell opens it, where it would answer"
        assert len(json.dumps(figure.told)) < 8_000
        before = figure.node.bounding_box()
        figure.ends()
        after = figure.node.bounding_box()
        assert (before["width"], before["height"]) == (after["width"], after["height"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200


# The key that moves a slider from where it stands.
FAR_END = "slider => slider.value === slider.max ? 'Home' : 'End'"


def test_a_picture_that_does_not_come_is_told(visit):
    page = visit(START)
    page.route("**/frames/**", lambda route: route.abort())
    slider = page.locator(".live-controls input[type=range]").first
    slider.press(slider.evaluate(FAR_END))
    page.get_by_text("The picture for these settings could not be loaded.").wait_for()
    page.unroute("**/frames/**")
    slider.press(slider.evaluate(FAR_END))
    page.locator(".live-lost").wait_for(state="detached")
    visit.problems.clear()


# Pictures, enlarged

LARGE = ".enlarged[open] img"
# How many pixels of the screen one pixel of a picture takes, as its author counts them; and whether all can be reached.
ENLARGED = """picture => {
    const [stage, box, look] = [picture.parentElement, picture.getBoundingClientRect(), getComputedStyle(picture)]
    const room = stage.getBoundingClientRect(), width = parseFloat(look.width) / picture.getAttribute('width')
    const height = parseFloat(look.height) / picture.getAttribute('height')
    stage.scrollTo(1e6, 1e6)
    const end = picture.getBoundingClientRect()
    stage.scrollTo(0, 0)
    const starts = box.left >= room.left - 1 && box.top >= room.top - 1
    return [width, height, starts && end.right <= room.right + 1 && end.bottom <= room.bottom + 1]
}"""


@pytest.mark.own_job
def test_a_link_opens_a_figure_in_its_state(visit, book):
    page = visit(SCALED)
    figure = Moving(page.locator(".live-controls").nth(1), book)
    for node in figure.inputs:
        if node.is_visible():
            node.press("End")
    places = figure.places()
    page.get_by_role("button", name="Copy link").nth(1).click()
    there = visit(SCALED)
    there.goto("about:blank")
    there.goto(page.url)
    same = Moving(there.locator(".live-controls").nth(1), book)
    assert same.places() == places
    same.compare()
    there.wait_for_function("scrollY > 0")
    run = there.locator("a", has_text="Run this cell").nth(1).get_attribute("href")
    assert run.endswith(f".ipynb&cell={figure.told['figure'].partition('/')[2]}")


def test_a_finding_sets_its_figure(visit, book):
    """Also a second time, and whoever copies the link comes back to it."""
    page = visit("docs/findings")
    figure = Moving(page.locator(".live-controls").first, book)
    assert figure.places() == [2], "it begins at the telling setting"
    for link, place in (("64", 1), ("256", 2)):
        page.get_by_role("link", name=link, exact=True).click()
        assert figure.places() == [place]
        figure.compare()
    figure.inputs[0].press("Home")
    page.get_by_role("link", name="256", exact=True).click()
    page.wait_for_function("document.querySelector('.live-controls input').value === '2'")
    assert figure.node.evaluate("node => node.getBoundingClientRect().bottom <= innerHeight")
    assert page.get_by_role("button", name="Copy link").count() == page.locator(".live-controls").count()


@pytest.mark.parametrize("name", some(PAGES, "index", SCALED))
def test_on_a_phone_a_tap_makes_every_picture_legible(name, visit):
    """By the size that its smallest letters have in the figure, which is tested where figures are drawn."""
    drawn = legible.SMALLEST * plots.PIXELS_PER_INCH / 72
    page = visit(name, 390)
    in_the_dark(page)
    letters = "images => images.map(image => image.clientWidth / parseFloat(image.style.getPropertyValue('--wide')))"
    sizes = page.locator(".cell_output .in-panels > img:visible").evaluate_all(letters)
    assert all(0.63 < size + 0.01 < 1.02 for size in sizes), "nearly as large as drawn"
    assert name != SCALED or page.locator(".panel:visible").count(), "some panels stand below each other"
    pictures = page.locator(".cell_output img:not(.panel):visible")
    for number in range(pictures.count()):
        pictures.nth(number).scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        pictures.nth(number).click()
        picture = page.locator(LARGE)
        across, down, reached = picture.evaluate(ENLARGED)
        assert min(across, down) * drawn >= 9
        assert abs(across / down - 1) < 0.01
        assert reached
        for control in page.locator(".enlarged").locator("input:visible, select:visible, button").all():
            box = control.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            assert box["y"] + box["height"] <= 900
        picture.click()
        picture.wait_for(state="detached")
        assert page.evaluate("scrollY") == before


def test_by_finger_a_picture_is_whole_first(visit):
    page = visit(SCALED, 390, is_mobile=True, has_touch=True)
    page.locator(".cell_output img").first.tap()
    stage, picture = page.locator(".enlarged-stage"), page.locator(LARGE)
    outer, inner = stage.bounding_box(), picture.bounding_box()
    assert all(outer[side] < inner[side] + 1 for side in "xy")
    assert outer["width"] + 1 > inner["width"] > 250
    assert outer["height"] + 1 > inner["height"] > 700, "it is turned"
    stage.tap()
    assert min(picture.evaluate(ENLARGED)) > 0.99
    stage.tap()
    picture.wait_for(state="detached")


def test_a_picture_is_enlarged_and_left_by_keyboard(visit):
    """Enter, the arrow keys, Tab, Escape; who can't see it is told that this is a dialogue, and what it shows."""
    page = visit(START, 390)
    button = page.get_by_role("button", name="Enlarge").first
    button.press("Enter")
    shown = page.get_by_role("dialog", name="Enlarged picture")
    assert shown.get_by_role("img").get_attribute("alt").strip()
    assert page.evaluate("document.activeElement.ariaLabel") == "Picture"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    slider = shown.get_by_role("slider")
    before = slider.get_attribute("aria-valuetext"), shown.get_by_role("img").get_attribute("alt")
    while not slider.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.enlarged, body').tagName") in ("DIALOG", "BODY")
    page.keyboard.press(slider.evaluate(FAR_END))
    page.wait_for_function("alt => document.querySelector('.enlarged img').alt !== alt", arg=before[1])
    alt = shown.get_by_role("img").get_attribute("alt")
    shown.get_by_role("status").get_by_text(alt).wait_for()
    page.keyboard.press("Escape")
    page.locator(LARGE).wait_for(state="detached")
    assert button.evaluate("node => node === document.activeElement")
    assert page.locator(".cell_output img").first.get_attribute("alt") == alt  # the page has moved along
    assert page.get_by_role("slider").first.get_attribute("aria-valuetext") != before[0]


def test_back_closes_the_picture_and_not_the_page(visit):
    page = visit("index")
    page.goto(page.url.replace("index.html", "notebooks/00_start_here.html"))
    address, ways = page.url, ("Back", "Close", "Back")
    for way in ways:
        page.locator(".cell_output img").first.click()
        page.locator(LARGE).wait_for()
        page.evaluate("history.back()") if way == "Back" else page.get_by_role("button", name=way).click()
        page.locator(LARGE).wait_for(state="detached")
        assert page.url == address
    page.go_back()
    assert page.url.endswith("index.html")  # no step was left behind


# The build


@pytest.mark.own_job
def test_without_jupyterlite_nothing_leads_to_it_and_a_broken_link_stops_the_build(book, tmp_path, capfd):
    from tools.site import build

    docs, site = tmp_path / "docs", tmp_path / "site"
    shutil.copytree(build.DOCS, docs, ignore=shutil.ignore_patterns("_build"))
    with (docs / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](notebooks/11_nothing.ipynb)\n")
    with pytest.raises(SystemExit):
        build.build_book(site, with_lite=False, docs=docs, most_frames=FEW_FRAMES)
    assert "11_nothing.ipynb" in capfd.readouterr().err
    for name in PAGES:  # they are written all the same
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert not re.search(r'href="[^"]*\blite/', text)
        assert "JupyterLite" not in text or name in OWN
    assert "JupyterLite" in (book / "index.html").read_text(encoding="utf-8")


# The front page


def test_the_front_page_agrees_with_readme_and_notebooks(visit, book):
    page = visit("index")
    figure = Moving(page.locator(".live-controls"), book)
    assert figure.told["figure"] == "00_start_here/first-look"
    assert "temperature=1.0" in figure.node.locator("code").text_content()
    figure.ends()
    assert not page.get_by_text("run this cell").count()
    rows = page.locator("#the-notebooks table").locator("tr", has=page.locator("a")).all()
    assert len(rows) == len(NOTEBOOKS)
    for row, name in zip(rows, NOTEBOOKS, strict=True):
        number, title, question = row.locator("td").all_inner_texts()
        assert row.locator("a").get_attribute("href") == f"{name}.html"
        assert first_lines(name) == (title if number == "00" else f"{number} · {title}", question)
    for text in ("python course.py", f"git clone https://github.com/{save.slug()}", "Code: MIT"):
        assert page.locator("article").get_by_text(text).first.is_visible()


def test_a_link_to_a_state_of_the_first_figure_holds_it_still(visit):
    page = visit("index")
    address = f"{page.url}#first-look?temperature=10.0"
    page.goto("about:blank")
    page.goto(address)
    page.get_by_text("temperature=10.0").wait_for()
    page.wait_for_timeout(1500)  # it would play after one second
    assert page.get_by_role("button", name="▶ Play").is_visible()


def test_on_a_phone_it_is_in_sight_in_the_first_figure(visit):
    figure = plots.figure(start_here.first_look.width, start_here.first_look.height)
    word = start_here.Sentence(figure).texts[start_here.IT].get_window_extent()
    image = visit("index", 390).locator(".live-controls ~ img")
    room, wide = image.evaluate("image => [image.parentElement.clientWidth, image.clientWidth]")
    assert word.x1 / figure.bbox.width * wide < room < wide


# In Firefox

PICTURE = "() => document.querySelector('.live-controls ~ img')"
ELSEWHERE = f"old => (image => image.complete && image.naturalWidth && image.alt !== old)(({PICTURE})())"


def test_firefox_shows_it_too(address):
    """Formulas, folds, a figure that moves, and a larger picture, by finger and by keyboard."""
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    with firefox.started() as browser:
        page = browser.page(f"{address}{SCALED}.html", width=390)
        page.ask("() => MathJax.startup.promise.then(() => true)")
        formulas = "() => [...document.querySelectorAll('.math')].map(node => !!node.querySelector('mjx-math'))"
        assert all(shown := page.ask(formulas))
        assert shown
        for step in (lambda: page.click("main details > summary"), lambda: page.press("Enter")):
            before = page.ask("() => document.querySelector('main details').open")
            step()
            page.wait("before => document.querySelector('main details').open !== before", before)

        page.ask("() => document.querySelector('.live-controls input[type=range]').focus()")
        before = page.ask(f"() => ({PICTURE})().alt")
        page.press(page.ask(f"() => ({FAR_END})(document.activeElement)"))
        page.wait(ELSEWHERE, before)
        page.click(".live-controls ~ img")
        page.wait("() => document.querySelector('.enlarged').open")
        page.press("Escape")
        page.wait("() => !document.querySelector('.enlarged').open")
        page.wait("() => document.activeElement.className === 'enlarge'")  # the button, where the focus is back
        assert browser.complaints == []
        assert [place for place in browser.requests if not place.startswith((address, "data:"))] == []
