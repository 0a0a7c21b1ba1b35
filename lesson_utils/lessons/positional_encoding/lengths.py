"""The worth of positions beyond the length that a model was trained on."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.maths import ops
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.models.experiments import changed
from lesson_utils.maths.positions import Rotary
from lesson_utils.maths.tasks import FIRST_SYMBOL, PAD, Ids, Pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi")
NAMES = {kind: kind for kind in KINDS} | {"none": "no positions", "alibi": "ALiBi"}
NAMES["window"] = "rotary + window"  # a rotary model whose queries see the last keys only
LOOKS: dict[str, tuple[str, Any]] = {  # colour and line
    "none": (plots.INK, (0, (1, 1))),
    "sinusoidal": (plots.BLUE, "-"),
    "learned": (plots.PURPLE, ":"),
    "rotary": (plots.ORANGE, "--"),
    "alibi": (plots.GREEN, "-."),
    "window": (plots.ORANGE, "-"),
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
    """The results of a model at each position, mean over sequences."""

    correct: Array  # share of right answers, (T,)
    bits: Array  # loss in bits, (T,)


def by_position(
    model: GPT, batch: tuple[Ids, Ids], window: int | None = None, rotate: Callable[[Array, Array], Array] | None = None
) -> ByPosition:
    """Test a model at each position.

    Args:
        window: every position sees only that many keys, itself included.
        rotate: turns the queries and keys of a rotary model in place of our own function.
    """
    ids, target = batch
    T = ids.shape[1]
    mask = causal_mask(T)
    if window is not None:
        mask = mask & ~np.tril(mask, -window)
    turns = [(heads, "rotary", SimpleNamespace(turn=rotate)) for heads in model.heads()["decoder"]] if rotate else []
    with changed(turns):
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
    """Average a curve over twice the training length, (2L,), in three stretches, from position `first` on."""
    L = len(curve) // 2
    return Stretches(*(float(part.mean()) for part in (curve[first:L], curve[L : L + L // 2], curve[L + L // 2 :])))


def stretch_table(curves: Mapping[str, Array], first: int = 0) -> str:
    """List the means of `stretches`, a row a kind, to be printed."""
    L = len(next(iter(curves.values()))) // 2
    heads = [f"{a}–{b}" for a, b in ((first, L - 1), (L, L + L // 2 - 1), (L + L // 2, 2 * L - 1))]
    rows = [f"{'positions':16}" + "".join(f"{head:>9}" for head in heads)]
    for kind, curve in curves.items():
        rows.append(f"{NAMES[kind]:16}" + "".join(f"{mean:9.2f}" for mean in stretches(curve, first)))
    return "\n".join(rows)


@plots.still(9.2, 4.2)
def length_plot(
    figure: "Figure",
    curves: Mapping[str, Array],
    quantity: str,
    best: Callable[..., str],
    first: int = 0,
    bottom: float = 0.0,
    guessing: float | None = None,
) -> str:
    """Draw curves over positions `first` … 2L − 1, by kind, named where they end; the training length is shaded.

    Args:
        quantity: what the curves show: "share correct" or "bits per character".
        best: `max` or `min`, what is best of it.
        bottom: where the axis begins.
        guessing: what guessing would give, where that is to be drawn.
    """
    L = len(next(iter(curves.values()))) // 2
    ends = {kind: stretches(curve, first) for kind, curve in curves.items()}
    finding = _finding(ends, L - 1, best is max)
    ax = figure.add_subplot()
    ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    ax.text(L - 1, 0.015, "trained up to here", transform=ax.get_xaxis_transform(), ha="right", color=plots.GREY)
    at = np.arange(first, 2 * L)
    for kind, curve in curves.items():
        colour, line = LOOKS[kind]
        ax.plot(at, curve[first:], ls=line, color=colour)
    top = 1.05 if best is max else 1.02 * max(float(curve[first:].max()) for curve in curves.values())
    ax.set(xlim=(-0.5, 2 * L - 0.5), ylim=(bottom, top), xlabel="position", ylabel=quantity, title=finding)
    order = sorted(curves, key=lambda kind: float(curves[kind][-1]))
    heights = _apart([float(curves[kind][-1]) for kind in order], 0.062 * (top - bottom), bottom, top)
    for kind, height in zip(order, heights, strict=True):
        colour, _ = LOOKS[kind]
        ax.plot([2 * L - 1, 2 * L + 0.5], [curves[kind][-1], height], color=colour, lw=0.8, clip_on=False)
        ax.text(2 * L + 0.8, height, NAMES[kind], color=colour, va="center", weight="bold", clip_on=False)
    if guessing is not None:
        ax.axhline(guessing, color=plots.GREY, lw=1)
        ax.text(0, guessing, "guessing", color=plots.GREY, va="bottom", size=9)
    ticks = {0: "0", L // 2: f"{L // 2}", L: f"{L} (1×)", L + L // 2: f"{L + L // 2} (1.5×)", 2 * L - 1: "2×"}
    ax.set_xticks(list(ticks), list(ticks.values()))
    listed = "; ".join(f"{NAMES[kind]} " + ", ".join(f"{x:.2f}" for x in end) for kind, end in ends.items())
    return (
        f"{finding}. {quantity.capitalize()} by position, trained on positions up to {L - 1}. Means over the training "
        f"length, the half after it, and the half after that: {listed}."
    )


def _apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move the heights of labels, ascending, apart by at least `gap`, within low … high."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else max(height, low + gap / 2))
    over = moved[-1] - (high - gap / 2)
    for n in reversed(range(len(moved))):
        limit = high - gap / 2 if n == len(moved) - 1 else moved[n + 1] - gap
        moved[n] = min(moved[n], limit) if over > 0 else moved[n]
    return moved


def _finding(ends: Mapping[str, Stretches], last: int, more_is_better: bool) -> str:
    """Say who gets worse beyond the training length, and who has not learned the task within it."""
    not_yet = [kind for kind, end in ends.items() if more_is_better and end.trained < 0.5]
    limit = "" if more_is_better else " by more than 0.2 bits"
    worse = [kind for kind, end in ends.items() if kind not in not_yet and not _held(end, more_is_better)]
    named = ", ".join(NAMES[kind] for kind in worse) or "none of them"
    text = f"Worse beyond {last}{limit}: {named}"
    return text + "; task not learned: " * bool(not_yet) + ", ".join(NAMES[kind] for kind in not_yet)


def _held(end: Stretches, more_is_better: bool) -> bool:
    """Return whether little is lost beyond the training length: 0.05 of the share correct, or 0.2 bits."""
    loss = end.trained - min(end) if more_is_better else max(end) - end.trained
    return loss < (0.05 if more_is_better else 0.2)


# --- Stretching rotary positions ------------------------------------------------------------------------------------

METHODS = ("window", "interpolation", "larger base")  # first the one that a factor does not change
FACTORS = (1, 2, 4, 8)


def stretched(model: GPT, method: str, factor: int) -> GPT:
    """Make a rotary GPT with the same parameters for texts `factor` times as long as in training, without training.

    Args:
        method: "interpolation" squeezes positions together (Chen et al., 2023); "larger base" slows the slow pairs only
            (base · factor^(d_k / (d_k − 2)), "NTK-aware"); else nothing is changed.
    """
    c = model.config
    d_k = c.d_model // c.num_heads
    base, scale = 10_000.0, 1.0
    if method == "interpolation":
        scale = 1 / factor
    elif method == "larger base":
        base *= factor ** (d_k / (d_k - 2))
    copy = GPT(replace(c, rotary=Rotary(base, scale)), np.random.default_rng(0))
    for name, param in copy.params().items():
        param.value[...] = model.params()[name].value
    return copy


def stretch_curves(model: GPT, batch: tuple[Ids, Ids], L: int) -> dict[tuple[str, int], Array]:
    """Bits by position, (T,), by method and factor, of a rotary model that was trained on L positions."""
    plain = by_position(model, batch).bits
    window = by_position(model, batch, window=L).bits
    curves = {}
    for method, factor in itertools.product(METHODS, FACTORS):
        if method == "window":
            curves[method, factor] = window
        elif factor == 1:
            curves[method, factor] = plain
        else:
            curves[method, factor] = by_position(stretched(model, method, factor), batch).bits
    return curves


def _measured(model: GPT, pages: tuple[Ids, Ids], L: int = 32) -> tuple[dict[tuple[str, int], Array], int]:
    return stretch_curves(model, pages, L), L


def _example() -> tuple[GPT, tuple[Ids, Ids]]:
    rng = np.random.default_rng(0)
    model = GPT(GPTConfig(vocab=20, d_model=16, num_heads=2, num_layers=1, positions="rotary"), rng)
    ids = rng.integers(20, size=(2, 65))
    return model, (ids[:, :-1], ids[:, 1:])


@live.lab(
    height=4.0,
    neutral="At factor 1 nothing is changed yet; the dotted curve appears with the first change.",
    controls=lambda curves, L: {
        "method": live.Choice("method", METHODS, "larger base"),
        "factor": live.Choice("factor", FACTORS, 1),
    },
    prepare=_measured,
    example=_example,
)
def stretch_lab(figure: "Figure", curves: Mapping[tuple[str, int], Array], L: int) -> live.Update:
    """Show rotary positions stretched without training: bits by position, by method and factor."""
    ax = figure.add_subplot()
    plain = curves["larger base", 1]
    T = len(plain)
    ax.axvspan(-0.5, L - 0.5, color="#F0F0F0", lw=0)
    ax.text(L - 1, 0.015, "trained up to here", transform=ax.get_xaxis_transform(), ha="right", color=plots.GREY)
    width = max(T // 32, 1)
    smooth = {key: _smooth(curve, width) for key, curve in curves.items()}
    at = np.arange(len(smooth["larger base", 1])) + (width - 1) / 2
    ax.plot(at, smooth["larger base", 1], ":", color=plots.GREY, lw=2)
    (line,) = ax.plot(at, smooth["larger base", 1], color=plots.ORANGE)
    top = 1.02 * max(curve.max() for curve in smooth.values())
    ax.set(xlim=(-0.5, T - 0.5), ylim=(0.8 * min(c.min() for c in smooth.values()), top))
    ax.set(xlabel="position (dotted: nothing changed)", ylabel="bits per character")
    ax.set_xticks([n * L for n in range(T // L + 1)], [f"{n}×" if n else "0" for n in range(T // L + 1)])

    def update(method: str, factor: int) -> str:
        curve = curves[method, factor]
        line.set_ydata(smooth[method, factor])
        inside, twice, rest = curve[L // 4 : L].mean(), curve[L : 2 * L].mean(), curve[2 * L :]
        finding = f"{inside:.2f} bits within, {twice:.2f} up to 2×" + (
            f", {rest.mean():.2f} beyond" if len(rest) else ""
        )
        name = f"Window of {L} keys" if method == "window" else f"{method.capitalize()} × {factor}"
        ax.set_title(f"{name}: {finding}")
        over = f"Means over positions {L // 4} to {L - 1}, and further out"
        return f"{finding}, with rotary positions: {name.lower()}, factor {factor}. {over}."

    return update


def _smooth(curve: Array, width: int) -> Array:
    return np.convolve(curve, np.full(width, 1 / width), "valid")
