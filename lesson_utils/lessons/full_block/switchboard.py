"""A trained encoder–decoder with switches that turn its parts off."""

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import paper
from lesson_utils.lessons.full_block.controls import Straight
from lesson_utils.maths import layers, ops, tasks
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT, Transformer, TransformerConfig
from lesson_utils.maths.models.experiments import Change, changed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SWITCHES = ("residuals", "norm", "feed-forward", "positions", "mask", "scaling")


class Nothing(layers.Layer):
    """Stands in for a part that is switched off: it gives zeros, and no parameter of its own can learn."""

    def forward(self, x: Array, **inputs: Any) -> tuple[Array, None]:
        return np.zeros_like(x), None

    def backward(self, dy: Array, cache: None) -> Array:
        return np.zeros_like(dy)


def _changes(model: Transformer | GPT, off: str) -> Iterator[Change]:
    """Yield what to set on which object to switch a part off."""
    blocks = model.stack.blocks if isinstance(model, GPT) else (*model.encoder.blocks, *model.blocks)
    residuals = [part for block in blocks for part in vars(block).values() if isinstance(part, layers.Residual)]
    if off == "feed-forward":
        yield from ((r, "inner", Nothing()) for r in residuals if isinstance(r.inner, layers.FeedForward))
    elif isinstance(model, GPT):
        if off != "ReLU":
            raise ValueError(f"{off!r} can't be switched off in a GPT here; 'feed-forward' and 'ReLU' can")
        yield from ((r, "inner", Straight(r.inner)) for r in residuals if isinstance(r.inner, layers.FeedForward))
    elif off == "scaling":
        yield from ((r.inner, "scale", 1.0) for r in residuals if isinstance(r.inner, layers.MultiHead))
    elif off == "residuals":
        yield from ((r, "skip", False) for r in residuals)
    elif off == "norm":
        yield from ((thing, "norm", None) for thing in (*residuals, model.encoder, model))
    elif off == "positions":
        config = replace(model.config, positions="none")
        yield from ((tokens, "config", config) for tokens in (model.source, model.target))
    elif off == "mask":
        yield model, "config", replace(model.config, causal=False)
    else:
        raise ValueError(f"{off!r} can't be switched off; choose from {', '.join(SWITCHES)}")


@contextmanager
def without(model: Transformer | GPT, *off: str) -> Iterator[Transformer | GPT]:
    """Switch off some parts of the model for as long as a `with` block lasts; its parameters stay as they are.

    Args:
        off: any of "residuals" (no x +), "norm", "feed-forward", "positions", "mask" (the decoder's), "scaling"
            (factor 1 on the scores); of a GPT, "feed-forward" or "ReLU".
    """
    with changed(change for name in off for change in list(_changes(model, name))):
        yield model


TASK_LENGTH, TASK_SYMBOLS = 6, 10
READ = tasks.letters(TASK_SYMBOLS)


def reversal_pairs(rng: np.random.Generator, batch: int = 64) -> tuple[Any, Any]:
    """Make a batch for a Transformer: strings of 6 letters, and the same backwards with begin and end."""
    source, target = tasks.reversal(rng, batch, TASK_LENGTH, TASK_SYMBOLS)
    return source, tasks.with_ends(target)


class Measures(NamedTuple):
    """Measures of an encoder–decoder, taken from outside."""

    guided: float  # share of symbols that are right, when the right ones before are given
    alone: float  # share of strings that are all right, when it reads what it wrote itself
    leak: float  # how much the predictions before a changed symbol move: total variation, at most 1; of the worst place
    order: float  # how much the predictions change when the source is turned around
    looks: float  # the share of source positions that cross-attention looks at: exp(entropy) / S
    stream: float  # standard deviation of the decoder's stream at its top
    example: str  # what it writes


