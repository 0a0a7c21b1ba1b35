"""Section 2: a soft lookup in a film catalogue."""

from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.formats import short
from lesson_utils.maths import attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILMS = ("Iron Harbour", "Last Train North", "Paper Hearts", "Two in Vienna", "The Long Heist", "Quiet Orchard")
# How much more or less action and romance than an average film.
FILM_KEYS = np.array([[0.9, -0.6], [0.5, 0.0], [-0.5, 0.9], [0.3, 0.8], [0.6, -0.8], [-0.8, -0.2]])  # (6, 2)
FILM_MINUTES = np.array([[128.0], [101.0], [94.0], [112.0], [143.0], [87.0]])  # (6, 1)


@live.lab(
    height=3.9,
    neutral="It opens with another taste, whose nearest film is its best match, too.",
    action=live.Slider("taste for action", -1.0, 1.0, -0.5, 0.1),
    romance=live.Slider("taste for romance", -1.0, 1.0, -0.2, 0.1),
    temperature=live.LogSlider("temperature τ", 0.01, 100, 10**-0.5),
)
def film_lab(figure: "Figure") -> live.Update:
    """Show a soft lookup: a taste is the query, films are the keys, their running times the values."""
    from matplotlib.collections import LineCollection

    plane, chart = figure.subplots(1, 2, width_ratios=(1, 1.15))
    # A right angle has to look like one.
    plane.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xlabel="more action", ylabel="more romance", aspect="equal")
    plane.set_anchor("N")  # both titles at one height
    plane.axhline(0, color="#E3E3E3", lw=1, zorder=0)
    plane.axvline(0, color="#E3E3E3", lw=1, zorder=0)
    for x, y, name, colour in (
        (0.02, 0.95, "q: your taste", plots.QUERY),
        (0.02, 0.05, "k: films", plots.KEY),
        (0.98, 0.05, "line: equal scores", plots.GREY),
    ):
        side = "left" if x < 0.5 else "right"
        plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        where = {"transform": plane.transAxes, "ha": side, "va": "center"}
        plane.text(x, y, name, color=colour, weight="bold", zorder=1.5, bbox=plate, **where)
    equal = LineCollection([[(0, 0), (0, 0)]] * len(FILMS), zorder=1, capstyle="butt")
    plane.add_collection(equal, autolim=False)
    dots = plane.scatter(*FILM_KEYS.T, color=plots.KEY, zorder=3)
    (shaft,) = plane.plot([0, 0], [0, 0], color=plots.QUERY, lw=3, zorder=2)
    (head,) = plane.plot([0], [0], "o", color=plots.QUERY, ms=11, mfc="none", mew=3, zorder=5)  # hides no film
    for n, (x, y) in enumerate(FILM_KEYS, 1):
        plane.text(x, y - 0.01, str(n), ha="center", va="center", color="white", weight="bold", zorder=4)

    bars = plots.Bars(chart, len(FILMS), color=plots.KEY)
    names = [f"{n} {name}, {int(m)} min" for n, (name, (m,)) in enumerate(zip(FILMS, FILM_MINUTES, strict=True), 1)]
    chart.set_yticks(range(len(FILMS)), names)
    chart.set(xlim=(0, 1.15), xlabel="weight", xticks=(0, 0.25, 0.5, 0.75, 1))
    chart.invert_yaxis()

    def update(action: float, romance: float, temperature: float) -> str:
        query = np.array([[action, romance]])  # (1, 2)
        output, weights = attention.scaled_dot_product_attention(query, FILM_KEYS, FILM_MINUTES, scale=1 / temperature)
        (minutes,), (row,) = output[0], weights
        shaft.set_data([0, action], [0, romance])
        head.set_data([action], [romance])
        dots.set_sizes(170 + 900 * row)
        across = 4 * np.array([-romance, action]) / (np.hypot(action, romance) or 1.0)  # a right angle to the taste
        best = int(row.argmax())
        equal.set_segments([[key - across, key + across] for key in FILM_KEYS])
        equal.set_color([plots.QUERY if n == best else "#C8C8C8" for n in range(len(FILMS))])
        equal.set_linewidth([2.2 if n == best else 1.0 for n in range(len(FILMS))])
        bars.set(row, [f"{weight:.2f}" if weight >= 0.05 else "" for weight in row])
        tied = [str(n) for n, close in enumerate(np.isclose(row, row.max()), 1) if close]
        tie = len(tied) > 1
        match = f"Best match: {best + 1} {FILMS[best]}"
        if tie:
            match = "No film matches best" if len(tied) == len(FILMS) else f"Best matches: {' and '.join(tied)}"
        plane.set_title(match)
        answers = f"Soft: {minutes:.0f} min" + ("" if tie else f", hard: {FILM_MINUTES[best, 0]:.0f} min")
        chart.set_title(answers)
        return (
            f"{match}. {answers}. Taste: action {action:.1f}, romance {romance:.1f}; "
            f"temperature {short(temperature)}. Weights: "
            + ", ".join(f"{name} {weight:.2f}" for name, weight in zip(FILMS, row, strict=True))
            + ". Lines at a right angle to the taste pass through each film: on one line all scores are equal."
        )

    return update
