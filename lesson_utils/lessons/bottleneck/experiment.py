"""Models that write a string backwards: trained, asked, and measured."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from lesson_utils.maths import ops, recurrent, tasks, training
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.models import Seq2Seq, Seq2SeqConfig

LETTERS = tasks.letters()
STEPS_BACK = 30


def pairs(rng: np.random.Generator, longest: int = 20, repeats: float = 0.0) -> tasks.Pair:
    """Make a batch for `training.fit`: 64 random strings, and the same backwards between begin and end.

    All have one length, from 3 to `longest`. With the probability `repeats` a letter is the one before it once more.
    """
    source, _ = tasks.reversal_batches(64, 3, longest)(rng)
    if repeats:
        again = rng.random(source.shape) < repeats
        for s in range(1, source.shape[1]):
            source[:, s] = np.where(again[:, s], source[:, s - 1], source[:, s])
    return source, tasks.with_ends(source[:, ::-1])


def untrained(attention: str | None = None, d_hidden: int = 64, bidirectional: bool = True, seed: int = 0) -> Seq2Seq:
    """Make a new model with GRU cells; `attention` as for `Seq2SeqConfig`."""
    config = Seq2SeqConfig(len(LETTERS), len(LETTERS), attention, d_hidden=d_hidden, bidirectional=bidirectional)
    return Seq2Seq(config, np.random.default_rng(seed))


def fit(
    model: Seq2Seq,
    steps: int,
    longest: int = 20,
    peak: float = 3e-3,
    repeats: float = 0.0,
    seed: int = 0,
    callback: Callable[..., None] | None = None,
    progress: bool = True,
) -> training.History:
    """Train with Adam: its rate rises for steps / 25 to `peak`, then falls to 0; gradients are clipped at norm 1."""
    schedule = partial(training.warmup_linear, peak=peak, warmup=steps // 25, total=steps)
    batches = partial(pairs, longest=longest, repeats=repeats)
    return training.fit(model, batches, steps, schedule=schedule, callback=callback, seed=seed, progress=progress)


# --- What a model gets right ------------------------------------------------------------------------------------------


def answer(model: Seq2Seq, word: str) -> tuple[str, Array | None]:
    """Return what a model writes for a word, and its weights (T, S): a row for each symbol, its end included."""
    ids, alignment = model.decode(LETTERS.encode(word)[None], len(word) + 2)
    return LETTERS.decode(ids[0]), None if alignment is None else alignment[0]


def answers(model: Seq2Seq, source: tasks.Ids) -> tuple[tasks.Ids, tasks.Ids]:
    """Return the answers to (B, S) letters, cut or padded to the right length, and the right ones, (B, S + 1) each."""
    wanted = tasks.with_ends(source[:, ::-1])[:, 1:]
    ids, _ = model.decode(source, wanted.shape[1])
    return np.pad(ids, ((0, 0), (0, wanted.shape[1] - ids.shape[1]))), wanted


def right_letters(model: Seq2Seq, source: tasks.Ids) -> Mask:
    """Tell which symbols of the answers to (B, S) letters are right, the end included: (B, S + 1)."""
    ids, wanted = answers(model, source)
    right: Mask = ids == wanted
    return right


def accuracy(model: Seq2Seq, length: int, tests: int = 200) -> float:
    """Return the fraction of random strings that the model reverses without a single mistake, the end included."""
    source, _ = tasks.reversal(np.random.default_rng(length), tests, length)
    return float(right_letters(model, source).all(axis=-1).mean())


class Kept(NamedTuple):
    """The share of letters that arrive from strings of one length."""

    present: float  # share of the letters that are somewhere in the answer, each as often as it was read
    in_place: float  # share of the letters that stand where they should
    in_order: float  # share of pairs of letters whose earlier one stands before the later one; by chance 1/2
    chance: float  # `present`, had the model answered another string of the test
    anagrams: float  # share of the wrong answers that have all letters, and no other: only their order is wrong
    prompted: float  # share of the letters that are right when all letters before them in the answer are given
    prompted_last: float  # the same, of the last letter


def kept(model: Seq2Seq, length: int, tests: int = 300) -> Kept:
    """Measure what a model keeps of random strings: their letters, and their order."""
    source, target = tasks.reversal(np.random.default_rng(1000 + length), tests, length)
    written = answers(model, source)[0][:, :length]
    counts, wanted = _letters(written), _letters(target)
    in_place = written == target
    wrong = ~in_place.all(axis=1)
    logits, _ = model.forward(source, tasks.with_ends(target)[:, :-1])
    prompted = logits[:, :length].argmax(axis=-1) == target
    return Kept(
        present=float(np.minimum(counts, wanted).sum() / target.size),
        in_place=float(in_place.mean()),
        in_order=_pairs_in_order(written, target),
        chance=float(np.minimum(np.roll(counts, 1, axis=0), wanted).sum() / target.size),
        anagrams=float((counts == wanted)[wrong].all(axis=1).mean()) if wrong.any() else 0.0,
        prompted=float(prompted.mean()),
        prompted_last=float(prompted[:, -1].mean()),
    )


def _letters(ids: tasks.Ids) -> Array:
    """Count each letter of each string, (B, 26); this forgets their order."""
    return (ids[..., None] == np.arange(tasks.FIRST_SYMBOL, len(LETTERS))).sum(axis=1)


def _pairs_in_order(written: tasks.Ids, wanted: tasks.Ids) -> float:
    """Return the share of pairs of letters that stand in the right order, of letters that occur once in both."""
    right = pairs = 0
    for said, string in zip(written.tolist(), wanted.tolist(), strict=True):
        once = [letter for letter in said if said.count(letter) == string.count(letter) == 1]
        places = np.array([string.index(letter) for letter in once])
        right += int(np.triu(places[:, None] < places, 1).sum())
        pairs += len(once) * (len(once) - 1) // 2
    return right / max(pairs, 1)


class Doubles(NamedTuple):
    """The share of strings that come out right, by how letters repeat in them."""

    different: float  # every letter once
    apart: float  # half as many letters, twice each, far from each other: abcdabcd
    doubled: float  # the same in pairs: aabbccdd


def with_doubles(model: Seq2Seq, length: int, tests: int = 200) -> Doubles:
    """Measure what becomes of strings whose letters repeat."""
    rng = np.random.default_rng(2)
    different = np.stack([rng.permutation(26)[:length] for _ in range(tests)]) + tasks.FIRST_SYMBOL
    half = different[:, : (length + 1) // 2]
    sources = different, np.tile(half, 2)[:, :length], np.repeat(half, 2, axis=1)[:, :length]
    return Doubles(*(float(right_letters(model, source).all(axis=1).mean()) for source in sources))


def reach(model: Seq2Seq, backwards: bool = False) -> Array:
    """Return a gradient's norm 0 … STEPS_BACK steps before the end of an encoder's reading, on random letters.

    It belongs to the half that reads forwards, or to the one that reads backwards, on its own way through the string.
    """
    rng = np.random.default_rng(0)
    ids, _ = tasks.reversal(rng, 64, STEPS_BACK + 1)
    params = [param.value[int(backwards)] for param in model.encoder.parameters()]
    x = model.source.table.value[ids[:, ::-1] if backwards else ids]
    return recurrent.gradient_norms_through_time("gru", x, params, rng)[::-1]


# --- Where it looks, and what decides ---------------------------------------------------------------------------------


def looks(model: Seq2Seq, word: str) -> Array:
    """Return the weights, (T, S), while the model writes a word backwards, given the right letters before each."""
    ids = LETTERS.encode(word)[None]
    _, alignment = model.forward(ids, tasks.with_ends(ids[:, ::-1])[:, :-2])
    assert alignment is not None
    return alignment[0]


def influence(model: Seq2Seq, word: str) -> Array:
    """Measure which letter read decides which letter written, by changing letters: (T, S).

    Entry (t, s): how far the probability of the word's t-th letter from the end falls when its s-th letter is another,
    on average over the other 25. The letters before it in the answer are those right for the changed word, so that a
    slip does not lead to the next.
    """
    ids = LETTERS.encode(word)
    S = len(ids)
    others = np.array([[i for i in range(tasks.FIRST_SYMBOL, len(LETTERS)) if i != own] for own in ids])  # (S, 25)
    sources = np.tile(ids, (S, others.shape[1], 1))  # (S, 25, S)
    for s in range(S):
        sources[s, :, s] = others[s]
    sources = np.concatenate([ids[None], sources.reshape(-1, S)])  # the word itself, then the changed ones
    logits, _ = model.forward(sources, tasks.with_ends(sources[:, ::-1])[:, :-1])
    right = ops.softmax(logits)[:, np.arange(S), ids[::-1]]  # (1 + S·25, T)
    return right[0][:, None] - right[1:].reshape(S, -1, S).mean(axis=1).T


def mirrored(alignment: Array, later: int = 0) -> int:
    """Count the letters of the answer that look most at the letter they copy, or at one `later` places on."""
    S = alignment.shape[-1]
    steps = np.arange(min(alignment.shape[-2], S))  # without the end
    return int((alignment[..., steps, :].argmax(axis=-1) == S - 1 - steps + later).sum())


def weight_on(alignment: Array, later: int = 0, skipping: int = 0) -> float:
    """Return the mean weight of the answer's letters on the letter they copy, or on one `later` places on.

    The first `skipping` letters written are left out; so are those that have no letter so much later.
    """
    S = alignment.shape[-1]
    steps = np.arange(max(later, skipping), S)
    return float(alignment[..., steps, S - 1 - steps + later].mean())
