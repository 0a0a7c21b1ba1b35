"""`lesson_utils` offers the modules of its wings, and its map names them all."""

import re
import subprocess
import sys
from pkgutil import iter_modules

import pytest

import lesson_utils
from lesson_utils import classroom, maths

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
