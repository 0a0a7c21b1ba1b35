"""What `pip install` brings a learner: lesson_utils, whole, and nothing of the maintainers'."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long_form

ROOT = Path(__file__).parents[1]
IMPORT_ALL = """
import importlib, pkgutil, lesson_utils
for module in pkgutil.walk_packages(lesson_utils.__path__, "lesson_utils."):
    importlib.import_module(module.name)
from lesson_utils import tasks
print(lesson_utils.__file__, len(tasks.python_text()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", ROOT]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def test_it_holds_what_the_repository_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    files = [path for path in (ROOT / "lesson_utils").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert names == {path.relative_to(ROOT).as_posix() for path in files}


def test_it_works_away_from_the_repository(wheel, tmp_path):
    """In an environment of its own, which borrows only what the course depends on."""
    site = tmp_path / "site-packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={site}", wheel]
    subprocess.run(install, check=True)
    # Isolated, Python ignores PYTHONPATH and the folder it is in; what stands first on its path wins over .venv's.
    code = f"import sys; sys.path.insert(0, {str(site)!r})\n{IMPORT_ALL}"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(site / "lesson_utils" / "__init__.py"), "465126"]
