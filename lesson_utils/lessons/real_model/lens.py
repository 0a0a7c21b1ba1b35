"""The logit lens: what the real model would say if an earlier layer were the last."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.finding import readable
from lesson_utils.lessons.real_model.stored import NOTE, label, stored
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

BARS = 5
LONGEST = 128  # tokens, the last of a text


class Reading(NamedTuple):
    """The likeliest words before the first layer and after each; the final answer is the first after the last layer."""

    text: str
    words: Array  # (layers + 1, BARS), the likeliest first
    shares: Array  # (layers + 1, BARS)
    ranks: Ids  # (layers + 1,), of the final answer
    logs: Array  # (layers + 1,), its log p


def read(p: "Pretrained", text: str) -> Reading:
    """Read the stream after each layer, as if that layer were the last."""
    ids = p.tokenizer.encode(text)[-LONGEST:]
    stream = np.stack([x[0, -1] for x in measures.streams(p.model, ids[None])])  # (layers + 1, d_model)
    logs = ops.log_softmax(measures.logits_of(p.model, stream).astype(np.float64))
    top = np.argsort(-logs, axis=-1)[:, :BARS]
    final = logs[:, top[-1, 0]]
    return Reading(
        text,
        np.array([p.tokenizer.tokens(row) for row in top]),
        np.exp(np.take_along_axis(logs, top, axis=-1)),
        1 + (logs > final[:, None]).sum(axis=-1),
        final,
    )


def kept(n: int) -> Reading:
    """Return the reading of a stored text."""
    known = stored()
    return Reading(str(known["lens_texts"][n]), *(known[f"lens_{name}_{n}"] for name in Reading._fields[1:]))


class Lens(NamedTuple):
    """Readings of the stored texts, and a way to read others, if the model is there."""

    readings: list[Reading]
    look: Callable[[str], Reading] | None
    vocab: int


def _lens(smollm: "Pretrained | None") -> tuple[Lens]:
    look = None if smollm is None else lru_cache(16)(lambda text: read(smollm, text))
    readings = [kept(n) for n in range(len(stored()["lens_texts"]))]
    return (Lens(readings, look, 49_152 if smollm is None else len(smollm.tokenizer)),)


def _controls(lens: Lens) -> dict[str, live.Control]:
    controls: dict[str, live.Control] = {
        "text": live.Choice("text", tuple(range(1, 1 + len(lens.readings))), 1),
        "layer": live.Slider("layers", 0, len(lens.readings[0].ranks) - 1, 0),
    }
    if lens.look is not None:
        controls["own"] = live.Word("or your own text", "", 120)
    return controls


@live.lab(
    width=9.8,
    height=4.2,
    controls=_controls,
    prepare=_lens,
    example=lambda: (None,),
    neutral="No layer has been through at first, and the curve is drawn as far as the layer.",
)
def lens_lab(figure: "Figure", lens: Lens) -> live.Update:
    """Show the logit lens: what the model would say if this layer were the last, and the final answer's place."""
    vocab, depth = lens.vocab, len(lens.readings[0].ranks)
    now, curve = figure.subplots(1, 2, width_ratios=(1, 1.3))
    bars = now.barh(range(BARS), np.zeros(BARS), color=plots.BLUE, height=0.7)
    names = [now.text(0.02, y, "", va="center", size=11.5) for y in range(BARS)]
    now.invert_yaxis()
    now.set(xlim=(0, 1.0), yticks=(), xlabel="probability of the next token")
    greys = [curve.plot([0], [1], color="#D5D5D5", lw=1.3)[0] for _ in lens.readings]
    (line,) = curve.plot([0], [1], color=plots.BLUE)
    (dot,) = curve.plot([0], [1], "o", ms=12, color=plots.ORANGE, clip_on=False)
    curve.set_yscale("log")
    curve.set(
        xlim=(0, depth - 1),
        ylim=(1.5 * vocab, 0.8),  # the first place is at the top
        xlabel="layers that have been through (grey: the other texts)",
        ylabel="place of the final answer",
    )
    curve.set_yticks([1, 10, 100, 1000, 10_000], ["1st", "10th", "100th", "1,000th", "10,000th"])
    curve.minorticks_off()
    label(figure, NOTE if lens.look is None else f"{NOTE}; your own text is measured")

    def update(text: int, layer: int, own: str = "") -> str:
        measured = lens.look is not None and bool(own.strip())
        prompt, words, shares, ranks, log_p = lens.look(own) if lens.look and measured else lens.readings[text - 1]
        final = str(words[-1][0])
        line.set_data(range(layer + 1), ranks[: layer + 1])
        dot.set_data([layer], [ranks[layer]])
        for other, grey in zip(lens.readings, greys, strict=True):
            grey.set_data(range(layer + 1), other.ranks[: layer + 1])
        for bar, name, word, share in zip(bars, names, words[layer], shares[layer], strict=True):
            bar.set_width(share)
            name.set(
                text=f"{readable(str(word), 16)}  {share:.2f}",
                x=share + 0.02 if share < 0.6 else 0.02,
                color="white" if share >= 0.6 else plots.INK,
            )
        now.set_title(
            f"After layer {layer}: “{readable(str(words[layer][0]), 14)}”"
            if layer
            else f"Before any layer it says “{readable(str(words[0][0]), 14)}”"
        )
        curve.set_title(
            f"“…{' '.join(prompt.split()[-3:])}”: “{readable(final, 12)}”\nis number {ranks[layer]:,}, p = "
            f"{np.exp(log_p[layer]):.2g}",
            size=11.5,
        )
        listed = ", ".join(f"{str(w)!r} {s:.2f}" for w, s in zip(words[layer], shares[layer], strict=True))
        return (
            f"{prompt!r} goes on, after {layer} layers, with {listed}. The final answer, {final!r}, is number "
            f"{ranks[layer]:,} of {vocab:,} here, with p = {np.exp(log_p[layer]):.2g}."
            + " Stored results."
            * (not measured)
        )

    return update
