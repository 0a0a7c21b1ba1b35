"""Notebook 02: what softmax(QKᵀ/√d_k)V does, and why the √d_k."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils import attention, live, ops, plots
from lesson_utils._checks import Array
from lesson_utils.lessons import as_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- Who attends to whom --------------------------------------------------------------------------------------------


def three_scores(words: Sequence[str], **scores: Array) -> plots.Picture:
    """Score matrices side by side, each with its distance from being symmetric."""
    figure = plots.figure(9.0, 3.5)
    alt = f"{len(scores)} heat maps of scores between {len(words)} words."
    top = max(np.abs(S).max() for S in scores.values())
    with plots.style():
        for ax, (name, S) in zip(figure.subplots(1, len(scores)), scores.items(), strict=True):
            gap = np.abs(S - S.T).max()
            verdict = "symmetric" if gap < 1e-12 else "not symmetric"
            plots.heatmap(S, words, words, f"{name}: {verdict}", "from", "to", signed=True, top=top, ax=ax)
            alt += f" {name} is {verdict}: scores from i to j and from j to i differ by up to {gap:.1f}."
    return plots.picture(figure, alt)


# --- The film catalogue ---------------------------------------------------------------------------------------------

FILMS = ("Iron Harbour", "Last Train North", "Paper Hearts", "Two in Vienna", "The Long Heist", "Quiet Orchard")
FILM_KEYS = np.array([[0.9, -0.6], [0.5, 0.0], [-0.5, 0.9], [0.3, 0.8], [0.6, -0.8], [-0.8, -0.2]])  # (action, romance)
FILM_MINUTES = np.array([[128.0], [101.0], [94.0], [112.0], [143.0], [87.0]])


@live.lab(
    height=3.9,
    action=live.Slider("taste for action", -1.0, 1.0, 0.8, 0.1),
    romance=live.Slider("taste for romance", -1.0, 1.0, 0.3, 0.1),
    temperature=live.LogSlider("temperature τ", 0.01, 100, 10**-0.5),
)
def film_lab(figure: "Figure") -> live.Update:
    """A soft lookup: a taste is the query, films are the keys, their running times the values."""
    plane, chart = figure.subplots(1, 2, width_ratios=(1, 1.25))
    plane.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xlabel="action", ylabel="romance")
    plane.axhline(0, color="#E3E3E3", lw=1, zorder=0)
    plane.axvline(0, color="#E3E3E3", lw=1, zorder=0)
    dots = plane.scatter(*FILM_KEYS.T, color=plots.BLUE)
    plane.text(-1.2, 1.12, "orange: your taste", color=plots.ORANGE, zorder=0)
    (shaft,) = plane.plot([0, 0], [0, 0], color=plots.ORANGE, lw=3, zorder=2)
    (head,) = plane.plot([0], [0], "o", color=plots.ORANGE, ms=11, mfc="none", mew=3, zorder=5)  # hides no film
    for n, (x, y) in enumerate(FILM_KEYS, 1):
        plane.text(x, y - 0.01, str(n), ha="center", va="center", color="white", weight="bold", zorder=4)

    rows = np.arange(len(FILMS))
    bars = chart.barh(rows, np.zeros(len(FILMS)), color=plots.BLUE)
    numbers = [chart.text(0, row, "", va="center") for row in rows]
    names = [f"{n} {name}, {int(m)} min" for n, (name, (m,)) in enumerate(zip(FILMS, FILM_MINUTES, strict=True), 1)]
    chart.set_yticks(rows, names)
    chart.set(xlim=(0, 1.15), xlabel="weight", xticks=(0, 0.25, 0.5, 0.75, 1))
    chart.invert_yaxis()

    def update(action: float, romance: float, temperature: float) -> str:
        query = np.array([[action, romance]])  # (1, 2)
        output, weights = attention.scaled_dot_product_attention(query, FILM_KEYS, FILM_MINUTES, scale=1 / temperature)
        (minutes,), (row,) = output[0], weights
        shaft.set_data([0, action], [0, romance])
        head.set_data([action], [romance])
        dots.set_sizes(170 + 900 * row)
        for bar, number, weight in zip(bars, numbers, row, strict=True):
            bar.set_width(weight)
            number.set_position((weight + 0.02, number.get_position()[1]))
            number.set_text(f"{weight:.2f}" if weight >= 0.05 else "")
        best = int(row.argmax())
        tied = [str(n) for n, close in enumerate(np.isclose(row, row.max()), 1) if close]
        tie = len(tied) > 1
        match = f"Best match: {best + 1} {FILMS[best]}"
        if tie:
            match = "No film matches best" if len(tied) == len(FILMS) else f"Best matches: {' and '.join(tied)}"
        plane.set_title(match)
        answers = (
            f"Soft: {minutes:.0f} min" if tie else f"Soft: {minutes:.0f} min, hard: {FILM_MINUTES[best, 0]:.0f} min"
        )
        chart.set_title(answers)
        return (
            f"{match}. {answers}. Taste: action {action:.1f}, romance {romance:.1f}; temperature "
            f"{plots.short(temperature)}. Weights: "
            + ", ".join(f"{name} {weight:.2f}" for name, weight in zip(FILMS, row, strict=True))
            + "."
        )

    return update


# --- The senses of 'bank' -------------------------------------------------------------------------------------------

SENSES = {  # (water, money), written by hand
    "bank": (1.6, 1.6), "river": (2.5, 0.2), "swam": (2.0, 0.5), "money": (0.2, 2.5), "lends": (0.4, 2.1),
}  # fmt: skip
OTHER = (0.3, 0.3)
SENTENCES = (
    "she swam to the river bank",
    "the bank lends money",
    "the bank by the river lends money",
    "the bank was closed",
)


def embed(words: Sequence[str]) -> Array:
    """Two numbers a word, (water, money); words without either meaning get little of both. Shape (T, 2)."""
    return np.array([SENSES.get(word, OTHER) for word in words])


@live.lab(
    height=3.7,
    sentence=live.Choice("sentence", SENTENCES, SENTENCES[0]),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
)
def bank_lab(figure: "Figure") -> live.Update:
    """softmax(XXᵀ/√d)X moves 'bank' towards the company it keeps."""
    plane, chart = figure.subplots(1, 2)
    plane.set(xlim=(0, 3), ylim=(0, 3), xlabel="water", ylabel="money")
    plane.plot([0, 3], [0, 3], color="#BBBBBB", ls=":", lw=1.5)
    for word, (x, y) in {**SENSES, "all other words": OTHER}.items():
        # Below what moves (zorder 2): so they need not be drawn again at each step.
        plane.plot([x], [y], "o", color=plots.GREY, ms=5, zorder=1)
        plane.annotate(word, (x, y), (7, 4), textcoords="offset points", zorder=1)
    (path,) = plane.plot([], [], color=plots.ORANGE, lw=3)
    (end,) = plane.plot([], [], "o", color=plots.ORANGE, ms=10)

    longest = max(len(sentence.split()) for sentence in SENTENCES)
    rows = np.arange(longest)
    bars = chart.barh(rows, np.zeros(longest), color=plots.BLUE)
    names = [chart.text(-0.02, row, "", ha="right", va="center") for row in rows]
    numbers = [chart.text(0, row, "", va="center") for row in rows]
    chart.set(xlim=(0, 1.2), xlabel="weight that 'bank' gives", yticks=(), xticks=(0, 0.25, 0.5, 0.75, 1))
    chart.invert_yaxis()

    def update(sentence: str, temperature: float) -> str:
        words = sentence.split()
        X = embed(words)  # (T, 2)
        scale = 1 / (np.sqrt(2) * temperature)
        output, weights = attention.scaled_dot_product_attention(X, X, X, scale=scale)
        i = words.index("bank")
        (x0, y0), (x1, y1) = X[i], output[i]
        path.set_data([x0, x1], [y0, y1])
        end.set_data([x1], [y1])
        for row in rows:
            word, weight = (words[row], weights[i, row]) if row < len(words) else ("", 0.0)
            bars[row].set_width(weight)
            names[row].set_text(word)
            numbers[row].set_text(f"{weight:.2f}" if weight >= 0.05 else "")
            numbers[row].set_x(weight + 0.02)
        lean = x1 - y1
        towards = (
            "'bank' stays between its senses"
            if abs(lean) < 0.05
            else f"'bank' leans to {'water' if lean > 0 else 'money'}"
        )
        plane.set_title(f"{towards}: ({x1:.1f}, {y1:.1f})")
        chart.set_title(f"“{sentence}”")
        listed = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(words, weights[i], strict=True))
        return f"{sentence}: {towards}, from ({x0}, {y0}) to ({x1:.2f}, {y1:.2f}) on (water, money). Weights: {listed}."

    return update


# --- The variance laboratory ----------------------------------------------------------------------------------------

D_KS = tuple(2**i for i in range(11))  # 1 … 1024
NUM_QUERIES, NUM_KEYS = 256, 32


def variance_plot(d_ks: Sequence[int], variances: Sequence[float]) -> plots.Picture:
    """Measured variances of q · k on top of the line Var = d_k."""
    off = max(abs(measured / d_k - 1) for d_k, measured in zip(d_ks, variances, strict=True))
    finding = f"Var(q · k) is d_k, within {off:.0%}"
    figure = plots.figure(6.5, 3.9)
    with plots.style():
        ax = figure.add_subplot(xlabel="d_k", ylabel="variance of q · k")
        ax.plot(d_ks, d_ks, color=plots.GREY, lw=1.5, label="theory: d_k")
        ax.plot(d_ks, variances, "o", color=plots.ORANGE, label="measured")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.set_xticks(d_ks, [str(n) for n in d_ks])
        ax.set_yticks(d_ks, [str(n) for n in d_ks])
        ax.set_title(finding)
        ax.legend()
    listed = ", ".join(f"{d_k}: {measured:.3g}" for d_k, measured in zip(d_ks, variances, strict=True))
    return plots.picture(figure, f"{finding}. Measured variance by d_k: {listed}.")


@cache
def _random_pairs() -> dict[int, tuple[Array, Array]]:
    """For each d_k, q · k of 256 random queries with 32 random keys each, (256, 32), and k · k', (256, 32, 32).

    Larger d_k continue the sums of smaller ones, so the picture grows smoothly under the slider.
    """
    rng = np.random.default_rng(0)
    scores: Array = np.zeros((NUM_QUERIES, NUM_KEYS))
    products: Array = np.zeros((NUM_QUERIES, NUM_KEYS, NUM_KEYS))
    pairs: dict[int, tuple[Array, Array]] = {}
    done = 0
    for d_k in D_KS:
        q = rng.normal(size=(NUM_QUERIES, 1, d_k - done))
        k = rng.normal(size=(NUM_QUERIES, NUM_KEYS, d_k - done))
        scores, products = scores + (q * k).sum(axis=-1), products + k @ k.swapaxes(-1, -2)
        pairs[d_k], done = (scores, products), d_k
    return pairs


def raw_scores(d_k: int) -> Array:
    """q · k of 256 random queries with 32 random keys each, shape (256, 32)."""
    return _random_pairs()[d_k][0]


class Health(NamedTuple):
    """What softmax makes of scores."""

    deviation: float  # the standard deviation of what it sees
    ranked: Array  # weights by rank, mean over the queries, (32,)
    entropy: float  # mean over the queries, in nats
    gradients: Array  # of each query: the norm of the Jacobian, ∂weights/∂scores, (256,)
    query_gradients: Array  # of each query: the norm of ∂weights/∂q, (256,)


@cache
def softmax_health(d_k: int, temperature: float = 1.0, scaled: bool = True) -> Health:
    """Measured on `raw_scores`, at one setting.

    The norm (Frobenius) of a Jacobian is the root mean square of the gradient that arrives when the gradient at the
    weights has independent entries of mean 0 and variance 1.
    """
    raw, products = _random_pairs()[d_k]
    factor = 1 / ((d_k**0.5 if scaled else 1) * temperature)
    weights = ops.softmax(raw * factor)  # (256, 32)
    J = ops.softmax_jacobian(weights)  # (256, 32, 32)
    return Health(
        deviation=float((raw * factor).std()),
        ranked=-np.sort(-weights, axis=-1).mean(axis=0),
        entropy=float(ops.entropy(weights).mean()),
        gradients=np.sqrt((J**2).sum(axis=(-1, -2))),
        # ∂weights/∂q = J K · factor, and ‖J K‖² is the sum of (J K Kᵀ) ∘ J.
        query_gradients=factor * np.sqrt(np.maximum((J @ products * J).sum(axis=(-1, -2)), 0)),
    )


@live.lab(
    height=5.6,
    d_k=live.Choice("d_k", D_KS, 64),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
    scaled=live.Switch("divide by √d_k", False),
)
def scaling_lab(figure: "Figure") -> live.Update:
    """What √d_k does to the scores, the weights, their entropy and the gradient."""
    (hist_ax, weights_ax), (entropy_ax, gradient_ax) = figure.subplots(2, 2, gridspec_kw={"hspace": 0.05})
    edges = np.linspace(-60, 60, 121)
    hist = hist_ax.stairs(np.zeros(120), edges, fill=True)
    hist_ax.set(xlim=(-60, 60), ylim=(0, 1.05), xlabel="score that softmax sees", ylabel="frequency (peak = 1)")
    bars = weights_ax.bar(np.arange(1, NUM_KEYS + 1), np.zeros(NUM_KEYS))
    weights_ax.set(ylim=(0, 1.05), xlim=(0, NUM_KEYS + 1), xlabel=f"{NUM_KEYS} keys, by rank", ylabel="mean weight")
    entropy_ax.axhline(np.log(NUM_KEYS), color=plots.GREY, lw=1, ls=":")
    entropy_ax.text(1024, np.log(NUM_KEYS) + 0.25, f"all {NUM_KEYS} keys alike", color=plots.GREY, ha="right")
    entropy_ax.set(ylim=(0, 4.8), ylabel="entropy (nats)")
    gradient_ax.set(ylim=(0, 0.55), ylabel="Jacobian norm")  # 0.5, for two keys alike, is the largest
    ones = np.ones(len(D_KS))
    curves = {}
    for scaled, colour, dashes in ((True, plots.BLUE, "-"), (False, plots.ORANGE, "--")):
        label = "scaled" if scaled else "unscaled"
        (curves["entropy", scaled],) = entropy_ax.plot(D_KS, ones, dashes, color=colour, label=label)
        (curves["median", scaled],) = gradient_ax.plot(D_KS, ones, dashes, color=colour)
        (curves["mean", scaled],) = gradient_ax.plot(D_KS, ones, ":", color=colour, lw=1.5)
    for ax in (entropy_ax, gradient_ax):
        ax.set_xscale("log", base=2)
        ax.set_xticks(D_KS[::2], [str(n) for n in D_KS[::2]])
        ax.set_xlabel("d_k")
    # Keys to the lines, each in a corner that stays empty.
    weights_ax.legend(handles=[curves["entropy", True], curves["entropy", False]], loc="upper right")
    line = {"color": plots.INK}
    for style, label, width in (("-", "median query", 2.2), (":", "mean of all", 1.5)):
        gradient_ax.plot([], [], style, lw=width, label=label, **line)
    gradient_ax.legend(loc="upper right", ncols=2)
    markers = [ax.plot([1], [1], "o", color=plots.INK, ms=10, clip_on=False)[0] for ax in (entropy_ax, gradient_ax)]

    def update(d_k: int, temperature: float, scaled: bool) -> str:
        for s in (True, False):
            health = [softmax_health(n, temperature, s) for n in D_KS]
            curves["entropy", s].set_ydata([h.entropy for h in health])
            curves["median", s].set_ydata([np.median(h.gradients) for h in health])
            curves["mean", s].set_ydata([h.gradients.mean() for h in health])
        now = softmax_health(d_k, temperature, scaled)
        factor = 1 / ((d_k**0.5 if scaled else 1) * temperature)
        counts, _ = np.histogram(raw_scores(d_k) * factor, edges)
        outside = 1 - counts.sum() / raw_scores(d_k).size
        hist.set_data(counts / counts.max())
        for bar, weight in zip(bars, now.ranked, strict=True):
            bar.set_height(weight)
        for artist in (hist, *bars):
            artist.set_color(plots.BLUE if scaled else plots.ORANGE)
        median, mean = float(np.median(now.gradients)), float(now.gradients.mean())
        markers[0].set_data([d_k], [now.entropy])
        markers[1].set_data([d_k], [median])
        spread = f"standard deviation {now.deviation:.3g}"
        if outside >= 0.005:  # short, so that it does not run into the title beside it
            spread = f"std. dev. {now.deviation:.3g} ({outside:.0%} outside)"
        hist_ax.set_title(f"Scores: {spread}")
        weights_ax.set_title(f"The largest weight is {now.ranked[0]:.2f}")
        entropy_ax.set_title(f"A query looks at {np.exp(now.entropy):.1f} of {NUM_KEYS} keys")
        gradient_ax.set_title(f"Gradient, median query: {plots.short(median)}")
        return (
            f"d_k = {d_k}, {'scaled' if scaled else 'unscaled'}, temperature {plots.short(temperature)}: scores have "
            f"standard deviation {now.deviation:.3g}, the largest weight is {now.ranked[0]:.2f}, the entropy "
            f"{now.entropy:.2f} of {np.log(NUM_KEYS):.2f} nats, the norm of softmax's Jacobian {plots.short(median)} "
            f"for the median query and {plots.short(mean)} on average."
        )

    return update
