"""Models that come trained, for where training takes long: in a browser, or on a part of a core.

    TRAIN = trained.here()  # False: load what has been trained beforehand

    @trained.beforehand("multi_head", unless=TRAIN)
    def train(num_heads, seed=0, steps=500):
        ...
        return model, history

Unless TRAIN, `train(4)` gives what this call once returned. The result stands in the lesson's file, `trained.npz`,
which `python -m tools.train multi_head` writes by running the notebook. A call with other arguments, or of a function
that has been changed since, is not in it: then the function runs, and a line says why.
"""

import ast
import dis
import functools
import hashlib
import inspect
import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lesson_utils.classroom import trained_storage
from lesson_utils.classroom.trained_storage import Made

FOLDER = Path(__file__).parents[1] / "lessons"
BARS = "▁▂▃▄▅▆▇█"
SIMPLE = bool | int | float | str | None
P = ParamSpec("P")
R = TypeVar("R")


def here() -> bool | str:
    """Decide whether models are trained here: not in a browser, not on Binder, and not in a container that gets
    less than one core. What takes minutes comes trained everywhere, unless a notebook says TRAIN = "all".

    The environment variable COURSE_TRAIN, `yes`, `no` or `all`, decides for itself. Otherwise: Python in a browser
    (JupyterLite) is `emscripten`; BinderHub sets BINDER_LAUNCH_HOST, and its Kubernetes BINDER_SERVICE_HOST; a
    container's share of the cores is in Linux's control group, /sys/fs/cgroup/cpu.max.

    Raises:
        ValueError: COURSE_TRAIN is something else.
    """
    wish = os.environ.get("COURSE_TRAIN", "")
    if wish not in ("", "yes", "no", "all"):
        raise ValueError(f"COURSE_TRAIN={wish!r} is unknown; set it to yes, no or all, or not at all")
    slow = sys.platform == "emscripten" or "BINDER_LAUNCH_HOST" in os.environ or "BINDER_SERVICE_HOST" in os.environ
    train = wish in ("yes", "all") or (not wish and not slow and cores() >= 1)
    if not train:
        print(
            "Training takes long here: what follows was trained beforehand. "
            'To train it yourself, set TRAIN = True, or "all" for what takes minutes.'
        )
    return wish if wish == "all" else train


