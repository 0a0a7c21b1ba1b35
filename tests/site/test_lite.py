"""JupyterLite as it is published: every notebook runs in a browser that can reach nothing but a server of files.

python course.py test tests/site/test_lite.py
"""

import base64
import io
import json
import re
import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path

import by_hand
import matplotlib.image
import numpy as np
import pytest
import stand_in_model

from tools.browser import driver, firefox

pytestmark = pytest.mark.long_form

STATIC = Path(__file__).parents[2] / "docs" / "_static"
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
FIRST = "00_start_here"  # CI has no time for more; GitHub's workflow runs all


@pytest.fixture(scope="module")
def site(tmp_path_factory, wheels):
    """The site in a folder."""
    if missing := [name for name in ("jupyterlite_core", "pyodide_lock") if not find_spec(name)]:
        pytest.skip(f"{' and '.join(missing)} missing; install with: python course.py test --site tests/site")
    from tools.site import lite

    folder = tmp_path_factory.mktemp("site") / "lite"
    lite.build(folder)
    return folder


@pytest.fixture(scope="module")
def address(site):
    with driver.served(site.parent) as address:
        yield f"{address}lite/"


@pytest.fixture
def lab(address, chromium):
    lab = driver.JupyterLab(address.removesuffix("lite/"), "lite/lab/index.html?path={path}", chromium)
    yield lab
    assert lab.elsewhere == []


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[] if path.stem == FIRST else [pytest.mark.own_job]) for path in NOTEBOOKS],
)
def test_notebook(lab, path):
    """By Shift+Enter, as a learner runs it: its figures are in sight, and the first one moves."""
    with lab.open(path.name, 1280, 720) as notebook:
        assert by_hand.not_in_sight(notebook) == {}
        assert notebook.complaints() == []
        said = next(cell for cell in notebook.cells if cell["id"] == "setup")["outputs"][0]
        assert "".join(said["text"]).startswith("Ready.\n")
        figure = notebook.live_figures()[0]
        assert figure.alt.strip()
        # From the keyboard, the slider moves, and picture and alternative text with it.
        slider = next(control for control in figure.controls.values() if control.kind == "slider")
        slider.move("Home")
        low = figure.src, figure.alt
        assert slider.move("ArrowRight"), f"{figure.cell}: {slider.label} does not move"  # JupyterLab wants these keys
        slider.move("End")
        assert figure.alert == ""
        assert figure.src != low[0]
        assert figure.alt != low[1]
        assert notebook.complaints() == []


# Arrays of all forms in memory: each product against the sums that it stands for.
PRODUCTS = """
from itertools import product
import numpy as np
import fast_products
forms = (
    lambda x: x,
    lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    lambda x: x[..., ::-1, ::-1].copy()[..., ::-1, ::-1],
    lambda x: x.repeat(2, axis=-1)[..., ::2],
    lambda x: np.broadcast_to(x[..., :1], x.shape),
)
rng, tried, worst = np.random.default_rng(0), 0, 0.0
leading = ((), ()), ((2,), (2,)), ((2, 1), (3,)), ((0,), (1,))
for dtype, m, n, p, (left, right) in product((np.float32, np.float64), *[(0, 1, 3, 4, 23)] * 3, leading):
    a, b = rng.normal(size=(*left, m, n)).astype(dtype), rng.normal(size=(*right, n, p)).astype(dtype)
    for of_a, of_b in product(forms, repeat=2):
        x, y = of_a(a), of_b(b)
        off = np.abs(x @ y - np.einsum("...ij,...jk->...ik", x, y)).max(initial=0)
        tried, worst = tried + 1, max(worst, off / np.finfo(dtype).eps)
a, b = rng.normal(size=(5, 7)), rng.normal(size=7)
vectors = np.allclose(a @ b, (a * b).sum(axis=-1)) and np.isclose(b @ b, (b * b).sum())
print(fast_products.install(), tried, worst < 100, vectors)
"""
ELSEWHERE = "http://127.0.0.2:9/"
FETCH = f"import js\ntry:\n    await js.fetch({ELSEWHERE!r})\nexcept Exception: print('refused')"


