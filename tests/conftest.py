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
    """What takes longest comes first, so that at the end no process waits for another."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_effort, reverse=True)


def _effort(item):
    slow, long_form = (item.get_closest_marker(mark) is not None for mark in ("slow", "long_form"))
    return long_form, item.path.suffix == ".ipynb", slow


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is nothing to share out
def pytest_xdist_make_scheduler(config, log):
    """A file's tests share what they make, so they go to one process.

    Not `--dist=loadgroup`: pytest-xdist 3.8 writes the groups where pytest 9.2 no longer looks, and no error tells.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return ByGroup(config, log)


WALKERS = "test_every_lesson.py", "test_exercises.py", "test_trained.py"


def group_of(nodeid):
    """A file; of tests that walk all lessons, those of one figure, of one exercise, or of one notebook's models."""
    path, _, test = nodeid.partition("::")
    _, walks, which = test.partition("[")
    return f"{path}[{which}" if walks and path.endswith(WALKERS) else path


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and session.config.getoption("no_skips") and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("no_skips") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("--no-skips: what was skipped counts as failed; what to install stands above")


os.environ["COURSE_STRICT"] = "1"  # pictures that are too wide for their titles, or too large, are errors
os.environ.setdefault("COURSE_TRAIN", "no")  # notebooks take the models that come trained, as their stored outputs do
os.environ["COURSE_PROGRESS"] = "off"  # what tests solve is nobody's progress


@pytest.fixture
def rng():
    return np.random.default_rng(1706)
