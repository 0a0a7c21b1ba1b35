"""What is measured on this machine: bytes, seconds, and pictures of them."""

import math
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, plots, tables
from lesson_utils.maths import attention, ops
from lesson_utils.maths.attention import attention_forward
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.machine import thread_time
from lesson_utils.maths.models import GPT, GPTConfig

# --- Measuring --------------------------------------------------------------------------------------------------------


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


def compared(rows: Sequence[Measured]) -> tables.Table:
    """List each way's bytes and seconds, against the first one's, and what was lost."""
    first = rows[0]
    written = [
        (
            row.name,
            f"{as_bytes(row.bytes)} ({row.bytes / first.bytes:.1%})",
            f"{as_time(row.seconds)} ({row.seconds / first.seconds:.0%})",
            row.lost,
        )
        for row in rows
    ]
    return tables.table(("", "bytes at most", "time", "lost"), written)


def as_bytes(n: float) -> str:
    """1.2 kB, 34 MB."""
    size, unit = next((s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")) if n >= s or s == 1)
    return f"{n / size:.3g} {unit}" if n < 999.5 * size else f"{n / size:.0f} {unit}"


def as_time(t: float) -> str:
    """120 ms, 3.4 µs."""
    size, unit = next((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if t >= s or s == 1e-6)
    return f"{t / size:.2g} {unit}" if t < 99.5 * size else f"{t / size:.0f} {unit}"


# --- 1 · What does attention cost? ------------------------------------------------------------------------------------

D, HEADS = 128, 2  # of the block that is measured
LENGTHS = (64, 128, 256, 512, 1024, 2048)


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


def clock_table(measured: dict[int, Bill], lengths: Sequence[int] = (64, 256, 1024)) -> tables.Table:
    """List the share of pairs in a block's time when parts of the work between pairs are left out."""
    rows = {
        "counted multiply-adds": [share_of_pairs(T, D) for T in lengths],
        "the clock: the two products alone": [measured[T].share(measured[T].products) for T in lengths],
        "… and softmax": [measured[T].share(measured[T].bare) for T in lengths],
        "… and the library's checks": [measured[T].share(measured[T].pairs) for T in lengths],
    }
    head = ("share of pairs, width 128", *(f"T = {T:,}" for T in lengths))
    return tables.table(head, [(name, *of) for name, of in rows.items()], ".0%")


def share_of_pairs(T: Any, d: float) -> Any:
    """Return the share of a block's multiply-adds that are between pairs: 2 T² d of 2 T² d + 12 T d²."""
    return T / (T + 6 * d)


# --- 2 · Four ways to the same outputs, which differ in one thing each ------------------------------------------------

ROWS, KEYS = 64, 128  # queries at a time; keys in a tile


def with_fresh_arrays(Q: Array, K: Array, V: Array) -> Array:
    """Compute attention as one would write it down: each line makes a new array of T × T numbers."""
    scores = Q @ K.T * (1 / math.sqrt(Q.shape[-1]))
    shifted = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(shifted)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V


def in_one_array(Q: Array, K: Array, V: Array, kept: Array) -> Array:
    """Compute the same, all in the one array `kept`, (T_q, T_k), which was there before."""
    scores = np.matmul(Q, K.T, out=kept[: len(Q)])
    scores *= 1 / math.sqrt(Q.shape[-1])
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ V


def some_rows_at_a_time(Q: Array, K: Array, V: Array, kept: Array) -> Array:
    """Compute the same for a few queries after the other: whole rows, so softmax is the usual one."""
    return np.concatenate([in_one_array(Q[n : n + len(kept)], K, V, kept) for n in range(0, len(Q), len(kept))])


def in_tiles(Q: Array, K: Array, V: Array, rows: int = 1024, keys: int = KEYS, kept: Array | None = None) -> Array:
    """Compute the same a tile of keys at a time, by the online softmax: the maximum rises, and old sums shrink.

    With `kept`, (T_q, T_k), each tile's weights are written to their place in it and stay there.
    """
    outputs = []
    for n in range(0, len(Q), rows):
        q = Q[n : n + rows] * (1 / math.sqrt(Q.shape[-1]))
        largest = np.full((len(q), 1), np.finfo(Q.dtype).min, Q.dtype)
        total, output = np.zeros_like(largest), np.zeros((len(q), V.shape[-1]), Q.dtype)
        small = np.empty((len(q), keys), Q.dtype)
        for k in range(0, len(K), keys):
            tile = small[:, : len(K) - k] if kept is None else kept[n : n + rows, k : k + keys]
            np.matmul(q, K[k : k + keys].T, out=tile)
            new = np.maximum(largest, tile.max(axis=-1, keepdims=True))
            shrink = np.exp(largest - new)
            tile -= new
            np.exp(tile, out=tile)
            total = total * shrink + tile.sum(axis=-1, keepdims=True)
            output = output * shrink + tile @ V[k : k + keys]
            largest = new
        outputs.append(output / total)
    return np.concatenate(outputs)


class Way(NamedTuple):
    """One of the four, measured."""

    name: str
    bytes: int  # at most
    seconds: float


def measured_ways(Q: Array, K: Array, V: Array, rounds: int = 3) -> list[Way]:
    """Measure the four ways in turns, so that a slower minute of the machine is shared by all."""
    T = len(Q)

    def array(rows: int) -> Array:
        return np.ones((rows, T), Q.dtype)

    large, small = array(T), array(ROWS)
    calls: dict[str, tuple[Callable[[], Array], Callable[[], Array]]] = {
        "fresh arrays": (partial(with_fresh_arrays, Q, K, V),) * 2,
        "one kept array": (lambda: in_one_array(Q, K, V, array(T)), partial(in_one_array, Q, K, V, large)),
        f"{ROWS} rows at a time": (
            lambda: some_rows_at_a_time(Q, K, V, array(ROWS)),
            partial(some_rows_at_a_time, Q, K, V, small),
        ),
        "tiles": (partial(in_tiles, Q, K, V),) * 2,
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (_, call) in calls.items():
            times[name].append(seconds(call, repeats=1))
    return [Way(name, peak_bytes(whole), min(times[name])) for name, (whole, _) in calls.items()]


@plots.still(9.0, 2.9)
def four_ways(figure: "plots.Figure", ways: list[Way]) -> str:
    """Draw the bytes and the seconds of the four ways, one below the other."""
    axes, y = figure.subplots(1, 2, sharey=True), np.arange(len(ways))
    first = ways[0]
    for ax, values, unit in (
        (axes[0], [w.bytes for w in ways], as_bytes),
        (axes[1], [w.seconds for w in ways], as_time),
    ):
        ax.barh(y, values, 0.6, color=[plots.GREY, plots.ORANGE, plots.BLUE, plots.GREEN])
        ax.set(xlim=(0, 1.4 * max(values)), xticks=())
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        for n, value in enumerate(values):
            ax.text(value + 0.02 * max(values), n, f"{unit(value)}, {percent(value / values[0])}", va="center")
    axes[0].set_yticks(y, [w.name for w in ways])
    axes[0].invert_yaxis()
    rows = ways[2]
    axes[0].set_title(f"Bytes: a few rows at a time take {percent(rows.bytes / first.bytes)}")
    axes[1].set_title(f"Time: one kept array takes {percent(ways[1].seconds / first.seconds)}")
    listed = "; ".join(f"{w.name}: {as_bytes(w.bytes)}, {as_time(w.seconds)}" for w in ways)
    return f"… Four ways to the same outputs, bytes at most and seconds: {listed}."


def percent(share: float) -> str:
    """100 %, 3 %, 0.8 %."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"


# --- 5 · Multiply-adds per byte read, and how fast this machine is at each --------------------------------------------

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
def roofline(figure: "plots.Figure", measured: Roofline) -> str:
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
            bbox={"fc": "white", "ec": "none", "pad": 0.6},  # the dashed line begins behind the first
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
        (ridge, measured.most),
        (-12, -3),
        textcoords="offset points",
        ha="right",
        color=plots.GREY,
    )
    ax.annotate("limit: computing", (points[-3].per_byte, 1.3 * measured.most), color=plots.GREY)
    two, sixteen = (next(p for p in points if p.n == n) for n in (2, 16))
    times = sixteen.seconds / two.seconds
    ax.set_title(f"Eight times the work, 16 tokens in place of 2, takes {times:.1f} times as long")
    listed = ", ".join(f"{p.n}: {as_time(p.seconds)}" for p in points)
    cache_listed = formats.each([f"{p.n}:" for p in cached], [p.rate / cached[0].rate for p in cached], ".1f")
    return (
        f"… A matrix of {points[0].bytes / 1e6:.0f} MB times n "
        f"tokens: {listed}. Computing takes as long as the pass with 2 at {ridge:.1f} multiply-adds per byte. "
        f"Rate of a cache with n queries a head, against one: {cache_listed}."
    )


# --- 5 · What a pass costs on a cache, and drafts that a model verifies -----------------------------------------------

AT_ONCE = (1, 2, 4, 8, 16, 32)


class Price(NamedTuple):
    """Seconds of one pass over n new tokens, by n; and of one product that reads as many bytes as the parameters."""

    passes: dict[int, float]
    reading: float


def price(cached: int = 200, d_model: int = 512, num_layers: int = 8) -> Price:
    """Time passes over n new tokens behind a cache of `cached`; a GPT that was never trained will do."""
    config = GPTConfig(vocab=512, d_model=d_model, num_heads=4, num_layers=num_layers, max_length=cached + 64)
    model, rng = GPT(config, np.random.default_rng(0)), np.random.default_rng(1)
    past = model.new_past()
    model.forward(rng.integers(512, size=(1, cached)), past)

    def one_pass(n: int) -> None:
        model.forward(rng.integers(512, size=(1, n)), past)
        for cache in past:
            cache.length = cached  # forget them again

    numbers = sum(parameter.value.size for parameter in model.params().values())
    matrix = np.ones((numbers // d_model, d_model), np.float32)
    vector = np.ones(d_model, np.float32)
    passes = {n: seconds(lambda n=n: one_pass(n), repeats=7) for n in AT_ONCE}  # type: ignore[misc]
    return Price(passes, seconds(lambda: matrix @ vector, repeats=7))


@plots.still(9.0, 3.2)
def price_plot(figure: "plots.Figure", price: Price) -> str:
    """Draw the price of one pass over n new tokens, in passes over one."""
    ax, one = figure.add_subplot(), price.passes[1]
    n, cost = list(price.passes), [time / one for time in price.passes.values()]
    reading = price.reading / one
    ax.axhline(reading, color=plots.ORANGE, ls="--", lw=1.6)
    ax.annotate("reading alone", (n[-1], reading), (0, 5), textcoords="offset points", ha="right", color=plots.ORANGE)
    ax.plot(n, n, ":", color=plots.GREY)
    ax.plot(n, cost, "o-", color=plots.BLUE)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set(xlabel="new tokens in one pass", ylabel="cost, in single tokens")
    ax.set_xticks(n, [str(k) for k in n])
    ax.set_yticks(n, [str(k) for k in n])
    ax.annotate("one after the other", (n[-2], n[-2]), (-14, 0), textcoords="offset points", ha="right")
    ax.annotate("at once", (n[-2], cost[-2]), (0, -18), textcoords="offset points", color=plots.BLUE)
    ax.set_title(f"{n[-1]} tokens at once cost as much as {cost[-1]:.1f} single ones")
    return (
        f"… By number, in passes over one token ({as_time(one)}): {formats.each([f'{k}:' for k in n], cost, '.1f')}. "
        f"Reading as many bytes in one product takes {reading:.0%} of a pass over one token."
    )


def most_likely(ids: Ids, vocab: int) -> Ids:
    """After each two symbols the one that follows most often, (vocab, vocab)."""
    counts = np.zeros((vocab, vocab, vocab), np.int32)
    np.add.at(counts, (ids[:-2], ids[1:-1], ids[2:]), 1)
    return counts.argmax(axis=-1)


class Spoken(NamedTuple):
    """A text, and how many passes of the model it took after the one that read the prompt."""

    ids: list[int]
    passes: int
    drafted: int
    accepted: int


def speculate(model: GPT, prompt: Sequence[int], length: int, draft: Callable[[list[int]], int], ahead: int) -> Spoken:
    """Greedy text of a model that checks `ahead` drafted symbols in one pass; 0 is plain decoding.

    It keeps drafts while they are what the model would have said; from the first that is not, it takes its own.
    """
    ids, past = list(prompt), model.new_past()
    passes = drafted = accepted = 0
    end = len(ids) + length
    while len(ids) < end:
        guess = list(ids)
        for _ in range(min(ahead, end - len(ids) - 1)):
            guess.append(draft(guess))
        known = past[0].length
        logits: Array = model.forward(np.array([guess[known:]]), past)[0][0]
        said = logits.argmax(axis=-1)[len(ids) - 1 - known :]  # what the model says after each symbol
        new = guess[len(ids) :]
        right = next((n for n, symbol in enumerate(new) if symbol != said[n]), len(new))
        passes, drafted, accepted = passes + 1, drafted + len(new), accepted + right
        ids += [*new[:right], int(said[right])]
        for cache in past:
            cache.length = len(ids) - 1  # what was drafted in vain is forgotten
    return Spoken(ids, passes - 1, drafted, accepted)