def measure(model: Transformer, *off: str, batch: int = 48) -> Measures:
    """Take the model's measures with some parts switched off."""
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    given, wanted = target[:, :-1], target[:, 1:]
    later = range(1, TASK_LENGTH + 1)
    changed = np.stack([given] * TASK_LENGTH)  # (6, B, 7); in each, another symbol is replaced
    for i, at in enumerate(later):
        changed[i, :, at] = 3 + (changed[i, :, at] - 2) % TASK_SYMBOLS
    sources = np.concatenate([source] * TASK_LENGTH)
    with without(model, *off), np.errstate(over="ignore", invalid="ignore"):
        logits, cache = model.forward(source, given)
        p = ops.softmax(np.nan_to_num(logits))
        p_changed = ops.softmax(np.nan_to_num(model.forward(sources, np.concatenate(changed))[0]))
        p_turned = ops.softmax(np.nan_to_num(model.forward(source[:, ::-1], given)[0]))
        written = model.decode(source, TASK_LENGTH + 1)
        cross = np.mean([ops.entropy(weights).mean() for weights in model.maps(cache)["cross"]])
    full = np.zeros_like(wanted)
    full[:, : written.shape[1]] = written
    return Measures(
        guided=float((p.argmax(axis=-1) == wanted).mean()),
        alone=float((full == wanted).all(axis=1).mean()),
        leak=max(
            _variation(p[:, :at], q[:, :at]) for at, q in zip(later, np.split(p_changed, len(later)), strict=True)
        ),
        order=_variation(p, p_turned),
        looks=math.exp(cross) / TASK_LENGTH,
        stream=float(cache.decoded.stream.std()),
        example=READ.decode(written[0]),
    )


def _variation(p: Array, q: Array) -> float:
    """Total variation between predictions, ½ Σ |p − q|: the largest over positions, the mean over strings."""
    return float((np.abs(p - q).sum(axis=-1) / 2).max(axis=1).mean())


def random_future(model: Transformer, *off: str, batch: int = 512) -> float:
    """Return the share of next symbols that are right when all that stands behind each position is random."""
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    given, wanted = target[:, :-1], target[:, 1:]
    rng, right = np.random.default_rng(7), []
    with without(model, *off):
        for at in range(given.shape[1]):
            shuffled = given.copy()
            shuffled[:, at + 1 :] = rng.integers(3, 3 + TASK_SYMBOLS, size=shuffled[:, at + 1 :].shape)
            logits = model.forward(source, shuffled)[0]
            right.append(logits[:, at].argmax(axis=-1) == wanted[:, at])
    return float(np.mean(right))


def right_without_cache(model: Transformer, *off: str, behind: bool = False, batch: int = 512) -> float:
    """Return the share of strings that are right when the model writes without a key–value cache.

    At each step it computes all positions anew.

    Args:
        behind: put random letters behind what is written so far, as many as training had there.
    """
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    rng, length = np.random.default_rng(3), target.shape[1] - 1
    written = target[:, :1]
    with without(model, *off):
        for at in range(length):
            rest = rng.integers(3, 3 + TASK_SYMBOLS, size=(batch, length - at - 1))
            given = np.concatenate([written, rest], axis=1) if behind else written
            following = model.forward(source, given)[0][:, at].argmax(axis=-1)
            written = np.concatenate([written, following[:, None]], axis=1)
    return float((written == target).all(axis=1).mean())


MEASURES = {
    "guided": "next symbol right,\ngiven the right ones",
    "alone": "whole string right,\nwriting on its own",
    "leak": "leak from later\nsymbols",
    "order": "difference if the\nsource is turned",
    "looks": "share of the source\nlooked at",
}
GOOD = {"guided": 1, "alone": 1, "leak": 0, "order": 1}  # the good end; `looks` has none


def every_setting(model: Transformer) -> dict[tuple[bool, ...], Measures]:
    """Take the measures at all 64 settings of the switches, each True where the part is on."""
    combinations = itertools.product((True, False), repeat=len(SWITCHES))
    return {on: measure(model, *(s for s, is_on in zip(SWITCHES, on, strict=True) if not is_on)) for on in combinations}


def _untrained() -> Transformer:
    config = TransformerConfig(vocab=TASK_SYMBOLS + 3, d_model=32, num_heads=2, num_layers=2)
    return Transformer(config, np.random.default_rng(0))


