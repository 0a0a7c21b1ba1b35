"""Notebook 08 calls these names as `lab.name`."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.classroom.formats import minus, power
from lesson_utils.lessons.training import rates
from lesson_utils.lessons.training.experiment import (
    FORMS,
    JUDGE,
    LENGTH,
    Batch,
    aligned,
    batches,
    dates_of,
    exact,
    exact_as,
    heads_of,
    predicted,
    rungs,
    training_days,
    transformer,
    translate,
    without,
)
from lesson_utils.lessons.training.rates import SCHEDULES, rate_at
from lesson_utils.lessons.training.recipes import BLIND, STEEP, key, result, stored
from lesson_utils.maths import attention, models, ops, tasks, training
from lesson_utils.maths.checks import Array, Ids, Mask
from lesson_utils.maths.layers import Param, heads
from lesson_utils.maths.machine import keep_freed_memory
from lesson_utils.maths.models.experiments import Change, changed
from lesson_utils.maths.progress_bar import Bar

# --- 1 · A training, kept as a film: a loss curve that grows, and snapshots to go back to -----------------------------

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


def draw_rungs(ax: "plots.Axes", right: float) -> None:
    """Draw what guessing reaches, as dashed lines with names at their right ends."""
    for name, loss in rungs().items():
        ax.axhline(loss, color=plots.ORANGE, ls="--", lw=1.3, zorder=0.5)
        ax.text(right, loss + 0.03, name, color=plots.ORANGE, ha="right", va="bottom", size=10, zorder=0.5)


@plots.still(8.0, 3.5)
def curve(figure: "plots.Figure", film: Film) -> str:
    """Draw the loss so far, and what guessing reaches."""
    ax = figure.add_subplot(xlim=(0, film.total), ylim=(0, 3.6))
    ax.set(xlabel="training step", ylabel="loss (nats a symbol)")
    draw_rungs(ax, film.total * 0.995)
    step = max(film.right)
    ax.set_title(f"After {step:,} steps {film.right[step]:.1%} of the held-out dates are right")
    alt = ""
    if film.history.losses:
        x, y = smooth(film.history.losses)
        ax.plot(x, y, color=plots.BLUE)
        lowest = rungs()["all before"]
        below = next((n for n, loss in enumerate(film.history.losses, start=1) if loss < lowest), None)
        alt = f" The loss falls from {y[0]:.2f} to {y[-1]:.2g} nats."
        if below:
            alt += f" It is first below the lowest rung, {lowest:.2f}, at step {below}."
    return f"…{alt} Rungs of those who guess: {formats.each(rungs(), rungs().values())}."


# --- 2 · The film -----------------------------------------------------------------------------------------------------


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
    camera, rng = Camera(transformer(), 1000), np.random.default_rng(0)
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
    telling=[{"step": 80}, {"step": 1000}],
    controls=lambda film: {
        "step": live.Choice("training step", tuple(film.steps), 0),
        "head": live.Choice("head", ("mean", *(str(h) for h in range(film.at(0).config.num_heads))), "mean"),
        "typed": live.Word("a date", "March 3, 2021", longest=LONGEST),
    },
    example=lambda: (_example(),),
)
def film_lab(figure: "plots.Figure", film: Film) -> live.Update:
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
        return (
            f"…{note} Cross-attention, {which}, largest weight of each symbol written: {peaks}. "
            f"Share of held-out dates right in each symbol: {formats.each(PLACES, film.places[step])}."
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


def late_table(film: Film) -> tables.Table:
    """List what `late` counts at three steps."""
    head = "step", "year, third digit: wrong", "of these, the next", "day, first digit: wrong", "of these, the next"
    steps = (round(film.total * share) for share in (0.12, 0.16, 0.2))
    return tables.table(head, [(step, *itertools.chain(*late(film, step))) for step in steps])


# --- 3 · A slope under the microscope: the loss along one parameter, its secant, and what a backward pass says --------

AROUND = np.linspace(-2, 2, 13)  # where the loss is looked at, in units of ε
EPSILONS = tuple(10.0 ** (-n / 2) for n in range(2, 25))  # 0.1 … 10⁻¹²
PARAMETERS = {
    "W_Q": "blocks.0.cross.inner.W_Q",
    "W_V": "blocks.0.cross.inner.W_V",
    "embedding": "source.embedding.table",
}
FLOATS = {"float64": np.float64, "float32": np.float32}


def without_row_sum(dweights: Array, weights: Array, out: Array | None = None) -> Array:
    """Compute a wrong backward pass of softmax: it forgets the sum over the row."""
    return np.multiply(dweights, weights, out=out)


ACTIVATIONS = {"ReLU": "relu", "GELU": "gelu"}


class Slope(NamedTuple):
    """One entry of one parameter of a model, and what backward passes say of it."""

    model: models.Transformer
    array: Array  # the parameter; its entry is moved and put back
    entry: tuple[int, ...]
    batch: Batch
    right: float
    wrong: float  # by `without_row_sum`

    def losses(self, epsilon: float, places: Array) -> Array:
        """Return the loss with the entry moved by `places` times ε."""
        before, found = self.array[self.entry], []
        try:
            for place in places:
                self.array[self.entry] = before + place * epsilon
                found.append(self.model.loss(self.batch))
        finally:
            self.array[self.entry] = before
        return np.array(found)

    def secant(self, epsilon: float) -> tuple[float, int]:
        """Return the secant's slope, and how many ReLUs switch on or off between θ − ε and θ + ε."""
        seen: list[Any] = []
        library = ops.relu_forward

        def watched(x: Array) -> Any:
            seen.append(x > 0)
            return library(x)

        with changed([(ops, "relu_forward", watched)]):
            below, above = self.losses(epsilon, np.array([-1.0, 1.0]))
        half = len(seen) // 2  # so many layers each
        kinks = sum(int((a != b).sum()) for a, b in zip(seen[:half], seen[half:], strict=True))
        return float((above - below) / (2 * epsilon)), kinks


