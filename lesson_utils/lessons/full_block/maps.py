"""Drawn by hand: maps of models whose parts tell their formula, shapes and code, and blocks beside each other."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import arrow, box, sheet, tint
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Encoder, Transformer

# --- 1 and 11 · A map, and what its parts say -------------------------------------------------------------------------


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

SOURCE, TARGET, WIDE, HIGH = 1.16, 3.42, 1.58, 0.27  # middles of the two columns, size of a box


class Map(NamedTuple):
    """A diagram: its parts, the middles of their boxes in inches, and how they look."""

    of: str
    parts: Mapping[str, Part]
    boxes: Mapping[str, tuple[tuple[float, float], ...]]
    labels: Mapping[str, str]  # of boxes that do not bear their part's name
    widths: Mapping[str, float]  # of boxes that are not `WIDE`
    colours: Mapping[str, str]  # the others are blue
    source: str  # stands before each part's `where`


def show(figure: "plots.Figure", drawn: Map, draw_streams: Callable[["plots.Axes"], None]) -> live.Update:
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
            f"… {times} {'box' if times == 1 else 'boxes'} in the map of the {drawn.of}. {about.purpose} "
            f"Formula: {about.formula.replace('$', '')}. Shapes: {about.shapes}. "
            f"Code: {'; '.join(about.code.splitlines())}. {drawn.source}{about.where}."
        ).replace("\n", " ")

    return update


# --- 1 · The block of a GPT -------------------------------------------------------------------------------------------

STREAM, BRANCH = 1.15, 2.92  # middles of the stream and of the boxes beside it, in inches
ADDS = (2.03, 3.03)  # where what a part gives is added to the stream
LEAVES = (1.2, 2.2)  # where the roads to the parts leave the stream

GPT_PARTS = {
    "embedding": PARTS["embedding"]._replace(
        purpose="A learned table has a row for each symbol. (The\nfactor is that of 2017. GPT-2 has none.)",
        where="notebook 02",
    ),
    "positions": PARTS["positions"]._replace(
        purpose="Without them the order of the symbols is lost\n(notebook 04).", where="notebook 04"
    ),
    "norm": Part(
        "Norm: each token is brought to one size",
        r"$\mathrm{LayerNorm}(x) = \gamma\,(x - \mu)/\sigma + \beta$",
        "x (B, T, d_model)  →  normed, the same shape",
        "A part reads this normalized copy. The stream itself\nstays as it is.",
        "normed = layer_norm(x, gamma, beta)",
        "section 3",
    ),
    "attention": PARTS["masked"]._replace(
        title="Attention: each token takes from the tokens before",
        shapes="normed (B, T, d_model)  →  y (B, T, d_model)",
        purpose="The only part in which tokens meet. A mask hides\nwhat comes later (notebook 06).",
        code=PARTS["masked"].code.replace("(x @ W, h)", "(normed @ W, h)"),
        where="notebooks 02, 03 and 06",
    ),
    "add": Part(
        "Add: what a part gives is added to the stream",
        r"$x \leftarrow x + y$",
        "x and y (B, T, d_model)  →  x (B, T, d_model)",
        "The thick line carries x around the part, so a\npart never replaces what it read.",
        "x = x + y",
        "section 2",
    ),
    "feed-forward": PARTS["feed-forward"]._replace(
        shapes="normed (B, T, d_model)  →  (B, T, d_ff)  →  y",
        code=PARTS["feed-forward"].code.replace("x @ W_1", "normed @ W_1"),
        where="section 4",
    ),
    "output": PARTS["output"]._replace(
        formula=r"$\mathrm{logits} = \mathrm{norm}(x)\,E^\top$",
        shapes="normed (B, T, d_model)  →  logits (B, T, V)",
        code="logits = normed @ E.T",
        where="notebook 06",
    ),
    "softmax": PARTS["softmax"]._replace(where="notebooks 02 and 06"),
}
GPT_BOXES: dict[str, tuple[tuple[float, float], ...]] = {
    "embedding": ((STREAM, 0.4),),
    "positions": ((STREAM, 0.715),),
    "norm": ((BRANCH, 1.36), (BRANCH, 2.36), (STREAM, 3.43)),
    "attention": ((BRANCH, 1.7),),
    "add": tuple((STREAM, y) for y in ADDS),
    "feed-forward": ((BRANCH, 2.7),),
    "output": ((STREAM, 3.74),),
    "softmax": ((STREAM, 4.05),),
}
GPT_COLOURS = {"attention": plots.PURPLE, "feed-forward": plots.GREEN, "norm": plots.INK, "positions": plots.ORANGE}
GPT_MAP = Map("GPT", GPT_PARTS, GPT_BOXES, {"add": "+"}, {"add": 0.36}, GPT_COLOURS, "In this course: ")


def draw_gpt_streams(plan: "plots.Axes") -> None:
    """Draw the stream, the roads to the parts and back, the frame of a block, and symbols in and out."""
    from matplotlib.patches import FancyBboxPatch

    frame = FancyBboxPatch(
        (0.25, 1.02), 3.75, 2.2, boxstyle="round,pad=0,rounding_size=0.08", fc="#F3F3F3", lw=0, zorder=-1
    )
    plan.add_patch(frame)
    small: dict[str, Any] = {"color": plots.GREY, "size": 10, "va": "center"}
    plan.text(0.36, 1.55, "a block,\nN times", linespacing=1.3, **small)
    plan.plot([STREAM, STREAM], [0.2, 4.05], color=tint(plots.BLUE, 0.6), lw=6, zorder=0, solid_capstyle="butt")
    for low, high in zip(LEAVES, ADDS, strict=True):
        plan.plot([STREAM, BRANCH, BRANCH], [low, low, high], color=plots.GREY, lw=1.5, zorder=0)
        arrow(plan, (BRANCH, high), (STREAM + 0.18, high), plots.GREY, 1.5)
    plan.text(STREAM, 0.107, "the dog", ha="center", va="center", size=10.5, weight="bold")
    arrow(plan, (STREAM + 0.79, 4.05), (STREAM + 1.25, 4.05), plots.GREY, 1.5)
    plan.text(STREAM + 1.32, 4.05, "sleeps", va="center", size=10.5, weight="bold")
    plan.text(STREAM + 0.95, 0.55, "x (B, T, d_model)", **small)


# --- 8 · The block of today -------------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """A thing that is built otherwise today, and where this course measures it."""

    then: str
    now: str
    use: str
    where: str  # "" where the course does not measure it


CHOICES = (
    Choice("norm on the stream", "norm before each part", "trains without warm-up", "section 10"),
    Choice("layer norm", "RMS norm: no mean, no β", "less to compute", ""),
    Choice("ReLU", "SwiGLU: a product of two", "lower loss, same size", "notebook 09"),
    Choice("biases", "no biases", "fewer numbers", ""),
    Choice("h keys and values", "heads share them", "a smaller cache", "notebooks 07, 09"),
    Choice("positions added", "queries, keys rotated", "lower loss", "notebooks 04, 09"),
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
def block_of_today(figure: "plots.Figure") -> str:
    """Draw the block of 2017 and the block of today, and a row for each choice that has changed."""
    ax = sheet(figure)
    measured = sum(bool(choice.where) for choice in CHOICES)
    ax.set_title(f"{len(CHOICES)} choices have changed since 2017; this course shows the use of {measured}")
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


# --- 10 · Before or after? --------------------------------------------------------------------------------------------


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


# --- 11 · The map of the translation model ----------------------------------------------------------------------------

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


TRANSLATION = Map("encoder–decoder", PARTS, BOXES, LABELS, {}, KINDS, "“Attention Is All You Need”, ")


def draw_translation_streams(plan: "plots.Axes") -> None:
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


# --- 12 · Three wirings -----------------------------------------------------------------------------------------------


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


WIRING_CELL = 0.2  # inches


def _reach(ax: "plots.Axes", x: float, y: float, matrix: Array, colour: str) -> None:
    """Draw the matrix as dark and light squares, its centre at (x, y)."""
    from matplotlib.collections import PolyCollection

    rows, columns = matrix.shape
    left, top = x - WIRING_CELL * columns / 2, y + WIRING_CELL * rows / 2
    corners = WIRING_CELL * np.array([(0, 0), (1, 0), (1, -1), (0, -1)])
    squares = [
        corners + np.array((left + WIRING_CELL * j, top - WIRING_CELL * i)) for i, j in np.ndindex(rows, columns)
    ]
    fill = [colour if value else "white" for value in matrix.ravel()]
    ax.add_collection(PolyCollection(squares, facecolors=fill, edgecolors="#BBBBBB", linewidths=0.8, zorder=3))


@plots.still(9.4, 4.2)
def wirings_plot(figure: "plots.Figure", reach: Mapping[str, Array]) -> str:
    """Draw three wirings of the same blocks, and in each block which outputs an input can move, as measured."""
    ax = sheet(figure)
    ax.set_title("The mask decides the family: which input (column) moves which output (row)")
    at = {"encoder-only": 1.15, "decoder-only": 3.5, "from the source": 6.05, "from the target": 8.15}
    names = {"from the source": "encoder", "from the target": "decoder"}
    below = {"encoder-only": "text", "decoder-only": "text so far", "from the source": "source"}
    above = {"encoder-only": "labels, gaps filled", "decoder-only": "next symbols", "from the target": "next symbols"}
    alt = []
    for name, x in at.items():
        matrix, middle = reach[name], 1.86
        decoder = np.triu(matrix, 1).sum() == 0
        colour = plots.PURPLE if decoder else plots.BLUE
        block = box(ax, x, middle, "", 1.86, 2.0, colour, 0.16)
        ax.text(x, middle + 0.83, names.get(name, name), ha="center", va="center", weight="bold", color=colour)
        _reach(ax, x, middle - 0.08, matrix, colour)
        ax.text(x, middle - 0.86, name if name in names else "", ha="center", va="center", size=10.5)
        arrow(ax, (x, 0.45), block.bottom)
        ax.text(x, 0.28, below.get(name, "target so far"), ha="center", va="center")
        if name in above:
            arrow(ax, block.top, (x, 3.24))
            ax.text(x, 3.38, above[name], ha="center", va="center")
        else:
            arrow(ax, block.right, (at["from the target"] - 0.93, middle))
        alt.append(
            f"{name}: {matrix.mean():.0%} of the pairs, {'never' if decoder else 'also'} from inputs behind the output"
        )
    for x, family in ((1.15, "BERT"), (3.5, "GPT"), (7.1, "T5, and the paper's")):
        ax.text(x, 3.64, family, ha="center", va="center", weight="bold", size=13)
    return (
        "… Blocks of an encoder-only model (BERT), a decoder-only model (GPT) and an "
        "encoder–decoder (T5, and the paper's); in each, which output moves when an input symbol is changed. "
        + "; ".join(alt)
        + "."
    )
