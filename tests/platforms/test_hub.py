"""A class on a JupyterHub as docs/teaching.md sets it up: each logs in as oneself, and keeps the work.

Thirty students are there on both hubs, and two hundred on the cluster's. The hub, its proxy and its authenticators are
real, with the options that the page and the values have, and of the versions that come with them. What is light is a
student's server (light_node.py). python course.py test tests/platforms/test_hub.py
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import requests

from tools.bench import classroom

from . import recipes
from .conftest import Environment
from .stand_in_university import opened

pytestmark = [pytest.mark.long_form, pytest.mark.own_job]
HERE = Path(__file__).parent
VERSIONS = {
    "littlest": (  # as The Littlest JupyterHub 2.0.0 allows: an installation takes the newest of them
        "jupyterhub>=5.2.0,<6",
        "jupyterhub-firstuseauthenticator>=1.1.0,<2",
        "oauthenticator>=17.1.0,<18",
        "jupyterhub-idle-culler>=1.4.0,<2",
        "jupyterhub-systemdspawner>=1.0.2,<2",
    ),
    "kubernetes": (  # as the image of the chart's hub has them (4.4.0)
        "jupyterhub==5.5.0",
        "jupyterhub-firstuseauthenticator==1.1.1",
        "oauthenticator==17.4.0",
        "jupyterhub-idle-culler==1.4.0",
    ),
}
AT_ONCE = 30
BUSY = 429  # the hub starts as many servers as it starts at once, and its page says: try again
CULLER = {"name": "culler", "api_token": "token-of-the-culler"}
CULLS = ["list:users", "read:users:activity", "read:servers", "delete:servers"]


class Hub:
    """A JupyterHub, its proxy, and the node with its servers: processes that can be lost one by one."""

    def __init__(self, environment, options, folder, students=0):
        self.environment, self.folder, self.homes = environment, folder, folder / "homes"
        self.homes.mkdir()
        self.names = [f"student{number:02}" for number in range(students - 1)] + ["1904271"]
        self.teacher = next(iter(options["Authenticator"]["admin_users"])).lower()
        ports = free_ports(4)
        self.address, self.inner, routes, node = (f"http://127.0.0.1:{port}" for port in ports)
        own = {
            "JupyterHub": {
                "bind_url": self.address,
                "hub_bind_url": self.inner,
                "cleanup_servers": False,  # as both have it: servers outlive the hub
                "last_activity_interval": 1,
                "concurrent_spawn_limit": 64,  # the chart's
                "services": [CULLER],
                "load_roles": [{"name": "culler", "scopes": CULLS, "services": ["culler"]}],
            },
            "ConfigurableHTTPProxy": {"should_start": False, "api_url": routes},
            "Spawner": {"poll_interval": 5},
        }
        path = os.pathsep.join([str(environment.python.parent), str(classroom.proxy_folder()), os.environ["PATH"]])
        self.variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | {
            "PATH": path,
            "CONFIGPROXY_AUTH_TOKEN": "token-of-the-proxy",
            "NODE": node,
            "HOMES": str(self.homes),
        }
        self.options = recipes.helm(options, own)
        proxy = ["--ip=127.0.0.1", "--api-ip=127.0.0.1", f"--port={ports[0]}", f"--api-port={ports[2]}"]
        self.words = {
            "proxy": ["configurable-http-proxy", *proxy],
            "node": ["python", HERE / "light_node.py", str(ports[3]), self.homes],
            "hub": ["python", "-m", "jupyterhub", "-f", HERE / "light_hub.py"],
        }
        self.processes = {}

    @contextmanager
    def running(self):
        try:
            for name in self.words:
                self.start(name)
            yield self
        finally:
            for process in self.processes.values():
                process.kill()
                process.wait()

    def start(self, name):
        words, log = self.words[name], (self.folder / f"{name}.txt").open("a")
        program = shutil.which(words[0], path=self.variables["PATH"])
        self.processes[name] = subprocess.Popen(
            [program, *words[1:]],
            cwd=self.folder,
            env=self.variables | {"OPTIONS": json.dumps(self.options)},
            stdout=log,
            stderr=log,
        )
        log.close()
        if name == "hub":
            while not classroom.is_up(self.address):
                assert self.processes[name].poll() is None, (self.folder / "hub.txt").read_text()[-3000:]
                time.sleep(0.1)

    def lose(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def running_servers(self):
        headers = {"Authorization": f"token {CULLER['api_token']}"}
        users = requests.get(f"{self.inner}/hub/api/users?state=active&limit=200", headers=headers).json()
        return {user["name"] for user in users if user["servers"]}

    @contextmanager
    def culling(self, after):
        """The culler as both hubs run it, but sooner."""
        options = [f"--url={self.inner}/hub/api", f"--timeout={after}", "--cull-every=1"]
        variables = self.variables | {"JUPYTERHUB_API_TOKEN": CULLER["api_token"]}
        python = self.environment.python
        with subprocess.Popen([python, "-m", "jupyterhub_idle_culler", *options], env=variables) as culler:
            yield
            culler.kill()


class Person:
    """Somebody at a browser."""

    def __init__(self, hub, name):
        self.hub, self.name, self.web = hub, name, requests.Session()

    def at(self, path):
        return f"{self.hub.address}{path}"

    def home(self, of=None):
        return f"/user/{of or self.name}/"

    def log_in(self, password, name=None):
        """Fill in the page; return what the hub answers."""
        self.web.get(self.at("/hub/login"))
        form = {"username": name or self.name, "password": password, "_xsrf": self.token("/hub/")}
        return self.web.post(self.at("/hub/login"), data=form)

    def open(self):
        """Start the server, if it does not run, and return what it shows."""
        page, patience = self.web.get(self.at(f"/hub/spawn/{self.name}")), time.monotonic() + 120
        while not page.url.startswith(self.at(self.home())):
            busy = page.status_code == BUSY
            assert page.ok or busy, page.text
            assert time.monotonic() < patience, page.url
            time.sleep(1 if busy else 0.2)
            page = self.web.get(self.at(f"/hub/{'spawn' if busy else 'spawn-pending'}/{self.name}"))
        return page.json()

    def save(self, file, text, of=None):
        headers = {"X-XSRFToken": self.token(self.home())}
        return self.web.put(self.at(self.home(of) + file), data=text.encode(), headers=headers)

    def api(self, method, path, **more):
        """Ask the hub for what its pages' buttons ask for."""
        self.web.get(self.at("/hub/home"))
        return self.web.request(
            method, self.at(f"/hub/api/{path}"), headers={"X-XSRFToken": self.token("/hub/")}, **more
        )

    def token(self, path):
        return next((cookie.value for cookie in self.web.cookies if (cookie.name, cookie.path) == ("_xsrf", path)), "")


