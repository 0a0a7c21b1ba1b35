"""Notebook 01: why one vector was never enough."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils import live, ops, plots, recurrent, tasks, training
from lesson_utils._checks import Array, Mask
from lesson_utils.attention import score_forward
from lesson_utils.lessons import as_written
from lesson_utils.models import Seq2Seq, Seq2SeqConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = tasks.letters()
LONGEST = 28  # letters, in the live decoder
MOST_NAMES = 16  # letters beside its map

# --- Gradients through time -------------------------------------------------------------------------------------------

CELLS = {"RNN": (plots.ORANGE, "--"), "GRU": (plots.GREEN, "-."), "LSTM": (plots.BLUE, "-")}
STEPS_BACK = 30


def slopes_plot() -> plots.Picture:
    """The logistic function and tanh, and their derivatives."""
    x = np.linspace(-6, 6, 241)  # 0 is among them
    functions = {"logistic": (ops.sigmoid(x), plots.ORANGE, "--"), "tanh": (np.tanh(x), plots.BLUE, "-")}
    slopes = {name: np.gradient(y, x) for name, (y, _, _) in functions.items()}
    finding = ", ".join(f"{name} {slope.max():.2f}" for name, slope in slopes.items())
    figure = plots.figure(9.0, 3.2)
    with plots.style():
        left, right = figure.subplots(1, 2)
        for name, (y, colour, dash) in functions.items():
            left.plot(x, y, dash, color=colour)
            right.plot(x, slopes[name], dash, color=colour, label=name)
        left.set(xlabel="x", ylabel="value", title="Two functions that bend")
        right.set(xlabel="x", ylabel="derivative", title=f"Steepest: {finding}", ylim=(0, 1.05))
        right.legend()
    return plots.picture(figure, f"Curves of the logistic function and tanh, and of their slopes. Largest: {finding}.")


@cache
def gradient_norms(kind: str, scale: float = 1.0, gate_bias: float = 0.0) -> Array:
    """The gradient's norm 0 … STEPS_BACK steps before the end, at a fresh cell of width 32 that reads random inputs.

    Args:
        kind: "rnn", "gru" or "lstm".
        scale: of the recurrent weights, 1 = orthogonal.
        gate_bias: added to the bias of the gate that keeps: z of a GRU, f of an LSTM (which begins at 1).
    """
    rng = np.random.default_rng(0)
    d_in, d_h = 16, 32
    params = [np.array(p) for p in recurrent.init_params(kind, d_in, d_h, rng, np.float64)]
    params[1] *= scale
    if kind != "rnn":
        params[2][d_h : 2 * d_h] += gate_bias
    x = rng.normal(size=(16, STEPS_BACK + 1, d_in))  # (B, T, d_in)
    return recurrent.gradient_norms_through_time(kind, x, params, rng)[::-1]  # the last step first


def memory_of(model: Seq2Seq) -> Array:
    """As `gradient_norms`, for the half of a model's encoder that reads forwards, on random letters."""
    rng = np.random.default_rng(0)
    ids, _ = tasks.reversal(rng, 64, STEPS_BACK + 1)
    params = [param.value[0] for param in model.encoder.parameters()]
    return recurrent.gradient_norms_through_time("gru", model.source.table.value[ids], params, rng)[::-1]


@live.lab(
    width=8.0,
    height=4.0,
    scale=live.Slider("recurrent weights ×", 0.5, 1.5, 1.0, 0.1),
    gate_bias=live.Slider("bias of the gate that keeps +", -2, 4, 0),
)
def gradient_lab(figure: "Figure") -> live.Update:
    """How much of a gradient is left, many steps back."""
    lowest = 1e-10
    ax = figure.add_subplot(xlim=(0, STEPS_BACK + 3), ylim=(lowest, 10), yscale="log")
    ax.set(xlabel="steps back from the loss", ylabel="norm of the gradient")
    ax.set_yticks([10.0**n for n in range(-10, 2, 2)])
    ax.axhline(1, color="#BBBBBB", lw=1, ls=":")
    steps = np.arange(STEPS_BACK + 1)
    lines = {name: ax.plot(steps, 0 * steps + 1, dash, color=c, label=name)[0] for name, (c, dash) in CELLS.items()}
    ax.legend(loc="lower left")

    def update(scale: float, gate_bias: float) -> str:
        norms = {name: gradient_norms(name.lower(), round(scale, 1), gate_bias) for name in CELLS}
        for name, line in lines.items():
            line.set_ydata(np.maximum(norms[name], lowest / 10))
        listed = ", ".join(f"{name} {_power(n[20])}" for name, n in norms.items())
        ax.set_title(f"Left after 20 steps: {listed}")
        return (
            f"Left of a gradient after 20 steps back: {listed}. After 5 steps: "
            + ", ".join(f"{name} {_power(n[5])}" for name, n in norms.items())
            + f". Recurrent weights times {scale:.1f}, gate bias {gate_bias:+d}."
        )

    return update


