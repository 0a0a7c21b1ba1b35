"""How tests and notebooks are run, and what the notebooks' texts claim.

It stands beside tests/ and notebooks/, because nbval's cells are tests that belong to files in notebooks/.
"""

import functools
import os
import re
import signal
from pathlib import Path

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).parent

os.environ["COURSE_STRICT"] = "1"  # pictures that are too wide for their titles, or too large, are errors
os.environ.setdefault("COURSE_TRAIN", "no")  # as course.py has it
os.environ["COURSE_PROGRESS"] = "off"  # what tests solve is nobody's progress
signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background would ignore Ctrl-C

# The same examples on every machine: a test that fails here fails everywhere. Each week, GitHub's workflow draws others
# (`--hypothesis-profile=weekly`).
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.register_profile("weekly", deadline=None, max_examples=10_000, database=None, print_blob=True)
hypothesis.settings.load_profile("course")


def pytest_addoption(parser):
    parser.addoption("--no-skips", action="store_true", help="fail if a test was skipped, as CI must")


def pytest_collection_modifyitems(items):
    """Put what takes longest first, so that at the end no process waits for another."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_effort, reverse=True)


def _effort(item):
    slow, long_form = (item.get_closest_marker(mark) is not None for mark in ("slow", "long_form"))
    return long_form, item.path.suffix == ".ipynb", slow


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is nothing to share out
def pytest_xdist_make_scheduler(config, log):
    """Send a file's tests to one process, because they share what they make.

    Not `--dist=loadgroup`: pytest-xdist 3.8 writes the groups where pytest 9.2 no longer looks, and no error tells.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    config.option.loadscopereorder = False  # the order is ours: see above
    return ByGroup(config, log)


def group_of(nodeid):
    """Return the name of a test's group: its file, or in a file marked `walks` its case, such as a figure."""
    path, _, test = nodeid.partition("::")
    _, is_case, case = test.partition("[")
    return f"{path}[{case}" if is_case and walks(path) else path


@functools.cache
def walks(path):
    """Say whether a file is marked `walks`. It is read, because the process that shares out sees no marks."""
    text = (ROOT / path).read_text(encoding="utf-8") if path.endswith(".py") else ""
    return re.search(r"^pytestmark = .*\bwalks\b", text, re.MULTILINE) is not None


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and session.config.getoption("no_skips") and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("no_skips") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("--no-skips: what was skipped counts as failed; what to install stands above")
    for report in terminalreporter.stats.get("rerun", ()):  # it may be a bug that a busy machine brings out: look at it
        terminalreporter.section(f"The first try of {report.nodeid}", "-", yellow=True)
        terminalreporter.write_line(report.longreprtext)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Behind each cell that nbval has run, check what the notebook's text claims of it.

    The claims stand in tests/claims, because nobody who learns from a notebook wants to read them.
    """
    yield
    if item.path.suffix == ".ipynb" and (claim := claims(item.path.stem).get(item.cell["id"])):
        reply = item.parent.kernel.kc.execute(claim, silent=True, reply=True, timeout=120)["content"]
        assert reply["status"] == "ok", f"{reply['ename']}: {reply['evalue']}"


@functools.cache
def claims(notebook):
    """Return what a notebook's text claims, as code to run behind a cell, by the cell's name."""
    path = ROOT / "tests" / "claims" / f"claims_of_{notebook}.py"
    if not path.exists():
        return {}
    guards = path.with_name("guards.py").read_text(encoding="utf-8")
    head, *parts = re.split(r"^# %% (\S+)\n", guards + path.read_text(encoding="utf-8"), flags=re.M)
    return {cell: head + claim for cell, claim in zip(parts[::2], parts[1::2], strict=True)}


@pytest.fixture
def rng():
    return np.random.default_rng(1706)
