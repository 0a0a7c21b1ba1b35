import os

import hypothesis
import numpy as np
import pytest

# The same examples on every machine: a test that fails here fails everywhere.
hypothesis.settings.register_profile("course", derandomize=True, deadline=None, max_examples=60, database=None)
hypothesis.settings.load_profile("course")


def pytest_addoption(parser):
    parser.addoption("--no-skips", action="store_true", help="fail if a test was skipped, as CI must")


def pytest_collection_modifyitems(items):
    """Where processes share the work, what takes longest comes first: none is to wait for another at the end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_effort, reverse=True)


def _effort(item):
    slow, long_form = (item.get_closest_marker(mark) is not None for mark in ("slow", "long_form"))
    return long_form, item.path.suffix == ".ipynb", slow


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
