"""The networks of notebook 01, drawn: one vector between encoder and decoder, and a look back at every state."""

from typing import TYPE_CHECKING, Any

from lesson_utils.classroom import drawings, plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

READ, WRITTEN = "cat", ("t", "a", "c", "end")
NOW = 1  # the step drawn looking back writes the a
LOOKS = (0.08, 0.84, 0.08)  # its weights on c, a, t: of the kind that training finds, not measured
SIDE = 0.4  # inches, of a box
PITCH = 0.57  # from one box to the next
LETTERS, STATES, NECK = 2.05, 1.5, 0.45  # heights: of the letters, the states, the context
ENCODER, CONTEXT, DECODER = 0.28, 1.95, 2.72  # x of the first state, the context, the first state
TINT = 1 / 6  # of the boxes: a step of the pictures' palette
PALE = 1 / 3  # of what is still to come
SIZE = 4.7, 2.75  # of one drawing


@plots.still(SIZE[0] + 0.3, SIZE[1] + drawings.TITLE)
def one_vector(figure: "Figure") -> str:
    """Encoder, one vector, decoder."""
    ax = drawings.sheet(figure)
    ax.set_title("One vector: all that the decoder gets")
    _one_vector(ax)
    return (
        "One vector c is all that the decoder gets. An encoder reads c, a, t into states h1, h2, h3, in both "
        "directions; its two ends make c. Every state q1 … q4 of the decoder gets c; they write t, a, c and the end, "
        "and each gets the symbol before."
    )


@plots.still(2 * SIZE[0], SIZE[1] + drawings.TITLE)
def look_back(figure: "Figure") -> str:
    """Draw one vector for all steps, beside a look back at every state."""
    axes = figure.subplots(1, 2)
    for ax, title, draw in zip(
        axes, ("One vector for all steps", "A look back at each step"), (_one_vector, _look_back), strict=True
    ):
        drawings.paper(ax, *SIZE)
        ax.set_title(title)
        draw(ax)
    weights = ", ".join(f"{weight:.2f}" for weight in LOOKS)
    return (
        f"A look back weighs the states h1, h2, h3 with {weights}, drawn as the thickness of lines, and makes a "
        "context c2 for the state q2 of the decoder, the query. To the left: one vector c, the same for all steps."
    )


def _one_vector(ax: "Axes") -> None:
    first, *_, last = _encoder(ax)
    states = _decoder(ax, len(WRITTEN))
    c = drawings.box(ax, CONTEXT, NECK, "$c$", SIDE, 0.55, plots.VALUE, TINT)
    drawings.arrow(ax, first.bottom, (c.left[0], NECK - 0.05), plots.KEY, bend=-0.28)
    drawings.arrow(ax, last.bottom, (c.left[0], NECK + 0.12), plots.KEY, bend=-0.15)
    ax.plot([c.right[0], states[-1].x], [NECK, NECK], color=plots.VALUE, lw=1.8)
    for state in states:
        drawings.arrow(ax, (state.x, NECK - 0.03), state.bottom, plots.VALUE)


def _look_back(ax: "Axes") -> None:
    keys = _encoder(ax)
    query = _decoder(ax, NOW + 1)[NOW]
    c = drawings.box(ax, CONTEXT, NECK, f"$c_{NOW + 1}$", SIDE, 0.55, plots.VALUE, TINT)
    for key, weight in zip(keys, LOOKS, strict=True):
        (x, y), (to, low) = key.bottom, c.left
        ax.plot([x, to], [y, low], color=plots.VALUE, lw=0.8 + 9 * weight, solid_capstyle="butt", zorder=1)
        number: dict[str, Any] = {"color": plots.VALUE, "ha": "center", "va": "center", "size": 10.5}
        ax.text(
            x + 0.22 * (to - x),
            y + 0.22 * (low - y),
            f"{weight:.2f}",
            bbox={"fc": "white", "ec": "none", "pad": 0.8},
            **number,
        )
    drawings.arrow(ax, (query.x - 0.12, query.bottom[1]), (c.right[0], NECK + 0.18), plots.QUERY, bend=0.3)
    drawings.arrow(ax, (c.right[0], NECK - 0.1), (query.x + 0.08, query.bottom[1]), plots.VALUE, 2.4, bend=-0.4)
    ax.text(query.x - 0.72, NECK + 0.62, "query", color=plots.QUERY, ha="center")
    ax.text(query.x + 0.1, NECK + 0.12, "context", color=plots.VALUE)


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


def _decoder(ax: "Axes", upto: int) -> list[drawings.Box]:
    """Draw states that each write a symbol, which the next state gets; steps from `upto` on are still to come."""
    ax.text(DECODER + 1.5 * PITCH, LETTERS + 0.38, "decoder writes", ha="center", color=plots.GREY)
    ax.text(DECODER - PITCH, LETTERS, "begin", ha="center", color=plots.GREY)
    states: list[drawings.Box] = []
    for t, symbol in enumerate(WRITTEN):
        x, shade = DECODER + t * PITCH, 1.0 if t < upto else PALE
        colour, grey, ink = (_pale(c, shade) for c in (plots.QUERY, plots.GREY, plots.INK))
        look: dict[str, Any] = {"size": 16, "weight": "bold"} if len(symbol) == 1 else {}
        ax.text(x, LETTERS, symbol, ha="center", color=ink, **look)
        states.append(drawings.box(ax, x, STATES, f"$q_{t + 1}$", SIDE, SIDE, colour, TINT, color=ink))
        drawings.arrow(ax, states[-1].top, (x, LETTERS - 0.04), colour)
        drawings.arrow(ax, (x - PITCH + 0.12, LETTERS - 0.02), (x - 0.12, states[-1].top[1]), grey, 1.2).set_linestyle(
            ":"
        )
        if t:
            drawings.arrow(ax, states[-2].right, states[-1].left, colour, 1.4)
    return states


def _pale(colour: str, shade: float) -> str:
    from matplotlib.colors import to_hex

    return to_hex(drawings.tint(colour, shade))
