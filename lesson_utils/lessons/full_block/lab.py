"""What notebook 05 calls `lab.name`: live figures, in its order; the rest from the other modules."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.classroom.drawings import paper
from lesson_utils.lessons.full_block.ledger import Ledger, count, parts
from lesson_utils.lessons.full_block.maps import (
    GPT_MAP,
    GPT_PARTS,
    PARTS,
    TRANSLATION,
    block_of_today,
    draw_gpt_streams,
    draw_translation_streams,
    show,
    two_places,
    wirings,
    wirings_plot,
)
from lesson_utils.lessons.full_block.stacks import (
    FOUR,
    Watch,
    at_start,
    cosines,
    fate,
    first_to_last,
    likeness,
    likeness_plot,
    reversal_lines,
    river,
    scale_sums,
    start_plot,
    starved,
    training_plot,
)
from lesson_utils.lessons.full_block.worth import (
    READ,
    SWITCHES,
    Measures,
    Untied,
    bits,
    every_neuron,
    every_setting,
    feeding,
    mean_firing,
    measure,
    neurons_plot,
    own_share,
    parts_plot,
    random_future,
    reversal_pairs,
    right_without_cache,
    tidiest,
    untrained,
    without,
)
from lesson_utils.maths.layers import NormPlace
from lesson_utils.maths.models import TransformerConfig

# --- 1 · The block of a GPT -------------------------------------------------------------------------------------------


@live.lab(height=4.6, telling={"part": "attention"}, part=live.Choice("part", tuple(GPT_PARTS), "embedding"))
def gpt_lab(figure: "plots.Figure") -> live.Update:
    """Show a GPT; the chosen part shows its formula, its shapes and its code."""
    return show(figure, GPT_MAP, draw_gpt_streams)


# --- 6 · Break it -----------------------------------------------------------------------------------------------------

MEASURES = {
    "guided": "next symbol right,\ngiven the right ones",
    "alone": "whole string right,\nwriting on its own",
    "leak": "leak from later\nsymbols",
    "order": "difference if the\nsource is turned",
    "looks": "share of the source\nlooked at",
}
GOOD = {"guided": 1, "alone": 1, "leak": 0, "order": 1}  # the good end; `looks` has none


@live.lab(
    height=4.2,
    neutral="All parts are on.",
    telling={"mask": False},
    controls={name: live.Switch(name, True) for name in SWITCHES},
    prepare=every_setting,
    example=untrained,
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
    for row, name in zip(rows, MEASURES, strict=True):
        if name in GOOD:  # on the frame, where no bar's number can stand
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


# --- 10 · Before or after? --------------------------------------------------------------------------------------------

DEPTHS = (2, 6, 12, 24, 48)
WIDTHS = (16, 64)
STYLES: dict[NormPlace, tuple[str, str]] = {"pre": (plots.BLUE, "-"), "post": (plots.ORANGE, "--")}


@live.lab(
    height=4.3,
    neutral="In 2 layers nothing has vanished yet.",
    telling={"depth": 48},
    depth=live.Choice("layers", DEPTHS, 2),
    d_model=live.Choice("d_model", WIDTHS, 64),
)
def depth_lab(figure: "plots.Figure") -> live.Update:
    """Pre-norm and post-norm before training: the stream, how alike its tokens are, and each layer's gradient."""
    for norm, depth, d_model in itertools.product(STYLES, DEPTHS, WIDTHS):  # some seconds, once
        at_start(norm, depth, d_model)
    scale_ax, alike_ax, layer_ax = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    lines: dict[tuple[str, str], Any] = {}
    for norm, (colour, dashes) in STYLES.items():
        for name, ax in (("scales", scale_ax), ("alike", alike_ax), ("gradients", layer_ax)):
            label = f"{norm}-norm" + " (third panel: all parameters)" * (ax is layer_ax)
            (lines[norm, name],) = ax.plot([], [], dashes, color=colour, label=label)
        (lines[norm, "looking"],) = layer_ax.plot(
            [],
            [],
            ":",
            color=colour,
            marker="x" if norm == "post" else "+",
            ms=6,
            label=f"{norm}-norm, third panel: $W_Q$ and $W_K$",
        )
    scale_ax.set(ylim=(0, 9), ylabel="standard deviation of the stream")
    alike_ax.set(ylim=(-0.05, 1.05), ylabel="mean cosine of two tokens")
    layer_ax.set(yscale="log", ylim=(1e-9, 100), ylabel="gradient norm of a layer")
    layer_ax.set_yticks([10.0**n for n in range(-8, 3, 2)])
    layer_ax.minorticks_off()
    for ax in (scale_ax, alike_ax, layer_ax):
        ax.set(xlabel="way up the stack", xticks=(0, 0.5, 1), xlim=(-0.03, 1.03))
        ax.set_xticklabels(["bottom", "half", "top"])
    figure.legend(handles=list(lines.values())[2:4] + list(lines.values())[6:], loc="outside lower center", ncols=2)

    def update(depth: int, d_model: int) -> str:
        clauses, now = [], {}
        for norm in STYLES:
            now[norm] = start = at_start(norm, depth, d_model)
            for name, values in start._asdict().items():
                lines[norm, name].set_data(np.linspace(0, 1, len(values)), values)
            clauses.append(
                f"{norm}-norm: the stream ends at standard deviation {start.scales[-1]:.1f} with tokens of cosine "
                f"{start.alike[-1]:.2f}; gradient norm {start.gradients[0]:.2g} in the first layer, "
                f"{start.gradients[-1]:.2g} in the last; of queries and keys alone {start.looking[0]:.2g} and "
                f"{start.looking[-1]:.2g}"
            )
        pre, post = now["pre"], now["post"]
        scale_ax.set_title(f"Pre-norm: stream to {pre.scales[-1]:.1f}")
        alike_ax.set_title(f"Post-norm: cosine {post.alike[-1]:.2f}")
        layer_ax.set_title(f"Crosses end at {formats.power(post.looking[-1])}")
        return f"Before training, {depth} layers, d_model {d_model}: {'. '.join(clauses)}."

    return update


