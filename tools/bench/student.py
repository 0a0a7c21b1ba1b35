"""One student of a class: what a browser with JupyterLab asks of a hub, without the browser."""

import json
import queue
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import requests
import websocket
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1

PATIENCE = 1800  # seconds for one cell: thirty may be training at once
PACE = 0.3  # seconds from one step of a slider to the next


class Student:
    """Each part of the lesson raises what went wrong; then this student is out."""

    def __init__(self, name: str, hub: str):
        self.name, self._hub = name, hub
        self._web = requests.Session()

    def start(self) -> None:
        """Log in, and wait for the server and its first page."""
        self._ask("GET", "/hub/login")
        form = {"username": self.name, "password": "", "_xsrf": self._xsrf("/hub/")}
        self._ask("POST", "/hub/login", data=form)  # leads on to the spawner
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            if f"{self._hub}/user/{self.name}/lab" in self._ask("GET", f"/hub/spawn-pending/{self.name}").url:
                return
            time.sleep(0.5)
        raise RuntimeError("the server did not start")

    def open(self, notebook: str) -> None:
        """Open a notebook of one's home, with a kernel of its own."""
        home = f"/user/{self.name}/"
        xsrf = {"X-XSRFToken": self._xsrf(home)}
        content = self._ask("GET", f"{home}api/contents/{notebook}", headers=xsrf).json()["content"]
        self._cells = [cell["source"] for cell in content["cells"] if cell["cell_type"] == "code"]
        asked = {"path": notebook, "name": notebook, "type": "notebook", "kernel": {"name": "python3"}}
        session = self._ask("POST", home + "api/sessions", json=asked, headers=xsrf).json()
        place = f"{self._hub}{home}api/kernels/{session['kernel']['id']}/channels"
        cookies = requests.cookies.get_cookie_header(self._web.cookies, requests.Request("GET", place).prepare())
        self.kernel = Kernel(f"{place.replace('http', 'ws', 1)}?_xsrf={xsrf['X-XSRFToken']}", cookies or "", self._hub)

    def run_all(self) -> None:
        for source in self._cells:
            self.kernel.run(source)

    def drag(self, figures: int, steps: int, first: int = 0) -> list[float]:
        """Move the first slider of some live figures, to and fro, a step every `PACE` seconds; how long each took.

        A step is due whether or not the picture of the one before is there. As in JupyterLab, steps that were made in
        the meantime are sent as one; it counts from when the last of them was made.
        """
        shown = self.kernel.figures()
        if not shown:
            raise RuntimeError("the notebook shows no live figure with a slider")
        taken = []
        for n in range(figures):
            figure = shown[(first + n) % len(shown)]
            places = figure.walk()
            due = time.perf_counter()
            for _ in range(steps):
                time.sleep(max(0.0, due - time.perf_counter()))
                taken.append(self.kernel.move(figure, next(places)) - due)
                due += PACE * max(1, taken[-1] // PACE)
        return taken

    def _xsrf(self, path: str) -> str:
        return str(self._web.cookies.get("_xsrf", path=path))

    def _ask(self, method: str, path: str, **more: Any) -> requests.Response:
        answer = self._web.request(method, self._hub + path, timeout=PATIENCE, **more)
        if not answer.ok:
            raise RuntimeError(f"{method} {path} was answered {answer.status_code}: {answer.text[-500:]}")
        return answer


class Figure:
    """A live figure as the front end knows it: the number of its picture, and of its first slider, with its state."""

    def __init__(self, picture: str, slider: str, state: dict[str, Any]):
        self.picture, self.slider, self._state = picture, slider, state

    def walk(self) -> Iterator[dict[str, Any]]:
        """From where the slider stands step by step to its end, and back, and so on."""
        state = self._state
        if "_options_labels" in state:
            places = [{"index": n} for n in range(len(state["_options_labels"]))]
            start = state["index"]
        else:
            low, high, step, base = state["min"], state["max"], state["step"], state.get("base")
            count = round((high - low) / step)
            values = [low + n * step for n in range(count + 1)]
            places = [{"value": value if base is None else base**value} for value in values]
            start = min(range(len(places)), key=lambda n: abs(places[n]["value"] - state["value"]))
        way = 1
        while True:
            if not 0 <= start + way < len(places):
                way = -way
            start += way
            yield places[start]


class Kernel:
    """A kernel at the other end of a websocket. A thread always listens: servers drop who leaves pings unanswered."""

    def __init__(self, address: str, cookies: str, origin: str):
        self._socket = websocket.create_connection(
            address, cookie=cookies, origin=origin, subprotocols=["v1.kernel.websocket.jupyter.org"], timeout=60
        )
        self._socket.settimeout(None)
        self._session = uuid.uuid4().hex
        self._widgets: dict[str, dict[str, Any]] = {}
        self._shown: list[str] = []
        self._heard: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while isinstance(message := self._socket.recv(), bytes) and message:
                self._heard.put((time.perf_counter(), message))
        except (websocket.WebSocketException, OSError):
            pass
        self._heard.put((0.0, b""))  # nothing more will come

    def run(self, source: str) -> None:
        """Run a cell to its end."""
        asked = {"code": source, "silent": False, "store_history": True, "user_expressions": {}}
        for _, kind, content in self._answers("execute_request", asked | {"allow_stdin": False, "stop_on_error": True}):
            if kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}, in the cell:\n{source}")

    def move(self, figure: Figure, place: dict[str, Any]) -> float:
        """Move the figure's slider; returns when its new picture had come."""
        asked = {"comm_id": figure.slider, "data": {"method": "update", "state": place, "buffer_paths": []}}
        came = None
        for when, kind, content in self._answers("comm_msg", asked):
            if kind == "comm_msg" and content["comm_id"] == figure.picture:
                if "<img" not in content["data"]["state"].get("value", ""):
                    raise RuntimeError(f"no picture, but {content['data']['state']}")
                came = came or when
        if came is None:
            raise RuntimeError(f"no new picture for {place}")
        return came

    def figures(self) -> list[Figure]:
        """Those that have been displayed, and have a slider."""
        found = []
        for number in self._shown:
            row, picture = self._children(number)
            for slider in self._children(row):
                state = self._widgets[slider]
                if "Slider" in state["_model_name"]:
                    found.append(Figure(picture, slider, state))
                    break
        return found

    def _children(self, number: str) -> list[str]:
        return [child.removeprefix("IPY_MODEL_") for child in self._widgets[number]["children"]]

    def _answers(self, kind: str, content: dict[str, Any]) -> Iterator[tuple[float, str, dict[str, Any]]]:
        """Ask on the shell channel; what comes back, with its moment, until the kernel is at rest again."""
        number = uuid.uuid4().hex
        header = {"msg_id": number, "msg_type": kind, "session": self._session, "username": "", "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        packed = serialize_msg_to_ws_v1(message, "shell", pack=lambda part: json.dumps(part).encode())
        self._socket.send_binary(packed)
        while True:
            try:
                when, heard = self._heard.get(timeout=PATIENCE)
            except queue.Empty:
                raise RuntimeError("the kernel did not answer") from None
            if not heard:
                raise RuntimeError("the websocket was closed")
            _, parts = deserialize_msg_from_ws_v1(heard)
            header, parent, _, content = (json.loads(part) for part in parts[:4])
            self._take_note(header["msg_type"], content)
            if parent.get("msg_id") == number:
                yield when, header["msg_type"], content
                if header["msg_type"] == "status" and content["execution_state"] == "idle":
                    return

    def _take_note(self, kind: str, content: dict[str, Any]) -> None:
        """Know the widgets, and which of them are live figures on display."""
        if kind == "comm_open":
            self._widgets[content["comm_id"]] = content["data"]["state"]
        elif kind == "comm_msg" and content["data"].get("method") == "update" and content["comm_id"] in self._widgets:
            self._widgets[content["comm_id"]] |= content["data"]["state"]
        elif kind == "display_data":
            view = content["data"].get("application/vnd.jupyter.widget-view+json", {})
            number = view.get("model_id")
            if f"live-{number}" in self._widgets.get(number, {}).get("_dom_classes", ()):
                self._shown.append(number)
