"""What notebook 05 calls `lab.name`: live figures, in its order; the rest from the other modules."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.classroom.drawings import paper
from lesson_utils.lessons.full_block.maps import (
    translation_map,
    two_places,
    wirings,
    wirings_plot,
)
from lesson_utils.lessons.full_block.stacks import (
    as_lines,
    at_start,
    cosines,
    fit,
    learning_plot,
    likeness,
    likeness_plot,
    river,
    scale_sums,
    start_plot,
    tiny,
    untrained,
)
from lesson_utils.lessons.full_block.worth import (
    READ,
    SWITCHES,
    Measures,
    every_setting,
    measure,
    parts_plot,
    reversal_pairs,
    small,
    without,
)
from lesson_utils.maths.layers import NormPlace

# --- 6 · Break it -----------------------------------------------------------------------------------------------------

MEASURES = {
    "guided": "next symbol right,\ngiven the right ones",
    "alone": "whole string right,\nwriting on its own",
    "leak": "leak from later\nsymbols",
    "order": "difference if the\nsource is turned",
}
GOOD = {"guided": 1, "alone": 1, "leak": 0, "order": 1}  # the good end


@live.lab(
    height=4.2,
    neutral="All parts are on.",
    telling={"mask": False},
    controls={name: live.Switch(name, True) for name in SWITCHES},
    prepare=every_setting,
    example=small,
)
def switchboard_lab(figure: "plots.Figure", results: Mapping[tuple[bool, ...], Measures]) -> live.Update:
    """Show a trained model with switches; all 64 settings are measured first."""
    trained = results[(True,) * len(SWITCHES)]
    question, _ = reversal_pairs(np.random.default_rng(2024), 48)
    source = READ.decode(question[0])
    ax, side = figure.subplots(1, 2, width_ratios=(1.5, 1))
    rows = np.arange(len(MEASURES))
    ax.set_yticks(rows, list(MEASURES.values()))
    ax.set(xlim=(0, 1.15), ylim=(len(rows) - 0.4, -0.6), xticks=(0, 0.25, 0.5, 0.75, 1), xlabel="measure")
    for row, name in zip(rows, MEASURES, strict=True):  # on the frame, where no bar's number can stand
        ax.plot(GOOD[name], row + 0.42, "^", color=plots.GREEN, ms=9, clip_on=False, zorder=5)
    bars = plots.Bars(ax, len(rows), height=0.6)
    for row, name in zip(rows, MEASURES, strict=True):
        ax.plot([getattr(trained, name)] * 2, [row - 0.38, row + 0.38], color=plots.INK, lw=2.5, clip_on=False)
    paper(side, 1, 1)
    side.text(0, 0.98, "green triangle: the good end", color=plots.GREEN)
    side.text(0, 0.86, "black line: as trained", color=plots.INK)
    side.text(0, 0.68, f"asked:     {source}", family="monospace")
    side.text(0, 0.57, f"expected:  {source[::-1]}", family="monospace")
    says = side.text(0, 0.46, "", family="monospace")
    stream = side.text(0, 0.26, "", linespacing=1.5)

    def update(**on: bool) -> str:
        now = results[tuple(on[name] for name in SWITCHES)]
        values, before = (np.array([getattr(m, name) for name in MEASURES]) for m in (now, trained))
        near = np.abs(values - before) < 0.12  # then the black line stands in the number's way
        bars.set(values, [f"{value:.2f}" for value in values], np.where(near, np.maximum(values, before), values))
        for bar, moved in zip(bars.bars, np.abs(values - before) > 0.05, strict=True):
            bar.set_color(plots.ORANGE if moved else plots.BLUE)
        off = [name for name in SWITCHES if not on[name]]
        head = f"Off: {', '.join(off)}" if off else "As trained"
        rest = ", ".join(name for name in SWITCHES if on[name]) or "nothing"
        short = f"Off: all but {rest}" if len(off) > 3 else head
        ax.set_title(f"{short} – {now.alone:.0%} written right")
        says.set_text(f"written:   {now.example}")
        stream.set_text(f"stream at the top, σ:\n{now.stream:.3g} (as trained {trained.stream:.3g})")
        listed = formats.each((text.replace("\n", " ") for text in MEASURES.values()), values)
        return f"… Measured: {listed}. {source} becomes {now.example or 'nothing'}; the stream's σ is {now.stream:.3g}."

    return update


# --- 7 · Before or after? ---------------------------------------------------------------------------------------------

DEPTHS = (2, 12, 24, 36, 48)
STYLES: dict[NormPlace, tuple[str, str]] = {"pre": (plots.BLUE, "-"), "post": (plots.ORANGE, "--")}


@live.lab(
    height=4.3,
    neutral="In 2 blocks nothing has vanished yet.",
    telling={"depth": 48},
    depth=live.Choice("blocks", DEPTHS, 2),
)
def depth_lab(figure: "plots.Figure") -> live.Update:
    """Pre-norm and post-norm before training: the stream, how alike its tokens are, and each block's gradient."""
    for norm, depth in itertools.product(STYLES, DEPTHS):  # some seconds, once
        at_start(norm, depth)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.15))
    scale_ax, alike_ax, layer_ax = map(figure.add_subplot, (grid[0, 0], grid[1, 0], grid[:, 1]))
    lines: dict[tuple[str, str], Any] = {}
    for norm, (colour, dashes) in STYLES.items():
        for name, ax in (("scales", scale_ax), ("alike", alike_ax), ("gradients", layer_ax)):
            (lines[norm, name],) = ax.plot([], [], dashes, color=colour, label=f"{norm}-norm")
        mark, label = "x" if norm == "post" else "+", f"{norm}-norm: $W_Q$ and $W_K$"
        (lines[norm, "looking"],) = layer_ax.plot([], [], ":", color=colour, marker=mark, ms=6, label=label)
    scale_ax.set(ylim=(0, 9), ylabel="deviation")
    alike_ax.set(ylim=(-0.05, 1.05), ylabel="mean cosine")
    layer_ax.set(yscale="log", ylim=(1e-17, 1000), ylabel="gradient norm of a block")
    layer_ax.set_yticks([10.0**n for n in range(-16, 3, 4)])
    layer_ax.minorticks_off()
    for ax in (scale_ax, alike_ax, layer_ax):
        ax.set(xlabel="way up the stack", xticks=(0, 0.5, 1), xlim=(-0.03, 1.03))
        ax.set_xticklabels(["bottom", "half", "top"])
    scale_ax.legend(loc="upper left")
    layer_ax.legend(handles=[lines[norm, "looking"] for norm in STYLES], loc="lower left")

    def update(depth: int) -> str:
        clauses, now = [], {}
        for norm in STYLES:
            now[norm] = start = at_start(norm, depth)
            for name, values in start._asdict().items():
                lines[norm, name].set_data(np.linspace(0, 1, len(values)), values)
            clauses.append(
                f"{norm}-norm: the stream ends at standard deviation {start.scales[-1]:.1f} with tokens of cosine "
                f"{start.alike[-1]:.2f}; gradient norm {start.gradients[0]:.2g} in the first block, "
                f"{start.gradients[-1]:.2g} in the last; of queries and keys alone {start.looking[0]:.2g} and "
                f"{start.looking[-1]:.2g}"
            )
        pre, post = now["pre"], now["post"]
        scale_ax.set_title(f"Pre-norm: stream to {pre.scales[-1]:.1f}")
        alike_ax.set_title(f"Post-norm: cosine {post.alike[-1]:.2f}")
        layer_ax.set_title(f"Queries and keys: {formats.power(post.looking[-1])}")
        return f"Before training, {depth} blocks: {'. '.join(clauses)}."

    return update
