"""The architecture as a diagram whose parts tell their formula, shapes and source."""

import inspect
import itertools
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from lesson_utils import attention, layers, live, ops, plots, positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- The parts of the diagram ----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """What the diagram tells about a part."""

    title: str
    formula: str  # in mathtext
    shapes: str
    paper: str  # where it stands in "Attention Is All You Need"
    source: Callable[..., Any]
    first: str  # the line of the source where its heart begins


PARTS = {
    "embedding": Part(
        "Embedding: a vector for each symbol",
        r"$x_t = \sqrt{d_{model}}\; E[\mathrm{id}_t]$",
        "ids (B, T)  →  (B, T, d_model)",
        "section 3.4",
        layers.Embedding.forward,
        "y, cache",
    ),
    "positions": Part(
        "Positions: where each symbol stands",
        r"$PE_{pos,2i} = \sin(pos / 10000^{2i/d_{model}})$, odd ones with cos",
        "(T, d_model), added to each sequence",
        "section 3.5",
        positions.sinusoidal_encoding,
        "angles",
    ),
    "attention": Part(
        "Self-attention: each position takes from all",
        r"$\mathrm{Concat}(head_1 \ldots head_h)\,W_O$,  $head_i = \mathrm{softmax}(QK^\top\!/\sqrt{d_k})\,V$",
        "(B, T, d_model)  →  weights (B, h, T, T)  →  (B, T, d_model)",
        "section 3.2.2",
        attention.multi_head_attention,
        "Q = split_heads",
    ),
    "add & norm": Part(
        "Add & norm: the way around, then layer norm",
        r"$\mathrm{LayerNorm}(x + f(x))$",
        "(B, T, d_model)  →  (B, T, d_model)",
        "section 3.1",
        layers.Residual.forward,
        "y, inner_cache",
    ),
    "feed-forward": Part(
        "Feed-forward: each position by itself",
        r"$\max(0,\; xW_1 + b_1)\,W_2 + b_2$",
        "(B, T, d_model)  →  (B, T, d_ff)  →  (B, T, d_model)",
        "section 3.3, equation 2",
        layers.FeedForward.forward,
        "hidden, wide",
    ),
    "masked": Part(
        "Masked self-attention: nobody reads ahead",
        r"score $s_{ij} = -\infty$  for  $j > i$",
        "mask (T, T)  →  weights (B, h, T, T)",
        "section 3.2.3",
        attention.scaled_dot_product_attention,
        "scores = Q",
    ),
    "cross": Part(
        "Cross-attention: the decoder reads the source",
        r"$Q = xW_Q$,   $K = \mathrm{memory}\,W_K$,   $V = \mathrm{memory}\,W_V$",
        "x (B, T, d_model), memory (B, S, d_model)  →  weights (B, h, T, S)",
        "section 3.2.3",
        layers.DecoderLayer.forward,
        "x, attention",
    ),
    "output": Part(
        "Output: a score for each symbol, by the same table",
        r"$\mathrm{logits} = x\,E^\top$",
        "(B, T, d_model)  →  (B, T, V)",
        "section 3.4",
        layers.Embedding.logits_forward,
        "return",
    ),
    "softmax": Part(
        "Softmax: scores become probabilities",
        r"$p_i = e^{s_i} / \sum_j e^{s_j}$",
        "(B, T, V)  →  (B, T, V), each row sums to 1",
        "section 3.4",
        ops.softmax_forward,
        "weights = np.exp",
    ),
}


def source_lines(part: Part, width: int = 74) -> tuple[str, list[str]]:
    """The name of a part's source, and its lines as they stand there, from the part's first line on.

    Comments that are not shapes are left out; a line that is too wide loses its comment, or goes on below.
    """
    lines = inspect.getsource(part.source).splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(part.first))
    shown: list[str] = []
    for line in textwrap.dedent("\n".join(lines[start:])).splitlines():
        code, _, comment = line.partition("  # ")
        kept = line if comment.startswith("(") and len(line) <= width else code
        shown += textwrap.wrap(kept, width, subsequent_indent=" " * (len(code) - len(code.lstrip()) + 8))
    module = part.source.__module__.removeprefix("lesson_utils.")
    return f"{module}.{part.source.__qualname__}", shown


def empty(ax: "Axes") -> None:
    """Axes for a drawing or a text: nothing of their own to be seen."""
    ax.set_axis_off()
    for part in (*ax.spines.values(), ax.xaxis, ax.yaxis):  # a live figure draws each artist by itself
        part.set_visible(False)


# --- The architecture diagram ----------------------------------------------------------------------------------------

