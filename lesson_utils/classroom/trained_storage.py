"""A file of what calls returned, for `trained`: arrays, and an index in JSON that says where each belongs.

Models are their class, their config and their parameters, which are kept in float16. So are other numbers with a point
where its three digits, or in arrays six places, will do for what is drawn and printed; elsewhere in float32.
"""

import dataclasses
import functools
import importlib
import io
import json
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom.files import put
from lesson_utils.maths.checks import Array

STORED = "return models, arrays, numbers, text and tuples of these"


class Made(NamedTuple):
    """A call that was made beforehand."""

    source: str  # a hash of the code
    seconds: float  # of one core
    result: Any


def write(path: Path, calls: Mapping[str, Made]) -> None:
    """Write what calls returned, by their names.

    Raises:
        TypeError: something in it can't be stored.
    """
    arrays: list[Array] = []
    index = {name: [call.source, call.seconds, _encode(call.result, arrays)] for name, call in calls.items()}
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    contents: dict[str, Any] = {str(n): array for n, array in enumerate(arrays)}
    whole = io.BytesIO()
    np.savez_compressed(whole, allow_pickle=False, index=text, **contents)
    put(path, whole.getvalue())


def names(path: Path) -> dict[str, str]:
    """Return the calls in a file, each with the hash of the code that made it; none where there is no file.

    Raises:
        ValueError: the file is damaged.
    """
    index = _opened(path, path.stat().st_mtime_ns)[0] if path.exists() else {}
    return {name: source for name, (source, _, _) in index.items()}


def read(path: Path, name: str) -> Made:
    """Read what a call returned, by one of the names in the file.

    Raises:
        ValueError: what it returned no longer fits the course's classes.
    """
    index, arrays = _opened(path, path.stat().st_mtime_ns)
    try:
        source, seconds, result = index[name]
        return Made(source, seconds, _decode(result, arrays))
    except (TypeError, KeyError, AttributeError, ImportError) as why:
        raise ValueError(str(why)) from why


@functools.lru_cache(maxsize=4)
def _opened(path: Path, when: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read the index of a file as it was at that time, and its arrays."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = dict(file)
        return json.loads(arrays.pop("index").tobytes()), arrays
    except Exception as error:  # a damaged file can fail in any way; which one is told
        why = f"its file {path} is damaged ({type(error).__name__}). A new copy of the course has a whole one"
        raise ValueError(why) from error


def _encode(x: Any, arrays: list[Array]) -> Any:
    """Encode as JSON; arrays are put into the list, and a number says where."""
    if isinstance(x, np.generic):
        x = x.item()
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if is_model(x):
        arrays.append(values_of(x))
        return {"model": _path(type(x)), "config": _encode(x.config, arrays), "values": len(arrays) - 1}
    if isinstance(x, np.ndarray):
        arrays.append(_short(x, 1e-6))
        return {"array": len(arrays) - 1, "dtype": str(x.dtype)}
    if isinstance(x, list) and len(x) > 8 and all(isinstance(entry, float) for entry in x):
        arrays.append(_short(np.array(x), 0))  # may be seen on a logarithmic axis
        return {"floats": len(arrays) - 1}
    if isinstance(x, Mapping):
        return {"dict": [[_encode(key, arrays), _encode(value, arrays)] for key, value in x.items()]}
    if isinstance(x, type):  # in a model's config, such as float32
        return {"class": _path(x)}
    if type(x) in (list, tuple):
        return {type(x).__name__: [_encode(entry, arrays) for entry in x]}
    if dataclasses.is_dataclass(x):
        fields = {field.name: getattr(x, field.name) for field in dataclasses.fields(x)}
    elif isinstance(x, tuple) and hasattr(x, "_asdict"):
        fields = x._asdict()
    else:
        raise TypeError(f"{type(x).__name__} can't be stored; {STORED}")
    return {"object": _path(type(x)), "fields": {key: _encode(value, arrays) for key, value in fields.items()}}


def _decode(x: Any, arrays: Any) -> Any:
    if not isinstance(x, dict):
        return x
    match next(iter(x)):
        case "model":
            model = _class(x["model"])(_decode(x["config"], arrays), np.random.default_rng(0))
            _fill(model, arrays[str(x["values"])])
            return model
        case "array":
            return arrays[str(x["array"])].astype(x["dtype"])
        case "floats":
            return arrays[str(x["floats"])].astype(float).tolist()
        case "dict":
            return {_decode(key, arrays): _decode(value, arrays) for key, value in x["dict"]}
        case "class":
            return _class(x["class"])
        case "list":
            return [_decode(entry, arrays) for entry in x["list"]]
        case "tuple":
            return tuple(_decode(entry, arrays) for entry in x["tuple"])
    return _class(x["object"])(**{key: _decode(value, arrays) for key, value in x["fields"].items()})


def is_model(x: Any) -> bool:
    """Tell whether this has parameters, and a config to build it from."""
    return hasattr(x, "params") and dataclasses.is_dataclass(getattr(x, "config", None))


def values_of(model: Any) -> Array:
    """Return all parameters, one after the other, with three digits."""
    return np.concatenate([param.value.ravel() for param in model.params().values()]).astype(np.float16)


def _fill(model: Any, values: Array) -> None:
    params = model.params().values()
    ends = np.cumsum([param.value.size for param in params])
    if values.size != ends[-1]:
        raise ValueError(f"{values.size:,} parameters for a model of {ends[-1]:,}")
    for param, part in zip(params, np.split(values, ends[:-1]), strict=True):
        param.value[...] = part.reshape(param.value.shape)


def _short(x: Array, off: float) -> Array:
    """Shorten to float16 if that changes each number by a thousandth or by `off` at most; else to float32."""
    if x.dtype.kind != "f":
        return x
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    return half if np.allclose(half, x, rtol=1e-3, atol=off) else x.astype(np.float32)


def _path(kind: type) -> str:
    """Name a class of a lesson by the lesson, and one of the library by its package: modules may be regrouped."""
    if not _ours(kind.__module__):
        raise TypeError(f"{kind.__name__} is not a class of the course; {STORED}")
    return f"{'.'.join(kind.__module__.split('.')[:3])}:{kind.__qualname__}"


def _class(path: str) -> Any:
    package, _, name = path.partition(":")
    if _ours(package):
        found = next((getattr(module, name) for module in _modules(package) if hasattr(module, name)), None)
        if isinstance(found, type):
            return found
    raise ValueError(f"{path} is no class of the course")


def _modules(name: str) -> Iterator[ModuleType]:
    """Import a package, and then its modules, one by one."""
    package = importlib.import_module(name)
    yield package
    for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
        yield importlib.import_module(f"{name}.{module.name}")


def _ours(module: str) -> bool:
    return module.startswith("lesson_utils.") or module == "numpy"  # whose classes are kinds of numbers