def cores(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """Return how many cores this container may use."""
    try:
        quota, period = file.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no such file; or "max": there is no limit
        return float(os.cpu_count() or 1)


def beforehand(lesson: str, *, unless: bool) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that a call gives what it returned beforehand, if that is stored.

    Arguments may be numbers, text, functions, and models, which count by their parameters. What is returned may be
    models with a `config`, arrays, numbers, text, dataclasses and named tuples of the course, and tuples, lists and
    dictionaries of these. A `training.History` among them is shown as a curve.

    Args:
        lesson: whose file it is in.
        unless: True if the function is to run in any case.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            name, code = _name(function, args, kwargs), fingerprint(function)
            if not unless:
                shown = _name(function, args, kwargs, short=True)
                try:
                    stored = _stored(path_of(lesson), name, code)
                except ValueError as why:
                    if os.environ.get("COURSE_STRICT"):
                        raise AssertionError(f"{shown} {why}; python -m tools.train {lesson} makes it") from why
                    print(f"{shown} {why}, so it runs now.")
                else:
                    told = f"{_duration(stored.seconds)}{_curve(stored.result)}"
                    print(f"{shown}: made beforehand by this very code, {told}")
                    if made is not None:
                        made[name] = stored
                    return stored.result
            return _run(name, code, function, args, kwargs)

        return call

    return decorate


def path_of(lesson: str) -> Path:
    return FOLDER / lesson / "trained.npz"


made: dict[str, Made] | None = None  # while `tools.train` runs a notebook: results by the name of the call


def record() -> None:
    """Begin to keep what calls return."""
    global made
    made = {}


def write_record(path: Path) -> None:
    """Write what calls returned since `record`, and keep no more."""
    global made
    trained_storage.write(path, made or {})
    made = None


def _run(name: str, code: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    global made
    keep, made = made, None  # a call within this one is a part of it
    start = time.process_time()
    try:
        result = function(*args, **kwargs)
    finally:
        made = keep
    if made is not None:
        made[name] = Made(code, time.process_time() - start, result)
    return result


def _stored(path: Path, name: str, code: str) -> Made:
    """Return what a call returned beforehand; a ValueError says why there is nothing that fits."""
    codes = trained_storage.names(path)
    if name not in codes:
        raise ValueError("was not made beforehand with these settings" if codes else "was not made beforehand")
    if code and codes[name] != code:
        raise ValueError("has been changed since it was made beforehand")
    try:
        return trained_storage.read(path, name)
    except ValueError as why:
        raise ValueError(f"was made beforehand, but that no longer fits ({why})") from why


# --- What a call is called --------------------------------------------------------------------------------------------


def _name(function: Callable[..., Any], args: Any, kwargs: Any, short: bool = False) -> str:
    """Name the call with all its arguments, "train(num_heads=4, seed=0, steps=500)", or in short, as it was written."""
    given = inspect.signature(function).bind(*args, **kwargs)
    if short:
        words = [*(_word(x, short) for x in args), *(f"{key}={_word(x, short)}" for key, x in kwargs.items())]
    else:
        given.apply_defaults()
        words = [f"{key}={_word(x)}" for key, x in given.arguments.items()]
    return f"{function.__name__}({', '.join(words)})"


def _word(x: Any, short: bool = False) -> str:
    if trained_storage.is_model(x):
        kind = type(x).__name__
        return kind if short else f"<{kind} {_hash(repr(x.config), trained_storage.values_of(x).tobytes())}>"
    if isinstance(x, list | tuple):
        return f"({', '.join(_word(entry, short) for entry in x)})"
    if isinstance(x, Mapping):
        return f"{{{', '.join(f'{key}: {_word(value, short)}' for key, value in x.items())}}}"
    if isinstance(x, SIMPLE):
        return repr(x)
    if inspect.isroutine(x):
        return str(x.__name__)
    raise ValueError(f"an argument is of type {type(x).__name__}; give numbers, text, functions or models")


def fingerprint(function: Callable[..., Any], seen: tuple[str, ...] = ()) -> str:
    """Hash a function's code, and what it takes from its notebook: numbers, text, and other functions there.

    Comments and white space do not count. The hash is "" where there is no source to be had.
    """
    function = inspect.unwrap(function)
    seen = (*seen, function.__name__)
    try:
        source = inspect.getsource(function)
    except OSError:
        return ""
    parts = [syntax(textwrap.dedent(source))]
    for name in sorted(_reads(function.__code__).difference(seen)):
        value = function.__globals__.get(name)
        if value is None and name in function.__globals__:
            continue  # a published model that is not installed: what comes trained is for those who lack it
        if isinstance(value, SIMPLE):
            parts.append(f"{name}={value!r}")
        elif inspect.isfunction(value) and value.__module__ == function.__module__:
            parts.append(f"{name}{inspect.signature(value)}{fingerprint(value, seen)}")
    return _hash(*parts)


def syntax(source: str) -> str:
    """Write out the syntax tree of a source: in it, comments and white space do not count, and strings do.

    Decorators do not count either. Not `ast.dump`: Pythons differ in which empty fields it writes.
    """

    def written(node: Any) -> str:
        if isinstance(node, list):
            return f"[{', '.join(map(written, node))}]"
        if not isinstance(node, ast.AST):
            return repr(node)
        fields = {name: x for name, x in ast.iter_fields(node) if x not in (None, []) and name != "decorator_list"}
        return f"{type(node).__name__}({', '.join(f'{name}={written(x)}' for name, x in fields.items())})"

    try:
        return written(ast.parse(source))
    except SyntaxError:  # a lambda in the middle of a statement
        return source.strip()


def _reads(code: CodeType) -> set[str]:
    """Find the global names that some code reads, also in functions within it."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return names.union(*(_reads(part) for part in code.co_consts if isinstance(part, CodeType)))


def _hash(*parts: str | bytes) -> str:
    whole = b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)
    return hashlib.sha256(whole).hexdigest()[:12]


# --- What is said of it -----------------------------------------------------------------------------------------------


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "in less than a second"
    return f"in {seconds:.0f} s" if seconds < 100 else f"in {seconds / 60:.0f} min"


def _curve(result: Any) -> str:
    """Draw the losses of the first history in a result as text, each twelfth as its mean: "; loss 3.14 █▅▃▂▁ 0.02"."""
    from lesson_utils.maths.training import History

    parts = list(result) if isinstance(result, tuple) else [result]
    losses = next((part.losses for part in parts if isinstance(part, History)), [])
    if not losses:
        return ""
    means = np.array([part.mean() for part in np.array_split(losses, min(12, len(losses)))])
    heights = (means - means.min()) / max(float(np.ptp(means)), 1e-9) * (len(BARS) - 1)
    return f"; loss {losses[0]:.2f} {''.join(BARS[round(h)] for h in heights)} {means[-1]:.2f}"
