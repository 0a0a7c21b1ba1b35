"""Attention that forgets several things at once: do the losses add up?"""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.stored import label, stored
from lesson_utils.maths.checks import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

LAYERS, KV_HEADS, D_K = 30, 3, 64  # of SmolLM2-135M
STOPS = measures.TOGETHER
SMALL = 0.5  # nats: up to here losses are called small
WHOLE = {"window": "all", "first": 0, "best": "all", "bits": 32}


def kept_bytes(window: Any = "all", first: int = 0, best: Any = "all", bits: int = 32) -> tuple[int, int]:
    """Tokens of a page that are in the cache at its end, and the bytes of each.

    With fewer bits, each vector has two float32 besides, see `measures.rounded`. The best keys save nothing here: to
    know which they are, all have to be kept.
    """
    tokens = measures.PAGE if window == "all" else min(measures.PAGE, window + first)
    vector = 4 * D_K if bits == 32 else bits * D_K // 8 + 8
    return tokens, 2 * LAYERS * KV_HEADS * vector


def alone(**chosen: Any) -> dict[str, dict[str, Any]]:
    """Return the same savings one by one. First tokens belong to the window: without one they change nothing."""
    parts = {"window": ("window", "first"), "best": ("best",), "bits": ("bits",)}
    return {name: WHOLE | {key: chosen[key] for key in keys} for name, keys in parts.items()}


def dearer(**chosen: Any) -> Array:
    """Nats a token above the model as it is, on each of the texts, stored."""
    grid = stored()["together"]
    place = tuple(STOPS[name].index(chosen[name]) for name in STOPS)
    rise: Array = grid[place] - grid[0, 0, 0, 0]
    return rise


def in_combination() -> list[dict[str, Any]]:
    """Return all settings in which two of the savings are at work, or three."""
    found = []
    for stops in product(*STOPS.values()):
        chosen = dict(zip(STOPS, stops, strict=True))
        no_window = chosen["window"] == "all" and chosen["first"] > 0
        all_are_best = "all" not in (chosen["window"], chosen["best"]) and sum(stops[:2]) <= chosen["best"]
        if not (no_window or all_are_best) and sum(part != WHOLE for part in alone(**chosen).values()) > 1:
            found.append(chosen)
    return found


def sum_and_truth(**chosen: Any) -> tuple[float, float]:
    """Nats a token that the savings cost one by one, added up; and together. Means of the texts."""
    apart = sum(float(dearer(**part).mean()) for part in alone(**chosen).values())
    return apart, float(dearer(**chosen).mean())


def names_of(window: Any, first: int, best: Any, bits: int) -> list[str]:
    """Name the three savings for the figure."""
    kept = f" + first{f' {first}' if first > 1 else ''}" if first else ""
    return [
        f"{'all in view' if window == 'all' else f'window {window}'}{kept}",
        "all weighed" if best == "all" else f"{best} best keys",
        f"{bits} bits",
    ]