def at_once(do, people):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(do, people))


def free_ports(number):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [found.getsockname()[1] for found in sockets]


def secret(name):
    return f"what only {name} knows"


def work(name):
    return f"what {name} wrote"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return a function: the environment of one of the two hubs."""
    if not shutil.which("npm"):
        pytest.skip("npm is missing; install it (Debian: apt install npm)")

    @cache
    def of(name):
        environment = Environment(tmp_path_factory.mktemp("environment"))
        environment.install(*VERSIONS[name])
        return environment

    return of


@pytest.fixture(
    scope="module", params=[("littlest", 30), ("kubernetes", 30), ("kubernetes", 200)], ids="{0[0]}-{0[1]}".format
)
def hub(request, programs, tmp_path_factory):
    name, students = request.param
    folder, options = tmp_path_factory.mktemp(name), getattr(recipes, name)()
    if name == "kubernetes":  # the hub's disk is here, not there
        path = options["FirstUseAuthenticator"]["dbm_path"].replace("/srv/jupyterhub", str(folder))
        options["FirstUseAuthenticator"]["dbm_path"] = path
    else:  # its spawner deletes no home
        options["KubeSpawner"] = {"delete_pvc": False}
    with Hub(programs(name), options, folder, students).running() as hub:
        yield hub


@pytest.fixture(scope="module")
def teacher(hub):
    teacher = Person(hub, hub.teacher)
    assert teacher.log_in(secret(teacher.name)).ok
    return teacher


@pytest.fixture(scope="module")
def students(hub, teacher):
    """All of them, added by the teacher on the hub's page, log in for the first time, and save their work."""
    assert teacher.api("POST", "users", json={"usernames": hub.names}).status_code == 201
    students = [Person(hub, name) for name in hub.names]
    answers = at_once(lambda one: one.log_in(secret(one.name)), students)
    assert all(answer.ok or (answer.status_code == BUSY and "/hub/spawn" in answer.url) for answer in answers)
    shown = at_once(Person.open, students)
    assert [page["visitor"] for page in shown] == hub.names
    assert len({page["home"] for page in shown}) == len(students)
    assert {one.save("work.ipynb", work(one.name)).status_code for one in students} == {200}
    return students


