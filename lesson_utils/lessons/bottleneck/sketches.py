"""What notebook 01 draws without numbers: the networks."""

from typing import Any

from lesson_utils.classroom import drawings, plots

# --- One vector between encoder and decoder ---------------------------------------------------------------------------

READ, WRITTEN = "cat", ("t", "a", "c", "end")
SIDE = 0.4  # inches, of a box
PITCH = 0.57  # from one box to the next
LETTERS, STATES, NECK = 2.05, 1.5, 0.45  # heights: of the letters, the states, the context
ENCODER, CONTEXT, DECODER = 0.28, 1.95, 2.72  # x of the first state, the context, the first state
TINT = 1 / 6  # of the boxes: a step of the pictures' palette
SIZE = 4.7, 2.75  # of one drawing


@plots.still(SIZE[0] + 0.3, SIZE[1] + drawings.TITLE)
def one_vector(figure: "plots.Figure") -> str:
    """Draw encoder, one vector, decoder."""
    ax = drawings.sheet(figure)
    ax.set_title("One vector: all that the decoder gets")
    _one_vector(ax)
    return (
        "… An encoder reads the letters c, a, t into states h1, h2, h3, in both directions; its two ends make the "
        "vector c. Every state q1 … q4 of the decoder gets this vector; they write t, a, c and the end, and each gets "
        "the symbol before."
    )


def _one_vector(ax: "plots.Axes") -> None:
    first, *_, last = _encoder(ax)
    states = _decoder(ax)
    c = drawings.box(ax, CONTEXT, NECK, "$c$", SIDE, 0.55, plots.VALUE, TINT)
    drawings.arrow(ax, first.bottom, (c.left[0], NECK - 0.05), plots.KEY, bend=-0.28)
    drawings.arrow(ax, last.bottom, (c.left[0], NECK + 0.12), plots.KEY, bend=-0.15)
    ax.plot([c.right[0], states[-1].x], [NECK, NECK], color=plots.VALUE, lw=1.8)
    for state in states:
        drawings.arrow(ax, (state.x, NECK - 0.03), state.bottom, plots.VALUE)


def _encoder(ax: "plots.Axes") -> list[drawings.Box]:
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


def _decoder(ax: "plots.Axes") -> list[drawings.Box]:
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


# --- The two orders in which a decoder can look back ------------------------------------------------------------------

STEP_SIZE = 4.7, 2.95  # inches, of one drawing


@plots.still(2 * STEP_SIZE[0], STEP_SIZE[1] + drawings.TITLE)
def before_and_after(figure: "plots.Figure") -> str:
    """Draw one step of the decoder twice: it asks before the step (Bahdanau), and after it (Luong)."""
    axes = figure.subplots(1, 2)
    for ax, title, before in zip(
        axes, ("Bahdanau asks before the step", "Luong asks after the step"), (True, False), strict=True
    ):
        drawings.paper(ax, *STEP_SIZE)
        ax.set_title(title)
        _one_step(ax, before)
    return (
        "One step of the decoder, in numbered order. Bahdanau asks before the step: 1, the state q(t−1) asks the "
        "encoder's states; 2, their average is the context c(t); 3, the cell makes q(t) of q(t−1), the symbol y(t−1) "
        "and c(t); 4, q(t) and c(t) write y(t). Luong asks after the step: 1, the cell makes q(t) of q(t−1) and "
        "y(t−1); 2, q(t) asks; 3, the average is c(t); 4, q(t) and c(t) write y(t)."
    )


def _one_step(ax: "plots.Axes", before: bool) -> None:
    size = 0.5
    keys = [drawings.box(ax, 0.35 + 0.56 * s, 2.35, f"$h_{s + 1}$", 0.44, 0.44, plots.KEY, 1 / 6) for s in range(3)]
    ax.text(keys[1].x, 2.72, "encoder’s states", ha="center", color=plots.KEY)
    old = drawings.box(ax, 1.6, 0.85, "$q_{t-1}$", 0.6, size, plots.QUERY, 1 / 6)
    new = drawings.box(ax, 3.2, 0.85, "$q_t$", 0.6, size, plots.QUERY, 1 / 6)
    context = drawings.box(ax, 2.75, 2.35, "$c_t$", 0.5, 0.44, plots.VALUE, 1 / 6)
    ax.text(new.x, 0.1, "$y_{t-1}$", ha="center", va="center", size=13)
    ax.text(4.25, 1.62, "$y_t$", ha="center", va="center", size=15, weight="bold")
    cell, ask, read, write = (1, 2, 3, 4) if not before else (3, 1, 2, 4)
    drawings.arrow(ax, old.right, new.left, plots.QUERY)
    drawings.arrow(ax, (new.x, 0.22), new.bottom, plots.GREY)
    _number(ax, 2.4, 0.85, cell)
    asker = old if before else new
    start = (asker.x - 0.12, asker.top[1])
    drawings.arrow(ax, start, (keys[1].x, keys[1].bottom[1]), plots.QUERY, bend=0.0 if before else 0.12)
    _number(ax, *((1.2, 1.62) if before else (1.98, 1.42)), ask)
    drawings.arrow(ax, keys[2].right, context.left, plots.VALUE, 2.4)
    _number(ax, 2.07, 2.35, read)
    if before:
        drawings.arrow(ax, (context.x + 0.05, context.bottom[1]), (new.x - 0.05, new.top[1]), plots.VALUE)
        _number(ax, 2.98, 1.6, cell)
    drawings.arrow(ax, context.right, (4.1, 1.78), plots.VALUE)
    drawings.arrow(ax, (new.right[0], new.y + 0.1), (4.12, 1.45), plots.QUERY)
    for x, y in ((3.58, 2.08), (3.82, 1.2)):
        _number(ax, x, y, write)


def _number(ax: "plots.Axes", x: float, y: float, n: int) -> None:
    round_label: dict[str, Any] = {"boxstyle": "circle,pad=0.18", "fc": "white", "ec": plots.INK, "lw": 1}
    ax.text(x, y, str(n), ha="center", va="center", size=10.5, weight="bold", bbox=round_label, zorder=5)
