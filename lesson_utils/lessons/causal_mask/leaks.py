"""Masks side by side, and who sees the future through a wrong one."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import formats, live, plots
from lesson_utils.lessons.attention_bugs import BUGS
from lesson_utils.maths import attention, models
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.models.gpt import GPTCache

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# --- Maps side by side -----------------------------------------------------------------------------------------------


@plots.still(9.0, 3.9)
def maps(figure: "Figure", bidirectional: Array, causal: Array) -> str:
    """Attention weights of the same tokens without a mask and with the causal one; what is hidden is hatched."""
    T = len(causal)
    hidden = ~attention.causal_mask(T)
    ax = d.sheet(figure)
    cell = (0.72, 0.5)
    texts = []
    for left, name, A in ((0.75, "bidirectional", bidirectional), (5.25, "causal", causal)):
        gone = hidden & (A == 0)
        share = f"{np.where(hidden, A, 0).sum() / A.sum():.0%} of the weight looks ahead"
        matrix = d.Matrix(ax, left, 2.95, (T, T), f"{name}: {share}", plots.BLUE, cell, decimals=2)
        matrix.set(A, hidden=gone, strength=A)
        for i in range(T):
            ax.text(left - 0.1, 2.95 - (i + 0.5) * cell[1], f"query {i}", ha="right", va="center", size=10)
            ax.text(left + (i + 0.5) * cell[0], 2.95 - T * cell[1] - 0.08, f"key {i}", ha="center", va="top", size=10)
        rows = "; ".join(
            " ".join("hidden" if g else f"{w:.2f}" for w, g in zip(*row, strict=True))
            for row in zip(A, gone, strict=True)
        )
        texts.append(f"{name}, {share}, rows: {rows}")
    stays = ["the first sees only itself"] * bool(causal[0, 0] == 1)
    stays = ["the last row stays"] * np.allclose(causal[-1], bidirectional[-1]) + stays
    finding = ", ".join(stays).capitalize() or "No row is what the mask should leave"
    ax.set_title(finding)
    return f"{finding}. Two maps of weights of {T} tokens. {'. '.join(texts)}."


@plots.still(9.0, 3.3)
def allowed(figure: "Figure", names: Sequence[str], *masks: Mask) -> str:
    """Draw masks side by side: blue may be attended to, hatched is hidden."""
    from matplotlib.patches import Rectangle

    alt = []
    for ax, name, mask in zip(figure.subplots(1, len(masks), squeeze=False)[0], names, masks, strict=True):
        blind = int((~mask.any(axis=-1)).sum())
        rows = "every row sees something" if not blind else "1 row sees nothing"
        rows = rows if blind < 2 else f"{blind} rows see nothing"
        T_q, T_k = mask.shape
        for i, j in np.ndindex(T_q, T_k):
            look = {"fc": d.tint(plots.BLUE, 0.75)} if mask[i, j] else {"fc": "white", "hatch": "////"}
            ax.add_patch(Rectangle((j - 0.46, i - 0.44), 0.92, 0.88, ec=plots.GREY, lw=0.8, **look))
        ax.set(xlim=(-0.6, T_k - 0.4), ylim=(T_q - 0.4, -0.6), xticks=range(T_k), yticks=range(T_q))
        ax.set(title=f"{name}:\n{rows}", xlabel="key (blue: visible, hatched: hidden)", ylabel="query")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        keys = [", ".join(map(str, np.flatnonzero(row))) or "none" for row in mask]
        alt.append(f"Mask, {name}: {rows}. ")
        alt.append("Query by keys: " + "; ".join(f"{i} sees {seen}" for i, seen in enumerate(keys)) + ". ")
    return "".join(alt).strip()


def weights_table(weights: dict[tuple[str, Any], Array]) -> None:
    """Print two rows of weights for each way to hide scores and each dtype."""
    print("                            last two hidden            all hidden")
    for (way, dtype), rows in weights.items():
        print(f"{way:16} {dtype.__name__:8}", *("   " + " ".join(f"{w:5.2f}" for w in row) for row in rows))


# --- The leak meter --------------------------------------------------------------------------------------------------

LONGEST, WIDTH = 24, 16
KINDS = {  # in one right way and six others
    "causal": "the right mask",
    "none": "everything is visible",
    "one too far": "each query sees the next key as well",
    "transposed": "each query sees itself and what comes after it",
    "too late": "weights are set to 0 after softmax",
    "late, renormalised": "weights are set to 0 after softmax, and each row is divided by what is left of its sum",
    "zeros": "hidden scores are set to 0",
}
# The kinds by their names in the catalogue.
_BUGS = {
    "causal": "",
    "none": "no mask",
    "one too far": "mask one too far",
    "transposed": "mask transposed",
    "too late": "mask after softmax",
    "late, renormalised": "mask after softmax, renormalised",
    "zeros": "masked with zeros",
}


CausalMask = Callable[[int, int], Mask]  # (T_q, T_k) -> (T_q, T_k)


def masked_weights(scores: Array, kind: str, causal_mask: CausalMask = attention.causal_mask) -> Array:
    """Turn scores (T, T) into weights, hidden in one of the ways of `KINDS`."""
    bug = BUGS[_BUGS[kind]]
    return bug.weighing.forward(scores, bug.seen(causal_mask(*scores.shape)))


@cache
def _tokens_and_matrices() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(6)
    tokens = rng.normal(size=(LONGEST, WIDTH))
    return tokens, rng.normal(size=WIDTH), rng.normal(size=(3, WIDTH, WIDTH)) / np.sqrt(WIDTH)


def layers_of_attention(
    x: Array, kind: str, layers: int = 1, causal_mask: CausalMask = attention.causal_mask
) -> tuple[Array, Array]:
    """Run a stack of attention layers with fixed random matrices and residual connections: x + attention(x).

    Args:
        x: (T, 16).

    Returns:
        outputs, (T, 16), and the weights of the first layer, (T, T).
    """
    W_Q, W_K, W_V = _tokens_and_matrices()[2]
    maps = []
    for _ in range(layers):
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True))  # the size of a token stays what it was
        weights = masked_weights(x @ W_Q @ (x @ W_K).T / np.sqrt(WIDTH), kind, causal_mask)
        maps.append(weights)
        x = x + weights @ (x @ W_V)
    return x, maps[0]


def leak(
    T: int, position: int, kind: str, layers: int = 1, causal_mask: CausalMask = attention.causal_mask
) -> tuple[Array, Array]:
    """Measure how far each of T outputs moves when the token at `position` is replaced, (T,); and the first weights."""
    tokens, other, _ = _tokens_and_matrices()
    changed = tokens[:T].copy()
    changed[position] = other
    (before, weights), (after, _) = (layers_of_attention(x, kind, layers, causal_mask) for x in (tokens[:T], changed))
    return np.sqrt(((after - before) ** 2).sum(axis=-1)), weights


ROUNDING, FLOOR = 1e-9, -5.6  # movements below are rounding, and stand under the break of the scale
BREAK = -4.4


def _height(moved: Array) -> Array:
    """Return where a bar ends on the broken scale: powers of ten, with rounding (10⁻¹⁷ to 10⁻¹⁴) squeezed below."""
    tens = np.log10(moved, out=np.full(moved.shape, -99.0), where=moved > 0)
    squeezed = np.clip(-5 + (tens + 15.5) / 5, FLOOR + 0.1, BREAK - 0.1)
    return np.where(moved == 0, FLOOR, np.where(moved < ROUNDING, squeezed, np.maximum(tens, BREAK + 0.2)))


@live.lab(
    height=4.0,
    example=lambda: attention.causal_mask,
    neutral="Under the right mask nothing leaks.",
    T=live.Slider("sequence length T", 4, LONGEST, 12),
    token=live.Slider("changed token", 0, LONGEST - 1, 6),
    kind=live.Choice("mask", tuple(KINDS), "causal"),
    layers=live.Slider("layers", 1, 4, 1),
)
def leak_lab(figure: "Figure", causal_mask: CausalMask) -> live.Update:
    """Change one token and watch which outputs move, under a learner's mask and under what goes wrong with it."""
    from matplotlib.patches import Rectangle

    map_ax, ax = figure.subplots(1, 2, width_ratios=(1, 1.8))
    image = map_ax.imshow(
        np.zeros((2, 2)), cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=0.4, interpolation="nearest"
    )
    figure.colorbar(image, ax=map_ax, ticks=(0, 0.2, 0.4), extend="max", shrink=0.75, label="weight")
    column = map_ax.add_patch(Rectangle((0, 0), 1, 1, fill=False, ec=plots.ORANGE, lw=2))
    map_ax.set(xlabel="key (orange: the changed token)", ylabel="query")
    bars = ax.bar(np.arange(LONGEST), np.ones(LONGEST), bottom=FLOOR)
    zeros = [ax.text(i, FLOOR + 0.08, "0", ha="center", color=plots.INK) for i in range(LONGEST)]
    ax.set(ylim=(FLOOR, 2.1), xlabel="output", ylabel="how far each output moves")
    ax.set_yticks([-5, *range(-4, 2)], ["rounding", "0.0001", "0.001", "0.01", "0.1", "1", "10"])
    ax.axhline(BREAK, color=plots.GREY, lw=1, ls=(0, (2, 3)))
    ax.bar([-9], [0], color=plots.ORANGE, label="earlier outputs")
    ax.bar([-9], [0], color=plots.BLUE, label="the others")
    ax.legend(loc="upper left", ncols=2)
    drawn = {"T": 0}

    def update(T: int, token: int, kind: str, layers: int) -> str:
        position = min(token, T - 1)
        moved, weights = leak(T, position, kind, layers, causal_mask)
        image.set_data(weights)
        column.set_bounds(position - 0.5, -0.5, 1, T)
        if drawn["T"] != T:  # moved axes are all drawn anew, which takes its time
            drawn["T"], ticks = T, range(0, T, 4 if T > 12 else 1)
            image.set_extent((-0.5, T - 0.5, T - 0.5, -0.5))
            map_ax.set(xlim=(-0.5, T - 0.5), ylim=(T - 0.5, -0.5), xticks=ticks[:: 1 + (8 < T <= 12)], yticks=ticks)
            ax.set(xlim=(-0.5, T - 0.5), xticks=ticks)
        heights = _height(moved) - FLOOR
        for i, bar in enumerate(bars):
            bar.set_height(heights[i] if i < T else 0)
            bar.set_color(plots.ORANGE if i < position else plots.BLUE)
            zeros[i].set_text("0" if i < T and moved[i] == 0 else "")
        before = moved[:position]
        count = int((before > 0).sum())
        if position == 0:
            finding = "Token 0 is first: no output is earlier"
        elif not count:
            finding = "No leak: no earlier output moves"
        elif before.max() < ROUNDING:
            finding = f"Rounding: {count} of {position} earlier outputs move"
        else:
            finding = f"Leak: {count} of {position} earlier outputs move"
        ax.set_title(finding)
        ahead = np.triu(weights, 1).sum() / T
        map_ax.set_title(f"{kind}:\n{ahead:.0%} looks ahead")  # the alternative text says of which layer
        listed = ", ".join(f"{i}: {formats.power(m) if m else 'exactly 0'}" for i, m in enumerate(moved))
        return (
            f"{finding}. Mask: {kind}, {KINDS[kind]}; {layers} layer{'s' if layers > 1 else ''}; token {position} of "
            f"{T} is changed. How far each output moves: {listed}. {ahead:.0%} of the {'first ' if layers > 1 else ''}"
            f"layer's weight looks ahead."
        )

    return update


class Peeking(models.GPT):
    """A GPT without its mask: it reads the very symbol that it has to predict."""

    def forward(
        self, ids: Any, past: Any = None, rng: Any = None, mask: Any = None, last: bool = False
    ) -> tuple[Array, GPTCache]:
        everything = np.ones(np.shape(ids)[1:] * 2, bool)  # (T, T)
        return super().forward(ids, None, rng, everything, last)
