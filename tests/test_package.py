"""`lesson_utils` offers the modules of its wings, and its map names them all."""

import os
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import pytest

import lesson_utils
from lesson_utils import classroom, maths

ROOT = Path(__file__).parent.parent
MODULES = [module.name for wing in (maths, classroom) for module in iter_modules(wing.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_offered_and_named_in_the_map(name):
    assert name in dir(lesson_utils)
    assert f"`{name}`" in lesson_utils.__doc__
    assert getattr(lesson_utils, name).__name__ in (f"lesson_utils.maths.{name}", f"lesson_utils.classroom.{name}")


def test_the_map_names_nothing_else():
    wings = {"maths", "mistakes", "classroom", "lessons"}
    assert set(re.findall(r"`(\w+)`", lesson_utils.__doc__)) == {*MODULES, *wings}
    assert wings <= {module.name for module in iter_modules(lesson_utils.__path__)}


def test_a_module_that_does_not_exist_is_no_attribute():
    for name in ("atention", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'lesson_utils' has no attribute '{name}'"):
            getattr(lesson_utils, name)


def test_modules_are_loaded_when_asked_for():
    code = "import sys, lesson_utils; dir(lesson_utils); print(any(name.startswith('numpy') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy.py", "matplotlib.py", "decimal.py", "numpy/__init__.py"])
def test_a_file_that_python_takes_for_a_library_is_named(name, tmp_path):
    """As the set-up cell meets it: `import lesson_utils` comes first there."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("x = 1\n")
    first = "import decimal; " if "decimal" in name else ""
    code = f"import sys; sys.path[0] = {str(tmp_path)!r}; {first}import lesson_utils"
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", code], **options)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {file} has the name of a library that the course needs"), done.stderr
    assert last.endswith("Give the file another name, and restart the kernel.")


@pytest.mark.slow
def test_other_files_beside_the_notebook_are_no_trouble(tmp_path):
    for name in ("random", "math", "html", "copy", "token", "test", "attention", "softmax"):
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    code = (
        f"import copy, html, random, tokenize, sys; sys.path.insert(0, {str(tmp_path)!r}); import lesson_utils, numpy"
    )
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
    subprocess.run([sys.executable, "-P", "-c", code], check=True, **options)
