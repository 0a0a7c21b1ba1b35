"""Section 1, what attention costs; and the table that savings end on: bytes, measured seconds, what was lost."""

import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.maths import attention, costs, ops
from lesson_utils.maths.attention import attention_forward
from lesson_utils.maths.checks import Array
from lesson_utils.maths.machine import thread_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

D, HEADS = 128, 2  # of the block that is measured
D_HEAD = 64
LENGTHS = (64, 128, 256, 512, 1024, 2048)
POWERS = tuple(2**n for n in range(6, 18))  # 64 … 131,072
WIDTHS = (128, 256, 512, 1024, 2048, 4096)
EACH, BETWEEN = plots.BLUE, plots.ORANGE


# --- Measuring ------------------------------------------------------------------------------------------------------


def seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the shortest time that one call took, in seconds of this thread's work; half a second of them will do."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < 0.5:
        start = thread_time()
        call()
        times.append(thread_time() - start)
    return max(min(times), 1e-7)  # a clock has its steps


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most memory that a call took, beyond what was there before."""
    tracemalloc.start()
    try:
        call()
        return max(tracemalloc.get_traced_memory()[1], 1)
    finally:
        tracemalloc.stop()


class Measured(NamedTuple):
    """A way to compute something: what it took, and what was lost."""

    name: str
    bytes: float
    seconds: float
    lost: str


def measure(name: str, call: Callable[[], Any], lost: str) -> Measured:
    """Run it: first for its memory, then for its time."""
    return Measured(name, peak_bytes(call), seconds(call), lost)


def compared(rows: Sequence[Measured]) -> str:
    """List each way's bytes and seconds, against the first one's, and what was lost."""
    lines, first = [f"{'':18}{'bytes at most':>22}{'time':>20}   lost"], rows[0]
    for row in rows:
        size = f"{as_bytes(row.bytes)} ({row.bytes / first.bytes:.1%})"
        time = f"{as_time(row.seconds)} ({row.seconds / first.seconds:.0%})"
        lines.append(f"{row.name:18}{size:>22}{time:>20}   {row.lost}")
    return "\n".join(lines)


def amount(n: float) -> str:
    """18.9 M, 2.4 G, 17.6 T."""
    return f"{n / 1e12:.3g} T" if n >= 999.5e9 else formats.large(n)


def as_bytes(n: float) -> str:
    """1.2 kB, 34 MB."""
    size, unit = next((s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")) if n >= s or s == 1)
    return f"{n / size:.3g} {unit}" if n < 999.5 * size else f"{n / size:.0f} {unit}"


def as_time(t: float) -> str:
    """120 ms, 3.4 µs."""
    size, unit = next((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if t >= s or s == 1e-6)
    return f"{t / size:.2g} {unit}" if t < 99.5 * size else f"{t / size:.0f} {unit}"


# --- The bill -------------------------------------------------------------------------------------------------------


class Bill(NamedTuple):
    """Seconds of one block, forward, by length: what grows with T, and what grows with T²."""

    linear: float  # projections and feed-forward network
    pairs: float  # scores, softmax, weights · values, by the library
    bare: float = 0.0  # the same without the library's checks
    products: float = 0.0  # only Q Kᵀ and weights · values

    def share(self, part: float) -> float:
        """Return the share of a block's time, if pairs take `part`."""
        return part / (part + self.linear)


def measured_bill(lengths: Sequence[int] = LENGTHS) -> dict[int, Bill]:
    """Time a block of width 128 with two heads at each length."""
    rng = np.random.default_rng(0)
    square, wide = rng.normal(size=(D, D)).astype(np.float32), rng.normal(size=(D, 4 * D)).astype(np.float32)

    def each_by_itself(x: Array) -> Array:
        for _ in range(4):  # W_Q, W_K, W_V and W_O
            x @ square
        return ops.relu(x @ wide) @ wide.T

    found = {}
    for T in lengths:
        x = rng.normal(size=(T, D)).astype(np.float32)
        heads = attention.split_heads(x[None], HEADS)  # (1, h, T, d_k)
        weights: Array = rng.random((1, HEADS, T, T), np.float32)
        pairs = partial(attention.scaled_dot_product_attention, heads, heads, heads)
        bare = partial(attention_forward, heads, heads, heads, None)
        found[T] = Bill(
            seconds(partial(each_by_itself, x)),
            seconds(pairs),
            seconds(bare),
            seconds(lambda heads=heads, weights=weights: (heads @ heads.swapaxes(-1, -2), weights @ heads)),  # type: ignore[misc]
        )
    return found