def gradient(model: models.Transformer, batch: Batch, right: bool = True) -> dict[str, Array]:
    """Return all gradients by backpropagation, right or `without_row_sum`."""
    for param in model.params().values():
        param.grad[...] = 0
    backward = attention.softmax_backward if right else without_row_sum
    with changed([(attention, "softmax_backward", backward)]):
        model.loss_and_grad(batch)
    return {name: param.grad.copy() for name, param in model.params().items()}


def slopes(model: models.Transformer, n: int = 2) -> dict[tuple[str, str, str], Slope]:
    """Find the entry with the steepest slope, on the loss of n dates: by parameter, kind of float and activation."""
    source, target = dates_of(n=500)
    batch, found = (source[:n], target[:n]), {}
    for (floats, dtype), (name_of, activation) in itertools.product(FLOATS.items(), ACTIVATIONS.items()):
        config = models.TransformerConfig(**{**vars(model.config), "dtype": dtype, "activation": activation})
        copy = models.Transformer(config, np.random.default_rng(0))
        for name, param in copy.params().items():
            param.value[...] = model.params()[name].value
        wrong, right = gradient(copy, batch, right=False), gradient(copy, batch)
        for label, name in PARAMETERS.items():
            gap = np.abs(right[name] - wrong[name])
            which = gap if gap.max() > 1e-9 else np.abs(right[name])
            # Steep, and told apart from the wrong one where that one differs.
            index = tuple(int(i) for i in np.unravel_index(np.abs(which * right[name]).argmax(), gap.shape))
            values = float(right[name][index]), float(wrong[name][index])
            found[label, floats, name_of] = Slope(copy, copy.params()[name].value, index, batch, *values)
    return found


def _prepare(early: models.Transformer) -> Any:
    with training.single_thread():
        found = slopes(early)
        return {key: (slope, [slope.secant(epsilon) for epsilon in EPSILONS]) for key, slope in found.items()}


