"""The use of feed-forward layers: models that read text, their loss in bits, and where single neurons fire."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
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


def parts(model: GPT, ids: Ids, attention: bool = True) -> Iterator[tuple[str, Array]]:
    """Run a GPT part by part, and yield each part's name and the stream that it leaves: "input" first.

    Args:
        attention: False leaves the attention of all blocks out.
    """
    x, mask = model.tokens.forward(ids)[0], causal_mask(ids.shape[1])
    yield "input", x
    for block in model.stack.blocks:
        if attention:
            x = block.attention.forward(x, partial(block.attention.inner.forward, mask=mask))[0]
        yield "attention", x
        x = block.feed_forward.forward(x, block.feed_forward.inner.forward)[0]
        yield "feed-forward", x


def firing(model: GPT, ids: Ids, layer: int = 1, attention: bool = True) -> Array:
    """Return how strongly each neuron of a layer's feed-forward part fires on each character: (B, T) → (B, T, d_ff).

    Args:
        attention: False leaves the attention of all blocks out.
    """
    x = [x for name, x in parts(model, ids, attention) if name == "attention"][layer]
    feed = model.stack.blocks[layer].feed_forward
    normed = feed.norm.forward(x)[0] if feed.norm else x
    return ops.relu(feed.inner.wide.forward(normed)[0])


def own_share(model: GPT, ids: Ids) -> list[float]:
    """Return how much of each token's own vector the stream still holds: at the input, and after each part.

    The share is (x · e) / (e · e), with e the token's vector from the table, in the mean over ids, (B, T).
    """
    own, _ = model.tokens.embedding.forward(ids)  # (B, T, d_model)
    return [float(((x * own).sum(axis=-1) / (own**2).sum(axis=-1)).mean()) for _, x in parts(model, ids)]


class Neuron(NamedTuple):
    """A neuron and where it fires most."""

    number: int
    ends: str  # the two characters in which most of its strongest places end
    share: float  # of its strongest places, how many end in these two
    letter: float  # and how many in the same last character
    places: list[str]  # the strongest, each with the characters before it


BEFORE = 8  # each place is shown with so many characters before it


def _windows(ids: Ids) -> Ids:
    """Cut 400 windows from the beginning of a text."""
    return ids[: min(400, len(ids) // LENGTH) * LENGTH].reshape(-1, LENGTH)


def every_neuron(model: GPT, vocabulary: Vocabulary, ids: Ids, strongest: int = 20) -> list[Neuron]:
    """Find the places in a text where each neuron of the second layer fires most, and what they have in common."""
    windows = _windows(ids)
    fires = firing(model, windows)[:, BEFORE:]
    found = []
    for number in range(fires.shape[-1]):
        top = np.argsort(-fires[..., number], axis=None)[: 4 * strongest]
        rows, places = np.unravel_index(top, fires.shape[:2])
        texts = [vocabulary.decode(windows[i, at : at + BEFORE + 1]) for i, at in zip(rows, places, strict=True)]
        texts = list(dict.fromkeys(texts))[:strongest]  # each once
        ends, pairs = Counter(text[-2:] for text in texts).most_common(1)[0]
        _, letters = Counter(text[-1] for text in texts).most_common(1)[0]
        found.append(Neuron(number, ends, pairs / len(texts), letters / len(texts), texts))
    return found


def tidiest(found: list[Neuron], how_many: int = 5) -> list[Neuron]:
    """Pick the neurons whose strongest places end most often in the same two characters, one for each two."""
    chosen: dict[str, Neuron] = {}
    for neuron in sorted(found, key=lambda neuron: -neuron.share):
        if neuron.ends[0] != neuron.ends[1]:  # not in rows of blanks or asterisks
            chosen.setdefault(neuron.ends, neuron)
    return list(chosen.values())[:how_many]


def mean_firing(
    model: GPT, vocabulary: Vocabulary, ids: Ids, neuron: Neuron, attention: bool = True
) -> tuple[float, float]:
    """Return how strongly a neuron fires at its two characters, and at the last of them after any other one."""
    windows = _windows(ids)
    first, last = vocabulary.encode(neuron.ends)
    fires = firing(model, windows, attention=attention)[:, BEFORE:, neuron.number]
    there = windows[:, BEFORE:] == last
    after_first = windows[:, BEFORE - 1 : -1] == first
    return float(fires[there & after_first].mean()), float(fires[there & ~after_first].mean())


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
    earlier, later = ("a blank" if char == " " else f"“{char}”" for char in first.ends)
    ax.set_title(f"Neuron {first.number} fires most strongly at {later} after {earlier}")
    return (
        f"Neuron {first.number} fires most strongly at {first.ends[-1]!r} after {first.ends[0]!r}. Most often: "
        f"{'; '.join(clauses)}."
    )
