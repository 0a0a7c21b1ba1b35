"""Break them: heads without which a name, a copy or a page is lost, and the wires between heads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import formats, plots, tables
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.measures import label, stored
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import HeadsOf
from lesson_utils.maths.models.gpt import see_past
from lesson_utils.maths.pretrained import Pretrained

# --- A name that was read once ----------------------------------------------------------------------------------------


# Invented: no text can have told the model who they are.
PEOPLE = (
    "Ilse Brandt",
    "Oskar Velling",
    "Marit Lundhaug",
    "Tomas Arkwell",
    "Nadia Ferrow",
    "Hugo Standish",
    "Greta Moorland",
    "Pavel Dorrick",
    "Lena Cassel",
    "Viktor Hallam",
)
TEXT = (
    "The village hired {name} to repair the old bridge. The work took a whole summer, and in the autumn the first "
    "cart rolled across the river. There was music, and a table with bread and apples for all. The mayor stood up, "
    "raised a glass, and thanked {first}"
)
BOTH = "{one} and {two}"  # in the place of the name, where the text has two people
AWAY = (1, 5)  # the other person stands so many places further in the list
ARRANGEMENTS = tuple(
    (away, first) for away in AWAY for first in (True, False)
)  # who is asked for is told first, or not
WORDS = "Varn, Ilse, gull, donkey, brass. Varn, Ilse, gull,"


def prompt(name: str, told: bool = True) -> str:
    """Return a text that ends with the first name; unless `told`, the text has not mentioned the last name before."""
    first = name.split()[0]
    return TEXT.format(name=name if told else first, first=first)


def surname_nats(
    p: Pretrained, name: str, told: bool = True, knock_out: HeadsOf | None = None, by: str = "zero"
) -> float:
    """Return −log p of the last name, all its pieces together, after a text that ends with the first name."""
    return _nats(p, prompt(name, told), surname_of(name), knock_out, by)


def surname_of(name: str) -> str:
    """Return the last name of a person."""
    if len(name.split()) < 2:
        raise ValueError(f"name={name!r} has no surname; expected a first name and a surname, such as 'Ilse Brandt'")
    return name.split(maxsplit=1)[1]


def _nats(p: Pretrained, text: str, surname: str, knock_out: HeadsOf | None, by: str = "zero") -> float:
    """Return −log p of a last name, all its pieces together, after a text."""
    ids: Ids = p.tokenizer.encode(text)
    whole = np.concatenate([ids, p.tokenizer.encode(" " + surname)])[None]
    nats = measures.losses(p.model, whole, knock_out=knock_out, by=by)[0, len(ids) - 1 :]
    return float(nats.sum(dtype=np.float64))


def of_two(p: Pretrained, name: str, other: str, first: bool, knock_out: HeadsOf | None = None) -> tuple[float, float]:
    """Return −log p of a person's own last name and of the other's, after a text that has told both.

    Args:
        first: the text tells this person first, and the other second; else the other way round.
    """
    one, two = (name, other) if first else (other, name)
    text = TEXT.format(name=BOTH.format(one=one, two=two), first=name.split()[0])
    return _nats(p, text, surname_of(name), knock_out), _nats(p, text, surname_of(other), knock_out)


ROWS = {
    "all": ("all heads", plots.INK, "o"),
    "others": ("4 others off (median of 8 draws)", plots.GREY, "o"),
    "first": ("16.0 off", plots.PURPLE, "D"),
    "four": ("4 induction heads off", plots.BLUE, "s"),
    "nine": ("9 induction heads off", plots.GREEN, "^"),
}


def of_both(name: str) -> Array:
    """Return −log p of a person's own and the other's surname: (draws, arrangements, people, 2)."""
    nats: Array = stored()[f"two_{name}"]
    return nats.reshape(-1, len(ARRANGEMENTS) if name != "untold" else len(AWAY), len(PEOPLE), 2)


def right_of_two(name: str) -> Array:
    """Return of how many people the own surname is likelier than the other's: (draws, arrangements)."""
    right: Array = (of_both(name)[..., 0] < of_both(name)[..., 1]).sum(axis=-1, dtype=np.float64)
    return right


