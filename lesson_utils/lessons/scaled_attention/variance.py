"""Section 4, the variance laboratory: how scores grow with d_k, and what softmax and its gradient make of it."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import short
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D_KS = tuple(2**i for i in range(11))  # 1 … 1024
NUM_QUERIES, NUM_KEYS = 256, 32
SCALED, UNSCALED = plots.INK, plots.PURPLE  # the other colours are q, k and v


@plots.still(9.0, 3.9)
def fan(figure: "Figure", scores: Mapping[int, Array], variance: Callable[[int], float]) -> str:
    """Draw scores of random pairs at several d_k, as dots, inside bands of one and two standard deviations.

    Args:
        variance: `variance(d_k)`, the predicted variance of a score.
    """
    ax = figure.add_subplot(xlabel="$d_k$", ylabel="score q · k")
    rng = np.random.default_rng(0)
    x = np.arange(1, max(scores) + 1)
    band = np.sqrt([float(variance(int(d_k))) for d_k in x])
    for n, strength in ((2, 1 / 12), (1, 1 / 4)):
        ax.fill_between(x, -n * band, n * band, color=drawings.tint(UNSCALED, strength), lw=0)
    for d_k, s in scores.items():
        some = np.asarray(s)[:400]
        ax.plot(d_k + rng.uniform(-9, 9, len(some)), some, ".", color=plots.INK, ms=2.2, alpha=0.6)
    last = max(scores)
    for n, name in enumerate(("predicted", "twice that"), 1):
        ax.annotate(name, (last, n * band[-1]), (14, 0), textcoords="offset points", va="center", color=UNSCALED)
    low, high = min(scores), max(scores)
    narrow, wide = (float(np.std(scores[d_k])) for d_k in (low, high))
    ax.set(xlim=(-10, last * 1.13), ylim=(-3.4 * wide, 3.4 * wide))
    ax.set_xticks([d_k for d_k in scores if d_k == low or d_k >= last / 16])
    ax.set_title(f"The fan opens: a typical score is ±{narrow:.0f} at d_k = {low}, ±{wide:.0f} at {high}")
    listed = ", ".join(f"{d_k}: {np.std(s):.1f}" for d_k, s in scores.items())
    return (
        f"Scores spread from ±{narrow:.0f} at d_k = {low} to ±{wide:.0f} at {high}: dots on a linear axis, in bands "
        f"of one and two predicted standard deviations. Standard deviation by d_k: {listed}."
    )


@cache
def _random_pairs(seed: int) -> dict[int, tuple[Array, Array]]:
    """Multiply 256 random queries with 32 random keys each: for each d_k, q · k (256, 32) and k · k' (256, 32, 32).

    Larger d_k continue the sums of smaller ones, so the picture grows smoothly under the slider.
    """
    rng = np.random.default_rng(seed)
    scores: Array = np.zeros((NUM_QUERIES, NUM_KEYS))
    products: Array = np.zeros((NUM_QUERIES, NUM_KEYS, NUM_KEYS))
    pairs: dict[int, tuple[Array, Array]] = {}
    done = 0
    for d_k in D_KS:
        q = rng.normal(size=(NUM_QUERIES, 1, d_k - done))
        k = rng.normal(size=(NUM_QUERIES, NUM_KEYS, d_k - done))
        scores, products = scores + (q * k).sum(axis=-1), products + k @ k.swapaxes(-1, -2)
        pairs[d_k], done = (scores, products), d_k
    return pairs


def raw_scores(d_k: int, seed: int = 0) -> Array:
    """Return q · k of 256 random queries with 32 random keys each, shape (256, 32)."""
    return _random_pairs(seed)[d_k][0]


class Health(NamedTuple):
    """The scores, weights and gradients of softmax at one setting."""

    deviation: float  # the standard deviation of what it sees
    ranked: Array  # weights by rank, mean over the queries, (32,)
    entropy: float  # mean over the queries, in nats
    gradients: Array  # of each query: the norm of the Jacobian, ∂weights/∂scores, (256,)
    query_gradients: Array  # of each query: the norm of ∂weights/∂q, (256,)


@cache
def softmax_health(d_k: int, temperature: float = 1.0, scaled: bool = True, seed: int = 0) -> Health:
    """Measure softmax on `raw_scores`, at one setting.

    The norm (Frobenius) of a Jacobian is the root mean square of the gradient that arrives when the gradient at the
    weights has independent entries of mean 0 and variance 1; for any gradient of length 1 it is an upper bound.
    """
    raw, products = _random_pairs(seed)[d_k]
    factor = 1 / ((d_k**0.5 if scaled else 1) * temperature)
    weights = ops.softmax(raw * factor)  # (256, 32)
    J = ops.softmax_jacobian(weights)  # (256, 32, 32)
    return Health(
        deviation=float((raw * factor).std()),
        ranked=-np.sort(-weights, axis=-1).mean(axis=0),
        entropy=float(ops.entropy(weights).mean()),
        gradients=np.sqrt((J**2).sum(axis=(-1, -2))),
        # ∂weights/∂q = J K · factor, and ‖J K‖² is the sum of (J K Kᵀ) ∘ J.
        query_gradients=factor * np.sqrt(np.maximum((J @ products * J).sum(axis=(-1, -2)), 0)),
    )


@live.lab(
    height=5.6,
    neutral="The curves reach as far as d_k is dragged, and at d_k = 1 they have only begun.",
    d_k=live.Choice("d_k", D_KS, 1),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
    scaled=live.Switch("divide by √d_k", False),
)
def scaling_lab(figure: "Figure") -> live.Update:
    """Show what √d_k does to the scores, the weights, their entropy and the gradient."""
    (hist_ax, weights_ax), (entropy_ax, gradient_ax) = figure.subplots(2, 2, gridspec_kw={"hspace": 0.05})
    edges = np.linspace(-60, 60, 121)
    hist = hist_ax.stairs(np.zeros(120), edges, fill=True)
    hist_ax.set(xlim=(-60, 60), ylim=(0, 1.05), xlabel="score that softmax sees", ylabel="frequency (peak = 1)")
    bars = weights_ax.bar(np.arange(1, NUM_KEYS + 1), np.zeros(NUM_KEYS))
    weights_ax.set(ylim=(0, 1.05), xlim=(0, NUM_KEYS + 1), xlabel=f"{NUM_KEYS} keys, by rank", ylabel="mean weight")
    entropy_ax.axhline(np.log(NUM_KEYS), color=plots.GREY, lw=1, ls=":")
    entropy_ax.text(1, np.log(NUM_KEYS) + 0.12, f"all {NUM_KEYS} keys alike", color=plots.GREY)
    entropy_ax.set(ylim=(0, 5.4), ylabel="entropy (nats)", yticks=range(5))
    gradient_ax.set(ylim=(0, 0.78), ylabel="norm of the Jacobian", yticks=(0, 0.25, 0.5))  # 0.5 is the largest
    ones = np.ones(len(D_KS))  # the curves are drawn as far as d_k is dragged
    curves = {}
    for scaled, colour, dashes in ((True, SCALED, "-"), (False, UNSCALED, "--")):
        name = "scaled" if scaled else "unscaled"
        (curves["entropy", scaled],) = entropy_ax.plot(D_KS, ones, dashes, color=colour, label=name)
        (curves["median", scaled],) = gradient_ax.plot(D_KS, ones, dashes, color=colour, label=f"{name}, median")
        (curves["mean", scaled],) = gradient_ax.plot(D_KS, ones, ":", color=colour, lw=1.6, label=f"{name}, mean")
    for ax in (entropy_ax, gradient_ax):
        ax.set_xscale("log", base=2)
        ax.set_xticks(D_KS[::2], [str(n) for n in D_KS[::2]])
        ax.set_xlabel("$d_k$")
        ax.legend(loc="upper right", ncols=2, fontsize=10.5, borderaxespad=0, columnspacing=1.2, handlelength=1.7)
    markers = [ax.plot([1], [1], "o", color=plots.INK, ms=10, clip_on=False)[0] for ax in (entropy_ax, gradient_ax)]

    def update(d_k: int, temperature: float, scaled: bool) -> str:
        reached = D_KS[: D_KS.index(d_k) + 1]
        for s in (True, False):
            health = [softmax_health(n, temperature, s) for n in reached]
            curves["entropy", s].set_data(reached, [h.entropy for h in health])
            curves["median", s].set_data(reached, [np.median(h.gradients) for h in health])
            curves["mean", s].set_data(reached, [h.gradients.mean() for h in health])
        now = softmax_health(d_k, temperature, scaled)
        factor = 1 / ((d_k**0.5 if scaled else 1) * temperature)
        counts, _ = np.histogram(raw_scores(d_k) * factor, edges)
        outside = 1 - counts.sum() / raw_scores(d_k).size
        hist.set_data(counts / counts.max())
        for bar, weight in zip(bars, now.ranked, strict=True):
            bar.set_height(weight)
        for artist in (hist, *bars):
            artist.set_color(SCALED if scaled else UNSCALED)
        median, mean = float(np.median(now.gradients)), float(now.gradients.mean())
        for marker, y in zip(markers, (now.entropy, median), strict=True):
            marker.set_data([d_k], [y])
            marker.set_color(SCALED if scaled else UNSCALED)
        spread = f"standard deviation {now.deviation:.3g}"
        if outside >= 0.005:  # short, so that it does not run into the title beside it
            spread = f"std. dev. {now.deviation:.3g} ({outside:.0%} outside)"
        hist_ax.set_title(f"Scores: {spread}")
        weights_ax.set_title(f"The largest weight is {now.ranked[0]:.2f}")
        entropy_ax.set_title(f"A query looks at {np.exp(now.entropy):.1f} of {NUM_KEYS} keys")
        gradient_ax.set_title(f"Norm, median query: {short(median)}")
        return (
            f"d_k = {d_k}, {'scaled' if scaled else 'unscaled'}, temperature {short(temperature)}: scores have "
            f"standard deviation {now.deviation:.3g}, the largest weight is {now.ranked[0]:.2f}, the entropy "
            f"{now.entropy:.2f} of {np.log(NUM_KEYS):.2f} nats, the norm of softmax's Jacobian {short(median)} "
            f"for the median query and {short(mean)} on average."
        )

    return update


@plots.still(9.0, 3.8)
def shouting(figure: "Figure") -> str:
    """Draw the gradient that arrives at q without and with scaling, as ribbons of quantiles over the queries."""
    axes = figure.subplots(1, 2, sharey=True)
    floor = 1e-3
    arriving = []  # low, median and high gradient at the largest d_k, of each panel
    for ax, scaled, colour in zip(axes, (False, True), (UNSCALED, SCALED), strict=True):
        gradients = np.array([softmax_health(d_k, scaled=scaled).query_gradients for d_k in D_KS])  # (11, 256)
        ribbons = np.quantile(gradients, [0.05, 0.25, 0.5, 0.75, 0.95], axis=1)
        low, lower, middle, upper, high = np.maximum(ribbons, floor)
        ax.fill_between(D_KS, low, high, color=drawings.tint(colour, 0.15), lw=0)
        ax.fill_between(D_KS, lower, upper, color=drawings.tint(colour, 0.4), lw=0)
        ax.plot(D_KS, middle, color=colour)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks(D_KS[::2], [str(n) for n in D_KS[::2]])
        ax.set(xlabel="$d_k$", ylim=(floor, 40))
        arriving.append((low[-1], np.quantile(gradients[-1], 0.5), high[-1]))
    axes[0].set_ylabel("gradient that arrives at q")
    axes[0].text(1.2, 13, "line: the median query\ndark: half of all, pale: nine of ten", color=UNSCALED, va="center")
    axes[0].set_title("Unscaled: a few shout, most fall silent")
    (_, median, most), (low, _, high) = arriving
    axes[1].set_title(f"Scaled: nine of ten are {low:.2f} to {high:.2f}")
    return (
        f"Unscaled, a few queries shout and most fall silent: at d_k = {D_KS[-1]} the median query gets {median:.4f}, "
        f"one in twenty more than {most:.0f}. Scaled, nine of ten get {low:.2f} to {high:.2f}. Two panels of ribbons "
        f"that hold half and nine tenths of {NUM_QUERIES} queries, by d_k from {D_KS[0]} to {D_KS[-1]}."
    )
