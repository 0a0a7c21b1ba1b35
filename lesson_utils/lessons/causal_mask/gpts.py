"""Small GPTs on a text: how they are trained and measured, what they write, and on what their outputs depend."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.lessons import bugs
from lesson_utils.maths import models, ops, tasks, training
from lesson_utils.maths.checks import Array, Ids

# --- Bits, and what they are compared with ----------------------------------------------------------------------------


def bits(nats: float) -> float:
    return nats / float(np.log(2))


def windows(ids: Ids, T: int) -> tuple[Ids, Ids]:
    """Cut a whole text into windows that do not overlap: x and y, each (B, T); y[:, t] comes after x[:, t]."""
    B = (len(ids) - 1) // T
    return ids[: B * T].reshape(B, T), ids[1 : B * T + 1].reshape(B, T)


def answers(model: models.GPT, batch: tuple[Ids, Ids]) -> Array:
    """Return the probability that a GPT gives to each target: x, y (B, T) → (B, T)."""
    found = []
    for x, y in zip(*(np.array_split(part, max(1, len(part) // 64)) for part in batch), strict=True):
        p = ops.softmax(model.forward(x)[0].astype(float))  # (B, T, V)
        found.append(np.take_along_axis(p, y[..., None], axis=-1)[..., 0])
    return np.concatenate(found)


def window_bits(model: models.GPT, batch: tuple[Ids, Ids]) -> Array:
    """Return the mean loss of each window in bits a character: x, y (B, T) → (B,)."""
    return np.asarray(-np.log2(answers(model, batch)).mean(axis=-1))


def uncertain(values: Array) -> Array:
    """Return two standard errors of the mean of independent values, along the last axis."""
    return np.asarray(2 * values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def bigram_entropy(ids: Ids) -> float:
    """Bits a character that are left for who knows how often each character follows each other one."""
    pairs = np.unique(np.stack([ids[:-1], ids[1:]]), axis=1, return_counts=True)[1] / (len(ids) - 1)
    firsts = np.unique(ids[:-1], return_counts=True)[1] / (len(ids) - 1)
    return float((firsts * np.log2(firsts)).sum() - (pairs * np.log2(pairs)).sum())


# --- What a model writes ----------------------------------------------------------------------------------------------


def words_in(text: str) -> list[str]:
    """Words of at least three letters."""
    return re.findall(r"[^\W\d_]{3,}", text)


def read(vocabulary: tasks.Vocabulary, ids: Ids) -> str:
    """Decode ids without ends and paddings, which a model that is drawn from freely also gives now and then."""
    return vocabulary.decode(ids[ids >= tasks.FIRST_SYMBOL])


def writes(model: models.GPT, vocabulary: tasks.Vocabulary, prompts: Ids, length: int, skip: int = 0) -> list[str]:
    """Continue each prompt (B, T) at τ = 0.7, and return all but the first `skip` symbols, most words first.

    Runs of blanks and line ends are written as one blank.
    """
    ids = model.generate(prompts, length, np.random.default_rng(5), 0.7)
    texts = [" ".join(read(vocabulary, row).split()) for row in ids[:, skip:]]
    return sorted(texts, key=lambda text: -len(words_in(text)))


def known_words(text: str) -> frozenset[str]:
    return frozenset(words_in(text))


def word_shares(texts: Sequence[str], known: frozenset[str]) -> tuple[float, float]:
    """Return the share of the words in texts that are known, and the share that are different."""
    words = [word for text in texts for word in words_in(text)]
    count = max(len(words), 1)
    return sum(word in known for word in words) / count, len(set(words)) / count


# --- Training, watched ------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The measures of a model in training, one after the other."""

    steps: list[int]
    bits: list[float]  # of held-out text
    texts: list[str]
    shares: list[float]  # of real words


class Watch:
    """A callback of `training.fit` that measures the validation loss, has the model write, and prints both at once."""

    def __init__(self, model: models.GPT, vocabulary: tasks.Vocabulary, validation: Any, text: str) -> None:
        self.model, self.vocabulary, self.validation = model, vocabulary, validation
        self.known, self.prompt = known_words(text), text[:1]
        self.seen = Seen([], [], [], [])
        print(HEADINGS)
        self(0)

    def __call__(self, step: int, *_: object) -> None:
        prompts = np.tile(self.vocabulary.encode(self.prompt), (8, 1))  # (8, 1)
        texts = writes(self.model, self.vocabulary, prompts, 120)
        self.seen.steps.append(step)
        self.seen.bits.append(bits(self.model.loss(self.validation)))
        self.seen.texts.append(texts[0])
        self.seen.shares.append(word_shares(texts, self.known)[0])
        _print_row(self.seen, -1)


HEADINGS = "steps   bits   real words   what it writes (of 8 texts, the one with most words)"


