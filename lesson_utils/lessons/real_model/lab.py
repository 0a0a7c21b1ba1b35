"""What notebook 09 calls `lab.name`, in its order: live figures, and figures of where attention goes."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings as d
from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.classroom.drawings import drawable
from lesson_utils.lessons.real_model import breaking, grown, measures
from lesson_utils.lessons.real_model.breaking import (
    copies_table,
    cut_real,
    damage_plot,
    moved_table,
    names_plot,
    passages_table,
    prune_plot,
    prune_table,
    recalls,
    who_writes,
    wire_table,
    without,
    word_list,
    writes_plot,
)
from lesson_utils.lessons.real_model.changes import changes_plot, changes_table, five_changes, runs_on, train_again
from lesson_utils.lessons.real_model.chatting import answer, chat, load, pieces, seconds_a_token, writes
from lesson_utils.lessons.real_model.grown import (
    by_hand,
    chain_drawn,
    copied,
    cut,
    grow,
    positions_plot,
    repeats,
    trap_plot,
    without_table,
)
from lesson_utils.lessons.real_model.measures import label, stored
from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT
from lesson_utils.maths.pretrained import Pretrained

# --- 1 · Grow a pair of heads -----------------------------------------------------------------------------------------

LAYERS = {1: "one layer", 2: "two layers"}


def _steps(films: Mapping[int, grown.Film]) -> list[int]:
    """Return the steps that all films have: one whose training was stopped has fewer."""
    return [moment.step for moment in min((film.moments for film in films.values()), key=len)]


def _grow_controls(films: Mapping[int, grown.Film]) -> dict[str, live.Control]:
    steps = tuple(_steps(films))
    return {
        "layers": live.Choice("layers", tuple(films), 2),
        "step": live.Choice("training step", steps, steps[0]),
    }


@live.lab(
    width=9.8,
    height=4.3,
    controls=_grow_controls,
    neutral="Before the first step nothing has been learnt, and curves are drawn as far as the step.",
    telling={"layers": 2, "step": 800},
    example=lambda: {layers: grown.grow(layers, 4, progress=False, every=2) for layers in (1, 2)},
)
def grow_lab(figure: "plots.Figure", films: Mapping[int, grown.Film]) -> live.Update:
    """Models of one and of two layers learn to copy: loss, scores and map at each step of training."""
    losses, scores, page = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    steps = _steps(films)
    dots, lines = {}, {}
    for layers, film in films.items():
        curve = [moment.loss for moment in film.moments[: len(steps)]]
        (lines[layers],) = losses.plot(steps, curve, color=plots.INK)
        (dots[layers],) = losses.plot([0], [0], "o", color=plots.ORANGE, ms=11, clip_on=False)
    losses.set(
        xlabel="training step (grey: the other model)",
        ylabel="loss of the copy, nats",
        xlim=(0, steps[-1]),
        ylim=(0, None),
    )
    looks = {"induction": (plots.BLUE, "-"), "previous": (plots.PURPLE, "--")}
    curves, marks = {}, {}
    for name, (colour, style) in looks.items():
        (curves[name],) = scores.plot(
            steps, np.zeros(len(steps)), style, color=colour, label=f"{name}{' token' * (name == 'previous')}"
        )
        (marks[name],) = scores.plot([0], [0], "o", color=colour, ms=9, clip_on=False)
    scores.legend(loc="upper left", fontsize=10.5)
    scores.set(xlabel="training step", ylabel="score of the best head", xlim=(0, steps[-1]), ylim=(0, 1))
    image = page.imshow(
        np.zeros((grown.LENGTH, grown.LENGTH)), cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=1
    )
    at = np.array([grown.MAP_PERIOD - 0.5, grown.LENGTH - 0.5])
    for off in (-0.7, 0.7):  # where an induction head looks
        page.plot(at - grown.MAP_PERIOD + 1 + off, at, ":", color=plots.ORANGE, lw=1.3)
    ticks = range(0, grown.LENGTH, grown.MAP_PERIOD)
    page.set(xticks=ticks, yticks=ticks, xlabel="key at position", ylabel="query at position")
    page.spines[:].set_visible(False)

    def update(layers: int, step: int) -> str:
        film, so_far = films[layers], steps.index(step) + 1
        moment = film.moments[so_far - 1]
        for n in films:
            lines[n].set_data(steps[:so_far], [m.loss for m in films[n].moments[:so_far]])
            lines[n].set_color(plots.INK if n == layers else "#B5B5B5")
            dots[n].set_data([step], [moment.loss])
            dots[n].set_visible(n == layers)
        for name in looks:
            over = [getattr(m, name).max() for m in film.moments]
            curves[name].set_data(steps[:so_far], over[:so_far])
            marks[name].set_data([step], [over[so_far - 1]])
        last = film.moments[-1].induction
        layer, head = np.unravel_index(last.argmax(), last.shape)  # the one that ends as the best, all the time
        image.set_data(moment.map)
        losses.set_title(f"{LAYERS[layers].capitalize()}, step {step}:\n{moment.right:.0%} of the copy right")
        scores.set_title(f"Induction {moment.induction.max():.2f},\nprevious token {moment.previous.max():.2f}")
        page.set_title(f"Layer {layer}, head {head}: {moment.induction[layer, head]:.0%}\nlies on the stripe")
        return f"… The loss of the copy is {moment.loss:.2f} nats. The stripe is the key after the same symbol."

    return update


# --- 3 · Find the heads -----------------------------------------------------------------------------------------------

MOST_TOKENS = 32
LOWEST = {
    "previous token": 0.3,
    "first token": 0.5,
    "same token": 0.2,
    "induction": 0.3,
    "entropy": 0.8,
}  # to count as such
SAYS = {
    "previous token": "look at the token before",
    "first token": "rest on the first token",
    "same token": "look for the same token",
    "induction": "look at what came after the same token",
    "entropy": "spread their weight",
}


class Census(NamedTuple):
    """Scores of all heads, (5, layers, heads), and their maps on a sentence, (layers, heads, T, T), with its tokens."""

    real: Array
    random: Array
    sentence: str
    look: Callable[[str], tuple[list[str], Array]]
    from_store: bool


def census(p: Pretrained | None = None) -> Census:
    """Score the model's heads, or return what is stored. A model other than ours is measured, which takes a while."""
    known = stored()
    sentence = str(known["sentence"])
    if p is None:
        tokens, maps = [str(t) for t in known["tokens"]], known["maps"] / np.float32(255)
        return Census(known["scores_real"], known["scores_random"], sentence, lambda text: (tokens, maps), True)

    @lru_cache(16)
    def look(text: str) -> tuple[list[str], Array]:
        ids = p.tokenizer.encode(text or sentence)[:MOST_TOKENS]
        return p.tokenizer.tokens(ids), measures.all_maps(p.model, ids[None])[0]

    if p.name.lower().startswith(measures.NAME):
        return Census(known["scores_real"], known["scores_random"], sentence, look, False)
    untrained = GPT(p.model.config, np.random.default_rng(0))
    return Census(scores_of(p.model, p), scores_of(untrained, p), sentence, look, False)


