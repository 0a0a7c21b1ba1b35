"""Figures and tables of path patching: which input of the induction heads carries what the head before them writes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model import grow, measures, paths
from lesson_utils.lessons.real_model.breaking import GUESSING
from lesson_utils.lessons.real_model.stored import label, stored
from lesson_utils.maths.models import GPT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

NOTHING = "nothing"
READERS = [f"{layer}.{head}" for layer, heads in paths.READERS.items() for head in heads]


def heads() -> tuple[str, ...]:
    """Return the previous-token heads that can be taken out, strongest first."""
    return tuple(f"{layer}.{head}" for layer, head in stored()["path_heads"])


def measured(head: str, into: str) -> tuple[Any, float]:
    """Return the readers' induction scores and the nats per token of the second copy, means of two sets of tokens."""
    known = stored()
    if into == NOTHING:
        return known["path_whole_scores"].mean(axis=0), float(known["path_whole_nats"].mean())
    at = heads().index(head), paths.INPUTS.index(into)
    return known["path_scores"][at].mean(axis=0), float(known["path_nats"][at].mean())


@live.lab(
    width=9.8,
    height=4.2,
    neutral="Nothing is taken out at first.",
    controls=lambda: {
        "head": live.Choice("head", heads(), heads()[0]),
        "into": live.Choice("missing in the", (NOTHING, *paths.INPUTS), NOTHING),
    },
)
def wire_lab(figure: "Figure") -> live.Update:
    """Cut one wire of SmolLM2: one head's output into the queries, keys or values of five induction heads."""
    drawing, bars, cost = figure.subplots(1, 3, width_ratios=(1.15, 1.1, 1))
    ax = drawing
    ax.set(xlim=(0, 4.2), ylim=(0, 4.1), xticks=(), yticks=())
    ax.spines[:].set_visible(False)
    source = d.box(ax, 2.1, 0.45, "", 2.4, 0.6, plots.PURPLE, size=11.5)
    name = ax.text(2.1, 0.45, "", ha="center", va="center", size=11.5)
    d.box(ax, 2.1, 3.55, "five induction heads", 3.6, 0.6, plots.BLUE, size=11.5)
    wires, crosses = {}, {}
    for x, what in zip((0.75, 2.1, 3.45), paths.INPUTS, strict=True):
        d.box(ax, x, 2.5, what, 1.25, 0.5, plots.GREY, size=11)
        ax.annotate("", (x, 3.22), (x, 2.77), arrowprops={"arrowstyle": "->", "color": plots.GREY, "lw": 1.6})
        wires[what] = ax.annotate(
            "",
            (x, 2.22),
            (2.1 + 0.5 * (x - 2.1), source.top[1]),
            arrowprops={"arrowstyle": "->", "color": plots.PURPLE, "lw": 2.4},
        )
        (crosses[what],) = ax.plot(
            [2.1 + 0.75 * (x - 2.1)], [1.5], "X", ms=17, color=plots.ORANGE, mec="white", visible=False
        )
    at = np.arange(len(READERS))
    whole, without = measured(heads()[0], NOTHING)
    bars.bar(at, whole, 0.75, color="#D5D5D5")
    now = bars.bar(at, whole, 0.45, color=plots.BLUE)
    texts = [bars.text(n, 0, "", ha="center", va="bottom", size=10.5) for n in at]
    bars.set_xticks(at, READERS)
    bars.set(ylim=(0, 1.1), ylabel="induction score", xlabel="head (grey: nothing missing)")
    (bar,) = cost.bar([0], [without], 0.5, color=plots.ORANGE)
    cost.axhline(without, color=plots.GREY, lw=1, ls=":")
    cost.axhline(GUESSING, color=plots.INK, lw=1, ls=":")
    cost.text(0.62, GUESSING + 0.15, "guessing", ha="right", size=10.5)
    cost.text(0.62, without + 0.15, "all wires", ha="right", size=10.5, color=plots.GREY)
    cost.set(xlim=(-0.4, 0.65), ylim=(0, 14), xticks=(), ylabel="second copy, nats per token")
    label(figure)

    def update(head: str, into: str) -> str:
        scores, nats = measured(head, into)
        name.set_text(f"head {head}")
        for what, cross in crosses.items():
            cross.set_visible(what == into)
            wires[what].arrow_patch.set_color("#D5D5D5" if what == into else plots.PURPLE)
        for rectangle, text, value in zip(now, texts, scores, strict=True):
            rectangle.set_height(value)
            text.set(text=f"{value:.2f}", y=value + 0.02)
        bar.set_height(nats)
        ax.set_title("All wires are whole" if into == NOTHING else f"{head} is missing in the {into}", size=11.5)
        bars.set_title(f"Mean score {scores.mean():.2f}", size=11.5)
        cost.set_title(f"Copying costs {nats:.1f} nats", size=11.5)
        told = (
            f"nothing of head {head} is missing"
            if into == NOTHING
            else f"what head {head} writes is missing in their {into} alone"
        )
        listed = ", ".join(f"{reader} {value:.2f}" for reader, value in zip(READERS, scores, strict=True))
        return (
            f"Copying costs {nats:.1f} nats per token when {told}; {without:.1f} with all wires. Induction scores of "
            f"the five heads: {listed}. Means of two sets of random tokens. Stored results."
        )

    return update


