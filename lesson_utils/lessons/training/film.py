"""The training of one model, kept as a film: a loss curve that grows, and snapshots to go back to."""

import time
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.training.experiment import LENGTH, dates_of, predicted, rungs, transformer
from lesson_utils.maths import models, tasks, training
from lesson_utils.maths.checks import Array
from lesson_utils.maths.machine import keep_freed_memory
from lesson_utils.maths.progress_bar import Bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARES = (0, 0.04, 0.08, 0.1, 0.12, 0.16, 0.2, 0.25, 1)  # of all steps: close together where most happens
LONGEST = 22  # characters of a typed date
SMOOTH = 10  # steps; a point of the curve is a mean over so many
END = "∎"
PLACES = tuple("yyyy-mm-dd" + END)
DATES = 500  # held out, that each snapshot is judged by
REDRAW = 0.7  # seconds between two pictures of the curve, at least


class Film(NamedTuple):
    """One training, and what the model knew at some of its steps."""

    total: int  # steps
    history: training.History
    right: dict[int, float]  # step -> share of held-out dates that are right to the last symbol
    places: dict[int, Array]  # step -> the same by symbol, (11,)
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
    """Counts the steps of a training, keeps the model at some of them, and draws the loss curve meanwhile.

    Args:
        model: the one that is to be trained.
        total: for how many steps.
    """

    def __init__(self, model: models.Transformer, total: int) -> None:
        self.model, self.kept_at = model, {round(total * share) for share in SHARES}
        self.film = Film(total, training.History(), {}, {}, {})
        self._keep(0)

    def steps(self) -> Iterator[int]:
        """Yield 1, 2, … total, with a bar, and with a curve that grows; matrices are multiplied on one thread."""
        from IPython.display import display

        shown, drawn, started = display(curve(self.film), display_id=True), 0.0, time.perf_counter()
        keep_freed_memory()
        with training.single_thread(), closing(Bar(self.film.total, disable=False)) as bar:
            for step in range(1, self.film.total + 1):
                yield step
                history = self.film.history
                history.seconds = time.perf_counter() - started
                bar.advance(float(np.mean(history.losses[-50:])))
                if step in self.kept_at:
                    self._keep(step)
                    if shown is not None and (step == self.film.total or time.monotonic() > drawn + REDRAW):
                        shown.update(curve(self.film))
                        drawn = time.monotonic()

    def note(self, loss: float, norm: float) -> None:
        """Write down the loss of a step, and the length of its gradient."""
        self.film.history.losses.append(loss)
        self.film.history.norms.append(norm)

    def _keep(self, step: int) -> None:
        kept = models.Transformer(self.model.config, np.random.default_rng(0))
        for own, param in zip(kept.params().values(), self.model.params().values(), strict=True):
            own.value[...] = param.value
        dates = dates_of(n=DATES)
        hits = predicted(kept, dates) == dates[1][:, 1:]  # (N, 11)
        self.film.kept[step] = kept
        self.film.right[step] = float(hits.all(axis=1).mean())
        self.film.places[step] = hits.mean(axis=0)


def smooth(losses: Any) -> tuple[Array, Array]:
    """Return steps and means of losses, a point for each `SMOOTH` steps; the first loss stands alone."""
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
        lowest = rungs()["all before"]
        below = next((n for n, loss in enumerate(film.history.losses, start=1) if loss < lowest), None)
        alt = f" The loss falls from {y[0]:.2f} to {y[-1]:.2g} nats."
        if below:
            alt += f" It is first below the lowest rung, {lowest:.2f}, at step {below}."
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
    for step in sorted(camera.kept_at)[1:]:
        for param in camera.model.params().values():
            param.value += 0.05 * rng.normal(size=param.value.shape).astype(param.value.dtype)
        camera.film.history.losses[:] = np.linspace(3, 0.1, step)
        camera._keep(step)
    return camera.film


