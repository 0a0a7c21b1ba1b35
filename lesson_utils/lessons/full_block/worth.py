"""What a part is worth: models without it, and what is measured of them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.maths import layers, ops, tasks
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import Transformer, TransformerConfig
from lesson_utils.maths.models.experiments import Change, changed

# --- 6 · Break it -----------------------------------------------------------------------------------------------------


SWITCHES = ("residuals", "norm", "feed-forward", "positions", "mask", "scaling")


class Nothing(layers.Layer):
    """Stands in for a part that is switched off: it gives zeros, and no parameter of its own can learn."""

    def forward(self, x: Array, **inputs: Any) -> tuple[Array, None]:
        return np.zeros_like(x), None

    def backward(self, dy: Array, cache: None) -> Array:
        return np.zeros_like(dy)


def _changes(model: Transformer, off: str) -> Iterator[Change]:
    """Yield what to set on which object to switch a part off."""
    blocks = (*model.encoder.blocks, *model.blocks)
    residuals = [part for block in blocks for part in vars(block).values() if isinstance(part, layers.Residual)]
    if off == "feed-forward":
        yield from ((r, "inner", Nothing()) for r in residuals if isinstance(r.inner, layers.FeedForward))
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
def without(model: Transformer, *off: str) -> Iterator[Transformer]:
    """Switch off some parts of the model for as long as a `with` block lasts; its parameters stay as they are.

    Args:
        off: any of "residuals" (no x +), "norm", "feed-forward", "positions", "mask" (the decoder's), "scaling"
            (factor 1 on the scores).
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
    full = np.zeros_like(wanted)
    full[:, : written.shape[1]] = written
    return Measures(
        guided=float((p.argmax(axis=-1) == wanted).mean()),
        alone=float((full == wanted).all(axis=1).mean()),
        leak=max(
            _variation(p[:, :at], q[:, :at]) for at, q in zip(later, np.split(p_changed, len(later)), strict=True)
        ),
        order=_variation(p, p_turned),
        stream=float(cache.decoded.stream.std()),
        example=READ.decode(written[0]),
    )


def _variation(p: Array, q: Array) -> float:
    """Total variation between predictions, ½ Σ |p − q|: the largest over positions, the mean over strings."""
    return float((np.abs(p - q).sum(axis=-1) / 2).max(axis=1).mean())


def every_setting(model: Transformer) -> dict[tuple[bool, ...], Measures]:
    """Take the measures at all 64 settings of the switches, each True where the part is on."""
    combinations = itertools.product((True, False), repeat=len(SWITCHES))
    return {on: measure(model, *(s for s, is_on in zip(SWITCHES, on, strict=True) if not is_on)) for on in combinations}


def small() -> Transformer:
    """Return the model of section 6, untrained."""
    config = TransformerConfig(vocab=TASK_SYMBOLS + 3, d_model=32, num_heads=2, num_layers=2)
    return Transformer(config, np.random.default_rng(0))


# --- 6 · Trained without it -------------------------------------------------------------------------------------------


@plots.still(9.2, 4.3)
def parts_plot(
    figure: "plots.Figure", good: float, off: Mapping[str, float], never: Mapping[str, Sequence[float]]
) -> str:
    """Whole strings right, by part: as trained, with the part off, and of models trained without it, a dot each."""
    fine = [name for name, starts in never.items() if np.median(starts) > 0.9]
    ax = figure.add_subplot()
    rows = np.arange(len(off))
    ax.axvline(good, color=plots.INK, lw=2.2, zorder=0)
    ax.text(good, -0.62, "as trained", ha="center", va="bottom", weight="bold")
    ax.barh(rows - 0.2, list(off.values()), 0.34, color=plots.ORANGE, label="switched off after training")
    for row, starts in zip(rows, never.values(), strict=True):
        label = "trained without it, a circle for each start" if row == 0 else None
        ax.plot(starts, [row + 0.2] * len(starts), "o", mfc="none", mec=plots.BLUE, ms=8, label=label, clip_on=False)
    ax.set_yticks(rows, list(off))
    ax.set(xlim=(0, 1.05), ylim=(len(off) - 0.4, -0.6), xlabel="share of whole strings right, writing on its own")
    ax.tick_params(axis="y", length=0)
    ax.set_title(f"{len(fine)} of {len(off)} parts are not needed by models trained without them", pad=20)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    listed = "; ".join(
        f"{name} {off[name]:.2f} and {np.median(never[name]):.2f} ({min(never[name]):.2f} to {max(never[name]):.2f})"
        for name in off
    )
    return (
        f"… Not needed: {', '.join(fine)}. Whole strings right: as trained {good:.2f}; with the part off after "
        f"training, and in the median of models trained without it (lowest to highest): {listed}."
    )