def test_its_python_checks_and_computes_as_elsewhere(lab):
    """A check names a mistake, and ends a loop that does not; products are fast and right; it reaches no other host."""
    with lab.open("00_start_here.ipynb") as notebook:
        notebook.run_cell("setup")
        (error,) = notebook.run_cell(
            "weighted-average", "def weighted_average(weights, values):\n    x = 1\n  return x"
        )
        assert "unindent" in error["evalue"]
        for source, finding in (
            ("return values.mean(axis=0)", "This is the plain mean"),
            ("return weights @ values", "Correct."),
            ("while True: pass", "had not returned after some seconds"),
            ("while True:\n        try: pass\n        except Exception: pass", "had not returned after some seconds"),
        ):
            notebook.run_cell("weighted-average", f"def weighted_average(weights, values):\n    {source}")
            (output,) = notebook.run_cell("weighted-average-check")
            assert finding in "".join(output.get("data", {}).get("text/plain", "")), output
        assert notebook.complaints() == []
        whole_text = "from lesson_utils import tasks\nprint(len(tasks.python_text()))"
        for source, said in ((whole_text, "465126"), (PRODUCTS, "True 25000 True True"), (FETCH, "refused")):
            (output,) = notebook.run_cell("setup", source)
            assert "".join(output["text"]) == f"{said}\n"
        assert ELSEWHERE in lab.elsewhere, "it would be noticed, although Python runs apart from the page"
        lab.elsewhere.clear()


# --- Notebook 09 with a model from the site

OFFLINE = "**/chat/model.json"
NO_MEMORY = """import model_of_site
def full(*_, **__): raise MemoryError
load, model_of_site.pretrained.load = model_of_site.pretrained.load, full"""
# The stand-in says its 120 tokens in two seconds; a busy browser needs longer to press a button.
SLOWLY = """import time
model_of_site.pretrained.load = load
stream = model_of_site.pretrained.Pretrained.stream
def slowly(*given, **how):
    for token in stream(*given, **how):
        time.sleep(0.25)
        yield token
model_of_site.pretrained.Pretrained.stream = slowly"""
BY_THE_CHAT = "async () => (await modelBytes(new URL('./', location.href), () => {})).keeps"