@live.lab(
    width=9.4,
    height=4.6,
    neutral="At step 0 the model has learnt nothing: no symbol is right, and the map shows no pattern.",
    controls=lambda film: {
        "step": live.Choice("training step", tuple(film.steps), 0),
        "head": live.Choice("head", ("mean", *(str(h) for h in range(film.at(0).config.num_heads))), "mean"),
        "typed": live.Word("a date", "March 3, 2021", longest=LONGEST),
    },
    example=lambda: (_example(),),
)
def film_lab(figure: "Figure", film: Film) -> live.Update:
    """Drag the training step: where the model looks for each symbol of a date, and how often that symbol is right."""
    ask = lru_cache(128)(lambda step, typed: frame(film.at(step), typed))
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1), gridspec_kw={"wspace": 0.03})
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    image = left.imshow(np.zeros((LENGTH, LONGEST)), cmap=cmap, vmin=0, vmax=1, aspect="auto", zorder=1)
    left.set(xlim=(-2, LONGEST - 0.4), ylim=(LENGTH - 0.4, -2), xticks=(), yticks=(), autoscale_on=False)
    left.set(xlabel="what it reads →  (darker: more attention)", ylabel="← what it writes")
    left.spines[:].set_visible(False)
    font: dict[str, Any] = {"ha": "center", "va": "center", "family": "DejaVu Sans Mono", "size": 12, "zorder": 3}
    columns = [left.text(n, -1.1, "", **font) for n in range(LONGEST)]
    rows = [left.text(0, n, "", **font) for n in range(LENGTH)]
    bars = right.barh(range(LENGTH), np.zeros(LENGTH), height=0.72, color=plots.BLUE)
    right.set(xlim=(0, 1), ylim=(LENGTH - 0.4, -2), xticks=(0, 0.5, 1), yticks=range(LENGTH))
    right.set_yticklabels(PLACES, family="DejaVu Sans Mono")
    right.set_xlabel("share right, held-out dates")
    right.spines["left"].set_visible(False)
    right.tick_params(axis="y", length=0)

    def update(step: int, typed: str, head: str) -> str:
        seen = ask(step, typed)
        T, S = len(seen.written), len(seen.read)
        weights = seen.weights.mean(axis=0) if head == "mean" else seen.weights[int(head)]  # (T, S)
        image.set_data(weights)
        image.set_extent((-0.5, S - 0.5, T - 0.5, -0.5))
        left.set_xlim(-1.8, max(S, 13) - 0.4)
        for n, label in enumerate(columns):
            label.set_text(("␣" if seen.read[n] == " " else seen.read[n]) if n < S else "")
        for n, label in enumerate(rows):
            label.set_text(seen.written[n] if n < T else "")
            label.set_x(-1.1)
        for bar, share in zip(bars, film.places[step], strict=True):
            bar.set_width(share)
        written = seen.written.removesuffix(END)
        title = f"Step {step:,}: {seen.read} → {written}"
        left.set_title(title if len(title) <= 46 else f"{seen.read} →\n{written}")
        right.set_title(f"{film.right[step]:.0%} of dates all right")
        note = f" Left out, as it knows no such character: {seen.left_out}." if seen.left_out else ""
        if not typed:
            note = " Nothing was typed: it got 1."
        peaks = "; ".join(
            f"{seen.written[t]}: {seen.read[int(row.argmax())]} {row.max():.2f}" for t, row in enumerate(weights)
        )
        which = "mean of the heads" if head == "mean" else f"head {head}"
        shares = ", ".join(f"{place} {share:.2f}" for place, share in zip(PLACES, film.places[step], strict=True))
        return (
            f"{title}. {film.right[step]:.0%} of held-out dates right in every symbol.{note} "
            f"Cross-attention, {which}, largest weight of each symbol written: {peaks}. "
            f"Share of held-out dates right in each symbol: {shares}."
        )

    return update


# --- What comes late --------------------------------------------------------------------------------------------------


def late(film: Film, step: int) -> list[tuple[float, float]]:
    """Count on held-out dates, at a step, how often two late symbols are wrong, and what is written in their place.

    Returns:
        for the year's third digit and the day's first: the share that is wrong; and of these, the share that has the
        digit of the next place.
    """
    dates = dates_of(n=2000)
    said, true = predicted(film.at(step), dates), dates[1][:, 1:]
    found = []
    for place in (2, 8):
        wrong = said[:, place] != true[:, place]
        found.append((float(wrong.mean()), float((said[wrong, place] == true[wrong, place + 1]).mean())))
    return found


def late_table(film: Film) -> str:
    """List what `late` counts at three steps."""
    lines = [f"{'':10}{'year, third digit':26}day, first digit", "step      " + "wrong  of these, the next  " * 2]
    for step in (round(film.total * share) for share in (0.12, 0.16, 0.2)):
        lines.append(f"{step:4}" + "".join(f"{wrong:11.2f}{further:16.2f}" for wrong, further in late(film, step)))
    return "\n".join(line.rstrip() for line in lines)
