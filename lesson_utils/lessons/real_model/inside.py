"""Inside the real model: where its weight goes that has nothing to read, and what its layers would say."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.lessons.real_model.finding import readable
from lesson_utils.lessons.real_model.stored import label, stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.still(9.8, 3.6)
def sink_plot(figure: "Figure") -> str:
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
    sizes, chat = known["first_lengths"][:-1], float(known["first_by_length"][-1, 0])
    by_text = known["first_by_text"]  # (texts, lengths)
    for text, marker in zip(by_text, "os^D", strict=True):
        lengths.plot(range(len(sizes)), text, marker + "-", color=plots.BLUE, lw=1, ms=6)
    lengths.plot([0.3], [chat], "*", color=plots.GREEN, ms=15)
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
    listed = ", ".join(f"{str(w)!r}: {s:.0%}" for w, s in zip(known["sink_words"], known["sink_by_word"], strict=True))
    by_size = ", ".join(
        f"{size}: {shares.min():.0%} to {shares.max():.0%}" for size, shares in zip(sizes, by_text.T, strict=True)
    )
    return (
        f"The first token gets {share:.0%} of all attention. With another first token: {listed}. With it hidden, "
        f"the second gets {hidden:.0%}. By length of the text, in four texts: {by_size}; in a chat of "
        f"{known['first_lengths'][-1]} tokens {chat:.0%}. Stored results."
    )


CASES = (
    "as it is",
    "first token hidden\nfrom the start",
    "first token hidden\nfrom the middle",
    "…and one in the middle\nsees only itself",
)
COLOURS = plots.BLUE, plots.PURPLE, plots.ORANGE, plots.GREEN


@plots.still(9.8, 4.7)
def hiding_plot(figure: "Figure") -> str:
    """Draw where the weight of the second half of a page goes if the first token is hidden, in three ways."""
    known: Any = stored()
    shares, norms, lost = known["first_shares"], known["first_norms"], known["first_lost"]
    half = shares.shape[1] // 2
    shown = np.array([0, 1, 2, 3, half - 1, half, half + 1, half + 2])
    at = np.array([0, 1, 2, 3, 5, 6, 7, 8])  # with a gap for the tokens between
    grid = figure.subplots(2, 4, sharey="row")
    told = []
    for case, (name, colour) in enumerate(zip(CASES, COLOURS, strict=True)):
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


def hidden_table() -> str:
    """List how far the last prediction of three sentences moves when their first token is hidden."""
    known: Any = stored()
    lines = [f"{'hidden from the …':44}  start  middle  last query   (nats)"]
    for sentence, moved in zip(known["first_sentences"], known["first_moved"], strict=True):
        text = str(sentence)
        lines.append(f"{f'{text[:18]} … {text[-20:]}':44}" + "".join(f"{value:8.2f}" for value in moved))
    return "\n".join(lines)


@plots.still(9.0, 3.9)
def effect_plot(figure: "Figure") -> str:
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
        f"The first token gets {weight[0]:.0%} of the weight; hiding it changes {moved[0]:.2f} nats, hiding "
        f"{str(tokens[best])!r} {moved[best]:.2f}. Weight and change: {listed}. Stored results."
    )