def test_notebook_09_runs_on_a_model_from_the_site(site, lab):
    """Bad luck first, each in a sentence; then a click brings the model, and a figure and the chat run on it."""
    from tools.site.chat import make

    with lab.open("09_real_model.ipynb") as notebook:
        page, asked = notebook.page, []
        page.context.on("request", lambda request: request.service_worker or asked.append(request.url))
        button = page.get_by_role("button", name="Fetch the model (93 MB)")

        def press(sentence):
            button.click()
            page.get_by_text(sentence).wait_for(timeout=120_000)

        notebook.run_cell("setup")
        assert "its stored results" in "".join(notebook.run_cell("load")[0]["text"])
        press("This site was built without the model, so the notebook shows its stored results.")
        folder = site.parent / "chat"
        make.build_model(folder, stand_in_model.write(site.parent / "stand_in.gguf"), stand_in_model.PART)
        (folder / "model.js").write_text((make.HERE / "model.js").read_text(encoding="utf-8"), encoding="utf-8")
        page.context.route(OFFLINE, lambda route: route.abort())
        press("This site does not answer. Check your connection, and press the button again.")
        page.context.unroute(OFFLINE)
        notebook.run_cell("census-lab")
        assert "sentence" not in notebook.live_figures()[0].controls, "the stored results stay"

        # What the chat's page has fetched is not fetched again.
        other = page.context.new_page()
        other.goto(f"{page.url.partition('lite/')[0]}chat/model.json")
        other.add_script_tag(url="model.js")
        assert other.evaluate(BY_THE_CHAT)
        asked.clear()
        notebook.run_cell("grow-data", NO_MEMORY)
        press("This tab has too little memory for the model. Close other tabs, and press the button again.")
        notebook.run_cell("grow-data", SLOWLY)
        press("The model is here. Now run this cell again, and the cells below it.")
        assert [url for url in asked if "/model/" in url] == []
        assert "million parameters" in "".join(notebook.run_cell("load")[0]["text"])

        # The figure follows a sentence, and the chat, which is a task, is stopped.
        notebook.run_cell("census-lab")
        (figure,) = notebook.live_figures()
        first = figure.src
        figure.controls["sentence"].input.fill("the heat, the")
        assert figure.wait_for_picture(other_than=first, seconds=30)
        assert re.findall(r"'([^']+)' on", figure.alt) == ["a", "t", ",", " the"], "the ends of the sentence"
        assert figure.alert == ""
        notebook.run_cell("chat")
        ask, stop = (page.get_by_role("button", name=name) for name in ("Ask", "Stop"))
        ask.click()
        tokens = page.locator("span[title^='p =']")
        tokens.nth(2).wait_for(state="attached", timeout=60_000)
        stop.click()
        page.wait_for_function("node => !node.disabled", arg=ask.element_handle())
        assert 2 < tokens.count() < 120
        assert notebook.complaints() == []


# Where on the page the cell with this name is.
PLACE = """id => {
    const {model, widgets} = jupyterapp.shell.currentWidget.content
    return `.jp-Notebook-cell:nth-child(${model.sharedModel.cells.findIndex(cell => cell.id === id) + 1})`
}"""
SEEN = "place => [...document.querySelectorAll(`${place} img`)].find(image => image.offsetParent)"


def test_firefox_runs_it_too(address):
    """From the first key that a learner presses: the notebook opens, its cells run, and its first figure moves."""
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    with firefox.started() as browser:
        page = browser.page(f"{address}lab/index.html?path=00_start_here.ipynb")
        page.wait("() => window.jupyterapp?.shell.currentWidget?.context?.isReady", seconds=60)
        ready = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        page.wait(f"() => {ready}", seconds=60)  # the circle at the top right is empty, as the front page says it
        for cell, done in (
            ("setup", "node => node.querySelector('.jp-OutputArea')?.textContent.trim().startsWith('Ready.')"),
            ("first-look", "node => node.querySelector('[role=slider]')?.checkVisibility()"),
        ):
            place = page.ask(PLACE, cell)
            page.click(f"{place} .cm-content")
            page.press("Shift", "Enter")
            page.wait(f"place => ({done})(document.querySelector(place))", place, seconds=60)
        for key in ("End", "Home"):
            alt = page.ask(f"place => ({SEEN})(place).alt", place)
            page.ask("place => document.querySelector(`${place} [role=slider]`).focus()", place)
            page.press(key)
            page.wait(
                f"(place, alt) => (image => image.naturalWidth && image.alt !== alt)(({SEEN})(place))", place, alt
            )
        assert browser.complaints == []
        own = (address.removesuffix("lite/"), "data:", "blob:")
        assert [request for request in browser.requests if not request.startswith(own)] == []


# --- What the page does for a learner beyond JupyterLite

