"""What notebook 09 calls `lab.name`, in its order: live figures, figures, and tables of the real model."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, live, plots, tables
from lesson_utils.classroom.drawings import drawable
from lesson_utils.lessons.real_model import grown, measures
from lesson_utils.lessons.real_model.chatting import answer, chat, load
from lesson_utils.lessons.real_model.grown import (
    by_hand,
    chain_drawn,
    circuits_plot,
    copied,
    cut,
    forced,
    forced_plot,
    grow,
    moved,
    pairs_table,
    repeats,
    trap_plot,
)
from lesson_utils.lessons.real_model.measures import label, logits_of, stored, wrote
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.layers import Attend
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import HeadsOf
from lesson_utils.maths.models.gpt import see_past
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
    width=9.4,
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
    """Return the scores of SmolLM2's heads, which are stored, and their maps: of any sentence, if the model is here."""
    known = stored()
    sentence = str(known["sentence"])
    if p is None:
        tokens, maps = [str(t) for t in known["tokens"]], known["maps"] / np.float32(255)
        return Census(known["scores_real"], known["scores_random"], sentence, lambda text: (tokens, maps), True)

    @lru_cache(16)
    def look(text: str) -> tuple[list[str], Array]:
        ids = p.tokenizer.encode(text or sentence)[:MOST_TOKENS]
        return p.tokenizer.tokens(ids), measures.all_maps(p.model, ids[None])[0]

    return Census(known["scores_real"], known["scores_random"], sentence, look, False)


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
    width=9.4,
    height=4.1,
    controls=_census_controls,
    prepare=_found,
    example=lambda: (None,),
    neutral="The heads are scored by their entropy at first, which tells nothing of induction heads.",
    telling={"score": "induction", "layer": 18, "head": 6},
)
def census_lab(figure: "plots.Figure", found: Census) -> live.Update:
    """Show all heads by one of five scores, beside untrained ones; and the map of the chosen head on a sentence."""
    trained, untrained, page = figure.subplots(1, 3, width_ratios=(1.25, 1.25, 3.6))
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
        trained.set_title(fill(f"{many} of {found.real[n].size} heads {SAYS[score]}", 28), size=11.5)
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


def without(p: Pretrained | None, heads: dict[int, list[int]], replace: Any) -> str:
    """Tell what the second of two copies of 40 random tokens costs without heads, by a learner's function."""
    off, whole = stored()["without_first"], stored()["wire"][0]
    if p is not None:
        ids = copies_for(p)
        off = [measures.copying(p.model, ids, knock_out=heads, by=by, replace=replace)[1] for by in ("zero", "mean")]
        whole = measures.copying(p.model, ids)[1]
    return f"without {heads} the copy costs {off[0]:.1f} nats (zero), {off[1]:.1f} (mean); else {whole:.1f}"


def copies_for(p: Pretrained, period: int = measures.COPIED) -> Ids:
    """Return two sequences of random tokens, each said twice."""
    return measures.copies(np.random.default_rng(7), len(p.tokenizer), 2, period)


SPACINGS = (10, 20, 40, 80)


def spacings_table(p: Pretrained | None, score: Callable[[Array, int], Array]) -> tables.Table:
    """List how many heads pass, and the scores of the five in the layers 17 and 18, with other numbers of tokens."""
    found = stored()["spacings"]
    if p is not None:
        found = np.array([score(measures.all_maps(p.model, copies_for(p, n)), n).mean(axis=0) for n in SPACINGS])
    five = [(layer, head) for layer, heads in measures.READERS.items() for head in heads]
    rows = [
        (str(n), int((of > LOWEST["induction"]).sum()), *(of[head] for head in five))
        for n, of in zip(SPACINGS, found, strict=True)
    ]
    return tables.table(("tokens, said twice", "heads > 0.3", *(f"{a}.{b}" for a, b in five)), rows)


# --- 4 · Cut the wire, and move the message ---------------------------------------------------------------------------


def wire_table(p: Pretrained | None, inputs: measures.Inputs) -> tables.Table:
    """List what the copy costs if heads lack one input's part, by the learner's function; with three controls."""
    names = (
        "nothing missing",
        *(f"16.0 missing in the {into}" for into in measures.INPUTS),
        "16.0 missing in the keys, with its detour",
        "16.0 missing in the keys of five other heads",
        "11.1 missing in the keys",
        "the first copy",
    )
    costs = stored()["wire"] if p is None else wire_costs(p, inputs)
    return tables.table(("", "nats per token of the copy"), zip(names, costs, strict=True), ".1f")


