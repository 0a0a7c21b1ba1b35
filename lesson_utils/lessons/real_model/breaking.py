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
        name = "others (eight draws)" if kind == "others" else kind
        curves.append((chart.plot([0], [0], "o-", color=colour, ms=4, label=name)[0], kind, None))
    chart.legend(loc="lower right", bbox_to_anchor=(1, 0.31), fontsize=10.5)
    (dot,) = chart.plot([0], [0], "o", ms=13, color=plots.ORANGE, clip_on=False)
    chart.set(xlabel="", ylabel="second copy, nats per token", ylim=(0, 14.5), xlim=(-0.2, 4.2))
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
        put = "zeros" if by == "zero" else "their mean"
        chart.set_xlabel(f"heads of 270 whose outputs are {put}")
        chart.set_title(f"{which.capitalize()} off: copying costs {row[1]:.1f} nats")
        bars.set_title(f"…and a story {row[2]:.2f}, not {whole[2]:.2f}" if count else f"A story costs {row[2]:.2f}")
        some, middle = draws[:, so_far - 1, 1], np.median(draws, axis=0)[:so_far, 1]
        drawn = f" (median of eight draws, {some.min():.1f} to {some.max():.1f})" if kind == "others" and count else ""
        return (
            f"Copying costs {row[1]:.1f} nats per token with {which} off{drawn}, their outputs replaced by "
            f"{put}; guessing would cost {GUESSING:.1f}. First copy "
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
def prune_plot(figure: "Figure") -> str:
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


def prune_table() -> str:
    """List what it costs to leave out the heads that a page chose: by zeros, and by means."""
    lines = [f"{'27 heads out, perplexity':26}{'if added up':>12}{'own page':>10}{'other pages':>18}{'copying':>12}"]
    for by, name in (("zero", "zeros"), ("mean", "mean")):
        percent, copying = pruned(by)
        for k, (chooser, own) in enumerate(own_pages().items()):
            others = np.delete(percent[k], own)
            elsewhere = f"{others.min():+.0f} to {others.max():+.0f} %"
            lines.append(
                f"{f'{name}, chosen by {chooser}':26}{added_up(by)[chooser]:+10.0f} %{percent[k, own]:+8.0f} %"
                f"{elsewhere:>18}{copying[k]:+7.1f} nats"
            )
        drawn = percent[len(CHOOSERS) :]
        lines.append(f"{f'{name}, drawn at random':26}{'':22}{f'{drawn.min():+.0f} to {drawn.max():+.0f} %':>18}")
    return "\n".join(lines)
