"""CI runs the commands that readers run. Pins and injections in GitHub's workflows are zizmor's: test_style.py."""

import importlib.util
import re
import tomllib
from pathlib import Path

import yaml

from tests.platforms import test_newest
from tools.__main__ import COMMANDS

ROOT = Path(__file__).parents[1]
RUN, FIRST = ((ROOT / ".ci" / name).read_text(encoding="utf-8") for name in ("run", "readme"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in ROOT.glob(".github/workflows/*")}
JOBS = {f"{name}: {job}": content for name, read in WORKFLOWS.items() for job, content in read["jobs"].items()}
COMMANDS_RUN = "\n".join(step.get("run", "") for job in JOBS.values() for step in job.get("steps", ()))


def test_ci_begins_with_the_commands_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"Then one command .+?```\n(.+?)```", readme, re.S)[1].splitlines()
    assert first == ["python course.py", "python course.py test"]
    assert re.findall(r"^python course\.py.*?(?= &$| \"\$@\"$|$)", FIRST, re.M) == first
    assert '"$course/.ci/readme" 2' in RUN, "and without options"
    assert not re.search(r"pip install|apt-get|npm", FIRST)
    order = ("git clone", '"$course/.ci/readme"', "apt-get", "python course.py test --rest")
    assert sorted(order, key=RUN.index) == list(order)


def test_github_runs_commands_and_files_that_there_are():
    assert set(re.findall(r"python course\.py (\w+)", COMMANDS_RUN)) <= {"test", *COMMANDS}
    for path in re.findall(r"\btests/[\w/.]+|\.ci/\w+", COMMANDS_RUN):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"-m (tools\.\w+)", COMMANDS_RUN):
        assert importlib.util.find_spec(module), module


def test_every_python_from_the_oldest_to_the_newest_and_what_each_push_leaves_out_weekly():
    pythons = JOBS["course: test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    assert pythons == [f"3.{minor}" for minor in range(11, int(test_newest.NEWEST[2:]) + 1)]
    assert JOBS["weekly: next"]["strategy"]["matrix"]["include"][1]["python"] == f"3.{len(pythons) + 11}"
    assert ".ci/run -m own_job" in JOBS["weekly: own_job"]["steps"][-1]["run"]


def test_only_publishing_may_write_and_only_after_all_tests():
    """Nothing needs a password, and a tag that does not agree with version, changelog and citation stops a release."""
    assert all(read["permissions"] == {"contents": "read"} for read in WORKFLOWS.values())
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "course: publish": {"pages": "write", "id-token": "write"},
        "image: image": {"contents": "read", "packages": "write"},
        "release: course": {"contents": "read", "pages": "write", "id-token": "write"},  # it holds `publish`
        "release: package": {"id-token": "write"},
        "release: release": {"contents": "write"},
    }
    released = "github.ref == 'refs/heads/main' || startsWith(github.ref, 'refs/tags/v')"
    assert JOBS["course: publish"]["if"] == f"({released}) && github.event_name != 'pull_request'"
    assert {f"course: {job}" for job in JOBS["course: publish"]["needs"]} | {"course: publish"} == {
        name for name in JOBS if name.startswith("course: ")
    }
    needs = {name: job.get("needs") for name, job in WORKFLOWS["release"]["jobs"].items()}
    assert needs == {"ready": None, "course": "ready", "build": "course", "package": "build", "release": "package"}
    assert 'python -m tools.release "$GITHUB_REF_NAME"' in JOBS["release: ready"]["steps"][-1]["run"]
