"""The kernel as it was before an answer ran: NumPy's functions, random numbers, options, and what is shown of its output."""

import builtins
import contextlib
import io
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

PRINTED = 2000  # characters of what an answer prints that are shown
DISPLAYED = 3  # things that are shown of those that it displays


class _Cut(io.StringIO):
    """A stream that keeps the beginning of what is printed."""

    total = 0

    def write(self, text: str) -> int:
        self.total += len(text)
        return super().write(text[: max(0, PRINTED - self.tell())]) if self.tell() < PRINTED else len(text)


def _functions(module: ModuleType) -> dict[str, Any]:
    if module is builtins:  # the types alone: what a notebook replaces, such as `print` and `open`, is its own affair
        return {name: value for name, value in vars(module).items() if isinstance(value, type)}
    return {name: value for name, value in vars(module).items() if callable(value)}


_ORIGINAL: dict[str, tuple[ModuleType, dict[str, Any]]] = {}  # by the name that cells have for a module


def guard(names: Mapping[str, Any]) -> None:
    """Remember the functions of the modules among `names`, for `mend_modules`."""
    for name, module in names.items():
        if isinstance(module, ModuleType) and name not in _ORIGINAL:
            _ORIGINAL[name] = module, _functions(module)


guard({"np.random": np.random, "np.linalg": np.linalg, "builtins": builtins})


_overwritten: dict[str, None] = {}  # names of what was overwritten, and is back
_loaded: dict[str, Any] = {}  # the modules that there were when an answer began; without them nothing can be imported


def mend_modules() -> list[str]:
    """Put functions back that somebody has overwritten, as in `np.exp = ...`; name them, and those put back after calls."""
    _mend()
    found = [*_overwritten]
    _overwritten.clear()
    return found


def mend_again() -> None:
    """Put functions back after one more call of what has overwritten some."""
    if _overwritten:
        _mend()


def _mend() -> None:
    for short, (module, functions) in _ORIGINAL.items():
        for name, value in functions.items():
            now = vars(module).get(name)
            if now is not value and not hasattr(now, "fills"):  # what the check itself has put there, for a while
                _overwritten[f"{short}.{name}"] = None
                setattr(module, name, value)
    if any(sys.modules.get(name) is not module for name, module in _loaded.items()):
        _overwritten["sys.modules"] = None
        sys.modules.update(_loaded)


def called(call: partial[Any]) -> str:
    """Return a function's name with the name that cells have for its module, and the keywords of a call."""
    function, name = call.func, call.func.__name__
    modules = (short for short, (_, functions) in _ORIGINAL.items() if functions.get(name) is function)
    keywords = ", ".join(f'{k}="{v}"' for k, v in call.keywords.items())
    return f"{next(modules, function.__module__.rpartition('.')[2])}.{name}" + (f"(…, {keywords})" if keywords else "")


@contextmanager
def kernel_as_before(show: bool = True) -> Iterator[None]:
    """Put random numbers, print options, recursion limit and modules back; show the beginning of what is printed, or nothing."""
    before = _loaded.copy()
    _loaded.update(sys.modules)
    options, limit, state = np.get_printoptions(), sys.getrecursionlimit(), random.getstate()
    numbers = np.random.get_state()  # noqa: NPY002
    cut = _Cut()
    try:
        with contextlib.redirect_stdout(cut), _shell_as_before(show):
            yield
    finally:
        _mend()
        _loaded.clear()
        _loaded.update(before)
        np.set_printoptions(**options)
        sys.setrecursionlimit(limit)
        random.setstate(state)
        np.random.set_state(numbers)  # noqa: NPY002
        if cut.total and show:
            print(cut.getvalue(), end="")
            if cut.total > PRINTED:
                print(f"\n… ({cut.total - PRINTED:,} more characters that your function printed are left out)")


@contextmanager
def _shell_as_before(show: bool) -> Iterator[None]:
    """Make IPython's `exit()` a SystemExit, which ends a call and not the kernel; show the first things displayed."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        yield
        return
    publisher, shown = shell.display_pub, 0
    publish: Callable[..., Any] = publisher.publish

    def some(*arguments: Any, **keywords: Any) -> None:
        nonlocal shown
        shown += 1
        if show and shown <= DISPLAYED:
            publish(*arguments, **keywords)

    with instead(shell, ask_exit=sys.exit), instead(publisher, publish=some):
        yield
    if show and shown > DISPLAYED:
        print(f"… ({shown - DISPLAYED:,} more things that your function displayed are left out)")


@contextmanager
def instead(owner: Any, **values: Any) -> Iterator[None]:
    """Let an object have other attributes for a while; one of its class comes back by itself."""
    own = {name: vars(owner)[name] for name in values if name in vars(owner)}
    try:
        vars(owner).update(values)
        yield
    finally:
        vars(owner).update(own)
        for name in values.keys() - own.keys():
            vars(owner).pop(name, None)
