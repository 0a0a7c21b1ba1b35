"""Models that write a string backwards: trained, asked, measured, and changed in one thing."""

import copy
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.maths import ops, recurrent, tasks, training
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.models import Seq2Seq, Seq2SeqConfig
from lesson_utils.maths.models.decoders import Bahdanau, Decoded, Luong, LuongCache, Memory
from lesson_utils.maths.recurrent import CELLS, Recurrent
from lesson_utils.maths.recurrent.through_time import Unrolled

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


# --- Controls: one thing is changed, and everything else stays --------------------------------------------------------


def asking_before(model: Seq2Seq) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that asks before the step."""
    return _with_decoder(model, AskedBefore(model.decoder))


def reading_every(model: Seq2Seq, n: int) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that reads every n-th state, and the last."""
    return _with_decoder(model, EveryNth(model.decoder, n))


def passing_on(model: Seq2Seq, numbers: int) -> Seq2Seq:
    """Return a model with the parameters of one with a fixed vector, of which only so many numbers are passed on."""
    other = copy.copy(model)
    other.encoder = Narrow(model.encoder, numbers)
    return other


def _with_decoder(model: Seq2Seq, decoder: Luong) -> Seq2Seq:
    other = copy.copy(model)
    other.decoder = decoder
    return other


class AskedBefore(Luong):
    """Luong's decoder in everything, but α_t = softmax(score(q_{t−1}, keys))."""

    asks = slice(None, -1)  # the states before each step

    def __init__(self, other: Any) -> None:
        vars(self).update(vars(other))  # its parameters are shared


class EveryNth(Luong):
    """Luong's decoder, but all states other than the last, the n-th before it, and so on, are hidden."""

    def __init__(self, other: Any, n: int) -> None:
        vars(self).update(vars(other))
        self._n = n

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, LuongCache]:
        B, S, _ = memory.keys.shape
        seen = np.arange(S)[::-1] % self._n == 0
        mask = np.broadcast_to(seen, (B, S)) if memory.mask is None else memory.mask & seen
        return super().forward(y, state, memory._replace(mask=mask))


class Narrow(Recurrent):
    """The encoder in everything, but only the first numbers of each direction's end are passed on."""

    def __init__(self, other: Any, numbers: int) -> None:
        vars(self).update(vars(other))
        directions = 1 + self.bidirectional
        own = np.arange(self.W_h.value.shape[-2]) < numbers // directions  # of one direction
        self._open = np.tile(own, directions)

    def forward(self, x: Array, mask: Mask | None = None) -> tuple[tuple[Array, Array], Unrolled]:
        (outputs, end), cache = super().forward(x, mask)
        return (outputs, end * self._open), cache

    def backward(self, doutputs: tuple[Array, Array], cache: Unrolled) -> Array:
        return super().backward((doutputs[0], doutputs[1] * self._open), cache)


# --- A learner's score and average in the place of ours ---------------------------------------------------------------


def with_look_back(model: Seq2Seq, score: Callable[..., Any], average: Callable[..., Any]) -> Seq2Seq:
    """Return a model that computes with the same parameters, and looks back with other functions.

    Args:
        model: with the additive score.
        score: `score(query, keys, W_q, W_k, v)`, scores (B, S) of queries (B, d).
        average: `average(scores, keys, mask)`, a context (B, d) and weights (B, S).
    """
    assert isinstance(model.decoder, Bahdanau)
    other = copy.copy(model)
    other.decoder = _LookBack(model.decoder, score, average)
    return other


