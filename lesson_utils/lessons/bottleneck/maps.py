"""Maps of where a model looks, beside maps of what decides what it writes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.bottleneck.experiment import influence, looks, weight_on
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.still(9.0, 7.6)
def looks_and_causes(figure: "Figure", models: Mapping[str, Seq2Seq], word: str) -> str:
    """Draw a column for each model: where it looks while it writes a word backwards, and which letters decide."""
    letters = list(word)
    axes = figure.subplots(2, len(models), sharex=True, sharey=True, squeeze=False)
    alt, seen, decided = [], [], []
    for column, (name, model) in zip(axes.T, models.items(), strict=True):
        weights, effect = looks(model, word), influence(model, word).clip(0)
        seen.append(weights)
        decided.append(effect)
        for ax, matrix, what in zip(column, (weights, effect), ("where it looks", "what decides"), strict=True):
            title = f"{name}, {what}: {weight_on(matrix):.2f}"
            plots.draw_heatmap(ax, matrix, letters[::-1], letters, title, "written", "read", False, top=1.0)
            ax.label_outer()
            alt.append(plots.describe(matrix, letters[::-1], letters, title, "written", "read"))
    figure.colorbar(axes[0, -1].images[0], ax=list(axes[0]), label="weight", pad=0.01)
    figure.colorbar(axes[1, -1].images[0], ax=list(axes[1]), label="probability lost", pad=0.01)
    differ, agree = _apart(seen) > 0.2, _apart(decided) < 0.1
    finding = f"{'Different' if differ else 'Similar'} maps, {'same' if agree else 'different'} causes"
    explained = f"{finding} (numbers: mean on the letter that is written)"
    figure.suptitle(explained, x=0.01, ha="left", fontsize=14, fontweight="bold")
    on_it = ", ".join(f"{name} puts {weight_on(m):.2f}" for name, m in zip(models, seen, strict=True))
    return f"{finding}: of its weight, {on_it} on the letter written. {' '.join(alt)}"


@plots.still(9.0, 4.3)
def map_and_causes(figure: "Figure", model: Seq2Seq, word: str) -> str:
    """Draw both maps of one model side by side, with the weight on the letter written and on the one after it.

    The first letter written has none after it, so that both means leave it out.
    """
    letters = list(word)
    weights, effect = looks(model, word), influence(model, word).clip(0)
    on_it, later, decides = weight_on(weights, 0, 1), weight_on(weights, 1), weight_on(effect, 0, 1)
    titles = (
        f"Where it looks: {later:.2f} one letter late",
        f"What decides: {decides:.2f} on the letter itself",
    )
    alt = []
    for ax, matrix, title in zip(figure.subplots(1, 2, sharey=True), (weights, effect), titles, strict=True):
        plots.draw_heatmap(ax, matrix, letters[::-1], letters, title, "written", "read", False, top=1.0)
        ax.label_outer()
        alt.append(plots.describe(matrix, letters[::-1], letters, title, "written", "read"))
    figure.colorbar(ax.images[0], ax=figure.axes, label="weight, probability lost", pad=0.01)
    return (
        f"Without the first letter written, {later:.2f} of the weight lies one letter later than the letter written, "
        f"{on_it:.2f} on it; {decides:.2f} of what decides lies on it. {' '.join(alt)}"
    )


def _apart(matrices: list[Array]) -> float:
    """Return the largest mean difference of rows (half the sum of absolute differences) from the first matrix."""
    return max(float(np.abs(m - matrices[0]).sum(axis=1).mean()) / 2 for m in matrices)
