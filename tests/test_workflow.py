"""CI runs the commands that readers run, and GitHub's copy of it has no more rights than it needs."""

import importlib.util
import os
import re
import tomllib
from pathlib import Path

import yaml

from tests.platforms import test_newest
from tools.__main__ import COMMANDS

ROOT = Path(__file__).parents[1]
RUN, FIRST = ((ROOT / ".ci" / name).read_text(encoding="utf-8") for name in ("run", "readme"))
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").iterdir()}
READ = {name: yaml.safe_load(text) for name, text in WORKFLOWS.items()}
JOBS, RELEASE_JOBS, WEEKLY_JOBS = (READ[f"{name}.yml"]["jobs"] for name in ("course", "release", "weekly"))
ALL_JOBS = {f"{name}: {job}": content for name, read in READ.items() for job, content in read["jobs"].items()}
STEPS = [step for job in ALL_JOBS.values() for step in job.get("steps", ())]
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
    for module in re.findall(r"-m (tools\.\w+)", COMMANDS_RUN):
        assert importlib.util.find_spec(module), module


def test_only_publishing_may_write():
    assert all(read["permissions"] == {"contents": "read"} for read in READ.values())
    assert {name: job["permissions"] for name, job in ALL_JOBS.items() if "permissions" in job} == {
        "course.yml: publish": {"pages": "write", "id-token": "write"},
        "image.yml: image": {"contents": "read", "packages": "write"},
        "release.yml: course": {"contents": "read", "pages": "write", "id-token": "write"},  # it holds `publish`
        "release.yml: package": {"id-token": "write"},
        "release.yml: release": {"contents": "write"},
    }
    released = "github.ref == 'refs/heads/main' || startsWith(github.ref, 'refs/tags/v')"
    assert JOBS["publish"]["if"] == f"({released}) && github.event_name != 'pull_request'"
    assert set(JOBS["publish"]["needs"]) == JOBS.keys() - {"publish"}
    (push,) = (step for step in STEPS if "docker push" in step.get("run", ""))
    assert push["if"] == "github.event_name == 'workflow_dispatch'"


def test_others_actions_are_pinned_by_commit_and_kept_current():
    """A tag can be moved to other code; a commit can't. The comment is what Dependabot and people read."""
    used = [
        line.partition("uses: ")[2] for text in WORKFLOWS.values() for line in text.splitlines() if "uses: " in line
    ]
    assert len(used) > 20
    for action in used:
        assert re.fullmatch(r"\./[\w./-]+|[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    versions = {name: {action for action in used if action.startswith(f"{name}@")} for name in map(before_at, used)}
    assert all(len(pins) <= 1 for pins in versions.values()), "one version of each"
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {"github-actions", "pip"} <= {update["package-ecosystem"] for update in updates}
    assert all((ROOT / update["directory"].strip("/")).is_dir() for update in updates)


def before_at(action):
    return action.partition("@")[0]


def test_no_text_from_outside_becomes_a_command_and_no_token_stays_in_the_folder():
    """An expression in `run` is put into the script before the shell reads it; in `env` it stays a value."""
    assert "${{" not in COMMANDS_RUN
    assert not re.search("pull_request_target|workflow_run", "".join(WORKFLOWS.values()))
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) >= 10
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert all("timeout-minutes" in job or "uses" in job for job in ALL_JOBS.values())


def test_the_places_where_machines_differ_are_tried_weekly():
    on = READ["weekly.yml"][True]
    assert set(on) == {"schedule", "workflow_dispatch"}
    places = WEEKLY_JOBS["places"]["strategy"]["matrix"]["include"]
    tried = " ".join(str(value) for place in places for value in place.values())
    assert all(word in tried for word in ("LC_ALL=C ", "IOENCODING=ascii", "HOME=/nonexistent", "TZ=", "chmod -R a-w"))
    newer = WEEKLY_JOBS["next"]["strategy"]["matrix"]["include"]
    assert [what.get("newer") for what in newer] == ["numpy", None]
    assert newer[1]["python"] == f"3.{int(test_newest.NEWEST[2:]) + 1}"
    assert WEEKLY_JOBS["chaos"]["strategy"]["matrix"]["browser"] == ["chromium", "firefox"]
    assert '-m tools.mutants --seed "$(date +%Y%m%d)"' in str(WEEKLY_JOBS["mutants"]["steps"])
    assert all("--hypothesis-profile=weekly" in step["run"] for step in WEEKLY_JOBS["fuzz"]["steps"] if "run" in step)


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
