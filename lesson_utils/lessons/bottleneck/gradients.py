"""Gradients through time: they vanish or explode; gates keep them."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import power
from lesson_utils.maths import recurrent
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELLS = {"RNN": (plots.ORANGE, "--"), "GRU": (plots.GREEN, "-."), "LSTM": (plots.BLUE, "-")}
SCALES = {1.0: (plots.BLUE, "-"), 1.5: (plots.GREEN, "-."), 2.0: (plots.PURPLE, ":"), 3.0: (plots.ORANGE, "--")}
FAR, NEAR = 20, 5  # steps back, in titles and texts
FURTHEST = 100  # steps back, in figures
D_IN, D_H = 16, 32  # widths of the cells: of an input, of the state


def new_cell(kind: str, rng: np.random.Generator, scale: float = 1.0, gate_bias: float = 0.0) -> list[Array]:
    """Return the parameters of a fresh cell; `scale` and `gate_bias` as for `gradient_norms`."""
    params = [np.array(p) for p in recurrent.init_params(kind, D_IN, D_H, rng, np.float64)]
    params[1] *= scale
    if kind != "rnn":
        params[2][D_H : 2 * D_H] += gate_bias
    return params


@cache
def gradient_norms(kind: str, scale: float = 1.0, gate_bias: float = 0.0, seed: int = 0) -> Array:
    """Return the gradient's norm 0 … FURTHEST steps before the end, at a fresh cell of width 32 on random inputs.

    Args:
        kind: "rnn", "gru" or "lstm".
        scale: of the recurrent weight matrices, 1 = orthogonal.
        gate_bias: added to the bias of the gate that keeps: z of a GRU, f of an LSTM (which begins at 1).
        seed: another one is another cell, on other inputs.
    """
    rng = np.random.default_rng(seed)
    params = new_cell(kind, rng, scale, gate_bias)
    x = rng.normal(size=(16, FURTHEST + 1, D_IN))  # (B, T, d_in)
    return recurrent.gradient_norms_through_time(kind, x, params, rng)[::-1]  # the last step first


@plots.still(9.0, 3.8)
def vanish_or_explode(figure: "Figure") -> str:
    """Draw what is left of an RNN's gradient, for recurrent matrices of four sizes."""
    norms = {f"× {scale:g}": gradient_norms("rnn", scale) for scale in SCALES}
    ax = _axes(figure, 1e-22, 1e15)
    for (name, norm), (colour, dash) in zip(norms.items(), SCALES.values(), strict=True):
        ax.plot(norm, dash, color=colour)
        ax.text(FURTHEST + 1, norm[-1], name, color=colour, va="center")
    vanished, grown = (
        [name for name, norm in norms.items() if compare(norm[-1])]
        for compare in (lambda last: last < 0.01, lambda last: last > 10)
    )
    finding = f"{FURTHEST} steps back: vanished at {' and '.join(vanished)}, exploded at {' and '.join(grown)}"
    ax.set_title(finding)
    listed = ", ".join(f"{name}: {power(norm[FAR])}, {power(norm[-1])}" for name, norm in norms.items())
    return (
        f"{finding}. Left of an RNN's gradient after {FAR} and after {FURTHEST} steps back, by the size of its matrix: "
        f"{listed}."
    )


@live.lab(
    width=9.0,
    height=3.9,
    neutral="It opens at half the size of the matrices, where every memory is short.",
    scale=live.Slider("recurrent matrices ×", 0.5, 3.0, 0.5, 0.25),
    gate_bias=live.Slider("bias of the gate that keeps +", -2, 4, 0),
)
def gradient_lab(figure: "Figure") -> live.Update:
    """Show how much of a gradient is left, many steps back, in three cells."""
    lowest, highest = 1e-10, 1e5
    ax = _axes(figure, lowest, highest)
    ax.set_xlim(-0.5, 1.6 * FAR + 2)
    shown = int(1.6 * FAR)
    lines, names = {}, {}
    for name, (colour, dash) in CELLS.items():
        (lines[name],) = ax.plot(np.ones(FURTHEST + 1), dash, color=colour)
        names[name] = ax.text(shown + 0.4, 1, name, color=colour, va="center", bbox={"fc": "white", "ec": "none"})

    def update(scale: float, gate_bias: int) -> str:
        norms = {name: gradient_norms(name.lower(), scale, gate_bias) for name in CELLS}
        lowest_free = np.log10(lowest) + 0.4
        for name in sorted(norms, key=lambda name: norms[name][shown]):
            lines[name].set_ydata(np.clip(norms[name], lowest / 10, highest * 10))
            height = min(max(np.log10(norms[name][shown]), lowest_free), np.log10(highest) - 0.4)
            names[name].set_y(10**height)
            lowest_free = height + 1.2
        listed = ", ".join(f"{name} {power(norm[FAR])}" for name, norm in norms.items())
        ax.set_title(f"Left after {FAR} steps: {listed}")
        return (
            f"Left of a gradient after {FAR} steps back: {listed}. After {NEAR} steps: "
            + ", ".join(f"{name} {power(norm[NEAR])}" for name, norm in norms.items())
            + f". Recurrent matrices times {scale:g}, gate bias {gate_bias:+d}."
        )

    return update


def _axes(figure: "Figure", lowest: float, highest: float) -> "Axes":
    """Make axes for norms, many powers of ten apart, with a line at 1."""
    ax = figure.add_subplot(xlim=(-0.5, FURTHEST + 8), ylim=(lowest, highest), yscale="log")
    ax.set(xlabel="steps back from the loss", ylabel="norm of the gradient")
    ax.axhline(1, color="#BBBBBB", lw=1, ls=":")
    return ax