def keep_their_work(students):
    """Each student opens the own server, whether or not it runs, and finds there what this student wrote."""
    return [page["files"] for page in at_once(Person.open, students)] == [
        {"work.ipynb": work(one.name)} for one in students
    ]


def test_the_littlest_hub_starts_servers_whose_kernels_need_no_port(programs):
    """Nor a path that is too long for a socket: 107 characters, with a name of 32 in the way of most homes."""
    start = """
import json
from types import SimpleNamespace
from systemdspawner import SystemdSpawner
from traitlets.config import Config
c = Config()
"""
    end = """
spawner = SystemdSpawner(config=c, user=SimpleNamespace(name="one", id=1))
print(json.dumps([spawner.isolate_tmp, spawner.environment, spawner.args]))
"""
    shown = programs("littlest").run("-c", start + recipes.file_of_tljh() + end)
    private, environment, arguments = json.loads(shown.splitlines()[-1])
    assert private
    assert arguments == [word for word in classroom.OPTIONS["Spawner.args"] if word != "--allow-root"]
    assert len(f"{environment['JUPYTER_RUNTIME_DIR']}/kernel-{uuid.uuid4()}-ipc-5") < 107


def test_nobody_logs_in_whom_the_teacher_has_not_added(hub, teacher):
    stranger = Person(hub, "stranger")
    assert stranger.log_in("a password of some length").status_code == 403
    assert not (hub.homes / "stranger").exists()


def test_first_logins_thirty_at_once_each_into_a_home_of_their_own(students):
    assert keep_their_work(students)


def test_a_wrong_password_is_refused(hub, students):
    """Whatever way the name is written; and the right one still holds."""
    one, other = students[:2]
    for name in (one.name, one.name.upper(), f"{one.name} ", f"../{one.name}", f"{one.name}/../{other.name}"):
        for wrong in ("", "short", secret(other.name), secret(one.name).upper(), secret(one.name) + " "):
            assert Person(hub, one.name).log_in(wrong, name).status_code == 403, (name, wrong)
    again = Person(hub, one.name)
    assert again.log_in(secret(one.name), one.name.upper()).ok  # a phone may begin with a capital
    assert again.open()["visitor"] == one.name


def test_a_first_password_that_is_too_short_takes_no_name(hub, teacher):
    assert teacher.api("POST", "users/late").status_code == 201
    late = Person(hub, "late")
    refused = late.log_in("short")
    assert "at least 7 characters" in refused.text
    assert refused.status_code == 403
    assert late.log_in(secret("late")).ok
    assert teacher.api("DELETE", "users/late").status_code == 204


