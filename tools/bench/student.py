"""A student of a class, who sends to a JupyterHub what a browser with JupyterLab would send."""

import json
import time
import uuid
from itertools import cycle
from queue import SimpleQueue
from threading import Thread
from typing import Any

import requests
import websocket
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1

PATIENCE = 1800  # seconds for one answer: thirty may be training at once
STARTS = 3  # a server's, before its student gives up
PACE = 0.3  # seconds from one step of a slider to the next
# Of each live figure: its picture, its first slider, and the states in which the slider goes to its ends and back.
FIND_FIGURES = """
import gc, json
from lesson_utils.classroom.live import LiveFigure
found = []
for figure in [thing for thing in gc.get_objects() if type(thing) is LiveFigure]:
    row, picture = figure.widget.children
    for slider, control in zip(row.children, figure.controls.values()):
        if "Slider" in type(slider).__name__:
            values, key = list(control.values()), "index" if hasattr(slider, "index") else "value"
            places = list(range(len(values))) if key == "index" else values
            way, here = places + places[-2:0:-1], values.index(control.read(slider.value))
            found.append((picture.model_id, slider.model_id, [{key: n} for n in way[here + 1 :] + way[: here + 1]]))
            break
print(json.dumps(found))
"""


class Student:
    """Somebody at a browser. Each method raises what goes wrong."""

    def __init__(self, number: int, hub: str):
        self.number, self.name, self._hub, self._web = number, f"student{number:02}", hub, requests.Session()
        self.answers: list[float] = []  # seconds from each step of a slider to its picture
        self.starts = 1  # of the server

    def log_in(self) -> None:
        """Log in, and wait for the server and its first page; if it did not start, press the page's button for that."""
        self._request("GET", "/hub/login")
        form = {"username": self.name, "password": "", "_xsrf": self._xsrf("/hub/")}
        page = self._request("POST", "/hub/login", data=form)  # leads on to the page that waits for the server
        while f"/user/{self.name}/lab" not in page.url:
            time.sleep(0.5)
            page = self._web.get(f"{self._hub}/hub/spawn-pending/{self.name}", timeout=PATIENCE)
            if not page.ok and self.starts < STARTS:  # somebody else's server took its port first
                self.starts += 1
                page = self._web.get(f"{self._hub}/hub/spawn/{self.name}", timeout=PATIENCE)
            page.raise_for_status()

    def run_all(self, sources: list[str]) -> None:
        """Start a kernel, and run these cells in it."""
        home = f"/user/{self.name}/"
        xsrf = self._xsrf(home)
        kernel = self._request("POST", home + "api/kernels", json={}, headers={"X-XSRFToken": xsrf}).json()["id"]
        place = f"{self._hub}{home}api/kernels/{kernel}/channels?_xsrf={xsrf}"
        cookies = requests.cookies.get_cookie_header(self._web.cookies, requests.Request("GET", place).prepare())
        options: dict[str, Any] = {
            "cookie": cookies,
            "origin": self._hub,
            "subprotocols": ["v1.kernel.websocket.jupyter.org"],
        }
        self._socket = websocket.create_connection(place.replace("http", "ws", 1), timeout=PATIENCE, **options)
        self._heard: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()  # always: a server drops who leaves its pings unanswered
        for source in sources:
            self._run(source)

    def drag(self, figures: int, steps: int, first: int = 0) -> None:
        """Move the first slider of some live figures to and fro, and note how long each picture took.

        A step is due whether or not the picture of the one before is there. As in JupyterLab, steps that were made in
        the meantime are sent as one; it counts from when the last of them was made.
        """
        shown = json.loads(self._run(FIND_FIGURES))
        for n in range(figures):
            picture, slider, way = shown[(self.number + first + n) % len(shown)]  # not all move the same figure at once
            due, states = time.perf_counter(), cycle(way)
            for _ in range(steps):
                time.sleep(max(0.0, due - time.perf_counter()))
                self.answers.append(self._move(picture, slider, next(states)) - due)
                due += PACE * max(1, self.answers[-1] // PACE)

    def _request(self, method: str, path: str, **more: Any) -> requests.Response:
        answer = self._web.request(method, self._hub + path, timeout=PATIENCE, **more)
        answer.raise_for_status()
        return answer

    def _xsrf(self, path: str) -> str:
        return str(self._web.cookies.get("_xsrf", path=path))

    def _run(self, source: str) -> str:
        """Run a cell to its end, and return what it prints."""
        answers = self._ask("execute_request", {"code": source, "allow_stdin": False})
        for _, kind, content in answers:
            if kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}, in the cell:\n{source}")
        return "".join(content["text"] for _, kind, content in answers if kind == "stream")

    def _move(self, picture: str, slider: str, state: dict[str, Any]) -> float:
        """Move a slider, and return the moment at which the figure's new picture came."""
        message = {"comm_id": slider, "data": {"method": "update", "state": state, "buffer_paths": []}}
        for when, kind, content in self._ask("comm_msg", message):
            if kind == "comm_msg" and content["comm_id"] == picture:
                if "<img" not in content["data"]["state"]["value"]:
                    raise RuntimeError(f"no picture for {state}, but {content['data']['state']['value']}")
                return when
        raise RuntimeError(f"no new picture for {state}")

    def _ask(self, kind: str, content: dict[str, Any]) -> list[tuple[float, str, Any]]:
        """Send a message to the kernel, and return its answers with their moments when it is at rest again."""
        number, answers = uuid.uuid4().hex, []
        header = {"msg_id": number, "msg_type": kind, "session": self.name, "username": "", "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self._socket.send_binary(serialize_msg_to_ws_v1(message, "shell", pack=lambda part: json.dumps(part).encode()))
        while True:
            when, heard = self._heard.get(timeout=PATIENCE)
            if not heard:
                raise RuntimeError("the connection to the kernel was closed")
            header, parent, _, content = map(json.loads, deserialize_msg_from_ws_v1(heard)[1][:4])
            if parent.get("msg_id") == number:
                answers.append((when, header["msg_type"], content))
                if content.get("execution_state") == "idle":
                    return answers

    def _listen(self) -> None:
        heard: Any = "something"
        while heard:
            try:
                heard = self._socket.recv()
            except (websocket.WebSocketException, OSError):
                heard = b""  # nothing more will come
            self._heard.put((time.perf_counter(), heard))
