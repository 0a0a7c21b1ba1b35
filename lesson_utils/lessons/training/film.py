"""The training of one model, kept as a film: a loss curve that grows, and snapshots to go back to."""

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.training.experiment import LENGTH, dates_of, exact, rungs, transformer
from lesson_utils.maths import models, tasks, training
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARES = (0, 0.04, 0.08, 0.1, 0.12, 0.16, 0.2, 0.25, 1)  # of all steps: close together where most happens
LONGEST = 22  # characters of a typed date
SMOOTH = 10  # steps; a point of the curve is a mean over so many
END = "∎"
DATES = 200  # held out, that each snapshot is judged by
REDRAW = 0.7  # seconds between two pictures of the curve, at least


class Film(NamedTuple):
    """One training, and what the model knew at some of its steps."""

    total: int  # steps
    history: training.History
    right: dict[int, float]  # step -> share of held-out dates that are right to the last symbol
    kept: dict[int, models.Transformer]

    @property
    def steps(self) -> list[int]:
        return list(self.kept)

    def at(self, step: int) -> models.Transformer:
        """Return the model as it was at a step."""
        if step not in self.kept:
            raise ValueError(f"step={step} was not kept; there are {', '.join(map(str, self.kept))}")
        return self.kept[step]


class Camera:
    """A callback of `training.fit` that makes a film, and draws the loss curve meanwhile.

    Args:
        model: the one that is to be trained.
        steps: for how many steps.
    """

    def __init__(self, model: models.Transformer, steps: int) -> None:
        self.model, self.steps = model, {round(steps * share) for share in SHARES}
        self.film = Film(steps, training.History(), {}, {})
        self._shown: Any = None
        self._next = 0.0  # when the curve is drawn again
        self._keep(0)

    def watch(self) -> None:
        """Show the curve, here; it grows while the model is trained."""
        from IPython.display import display

        self._shown = display(curve(self.film), display_id=True)

    def __call__(self, step: int, loss: float, history: training.History) -> None:
        self.film = self.film._replace(history=history)
        if step in self.steps:
            self._keep(step)
            if self._shown is not None and (step == self.film.total or time.monotonic() > self._next):
                self._shown.update(curve(self.film))
                self._next = time.monotonic() + REDRAW

    def _keep(self, step: int) -> None:
        kept = models.Transformer(self.model.config, np.random.default_rng(0))
        for own, param in zip(kept.params().values(), self.model.params().values(), strict=True):
            own.value[...] = param.value
        self.film.kept[step] = kept
        self.film.right[step] = exact(kept, dates_of(n=DATES))


def smooth(losses: Any) -> tuple[Array, Array]:
    """Steps and means of losses, a point for each `SMOOTH` steps; the first loss stands alone."""
    losses = np.asarray(losses, float)
    ends = np.arange(SMOOTH, len(losses) + 1, SMOOTH)
    means = [losses[end - SMOOTH : end].mean() for end in ends]
    return np.array([1, *ends]), np.array([losses[0], *means])


def draw_rungs(ax: "Axes", right: float) -> None:
    """Draw what guessing reaches, as dashed lines with names at their right ends."""
    for name, loss in rungs().items():
        ax.axhline(loss, color=plots.ORANGE, ls="--", lw=1.3, zorder=0.5)
        ax.text(right, loss + 0.03, name, color=plots.ORANGE, ha="right", va="bottom", size=10, zorder=0.5)


@plots.still(8.0, 3.5)
def curve(figure: "Figure", film: Film) -> str:
    """Draw the loss so far, and what guessing reaches."""
    ax = figure.add_subplot(xlim=(0, film.total), ylim=(0, 3.6))
    ax.set(xlabel="training step", ylabel="loss (nats a symbol)")
    draw_rungs(ax, film.total * 0.995)
    step = max(film.right)
    title = f"After {step:,} steps {film.right[step]:.1%} of the held-out dates are right"
    alt = ""
    if film.history.losses:
        x, y = smooth(film.history.losses)
        ax.plot(x, y, color=plots.BLUE)
        below = next((int(n) for n, loss in zip(x, y, strict=True) if loss < rungs()["all before"]), None)
        alt = f" The loss falls from {y[0]:.2f} to {y[-1]:.2g} nats."
        if below:
            alt += f" It passes the lowest rung, {rungs()['all before']:.2f}, at about step {below}."
    ax.set_title(title)
    listed = ", ".join(f"{name} {loss:.2f}" for name, loss in rungs().items())
    return f"{title}.{alt} Rungs of those who guess: {listed}."


# --- The film ---------------------------------------------------------------------------------------------------------


class Frame(NamedTuple):
    """The answer of the model to a date at one step."""

    read: str
    left_out: str  # characters that are not in its vocabulary
    written: str  # with END, if it stopped by itself
    weights: Array  # of cross-attention, (h, T, S)


