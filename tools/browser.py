"""A notebook in JupyterLab in headless Chromium, for the tests and the bench. Needs the extras `lab` and `test`.

    with browser.jupyterlab("notebooks") as lab, lab.open("00_start_here.ipynb") as notebook:
        notebook.run_all()
        figure = notebook.live_figures()[0]
        figure.controls["temperature τ"].move("End")
        figure.screenshot("hot.png")

The page is asked through JupyterLab's own application object where it can be; keys, pixels and what a screen reader
would be told come from the page as it is.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Route

ROOT = Path(__file__).resolve().parent.parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # JupyterLab leaves cells that are out of view unfinished; here all of them count.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
# What JupyterLab writes to the browser's console although nothing is wrong.
HARMLESS = ("widget model not found",)  # on opening a saved notebook: its widgets ended with their kernel
# Chromium would look up hosts of its maker at every start.
FLAGS = ("--disable-gpu", "--disable-quic", "--disable-sync", "--disable-background-networking")


def find_chromium() -> str | None:
    """The path of an installed Chromium or Chrome, or of the one that `playwright install chromium` fetches."""
    usual = (  # where macOS and Windows have it, which is not on PATH
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        os.path.expandvars(r"%ProgramFiles%\Google\Chrome\Application\chrome.exe"),
    )
    for name in ("chromium", "chromium-browser", "google-chrome", *usual):
        if path := shutil.which(name):
            return path
    with suppress(ModuleNotFoundError):
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            own = playwright.chromium.executable_path
        return own if os.path.exists(own) else None
    return None


@contextmanager
def jupyterlab(root: str | Path) -> "Iterator[JupyterLab]":
    """A fresh JupyterLab on the folder `root`, and a browser to look at it; nothing of the user's own set-up.

    Raises:
        RuntimeError: there is no Chromium, or JupyterLab does not start.
    """
    with server(Path(root)) as (url, token), chromium() as window:
        yield JupyterLab(url, f"doc/tree/{{path}}?token={token}", window)


@contextmanager
def jupyterlite(folder: str | Path) -> "Iterator[JupyterLab]":
    """The JupyterLite in `folder`, on a server that hands out files and does nothing else, and a browser.

    Raises:
        RuntimeError: there is no Chromium.
    """
    files = functools.partial(_Files, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server, chromium() as window:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield JupyterLab(f"http://127.0.0.1:{server.server_port}/", "lab/index.html?path={path}", window)
        finally:
            server.shutdown()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written: one page is a hundred requests."""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """A browser.

    Raises:
        RuntimeError: there is none.
    """
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        raise RuntimeError(
            "no Chromium found; install it (Debian: apt install chromium), or: playwright install chromium"
        )
    with sync_playwright() as playwright:
        # Chromium ends with the `with` block, whatever happens in it.
        yield playwright.chromium.launch(executable_path=path, args=FLAGS)


