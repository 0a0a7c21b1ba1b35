"""What GitHub runs: the commands that a reader runs, with no more rights than it needs."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/course.yml").read_text(encoding="utf-8"))
JOBS = WORKFLOW["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]


def test_it_runs_commands_that_there_are():
    known = set(re.findall(r"python course\.py (\w+)", (ROOT / "course.py").read_text(encoding="utf-8")))
    used = re.findall(r"python course\.py (\w+)", "\n".join(step.get("run", "") for _, step in STEPS))
    assert {"test", "site"} <= set(used) <= known


def test_folders_that_it_names_are_there():
    for folder in re.findall(r"\btests(?:/\w+)?", "\n".join(step.get("run", "") for _, step in STEPS)):
        assert (ROOT / folder).is_dir(), folder


@pytest.mark.parametrize("action", sorted({step["uses"] for _, step in STEPS if "uses" in step}))
def test_actions_are_pinned_by_major_version(action):
    assert re.fullmatch(r"actions/[\w-]+@v\d+", action)


def test_only_publishing_may_write():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "publish": {"pages": "write", "id-token": "write"}
    }
    assert JOBS["publish"]["if"] == "github.ref == 'refs/heads/main' && github.event_name != 'pull_request'"
    assert set(JOBS["publish"]["needs"]) == {"test", "site"}


def test_systems_and_pythons():
    matrix = JOBS["test"]["strategy"]["matrix"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={matrix['python'][0]}"
    assert all(job["timeout-minutes"] <= 60 for job in JOBS.values())


def test_pip_can_clone_what_the_platforms_check_out():
    (checkout,) = (step for step in JOBS["platforms"]["steps"] if "checkout" in step.get("uses", ""))
    assert checkout["with"]["fetch-depth"] == 0
    named = " ".join(row["tests"] for row in JOBS["platforms"]["strategy"]["matrix"]["include"])
    there = {f"tests/platforms/{path.name}" for path in (ROOT / "tests/platforms").glob("test_*.py")}
    assert set(named.split()) == there


def test_weekly():
    triggers = WORKFLOW[True]  # YAML reads the key `on` as a truth value
    assert triggers["schedule"][0]["cron"].split()[2:4] == ["*", "*"]
    assert triggers["schedule"][0]["cron"].split()[4].isdecimal()
