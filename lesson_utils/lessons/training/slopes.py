"""A slope under the microscope: the loss along one parameter, its secant, and what a backward pass says."""

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import minus, power
from lesson_utils.lessons.training.experiment import Batch, dates_of, transformer
from lesson_utils.maths import attention, models, ops, training
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models.experiments import changed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACES = np.linspace(-2, 2, 13)  # where the loss is looked at, in units of ε
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
    prepare=_prepare,
    example=lambda: transformer(),
)
def slope_lab(figure: "Figure", measured: Any) -> live.Update:
    """Show the loss along one parameter, magnified until ε fills the picture; and how far secant and tangent differ."""
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    ask = lru_cache(256)(lambda key, epsilon: measured[key][0].losses(epsilon, PLACES))
    left.set(xlim=(-2, 2), ylim=(-2.4, 2.4), xticks=(-1, 0, 1))
    left.set_xticklabels(["θ − ε", "θ", "θ + ε"])
    left.set(ylabel="change of the loss,\nin units of slope · ε", xlabel="the parameter")
    (line,) = left.plot(PLACES, PLACES, "o-", color=plots.BLUE, ms=4, lw=1.4, label="loss")
    (secant,) = left.plot([-1, 1], [-1, 1], color=plots.ORANGE, lw=2.4, marker="o", label="secant")
    (tangent,) = left.plot([-2, 2], [-2, 2], color=plots.INK, ls="--", lw=1.8, label="tangent (backward)")
    left.legend(loc="lower right", fontsize=10)
    right.set(xscale="log", yscale="log", xlim=(0.2, 5e-13), ylim=(1e-11, 30))
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
        changes = sign * (losses - losses[len(PLACES) // 2]) / unit
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
            title = f"No ε helped:\noff by {errors[best]:.0%} or more"
        else:
            title = f"Best yet: ε = {power(EPSILONS[best])},\n{power(errors[best])} off"
        right.set_title(title)
        way = "without the row's sum in softmax" if wrong else "right"
        heads = [ax.get_title(loc="left").replace("\n", " ") for ax in (left, right)]
        return (
            f"{heads[0]}, at ε = {power(EPSILONS[place])}, in {floats}, with {activation}, for one entry of "
            f"{parameter}; backward {way}. They differ by {power(errors[place])} of the slope. {heads[1]}."
        )

    return update
