"""The map of a GPT: a stream of vectors, and the parts that read it and add to it."""

from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import arrow, tint
from lesson_utils.lessons.full_block.diagram import PARTS, Map, Part, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
BOXES: dict[str, tuple[tuple[float, float], ...]] = {
    "embedding": ((STREAM, 0.4),),
    "positions": ((STREAM, 0.715),),
    "norm": ((BRANCH, 1.36), (BRANCH, 2.36), (STREAM, 3.43)),
    "attention": ((BRANCH, 1.7),),
    "add": tuple((STREAM, y) for y in ADDS),
    "feed-forward": ((BRANCH, 2.7),),
    "output": ((STREAM, 3.74),),
    "softmax": ((STREAM, 4.05),),
}
COLOURS = {"attention": plots.PURPLE, "feed-forward": plots.GREEN, "norm": plots.INK, "positions": plots.ORANGE}
GPT_MAP = Map("GPT", GPT_PARTS, BOXES, {"add": "+"}, {"add": 0.36}, COLOURS, "In this course: ")


def _draw_streams(plan: "Axes") -> None:
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


@live.lab(height=4.6, part=live.Choice("part", tuple(GPT_PARTS), "embedding"))
def gpt_lab(figure: "Figure") -> live.Update:
    """Show a GPT; the chosen part shows its formula, its shapes and its code."""
    return show(figure, GPT_MAP, _draw_streams)
