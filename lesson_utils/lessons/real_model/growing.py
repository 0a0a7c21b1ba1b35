"""Figures of the models that we grow ourselves."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model.grow import LENGTH, MAP_PERIOD, PERIODS, Film, grow, measured, repeats
from lesson_utils.lessons.real_model.stored import label, stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.models import GPT

LAYERS = {1: "one layer", 2: "two layers"}
TRAP = 12  # the one period of the notebook's model that only seems to copy


def _steps(films: Mapping[int, Film]) -> list[int]:
    """Return the steps that all films have: one whose training was stopped has fewer."""
    return [moment.step for moment in min((film.moments for film in films.values()), key=len)]


def _controls(films: Mapping[int, Film]) -> dict[str, live.Control]:
    steps = tuple(_steps(films))
    return {
        "layers": live.Choice("layers", tuple(films), 2),
        "step": live.Choice("training step", steps, steps[0]),
    }


@live.lab(
    width=9.8,
    height=4.3,
    controls=_controls,
    neutral="Before the first step nothing has been learnt, and curves are drawn as far as the step.",
    example=lambda: {layers: grow(layers, 4, progress=False, every=2) for layers in (1, 2)},
)
def grow_lab(figure: "Figure", films: Mapping[int, Film]) -> live.Update:
    """Models of one and of two layers learn to copy: loss, scores and map at each step of training."""
    losses, scores, page = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    steps = _steps(films)
    dots, lines = {}, {}
    for layers, film in films.items():
        curve = [moment.loss for moment in film.moments[: len(steps)]]
        (lines[layers],) = losses.plot(steps, curve, color=plots.INK)
        (dots[layers],) = losses.plot([0], [0], "o", color=plots.ORANGE, ms=11, clip_on=False)
    losses.set(
        xlabel="training step (grey: the other model)",
        ylabel="loss of the copy, nats",
        xlim=(0, steps[-1]),
        ylim=(0, None),
    )
    looks = {"induction": (plots.BLUE, "-"), "previous": (plots.PURPLE, "--")}
    curves, marks = {}, {}
    for name, (colour, style) in looks.items():
        (curves[name],) = scores.plot(
            steps, np.zeros(len(steps)), style, color=colour, label=f"{name}{' token' * (name == 'previous')}"
        )
        (marks[name],) = scores.plot([0], [0], "o", color=colour, ms=9, clip_on=False)
    scores.legend(loc="upper left", fontsize=10.5)
    scores.set(xlabel="training step", ylabel="score of the best head", xlim=(0, steps[-1]), ylim=(0, 1))
    image = page.imshow(np.zeros((LENGTH, LENGTH)), cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=1)
    at = np.array([MAP_PERIOD - 0.5, LENGTH - 0.5])
    for off in (-0.7, 0.7):  # where an induction head looks
        page.plot(at - MAP_PERIOD + 1 + off, at, ":", color=plots.ORANGE, lw=1.3)
    ticks = range(0, LENGTH, MAP_PERIOD)
    page.set(xticks=ticks, yticks=ticks, xlabel="key at position", ylabel="query at position")
    page.spines[:].set_visible(False)

    def update(layers: int, step: int) -> str:
        film, so_far = films[layers], steps.index(step) + 1
        moment = film.moments[so_far - 1]
        for n in films:
            lines[n].set_data(steps[:so_far], [m.loss for m in films[n].moments[:so_far]])
            lines[n].set_color(plots.INK if n == layers else "#B5B5B5")
            dots[n].set_data([step], [moment.loss])
            dots[n].set_visible(n == layers)
        for name in looks:
            over = [getattr(m, name).max() for m in film.moments]
            curves[name].set_data(steps[:so_far], over[:so_far])
            marks[name].set_data([step], [over[so_far - 1]])
        last = film.moments[-1].induction
        layer, head = np.unravel_index(last.argmax(), last.shape)  # the one that ends as the best, all the time
        image.set_data(moment.map)
        losses.set_title(f"{LAYERS[layers].capitalize()}, step {step}:\n{moment.right:.0%} of the copy right")
        scores.set_title(f"Induction {moment.induction.max():.2f},\nprevious token {moment.previous.max():.2f}")
        page.set_title(f"Layer {layer}, head {head}: {moment.induction[layer, head]:.0%}\nlies on the stripe")
        return (
            f"{moment.right:.0%} of the copy is right at step {step} with {LAYERS[layers]}, at a loss of "
            f"{moment.loss:.2f} nats. Best induction score {moment.induction.max():.2f}, best previous-token score "
            f"{moment.previous.max():.2f}. The map of layer {layer}, head {head}, has "
            f"{moment.induction[layer, head]:.2f} of its weight on the stripe after the same symbol."
        )

    return update


@plots.still(9.4, 2.9)
def chain_drawn(figure: "Figure") -> str:
    """Draw how two heads copy: the first layer's tells each symbol what came before it, the second's asks for that."""
    ax = d.sheet(figure)
    ax.set_title("Two heads copy together: the second reads what the first has written")
    symbols = [*"RKBTRK", "?"]
    x = np.linspace(1.0, 8.3, len(symbols))
    boxes = [
        d.box(ax, at, 0.5, symbol, 0.6, colour=plots.GREY, size=14) for at, symbol in zip(x[:-1], symbols, strict=False)
    ]
    ax.text(x[-1], 0.5, symbols[-1], ha="center", va="center", size=18, weight="bold", color=plots.ORANGE)
    middle = [
        d.box(ax, at, 1.25, f"{symbol}, after {before}", 1.1, 0.38, plots.PURPLE, size=10.5)
        for at, symbol, before in zip(x[1:6], "KBTRK", "RKBTR", strict=True)
    ]
    for n, now in enumerate(middle):
        d.arrow(ax, boxes[n].top, (now.x - 0.2, now.bottom[1]), plots.PURPLE)
    d.arrow(ax, middle[4].top, (middle[1].x + 0.1, middle[1].top[1]), plots.BLUE, 2.6, bend=-0.28)
    d.arrow(ax, (middle[4].x + 0.58, 1.25), (x[-1], 0.76), plots.ORANGE, bend=0.15)
    ax.text(x[-1] + 0.05, 1.17, "B", size=13, weight="bold", color=plots.ORANGE, ha="center", va="center")
    ax.text(
        x[3] + 0.15,
        2.2,
        "layer 1, induction head: “who came after a K?” The B: so B is next",
        color=plots.BLUE,
        ha="center",
        va="center",
        size=11,
    )
    ax.text(0.05, 1.25, "layer 0,\nprevious-\ntoken head", color=plots.PURPLE, va="center", size=10.5)
    ax.text(0.05, 0.5, "symbols", color=plots.GREY, va="center", size=10.5)
    return (
        "The second head reads what the first has written. Below, the symbols R K B T R K and a question mark. "
        "Layer 0 tells each what came before it: B is “B, after K”. In layer 1 the last K looks for “after K”, finds "
        "B, and B goes to the question mark: it is the answer."
    )


@plots.still(9.4, 3.5)
def trap_plot(figure: "Figure", fixed: "GPT", grown: "GPT", score_of: Callable[[Any, int], Any]) -> str:
    """Draw share right and induction score by period, of a model trained with one period only and of one with many.

    Args:
        score_of: `score_of(weights, period)` returns the induction score of each map, as the learner writes it.
    """
    periods = range(PERIODS[0], PERIODS[1] + 1)
    right: dict[str, list[float]] = {}
    score: dict[str, list[float]] = {}
    for name, model in (("fixed", fixed), ("grown", grown)):
        tests = [repeats(np.random.default_rng(5), 64, (P, P)) for P in periods]
        seen = [measured(model, *test) for test in tests]
        right[name] = [share for _, share, _ in seen]
        scores = [np.mean(score_of(maps, P), axis=0) for (_, _, maps), P in zip(seen, periods, strict=True)]
        score[name] = [float(of_heads.max()) for of_heads in scores]
    at = np.arange(len(periods))
    for ax, of, what in zip(
        figure.subplots(1, 2), (right, score), ("share right", "best induction score"), strict=True
    ):
        ax.bar(at - 0.2, of["fixed"], 0.4, color=plots.ORANGE, label=f"one layer, trained on period {TRAP}")
        ax.bar(at + 0.2, of["grown"], 0.4, color=plots.BLUE, label=f"two layers, on periods {PERIODS[0]}–{PERIODS[1]}")
        ax.set_xticks(at, [str(P) for P in periods])
        ax.set(xlabel="period of the test", ylabel=what, ylim=(0, 1.3), yticks=(0, 0.5, 1))
        ax.legend(loc="upper left", fontsize=10)
    share, seems = (of["fixed"][periods.index(TRAP)] for of in (right, score))
    half = right["fixed"][periods.index(TRAP // 2)] > 0.5
    figure.axes[0].set_title(f"Right on {TRAP} ({share:.0%}) and on {'its half' if half else 'nothing else'}")
    figure.axes[1].set_title(f"At {TRAP}, the score says “induction”: {seems:.2f}")
    listed = "; ".join(
        f"{P}: {r:.2f}, score {s:.2f}" for P, r, s in zip(periods, right["fixed"], score["fixed"], strict=True)
    )
    return (
        f"Trained on period {TRAP} only, one layer is right on {share:.0%} there. By period, share right and "
        f"induction score: {listed}."
    )


POSITIONS = {
    "rotary": plots.BLUE,
    "learned": plots.ORANGE,
    "sinusoidal": plots.GREEN,
}


@plots.still(9.8, 3.9)
def positions_plot(figure: "Figure") -> str:
    """Draw how two layers learn to copy with each kind of positions, and where layer 0 looks in the end."""
    known: Any = stored()
    steps, kinds = known["positions_steps"], [str(kind) for kind in known["positions_kinds"]]
    right, pair, near = (known[f"positions_{name}"] for name in ("right", "pair", "near"))
    curves, scores, profile = figure.subplots(1, 3, width_ratios=(1.1, 1, 1))
    for kind, runs, pairs_ in zip(kinds, right, pair, strict=True):
        curves.plot(steps, runs.T, color=POSITIONS[kind], lw=1.5)
        scores.plot(pairs_[:, -1, 0], runs[:, -1], "o", color=POSITIONS[kind], ms=9, alpha=0.85, label=kind)
    curves.set(xlabel="training step", ylabel="share of the copy right", ylim=(0, 1.02), xlim=(0, steps[-1]))
    scores.set(
        xlabel="best previous-token score, layer 0", xlim=(0, 1), ylim=(0, 1.02), ylabel="share right at the end"
    )
    scores.legend(loc="lower right", fontsize=10.5)
    no_pair = [
        (kind, float(run))
        for kind, runs, pairs_ in zip(kinds, right[:, :, -1], pair[:, :, -1, 0], strict=True)
        for run, previous in zip(runs, pairs_, strict=True)
        if run > 0.5 and previous < 0.25
    ]
    at = range(near.shape[-1])
    for kind in kinds:
        n = kinds.index(kind)
        seed = int(right[n, :, -1].argmax())
        head = int(near[n, seed, :, 1].argmax())
        profile.plot(at, near[n, seed, head], "o-", color=POSITIONS[kind], ms=5)
    profile.set(xlabel="places back from the query", ylabel="mean weight, layer 0", ylim=(0, 1), xticks=range(0, 9, 2))
    curves.set_title("Three runs with each kind\nof positions", size=11.5)
    scores.set_title(f"{len(no_pair)} runs copy without\na previous-token head", size=11.5)
    profile.set_title("Where layer 0 looks\nin each kind's best run", size=11.5)
    label(figure, "stored runs of small models, as above")
    ends = zip(kinds, right[:, :, -1], pair[:, :, -1, 0], strict=True)
    listed = "; ".join(
        f"{kind}: {', '.join(f'{run:.2f} ({before:.2f})' for run, before in zip(*two, strict=True))}"
        for kind, *two in ends
    )
    return (
        f"{len(no_pair)} runs copy more than half without a previous-token head. Share right after {steps[-1]} steps, "
        f"and the best previous-token score of layer 0, for three seeds: {listed}. Stored results."
    )


def without_table() -> str:
    """List what the runs of `positions_plot` get right without each head of layer 0."""
    known: Any = stored()
    lines = [f"{'right at the end':22}all heads   without one head of layer 0   without the other"]
    runs = zip(known["positions_kinds"], known["positions_right"][:, :, -1], known["positions_without"], strict=True)
    for kind, right, without in runs:
        for seed, (whole, (one, other)) in enumerate(zip(right, without, strict=True)):
            lines.append(f"{f'{kind}, seed {seed}':22}{whole:9.0%} {one:29.0%} {other:19.0%}")
    return "\n".join(lines)
