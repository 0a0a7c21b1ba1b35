"""Small models that differ in their score, and in when they ask; watched while they learn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.bottleneck import controls, experiment
from lesson_utils.maths import tasks, training
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Seq2Seq

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AFTER = ("dot", "general", "concat")  # Luong's: they ask with the state after the step
BEFORE = ("concat before", "Bahdanau")  # the control: Luong's concat, asked before the step; and Bahdanau's model
SMALL = AFTER + BEFORE
SMALL_WORD = "bottleneck"
SNAPSHOTS = (0, 25, 50, 75, 100, 200, 400, 600)  # after so many steps
TESTS = 200  # strings


class Snapshot(NamedTuple):
    """A model on the way."""

    alignment: Array  # where it looks for the letters of `SMALL_WORD` backwards, (T, S)
    answer: str  # what it makes of that word
    rows: float  # share of the rows, of `TESTS` strings of that length, that peak on the letter they write
    letters: float  # share of the letters that are right, given the right ones before
    strings: float  # share of the strings that come out right as a whole


def snapshot(model: Seq2Seq) -> Snapshot:
    S = len(SMALL_WORD)
    source, target = tasks.reversal(np.random.default_rng(S), TESTS, S)
    logits, alignment = model.forward(source, tasks.with_ends(target)[:, :-1])
    assert alignment is not None
    return Snapshot(
        alignment=experiment.looks(model, SMALL_WORD),
        answer=experiment.answer(model, SMALL_WORD)[0],
        rows=experiment.mirrored(alignment) / target.size,
        letters=float((logits[:, :S].argmax(axis=-1) == target).mean()),
        strings=experiment.accuracy(model, S, TESTS),
    )


def small_model(kind: str, steps: int = SNAPSHOTS[-1], seed: int = 0) -> tuple[dict[int, Snapshot], training.History]:
    """Train one of `SMALL` on strings of 3 to 10 letters; what it did on the way, and its losses."""
    score = {"Bahdanau": "additive"}.get(kind, kind.removesuffix(" before"))
    model = experiment.untrained(score, seed=seed)
    if kind == "concat before":
        model = controls.asking_before(model)
    on_the_way = {0: snapshot(model)}

    def look(step: int, loss: float, history: training.History) -> None:
        if step in SNAPSHOTS:
            on_the_way[step] = snapshot(model)

    history = experiment.fit(model, steps, longest=len(SMALL_WORD), peak=5e-3, seed=seed, callback=look)
    return on_the_way, history


@plots.still(9.6, 3.3)
def small_maps(figure: "Figure", models: Mapping[str, Mapping[int, Snapshot]]) -> str:
    """Draw the maps of the small models side by side, at the end of training."""
    letters = list(SMALL_WORD)
    axes = figure.subplots(1, len(models), sharey=True)
    last = {kind: snapshots[max(snapshots)] for kind, snapshots in models.items()}
    for ax, (kind, now) in zip(axes, last.items(), strict=True):
        title = f"{kind}\n{now.rows:.0%}"
        plots.draw_heatmap(ax, now.alignment, letters[::-1], letters, title, "to be written", "read", False)
        ax.label_outer()
    figure.colorbar(axes[-1].images[0], ax=list(axes), label="weight", pad=0.01)
    after, before = ([now.rows for kind, now in last.items() if kind in group] for group in (AFTER, BEFORE))
    finding = (
        f"Rows that peak on their letter: {min(after):.0%} or more if asked after the step, "
        f"{max(before):.0%} or fewer if before"
    )
    figure.suptitle(finding, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    found = "; ".join(f"{kind} {now.rows:.0%}" for kind, now in last.items())
    return f"{finding}: {found}. Heat maps, the letters to be written by the letters read, for {SMALL_WORD!r}."


@live.lab(
    width=9.4,
    height=4.2,
    example=lambda: {kind: {step: snapshot(experiment.untrained("dot", 16)) for step in SNAPSHOTS} for kind in SMALL},
    score=live.Choice("model", SMALL, "general"),
    step=live.Choice("after training step", SNAPSHOTS, 100),
)
def learning_lab(figure: "Figure", models: Mapping[str, Mapping[int, Snapshot]]) -> live.Update:
    """Show the map of a small model in the course of its training, beside three ways to count what is right."""
    letters = list(SMALL_WORD)
    n = len(letters)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    plots.draw_heatmap(left, np.zeros((n, n)), letters[::-1], letters, "\n", "to be written", "read", False)
    image = left.images[0]
    image.set_zorder(3)  # above the axes, which then need not be drawn again when it changes
    places = np.arange(len(SNAPSHOTS))
    right.set(xlim=(-0.3, len(SNAPSHOTS) + 1.7), ylim=(-0.03, 1.05), xlabel="training step", title="\n")
    right.set_xticks(places, [str(step) for step in SNAPSHOTS])
    right.set_yticks((0, 0.5, 1), ("0 %", "50 %", "100 %"))
    curves = {
        "rows": right.plot(places, places, "-", color=plots.BLUE, marker="o")[0],
        "letters": right.plot(places, places, "-.", color=plots.GREEN, marker="^")[0],
        "strings": right.plot(places, places, "--", color=plots.ORANGE, marker="s")[0],
    }
    for (name, curve), y in zip(curves.items(), (0.62, 0.5, 0.38), strict=True):
        right.text(len(SNAPSHOTS) - 0.6, y, f"{name} right", color=curve.get_color(), va="center", weight="bold")
    now_line = right.axvline(0, color="#BBBBBB", lw=1.2, zorder=0)

    def update(score: str, step: int) -> str:
        snapshots = models[score]
        steps = [min(snapshots, key=lambda done: abs(done - wanted)) for wanted in SNAPSHOTS]  # a reader may train less
        now = snapshots[steps[SNAPSHOTS.index(step)]]
        image.set_data(now.alignment)
        for name, curve in curves.items():
            curve.set_ydata([getattr(snapshots[done], name) for done in steps])
        now_line.set_xdata([SNAPSHOTS.index(step)] * 2)
        left.set_title(f"{score}, step {step}:\nwrites “{now.answer}”")
        finding = f"rows {now.rows:.0%}, letters {now.letters:.0%}, strings {now.strings:.0%}"
        right.set_title(f"Right after {step} steps:\n{finding}")
        listed = ", ".join(
            f"{done}: {s.rows:.0%}, {s.letters:.0%}, {s.strings:.0%}" for done, s in sorted(snapshots.items())
        )
        return (
            f"{score} after {step} steps writes {now.answer!r} for {SMALL_WORD!r}. Right of random strings of this "
            f"length: {finding}. By training step: {listed}."
        )

    return update