class _LookBack(Bahdanau):
    """Bahdanau's decoder with other functions; there is no way back through them."""

    def __init__(self, trained: Bahdanau, score: Callable[..., Any], average: Callable[..., Any]) -> None:
        vars(self).update(vars(trained))  # its parameters are shared, not copied
        self._score, self._average = score, average

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, Any]:
        a, _ = self._inputs(y)
        params = [self.query.W.value, self.key.W.value, self.v.value]
        mask = np.ones(memory.keys.shape[:2], bool) if memory.mask is None else memory.mask
        states, contexts, rows = [state], [], []
        for t in range(len(y)):
            query = states[t][:, : self.v.value.size]  # (B, d_hidden), the state before the step
            context, weights = self._average(self._score(query, memory.keys, *params), memory.keys, mask)
            fed, _ = self.context.forward(np.asarray(context))
            state, _ = CELLS[self.cell.kind].forward(a[t] + fed, states[t], *self._weights())
            states.append(state)
            contexts.append(context)
            rows.append(weights)
        return Decoded(np.stack(states), np.stack(contexts), np.stack(rows, axis=1)), None


# --- Small models that differ in their score, and in when they ask; watched while they learn --------------------------

AFTER = ("dot", "general", "concat")  # Luong's: they ask with the state after the step
BEFORE = ("concat before", "Bahdanau")  # the control: Luong's concat, asked before the step; and Bahdanau's model
SMALL = AFTER + BEFORE
SMALL_WORD = "bottleneck"
SNAPSHOTS = (0, 25, 50, 75, 100, 200, 400, 600)  # after so many steps
TESTS = 200  # strings


class Snapshot(NamedTuple):
    """A model on the way."""

    alignment: Array  # where it looks for the letters of `SMALL_WORD` backwards, (T, S)
    answer: str  # what it makes of that word
    rows: float  # share of the rows, of `TESTS` strings of that length, that peak on the letter they write
    letters: float  # share of the letters that are right, given the right ones before
    strings: float  # share of the strings that come out right as a whole


def snapshot(model: Seq2Seq) -> Snapshot:
    S = len(SMALL_WORD)
    source, target = tasks.reversal(np.random.default_rng(S), TESTS, S)
    logits, alignment = model.forward(source, tasks.with_ends(target)[:, :-1])
    assert alignment is not None
    return Snapshot(
        alignment=looks(model, SMALL_WORD),
        answer=answer(model, SMALL_WORD)[0],
        rows=mirrored(alignment) / target.size,
        letters=float((logits[:, :S].argmax(axis=-1) == target).mean()),
        strings=accuracy(model, S, TESTS),
    )


def small_model(kind: str, steps: int = SNAPSHOTS[-1], seed: int = 0) -> tuple[dict[int, Snapshot], training.History]:
    """Train one of `SMALL` on strings of 3 to 10 letters; what it did on the way, and its losses."""
    score = {"Bahdanau": "additive"}.get(kind, kind.removesuffix(" before"))
    model = untrained(score, seed=seed)
    if kind == "concat before":
        model = asking_before(model)
    on_the_way = {0: snapshot(model)}

    def look(step: int, loss: float, history: training.History) -> None:
        if step in SNAPSHOTS:
            on_the_way[step] = snapshot(model)

    history = fit(model, steps, longest=len(SMALL_WORD), peak=5e-3, seed=seed, callback=look)
    return on_the_way, history


# --- Gradients through time -------------------------------------------------------------------------------------------

FURTHEST = 100  # steps back, in figures
D_IN, D_H = 16, 32  # widths of the cells: of an input, of the state


def new_cell(kind: str, rng: np.random.Generator, scale: float = 1.0, gate_bias: float = 0.0) -> list[Array]:
    """Return the parameters of a fresh cell; `scale` and `gate_bias` as for `gradient_norms`."""
    params = [np.array(p) for p in recurrent.init_params(kind, D_IN, D_H, rng, np.float64)]
    params[1] *= scale
    if kind != "rnn":
        params[2][D_H : 2 * D_H] += gate_bias
    return params


