"""What is measured on this machine: bytes, seconds, and pictures of them."""

import ctypes
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, formats, plots
from lesson_utils.maths import attention, ops
from lesson_utils.maths.checks import Array
from lesson_utils.maths.machine import thread_time

# --- Measuring --------------------------------------------------------------------------------------------------------

Call = Callable[[], Any]


def seconds(call: Call, repeats: int = 5) -> float:
    """Return the shortest time that one call took, in seconds of this thread's work; half a second of them will do."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < 0.5:
        start = thread_time()
        call()
        times.append(thread_time() - start)
    return max(min(times), 1e-7)  # a clock has its steps


def in_turns(*calls: Call, rounds: int = 5) -> list[float]:
    """Return each call's median time. They take turns, so that a slower minute of the machine is shared by all."""
    return [float(x) for x in np.median([[seconds(call, repeats=1) for call in calls] for _ in range(rounds)], axis=0)]


def peak_bytes(call: Call) -> int:
    """Return the most memory that a call took, beyond what was there before."""
    tracemalloc.start()
    try:
        call()
        return max(tracemalloc.get_traced_memory()[1], 1)
    finally:
        tracemalloc.stop()


@contextmanager
def freed_memory_kept() -> Iterator[bool]:
    """Let the C library keep memory that was freed, in place of giving it back; False where it can't be told to."""
    try:
        c = ctypes.CDLL(None)
        mallopt, trim = c.mallopt, c.malloc_trim  # of glibc
    except (AttributeError, OSError, TypeError):
        yield False
        return
    large_from_the_system, give_back_from = -4, -1  # M_MMAP_MAX, M_TRIM_THRESHOLD
    mallopt(large_from_the_system, 0)
    mallopt(give_back_from, 2**31 - 1)
    try:
        yield True
    finally:
        mallopt(large_from_the_system, 65536)
        mallopt(give_back_from, 128 * 1024)
        trim(0)  # what was kept goes back