def test_none_gets_into_anothers_home_or_server(hub, students):
    def refused(one, other):
        pages = [one.web.get(one.at(one.home(other.name) + file)) for file in ("", "work.ipynb")]
        answers = [*pages, one.save("work.ipynb", "what another wrote", of=other.name)]
        for method, path in (("GET", ""), ("POST", "/server"), ("DELETE", "/server"), ("POST", "/tokens")):
            answers.append(one.api(method, f"users/{other.name}{path}"))
        answers.append(one.api("POST", "users", json={"usernames": ["another"]}))
        return {answer.status_code for answer in answers}

    for one, other in pairwise(students[:6]):
        assert refused(one, other) <= {403, 404}
    nobody = Person(hub, students[0].name)
    assert "/hub/login" in nobody.web.get(nobody.at(nobody.home())).url
    assert nobody.save("work.ipynb", "what nobody wrote").status_code == 403
    assert keep_their_work(students)


def test_a_lost_password_costs_no_work(hub, teacher, students):
    """The teacher deletes the name and adds it again; the next password counts."""
    one = students[3]
    assert teacher.api("DELETE", f"users/{one.name}").status_code == 204
    assert teacher.api("POST", f"users/{one.name}").status_code == 201
    students[3] = Person(hub, one.name)
    assert students[3].log_in("another one that is new").ok
    assert Person(hub, one.name).log_in(secret(one.name)).status_code == 403
    assert keep_their_work(students)


def test_a_server_without_use_is_ended_and_nothing_is_lost(hub, students):
    keep_their_work(students)
    busy = students[0]
    with hub.culling(after=4):
        for _ in range(120):
            busy.save("work.ipynb", work(busy.name))
            time.sleep(0.5)
            if hub.running_servers() == {busy.name}:
                break
    assert hub.running_servers() == {busy.name}
    assert keep_their_work(students)


def test_students_work_on_while_the_hub_is_away_and_are_known_when_it_is_back(hub, teacher, students):
    keep_their_work(students)
    running = hub.running_servers()
    hub.lose("hub")
    assert {one.save("work.ipynb", work(one.name)).status_code for one in students} == {200}
    hub.start("hub")
    assert hub.running_servers() == running
    assert keep_their_work(students)  # in the same browser
    fresh = Person(hub, students[0].name)
    assert fresh.log_in("what another says").status_code == 403
    assert fresh.log_in(secret(fresh.name)).ok  # and in another one
    assert fresh.open()["files"] == {"work.ipynb": work(fresh.name)}


def test_a_lost_node_costs_no_work(hub, students):
    keep_their_work(students)
    hub.lose("node")
    hub.start("node")
    deadline = time.monotonic() + 60
    while hub.running_servers():
        assert time.monotonic() < deadline, hub.running_servers()
        time.sleep(0.5)
    assert keep_their_work(students)


def test_with_the_universitys_login_each_is_who_the_university_says(programs, tmp_path):
    """Those whom the teacher has added."""
    with opened() as university:
        options = recipes.university()
        login = {"authorize_url": "/login", "token_url": "/token", "userdata_url": "/me"}
        own = {key: university + path for key, path in login.items()}
        hub = Hub(programs("kubernetes"), options, tmp_path)
        own["oauth_callback_url"] = f"{hub.address}/hub/oauth_callback"
        assert own.keys() < options["GenericOAuthenticator"].keys()
        hub.options = recipes.helm(hub.options, {"GenericOAuthenticator": own})
        with hub.running():
            teacher, one, other, stranger = (Person(hub, name) for name in (hub.teacher, "one", "other", "stranger"))
            for person in (teacher, one, other, stranger):
                person.web.cookies.set("university", person.name)
            teacher.web.get(teacher.at("/hub/oauth_login"))
            assert teacher.api("POST", "users", json={"usernames": ["one", "other"]}).status_code == 201
            for person in (one, other):
                assert person.web.get(person.at("/hub/oauth_login")).ok
                assert person.open()["visitor"] == person.name
            assert one.web.get(one.at(one.home("other"))).status_code == 403
            assert stranger.web.get(stranger.at("/hub/oauth_login")).status_code == 403
            nobody = Person(hub, "one")
            assert not nobody.log_in(secret("one")).ok  # no password, whatever it is
            assert nobody.web.get(nobody.at(nobody.home())).url.startswith(nobody.at("/hub/login"))
