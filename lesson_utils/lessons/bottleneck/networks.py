"""The network of notebook 01, drawn: one vector between encoder and decoder."""

from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import drawings, plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

READ, WRITTEN = "cat", ("t", "a", "c", "end")
SIDE = 0.4  # inches, of a box
PITCH = 0.57  # from one box to the next
LETTERS, STATES, NECK = 2.05, 1.5, 0.45  # heights: of the letters, the states, the context
ENCODER, CONTEXT, DECODER = 0.28, 1.95, 2.72  # x of the first state, the context, the first state
TINT = 1 / 6  # of the boxes: a step of the pictures' palette
SIZE = 4.7, 2.75  # of one drawing


@plots.still(SIZE[0] + 0.3, SIZE[1] + drawings.TITLE)
def one_vector(figure: "Figure") -> str:
    """Draw encoder, one vector, decoder."""
    ax = drawings.sheet(figure)
    ax.set_title("One vector: all that the decoder gets")
    _one_vector(ax)
    return (
        "One vector c is all that the decoder gets. An encoder reads c, a, t into states h1, h2, h3, in both "
        "directions; its two ends make c. Every state q1 … q4 of the decoder gets c; they write t, a, c and the end, "
        "and each gets the symbol before."
    )


def _one_vector(ax: "Axes") -> None:
    first, *_, last = _encoder(ax)
    states = _decoder(ax)
    c = drawings.box(ax, CONTEXT, NECK, "$c$", SIDE, 0.55, plots.VALUE, TINT)
    drawings.arrow(ax, first.bottom, (c.left[0], NECK - 0.05), plots.KEY, bend=-0.28)
    drawings.arrow(ax, last.bottom, (c.left[0], NECK + 0.12), plots.KEY, bend=-0.15)
    ax.plot([c.right[0], states[-1].x], [NECK, NECK], color=plots.VALUE, lw=1.8)
    for state in states:
        drawings.arrow(ax, (state.x, NECK - 0.03), state.bottom, plots.VALUE)


def _encoder(ax: "Axes") -> list[drawings.Box]:
    """Draw a state for each letter, and two directions of reading."""
    ax.text(ENCODER + PITCH, LETTERS + 0.38, "encoder reads", ha="center", color=plots.GREY)
    states = []
    for s, letter in enumerate(READ):
        x = ENCODER + s * PITCH
        ax.text(x, LETTERS, letter, ha="center", size=16, weight="bold")
        states.append(drawings.box(ax, x, STATES, f"$h_{s + 1}$", SIDE, SIDE, plots.KEY, TINT))
        drawings.arrow(ax, (x, LETTERS - 0.04), states[-1].top)
        if s:
            for start, end, lift in (
                (states[-2].right, states[-1].left, 0.07),
                (states[-1].left, states[-2].right, -0.07),
            ):
                drawings.arrow(ax, (start[0], STATES + lift), (end[0], STATES + lift), plots.KEY, 1.4)
    return states


def _decoder(ax: "Axes") -> list[drawings.Box]:
    """Draw states that each write a symbol, which the next state gets."""
    ax.text(DECODER + 1.5 * PITCH, LETTERS + 0.38, "decoder writes", ha="center", color=plots.GREY)
    ax.text(DECODER - PITCH, LETTERS, "begin", ha="center", color=plots.GREY)
    states: list[drawings.Box] = []
    for t, symbol in enumerate(WRITTEN):
        x = DECODER + t * PITCH
        look: dict[str, Any] = {"size": 16, "weight": "bold"} if len(symbol) == 1 else {}
        ax.text(x, LETTERS, symbol, ha="center", **look)
        states.append(drawings.box(ax, x, STATES, f"$q_{t + 1}$", SIDE, SIDE, plots.QUERY, TINT))
        drawings.arrow(ax, states[-1].top, (x, LETTERS - 0.04), plots.QUERY)
        end = x - 0.12, states[-1].top[1]
        drawings.arrow(ax, (x - PITCH + 0.12, LETTERS - 0.02), end, plots.GREY, 1.2).set_linestyle(":")
        if t:
            drawings.arrow(ax, states[-2].right, states[-1].left, plots.QUERY, 1.4)
    return states
