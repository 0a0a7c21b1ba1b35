"""The bench measures nothing here: each part runs once, in a small form, so that none can rot."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools import browser
from tools.bench import live
from tools.bench.__main__ import PARTS

ROOT = Path(__file__).parents[1]


def bench(what):
    words = [sys.executable, "-m", "tools.bench", what]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(words, cwd=ROOT, env=os.environ | {"COURSE_SIZE": "small"}, **streams)


@pytest.mark.long_form
@pytest.mark.parametrize("what", PARTS)
def test_each_part_runs(what):
    if what in ("training", "attention") and not find_spec("torch"):
        pytest.skip("compares with PyTorch; install it with: python course.py test --parity")
    if what == "live" and not browser.find_chromium():
        pytest.skip("no Chromium; install it (Debian: apt install chromium), or: playwright install chromium")
    if what == "class" and not (find_spec("jupyterhub") and shutil.which("npm")):
        pytest.skip(
            "no JupyterHub or no npm; python course.py test tests/test_bench.py installs one, apt install npm the other"
        )
    done = bench(what)
    assert done.returncode == 0, done.stdout
    assert not {"DIFFER", "ANOTHER", "WRONG", "FAILED"} & set(done.stdout.split()), done.stdout


def test_a_figure_that_fails_is_named_and_the_others_are_measured(monkeypatch, capsys):
    class Page:
        def __getattr__(self, name):  # whatever it is asked for, it is there and does nothing
            return Page()

        def __call__(self, *words, **options):
            return Page()

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

        def __str__(self):
            return "what stands where the picture was"

        def live_figures(self):
            return Page(), Page()

    def compare(name, *_, **__):
        if name == "b":
            raise RuntimeError("no new picture")
        return 0.5

    monkeypatch.setattr(browser, "jupyterlab", lambda folder: Page())
    monkeypatch.setattr(live, "figures", lambda: dict.fromkeys("abc"))
    monkeypatch.setattr(live, "_compare", compare)
    monkeypatch.delenv("COURSE_SIZE", raising=False)
    with pytest.raises(SystemExit, match="1 could not be measured: b"):
        live.run()
    said = capsys.readouterr().out
    assert "b FAILED: no new picture\nwhat stands where the picture was" in said
    assert "2 live figures: median 0.50×" in said


def test_a_part_that_fails_is_named_at_the_end(monkeypatch):
    monkeypatch.setattr("tools.bench.__main__.PARTS", {"nothing": ("no_such_module", "a part that fails", (None,))})
    monkeypatch.setattr(sys, "argv", ["bench", "nothing"])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1))
    from tools.bench.__main__ import main

    with pytest.raises(SystemExit, match="These failed; why stands above: nothing"):
        main()