@cache
def gradient_norms(kind: str, scale: float = 1.0, gate_bias: float = 0.0, seed: int = 0) -> Array:
    """Return the gradient's norm 0 … FURTHEST steps before the end, at a fresh cell of width 32 on random inputs.

    Args:
        kind: "rnn", "gru" or "lstm".
        scale: of the recurrent weight matrices, 1 = orthogonal.
        gate_bias: added to the bias of the gate that keeps: z of a GRU, f of an LSTM (which begins at 1).
        seed: another one is another cell, on other inputs.
    """
    rng = np.random.default_rng(seed)
    params = new_cell(kind, rng, scale, gate_bias)
    x = rng.normal(size=(16, FURTHEST + 1, D_IN))  # (B, T, d_in)
    return recurrent.gradient_norms_through_time(kind, x, params, rng)[::-1]  # the last step first


# --- Further runs, measured once and stored, since each takes up to minutes; `measure_…` measures any of them again ---

# Measured once with `measure_capacity`, which takes seconds to minutes for a point: too long for a slider.
CAPACITY_LENGTHS = (4, 6, 8, 10, 12, 14, 16, 18, 20)
SIZES = (16, 32, 64, 128)
SHORT = 2500  # steps: the shorter of two trainings
CAPACITY: dict[tuple[str | None, int, int], tuple[float, ...]] = {  # attention, hidden size, steps
    (None, 16, 2500): (0.75, 0.18, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 32, 2500): (0.99, 0.81, 0.34, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 64, 2500): (1.0, 0.96, 0.75, 0.34, 0.11, 0.02, 0.0, 0.0, 0.0),
    (None, 128, 2500): (1.0, 0.99, 0.91, 0.73, 0.37, 0.16, 0.05, 0.0, 0.0),
    (None, 16, 10_000): (0.99, 0.86, 0.34, 0.04, 0.0, 0.0, 0.0, 0.0, 0.0),
    (None, 32, 10_000): (1.0, 1.0, 0.91, 0.56, 0.19, 0.03, 0.0, 0.0, 0.0),
    (None, 64, 10_000): (1.0, 1.0, 0.97, 0.9, 0.72, 0.4, 0.16, 0.03, 0.0),
    (None, 128, 10_000): (1.0, 1.0, 1.0, 1.0, 0.98, 0.92, 0.74, 0.47, 0.14),
    (None, 192, 2500): (1.0, 1.0, 0.98, 0.91, 0.69, 0.38, 0.17, 0.05, 0.01),  # as many numbers as 12 states of 16
    ("general", 16, 2500): (0.9, 0.8, 0.72, 0.61, 0.52, 0.39, 0.26, 0.11, 0.03),
    ("general", 16, 10_000): (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.97),
    ("general", 32, 2500): (0.99, 0.97, 0.95, 0.95, 0.9, 0.88, 0.86, 0.83, 0.7),
    ("general", 64, 2500): (1.0, 0.99, 0.99, 0.99, 0.98, 0.98, 0.97, 0.97, 0.95),
    ("general", 128, 2500): (1.0, 1.0, 1.0, 0.99, 0.98, 0.99, 0.98, 0.98, 0.96),
}

# `with_doubles` at 8 letters, of one fixed vector, trained where every second letter repeats the one before it:
# of different letters, and of letters in pairs.
TRAINED_ON_REPEATS = (0.225, 0.805)


def measure_capacity(
    attention: str | None, d_hidden: int, steps: int, tests: int = 400, seed: int = 0
) -> tuple[float, ...]:
    """Train a model of one size as in the notebook; how many strings it gets right, by length."""
    model = untrained(attention, d_hidden, seed=seed)
    fit(model, steps, seed=seed, progress=False)
    return tuple(round(accuracy(model, length, tests), 2) for length in CAPACITY_LENGTHS)


# `measure_seen`: strings right, by length, of Luong's model that may read every n-th state. 40: only the last.
SEEN: dict[int, tuple[float, ...]] = {
    1: CAPACITY["general", 64, 2500],
    2: (0.963, 0.915, 0.922, 0.853, 0.828, 0.855, 0.805, 0.677, 0.667),
    4: (0.965, 0.845, 0.445, 0.365, 0.138, 0.107, 0.04, 0.048, 0.003),
    40: (0.995, 0.885, 0.525, 0.15, 0.022, 0.0, 0.0, 0.0, 0.0),
}
AT = CAPACITY_LENGTHS.index(12)
LONGER = {  # strings of 12 letters right after 10,000 steps: `measure_seen(4, 10_000)`, and `measure_capacity`
    "every fourth state": 0.75,
    "one vector of 64": CAPACITY[None, 64, 10_000][AT],
}

