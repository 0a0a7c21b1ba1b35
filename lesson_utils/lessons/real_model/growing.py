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


def _controls(films: Mapping[int, Film]) -> dict[str, live.Control]:
    steps = tuple(moment.step for moment in films[2].moments)
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
    steps = [moment.step for moment in films[2].moments]
    dots, lines = {}, {}
    for layers, film in films.items():
        curve = [moment.loss for moment in film.moments]
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
            f"{moment.induction[layer, head]:.2f} of its weight on the stripe behind the same symbol."
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
        "B, and B is the answer."
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


@plots.still(9.0, 3.6)
def how_soon(figure: "Figure") -> str:
    """Draw how soon two layers learn to copy with each kind of positions: two seeds each, stored."""
    known: Any = stored()
    names = {
        "rotary": plots.BLUE,
        "learned": plots.ORANGE,
        "sinusoidal": plots.GREEN,
        "alibi": plots.PURPLE,
        "none": plots.INK,
    }
    ax = figure.add_subplot()
    steps, ends = known["positions_steps"], {}
    for name, colour in names.items():
        runs = known[f"positions_{name}"]  # (seeds, moments)
        ax.plot(steps, runs.T, color=colour, lw=1.5)
        ends[name] = runs[:, -1]
    heights = _apart({name: float(end.max()) for name, end in ends.items()}, 0.085)
    for name, height in heights.items():
        text = {"alibi": "ALiBi"}.get(name, name)
        ax.text(steps[-1] * 1.01, height, text, color=names[name], va="center", weight="bold")
    ax.set(xlim=(0, steps[-1] * 1.16), ylim=(0, 1.02), xlabel="training step", ylabel="share of the copy right")
    first = {
        name: [int(steps[np.argmax(run > 0.5)]) if (run > 0.5).any() else None for run in known[f"positions_{name}"]]
        for name in names
    }
    ax.set_title("Rotary positions get there first; two seeds each")
    label(figure, "stored runs of small models, as above")
    listed = "; ".join(
        f"{name}: {', '.join(f'{end:.2f}' for end in ends[name])}, half right at steps "
        f"{', '.join(str(s) if s else 'none' for s in first[name])}"
        for name in names
    )
    return (
        f"Rotary positions get there first. Share right after {steps[-1]} steps, two seeds each: {listed}. Stored "
        f"results."
    )


def _apart(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Move labels up until they are at least `gap` apart."""
    moved: dict[str, float] = {}
    last = -1.0
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        moved[name] = last = max(height, last + gap)
    over = max(last - 1.0, 0.0)
    return {name: height - over if height > 1.0 - 4 * gap else height for name, height in moved.items()}
