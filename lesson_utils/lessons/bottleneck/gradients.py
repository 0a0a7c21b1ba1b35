"""Gradients through time: they vanish or explode; gates keep them."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import power
from lesson_utils.lessons.bottleneck.experiment import STEPS_BACK
from lesson_utils.maths import ops, recurrent
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELLS = {"RNN": (plots.ORANGE, "--"), "GRU": (plots.GREEN, "-."), "LSTM": (plots.BLUE, "-")}
SCALES = {1.0: (plots.BLUE, "-"), 1.5: (plots.GREEN, "-."), 2.0: (plots.PURPLE, ":"), 3.0: (plots.ORANGE, "--")}
GROWN = 1e3  # times: drawn in the strongest colour
FAR, NEAR = 20, 5  # steps back, in titles and texts
D_IN, D_H = 16, 32  # widths of the cells: of an input, of the state


def new_cell(kind: str, rng: np.random.Generator, scale: float = 1.0, gate_bias: float = 0.0) -> list[Array]:
    """Return the parameters of a fresh cell; `scale` and `gate_bias` as for `gradient_norms`."""
    params = [np.array(p) for p in recurrent.init_params(kind, D_IN, D_H, rng, np.float64)]
    params[1] *= scale
    if kind != "rnn":
        params[2][D_H : 2 * D_H] += gate_bias
    return params


@cache
def gradient_norms(kind: str, scale: float = 1.0, gate_bias: float = 0.0) -> Array:
    """Return the gradient's norm 0 … STEPS_BACK steps before the end, at a fresh cell of width 32 on random inputs.

    Args:
        kind: "rnn", "gru" or "lstm".
        scale: of the recurrent weight matrices, 1 = orthogonal.
        gate_bias: added to the bias of the gate that keeps: z of a GRU, f of an LSTM (which begins at 1).
    """
    rng = np.random.default_rng(0)
    params = new_cell(kind, rng, scale, gate_bias)
    x = rng.normal(size=(16, STEPS_BACK + 1, D_IN))  # (B, T, d_in)
    return recurrent.gradient_norms_through_time(kind, x, params, rng)[::-1]  # the last step first


@plots.still(9.0, 4.2)
def vanish_or_explode(figure: "Figure") -> str:
    """Draw what is left of an RNN's gradient, for recurrent matrices of four sizes."""
    norms = {f"× {scale:g}": gradient_norms("rnn", scale) for scale in SCALES}
    top, strips = _two_panels(figure, tuple(norms), 1e-7, 1e4)
    for (name, norm), (colour, dash) in zip(norms.items(), SCALES.values(), strict=True):
        top.plot(norm, dash, color=colour)
        top.text(STEPS_BACK + 0.4, norm[-1], name, color=colour, va="center")
    strips.set_data(_squares(list(norms.values())))
    first, last = norms["× 1"][FAR], norms["× 3"][FAR]
    top.set_title(f"{FAR} steps back: {power(first)} of a gradient is left at × 1; at × 3 it has grown {last:.0f}-fold")
    listed = ", ".join(f"{name}: {power(norm[FAR])}" for name, norm in norms.items())
    return f"Left of an RNN's gradient after {FAR} steps back, by the size of its matrix: {listed}."


@plots.still(9.0, 3.2)
def slopes_plot(figure: "Figure") -> str:
    """Draw the slopes of the logistic function and of tanh, and what many of the first one leave."""
    x = np.linspace(-6, 6, 241)
    left, right = figure.subplots(1, 2)
    left.axhspan(0, 1 / 4, color="#EEEEEE", lw=0)
    for name, y, (at, height), colour, dash in (
        ("σ′", ops.sigmoid(x), (2.3, 0.13), plots.ORANGE, "--"),
        ("tanh′", np.tanh(x), (0.8, 0.75), plots.BLUE, "-"),
    ):
        left.plot(x, np.gradient(y, x), dash, color=colour)
        left.text(at, height, name, color=colour)
    left.text(-5.8, 0.2, "at most 1/4", color=plots.ORANGE, va="center")
    left.set(xlabel="x", ylabel="slope", ylim=(0, 1.05), title="The logistic function is nowhere steep")
    many = np.arange(FAR + 1)
    right.plot(many, 0.25**many, "--", color=plots.ORANGE, marker="o", markersize=4)
    right.set(yscale="log", xlabel="logistic functions, one behind the other", ylabel="slope, at most")
    right.set(title=f"{FAR} of them leave at most {power(0.25**FAR)}")
    return f"{FAR} logistic functions leave at most {power(0.25**FAR)}. Slopes: of one at most 1/4, of tanh at most 1."


