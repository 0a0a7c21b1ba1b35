"""Section 5: multiply-adds per byte read, and how fast this machine is at each."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.efficient_attention.bill import as_time, seconds
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 4096  # of the matrix of weights: 67 MB
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # that are multiplied with it at once
CACHE = (8, 8192, 64)  # heads of keys, tokens, width: 17 MB
SHARING = (1, 2, 4, 8)  # queries that use each head of keys


class Point(NamedTuple):
    """A product of n vectors with numbers that are read once."""

    n: int
    bytes: int  # that are read
    multiply_adds: int
    seconds: float

    @property
    def per_byte(self) -> float:
        """Multiply-adds for each byte that is read."""
        return self.multiply_adds / self.bytes

    @property
    def rate(self) -> float:
        """Multiply-adds in a second."""
        return self.multiply_adds / self.seconds


class Roofline(NamedTuple):
    """Products measured on this machine: weights with n tokens, a cache with n queries a head."""

    weights: list[Point]
    cache: list[Point]

    @property
    def reading(self) -> float:
        """Bytes of weights per second of a pass with two tokens: the reading, and all else that a pass costs.

        One token has a routine of its own, which can be faster.
        """
        return self.weights[1].bytes / self.weights[1].seconds

    @property
    def most(self) -> float:
        """Multiply-adds in a second at most."""
        return max(point.rate for point in self.weights)

    @property
    def ridge(self) -> float:
        """Multiply-adds per byte at which computing takes as long as a pass with two tokens."""
        return self.most / self.reading


def measured_roofline(side: int = SIDE, cache: tuple[int, int, int] = CACHE) -> Roofline:
    """Time products of one matrix with n tokens, and of cached keys with n queries a head; float32."""
    rng = np.random.default_rng(0)
    W = rng.random((side, side), np.float32)
    x = {n: rng.random((side, n), np.float32) for n in TOKENS}  # a token is a column
    keys: Array = rng.random(cache, np.float32)
    queries = rng.random((cache[0], max(SHARING), cache[2]), np.float32)
    weights = [
        Point(n, W.nbytes, n * W.size, seconds(lambda n=n: W @ x[n]))  # type: ignore[misc]
        for n in TOKENS
    ]
    shared = [
        Point(n, keys.nbytes, n * keys.size, seconds(lambda n=n: keys @ queries[:, :n].swapaxes(-1, -2)))  # type: ignore[misc]
        for n in SHARING
    ]
    return Roofline(weights, shared)


@plots.still(9.0, 3.9)
def roofline(figure: "Figure", measured: Roofline) -> str:
    """Draw multiply-adds a second over multiply-adds per byte, the time of two tokens and the limit of computing."""
    ax = figure.add_subplot(xlabel="multiply-adds for each byte that is read", ylabel="multiply-adds a second")
    points, cached, ridge = measured.weights, measured.cache, measured.ridge
    at = np.array([points[0].per_byte, ridge, points[-1].per_byte * 1.3])
    ax.plot(at, np.minimum(at * measured.reading, measured.most), color=plots.GREY, lw=1.6, zorder=1)
    ax.plot([p.per_byte for p in points], [p.rate for p in points], "o-", color=plots.BLUE)
    ax.plot([p.per_byte for p in cached], [p.rate for p in cached], "s--", color=plots.ORANGE)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks([p.per_byte for p in points], [f"{p.per_byte:g}" for p in points])
    low = min(p.rate for p in (*points, *cached))
    ax.set(ylim=(0.5 * low, 2.6 * measured.most))
    billions = [b for b in (0.3, 1, 3, 10, 30, 100, 300) if 0.5 * low < b * 1e9 < 2.6 * measured.most]
    ax.set_yticks([b * 1e9 for b in billions], [f"{b:g} billion" for b in billions])
    ax.minorticks_off()
    for n in (1, 2, 16, 256):
        p = next(p for p in points if p.n == n)
        ax.annotate(
            f"{n} token{'s' * (n > 1)}: {as_time(p.seconds)}",
            (p.per_byte, p.rate),
            (-4, 8) if n == 1 else (6, -16),
            textcoords="offset points",
            color=plots.BLUE,
        )
    ax.annotate(
        f"a cache with 1 … {cached[-1].n} queries for each head of keys",
        (cached[-1].per_byte, min(p.rate for p in cached)),
        (0, -14),
        textcoords="offset points",
        color=plots.ORANGE,
    )
    ax.annotate(
        "as long as 2 tokens take",
        (points[3].per_byte, points[3].per_byte * measured.reading),
        (-10, 8),
        textcoords="offset points",
        ha="right",
        color=plots.GREY,
    )
    ax.annotate("limit: computing", (points[-3].per_byte, 1.3 * measured.most), color=plots.GREY)
    two, sixteen = (next(p for p in points if p.n == n) for n in (2, 16))
    times = sixteen.seconds / two.seconds
    ax.set_title(f"Eight times the work, 16 tokens in place of 2, takes {times:.1f} times as long")
    listed = ", ".join(f"{p.n}: {as_time(p.seconds)}" for p in points)
    cache_listed = ", ".join(f"{p.n}: {p.rate / cached[0].rate:.1f}" for p in cached)
    return (
        f"16 tokens at once take {times:.1f} times as long as 2. A matrix of {points[0].bytes / 1e6:.0f} MB times n "
        f"tokens: {listed}. Computing takes as long as the pass with 2 at {ridge:.1f} multiply-adds per byte. "
        f"Rate of a cache with n queries a head, against one: {cache_listed}."
    )
