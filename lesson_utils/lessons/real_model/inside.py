"""Inside the real model: where its weight rests, what its layers would say, and what has changed since 2017."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model.finding import readable
from lesson_utils.lessons.real_model.stored import label, stored
from lesson_utils.maths.models import GPT, GPTConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.still(9.8, 3.5)
def sink_plot(figure: "Figure") -> str:
    """Draw how much attention rests on the first token, by layer; with other first tokens; and what it hands over."""
    known: Any = stored()
    by_layer = known["sink_shares"].mean(axis=1)
    share = float(known["sink_shares"].mean())
    layers, words, values = figure.subplots(1, 3, width_ratios=(1.15, 1.1, 1.15))
    layers.bar(range(len(by_layer)), by_layer, color=plots.BLUE)
    layers.set(xlabel="layer", ylabel="weight on the first token", ylim=(0, 1))
    layers.set_title(f"The first token gets\n{share:.0%} of all attention")
    hidden = known["sink_hidden"].mean(axis=(0, 1))
    names = [f"“{readable(str(word))}”" for word in known["sink_words"]] + ["the 2nd,\n1st hidden"]
    heights = [*known["sink_by_word"], hidden[1]]
    words.barh(names, heights, color=[plots.BLUE] * (len(names) - 1) + [plots.ORANGE])
    for y, height in enumerate(heights):
        words.text(height + 0.01, y, f"{height:.0%}", va="center", size=10.5)
    words.invert_yaxis()
    words.set(xlim=(0, 0.6), xlabel="share of all attention", xticks=(0, 0.2, 0.4))
    words.set_title("…whatever it is; hidden,\nthe next one gets it")
    first, other = known["sink_values"]
    values.plot(other, color=plots.GREY)
    values.plot(first, color=plots.BLUE)
    values.text(1, 7.2, "other tokens\n(median)", color=plots.GREY, size=10.5)
    values.text(20, 2.8, "first token", color=plots.BLUE, ha="center", size=10.5)
    values.set(xlabel="layer", ylabel="length of the value v", ylim=(0, None))
    ratio = float(np.median(first / other))
    values.set_title(f"It hands over little:\n{ratio:.2f} of a usual value")
    label(figure)
    listed = ", ".join(f"{str(w)!r}: {s:.0%}" for w, s in zip(known["sink_words"], known["sink_by_word"], strict=True))
    return (
        f"The first token gets {share:.0%} of all attention. With another first token: {listed}. With it hidden, "
        f"the second gets {hidden[1]:.0%}. "
        f"Its values are {ratio:.2f} times as long as the others' (median over layers). Stored results."
    )


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


BARS = 5


@live.lab(
    width=9.4,
    height=4.0,
    controls=lambda: {
        "text": live.Choice("text", tuple(range(1, 1 + len(stored()["lens_texts"]))), 1),
        "layer": live.Slider("layers that have been through", 0, len(stored()["lens_words_0"]) - 1, 0),
    },
    neutral="No layer has been through, and the curve is drawn as far as the layer.",
)
def lens_lab(figure: "Figure") -> live.Update:
    """Show the logit lens: what the model would say if its output came behind this layer."""
    known: Any = stored()
    now, curve = figure.subplots(1, 2, width_ratios=(1, 1.3))
    bars = now.barh(range(BARS), np.zeros(BARS), color=plots.BLUE, height=0.7)
    names = [now.text(0.02, y, "", va="center", size=11.5) for y in range(BARS)]
    now.invert_yaxis()
    now.set(xlim=(0, 1.0), yticks=(), xlabel="probability of the next token")
    depth = len(known["lens_words_0"])
    (line,) = curve.plot(range(depth), np.zeros(depth), color=plots.BLUE)
    (dot,) = curve.plot([0], [0], "o", ms=12, color=plots.ORANGE, clip_on=False)
    curve.set(
        xlim=(0, depth - 1),
        ylim=(0, 1.03),
        xlabel="layers that have been through",
        ylabel="probability of the final answer",
    )
    label(figure)

    def update(text: int, layer: int) -> str:
        prompt, words, shares = (
            str(known["lens_texts"][text - 1]),
            known[f"lens_words_{text - 1}"],
            known[f"lens_shares_{text - 1}"],
        )
        final = str(words[-1][0])
        path = [
            sum(float(s) for w, s in zip(row, share, strict=True) if w == final)
            for row, share in zip(words, shares, strict=True)
        ]
        line.set_data(range(layer + 1), path[: layer + 1])
        dot.set_data([layer], [path[layer]])
        for bar, name, word, share in zip(bars, names, words[layer], shares[layer], strict=True):
            bar.set_width(share)
            name.set(
                text=f"{readable(str(word), 16)}  {share:.2f}",
                x=share + 0.02 if share < 0.6 else 0.02,
                color="white" if share >= 0.6 else plots.INK,
            )
        now.set_title(
            f"Behind layer {layer}: “{readable(str(words[layer][0]), 14)}”"
            if layer
            else f"Before any layer it says “{readable(str(words[0][0]), 14)}”"
        )
        curve.set_title(f"“…{' '.join(prompt.split()[-4:])}”: {path[layer]:.2f} for “{readable(final, 12)}”", size=11.5)
        listed = ", ".join(f"{str(w)!r} {s:.2f}" for w, s in zip(words[layer], shares[layer], strict=True))
        return (
            f"{prompt!r} goes on, behind {layer} layers, with {listed}. The final answer, {final!r}, has "
            f"{path[layer]:.2f} here. Stored results."
        )

    return update


CHANGES: dict[str, dict[str, Any]] = {
    "2017": {},
    "norm before": {"norm": "pre"},
    "RMS norm": {"norm_kind": "rms"},
    "rotary": {"positions": "rotary"},
    "grouped queries": {"num_kv_heads": 3},
    "SwiGLU": {"activation": "swiglu", "d_ff": 1536},
}


def five_changes() -> str:
    """Parameters, and numbers a token in the cache, of two layers as wide as SmolLM2's, one change after the other."""
    config = GPTConfig(vocab=1000, d_model=576, num_heads=9, num_layers=2, norm="post")
    lines = [f"{'':20}parameters   in the cache, a token"]
    for name, change in CHANGES.items():
        config = replace(config, **change)
        kept = 2 * config.num_layers * (config.num_kv_heads or config.num_heads) * config.d_model // config.num_heads
        lines.append(f"{name:18}{GPT(config, np.random.default_rng(0)).num_params():12,} {kept:14,}")
    return "\n".join(lines)
