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
from lesson_utils.lessons.training.experiment import (
    FORMS,
    LENGTH,
    Batch,
    aligned,
    batches,
    dates_of,
    exact,
    exact_as,
    predicted,
    rungs,
    training_days,
    transformer,
    translate,
)
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
    rows = [left.text(-1.1, n, "", **font) for n in range(LENGTH)]
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


# --- Formats it never saw ---------------------------------------------------------------------------------------------

ODD = ("3/17/1984", "3 August 1850")  # a month that does not exist, and a century that it never saw


def asked(model: models.Transformer) -> tuple[list[float], list[str]]:
    """Return the share of held-out dates that is right in each of `FORMS`, and what the model writes for `ODD`."""
    return [exact_as(model, form) for form in FORMS], [translate(model, written) for written in ODD]


def forms_table(found: Sequence[tuple[Sequence[float], Sequence[str]]]) -> tables.Table:
    """List what `asked` returns for the notebook's model, and for others."""
    head = "held-out dates written as", "right: our model", *(f"start {n}" for n in range(1, len(found)))
    rows = [(form, *(f"{shares[n]:.2f}" for shares, _ in found)) for n, form in enumerate(FORMS)]
    rows += [(f"{written} becomes", *(answers[n] for _, answers in found)) for n, written in enumerate(ODD)]
    return tables.table(head, rows)


# --- 3 · A slope under the microscope: the loss along one parameter, its secant, and what a backward pass says --------

AROUND = np.linspace(-2, 2, 13)  # where the loss is looked at, in units of ε
EPSILONS = tuple(10.0 ** (-n / 2) for n in range(2, 25))  # 0.1 … 10⁻¹²
PARAMETERS = {
    "W_Q": "blocks.0.cross.inner.W_Q",
    "W_V": "blocks.0.cross.inner.W_V",
    "embedding": "source.embedding.table",
}
FLOATS = {"float64": np.float64, "float32": np.float32}
ACTIVATIONS = {"ReLU": "relu", "GELU": "gelu"}


class Slope(NamedTuple):
    """One entry of one parameter of a model, and what the backward pass says of it."""

    model: models.Transformer
    array: Array  # the parameter; its entry is moved and put back
    entry: tuple[int, ...]
    batch: Batch
    right: float

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


def gradient(model: models.Transformer, batch: Batch, softmax_backward: "Own") -> dict[str, Array]:
    """Return all gradients by backpropagation, with this backward pass of softmax in all attentions."""
    for param in model.params().values():
        param.grad[...] = 0
    with changed([(attention, "softmax_backward", lambda dw, w, out=None: softmax_backward(dw, w))]):
        model.loss_and_grad(batch)
    return {name: param.grad.copy() for name, param in model.params().items()}


def few_dates(n: int = 2) -> Batch:
    source, target = dates_of(n=500)
    return source[:n], target[:n]


def remade(model: models.Transformer, **choices: Any) -> models.Transformer:
    """Make a copy of a model, in another kind of float or with another activation."""
    copy = models.Transformer(models.TransformerConfig(**{**vars(model.config), **choices}), np.random.default_rng(0))
    for name, param in copy.params().items():
        param.value[...] = model.params()[name].value
    return copy