# `measure_rows`: share of the rows that peak on the letter they write, in the notebook's run and in two others.
TIMES_ASKED: dict[str, tuple[float, float, float]] = {
    "concat": (0.97, 0.97, 0.94),
    "concat before": (0.44, 0.43, 0.39),
    "Bahdanau": (0.4, 0.39, 0.17),
}

# `measure_kept`: of 16 letters anywhere in the answer, in their place, pairs in order; anagrams among the wrong
# answers to 12.
KEPT_OF_16: dict[str, tuple[float, ...]] = {
    "this run": (0.91, 0.37, 0.92, 0.74),
    "another start": (0.9, 0.36, 0.92, 0.69),
    "a third start": (0.9, 0.36, 0.91, 0.69),
}

# `measure_late`, from two other starts: of the model that reads in one direction, the weight one letter late, and the
# influence of the letter itself.
OTHER_STARTS = ((0.99, 1.0), (0.99, 1.0))

# `measure_passing`: strings right, by length, of a network 64 wide of whose vector only so many numbers are passed on.
PASSED_ON: dict[int, tuple[float, ...]] = {
    16: (0.99, 0.87, 0.39, 0.06, 0.0, 0.0, 0.0, 0.0, 0.0),
    32: (1.0, 0.95, 0.7, 0.3, 0.05, 0.0, 0.0, 0.0, 0.0),
    64: CAPACITY[None, 64, 2500],
}


def measure_passing(numbers: int, d_hidden: int = 64, steps: int = 2500, tests: int = 400) -> tuple[float, ...]:
    """Train a model with one fixed vector that passes on only so many of its numbers; strings right, by length."""
    model = passing_on(untrained(None, d_hidden), numbers)
    fit(model, steps, progress=False)
    return tuple(round(accuracy(model, length, tests), 2) for length in CAPACITY_LENGTHS)


def measure_seen(n: int, steps: int = 2500, tests: int = 400) -> tuple[float, ...]:
    """Train Luong's model as in the notebook, but let it read every n-th state only; strings right, by length."""
    model = reading_every(untrained("general"), n)
    fit(model, steps, progress=False)
    return tuple(round(accuracy(model, length, tests), 3) for length in CAPACITY_LENGTHS)


def measure_rows(kind: str, seed: int, steps: int = 600) -> float:
    """Train a small model as in the notebook, from another start; the share of rows that peak on their letter."""
    snapshots, _ = small_model(kind, steps, seed)
    return round(snapshots[max(snapshots)].rows, 2)


def measure_kept(seed: int, d_hidden: int = 64, steps: int = 2500) -> tuple[float, ...]:
    """Train the model with one fixed vector; what it keeps of 16 letters, and how many wrong answers are anagrams."""
    model = untrained(None, d_hidden, seed=seed)
    fit(model, steps, seed=seed, progress=False)
    sixteen, twelve = (kept(model, length) for length in (16, 12))
    shares = sixteen.present, sixteen.in_place, sixteen.in_order, twelve.anagrams
    return tuple(round(share, 2) for share in shares)


def measure_late(seed: int, word: str = "ambidextrous", steps: int = 2500) -> tuple[float, float]:
    """Train the model that reads in one direction; its weight one letter late, and what the letter itself decides."""
    model = untrained("general", bidirectional=False, seed=seed)
    fit(model, steps, seed=seed, progress=False)
    seen, decides = looks(model, word), influence(model, word)
    return round(weight_on(seen, 1), 2), round(weight_on(decides, 0, 1), 2)