def scores_of(model: GPT, p: Pretrained) -> Array:
    """Measure all five scores, (5, layers, heads)."""
    ids = p.tokenizer.encode(measures.STORY)[: measures.PAGE]
    found = measures.scores_on_text(measures.all_maps(model, ids[None])[0], ids)
    twice = measures.copies(np.random.default_rng(7), len(p.tokenizer), 3)
    found["induction"] = measures.induction_score(measures.all_maps(model, twice), measures.COPIED).mean(axis=0)
    return np.stack([found[name] for name in measures.SCORES])


def _census_controls(found: Census) -> dict[str, live.Control]:
    _, layers, heads = found.real.shape
    controls: dict[str, live.Control] = {
        "score": live.Choice("score", measures.SCORES, "entropy"),
        "layer": live.Slider("layer", 0, layers - 1, 0),
        "head": live.Slider("head", 0, heads - 1, 0),
    }
    if not found.from_store:
        controls["sentence"] = live.Word("sentence", found.sentence, 160)
    return controls


def _found(smollm: Pretrained | None) -> tuple[Census]:
    return (census(smollm),)


@live.lab(
    width=9.8,
    height=4.1,
    controls=_census_controls,
    prepare=_found,
    example=lambda: (None,),
    neutral="The heads are scored by their entropy at first, which tells nothing of induction heads.",
    telling={"score": "induction", "layer": 18, "head": 6},
)
def census_lab(figure: "plots.Figure", found: Census) -> live.Update:
    """Show all heads by one of five scores, beside untrained ones; and the map of the chosen head on a sentence."""
    trained, untrained, page = figure.subplots(1, 3, width_ratios=(1, 1, 3.6))
    _, layers, heads = found.real.shape
    blues, images = plots.colour_map(*plots.WEIGHTS_MAP), []
    for ax in (trained, untrained):
        images.append(ax.imshow(np.zeros((layers, heads)), cmap=blues, vmin=0, vmax=1, aspect="auto"))
        ax.set(
            xlabel="trained" if ax is trained else "untrained",
            xticks=range(0, heads, 4),
            yticks=range(0, layers, 5) if ax is trained else (),
        )
        ax.spines[:].set_visible(False)
    trained.set_ylabel("layer (head: across)")
    (mark,) = trained.plot([0], [0], "s", mfc="none", mec=plots.ORANGE, mew=2.2, ms=11, clip_on=False)
    weights = page.imshow(np.zeros((2, 2)), cmap=blues, vmin=0, vmax=1, aspect="auto", extent=(0, 1, 1, 0))
    page.set(xlim=(0, 1), ylim=(1, 0), xticks=(), yticks=())
    page.spines[:].set_visible(False)
    across = [page.text(0, 1.02, "", rotation=90, ha="center", va="top", size=10) for _ in range(MOST_TOKENS)]
    down = [page.text(-0.015, 0, "", ha="right", va="center", size=10) for _ in range(MOST_TOKENS)]
    for text in (across[0], down[0]):
        text.set_text("m" * 9)  # as wide as it gets, for the layout
    if found.from_store:
        label(figure)

    def update(score: str, layer: int, head: int, **typed: str) -> str:  # a sentence, where the model is there
        n = measures.SCORES.index(score)
        tokens, maps = found.look(typed.get("sentence", ""))
        T, chosen = len(tokens), maps[layer, head]
        for image, values in zip(images, (found.real[n], found.random[n]), strict=True):
            image.set_data(values)
        mark.set_data([head], [layer])
        weights.set_data(chosen)
        for i, (below, left) in enumerate(zip(across, down, strict=True)):
            name = readable(tokens[i]) if i < T else ""
            below.set(text=name, x=(i + 0.5) / T)
            left.set(text=name, y=(min(i, T - 1) + 0.5) / T)
        many, none = (int((values[n] > LOWEST[score]).sum()) for values in (found.real, found.random))
        trained.set_title(f"{many} of {found.real[n].size} heads\n{SAYS[score]}", size=11.5)
        page.set_title(f"Layer {layer}, head {head}: {score} {found.real[n, layer, head]:.2f}")
        rows = "; ".join(
            f"{tokens[i]!r} on {tokens[int(chosen[i].argmax())]!r} {chosen[i].max():.2f}"
            for i in range(max(0, T - 4), T)
        )
        return (
            f"… These heads have a score above {LOWEST[score]}, and {none} of the untrained have. The map's last rows "
            f"lie most on: {rows}."
        )

    return update


