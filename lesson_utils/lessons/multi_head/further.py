"""The pictures of notebook 03's sections marked *Further*: other tasks, one head given time, circuits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import tint
from lesson_utils.classroom.formats import signed
from lesson_utils.lessons.multi_head.experiment import (
    LENGTH,
    OFFSETS,
    PLACES,
    SYMBOLS,
    Survey,
    by_offset,
    main_offset,
)
from lesson_utils.maths import models, ops
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.still(7.6, 3.9)
def tasks_plot(figure: "Figure", shares: Mapping[tuple[int, int], Sequence[float]]) -> str:
    """Draw the share of right answers by number of heads, for tasks with different numbers of places to fetch from.

    Args:
        shares: of each start, by (places, heads).
    """
    ax = figure.add_subplot()
    tasks = sorted({places for places, _ in shares})
    best, told, ends = {}, [], []
    looks = ((plots.GREEN, "s", "--"), (plots.BLUE, "o", "-"), (plots.PURPLE, "^", ":"))
    for places, (colour, marker, line) in zip(tasks, looks, strict=False):
        heads = sorted(h for task, h in shares if task == places)
        medians = [float(np.median(shares[places, h])) for h in heads]
        best[places] = heads[int(np.argmax(medians))]
        ax.plot(heads, medians, line, color=colour, lw=1.8)
        for h in heads:
            values = shares[places, h]
            ax.plot([h] * len(values), values, marker, color=colour, ms=6, mec="white", mew=0.6)
        ends.append((medians[-1], f"{places} offsets", colour))
        told.append(
            f"{places} offsets: " + ", ".join(f"{h} heads {m:.2f}" for h, m in zip(heads, medians, strict=True))
        )
    lowest = -1.0
    for median, name, colour in sorted(ends):
        lowest = max(median, lowest + 0.08)
        ax.text(1.08 * max(h for _, h in shares), lowest, name, color=colour, weight="bold", va="center")
    ax.set_xscale("log", base=2)
    counts = sorted({h for _, h in shares})
    ax.set_xticks(counts, [str(h) for h in counts])
    ax.minorticks_off()
    ax.set(xlim=(0.9, 27), ylim=(0, 1.05), xlabel="heads", ylabel="share of right answers")
    found, wanted = (_listed([str(n) for n in numbers]) for numbers in (best.values(), best))
    title = f"Best median: {found} heads for {wanted} offsets"
    ax.set_title(title)
    return f"{title}. Median share of right answers, {'; '.join(told)}."


def _listed(words: Sequence[str]) -> str:
    return " and ".join(", ".join(words).rsplit(", ", 1))


@plots.still(9.4, 3.9)
def digits(figure: "Figure", runs: Mapping[str, Survey]) -> str:
    """Draw the weights of a single head by offset, largest first, beside 8 : 4 : 2 : 1, and what it gets right there.

    Args:
        runs: models with one head from several starts, by the name of the setting; bars are means over the starts.
    """
    binary = 2.0 ** np.arange(PLACES)[::-1] / (2**PLACES - 1)  # (8, 4, 2, 1) / 15
    alt = []
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
        alt.append(f"{spoken}: " + ", ".join(f"weight {w:.2f}, {r:.2f} right" for w, r in pairs))
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
    titles = f"{left.get_title(loc='left')}. {right.get_title(loc='left')}."
    return f"{titles} By place, largest weight first. {'; '.join(alt)}."


def in_order(found: Survey) -> tuple[Array, Array]:
    """Return the weights of single heads on the wanted places and the right answers there, largest weight first."""
    weights = found.profile[:, 0, list(OFFSETS)]  # (starts, 4)
    order = np.argsort(-weights, axis=1)
    return np.take_along_axis(weights, order, 1), np.take_along_axis(found.right, order, 1)


# --- Circuits --------------------------------------------------------------------------------------------------------


def qk_circuit(model: models.Encoder) -> Array:
    """Compute the weights that each head gives by position alone: the symbols are averaged out, (h, T, T)."""
    (layer,), (_, x) = model.heads()["encoder"], _averages(model)
    d_k = layer.W_Q.value.shape[1] // layer.num_heads
    Q, K = (x @ W.value for W in (layer.W_Q, layer.W_K))  # (T, h·d_k)
    own = [slice(i * d_k, (i + 1) * d_k) for i in range(layer.num_heads)]
    return np.stack([ops.softmax(Q[:, columns] @ K[:, columns].T / d_k**0.5) for columns in own])


def ov_circuit(model: models.Encoder) -> Array:
    """Compute how much each head adds to each answer's scores, past the feed-forward network and the last norm.

    Returns:
        (h, 4, symbols seen, symbols answered), less the mean over the symbols seen.
    """
    (layer,), (x, _) = model.heads()["encoder"], _averages(model)
    d_v = layer.W_V.value.shape[1] // layer.num_heads
    c = model.config
    unembed = model.head.W.value.reshape(c.d_model, c.outputs, c.classes)[..., _symbols()]  # (d_model, 4, symbols)
    parts = []
    for i in range(layer.num_heads):
        own = slice(i * d_v, (i + 1) * d_v)
        moved = x @ layer.W_V.value[:, own] @ layer.W_O.value[own]  # (symbols, d_model)
        parts.append(np.einsum("sd,dov->osv", moved - moved.mean(axis=0), unembed))
    return np.stack(parts)


def _symbols() -> list[int]:
    return SYMBOLS.encode(SYMBOLS.characters).tolist()


def _averages(model: models.Encoder) -> tuple[Array, Array]:
    """Average what attention reads of each symbol, (symbols, d_model), and of each position, (T, d_model)."""
    ids = np.array(_symbols())[:, None].repeat(LENGTH, axis=1)  # (symbols, T): each symbol at each position
    x, _ = model.tokens.forward(ids)
    norm = model.stack.blocks[0].attention.norm
    if norm is not None:
        x, _ = norm.forward(x)
    return x.mean(axis=1), x.mean(axis=0)


@plots.still(9.4, 4.9)
def circuits(figure: "Figure", model: models.Encoder) -> str:
    """Draw of each head where its positions look (QK), and what the symbol there does to the answers (OV)."""
    looks, copies = qk_circuit(model), ov_circuit(model)
    count = len(looks)
    axes = figure.subplots(2, count)
    told = []
    largest = float(np.abs(copies).max())
    for i, (above, below) in enumerate(axes.T):
        first = above.imshow(looks[i], cmap=plots.colour_map(*plots.WEIGHTS_MAP), vmin=0, vmax=0.5)
        above.set(xticks=(0, 8, 16), yticks=(0, 8, 16), xlabel="key's position")
        place = main_offset(by_offset(looks[i])) or "many places"
        above.set_title(f"Head {i} looks at {place}", size=11)
        kept = np.trace(copies[i], axis1=1, axis2=2)  # (4,)
        answer = int(kept.argmax())
        matrix = copies[i, answer]
        second = below.imshow(matrix, cmap=plots.colour_map(*plots.SCORES_MAP), vmin=-largest, vmax=largest)
        below.set(xticks=(), yticks=(), xlabel="symbol answered")
        right = float((matrix.argmax(axis=1) == np.arange(len(matrix))).mean())
        below.set_title(f"It writes answer {signed(OFFSETS[answer])}", size=11)
        told.append(
            f"head {i} looks at {place} and writes answer {signed(OFFSETS[answer])}, where {right:.0%} of the symbols "
            "raise their own score most"
        )
    axes[0, 0].set_ylabel("query's position")
    axes[1, 0].set_ylabel("symbol seen")
    figure.colorbar(first, ax=axes[0], label="weight", ticks=(0, 0.25, 0.5), extend="max", shrink=0.8)
    figure.colorbar(second, ax=axes[1], label="added to score", shrink=0.8)
    return f"Weights from positions alone, and what each symbol adds to the scores: {'; '.join(told)}."
