"""The still pictures of notebook 03, in its order: heads drawn by hand, and what is made from trained models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import arrow, sheet, tint
from lesson_utils.classroom.formats import each, signed
from lesson_utils.lessons.multi_head.experiment import LENGTH, OFFSETS, PLACES, SYMBOLS, Survey, examine, main_offset
from lesson_utils.maths import attention, models
from lesson_utils.maths.checks import Array

# --- 1 · One look, four answers ---------------------------------------------------------------------------------------

EVERY_FOURTH = range(0, LENGTH, 4)


@plots.still(9.4, 4.2)
def one_head_blurs(figure: "plots.Figure", model: models.Encoder, source: ArrayLike, query: int = 5) -> str:
    """Draw the map of a single head on one sequence, and one row of it: the average that comes back.

    Args:
        source: the sequence, (1, T).
        query: the row.
    """
    source = np.asarray(source)
    text = SYMBOLS.decode(source[0])
    weights = model.maps(model.forward(source)[1])["encoder"][0][0, 0]  # (T, T)
    row, places = weights[query], [(query + o) % LENGTH for o in OFFSETS]
    share = float(row[places].sum())
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    colours = plots.colour_map(*plots.WEIGHTS_MAP)
    image = left.imshow(weights, cmap=colours, vmin=0, vmax=0.5)
    figure.colorbar(image, ax=left, label="weight", shrink=0.8, ticks=(0, 0.25, 0.5), extend="max")
    left.axhspan(query - 0.5, query + 0.5, fill=False, ec=plots.INK, lw=1.8)
    left.set_xticks(EVERY_FOURTH, map(str, EVERY_FOURTH))
    ticks = [query, *(t for t in EVERY_FOURTH if abs(t - query) > 1)]
    left.set_yticks(ticks, map(str, ticks))
    left.set(xlabel="key", ylabel="query", title="One head, one map:\nfour pale diagonals")
    right.bar(range(LENGTH), row, color=[plots.BLUE if t in places else plots.GREY for t in range(LENGTH)])
    for offset, t in zip(OFFSETS, places, strict=True):
        right.text(t, row[t] + 0.012, f"{text[t]}\n{signed(offset)}", ha="center", weight="bold")
    right.axvline(query, color=plots.INK, lw=1.2, ls=":")
    right.set_xticks(range(LENGTH), [f"{c}\n{t}" if t % 4 == 0 else c for t, c in enumerate(text)])
    title = f"Query {query} gets one average:\n" + " + ".join(f"{row[t]:.2f} {text[t]}" for t in places)
    right.set(ylim=(0, 0.6), ylabel=f"weight of query {query}", xlabel="key: symbol and position", title=title)
    listed = each((f"{text[t]} at {signed(o)}:" for o, t in zip(OFFSETS, places, strict=True)), row[places])
    return f"… Weights: {listed}; together {share:.2f}. On the left, a heat map of all weights, query by key."


# --- 2 · Split and merge ----------------------------------------------------------------------------------------------

TOKENS, WIDTH = 4, 6
CELL = 0.16  # inches


def _grid(ax: "plots.Axes", left: float, middle: float, values: Array, colour: str, name: str, below: str) -> float:
    """Draw a matrix as squares, stronger for larger numbers, between name and shape, and return its right edge."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Rectangle

    rows, columns = values.shape
    width, top, bottom = CELL * columns, middle + CELL * rows / 2, middle - CELL * rows / 2
    corners = CELL * np.array([(0, 0), (1, 0), (1, -1), (0, -1)])
    squares = [corners + np.array((left + CELL * j, top - CELL * i)) for i, j in np.ndindex(rows, columns)]
    strength = np.abs(values).ravel() / np.abs(values).max()
    if name == "weights":
        fill = plots.colour_map(*plots.WEIGHTS_MAP)(strength)
    else:
        fill = [tint(colour, 0.1 + 0.8 * s) for s in strength]
    ax.add_collection(PolyCollection(squares, facecolors=fill, edgecolors="white", linewidths=0.8))
    ax.add_patch(Rectangle((left, bottom), width, top - bottom, fill=False, ec=colour, lw=1.6))
    ax.text(left + width / 2, top + 0.06, name, ha="center", va="bottom", color=colour, weight="bold")
    for n, line in enumerate(below.split("\n")):  # one text each: a formula does not go with a line break
        ax.text(left + width / 2, bottom - 0.07 - 0.17 * n, line, ha="center", va="top", size=10.5)
    return left + width