@live.lab(
    width=9.8,
    height=4.3,
    neutral="Nothing is saved at first, and the cloud is empty until two savings are chosen.",
    window=live.Choice("keys in the window", STOPS["window"], "all"),
    first=live.Choice("first tokens kept (window)", STOPS["first"], 0),
    best=live.Choice("best keys of each query", STOPS["best"], "all"),
    bits=live.Choice("bits a number", STOPS["bits"], 32),
)
def together_lab(figure: "Figure") -> live.Update:
    """Show what several savings cost together, beside what each costs alone."""
    steps, cloud = figure.subplots(1, 2, width_ratios=(1.35, 1))
    whole = float(stored()["together"][0, 0, 0, 0].mean())  # nats
    points = np.array([sum_and_truth(**chosen) for chosen in in_combination()])
    top = 1.05 * points.max()
    rows = np.arange(4)
    bars = steps.barh(rows, np.zeros(4), height=0.62, color=[plots.BLUE] * 3 + [plots.ORANGE])
    texts = [steps.text(0, row, "", va="center") for row in rows]
    (sum_line,) = steps.plot([0, 0], [-0.4, 3.4], ":", color=plots.GREY, lw=1.6)
    steps.invert_yaxis()
    names = [steps.text(-0.02, row, "", ha="right", va="center", transform=steps.get_yaxis_transform()) for row in rows]
    names[3].set(text="together", weight="bold")
    widest = "window 64 + first 4"  # never seen: the layout leaves room for it
    steps.text(-0.02, 0, widest, ha="right", va="center", alpha=0, transform=steps.get_yaxis_transform())
    steps.set(xlim=(0, 1.16 * top), yticks=(), xlabel="loss above the whole model's, nats a token")
    cloud.plot([0, top], [0, top], color=plots.GREY, lw=1)
    (others,) = cloud.plot(*points.T, "o", color=plots.BLUE, ms=4, alpha=0.5)
    (dot,) = cloud.plot([0], [0], "o", ms=12, color=plots.ORANGE, clip_on=False)
    cloud.text(0.98 * top, 0.04 * top, "on the line: they add up", ha="right", color=plots.GREY, size=10.5)
    cloud.set(xlim=(0, top), ylim=(0, top), xlabel="added up, nats", ylabel="together, nats")
    small = points[points[:, 0] < SMALL]
    off = float(np.abs(small[:, 1] - small[:, 0]).max())
    in_all = (
        f"Of {len(points)} combinations the {len(small)} whose sum is below {SMALL} nats are within {off:.2f} of it. "
    )
    label(figure)

    def update(window: Any, first: int, best: Any, bits: int) -> str:
        chosen = {"window": window, "first": first, "best": best, "bits": bits}
        losses = [float(dearer(**part).mean()) for part in alone(**chosen).values()]
        added, truth = sum_and_truth(**chosen)
        starts = [0.0, losses[0], losses[0] + losses[1], 0.0]
        for bar, text, start, loss in zip(bars, texts, starts, [*losses, truth], strict=True):
            bar.set_x(start)
            bar.set_width(loss)
            text.set_x(max(added, truth, *starts) + 0.03 * top)
            text.set_text(f"{loss:.2f}" if loss < 0.005 else f"+{loss:.2f}")
        for name, words in zip(names, names_of(**chosen), strict=False):
            name.set_text(words)
        sum_line.set_xdata([added, added])
        dot.set_data([added], [truth])
        several = sum(part != WHOLE for part in alone(**chosen).values()) > 1
        others.set_visible(several)
        finding = (
            f"Losses below {SMALL} nats add up,\nto within {off:.2f}"
            if several
            else "Choose two savings,\nor all three"
        )
        cloud.set_title(finding)
        tokens, each = kept_bytes(**chosen)
        all_tokens, all_each = kept_bytes()
        smaller = all_tokens * all_each / (tokens * each)
        perplexity, if_added, as_it_is = (float(np.exp(whole + rise)) for rise in (truth, added, 0.0))
        steps.set_title(
            f"Perplexity {perplexity:.0f}, where adding up gives {if_added:.0f}\n"
            f"kept: {tokens} tokens of {all_tokens}, {each / 1000:.1f} kB each"
        )
        parts = "; ".join(f"{name} {loss:+.2f}" for name, loss in zip(names_of(**chosen), losses, strict=True))
        on_each = ", ".join(f"{rise:+.2f}" for rise in dearer(**chosen))
        return (
            f"Perplexity is {perplexity:.1f}, as it is {as_it_is:.1f}. Alone, in nats a token: {parts}; added up "
            f"{added:+.2f}, together {truth:+.2f} (on the three texts {on_each}). The cache keeps {tokens} of "
            f"{all_tokens} tokens, {each / 1000:.1f} kB each: {tokens * each / all_tokens / 1000:.1f} kB a token "
            f"read, {smaller:.1f} times less than the whole. {in_all if several else ''}Stored results."
        )

    return update


def forgets(
    smollm: "Pretrained", window: Any = "all", first: int = 0, best: Any = "all", bits: int = 32, text: str = ""
) -> str:
    """Measure any combination, not only the stored ones, on a text of your own (default: the story).

    Returns the perplexities, in lines.
    """
    chosen = {"window": window, "first": first, "best": best, "bits": bits}
    ids = smollm.tokenizer.encode(text or measures.STORY)[None, : measures.PAGE + 1]
    if ids.shape[1] <= measures.SEEN + 1:
        raise ValueError(f"the text has {ids.shape[1]} tokens; expected more than {measures.SEEN + 1}")

    def nats(settings: dict[str, Any]) -> float:
        attend = measures.forgets(**settings)
        return float(measures.losses(smollm.model, ids, attend=attend)[0, measures.SEEN :].mean(dtype=np.float64))

    whole = nats(WHOLE)
    rises = {
        name: nats(part) - whole if part != WHOLE else 0.0
        for name, part in zip(names_of(**chosen), alone(**chosen).values(), strict=True)
    }
    results = {"as it is": 0.0} | rises | {"added up": sum(rises.values()), "together": nats(chosen) - whole}
    return "\n".join(f"{name:20} perplexity {np.exp(whole + rise):7.1f}" for name, rise in results.items())