def readable(token: str, longest: int = 9) -> str:
    """Return a token that can be drawn: line ends as ⏎, what the font has no letter for as □, cut to nine letters."""
    text = token.replace("\n", "⏎").strip(" ") or "␣"
    text = drawable(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def heads_above(found: Any, score: str, lowest: float) -> list[str]:
    """List the heads with such a score, best first, as "layer.head"."""
    values = found[measures.SCORES.index(score)]
    order = np.argsort(-values, axis=None)
    return [f"{i // values.shape[1]}.{i % values.shape[1]}" for i in order if values.flat[i] > lowest]


# --- 3 · What would each layer say? -----------------------------------------------------------------------------------

BARS = 5
LONGEST_TEXT = 128  # tokens, the last of a text


class Reading(NamedTuple):
    """The likeliest words before the first layer and after each; the final answer is the first after the last layer."""

    text: str
    words: Array  # (layers + 1, BARS), the likeliest first
    shares: Array  # (layers + 1, BARS)
    ranks: Ids  # (layers + 1,), of the final answer
    logs: Array  # (layers + 1,), its log p


def read(p: Pretrained, text: str) -> Reading:
    """Read the stream after each layer, as if that layer were the last."""
    ids = p.tokenizer.encode(text)[-LONGEST_TEXT:]
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


def stored_reading(n: int) -> Reading:
    """Return the reading of a stored text."""
    known = stored()
    return Reading(str(known["lens_texts"][n]), *(known[f"lens_{name}_{n}"] for name in Reading._fields[1:]))


class Lens(NamedTuple):
    """Readings of the stored texts, and a way to read others, if the model is there."""

    readings: list[Reading]
    look: Callable[[str], Reading] | None
    vocab: int


def _lens(smollm: Pretrained | None) -> tuple[Lens]:
    look = None if smollm is None else lru_cache(16)(lambda text: read(smollm, text))
    readings = [stored_reading(n) for n in range(len(stored()["lens_texts"]))]
    return (Lens(readings, look, 49_152 if smollm is None else len(smollm.tokenizer)),)


def _lens_controls(lens: Lens) -> dict[str, live.Control]:
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
    controls=_lens_controls,
    prepare=_lens,
    example=lambda: (None,),
    neutral="No layer has been through at first, and the curve is drawn as far as the layer.",
    telling={"layer": 30},
)
def lens_lab(figure: "plots.Figure", lens: Lens) -> live.Update:
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
    label(figure, measures.NOTE if lens.look is None else f"{measures.NOTE}; your own text is measured")

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
        listed = formats.each((repr(str(word)) for word in words[layer]), shares[layer])
        return f"… {prompt!r} goes on, after {layer} layers, with {listed}. There are {vocab:,} tokens." + (
            " Stored results." * (not measured)
        )

    return update


# --- 4 · Cut one wire -------------------------------------------------------------------------------------------------


