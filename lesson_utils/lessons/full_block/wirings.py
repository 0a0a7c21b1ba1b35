"""Which outputs depend on which inputs, in three wirings."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils import plots
from lesson_utils._checks import Array
from lesson_utils.models import GPT, Encoder, Transformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def moved(run: Callable[[Array], Array], ids: Array) -> Array:
    """Which outputs move when one input symbol is changed: (outputs, inputs), 1 where the output is not the same."""
    before = run(ids)  # (1, T_out, V)
    columns = []
    for j in range(ids.shape[1]):
        changed = ids.copy()
        changed[0, j] += 1
        columns.append(np.abs(run(changed) - before).max(axis=-1)[0] > 1e-6)
    return np.stack(columns, axis=1).astype(float)


def wirings(encoder: Encoder, gpt: GPT, both: Transformer, T: int = 6) -> dict[str, Array]:
    """For three models: which outputs depend on which inputs, measured by changing them."""
    source, target = np.random.default_rng(0).integers(3, 12, size=(2, 1, T))
    return {
        "Encoder-only": moved(lambda ids: encoder.forward(ids)[0][:, :, 0], source),
        "Decoder-only": moved(lambda ids: gpt.forward(ids)[0], source),
        "Both: target": moved(lambda ids: both.forward(source, ids)[0], target),
        "Both: source": moved(lambda ids: both.forward(ids, target)[0], source),
    }


@plots.still(9.0, 2.9)
def wirings_plot(figure: "Figure", reach: Mapping[str, Array]) -> str:
    """What each output can see, wiring by wiring."""
    alt = "Which output moves when an input symbol is changed."
    for ax, (name, matrix) in zip(figure.subplots(1, len(reach)), reach.items(), strict=True):
        share = matrix.mean()
        plots.heatmap(matrix, title=f"{name} {share:.0%}", row_label="", column_label="input", numbers=False, ax=ax)
        future = np.triu(matrix, 1).any()
        alt += f" {name}: {share:.0%} of the pairs; {'also' if future else 'never'} from inputs behind the output."
    figure.axes[0].set_ylabel("output")
    return alt