# Part → the boxes that show it: x, y, width, height, in units of the drawing (10 across, 13 up).
BOXES: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "embedding": ((0.6, 0.8, 3.6, 0.8), (5.9, 0.8, 3.6, 0.8)),
    "positions": ((0.6, 1.9, 3.6, 0.8), (5.9, 1.9, 3.6, 0.8)),
    "attention": ((0.6, 3.7, 3.6, 0.8),),
    "masked": ((5.9, 3.7, 3.6, 0.8),),
    "cross": ((5.9, 5.9, 3.6, 0.8),),
    "feed-forward": ((0.6, 5.9, 3.6, 0.8), (5.9, 8.1, 3.6, 0.8)),
    "add & norm": (
        *((0.6, 4.75, 3.6, 0.7), (0.6, 6.95, 3.6, 0.7)),
        *((5.9, 4.75, 3.6, 0.7), (5.9, 6.95, 3.6, 0.7), (5.9, 9.15, 3.6, 0.7)),
    ),
    "output": ((5.9, 10.4, 3.6, 0.8),),
    "softmax": ((5.9, 11.5, 3.6, 0.8),),
}
LABELS = {"attention": "self-attention", "masked": "masked att.", "cross": "cross-attention"}


def _draw_streams(plan: "Axes") -> None:
    """What runs between the boxes: the streams, the ways around, the memory."""
    from matplotlib.patches import Rectangle

    line: dict[str, Any] = {"color": plots.GREY, "lw": 1.3, "zorder": 0}
    arrow: dict[str, Any] = {"arrowprops": {"arrowstyle": "->", "color": plots.GREY, "lw": 1.3}, "zorder": 0}
    for x, top, name in ((0.0, 7.75, "encoder ×N"), (5.3, 9.95, "decoder ×N")):
        plan.add_patch(
            Rectangle((x, 3.1), 4.3, top - 3.1, facecolor="#F3F3F3", edgecolor=plots.GREY, lw=0.8, zorder=-1)
        )
        plan.text(x, top + 0.1, name, va="bottom", fontsize=8, color=plots.GREY)
    for x, name, top, halves in ((2.4, "source ids", 7.5, (3.7, 5.9)), (7.7, "target ids", 12.9, (3.7, 5.9, 8.1))):
        plan.text(x, 0.0, name, ha="center", fontsize=9)
        plan.plot([x, x], [0.45, top], **line)
        for y in halves:  # around the sublayer, into add & norm
            plan.plot([x, x - 2.2, x - 2.2], [y - 0.18, y - 0.18, y + 1.2], **line)
            plan.annotate("", (x - 1.8, y + 1.2), (x - 2.25, y + 1.2), **arrow)
    plan.annotate("", (7.7, 13.0), (7.7, 12.4), **arrow)
    plan.plot([2.4, 2.4, 4.8, 4.8], [7.5, 8.3, 8.3, 6.3], **line)
    plan.annotate("", (5.9, 6.3), (4.75, 6.3), **arrow)
    plan.text(2.4, 8.45, "memory: K, V", ha="center", fontsize=9)


@live.lab(height=5.6, part=live.Choice("part", tuple(PARTS), "embedding"))
def diagram_lab(figure: "Figure") -> live.Update:
    """The architecture; the chosen part shows its formula, its shapes and its source."""
    from matplotlib.patches import Rectangle

    plan, page = figure.subplots(1, 2, width_ratios=(1, 1.72))
    plan.set(xlim=(-0.2, 9.9), ylim=(-0.2, 13.1))
    page.set(xlim=(0, 1), ylim=(0, 1))
    for ax in (plan, page):
        empty(ax)
    _draw_streams(plan)
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}
    for part, places in BOXES.items():
        for x, y, width, height in places:
            plan.add_patch(Rectangle((x, y), width, height, facecolor="white", edgecolor=plots.INK, lw=1, zorder=1))
            plan.text(x + width / 2, y + height / 2, LABELS.get(part, part), zorder=1, **middle)
    # Over the chosen boxes lie blue ones: so a step moves these few only.
    most = max(map(len, BOXES.values()))
    covers = [plan.add_patch(Rectangle((0, 0), 0, 0, facecolor=plots.BLUE, zorder=6)) for _ in range(most)]
    names = [plan.text(0, 0, "", color="white", weight="bold", zorder=7, **middle) for _ in range(most)]
    formula = page.text(0, 0.9, "", fontsize=13, va="top", color=plots.BLUE)
    shapes = page.text(0, 0.76, "", va="top")
    where = page.text(0, 0.65, "", va="top", color=plots.GREY)
    code = page.text(0, 0.56, "", va="top", family="monospace", fontsize=8.6, linespacing=1.45)

    def update(part: str) -> str:
        for cover, label, place in itertools.zip_longest(covers, names, BOXES[part]):
            x, y, width, height = place or (0.0, 0.0, 0.0, 0.0)
            cover.set_bounds(x, y, width, height)
            label.set_position((x + width / 2, y + height / 2))
            label.set_text(LABELS.get(part, part) if place else "")
        about = PARTS[part]
        name, lines = source_lines(about)
        page.set_title(about.title)
        formula.set_text(about.formula)
        shapes.set_text(about.shapes)
        where.set_text(f"Paper: {about.paper}. Source: {name}")
        code.set_text("\n".join(lines))
        times = len(BOXES[part])
        return (
            f"The encoder–decoder as a diagram; chosen: {about.title}, {times} {'box' if times == 1 else 'boxes'}. "
            f"Formula: {about.formula.replace('$', '')}. Shapes: {about.shapes}. Paper: {about.paper}. Source: {name}: "
            + " ".join(lines)
        )

    return update