BAR = "#course"
STATUS = f"{BAR} [role=status]"
OPEN = "() => window.jupyterapp?.shell.currentWidget?.context?.isReady"
PATH = "[new URL(location.href).searchParams.get('path'), jupyterapp.shell.currentWidget.context.path]"
MINE = "my_own = 'é'"
# Runs the first cell, as Shift+Enter does, at once when the notebook is there: half a second before it has a kernel.
RUN_EARLY = """async () => {
    const later = () => new Promise(done => setTimeout(done, 5))
    while (!window.jupyterapp?.shell.currentWidget?.context) await later()
    const panel = jupyterapp.shell.currentWidget
    await panel.context.ready
    panel.content.activeCellIndex = panel.content.widgets.findIndex(cell => cell.model.id === 'setup')
    if (panel.sessionContext.session) throw new Error('the kernel is there already')
    window.done = [jupyterapp.commands.execute('notebook:run-cell-and-select-next')]
    const cells = panel.content.widgets.filter(cell => cell.model.type === 'code')
    panel.content.activeCellIndex = panel.content.widgets.indexOf(cells[1])
    window.done.push(jupyterapp.commands.execute('notebook:run-all-above'))
    return [document.querySelector('#course [role=status]').textContent, cells.slice(0, 2).map(cell => cell.prompt)]
}"""
PROMPTS = """async () => {
    await Promise.all(done)
    await new Promise(done => setTimeout(done, 100))
    const {content, sessionContext} = jupyterapp.shell.currentWidget
    const cells = content.widgets.filter(cell => cell.model.type === 'code')
    return [cells.slice(0, 2).map(cell => cell.prompt), Object.hasOwn(sessionContext, 'startKernel')]
}"""


@pytest.fixture
def visit(address, chromium):
    """A browser that keeps what a site stores: a function that opens an address of the site in a page."""
    context = chromium.new_context(viewport={"width": 1024, "height": 700}, accept_downloads=True)

    def open_(path="lab/index.html", until=OPEN, prepare=lambda page: None):
        page = context.new_page()
        prepare(page)
        page.goto(address + path, wait_until="commit")
        page.wait_for_function(until, timeout=60_000)
        return page

    yield open_
    context.close()


def says(page, text):
    """Wait until the page says it."""
    page.wait_for_function(
        "([place, text]) => document.querySelector(place)?.textContent === text", arg=[STATUS, text], timeout=60_000
    )


def again(page, load):
    """Load the page once more, and wait for its notebook."""
    load()
    page.wait_for_function(OPEN, timeout=60_000)


PANEL = "jupyterapp.shell.currentWidget"
SETUP_CELL = f"{PANEL}.content.widgets.find(cell => cell.model.id === 'setup').model.sharedModel"


def write(page):
    """Write into the set-up cell."""
    page.evaluate(f"() => {SETUP_CELL}.setSource({json.dumps(MINE)})")


def save(page):
    page.evaluate(f"{PANEL}.context.save()")


def setup_cell(page):
    return page.evaluate(f"{SETUP_CELL}.getSource()")


def open_notebook(page, path):
    page.evaluate(f"() => void jupyterapp.commands.execute('docmanager:open', {{path: {path!r}}})")
    page.wait_for_function(f"{PATH}[1] === {path!r}")
    page.wait_for_function(OPEN)


def test_from_the_first_second_the_page_says_what_it_does(visit):
    page = visit(until=f"document.querySelector({STATUS!r})")
    assert page.locator(STATUS).text_content() == "Loading the notebook …"
    assert "Your work is kept in this browser, on this machine." in page.locator(BAR).inner_text()
    assert not page.get_by_role("button", name="Download my notebooks").is_visible()
    page.wait_for_function(OPEN, timeout=60_000)
    says(page, "Python is starting …")
    says(page, "Python is ready.")
    kernels = [worker.url.rpartition("/")[2] for worker in page.workers if "pyodide-kernel" in worker.url]
    assert kernels == ["early.js"], "it started before JupyterLab did, and the notebook took it"

    # By keyboard alone: what a reload keeps is said, and goes away again.
    where = page.locator(f"{BAR} summary")
    where.focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("A reload keeps").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_text("A reload keeps").is_visible()
    assert where.evaluate("node => node === document.activeElement")

    page.evaluate(f"{PANEL}.sessionContext.restartKernel()")
    says(page, "Python is ready.")


