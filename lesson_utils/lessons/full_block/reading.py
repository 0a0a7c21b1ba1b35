"""The use of feed-forward layers: models that read text, their loss in bits, and what single neurons wait for."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import sheet, tint
from lesson_utils.maths import layers, ops
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array
from lesson_utils.maths.models import GPT
from lesson_utils.maths.models.experiments import changed
from lesson_utils.maths.tasks import Ids, Vocabulary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH = 32


def bits(model: GPT, ids: Ids, windows: int = 512) -> float:
    """Return the mean loss in bits a character, on windows of 32 characters spread over a text."""
    starts = np.linspace(0, len(ids) - LENGTH - 1, windows).astype(int)
    x = ids[starts[:, None] + np.arange(LENGTH + 1)]  # (windows, 33)
    p = ops.softmax(model.forward(x[:, :-1])[0])
    answers = np.take_along_axis(p, x[:, 1:, None], axis=-1)
    return float(-np.log2(np.maximum(answers, np.finfo(answers.dtype).tiny)).mean())


class Computed(layers.Layer):
    """A feed-forward layer whose output a function computes from x, W_1, b_1, W_2 and b_2. It has no way back."""

    def __init__(self, layer: layers.FeedForward, function: Callable[..., Array]) -> None:
        self.layer, self.function = layer, function

    def forward(self, x: Array) -> tuple[Array, None]:
        linear = (self.layer.wide, self.layer.narrow)
        return self.function(x, *(part.value for one in linear for part in (one.W, one.b) if part)), None


def feeding(model: GPT, function: Callable[..., Array]) -> AbstractContextManager[None]:
    """Let a function compute the model's feed-forward layers for as long as a `with` block lasts.

    Args:
        function: (x, W_1, b_1, W_2, b_2) -> y.
    """
    parts = [block.feed_forward for block in model.stack.blocks]
    return changed([(part, "inner", Computed(part.inner, function)) for part in parts])


def firing(model: GPT, ids: Ids, layer: int = 1) -> Array:
    """Return how strongly each neuron of a layer's feed-forward part fires on each character: (B, T) → (B, T, d_ff)."""
    mask = causal_mask(ids.shape[1])
    x = model.tokens.forward(ids)[0]
    for block in model.stack.blocks[:layer]:
        x = block.forward(x, mask)[0]
    block = model.stack.blocks[layer]
    attention, feed = block.attention, block.feed_forward
    x = attention.forward(x, lambda x: attention.inner.forward(x, mask=mask))[0]
    normed = feed.norm.forward(x)[0] if feed.norm else x
    return ops.relu(feed.inner.wide.forward(normed)[0])


def own_share(model: GPT, ids: Ids) -> list[float]:
    """Return how much of each token's own vector the stream still holds: at the input, and after each part.

    The share is (x · e) / (e · e), with e the token's vector from the table, in the mean over ids, (B, T).
    """
    own, _ = model.tokens.embedding.forward(ids)  # (B, T, d_model)
    x, mask = model.tokens.forward(ids)[0], causal_mask(ids.shape[1])

    def share(x: Array) -> float:
        return float(((x * own).sum(axis=-1) / (own**2).sum(axis=-1)).mean())

    shares = [share(x)]
    for block in model.stack.blocks:
        heads, feed = block.attention.inner, block.feed_forward.inner
        x = block.attention.forward(x, lambda x: heads.forward(x, mask=mask))[0]  # noqa: B023
        shares.append(share(x))
        x = block.feed_forward.forward(x, feed.forward)[0]
        shares.append(share(x))
    return shares


class Neuron(NamedTuple):
    """A neuron and what it fires at most."""

    number: int
    ends: str  # the two characters, the last of which it fires at most often
    share: float  # of its strongest places, how many are those
    places: list[str]  # the strongest, each with the characters before it


def neurons(model: GPT, vocabulary: Vocabulary, ids: Ids, how_many: int = 5, strongest: int = 20) -> list[Neuron]:
    """Find the neurons whose strongest places are most alike, one for each place; from 400 windows of a text."""
    windows = ids[: min(400, len(ids) // LENGTH) * LENGTH].reshape(-1, LENGTH)
    fires = firing(model, windows)[:, 8:]  # each with eight characters before it
    found = []
    for number in range(fires.shape[-1]):
        top = np.argsort(-fires[..., number], axis=None)[: 4 * strongest]
        rows, places = np.unravel_index(top, fires.shape[:2])
        texts = [vocabulary.decode(windows[i, at : at + 9]) for i, at in zip(rows, places, strict=True)]
        texts = list(dict.fromkeys(texts))[:strongest]  # each once
        ends, count = Counter(text[-2:] for text in texts).most_common(1)[0]
        found.append(Neuron(number, ends, count / len(texts), texts))
    chosen: dict[str, Neuron] = {}
    for neuron in sorted(found, key=lambda neuron: -neuron.share):
        if neuron.ends[0] != neuron.ends[1]:  # not in rows of blanks or asterisks
            chosen.setdefault(neuron.ends, neuron)
    return list(chosen.values())[:how_many]


@plots.still(9.2, 3.1)
def neurons_plot(figure: "Figure", chosen: list[Neuron]) -> str:
    """Draw the strongest places of some neurons in a text."""
    ax = sheet(figure)
    clauses = []
    for row, neuron in enumerate(chosen):
        y = 2.32 - 0.5 * row
        ax.text(0.02, y, f"neuron {neuron.number}", va="center", weight="bold", color=plots.GREEN)
        different = list({text[-4:]: text for text in reversed(neuron.places)}.values())[::-1][:7]
        for n, text in enumerate(different):
            x = 1.3 + 1.13 * n
            shown = [char if char.isprintable() else "↵" for char in text]
            for k, char in enumerate(shown):
                last = k == len(shown) - 1
                look = {"fc": tint(plots.GREEN, 0.55), "ec": "none", "pad": 1.5} if last else None
                at = x + 0.105 * k
                ax.text(at, y, char, va="center", ha="center", family="monospace", size=11.5, bbox=look)
        clauses.append(f"neuron {neuron.number} at {neuron.ends!r} in {neuron.share:.0%} of its strongest places")
    first = chosen[0]
    ax.set_title(
        f"Neuron {first.number} waits for “{first.ends[-1]}” after “{first.ends[0]}”; others, for other places"
    )
    return (
        f"Neuron {first.number} waits for {first.ends[-1]!r} after {first.ends[0]!r}. Most often: {'; '.join(clauses)}."
    )