def _power(x: float) -> str:
    """As in 2·10⁻⁴; numbers near 1 as they are."""
    if 0.01 <= x < 1000:
        return f"{float(f'{x:.2g}'):g}"
    digit, exponent = f"{x:.0e}".split("e")
    return f"{digit}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


# --- Models that say it backwards ---------------------------------------------------------------------------------


def pairs(rng: np.random.Generator, shortest: int = 3, longest: int = 20) -> tasks.Pair:
    """A batch for `training.fit`: 64 random strings of one length, and the same backwards between begin and end."""
    source, target = tasks.reversal_batches(64, shortest, longest)(rng)
    return source, tasks.with_ends(target)


def right_letters(model: Seq2Seq, source: tasks.Ids) -> Mask:
    """Which symbols of the answers to (B, S) letters are right, the end included, (B, S + 1)."""
    wanted = tasks.with_ends(source[:, ::-1])[:, 1:]
    ids, _ = model.decode(source, wanted.shape[1])
    right: Mask = np.pad(ids, ((0, 0), (0, wanted.shape[1] - ids.shape[1]))) == wanted
    return right


def accuracy(model: Seq2Seq, length: int, tests: int = 200) -> float:
    """The fraction of random strings that the model reverses without a single mistake, the end included."""
    source, _ = tasks.reversal(np.random.default_rng(length), tests, length)
    return float(right_letters(model, source).all(axis=-1).mean())


def answer(model: Seq2Seq, word: str) -> tuple[str, Array | None]:
    """What a model makes of a word, and where it looked: (T, S), one row for each symbol it wrote, its end included."""
    ids, alignment = model.decode(LETTERS.encode(word)[None], len(word) + 2)
    return LETTERS.decode(ids[0]), None if alignment is None else alignment[0]


LOOKS = {  # colour, dash, marker
    "one fixed vector": (plots.ORANGE, "--", "s"),
    "Bahdanau": (plots.GREEN, "-.", "^"),
    "Luong": (plots.BLUE, "-", "o"),
}


def accuracy_plot(
    curves: Mapping[str, Mapping[int, float]], trained: tuple[int, int] = (3, 20), at: int = 12
) -> plots.Picture:
    """The share of strings that are all right, by length; the lengths of the training are shaded."""
    finding = f"Length {at}: " + ", ".join(f"{name} {curve[at]:.0%}" for name, curve in curves.items())
    longest = max(max(curve) for curve in curves.values())
    figure = plots.figure(8.0, 4.0)
    with plots.style():
        ax = figure.add_subplot(xlabel="length of the string", ylabel="strings all right", ylim=(-0.03, 1.05))
        ax.axvspan(*trained, color="#EEEEEE")
        note = f"training:\nlengths {trained[0]}–{trained[1]}"
        ax.text(trained[1] - 0.3, 0.5, note, color=plots.GREY, ha="right", va="center", zorder=1.5)
        for name, curve in curves.items():
            colour, dash, marker = LOOKS[name]
            ax.plot(list(curve), list(curve.values()), dash, color=colour, marker=marker, label=name, clip_on=False)
        ax.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %"))
        ax.set_xticks(range(4, longest + 1, 4))
        ax.set_title(finding)
        figure.legend(loc="outside right center")
    rows = (f"{name}: " + ", ".join(f"{n}: {s:.0%}" for n, s in curve.items()) for name, curve in curves.items())
    return plots.picture(figure, f"{finding}. Strings all right by length. {'; '.join(rows)}.")


# --- The size of the vector ---------------------------------------------------------------------------------------