def test_on_a_dark_system_the_page_is_dark_from_the_first_second(visit):
    until = f"document.querySelector({STATUS!r})"
    page = visit(until=until, prepare=lambda page: page.emulate_media(color_scheme="dark"))
    colours = "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
    text, paper = (int(colour.split("(")[1].split(",")[0]) for colour in page.evaluate(colours))
    assert text > 200 > 50 > paper
    page.wait_for_function("document.body.dataset.jpThemeName === 'JupyterLab Dark'")


@pytest.mark.own_job
@pytest.mark.parametrize(("width", "height"), [(390, 844), (820, 1180)])
def test_a_phone_and_a_tablet_show_the_notebook_and_the_whole_status(address, chromium, width, height):
    context = chromium.new_context(viewport={"width": width, "height": height}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}lab/index.html?path={FIRST}.ipynb")
    page.wait_for_function(OPEN, timeout=60_000)
    page.get_by_text("Python is ready.").wait_for(timeout=60_000)
    page.evaluate(
        """async cells => {
            const {content} = jupyterapp.shell.currentWidget
            for (const id of cells) {
                content.activeCellIndex = content.widgets.findIndex(cell => cell.model.id === id)
                await jupyterapp.commands.execute('notebook:run-cell')
            }
        }""",
        ["setup", "first-look"],
    )
    page.locator(".live-figure img").wait_for(timeout=60_000)
    page.wait_for_timeout(2000)
    assert page.locator(".jp-NotebookPanel-notebook").bounding_box()["width"] > 0.75 * width
    for slider in page.locator(".live-figure [role=slider]").all():
        assert slider.bounding_box()["x"] < 0.9 * width
    cut = "node => node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight"
    assert not page.locator(STATUS).evaluate(cut)
    assert page.locator("[data-command='notebook:run-cell-and-select-next']").is_visible()
    context.close()


def test_a_page_that_does_not_come_says_what_to_do(visit):
    def prepare(page):
        page.route("**/build/**", lambda route: route.abort())
        page.clock.install()

    page = visit(until=f"document.querySelector({STATUS!r})", prepare=prepare)
    page.clock.fast_forward(100_000)
    says(page, "Loading is slow. Check your connection and reload.")


def test_a_reload_and_a_bookmark_open_the_notebook_again(visit):
    page = visit()
    assert page.evaluate(PATH) == ["00_start_here.ipynb"] * 2  # where a first visit begins
    open_notebook(page, "04_positional_encoding.ipynb")
    write(page)
    save(page)
    for load in (page.reload, lambda: page.goto(page.url.partition("?")[0])):
        again(page, load)
        assert page.evaluate(PATH) == ["04_positional_encoding.ipynb"] * 2
        assert setup_cell(page) == MINE
    # A new name is the name from then on.
    page.evaluate(f"{PANEL}.context.rename('my é.ipynb')")
    page.wait_for_function(f"{PATH}[1].startsWith('my')")
    again(page, page.reload)
    assert page.evaluate(PATH)[1] == "my é.ipynb"
    # A notebook that is closed does not come back.
    page.evaluate(f"{PANEL}.dispose()")
    page.wait_for_function("!location.search")
    again(page, page.reload)
    assert page.evaluate(PATH) == ["00_start_here.ipynb"] * 2


# How far the cell that is chosen stands above or below the window's part with cells, in pixels.
OUT_OF_SIGHT = f"""() => {{
    const {{content}} = {PANEL}
    const [view, cell] = [content.node.querySelector('.jp-WindowedPanel-outer'), content.activeCell.node]
        .map(node => node.getBoundingClientRect())
    return Math.max(0, view.top - cell.top, cell.bottom - view.bottom)
}}"""


