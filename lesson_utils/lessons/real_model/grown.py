"""Small GPTs that read repeats, what their heads do while they learn, and figures of them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import plots, tables
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.measures import label, stored
from lesson_utils.maths import ops, training
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT, GPTConfig

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
    """Return the induction score: the second copy's mean weight on the position after the same symbol.

    maps: (B, ..., T, T). periods: (B,). Returns (...,).
    """
    per_sequence = [
        np.diagonal(weights, 1 - P, -2, -1)[..., 1 : P + 1].mean(axis=-1)
        for weights, P in zip(maps, periods, strict=True)
    ]
    return np.asarray(np.mean(per_sequence, axis=0))


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


def new_model(num_layers: int, positions: str = "rotary", seed: int = 0, d_model: int = 32) -> GPT:
    sizes: dict[str, Any] = {
        "vocab": SYMBOLS,
        "d_model": d_model,
        "num_heads": 2,
        "num_layers": num_layers,
        "max_length": LENGTH,
    }
    return GPT(GPTConfig(positions=positions, **sizes), np.random.default_rng(seed))


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


def shown_sequence() -> Ids:
    """Make the sequence whose maps are shown, (1, T + 1)."""
    return repeats(np.random.default_rng(12), 1, (MAP_PERIOD, MAP_PERIOD))[0]


def moment(model: GPT, step: int, test: tuple[Ids, Ids]) -> Moment:
    """Measure with the maps of all heads, (layers, heads, T, T): which one ends as the best, only the end can tell."""
    loss, right, maps = measured(model, *test)
    shown = np.stack(model.maps(model.forward(shown_sequence()[:, :-1])[1])["decoder"])[:, 0]
    return Moment(step, loss, right, induction(maps, test[1]), previous(maps), shown)


def grow(
    num_layers: int,
    steps: int,
    positions: str = "rotary",
    periods: tuple[int, int] = PERIODS,
    seed: int = 0,
    progress: bool = True,
    every: int | None = None,
    d_model: int = 32,
) -> Film:
    """Train a GPT on repeats; measure it, on periods from 6 to 16, at regular steps."""
    model = new_model(num_layers, positions, seed, d_model)
    test = repeats(np.random.default_rng(99), 128)
    moments = [moment(model, 0, test)]

    def look(step: int, loss: float, history: training.History) -> None:
        moments.append(moment(model, step, test))

    schedule: Callable[[int], float] = partial(
        training.warmup_linear, peak=PEAK, warmup=min(50, steps // 2), total=steps + 1
    )
    every = every or max(1, steps // FRAMES)
    training.fit(
        model,
        lambda rng: pairs(rng, 32, periods),
        steps,
        schedule=schedule,
        callback=look,
        every=every,
        seed=seed,
        progress=progress,
    )
    best = np.unravel_index(moments[-1].induction.argmax(), moments[-1].induction.shape)
    return Film(model, [m._replace(map=m.map[best]) for m in moments])


def copied(model: GPT, **trying: Any) -> float:
    """Return the share right of what a repeat has settled, on sequences not seen in training.

    The other arguments are those of `measures.run`.
    """
    return measured(model, *repeats(np.random.default_rng(99), 128), **trying)[1]


SHARPNESS = 50.0  # of scores that are 0 or 1


def by_hand(make: Callable[[int, int], Any]) -> None:
    """Run two heads that were written by hand on random repeats, and say how well they copy.

    make: (V, T) -> QK_0, OV_0, QK_1, OV_1, as the exercise asks for.
    """
    matrices = make(SYMBOLS, LENGTH)
    ids, periods = repeats(np.random.default_rng(99), 128)
    answers = run_by_hand(ids[:, :-1], *matrices)  # (B, T)
    settled = np.arange(1, LENGTH + 1) >= periods[:, None]
    print(f"{(answers == ids[:, 1:])[settled].mean():.0%} of the copy right, without any training")


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
    d.arrow(ax, middle[4].top, (middle[1].x + 0.1, middle[1].top[1]), plots.BLUE, 2.6, bend=-0.28)
    d.arrow(ax, (middle[4].x + 0.58, 1.25), (x[-1], 0.76), plots.ORANGE, bend=0.15)
    ax.text(x[-1] + 0.05, 1.17, "B", size=13, weight="bold", color=plots.ORANGE, ha="center", va="center")
    ax.text(
        x[3] + 0.15,
        2.2,
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
def trap_plot(figure: "plots.Figure", fixed: GPT, grown: GPT, score_of: Callable[[Any, int], Any]) -> str:
    """Draw share right and induction score by period, of a model trained with one period only and of one with many.

    Args:
        score_of: `score_of(weights, period)` returns the induction score of each map, as the learner writes it.
    """
    periods = range(PERIODS[0], PERIODS[1] + 1)
    right: dict[str, list[float]] = {}
    score: dict[str, list[float]] = {}
    for name, model in (("fixed", fixed), ("grown", grown)):
        tests = [repeats(np.random.default_rng(5), 64, (P, P)) for P in periods]
        seen = [measured(model, *test) for test in tests]
        right[name] = [share for _, share, _ in seen]
        scores = [np.mean(score_of(maps, P), axis=0) for (_, _, maps), P in zip(seen, periods, strict=True)]
        score[name] = [float(of_heads.max()) for of_heads in scores]
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


POSITIONS = {
    "rotary": plots.BLUE,
    "learned": plots.ORANGE,
    "sinusoidal": plots.GREEN,
}


@plots.still(9.8, 3.9)
def positions_plot(figure: "plots.Figure") -> str:
    """Draw how two layers learn to copy with each kind of positions, and where layer 0 looks in the end."""
    known: Any = stored()
    steps, kinds = known["positions_steps"], [str(kind) for kind in known["positions_kinds"]]
    right, pair, near = (known[f"positions_{name}"] for name in ("right", "pair", "near"))
    curves, scores, profile = figure.subplots(1, 3, width_ratios=(1.1, 1, 1))
    for kind, runs, pairs_ in zip(kinds, right, pair, strict=True):
        curves.plot(steps, runs.T, color=POSITIONS[kind], lw=1.5)
        scores.plot(pairs_[:, -1, 0], runs[:, -1], "o", color=POSITIONS[kind], ms=9, alpha=0.85, label=kind)
    curves.set(xlabel="training step", ylabel="share of the copy right", ylim=(0, 1.02), xlim=(0, steps[-1]))
    scores.set(
        xlabel="best previous-token score, layer 0", xlim=(0, 1), ylim=(0, 1.02), ylabel="share right at the end"
    )
    scores.legend(loc="lower right", fontsize=10.5)
    no_pair = [
        (kind, float(run))
        for kind, runs, pairs_ in zip(kinds, right[:, :, -1], pair[:, :, -1, 0], strict=True)
        for run, previous in zip(runs, pairs_, strict=True)
        if run > 0.5 and previous < 0.25
    ]
    at = range(near.shape[-1])
    for kind in kinds:
        n = kinds.index(kind)
        seed = int(right[n, :, -1].argmax())
        head = int(near[n, seed, :, 1].argmax())
        profile.plot(at, near[n, seed, head], "o-", color=POSITIONS[kind], ms=5)
    profile.set(xlabel="places back from the query", ylabel="mean weight, layer 0", ylim=(0, 1), xticks=range(0, 9, 2))
    curves.set_title("Three runs with each kind\nof positions", size=11.5)
    scores.set_title(f"{len(no_pair)} runs copy without\na previous-token head", size=11.5)
    profile.set_title("Where layer 0 looks\nin each kind's best run", size=11.5)
    label(figure, "stored runs of small models, as above")
    ends = zip(kinds, right[:, :, -1], pair[:, :, -1, 0], strict=True)
    listed = "; ".join(
        f"{kind}: {', '.join(f'{run:.2f} ({before:.2f})' for run, before in zip(*two, strict=True))}"
        for kind, *two in ends
    )
    return (
        f"… They copy more than half. Share right after {steps[-1]} steps, and the best previous-token score of "
        f"layer 0, for three seeds: {listed}. Stored results."
    )


def without_table() -> tables.Table:
    """List what the runs of `positions_plot` get right without each head of layer 0."""
    known: Any = stored()
    runs = zip(known["positions_kinds"], known["positions_right"][:, :, -1], known["positions_without"], strict=True)
    rows = [
        (f"{kind}, seed {seed}", whole, *heads)
        for kind, right, without in runs
        for seed, (whole, heads) in enumerate(zip(right, without, strict=True))
    ]
    head = ("right at the end", "all heads", "without one head of layer 0", "without the other")
    return tables.table(head, rows, ".0%")


def cut(model: GPT, head: tuple[int, int], inputs: measures.Inputs) -> tables.Table:
    """Take a head of a grown model out of each input of all heads above it: the share of the copy that is right.

    Alone, and with what the feed-forward network of its layer makes of its output.
    """
    ids, periods = repeats(np.random.default_rng(99), 128)
    settled = np.arange(1, LENGTH + 1) >= periods[:, None]
    readers = {layer: range(model.config.num_heads) for layer in range(head[0] + 1, model.config.num_layers)}

    def right(into: str, detour: bool) -> float:
        logits = measures.run_patched(model, ids[:, :-1], head, into, readers, inputs, detour=detour).logits
        return float((logits.argmax(axis=-1) == ids[:, 1:])[settled].mean())

    rows = [("nothing missing", *[copied(model)] * 2)]
    for into in measures.INPUTS:
        rows.append((f"{head[0]}.{head[1]} missing in the {into}", right(into, False), right(into, True)))
    return tables.table(("share of the copy right", "head alone", "with its detour"), rows, ".0%")
