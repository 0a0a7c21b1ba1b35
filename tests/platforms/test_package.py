"""The package as the release workflow builds it: the sdist, the wheel made from the sdist, and its use elsewhere."""

import re
import tarfile
import zipfile

import pytest

import lesson_utils

from .conftest import ROOT

pytestmark = pytest.mark.long_form
VERSION = lesson_utils.__version__


@pytest.fixture(scope="module")
def built(environment, tmp_path_factory):
    """The folder with what `python -m build` makes."""
    folder = tmp_path_factory.mktemp("dist")
    environment.install("build")
    environment.run("-m", "build", "--outdir", folder, cwd=ROOT)
    return folder


def test_an_sdist_and_a_wheel_are_built(built):
    names = [f"lesson_utils-{VERSION}-py3-none-any.whl", f"lesson_utils-{VERSION}.tar.gz"]
    assert sorted(path.name for path in built.iterdir()) == names
    with tarfile.open(built / names[1]) as archive:
        folders = {name.split("/")[1] for name in archive.getnames()}
    assert {"lesson_utils", "README.md", "LICENSE", "pyproject.toml"} <= folders
    assert not folders & {"tests", "tools", "notebooks"}
    with zipfile.ZipFile(built / names[0]) as archive:
        brought = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = [path for path in (ROOT / "lesson_utils").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert brought == {path.relative_to(ROOT).as_posix() for path in files}


def test_another_project_uses_the_wheel(built, environment, tmp_path):
    """It imports all that there is, and marks the exercise of the page on one's own exercises."""
    environment.install(*built.glob("*.whl"))
    page = (ROOT / "docs/own_exercises.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```python\n(.+?)```", page, re.S)[:2]
    program = tmp_path / "own.py"
    program.write_text(
        "from lesson_utils import attention, layers, models, plots\n"
        "from lesson_utils.exercises import check\n"
        "import importlib, lesson_utils, pkgutil; print(lesson_utils.__version__)\n"
        "for module in pkgutil.walk_packages(lesson_utils.__path__, 'lesson_utils.'):\n"
        "    importlib.import_module(module.name)\n"
        f"{first}\n{second.replace('judge.run(', 'verdict = judge.run(')}\nprint(verdict.message)\n",
        encoding="utf-8",
    )
    said = environment.run("-W", "error", program, cwd=tmp_path).splitlines()
    assert said == [VERSION, "You divide by the squared lengths. Take their roots."]
    metadata = "import importlib.metadata as m; print(m.version('lesson-utils'))"
    assert environment.run("-c", metadata, cwd=tmp_path).split() == [VERSION]