def slopes(model: models.Transformer, n: int = 2) -> dict[tuple[str, str, str], Slope]:
    """Find a steep entry, on the loss of n dates: by parameter, kind of float and activation.

    It is one that softmax's row sum counts much for, where softmax lies behind the parameter.
    """
    batch, found = few_dates(n), {}
    for (floats, dtype), (name_of, activation) in itertools.product(FLOATS.items(), ACTIVATIONS.items()):
        copy = remade(model, dtype=dtype, activation=activation)
        right, no_sum = (gradient(copy, batch, back) for back in (ops.softmax_backward, lambda dw, w: dw * w))
        for label, name in PARAMETERS.items():
            gap = np.abs(right[name] - no_sum[name])
            steep = (gap if gap.max() > 1e-9 else np.abs(right[name])) * np.abs(right[name])
            index = tuple(int(i) for i in np.unravel_index(steep.argmax(), steep.shape))
            value = float(right[name][index])
            found[label, floats, name_of] = Slope(copy, copy.params()[name].value, index, batch, value)
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
    neutral="Only the largest ε is drawn.",
    telling=[{"epsilon": EPSILONS[-1]}, {"epsilon": EPSILONS[-1], "activation": "GELU"}],
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
    left.plot([-2, 2], [-2, 2], color=plots.INK, ls="--", lw=1.8, label="tangent (backward)")
    left.legend(loc="lower right", fontsize=10)
    right.set(xscale="log", yscale="log", xlim=(0.2, 5e-13), ylim=(1e-11, 1e4))
    right.set(xlabel="ε, ever smaller →", ylabel="|secant − tangent| / |slope|")
    (error,) = right.plot(EPSILONS, np.ones(len(EPSILONS)), "-", color=plots.ORANGE, lw=1.6)
    look = {"ls": "none", "color": plots.ORANGE}
    (smooth,) = right.plot([1], [1], marker="o", ms=5, label="no ReLU switches inside", **look)
    (kinked,) = right.plot([1], [1], marker="s", ms=7, mfc="none", mew=1.6, label="a ReLU switches inside", **look)
    (dot,) = right.plot([1], [1], "o", color=plots.INK, ms=13, mfc="none", mew=2)
    right.legend(loc="upper right", fontsize=10)

    def update(parameter: str, epsilon: float, activation: str, floats: str) -> str:
        slope, found = measured[parameter, floats, activation]
        secants, kinks = zip(*found, strict=True)
        place = int(np.abs(np.log(np.array(EPSILONS) / epsilon)).argmin())
        losses = ask((parameter, floats, activation), EPSILONS[place])
        unit = abs(slope.right) * EPSILONS[place] or 1.0
        sign = 1 if slope.right >= 0 else -1  # drawn as a rise
        changes = sign * (losses - losses[len(AROUND) // 2]) / unit
        line.set_ydata(np.clip(changes, -50, 50))
        secant.set_ydata(np.clip(changes[[3, 9]], -50, 50))  # at θ − ε and θ + ε
        errors = np.maximum(np.abs(np.array(secants) - slope.right) / abs(slope.right or 1.0), 2e-11)
        drawn = np.arange(len(EPSILONS)) <= place  # the curve grows as ε shrinks
        switched = np.array(kinks) > 0
        error.set_data(np.array(EPSILONS)[drawn], errors[drawn])
        for points, chosen in ((smooth, drawn & ~switched), (kinked, drawn & switched)):
            points.set_data(np.array(EPSILONS)[chosen], errors[chosen])
        dot.set_data([EPSILONS[place]], [errors[place]])
        inside = f"ReLUs that switch inside: {kinks[place] or 'none'}"
        which = inside if activation == "ReLU" else f"{activation} has no kinks"
        left.set_title(f"Secant {minus(f'{secants[place]:.6f}')}, tangent {minus(f'{slope.right:.6f}')}\n{which}")
        best = int(errors[: place + 1].argmin())
        right.set_title(f"Best yet: ε = {power(EPSILONS[best])},\n{power(errors[best])} off")
        return (
            f"… At ε = {power(EPSILONS[place])}, in {floats}, with {activation}, for one entry of {parameter}, "
            f"secant and tangent differ by {power(errors[place])} of the slope."
        )

    return update


# --- 4 · What a forgotten sum does ------------------------------------------------------------------------------------

LAYERS = {  # one parameter each
    "cross-attention, W_Q": "blocks.0.cross.inner.W_Q",
    "cross-attention, W_V": "blocks.0.cross.inner.W_V",
    "encoder, W_V": "encoder.blocks.0.attention.inner.W_V",
    "source, embedding": "source.embedding.table",
}


def off_by(model: models.Transformer, name: str, softmax_backward: "Own", epsilon: float) -> float:
    """Return how far slope and secant differ, as a share of the secant, at the parameter's steepest entry."""
    batch, copy = few_dates(), remade(model, dtype=np.float64)
    array = gradient(copy, batch, ops.softmax_backward)[name]
    index = tuple(int(i) for i in np.unravel_index(np.abs(array).argmax(), array.shape))
    said = float(gradient(copy, batch, softmax_backward)[name][index])
    secant, _ = Slope(copy, copy.params()[name].value, index, batch, said).secant(epsilon)
    return abs(said - secant) / abs(secant)


def passes_table(model: models.Transformer, passes: "Mapping[str, Own]") -> tables.Table:
    """List how far slopes are off, by parameter, for backward passes of softmax and three sizes of ε."""
    columns = [(name, back, epsilon) for name, back in passes.items() for epsilon in (1e-3, 1e-5, 1e-7)]
    with training.single_thread():
        rows = [
            (label, *(f"{off_by(model, name, back, epsilon):.0e}" for _, back, epsilon in columns))
            for label, name in LAYERS.items()
        ]
    return tables.table(("off by", *(f"{name}, ε = {power(epsilon)}" for name, _, epsilon in columns)), rows)


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
def backward_by(loss_backward: Own, softmax_backward: Own, attention_backward: Own) -> Iterator[None]:
    """Let all models train with these functions for as long as a `with` block lasts.

    `attention_backward` may call `ops.softmax_backward`, as the exercise suggests, and then gets this one.
    """
    library = ops.cross_entropy_forward

    def back(doutput: Array, cache: attention.AttentionCache) -> tuple[Array, Array, Array]:
        dQ, dK, dV = attention_backward(doutput, cache.Q, cache.K, cache.V, cache.weights)
        return dQ, dK, dV

    def forward(logits: Array, targets: Ids, mask: Mask, smoothing: float) -> tuple[float, Any]:
        loss, _ = library(logits, targets, mask, smoothing)  # dates have no padding in the target: all of it counts
        return loss, (loss_backward(logits, targets), 1.0)

    changes: list[Change] = [
        (heads, "attention_backward", back),
        (ops, "softmax_backward", softmax_backward),
        (ops, "cross_entropy_forward", forward),
    ]
    with changed(changes):
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


# --- 7 · The learning rates that survive, from many starts each ------------------------------------------------------

EXACT, LOSS, OF_ANOTHER = range(3)  # what a run ends with: share right; loss; loss with the source of another date
Hills = Mapping[tuple[str, int], Sequence[Array]]  # (norm, steps of warm-up) -> for each rate (starts, 3)
LOOKS = {60: ("with warm-up", plots.BLUE, "o", -1), 0: ("without warm-up", plots.ORANGE, "s", 1)}  # steps of warm-up


@plots.still(9.4, 3.8)
def hills_plot(figure: "plots.Figure", rates: Sequence[float], hills: Hills) -> str:
    """Draw the share of dates right by learning rate: a dot for each start, a line through the means."""
    axes, alt = figure.subplots(1, 2, sharey=True), []
    places = np.log2(np.array(rates) / rates[0])
    for ax, norm in zip(axes, ("pre", "post"), strict=True):
        for warmup, (label, color, marker, side) in LOOKS.items():
            right = [runs[:, EXACT] for runs in hills[norm, warmup]]
            ax.plot(places + 0.05 * side, [shares.mean() for shares in right], "-", color=color, label=label)
            look = {"color": color, "mfc": "none", "ms": 5, "clip_on": False}
            for place, shares in zip(places, right, strict=True):
                ax.plot(np.full(len(shares), place + 0.05 * side), shares, marker, **look)
            means = formats.each((f"{rate:g}:" for rate in rates), [shares.mean() for shares in right])
            alt.append(f"{norm}-norm {label}, means by rate {means}")
        ax.set(xlabel="learning rate", ylim=(0, 1.05), xlim=(-0.4, places[-1] + 0.4))
        ax.set_xticks(places, [f"{rate:g}" for rate in rates])
        last = hills[norm, 0][-2][:, EXACT].mean()
        ax.set_title(f"{norm.title()}-norm: without warm-up,\n{last:.0%} are right at {rates[-2]:g}")
    axes[0].set_ylabel("share of held-out dates right")
    axes[0].legend(loc="lower left", fontsize=10)
    return f"… A dot for each start. {'; '.join(alt)}."


@plots.still(9.4, 3.8)
def blind_plot(figure: "plots.Figure", rates: Sequence[float], hills: Hills) -> str:
    """Draw each run past the cliff: its loss, and its loss if each date has the source of another one."""
    ax = figure.add_subplot(xlim=(0.7, 2.45), ylim=(0.7, 3.1))
    ax.plot([0, 3], [0, 3], color=plots.GREY, lw=1.2, label="the loss stays the same")
    smoothed = rungs(0.1)
    for name, rung in list(smoothed.items())[1:]:
        ax.axvline(rung, color=plots.ORANGE, ls="--", lw=1.3, zorder=0.5)
        ax.text(rung - 0.015, 3.06, name, color=plots.ORANGE, rotation=90, ha="right", va="top", size=10)
    shown, alt, blind, count = ((("pre", 0), 3), (("post", 60), 3), (("post", 0), 2), (("post", 0), 3)), [], 0, 0
    for (recipe, place), color, marker in zip(
        shown, (plots.GREEN, plots.PURPLE, plots.BLUE, plots.INK), "^Dos", strict=True
    ):
        loss, other = hills[recipe][place][:, LOSS], hills[recipe][place][:, OF_ANOTHER]
        label = f"{recipe[0]}-norm, {LOOKS[recipe[1]][0]}, {rates[place]:g}"
        ax.plot(loss, other, marker, color=color, mfc="none", ms=7, label=label)
        alt.append(f"{label}: losses {loss.min():.2f} to {loss.max():.2f}, then {other.min():.2f} to {other.max():.2f}")
        blind, count = blind + int((other - loss < 0.01).sum()), count + len(loss)
    ax.set(xlabel="loss of held-out dates (nats a symbol)", ylabel="with the source\nof another date")
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=10)
    ax.set_title(f"{blind} of {count} runs past the cliff do not read their source")
    return f"… {'; '.join(alt)}. Rungs of guessers trained with smoothing: {formats.each(smoothed, smoothed.values())}."


@contextmanager
def qk_norm(on: bool = True) -> Iterator[None]:
    """Let all attentions bring queries and keys to length 1 first, for as long as a `with` block lasts."""
    changes: list[Change] = [
        (heads, "attention_forward", normed_forward),
        (heads, "attention_backward", normed_backward),
    ]
    with changed(changes if on else []):
        yield


class NormedCache(NamedTuple):
    """A forward pass with QK-norm, for the backward pass; Q and K have length 1."""

    inner: attention.AttentionCache
    lengths: tuple[Array, Array]  # of the queries and keys before


def normed_forward(Q: Array, K: Array, V: Array, mask: Any = None, scale: Any = None, bias: Any = None) -> Any:
    """Compute attention with queries and keys of length 1, and scores of at most d_k."""
    of_Q, of_K = (np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6) for x in (Q, K))
    output, kept = attention.attention_forward(Q / of_Q, K / of_K, V, mask, float(Q.shape[-1]))
    return output, NormedCache(kept, (of_Q, of_K))


def normed_backward(doutput: Array, cache: NormedCache) -> tuple[Array, Array, Array]:
    """Return dQ, dK, dV of `normed_forward`."""
    kept, (of_Q, of_K) = cache
    dQ, dK, dV = attention.attention_backward(doutput, kept)

    def back(dunit: Array, unit: Array, length: Array) -> Array:
        return np.asarray((dunit - unit * (dunit * unit).sum(axis=-1, keepdims=True)) / length)

    return back(dQ, kept.Q, of_Q), back(dK, kept.K, of_K), dV