@live.lab(
    width=9.8,
    height=4.2,
    neutral="Nothing is taken out at first.",
    telling={"into": "keys"},
    controls=lambda: {
        "head": live.Choice("head", breaking.previous_heads(), breaking.previous_heads()[0]),
        "into": live.Choice("missing in the", (breaking.NOTHING, *measures.INPUTS), breaking.NOTHING),
    },
)
def wire_lab(figure: "plots.Figure") -> live.Update:
    """Cut one wire of SmolLM2: one head's output into the queries, keys or values of five induction heads."""
    drawing, bars, cost = figure.subplots(1, 3, width_ratios=(1.15, 1.1, 1))
    ax = drawing
    ax.set(xlim=(0, 4.2), ylim=(0, 4.1), xticks=(), yticks=())
    ax.spines[:].set_visible(False)
    source = d.box(ax, 2.1, 0.45, "", 2.4, 0.6, plots.PURPLE, size=11.5)
    name = ax.text(2.1, 0.45, "", ha="center", va="center", size=11.5)
    d.box(ax, 2.1, 3.55, "five induction heads", 3.6, 0.6, plots.BLUE, size=11.5)
    wires, crosses = {}, {}
    for x, what in zip((0.75, 2.1, 3.45), measures.INPUTS, strict=True):
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
    at = np.arange(len(breaking.READING))
    whole, with_all = breaking.wire_measured(breaking.previous_heads()[0], breaking.NOTHING)
    bars.bar(at, whole, 0.75, color="#D5D5D5")
    now = bars.bar(at, whole, 0.45, color=plots.BLUE)
    texts = [bars.text(n, 0, "", ha="center", va="bottom", size=10.5) for n in at]
    bars.set_xticks(at, breaking.READING)
    bars.set(ylim=(0, 1.1), ylabel="induction score", xlabel="head (grey: nothing missing)")
    (bar,) = cost.bar([0], [with_all], 0.5, color=plots.ORANGE)
    cost.axhline(with_all, color=plots.GREY, lw=1, ls=":")
    cost.axhline(measures.GUESSING, color=plots.INK, lw=1, ls=":")
    cost.text(0.62, measures.GUESSING + 0.15, "guessing", ha="right", size=10.5)
    cost.text(0.62, with_all + 0.15, "all wires", ha="right", size=10.5, color=plots.GREY)
    cost.set(xlim=(-0.4, 0.65), ylim=(0, 14), xticks=(), ylabel="second copy, nats per token")
    label(figure)

    def update(head: str, into: str) -> str:
        scores, nats = breaking.wire_measured(head, into)
        name.set_text(f"head {head}")
        for what, cross in crosses.items():
            cross.set_visible(what == into)
            wires[what].arrow_patch.set_color("#D5D5D5" if what == into else plots.PURPLE)
        for rectangle, text, value in zip(now, texts, scores, strict=True):
            rectangle.set_height(value)
            text.set(text=f"{value:.2f}", y=value + 0.02)
        bar.set_height(nats)
        ax.set_title(
            f"All wires of {head} are whole" if into == breaking.NOTHING else f"{head} is missing in the {into}",
            size=11.5,
        )
        bars.set_title(f"Mean score {scores.mean():.2f}", size=11.5)
        cost.set_title(f"Copying costs {nats:.1f} nats", size=11.5)
        listed = formats.each(breaking.READING, scores)
        return (
            f"… With all wires it costs {with_all:.1f} nats per token. Induction scores of the five heads: {listed}. "
            "Means of two sets of random tokens. Stored results."
        )

    return update


# --- 4 · How many heads, zeros or means? ------------------------------------------------------------------------------

KINDS = {"induction": plots.BLUE, "previous token": plots.PURPLE, "others": plots.GREY}
COUNTS = (0, 1, 2, 4, 8)


def knocked_out(kind: str, by: str) -> Any:
    """Return nats per token, (draws, counts, [first copy, second copy, story]); one draw of kinds with an order."""
    rows = stored()[f"knock_{kind.split()[0]}_{by}"]
    return rows if kind == "others" else rows[None]


