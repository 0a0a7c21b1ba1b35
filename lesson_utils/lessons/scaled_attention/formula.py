"""Section 5: the whole formula as a row of matrices, one query's row lit through all of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings, live, plots
from lesson_utils.classroom.formats import short
from lesson_utils.maths import attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = ("cat", "saw", "it")
D_KS = (2, 8, 32, 128)
MASKS = {  # True = may attend
    "nothing": np.ones((3, 3), bool),
    "the later": np.tril(np.ones((3, 3), bool)),
    "the first": np.array([[False, True, True]] * 3),
}
# The first two columns by hand, the others at random; a smaller d_k takes the first columns. (3, 128) each
_REST = np.random.default_rng(14).normal(size=(2, 3, D_KS[-1] - 2)).round(1)
QUERIES = np.hstack([[[0.3, 1.1], [-1.2, 0.4], [1.5, 0.6]], _REST[0]])
KEYS = np.hstack([[[1.4, 0.3], [-0.6, 1.2], [0.2, -0.8]], _REST[1]])
VALUES = np.array([[3.0, 1.0], [0.0, 2.0], [1.0, 0.0]])  # (3, 2)


@live.lab(
    height=2.75,
    neutral="The mask hides nothing yet.",
    example=lambda: attention.scaled_dot_product_attention,
    query=live.Choice("query", WORDS, "it"),
    d_k=live.Choice("d_k", D_KS, 2),
    temperature=live.LogSlider("temperature τ", 0.1, 10, 1.0),
    hidden=live.Choice("the mask hides", tuple(MASKS), "nothing"),
)
def formula_lab(figure: "Figure", attend: Callable[..., Any]) -> live.Update:
    """Show softmax(QKᵀ/√d_k)V, step by step, in numbers.

    Args:
        attend: `attend(Q, K, V, mask)`, the learner's; it returns output and weights.
    """
    ax = drawings.sheet(figure)
    top, cell, n = 1.75, (0.38, 0.4), len(WORDS)
    middle = top - n * cell[1] / 2
    words = [
        ax.text(0.42, top - (i + 0.5) * cell[1], word, ha="right", va="center", zorder=4)
        for i, word in enumerate(WORDS)
    ]

    def matrix(left: float, rows: int, columns: int, name: str, colour: str, decimals: int = 1) -> drawings.Matrix:
        start = middle + rows * cell[1] / 2
        return drawings.Matrix(ax, left, start, (rows, columns), name, colour, cell, decimals, 10)

    def sign(x: float, text: str) -> None:
        ax.text(x, middle, text, ha="center", va="center", fontsize=14, zorder=0.5)

    Q = matrix(0.5, n, 2, "Q", plots.QUERY)
    K = matrix(Q.right + 0.4, 2, n, "Kᵀ", plots.KEY)
    S = matrix(K.right + 0.24, n, n, "scores", plots.GREY)
    scaled = matrix(S.right + 0.2, n, n, r"÷ $\tau\sqrt{d_k}$", plots.GREY)
    A = matrix(scaled.right + 0.2, n, n, "softmax", plots.INK, 2)
    V = matrix(A.right + 0.2, n, 2, "V", plots.VALUE)
    Y = matrix(V.right + 0.24, n, 2, "output", plots.VALUE)
    for x, text in ((K.left - 0.12, "·"), (S.left - 0.12, "="), (V.left - 0.1, "·"), (Y.left - 0.12, "=")):
        sign(x, text)
    for step in (scaled, A):
        drawings.arrow(ax, (step.left - 0.22, middle), (step.left + 0.02, middle))
    more = [
        ax.text(Q.right + 0.14, middle, "⋯", ha="center", va="center", color=plots.QUERY),
        ax.text(K.left + K.width / 2, middle - cell[1] - 0.02, "⋮", ha="center", va="top", color=plots.KEY),
    ]
    under: dict[str, Any] = {"ha": "center", "va": "top", "color": plots.GREY}
    for m, size in ((S, (n, n)), (scaled, (n, n)), (A, (n, n)), (V, VALUES.shape), (Y, VALUES.shape)):
        ax.text(m.left + m.width / 2, top - n * cell[1] - 0.1, str(size), zorder=0.5, **under)
    shapes = [ax.text(m.left + m.width / 2, top - n * cell[1] - 0.1, "", **under) for m in (Q, K)]

    def update(query: str, d_k: int, temperature: float, hidden: str) -> str:
        lit, mask = WORDS.index(query), MASKS[hidden]
        q, k = QUERIES[:, :d_k], KEYS[:, :d_k]
        raw = q @ k.T  # (3, 3)
        divided = raw / (np.sqrt(d_k) * temperature)
        output, weights = attend(q / temperature, k, VALUES, mask)  # (3, 2), (3, 3)
        Q.set(q[:, :2], lit)
        K.set(k[:, :2].T)
        S.set(raw, lit)
        scaled.set(divided, lit, ~mask)
        A.set(weights, lit, ~mask, weights)
        V.set(VALUES, strength=np.repeat(weights[lit][:, None], 2, axis=1))
        Y.set(output, lit)
        for text in more:
            text.set_text(("⋯" if text is more[0] else "⋮") if d_k > 2 else "")
        shapes[0].set_text(f"({n}, {d_k})")
        shapes[1].set_text(f"({d_k}, {n})")
        for i, text in enumerate(words):
            text.set_fontweight("bold" if i == lit else "normal")
        best = int(weights[lit].argmax())
        a, b = output[lit]
        ax.set_title(f"'{query}' takes {weights[lit, best]:.2f} from '{WORDS[best]}': its output is ({a:.1f}, {b:.1f})")
        row = ", ".join(f"{word} {weight:.2f}" for word, weight in zip(WORDS, weights[lit], strict=True))
        scores = ", ".join(f"{s:.1f}" for s in raw[lit])
        return (
            f"The formula as a row of matrices, d_k = {d_k}, temperature {short(temperature)}, the mask hides "
            f"{hidden}. The row of '{query}': scores {scores}; weights {row}; output ({a:.2f}, {b:.2f})."
        )

    return update