# Measured once with `measure_capacity`, which takes seconds to minutes for a point: too long for a slider.
CAPACITY_LENGTHS = (4, 6, 8, 10, 12, 14, 16, 18, 20)
CAPACITY: dict[tuple[str | None, int, int], tuple[float, ...]] = {  # attention, hidden size, steps
    (None, 16, 2500): (0.75, 0.18, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 32, 2500): (0.99, 0.81, 0.34, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 64, 2500): (1.0, 0.96, 0.75, 0.34, 0.11, 0.02, 0.0, 0.0, 0.0),
    (None, 128, 2500): (1.0, 0.99, 0.91, 0.73, 0.37, 0.16, 0.05, 0.0, 0.0),
    (None, 16, 10_000): (0.99, 0.86, 0.34, 0.04, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 32, 10_000): (1.0, 1.0, 0.91, 0.56, 0.19, 0.03, 0.0, 0.0, 0.0),
    (None, 64, 10_000): (1.0, 1.0, 0.97, 0.9, 0.72, 0.4, 0.16, 0.03, 0.0),
    (None, 128, 10_000): (1.0, 1.0, 1.0, 1.0, 0.98, 0.92, 0.74, 0.47, 0.14),
    ("general", 16, 2500): (0.9, 0.8, 0.72, 0.61, 0.52, 0.39, 0.26, 0.11, 0.03),
    ("general", 32, 2500): (0.99, 0.97, 0.95, 0.95, 0.9, 0.88, 0.86, 0.83, 0.7),
    ("general", 64, 2500): (1.0, 0.99, 0.99, 0.99, 0.98, 0.98, 0.97, 0.97, 0.95),
    ("general", 128, 2500): (1.0, 1.0, 1.0, 0.99, 0.98, 0.99, 0.98, 0.98, 0.96),
}


