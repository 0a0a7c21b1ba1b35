"""What notebook 12 calls `lab.name`, in its order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import arrow, box, drawable, sheet, tint
from lesson_utils.lessons.llama.another import ask, compared
from lesson_utils.lessons.llama.grown import (
    ALL,
    BACK,
    LADDER,
    LENGTH,
    LETTERS,
    NO_BETA,
    SMALL,
    START,
    asked,
    bits,
    own_keys,
    remember,
    right,
    said_backwards,
    small_gpt,
    tiny_llama,
    weights_of,
)
from lesson_utils.lessons.llama.swapped import (
    AS_IT_IS,
    SENTENCE,
    SWAPS,
    Tried,
    gates,
    layer_norm,
    means,
    relu_alone,
    relu_gate,
    removed,
    tokens_of_sentence,
    tried,
)
from lesson_utils.lessons.real_model.chatting import load
from lesson_utils.lessons.real_model.grown import grow
from lesson_utils.maths.checks import Array

# --- 1 · Two blocks ---------------------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """A thing that is built otherwise today, and where this course measures it."""

    then: str
    now: str
    use: str
    where: str  # "" where the course does not measure it


CHOICES = (
    Choice("norm on the stream", "norm before each part", "needs less warm-up", "notebooks 05, 08"),
    Choice("layer norm", "RMS norm: no mean, no β", "less to compute", "section 2"),
    Choice("ReLU", "SwiGLU: a product of two", "a gate on each feature", "section 3"),
    Choice("positions added", "queries, keys turned", "scores see distances", "section 4"),
    Choice("h keys and values", "heads share them", "a smaller cache", "section 5"),
    Choice("biases", "no biases", "fewer numbers", "section 6"),
    Choice("scores as they are", "norm on q and k", "scores stay small", ""),
)


def _road(ax: "plots.Axes", x: float, low: float, high: float, part: str, colour: str, inside: str) -> None:
    """Draw a part beside the stream at `x`, what stands in it, and its road from the stream and back."""
    at = x + 0.95
    ax.plot([x, at, at], [low, low, high], color=plots.GREY, lw=1.5, zorder=0)
    arrow(ax, (at, high), (x + 0.06, high), plots.GREY, 1.5)
    made = box(ax, at, (low + high) / 2 + (0.1 if inside else 0), part, 1.34, 0.46, colour, 0.16, size=10)
    made.label.set_linespacing(1.15)
    if inside:
        box(ax, at, low + 0.22, inside, 1.0, 0.24, plots.INK, 0.08, size=10)


@plots.still(9.4, 4.6)
def two_blocks(figure: "plots.Figure") -> str:
    """Draw the block of 2017 and the block of today, and a row for each choice that has changed."""
    ax = sheet(figure)
    ax.set_title(f"{len(CHOICES)} choices have changed since 2017; the plan has not")
    for x, year, colour in ((0.3, "2017", plots.ORANGE), (2.12, "2026", plots.BLUE)):
        ax.plot([x, x], [0.2, 3.75], color=tint(colour, 0.6), lw=6, zorder=0, solid_capstyle="butt")
        arrow(ax, (x, 3.7), (x, 3.95), colour, 3)
        ax.text(x + 0.95, 3.9, year, weight="bold", size=14, color=colour, ha="center", va="center")
    for low, part, colour in (
        (0.35, "attention\nh heads", plots.PURPLE),
        (1.98, "feed-forward\nReLU, biases", plots.GREEN),
    ):
        _road(ax, 0.3, low, low + 0.95, part, colour, "")
        box(ax, 0.3, low + 1.28, "norm", 0.56, 0.26, plots.INK, 0.1, size=10)
    for low, part, colour in (
        (0.35, "attention: rotary,\ngrouped, QK-norm", plots.PURPLE),
        (1.98, "feed-forward:\nSwiGLU", plots.GREEN),
    ):
        _road(ax, 2.12, low, low + 1.3, part, colour, "RMS norm")
    left = (4.02, 5.53, 7.5)
    font: dict[str, Any] = {"size": 10, "va": "center"}
    for x, words in zip(left, ("2017", "2026", "for what, and where"), strict=True):
        ax.text(x, 3.9, words, weight="bold", **font)
    for n, choice in enumerate(CHOICES):
        y = 3.52 - 0.5 * n
        ax.plot([3.97, 9.25], [y + 0.25, y + 0.25], color=tint(plots.GREY, 0.35), lw=0.8)
        where = choice.where or "not measured here"
        ax.text(left[0], y, choice.then, color=plots.ORANGE, **font)
        ax.text(left[1], y, choice.now, color=plots.BLUE, **font)
        ax.text(left[2], y, f"{choice.use}\n({where})", linespacing=1.25, **font)
    told = "; ".join(f"{c.now} for {c.then}: {c.use} ({c.where or 'not measured here'})" for c in CHOICES)
    return f"… Two blocks, and a row for each choice. {told}."


# --- 2 · The norm -----------------------------------------------------------------------------------------------------

TOKEN = np.array([1.2, -0.7, 0.4, -1.6, 0.9, -0.3, 0.6, -0.5])  # of mean 0


@live.lab(
    width=9.0,
    height=3.3,
    neutral="At offset 0 the token has the mean 0, and both norms give the same.",
    telling={"offset": 2.0},
    example=lambda: lambda x, gamma, eps: gamma * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps),
    offset=live.Slider("offset", 0.0, 4.0, 0.0, step=0.5),
)
def norm_lab(figure: "plots.Figure", rms_norm: Callable[[Array, Array, float], Array]) -> live.Update:
    """Add a number to each feature of a token, and see what layer norm and RMS norm make of it."""
    panels = figure.subplots(1, 3, sharex=True)
    at, ones = np.arange(len(TOKEN)), np.ones(len(TOKEN))
    names, colours = ("the token", "layer norm", "RMS norm"), (plots.GREY, plots.ORANGE, plots.BLUE)
    bars = [ax.bar(at, TOKEN, color=colour, zorder=2) for ax, colour in zip(panels, colours, strict=True)]
    for ax, top in zip(panels, (6.0, 2.4, 2.4), strict=True):
        ax.axhline(0, color=plots.INK, lw=0.8)
        ax.set(xlabel="feature", ylim=(-2.2, top), xticks=[])

    def normed(x: Array) -> tuple[Array, Array]:
        return layer_norm(x, ones, 1e-5), rms_norm(x, ones, 1e-5)

    for ax, result in zip(panels[1:], normed(TOKEN), strict=True):
        ax.set_xlabel("feature (outline: offset 0)")
        ax.bar(at, result, fc="none", ec=plots.INK, lw=0.9, zorder=3)

    def update(offset: float) -> str:
        x = TOKEN + offset
        for drawn, heights in zip(bars, (x, *normed(x)), strict=True):
            for bar, height in zip(drawn, heights, strict=True):
                bar.set_height(height)
        panels[0].set_title(f"{names[0]}, plus {offset:g}")
        said = []
        for ax, name, now, offset_0 in zip(panels[1:], names[1:], normed(x), normed(TOKEN), strict=True):
            moved = float(np.abs(now - offset_0).max())
            said.append(f"{name} {'gives the same' if moved < 1e-3 else f'moves by up to {moved:.1f}'}")
            ax.set_title(f"{name}: moves by {moved:.1f}")
        return f"… Eight features of a token plus {offset:g}, and both norms of them: {'; '.join(said)}."

    return update


# --- 5 · Heads that share ---------------------------------------------------------------------------------------------

WAYS = (  # name, key–value heads drawn, what is kept of each token
    ("multi-head, MHA", 8, r"$2\,h\,d_k$"),
    ("grouped-query, GQA", 2, r"$2\,h_{kv}\,d_k$"),
    ("multi-query, MQA", 1, r"$2\,d_k$"),
    ("latent, MLA", 8, r"$d_c + d_R$"),
)


@plots.still(9.6, 3.7)
def four_ways(figure: "plots.Figure") -> str:
    """Draw eight query heads four times, with the keys and values that they use, and what the cache keeps."""
    ax = sheet(figure)
    ax.set_title("What is kept of each token (in dark frames): 16, 4 or 2 vectors, or one latent vector and a key")
    for n, (name, h_kv, kept) in enumerate(WAYS):
        left, wide = 0.17 + 2.38 * n, 2.05
        x_q = left + wide * (np.arange(8) + 0.5) / 8
        x_k = left + wide * (np.arange(h_kv) + 0.5) / h_kv
        latent = name.endswith("MLA")
        top, middle = 2.45, 1.55
        for i, x in enumerate(x_q):
            ax.plot([x, x_k[i * h_kv // 8]], [top - 0.1, middle + 0.28], color=plots.GREY, lw=1)
            box(ax, x, top, "", 0.2, 0.22, plots.QUERY, 0.5)
        for x in x_k:
            for dy, colour in ((0.14, plots.KEY), (-0.14, plots.VALUE)):
                made = box(ax, x, middle + dy, "", 0.2, 0.22, colour, 0.25 if latent else 0.5)
                made.patch.set_edgecolor(colour if latent else plots.INK)
                made.patch.set_linewidth(0.8 if latent else 2)
            if latent:
                ax.plot([x, left + 0.85], [middle - 0.27, 0.99], color=plots.GREY, lw=0.8, ls="--")
        if latent:
            for x, what, width, colour in ((left + 0.85, "c", 0.9, plots.PURPLE), (left + 1.62, "k", 0.26, plots.KEY)):
                made = box(ax, x, 0.86, what, width, 0.24, colour, 0.4, size=10)
                made.patch.set_edgecolor(plots.INK)
                made.patch.set_linewidth(2)
        ax.text(left + wide / 2, 2.95, name, ha="center", va="center", weight="bold")
        ax.text(left + wide / 2, 0.38, f"kept: {kept}", ha="center", va="center", size=11)
    for y, letter, colour in ((2.45, "q", plots.QUERY), (1.69, "k", plots.KEY), (1.41, "v", plots.VALUE)):
        ax.text(0.06, y, letter, color=colour, weight="bold", ha="center", va="center")
    return (
        "… Orange: queries; blue: keys; green: values. MHA: each of eight query heads has its own key and value. GQA: "
        "four query heads share a pair. MQA: all eight share one pair. MLA: eight pairs are made anew from one latent "
        "vector c, and only c and a short turned key are kept."
    )


SHARES = {1.0: "each its own", 0.5: "two share", 0.25: "four share"}
EIGHT_B = {"layers": 32, "h": 32, "d_k": 128}  # Llama 3 8B; it has 8 key–value heads
Shared = Mapping[float, Sequence[float]]


def cache_bytes(tokens: int, share: float) -> int:
    """Return the bytes of the cache of a model as large as Llama 3 8B, 2 bytes a number."""
    heads = int(EIGHT_B["h"] * share)
    return 2 * EIGHT_B["layers"] * heads * EIGHT_B["d_k"] * tokens * 2


@live.lab(
    width=9.4,
    height=3.6,
    neutral="It opens with a key–value head for each query head, which is the model before the change.",
    telling={"share": 0.25, "tokens": 131072},
    example=lambda: {share: list(2.5 + 0.02 * np.random.default_rng(3).normal(size=10)) for share in SHARES},
    share=live.Choice("key heads", tuple(SHARES), 1.0),
    tokens=live.Choice("tokens", (1024, 8192, 32768, 131072), 8192),
)
def share_lab(figure: "plots.Figure", trained: Shared) -> live.Update:
    """Share keys and values: the bytes of the cache of a large model, and the quality of ten small ones.

    Args:
        trained: bits per character of ten models, by the share of key–value heads.
    """
    cache, quality = figure.subplots(1, 2, width_ratios=(1, 1.2))
    shares = list(SHARES)
    bars = cache.bar(range(3), [1.0] * 3, color=plots.BLUE)
    cache.set_xticks(range(3), [SHARES[share] for share in shares])
    cache.set_ylabel(" ", labelpad=12)  # room for longer numbers: they grow with the tokens
    points = []
    for n, share in enumerate(shares):
        spread = np.linspace(-0.18, 0.18, len(trained[share]))
        points.append(quality.plot(n + spread, trained[share], "o", ms=6, color=plots.BLUE)[0])
    every = [one for ten in trained.values() for one in ten]
    quality.set_xticks(range(3), [SHARES[share] for share in shares])
    quality.set(ylabel="bits per character, held out", ylim=(min(every) - 0.03, max(every) + 0.03), xlim=(-0.5, 2.5))

    def update(share: float, tokens: int) -> str:
        gigabytes = [cache_bytes(tokens, each) / 1e9 for each in shares]
        for n, (bar, height) in enumerate(zip(bars, gigabytes, strict=True)):
            bar.set_height(height if shares[n] >= share else 0)
            bar.set_color(plots.ORANGE if shares[n] == share else "#B8CFE0")
            points[n].set_visible(shares[n] >= share)
            points[n].set_color(plots.ORANGE if shares[n] == share else "#B8CFE0")
        cache.set_ylim(0, 1.15 * gigabytes[0])
        now, mean, first = gigabytes[shares.index(share)], np.mean(trained[share]), np.mean(trained[1.0])
        cache.set_title(f"{tokens:,} tokens: {now:.2g} GB of cache")
        moved = "" if share == 1 else f" ({mean - first:+.3f})"
        quality.set_title(f"{SHARES[share]}: {mean:.3f} bits{moved}")
        listed = "; ".join(f"{SHARES[s]} {np.mean(trained[s]):.3f}" for s in shares if s >= share)
        return (
            "… Cache of a model as large as Llama 3 8B, 2 bytes a number. Bits per character, means of ten models: "
            f"{listed}."
        )

    return update


# --- 6 · One change at a time -----------------------------------------------------------------------------------------


def _named(changes: Sequence[str]) -> str:
    return f"+ {changes[-1]}" if changes else START


@plots.still(9.8, 4.3)
def ladder_plot(figure: "plots.Figure", ladder: Array, back: Array, longer: Array) -> str:
    """Draw bits per character with one change after the other, and what is lost if one is taken back.

    Args:
        ladder: (7, 10), of ten starts each, in the order of `LADDER`, after 250 steps. back: (6, 10), in the order of
            `BACK`. longer: (6, 10), after 1,000 steps: 2017, the first four of `BACK`, and all six changes.
    """
    steps, without = figure.subplots(1, 2, width_ratios=(1.25, 1))
    spread = np.linspace(-0.2, 0.2, ladder.shape[1])
    for n, values in enumerate(ladder):
        steps.plot(n + spread, values, "o", color=plots.BLUE, ms=4, alpha=0.8)
    averages = ladder.mean(axis=1)
    steps.plot(np.arange(len(ladder)), averages, color=plots.ORANGE, lw=1.5, zorder=3)
    names = [_named(changes).replace(" ", "\n", 2).replace("+\n", "+ ") for changes in LADDER]
    steps.set_xticks(np.arange(len(ladder)), names, size=9)
    steps.set(ylabel="bits per character, held out")
    steps.set_title(f"2017 to now, 250 steps: {averages[0]:.2f} → {averages[-1]:.2f} bits")
    told, missed = [], []
    without.axvline(0, color=plots.GREY, lw=1)
    for count, losses, up, colour in (  # losses: (6, 10) and (4, 10), start by start
        ("250 steps", back - ladder[-1], -0.2, "#7FB2D6"),
        ("1,000 steps", longer[1:-1] - longer[-1], 0.2, plots.BLUE),
    ):
        rows = np.arange(len(losses))
        without.plot(losses.T, rows + up + 0.6 * spread[:, None], "o", color=colour, ms=3.5)
        without.plot([], [], "o", color=colour, ms=3.5, label=count)
        without.plot([losses.mean(axis=1)] * 2, [rows + up - 0.18, rows + up + 0.18], color=plots.ORANGE, lw=2.5)
        all_ten = [name for name, values in zip(ALL, losses, strict=False) if values.min() > 0]
        missed.append(f"{count}: {', '.join(all_ten) or 'none'}")
        taken = zip(ALL, losses.mean(axis=1), losses.min(axis=1), losses.max(axis=1), strict=False)
        listed = (f"{name} {mean:+.3f} ({low:+.3f} to {high:+.3f})" for name, mean, low, high in taken)
        told.append(f"after {count}: {'; '.join(listed)}")
    without.set_yticks(range(len(ALL)), ALL)
    without.invert_yaxis()
    without.set(xlabel="bits lost without it")
    without.legend(loc="lower right", handletextpad=0.1)
    without.set_title("\n".join(("Missed from all ten starts after", *missed)))
    on_the_way = "; ".join(f"{_named(c)} {m:.2f}" for c, m in zip(LADDER, averages, strict=True))
    on_the_way += f"; after 1,000 steps from {longer[0].mean():.2f} to {longer[-1].mean():.2f}"
    return f"… Means of ten starts: {on_the_way}. Taken back alone, bits lost {'. And '.join(told)}."


# --- 7 · Parts of 2017 in a model of today ----------------------------------------------------------------------------

STORED_ANSWER = "The capital of France is Paris."  # of SmolLM2-135M-Instruct, always the likeliest token
Trials = Mapping[str, Tried]


def _example() -> tuple[Trials, Sequence[str]]:
    rng = np.random.default_rng(2)
    trials = {name: Tried(rng.exponential(2.0 + n, size=192), f"answer {n}") for n, name in enumerate(SWAPS)}
    return trials, [f" word{n}" for n in range(20)]


@live.lab(
    width=9.8,
    height=4.2,
    neutral="It opens with the model as it is, and draws no other result before it is chosen.",
    telling={"part": "layer norm"},
    example=_example,
    part=live.Choice("exchange", tuple(SWAPS), AS_IT_IS),
)
def parts_lab(figure: "plots.Figure", trials: Trials, words: Sequence[str]) -> live.Update:
    """Exchange one part of SmolLM2: the loss on a story, the words of a sentence, and what it then says."""
    chart, page = figure.subplots(2, 1, height_ratios=(1, 1.5))
    whole = float(trials[AS_IT_IS].nats.mean())
    (bar,) = chart.barh([0], [1], color=plots.ORANGE)
    chart.barh([1], [whole], color="#B8CFE0")
    chart.set_yticks([0, 1], ["with the part", AS_IT_IS])
    chart.set(xlim=(0, 40), xlabel="nats per token of a story")
    at = np.arange(len(words))
    bars = page.bar(at, np.zeros(len(words)), color=plots.BLUE)
    page.set_xticks(at, [drawable(word.strip()) for word in words], rotation=60, ha="right", size=9.5)
    page.set(ylim=(0, 1), ylabel="probability", yticks=(0, 0.5, 1))

    def update(part: str) -> str:
        found = trials[part]
        nats = float(found.nats.mean())
        bar.set_width(min(nats, 40))
        for drawn, p in zip(bars, np.exp(-found.nats[SENTENCE]), strict=True):
            drawn.set_height(p)
        says = drawable(" ".join(found.says.split())[:60])
        chart.set_title(
            f"{part}: {nats:.2f} nats, not {whole:.2f}" if part != AS_IT_IS else f"{part}: {whole:.2f} nats"
        )
        page.set_title(f"It says: “{says}”" if says else "It says nothing", size=11.5)
        return (
            f"… The probability of each word of a sentence; their mean is {np.exp(-found.nats[SENTENCE]).mean():.2f}."
        )

    return update
