"""What a part is worth: models without it, and what is measured of them."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.classroom import plots
from lesson_utils.classroom.drawings import sheet, tint
from lesson_utils.maths import layers, ops, tasks
from lesson_utils.maths.attention import causal_mask
from lesson_utils.maths.checks import Array, as_ids
from lesson_utils.maths.layers.basic import LinearCache, Rng
from lesson_utils.maths.layers.cache import KeyValueCache
from lesson_utils.maths.models import GPT, GPTConfig, Transformer, TransformerConfig
from lesson_utils.maths.models.experiments import Change, changed
from lesson_utils.maths.models.gpt import GPTCache
from lesson_utils.maths.tasks import Ids, Vocabulary

# --- 6 · Break it -----------------------------------------------------------------------------------------------------


class Straight(layers.Layer):
    """A feed-forward layer without its ReLU: two matrices, one behind the other."""

    def __init__(self, layer: layers.FeedForward) -> None:
        self.wide, self.narrow = layer.wide, layer.narrow

    def forward(self, x: Array) -> tuple[Array, tuple[LinearCache, LinearCache]]:
        hidden, wide = self.wide.forward(x)
        y, narrow = self.narrow.forward(hidden)
        return y, (wide, narrow)

    def backward(self, dy: Array, cache: tuple[LinearCache, LinearCache]) -> Array:
        wide, narrow = cache
        return self.wide.backward(self.narrow.backward(dy, narrow), wide)


SWITCHES = ("residuals", "norm", "feed-forward", "positions", "mask", "scaling")


class Nothing(layers.Layer):
    """Stands in for a part that is switched off: it gives zeros, and no parameter of its own can learn."""

    def forward(self, x: Array, **inputs: Any) -> tuple[Array, None]:
        return np.zeros_like(x), None

    def backward(self, dy: Array, cache: None) -> Array:
        return np.zeros_like(dy)


def _changes(model: Transformer | GPT, off: str) -> Iterator[Change]:
    """Yield what to set on which object to switch a part off."""
    blocks = model.stack.blocks if isinstance(model, GPT) else (*model.encoder.blocks, *model.blocks)
    residuals = [part for block in blocks for part in vars(block).values() if isinstance(part, layers.Residual)]
    if off == "feed-forward":
        yield from ((r, "inner", Nothing()) for r in residuals if isinstance(r.inner, layers.FeedForward))
    elif isinstance(model, GPT):
        if off != "ReLU":
            raise ValueError(f"{off!r} can't be switched off in a GPT here; 'feed-forward' and 'ReLU' can")
        yield from ((r, "inner", Straight(r.inner)) for r in residuals if isinstance(r.inner, layers.FeedForward))
    elif off == "scaling":
        yield from ((r.inner, "scale", 1.0) for r in residuals if isinstance(r.inner, layers.MultiHead))
    elif off == "residuals":
        yield from ((r, "skip", False) for r in residuals)
    elif off == "norm":
        yield from ((thing, "norm", None) for thing in (*residuals, model.encoder, model))
    elif off == "positions":
        config = replace(model.config, positions="none")
        yield from ((tokens, "config", config) for tokens in (model.source, model.target))
    elif off == "mask":
        yield model, "config", replace(model.config, causal=False)
    else:
        raise ValueError(f"{off!r} can't be switched off; choose from {', '.join(SWITCHES)}")


@contextmanager
def without(model: Transformer | GPT, *off: str) -> Iterator[Transformer | GPT]:
    """Switch off some parts of the model for as long as a `with` block lasts; its parameters stay as they are.

    Args:
        off: any of "residuals" (no x +), "norm", "feed-forward", "positions", "mask" (the decoder's), "scaling"
            (factor 1 on the scores); of a GPT, "feed-forward" or "ReLU".
    """
    with changed(change for name in off for change in list(_changes(model, name))):
        yield model


TASK_LENGTH, TASK_SYMBOLS = 6, 10
READ = tasks.letters(TASK_SYMBOLS)


def reversal_pairs(rng: np.random.Generator, batch: int = 64) -> tuple[Any, Any]:
    """Make a batch for a Transformer: strings of 6 letters, and the same backwards with begin and end."""
    source, target = tasks.reversal(rng, batch, TASK_LENGTH, TASK_SYMBOLS)
    return source, tasks.with_ends(target)


class Measures(NamedTuple):
    """Measures of an encoder–decoder, taken from outside."""

    guided: float  # share of symbols that are right, when the right ones before are given
    alone: float  # share of strings that are all right, when it reads what it wrote itself
    leak: float  # how much the predictions before a changed symbol move: total variation, at most 1; of the worst place
    order: float  # how much the predictions change when the source is turned around
    looks: float  # the share of source positions that cross-attention looks at: exp(entropy) / S
    stream: float  # standard deviation of the decoder's stream at its top
    example: str  # what it writes


def measure(model: Transformer, *off: str, batch: int = 48) -> Measures:
    """Take the model's measures with some parts switched off."""
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    given, wanted = target[:, :-1], target[:, 1:]
    later = range(1, TASK_LENGTH + 1)
    changed = np.stack([given] * TASK_LENGTH)  # (6, B, 7); in each, another symbol is replaced
    for i, at in enumerate(later):
        changed[i, :, at] = 3 + (changed[i, :, at] - 2) % TASK_SYMBOLS
    sources = np.concatenate([source] * TASK_LENGTH)
    with without(model, *off), np.errstate(over="ignore", invalid="ignore"):
        logits, cache = model.forward(source, given)
        p = ops.softmax(np.nan_to_num(logits))
        p_changed = ops.softmax(np.nan_to_num(model.forward(sources, np.concatenate(changed))[0]))
        p_turned = ops.softmax(np.nan_to_num(model.forward(source[:, ::-1], given)[0]))
        written = model.decode(source, TASK_LENGTH + 1)
        cross = np.mean([ops.entropy(weights).mean() for weights in model.maps(cache)["cross"]])
    full = np.zeros_like(wanted)
    full[:, : written.shape[1]] = written
    return Measures(
        guided=float((p.argmax(axis=-1) == wanted).mean()),
        alone=float((full == wanted).all(axis=1).mean()),
        leak=max(
            _variation(p[:, :at], q[:, :at]) for at, q in zip(later, np.split(p_changed, len(later)), strict=True)
        ),
        order=_variation(p, p_turned),
        looks=math.exp(cross) / TASK_LENGTH,
        stream=float(cache.decoded.stream.std()),
        example=READ.decode(written[0]),
    )


def _variation(p: Array, q: Array) -> float:
    """Total variation between predictions, ½ Σ |p − q|: the largest over positions, the mean over strings."""
    return float((np.abs(p - q).sum(axis=-1) / 2).max(axis=1).mean())


def every_setting(model: Transformer) -> dict[tuple[bool, ...], Measures]:
    """Take the measures at all 64 settings of the switches, each True where the part is on."""
    combinations = itertools.product((True, False), repeat=len(SWITCHES))
    return {on: measure(model, *(s for s, is_on in zip(SWITCHES, on, strict=True) if not is_on)) for on in combinations}


def untrained() -> Transformer:
    config = TransformerConfig(vocab=TASK_SYMBOLS + 3, d_model=32, num_heads=2, num_layers=2)
    return Transformer(config, np.random.default_rng(0))


# --- 9 · Trained without it -------------------------------------------------------------------------------------------


def random_future(model: Transformer, *off: str, batch: int = 512) -> float:
    """Return the share of next symbols that are right when all that stands behind each position is random."""
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    given, wanted = target[:, :-1], target[:, 1:]
    rng, right = np.random.default_rng(7), []
    with without(model, *off):
        for at in range(given.shape[1]):
            shuffled = given.copy()
            shuffled[:, at + 1 :] = rng.integers(3, 3 + TASK_SYMBOLS, size=shuffled[:, at + 1 :].shape)
            logits = model.forward(source, shuffled)[0]
            right.append(logits[:, at].argmax(axis=-1) == wanted[:, at])
    return float(np.mean(right))


def right_without_cache(model: Transformer, *off: str, behind: bool = False, batch: int = 512) -> float:
    """Return the share of strings that are right when the model writes without a key–value cache.

    At each step it computes all positions anew.

    Args:
        behind: put random letters behind what is written so far, as many as training had there.
    """
    source, target = reversal_pairs(np.random.default_rng(2024), batch)
    rng, length = np.random.default_rng(3), target.shape[1] - 1
    written = target[:, :1]
    with without(model, *off):
        for at in range(length):
            rest = rng.integers(3, 3 + TASK_SYMBOLS, size=(batch, length - at - 1))
            given = np.concatenate([written, rest], axis=1) if behind else written
            following = model.forward(source, given)[0][:, at].argmax(axis=-1)
            written = np.concatenate([written, following[:, None]], axis=1)
    return float((written == target).all(axis=1).mean())


@plots.still(9.2, 4.3)
def parts_plot(
    figure: "plots.Figure", good: Measures, off: Mapping[str, Measures], never: Mapping[str, Measures]
) -> str:
    """Whole strings right, by part: as trained, with the part off, and trained without it."""
    fine = [name for name, m in never.items() if m.alone > 0.9]
    ax = figure.add_subplot()
    rows = np.arange(len(off))
    ax.axvline(good.alone, color=plots.INK, lw=2.2, zorder=0)
    ax.text(good.alone, -0.62, "as trained", ha="center", va="bottom", weight="bold")
    for shift, measures, colour, hatch, label in (
        (-0.2, off, plots.ORANGE, "", "switched off after training"),
        (0.2, never, plots.BLUE, "//", "trained without it"),
    ):
        values = [measures[name].alone for name in off]
        ax.barh(rows + shift, values, 0.36, color=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
        for row, value in zip(rows, values, strict=True):
            behind = {"fc": "white", "ec": "none", "pad": 0.6}
            ax.text(value + 0.012, row + shift, f"{value:.2f}", va="center", color=colour, bbox=behind)
    ax.set_yticks(rows, list(off))
    ax.set(xlim=(0, 1.12), ylim=(len(off) - 0.4, -0.6), xlabel="share of whole strings right, writing on its own")
    ax.tick_params(axis="y", length=0)
    ax.set_title(f"{len(fine)} of {len(off)} parts are not needed, if it learns without them", pad=20)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    listed = "; ".join(f"{name} {off[name].alone:.2f} and {never[name].alone:.2f}" for name in off)
    return (
        f"… Not needed: {', '.join(fine)}. Whole strings right as trained {good.alone:.2f}; with the part off after "
        f"training, and trained without it: {listed}."
    )


# --- 9 · The same question for text -----------------------------------------------------------------------------------

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


# --- 9 · Where a neuron fires -----------------------------------------------------------------------------------------


def streams(model: GPT, ids: Ids, attention: bool = True) -> Iterator[tuple[str, Array]]:
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
    x = [x for name, x in streams(model, ids, attention) if name == "attention"][layer]
    feed = model.stack.blocks[layer].feed_forward
    normed = feed.norm.forward(x)[0] if feed.norm else x
    return ops.relu(feed.inner.wide.forward(normed)[0])


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
def neurons_plot(figure: "plots.Figure", chosen: list[Neuron]) -> str:
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
    return f"… Most often: {'; '.join(clauses)}."


# --- 9 · Is anything erased? ------------------------------------------------------------------------------------------


def own_share(model: GPT, ids: Ids) -> list[float]:
    """Return how much of each token's own vector the stream still holds: at the input, and after each part.

    The share is (x · e) / (e · e), with e the token's vector from the table, in the mean over ids, (B, T).
    """
    own, _ = model.tokens.embedding.forward(ids)  # (B, T, d_model)
    return [float(((x * own).sum(axis=-1) / (own**2).sum(axis=-1)).mean()) for _, x in streams(model, ids)]


class Untied(GPT):
    """A GPT whose output has a table of its own."""

    def __init__(self, config: GPTConfig, rng: Rng | None) -> None:
        super().__init__(config, rng)
        self.output = layers.Embedding(config.vocab, config.d_model, rng, config.dtype)

    def forward(
        self,
        ids: ArrayLike,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
        mask: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Array, GPTCache]:
        _, cache = super().forward(ids, past, rng, mask, last)
        top, _ = cache.output  # what the other table read
        logits, output = self.output.logits_forward(top)
        return logits, cache._replace(output=output)

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        loss, cross = ops.cross_entropy_forward(logits, as_ids(batch[1], "targets", ndim=2))
        dx = self.output.logits_backward(ops.cross_entropy_backward(1.0, cross), output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss
