"""Drawn by hand: the two blocks, the map of the translation model, and three wirings of the same blocks."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Encoder, Transformer

# --- 4 · Before or after? --------------------------------------------------------------------------------------------


def _plus(ax: "plots.Axes", x: float, y: float) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((x, y), 0.13, fc="white", ec=plots.INK, lw=1.8, zorder=3))
    ax.text(x, y - 0.012, "+", ha="center", va="center", weight="bold", zorder=4)


def _block(ax: "plots.Axes", left: float, pre: bool) -> None:
    """Draw one block: its stream is a thick vertical road at `left`, its parts lie on side roads to the right."""
    stream = plots.BLUE if pre else plots.ORANGE
    ax.plot([left, left], [0.16, 3.28], color=tint(stream, 0.75), lw=7, zorder=1, solid_capstyle="butt")
    arrow(ax, (left, 3.2), (left, 3.5), stream, 3.5)
    ax.text(left - 0.16, 0.2, "x", ha="right", va="center", weight="bold", size=14)
    for low, name, colour in ((0.42, "attention", plots.PURPLE), (1.88, "feed-forward", plots.GREEN)):
        road: dict[str, Any] = {"color": plots.GREY, "lw": 1.8, "zorder": 1}
        join = low + (1.04 if pre else 0.72)
        x = left + 1.15
        ax.plot([left, x, x], [low, low, join], **road)
        arrow(ax, (x, join), (left + 0.13, join), plots.GREY)
        _plus(ax, left, join)
        part = low + (0.7 if pre else 0.36)
        box(ax, x, part, name, 1.3, 0.32, colour, 0.16).patch.set_zorder(3)
        at = (x, low + 0.25) if pre else (left, join + 0.4)
        box(ax, *at, "norm", 0.86, 0.3, plots.INK, 0.1).patch.set_zorder(3)


@plots.still(9.2, 4.1)
def two_places(figure: "plots.Figure") -> str:
    """Draw a post-norm block and a pre-norm block, side by side."""
    ax = sheet(figure)
    ax.set_title("Post-norm stands on the stream, pre-norm on the side roads")
    for left, pre in ((0.62, False), (5.0, True)):
        _block(ax, left, pre)
        name, colour = ("pre-norm", plots.BLUE) if pre else ("post-norm", plots.ORANGE)
        ax.text(left + 1.95, 3.22, name, weight="bold", size=14, color=colour, va="center")
        formula = "x + f(norm(x))" if pre else "norm(x + f(x))"
        ax.text(left + 1.95, 2.86, formula, size=12.5, va="center", family="monospace")
        remark = (
            "Nothing stands in the\nway: the stream runs\nfrom bottom to top,\nand parts only add."
            if pre
            else "The stream itself goes\nthrough every norm:\nafter each part it is\nbrought back to size 1."
        )
        ax.text(left + 1.95, 2.5, remark, va="top", linespacing=1.4)
    return (
        "… Two blocks, drawn from bottom to top. "
        "Post-norm: x branches off to attention, is added, the sum goes through a norm; so with feed-forward. "
        "Pre-norm: the stream goes straight up; each branch has a norm before attention or feed-forward."
    )


# --- 8 · The map of the translation model -----------------------------------------------------------------------------

SOURCE, TARGET, WIDE, HIGH = 1.16, 3.42, 1.58, 0.27  # middles of the two columns, size of a box
BOXES: dict[str, tuple[tuple[float, float], ...]] = {  # their middles, in inches
    "embedding": ((SOURCE, 0.4), (TARGET, 0.4)),
    "positions": ((SOURCE, 0.715), (TARGET, 0.715)),
    "self-attention": ((SOURCE, 1.316),),
    "masked self-att.": ((TARGET, 1.316),),
    "cross-attention": ((TARGET, 2.035),),
    "feed-forward": ((SOURCE, 2.035), (TARGET, 2.754)),
    "add & norm": ((SOURCE, 1.622), (SOURCE, 2.341), (TARGET, 1.622), (TARGET, 2.341), (TARGET, 3.06)),
    "output": ((TARGET, 3.56),),
    "softmax": ((TARGET, 3.9),),
}
COLOURS = {
    "self-attention": plots.PURPLE,
    "masked self-att.": plots.PURPLE,
    "cross-attention": plots.PURPLE,
    "feed-forward": plots.GREEN,
    "add & norm": plots.INK,
    "positions": plots.ORANGE,
}  # the others: blue
NOTES = (  # where each begins, in inches; the part, and what it computes
    (3.9, "output", r"$x\,E^\top$: a score for each symbol, from the same table"),
    (3.2, "add & norm", r"$\mathrm{LayerNorm}(x + y)$, with what the part gave as $y$"),
    (2.5, "cross-attention", r"$Q = xW_Q$ from the decoder; $K = mW_K$, $V = mW_V$"),
    (1.8, "masked self-att.", r"score $s_{ij} = -\infty$ for $j > i$ (notebook 06)"),
    (1.1, "embedding", r"$\sqrt{d_{model}}\,E[\mathrm{id}]$, one learned row for each symbol"),
)


@plots.still(9.4, 4.6)
def translation_map(figure: "plots.Figure") -> str:
    """Draw the translation model of 2017: its parts, what runs between them, and what some of them compute."""
    ax = sheet(figure)
    ax.set_title("Only cross-attention joins the two stacks: the decoder asks, the memory answers")
    _streams(ax)
    for part, places in BOXES.items():
        for x, y in places:
            made = box(ax, x, y, part, WIDE, HIGH, COLOURS.get(part, plots.BLUE), 0.16, size=10.5)
            made.patch.set_zorder(1)
            made.label.set_zorder(1)
    for y, part, computes in NOTES:
        ax.text(5.0, y, part, weight="bold", color=COLOURS.get(part, plots.BLUE), va="center")
        ax.text(5.0, y - 0.26, computes, va="center", size=10.5)
    return (
        "… Two columns, read from the bottom. Encoder, N layers: self-attention, add & norm, feed-forward, add & norm; "
        "its output is the memory. Decoder, N layers: masked self-attention, cross-attention to the memory and "
        "feed-forward, each with add & norm; then output and softmax."
    )


def _streams(plan: "plots.Axes") -> None:
    """Draw what runs between the boxes: streams, residual connections, the memory, symbols in and out."""
    from matplotlib.patches import FancyBboxPatch

    line: dict[str, Any] = {"color": plots.GREY, "lw": 1.5, "zorder": 0}
    small: dict[str, Any] = {"color": plots.GREY, "size": 10, "va": "center"}
    for x, top, name in ((SOURCE, 2.54, "encoder × N"), (TARGET, 3.274, "decoder × N")):
        frame = FancyBboxPatch(
            (x - 1.13, 1.04), 2.05, top - 1.04, boxstyle="round,pad=0,rounding_size=0.08", fc="#F3F3F3", lw=0, zorder=-1
        )
        plan.add_patch(frame)
        plan.text(x + 0.05, top + 0.069, name, **small)
    for x, words, top, parts in (
        (SOURCE, "der Hund schläft", 2.341, (1.316, 2.035)),
        (TARGET, "<begin> the dog", 3.978, (1.316, 2.035, 2.754)),
    ):
        plan.text(x, 0.107, words, ha="center", va="center", size=10.5, weight="bold")
        plan.plot([x, x], [0.214, top], **line)
        for y in parts:  # around the part, into add & norm
            plan.plot([x, x - 0.98, x - 0.98], [y - 0.191, y - 0.191, y + 0.306], **line)
            arrow(plan, (x - 0.98, y + 0.306), (x - 0.78, y + 0.306), plots.GREY, 1.5)
    arrow(plan, (TARGET, 3.978), (TARGET, 4.208), plots.GREY, 1.5)
    plan.text(TARGET + 0.12, 4.131, "the dog sleeps", va="center", size=10.5, weight="bold")
    joint = (SOURCE + TARGET) / 2
    plan.plot([SOURCE, SOURCE, joint, joint], [2.471, 2.831, 2.831, 2.035], **line)
    arrow(plan, (joint, 2.035), (TARGET - WIDE / 2, 2.035), plots.GREY, 1.5)
    plan.text(SOURCE - 1.1, 2.938, "memory m (B, S, d_model)", **small)
    plan.text(SOURCE + 0.08, 0.956, "(B, S, d_model)", **small)
    plan.text(TARGET + 0.08, 0.956, "(B, T, d_model)", **small)


# --- 8 · Three wirings ------------------------------------------------------------------------------------------------


def moved(run: Callable[[Array], Array], ids: Array) -> Array:
    """Change one input symbol after the other: (outputs, inputs), 1 where the output is not the same."""
    before = run(ids)  # (1, T_out, V)
    columns = []
    for j in range(ids.shape[1]):
        changed = ids.copy()
        changed[0, j] += 1
        columns.append(np.abs(run(changed) - before).max(axis=-1)[0] > 1e-6)
    return np.stack(columns, axis=1).astype(float)


def wirings(encoder: Encoder, gpt: GPT, both: Transformer, T: int = 6) -> dict[str, Array]:
    """Measure for three models which outputs depend on which inputs, by changing them."""
    source, target = np.random.default_rng(0).integers(3, 12, size=(2, 1, T))
    return {
        "encoder-only": moved(lambda ids: encoder.forward(ids)[0][:, :, 0], source),
        "decoder-only": moved(lambda ids: gpt.forward(ids)[0], source),
        "from the source": moved(lambda ids: both.forward(ids, target)[0], source),
        "from the target": moved(lambda ids: both.forward(source, ids)[0], target),
    }


@plots.still(9.4, 2.9)
def wirings_plot(figure: "plots.Figure", reach: Mapping[str, Array]) -> str:
    """Draw for three wirings of the same blocks which outputs an input can move, as measured."""
    from matplotlib.colors import ListedColormap

    finding = "The mask decides the family: which input moves which output"
    figure.suptitle(finding, x=0.01, ha="left", weight="bold")
    families = {
        "encoder-only": "BERT: encoder-only",
        "decoder-only": "GPT: decoder-only",
        "from the source": "T5, the paper's: source",
        "from the target": "T5, the paper's: target",
    }
    alt = []
    for ax, (name, title) in zip(figure.subplots(1, 4), families.items(), strict=True):
        matrix = reach[name]
        masked = np.triu(matrix, 1).sum() == 0
        ends = ["white", plots.PURPLE if masked else plots.BLUE]
        ax.pcolormesh(matrix, cmap=ListedColormap(ends), vmin=0, vmax=1, edgecolors="#BBBBBB", lw=0.8)
        ax.set(aspect="equal", xticks=(), yticks=(), xlabel="input", ylabel="output")
        ax.invert_yaxis()
        ax.set_title(title, size=11, weight="normal", color=ends[1])
        alt.append(f"{title}: {matrix.mean():.0%} of the pairs, {'never' if masked else 'also'} from inputs behind it")
    return (
        f"{finding}. Four squares of outputs by inputs, dark where a changed input moves the output. {'; '.join(alt)}."
    )
