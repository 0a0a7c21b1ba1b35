"""After a reload of the page, the next cell says what ended meanwhile."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from lesson_utils.classroom import reloads

TRAINING = "# a comment\n\nmodel = train(4)\nprint(model)"


ONE = "The page was reloaded while this cell ran:\n    model = train(4)\n"
TWO = "while these cells ran:\n    model = train(4)\n    model.score()   ← It ended in an error. Run it again."


@pytest.mark.parametrize(
    ("opened", "cells", "pause", "says"),
    [
        (10, [(TRAINING, 30, True)], 60, ONE),
        (1, [(TRAINING, 2, True)], 0, ONE),  # it is there again at once
        (10, [(TRAINING, 30, True), ("model.score()", 1, False)], 0, TWO),  # cells that waited are named, too
        (-40, [(TRAINING, 30, True)], 60, ""),  # a second tab that was open before
        (60, [(TRAINING, 30, True)], 60, ""),  # a reload after the end
    ],
)
def test_what_ended_while_the_page_was_reloaded_is_said_once(opened, cells, pause, says):
    """The kernel's clock is an hour ahead of the browser's, whose time is `now`."""
    now = 100.0
    kernel = reloads.Reloads(lambda: now + 3600)

    def run(page, source="print(model)", seconds=1.0, well=True):
        nonlocal now
        said = kernel.begins(page, now)
        now += seconds
        kernel.ends(source, well)
        return said

    kernel.opened("first", now - 50)
    run("first", "import numpy as np", 0)
    now += 60
    kernel.opened("second", now + opened)  # the question is handled later, but carries this time
    assert [run("first", *cell) for cell in cells] == [""] * len(cells)
    now += pause
    said = run("second")
    assert says in said
    assert bool(said) == bool(says) == ("You need not run" in said)
    assert run("second") == run("unknown") == ""


def test_in_a_kernel(capsys):
    """By the messages of its pages."""
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython comes with ipywidgets")
    shell = interactiveshell.InteractiveShell.instance()
    now = datetime.now(UTC).timestamp()

    def message(page, after):
        return {"header": {"session": page, "date": datetime.fromtimestamp(now + after, UTC).isoformat()}}

    async def answer(stream, ident, parent):
        return "answer"

    kernel = SimpleNamespace(shell_handlers={"kernel_info_request": answer})
    shell.kernel = kernel
    try:
        assert not reloads.was_reloaded(), "nobody watches"
        kernel.get_parent = lambda: message("first", 0)
        reloads.set_up()
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