def test_a_reload_opens_a_notebook_at_the_cell_where_one_was_and_all_above_it_runs(visit):
    """It stays in sight, although pictures above it come later."""
    page = visit()
    content = f"{PANEL}.content"
    page.evaluate(
        f"() => {{ {content}.activeCellIndex = {content}.widgets.findIndex(cell => cell.model.id === 'quiz') }}"
    )
    tall = io.BytesIO()
    matplotlib.image.imsave(tall, np.ones((900, 20, 3)), format="png")
    page.evaluate(
        f"""async picture => {{
            const cell = {content}.widgets.find(cell => cell.model.type === 'code')
            for (let n = 0; n < 3; n++)
                cell.model.outputs.add({{output_type: 'display_data', data: {{'image/png': picture}}, metadata: {{}}}})
            await {PANEL}.context.save()
        }}""",
        base64.b64encode(tall.getvalue()).decode(),
    )
    page.reload()
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.content?.activeCell?.model.id === 'quiz'")
    page.wait_for_timeout(4000)
    assert page.evaluate(OUT_OF_SIGHT) == 0
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-above')")
    page.wait_for_timeout(2000)
    assert page.evaluate(OUT_OF_SIGHT) == 0


RAN = f"() => {PANEL}.content.widgets.map(cell => cell.model.executionCount).filter(Boolean)"


def test_the_books_link_runs_a_cell_after_all_above_it_once(visit):
    """The figure is live and in sight; on the way the page says how far it is. What was run is left as it is."""
    link = "lab/index.html?path=02_scaled_attention.ipynb&cell=bank-lab"
    page = visit(link)
    page.wait_for_function(f"document.querySelector({STATUS!r}).textContent.startsWith('Running: ')", timeout=60_000)
    says(page, "Python is ready.")
    page.locator(".live-figure [role=slider]").first.wait_for()
    assert page.evaluate(RAN) == [1, 2, 3, 4]
    assert page.evaluate(f"{PANEL}.content.activeCell.model.id") == "bank-lab"
    page.wait_for_function(f"({OUT_OF_SIGHT})() === 0")
    assert page.url.endswith("?path=02_scaled_attention.ipynb")
    save(page)
    page = visit(link)
    says(page, "You ran this cell here before. Choose Run → Run All Above Selected Cell, then run it.")
    says(page, "Python is ready.")
    assert page.evaluate(RAN) == [1, 2, 3, 4]
    page.evaluate(f"() => {SETUP_CELL}.setSource('1 / 0')")
    save(page)
    page = visit(link.replace("bank-lab", "scaling-lab"))
    says(page, "A cell ended in an error. The cells after it did not run.")
    assert page.evaluate(RAN) == [1]


def test_a_cell_that_is_run_before_python_is_there_waits_for_it(visit):
    page = visit("lab/index.html?path=02_scaled_attention.ipynb", "document.body")
    said, prompts = page.evaluate(RUN_EARLY)
    assert said == "Python is starting. Your cell waits."
    assert prompts[0] == "*"
    # Twice, as it was asked for twice; nothing that was not run has a number, or goes on waiting.
    assert page.evaluate(PROMPTS) == [["2", ""], False]
    assert "Ready." in page.locator(".jp-OutputArea").first.inner_text()
    says(page, "Python is ready.")


FULL = """() => {
    window.realPut ??= IDBObjectStore.prototype.put
    IDBObjectStore.prototype.put = () => { throw new DOMException('It is full.', 'QuotaExceededError') }
}"""
CLOSE_DIALOGS = """async () => {
    for (let n = 0; n < 20; n++) {
        document.querySelectorAll('.jp-Dialog button').forEach(button => button.click())
        await new Promise(done => setTimeout(done, 50))
    }
}"""


