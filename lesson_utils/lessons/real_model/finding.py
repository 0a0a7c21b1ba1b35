"""Find one: what each of the 270 heads does, beside heads that nobody has trained, and its map on a sentence."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson_utils.classroom import live, plots
from lesson_utils.classroom.drawings import drawable
from lesson_utils.lessons.real_model import measures
from lesson_utils.lessons.real_model.stored import NAME, label, stored
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lesson_utils.maths.pretrained import Pretrained

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


def census(p: "Pretrained | None" = None) -> Census:
    """Score the model's heads, or return what is stored. A model other than ours is measured, which takes a while."""
    known = stored()
    sentence = str(known["sentence"])
    if p is None:
        tokens, maps = [str(t) for t in known["tokens"]], known["maps"] / np.float32(255)
        return Census(known["scores_real"], known["scores_random"], sentence, lambda text: (tokens, maps), True)

    @lru_cache(16)
    def look(text: str) -> tuple[list[str], Array]:
        ids = p.tokenizer.encode(text or sentence)[:MOST_TOKENS]
        return p.tokenizer.tokens(ids), measures.all_maps(p.model, ids[None])[0]

    if p.name.lower().startswith(NAME):
        return Census(known["scores_real"], known["scores_random"], sentence, look, False)
    untrained = GPT(p.model.config, np.random.default_rng(0))
    return Census(scores(p.model, p), scores(untrained, p), sentence, look, False)


def scores(model: GPT, p: "Pretrained") -> Array:
    """Measure all five scores, (5, layers, heads)."""
    ids = p.tokenizer.encode(measures.STORY)[: measures.PAGE]
    found = measures.scores_on_text(measures.all_maps(model, ids[None])[0], ids)
    twice = measures.copies(np.random.default_rng(7), len(p.tokenizer), 3)
    found["induction"] = measures.induction_score(measures.all_maps(model, twice), measures.COPIED).mean(axis=0)
    return np.stack([found[name] for name in measures.SCORES])


def _controls(found: Census) -> dict[str, live.Control]:
    _, layers, heads = found.real.shape
    controls: dict[str, live.Control] = {
        "score": live.Choice("score", measures.SCORES, "entropy"),
        "layer": live.Slider("layer", 0, layers - 1, 0),
        "head": live.Slider("head", 0, heads - 1, 0),
    }
    if not found.from_store:
        controls["sentence"] = live.Word("sentence", found.sentence, 160)
    return controls


def _found(smollm: "Pretrained | None") -> tuple[Census]:
    return (census(smollm),)


@live.lab(
    width=9.8,
    height=4.1,
    controls=_controls,
    prepare=_found,
    example=lambda: (None,),
    neutral="The heads are scored by their entropy at first, which tells nothing of induction heads.",
)
def census_lab(figure: "Figure", found: Census) -> live.Update:
    """Show all heads by one of five scores, beside untrained ones; and the map of the chosen head on a sentence."""
    trained, untrained, page = figure.subplots(1, 3, width_ratios=(1, 1, 3.6))
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
        trained.set_title(f"{many} of {found.real[n].size} heads\n{SAYS[score]}", size=11.5)
        page.set_title(f"Layer {layer}, head {head}: {score} {found.real[n, layer, head]:.2f}")
        rows = "; ".join(
            f"{tokens[i]!r} on {tokens[int(chosen[i].argmax())]!r} {chosen[i].max():.2f}"
            for i in range(max(0, T - 4), T)
        )
        return (
            f"{many} of {found.real[n].size} heads {SAYS[score]} (score above {LOWEST[score]}), and {none} of the "
            f"untrained. Layer {layer}, "
            f"head {head} scores {found.real[n, layer, head]:.2f}. Its last rows lay most on: {rows}."
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