@contextmanager
def server(root: Path, settings: Mapping[str, Any] = SETTINGS) -> Iterator[tuple[str, str]]:
    """JupyterLab's address and token, for as long as it runs."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        overrides = home / "config" / "labconfig" / "default_setting_overrides.json"
        overrides.parent.mkdir(parents=True)
        overrides.write_text(json.dumps(settings))
        own = {f"JUPYTER_{name.upper()}_DIR": str(home / name) for name in ("config", "data", "runtime")}
        own["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *(f"--ServerApp.root_dir={root.resolve()}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"),
            *(f"--LabApp.user_settings_dir={home / 'settings'}", f"--LabApp.workspaces_dir={home / 'workspaces'}"),
            *("--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"),
        ]
        log = home / "log.txt"
        with log.open("wb") as out, subprocess.Popen(command, env=os.environ | own, stdout=out, stderr=out) as process:
            try:
                yield _address(process, home / "runtime", log)
            finally:
                process.terminate()  # it ends its kernels; kernels whose server has died end by themselves
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def _address(server: "subprocess.Popen[bytes]", runtime: Path, log: Path, seconds: float = 60) -> tuple[str, str]:
    """Wait for the file in which a running server says where it is."""
    give_up = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < give_up:
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError):  # only half written
                facts = json.loads(file.read_text())
                return facts["url"], facts["token"]
        time.sleep(0.05)
    raise RuntimeError("JupyterLab did not start:\n" + log.read_text(errors="replace")[-2000:])


class JupyterLab:
    """A running server and a browser, which reaches no other host: `elsewhere` lists what was asked of one."""

    def __init__(self, url: str, path: str, chromium: "Browser"):
        self._url, self._path, self._chromium = url, path, chromium
        self.elsewhere: list[str] = []

    def _refuse(self, route: "Route") -> None:
        self.elsewhere.append(route.request.url)
        route.abort()

    @contextmanager
    def open(self, path: str, width: int = 1200, height: int = 1000) -> "Iterator[Notebook]":
        """Open a notebook, by its path under the server's folder, in a window with no history; its kernel starts.

        Closing shuts the kernel down, and does not save.
        """
        page = self._chromium.new_page(viewport={"width": width, "height": height})
        try:
            notebook = Notebook(page)
            page.context.route(lambda url: url.startswith("http") and not url.startswith(self._url), self._refuse)
            page.goto(self._url + self._path.format(path=path))
            page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady", timeout=60_000)
            notebook.ask("async panel => { await panel.revealed; await panel.sessionContext.ready }")
            yield notebook
            notebook.ask("panel => panel.sessionContext.shutdown()")
        finally:
            page.context.close()


class Notebook:
    """An open notebook. `page` is playwright's, for whatever is not here."""

    def __init__(self, page: "Page"):
        self.page = page
        self._console: list[str] = []
        page.on("console", lambda message: self._note(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self._note(str(error)))

    def _note(self, error: str) -> None:
        if not any(text in error for text in HARMLESS):
            self._console.append(error)

    def ask(self, script: str, seconds: float = 60) -> Any:
        """What a JavaScript function of the notebook's panel returns; an error if it takes too long."""
        return self.page.evaluate(
            f"""() => Promise.race([
                ({script})(jupyterapp.shell.currentWidget),
                new Promise((_, no) => setTimeout(() => no(new Error('no answer in {seconds} s')), {seconds * 1000})),
            ])"""
        )

    def run_all(self, seconds: float = 300) -> None:
        """Run all cells to the end, or to the first error; then wait until the live figures show their pictures."""
        self.ask("() => jupyterapp.commands.execute('notebook:run-all-cells')", seconds)
        for figure in self.live_figures():
            figure.wait_for_picture()

    def run_cell(self, cell: str, source: str | None = None, seconds: float = 300) -> list[dict[str, Any]]:
        """Run one cell by its id, perhaps with another source written into it; its outputs."""
        number = [c["id"] for c in self.cells].index(cell)
        write = "" if source is None else f"cell.model.sharedModel.setSource({json.dumps(source)});"
        self.ask(
            f"""({{content}}) => {{
                content.activeCellIndex = {number}
                const cell = content.activeCell; {write}
                return jupyterapp.commands.execute('notebook:run-cell')
            }}""",
            seconds,
        )
        outputs: list[dict[str, Any]] = self.cells[number]["outputs"]
        return outputs

    def save(self) -> None:
        self.ask("panel => panel.context.save()")

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells with their outputs, as they would be saved."""
        cells: list[dict[str, Any]] = self.ask("panel => panel.context.model.toJSON().cells")
        return cells

    def complaints(self) -> list[str]:
        """Whatever should not be there: errors on the browser's console, error outputs, text on stderr."""
        found = [f"console: {text}" for text in self._console]
        for cell in self.cells:
            for output in cell.get("outputs", []):
                if output["output_type"] == "error":
                    found.append(f"cell {cell['id']}: {output['ename']}: {output['evalue']}")
                elif output.get("name") == "stderr":
                    found.append(f"cell {cell['id']}, stderr: {''.join(output['text'])}")
        return found

    def live_figures(self) -> "list[LiveFigure]":
        """The live figures from top to bottom; in a notebook that has not been run, what stands in their places."""
        found = []
        for number, cell in enumerate(self.cells):
            if any(WIDGET_VIEW in output.get("data", {}) for output in cell.get("outputs", [])):
                output_area = self.page.locator(".jp-Notebook-cell").nth(number).locator(".jp-Cell-outputArea")
                found.append(LiveFigure(cell["id"], output_area))
        return found

    def screenshot(self, path: str | Path) -> None:
        """The whole notebook, as if the window were high enough."""
        before = self.page.viewport_size
        assert before is not None
        hidden = self.ask("({content}) => content.outerNode.scrollHeight - content.outerNode.clientHeight")
        self.page.set_viewport_size({"width": before["width"], "height": before["height"] + hidden})
        self.ask("panel => panel.content.outerNode.scrollTo(0, 0)")
        self.page.screenshot(path=path)
        self.page.set_viewport_size(before)


class LiveFigure:
    """The output of a cell with a live figure: its controls by their text labels, its picture, and what it says."""

    def __init__(self, cell: str, node: "Locator"):
        self.cell, self.node = cell, node
        self._picture = node.locator('img[src^="data:image/png"]:visible')

    @property
    def alt(self) -> str:
        return self._picture.get_attribute("alt", timeout=5000) or ""

    @property
    def src(self) -> str:
        return self._picture.get_attribute("src", timeout=5000) or ""

    @property
    def alert(self) -> str:
        """The exception that stands where the picture was, or nothing."""
        return "\n".join(self.node.get_by_role("alert").all_text_contents())

    @property
    def controls(self) -> "dict[str, Control]":
        nodes = self.node.locator(".widget-inline-hbox:not(.widget-html)").all()
        controls = [Control(self, node) for node in nodes]
        return {control.label: control for control in controls}

    def wait_for_picture(self, other_than: str = "", seconds: float = 10) -> bool:
        """Wait until a picture is there, loaded and not the one with this `src`, or an alert; False if none comes."""
        from playwright.sync_api import TimeoutError

        try:
            self.node.page.wait_for_function(
                """([node, src]) => {
                    const loaded = img => img.offsetParent && img.complete && img.naturalWidth && img.src !== src
                    return [...node.querySelectorAll('img')].some(loaded) || node.querySelector('[role=alert]')
                }""",
                arg=[self.node.element_handle(), other_than],
                timeout=seconds * 1000,
            )
        except TimeoutError:
            return False
        return True

    def screenshot(self, path: str | Path) -> None:
        self.node.screenshot(path=path)


class Control:
    """A slider, drop-down list, checkbox or text field, moved by keyboard."""

    def __init__(self, figure: LiveFigure, node: "Locator"):
        self._figure = figure
        self.input = node.locator("[role=slider], select, input[type=checkbox], input[type=text]")
        self._readout = node.locator(".widget-readout")
        self.track = node.locator(".noUi-base")  # of a slider
        self.label = " ".join(node.locator("label:visible").first.inner_text().split())

    @property
    def kind(self) -> str:
        """One of: slider, select, checkbox, text."""
        kind: str = self.input.evaluate("node => node.role || node.type.split('-')[0]")
        return kind

    @property
    def value(self) -> str:
        """What the learner reads beside the control."""
        if self.kind == "slider":
            return self._readout.inner_text()
        return str(self.input.is_checked()) if self.kind == "checkbox" else self.input.input_value()

    def move(self, key: str) -> bool:
        """Press a key and wait for the new picture; False if the control stood there already.

        Home and End go to the ends of sliders and drop-down lists, and switch a checkbox off and on; the other keys of
        a slider are the arrows, PageUp and PageDown. Into a text field, Home and End type an a and a z in place of what
        stood there: one key, so that one picture follows.
        """
        value, src = self.value, self._figure.src
        if self.kind == "checkbox":
            if (key == "End") != self.input.is_checked():
                self.input.press("Space")
        elif self.kind == "text":
            self.input.press("ControlOrMeta+a")
            self.input.press("z" if key == "End" else "a")
        else:
            self.input.press(key)
        moved = self.value != value
        if moved:
            self._figure.wait_for_picture(other_than=src)
        return moved
