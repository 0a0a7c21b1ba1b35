"""Small GPTs that read repeats, what their heads do while they learn, and figures of them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import plots, tables
from lesson_utils.lessons.real_model import measures
from lesson_utils.maths import ops, training
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.models.experiments import Change, changed

SYMBOLS, LENGTH = 24, 40  # different symbols, and how many a sequence has
PERIODS = (6, 16)
MAP_PERIOD = 12  # the period of the sequence whose maps are shown
FRAMES = 30
PEAK = 3e-3  # learning rate: with 8e-3, one of three seeds never gets there in 600 steps


def repeats(rng: np.random.Generator, batch: int, periods: tuple[int, int] = PERIODS) -> tuple[Ids, Ids]:
    """Random symbols, repeated with a period that is drawn for each sequence: ids (B, T), and the periods, (B,).

    A sequence has one symbol more than `LENGTH`, so that each of the others has a next one.
    """
    drawn = rng.integers(periods[0], periods[1] + 1, size=batch)
    ids = rng.integers(SYMBOLS, size=(batch, LENGTH + 1))
    at = np.arange(LENGTH + 1) % drawn[:, None]  # (B, T + 1): where in the first copy
    return np.take_along_axis(ids, at, axis=1), drawn


def pairs(rng: np.random.Generator, batch: int, periods: tuple[int, int] = PERIODS) -> tuple[Ids, Ids]:
    """Make a batch to train on: symbols, and those that follow them, (B, T) each."""
    ids, _ = repeats(rng, batch, periods)
    return ids[:, :-1], ids[:, 1:]


def induction(maps: Array, periods: Ids) -> Array:
    """Return the induction scores of maps with different periods: (B, ..., T, T) and (B,) → (...,)."""
    scores = [measures.induction_score(weights, P) for weights, P in zip(maps, periods, strict=True)]
    return np.asarray(np.mean(scores, axis=0))


def previous(maps: Array) -> Array:
    """Return the mean weight on the position before: (B, ..., T, T) → (...,)."""
    mean: Array = np.diagonal(maps, -1, -2, -1).mean(axis=-1).mean(axis=0)
    return mean


class Moment(NamedTuple):
    """A model at one step of its training, on sequences that it has not seen."""

    step: int
    loss: float  # nats, of what a repeat has settled
    right: float  # share, of the same
    induction: Array  # (layers, heads)
    previous: Array
    map: Array  # (T, T): of the sequence that is shown, and the head that ends as the best copyist


class Film(NamedTuple):
    """One training, moment by moment."""

    model: GPT
    moments: list[Moment]


def new_model(num_layers: int, seed: int = 0) -> GPT:
    config = GPTConfig(
        vocab=SYMBOLS, d_model=32, num_heads=2, num_layers=num_layers, max_length=LENGTH, positions="rotary"
    )
    return GPT(config, np.random.default_rng(seed))


def measured(model: GPT, ids: Ids, periods: Ids, **trying: Any) -> tuple[float, float, Array]:
    """Return loss and share right of what is settled, and the maps, (B, layers, h, T, T).

    The other arguments are those of `measures.run`.
    """
    logits, cache = measures.run(model, ids[:, :-1], **trying)  # (B, T, V)
    maps = np.stack(model.maps(cache)["decoder"], axis=1)
    settled = np.arange(1, LENGTH + 1) >= periods[:, None]  # the next symbol has been seen a period ago
    losses = measures.of_next(logits, ids)
    right = logits.argmax(axis=-1) == ids[:, 1:]
    return float(losses[settled].mean()), float(right[settled].mean()), maps


def moment(model: GPT, step: int, test: tuple[Ids, Ids]) -> Moment:
    """Measure with the maps of all heads, (layers, heads, T, T): which one ends as the best, only the end can tell."""
    loss, right, maps = measured(model, *test)
    ids, _ = repeats(np.random.default_rng(12), 1, (MAP_PERIOD, MAP_PERIOD))
    shown = measures.all_maps(model, ids[:, :-1])[0]
    return Moment(step, loss, right, induction(maps, test[1]), previous(maps), shown)


def grow(
    num_layers: int,
    steps: int,
    periods: tuple[int, int] = PERIODS,
    progress: bool = True,
    every: int | None = None,
) -> Film:
    """Train a GPT on repeats; measure it, on periods from 6 to 16, at regular steps."""
    model = new_model(num_layers)
    test = repeats(np.random.default_rng(99), 128)
    moments = [moment(model, 0, test)]
    every = every or max(1, steps // FRAMES)
    fit(model, steps, lambda step: moments.append(moment(model, step, test)), every, periods, progress=progress)
    best = np.unravel_index(moments[-1].induction.argmax(), moments[-1].induction.shape)
    return Film(model, [m._replace(map=m.map[best]) for m in moments])


def fit(
    model: GPT,
    steps: int,
    look: Callable[[int], None],
    every: int,
    periods: tuple[int, int] = PERIODS,
    seed: int = 0,
    progress: bool = True,
) -> None:
    """Train a GPT on repeats, and look at it at regular steps."""
    warmup = min(50, steps // 2)
    schedule: Callable[[int], float] = partial(training.warmup_linear, peak=PEAK, warmup=warmup, total=steps + 1)
    training.fit(
        model,
        lambda rng: pairs(rng, 32, periods),
        steps,
        schedule=schedule,
        callback=lambda step, loss, history: look(step),
        every=every,
        seed=seed,
        progress=progress,
    )


# --- Why all at once? One head is forced from the start ---------------------------------------------------------------

# Head 0 of layer 0 looks so many places back; or head 0 of layer 1 looks after the same symbol.
FORCED: dict[str, int | str | None] = {"nothing": None, "one back": 1, "two back": 2, "the match": "match"}


class Forced(NamedTuple):
    """Trainings of two layers, by what is forced and by seed; and what the free ones lose without heads of layer 0."""

    steps: Ids
    right: Array  # (kinds, seeds, steps)
    previous: Array  # (seeds, heads): previous-token scores of layer 0, at the end, nothing forced
    without: Array  # (seeds, 4): right with all heads, without head 0, without head 1, without both


def forced_on(model: GPT, what: int | str | None) -> list[Change]:
    """Return the changes that force one head to look where it should, whatever it learns."""
    lower, upper = (block.attention.inner for block in model.stack.blocks)
    if what is None:
        return []
    if isinstance(what, int):
        bias = np.zeros((2, LENGTH, LENGTH), np.float32)
        at = np.arange(what, LENGTH)
        bias[0, at, at - what] = 1e4  # the softmax makes a weight of 1 of it, through which no gradient comes
        attention = lower._attention
        return [(lower, "_attention", lambda Q, K, V, mask, _: attention(Q, K, V, mask, bias))]
    seen: list[Ids] = []
    tokens, attention = model.tokens.forward, upper._attention

    def noted(ids: Ids, *rest: Any) -> Any:
        seen[:] = [ids]
        return tokens(ids, *rest)

    def matched(Q: Array, K: Array, V: Array, mask: Any, _: Any) -> Any:
        bias = np.zeros((*Q.shape[:3], K.shape[2]), np.float32)
        bias[:, 0, :, 1:] = 1e4 * (seen[0][:, :, None] == seen[0][:, None, :-1])  # the key after the query's symbol
        return attention(Q, K, V, mask, bias)

    return [(model.tokens, "forward", noted), (upper, "_attention", matched)]


def forced(seeds: int, steps: int, every: int = 13) -> Forced:
    """Train two layers with nothing forced, and with one head forced in three ways, and measure what they get right."""
    test = repeats(np.random.default_rng(99), 128)
    off: tuple[dict[int, list[int]] | None, ...] = (None, {0: [0]}, {0: [1]}, {0: [0, 1]})
    right: list[float] = []
    before, without = [], []
    for what in FORCED.values():
        for seed in range(seeds):
            model = new_model(2, seed)
            with changed(forced_on(model, what)):
                look = partial(lambda model, _: right.append(measured(model, *test)[1]), model)
                fit(model, steps, look, every, seed=seed, progress=False)
            if what is None:
                before.append(previous(measured(model, *test)[2])[0])
                without.append([copied(model, knock_out=heads) for heads in off])
    seen = np.array([*range(every, steps, every), steps])
    return Forced(seen, np.reshape(right, (len(FORCED), seeds, len(seen))), np.array(before), np.array(without))


def jumps(runs: Forced) -> Ids:
    """Return the first step at which more than half of the copy is right: (kinds, seeds)."""
    found: Ids = runs.steps[(runs.right > 0.5).argmax(axis=-1)]
    return found


@plots.still(9.4, 3.6)
def forced_plot(figure: "plots.Figure", runs: Forced) -> str:
    """Draw when two layers learn to copy: with nothing forced, and with one head forced from the start."""
    ax, at = figure.subplots(), jumps(runs)
    for n, (name, colour) in enumerate(zip(FORCED, (plots.INK, plots.BLUE, plots.ORANGE, plots.GREEN), strict=True)):
        ax.plot(runs.steps, runs.right[n].T, color=colour, lw=1.2, alpha=0.8)
        ax.plot([], [], color=colour, label=f"{name}: half at step {np.median(at[n]):.0f}")
    ax.legend(loc="lower right", fontsize=10.5)
    ax.set(xlabel="training step", ylabel="share of the copy right", ylim=(0, 1), xlim=(0, runs.steps[-1]))
    ax.set_title("With either half of the pair there from the start, copying comes sooner, and as suddenly", size=12)
    listed = "; ".join(f"{name}: {', '.join(map(str, row))}" for name, row in zip(FORCED, at, strict=True))
    return f"… Steps at which half of the copy is right, of {at.shape[1]} starts: {listed}."


def pairs_table(runs: Forced) -> tables.Table:
    """List of the free trainings what they get right without each head of layer 0, and without both."""
    rows = []
    for seed, (scores, (whole, *off, both)) in enumerate(zip(runs.previous, runs.without, strict=True)):
        order = np.argsort(-scores)
        found = (f"{scores[n]:.2f}" for n in order), (f"{off[n]:.0%}" for n in order)
        rows.append((f"start {seed}", *found[0], f"{whole:.0%}", *found[1], f"{both:.0%}"))
    columns = ("previous-token score", "of the other", "right", "without the first", "the other", "both")
    return tables.table(("", *columns), rows)


def copied(model: GPT, **trying: Any) -> float:
    """Return the share right of what a repeat has settled, on sequences not seen in training.

    The other arguments are those of `measures.run`.
    """
    return measured(model, *repeats(np.random.default_rng(99), 128), **trying)[1]


SHARPNESS = 50.0  # of scores that are 0 or 1


def by_hand(make: Callable[[int, int], Any]) -> None:
    """Run two heads that were written by hand on random repeats, and say how well they copy, and where they are wrong.

    make: (V, T) -> QK_0, OV_0, QK_1, OV_1, as the exercise asks for.
    """
    ids, periods = repeats(np.random.default_rng(99), 128)
    wrong = run_by_hand(ids[:, :-1], *make(SYMBOLS, LENGTH)) != ids[:, 1:]
    at = np.arange(LENGTH)
    settled = at + 1 >= periods[:, None]
    print(f"{1 - wrong[settled].mean():.0%} of the copy right, without any training")
    same = (ids[:, :-1, None] == ids[:, None, :-1]) & (at < at[:, None])  # (B, T, T): the query's symbol, before
    others = (same & (ids[:, None, 1:] != ids[:, 1:, None])).any(axis=-1)  # with another follower
    last = at == periods[:, None] - 1
    first = ids[:, :-1] == ids[:, :1]
    causes = {
        "the symbol stood before with another follower": others & ~last,
        "the last symbol of the first copy": last,
        "the first symbol of the sequence": first & ~last & ~others,
    }
    for name, cause in causes.items():
        print(f"{(wrong & cause)[settled].sum() / wrong[settled].sum():4.0%} of the mistakes: {name}")


def run_by_hand(ids: Ids, QK_0: Array, OV_0: Array, QK_1: Array, OV_1: Array) -> Ids:
    """Run two heads without norms, feed-forward layers and positions of their own: ids (B, T) → answers (B, T)."""
    T = ids.shape[1]
    x = np.zeros((*ids.shape, 3 * SYMBOLS + T))  # (B, T, d): symbol, position, symbol before, answer
    x[..., :SYMBOLS] = np.eye(SYMBOLS)[ids]
    x[..., SYMBOLS : SYMBOLS + T] = np.eye(T)
    for QK, OV in ((QK_0, OV_0), (QK_1, OV_1)):
        scores = np.where(np.tri(T, dtype=bool), SHARPNESS * x @ QK @ x.swapaxes(-1, -2), -np.inf)  # (B, T, T)
        x = x + ops.softmax(scores) @ x @ OV
    answers: Ids = x[..., -SYMBOLS:].argmax(axis=-1)
    return answers


# --- Figures of the models that we grow ourselves ---------------------------------------------------------------------

TRAP = 12  # the one period of the notebook's model that only seems to copy


@plots.still(9.4, 2.9)
def chain_drawn(figure: "plots.Figure") -> str:
    """Draw how two heads copy: the first layer's tells each symbol what came before it, the second's asks for that."""
    ax = d.sheet(figure)
    ax.set_title("Two heads copy together: the second reads what the first has written")
    symbols = [*"RKBTRK", "?"]
    x = np.linspace(1.0, 8.3, len(symbols))
    boxes = [
        d.box(ax, at, 0.5, symbol, 0.6, colour=plots.GREY, size=14) for at, symbol in zip(x[:-1], symbols, strict=False)
    ]
    ax.text(x[-1], 0.5, symbols[-1], ha="center", va="center", size=18, weight="bold", color=plots.ORANGE)
    middle = [
        d.box(ax, at, 1.25, f"{symbol}, after {before}", 1.1, 0.38, plots.PURPLE, size=10.5)
        for at, symbol, before in zip(x[1:6], "KBTRK", "RKBTR", strict=True)
    ]
    for n, now in enumerate(middle):
        d.arrow(ax, boxes[n].top, (now.x - 0.2, now.bottom[1]), plots.PURPLE)
    d.arrow(ax, middle[4].top, (middle[1].x + 0.3, middle[1].top[1]), plots.BLUE, 2.6, bend=-0.17)
    d.arrow(ax, (middle[1].x - 0.2, middle[1].top[1]), (x[-1], 1.34), plots.ORANGE, bend=0.24)
    ax.text(x[-1] + 0.05, 1.17, "B", size=13, weight="bold", color=plots.ORANGE, ha="center", va="center")
    ax.text(
        x[3] + 0.15,
        2.4,
        "layer 1, induction head: “who came after a K?” The B: so B is next",
        color=plots.BLUE,
        ha="center",
        va="center",
        size=11,
    )
    ax.text(0.05, 1.25, "layer 0,\nprevious-\ntoken head", color=plots.PURPLE, va="center", size=10.5)
    ax.text(0.05, 0.5, "symbols", color=plots.GREY, va="center", size=10.5)
    return (
        "… Below, the symbols R K B T R K and a question mark. "
        "Layer 0 tells each what came before it: B is “B, after K”. In layer 1 the last K looks for “after K”, finds "
        "B, and B goes to the question mark: it is the answer."
    )


@plots.still(9.4, 3.5)
def trap_plot(figure: "plots.Figure", fixed: GPT, grown: GPT) -> str:
    """Draw share right and induction score by period, of a model trained with one period only and of one with many."""
    periods = range(PERIODS[0], PERIODS[1] + 1)
    right: dict[str, list[float]] = {"fixed": [], "grown": []}
    score: dict[str, list[float]] = {"fixed": [], "grown": []}
    for P in periods:
        ids, drawn = repeats(np.random.default_rng(5), 64, (P, P))
        for name, model in (("fixed", fixed), ("grown", grown)):
            _, share, maps = measured(model, ids, drawn)
            right[name].append(share)
            score[name].append(float(induction(maps, drawn).max()))
    at = np.arange(len(periods))
    for ax, of, what in zip(
        figure.subplots(1, 2), (right, score), ("share right", "best induction score"), strict=True
    ):
        ax.bar(at - 0.2, of["fixed"], 0.4, color=plots.ORANGE, label=f"one layer, trained on period {TRAP}")
        ax.bar(at + 0.2, of["grown"], 0.4, color=plots.BLUE, label=f"two layers, on periods {PERIODS[0]}–{PERIODS[1]}")
        ax.set_xticks(at, [str(P) for P in periods])
        ax.set(xlabel="period of the test", ylabel=what, ylim=(0, 1.3), yticks=(0, 0.5, 1))
        ax.legend(loc="upper left", fontsize=10)
    share, seems = (of["fixed"][periods.index(TRAP)] for of in (right, score))
    half = right["fixed"][periods.index(TRAP // 2)] > 0.5
    figure.axes[0].set_title(f"Right on {TRAP} ({share:.0%}) and on {'its half' if half else 'nothing else'}")
    figure.axes[1].set_title(f"At {TRAP}, the score says “induction”: {seems:.2f}")
    listed = "; ".join(
        f"{P}: {r:.2f}, score {s:.2f}" for P, r, s in zip(periods, right["fixed"], score["fixed"], strict=True)
    )
    return f"… By period, share right and induction score of the layer trained on period {TRAP} only: {listed}."


Patched = Callable[..., tuple[Array, Array]]  # `run_patched` of the notebook: logits, and the maps of layer 1


def cut(run: Patched, model: GPT, head: int, inputs: measures.Inputs) -> tables.Table:
    """Take a head of layer 0 out of each input of layer 1: the share of the copy that is right.

    Alone, and with what the feed-forward network of its layer makes of its output.
    """
    ids, periods = repeats(np.random.default_rng(99), 128)
    settled = np.arange(1, LENGTH + 1) >= periods[:, None]

    def right(into: str, detour: bool) -> float:
        logits, _ = run(model, ids[:, :-1], head, partial(inputs, into=into), detour)
        return float((logits.argmax(axis=-1) == ids[:, 1:])[settled].mean())

    rows = [("nothing missing", *[copied(model)] * 2)]
    for into in measures.INPUTS:
        rows.append((f"0.{head} missing in the {into}", right(into, False), right(into, True)))
    return tables.table(("share of the copy right", "head alone", "with its detour"), rows, ".0%")


def moved(run: Patched, model: GPT, head: int, inputs: Mapping[str, measures.Inputs]) -> tables.Table:
    """List where layer 1 looks and what the model says, for several ways to make its inputs."""
    ids, periods = repeats(np.random.default_rng(99), 128)
    answers, after = ids[:, 1:-1], ids[:, 2:]  # of all queries but the last
    counts = (np.arange(1, LENGTH) >= periods[:, None]) & (answers != after)
    rows = []
    for name, make in inputs.items():
        logits, maps = run(model, ids[:, :-1], head, make)
        said = logits[:, :-1].argmax(axis=-1)
        near = [
            float(np.mean([measures.look_near(one, P, off) for one, P in zip(maps, periods, strict=True)]))
            for off in (-1, 0, 1)
        ]
        shares = [f"{(said == what)[counts].mean():.0%}" for what in (answers, after)]
        rows.append((name, *(f"{weight:.2f}" for weight in near), *shares))
    return tables.table(("weight of layer 1", "one earlier", "answer", "one later", "says: answer", "next"), rows)


# --- The circuits as matrices -----------------------------------------------------------------------------------------


def circuits(model: GPT, looks_back: int) -> dict[str, Array]:
    """Return who finds whom and who says what, symbol by symbol: three matrices, (SYMBOLS, SYMBOLS).

    The scores of a query with symbol r (row) on a key that stands after symbol c, summed over the heads of layer 1, by
    what the previous-token head writes of c: with the query from the table of embeddings, and from the stream after
    layer 0. Then the logits of c that layer 1 writes when it reads r.
    """
    lower, upper = model.stack.blocks
    x, _ = model.tokens.forward(np.arange(SYMBOLS)[None])  # (1, SYMBOLS, d_model)
    below, above = lower.attention.inner, upper.attention.inner
    d_k = model.config.d_model // model.config.num_heads
    own = slice(looks_back * d_k, (looks_back + 1) * d_k)
    said = _normed(lower.attention, x)[0] @ below.W_V.value[:, own] @ below.W_O.value[own]  # after c
    pairs = x[0][:, None] + said  # symbol r, after c: (SYMBOLS, SYMBOLS, d_model)
    pairs = pairs + lower.feed_forward.inner.forward(_normed(lower.feed_forward, pairs))[0]
    stream = _normed(upper.attention, pairs).mean(axis=1)
    keys = above.W_Q.value @ above.W_K.value.T @ said.T
    written = model.tokens.embedding.logits_forward(stream @ above.W_V.value @ above.W_O.value)[0]
    return {"by matrices alone": x[0] @ keys, "query from the stream": stream @ keys, "written": written}


def _normed(part: Any, x: Array) -> Array:
    """Return the stream as a part of a layer reads it."""
    normed: Array = part.norm.forward(x)[0]
    return normed


@plots.still(9.8, 3.9)
def circuits_plot(figure: "plots.Figure", model: GPT, looks_back: int) -> str:
    """Draw who finds whom, and who says what, in the heads that we have grown: products of their matrices."""
    told = []
    names = ("Finds, from embeddings", "Finds, from the stream", "Says")
    ends = ("key after c", "key after c", "c is said")
    for ax, matrix, name, end in zip(
        figure.subplots(1, 3), circuits(model, looks_back).values(), names, ends, strict=True
    ):
        rest = matrix - matrix.mean(axis=1, keepdims=True)
        top = np.abs(rest).max()
        ax.imshow(rest, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-top, vmax=top)
        best = int((rest.argmax(axis=1) == np.arange(SYMBOLS)).sum())
        ax.set_title(f"{name}:\n{best} of {SYMBOLS} rows right", size=12)
        ax.set(xlabel=end, xticks=(), yticks=())
        told.append(f"{name.lower()}: {best} of {SYMBOLS}")
    figure.axes[0].set_ylabel("symbol of the query")
    figure.axes[2].set_ylabel("symbol that is read")
    return f"Rows that are largest on the diagonal: {', '.join(told)}. Each row's mean is taken away."
