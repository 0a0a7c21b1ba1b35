"""A JupyterHub as docs/teaching.md sets it up: the teacher adds a student, who logs in and saves a notebook.

The hub, its proxy, its login and the student's JupyterLab are real, with the options that the page and the values have.
What starts the server is JupyterHub's own simple spawner, in the place of systemd or a cluster.
"""

import json
import os
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager

import pytest
import requests

from tools.bench import classroom

from .test_recipes import file_of_tljh, kubernetes, littlest, merged

pytestmark = [pytest.mark.long_form, pytest.mark.own_job]
# As the image of the chart's hub has them (4.4.0); The Littlest JupyterHub 2.0.0 allows them, too.
VERSIONS = ("jupyterhub==5.5.0", "jupyterhub-firstuseauthenticator==1.1.1", "jupyterlab")
NOTEBOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@contextmanager
def running(environment, options, folder):
    """Yield the address of a hub with these options."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        address, inner, routes = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    here = {
        "JupyterHub": {"bind_url": address, "hub_bind_url": inner, "spawner_class": "simple"},
        "ConfigurableHTTPProxy": {"api_url": routes},
        "FirstUseAuthenticator": {"dbm_path": str(folder / "passwords.dbm")},
        "SimpleLocalProcessSpawner": {"home_dir_template": f"{folder}/{{username}}"},
        "Spawner": {"args": ["--allow-root", *file_of_tljh().Spawner.args]},
    }
    (folder / "config.json").write_text(json.dumps(merged(options, here)))
    path = os.pathsep.join([str(environment.python.parent), str(classroom.proxy_folder()), os.environ["PATH"]])
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | {"PATH": path}
    command, log = [environment.python, "-m", "jupyterhub", "-f", "config.json"], folder / "log.txt"
    with log.open("w") as out, subprocess.Popen(command, cwd=folder, env=variables, stdout=out, stderr=out) as hub:
        try:
            while not classroom.is_up(address):
                assert hub.poll() is None, log.read_text()[-3000:]
                time.sleep(0.1)
            yield address
        finally:
            hub.terminate()  # it ends servers and proxy


class Person:
    """Somebody at a browser."""

    def __init__(self, hub, name, password):
        self.hub, self.home, self.web = hub, f"{hub}/user/{name}/", requests.Session()
        self.web.get(f"{hub}/hub/login")
        form = {"username": name, "password": password, "_xsrf": self.token("/hub/")}
        self.let_in = self.web.post(f"{hub}/hub/login", data=form).ok

    def token(self, path):
        return next((cookie.value for cookie in self.web.cookies if (cookie.name, cookie.path) == ("_xsrf", path)), "")

    def start(self):
        """Start the server, if it does not run, and wait for its first page."""
        page, give_up = self.web.get(f"{self.hub}/hub/spawn"), time.monotonic() + 120
        while not page.url.startswith(self.home):
            assert page.ok, page.text
            assert time.monotonic() < give_up, page.url
            time.sleep(0.5)
            page = self.web.get(self.home)


@pytest.mark.parametrize("options", [littlest(), kubernetes()], ids=["littlest", "kubernetes"])
def test_a_student_whom_the_teacher_has_added_logs_in_and_saves_a_notebook(options, environment, tmp_path):
    environment.install(*VERSIONS)
    with running(environment, options, tmp_path) as hub:
        teacher = Person(hub, "your_name", "what only the teacher knows")
        assert not Person(hub, "1904271", "what a stranger says").let_in
        teacher.web.get(f"{hub}/hub/home")
        headers = {"X-XSRFToken": teacher.token("/hub/")}
        assert teacher.web.post(f"{hub}/hub/api/users/1904271", headers=headers).status_code == 201
        one = Person(hub, "1904271", "what only this student knows")
        one.start()
        headers = {"X-XSRFToken": one.token("/user/1904271/")}
        sent = one.web.put(
            f"{one.home}api/contents/work.ipynb", json={"type": "notebook", "content": NOTEBOOK}, headers=headers
        )
        assert sent.status_code == 201, sent.text
        assert not Person(hub, "1904271", "what another says").let_in, "the first password counts"
    assert json.loads((tmp_path / "1904271/work.ipynb").read_text()) == NOTEBOOK
