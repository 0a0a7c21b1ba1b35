"""Maps of models: diagrams whose parts tell their formula, shapes and code. Here: the encoder–decoder of 2017."""

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import arrow, box, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- The parts of the diagram ----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of the diagram: its formula, its shapes and its code."""

    title: str
    formula: str  # in mathtext
    shapes: str
    purpose: str  # what it is good for
    code: str  # the same in NumPy; a test runs it
    where: str  # where it stands in "Attention Is All You Need", or in this notebook


SCORES = "scores = Q @ K.swapaxes(-1, -2) / np.sqrt(d_k)\n"
PARTS = {
    "embedding": Part(
        "Embedding: each symbol becomes a vector",
        r"$x_t = \sqrt{d_{model}}\; E[\mathrm{id}_t]$",
        "ids (B, T)  →  x (B, T, d_model)",
        "A learned table has a row for each symbol. The\nfactor keeps positions from drowning it.",
        "x = np.sqrt(d_model) * E[ids]",
        "section 3.4",
    ),
    "positions": Part(
        "Positions: each vector learns where it stands",
        r"$x_t \leftarrow x_t + P_t$",
        "P (T, d_model), added to each sequence",
        "Without them the source is a set (notebook 04).",
        "x = x + P[:T]",
        "section 3.5",
    ),
    "self-attention": Part(
        "Self-attention: each position takes from all",
        r"$\mathrm{softmax}(QK^\top\!/\sqrt{d_k})\,V$  in h heads",
        "x (B, S, d_model)  →  y (B, S, d_model)",
        "The only part of the encoder in which tokens meet\n(notebooks 02 and 03).",
        "Q, K, V = (split_heads(x @ W, h)\n           for W in (W_Q, W_K, W_V))\n"
        + SCORES
        + "weights = softmax(scores)  # (B, h, S, S)\ny = merge_heads(weights @ V) @ W_O",
        "section 3.2.2",
    ),
    "add & norm": Part(
        "Add & norm: what a part gives is added, then normalized",
        r"$\mathrm{LayerNorm}(x + y)$",
        "x and y (B, T, d_model)  →  x (B, T, d_model)",
        "y is what attention or feed-forward gave. x comes\nin on the thin line, around that part.",
        "x = layer_norm(x + y, gamma, beta)",
        "section 3.1",
    ),
    "feed-forward": Part(
        "Feed-forward: each position thinks by itself",
        r"$\max(0,\; xW_1 + b_1)\,W_2 + b_2$",
        "x (B, T, d_model)  →  (B, T, d_ff)  →  y like x",
        "Wide in the middle, and bent there. The same two\nmatrices serve every position.",
        "hidden = np.maximum(0, x @ W_1 + b_1)\ny = hidden @ W_2 + b_2",
        "section 3.3, equation 2",
    ),
    "masked": Part(
        "Masked self-attention: nobody reads ahead",
        r"score $s_{ij} = -\infty$  for  $j > i$",
        "x (B, T, d_model)  →  y (B, T, d_model)",
        "Self-attention with one line more, the mask\n(notebook 06).",
        "Q, K, V = (split_heads(x @ W, h)\n           for W in (W_Q, W_K, W_V))\n"
        + SCORES
        + "scores = np.where(causal_mask(T), scores, -np.inf)\n"
        + "weights = softmax(scores)  # (B, h, T, T)\ny = merge_heads(weights @ V) @ W_O",
        "section 3.2.3",
    ),
    "cross": Part(
        "Cross-attention: the decoder looks at the source",
        r"$Q = xW_Q$,   $K = mW_K$,   $V = mW_V$",
        "x (B, T, d_model), memory m (B, S, d_model)",
        "The look back of notebook 01: the decoder asks,\nthe encoder's output answers.",
        "Q = split_heads(x @ W_Q, h)  # the decoder asks\n"
        "K, V = (split_heads(memory @ W, h)\n        for W in (W_K, W_V))\n"
        + SCORES
        + "weights = softmax(scores)  # (B, h, T, S)\ny = merge_heads(weights @ V) @ W_O",
        "section 3.2.3",
    ),
    "output": Part(
        "Output: the same table gives each symbol a score",
        r"$\mathrm{logits} = x\,E^\top$",
        "x (B, T, d_model)  →  logits (B, T, V)",
        "One dot product with each row of the embedding's\ntable: no parameters of its own.",
        "logits = x @ E.T",
        "section 3.4",
    ),
    "softmax": Part(
        "Softmax: scores become probabilities",
        r"$p_i = e^{s_i} / \sum_j e^{s_j}$",
        "logits (B, T, V)  →  p (B, T, V), each row sums to 1",
        "Each position bets on the symbol that comes next.",
        "p = softmax(logits)",
        "section 3.4",
    ),
}

# --- The architecture diagram ----------------------------------------------------------------------------------------

SOURCE, TARGET, WIDE, HIGH = 1.16, 3.42, 1.58, 0.27  # middles of the two columns, size of a box
# Part → the middles of the boxes that show it, in inches.
BOXES: dict[str, tuple[tuple[float, float], ...]] = {
    "embedding": ((SOURCE, 0.4), (TARGET, 0.4)),
    "positions": ((SOURCE, 0.715), (TARGET, 0.715)),
    "self-attention": ((SOURCE, 1.316),),
    "masked": ((TARGET, 1.316),),
    "cross": ((TARGET, 2.035),),
    "feed-forward": ((SOURCE, 2.035), (TARGET, 2.754)),
    "add & norm": ((SOURCE, 1.622), (SOURCE, 2.341), (TARGET, 1.622), (TARGET, 2.341), (TARGET, 3.06)),
    "output": ((TARGET, 3.56),),
    "softmax": ((TARGET, 3.9),),
}
LABELS = {"masked": "masked self-att.", "cross": "cross-attention"}
KINDS = {
    "self-attention": plots.PURPLE,
    "masked": plots.PURPLE,
    "cross": plots.PURPLE,
    "feed-forward": plots.GREEN,
    "add & norm": plots.INK,
    "positions": plots.ORANGE,
}  # the others: blue


def _draw_streams(plan: "Axes") -> None:
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


class Map(NamedTuple):
    """A diagram: its parts, the middles of their boxes in inches, and how they look."""

    of: str
    parts: Mapping[str, Part]
    boxes: Mapping[str, tuple[tuple[float, float], ...]]
    labels: Mapping[str, str]  # of boxes that do not bear their part's name
    widths: Mapping[str, float]  # of boxes that are not `WIDE`
    colours: Mapping[str, str]  # the others are blue
    source: str  # stands before each part's `where`


def show(figure: "Figure", drawn: Map, draw_streams: Callable[["Axes"], None]) -> live.Update:
    """Draw a map, and beside it what the chosen part says of itself."""
    from matplotlib.patches import FancyBboxPatch

    plan = sheet(figure)
    draw_streams(plan)
    for part, places in drawn.boxes.items():
        colour, wide = drawn.colours.get(part, plots.BLUE), drawn.widths.get(part, WIDE)
        for x, y in places:
            made = box(plan, x, y, drawn.labels.get(part, part), wide, HIGH, colour, 0.16, size=10.5)
            made.patch.set_zorder(1)
            made.label.set_zorder(1)
    # Over the chosen boxes lie dark ones: so a step moves these few only.
    style = "round,pad=0,rounding_size=0.06"
    covers: list[Any] = [
        plan.add_patch(FancyBboxPatch((-9, -9), WIDE, HIGH, boxstyle=style, lw=0, zorder=6))
        for _ in range(max(map(len, drawn.boxes.values())))
    ]
    middle: dict[str, Any] = {"ha": "center", "va": "center", "size": 10.5}
    names = [plan.text(0, 0, "", color="white", weight="bold", zorder=7, **middle) for _ in covers]
    left = 4.72
    formula = plan.text(left, 3.901, "", size=14, va="top")
    shapes = plan.text(left, 3.442, "", va="top")
    purpose = plan.text(left, 3.098, "", va="top", linespacing=1.4)
    code = plan.text(left, 2.448, "", va="top", family="monospace", size=9.4, linespacing=1.6)
    where = plan.text(left, 0.574, "", va="top", color=plots.GREY)

    def update(part: str) -> str:
        about, colour = drawn.parts[part], drawn.colours.get(part, plots.BLUE)
        wide = drawn.widths.get(part, WIDE)
        for cover, label, place in itertools.zip_longest(covers, names, drawn.boxes[part]):
            x, y = place or (-5.0, -5.0)
            cover.set_bounds(x - wide / 2, y - HIGH / 2, wide, HIGH)
            cover.set_facecolor(colour)
            label.set_position((x, y))
            label.set_text(drawn.labels.get(part, part) if place else "")
        plan.set_title(about.title)
        formula.set_text(about.formula)
        formula.set_color(colour)
        shapes.set_text(about.shapes)
        purpose.set_text(about.purpose)
        code.set_text(about.code)
        where.set_text(f"{drawn.source}{about.where}")
        times = len(drawn.boxes[part])
        return (
            f"{about.title}: {times} {'box' if times == 1 else 'boxes'} in the map of the {drawn.of}. "
            f"{about.purpose} Formula: {about.formula.replace('$', '')}. Shapes: {about.shapes}. "
            f"Code: {'; '.join(about.code.splitlines())}. {drawn.source}{about.where}."
        ).replace("\n", " ")

    return update


TRANSLATION = Map("encoder–decoder", PARTS, BOXES, LABELS, {}, KINDS, "“Attention Is All You Need”, ")


@live.lab(height=4.6, part=live.Choice("part", tuple(PARTS), "cross"))
def diagram_lab(figure: "Figure") -> live.Update:
    """Show the translation model of 2017; the chosen part shows its formula, its shapes and its code."""
    return show(figure, TRANSLATION, _draw_streams)
