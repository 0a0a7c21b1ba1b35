"""Attention and Transformers in plain NumPy, and the classroom around them. A folder is a wing:

- `maths`: the library. `ops`, `attention`, `scores`, `positions`, `efficient`, `fast_weights`, `costs`, `layers`,
  `recurrent`, `models`, `training`, `checkpoints`, `tasks`, `gradcheck`, `pretrained`. It needs NumPy only.
- `mistakes`: the engine that marks exercises and names mistakes. It needs NumPy only, and knows nothing of the course.
- `classroom`: what notebooks show and keep: `plots`, `drawings`, `live`, `quiz`, `progress`, `trained`, `check`.
- `lessons`: a package for each notebook: its live figures and measurements, exercises and questions.

The maths and the engine import nothing else from here, not even each other. The classroom uses both, and the lessons
use all three. Notebooks write `from lesson_utils import attention, plots`: a module is loaded when asked for.
"""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    for wing in ("maths", "classroom"):
        if not name.startswith("_") and find_spec(f"{__name__}.{wing}.{name}"):
            return import_module(f"{__name__}.{wing}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