def ahead_of_two(name: str) -> Array:
    """Return by how many nats the own surname is ahead of the other's, on average: (draws, arrangements).

    Some surnames are likelier than others in any text. Each surname is once "own" and once "other", so this cancels.
    """
    ahead: Array = np.diff(of_both(name), axis=-1).mean(axis=(-1, -2))
    return ahead


@plots.still(9.8, 4.7)
def names_plot(figure: "plots.Figure") -> str:
    """Draw how well the model recalls ten invented surnames, and whose they are, with all heads and without some."""
    known: Any = stored()
    people = [str(name) for name in known["names_people"]]
    nats, untold = {name: known[f"names_{name}"] for name in ROWS}, known["names_untold"]
    spread = nats["others"]
    nats["others"] = np.median(spread, axis=0)
    rows = np.arange(len(people))
    ax, means, two = figure.subplots(1, 3, width_ratios=(2, 1, 1))
    ax.plot(untold, rows, "|", color=plots.INK, ms=15, mew=2, label="surname never told")
    for name, (text, colour, marker) in ROWS.items():
        ax.plot(nats[name], rows, marker, color=colour, ms=8, label=text, alpha=0.9)
    ax.set_yticks(rows, people)
    ax.invert_yaxis()
    ax.set(xlabel="surprise at the surname, −ln p, nats", xlim=(0, None))
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.15), ncols=2, fontsize=10.5)
    rise = {name: nats[name] - nats["all"] for name in ROWS if name != "all"}
    worse = {name: int((of > 1).sum()) for name, of in rise.items()}
    ax.set_title(
        f"Without 4 induction heads {worse['four']} of {len(people)} names cost\n"
        "over a nat more, and stay far from untold",
        size=12,
    )
    order = list(rise)
    for n, name in enumerate(order):
        means.bar(n, rise[name].mean(), 0.6, color=ROWS[name][1], alpha=0.35)
        values = (spread - nats["all"]).mean(axis=1) if name == "others" else rise[name]
        means.plot(np.full(len(values), n), values, "o", color=ROWS[name][1], ms=5)
    nine_others = (known["names_nine_others"] - nats["all"]).mean(axis=1)
    means.plot(np.full(len(nine_others), len(order)), nine_others, "o", color=plots.GREY, ms=5)
    means.axhline(0, color=plots.GREY, lw=1)
    means.set_xticks(range(len(order) + 1), ["4\noth.", "16.0", "4\nind.", "9\nind.", "9\noth."], size=10)
    means.set(ylabel="nats more than with all heads")
    means.set_title(f"Nine off: {rise['nine'].mean():+.1f} nats\non average", size=12)
    whose = _draw_whose(two)
    label(figure)
    listed = "; ".join(
        f"{who} {', '.join(f'{nats[name][n]:.1f}' for name in ROWS)}, {untold[n]:.1f}" for n, who in enumerate(people)
    )
    return (
        f"Without four induction heads {worse['four']} of {len(people)} surnames cost more than a nat more, without "
        f"nine {worse['nine']}, without 16.0 {worse['first']}, without four others {worse['others']}. The mean rise is "
        f"{rise['four'].mean():.1f}, {rise['nine'].mean():.1f}, {rise['first'].mean():.1f} and "
        f"{rise['others'].mean():.1f} nats; a surname that was never told costs {untold.mean():.1f}, with all heads "
        f"{nats['all'].mean():.1f}. Nine other heads off, in eight draws: {nine_others.min():+.1f} to "
        f"{nine_others.max():+.1f}. {whose} With all heads, others off, 16.0 off, four off, nine off, "
        f"never told: {listed}. Stored results."
    )


