"""After a reload of the page, the next cell says what ended meanwhile."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from lesson_utils.classroom import reloads

TRAINING = "# a comment\n\nmodel = train(4)\nprint(model)"


class Clock:
    """The kernel's clock: an hour ahead of the browser's, whose time is `now`."""

    now = 100.0

    def __call__(self):
        return self.now + 3600


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def kernel(clock):
    found = reloads.Reloads(clock)
    found.opened("first", clock.now - 50)
    found.begins("first", clock.now)
    found.ends("import numpy as np", True)
    return found


def run(kernel, clock, page, source=TRAINING, seconds=1.0, well=True):
    said = kernel.begins(page, clock.now)
    clock.now += seconds
    kernel.ends(source, well)
    return said


def test_a_reload_while_a_cell_runs_is_said_once(kernel, clock):
    clock.now += 60
    kernel.opened("second", clock.now + 10)  # the question is handled later, but carries this time
    assert run(kernel, clock, "first", seconds=30) == ""
    clock.now += 60
    said = run(kernel, clock, "second")
    assert said.startswith("The page was reloaded while this cell ran:\n    model = train(4)\n")
    assert "You need not run it again" in said
    assert run(kernel, clock, "second") == ""


def test_a_page_that_is_there_again_at_once_is_told_too(kernel, clock):
    clock.now += 60
    kernel.opened("second", clock.now + 1)
    run(kernel, clock, "first", seconds=2)
    assert run(kernel, clock, "second").startswith("The page was reloaded while this cell ran:\n")


def test_cells_that_waited_are_named_too_and_an_error_says_so(kernel, clock):
    kernel.opened("second", clock.now + 10)
    run(kernel, clock, "first", seconds=30)
    run(kernel, clock, "first", "model.score()", well=False)
    said = run(kernel, clock, "second")
    assert (
        "while these cells ran:\n    model = train(4)\n    model.score()   ← It ended in an error. Run it again."
        in said
    )


@pytest.mark.parametrize("opened", [-40.0, 60.0], ids=["a second tab that was open before", "a reload after the end"])
def test_nothing_is_said_where_nothing_was_lost(kernel, clock, opened):
    kernel.opened("second", clock.now + opened)
    run(kernel, clock, "first", seconds=30)
    clock.now += 60
    assert run(kernel, clock, "second") == ""
    assert run(kernel, clock, "unknown") == ""


def test_in_a_kernel(monkeypatch, capsys):
    """By the messages of its pages."""
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython comes with ipywidgets")
    shell = interactiveshell.InteractiveShell.instance()
    now = datetime.now(UTC).timestamp()

    def message(page, after):
        return {"header": {"session": page, "date": datetime.fromtimestamp(now + after, UTC).isoformat()}}

    async def answer(stream, ident, parent):
        return "answer"

    kernel = SimpleNamespace(shell_handlers={"kernel_info_request": answer})
    monkeypatch.setattr(shell, "kernel", kernel, raising=False)
    try:
        reloads.watch()
        reloads.watch()
        kernel.get_parent = lambda: message("first", 0)
        assert reloads.was_reloaded()
        reloads.set_up()
        assert not reloads.was_reloaded()
        shell.run_cell("pass")
        shell.run_cell("import time; time.sleep(0.2)")
        asked = kernel.shell_handlers["kernel_info_request"](None, None, message("second", reloads.LOADING + 0.1))
        assert asyncio.run(asked) == "answer"
        kernel.get_parent = lambda: message("second", 1)
        capsys.readouterr()
        shell.run_cell("print('next')")
        assert capsys.readouterr().out.count("import time; time.sleep(0.2)") == 1
        shell.run_cell("print('next')")
        assert capsys.readouterr().out == "next\n"
        assert reloads.was_reloaded()
    finally:
        interactiveshell.InteractiveShell.clear_instance()
