"""Section 1, the bill; and the figure that every saving ends on: bytes, measured seconds, what was lost."""

import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.maths import attention, costs, efficient, ops
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


def peaks(lengths: Sequence[int] = (256, 512, 1024, 2048, 4096)) -> dict[str, dict[int, int]]:
    """Bytes at most of attention with all weights at once, and in tiles, at each length."""
    ways: dict[str, Callable[..., Any]] = {
        "all weights": attention.scaled_dot_product_attention,
        "in tiles": efficient.online_attention,
    }
    inputs = np.random.default_rng(0).normal(size=(3, max(lengths), D_HEAD)).astype(np.float32)
    return {name: {T: peak_bytes(partial(way, *inputs[:, :T])) for T in lengths} for name, way in ways.items()}


class Measured(NamedTuple):
    """A way to compute something: what it took, and what was lost."""

    name: str
    bytes: float
    seconds: float
    lost: str


def measure(name: str, call: Callable[[], Any], lost: str) -> Measured:
    """Run it: first for its memory, then for its time."""
    return Measured(name, peak_bytes(call), seconds(call), lost)


@plots.still(9.0, 2.5)
def three_numbers(figure: "Figure", rows: Sequence[Measured]) -> str:
    """Draw each way's bytes and seconds as bars, and say what was lost; all are compared with the first one."""
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1, 1))
    y, first = np.arange(len(rows)), rows[0]
    clauses = []
    for ax, values, unit in (
        (axes[0], [r.bytes for r in rows], as_bytes),
        (axes[1], [r.seconds for r in rows], as_time),
    ):
        ax.barh(y, values, height=0.55, color=[plots.GREY] + [plots.BLUE] * (len(rows) - 1))
        ax.set(xlim=(0, 1.55 * max(values)), xticks=())
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        for n, value in enumerate(values):
            ratio = value / values[0]
            times = "" if n == 0 else f", {ratio:.0%}" if 0.0095 < ratio < 9.995 else f", {ratio:.1g}×"
            ax.text(value + 0.03 * max(values), n, f"{unit(value)}{times}", va="center")
    axes[0].set_yticks(y, [row.name for row in rows])
    axes[0].invert_yaxis()
    axes[2].set_axis_off()
    for n, row in enumerate(rows):
        axes[2].text(0, n, row.lost, va="center", transform=axes[2].get_yaxis_transform())
        clauses.append(
            f"{row.name}: {as_bytes(row.bytes)}, {as_time(row.seconds)}, lost: {row.lost}".replace("\n", " ")
        )
    least = min(rows[1:], key=lambda row: row.bytes)
    axes[0].set_title(f"Bytes: down to {formats.short(100 * least.bytes / first.bytes)} %")
    axes[1].set_title("Seconds, measured")
    axes[2].set_title("What was lost")
    return f"{least.name} takes {least.bytes / first.bytes:.2%} of the bytes of {first.name}. {'; '.join(clauses)}."


@plots.still(7.6, 3.3)
def memory_curve(figure: "Figure", peaks: dict[str, dict[int, int]]) -> str:
    """Draw the most bytes that each way took, by length; and the input and output, which nobody saves."""
    ax = figure.add_subplot(xlabel="length T", ylabel="bytes at most")
    lengths = list(next(iter(peaks.values())))
    clauses, growth = [], []
    for (name, found), colour in zip(peaks.items(), (plots.ORANGE, plots.BLUE), strict=True):
        values = [found[T] for T in lengths]
        ax.plot(lengths, values, "o-", color=colour)
        ax.text(
            lengths[-1] * 1.08, values[-1], f"{name}\n{as_bytes(values[-1])}", color=colour, va="center", weight="bold"
        )
        growth.append(f"{name} × {values[-1] / values[0]:.0f}")
        clauses.append(f"{name}: {', '.join(f'{T} {as_bytes(n)}' for T, n in found.items())}")
    ends = [16 * T * D_HEAD for T in lengths]
    ax.plot(lengths, ends, ":", color=plots.GREY, lw=1.6)
    ax.text(lengths[2], ends[2] / 2.6, "Q, K, V and the output themselves", color=plots.GREY, size=10)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(lengths, [f"{T:,}" for T in lengths])
    ax.set_yticks([1e5, 1e6, 1e7, 1e8], ["100 kB", "1 MB", "10 MB", "100 MB"])
    ax.minorticks_off()
    ax.set(xlim=(lengths[0] * 0.9, lengths[-1] * 2.1))
    ax.set_title(f"{lengths[-1] // lengths[0]} times the length: {', '.join(growth)}")
    return f"Memory grows, from T = {lengths[0]} to {lengths[-1]}: {', '.join(growth)}. {'; '.join(clauses)}."


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
    pairs: float  # scores, softmax, weights · values


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
        pairs = partial(attention.scaled_dot_product_attention, heads, heads, heads)
        found[T] = Bill(seconds(partial(each_by_itself, x)), seconds(pairs))
    return found


def share_of_pairs(T: Any, d: float) -> Any:
    """Return the share of a block's multiply-adds that are between pairs: 2 T² d of 2 T² d + 12 T d²."""
    return T / (T + 6 * d)


def table_1(T: int, d: int) -> str:
    """Compute the paper's Table 1, and two rows more, from the library's counts."""
    kinds = {
        "self-attention": costs.attention_cost(T, d, 1),
        "recurrence": costs.recurrent_cost(T, d),
        "feed-forward": costs.feed_forward_cost(T, d, 4 * d),
        "fully connected": costs.dense_cost(T, d),
    }
    lines = [f"T = {T}, d = {d}     multiply-adds   parameters   steps in a row   path"]
    for name, cost in kinds.items():
        path = "none" if np.isinf(cost.path_length) else f"{cost.path_length:.0f}"
        lines.append(
            f"{name:18}{amount(cost.multiply_adds):>15}{amount(cost.parameters):>13}{cost.sequential_steps:17}{path:>7}"
        )
    return "\n".join(lines)


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
