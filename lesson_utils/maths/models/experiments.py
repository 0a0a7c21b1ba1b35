"""Experiments on a model that is there: heads knocked out, or attention by another function.

with models.trying(model, knock_out={"cross": {0: [1, 3]}}, by="mean"):
    logits, cache = model.forward(source, target)
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from lesson_utils.maths.checks import as_choice
from lesson_utils.maths.layers import Attend, KnockOut, MultiHead

HeadsOf = Mapping[int, Collection[int]]  # layer -> heads, both counted from 0
Change = tuple[Any, str, Any]  # an object, the name of one of its attributes, and the value that it is to have


class HasHeads(Protocol):
    def heads(self) -> dict[str, list[MultiHead]]: ...


@contextmanager
def changed(changes: Iterable[Change]) -> Iterator[None]:
    """Set attributes for as long as a `with` block lasts, then set them back."""
    before: list[Change] = []
    try:
        for thing, name, value in changes:
            before.append((thing, name, getattr(thing, name)))
            setattr(thing, name, value)
        yield
    finally:
        for thing, name, value in reversed(before):
            setattr(thing, name, value)


@contextmanager
def trying(
    model: HasHeads,
    knock_out: Mapping[str, HeadsOf] | None = None,
    by: str = "zero",
    attend: Attend | None = None,
) -> Iterator[None]:
    """Let a model run with other heads for as long as a `with` block lasts, also backwards.

    Args:
        knock_out: heads whose outputs are replaced, by place and layer: {"cross": {0: [1, 3]}} are heads 1 and 3 of
            the cross-attention in layer 0. The places are those of the model's `maps`.
        by: replace the outputs by "zero", or by their "mean" over batch and positions (padding among them).
        attend: a function (Q, K, V, mask) -> output, weights that all heads use in place of ours: Q is (B, h, T, d_k),
            mask True = may attend, or None for a single query. There is no way back through it.

    Raises:
        ValueError: there is no such place, layer or head, or no such way to replace an output.
    """
    as_choice(by, "by", ("zero", "mean"))
    places = model.heads() if knock_out or attend else {}
    changes: list[Change] = [(heads, "attend", attend) for layers in places.values() for heads in layers if attend]
    for place, out in (knock_out or {}).items():
        layers = places[as_choice(place, "knock_out", places)]
        for layer, heads in out.items():
            num_heads = layers[0].num_heads
            if layer not in range(len(layers)) or any(head not in range(num_heads) for head in heads):
                raise ValueError(
                    f"knock_out={dict(out)} names heads that are not there; expected a layer in 0…{len(layers) - 1} "
                    f"with heads in 0…{num_heads - 1}, such as {{0: [{num_heads - 1}]}}"
                )
            changes.append((layers[layer], "knock_out", KnockOut(tuple(heads), by)))
    with changed(changes):
        yield