def measure_capacity(attention: str | None, d_hidden: int, steps: int, tests: int = 400) -> tuple[float, ...]:
    """Train a model of one size as in the notebook; how many strings it gets right, by length."""
    config = Seq2SeqConfig(len(LETTERS), len(LETTERS), attention, d_hidden=d_hidden)
    model = Seq2Seq(config, np.random.default_rng(0))
    schedule = partial(training.warmup_linear, peak=3e-3, warmup=steps // 25, total=steps)
    training.fit(model, pairs, steps, schedule=schedule, progress=False)
    return tuple(round(accuracy(model, length, tests), 2) for length in CAPACITY_LENGTHS)


@live.lab(
    width=8.0,
    height=4.0,
    d_hidden=live.Choice("hidden size", (16, 32, 64, 128), 64),
    steps=live.Choice("training steps", (2500, 10_000), 2500),
)
def capacity_lab(figure: "Figure") -> live.Update:
    """How much a vector holds: stored measurements for four sizes."""
    ax = figure.add_subplot(xlabel="length of the string", ylabel="strings all right", ylim=(-0.03, 1.05))
    ax.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %"))
    ax.set_xticks(CAPACITY_LENGTHS)
    for (attention, _, _), curve in CAPACITY.items():
        if attention is None:
            ax.plot(CAPACITY_LENGTHS, curve, color="#DDDDDD", lw=1.2)
    lines = {}
    for name, label, attention in (("Luong", "Luong,\n2,500 steps", "general"), ("one fixed vector", None, None)):
        colour, dash, marker = LOOKS[name]
        lines[attention] = ax.plot(
            CAPACITY_LENGTHS, CAPACITY_LENGTHS, dash, color=colour, marker=marker, label=label or name, clip_on=False
        )[0]
    ax.plot([], [], color="#DDDDDD", lw=1.2, label="the other settings,\none fixed vector")
    figure.legend(loc="outside right center")

    def update(d_hidden: int, steps: int) -> str:
        fixed, luong = CAPACITY[None, d_hidden, steps], CAPACITY["general", d_hidden, 2500]
        lines[None].set_ydata(fixed)
        lines["general"].set_ydata(luong)
        holds = max((n for n, share in zip(CAPACITY_LENGTHS, fixed, strict=True) if share >= 0.5), default=0)
        ax.set_title(f"{d_hidden} numbers, {steps:,} steps: most strings right up to length {holds}")
        listed = ", ".join(f"{n}: {share:.0%}" for n, share in zip(CAPACITY_LENGTHS, fixed, strict=True))
        rest = ", ".join(f"{n}: {share:.0%}" for n, share in zip(CAPACITY_LENGTHS, luong, strict=True))
        return (
            f"One fixed vector of {d_hidden} numbers after {steps:,} steps gets most strings right up to length "
            f"{holds}. By length: {listed}. Luong's attention, same size, after 2,500 steps: {rest}."
        )

    return update


# --- Four scores ----------------------------------------------------------------------------------------------------

SCORES = ("dot", "general", "additive", "concat")


def score_params(kind: str, d: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Random parameters of a score between vectors of width d."""
    shapes: dict[str, list[tuple[int, ...]]] = {
        "dot": [],
        "general": [(d, d)],
        "additive": [(d, d), (d, d), (d,)],
        "concat": [(2 * d, d), (d,)],
    }
    return tuple(rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes[kind])


def score_table(d: int = 64, T: int = 20) -> dict[str, tuple[int, int, float]]:
    """For each score: parameters, operations for one pair alone, and for a pair among T queries and T keys.

    The operations are counted as they are done, by running `score_forward` on arrays that count.
    """
    table = {}
    for kind in SCORES:
        params = score_params(kind, d, np.random.default_rng(0))
        alone, many = (_count_operations(kind, n, d, params) for n in (1, T))
        table[kind] = sum(p.size for p in params), alone, many / T**2
    return table


def _count_operations(kind: str, T: int, d: int, params: Sequence[Array]) -> int:
    done = 0

    class Counting(np.ndarray):
        """Adds up what is computed with it: 2 for a multiplication and an addition in a product, 1 for others."""

        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **others: Any) -> Any:
            nonlocal done
            plain = [np.asarray(x) for x in inputs]
            result = getattr(ufunc, method)(*plain, **others)
            done += result.size * (2 * plain[0].shape[-1] if ufunc is np.matmul else 1)
            return result.view(Counting)

    queries, keys = (np.ones((1, T, d)).view(Counting) for _ in range(2))
    score_forward(kind, queries, keys, params)
    return done


SMALL_WORD = "bottleneck"
SNAPSHOTS = (0, 50, 100, 200, 400, 600)  # after so many steps


class Snapshot:
    """A model on the way: where it looks for the letters of `SMALL_WORD` backwards, what it writes, how often right."""

    def __init__(self, model: Seq2Seq) -> None:
        ids = LETTERS.encode(SMALL_WORD)[None]
        _, alignment = model.forward(ids, tasks.with_ends(ids[:, ::-1])[:, :-1])
        assert alignment is not None
        self.alignment = alignment[0]  # (T, S): the last row writes the end
        self.answer = answer(model, SMALL_WORD)[0]
        self.accuracy = accuracy(model, len(SMALL_WORD))


def small_model(kind: str, steps: int = SNAPSHOTS[-1]) -> dict[int, Snapshot]:
    """Train a small model with one of the scores on strings of 3–10 letters; what it did on the way."""
    config = Seq2SeqConfig(len(LETTERS), len(LETTERS), kind)
    model = Seq2Seq(config, np.random.default_rng(0))
    on_the_way = {0: Snapshot(model)}

    def look(step: int, loss: float, history: training.History) -> None:
        if step in SNAPSHOTS:
            on_the_way[step] = Snapshot(model)

    schedule = partial(training.warmup_linear, peak=5e-3, warmup=steps // 25, total=steps)
    training.fit(model, partial(pairs, longest=len(SMALL_WORD)), steps, schedule=schedule, callback=look)
    return on_the_way


def mirrored(alignment: Array, later: int = 0) -> int:
    """How many letters of the answer look most at the letter they copy, or at one so many places later in the word."""
    S = alignment.shape[1]
    steps = np.arange(min(len(alignment), S))  # without the end
    return int((alignment[steps].argmax(axis=-1) == S - 1 - steps + later).sum())


def four_maps(models: Mapping[str, Mapping[int, Snapshot]]) -> plots.Picture:
    """The maps of the four scores side by side, at the end of training."""
    letters = list(SMALL_WORD)
    rows = [*letters[::-1], "end"]
    figure = plots.figure(9.6, 3.2)
    alt = f"Four heat maps, the letters to be written by the letters read, for {SMALL_WORD!r}."
    with plots.style():
        axes = figure.subplots(1, len(models), sharey=True)
        for ax, (kind, snapshots) in zip(axes, models.items(), strict=True):
            last = snapshots[max(snapshots)]
            title = f"{kind}: {mirrored(last.alignment)} of {len(letters)}"
            plots.heatmap(last.alignment, rows, letters, title, "to be written", "read", False, ax=ax)
            ax.label_outer()
            alt += f" {kind}: {mirrored(last.alignment)} of {len(letters)} letters look most at the letter they copy."
        figure.suptitle("Letters that look most at the letter they copy", x=0.01, ha="left", fontsize=12.5)
    return plots.picture(figure, alt)


def _score_controls(models: Mapping[str, Mapping[int, Snapshot]]) -> dict[str, live.Control]:
    steps = tuple(next(iter(models.values())))
    return {
        "score": live.Choice("score", tuple(models), next(iter(models))),
        "step": live.Choice("after training step", steps, steps[len(steps) // 2]),
    }


def _untrained(score: str | None, seed: int = 0) -> Seq2Seq:
    return Seq2Seq(Seq2SeqConfig(len(LETTERS), len(LETTERS), score), np.random.default_rng(seed))


@live.lab(
    width=7.0,
    height=4.2,
    controls=_score_controls,
    example=lambda: {kind: {step: Snapshot(_untrained(kind, step)) for step in (0, 2)} for kind in ("dot", "additive")},
)
def score_lab(figure: "Figure", models: Mapping[str, Mapping[int, Snapshot]]) -> live.Update:
    """The map of one score, in the course of its training."""
    letters = list(SMALL_WORD)
    ax = figure.add_subplot()
    rows = [*letters[::-1], "end"]
    plots.heatmap(np.zeros((len(rows), len(letters))), rows, letters, "", "to be written", "read", False, ax=ax)
    image = ax.images[0]

    def update(score: str, step: int) -> str:
        now = models[score][step]
        image.set_data(now.alignment)
        hits = mirrored(now.alignment)
        finding = f"{hits} of {len(letters)} letters look most at the letter they copy"
        n = len(letters)
        copied = now.alignment[np.arange(n), n - 1 - np.arange(n)].mean()
        ax.set_title(f"{score}, step {step}: “{now.answer}”\n{finding}")
        return (
            f"{score} score after {step} steps: for {SMALL_WORD!r} the model writes {now.answer!r}; {finding}, "
            f"the letter copied gets a weight of {copied:.2f} on average. Of random strings of this length "
            f"{now.accuracy:.0%} are all right."
        )

    return update


# --- What a map says, and what it does not ----------------------------------------------------------------------------


def alignment_plot(models: Mapping[str, Seq2Seq], word: str) -> plots.Picture:
    """Where the models look while they write a word backwards."""
    maps = {}
    for name, model in models.items():
        text, alignment = answer(model, word)
        assert alignment is not None
        maps[f"{name}: {mirrored(alignment)} of {len(word)} on the diagonal"] = alignment[: len(text)]
    return _maps(maps, word, "written")


def influence(model: Seq2Seq, word: str) -> Array:
    """Which letter read decides which letter written, found by changing letters, (T, S).

    Entry (t, s): how far the probability of the word's t-th letter from the end falls when its s-th letter is another,
    on average over the other 25. The letters before it in the answer are those right for the changed word.
    """
    ids = LETTERS.encode(word)
    S = len(ids)
    others = np.array([[i for i in range(tasks.FIRST_SYMBOL, len(LETTERS)) if i != own] for own in ids])  # (S, 25)
    sources = np.tile(ids, (S, others.shape[1], 1))  # (S, 25, S)
    for s in range(S):
        sources[s, :, s] = others[s]
    sources = np.concatenate([ids[None], sources.reshape(-1, S)])  # the word itself, then the changed ones
    logits, _ = model.forward(sources, tasks.with_ends(sources[:, ::-1])[:, :-1])
    right = ops.softmax(logits)[:, np.arange(S), ids[::-1]]  # (1 + S·25, T)
    return right[0][:, None] - right[1:].reshape(S, -1, S).mean(axis=1).T


def influence_plot(models: Mapping[str, Seq2Seq], word: str) -> plots.Picture:
    """Which letters decide, by model."""
    maps = {}
    for name, model in models.items():
        effect = influence(model, word)
        maps[f"{name}: {mirrored(effect)} of {len(word)} on the diagonal"] = effect.clip(0)
    return _maps(maps, word, "decided")


def _maps(maps: Mapping[str, Array], word: str, row_label: str) -> plots.Picture:
    figure = plots.figure(9.0, 4.4)
    alts = []
    with plots.style():
        for ax, (title, matrix) in zip(figure.subplots(1, len(maps), squeeze=False)[0], maps.items(), strict=True):
            rows = list(word[::-1])[: len(matrix)]
            plots.heatmap(matrix, rows, list(word), title, row_label, "read", False, ax=ax)
            alts.append(plots.describe(matrix, rows, list(word), title, row_label, "read"))
    return plots.picture(figure, " ".join(alts))


# --- The live decoder ---------------------------------------------------------------------------------------------

TAIL = "qzjvkxwhfgpbmdyu"  # what the slider puts behind a word: no words, so that nothing can be guessed


@live.lab(
    width=9.6,
    height=4.4,
    controls=lambda fixed, attentive: {
        "word": live.Word("word", "attention", longest=40),
        "more": live.Slider("letters behind it", 0, len(TAIL), 3),
        "attention": live.Choice("attention", tuple(attentive), next(iter(attentive))),
    },
    example=lambda: (_untrained(None), {"Luong": _untrained("general"), "Bahdanau": _untrained("additive")}),
)
def word_lab(figure: "Figure", fixed: Seq2Seq, attentive: Mapping[str, Seq2Seq]) -> live.Update:
    """Type a word: a model with one fixed vector answers, and one with attention, with its map."""
    texts, ax = figure.subplots(1, 2, width_ratios=(1.15, 1))
    texts.set(xlim=(0, 1), ylim=(0, 1), xticks=(), yticks=())
    texts.spines[:].set_visible(False)
    rows = {}
    for y, label in ((0.93, "read"), (0.75, "wanted"), (0.53, "one fixed vector"), (0.25, "attention")):
        name = texts.text(0, y, label, color=plots.GREY, va="bottom")
        line = texts.text(0, y - 0.075, "", family="DejaVu Sans Mono", size=12.5, va="bottom")
        marks = texts.text(
            0, y - 0.14, "", family="DejaVu Sans Mono", size=12.5, va="bottom", color=plots.ORANGE, weight="bold"
        )
        rows[label] = name, line, marks
    image = ax.imshow(np.zeros((1, 1)), cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=1, aspect="auto")
    image.set_extent((0, 1, 1, 0))
    ax.set(xlim=(0, 1), ylim=(1, 0), xticks=(), yticks=())
    ax.set_xlabel("read", labelpad=18)
    ax.set_ylabel("written", labelpad=22)
    ax.spines[:].set_visible(False)
    below = [ax.text(0, 1.02, "", ha="center", va="top", clip_on=False) for _ in range(MOST_NAMES)]
    beside = [ax.text(-0.02, 0, "", ha="right", va="center", clip_on=False) for _ in range(MOST_NAMES + 2)]

    def update(word: str, more: int, attention: str) -> str:
        letters = "".join(c for c in word.lower() if c in LETTERS.characters)
        notes = ["only a–z"] if len(letters) < len(word) else []
        if len(letters) + more > LONGEST:
            notes.append(f"only {LONGEST}")
        read = (letters + TAIL[:more])[:LONGEST]
        if not read:
            read, notes = "abc", ["nothing to read: it got abc"]
        left_out = f" ({', '.join(notes)})" if notes else ""
        answers = {"one fixed vector": answer(fixed, read)[0]}
        answers["attention"], alignment = answer(attentive[attention], read)
        assert alignment is not None
        wanted = read[::-1]
        rows["attention"][0].set_text(attention)
        rows["read"][0].set_text(f"read: {len(read)} letter{'s' if len(read) > 1 else ''}{left_out}")
        rows["read"][1].set_text(read)
        rows["wanted"][1].set_text(wanted)
        verdicts = []
        for label, text in answers.items():
            wrong = [a != b for a, b in zip(wanted.ljust(len(text)), text.ljust(len(wanted)), strict=True)]
            rows[label][1].set_text(text)
            rows[label][2].set_text("".join("×" if w else " " for w in wrong))
            verdicts.append(f"{sum(wrong)} wrong" if any(wrong) else "all right")
        image.set_data(alignment)
        T, S = alignment.shape
        written = [*answers["attention"], "end"][:T]  # without "end" where the model did not stop
        named = S <= MOST_NAMES  # drawing a letter takes 0.3 ms: more of them would be crowded, and slow
        for n, artist in enumerate(below):
            artist.set_text(read[n] if named and n < S else "")
            artist.set_x((n + 0.5) / S)
        for n, artist in enumerate(beside):
            artist.set_text(written[n] if named and n < T else "")
            artist.set_y((n + 0.5) / T)
        texts.set_title(f"One vector: {verdicts[0]}. {attention}: {verdicts[1]}")
        hits = mirrored(alignment)
        ax.set_title(f"{attention}: {hits} of {len(read)} on the diagonal")
        return (
            f"Read: {read}{left_out}. The model with one fixed vector writes {answers['one fixed vector']!r}, "
            f"{verdicts[0]}; the one with {attention}'s attention {answers['attention']!r}, {verdicts[1]}. "
            f"{hits} of {len(read)} letters look most at the letter they copy."
        )

    return update
