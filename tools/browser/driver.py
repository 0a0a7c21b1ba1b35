"""A notebook in JupyterLab in headless Chromium, for the tests and the bench. Needs `lab` and `test`.

    with driver.jupyterlab("notebooks") as lab, lab.open("00_start_here.ipynb") as notebook:
        notebook.run_all()
        figure = notebook.live_figures()[0]
        figure.controls["temperature τ"].move("End")
        figure.node.screenshot(path="hot.png")

What can be asked of an open notebook is in `tools.browser.notebook`.
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

from tools.browser.notebook import Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # JupyterLab leaves cells that are out of view unfinished; here all of them count.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
# Chromium would look up hosts of its maker at every start.
FLAGS = ("--disable-gpu", "--disable-quic", "--disable-sync", "--disable-background-networking")


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome, or of the one that `playwright install chromium` fetches."""
    usual = (  # where macOS and Windows have it, which is not on PATH
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        os.path.expandvars(r"%ProgramFiles%\Google\Chrome\Application\chrome.exe"),
    )
    for name in ("chromium", "chromium-browser", "google-chrome", *usual):
        if path := shutil.which(name):
            return path
    with suppress(Exception):  # it is not there, or its driver does not start: a library of the system's may be missing
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            own = playwright.chromium.executable_path
        return own if os.path.exists(own) else None
    return None


@contextmanager
def jupyterlab(root: str | Path) -> "Iterator[JupyterLab]":
    """Start a fresh JupyterLab on the folder `root`, without the user's own settings, and a browser."""
    with server(Path(root)) as (url, token), chromium() as window:
        yield JupyterLab(url, f"doc/tree/{{path}}?token={token}", window)


@contextmanager
def jupyterlite(folder: str | Path, under: str = "") -> "Iterator[JupyterLab]":
    """Serve the JupyterLite in `folder`, or in a folder `under` it, and start a browser."""
    with served(folder) as address, chromium() as window:
        yield JupyterLab(address, f"{under}lab/index.html?path={{path}}", window)


@contextmanager
def served(folder: str | Path) -> Iterator[str]:
    """Serve a folder by a server that only hands out files; yield its address."""
    files = functools.partial(_Files, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: one page is a hundred requests."""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Start a browser; raise a RuntimeError if there is none."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        raise RuntimeError("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    with sync_playwright() as playwright:
        # Chromium ends with the `with` block, whatever happens in it.
        yield playwright.chromium.launch(executable_path=path, args=FLAGS)


@contextmanager
def server(root: Path, settings: Mapping[str, Any] = SETTINGS) -> Iterator[tuple[str, str]]:
    """Run JupyterLab; yield its address and token, or raise a RuntimeError if it does not start."""
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
            "--ServerApp.kernel_websocket_connection_class=tools.at_once.AtOnce",  # as course.py has it
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
    """Wait for the file in which a running server writes its address, and return address and token."""
    give_up = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < give_up:
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError):  # only half written
                facts = json.loads(file.read_text())
                return facts["url"], facts["token"]
        time.sleep(0.05)
    raise RuntimeError("JupyterLab did not start:\n" + log.read_text(errors="replace")[-2000:])


class JupyterLab:
    """A running server and a browser, which reaches no other host: `elsewhere` lists the requests to others."""

    def __init__(self, url: str, path: str, chromium: "Browser"):
        self._url, self._path, self._chromium = url, path, chromium
        self.elsewhere: list[str] = []

    def _refuse(self, route: "Route") -> None:
        self.elsewhere.append(route.request.url)
        route.abort()

    @contextmanager
    def open(
        self, path: str, width: int = 1200, height: int = 1000, beside_files: bool = False
    ) -> "Iterator[Notebook]":
        """Open a notebook, by its path under the server's folder, in a window with no history; its kernel starts.

        It fills the window; or it stands beside the list of files, as `python course.py` opens it. Closing shuts the
        kernel down, and does not save.
        """
        address = self._url + self._path.format(path=path)
        if "/doc/tree/" in address:
            address += "&reset"  # the server remembers the window before, and whether the list of files was open
        if beside_files:
            address = address.replace("/doc/tree/", "/lab/tree/")
        page = self._chromium.new_context(viewport={"width": width, "height": height}).new_page()
        try:
            notebook = Notebook(page)
            page.context.route(lambda url: url.startswith("http") and not url.startswith(self._url), self._refuse)
            page.goto(address)
            page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady", timeout=60_000)
            notebook.ask("async panel => { await panel.revealed; await panel.sessionContext.ready }")
            yield notebook
            notebook.ask("panel => panel.sessionContext.shutdown()")
        finally:
            page.context.close()
