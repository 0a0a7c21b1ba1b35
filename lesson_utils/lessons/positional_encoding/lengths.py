"""What positions do to the scores, and what is left of it beyond the training length."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils import ops, plots
from lesson_utils._checks import Array
from lesson_utils.attention import causal_mask
from lesson_utils.models import GPT
from lesson_utils.tasks import FIRST_SYMBOL, PAD, Ids, Pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- Scores by position ----------------------------------------------------------------------------------------------


def diagonal_spread(S: Array) -> float:
    """How much scores with equal offset differ at most; 0 if a score depends on the offset only."""
    return float(max(np.ptp(np.diagonal(S, n)) for n in range(1 - len(S), len(S))))


@plots.still(9.0, 3.1)
def score_maps(figure: "Figure", **scores: Array) -> str:
    """What positions do to the scores: maps side by side, each with what its diagonals say."""
    told = []
    for n, (ax, (name, S)) in enumerate(zip(figure.subplots(1, len(scores)), scores.items(), strict=True)):
        verdict = "offset only" if diagonal_spread(S) < 1e-9 else "place matters"
        ticks = range(0, len(S), 8)
        plots.heatmap(
            S,
            title=f"{name}:\n{verdict}",
            row_label="query at",
            column_label="key at",
            numbers=False,
            signed=True,
            ax=ax,
        )
        ax.set_xticks(ticks, [str(i) for i in ticks])
        ax.set_yticks(ticks, [str(i) for i in ticks])
        ax.set_ylabel("query at" if n == 0 else "")
        told.append(f"{name}: scores with equal offset differ by up to {diagonal_spread(S):.2g}, {verdict}")
    return f"Heat maps of scores by position of query and key. {'; '.join(told)}."


# --- Beyond the training length --------------------------------------------------------------------------------------

KINDS = ("sinusoidal", "learned", "rotary", "alibi")
NAMES = {"sinusoidal": "sinusoidal", "learned": "learned", "rotary": "rotary", "alibi": "ALiBi"}
LOOKS = {  # colour and line
    "sinusoidal": (plots.BLUE, "-"),
    "learned": (plots.PURPLE, ":"),
    "rotary": (plots.ORANGE, "--"),
    "alibi": (plots.GREEN, "-."),
}
BACK, SYMBOLS = 5, 12
RECALL_VOCABULARY = FIRST_SYMBOL + SYMBOLS


def recall(rng: np.random.Generator, batch: int, T: int) -> Pair:
    """Random symbols; every position reports the symbol 5 places back, the first five report nothing (padding)."""
    source = rng.integers(FIRST_SYMBOL, RECALL_VOCABULARY, size=(batch, T))
    target = np.full_like(source, PAD)
    target[:, BACK:] = source[:, :-BACK]
    return source, target


class ByPosition(NamedTuple):
    """How a model does at each position, mean over sequences."""

    correct: Array  # share of right answers, (T,)
    bits: Array  # loss in bits, (T,)


def by_position(model: GPT, batch: tuple[Ids, Ids], window: int | None = None) -> ByPosition:
    """Test a model at each position; with `window`, every position sees only that many keys, itself included."""
    ids, target = batch
    T = ids.shape[1]
    mask = causal_mask(T)
    if window is not None:
        mask = mask & ~np.tril(mask, -window)
    logits, _ = model.forward(ids, mask=mask)  # (B, T, V)
    answers = np.take_along_axis(ops.softmax(logits), target[..., None], axis=-1)[..., 0]  # (B, T)
    bits = -np.log2(np.maximum(answers, np.finfo(answers.dtype).tiny)).mean(axis=0)
    return ByPosition((logits.argmax(axis=-1) == target).mean(axis=0), bits)


class Stretches(NamedTuple):
    """Means over three stretches of positions: trained, the next half length, and the half length after that."""

    trained: float
    to_1_5: float
    to_2: float


def stretches(curve: Array, first: int = 0) -> Stretches:
    """Of a curve over twice the training length, (2L,), from position `first` on."""
    L = len(curve) // 2
    return Stretches(*(float(part.mean()) for part in (curve[first:L], curve[L : L + L // 2], curve[L + L // 2 :])))


def stretch_table(curves: Mapping[str, Array], first: int = 0) -> str:
    """The means of `stretches`, a row a kind, to be printed."""
    L = len(next(iter(curves.values()))) // 2
    heads = [f"{a}–{b}" for a, b in ((first, L - 1), (L, L + L // 2 - 1), (L + L // 2, 2 * L - 1))]
    rows = [f"{'positions':12}" + "".join(f"{head:>9}" for head in heads)]
    for kind, curve in curves.items():
        rows.append(f"{NAMES[kind]:12}" + "".join(f"{mean:9.2f}" for mean in stretches(curve, first)))
    return "\n".join(rows)


@plots.still(8.5, 3.8)
def length_plot(
    figure: "Figure",
    curves: Mapping[str, Array],
    quantity: str,
    best: Callable[..., str],
    first: int = 0,
    bottom: float = 0.0,
) -> str:
    """Curves over positions `first` … 2L − 1, by kind; the training length is shaded.

    Args:
        quantity: what the curves show: "share correct" or "bits a character".
        best: `max` or `min`, what is best of it.
        bottom: where the axis begins.
    """
    L = len(next(iter(curves.values()))) // 2
    ends = {kind: stretches(curve, first) for kind, curve in curves.items()}
    held = [NAMES[kind] for kind, end in ends.items() if _held(end, best is max)]
    lost = [NAMES[kind] for kind in curves if NAMES[kind] not in held]
    finding = f"Unchanged beyond {L - 1}: {', '.join(held)}"
    if lost:
        finding = f"Worse beyond {L - 1}: {', '.join(lost)}" + (f"; unchanged: {', '.join(held)}" if held else "")
    ax = figure.add_subplot()
    ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    at = np.arange(first, 2 * L)
    for kind, curve in curves.items():
        colour, line = LOOKS[kind]
        ax.plot(at, curve[first:], line, color=colour, label=NAMES[kind])
    top = 1.05 if best is max else 1.02 * max(curve[first:].max() for curve in curves.values())
    ax.set(xlim=(-0.5, 2 * L - 0.5), ylim=(bottom, top), xlabel="position", ylabel=quantity)
    ticks = {0: "0", L // 2: f"{L // 2}", L: f"{L} (1×)", L + L // 2: f"{L + L // 2} (1.5×)", 2 * L - 1: "2×"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_title(finding)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")
    listed = "; ".join(f"{NAMES[kind]} " + ", ".join(f"{x:.2f}" for x in end) for kind, end in ends.items())
    return (
        f"{finding}. {quantity.capitalize()} by position, trained on positions up to {L - 1}. Means over the training "
        f"length, the half after it, and the half after that: {listed}."
    )


def _held(end: Stretches, more_is_better: bool) -> bool:
    """Nothing lost worth mentioning: 0.05 of the share correct, or of a bit."""
    loss = max(end.trained - min(end), 0) if more_is_better else max(end) - end.trained
    return loss < 0.05
