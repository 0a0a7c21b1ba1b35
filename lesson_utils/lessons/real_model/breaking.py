"""Break one: heads switched off, a few that copy, each of the 270 alone, or all that seem to do least."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.stored import label, stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

GUESSING = float(np.log(49_152))  # nats per token, of as many as SmolLM2 knows
KINDS = {"induction": plots.BLUE, "previous token": plots.PURPLE, "others": plots.GREY}
COUNTS = (0, 1, 2, 4, 8)


def lost(kind: str, by: str) -> Any:
    """Return nats per token, (draws, counts, [first copy, second copy, story]); one draw of kinds with an order."""
    rows = stored()[f"knock_{kind.split()[0]}_{by}"]
    return rows if kind == "others" else rows[None]


@live.lab(
    width=9.6,
    height=4.2,
    neutral="No head is off, and curves are drawn as far as the number of heads that is chosen.",
    kind=live.Choice("heads switched off", tuple(KINDS), "induction"),
    count=live.Choice("how many", COUNTS, 0),
    by=live.Choice("put in their place", ("zero", "mean"), "zero"),
)
def knock_out_lab(figure: "Figure") -> live.Update:
    """Show what copying and a story cost without the strongest heads of a kind, or without others of their layers."""
    chart, bars = figure.subplots(1, 2, width_ratios=(1.25, 1))
    at = np.arange(len(COUNTS))
    chart.axhline(GUESSING, color=plots.INK, lw=1, ls=":")
    chart.text(-0.1, GUESSING + 0.15, f"guessing: ln 49,152 = {GUESSING:.1f}", size=10.5)
    curves: list[tuple[Any, str, int | None]] = [
        (chart.plot(at, row[:, 1], color="#C9C9C9", lw=1.2)[0], "others", n)
        for n, row in enumerate(lost("others", "zero"))
    ]
    for kind, colour in KINDS.items():
        name = "others, same layers (eight draws)" if kind == "others" else kind
        curves.append((chart.plot([0], [0], "o-", color=colour, ms=4, label=name)[0], kind, None))
    chart.legend(loc="upper left", bbox_to_anchor=(0, 0.72), fontsize=10.5)
    (dot,) = chart.plot([0], [0], "o", ms=13, color=plots.ORANGE, clip_on=False)
    chart.set(
        xlabel="heads switched off, of 270", ylabel="second copy, nats per token", ylim=(0, 14.5), xlim=(-0.2, 4.2)
    )
    chart.set_xticks(at, [str(n) for n in COUNTS])
    names = ["first copy", "second copy", "a story"]
    whole = lost("induction", "zero")[0, 0]
    bars.barh(names, whole, color="#D5D5D5", height=0.75)
    now = bars.barh(names, whole, color=plots.ORANGE, height=0.4)
    texts = [bars.text(0, y, "", va="center", size=11) for y in range(3)]
    bars.invert_yaxis()
    bars.set(xlim=(0, 19), xlabel="nats per token (grey: all heads)")
    bars.axvline(GUESSING, color=plots.INK, lw=1, ls=":")
    label(figure)

    def update(kind: str, count: int, by: str) -> str:
        so_far = COUNTS.index(count) + 1
        draws = lost(kind, by)
        row = np.median(draws[:, so_far - 1], axis=0)
        for curve, of, draw in curves:
            rows = lost(of, by)
            path = np.median(rows, axis=0) if draw is None else rows[draw]
            curve.set_data(at[:so_far], path[:so_far, 1])
        dot.set_data([COUNTS.index(count)], [row[1]])
        for bar, text, value in zip(now, texts, row, strict=True):
            bar.set_width(value)
            text.set(text=f"{value:.1f}", x=max(value, 0.3) + 0.3)
        which = f"{count or 'no'} {kind if kind != 'others' else 'other'} head{'s' * (count != 1)}"
        chart.set_title(f"{which.capitalize()} off: copying costs {row[1]:.1f} nats")
        bars.set_title(f"…and a story {row[2]:.2f}, not {whole[2]:.2f}" if count else f"A story costs {row[2]:.2f}")
        some, middle = draws[:, so_far - 1, 1], np.median(draws, axis=0)[:so_far, 1]
        drawn = f" (median of eight draws, {some.min():.1f} to {some.max():.1f})" if kind == "others" and count else ""
        return (
            f"Copying costs {row[1]:.1f} nats per token with {which} off{drawn}, their outputs replaced by "
            f"{'zeros' if by == 'zero' else 'their mean'}; guessing would cost {GUESSING:.1f}. First copy "
            f"{row[0]:.1f}, "
            f"a story {row[2]:.2f} (with all heads {whole[2]:.2f}). Second copy by number of heads off: "
            f"{', '.join(f'{n}: {r:.1f}' for n, r in zip(COUNTS, middle, strict=False))}. "
            "Stored results."
        )

    return update


def without(p: "Pretrained", heads: dict[int, list[int]], by: str = "zero") -> tuple[float, float]:
    """Nats per token of the second of two copies of 40 random tokens: with all heads, and without these."""
    ids = measures.copies(np.random.default_rng(7), len(p.tokenizer), 1)
    return measures.copying(p.model, ids)[1], measures.copying(p.model, ids, knock_out=heads, by=by)[1]


# --- Each head alone --------------------------------------------------------------------------------------------------


@plots.still(9.8, 4.4)
def damage_plot(figure: "Figure") -> str:
    """Draw what each of the 270 heads is worth, switched off alone: for copying, and for a page of the story."""
    known: Any = stored()
    worth = dict(zip(map(str, known["worth_names"]), known["worth"], strict=True))
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
        found[title] = (", ".join(f"{a}.{b} {rise[a, b]:.2f}" for a, b in best), small)
    label(figure)
    both = int(((worth["copying"] > 0.5) & (worth["story"] > 0.5)).sum())
    return (
        "; ".join(
            f"for {name}, the heads worth most are {heads}, and {small} of 270 change less than 0.1 nats"
            for name, (heads, small) in found.items()
        )
        + f". {both} heads are worth more than half a nat for both. Stored results."
    )


# --- The least important heads ----------------------------------------------------------------------------------------


@plots.still(9.8, 4.0)
def prune_plot(figure: "Figure") -> str:
    """Draw what it costs to leave out the 27 least important heads: chosen by one page, judged by another."""
    known: Any = stored()
    pages, k = [str(page) for page in known["pruned_pages"]], int(known["pruned_counts"][0])
    whole, chosen, drawn = known["pruned_whole"], known["pruned_chosen"][0], known["pruned_drawn"][0]
    rises = 100 * (np.exp(chosen - whole) - 1)[:, : len(pages)]  # percent of perplexity, (chosen by, judged by)
    random = 100 * (np.exp(drawn - whole) - 1)[:, : len(pages)]
    table, copy = figure.subplots(1, 2, width_ratios=(1.55, 1))
    top = float(np.abs(rises).max())
    table.imshow(rises, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-top, vmax=top, aspect="auto")
    for i, j in np.ndindex(rises.shape):
        dark = abs(rises[i, j]) > 0.6 * top
        table.text(
            j,
            i,
            f"{rises[i, j]:+.0f} %".replace("-", "−"),
            ha="center",
            va="center",
            size=12,
            color="white" if dark else plots.INK,
            weight="bold" if i == j else "normal",
        )
    table.set_xticks(range(len(pages)), pages)
    table.set_yticks(range(len(pages)), pages)
    table.set(xlabel="judged by", ylabel="chosen by")
    table.spines[:].set_visible(False)
    own, other = np.diag(rises), rises[~np.eye(len(pages), dtype=bool)]
    table.set_title(
        f"{k} heads out, perplexity: on the page that chose them {own.min():+.0f} to {own.max():+.0f} %,\n"
        f"on another page {other.min():+.0f} to {other.max():+.0f} %".replace("-", "−"),
        size=11.5,
    )
    copied, by_chance = chosen[:, -1] - whole[-1], drawn[:, -1] - whole[-1]
    copy.plot(by_chance, np.ones(len(by_chance)), "o", color=plots.GREY, ms=8, alpha=0.8)
    copy.plot(copied, np.zeros(len(copied)), "o", color=plots.ORANGE, ms=8, alpha=0.8)
    copy.axvline(0, color=plots.GREY, lw=1)
    copy.set_yticks([0, 1], ["chosen by\none of the\nfour pages", "drawn at\nrandom,\neight draws"])
    copy.set(ylim=(1.6, -0.6), xlabel="copying: nats per token lost")
    copy.set_title(f"Copying loses {copied.min():.1f} to {copied.max():.1f} nats", size=11.5)
    label(figure)
    rows = "; ".join(
        f"chosen by {page}: {', '.join(f'{name} {rise:+.0f} %' for name, rise in zip(pages, row, strict=True))}"
        for page, row in zip(pages, rises, strict=True)
    )
    return (
        f"With {k} heads out, perplexity changes by {own.min():+.0f} to {own.max():+.0f} % on the page that chose them "
        f"and by "
        f"{other.min():+.0f} to {other.max():+.0f} % on another: {rows}. Eight random draws: "
        f"{random.min():+.0f} to {random.max():+.0f} %, median {np.median(random):+.0f} %. Copying loses "
        f"{copied.min():.2f} to {copied.max():.2f} nats, drawn at random "
        f"{by_chance.min():.2f} to {by_chance.max():.2f}. "
        "Stored results."
    )
