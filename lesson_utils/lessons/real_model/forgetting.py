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


@plots.still(9.6, 3.8)
def windows_plot(figure: "Figure") -> str:
    """Draw what a window costs: on three texts, and on a text that says the same thing twice."""
    known: Any = stored()
    names = [str(name) for name in known["windows"]]
    lost = np.exp(known["windows_lost"])  # (ways, [three texts, repeat])
    texts = ["story", "report", "manual", "the same 100\ntokens again"]
    axes = figure.subplots(1, 4)
    rows, colours = np.arange(len(names)), [plots.GREY, *[plots.ORANGE] * 3, *[plots.BLUE] * 2]
    for n, (ax, text) in enumerate(zip(axes, texts, strict=True)):
        ax.barh(rows, lost[:, n], 0.7, color=colours)
        for y, value in zip(rows, lost[:, n], strict=True):
            ax.text(
                value + 0.03 * max(lost[:, n]),
                y,
                f"{value:.1f}" if value < 10 else f"{value:.0f}",
                va="center",
                size=10.5,
            )
        ax.set(xlim=(0, 1.25 * max(lost[:, n])), xticks=(0,))
        ax.set_yticks(rows, names if n == 0 else [""] * len(names))
        ax.invert_yaxis()
        ax.set_title(text, size=11.5)
    sink, best = names.index("window 64, first"), names.index("16 best keys")
    figure.suptitle(
        f"Perplexity. A window of 64 with the first token: a story {lost[0, 0]:.0f} → {lost[sink, 0]:.0f},\n"
        f"but a text that refers back {lost[0, 3]:.1f} → {lost[sink, 3]:.0f}. The 16 best keys: {lost[best, 3]:.1f}.",
        x=0.01,
        ha="left",
        size=12,
        weight="bold",
    )
    label(figure)
    listed = "; ".join(
        f"{name}: {', '.join(f'{value:.1f}' for value in row)}" for name, row in zip(names, lost, strict=True)
    )
    return (
        f"A window of 64 with the first token changes the perplexity of a story from {lost[0, 0]:.1f} to "
        f"{lost[sink, 0]:.1f}, and that of a repeated passage from {lost[0, 3]:.2f} to {lost[sink, 3]:.1f}. "
        f"On story, report, manual and repeat: {listed}. Stored results."
    )


@plots.still(8.4, 3.7)
def divisor_plot(figure: "Figure") -> str:
    """Draw perplexity with the scores divided by another number than √d_k, on three texts, relative to √d_k."""
    known: Any = stored()
    factors, lost = known["divisors"], np.exp(known["divisors_lost"])  # (factors, texts)
    usual = lost[int(np.argmax(factors == 1))]
    rise = 100 * (lost / usual - 1)
    ax = figure.add_subplot(xlabel="scores divided by √d$_k$ times …", ylabel="perplexity above that of √d$_k$, %")
    for text, colour, row in zip(
        ("story", "report", "manual"), (plots.BLUE, plots.ORANGE, plots.GREEN), rise.T, strict=True
    ):
        ax.plot(factors, row, "o-", color=colour, ms=5, label=f"{text}, best at {factors[row.argmin()]:g}")
    ax.axhline(0, color=plots.GREY, lw=1)
    ax.set_xscale("log", base=2)
    ax.set_xticks(
        [0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2], ["0.5", "0.7", "0.8", "0.9", "1", "1.1", "1.25", "1.5", "2"]
    )
    ax.minorticks_off()
    ax.set(xlim=(0.47, 2.1), ylim=(-12, 110))
    ax.legend(loc="upper center")
    least = float(-rise.min())
    ax.set_title(f"√d$_k$ is within {np.ceil(least):.0f} % of the best of {len(factors)} divisors on each text")
    label(figure)
    listed = "; ".join(
        f"{factor:g}: {', '.join(f'{value:.1f}' for value in row)}" for factor, row in zip(factors, lost, strict=True)
    )
    best = ", ".join(f"{factors[row.argmin()]:g}" for row in lost.T)
    return (
        f"The root of d_k is within {least:.1f} % of the best divisor on three texts; the best factors are {best}. "
        f"Perplexity of story, report and manual by factor: {listed}. Stored results."
    )