def _draw_whose(ax: "plots.Axes") -> str:
    """Draw by how much the own surname is the likelier one, in a text with two people; and tell it."""
    names = ("all", "first", "four", "nine", "nine_others")
    ahead, told = {name: ahead_of_two(name) for name in (*names, "untold")}, []
    for n, name in enumerate(names):
        low, high = int(right_of_two(name).min()), int(right_of_two(name).max())  # of all arrangements and draws
        told.append(f"{ahead[name].mean():.1f} nats ({low}{f' to {high}' * (low < high)} of {len(PEOPLE)} ahead)")
        colour = ROWS[name][1] if name in ROWS else plots.GREY
        ax.bar(n, ahead[name].mean(), 0.6, color=colour, alpha=0.35)
        values = ahead[name].ravel() if len(ahead[name]) == 1 else ahead[name].mean(axis=1)
        ax.plot(np.full(len(values), n), values, "o", color=colour, ms=5)
    ax.axhline(0, color=plots.GREY, lw=1)
    ax.set_xticks(range(len(names)), ["all", "16.0", "4\nind.", "9\nind.", "9\noth."], size=10)
    ax.set_ylabel("ahead of the other, nats")
    ax.set_title(f"Whose? Nine off:\n{ahead['nine'].mean():.1f} nats, not {ahead['all'].mean():.1f}", size=12)
    return (
        f"In a text with two people, the right surname is ahead of the other's by {told[0]} with all heads, by "
        f"{told[1]} without 16.0, by {told[2]} without four and {told[3]} without nine induction heads, and by "
        f"{told[4]} without nine others; by {ahead['untold'].mean():.1f} if neither was told."
    )


def word_list() -> tables.Table:
    """List how the model goes on from a list of words, with all heads and without some."""
    known: Any = stored()
    rows = [(str(off), f"…{str(text)!r}") for off, text in zip(known["words_off"], known["words_written"], strict=True)]
    return tables.table((WORDS, "goes on"), rows)


def recalls(p: Pretrained, name: str) -> str:
    """Measure the recall of a name of your own: with all heads, without four induction heads, without 16.0."""
    surname, scores = surname_of(name), stored()["scores_real"]
    off = {"all heads": None, "4 induction heads off": measures.strongest(scores[3], 4), "16.0 off": {16: [0]}}
    lines = [f"…{prompt(name)[-40:]}"]
    for what, out in off.items():
        lines.append(f"{what:24} p({surname}) = {np.exp(-surname_nats(p, name, knock_out=out)):.4f}")
    return "\n".join(lines)


# --- Which input of the induction heads carries what the head before them writes --------------------------------------

NOTHING = "nothing"
READING = [f"{layer}.{head}" for layer, heads in measures.READERS.items() for head in heads]


def previous_heads() -> tuple[str, ...]:
    """Return the previous-token heads that can be taken out, strongest first."""
    return tuple(f"{layer}.{head}" for layer, head in stored()["path_heads"])


def wire_measured(head: str, into: str) -> tuple[Any, float]:
    """Return the readers' induction scores and the nats per token of the second copy, means of two sets of tokens."""
    known = stored()
    if into == NOTHING:
        return known["path_whole_scores"].mean(axis=0), float(known["path_whole_nats"].mean())
    at = previous_heads().index(head), measures.INPUTS.index(into)
    return known["path_scores"][at].mean(axis=0), float(known["path_nats"][at].mean())


def wire_table() -> tables.Table:
    """List what it costs to take each head out of each input; by the mean; and out of the keys of other heads."""
    known, first = stored(), previous_heads()[0]
    rows: list[tuple[object, ...]] = [
        (f"head {head}", *(wire_measured(head, into)[1] for into in measures.INPUTS)) for head in previous_heads()
    ]
    rows.append((f"head {first}, replaced by its mean", *known["path_mean_nats"].mean(axis=1)))
    control = known["path_control_nats"].mean(axis=1)
    spread = f"{control.min():.1f} to {control.max():.1f}"
    rows.append((f"head {first}, out of five other heads (8 draws)", "", spread, ""))
    rows.append(("nothing missing", *[wire_measured(first, NOTHING)[1]] * 3))
    return tables.table(("nats per token of the copy", *measures.INPUTS), rows, ".1f")


def moved_table() -> tables.Table:
    """List where the five heads look if what 16.0 has written stands one place later, or earlier, in their keys."""
    weights = stored()["moved_weights"].mean(axis=(1, 3))  # (moved, places from the answer)
    other = ".".join(map(str, stored()["path_heads"][1]))
    names = ("16.0 as it writes", "moved one place later", "moved one earlier", f"{other} moved one later")
    rows = zip(names, [*weights, stored()["moved_other"].mean(axis=(0, 2))], strict=True)
    head = ("weight of the five heads", "one earlier", "answer", "one later")
    return tables.table(head, [(name, *row) for name, row in rows])


