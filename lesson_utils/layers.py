"""Trainable layers: thin, around the functions of `ops` and `attention`.

`forward(x) -> (y, cache)`, `backward(dy, cache) -> dx`. Caches are returned, never kept, so that a layer can be used
many times before `backward`. Gradients of parameters are added up in `Param.grad`, until a step of training clears them.
"""

from collections.abc import Iterator

import numpy as np

from lesson_utils._checks import Array


class Param:
    """A trainable array and the gradient that has been added up for it."""

    def __init__(self, value: Array) -> None:
        self.value = value
        self.grad = np.zeros_like(value)


class Layer:
    """Has parameters, of its own or in layers that are its attributes."""

    def params(self) -> dict[str, Param]:
        """All parameters by dotted name, such as "blocks.0.norm.gamma"; one that is shared appears once."""
        found: dict[str, Param] = {}
        for name, param in _walk(self, ""):
            if all(param is not other for other in found.values()):
                found[name] = param
        return found

    def num_params(self) -> int:
        return sum(param.value.size for param in self.params().values())


def _walk(thing: object, name: str) -> Iterator[tuple[str, Param]]:
    if isinstance(thing, Param):
        yield name, thing
    elif isinstance(thing, Layer):
        for key, value in vars(thing).items():
            yield from _walk(value, f"{name}.{key}" if name else key)
    elif isinstance(thing, list | tuple):
        for i, value in enumerate(thing):
            yield from _walk(value, f"{name}.{i}")