@live.lab(
    height=4.2,
    neutral="All parts are on.",
    controls={name: live.Switch(name, True) for name in SWITCHES},
    prepare=every_setting,
    example=_untrained,
)
def switchboard_lab(figure: "Figure", results: Mapping[tuple[bool, ...], Measures]) -> live.Update:
    """Show a trained model with switches; all 64 settings are measured first."""
    trained = results[(True,) * len(SWITCHES)]
    question, _ = reversal_pairs(np.random.default_rng(2024), 48)
    source = READ.decode(question[0])
    ax, side = figure.subplots(1, 2, width_ratios=(1.5, 1))
    rows = np.arange(len(MEASURES))
    ax.set_yticks(rows, list(MEASURES.values()))
    ax.set(xlim=(0, 1.15), ylim=(len(rows) - 0.4, -0.6), xticks=(0, 0.25, 0.5, 0.75, 1), xlabel="measure")
    for row, name in zip(rows, MEASURES, strict=True):
        if name in GOOD:  # on the frame, where no bar's number can stand
            ax.plot(GOOD[name], row + 0.42, "^", color=plots.GREEN, ms=9, clip_on=False, zorder=5)
    bars = plots.Bars(ax, len(rows), height=0.6)
    for row, name in zip(rows, MEASURES, strict=True):
        ax.plot([getattr(trained, name)] * 2, [row - 0.38, row + 0.38], color=plots.INK, lw=2.5, clip_on=False)
    paper(side, 1, 1)
    side.text(0, 0.98, "green triangle: the good end", color=plots.GREEN)
    side.text(0, 0.86, "black line: as trained", color=plots.INK)
    side.text(0, 0.68, f"asked:     {source}", family="monospace")
    side.text(0, 0.57, f"expected:  {source[::-1]}", family="monospace")
    says = side.text(0, 0.46, "", family="monospace")
    stream = side.text(0, 0.26, "", linespacing=1.5)

    def update(**on: bool) -> str:
        now = results[tuple(on[name] for name in SWITCHES)]
        values, before = (np.array([getattr(m, name) for name in MEASURES]) for m in (now, trained))
        near = np.abs(values - before) < 0.12  # then the black line stands in the number's way
        bars.set(values, [f"{value:.2f}" for value in values], np.where(near, np.maximum(values, before), values))
        for bar, moved in zip(bars.bars, np.abs(values - before) > 0.05, strict=True):
            bar.set_color(plots.ORANGE if moved else plots.BLUE)
        off = [name for name in SWITCHES if not on[name]]
        head = f"Off: {', '.join(off)}" if off else "As trained"
        rest = ", ".join(name for name in SWITCHES if on[name]) or "nothing"
        short = f"Off: all but {rest}" if len(off) > 3 else head
        ax.set_title(f"{short} – {now.alone:.0%} written right")
        says.set_text(f"written:   {now.example}")
        stream.set_text(f"stream at the top, σ:\n{now.stream:.3g} (as trained {trained.stream:.3g})")
        listed = ", ".join(f"{text.replace(chr(10), ' ')} {getattr(now, name):.2f}" for name, text in MEASURES.items())
        return f"{head}: {listed}; {source} becomes {now.example or 'nothing'}; the stream's σ is {now.stream:.3g}."

    return update


@plots.still(9.2, 4.3)
def parts_plot(figure: "Figure", good: Measures, off: Mapping[str, Measures], never: Mapping[str, Measures]) -> str:
    """Whole strings right, by part: as trained, with the part off, and trained without it."""
    fine = [name for name, m in never.items() if m.alone > 0.9]
    ax = figure.add_subplot()
    rows = np.arange(len(off))
    ax.axvline(good.alone, color=plots.INK, lw=2.2, zorder=0)
    ax.text(good.alone, -0.62, "as trained", ha="center", va="bottom", weight="bold")
    for shift, measures, colour, hatch, label in (
        (-0.2, off, plots.ORANGE, "", "switched off after training"),
        (0.2, never, plots.BLUE, "//", "trained without it"),
    ):
        values = [measures[name].alone for name in off]
        ax.barh(rows + shift, values, 0.36, color=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
        for row, value in zip(rows, values, strict=True):
            behind = {"fc": "white", "ec": "none", "pad": 0.6}
            ax.text(value + 0.012, row + shift, f"{value:.2f}", va="center", color=colour, bbox=behind)
    ax.set_yticks(rows, list(off))
    ax.set(xlim=(0, 1.12), ylim=(len(off) - 0.4, -0.6), xlabel="share of whole strings right, writing on its own")
    ax.tick_params(axis="y", length=0)
    ax.set_title(f"{len(fine)} of {len(off)} parts are not needed, if it learns without them", pad=20)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    listed = "; ".join(f"{name} {off[name].alone:.2f} and {never[name].alone:.2f}" for name in off)
    return (
        f"{len(fine)} of {len(off)} parts are not needed if the model learns without them: {', '.join(fine)}. "
        f"Whole strings right as trained {good.alone:.2f}; with the part off after training, and trained without it: "
        f"{listed}."
    )
