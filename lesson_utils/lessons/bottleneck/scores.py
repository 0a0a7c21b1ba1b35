"""The four scores: what they cost, and small models that learn with them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.bottleneck import experiment
from lesson_utils.maths import training
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq
from lesson_utils.maths.scores import score_forward

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = ("dot", "general", "additive", "concat")


def score_params(kind: str, d: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Random parameters of a score between vectors of width d."""
    shapes: dict[str, list[tuple[int, ...]]] = {
        "dot": [],
        "general": [(d, d)],
        "additive": [(d, d), (d, d), (d,)],
        "concat": [(2 * d, d), (d,)],
    }
    return tuple(rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes[kind])


def score_table(d: int = 64, T: int = 20) -> dict[str, tuple[int, int, float]]:
    """Count for each score: parameters, operations for one pair alone, and for a pair among T queries and T keys.

    The operations are counted as they are done, by running `scores.score_forward` on arrays that count.
    """
    table = {}
    for kind in SCORES:
        params = score_params(kind, d, np.random.default_rng(0))
        alone, many = (_count_operations(kind, n, d, params) for n in (1, T))
        table[kind] = sum(p.size for p in params), alone, many / T**2
    return table


def _count_operations(kind: str, T: int, d: int, params: Sequence[Array]) -> int:
    done = 0

    class Counting(np.ndarray):
        """Adds up what is computed with it: 2 for a multiplication and an addition in a product, 1 for others."""

        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **others: Any) -> Any:
            nonlocal done
            plain = [np.asarray(x) for x in inputs]
            result = getattr(ufunc, method)(*plain, **others)
            done += result.size * (2 * plain[0].shape[-1] if ufunc is np.matmul else 1)
            return result.view(Counting)

    queries, keys = (np.ones((1, T, d)).view(Counting) for _ in range(2))
    score_forward(kind, queries, keys, params)
    return done


# --- The four at work -------------------------------------------------------------------------------------------------

SMALL_WORD = "bottleneck"
SNAPSHOTS = (0, 50, 100, 200, 400, 600)  # after so many steps


class Snapshot(NamedTuple):
    """A model on the way."""

    alignment: Array  # where it looks for the letters of `SMALL_WORD` backwards, (T, S)
    answer: str  # what it makes of that word
    accuracy: float  # the share of strings of that length that come out right


def snapshot(model: Seq2Seq) -> Snapshot:
    alignment, answer = experiment.looks(model, SMALL_WORD), experiment.answer(model, SMALL_WORD)[0]
    return Snapshot(alignment, answer, experiment.accuracy(model, len(SMALL_WORD)))


def small_model(kind: str, steps: int = SNAPSHOTS[-1]) -> tuple[dict[int, Snapshot], training.History]:
    """Train a model with one of the scores on strings of 3 to 10 letters; what it did on the way, and its losses."""
    model = experiment.untrained(kind)
    on_the_way = {0: snapshot(model)}

    def look(step: int, loss: float, history: training.History) -> None:
        if step in SNAPSHOTS:
            on_the_way[step] = snapshot(model)

    history = experiment.fit(model, steps, longest=len(SMALL_WORD), peak=5e-3, callback=look)
    return on_the_way, history


@plots.still(9.6, 2.9)
def four_maps(figure: "Figure", models: Mapping[str, Mapping[int, Snapshot]]) -> str:
    """Draw the maps of the four scores side by side, at the end of training."""
    letters = list(SMALL_WORD)
    axes = figure.subplots(1, len(models), sharey=True)
    found = []
    for ax, (kind, snapshots) in zip(axes, models.items(), strict=True):
        alignment = snapshots[max(snapshots)].alignment
        hits, weight = experiment.mirrored(alignment), experiment.weight_on(alignment)
        plots.draw_heatmap(
            ax, alignment, letters[::-1], letters, f"{kind}: {weight:.2f}", "to be written", "read", False
        )
        ax.label_outer()
        found.append(f"{kind} {weight:.2f}, the largest of its row for {hits} of {len(letters)}")
    figure.colorbar(axes[-1].images[0], ax=list(axes), label="weight", pad=0.01)
    figure.suptitle("Mean weight on the letter that is copied", x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    return (
        f"Mean weight on the letter that is copied: {'; '.join(found)}. Four heat maps, the letters to be written by "
        f"the letters read, for {SMALL_WORD!r}."
    )


@live.lab(
    width=7.4,
    height=4.2,
    neutral="Before training there is neither a diagonal nor a right answer.",
    example=lambda: {kind: {step: snapshot(experiment.untrained(kind, 16)) for step in SNAPSHOTS} for kind in SCORES},
    score=live.Choice("score", SCORES, "general"),
    step=live.Choice("after training step", SNAPSHOTS, 0),
)
def score_lab(figure: "Figure", four: Mapping[str, Mapping[int, Snapshot]]) -> live.Update:
    """Show the map of one score, in the course of its training."""
    letters = list(SMALL_WORD)
    n = len(letters)
    ax = figure.add_subplot()
    plots.draw_heatmap(ax, np.zeros((n, n)), letters[::-1], letters, "\n", "to be written", "read", False)
    image = ax.images[0]
    image.set_zorder(3)  # above the axes, which then need not be drawn again when it changes
    figure.colorbar(image, ax=ax, label="weight", pad=0.02)

    def update(score: str, step: int) -> str:
        snapshots = four[score]
        now = snapshots[min(snapshots, key=lambda done: abs(done - step))]  # fewer, where a reader trained for less
        image.set_data(now.alignment)
        hits, weight = experiment.mirrored(now.alignment), experiment.weight_on(now.alignment)
        finding = f"{hits} of {n} look most at the letter they copy"
        ax.set_title(f"{score}, step {step}: {finding}\nwrites “{now.answer}”; {now.accuracy:.0%} of strings right")
        return (
            f"{score} score after {step} steps: for {SMALL_WORD!r} the model writes {now.answer!r}; {hits} of {n} "
            f"letters look most at the letter they copy, which gets a weight of {weight:.2f} on average. Of random "
            f"strings of this length {now.accuracy:.0%} are all right."
        )

    return update
