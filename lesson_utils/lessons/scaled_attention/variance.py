"""Section 3: how scores grow with d_k, and what softmax makes of them, for few keys and for many."""

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

D_KS = tuple(2**i for i in range(10))  # 1 … 512
NUM_KEYS = (8, 32, 128, 512, 2048)
SEQUENCES, QUERIES = 4, 64  # sequences of keys; queries that look at each
SCALED, UNSCALED = plots.INK, plots.PURPLE  # the other colours are q, k and v
MEASURED = ("the scores", "the query")


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
    ax.set_title(f"The fan opens: a typical score is ±{narrow:.0f} at $d_k$ = {low}, and ±{wide:.0f} at {high}")
    listed = ", ".join(f"{d_k}: {np.std(s):.1f}" for d_k, s in scores.items())
    return (
        f"Scores spread from ±{narrow:.0f} at d_k = {low} to ±{wide:.0f} at {high}: dots on a linear axis, in bands "
        f"of one and two predicted standard deviations. Standard deviation by d_k: {listed}."
    )


@cache
def _draw(seed: int) -> tuple[Array, Array]:
    """Draw queries (4, 64, 512) and keys (4, 2048, 512), all entries independent with mean 0 and variance 1.

    Fewer keys and smaller d_k take the first ones, so the picture changes smoothly under the sliders.
    """
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((SEQUENCES, QUERIES, D_KS[-1]), np.float32)
    return q, rng.standard_normal((SEQUENCES, NUM_KEYS[-1], D_KS[-1]), np.float32)


def raw_scores(d_k: int, num_keys: int = 32, seed: int = 0) -> Array:
    """Return q · k of 256 random queries, 64 on each of 4 random sequences of keys: (256, num_keys)."""
    q, k = _draw(seed)
    scores = q[..., :d_k] @ k[:, :num_keys, :d_k].swapaxes(-1, -2)  # (4, 64, num_keys)
    return scores.reshape(-1, num_keys).astype(float)


class Looks(NamedTuple):
    """The weights and slopes of softmax for 256 queries, at one setting."""

    ranked: Array  # weights by rank, mean over the queries, (num_keys,)
    keys: float  # e to the mean entropy: the number of keys that a query looks at
    slopes: Array  # of each query: the norm of the Jacobian, ∂weights/∂scores, (256,)


@cache
def looks(num_keys: int, d_k: int, scaled: bool, seed: int = 0) -> Looks:
    """Measure softmax on `raw_scores`, divided by √d_k or as they are.

    The norm (Frobenius) of J = diag(w) − wwᵀ: ‖J‖² = Σ w² − 2 Σ w³ + (Σ w²)². It is the root mean square of the
    gradient that arrives at the scores when the gradient at the weights has independent entries of variance 1.
    """
    w = _weights(num_keys, d_k, scaled, seed)
    squares = (w**2).sum(axis=-1)
    norms = np.sqrt(np.maximum(squares - 2 * (w**3).sum(axis=-1) + squares**2, 0))
    return Looks(-np.sort(-w, axis=-1).mean(axis=0), float(np.exp(ops.entropy(w).mean())), norms)


@cache
def slopes_at_query(num_keys: int, d_k: int, scaled: bool, seed: int = 0) -> Array:
    """Measure the norm of ∂weights/∂q for each of 256 queries.

    Row i of this Jacobian is w_i (k_i − k̄) times the factor on the scores, where k̄ = Σ w_j k_j.
    """
    w = _weights(num_keys, d_k, scaled, seed).reshape(SEQUENCES, QUERIES, num_keys)
    k = _draw(seed)[1][:, :num_keys, :d_k].astype(float)
    mean = w @ k  # (4, 64, d_k)
    apart = (k**2).sum(axis=-1)[:, None] - 2 * mean @ k.swapaxes(-1, -2) + (mean**2).sum(axis=-1, keepdims=True)
    norms = np.sqrt(np.maximum((w**2 * apart).sum(axis=-1), 0))
    return (norms / (np.sqrt(d_k) if scaled else 1)).ravel()