# --- 11 · Step by step ------------------------------------------------------------------------------------------------


@live.lab(height=4.6, telling={"part": "cross"}, part=live.Choice("part", tuple(PARTS), "cross"))
def diagram_lab(figure: "plots.Figure") -> live.Update:
    """Show the translation model of 2017; the chosen part shows its formula, its shapes and its code."""
    return show(figure, TRANSLATION, draw_translation_streams)


SIZES = (64, 128, 256, 512, 1024)  # d_model
GROUPS = {  # of the ledger's steps
    "token table and output": ("token table", "output scores"),
    "attention": ("encoder: self-attention", "decoder: self-attention", "decoder: cross-attention"),
    "feed-forward": ("encoder: feed-forward", "decoder: feed-forward"),
    "norms": ("encoder: norms", "decoder: norms"),
}
FILLS = {
    "token table and output": (plots.BLUE, ""),
    "attention": (plots.PURPLE, "//"),
    "feed-forward": (plots.GREEN, ""),
    "norms": (plots.INK, ""),
}


@live.lab(
    height=4.6,
    neutral="With 100 symbols the table is small in every model.",
    telling={"vocab": 37_000},
    num_layers=live.Slider("layers N", 1, 12, 6),
    vocab=live.Choice("symbols V", (100, 1_000, 10_000, 37_000, 100_000), 100),
    length=live.Choice("length", (16, 64, 256, 1024), 64),
)
def ledger_lab(figure: "plots.Figure") -> live.Update:
    """Show where parameters and FLOPs of encoder–decoders go: shares of the parts by d_model, d_ff = 4 d_model."""
    x = np.arange(len(SIZES))
    charts: dict[str, Any] = {}
    for ax, what in zip(figure.subplots(1, 2, sharey=True), ("parameters", "FLOPs"), strict=True):
        look: dict[str, Any] = {"width": 0.72, "edgecolor": "white", "linewidth": 1.2}
        bars = {
            name: ax.bar(x, np.ones(len(x)), color=colour, hatch=hatch, label=name, **look)
            for name, (colour, hatch) in FILLS.items()
        }
        totals = [ax.text(i, 1.02, "", ha="center", va="bottom") for i in x]
        ax.set(ylim=(0, 1.12), yticks=(0, 0.25, 0.5, 0.75, 1), xlabel="d_model", xticks=x)
        ax.set_xticklabels([str(size) for size in SIZES])
        ax.set_yticklabels(["0", "25 %", "50 %", "75 %", "100 %"])
        charts[what] = ax, bars, totals
    charts["parameters"][0].set_ylabel("share")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)

    def update(num_layers: int, vocab: int, length: int) -> str:
        clauses = []
        config = TransformerConfig(vocab=vocab, num_layers=num_layers, norm="post", shared=True)
        ledgers = [count(config, length, d_model=size, num_heads=8) for size in SIZES]
        for what, (ax, bars, totals) in charts.items():
            numbers_of = np.array(
                [
                    [sum(getattr(book[step], what.lower()) for step in steps) for steps in GROUPS.values()]
                    for book in ledgers
                ]
            )  # (sizes, groups)
            sums = numbers_of.sum(axis=1)
            shares = numbers_of / sums[:, None]
            floor = np.zeros(len(SIZES))
            for name, heights in zip(bars, shares.T, strict=True):
                for bar, y, height in zip(bars[name], floor, heights, strict=True):
                    bar.set_y(y)
                    bar.set_height(height)
                floor += heights
            for text, total in zip(totals, sums, strict=True):
                text.set_text(formats.large(total))
            name = "Parameters: table" if what == "parameters" else "FLOPs: output"
            ax.set_title(f"{name} {shares[0, 0]:.0%} → {shares[-1, 0]:.0%}")
            rows = (
                f"d_model {size}, {formats.large(total)}: "
                + ", ".join(f"{name} {share:.1%}" for name, share in zip(GROUPS, row, strict=True))
                for size, total, row in zip(SIZES, sums, shares, strict=True)
            )
            clauses.append(f"{what}: {'; '.join(rows)}")
        return (
            f"… From d_model {SIZES[0]} to {SIZES[-1]}, with {num_layers} and {num_layers} layers, {vocab:,} symbols, "
            f"{length} of them in source and target. {'. '.join(clauses)}."
        )

    return update