@plots.still(9.2, 4.0)
def heads_drawn(figure: "plots.Figure") -> str:
    """Draw two heads on four tokens of width 6, from X to Y, with every shape."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(TOKENS, WIDTH))
    *projections, W_O = rng.normal(size=(4, WIDTH, WIDTH))
    Q, K, V = (attention.split_heads(X @ W, 2) for W in projections)  # (h, T, d_k)
    heads, weights = attention.scaled_dot_product_attention(Q, K, V)
    joined = attention.merge_heads(heads)

    ax = sheet(figure)
    ax.set_title("Each head looks with columns of its own; $W_O$ mixes what they bring back")
    middle, whole, part = 1.86, "(T, $d_{model}$)\n= (4, 6)", "(T, $d_k$)\n= (4, 3)"
    sign: dict[str, Any] = {"ha": "center", "va": "center", "size": 15}
    start = _grid(ax, 0.02, middle, X, plots.GREY, "X", whole)
    for i, (y, into) in enumerate(((middle + 0.93, 0.14), (middle - 0.93, -0.14))):
        q, k, v = (f"columns\n{3 * i} to {3 * i + 2}\nof $XW_{letter}$" for letter in "QKV")
        arrow(ax, (start, middle), (1.4, y))
        x = _grid(ax, 1.44, y, Q[i], plots.QUERY, "Q", q)
        x = _grid(ax, x + 0.2, y, K[i], plots.KEY, "K", k)
        arrow(ax, (x, y), (x + 0.36, y))
        x = _grid(ax, x + 0.38, y, weights[i], plots.INK, "weights", "(T, T)\n= (4, 4)")
        ax.text(x + 0.11, y, "·", **sign)
        x = _grid(ax, x + 0.22, y, V[i], plots.VALUE, "V", v)
        ax.text(x + 0.15, y, "=", **sign)
        x = _grid(ax, x + 0.3, y, heads[i], plots.VALUE, f"head {i}", part)
        arrow(ax, (x, y), (x + 0.46, middle + into))
    x += 0.48
    ax.plot([x + 3 * CELL] * 2, [middle - 2 * CELL, middle + 2 * CELL], color=plots.INK, lw=2.4, zorder=4)
    x = _grid(ax, x, middle, joined, plots.VALUE, "concatenated", whole)
    ax.text(x + 0.12, middle, "·", **sign)
    x = _grid(ax, x + 0.24, middle, W_O, plots.PURPLE, "$W_O$", "(6, 6)")
    ax.text(x + 0.14, middle, "=", **sign)
    _grid(ax, x + 0.28, middle, joined @ W_O, plots.GREY, "Y", whole)
    return (
        "Shows multi-head attention from X to Y. X, shape (4, 6), is projected to Q, K and V, whose columns are shared "
        "out: 0 to 2 for head 0, 3 to 5 for head 1. Each head has weights of its own, (4, 4), from its Q and K; they "
        "times V are its output, (4, 3). The two outputs side by side are (4, 6) again; times W_O, (6, 6), they are Y, "
        "(4, 6)."
    )


# --- 3 · How many heads? ----------------------------------------------------------------------------------------------


@plots.still(9.4, 3.9)
def accuracy_plot(figure: "plots.Figure", by_rate: Mapping[float, Mapping[int, Survey]]) -> str:
    """Draw the share of right answers by number of heads, a dot for each start, at one learning rate beside another."""
    told = []
    for ax, (rate, surveys) in zip(figure.subplots(1, len(by_rate), sharey=True), by_rate.items(), strict=True):
        accuracy = {h: np.sort(survey.accuracy) for h, survey in surveys.items()}
        medians = {h: float(np.median(shares)) for h, shares in accuracy.items()}
        for place, (h, shares) in enumerate(accuracy.items()):
            _swarm(ax, place, shares)
            ax.plot([place - 0.36, place + 0.36], [medians[h]] * 2, color=plots.INK, lw=2)
            ax.text(place, 1.06, f"{medians[h]:.2f}", ha="center", weight="bold")
        ax.axhline(0.05, color=plots.ORANGE, ls="--", lw=1.8)
        ax.text(len(surveys) - 0.45, 0.06, "guessing", color=plots.ORANGE, ha="right", va="bottom")
        ax.set_xticks(range(len(surveys)), [f"{h}" for h in surveys])
        ax.set(xlim=(-0.5, len(surveys) - 0.5), ylim=(0, 1.16), yticks=(0, 0.25, 0.5, 0.75, 1), xlabel="heads")
        best = _listed([str(h) for h, median in medians.items() if median > 0.9])
        ax.set_title(f"Learning rate {rate:g}: medians above 0.9\nwith {best} heads")
        listed = (f"{h}: median {medians[h]:.2f}, {a[0]:.2f} to {a[-1]:.2f} ({len(a)})" for h, a in accuracy.items())
        told.append(f"at a rate of {rate:g}: {'; '.join(listed)}")
    figure.axes[0].set_ylabel("share of right answers")
    return f"… Right answers by number of heads, and in brackets the number of starts, {'. '.join(told)}."


def _swarm(ax: "plots.Axes", place: float, values: Array, near: float = 0.03, step: float = 0.11) -> None:
    """Draw values as dots over a place; those that would cover each other stand side by side."""
    values = np.sort(values)
    groups = np.split(values, np.flatnonzero(np.diff(values) > near) + 1)
    x = np.concatenate([place + step * (np.arange(len(group)) - (len(group) - 1) / 2) for group in groups])
    x = place + (x - place) * min(1.0, 0.42 / max(float(np.abs(x - place).max()), 0.01))
    ax.plot(x, values, "o", color=plots.BLUE, ms=6.5, mec="white", mew=0.7, alpha=0.9)


def _listed(words: Sequence[str]) -> str:
    return " and ".join(", ".join(words).rsplit(", ", 1))


@plots.still(9.4, 3.9)
def digits(figure: "plots.Figure", runs: Mapping[str, Survey]) -> str:
    """Draw the weights of a single head by offset, largest first, beside 8 : 4 : 2 : 1, and what it gets right there.

    Args:
        runs: models with one head from several starts, by the name of the setting; bars are means over the starts.
    """
    binary = 2.0 ** np.arange(PLACES)[::-1] / (2**PLACES - 1)  # (8, 4, 2, 1) / 15
    told = []
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(runs)
    styles = zip(runs.items(), ((tint(plots.BLUE, 0.46), "//"), (plots.BLUE, "")), strict=False)
    for n, ((name, found), (colour, hatch)) in enumerate(styles):
        weights, shares = in_order(found)  # (starts, 4)
        x = np.arange(PLACES) + (n - (len(runs) - 1) / 2) * width
        look: dict[str, Any] = {"width": 0.94 * width, "color": colour, "hatch": hatch, "edgecolor": "white"}
        left.bar(x, weights.mean(axis=0), **look)
        right.bar(x, shares.mean(axis=0), **look, label=name)
        for ax, rows in ((left, weights), (right, shares)):
            for row in rows:
                ax.plot(x, row, "o", color="white", mec=plots.INK, ms=4.5, mew=1)
        pairs = zip(weights.mean(axis=0), shares.mean(axis=0), strict=True)
        spoken = name.replace("$d_{ff}$", "d_ff")
        told.append(f"{spoken}: " + ", ".join(f"weight {w:.2f}, {r:.2f} right" for w, r in pairs))
    for n, share in enumerate(binary):
        left.plot([n - 0.45, n + 0.45], [share, share], color=plots.ORANGE, lw=2.6)
        label = f"{2 ** (PLACES - 1 - n)}/15"
        above = max(share, weights[:, n].max()) + 0.02  # over the last bar
        left.text(n + width / 2, above, label, ha="center", va="bottom", color=plots.ORANGE, weight="bold")
    for ax in (left, right):
        ax.set_xticks(range(PLACES), [f"{n}." for n in range(1, PLACES + 1)])
        ax.set_xlabel("place, by weight")
    left.set(xlim=(-0.5, PLACES - 0.5), ylim=(0, 0.66), ylabel="weight")
    ratio = weights.mean(axis=0) / weights.mean(axis=0)[-1]  # of the last setting
    left.set_title("The weights end at " + " : ".join(f"{share:.1f}".removesuffix(".0") for share in ratio))
    right.set(ylim=(0, 1.42), yticks=(0, 0.25, 0.5, 0.75, 1), ylabel="share of right answers")
    right.set_title(f"In the end {found.accuracy.mean():.0%} of the answers are right")
    right.legend(loc="upper right")
    return f"… By place, largest weight first. {'; '.join(told)}."


def in_order(found: Survey) -> tuple[Array, Array]:
    """Return the weights of single heads on the wanted places and the right answers there, largest weight first."""
    weights = found.profile[:, 0, list(OFFSETS)]  # (starts, 4)
    order = np.argsort(-weights, axis=1)
    return np.take_along_axis(weights, order, 1), np.take_along_axis(found.right, order, 1)


# --- 4 · What each head does ------------------------------------------------------------------------------------------


@plots.still(9.4, 4.5)
def head_jobs(figure: "plots.Figure", model: models.Encoder, without: ArrayLike) -> str:
    """Draw where each head of a model looks, and below it the share of right answers by offset, (h, 4), without it."""
    result, without = examine(model, 100), np.asarray(without)
    count = len(result.maps)
    offsets = [signed(o) for o in OFFSETS]
    axes = figure.subplots(2, count, height_ratios=(1.45, 1))
    cmap = plots.colour_map(*plots.WEIGHTS_MAP)
    told = []
    for head, (above, below) in enumerate(axes.T):
        image = above.imshow(result.maps[head], cmap=cmap, vmin=0, vmax=0.5)
        place = main_offset(result.profile[head])
        above.set(xticks=EVERY_FOURTH[::2], yticks=EVERY_FOURTH[::2], xlabel="key")
        above.set_title(f"Head {head}: {place or 'no single offset'}")
        lost = without[head] < 0.5
        below.bar(range(len(offsets)), without[head], color=[plots.ORANGE if x else plots.GREY for x in lost])
        for n, share in enumerate(without[head]):
            below.text(n, share + 0.03, f"{share:.2f}", ha="center", size=9.5)
        below.set_xticks(range(len(offsets)), offsets)
        below.set(ylim=(0, 1.2), yticks=(0, 0.5, 1), xlabel="offset")
        told.append(f"without head {head}: {each(offsets, without[head])}")
        below.set_title(f"Without it, {_and([o for o, x in zip(offsets, lost, strict=True) if x])}", size=9.5)
    axes[0, 0].set_ylabel("query")
    axes[1, 0].set_ylabel("right answers")
    figure.colorbar(image, ax=axes[0], label="weight", ticks=(0, 0.25, 0.5), extend="max", shrink=0.8)
    return f"… Mean maps of 100 sequences. Right answers by offset, {'; '.join(told)}."


def _and(lost: Sequence[str]) -> str:
    return (
        f"{' and '.join(lost)} is lost" if len(lost) == 1 else f"{' and '.join(lost)} are lost" if lost else "none is"
    )


def one_each(without: Array, low: float = 0.5, high: float = 0.8) -> bool:
    """Tell whether each head has an offset of its own, from the right answers without each head, (h, 4).

    Without a head, less than `low` are right at one offset, and at least `high` at the others; no two heads share one.
    """
    own = without.argmin(axis=1)
    others = np.sort(without, axis=1)[:, 1:]
    return bool((without.min(axis=1) < low).all() and (others >= high).all() and len(set(own)) == len(without))


@plots.still(9.4, 4.2)
def removals(figure: "plots.Figure", found: Survey) -> str:
    """Draw which answers are wrong without each head (zeros), in models from several starts, a tile for each."""
    import matplotlib

    count, offsets = len(found.zeros), [signed(o) for o in OFFSETS]
    cmap = matplotlib.colors.LinearSegmentedColormap.from_list("lost", ["white", plots.ORANGE], 13)
    axes = figure.subplots(2, (count + 1) // 2, sharex=True, sharey=True, squeeze=False)
    alone, by_mean = ([one_each(without) for without in all_starts] for all_starts in (found.zeros, found.means))
    for start, (ax, without) in enumerate(zip(axes.flat, found.zeros, strict=False)):
        order = np.argsort(without.argmin(axis=1), kind="stable")  # the heads by what they are needed for
        image = ax.imshow(1 - without[order], cmap=cmap, vmin=0, vmax=1)
        ax.set_xticks(range(len(offsets)), offsets)
        ax.set_yticks(())
        ax.spines[:].set_visible(True)
        if alone[start]:
            ax.spines[:].set(color=plots.INK, linewidth=2.6)
        ax.set_title(f"{start}: {found.accuracy[start]:.2f} right", size=11)
    for row in axes:
        row[0].set_ylabel("without head")
    for ax in axes[-1]:
        ax.set_xlabel("offset")
    figure.colorbar(image, ax=axes, label="wrong answers", ticks=(0, 0.5, 1), shrink=0.9)
    title = f"In {sum(alone)} of {count} starts, each head has an offset of its own (dark frame)"
    figure.suptitle(title, x=0.01, ha="left", weight="bold", size=12.5)
    framed = ", ".join(str(start) for start, x in enumerate(alone) if x)
    return (
        f"{title}: starts {framed}. With the head's mean in place of zeros: {sum(by_mean)} of {count}. Share of wrong "
        f"answers by head taken away and offset, a tile for each start. Right answers with all heads: "
        f"{', '.join(f'{share:.2f}' for share in found.accuracy)}."
    )
