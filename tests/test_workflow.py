"""What CI runs is what a reader runs; and GitHub's copy of it has no more rights than it needs."""

import os
import re
import tomllib
from pathlib import Path

import yaml

from tests.platforms import test_newest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUN, FIRST = ((ROOT / ".ci" / name).read_text(encoding="utf-8") for name in ("run", "readme"))
WORKFLOW, IMAGE = (
    yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))
    for name in ("course.yml", "image.yml")
)
JOBS = WORKFLOW["jobs"]
STEPS = [step for job in (*JOBS.values(), *IMAGE["jobs"].values()) for step in job["steps"]]
COMMANDS = "\n".join(step.get("run", "") for step in STEPS)


def test_ci_begins_with_the_commands_of_the_readme():
    readme = re.search(r"Then one command .+?```\n(.+?)```", README, re.S)[1].splitlines()
    assert readme == ["python course.py", "python course.py test"]
    run = [re.sub(r" &$", "", line) for line in FIRST.splitlines() if "course.py" in line and line[0] != "#"]
    assert run == readme
    assert not re.search(r"pip install|apt-get|npm", FIRST)
    clone, first, installs, everything = (
        RUN.index(text)
        for text in ("git clone", '"$course/.ci/readme"', "apt-get", "python course.py test --rest --no-skips")
    )
    assert clone < first < installs < everything
    assert RUN.count("course.py") == 1
    assert all(os.access(ROOT / ".ci" / name, os.X_OK) for name in ("run", "readme"))


def test_github_runs_commands_and_files_that_there_are():
    known = set(re.findall(r"python course\.py (\w+)", (ROOT / "course.py").read_text(encoding="utf-8")))
    used = re.findall(r"python course\.py (\w+)", COMMANDS)
    assert {"test", "site", "address"} <= set(used) <= known
    for path in re.findall(r"\btests/[\w/.]+|\.ci/\w+", COMMANDS):
        assert (ROOT / path).exists(), path


def test_only_publishing_may_write():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "publish": {"pages": "write", "id-token": "write"}
    }
    assert JOBS["publish"]["if"] == "github.ref == 'refs/heads/main' && github.event_name != 'pull_request'"
    assert set(JOBS["publish"]["needs"]) == {"test", "site"}


def test_only_an_image_that_somebody_asked_for_is_pushed():
    assert IMAGE["permissions"] == {"contents": "read"}
    jobs = IMAGE["jobs"]
    assert {name for name, job in jobs.items() if "permissions" in job} == {"image"}
    assert jobs["image"]["permissions"] == {"contents": "read", "packages": "write"}
    (push,) = (step for step in STEPS if "docker push" in step.get("run", ""))
    assert push["if"] == "github.event_name == 'workflow_dispatch'"


def test_every_python_from_the_oldest_to_the_newest():
    pythons = JOBS["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    assert pythons == [f"3.{minor}" for minor in range(11, int(test_newest.NEWEST[2:]) + 1)]
    assert all(job["timeout-minutes"] <= 60 for job in (*JOBS.values(), *IMAGE["jobs"].values()))


def test_a_fork_publishes_its_own_address_and_pip_can_clone_what_is_checked_out():
    commands = [step.get("run", "") for step in JOBS["site"]["steps"]]
    assert commands.index('python course.py address "$GITHUB_REPOSITORY"') < commands.index("python course.py site")
    for name in ("everything", "platforms"):
        (checkout,) = (step for step in JOBS[name]["steps"] if "checkout" in step.get("uses", ""))
        assert checkout["with"]["fetch-depth"] == 0


def test_what_ci_has_no_time_for_has_a_job_of_its_own():
    """A file named is run whole."""
    named = re.findall(r"python course\.py test (.+)", COMMANDS)
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "pytest.mark.own_job" in path.read_text(encoding="utf-8") and path != Path(__file__):
            place = path.relative_to(ROOT).as_posix()
            assert any(place.startswith(word) for words in named for word in words.split()), place