@live.lab(
    width=9.4,
    height=4.2,
    parameter=live.Choice("parameter", tuple(PARAMETERS), "W_Q"),
    epsilon=live.LogSlider("ε", EPSILONS[-1], EPSILONS[0], EPSILONS[0], steps_per_decade=2),
    activation=live.Choice("activation", tuple(ACTIVATIONS), "ReLU"),
    floats=live.Choice("numbers", tuple(FLOATS), "float64"),
    wrong=live.Switch("a wrong backward", False),
    neutral="Only the largest ε is drawn, for the right backward pass.",
    telling=[{"epsilon": EPSILONS[-1]}, {"epsilon": EPSILONS[-1], "wrong": True}],
    prepare=_prepare,
    example=lambda: transformer(),
)
def slope_lab(figure: "plots.Figure", measured: Any) -> live.Update:
    """Show the loss along one parameter, magnified until ε fills the picture; and how far secant and tangent differ."""
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    ask = lru_cache(256)(lambda key, epsilon: measured[key][0].losses(epsilon, AROUND))
    left.set(xlim=(-2, 2), ylim=(-2.4, 2.4), xticks=(-1, 0, 1))
    left.set_xticklabels(["θ − ε", "θ", "θ + ε"])
    left.set(ylabel="change of the loss,\nin units of slope · ε", xlabel="the parameter")
    (line,) = left.plot(AROUND, AROUND, "o-", color=plots.BLUE, ms=4, lw=1.4, label="loss")
    (secant,) = left.plot([-1, 1], [-1, 1], color=plots.ORANGE, lw=2.4, marker="o", label="secant")
    (tangent,) = left.plot([-2, 2], [-2, 2], color=plots.INK, ls="--", lw=1.8, label="tangent (backward)")
    left.legend(loc="lower right", fontsize=10)
    right.set(xscale="log", yscale="log", xlim=(0.2, 5e-13), ylim=(1e-11, 1e4))
    right.set(xlabel="ε, ever smaller →", ylabel="|secant − tangent| / |slope|")
    (error,) = right.plot(EPSILONS, np.ones(len(EPSILONS)), "-", color=plots.ORANGE, lw=1.6)
    look = {"ls": "none", "color": plots.ORANGE}
    (smooth,) = right.plot([1], [1], marker="o", ms=5, label="no ReLU switches inside", **look)
    (kinked,) = right.plot([1], [1], marker="s", ms=7, mfc="none", mew=1.6, label="a ReLU switches inside", **look)
    (dot,) = right.plot([1], [1], "o", color=plots.INK, ms=13, mfc="none", mew=2)
    right.legend(loc="upper right", fontsize=10)

    def update(parameter: str, epsilon: float, activation: str, floats: str, wrong: bool) -> str:
        slope, found = measured[parameter, floats, activation]
        secants, kinks = zip(*found, strict=True)
        place = int(np.abs(np.log(np.array(EPSILONS) / epsilon)).argmin())
        losses = ask((parameter, floats, activation), EPSILONS[place])
        unit = abs(slope.right) * EPSILONS[place] or 1.0
        sign = 1 if slope.right >= 0 else -1  # drawn as a rise
        changes = sign * (losses - losses[len(AROUND) // 2]) / unit
        line.set_ydata(np.clip(changes, -50, 50))
        secant.set_ydata(np.clip(changes[[3, 9]], -50, 50))  # at θ − ε and θ + ε
        said = slope.wrong if wrong else slope.right
        ratio = sign * said / abs(slope.right or 1.0)
        tangent.set_ydata([-2 * ratio, 2 * ratio])
        errors = np.maximum(np.abs(np.array(secants) - said) / abs(slope.right or 1.0), 2e-11)
        drawn = np.arange(len(EPSILONS)) <= place  # the curve grows as ε shrinks
        switched = np.array(kinks) > 0
        error.set_data(np.array(EPSILONS)[drawn], errors[drawn])
        for points, chosen in ((smooth, drawn & ~switched), (kinked, drawn & switched)):
            points.set_data(np.array(EPSILONS)[chosen], errors[chosen])
        dot.set_data([EPSILONS[place]], [errors[place]])
        left.set_title(
            f"Secant {minus(f'{secants[place]:.6f}')}, tangent {minus(f'{said:.6f}')};\n"
            f"{kinks[place] or 'no'} ReLU{'s switch' if kinks[place] != 1 else ' switches'} between θ − ε and θ + ε"
        )
        best = int(errors[: place + 1].argmin())
        if errors[best] > 0.05:
            title = f"No ε helped{' the wrong backward' if wrong else ''}:\noff by {errors[best]:.0%} or more"
        else:
            title = f"Best yet: ε = {power(EPSILONS[best])},\n{power(errors[best])} off"
        right.set_title(title)
        way = "without the row's sum in softmax" if wrong else "right"
        return (
            f"… At ε = {power(EPSILONS[place])}, in {floats}, with {activation}, for one entry of {parameter}; "
            f"backward {way}. Secant and tangent differ by {power(errors[place])} of the slope."
        )

    return update


# --- 5, 6 · A training that runs on what a learner wrote, beside the same training by the library ---------------------

Own = Callable[..., Any]


class OwnAdam(training.Optimizer):
    """Adam by somebody's step: `adam_step(value, grad, m, v, t, lr, beta_1, beta_2, eps)` gives the new value, m, v."""

    def __init__(self, params: Mapping[str, Param], adam_step: Own) -> None:
        super().__init__(params, lr=1e-3)
        self._adam_step = adam_step
        self._averages: list[tuple[Array, Array]] = [
            (np.zeros_like(p.value), np.zeros_like(p.value)) for p in self.params.values()
        ]

    def _updated(self, lr: float) -> Iterator[Array]:
        like = training.Adam(self.params)  # its defaults
        for n, (param, (m, v)) in enumerate(zip(self.params.values(), self._averages, strict=True)):
            value, *averages = self._adam_step(param.value, param.grad, m, v, self.steps + 1, lr, *like.betas, like.eps)
            self._averages[n] = averages[0], averages[1]
            yield value


@contextmanager
def backward_by(softmax_backward: Own, attention_backward: Own, smoothed_loss: Own | None = None) -> Iterator[None]:
    """Let all models train with these functions for as long as a `with` block lasts.

    `attention_backward` may call `ops.softmax_backward`, as the exercise suggests, and then gets this one.
    """

    def back(doutput: Array, cache: attention.AttentionCache) -> tuple[Array, Array, Array]:
        dQ, dK, dV = attention_backward(doutput, cache.Q, cache.K, cache.V, cache.weights)
        return dQ, dK, dV

    library = ops.cross_entropy_forward

    def forward(logits: Array, targets: Ids, mask: Mask, smoothing: float) -> tuple[float, Any]:
        _, kept = library(logits, targets, mask, smoothing)
        return float(smoothed_loss(logits, targets, mask, smoothing)), kept  # type: ignore[misc]

    changes: list[Change] = [(heads, "attention_backward", back), (ops, "softmax_backward", softmax_backward)]
    with changed(changes if smoothed_loss is None else [*changes, (ops, "cross_entropy_forward", forward)]):
        yield


@plots.still(8.0, 3.2)
def beside(figure: "plots.Figure", own: Sequence[float], library: Sequence[float]) -> str:
    """Draw the losses of two trainings: by the functions of a learner, and by the library's."""
    steps = np.arange(1, len(own) + 1)
    ax = figure.add_subplot(xlim=(0, len(own)), ylim=(0, 1.1 * max(library)))
    ax.set(xlabel="training step", ylabel="loss (nats a symbol)")
    ax.plot(steps, library, color=plots.ORANGE, lw=6, alpha=0.5, label="by the library")
    ax.plot(steps, own, color=plots.BLUE, lw=1.8, label="by the functions given")
    ax.legend(loc="upper right")
    apart = max(abs(a - b) for a, b in zip(own, library, strict=True))
    ax.set_title(f"The two losses differ by at most {apart:.0e}")
    return f"… In {len(own)} steps the loss falls from {own[0]:.2f} to {np.mean(own[-10:]):.2f} nats."


# --- 7 · The learning rates that survive, and further choices of a recipe, from what is stored ------------------------

ENOUGH = 0.5  # of the held-out dates right: such a rate has survived
NONE = 0.05  # of the held-out dates right: such a run has failed


def means(norm: str, left_out: str, what: str = "exact") -> list[float]:
    """Return the mean over the seeds, for each rate."""
    return [float(np.mean([x for x in of if x is not None])) for of in rates.stored()[rates.key(norm, left_out)][what]]


def survivors(norm: str, left_out: str) -> list[float]:
    """Return the rates at which most of the held-out dates come out right, on average over the seeds."""
    found = zip(rates.RATES, means(norm, left_out), strict=True)
    return [rate for rate, right in found if right >= ENOUGH]


def starts(norm: str, left_out: str, rate: float, what: str = "exact") -> list[float]:
    """Return the result of each start."""
    return [float(x) for x in rates.stored()[rates.key(norm, left_out)][what][rates.RATES.index(rate)]]


def larger(size: str, norm: str, left_out: str, rate: float, what: str = "exact") -> float:
    """Return the result of one larger run; `size` is one of `rates.LARGER`."""
    return float(rates.stored()[size][rates.key(norm, left_out)][what][str(rate)])


def larger_table() -> str:
    """List the share right at three rates: as above, mean of the starts, and in one run each that is twice as large.

    Below stands what smoothing does to the loss.
    """
    shown, parts = rates.RATES[4:7], ("nothing", "warm-up", "clipping", "warm-up and clipping")
    blocks = ("as above", *rates.LARGER)
    heads = "   ".join("".join(f"{as_text(rate):>7}" for rate in shown) for _ in blocks)
    lines = ["norm, what is left out".ljust(26) + "   ".join(f"{name:>21}" for name in blocks), f"{'':26}{heads}"]
    for norm, part in itertools.product(("pre", "post"), parts):
        rows = [means(norm, part)[4:7], *([larger(size, norm, part, rate) for rate in shown] for size in rates.LARGER)]
        cells = "   ".join("".join(f"{x:7.2f}" for x in row) for row in rows)
        lines.append(f"{norm + ', ' + part:26}{cells}")
    lines.append("\nloss of held-out dates at 0.008, smoothing left out, or nothing")
    for norm, part in itertools.product(("pre", "post"), ("smoothing", "nothing")):
        losses = [means(norm, part, "loss")[4], *(larger(size, norm, part, 0.008, "loss") for size in rates.LARGER)]
        lines.append(f"{norm + ', ' + part:26}" + "   ".join(f"{x:21.3f}" for x in losses))
    return "\n".join(lines)


def as_text(rate: float) -> str:
    return f"{rate:.4f}".rstrip("0")


def past_the_cliff(norm: str, left_out: str) -> list[float]:
    """Return the held-out losses of all runs at higher rates than the best one that get hardly a date right."""
    found = rates.stored()[rates.key(norm, left_out)]
    best = int(np.argmax(means(norm, left_out)))
    pairs = zip(found["exact"][best + 1 :], found["loss"][best + 1 :], strict=True)
    return [loss for of in pairs for right, loss in zip(*of, strict=True) if right < NONE]


@live.lab(
    width=9.4,
    height=4.2,
    neutral="Nothing is left out, and the norm stands before: the questions are of what is left out, and of post-norm.",
    telling={"norm": "post", "left_out": "warm-up"},
    norm=live.Choice("norm", ("pre", "post"), "pre"),
    left_out=live.Choice("left out", rates.LEFT_OUT, "nothing"),
)
def survival_lab(figure: "plots.Figure") -> live.Update:
    """Show which of eight learning rates work with a part of the recipe left out, and where the losses of all end."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    places = np.arange(len(rates.RATES))
    left.set(xlim=(-0.5, len(places) - 0.5), ylim=(0, 1.3), yticks=(0, 0.5, 1))
    left.set(xlabel="learning rate", ylabel="share of held-out dates right")
    right.set(xlim=(-0.5, len(places) + 1.4), ylim=(0, 2.9))
    right.set(xlabel="learning rate", ylabel="loss of held-out dates (nats)")
    for ax in (left, right):
        ax.set_xticks(places, [as_text(rate) if n % 2 else "" for n, rate in enumerate(rates.RATES)], size=10)
    left.axhline(ENOUGH, color=plots.GREY, lw=0.8, ls=":", zorder=0.5)
    (whole,) = left.plot(places, places, "--", color=plots.GREY, lw=1.6, label="nothing left out")
    (mean,) = left.plot(places, places, "-", color=plots.BLUE, label="mean of the starts (circles)")
    look = {"color": plots.BLUE, "ms": 6, "mfc": "none", "mew": 1.4, "clip_on": False}
    dots = left.plot(places, np.zeros((len(places), rates.STARTS)), "o", **look)
    ends = right.plot(places, np.zeros((len(places), rates.STARTS)), "o", **look)
    left.legend(loc="upper left", fontsize=10)
    draw_rungs(right, len(places) + 1.35)

    def update(norm: str, left_out: str) -> str:
        found = rates.stored()[rates.key(norm, left_out)]
        whole.set_ydata(means(norm, "nothing"))
        averages = means(norm, left_out)
        mean.set_ydata(averages)
        for seed, lines in enumerate(zip(dots, ends, strict=True)):
            for line, what in zip(lines, ("exact", "loss"), strict=True):
                line.set_ydata([of[seed] for of in found[what]])
        alive = survivors(norm, left_out)
        without = "" if left_out == "nothing" else f", without {left_out}"
        count = f"{len(alive) or 'none'} of {len(rates.RATES)} rates get{'s' * (len(alive) == 1)}"
        left.set_title(f"{norm}-norm{without}:\n{count} more than half right")
        failed = past_the_cliff(norm, left_out)
        near = sum(min(abs(loss - rung) for rung in rungs().values()) < 0.1 for loss in failed)
        right.set_title(f"{near} of {len(failed)} runs past the cliff\nend within 0.1 of a rung")
        shares, losses = (
            formats.each((f"{as_text(rate)}:" for rate in rates.RATES), of)
            for of in (averages, means(norm, left_out, "loss"))
        )
        return (
            f"… Share right by learning rate, mean of {rates.STARTS}: {shares}. Loss of held-out dates: {losses}. "
            f"Rungs: {formats.each(rungs(), rungs().values())}."
        )

    return update


SCHEDULE_COLOURS, SCHEDULE_STYLES = (plots.GREY, plots.BLUE, plots.INK, plots.ORANGE), (":", "-", "--", "-.")


def _listed(numbers: Sequence[float], form: str = ".2f") -> str:
    return ", ".join(f"{x:{form}}" for x in numbers)


def blind_table() -> tables.Table:
    """List losses of runs that work and that fail, with the right sources and with those of other dates."""
    rows = ((key(*run), *(_listed(result("again", *run, what), ".3f") for what in ("loss", "blind"))) for run in BLIND)
    return tables.table(("norm, left out, rate", "loss, three starts", "with another date's source"), list(rows)[:-1])


def clip_table() -> tables.Table:
    """List the shares right at 0.008 where gradients are shortened to a length of 1, and to 0.01."""
    rows = [
        (f"{norm}-norm", *(_listed(result(name, norm, "nothing", 0.008)) for name in ("recipe", "clip 0.01")))
        for norm in STEEP
    ]
    return tables.table(("share right at 0.008, three starts", "clipped at 1", "clipped at 0.01"), rows)


def today_table() -> tables.Table:
    """List the shares right with parts of the recipe of today, at rates where warm-up decides, and at a good one."""
    rows = []
    for norm, rate in STEEP.items():
        for name in ("recipe", "beta_2 0.95", *(["QK-norm"] if norm == "pre" else [])):
            both = (_listed(result(name, norm, left_out, rate)) for left_out in ("nothing", "warm-up"))
            rows.append((f"{norm}-norm, {rate}, {name}", *both))
    for name in ("recipe", "weight decay 0.1"):
        rows.append((f"pre-norm, 0.008, {name}", _listed(result(name, "pre", "nothing", 0.008)), "–"))
    return tables.table(("share right, three starts", "with warm-up", "without"), rows)


@plots.still(9.4, 3.6)
def schedules_plot(figure: "plots.Figure") -> str:
    """Draw the schedules, and the shares of dates right that they reach at three peaks, from three starts."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    steps, peaks = np.arange(1, rates.STEPS + 1), rates.RATES[3:6]
    found, alt = {}, []
    for n, (kind, color) in enumerate(zip(SCHEDULES, SCHEDULE_COLOURS, strict=True)):
        look = {"color": color, "ls": SCHEDULE_STYLES[n]}
        left.plot(steps, [rate_at(kind, int(t), 1, rates.WARMUP, rates.STEPS + 1) for t in steps], label=kind, **look)
        right_shares = [result(f"schedule {kind}", "pre", "nothing", peak) for peak in peaks]
        found[kind] = [float(np.mean(of)) for of in right_shares]
        right.plot(range(len(peaks)), found[kind], lw=1.4, **look)
        for place, of in enumerate(right_shares):
            right.plot([place + 0.06 * (n - 1.5)] * len(of), of, "o", ms=5, mfc="none", color=color)
        alt.append(f"{kind} {', '.join(f'{x:.2f}' for x in found[kind])}")
    left.set(xlabel="training step", ylabel="learning rate / its peak", ylim=(0, 1.6), yticks=(0, 0.5, 1))
    left.set_title("A rise, and four ways to go on")
    left.legend(loc="upper center", fontsize=10, ncols=2)
    right.set(xlabel="peak of the learning rate", ylabel="share of held-out dates right")
    right.set_xticks(range(len(peaks)), [f"{peak:g}" for peak in peaks])
    best = [max(SCHEDULES, key=lambda kind: found[kind][n]) for n in range(len(peaks))]
    first = max(set(best), key=best.count)
    right.set_title(f"“{first}” is best at {best.count(first)} of {len(peaks)} peaks")
    return f"… Means of {rates.STARTS} starts at peaks of {', '.join(map(str, peaks))}: {'; '.join(alt)}."


# --- 8 · One head less ------------------------------------------------------------------------------------------------


@plots.still(9.4, 3.4)
def heads_map(figure: "plots.Figure", model: models.Transformer) -> str:
    """Draw what is lost without each head, on held-out dates: the share that comes out wrong."""
    lost = np.array([1 - exact(model, dates_of(n=JUDGE), without([head])) for head in heads_of(model)])
    table: Array = lost.reshape(3, -1)  # (place, head); with one layer
    rows = ("encoder, self", "decoder, self", "cross")
    columns = [f"head {n}" for n in range(table.shape[1])]
    free = int((lost < 0.05).sum())
    title = f"{free} of {len(lost)} heads can go one at a time; without others nearly all is lost"
    if lost.max() < 0.8:
        title = f"{free} of {len(lost)} heads can go one at a time"
    plots.draw_heatmap(
        figure.add_subplot(), table, rows, columns, title, "", "share of held-out dates wrong without it"
    )
    listed = "; ".join(f"{row}: {', '.join(f'{x:.2f}' for x in of)}" for row, of in zip(rows, table, strict=True))
    return f"… Share of held-out dates wrong without one head: {listed}."


@plots.still(9.4, 3.4)
def sums_plot(figure: "plots.Figure", found: Sequence[Mapping[str, Any]]) -> str:
    """Draw what four heads cost one at a time, stacked, beside what they cost together; a pair of bars a model."""
    ax = figure.add_subplot()
    alt = []
    for n, of in enumerate(found):
        bottom = 0.0
        for k, cost in enumerate(of["alone"]):
            label = "one head at a time, stacked" if n == k == 0 else None
            ax.bar(n - 0.2, cost, 0.36, bottom, color=plots.BLUE, edgecolor="white", lw=1.5, label=label)
            bottom += cost
        ax.bar(n + 0.2, of["together"], 0.36, color=plots.ORANGE, label="all four at once" if n == 0 else None)
        alt.append(f"start {n}: {' + '.join(f'{x:.2f}' for x in of['alone'])}, together {of['together']:.2f}")
    ax.set_xticks(range(len(found)), [f"start {n}" for n in range(len(found))])
    ax.set(ylabel="share of dates wrong", ylim=(0, 1.15 * max(of["together"] for of in found)))
    ax.legend(loc="upper left", fontsize=10, ncols=2)
    ratios = [of["together"] / max(sum(of["alone"]), 1e-9) for of in found]
    ax.set_title(f"Together the four cost {min(ratios):.1f} to {max(ratios):.1f} times what they cost one at a time")
    return f"… Share of held-out dates wrong without heads: {'; '.join(alt)}."