@live.lab(
    width=9.6,
    height=4.2,
    neutral="No head is off, and curves are drawn as far as the number of heads that is chosen.",
    telling={"kind": "induction", "count": 4},
    kind=live.Choice("heads switched off", tuple(KINDS), "induction"),
    count=live.Choice("how many", COUNTS, 0),
    by=live.Choice("put in their place", ("zero", "mean"), "zero"),
)
def knock_out_lab(figure: "plots.Figure") -> live.Update:
    """Show what copying and a story cost without the strongest heads of a kind, or without others of their layers."""
    chart, bars = figure.subplots(1, 2, width_ratios=(1.25, 1))
    at = np.arange(len(COUNTS))
    chart.axhline(measures.GUESSING, color=plots.INK, lw=1, ls=":")
    chart.text(-0.1, measures.GUESSING + 0.15, f"guessing: ln 49,152 = {measures.GUESSING:.1f}", size=10.5)
    curves: list[tuple[Any, str, int | None]] = [
        (chart.plot(at, row[:, 1], color="#C9C9C9", lw=1.2)[0], "others", n)
        for n, row in enumerate(knocked_out("others", "zero"))
    ]
    for kind, colour in KINDS.items():
        name = "others (eight draws)" if kind == "others" else kind
        curves.append((chart.plot([0], [0], "o-", color=colour, ms=4, label=name)[0], kind, None))
    chart.legend(loc="lower right", bbox_to_anchor=(1, 0.31), fontsize=10.5)
    (dot,) = chart.plot([0], [0], "o", ms=13, color=plots.ORANGE, clip_on=False)
    chart.set(xlabel="", ylabel="second copy, nats per token", ylim=(0, 14.5), xlim=(-0.2, 4.2))
    chart.set_xticks(at, [str(n) for n in COUNTS])
    names = ["first copy", "second copy", "a story"]
    whole = knocked_out("induction", "zero")[0, 0]
    bars.barh(names, whole, color="#D5D5D5", height=0.75)
    now = bars.barh(names, whole, color=plots.ORANGE, height=0.4)
    texts = [bars.text(0, y, "", va="center", size=11) for y in range(3)]
    bars.invert_yaxis()
    bars.set(xlim=(0, 19), xlabel="nats per token (grey: all heads)")
    bars.axvline(measures.GUESSING, color=plots.INK, lw=1, ls=":")
    label(figure)

    def update(kind: str, count: int, by: str) -> str:
        so_far = COUNTS.index(count) + 1
        draws = knocked_out(kind, by)
        row = np.median(draws[:, so_far - 1], axis=0)
        for curve, of, draw in curves:
            rows = knocked_out(of, by)
            path = np.median(rows, axis=0) if draw is None else rows[draw]
            curve.set_data(at[:so_far], path[:so_far, 1])
        dot.set_data([COUNTS.index(count)], [row[1]])
        for bar, text, value in zip(now, texts, row, strict=True):
            bar.set_width(value)
            text.set(text=f"{value:.1f}", x=max(value, 0.3) + 0.3)
        which = f"{count or 'no'} {kind if kind != 'others' else 'other'} head{'s' * (count != 1)}"
        put = "zeros" if by == "zero" else "their mean"
        chart.set_xlabel(f"heads of 270 whose outputs are {put}")
        chart.set_title(f"{which.capitalize()} off: copying costs {row[1]:.1f} nats")
        bars.set_title(f"…and a story {row[2]:.2f}, not {whole[2]:.2f}" if count else f"A story costs {row[2]:.2f}")
        some, middle = draws[:, so_far - 1, 1], np.median(draws, axis=0)[:so_far, 1]
        drawn = f" In eight draws it costs {some.min():.1f} to {some.max():.1f}." if kind == "others" and count else ""
        so_many = formats.each((f"{n}:" for n in COUNTS[:so_far]), middle, ".1f")
        return (
            f"… In the place of outputs stand {put}; guessing would cost {measures.GUESSING:.1f}.{drawn} The first "
            f"copy costs {row[0]:.1f}. The second by number of heads off: {so_many}. Stored results."
        )

    return update


# --- 5 · Where attention goes when there is nothing to copy -----------------------------------------------------------


@plots.still(9.8, 3.6)
def sink_plot(figure: "plots.Figure") -> str:
    """Draw how much attention the first token gets: by layer, by what token it is, and by the length of the text."""
    known: Any = stored()
    by_layer = known["sink_shares"].mean(axis=1)
    share = float(known["sink_shares"].mean())
    layers, words, lengths = figure.subplots(1, 3, width_ratios=(1.15, 1.1, 1.15))
    layers.bar(range(len(by_layer)), by_layer, color=plots.BLUE)
    layers.set(xlabel="layer", ylabel="weight on the first token", ylim=(0, 1))
    layers.set_title(f"The first token gets\n{share:.0%} of all attention")
    hidden = float(known["sink_hidden"].mean(axis=(0, 1))[1])
    names = [f"“{readable(str(word))}”" for word in known["sink_words"]] + ["the 2nd,\n1st hidden"]
    heights = [*known["sink_by_word"], hidden]
    words.barh(names, heights, color=[plots.BLUE] * (len(names) - 1) + [plots.ORANGE])
    for y, height in enumerate(heights):
        words.text(height + 0.01, y, f"{height:.0%}", va="center", size=10.5)
    words.invert_yaxis()
    words.set(xlim=(0, 0.6), xlabel="share of all attention", xticks=(0, 0.2, 0.4))
    words.set_title(f"Four others get {min(heights[1:-1]):.0%}\nto {max(heights[:-1]):.0%} in its place")
    sizes, in_a_chat = known["first_lengths"][:-1], float(known["first_by_length"][-1, 0])
    by_text = known["first_by_text"]  # (texts, lengths)
    for text, marker in zip(by_text, "os^D", strict=True):
        lengths.plot(range(len(sizes)), text, marker + "-", color=plots.BLUE, lw=1, ms=6)
    lengths.plot([0.3], [in_a_chat], "*", color=plots.GREEN, ms=15)
    lengths.text(
        0.45, 0.62, f"a chat of {known['first_lengths'][-1]} tokens", va="center", size=10.5, color=plots.GREEN
    )
    lengths.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    lengths.set(xlim=(-0.3, len(sizes) - 0.7), ylim=(0, 0.68))
    lengths.set(xlabel="tokens of the text (four texts)", ylabel="share of all attention")
    lengths.set_title(
        f"{by_text[:, 0].min():.0%} to {by_text[:, 0].max():.0%} of {sizes[0]} tokens,\n"
        f"{by_text[:, -1].min():.0%} to {by_text[:, -1].max():.0%} of {sizes[-1]}"
    )
    label(figure)
    listed = formats.each((repr(str(word)) for word in known["sink_words"]), known["sink_by_word"], ".0%")
    by_size = ", ".join(
        f"{size}: {shares.min():.0%} to {shares.max():.0%}" for size, shares in zip(sizes, by_text.T, strict=True)
    )
    return (
        f"… With another first token: {listed}. With it hidden, "
        f"the second gets {hidden:.0%}. By length of the text, in four texts: {by_size}; in a chat of "
        f"{known['first_lengths'][-1]} tokens {in_a_chat:.0%}. Stored results."
    )