def passages_table() -> tables.Table:
    """List what the same cut costs where a passage of text is said twice, not random tokens; with two controls."""
    names = ("random tokens", "a story", "a report", "a manual")
    rows = [(name, *row) for name, row in zip(names, stored()["passages"], strict=True)]
    head = ("nats per token", "once", "said twice", "16.0 cut", "nine heads off", "shuffled before")
    return tables.table(head, rows, ".1f")


def cut_real(
    p: Pretrained,
    head: tuple[int, int] = measures.PREVIOUS_HEAD,
    into: str = "keys",
    readers: Mapping[int, Sequence[int]] | None = None,
    inputs: measures.Inputs = measures.patched_inputs,
) -> str:
    """Take any head of the real model out of one input of others, on one set of random tokens."""
    ids = measures.copies(np.random.default_rng(7), len(p.tokenizer), 1)
    scores, nats = measures.copying_without(p.model, ids, head, into, readers, inputs=inputs)
    _, whole = measures.copying(p.model, ids)
    return (
        f"{head[0]}.{head[1]} missing in the {into}: induction scores {', '.join(f'{s:.2f}' for s in scores)}; "
        f"the copy costs {nats:.1f} nats per token, not {whole:.1f}"
    )


# --- Direct logit attribution: which heads write a surname, and what they make of what they read ----------------------

Ahead = Callable[[Array, Array, Array, Array, Array], Any]
FROM = 16  # the lowest layer whose heads are switched off: that of 16.0


class Parts(NamedTuple):
    """The parts of the last token's final stream, and the last token's maps.

    heads: (layers, heads, d_model). others: what the embedding and each feed-forward network have added,
    (1 + layers, d_model). stream: their sum, (d_model,). maps: (layers, heads, T).
    """

    heads: Array
    others: Array
    stream: Array
    maps: Array


def parts(model: GPT, ids: Ids) -> Parts:
    """Take the final stream of the last token apart; ids are (1, T)."""
    x, _ = model.tokens.forward(ids)
    mask = see_past(ids.shape[1], ids.shape[1], x.dtype)
    heads, others, maps = [], [x[0, -1]], []
    for block in model.stack.blocks:
        below, (x, cache) = x, block.forward(x, mask)
        written = [measures.written_by(block, cache, head)[0, -1] for head in range(model.config.num_heads)]
        heads.append(np.stack(written))
        others.append(x[0, -1] - below[0, -1] - heads[-1].sum(axis=0))
        maps.append(block.map(cache)[0, :, -1])
    return Parts(np.stack(heads), np.stack(others), x[0, -1], np.stack(maps))


def ahead(part: Array, stream: Array, gamma: Array, own: Array, others: Array) -> Array:
    """Return by how many logits parts of a stream, (..., d_model), put one token ahead of the mean of others.

    The scale of the final RMS norm stays that of the whole stream. own: the token's row of the table of embeddings,
    (d_model,). others: the rows of the others, (n, d_model).
    """
    scale = np.sqrt(np.mean(stream**2))
    pushed: Array = (part / scale * gamma) @ (own - others.mean(axis=0))
    return pushed


def first_pieces(p: Pretrained, people: tuple[str, ...] = PEOPLE) -> Ids:
    """Return the first token of each surname."""
    return np.array([p.tokenizer.encode(" " + surname_of(name))[0] for name in people])


def surname_rows(p: Pretrained, name: str) -> tuple[Array, Array]:
    """Return the rows of the table of embeddings for a surname, (d_model,), and for those of the other people."""
    own, others = first_pieces(p, (name,)), first_pieces(p)
    table = p.model.tokens.embedding.table.value
    return table[own][0], table[others[others != own[0]]]


def who_writes(p: Pretrained, name: str = "Ilse Brandt", count: int = 5, by: Ahead = ahead) -> str:
    """List the heads that push a surname most, by a function as `ahead`, and the sum of all parts."""
    model, ids = p.model, p.tokenizer.encode(prompt(name))[None]
    found, (own, others) = parts(model, ids), surname_rows(p, name)
    norm = model.stack.norm
    assert norm is not None

    def pushed(part: Array) -> float:
        return float(by(part, found.stream, np.asarray(norm.gamma.value), own, others))

    heads = np.array([[pushed(part) for part in layer] for layer in found.heads])
    width = heads.shape[1]
    best = np.argsort(-heads, axis=None)[:count]
    listed = formats.each((f"{n // width}.{n % width}" for n in best), heads.flat[best], "+.1f")
    rest = sum(pushed(part) for part in found.others)
    return (
        f"{name}: {listed}, other heads {heads.sum() - heads.flat[best].sum():+.1f}, "
        f"all else {rest:+.1f}; together {heads.sum() + rest:.1f}"
    )


