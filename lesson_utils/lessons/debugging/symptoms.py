"""The chatbot's symptoms: one bug at a time in the published model; what it says, its perplexity, a map of one head.

What is shown was measured once, each bug planted as `bugs.changes` has it, and is stored beside this file.
"""

import json
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.lessons.debugging.overlay import overlay
from lesson_utils.lessons.real_model.stored import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STORED = Path(__file__).with_name("symptoms.json")
RIGHT = "nothing is wrong"
# What stands in the program, and what should stand there, where it takes no more than a line.
LINES = {
    RIGHT: "softmax(mask(Q @ K.T / √d_k)) @ V",
    "no causal mask": "softmax(Q @ K.T / √d_k) @ V",
    "mask one too late": "j <= i + 1, not j <= i",
    "mask inverted": "~mask, not mask: True was to be seen",
    "mask after softmax": "mask · softmax(scores): rows sum to less",
    "no scale": "Q @ K.T, without / √d_k",
    "scale 1/d_k": "/ d_k, not / √d_k",
    "scale 1/√d_model": "/ √d_model, not / √d_k",
    "softmax twice": "softmax(softmax(scores)): e⁰ is 1",
    "softmax over queries": "softmax(scores, axis=-2)",
    "queries split, no swap": "q.reshape(B, h, T, d_k)",
    "heads merged, no swap": "heads.reshape(B, T, h · d_k)",
    "groups tiled": "heads 0 1 2 0 1 2 …, not 0 0 0 1 1 1 …",
    "positions left out": "no rotary(Q), no rotary(K)",
    "positions turn halves": "pairs (i, i + d/2), not (2i, 2i + 1)",
    "positions turn values, too": "rotary(V)",
    "norm left out": "x + attention(x)",
    "residual of the normed": "y = norm(x); y + attention(y)",
    "gate and value swapped": "gate · silu(value)",
    "cache starts at 0 again": "each new token at position 0",
}


@cache
def stored() -> dict[str, Any]:
    """Return what was measured: "question", "tokens" of the map, "head", "vocabulary", and "symptoms" by bug."""
    contents: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return contents


def symptoms() -> dict[str, dict[str, Any]]:
    """Return by bug "perplexity" (None: no number), "says", and "map" in percent (None: no numbers).

    Their order is that of `LINES`: sorted by perplexity, they would answer what the notebook asks.
    """
    return {bug: stored()["symptoms"][bug] for bug in LINES}


def in_figures(perplexity: float | None) -> str:
    """Write a perplexity as 4.3, 195, 47,700 or 3·10⁹, or that it is no number."""
    if perplexity is None:
        return "not a number"
    return formats.three_figures(perplexity) if perplexity < 1e6 else formats.power(perplexity)


def readable(text: str) -> str:
    """Write a text as one line: line ends as ⏎, without what the font can't draw."""
    shown = text.replace("<|im_end|>", "").replace("\n", "⏎").replace("$", r"\$")
    return "".join(c if c.isprintable() else "□" for c in shown).strip() or "(nothing)"


def _controls() -> dict[str, live.Control]:
    return {"bug": live.Choice("bug", tuple(symptoms()), RIGHT), "others": live.Switch("show all others", False)}