HIDDEN = (
    "as it is",
    "first token hidden\nfrom the start",
    "first token hidden\nfrom the middle",
    "…and one in the middle\nsees only itself",
)
HIDDEN_COLOURS = plots.BLUE, plots.PURPLE, plots.ORANGE, plots.GREEN


@plots.still(9.8, 4.7)
def hiding_plot(figure: "plots.Figure") -> str:
    """Draw where the weight of the second half of a page goes if the first token is hidden, in three ways."""
    known: Any = stored()
    shares, norms, lost = known["first_shares"], known["first_norms"], known["first_lost"]
    half = shares.shape[1] // 2
    shown = np.array([0, 1, 2, 3, half - 1, half, half + 1, half + 2])
    at = np.array([0, 1, 2, 3, 5, 6, 7, 8])  # with a gap for the tokens between
    grid = figure.subplots(2, 4, sharey="row")
    told = []
    for case, (name, colour) in enumerate(zip(HIDDEN, HIDDEN_COLOURS, strict=True)):
        top, below = grid[:, case]
        top.bar(at, norms[case, shown] / 1000, color=colour)
        below.bar(at, shares[case, shown], color=colour)
        for ax in (top, below):
            ax.set_xticks(at, [str(n) for n in shown], size=10)
            ax.text(4, 0, "…", ha="center", va="bottom")
        below.set(ylim=(0, 0.42), xlabel="position")
        n, longest = int(shares[case].argmax()), int(norms[case].argmax())
        rise = lost[case] - lost[0]
        top.set_title(name[0].upper() + name[1:] + ("\n" if case == 0 else ""), size=11)
        below.set_title(f"{shares[case, n]:.0%} on token {n}:\n{lost[case]:.2f} nats", size=11)
        told.append(
            f"{name.replace(chr(10), ' ')}: {rise:+.2f} nats per token, most weight, {shares[case, n]:.0%}, on "
            f"token {n}, longest vector, {norms[case, longest]:,.0f}, at token {longest}"
        )
    grid[0, 0].set_ylabel("length of the stream\nafter 15 layers, thousands")
    grid[1, 0].set_ylabel("weight of the\nsecond half's queries")
    label(figure)
    return (
        f"Hidden from the start, the first token costs {lost[1] - lost[0]:.2f} nats per token; hidden from the middle "
        f"on, {lost[2] - lost[0]:.2f}; with another token that sees only itself, {lost[3] - lost[0]:.2f}. "
        f"{'; '.join(told)}. The median token has a length of {np.median(norms[0]):.0f}. Stored results."
    )


def hidden_table() -> tables.Table:
    """List how far the last prediction of three sentences moves when their first token is hidden."""
    known: Any = stored()
    sentences = (f"{str(text)[:18]} … {str(text)[-20:]}" for text in known["first_sentences"])
    rows = [(text, *moved) for text, moved in zip(sentences, known["first_moved"], strict=True)]
    return tables.table(("nats, hidden from the …", "start", "middle", "last query"), rows)


@plots.still(9.0, 3.9)
def effect_plot(figure: "plots.Figure") -> str:
    """Weight is not effect: how much attention a token gets, and what changes when it is hidden."""
    known: Any = stored()
    tokens, weight, moved = (known[f"effect_{name}"] for name in ("tokens", "weight", "moved"))
    ax = figure.add_subplot()
    ax.plot(weight, moved, "o", color=plots.BLUE, ms=8)
    strong = set(np.argsort(-moved)[:4].tolist()) | {0, int(np.argsort(-weight)[1])}
    for n in strong:
        right = weight[n] > 0.5 * weight.max()
        ax.annotate(
            readable(str(tokens[n])),
            (weight[n], moved[n]),
            (-9 if right else 9, 6),
            textcoords="offset points",
            ha="right" if right else "left",
            weight="bold",
        )
    ax.set(
        xlim=(0, 1.06 * weight.max()),
        ylim=(-0.04 * moved.max(), 1.15 * moved.max()),
        xlabel="weight of the last token on it, mean over all heads",
        ylabel="change of the prediction\nwhen it is hidden, nats",
    )
    best = int(moved.argmax())
    ax.set_title(
        f"{weight[0]:.0%} of the weight is on “{readable(str(tokens[0]))}”, the largest effect is "
        f"“{readable(str(tokens[best]))}”"
    )
    label(figure)
    listed = "; ".join(f"{str(t)!r} {w:.3f}, {m:.2f}" for t, w, m in zip(tokens, weight, moved, strict=False))
    return (
        f"… Hiding the first token changes {moved[0]:.2f} nats, hiding {str(tokens[best])!r} {moved[best]:.2f}. Weight "
        f"and change: {listed}. Stored results."
    )


