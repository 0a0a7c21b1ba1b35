"""CI runs the commands that readers run, and GitHub's copy of it has no more rights than it needs."""

import os
import re
import tomllib
from pathlib import Path

import yaml

from tests.platforms import test_newest
from tools.__main__ import COMMANDS

ROOT = Path(__file__).parents[1]
RUN, FIRST = ((ROOT / ".ci" / name).read_text(encoding="utf-8") for name in ("run", "readme"))
JOBS, IMAGE_JOBS, RELEASE_JOBS = (
    yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))["jobs"]
    for name in ("course.yml", "image.yml", "release.yml")
)
ALL_JOBS = (*JOBS.values(), *IMAGE_JOBS.values(), *RELEASE_JOBS.values())
STEPS = [step for job in ALL_JOBS for step in job.get("steps", ())]
COMMANDS_RUN = "\n".join(step.get("run", "") for step in STEPS)


def test_ci_begins_with_the_commands_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"Then one command .+?```\n(.+?)```", readme, re.S)[1].splitlines()
    assert first == ["python course.py", "python course.py test"]
    assert re.findall(r"^python course\.py.*?(?= &$| \"\$@\"$|$)", FIRST, re.M) == first
    assert '"$course/.ci/readme" ||' in RUN, "and without options"
    assert not re.search(r"pip install|apt-get|npm", FIRST)
    order = ("git clone", '"$course/.ci/readme"', "apt-get", "python course.py test --rest --no-skips")
    assert sorted(order, key=RUN.index) == list(order)
    assert all(os.access(ROOT / ".ci" / name, os.X_OK) for name in ("run", "readme"))


def test_github_runs_commands_and_files_that_there_are():
    assert set(re.findall(r"python course\.py (\w+)", COMMANDS_RUN)) <= {"test", *COMMANDS}
    for path in re.findall(r"\btests/[\w/.]+|\.ci/\w+", COMMANDS_RUN):
        assert (ROOT / path).exists(), path


def test_only_publishing_may_write():
    for name in ("course.yml", "image.yml", "release.yml"):
        text = (ROOT / ".github/workflows" / name).read_text(encoding="utf-8")
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    jobs = JOBS | IMAGE_JOBS | RELEASE_JOBS
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "publish": {"pages": "write", "id-token": "write"},
        "image": {"contents": "read", "packages": "write"},
        "course": {"contents": "read", "pages": "write", "id-token": "write"},  # it holds `publish`
        "package": {"id-token": "write"},
        "release": {"contents": "write"},
    }
    released = "github.ref == 'refs/heads/main' || startsWith(github.ref, 'refs/tags/v')"
    assert JOBS["publish"]["if"] == f"({released}) && github.event_name != 'pull_request'"
    assert set(JOBS["publish"]["needs"]) == {"test", "site"}
    (push,) = (step for step in STEPS if "docker push" in step.get("run", ""))
    assert push["if"] == "github.event_name == 'workflow_dispatch'"


def test_every_python_from_the_oldest_to_the_newest():
    pythons = JOBS["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    assert pythons == [f"3.{minor}" for minor in range(11, int(test_newest.NEWEST[2:]) + 1)]


def test_what_ci_has_no_time_for_has_a_job_of_its_own():
    """A file named is run whole."""
    named = " ".join(re.findall(r"python course\.py test (.+)", COMMANDS_RUN)).split()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "pytest.mark.own_job" in path.read_text(encoding="utf-8") and path != Path(__file__):
            place = path.relative_to(ROOT).as_posix()
            assert any(place.startswith(word) for word in named), place


def test_a_release_is_tested_before_it_is_built_and_built_before_it_is_published():
    """A tag that does not agree with version, changelog and citation stops it at once; nothing needs a password."""
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)[True] == {"push": {"tags": ["v*"]}}  # `on` is a word for True
    needs = {name: job.get("needs") for name, job in RELEASE_JOBS.items()}
    assert needs == {"ready": None, "course": "ready", "build": "course", "package": "build", "release": "package"}
    assert RELEASE_JOBS["course"]["uses"] == "./.github/workflows/course.yml"
    assert "workflow_call" in yaml.safe_load((ROOT / ".github/workflows/course.yml").read_text(encoding="utf-8"))[True]
    assert 'python -m tools.release "$GITHUB_REF_NAME"' in str(RELEASE_JOBS["ready"]["steps"])
    assert "secrets." not in text
    assert "password" not in str(RELEASE_JOBS)