def wire_costs(p: Pretrained, inputs: measures.Inputs) -> Array:
    """Measure them, on two sequences of random tokens."""
    ids, keys = copies_for(p), {"inputs": partial(inputs, into="keys")}
    first, whole = measures.copying(p.model, ids)
    ways: list[dict[str, Any]] = [{"inputs": partial(inputs, into=into)} for into in measures.INPUTS]
    ways += [keys | {"detour": True}, keys | {"readers": measures.OTHERS}, keys | {"head": (11, 1)}]
    return np.array([whole, *(measures.copy_without(p.model, ids, **way) for way in ways), first])


def moved_table(p: Pretrained | None, keys_moved: Callable[[int], measures.Inputs]) -> tables.Table:
    """List where the five heads look, and what the model says, if what 16.0 has written stands elsewhere in their keys.

    keys_moved: places → a function that makes the inputs, as in the notebook.
    """
    found = stored()["moved_says"] if p is None else moved_says(p, keys_moved)
    names = ("16.0 as it writes", "16.0 taken out", "16.0 one place later", "16.0 ten places later", "11.1 one later")
    rows = [(name, *row[:4], *(f"{share:.0%}" for share in row[4:])) for name, row in zip(names, found, strict=True)]
    columns = ("weight: answer", "next", "nats: answer", "next", "says: answer", "next")
    return tables.table(("what the keys hear", *columns), rows, ("", ".2f", ".2f", ".1f", ".1f", "", ""))


def moved_says(p: Pretrained, keys_moved: Callable[[int], measures.Inputs]) -> Array:
    """Measure them: (ways, [weights, nats, shares])."""
    ids, makes = copies_for(p), (keys_moved(0), measures.patched_inputs, keys_moved(1), keys_moved(10))
    found = [measures.moved(p.model, ids, make) for make in makes]
    return np.array([*found, measures.moved(p.model, ids, keys_moved(1), (11, 1))])


def passages_table(p: Pretrained | None, passage: str) -> tables.Table:
    """List what the same cut costs where a passage of text is said twice, not random tokens; with two controls."""
    rows = list(zip(("random tokens", "a story", "a report", "a manual"), *stored()["passages"].T, strict=True))
    if p is not None:
        rows.append(("your passage", *passage_nats(p, p.tokenizer.encode(passage)[None])))
    head = ("nats per token", "once", "said twice", "16.0 cut", "nine heads off", "shuffled before")
    return tables.table(head, rows, ".1f")


def passage_nats(p: Pretrained, once: Ids) -> list[float]:
    """Return the nats per token of ids said once, and of a second copy: whole, cut, without heads, after a shuffle."""
    length, twice = once.shape[1], np.tile(once, 2)
    shuffled = np.concatenate([np.random.default_rng(0).permuted(once, axis=1), once], axis=1)
    whole = measures.losses(p.model, twice)
    nine = measures.losses(p.model, twice, knock_out=strongest(9))
    return [
        float(whole[:, : length - 1].mean()),
        float(whole[:, length - 1 :].mean()),
        measures.copy_without(p.model, twice),
        float(nine[:, length - 1 :].mean()),
        float(measures.losses(p.model, shuffled)[:, length - 1 :].mean()),
    ]