def frame(model: models.Transformer, typed: str) -> Frame:
    known = tasks.WRITTEN.characters
    left_out = "".join(sorted({c for c in typed if c not in known}))
    read = "".join(c for c in typed if c in known) or "1"
    source = tasks.WRITTEN.encode(read)[None]
    ids = model.decode(source, LENGTH)  # (1, T)
    _, cache = model.forward(source, np.concatenate([[[tasks.BOS]], ids[:, :-1]], axis=1))
    written = "".join(END if i == tasks.EOS else tasks.ISO.decode([i]) or "·" for i in ids[0].tolist())
    return Frame(read, left_out, written, model.maps(cache)["cross"][-1][0])


def _example() -> Film:
    """Make a film of a model that has learnt nothing: its numbers are shaken from step to step."""
    camera, rng = Camera(transformer(), 100), np.random.default_rng(0)
    for step in sorted(camera.steps)[1:]:
        for param in camera.model.params().values():
            param.value += 0.05 * rng.normal(size=param.value.shape).astype(param.value.dtype)
        camera(step, 0.1, training.History(list(np.linspace(3, 0.1, step))))
    return camera.film


@live.lab(
    width=9.4,
    height=4.4,
    neutral="At step 0 the model has learnt nothing: no symbol is right, and the map shows no pattern.",
    controls=lambda film: {
        "step": live.Choice("training step", tuple(film.steps), 0),
        "head": live.Choice("head", ("mean", *(str(h) for h in range(film.at(0).config.num_heads))), "mean"),
        "typed": live.Word("a date", "March 3, 2021", longest=LONGEST),
    },
    example=lambda: (_example(),),
)
def film_lab(figure: "Figure", film: Film) -> live.Update:
    """Drag the training step: what the model makes of a date, where it looks meanwhile, and how far the loss is."""
    ask = lru_cache(128)(lambda step, typed: frame(film.at(step), typed))
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    image = left.imshow(np.zeros((LENGTH, LONGEST)), cmap=cmap, vmin=0, vmax=1, aspect="auto", zorder=1)
    image.set_extent((-0.5, LONGEST - 0.5, LENGTH - 0.5, -0.5))
    figure.colorbar(image, ax=left, label="weight", shrink=0.7, ticks=(0, 0.5, 1), pad=0.01)
    left.set(xlim=(-2, LONGEST - 0.4), ylim=(LENGTH - 0.4, -2), xticks=(), yticks=(), autoscale_on=False)
    left.set(xlabel="what it reads →", ylabel="← what it writes")
    left.spines[:].set_visible(False)
    font: dict[str, Any] = {"ha": "center", "va": "center", "family": "DejaVu Sans Mono", "size": 12, "zorder": 3}
    columns = [left.text(n, -1.1, "", **font) for n in range(LONGEST)]
    rows = [left.text(-1.2, n, "", **font) for n in range(LENGTH)]
    losses = film.history.losses
    x, y = smooth(losses) if losses else (np.zeros(1), np.zeros(1))
    right.plot(x, y, color=plots.BLUE, lw=1.6, zorder=0.6)
    right.set(xlim=(0, film.total), ylim=(0, 3.6), xlabel="training step", ylabel="loss (nats a symbol)")
    draw_rungs(right, film.total * 0.99)
    (dot,) = right.plot([0], [0], "o", color=plots.INK, ms=9, zorder=3, clip_on=False)

    def update(step: int, typed: str, head: str) -> str:
        seen = ask(step, typed)
        T, S = len(seen.written), len(seen.read)
        weights = seen.weights.mean(axis=0) if head == "mean" else seen.weights[int(head)]  # (T, S)
        image.set_data(weights)
        image.set_extent((-0.5, S - 0.5, T - 0.5, -0.5))
        for n, label in enumerate(columns):
            label.set_text(("␣" if seen.read[n] == " " else seen.read[n]) if n < S else "")
        for n, label in enumerate(rows):
            label.set_text(seen.written[n] if n < T else "")
        written = seen.written.removesuffix(END)
        title = f"Step {step:,}: {seen.read} → {written}"
        left.set_title(title if len(title) <= 46 else f"{seen.read} →\n{written}")
        at = int(np.abs(x - step).argmin())
        dot.set_data([step], [y[at]])
        right.set_title(f"{film.right[step]:.0%} of held-out dates right")
        note = f" Left out, as it knows no such character: {seen.left_out}." if seen.left_out else ""
        if not typed:
            note = " Nothing was typed: it got 1."
        peaks = "; ".join(
            f"{seen.written[t]}: {seen.read[int(row.argmax())]} {row.max():.2f}" for t, row in enumerate(weights)
        )
        which = "mean of the heads" if head == "mean" else f"head {head}"
        return (
            f"{title}. Loss {y[at]:.2f}, {film.right[step]:.0%} of held-out dates right.{note} "
            f"Cross-attention, {which}, largest weight of each symbol written: {peaks}."
        )

    return update
