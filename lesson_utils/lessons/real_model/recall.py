"""A name that was read once: how well the real model recalls it, with all heads and without some."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.stored import label, stored
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.models.experiments import HeadsOf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

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
    p: "Pretrained", name: str, told: bool = True, knock_out: HeadsOf | None = None, by: str = "zero"
) -> float:
    """Return −log p of the last name, all its pieces together, after a text that ends with the first name."""
    return _nats(p, prompt(name, told), surname_of(name), knock_out, by)


def surname_of(name: str) -> str:
    """Return the last name of a person."""
    if len(name.split()) < 2:
        raise ValueError(f"name={name!r} has no surname; expected a first name and a surname, such as 'Ilse Brandt'")
    return name.split(maxsplit=1)[1]


def _nats(p: "Pretrained", text: str, surname: str, knock_out: HeadsOf | None, by: str = "zero") -> float:
    """Return −log p of a last name, all its pieces together, after a text."""
    ids: Ids = p.tokenizer.encode(text)
    whole = np.concatenate([ids, p.tokenizer.encode(" " + surname)])[None]
    nats = measures.losses(p.model, whole, knock_out=knock_out, by=by)[0, len(ids) - 1 :]
    return float(nats.sum(dtype=np.float64))


def of_two(
    p: "Pretrained", name: str, other: str, first: bool, knock_out: HeadsOf | None = None
) -> tuple[float, float]:
    """Return −log p of a person's own last name and of the other's, after a text that has told both.

    Args:
        first: the text tells this person first, and the other second; else the other way round.
    """
    one, two = (name, other) if first else (other, name)
    text = TEXT.format(name=BOTH.format(one=one, two=two), first=name.split()[0])
    return _nats(p, text, surname_of(name), knock_out), _nats(p, text, surname_of(other), knock_out)


def continues(p: "Pretrained", text: str, length: int = 8, knock_out: HeadsOf | None = None) -> str:
    """Return what the model writes after a text, always the likeliest token."""
    stream = p.stream(p.tokenizer.encode(text), length, np.random.default_rng(0), knock_out=knock_out)
    return "".join(token.text for token in stream)


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
def names_plot(figure: "Figure") -> str:
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


def _draw_whose(ax: "Axes") -> str:
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


def word_list() -> str:
    """Return how the model goes on from a list of words, with all heads and without some."""
    known: Any = stored()
    lines = [WORDS]
    for off, written in zip(known["words_off"], known["words_written"], strict=True):
        lines.append(f"{off!s:24} …{str(written)!r}")
    return "\n".join(lines)


def recalls(p: "Pretrained", name: str) -> str:
    """Measure the recall of a name of your own: with all heads, without four induction heads, without 16.0."""
    surname, scores = surname_of(name), stored()["scores_real"]
    off = {"all heads": None, "4 induction heads off": measures.strongest(scores[3], 4), "16.0 off": {16: [0]}}
    lines = [f"…{prompt(name)[-40:]}"]
    for what, out in off.items():
        lines.append(f"{what:24} p({surname}) = {np.exp(-surname_nats(p, name, knock_out=out)):.4f}")
    return "\n".join(lines)