def clock_table(measured: dict[int, Bill], lengths: Sequence[int] = (64, 256, 1024)) -> str:
    """List the share of pairs in a block's time when parts of the work between pairs are left out."""
    rows = {
        "counted multiply-adds": [share_of_pairs(T, D) for T in lengths],
        "the clock: the two products alone": [measured[T].share(measured[T].products) for T in lengths],
        "  and softmax": [measured[T].share(measured[T].bare) for T in lengths],
        "  and the library's checks": [measured[T].share(measured[T].pairs) for T in lengths],
    }
    lines = [f"{'share of pairs, width 128':36}" + "".join(f"{f'T = {T:,}':>12}" for T in lengths)]
    return "\n".join([*lines, *(f"{name:36}" + "".join(f"{x:12.0%}" for x in of) for name, of in rows.items())])


def share_of_pairs(T: Any, d: float) -> Any:
    """Return the share of a block's multiply-adds that are between pairs: 2 T² d of 2 T² d + 12 T d²."""
    return T / (T + 6 * d)


@live.lab(
    height=3.9,
    example=lambda: {T: Bill(T * 1e-6, T * T * 2e-9) for T in LENGTHS},
    controls=lambda measured: {
        "T": live.Choice("length T", POWERS, POWERS[0]),
        "d_model": live.Choice("width d", WIDTHS, WIDTHS[-1]),
    },
    neutral="At 64 tokens of width 4,096 pairs cost next to nothing, and the curve of width 512 is not drawn.",
)
def bill_lab(figure: "Figure", measured: dict[int, Bill]) -> live.Update:
    """Show what a block spends: on each position by itself, and on pairs; by count, and by the clock."""
    bars, curve = figure.subplots(1, 2, width_ratios=(1.05, 1))
    names = ("projections\n4 T d²", "feed-forward\n8 T d²", "pairs\n2 T² d")
    drawn = plots.Bars(bars, 3, height=0.6, color=[EACH, EACH, BETWEEN])
    bars.set_yticks(range(3), names)
    bars.invert_yaxis()
    bars.set(xlim=(0, 1.35), xticks=())
    bars.spines["bottom"].set_visible(False)
    bars.tick_params(axis="y", length=0)
    at = np.geomspace(POWERS[0], POWERS[-1], 60)
    (line,) = curve.plot(at, share_of_pairs(at, 512), color=BETWEEN)
    timed = [bill.pairs / (bill.pairs + bill.linear) for bill in measured.values()]
    (squares,) = curve.plot(list(measured), timed, "s", color=plots.INK, ms=6, zorder=1)
    says = curve.annotate(
        f"squares:\nthe clock,\nat d = {D}", (0.03, 0.97), xycoords="axes fraction", va="top", zorder=1
    )
    (dot,) = curve.plot([512], [0.5], "o", color=BETWEEN, ms=12, clip_on=False)
    (even,) = curve.plot([512, 512], [0, 0.5], ":", color=plots.GREY, lw=1.6)
    curve.set_xscale("log", base=2)
    curve.set(xlim=(POWERS[0], POWERS[-1]), ylim=(0, 1), xlabel="length T", ylabel="share spent on pairs")
    curve.set_xticks(POWERS[::3], [f"{n:,}" for n in POWERS[::3]])
    curve.set_yticks((0, 0.5, 1), ("0", "½", "all"))

    def update(T: int, d_model: int) -> str:
        each = costs.attention_cost(T, d_model, 1), costs.feed_forward_cost(T, d_model, 4 * d_model)
        pairs = each[0].parts["scores"] + each[0].parts["weights · values"]
        counts = (each[0].parts["projections"], each[1].multiply_adds, pairs)
        drawn.set([count / max(counts) for count in counts], [amount(count) for count in counts])
        share = share_of_pairs(T, d_model)
        line.set_ydata(share_of_pairs(at, d_model))
        dot.set_data([T], [share])
        reached = 6 * d_model <= T
        even.set_data([6 * d_model] * 2, [0, 0.5 * reached])
        bars.set_title(f"T = {T:,}, d = {d_model:,}: pairs cost {share:.0%}")
        half = f"Half of all at T = 6d = {6 * d_model:,}" if reached else "Pairs are less than half of all"
        curve.set_title(half)
        listed = ", ".join(
            f"{n} {formats.large(c)}" for n, c in zip(("projections", "feed-forward", "pairs"), counts, strict=True)
        )
        for artist in (squares, says):  # beside the curve of another width they would compare what can't be compared
            artist.set_visible(d_model == D)
        by_clock = ", ".join(f"{T}: {share:.0%}" for T, share in zip(measured, timed, strict=True))
        return (
            f"Pairs cost {share:.0%} of the multiply-adds of a block at T = {T}, d = {d_model}: {listed}. {half}."
            + f" Measured at d = {D}, by length: {by_clock}." * (d_model == D)
        )

    return update
