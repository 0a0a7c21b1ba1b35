"""A map of which outputs depend on which inputs, by one backward pass."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.maths import models
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids


def influence(model: models.GPT, ids: "Ids") -> Array:
    """Measure how much each output depends on each input, by one backward pass: ids (T,) → (outputs T, inputs T).

    The model reads T copies of the line. In copy i only the logits of position i send back a gradient, so what
    arrives at the inputs of copy i is all that output i depends on. Row i is its norm at each input.
    """
    T = len(ids)
    before = {name: param.grad.copy() for name, param in model.params().items()}
    logits, cache = model.forward(np.tile(ids, (T, 1)))  # (T, T, V)
    dlogits = np.zeros_like(logits)
    own = np.arange(T)
    dlogits[own, own] = np.random.default_rng(0).normal(size=logits.shape[-1])
    dx = model.stack.backward(model.tokens.embedding.logits_backward(dlogits, cache.output), cache.stack)
    for name, param in model.params().items():
        param.grad[...] = before[name]
    found: Array = np.sqrt((dx.astype(float) ** 2).sum(axis=-1))
    return found


@plots.still(9.0, 3.9)
def influence_plot(figure: "Figure", found: Mapping[str, Array]) -> str:
    """Draw for several models which inputs each output depends on; what is exactly 0 is hatched."""
    from matplotlib.colors import ListedColormap, LogNorm
    from matplotlib.patches import Rectangle

    told = []
    for ax, (name, matrix) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
        ahead = int((np.triu(matrix, 1) > 0).sum())
        pairs = len(matrix) * (len(matrix) - 1) // 2
        shown = np.where(matrix > 0, matrix, np.nan)
        top = float(np.nanmax(shown))
        name_of_map, steps = plots.WEIGHTS_MAP
        seen = ListedColormap(plots.colour_map(name_of_map, steps)(np.linspace(0.2, 1, steps)))  # no white among them
        T = len(matrix)
        ax.add_patch(Rectangle((-0.5, -0.5), T, T, fc="white", ec="#C8C8C8", lw=0, hatch="////"))
        image = ax.imshow(np.clip(shown, top * 1e-4, None), cmap=seen, norm=LogNorm(top * 1e-4, top), zorder=2)
        figure.colorbar(image, ax=ax, shrink=0.8, label="gradient")
        finding = f"{ahead} of {pairs} pairs look ahead" if ahead else "no output looks ahead"
        ax.set(title=f"{name}:\n{finding}", xlabel="input", ylabel="output")
        told.append(f"{name}: {finding}")
    return f"{'. '.join(told)}. Maps of the gradient of each output with respect to each input; hatched is exactly 0."