def wire_table() -> str:
    """List what it costs to take each head out of each input; by the mean; and out of the keys of other heads."""
    known = stored()
    lines = [f"{'nats per token of the copy':42}" + "".join(f"{name:>9}" for name in paths.INPUTS)]
    for head in heads():
        lines.append(f"head {head:37}" + "".join(f"{measured(head, into)[1]:9.1f}" for into in paths.INPUTS))
    mean = known["path_mean_nats"].mean(axis=1)
    lines.append(f"{f'head {heads()[0]}, replaced by its mean':42}" + "".join(f"{value:9.1f}" for value in mean))
    control = known["path_control_nats"].mean(axis=1)
    lines.append(
        f"head {heads()[0]}, out of five other heads (8 draws): keys {control.min():.1f} to {control.max():.1f}"
    )
    lines.append(f"nothing missing: {measured(heads()[0], NOTHING)[1]:.1f}")
    return "\n".join(lines)


def moved_table() -> str:
    """List where the five heads look if what 16.0 has written stands one place later, or earlier, in their keys."""
    weights = stored()["moved_weights"].mean(axis=(1, 3))  # (moved, places from the answer)
    lines = [f"{'weight of the five heads':24}" + "".join(f"{at:>14}" for at in ("one earlier", "answer", "one later"))]
    other = ".".join(map(str, stored()["path_heads"][1]))
    weights = [*weights, stored()["moved_other"].mean(axis=(0, 2))]
    names = ("16.0 as it writes", "moved one place later", "moved one earlier", f"{other} moved one later")
    for name, row in zip(names, weights, strict=True):
        lines.append(f"{name:24}" + "".join(f"{weight:14.2f}" for weight in row))
    return "\n".join(lines)


def passages_table() -> str:
    """List what the same cut costs where a passage of text is said twice, not random tokens; with two controls."""
    names = ("random tokens", "a story", "a report", "a manual")
    heads = ("once", "said twice", "16.0 cut", "nine heads off", "shuffled before")
    lines = [f"{'nats per token':16}" + "".join(f"{head:>17}" for head in heads)]
    for name, row in zip(names, stored()["passages"], strict=True):
        lines.append(f"{name:16}" + "".join(f"{nats:17.1f}" for nats in row))
    return "\n".join(lines)


def cut(model: GPT, head: tuple[int, int], inputs: paths.Inputs) -> str:
    """Take a head of a grown model out of each input of all heads above it: the share of the copy that is right.

    Alone, and with what the feed-forward network of its layer makes of its output.
    """
    ids, periods = grow.repeats(np.random.default_rng(99), 128)
    settled = np.arange(1, grow.LENGTH + 1) >= periods[:, None]
    readers = {layer: range(model.config.num_heads) for layer in range(head[0] + 1, model.config.num_layers)}

    def right(into: str, detour: bool) -> str:
        logits = paths.run_patched(model, ids[:, :-1], head, into, readers, inputs, detour=detour).logits
        return f"{(logits.argmax(axis=-1) == ids[:, 1:])[settled].mean():5.0%}"

    lines = [f"{'':28}head alone   with its detour"]
    lines.append(f"{'nothing missing':28}{grow.copied(model):10.0%}{grow.copied(model):18.0%}")
    for into in paths.INPUTS:
        lines.append(
            f"{f'{head[0]}.{head[1]} missing in the {into}':28}{right(into, False):>10}{right(into, True):>18}"
        )
    return "\n".join(lines)


def cut_real(
    p: "Pretrained",
    head: tuple[int, int] = paths.FIRST,
    into: str = "keys",
    readers: Mapping[int, Sequence[int]] | None = None,
    inputs: paths.Inputs = paths.patched_inputs,
) -> str:
    """Take any head of the real model out of one input of others, on one set of random tokens."""
    ids = measures.copies(np.random.default_rng(7), len(p.tokenizer), 1)
    scores, nats = paths.copying_without(p.model, ids, head, into, readers, inputs=inputs)
    _, whole = measures.copying(p.model, ids)
    return (
        f"{head[0]}.{head[1]} missing in the {into}: induction scores {', '.join(f'{s:.2f}' for s in scores)}; "
        f"the copy costs {nats:.1f} nats per token, not {whole:.1f}"
    )