# --- 5 · What may it forget? ------------------------------------------------------------------------------------------

FORMS = {  # the window last: with it, all three controls change something
    "bits": ("{} bits", "bits a number", "bits", (None, 8, 6, 4, 3, 2)),
    "best keys": ("sees its {} best", "best keys kept", "best", (None, 32, 16, 8, 4, 2)),
    "window": ("sees the last {}", "keys in the window", "window", (None, 128, 64, 32, 16, 8)),
}
WHOLE = {"window": "Sees all", "best keys": "Weighs all", "bits": "Keeps all bits"}
PASSAGE = slice(-44, None)  # the tokens that are shown
LINE_LENGTH = 46  # characters


def story_nats(what: str, amount: Any, first: int = 0) -> Array:
    """−log p of the tokens of the story's page, stored."""
    kept: Array = stored()[f"forget_{FORMS[what][2]}_{amount}_{first if what == 'window' else 0}"].astype(np.float64)
    return kept


@live.lab(
    width=9.8,
    height=4.3,
    neutral="Nothing is forgotten at first, and curves are drawn as far as the step.",
    telling={"what": "window", "step": 2, "first": 1},
    what=live.Choice("forget by", tuple(FORMS), "window"),
    step=live.Slider("how much", 0, 5, 0),
    first=live.Choice("first tokens kept (window)", measures.KEPT_FIRST, 0),
)
def forget_lab(figure: "plots.Figure") -> live.Update:
    """Show what attention may forget: perplexity by how much, and the passage with the probability of each token."""
    chart, page = figure.subplots(1, 2, width_ratios=(1, 1.35))
    at = np.arange(6)
    curves = {
        (what, first): np.array([np.exp(story_nats(what, amount, first).mean()) for amount in FORMS[what][3]])
        for what in FORMS
        for first in measures.KEPT_FIRST
    }
    whole = curves["window", 0][0]
    chart.axhline(whole, color=plots.INK, lw=1, ls=":")
    lines = [chart.plot(at, curves["window", first], "o-", ms=4)[0] for first in measures.KEPT_FIRST]
    (dot,) = chart.plot([0], [whole], "o", ms=12, color=plots.ORANGE, clip_on=False)
    chart.set_yscale("log")
    chart.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    chart.minorticks_off()
    top = 1.4 * max(curve.max() for curve in curves.values())
    chart.set(ylabel="perplexity", ylim=(0.8 * whole, top), xticks=at, xlim=(-0.2, 5.2))
    ticks = [chart.text(x, -0.03, "", ha="center", va="top", transform=chart.get_xaxis_transform()) for x in at]
    chart.set_xticks(at, [""] * 6)
    name = chart.text(0.5, -0.14, "", ha="center", va="top", transform=chart.transAxes)
    tokens = [str(token) for token in stored()["page"][PASSAGE]]
    bars = laid_out(page, tokens)
    label(figure)

    def update(what: str, step: int, first: int) -> str:
        says, axis, _, amounts = FORMS[what]
        amount = amounts[step]
        for line, kept in zip(lines, measures.KEPT_FIRST, strict=True):
            line.set_visible(kept <= first if what == "window" else kept == 0)
            line.set_data(at[: step + 1], curves[what, kept][: step + 1])
            chosen = kept == first or what != "window"
            line.set_color(plots.BLUE if chosen else "#B8CFE0")
        for tick, number in zip(ticks, amounts, strict=True):
            tick.set_text(("32" if what == "bits" else "all") if number is None else str(number))
        name.set_text(f"{axis} (pale: fewer first tokens kept)" if what == "window" and first else axis)
        lost = curves[what, first][step]
        dot.set_data([step], [lost])
        p = np.exp(-story_nats(what, amount, first)[PASSAGE])
        for bar, share in zip(bars, p, strict=True):
            bar.set_height(-0.5 * share)
        kept_too = f" and the first{f' {first}' if first > 1 else ''}" if what == "window" and first else ""
        done = (WHOLE[what] if amount is None else says.format(amount).capitalize()) + kept_too
        chart.set_title(
            f"{done}:\nperplexity {lost:.0f}, not {whole:.0f}" if amount else f"{done}:\nperplexity {lost:.0f}"
        )
        page.set_title(f"{int((p < 0.01).sum())} of these {len(p)} tokens are a surprise (p < 1 %)", size=11.5)
        surprises = ", ".join(repr(token) for token, share in zip(tokens, p, strict=True) if share < 0.01) or "none"
        return f"… Their mean probability is {p.mean():.2f}. Below 1 %: {surprises}. Stored results."

    return update


