"""Shares of the parts in an encoder–decoder's parameters and FLOPs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import formats, live, plots
from lesson_utils.lessons.full_block.counts import count
from lesson_utils.maths.models import TransformerConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    num_layers=live.Slider("layers N", 1, 12, 6),
    vocab=live.Choice("symbols V", (100, 1_000, 10_000, 37_000, 100_000), 100),
    length=live.Choice("length", (16, 64, 256, 1024), 64),
)
def ledger_lab(figure: "Figure") -> live.Update:
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
            first, last = shares[0, 0], shares[-1, 0]
            name = "Parameters: table" if what == "parameters" else "FLOPs: output"
            ax.set_title(f"{name} {first:.0%} → {last:.0%}")
            rows = (
                f"d_model {size}, {formats.large(total)}: "
                + ", ".join(f"{name} {share:.1%}" for name, share in zip(GROUPS, row, strict=True))
                for size, total, row in zip(SIZES, sums, shares, strict=True)
            )
            clauses.append(f"{what}: {'; '.join(rows)}")
        return (
            f"The token table and output take {shares[0, 0]:.0%} of the FLOPs at d_model {SIZES[0]} and "
            f"{shares[-1, 0]:.0%} at {SIZES[-1]}, with {num_layers} and {num_layers} layers, {vocab:,} symbols, "
            f"{length} of them in source and target. {'. '.join(clauses)}."
        )

    return update