def test_one_button_downloads_all_notebooks_also_where_the_storage_is_full(visit):
    page = visit("lab/index.html?path=04_positional_encoding.ipynb")
    write(page)
    save(page)
    page.evaluate("jupyterapp.serviceManager.contents.save('ä.txt', {type: 'file', format: 'text', content: 'ü\\n'})")
    open_notebook(page, "00_start_here.ipynb")
    write(page)
    page.evaluate(FULL)
    with pytest.raises(Exception, match="It is full"):
        save(page)
    says(page, "Your work could not be saved. Download my notebooks, then make room in this browser.")
    page.evaluate(CLOSE_DIALOGS)  # JupyterLab's own words, several times
    button = page.get_by_role("button", name="Download my notebooks")
    button.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "my_notebooks.zip"
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        assert archive.testzip() is None
        names = {"00_start_here.ipynb", "04_positional_encoding.ipynb", "ä.txt"}
        assert set(archive.namelist()) == {f"my_notebooks/{name}" for name in names}  # what was not opened is not there
        for name in ("00_start_here", "04_positional_encoding"):
            notebook = json.loads(archive.read(f"my_notebooks/{name}.ipynb"))
            assert "".join(next(cell for cell in notebook["cells"] if cell["id"] == "setup")["source"]) == MINE
        assert archive.read("my_notebooks/ä.txt").decode() == "ü\n"
    says(page, "Downloaded my_notebooks.zip (3 files).")
    # There is room again.
    page.evaluate("() => { IDBObjectStore.prototype.put = realPut }")
    page.evaluate(CLOSE_DIALOGS)
    save(page)
    page.wait_for_function(f"!document.querySelector({STATUS!r}).textContent.startsWith('Your work')")
    again(page, page.reload)
    assert setup_cell(page) == MINE


RUN = f"""async ids => {{
    const {{content}} = {PANEL}
    for (const id of ids) {{
        content.activeCellIndex = content.widgets.findIndex(cell => cell.model.id === id)
        await jupyterapp.commands.execute('notebook:run-cell')
    }}
}}"""


@pytest.mark.own_job
def test_a_reload_in_the_middle_of_a_run_and_a_lost_connection_keep_what_was_saved(visit):
    page = visit()
    says(page, "Python is ready.")
    page.context.set_offline(True)  # all that it needs is there
    page.evaluate(RUN, ["setup", "first-look"])
    picture = page.locator(".live-figure img")
    picture.wait_for()
    before = picture.get_attribute("alt")
    page.locator(".live-figure [role=slider]").nth(1).press("Home")
    page.wait_for_function("alt => document.querySelector('.live-figure img')?.alt !== alt", arg=before)
    write(page)
    save(page)
    page.context.set_offline(False)

    page.on("dialog", lambda dialog: dialog.accept())  # outputs that are not saved
    loop = f"{PANEL}.content.widgets.find(cell => cell.model.id === 'weighted-average').model"
    forever = f"{loop}.sharedModel.setSource('while True: print(1)')"
    page.evaluate(f"() => {{ {forever}; void ({RUN})(['weighted-average']) }}")
    page.wait_for_function(f"{loop}.outputs.length")
    again(page, page.reload)
    assert setup_cell(page) == MINE
    says(page, "Python is ready.")
    page.evaluate(f"() => {SETUP_CELL}.setSource('print(6 * 7)')")
    page.evaluate(RUN, ["setup"])
    page.get_by_text("42", exact=True).wait_for()


def test_the_page_brings_the_icon_of_its_tab(site):
    """Otherwise a browser asks the host for a favicon.ico."""
    page = (site / "lab" / "index.html").read_text(encoding="utf-8")
    (icon,) = re.findall(r'<link rel="icon" href="([^"]+)"', page)
    assert (site / "lab" / icon).read_bytes().startswith(b"<svg")


# --- An exercise of the book runs on its page, which is here as MyST-NB writes it

CELLS = (
    "import numpy as np\nfrom lesson_utils.exercises import check\nprint('Ready.')",
    "axis = 0",
    "1 / 0  # which nobody needs",
    "def my_softmax(x):\n    ...",
    "check.softmax(my_softmax)",
)
CODE = "e = np.exp(x - x.max(-1, keepdims=True))\nreturn e / e.sum({axis}, keepdims=True)"