def strongest(count: int) -> dict[int, list[int]]:
    """Return SmolLM2's strongest induction heads, as `knock_out` takes them: {layer: [heads]}."""
    scores = stored()["scores_real"][measures.SCORES.index("induction")]
    chosen: dict[int, list[int]] = {}
    for number in np.argsort(-scores, axis=None)[:count].tolist():
        chosen.setdefault(number // scores.shape[1], []).append(number % scores.shape[1])
    return chosen


# Invented: no text can have told the model who they are.
PEOPLE = tuple(str(name) for name in stored()["names_people"])
TEXT = (
    "The village hired {name} to repair the old bridge. The work took a whole summer, and in the autumn the first "
    "cart rolled across the river. There was music, and a table with bread and apples for all. The mayor stood up, "
    "raised a glass, and thanked {first}"
)


def prompt(name: str, told: bool = True) -> str:
    """Return a text that ends with the first name; unless `told`, the text has not mentioned the last name before."""
    first = name.split()[0]
    return TEXT.format(name=name if told else first, first=first)


def surname_of(name: str) -> str:
    """Return the last name of a person."""
    if len(name.split()) < 2:
        raise ValueError(f"name={name!r} has no surname; expected a first name and a surname, such as 'Ilse Brandt'")
    return name.split(maxsplit=1)[1]


def surname_nats(p: Pretrained, name: str, told: bool = True, knock_out: HeadsOf | None = None) -> float:
    """Return −log p of the last name, all its pieces together, after a text that ends with the first name."""
    ids: Ids = p.tokenizer.encode(prompt(name, told))
    whole = np.concatenate([ids, p.tokenizer.encode(" " + surname_of(name))])[None]
    return float(measures.losses(p.model, whole, knock_out=knock_out)[0, len(ids) - 1 :].sum(dtype=np.float64))


def names_table(p: Pretrained | None, name: str) -> tables.Table:
    """List what a surname costs that the text has told, with heads off: of ten people, and of the learner's."""
    known, rows = stored(), []
    ways: dict[str, tuple[str, HeadsOf | None]] = {
        "all": ("all heads", None),
        "others": ("4 other heads off (8 draws)", None),
        "nine_others": ("9 other heads off (8 draws)", None),
        "first": ("16.0 off", {16: [0]}),
        "four": ("4 induction heads off", strongest(4)),
        "nine": ("9 induction heads off", strongest(9)),
        "untold": ("surname never told", None),
    }
    for key, (text, off) in ways.items():
        nats = np.atleast_2d(known[f"names_{key}"]).mean(axis=0)  # of draws
        row = [text, nats.mean(), f"{(nats - known['names_all'] > 1).sum()} of {len(nats)}"]
        if p is not None:
            row.append("" if "others" in key else f"{surname_nats(p, name, key != 'untold', off):.1f}")
        rows.append(row)
    columns = ("surprise, nats", "ten surnames", "over a nat more", surname_of(name))
    return tables.table(columns[: len(rows[0])], rows, ".1f")


# --- Direct logit attribution: which heads write a surname ------------------------------------------------------------


class Parts(NamedTuple):
    """The parts of the last token's final stream.

    heads: (layers, heads, d_model). others: what the embedding and each feed-forward network have added,
    (1 + layers, d_model). stream: their sum, (d_model,).
    """

    heads: Array
    others: Array
    stream: Array


def parts(model: GPT, ids: Ids) -> Parts:
    """Take the final stream of the last token apart; ids are (1, T)."""
    x, _ = model.tokens.forward(ids)
    mask = see_past(ids.shape[1], ids.shape[1], x.dtype)
    heads, others = [], [x[0, -1]]
    for block in model.stack.blocks:
        below, (x, cache) = x, block.forward(x, mask)
        written = [measures.written_by(block, cache, head)[0, -1] for head in range(model.config.num_heads)]
        heads.append(np.stack(written))
        others.append(x[0, -1] - below[0, -1] - heads[-1].sum(axis=0))
    return Parts(np.stack(heads), np.stack(others), x[0, -1])


def surname_rows(p: Pretrained, name: str) -> tuple[Array, Array]:
    """Return the rows of the table of embeddings for a surname, (d_model,), and for those of the other people."""
    own, *others = (int(p.tokenizer.encode(" " + surname_of(who))[0]) for who in (name, *PEOPLE))
    table = p.model.tokens.embedding.table.value
    return table[own], table[[other for other in others if other != own]]


WRITERS = ((23, 2), (29, 1), (23, 1), (23, 7), (18, 6), (16, 0), (24, 4))
FROM = 16  # the lowest layer whose heads were switched off


def writes_table(p: Pretrained | None, name: str, ahead: Callable[..., Any]) -> tables.Table:
    """List how far heads push a surname ahead of nine others, and what is lost without them.

    ahead: as in the notebook. With the model, also for the learner's name.
    """
    known = stored()
    pushed, lost = (known[key].astype(float).mean(axis=0) for key in ("writes_direct", "writes_cost"))
    rows: list[list[object]] = [
        [f"{a}.{b}", pushed[a, b], formats.minus(f"{lost[a - FROM, b]:+.1f}")] for a, b in WRITERS
    ]
    rows.append(["everything together", float(known["writes_ahead"].mean()), ""])
    if p is not None:
        found, (own, others) = parts(p.model, p.tokenizer.encode(prompt(name))[None]), surname_rows(p, name)
        gamma = np.asarray(p.model.stack.norm.gamma.value)  # type: ignore[union-attr]
        of = [found.heads[head] for head in WRITERS] + [found.stream]
        for row, part in zip(rows, of, strict=True):
            row.append(float(ahead(part, found.stream, gamma, own, others)))
    columns = ("logits ahead", "it writes (ten names)", "lost without it", f"it writes ({surname_of(name)})")
    return tables.table(columns[: len(rows[0])], rows, "+.1f")


# --- 5 · Where attention goes when there is nothing to copy -----------------------------------------------------------


HIDDEN = (
    "as it is",
    "first token hidden\nfrom the start",
    "first token hidden\nfrom the middle",
    "…and one in the middle\nsees only itself",
)
HIDDEN_COLOURS = plots.BLUE, plots.PURPLE, plots.ORANGE, plots.GREEN


def page_of(p: Pretrained, text: str = measures.STORY) -> Ids:
    """Return a page of a text, (1, PAGE + 1), which is said again where it is too short."""
    ids: Ids = p.tokenizer.encode(text)
    return np.resize(ids, measures.PAGE + 1)[None]


@plots.still(9.8, 4.7)
def hiding_plot(figure: "plots.Figure", p: Pretrained | None, text: str = measures.STORY) -> str:
    """Draw where the weight of the second half of a page goes if the first token is hidden, in three ways."""
    known: Any = stored()
    lost, shares, norms = known["first_lost"], known["first_shares"], known["first_norms"]
    if p is not None:
        lost, shares, norms = measures.hidden(p.model, page_of(p, text))
    half = measures.HALF
    shown = np.array([0, 1, 2, 3, half - 1, half, half + 1, half + 2])
    at = np.array([0, 1, 2, 3, 5, 6, 7, 8])  # with a gap for the tokens between
    grid = figure.subplots(2, 4, sharey="row")
    told = []
    for case, (name, colour) in enumerate(zip(HIDDEN, HIDDEN_COLOURS, strict=True)):
        for ax, values in zip(grid[:, case], (norms[case] / 1000, shares[case]), strict=True):
            ax.bar(at, values[shown], color=colour)
            ax.set_xticks(at, [str(n) for n in shown], size=10)
            ax.text(4, 0, "…", ha="center", va="bottom")
        n, longest = int(shares[case].argmax()), int(norms[case].argmax())
        grid[0, case].set_title(name[0].upper() + name[1:] + ("\n" if case == 0 else ""), size=11)
        grid[1, case].set_title(f"{shares[case, n]:.0%} on token {n}:\n{lost[case]:.2f} nats", size=11)
        grid[1, case].set_xlabel("position")
        told.append(
            f"{name.replace(chr(10), ' ')}: {lost[case] - lost[0]:+.2f} nats per token, most weight, "
            f"{shares[case, n]:.0%}, on token {n}, longest vector, {norms[case, longest]:,.0f}, at token {longest}"
        )
    grid[0, 0].set_ylabel(f"length of the stream\nafter {measures.DEPTH} layers, thousands")
    grid[1, 0].set_ylabel("weight of the\nsecond half's queries")
    if p is None:
        label(figure)
    return f"{'; '.join(told)}. The median token has a length of {np.median(norms[0]):.0f}."


def sink_table(p: Pretrained | None, emptied: Attend, borrowed: Attend) -> tables.Table:
    """List what the second half of a text costs with its first token hidden, emptied, or lent by another text.

    With the model, the story is measured here, with the learner's cell; the other texts are stored.
    """
    found = stored()["sink"].copy()
    if p is not None:
        found[0] = measures.sink(p.model, page_of(p), page_of(p, TEXT), emptied, borrowed)
    rows = [
        (name, whole, *(round(x - whole, 2) + 0.0 for x in rest), (rest[0] - rest[1]) / (rest[0] - whole))
        for name, (whole, *rest) in zip(("a story", "a report", "a manual"), found, strict=True)
    ]
    head = ("nats per token", "as it is", "hidden before", "emptied", "borrowed", "has nowhere to go")
    return tables.table(head, rows, ("", ".2f", "+.2f", "+.2f", "+.2f", ".0%"))


def lengths_table() -> tables.Table:
    """List the share of all attention that the first token gets, by the length of the text, in four texts."""
    sizes = stored()["first_lengths"][:-1]
    rows = [(f"text {n + 1}", *row) for n, row in enumerate(stored()["first_by_text"])]
    return tables.table(("weight on the first token", *(f"{size} tokens" for size in sizes)), rows, ".0%")


def rank_correlation(x: Array, y: Array) -> float:
    """Return Spearman's correlation, of the ranks."""
    ranks = [np.argsort(np.argsort(values)) for values in (x, y)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def effect_table(p: Pretrained | None, sentence: str) -> tables.Table:
    """Weight and effect: how much of the last token's attention others get, and what changes when each is hidden.

    Of seven stored sentences, and of the learner's if the model is here.
    """
    known, texts = stored(), [*measures.SENTENCES]
    found = [(known[f"weights_{n}"], known[f"effects_{n}"]) for n in range(len(texts))]
    if p is not None:
        found.append(measures.weight_and_effect(p.model, p.tokenizer.encode(sentence)[None, :48]))
        texts.append(sentence)
    rows = []
    for text, (weight, effect) in zip(texts, found, strict=True):
        best = int(effect[1:].argmax()) + 1  # among the others
        place = f"{int((weight[1:] > weight[best]).sum()) + 1} of {len(weight) - 1}"
        rank = rank_correlation(weight[1:], effect[1:])
        nats = f"{effect[0]:.2f}", f"{effect[best]:.2f}"
        rows.append((f"{' '.join(text.split()[:2])} …", weight[0], *nats, place, formats.minus(f"{rank:.2f}")))
    head = ("sentence", "first token's weight", "nats", "most nats of the others", "that weight's place", "ranks agree")
    return tables.table(head, rows, ".0%")