def _weights(num_keys: int, d_k: int, scaled: bool, seed: int) -> Array:
    return ops.softmax(raw_scores(d_k, num_keys, seed) / (np.sqrt(d_k) if scaled else 1))


@live.lab(
    height=3.9,
    neutral="The curves reach as far as d_k is dragged, and at d_k = 1 they have only begun.",
    d_k=live.Choice("d_k", D_KS, 1),
    num_keys=live.Choice("number of keys", NUM_KEYS, 32),
    by=live.Choice("slope by", MEASURED, MEASURED[0]),
)
def slope_lab(figure: "Figure") -> live.Update:
    """Show what softmax makes of scores with and without √d_k: weights by rank, and the slopes of all queries."""
    from matplotlib.patches import Polygon

    weights_ax, slope_ax = figure.subplots(1, 2, width_ratios=(1, 1.15))
    weights_ax.set(xscale="log", yscale="log", xlim=(0.9, 2600), ylim=(1e-4, 1.6))
    weights_ax.set(xlabel="keys, by rank", ylabel="mean weight")
    slope_ax.set(xscale="log", yscale="log", xlim=(0.9, 640), ylim=(1e-4, 20), xlabel="$d_k$")
    slope_ax.set_xticks(D_KS[::2], [str(n) for n in D_KS[::2]])
    slope_ax.tick_params(axis="x", which="minor", length=0)
    slope_ax.set_ylabel("slope: norm of ∂weights")  # by the scores, or by the query: the control says
    ranked, ribbons, medians = {}, {}, {}
    for scaled, colour, dashes in ((False, UNSCALED, "--"), (True, SCALED, "-")):
        name = "scaled" if scaled else "unscaled"
        (ranked[scaled],) = weights_ax.plot([1], [1], dashes, color=colour, label=name)
        face = drawings.tint(colour, 0.4 if scaled else 0.2)
        ribbons[scaled] = slope_ax.add_patch(Polygon([[1, 1]], fc=face, ec=colour, lw=0.6, label="nine of ten"))
        (medians[scaled],) = slope_ax.plot([1], [1], dashes, color=colour, marker="o", ms=4, label=f"{name}, median")
    weights_ax.legend(loc="upper right")
    slope_ax.legend(loc="lower left", fontsize=10.5, handlelength=1.8)

    def update(d_k: int, num_keys: int, by: str) -> str:
        reached = D_KS[: D_KS.index(d_k) + 1]
        keys, now = {}, {}
        for scaled in (False, True):
            here = looks(num_keys, d_k, scaled)
            keys[scaled] = here.keys
            ranked[scaled].set_data(np.arange(1, num_keys + 1), np.maximum(here.ranked, 1e-6))
            measured = [
                looks(num_keys, n, scaled).slopes if by == MEASURED[0] else slopes_at_query(num_keys, n, scaled)
                for n in reached
            ]
            low, middle, high = np.maximum(np.quantile(measured, [0.05, 0.5, 0.95], axis=1), 1e-5)
            ribbons[scaled].set_xy(np.stack([[*reached, *reached[::-1]], [*low, *high[::-1]]], axis=-1))
            medians[scaled].set_data(reached, middle)
            now[scaled] = low[-1], middle[-1], high[-1]
        ratio = now[False][1] / now[True][1]
        weights_ax.set_title(f"Looks at {keys[False]:.1f} of {num_keys} keys, scaled at {keys[True]:.0f}")
        steeper = f"unscaled is {short(ratio)} ×" if ratio > 1 else f"scaled is {short(1 / ratio)} ×"
        slope_ax.set_title(f"Median slope: {steeper} steeper" if abs(np.log(ratio)) > 0.05 else "Both slopes are alike")
        spread = [f"{short(low)} to {short(high)}, median {short(middle)}" for low, middle, high in now.values()]
        return (
            f"d_k = {d_k}, {num_keys} keys, the slope by {by}. Unscaled, a query looks at {keys[False]:.1f} keys, "
            f"scaled at {keys[True]:.1f}. Slopes of nine of ten queries: unscaled {spread[0]}; scaled {spread[1]}."
        )

    return update