@pytest.fixture
def exercise(site):
    """A page with an exercise, by its path from JupyterLite."""
    shutil.copytree(STATIC, site.parent / "_static", dirs_exist_ok=True)
    page = "<script src='_static/run.js' defer></script><a href='lite/lab/index.html'></a>"
    for code in CELLS:
        page += "<div class='cell tag_exercise'>" if "def" in code else "<div class=cell>"
        page += f"<div class=cell_input><div class=highlight><pre>{code}\n</pre></div></div></div>"
    page = page.removesuffix("</div>") + "<details><summary></summary><div class=cell_output></div></details></div>"
    (site.parent / "exercise.html").write_text(page, encoding="utf-8")
    return "../exercise.html"


def test_an_exercise_of_the_book_runs_by_keyboard(visit, exercise):
    urls = []
    prepare = lambda page: page.on("request", lambda request: urls.append(request.url))  # noqa: E731
    page = visit(exercise, "document.querySelector('.run')", prepare)
    box, output = page.get_by_label("Your code for check.softmax(my_softmax)"), page.locator("[aria-live=polite]")
    assert {url.rpartition("/")[2] for url in urls} == {"exercise.html", "run.js"}, "nothing for Python yet"
    box.focus()
    for key in ("Control+End", *4 * ["Backspace"]):  # the dots, and a step back
        page.keyboard.press(key)
    assert box.input_value() == "def my_softmax(x):\n"
    page.keyboard.type("    ")
    page.keyboard.type(CODE.format(axis="axis"))  # the lines begin where the one before does
    page.keyboard.press("Shift+Enter")
    output.get_by_text("You take the sum over axis 0").wait_for(timeout=60_000)
    output.get_by_text("Hint 1").click()
    for wrong, told in (
        ("    return (x", "'(' was never closed"),
        ("    y = x\n  return y", "unindent does not match"),
    ):
        box.fill(f"def my_softmax(x):\n{wrong}")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        output.get_by_text(re.compile(rf"Line \d is not Python: {re.escape(told)}")).wait_for()
    box.fill("print('my own test')")
    page.keyboard.press("Shift+Enter")
    output.get_by_text("my own test").wait_for()
    assert "NameError" in output.inner_text(), "no function is left of an earlier press"
    assert "Ready." not in output.inner_text()
    box.fill("while True: pass")
    page.get_by_role("button", name="Run check.softmax(my_softmax)").click()
    page.get_by_role("button", name="Stop check.softmax(my_softmax)").click()
    assert output.inner_text() == "Stopped."
    # A reload keeps the code, and Python starts anew.
    box.fill("def my_softmax(x):\n    " + CODE.format(axis="-1").replace("\n", "\n    "))
    page.reload()
    page.get_by_role("button", name="Run check.softmax(my_softmax)").click()
    output.get_by_text("Correct.").wait_for(timeout=60_000)
    page.route("**/start.js", lambda route: route.abort())
    page.reload()
    page.get_by_role("button", name="Run check.softmax(my_softmax)").click()
    output.get_by_text("Python does not answer.").wait_for()


def test_an_exercise_of_the_book_runs_in_firefox(address, exercise):
    if not firefox.find():
        pytest.skip("no Firefox; install it (Debian: apt install firefox-esr)")
    with firefox.started() as browser:
        page = browser.page(f"{address}{exercise}")
        page.ask("() => { const box = document.querySelector('textarea'); box.focus(); box.setSelectionRange(18, 99) }")
        page.press("Enter")
        for line in CODE.format(axis="0").splitlines():
            for letter in line:
                page.press(letter)
            page.press("Enter")
        page.press("Shift", "Enter")
        page.wait("() => document.querySelector('[aria-live]').textContent.includes('over axis 0')", seconds=60)
        assert browser.complaints == []