def laid_out(ax: Any, tokens: list[str]) -> list[Any]:
    """Write the passage in lines, with a bar below each token for its probability, and return the bars."""
    from matplotlib.patches import Rectangle

    rows: list[list[str]] = [[]]
    for token in tokens:
        if sum(map(len, rows[-1])) + len(token) > LINE_LENGTH and token.startswith(" "):
            rows.append([])
        rows[-1].append(token.replace("\n", " "))
    bars = []
    for y, row in enumerate(rows):
        x = 0
        for text in row:
            start, x = x + len(text) - len(text.lstrip(" ")), x + len(text)
            ax.text(start, y + 0.36, readable(text, 20), family="monospace", size=12.5, va="bottom", zorder=0.5)
            ax.plot([start, x], [y + 0.9, y + 0.9], color=plots.GREY, lw=0.8, zorder=0.5)
            bars.append(
                ax.add_patch(Rectangle((start, y + 0.9), max(x - start - 0.15, 0.5), 0, color=plots.BLUE, lw=0))
            )
    ax.set(xlim=(0, LINE_LENGTH + 3), ylim=(len(rows), 0), xticks=(), yticks=())  # y points down
    ax.spines[:].set_visible(False)
    return bars


@plots.still(9.6, 3.8)
def windows_plot(figure: "plots.Figure") -> str:
    """Draw what a window costs: on three texts, and on a text that says the same thing twice."""
    known: Any = stored()
    names = [str(name) for name in known["windows"]]
    lost = np.exp(known["windows_lost"])  # (ways, [three texts, repeat])
    texts = ["story", "report", "manual", "the same 100\ntokens again"]
    axes = figure.subplots(1, 4)
    rows, colours = np.arange(len(names)), [plots.GREY, *[plots.ORANGE] * 3, *[plots.BLUE] * 2]
    for n, (ax, text) in enumerate(zip(axes, texts, strict=True)):
        ax.barh(rows, lost[:, n], 0.7, color=colours)
        for y, value in zip(rows, lost[:, n], strict=True):
            ax.text(
                value + 0.03 * max(lost[:, n]),
                y,
                f"{value:.1f}" if value < 10 else f"{value:.0f}",
                va="center",
                size=10.5,
            )
        ax.set(xlim=(0, 1.25 * max(lost[:, n])), xticks=(0,))
        ax.set_yticks(rows, names if n == 0 else [""] * len(names))
        ax.invert_yaxis()
        ax.set_title(text, size=11.5)
    sink, best = names.index("window 64, first"), names.index("16 best keys")
    figure.suptitle(
        f"Perplexity. A window of 64 with the first token: a story {lost[0, 0]:.0f} → {lost[sink, 0]:.0f},\n"
        f"but a text that refers back {lost[0, 3]:.1f} → {lost[sink, 3]:.0f}. The 16 best keys: {lost[best, 3]:.1f}.",
        x=0.01,
        ha="left",
        size=12,
        weight="bold",
    )
    label(figure)
    listed = "; ".join(
        f"{name}: {', '.join(f'{value:.1f}' for value in row)}" for name, row in zip(names, lost, strict=True)
    )
    return (
        f"A window of 64 with the first token changes the perplexity of a story from {lost[0, 0]:.1f} to "
        f"{lost[sink, 0]:.1f}, and that of a repeated passage from {lost[0, 3]:.2f} to {lost[sink, 3]:.1f}. "
        f"On story, report, manual and repeat: {listed}. Stored results."
    )


@plots.still(8.4, 3.7)
def divisor_plot(figure: "plots.Figure") -> str:
    """Draw perplexity with the scores divided by another number than √d_k, on three texts, relative to √d_k."""
    known: Any = stored()
    factors, lost = known["divisors"], np.exp(known["divisors_lost"])  # (factors, texts)
    usual = lost[int(np.argmax(factors == 1))]
    rise = 100 * (lost / usual - 1)
    ax = figure.add_subplot(xlabel="scores divided by √d$_k$ times …", ylabel="perplexity above that of √d$_k$, %")
    for text, colour, row in zip(
        ("story", "report", "manual"), (plots.BLUE, plots.ORANGE, plots.GREEN), rise.T, strict=True
    ):
        ax.plot(factors, row, "o-", color=colour, ms=5, label=f"{text}, best at {factors[row.argmin()]:g}")
    ax.axhline(0, color=plots.GREY, lw=1)
    ax.set_xscale("log", base=2)
    ax.set_xticks(
        [0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2], ["0.5", "0.7", "0.8", "0.9", "1", "1.1", "1.25", "1.5", "2"]
    )
    ax.minorticks_off()
    ax.set(xlim=(0.47, 2.1), ylim=(-12, 110))
    ax.legend(loc="upper center")
    least = float(-rise.min())
    ax.set_title(f"√d$_k$ is within {np.ceil(least):.0f} % of the best of {len(factors)} divisors on each text")
    label(figure)
    listed = "; ".join(
        f"{factor:g}: {', '.join(f'{value:.1f}' for value in row)}" for factor, row in zip(factors, lost, strict=True)
    )
    best = ", ".join(f"{factors[row.argmin()]:g}" for row in lost.T)
    return (
        f"The root of d_k is within {least:.1f} % of the best divisor on three texts; the best factors are {best}. "
        f"Perplexity of story, report and manual by factor: {listed}. Stored results."
    )