@live.lab(
    width=9.8,
    height=4.6,
    controls=_controls,
    neutral="Nothing is wrong at first, and the other bugs have no dots until they are asked for.",
)
def symptoms_lab(figure: "Figure") -> live.Update:
    """Choose a bug: the perplexity among those of all others, what the chatbot says, and one head's map."""
    found, known = symptoms(), stored()
    names = list(found)
    right, vocabulary = found[RIGHT]["perplexity"], known["vocabulary"]
    finite = [of["perplexity"] for of in found.values() if of["perplexity"] is not None]
    end = 30 * max(finite)  # where those stand that are no number
    grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1), height_ratios=(1, 1.75))
    limits: dict[str, Any] = {"xlim": (min(finite) / 2, 20 * end), "ylim": (len(names) - 0.4, -1.6), "xscale": "log"}
    axes, chart = overlay(figure, grid[:, 0], **limits)
    tokens = [token.strip() for token in known["tokens"]]
    T = len(tokens)
    rows, weights = overlay(figure, grid[1, 1], xlim=(0, T), ylim=(T, 0))
    page = figure.add_subplot(grid[0, 1])
    places = [of["perplexity"] or end for of in found.values()]

    axes.set_xlabel("perplexity on a story")
    axes.set_yticks(np.arange(len(names)), names, size=9.5)
    axes.tick_params(axis="y", length=0)
    axes.minorticks_off()
    for value, name in ((right, "right"), (vocabulary, "guessing")):
        axes.axvline(value, color=plots.GREY, lw=1, ls=":", zorder=0.5)
        axes.text(value * 1.15, -0.9, name, size=9.5, color=plots.GREY, zorder=0.5)
    number_less = np.array([of["perplexity"] is None for of in found.values()])
    lines = chart.hlines(
        np.arange(len(names))[~number_less], right, np.array(places)[~number_less], color="#D5D5D5", lw=1.6
    )
    (dots,) = chart.plot(
        np.array(places)[~number_less], np.arange(len(names))[~number_less], "o", color=plots.GREY, ms=5
    )
    missing = [
        chart.text(right * 1.9, row, in_figures(None), va="center", size=9.5, color=plots.GREY)
        for row in np.flatnonzero(number_less).tolist()
    ]
    (dot,) = chart.plot([right], [0], "o", color=plots.ORANGE, ms=12)
    number = chart.text(right, 0, "", va="center", size=10.5, weight="bold", color=plots.ORANGE)

    page.set(xlim=(0, 1), ylim=(0, 1))
    page.set_axis_off()
    page.text(0, 0.98, known["question"], size=11, color=plots.GREY, va="top", zorder=0.5)
    says = page.text(0, 0.78, "", size=11.5, va="top", weight="bold", linespacing=1.25)
    line = page.text(0, 0.02, "", size=9.5, va="bottom", family="monospace", color=plots.PURPLE)

    blues = plots.colour_map(*plots.WEIGHTS_MAP)
    image = weights.imshow(np.zeros((T, T)), cmap=blues, vmin=0, vmax=1, aspect="auto", extent=(0, T, T, 0))
    weights.plot([0, *np.repeat(np.arange(1, T), 2), T], np.repeat(np.arange(T), 2), color=plots.GREY, lw=0.8)
    rows.set_xticks(np.arange(T) + 0.5, tokens, rotation=60, ha="right", rotation_mode="anchor", size=9)
    rows.set_yticks(np.arange(T) + 0.5, tokens, size=9)
    rows.tick_params(length=0)
    rows.spines[:].set_visible(False)
    label(figure)

    def update(bug: str, others: bool) -> str:
        of, row = found[bug], names.index(bug)
        dot.set_data([places[row]], [row])
        dot.set_visible(not number_less[row])  # what is no number has no place on the scale
        lines.set_visible(others)
        dots.set_visible(others)
        for text, at in zip(missing, np.flatnonzero(number_less), strict=True):
            text.set_visible(others and at != row)
        last = of["perplexity"] is None
        number.set(x=right * 1.9 if last else places[row] * 1.9, y=row)
        number.set_text(in_figures(of["perplexity"]))
        says.set_text("\n".join(textwrap.wrap(f"“{readable(of['says'])}”", 29)[:3]))
        line.set_text(LINES[bug])
        map_ = np.zeros((T, T)) if of["map"] is None else np.array(of["map"]) / 100
        image.set_data(map_)
        value = in_figures(None) if last else f"perplexity {in_figures(of['perplexity'])}"
        chart.set_title(f"{bug[0].upper()}{bug[1:]}: {value}")
        look = looks(map_, of["map"] is None)
        weights.set_title(f"One head: {look}", size=11)
        return (
            f"Perplexity is {in_figures(of['perplexity'])}, with nothing wrong {in_figures(right)}, by guessing "
            f"{vocabulary:,}; the bug: {bug} ({LINES[bug]}). To “{known['question']}” the chatbot says: "
            f"“{readable(of['says'])}” Layer {known['head'][0]}, head {known['head'][1]}: {look}. "
            f"{_listed(found) if others else ''}Stored results."
        )

    return update


def _listed(found: dict[str, dict[str, Any]]) -> str:
    return "All of them: " + "; ".join(f"{bug} {in_figures(of['perplexity'])}" for bug, of in found.items()) + ". "


def looks(map_: Any, none: bool) -> str:
    """Say what stands out in a map, (T, T)."""
    if none:
        return "no number is left"
    sums, ahead = map_.sum(axis=-1), np.triu(map_, 1).sum() / len(map_)
    if ahead > 0.02:
        return f"{ahead:.0%} looks ahead"
    if np.abs(sums - 1).max() > 0.1:
        return f"rows sum to {sums.min():.1f} … {sums.max():.1f}"
    return f"{np.diagonal(map_, -1)[1:].mean():.0%} on the token before"
