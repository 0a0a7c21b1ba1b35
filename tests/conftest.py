import os

import hypothesis
import numpy as np
import pytest

# The same examples on every machine: a test that fails here fails everywhere.
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.load_profile("course")


def pytest_addoption(parser):
    parser.addoption("--no-skips", action="store_true", help="fail if a test was skipped, as CI must")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """What several processes share: a file is for one of them, and what takes longest comes first."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_effort, reverse=True)
        for item in items:
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _effort(item):
    slow, long_form = (item.get_closest_marker(mark) is not None for mark in ("slow", "long_form"))
    return long_form, item.path.suffix == ".ipynb", slow


def _group(item):
    """A file's tests share what they make; of tests that walk all lessons, those of one figure, or of one exercise."""
    walks = item.path.name in ("test_every_lesson.py", "test_exercises.py") and hasattr(item, "callspec")
    return f"{item.path.name}:{item.callspec.id}" if walks else item.path.name


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and session.config.getoption("no_skips") and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("no_skips") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("--no-skips: what was skipped counts as failed; what to install stands above")


os.environ["COURSE_STRICT"] = "1"  # pictures that are too wide for their titles, or too large, are errors


@pytest.fixture
def rng():
    return np.random.default_rng(1706)
