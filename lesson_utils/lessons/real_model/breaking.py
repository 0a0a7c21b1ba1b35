"""Break one: heads switched off, a few that copy, or all that seem to do least."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.stored import label, stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

GUESSING = float(np.log(49_152))  # nats a token, of as many as SmolLM2 knows
KINDS = {"induction": plots.BLUE, "previous token": plots.PURPLE, "random": plots.GREY}
COUNTS = (0, 1, 2, 4, 8, 16)


@live.lab(
    width=9.6,
    height=4.2,
    neutral="No head is off, and curves are drawn as far as the number of heads that is chosen.",
    kind=live.Choice("heads switched off", tuple(KINDS), "induction"),
    count=live.Choice("how many", COUNTS, 0),
)
def knock_out_lab(figure: "Figure") -> live.Update:
    """Show what it costs to switch off the strongest heads of a kind: in copying, and in a story."""
    known = stored()
    rows = {kind: known[f"knock_{kind.split()[0]}"] for kind in ("induction", "previous token")}
    draws = np.stack([known[f"knock_random_{n}"] for n in range(3)])
    rows["random"] = draws.mean(axis=0)
    chart, bars = figure.subplots(1, 2, width_ratios=(1.25, 1))
    at = np.arange(len(COUNTS))
    chart.axhline(GUESSING, color=plots.INK, lw=1, ls=":")
    chart.text(-0.1, GUESSING + 0.15, f"guessing: ln 49,152 = {GUESSING:.1f}", size=10.5)
    curves = [(chart.plot(at, draw[:, 1], color="#C9C9C9", lw=1.2)[0], draw) for draw in draws]
    for kind, colour in KINDS.items():
        curves.append((chart.plot(at, rows[kind][:, 1], "o-", color=colour, ms=4, label=kind)[0], rows[kind]))
    chart.legend(loc="center right", fontsize=10.5)
    (dot,) = chart.plot([0], [0], "o", ms=13, color=plots.ORANGE, clip_on=False)
    chart.set(xlabel="heads switched off, of 270", ylabel="second copy, nats a token", ylim=(0, 14.5), xlim=(-0.2, 5.2))
    chart.set_xticks(at, [str(n) for n in COUNTS])
    names = ["first copy", "second copy", "a story"]
    whole = rows["random"][0]
    bars.barh(names, whole, color="#D5D5D5", height=0.75)
    now = bars.barh(names, whole, color=plots.ORANGE, height=0.4)
    texts = [bars.text(0, y, "", va="center", size=11) for y in range(3)]
    bars.invert_yaxis()
    bars.set(xlim=(0, 19), xlabel="nats a token (grey: all heads)")
    bars.axvline(GUESSING, color=plots.INK, lw=1, ls=":")
    label(figure)

    def update(kind: str, count: int) -> str:
        so_far = COUNTS.index(count) + 1
        row = rows[kind][so_far - 1]
        for curve, of in curves:
            curve.set_data(at[:so_far], of[:so_far, 1])
        dot.set_data([COUNTS.index(count)], [row[1]])
        for bar, text, value in zip(now, texts, row, strict=True):
            bar.set_width(value)
            text.set(text=f"{value:.1f}", x=max(value, 0.3) + 0.3)
        which = f"{count or 'no'} {kind} head{'s' * (count != 1)}"
        chart.set_title(f"{which.capitalize()} off: copying costs {row[1]:.1f} nats")
        bars.set_title(f"…and a story {row[2]:.2f}, not {whole[2]:.2f}" if count else f"A story costs {row[2]:.2f}")
        drawn = " (mean of three draws)" if kind == "random" else ""
        return (
            f"Copying costs {row[1]:.1f} nats a token with {which} off{drawn}; guessing would cost {GUESSING:.1f}. "
            f"First copy {row[0]:.1f}, "
            f"a story {row[2]:.2f} (with all heads {whole[2]:.2f}). Second copy by number of heads off: "
            f"{', '.join(f'{n}: {r[1]:.1f}' for n, r in zip(COUNTS, rows[kind][:so_far], strict=False))}. "
            "Stored results."
        )

    return update


def _counts() -> tuple[int, ...]:
    return tuple(int(n) for n in stored()["pruned_counts"])


@live.lab(
    width=9.6,
    height=4.0,
    neutral="All heads are in, and curves are drawn as far as the number of heads that is chosen.",
    controls=lambda: {
        "count": live.Choice("heads out", _counts(), 0),
        "which": live.Choice("which", ("least important", "random"), "least important"),
    },
)
def prune_lab(figure: "Figure") -> live.Update:
    """Show what it costs to remove the least important heads: on the page that chose them, on another, in copying."""
    rows, counts = stored()["pruned"], _counts()
    pages, copy = figure.subplots(1, 2, width_ratios=(1.4, 1))
    page, other, copied = np.exp(rows[:, [0, 3]]), np.exp(rows[:, [1, 4]]), rows[:, [2, 5]]
    lines = [
        pages.plot(counts, np.ones(len(counts)), "o-", ms=4, color=colour, label=text)[0]
        for text, colour in (("this page", plots.BLUE), ("another", plots.ORANGE))
    ]
    pages.legend(loc="upper left", fontsize=10.5)
    dots = [pages.plot([0], [1], "o", ms=11, color=colour, clip_on=False)[0] for colour in (plots.BLUE, plots.ORANGE)]
    pages.set_yscale("log")
    ticks = [t for t in (10, 20, 50, 100, 200, 500, 1000) if t < 1.3 * max(page.max(), other.max())]
    pages.set_yticks(ticks, [str(t) for t in ticks])
    pages.minorticks_off()
    pages.set(
        xlabel="heads out, of 270",
        ylabel="perplexity",
        xlim=(-3, counts[-1] + 6),
        ylim=(0.8 * min(page.min(), other.min()), 1.4 * max(page.max(), other.max())),
    )
    pages.set_xticks(counts)
    (line,) = copy.plot(counts, copied[:, 0], "o-", ms=4, color=plots.PURPLE)
    (dot,) = copy.plot([0], [0], "o", ms=11, color=plots.PURPLE, clip_on=False)
    copy.axhline(GUESSING, color=plots.INK, lw=1, ls=":")
    copy.text(0, GUESSING + 0.2, "guessing", size=10.5)
    copy.set(xlabel="heads out, of 270", ylabel="second copy, nats", ylim=(0, 1.06 * copied.max()))
    copy.set_xticks(counts)
    label(figure)

    def update(count: int, which: str) -> str:
        side, n = int(which == "random"), counts.index(count)
        for curve, over, mark in zip(lines, (page, other), dots, strict=True):
            curve.set_data(counts[: n + 1], over[: n + 1, side])
            mark.set_data([count], [over[n, side]])
        line.set_data(counts[: n + 1], copied[: n + 1, side])
        dot.set_data([count], [copied[n, side]])
        done = f"{count or 'No'} {which} heads out"
        pages.set_title(f"{done}:\nthis page {page[n, side]:.0f}, another {other[n, side]:.0f}")
        copy.set_title(f"Copying costs\n{copied[n, side]:.1f} nats")
        return (
            f"Perplexity is {page[n, side]:.1f} on the page on which they were chosen, {other[n, side]:.1f} on "
            f"another, with {count or 'no'} {which} heads out (with all: {page[0, 0]:.1f} and {other[0, 0]:.1f}). "
            f"Copying costs {copied[n, side]:.1f} nats, with all heads {copied[0, 0]:.1f}. Stored results."
        )

    return update


def without(p: "Pretrained", heads: dict[int, list[int]]) -> tuple[float, float]:
    """Nats a token of the second of two copies of 40 random tokens: with all heads, and without these."""
    ids = measures.copies(np.random.default_rng(7), len(p.tokenizer), 1)
    return measures.copying(p.model, ids)[1], measures.copying(p.model, ids, knock_out=heads)[1]