def read_along(seen: Seen) -> None:
    """Print what a `Watch` printed while the model was trained."""
    print(HEADINGS)
    for n in range(len(seen.steps)):
        _print_row(seen, n)


def _print_row(seen: Seen, n: int) -> None:
    print(f"{seen.steps[n]:5} {seen.bits[n]:6.2f} {seen.shares[n]:12.0%}   {seen.texts[n][:72]}")


# --- Training, to the end ---------------------------------------------------------------------------------------------


def trained_gpt(config: models.GPTConfig, train: Ids, steps: int, peak: float = 1.2e-2) -> models.GPT:
    """Train a GPT on text as the notebook does, with the same first parameters and the same batches."""
    model = models.GPT(config, np.random.default_rng(0))
    _fit(model, train, steps, 0, peak)
    return model


def _fit(model: models.GPT, train: Ids, steps: int, seed: int, peak: float) -> None:
    schedule = partial(training.warmup_linear, peak=peak, warmup=min(100, steps // 4), total=steps + 1)
    batches = partial(tasks.text_batches, train, 64, 32)
    training.fit(model, batches, steps, schedule=schedule, seed=seed, progress=False)


def trained_under(bug: str, config: models.GPTConfig, train: Ids, steps: int, seed: int) -> models.GPT:
    """Train a GPT with a bug of `bugs` planted in it, or with none ("")."""
    model = models.GPT(config, np.random.default_rng(seed))
    if bug:
        bugs.plant(model, bug)
    batches = partial(tasks.text_batches, train, config.max_length, 16)
    training.fit(model, batches, steps, lr=1e-2, seed=seed, progress=False)
    return model


def unplanted(wrong: models.GPT) -> models.GPT:
    """Return a GPT without bugs that has the parameters of one with a bug."""
    right = models.GPT(wrong.config, np.random.default_rng(0))
    for name, param in right.params().items():
        param.value[...] = wrong.params()[name].value
    return right


# --- Which outputs depend on which inputs -----------------------------------------------------------------------------


def influence(model: models.GPT, ids: Ids) -> Array:
    """Measure how much each output depends on each input, by one backward pass: ids (T,) → (outputs T, inputs T).

    The model reads T copies of the line. In copy i only the logits of position i send back a gradient, so what
    arrives at the inputs of copy i is all that output i depends on. Row i is its norm at each input.
    """
    T = len(ids)
    before = {name: param.grad.copy() for name, param in model.params().items()}
    logits, cache = model.forward(np.tile(ids, (T, 1)))  # (T, T, V)
    dlogits = np.zeros_like(logits)
    own = np.arange(T)
    dlogits[own, own] = np.random.default_rng(0).normal(size=logits.shape[-1])
    dx = model.stack.backward(model.tokens.embedding.logits_backward(dlogits, cache.output), cache.stack)
    for name, param in model.params().items():
        param.grad[...] = before[name]
    found: Array = np.sqrt((dx.astype(float) ** 2).sum(axis=-1))
    return found


# --- The learner's own GPT: the trained model's parameters by name, and the model in float64 to compare with ----------


class Parameters(NamedTuple):
    """The parameters of one layer."""

    gamma_1: Array  # (d_model,), of the norm before attention
    beta_1: Array
    W_Q: Array  # (d_model, d_model)
    W_K: Array
    W_V: Array
    W_O: Array
    gamma_2: Array  # (d_model,), of the norm before the feed-forward layer
    beta_2: Array
    W_1: Array  # (d_model, d_ff)
    b_1: Array
    W_2: Array  # (d_ff, d_model)
    b_2: Array


_NAMES = (
    *(f"attention.{name}" for name in ("norm.gamma", "norm.beta", "inner.W_Q", "inner.W_K", "inner.W_V", "inner.W_O")),
    *(f"feed_forward.{name}" for name in ("norm.gamma", "norm.beta", "inner.wide.W", "inner.wide.b")),
    *("feed_forward.inner.narrow.W", "feed_forward.inner.narrow.b"),
)


def parameters(gpt: models.GPT) -> dict[str, Any]:
    """Return what `my_gpt` takes besides ids: the numbers of a GPT, in float64, so that rounding is far below 1e-6."""
    p = {name: param.value.astype(np.float64) for name, param in gpt.params().items()}
    layers = [Parameters(*(p[f"stack.blocks.{i}.{name}"] for name in _NAMES)) for i in range(gpt.config.num_layers)]
    last = {"gamma": p["stack.norm.gamma"], "beta": p["stack.norm.beta"]}
    return {"table": p["tokens.embedding.table"], "layers": layers, **last, "num_heads": gpt.config.num_heads}


def in_double(gpt: models.GPT) -> models.GPT:
    """Return the same model in float64."""
    from dataclasses import replace

    copy = models.GPT(replace(gpt.config, dtype=np.float64), np.random.default_rng(0))
    for name, param in copy.params().items():
        param.value[...] = gpt.params()[name].value
    return copy
