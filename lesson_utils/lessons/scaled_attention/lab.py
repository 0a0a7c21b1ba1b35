"""What notebook 02 calls as `lab.name`, in its order."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import each, short
from lesson_utils.maths import attention, models, ops, tasks
from lesson_utils.maths.checks import Array
from lesson_utils.maths.layers import Param

# --- 1 · Context moves a word: 'bank' between water and money ---------------------------------------------------------

SENSES = {  # (water, money), written by hand
    "bank": (1.0, 1.0), "river": (2.4, 0.2), "swam": (2.0, 0.5), "money": (0.2, 2.6), "lends": (0.4, 2.1),
}  # fmt: skip
OTHER = (0.3, 0.3)
SENTENCES = (
    "she swam to the river bank",
    "the bank lends money",
    "the bank by the river lends money",
    "the bank was closed",
)
LONGEST = max(len(sentence.split()) for sentence in SENTENCES)
BELOW = {"swam", "lends", "other words"}  # labels that stand under their points, clear of their neighbours'


def embed(words: Sequence[str]) -> Array:
    """Give each word two numbers, (water, money); words without either meaning get little of both. Shape (T, 2)."""
    return np.array([SENSES.get(word, OTHER) for word in words])


@live.lab(
    height=3.7,
    neutral="It opens on the sentence in which no word has either sense.",
    telling={"sentence": SENTENCES[2]},
    sentence=live.Choice("sentence", SENTENCES, SENTENCES[-1]),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
)
def bank_lab(figure: "plots.Figure") -> live.Update:
    """Show how softmax(XXᵀ/τ)X moves 'bank' towards the company it keeps."""
    from matplotlib.collections import PolyCollection

    plane, chart = figure.subplots(1, 2, width_ratios=(1.2, 1))
    plane.set(xlim=(0, 2.85), ylim=(0, 2.85), xlabel="water", ylabel="money")
    # All triangles of three words together are the hull: whatever an average reaches, one of three words reaches, too.
    span = plane.add_collection(PolyCollection([], fc=drawings.tint(plots.VALUE, 0.13), ec="none", zorder=0.5))
    names = (*SENSES, "other words")
    places = np.array([SENSES.get(name, OTHER) for name in names])
    threads = drawings.Threads(plane, SENSES["bank"], places, plots.BLUE, widest=20)
    dots, labels = [], []
    for name, (x, y) in zip(names, places, strict=True):
        dots += plane.plot([x], [y], "o", color=plots.INK, ms=7, zorder=3)
        offset = (8, -14) if name in BELOW else (8, 5)
        labels.append(plane.annotate(name, (x, y), offset, textcoords="offset points", zorder=4))
    (end,) = plane.plot([], [], "D", color=plots.VALUE, ms=11, zorder=5, label="bank, moved")
    plane.legend(loc="upper right")

    bars = plots.Bars(chart, LONGEST, color=plots.BLUE)
    chart.set(xlim=(0, 1.15), xticks=(0, 0.25, 0.5, 0.75, 1), xlabel="weight that 'bank' gives", yticks=())
    chart.set_ylim(LONGEST - 0.4, -0.6)
    words_at = [chart.text(-0.03, row, "", ha="right", va="center") for row in range(LONGEST)]

    def update(sentence: str, temperature: float) -> str:
        words = sentence.split()
        X = embed(words)  # (T, 2)
        output, weights = attention.scaled_dot_product_attention(X, X, X, scale=1 / temperature)
        i = words.index("bank")
        row, here, there = weights[i], X[i], output[i]
        shares = np.zeros(len(names))  # words without a sense of their own share one place
        for word, weight in zip(words, row, strict=True):
            shares[names.index(word if word in SENSES else names[-1])] += weight
        threads.set(np.where(np.array(names) == "bank", 0, shares))
        used = {word if word in SENSES else names[-1] for word in words}
        for name, dot, label in zip(names, dots, labels, strict=True):
            dot.set_color(plots.INK if name in used else "#C8C8C8")
            label.set_color(plots.INK if name in used else plots.GREY)
            label.set_fontweight("bold" if name == "bank" else "normal")
        span.set_verts(list(combinations(X, 3)))
        end.set_data(there[:1], there[1:])
        bars.set([*row, *[0.0] * (LONGEST - len(row))], [*(f"{w:.2f}" for w in row), *[""] * (LONGEST - len(row))])
        for n, text in enumerate(words_at):
            text.set_text(words[n] if n < len(words) else "")
            text.set_fontweight("bold" if n == i else "normal")
        lean = there[0] - there[1]
        towards = "stays between" if abs(lean) < 0.05 else f"leans to {'water' if lean > 0 else 'money'}"
        plane.set_title(f"'bank' {towards}: ({there[0]:.1f}, {there[1]:.1f})")
        best = int(row.argmax())
        chart.set_title(f"It takes most from {'itself' if best == i else repr(words[best])}: {row[best]:.2f}")
        return (
            f"… The sentence is: {sentence}. 'bank' moves from ({here[0]}, {here[1]}) to ({there[0]:.2f}, "
            f"{there[1]:.2f}) on (water, money), at temperature {short(temperature)}. Left, lines from 'bank' to the "
            f"words of the sentence, as thick as their weights, and the area that the words span, in which the output "
            f"lies. Right, the weights: {each(words, row)}."
        )

    return update


# --- 2 · Query, key, value: a film catalogue --------------------------------------------------------------------------

FILMS = ("Iron Harbour", "Last Train North", "Paper Hearts", "Two in Vienna", "The Long Heist", "Quiet Orchard")
# How much more or less action and romance than an average film.
FILM_KEYS = np.array([[0.9, -0.6], [0.5, 0.0], [-0.5, 0.9], [0.3, 0.8], [0.6, -0.8], [-0.8, -0.2]])  # (6, 2)
FILM_MINUTES = np.array([[128.0], [101.0], [94.0], [112.0], [143.0], [87.0]])  # (6, 1)


# --- 3 · A suspicion: how scores grow with d_k, and what softmax makes of them ----------------------------------------

D_KS = tuple(2**i for i in range(10))  # 1 … 512
NUM_KEYS = (8, 32, 128, 512, 2048)
SEQUENCES, QUERIES = 4, 64  # sequences of keys; queries that look at each
SCALED, UNSCALED = plots.INK, plots.PURPLE  # the other colours are q, k and v


@plots.still(9.0, 3.9)
def fan(figure: "plots.Figure", scores: Mapping[int, Array], variance: Callable[[int], float]) -> str:
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
    for n, name in enumerate(("1 predicted sd", "2 predicted sd"), 1):
        ax.annotate(name, (last, n * band[-1]), (14, 0), textcoords="offset points", va="center", color=UNSCALED)
    low, high = min(scores), max(scores)
    narrow, wide = (float(np.std(scores[d_k])) for d_k in (low, high))
    ax.set(xlim=(-10, last * 1.13), ylim=(-3.4 * wide, 3.4 * wide))
    ax.set_xticks([d_k for d_k in scores if d_k == low or d_k >= last / 16])
    ax.set_title(f"The fan opens: a typical score is ±{narrow:.0f} at $d_k$ = {low}, and ±{wide:.0f} at {high}")
    spread = each((f"{d_k}:" for d_k in scores), (float(np.std(s)) for s in scores.values()), ".1f")
    return f"… Dots in bands of one and two predicted standard deviations. Standard deviation by d_k: {spread}."


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


def slopes(weights: Array) -> Array:
    """Return the norm of softmax's Jacobian at each row of weights, (..., n) → (...).

    The norm (Frobenius) of J = diag(w) − wwᵀ: ‖J‖² = Σ w² − 2 Σ w³ + (Σ w²)². It is the root mean square of the
    gradient that arrives at the scores when the gradient at the weights has independent entries of variance 1.
    """
    w = weights.astype(float)
    squares = (w**2).sum(axis=-1)
    return np.sqrt(np.maximum(squares - 2 * (w**3).sum(axis=-1) + squares**2, 0))


class Looks(NamedTuple):
    """The weights and slopes of softmax for 256 queries, at one setting."""

    ranked: Array  # weights by rank, mean over the queries, (num_keys,)
    keys: float  # e to the mean entropy: the number of keys that a query looks at
    slopes: Array  # of each query, (256,)

    def quantiles(self) -> tuple[float, float, float]:
        """Return the slopes below which 5, 50 and 95 % of the queries lie."""
        low, median, high = np.quantile(self.slopes, (0.05, 0.5, 0.95))
        return low, median, high


@cache
def looks(num_keys: int, d_k: int, factor: float = 1.0, seed: int = 0) -> Looks:
    """Measure softmax on `raw_scores` times a factor."""
    w = ops.softmax(raw_scores(d_k, num_keys, seed) * factor)
    return Looks(-np.sort(-w, axis=-1).mean(axis=0), float(np.exp(ops.entropy(w).mean())), slopes(w))


@live.lab(
    height=3.9,
    neutral="The curves reach as far as d_k is dragged, and at d_k = 1 they have only begun.",
    telling={"d_k": 512, "num_keys": 32},
    d_k=live.Choice("d_k", D_KS, 1),
    num_keys=live.Choice("number of keys", NUM_KEYS, 32),
)
def slope_lab(figure: "plots.Figure") -> live.Update:
    """Show what softmax makes of scores with and without √d_k: weights by rank, and the slopes of all queries."""
    from matplotlib.patches import Polygon

    weights_ax, slope_ax = figure.subplots(1, 2, width_ratios=(1, 1.15))
    weights_ax.set(xscale="log", yscale="log", xlim=(0.9, 2600), ylim=(1e-4, 1.6))
    weights_ax.set(xlabel="keys, by rank", ylabel="mean weight")
    slope_ax.set(xscale="log", yscale="log", xlim=(0.9, 640), ylim=(1e-4, 1), xlabel="$d_k$")
    slope_ax.set_xticks(D_KS[::2], [str(n) for n in D_KS[::2]])
    slope_ax.tick_params(axis="x", which="minor", length=0)
    slope_ax.set_ylabel("slope: norm of ∂weights")
    ranked, ribbons, medians = {}, {}, {}
    for scaled, colour, dashes in ((False, UNSCALED, "--"), (True, SCALED, "-")):
        name = "scaled" if scaled else "unscaled"
        (ranked[scaled],) = weights_ax.plot([1], [1], dashes, color=colour)
        face = drawings.tint(colour, 0.4 if scaled else 0.2)
        ribbons[scaled] = slope_ax.add_patch(Polygon([[1, 1]], fc=face, ec=colour, lw=0.6))
        (medians[scaled],) = slope_ax.plot([1], [1], dashes, color=colour, marker="o", ms=4, label=name)
    slope_ax.legend(loc="lower left", title="median, and nine of ten", alignment="left")

    def update(d_k: int, num_keys: int) -> str:
        reached = D_KS[: D_KS.index(d_k) + 1]
        keys, now = {}, {}
        for scaled in (False, True):
            measured = [looks(num_keys, n, n**-0.5 if scaled else 1.0) for n in reached]
            keys[scaled] = measured[-1].keys
            ranked[scaled].set_data(np.arange(1, num_keys + 1), np.maximum(measured[-1].ranked, 1e-6))
            low, middle, high = np.maximum(np.transpose([here.quantiles() for here in measured]), 1e-5)
            ribbons[scaled].set_xy(np.stack([[*reached, *reached[::-1]], [*low, *high[::-1]]], axis=-1))
            medians[scaled].set_data(reached, middle)
            now[scaled] = low[-1], middle[-1], high[-1]
        ratio = now[False][1] / now[True][1]
        weights_ax.set_title(f"Unscaled: {short(keys[False])} keys; scaled: {short(keys[True])}")
        steeper = f"unscaled is {short(ratio)} ×" if ratio > 1 else f"scaled is {short(1 / ratio)} ×"
        slope_ax.set_title(f"Median slope: {steeper} steeper" if abs(np.log(ratio)) > 0.05 else "Both slopes are alike")
        spread = [f"{short(low)} to {short(high)}, median {short(middle)}" for low, middle, high in now.values()]
        return (
            f"… d_k = {d_k}, {num_keys} keys. Left, the mean weights by rank. Right, the slopes of nine of ten "
            f"queries: unscaled {spread[0]}; scaled {spread[1]}."
        )

    return update


# --- 6 · Which factor does training need? -----------------------------------------------------------------------------


def untrained(d_k: int, seed: int) -> tuple[models.Encoder, Any]:
    """Return a model of one layer with one head, whose queries and keys have the width d_k, and this head.

    The entries of queries and keys begin with a variance of about 1, whatever d_k is.
    """
    sizes: Any = {"d_model": 64, "num_heads": 1, "num_layers": 1, "d_ff": 16, "max_length": 24}
    rng = np.random.default_rng(seed)
    model = models.Encoder(models.EncoderConfig(vocab=23, classes=23, outputs=4, positions="learned", **sizes), rng)
    (head,) = model.heads()["encoder"]
    head.W_Q.value, head.W_K.value = (rng.normal(size=(2, 64, d_k)) / 8).astype(np.float32)
    return model, head


def examine(model: models.Encoder, factor: float | None) -> tuple[float, Array]:
    """Run a model on 200 new sequences: how often a right symbol is among its four best guesses, and its weights.

    Args:
        factor: on the scores; None for heads that have their own.
    """
    (head,) = model.heads()["encoder"]
    head.scale = factor
    source, target = tasks.gather(np.random.default_rng(99), 200)
    logits, cache = model.forward(source)  # (200, 24, 4, 23)
    best = logits.argsort(axis=-1)[..., -4:]  # (200, 24, 4, 4)
    known = (best == target[..., None]).any(axis=-1).mean()
    return float(known), model.maps(cache)["encoder"][0][:, 0]  # (200, 24, 24)


def paced(params: Sequence[Param], start: float, pace: float) -> Callable[..., None]:
    """Make parameters `start` times as large, and return a callback for `training.fit` that scales each of their steps.

    A step of another length is what another learning rate gives, but for these parameters alone.
    """
    for param in params:
        param.value = (start * param.value).astype(param.value.dtype)
    before = [param.value.copy() for param in params]

    def after_step(*_: object) -> None:
        for n, param in enumerate(params):
            param.value = before[n] + np.float32(pace) * (param.value - before[n])
            before[n] = param.value.copy()

    return after_step if pace != 1 else lambda *_: None


@plots.still(9.0, 3.9)
def with_and_without(figure: "plots.Figure", runs: Mapping[str, tuple[float, Array, Sequence[float]]]) -> str:
    """Draw the losses of two trainings, smoothed, and what their heads look at in one sequence.

    Args:
        runs: by name, the share of symbols that the model knows, the attention weights of a sequence, (24, 24), and the
            losses.
    """
    curves, *maps = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    told, ends = [], []
    for ax, (name, (known, weights, losses)), look in zip(maps, runs.items(), ("-", "--"), strict=True):
        smooth = np.convolve(losses, np.ones(9) / 9, mode="valid")
        ends.append(smooth[-1])
        colour = SCALED if look == "-" else UNSCALED
        curves.plot(np.arange(5, 5 + len(smooth)), smooth, look, color=colour, label=_typeset(name))
        plots.draw_heatmap(ax, weights, row_label="query" if ax is maps[0] else "", numbers=False)
        ax.set(xticks=range(0, 24, 6), yticks=range(0, 24, 6), xlabel="key (guessing names 20%)")
        ax.set_title(f"{_typeset(name)}: names {known:.0%}")
        told.append(f"{name}, a query's largest weight is {weights.max(axis=-1).mean():.2f}")
    curves.set(xlabel="training step", ylabel="loss", ylim=(0, None))
    curves.legend(loc="lower left")
    curves.set_title(f"The loss ends at {ends[0]:.1f} and {ends[1]:.1f}")
    return f"… Left, both losses by training step; right, the attention weights of one sequence. {'; '.join(told)}."


def _typeset(name: str) -> str:
    return name.replace("√d_k", r"$\sqrt{d_k}$")


HARD = 0.05  # a median slope below this is that of a hard lookup
SOFT = (plots.INK, plots.INK, "looks at several places")  # how a model is drawn: colour, face, label
LOOKUP = (plots.PURPLE, "white", "hard lookup: slope below 0.05")


@live.lab(
    height=3.7,
    neutral="It opens at d_k = 16, and the question is about 64.",
    telling=[{"d_k": 16}, {"d_k": 64}, {"d_k": 256}],
    controls=lambda ends: {"d_k": live.Choice("d_k", tuple(dict.fromkeys(d_k for d_k, _ in ends)), 16)},
    example=lambda: {(d_k, times): np.full((2, 2), times / 4) for d_k in (16, 64) for times in (0.5, 1, 4)},
)
def sweep_lab(figure: "plots.Figure", ends: Mapping[tuple[int, float], Array]) -> live.Update:
    """Draw how models end that were trained with several factors on their scores: each model is a dot.

    Args:
        ends: by d_k and factor (in 1/√d_k), for each start the last loss and the median slope, (starts, 2 or more).
    """
    ax = figure.add_subplot(xscale="log", xlabel="factor on the scores", ylabel="loss at the end")
    factors = [times / d_k**0.5 for d_k, times in ends]
    top = 1.1 * max(runs[:, 0].max() for runs in ends.values())
    ax.set(xlim=(min(factors) / 1.3, max(factors) * 1.3), ylim=(0, top))
    powers = [n for n in range(10) if 2.0**-n > min(factors) / 1.3]
    ax.set_xticks([2.0**-n for n in powers], [f"1/{2**n}" if n else "1" for n in powers])
    ax.set_xticks([], minor=True)
    (root,) = ax.plot([1, 1], [0, top], color=plots.ORANGE, lw=6, alpha=0.4, label=r"the root's: $1/\sqrt{d_k}$")
    soft, hard = (
        ax.plot([1], [1], "o", color=colour, mfc=face, ms=7, mew=1.8, label=label)[0]
        for colour, face, label in (SOFT, LOOKUP)
    )
    ax.legend(loc="lower left", title="each dot: a model", alignment="left")

    def update(d_k: int) -> str:
        runs = {times: some for (width, times), some in ends.items() if width == d_k}
        dots = np.array(
            [
                (times / d_k**0.5 * 1.02**shift, loss, slope < HARD)
                for times, some in runs.items()
                for shift, (loss, slope) in zip(np.linspace(-3, 3, len(some)), some[:, :2], strict=True)
            ]
        )
        for line, kind in ((soft, False), (hard, True)):
            line.set_data(*dots[dots[:, 2] == kind, :2].T)
        root.set_xdata([d_k**-0.5] * 2)
        learned = {times: int((some[:, 1] >= HARD).sum()) for times, some in runs.items()}
        starts = max(map(len, runs.values()))
        ax.set_title(
            f"$d_k$ = {d_k}: {learned[1]} of {starts} starts learn at $1/\\sqrt{{d_k}}$, {learned[4]} at 4 times that"
        )
        told = "; ".join(
            f"{times:.3g} times the root's: {n} learn, median loss {np.median(runs[times][:, 0]):.2f}"
            for times, n in learned.items()
        )
        return f"… A dot for each model, by the factor on its scores and its loss at the end. Factors: {told}."

    return update


@plots.still(9.0, 3.6)
def crossed(figure: "plots.Figure", runs: Mapping[str, Array]) -> str:
    """Draw the last loss of each model as a dot, one row for each kind of training; open dots look at one place only.

    Args:
        runs: by kind of training, for each start the last loss and the median slope, (starts, 2 or more).
    """
    ax = figure.add_subplot(xlabel="loss at the end of training")
    soft = {name: some[:, 1] >= HARD for name, some in runs.items()}
    for row, (name, some) in enumerate(runs.items()):
        rows = row + 0.25 * np.linspace(-1, 1, len(some))  # so that equal losses are two dots
        for learned, colour, face, label in ((True, *SOFT), (False, *LOOKUP)):
            here = soft[name] == learned
            ax.plot(some[here, 0], rows[here], "o", color=colour, mfc=face, ms=8, mew=1.8, label=None if row else label)
    ax.set_yticks(range(len(runs)), [_typeset(name) for name in runs])
    ax.set(xlim=(0, 3.05), ylim=(len(runs) - 0.5, -0.5))
    ax.grid(axis="x")
    ax.legend(loc="center left", title="each dot: a model", alignment="left")
    counts = [int(learned.sum()) for learned in soft.values()]
    starts = len(next(iter(runs.values())))
    for row, count in enumerate(counts):
        ax.text(2.98, row, f"{count} of {starts} learn", ha="right", va="center")
    crossed = " and ".join(map(str, counts[2:4]))
    ax.set_title(f"Of {starts}, {counts[0]} learn with the root, {counts[1]} without; crossed: {crossed}")
    return f"… Dots, by way of training: {each((f'{name}:' for name in runs), counts, 'd')} of {starts} learn."
