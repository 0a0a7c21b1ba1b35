"""Pages in headless Firefox, for tests. Needs Firefox (Debian: firefox-esr) and the group `test`.

    with firefox.started() as browser:
        page = browser.page("http://127.0.0.1:8000/", width=390)
        page.click("summary")
        assert page.ask("() => document.querySelector('details').open")

Playwright drives a Firefox of its own only. Any newer Firefox speaks WebDriver BiDi, W3C's protocol of JSON over a
WebSocket, by itself: https://w3c.github.io/webdriver-bidi
"""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

# All else that it would fetch at every start, it leaves out by itself when it is driven.
SETTINGS = {"browser.aboutwelcome.enabled": False, "browser.chrome.site_icons": False}
EVENTS = ["log.entryAdded", "network.beforeRequestSent", "network.responseCompleted"]
# As the protocol writes keys that are no letters.
KEYS = {
    "Shift": "\ue008",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Tab": "\ue004",
    "Delete": "\ue017",
    "Home": "\ue011",
    "End": "\ue010",
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
    "PageUp": "\ue00e",
    "PageDown": "\ue00f",
}
CENTRE = """selector => {
    const node = document.querySelector(selector)
    node.scrollIntoView({block: 'center'})
    const box = node.getBoundingClientRect()
    return [box.x + box.width / 2, box.y + box.height / 2].map(Math.round)
}"""


def find() -> str | None:
    """Return the path of an installed Firefox."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


@contextmanager
def started(private: bool = False) -> "Iterator[Browser]":
    """Start Firefox with a profile of its own, with private windows only if `private`.

    Raises:
        RuntimeError: there is none, or it does not start.
    """
    path = find()
    if path is None:
        raise RuntimeError("no Firefox; install it (Debian: apt install firefox-esr)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile = Path(folder)
        settings = SETTINGS | {"browser.privatebrowsing.autostart": private}
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items())
        (profile / "user.js").write_text("".join(lines))
        command = [path, "--headless", "--no-remote", "--profile", folder, "--remote-debugging-port=0"]
        # Under sudo, these may belong to somebody else; then it does not start.
        own = {name: value for name, value in os.environ.items() if name not in ("XAUTHORITY", "XDG_RUNTIME_DIR")}
        own["HOME"] = folder
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env=own, stdout=quiet, stderr=quiet) as process:
            try:
                with closing(Browser(_address(process, profile / "WebDriverBiDiServer.json"))) as browser:
                    yield browser
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def _address(process: "subprocess.Popen[bytes]", file: Path, seconds: float = 60) -> str:
    """Wait for the file in which Firefox writes where it listens."""
    give_up = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < give_up:
        with suppress(OSError, ValueError, KeyError):  # not there yet, or only half written
            facts = json.loads(file.read_text())
            return f"ws://{facts['ws_host']}:{facts['ws_port']}/session"
        time.sleep(0.05)
    raise RuntimeError(f"Firefox did not start within {seconds:.0f} s")


class Browser:
    """A running Firefox. `complaints` lists what pages did wrong, and `requests` the addresses that they asked for."""

    def __init__(self, address: str):
        import websocket

        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._numbers = itertools.count(1)
        self._socket = websocket.create_connection(address, timeout=120, suppress_origin=True)
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=EVENTS)

    def close(self) -> None:
        self._socket.close()

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command, and return its result; raise a RuntimeError with Firefox's answer if it fails."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                if message["type"] == "error":
                    raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
                return message["result"]
            self._note(message["method"], message["params"])

    def _note(self, event: str, facts: Any) -> None:
        """Keep what an event tells."""
        if event == "log.entryAdded" and facts["level"] == "error":
            self.complaints.append(facts["text"])
        elif event == "network.beforeRequestSent":
            self.requests.append(facts["request"]["url"])
        elif event == "network.responseCompleted" and facts["response"]["status"] >= 400:
            self.complaints.append(f"{facts['response']['status']}: {facts['request']['url']}")

    def page(self, address: str, width: int = 1200, height: int = 900) -> "Page":
        """Open a page in a window of this size, and wait until it is loaded."""
        context = self.send("browsingContext.create", type="window")["context"]
        self.send("browsingContext.setViewport", context=context, viewport={"width": width, "height": height})
        self.send("browsingContext.navigate", context=context, url=address, wait="complete")
        return Page(self, context)


class Page:
    """An open page."""

    def __init__(self, browser: Browser, context: str):
        self._browser, self._context = browser, context

    def ask(self, script: str, *arguments: Any) -> Any:
        """Call a JavaScript function with these arguments, and return its result; both are what JSON can hold."""
        answer = self._browser.send(
            "script.callFunction",
            functionDeclaration=f"async all => JSON.stringify(await ({script})(...JSON.parse(all))) ?? 'null'",
            arguments=[{"type": "string", "value": json.dumps(arguments)}],
            target={"context": self._context},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise RuntimeError(f"{answer['exceptionDetails']['text']} in {script}")
        return json.loads(answer["result"]["value"])

    def wait(self, script: str, *arguments: Any, seconds: float = 10) -> Any:
        """Ask until the answer is true, and return it; raise a TimeoutError if it never is."""
        give_up = time.monotonic() + seconds
        while not (answer := self.ask(script, *arguments)):
            if time.monotonic() > give_up:
                raise TimeoutError(f"not within {seconds:g} s: {script} {arguments}")
            time.sleep(0.05)
        return answer

    def press(self, *keys: str) -> None:
        """Press keys together, such as "Shift", "Enter", where the focus is."""
        values = [KEYS.get(key, key) for key in keys]
        down = [{"type": "keyDown", "value": value} for value in values]
        up = [{"type": "keyUp", "value": value} for value in reversed(values)]
        self._act({"type": "key", "id": "keyboard", "actions": down + up})

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that fits, as a finger does."""
        x, y = self.ask(CENTRE, selector)
        move = {"type": "pointerMove", "x": x, "y": y}
        press = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        look = {"pointerType": "touch"}
        self._act({"type": "pointer", "id": "finger", "parameters": look, "actions": [move, *press]})

    def drag(self, points: Sequence[tuple[float, float]], seconds: float) -> None:
        """Press the mouse at the first of these points, move it over the others, and let it go at the last."""
        pause = round(1000 * seconds / len(points))
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": pause} for x, y in points]
        ends = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        actions = [moves[0], ends[0], *moves[1:], ends[1]]
        self._act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions})

    def reload(self) -> None:
        """Load the page again; what is not saved is given up."""
        self._browser.send("browsingContext.reload", context=self._context, wait="complete")

    def _act(self, source: dict[str, Any]) -> None:
        self._browser.send("input.performActions", context=self._context, actions=[source])