def as_bytes(n: float) -> str:
    """1.2 kB, 34 MB."""
    size, unit = next((s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")) if n >= s or s == 1)
    return f"{n / size:.3g} {unit}" if n < 999.5 * size else f"{n / size:.0f} {unit}"


def as_time(t: float) -> str:
    """120 ms, 3.4 µs."""
    size, unit = next((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if t >= s or s == 1e-6)
    return f"{t / size:.2g} {unit}" if t < 99.5 * size else f"{t / size:.0f} {unit}"


# --- 1 · The machine --------------------------------------------------------------------------------------------------

A100 = ("registers", "SRAM: 20 MB, 19 TB/s", "HBM: 40 GB, 1.5 TB/s")  # Dao et al. (2022), figure 1


def ram(speeds: Mapping[int, float]) -> float:
    """Return the bytes a second of RAM: what the two largest arrays reach, which no cache holds."""
    return max(list(speeds.values())[-2:])


@plots.still(9.2, 3.5)
def memories(figure: "plots.Figure", speeds: Mapping[int, float]) -> str:
    """Draw how fast arrays are read, by their size, and the memories of two machines, one above the other.

    Args:
        speeds: bytes a second, by the bytes of an array that is read again and again.
    """
    curve, sheet = figure.subplots(1, 2, width_ratios=(1, 1.25))
    sizes, rates = list(speeds), [rate / 1e9 for rate in speeds.values()]
    curve.plot(sizes, rates, "o-", color=plots.BLUE)
    curve.set_xscale("log", base=2)
    ticks = [size for size in (2**18, 2**20, 2**22, 2**24, 2**26) if sizes[0] <= size <= sizes[-1]]
    curve.set_xticks(ticks, [as_bytes(size) for size in ticks])
    curve.set(xlabel="size of the array", ylabel="GB read a second", ylim=(0, 1.15 * max(rates)))
    fast, slow = max(rates), ram(speeds) / 1e9
    curve.set_title(f"Cached: read {fast / slow:.1f} times as fast")
    here = ("registers", f"cache: {fast:.0f} GB/s here", f"RAM: {slow:.0f} GB/s here")
    sheet.set(xlim=(0, 8), ylim=(-0.1, 3.9))
    sheet.axis("off")
    for x, name, memories in ((2, "a processor", here), (6, "a GPU (A100)", A100)):
        sheet.text(x, 3.55, name, ha="center", weight="bold")
        for n, memory in enumerate(memories):
            colour, width = (plots.ORANGE, plots.GREEN, plots.BLUE)[n], (1.7, 3.0, 3.8)[n]
            drawings.box(sheet, x, 2.8 - 1.1 * n, memory, width, 0.75, colour, fontsize=10.5)
            if n:
                drawings.arrow(sheet, (x, 3.175 - 1.1 * n), (x, 3.525 - 1.1 * n))
    sheet.set_title("The larger a memory, the slower it is")
    listed = formats.each([f"{as_bytes(size)}:" for size in sizes], rates, ".0f")
    return f"… GB a second by the size of the array: {listed}. A100: {'; '.join(A100)}."


@plots.still(9.2, 3.8)
def roofline(
    figure: "plots.Figure", far: Mapping[int, float], near: Mapping[int, float], speeds: Mapping[int, float], size: int
) -> str:
    """Draw multiply-adds a second over multiply-adds per byte, for weights in RAM and in the cache.

    Args:
        far, near: seconds by the tokens at once, for the same multiply-adds.
        speeds: bytes a second, by the bytes of the array; the largest one is the cache's.
        size: bytes of all weights, each a number of 4.
    """
    ax = figure.add_subplot(xlabel="multiply-adds for each byte of weights", ylabel="multiply-adds a second")
    tokens = list(far)
    at = np.array([n / 4 for n in tokens])
    rates = {name: [n * size / 4 / times[n] for n in tokens] for name, times in (("far", far), ("near", near))}
    most = max(*rates["far"], *rates["near"])
    dense = np.geomspace(at[0] / 1.5, at[-1] * 1.5, 200)
    for name, colour, reading, words in (
        ("near", plots.ORANGE, max(speeds.values()), "weights stay in the cache"),
        ("far", plots.BLUE, ram(speeds), "weights come from RAM"),
    ):
        ax.plot(dense, np.minimum(dense * reading, most), color=drawings.tint(colour, 0.5), lw=1.6, zorder=1)
        ax.plot(at, rates[name], "o-" if name == "far" else "s--", color=colour, label=words)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(at, [f"{x:g}" for x in at])
    lowest = min(*rates["far"], *rates["near"])
    ax.set(ylim=(0.6 * lowest, 1.8 * most))
    billions = [b for b in (0.3, 1, 3, 10, 30, 100, 300) if 0.6 * lowest < b * 1e9 < 1.8 * most]
    ax.set_yticks([b * 1e9 for b in billions], [f"{b:g} billion" for b in billions])
    ax.minorticks_off()
    ax.legend(loc="lower right", title="pale: what reading and the limit allow", title_fontsize=10)
    ratio = {n: far[n] / near[n] for n in tokens}
    first, last = tokens[0], tokens[-1]
    ax.set_title(
        f"From RAM {first} token takes {ratio[first]:.1f} times as long, {last} tokens {ratio[last]:.1f} times"
    )
    listed = ", ".join(f"{n}: {as_time(far[n])} and {as_time(near[n])}" for n in tokens)
    return f"… Tokens at once, with weights from RAM and from the cache: {listed}."


# --- 2 · What does attention cost? ------------------------------------------------------------------------------------

D, HEADS = 128, 2  # of the block that is measured
LENGTHS = (64, 128, 256, 512, 1024, 2048)


class Bill(NamedTuple):
    """Seconds of one block, forward, by length: what grows with T, and what grows with T²."""

    linear: float  # projections and feed-forward network
    pairs: float  # scores, softmax, weights · values
    products: float  # pairs, without the softmax


def measured_bill(lengths: Sequence[int] = LENGTHS) -> dict[int, Bill]:
    """Time a block of width 128 with two heads at each length."""
    rng = np.random.default_rng(0)
    square, wide = rng.normal(size=(D, D)).astype(np.float32), rng.normal(size=(D, 4 * D)).astype(np.float32)

    def each_by_itself(x: Array) -> Array:
        for _ in range(4):  # W_Q, W_K, W_V and W_O
            x @ square
        return ops.relu(x @ wide) @ wide.T

    def products(h: Array) -> Array:  # what `pairs` does, but for the softmax
        return np.asarray(h @ h.swapaxes(-1, -2) @ h)

    found = {}
    for T in lengths:
        x = rng.normal(size=(T, D)).astype(np.float32)
        heads = attention.split_heads(x[None], HEADS)  # (1, h, T, d_k)
        pairs = partial(attention.scaled_dot_product_attention, heads, heads, heads)
        found[T] = Bill(*in_turns(partial(each_by_itself, x), pairs, partial(products, heads)))
    return found


def share_of_pairs(T: Any, d: float) -> Any:
    """Return the share of a block's multiply-adds that are between pairs: 2 T² d of 2 T² d + 12 T d²."""
    return T / (T + 6 * d)


@plots.still(8.2, 3.3)
def bill(figure: "plots.Figure", measured: Mapping[int, Bill], widths: Sequence[int] = (D, 512, 4096)) -> str:
    """Draw the share of pairs in a block's work over its length: by count for some widths, by the clock for one."""
    ax = figure.add_subplot(xlabel="length T (tokens)", ylabel="share spent on pairs")
    at = np.geomspace(64, 2**17, 60)
    for d, colour in zip(widths, (plots.ORANGE, plots.GREEN, plots.BLUE), strict=True):
        ax.plot(at, share_of_pairs(at, d), color=colour, label=f"counted, d = {d:,}")
        ax.plot([6 * d] * 2, [0, 0.5], ":", color=colour, lw=1.6)
    timed = [b.pairs / (b.pairs + b.linear) for b in measured.values()]
    without = [b.products / (b.products + b.linear) for b in measured.values()]
    ax.plot(list(measured), timed, "s", color=plots.INK, ms=6, label=f"by the clock, d = {D}")
    ax.plot(list(measured), without, "s", color=plots.INK, ms=6, mfc="none", label="… without the softmax")
    ax.set_xscale("log", base=2)
    ax.set(xlim=(at[0] / 1.2, at[-1]), ylim=(0, 1))
    ticks = [64, 512, 4096, 32_768]
    ax.set_xticks(ticks, [f"{T:,}" for T in ticks])
    ax.set_yticks((0, 0.5, 1), ("0", "half", "all"))
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    ax.set_title("Pairs are half of the work at T = 6 d (dotted)")
    listed, less = (formats.each([f"{T}:" for T in measured], shares, ".0%") for shares in (timed, without))
    return f"… Measured at d = {D}, by length: {listed}. Without the softmax: {less}."


# --- 3 · Four ways to the same outputs, which differ in one thing each ------------------------------------------------


class Way(NamedTuple):
    """A way to compute attention, measured."""

    name: str
    bytes: int  # at most
    seconds: float


def measured_ways(calls: Mapping[str, Call], beforehand: Mapping[str, int]) -> list[Way]:
    """Measure ways in turns, and the first one a second time while freed memory is kept, where the system can do so.

    Args:
        calls: the ways, by name.
        beforehand: bytes of an array that a way uses and that was there before.
    """
    first, times_kept = next(iter(calls)), []
    times: list[list[float]] = []
    for _ in range(5):
        times.append([seconds(call, repeats=1) for call in calls.values()])
        with freed_memory_kept() as kept:
            calls[first]()  # from here on the memory is there
            times_kept.append(seconds(calls[first], repeats=1) if kept else np.nan)
    found = [
        Way(name, peak_bytes(calls[name]) + beforehand.get(name, 0), float(time))
        for name, time in zip(calls, np.median(times, axis=0), strict=True)
    ]
    if not np.isnan(times_kept).any():
        found.insert(1, Way("the same, freed memory kept", found[0].bytes, float(np.median(times_kept))))
    return found


@plots.still(9.4, 3.1)
def four_ways(figure: "plots.Figure", ways: list[Way]) -> str:
    """Draw the bytes and the seconds of the four ways, one below the other."""
    axes, y = figure.subplots(1, 2, sharey=True), np.arange(len(ways))
    first = ways[0]
    for ax, values, unit in (
        (axes[0], [w.bytes for w in ways], as_bytes),
        (axes[1], [w.seconds for w in ways], as_time),
    ):
        ax.barh(y, values, 0.6, color=[*[plots.GREY] * (len(ways) - 3), plots.ORANGE, plots.BLUE, plots.GREEN])
        ax.set(xlim=(0, 1.6 * max(values)), xticks=())
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        for n, value in enumerate(values):
            ax.text(value + 0.02 * max(values), n, f"{unit(value)}, {percent(value / values[0])}", va="center")
    axes[0].set_yticks(y, [w.name for w in ways])
    axes[0].invert_yaxis()
    rows, kept = ways[-2], ways[-3]
    axes[0].set_title(f"Bytes: rows take {percent(rows.bytes / first.bytes)}")
    axes[1].set_title(f"Time: a kept array takes {percent(kept.seconds / first.seconds)}")
    listed = "; ".join(f"{w.name}: {as_bytes(w.bytes)}, {as_time(w.seconds)}" for w in ways)
    return f"… Four ways to the same outputs, bytes at most and seconds: {listed}."


def percent(share: float) -> str:
    """100 %, 3 %, 0.8 %."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"
