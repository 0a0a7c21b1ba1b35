"""Attention and Transformers in plain NumPy, and the classroom around them. A folder is a wing:

- `maths`: the library, which needs NumPy only. The operations: `ops`, `attention`, `scores`, `positions`, `efficient`,
  `fast_weights`. The models: `layers`, `recurrent`, `models`, `pretrained`. Training: `tasks`, `training`,
  `checkpoints`. To measure and to check: `costs`, `gradcheck`. What these share: `checks`, `machine`, `progress_bar`.
- `mistakes`: the engine that marks exercises and names mistakes. It needs NumPy only, and knows nothing of the course.
- `classroom`: what notebooks show and keep. Pictures: `plots`, `legible`, `drawings`, `live`, `formats`, `tables`. The
  page: `page`, `reloads`, `stand_in`. Questions and exercises: `asked`, `quiz`, `progress`. What is kept:
  `trained`, `trained_storage`, `files`. The lessons: `course`.
- `lessons`: a package for each notebook: its live figures and measurements, exercises and questions.

The maths and the engine import nothing else from here, not even each other. The classroom uses both, and the lessons
use all three. Beside the wings stands a door to the engine, `exercises.check`: it takes a learner's function there,
with its exercise. Notebooks write `from lesson_utils import attention, plots`: a module is loaded when asked for.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors, which do not run `__getattr__`
    from lesson_utils.classroom import live, page, plots, progress, quiz, tables, trained
    from lesson_utils.maths import (
        attention,
        checkpoints,
        costs,
        efficient,
        fast_weights,
        gradcheck,
        layers,
        models,
        ops,
        positions,
        pretrained,
        recurrent,
        scores,
        tasks,
        training,
    )

__version__ = "2.0.0"
OFFERED = ("maths", "classroom")  # wings whose modules are offered here under their own names
NEEDED = ("numpy", "matplotlib", "ipywidgets", "IPython", "traitlets", "PIL")


def _check_neighbours(folder: str) -> None:
    """Name a file beside the notebook that Python takes for a library, because errors of imports don't.

    Raises:
        ImportError: there is such a file.
    """
    for name in (*NEEDED, *sys.stdlib_module_names) if {"", folder} & {*sys.path} else ():
        for file in (os.path.join(folder, f"{name}.py"), os.path.join(folder, name, "__init__.py")):
            loaded = getattr(sys.modules.get(name), "__file__", None) or ""
            if os.path.isfile(file) and (loaded == file or (name in NEEDED and not loaded)):
                raise ImportError(
                    f"{file} has the name of a library that the course needs, and Python takes it for the library. "
                    "Give the file another name, and restart the kernel."
                )


_check_neighbours(os.getcwd())


def __getattr__(name: str) -> ModuleType:
    for wing in OFFERED:
        if not name.startswith("_") and find_spec(f"{__name__}.{wing}.{name}"):
            return import_module(f"{__name__}.{wing}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the modules that are loaded when asked for, too, so that the Tab key completes them."""
    folders = [f"{__path__[0]}/{wing}" for wing in OFFERED]
    return sorted({*globals(), *(module.name for module in iter_modules(folders))})
