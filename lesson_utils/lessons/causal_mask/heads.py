"""Inside the trained model: where its heads look, on a real line."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.causal_mask.watched import visible
from lesson_utils.maths import models, tasks
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.checks import Ids

REAL_LINE = "The class of an object is the same as"


def untrained() -> tuple[models.GPT, tasks.Vocabulary]:
    """Make an untrained model as large as the notebook's."""
    vocabulary = tasks.text_vocabulary(tasks.python_text())
    config = models.GPTConfig(vocab=len(vocabulary), d_model=64, num_heads=4, num_layers=2, max_length=64)
    return models.GPT(config, np.random.default_rng(0)), vocabulary


def maps_of(model: models.GPT, ids: "Ids") -> Array:
    """Return the weights of all heads, those of the lowest layer first: ids (B, T) → (layers · h, B, T, T)."""
    maps = model.maps(model.forward(ids)[1])["decoder"]
    return np.concatenate([np.moveaxis(layer, 1, 0) for layer in maps])


def head_names(model: models.GPT) -> list[str]:
    return [f"layer {i}, head {j}" for i in range(model.config.num_layers) for j in range(model.config.num_heads)]


def reach(model: models.GPT, ids: "Ids") -> dict[str, tuple[float, float]]:
    """Measure how near each head looks, over the queries of the second half.

    For each head: the share of its weight on the last four keys, its own position included, and the mean distance.
    """
    maps = maps_of(model, ids)
    T = maps.shape[-1]
    late = np.arange(T // 2, T)
    back = np.maximum(late[:, None] - np.arange(T), 0)  # (queries, T); hidden keys have no weight
    found = [(A[:, late] * (back < 4), A[:, late] * back) for A in maps]
    rows = ((float(near.sum(axis=-1).mean()), float(far.sum(axis=-1).mean())) for near, far in found)
    return dict(zip(head_names(model), rows, strict=True))


@live.lab(
    height=4.1,
    neutral="At the first character every head looks at itself.",
    controls=lambda model, vocabulary: {"query": live.Slider("query at", 0, len(REAL_LINE) - 1, 0)},
    example=untrained,
)
def looks_lab(figure: "Figure", model: models.GPT, vocabulary: tasks.Vocabulary) -> live.Update:
    """Show where the chosen character looks, in all heads of the model on one line."""
    from matplotlib.patches import Rectangle

    line = "".join(c for c in REAL_LINE if c in vocabulary.characters)
    maps = maps_of(model, vocabulary.encode(line)[None])[:, 0]  # (heads, T, T)
    names, T = head_names(model), len(line)
    ax = figure.add_subplot(xlabel="key")
    image = ax.imshow(
        np.zeros((len(names), T)),
        cmap=plots.colour_map(*plots.WEIGHTS_MAP),
        vmin=0,
        vmax=1,
        interpolation="nearest",
        aspect="auto",
    )
    figure.colorbar(image, ax=ax, label="weight", ticks=(0, 0.5, 1), shrink=0.8, pad=0.02)
    ax.set_xticks(range(T), [visible(c) for c in line], family="monospace", size=13)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.hlines(np.arange(1, len(names)) - 0.5, -0.5, T - 0.5, color="white", lw=2)
    ax.axhline(model.config.num_heads - 0.5, color=plots.GREY, lw=1.4)
    hidden = Rectangle((0, -0.5), 1, len(names), fc="white", ec="#C8C8C8", lw=0, hatch="////")
    here = Rectangle((0, -0.5), 1, len(names), fill=False, ec=plots.ORANGE, lw=2.4)
    for patch in (hidden, here):
        ax.add_patch(patch)

    def update(query: int) -> str:
        query = min(query, T - 1)
        rows = maps[:, query]  # (heads, T)
        image.set_data(rows)
        hidden.set_bounds(query + 0.5, -0.5, T - 1 - query, len(names))
        here.set_bounds(query - 0.5, -0.5, 1, len(names))
        keys = rows.argmax(axis=-1)
        surest = int(rows.max(axis=-1).argmax())
        back = query - int(keys[surest])
        place = "at itself" if not back else f"{back} back, at “{visible(line[keys[surest]])}”"
        finding = f"From “{visible(line[query])}”: {names[surest]} looks {place} ({rows[surest].max():.0%})"
        ax.set_title(finding)
        told = "; ".join(
            f"{name}: “{line[k]}” {query - k} back {row[k]:.2f}" for name, k, row in zip(names, keys, rows, strict=True)
        )
        return f"{finding}. Line “{line}”, query at {query}. Largest weight of each head: {told}."

    return update
