"""Attention that forgets: perplexity, and a passage in which one sees which words become a surprise."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.finding import readable
from lesson_utils.lessons.real_model.stored import label, stored
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = {  # the window last: with it, all three controls change something
    "bits": ("{} bits", "bits a number", "bits", (None, 8, 6, 4, 3, 2)),
    "best keys": ("sees its {} best", "best keys kept", "best", (None, 32, 16, 8, 4, 2)),
    "window": ("sees the last {}", "keys in the window", "window", (None, 128, 64, 32, 16, 8)),
}
WHOLE = {"window": "Sees all", "best keys": "Weighs all", "bits": "Keeps all bits"}
PASSAGE = slice(-44, None)  # the tokens that are shown
LINE = 46  # characters


def nats(what: str, amount: Any, first: int = 0) -> Array:
    """−log p of the tokens of the story's page, stored."""
    kept: Array = stored()[f"forget_{FORMS[what][2]}_{amount}_{first if what == 'window' else 0}"].astype(np.float64)
    return kept


@live.lab(
    width=9.8,
    height=4.3,
    neutral="Nothing is forgotten at first, and curves are drawn as far as the step.",
    what=live.Choice("forget by", tuple(FORMS), "window"),
    step=live.Slider("how much", 0, 5, 0),
    first=live.Choice("first tokens kept (window)", measures.FIRST, 0),
)
def forget_lab(figure: "Figure") -> live.Update:
    """Show what attention may forget: perplexity by how much, and the passage with the probability of each token."""
    chart, page = figure.subplots(1, 2, width_ratios=(1, 1.35))
    at = np.arange(6)
    curves = {
        (what, first): np.array([np.exp(nats(what, amount, first).mean()) for amount in FORMS[what][3]])
        for what in FORMS
        for first in measures.FIRST
    }
    whole = curves["window", 0][0]
    chart.axhline(whole, color=plots.INK, lw=1, ls=":")
    lines = [chart.plot(at, curves["window", first], "o-", ms=4)[0] for first in measures.FIRST]
    (dot,) = chart.plot([0], [whole], "o", ms=12, color=plots.ORANGE, clip_on=False)
    chart.set_yscale("log")
    chart.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    chart.minorticks_off()
    top = 1.4 * max(curve.max() for curve in curves.values())
    chart.set(ylabel="perplexity", ylim=(0.8 * whole, top), xticks=at, xlim=(-0.2, 5.2))
    ticks = [chart.text(x, -0.03, "", ha="center", va="top", transform=chart.get_xaxis_transform()) for x in at]
    chart.set_xticks(at, [""] * 6)
    name = chart.text(0.5, -0.14, "", ha="center", va="top", transform=chart.transAxes)
    tokens = [str(token) for token in stored()["page"][PASSAGE]]
    bars = laid_out(page, tokens)
    label(figure)

    def update(what: str, step: int, first: int) -> str:
        says, axis, _, amounts = FORMS[what]
        amount = amounts[step]
        for line, kept in zip(lines, measures.FIRST, strict=True):
            line.set_visible(kept <= first if what == "window" else kept == 0)
            line.set_data(at[: step + 1], curves[what, kept][: step + 1])
            chosen = kept == first or what != "window"
            line.set_color(plots.BLUE if chosen else "#B8CFE0")
        for tick, number in zip(ticks, amounts, strict=True):
            tick.set_text(("32" if what == "bits" else "all") if number is None else str(number))
        name.set_text(axis)
        lost = curves[what, first][step]
        dot.set_data([step], [lost])
        p = np.exp(-nats(what, amount, first)[PASSAGE])
        for bar, share in zip(bars, p, strict=True):
            bar.set_height(-0.5 * share)
        kept_too = f" and the first{f' {first}' if first > 1 else ''}" if what == "window" and first else ""
        done = (WHOLE[what] if amount is None else says.format(amount).capitalize()) + kept_too
        chart.set_title(
            f"{done}:\nperplexity {lost:.0f}, not {whole:.0f}" if amount else f"{done}:\nperplexity {lost:.0f}"
        )
        page.set_title(f"{int((p < 0.01).sum())} of these {len(p)} tokens are a surprise (p < 1 %)", size=11.5)
        surprises = ", ".join(repr(token) for token, share in zip(tokens, p, strict=True) if share < 0.01)
        return (
            f"Perplexity is {lost:.1f}: {done[0].lower() + done[1:]}; {whole:.1f} as the model is. Mean probability "
            f"of the passage's tokens {p.mean():.2f}; below 1 %: {surprises or 'none'}. Stored results."
        )

    return update


def laid_out(ax: Any, tokens: list[str]) -> list[Any]:
    """Write the passage in lines, with a bar below each token for its probability, and return the bars."""
    from matplotlib.patches import Rectangle

    rows: list[list[str]] = [[]]
    for token in tokens:
        if sum(map(len, rows[-1])) + len(token) > LINE and token.startswith(" "):
            rows.append([])
        rows[-1].append(token.replace("\n", " "))
    bars = []
    for y, row in enumerate(rows):
        x = 0
        for text in row:
            start, x = x + len(text) - len(text.lstrip(" ")), x + len(text)
            ax.text(start, y + 0.36, readable(text, 20), family="monospace", size=12.5, va="bottom", zorder=0.5)
            ax.plot([start, x], [y + 0.9, y + 0.9], color=plots.GREY, lw=0.8, zorder=0.5)
            bars.append(
                ax.add_patch(Rectangle((start, y + 0.9), max(x - start - 0.15, 0.5), 0, color=plots.BLUE, lw=0))
            )
    ax.set(xlim=(0, LINE + 3), ylim=(len(rows), 0), xticks=(), yticks=())  # y points down
    ax.spines[:].set_visible(False)
    return bars


@plots.still(7.4, 3.5)
def temperature_curve(figure: "Figure") -> str:
    """Perplexity when the scores are divided by another number than √d_k."""
    amounts = measures.FORGET["temperature"]
    lost = [float(np.exp(stored()[f"forget_temperature_{t}_0"].astype(np.float64).mean())) for t in amounts]
    best = amounts[int(np.argmin(lost))]
    ax = figure.add_subplot(xlabel="scores divided by √d$_k$ times …", ylabel="perplexity")
    ax.plot(amounts, lost, "o-", color=plots.BLUE)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(amounts, [f"{t:g}" for t in amounts])
    ax.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    ax.minorticks_off()
    ax.plot([best], [min(lost)], "o", ms=13, color=plots.ORANGE)
    ax.set_title(
        f"The best divisor is √d$_k$ itself: perplexity {min(lost):.0f}"
        if best == 1
        else f"The best divisor is {best:g} · √d$_k$"
    )
    label(figure)
    listed = ", ".join(f"{t:g}: {x:.0f}" for t, x in zip(amounts, lost, strict=True))
    return (
        f"Perplexity is lowest, {min(lost):.1f}, with the scores divided by {best:g} times the root of d_k. By "
        f"factor: {listed}. Stored results."
    )