# --- The picture and the table ----------------------------------------------------------------------------------------


def shown_heads() -> list[tuple[int, int]]:
    """Return the heads of the picture: four that push most, the readers of the wire, 16.0, and two that push back."""
    pushed = stored()["writes_direct"].astype(float).mean(axis=0)
    order = np.argsort(-pushed, axis=None).tolist()
    wire = [layer * 9 + head for layer, heads in (*measures.READERS.items(), (16, [0])) for head in heads]
    return [(n // 9, n % 9) for n in sorted({*order[:4], *wire, *order[-2:]}, key=order.index)]


def lost_without(layer: int, head: int, by: str = "zero") -> Array:
    """Return by how many logits each surname falls back without a head, by zeros or by its mean: (people,)."""
    fall: Array = stored()["writes_cost"][("zero", "mean").index(by), :, layer - FROM, head].astype(float)
    return fall


@plots.still(9.8, 4.8)
def writes_plot(figure: "plots.Figure") -> str:
    """Draw how far heads push a surname ahead of nine others, and how much of its lead is lost without them."""
    known: Any = stored()
    heads = shown_heads()
    at, names = np.arange(len(heads)), [f"{layer}.{head}" for layer, head in heads]
    pushed = np.array([known["writes_direct"][:, layer, head] for layer, head in heads]).astype(float)
    costs = np.array([lost_without(*head).mean() for head in heads])
    means = pushed.mean(axis=1)
    ax = figure.subplots()
    ax.barh(at, means, 0.7, color=plots.BLUE, alpha=0.35, label="it writes (dots: ten names)")
    ax.plot(pushed.ravel(), np.repeat(at, pushed.shape[1]), "o", color=plots.BLUE, ms=4, alpha=0.7)
    ax.plot(costs, at, "D", color=plots.ORANGE, ms=8, label="lost when it is off (mean of ten names)")
    ax.axvline(0, color=plots.GREY, lw=1)
    ax.set_yticks(at, names)
    ax.invert_yaxis()
    ax.set(xlabel="logits that the surname is ahead of nine others", ylabel="head")
    ax.legend(loc="lower right", fontsize=10.5)
    off = heads.index(measures.PREVIOUS_HEAD)
    ax.set_title(
        f"{names[0]} writes {means[0]:.1f} logits, and {costs[0]:.1f} are lost without it; "
        f"{names[off]} writes {means[off]:.1f}, and {costs[off]:.1f} are lost",
        size=12,
    )
    label(figure)
    listed = ", ".join(
        f"{name} {push:+.1f} and {cost:+.1f}" for name, push, cost in zip(names, means, costs, strict=True)
    )
    return (
        "How many logits each head puts the surname ahead of nine others, and how many are lost when the head is off, "
        f"means of ten names: {listed}. All parts together put it {known['writes_ahead'].mean():.1f} ahead. "
        "Stored results."
    )


def copies_table() -> tables.Table:
    """List how many tokens heads copy: the four that push most, two others that copy most, one that pushes back."""
    known: Any = stored()
    pushed, looks = (known[f"writes_{name}"].astype(float).mean(axis=0) for name in ("direct", "looks"))
    copies, heads = known["writes_copies"].astype(float), shown_heads()
    most = [(int(n) // 9, int(n) % 9) for n in np.argsort(-copies[1], axis=None)]
    rows = []
    for layer, head in (*heads[:4], *[one for one in most if one not in heads][:2], heads[-1]):
        found = *looks[layer, head], *copies[:, layer, head]
        rows.append((f"{layer}.{head}", round(pushed[layer, head], 1) + 0.0, *found))  # not -0.0
    head_row = ("head", "writes", "weight on: surname", "itself", "copies from: table", "text")
    return tables.table(head_row, rows, ("", ".1f", *[".0%"] * 4))


# --- Heads switched off: each alone, or all that seem to do least -----------------------------------------------------


def without(p: Pretrained, heads: dict[int, list[int]], by: str = "zero") -> tuple[float, float]:
    """Nats per token of the second of two copies of 40 random tokens: with all heads, and without these."""
    ids = measures.copies(np.random.default_rng(7), len(p.tokenizer), 1)
    return measures.copying(p.model, ids)[1], measures.copying(p.model, ids, knock_out=heads, by=by)[1]


# --- Each head alone --------------------------------------------------------------------------------------------------


@plots.still(9.8, 4.4)
def damage_plot(figure: "plots.Figure") -> str:
    """Draw what each of the 270 heads is worth, switched off alone: for copying, and for a page of the story."""
    known: Any = stored()
    worth = {"copying": known["worth_copying"], "story": known["worth"]}
    found = {}
    axes = figure.subplots(1, 2)
    for ax, name, title in zip(
        axes, ("copying", "story"), ("copying random tokens", "a page of the story"), strict=True
    ):
        rise = worth[name]
        top = float(np.abs(rise).max())
        image = ax.imshow(rise.T, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-top, vmax=top, aspect="auto")
        figure.colorbar(image, ax=ax, label="nats per token lost without it", shrink=0.9)
        order = np.argsort(-rise, axis=None)[:3]
        best = [(int(n) // rise.shape[1], int(n) % rise.shape[1]) for n in order]
        for layer, head in best:
            left = layer > 15
            ax.annotate(
                f"{layer}.{head}",
                (layer, head),
                (-9 if left else 9, 0),
                textcoords="offset points",
                va="center",
                ha="right" if left else "left",
                size=10.5,
                weight="bold",
            )
        ax.set(xlabel="layer", ylabel="head", yticks=range(0, 9, 2), xticks=range(0, 30, 5))
        ax.spines[:].set_visible(False)
        layer, head = best[0]
        ax.set_title(f"{title[0].upper() + title[1:]}:\n{layer}.{head} is worth {rise[layer, head]:.1f} nats")
        small = int((np.abs(rise) < 0.1).sum())
        found[title] = (formats.each((f"{a}.{b}" for a, b in best), (rise[at] for at in best)), small)
    label(figure)
    both = int(((worth["copying"] > 0.5) & (worth["story"] > 0.5)).sum())
    listed = "; ".join(
        f"for {name}, the heads worth most are {heads}, and {small} of 270 change less than 0.1 nats"
        for name, (heads, small) in found.items()
    )
    return f"… In full: {listed}. {both} heads are worth more than half a nat for both. Stored results."


# --- The least important heads ----------------------------------------------------------------------------------------

CHOOSERS = {"story": plots.ORANGE, "report": plots.PURPLE, "manual": plots.GREEN}


def pruned(by: str = "zero") -> tuple[Any, Any]:
    """Return what it costs to leave out heads: % of perplexity on four pages, and nats of copying.

    Each is ([three choosers, eight draws], …). By "zero", or by "mean", which chooses other heads.
    """
    known: Any = stored()
    rises = known["pruned" if by == "zero" else "pruned_by_mean"] - known["pruned_whole"]
    return 100 * (np.exp(rises[:, :-1]) - 1), rises[:, -1]


def own_pages() -> dict[str, int]:
    """Return the column of each chooser's own page."""
    pages = [str(page) for page in stored()["pruned_pages"]]
    return {name: pages.index(name) for name in CHOOSERS}


def added_up(by: str = "zero") -> dict[str, float]:
    """Return by how many % each chooser's page would change if the effects of its heads, one by one, added up."""
    known: Any = stored()
    alone = (known["worth"], *known["worth_pages"]) if by == "zero" else known["worth_by_mean"]
    sums = [np.sort(worth, axis=None)[: int(known["pruned_count"])].sum() for worth in alone]
    return {name: 100 * float(np.expm1(nats)) for name, nats in zip(CHOOSERS, sums, strict=True)}


@plots.still(9.4, 4.4)
def prune_plot(figure: "plots.Figure") -> str:
    """Draw what it costs to leave out the heads that matter least to a page: judged by four pages, and by copying."""
    pages, (percent, copying) = [str(page) for page in stored()["pruned_pages"]], pruned()
    judged, copy = figure.subplots(1, 2, width_ratios=(2.6, 1))
    columns = [(judged, n, values) for n, values in enumerate(percent.T)] + [(copy, 0, copying)]
    for ax, n, values in columns:
        drawn = values[len(CHOOSERS) :]
        ax.plot(np.full(len(drawn), n + 0.25), drawn, "o", color=plots.GREY, ms=7, alpha=0.7)
        for k, (name, colour) in enumerate(CHOOSERS.items()):
            here = ax is judged and own_pages()[name] == n
            ax.plot([n - 0.25 + 0.16 * k], values[k : k + 1], "D" if here else "s", color=colour, ms=11 if here else 7)
    for ax, names in ((judged, pages), (copy, ["copying"])):
        ax.axhline(0, color=plots.GREY, lw=1)
        ax.set_xticks(range(len(names)), names)
        ax.set_xlim(-0.6, len(names) - 0.4)
    for name, colour in CHOOSERS.items():
        judged.plot([], [], "s", color=colour, ms=7, label=f"chosen by the {name}")
    judged.plot([], [], "D", color=plots.INK, ms=9, mfc="none", label="…on its own page")
    judged.plot([], [], color=plots.INK, lw=2.5, ls=":", label="…if effects added up")
    judged.plot([], [], "o", color=plots.GREY, ms=7, label="drawn at random, 8 draws")
    judged.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=10.5)
    judged.set_ylabel("perplexity above that of all heads, %")
    copy.set_ylabel("second copy, nats per token more")
    own = np.array([percent[k, own_pages()[name]] for k, name in enumerate(CHOOSERS)])
    elsewhere = np.array([percent[k, n] for k, name in enumerate(CHOOSERS) for n in range(4) if n != own_pages()[name]])
    for name, expected in added_up().items():
        judged.plot(own_pages()[name] + np.array([-0.35, 0.13]), [expected] * 2, color=CHOOSERS[name], lw=2.5, ls=":")
    lost, count = copying[: len(CHOOSERS)], int(stored()["pruned_count"])
    judged.set_title(f"{count} heads as zeros: {(own < 0).sum()} of 3 pages is better\nwithout the heads that it chose")
    copy.set_title(f"Copying loses\n{lost.min():.1f} to {lost.max():.1f} nats")
    label(figure)
    listed = "; ".join(
        f"chosen by the {name}: "
        + ", ".join(f"{page} {value:+.0f} %" for page, value in zip(pages, percent[k], strict=True)).replace("\n", " ")
        + f", copying {copying[k]:+.1f} nats"
        for k, name in enumerate(CHOOSERS)
    )
    sums = ", ".join(f"{value:+.0f} %" for value in added_up().values())
    drawn = percent[len(CHOOSERS) :]
    return (
        f"With {count} heads out, perplexity changes by {', '.join(f'{value:+.0f} %' for value in own)} on the pages "
        f"that chose them ({', '.join(CHOOSERS)}); if effects added up, by {sums}. On others it changes by "
        f"{elsewhere.min():+.0f} to {elsewhere.max():+.0f} %. {listed}. "
        f"Drawn at random: {drawn.min():+.0f} to {drawn.max():+.0f} %, copying {copying[len(CHOOSERS) :].min():+.1f} "
        f"to {copying[len(CHOOSERS) :].max():+.1f} nats. Stored results."
    )


def prune_table() -> tables.Table:
    """List what it costs to leave out the heads that a page chose: by zeros, and by means."""
    rows = []
    for by, name in (("zero", "zeros"), ("mean", "mean")):
        percent, copying = pruned(by)
        for k, (chooser, own) in enumerate(own_pages().items()):
            others, sums = np.delete(percent[k], own), added_up(by)[chooser]
            elsewhere = f"{others.min():+.0f} to {others.max():+.0f} %"
            changes = f"{sums:+.0f} %", f"{percent[k, own]:+.0f} %", elsewhere
            rows.append((f"{name}, chosen by {chooser}", *changes, f"{copying[k]:+.1f} nats"))
        drawn = percent[len(CHOOSERS) :]
        rows.append((f"{name}, drawn at random", "", "", f"{drawn.min():+.0f} to {drawn.max():+.0f} %", ""))
    head = ("27 heads out, perplexity", "if added up", "own page", "other pages", "copying")
    return tables.table(head, [[*map(formats.minus, row)] for row in rows])