@live.lab(
    width=9.0,
    height=4.4,
    neutral="It opens at half the size of the matrices, where every memory is short.",
    scale=live.Slider("recurrent matrices ×", 0.5, 3.0, 0.5, 0.25),
    gate_bias=live.Slider("bias of the gate that keeps +", -2, 4, 0),
)
def gradient_lab(figure: "Figure") -> live.Update:
    """Show how much of a gradient is left, many steps back, in three cells."""
    lowest = 1e-10
    top, strips = _two_panels(figure, tuple(CELLS), lowest, 1e4)
    lines, names = {}, {}
    for name, (colour, dash) in CELLS.items():
        (lines[name],) = top.plot(np.ones(STEPS_BACK + 1), dash, color=colour)
        names[name] = top.text(STEPS_BACK + 0.4, 1, name, color=colour, va="center")

    def update(scale: float, gate_bias: int) -> str:
        norms = {name: gradient_norms(name.lower(), scale, gate_bias) for name in CELLS}
        lowest_free = np.log10(lowest) + 0.4
        for name in sorted(norms, key=lambda name: norms[name][-1]):
            lines[name].set_ydata(np.maximum(norms[name], lowest / 10))
            height = max(np.log10(norms[name][-1]), lowest_free)
            names[name].set_y(10**height)
            lowest_free = height + 1.2
        strips.set_data(_squares(list(norms.values())))
        listed = ", ".join(f"{name} {power(norm[FAR])}" for name, norm in norms.items())
        top.set_title(f"Left after {FAR} steps: {listed}")
        return (
            f"Left of a gradient after {FAR} steps back: {listed}. After {NEAR} steps: "
            + ", ".join(f"{name} {power(norm[NEAR])}" for name, norm in norms.items())
            + f". Recurrent matrices times {scale:g}, gate bias {gate_bias:+d}."
        )

    return update


def _two_panels(figure: "Figure", names: tuple[str, ...], lowest: float, highest: float) -> tuple["Axes", Any]:
    """Axes for curves, and below it a strip of squares for each of them, an image."""
    top, below = figure.subplots(2, 1, height_ratios=(2.4, 1), sharex=True)
    top.set(xlim=(-0.5, STEPS_BACK + 3), ylim=(lowest, highest), yscale="log", ylabel="norm of the gradient")
    top.set_yticks([10.0**n for n in range(-9, 4, 3) if 10.0**n > lowest])
    top.axhline(1, color="#BBBBBB", lw=1, ls=":")
    image = below.imshow(_squares(np.ones((len(names), STEPS_BACK + 1))), aspect="auto", interpolation="nearest")
    image.set_extent((-0.5, STEPS_BACK + 0.5, len(names), 0))
    image.set_zorder(3)  # above the axes, which then need not be drawn again when it changes
    below.set_yticks(np.arange(len(names)) + 7 / 12, names)
    below.set(xlabel="steps back from the loss")
    below.tick_params(length=0)
    below.spines[:].set_visible(False)
    return top, image


def _squares(norms: ArrayLike) -> Array:
    """Make a strip of squares for a row of norms, (6·n, steps, 3): blue for 1, white for nothing, orange for more."""
    from matplotlib.colors import to_rgb

    norms = np.asarray(norms)
    faded = plots.colour_map(*plots.WEIGHTS_MAP)(np.minimum(norms, 1))[..., :3]
    grown = np.ceil(12 * np.clip(0.25 + 0.75 * np.log(norms) / np.log(GROWN), 0, 1)) / 12  # steps of the palette
    orange = 1 + grown[..., None] * (np.array(to_rgb(plots.ORANGE)) - 1)
    colours: Array = np.repeat(np.where(norms[..., None] > 1.1, orange, faded), 6, axis=0)
    colours[::6] = 1  # a gap above each strip
    return colours
