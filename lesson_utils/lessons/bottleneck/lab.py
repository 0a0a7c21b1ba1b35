"""What notebook 01 calls as `lab.name`: models that write a string backwards, and figures of what they do."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from lesson_utils.classroom import drawings, formats, live, plots
from lesson_utils.lessons.bottleneck.sketches import before_and_after, one_vector
from lesson_utils.maths import ops, recurrent, tasks, training
from lesson_utils.maths.checks import Array, Mask
from lesson_utils.maths.layers import Layer, Linear, normal
from lesson_utils.maths.models import Seq2Seq, Seq2SeqConfig
from lesson_utils.maths.models.decoders import Bahdanau, Decoded, Luong, LuongCache, Memory
from lesson_utils.maths.recurrent import CELLS, Recurrent, recurrence_backward, recurrence_forward
from lesson_utils.maths.recurrent.through_time import Unrolled
from lesson_utils.maths.scores import attend_backward, attend_forward

LETTERS = tasks.letters()


def pairs(rng: np.random.Generator, longest: int = 20, letters: int = 26, repeats: float = 0.0) -> tasks.Pair:
    """Make a batch of 64 random strings of one length, and the same backwards between begin and end.

    In half of the batches, a letter is the one before it once more with the probability `repeats`.
    """
    source, _ = tasks.reversal_batches(64, 3, longest, letters)(rng)
    if repeats and rng.random() < 0.5:
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
    letters: int = 26,
    repeats: float = 0.0,
    seed: int = 0,
    progress: bool = True,
) -> training.History:
    """Train with Adam: its rate rises for steps / 25 to `peak`, then falls to 0; gradients are clipped at norm 1."""
    schedule = partial(training.warmup_linear, peak=peak, warmup=steps // 25, total=steps)
    batches = partial(pairs, longest=longest, letters=letters, repeats=repeats)
    return training.fit(model, batches, steps, schedule=schedule, seed=seed, progress=progress)


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
    return np.equal(*answers(model, source))


def accuracy(model: Seq2Seq, length: int, tests: int = 200, letters: int = 26) -> float:
    """Return the fraction of random strings that the model reverses without a single mistake, the end included."""
    source, _ = tasks.reversal(np.random.default_rng(length), tests, length, letters)
    return float(right_letters(model, source).all(axis=-1).mean())


class Kept(NamedTuple):
    """What arrives from strings of one length, as shares."""

    present: float  # share of the letters that are somewhere in the answer, each as often as it was read
    in_place: float  # share of the letters that stand where they should
    in_order: float  # share of pairs of letters in the answer whose earlier one stands before the later one
    chance: float  # `present`, had the model answered another string of the test
    anagrams: float  # share of the wrong answers that have all letters, and no other: only their order is wrong
    prompted: float  # share of the letters that are right when all letters before them in the answer are given


def kept(model: Seq2Seq, length: int, tests: int = 300, letters: int = 26) -> Kept:
    """Measure what a model keeps of random strings: their letters, and their order."""
    source, target = tasks.reversal(np.random.default_rng(1000 + length), tests, length, letters)
    written = answers(model, source)[0][:, :length]
    counts, wanted = _letters(written), _letters(target)
    in_place = written == target
    wrong = ~in_place.all(axis=1)
    logits, _ = model.forward(source, tasks.with_ends(target)[:, :-1])
    return Kept(
        present=float(np.minimum(counts, wanted).sum() / target.size),
        in_place=float(in_place.mean()),
        in_order=_pairs_in_order(written, target),
        chance=float(np.minimum(np.roll(counts, 1, axis=0), wanted).sum() / target.size),
        anagrams=float((counts == wanted)[wrong].all(axis=1).mean()) if wrong.any() else 0.0,
        prompted=float((logits[:, :length].argmax(axis=-1) == target).mean()),
    )


def _letters(ids: tasks.Ids) -> Array:
    """Count each letter of each string, (B, 26); this forgets their order."""
    return (ids[..., None] == np.arange(tasks.FIRST_SYMBOL, len(LETTERS))).sum(axis=1)


def _pairs_in_order(written: tasks.Ids, wanted: tasks.Ids) -> float:
    """Return the share of pairs in the right order; the k-th of equal letters is the k-th of them in both."""
    right = pairs = 0
    for said, string in zip(map(_numbered, written.tolist()), map(_numbered, wanted.tolist()), strict=True):
        places = np.array([string.index(letter) for letter in said if letter in string])
        right += int(np.triu(places[:, None] < places, 1).sum())
        pairs += len(places) * (len(places) - 1) // 2
    return right / max(pairs, 1)


def _numbered(ids: list[int]) -> list[tuple[int, int]]:
    return [(letter, ids[:n].count(letter)) for n, letter in enumerate(ids)]


def varied(d_hidden: int = 64, steps: int = 2500, letters: int = 26, passes_on: int = 0, seed: int = 0) -> list[float]:
    """Train one fixed vector with one thing changed.

    Returns the share of 16 letters that are in the answer, and in their place; of strings of 8 and of 12, those right.
    """
    model = untrained(None, d_hidden, seed=seed)
    if passes_on:
        model = passing_on(model, passes_on)
    fit(model, steps, letters=letters, seed=seed, progress=False)
    sixteen = kept(model, 16, letters=letters)
    return [sixteen.present, sixteen.in_place, *(accuracy(model, length, 400, letters) for length in (8, 12))]


class Doubles(NamedTuple):
    """The share of strings whose letters come out right, by how letters repeat in them."""

    different: float  # every letter once
    doubled: float  # half as many letters, in pairs: aabbccdd
    apart: float  # the same, twice each, far from each other: abcdabcd
    ended: float  # of the last: those that end after their last letter, too


def with_doubles(model: Seq2Seq, length: int = 8, tests: int = 200) -> Doubles:
    """Measure what becomes of strings whose letters repeat."""
    rng = np.random.default_rng(2)
    different = np.stack([rng.permutation(26)[:length] for _ in range(tests)]) + tasks.FIRST_SYMBOL
    half = different[:, : length // 2]
    right = [right_letters(model, ids) for ids in (different, np.repeat(half, 2, axis=1), np.tile(half, 2))]
    letters = [float(symbols[:, :-1].all(axis=1).mean()) for symbols in right]
    return Doubles(letters[0], letters[1], letters[2], float(right[2].all(axis=1).mean()))


def first_slip(model: Seq2Seq, length: int, tests: int = 200) -> int:
    """Return the step at which the answers to random strings first go wrong, as the median of those that do."""
    right = right_letters(model, tasks.reversal(np.random.default_rng(length), tests, length)[0])
    return int(np.median(right.argmin(axis=1)[~right.all(axis=1)])) + 1


# --- Where it looks, and what a state carries -------------------------------------------------------------------------


def looks(model: Seq2Seq, word: str) -> Array:
    """Return the weights, (T, S), while the model writes a word backwards, given the right letters before each."""
    ids = LETTERS.encode(word)[None]
    _, alignment = model.forward(ids, tasks.with_ends(ids[:, ::-1])[:, :-2])
    assert alignment is not None
    return alignment[0]


def encoded(model: Seq2Seq, words: Sequence[str]) -> tuple[Array, Array]:
    """Let the encoder read words of one length: its states, (B, S, d), and the decoder's first state, (B, d)."""
    memory, start, _ = model._encode(np.array([LETTERS.encode(word) for word in words]), None)
    return memory.keys, start


def chances(model: Seq2Seq, states: Array, start: Array, word: str) -> Array:
    """Return the probability of each letter of a word backwards, given the right ones before it: (B, T).

    The model looks back at the states given, and begins in a row of `start` for all of them.
    """
    ids, B = LETTERS.encode(word)[::-1], len(states)
    memory = Memory(states, np.zeros_like(states[:, 0]))
    given = np.tile(tasks.with_ends(ids[None])[:, :-2], (B, 1))
    logits, _ = model._decode(given, np.repeat(start, B, axis=0), memory)
    return np.asarray(ops.softmax(logits)[np.arange(len(ids)), :, ids].T)


def follows(model: Seq2Seq, strings: int = 40, length: int = 10) -> tuple[float, float]:
    """Tell a model that it wrote another letter of the string last.

    Returns the share of rows that peak at that letter, and at the one before it.
    """
    rng, hits = np.random.default_rng(0), []
    for _ in range(strings):
        ids = rng.permutation(26)[:length] + tasks.FIRST_SYMBOL  # all different
        right = tasks.with_ends(ids[None, ::-1])[0, :-2]
        for t in range(1, length):
            false = np.delete(np.arange(length), length - t)  # the places of the letters that it did not write
            given = np.tile(right, (length - 1, 1))
            given[:, t] = ids[false]
            _, alignment = model.forward(np.tile(ids, (length - 1, 1)), given)
            assert alignment is not None
            peaks = alignment[:, t].argmax(axis=-1)
            hits.append((peaks == false, peaks == false - 1))
    at, before = np.mean(hits, axis=(0, 2))
    return float(at), float(before)


def mirrored(alignment: Array) -> int:
    """Count the letters of the answer that look most at the letter they copy."""
    S = alignment.shape[-1]
    steps = np.arange(min(alignment.shape[-2], S))  # without the end
    return int((alignment[..., steps, :].argmax(axis=-1) == S - 1 - steps).sum())


def weight_on(matrix: Array, later: int = 0) -> float:
    """Return the mean of a map on the letter written, or on one `later` places on; the first written is left out."""
    S = matrix.shape[-1]
    steps = np.arange(1, S)
    return float(matrix[..., steps, S - 1 - steps + later].mean())


# --- Controls: one thing is changed, and everything else stays --------------------------------------------------------


def asking_before(model: Seq2Seq, symbol: bool = False) -> Seq2Seq:
    """Return a model with the parameters of one with Luong's attention, that asks before the step.

    `symbol`: its query also has the symbol written last, whose embedding is added to the first numbers of the state.
    """
    return _with(model, decoder=AskedBefore(model.decoder, symbol))


DECODERS = ("Luong", "Luong with input feeding", "Luong with a product", "Bahdanau")


def few_states(name: str, n: int, seed: int, steps: int = 2500) -> dict[int, float]:
    """Train a model of `DECODERS` that may read every n-th state; strings right, by length."""
    model = untrained("additive" if name == "Bahdanau" else "general", seed=seed)
    changed = {"Luong with input feeding": feeding, "Luong with a product": multiplying}
    model = reading_every(changed.get(name, lambda same: same)(model), n)
    fit(model, steps, seed=seed, progress=False)
    return {length: accuracy(model, length, 400) for length in (8, 12, 16, 20)}


def feeding(model: Seq2Seq) -> Seq2Seq:
    """Return a model like one with Luong's attention, whose cell also gets the context of the step before."""
    return _with(model, decoder=Feeding(model.decoder, model.config))


def multiplying(model: Seq2Seq) -> Seq2Seq:
    """Return a model like one with Luong's attention, whose last layer gets [q; c ⊙ (1 + q U)] in place of [q; c]."""
    return _with(model, read=Multiplying(model.read, model.config))


def reading_every(model: Seq2Seq, n: int) -> Seq2Seq:
    """Return a model with the same parameters that may read every n-th state, counted from the last."""
    return EveryNth(model, n)


def passing_on(model: Seq2Seq, numbers: int) -> Seq2Seq:
    """Return a model with the parameters of one with a fixed vector, of which only so many numbers are passed on."""
    return _with(model, encoder=Narrow(model.encoder, numbers))


def _with(model: Seq2Seq, **parts: Any) -> Seq2Seq:
    other = copy.copy(model)
    vars(other).update(parts)
    return other


class AskedBefore(Luong):
    """Luong's decoder in everything, but α_t = softmax(score(q_{t−1}, keys)), or that of q_{t−1} + y_{t−1}."""

    def __init__(self, other: Any, symbol: bool) -> None:
        vars(self).update(vars(other))  # its parameters are shared
        self._symbol = symbol

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, LuongCache]:
        a, inputs = self._inputs(y)
        states, run = recurrence_forward(self.cell.kind, a, state, self._weights())
        queries = states[:-1].copy()  # (T, B, d_hidden)
        queries[..., : y.shape[-1]] += self._symbol * y
        score = [param.value for param in self.score]
        (contexts, alignment), look = attend_forward(self.kind, queries.swapaxes(0, 1), memory.keys, score, memory.mask)
        return Decoded(states, contexts.swapaxes(0, 1), alignment), LuongCache(inputs, run, look, memory.end)

    def backward(self, dstates: Array, dcontexts: Array, cache: LuongCache) -> tuple[Array, Array, Memory]:
        dqueries, dkeys, dscore = attend_backward(dcontexts.swapaxes(0, 1), cache.look)
        for param, grad in zip(self.score, dscore, strict=True):
            param.grad += grad
        dqueries = dqueries.swapaxes(0, 1)
        dstates[:-1] += dqueries
        da, dstate, dweights = recurrence_backward(dstates, cache.run)
        dy = self._inputs_backward(da, dweights, cache.inputs)
        dy += self._symbol * dqueries[..., : dy.shape[-1]]
        return dy, dstate, Memory(dkeys, np.zeros_like(cache.end))


class Feeding(Luong):
    """Luong's decoder with input feeding: q_t = cell([y_{t−1}; c_{t−1}], q_{t−1}), and c_t is a look with q_t.

    Source: Luong et al. (2015), section 3.3, but for two things: they feed tanh([c_{t−1}; q_{t−1}] W), and begin with
    zeros in place of a first look, c_0.
    """

    def __init__(self, other: Any, config: Any) -> None:
        vars(self).update(vars(other))
        width = CELLS[config.cell].gates * config.d_hidden
        rng = np.random.default_rng(0)
        self.context = Linear(config.d_hidden, width, rng, bias=False, dtype=config.dtype, init=normal)

    def forward(self, y: Array, state: Array, memory: Memory) -> tuple[Decoded, Any]:
        a, inputs = self._inputs(y)
        states, looks, steps = [state], [self._look(state, memory)], []
        for t in range(len(y)):
            fed, context = self.context.forward(looks[t][0][0][:, 0])
            state, step = CELLS[self.cell.kind].forward(a[t] + fed, states[t], *self._weights())
            states.append(state)
            steps.append((context, step))
            looks.append(self._look(state, memory))
        contexts, alignment = (np.concatenate([look[0][k] for look in looks[1:]], axis=1) for k in range(2))
        cache = inputs, steps, [look[1] for look in looks], memory.end
        return Decoded(np.stack(states), contexts.swapaxes(0, 1), alignment), cache

    def _look(self, state: Array, memory: Memory) -> Any:
        query = state[:, None, : memory.keys.shape[-1]]
        return attend_forward(self.kind, query, memory.keys, [param.value for param in self.score], memory.mask)

    def backward(self, dstates: Array, dcontexts: Array, cache: Any) -> tuple[Array, Array, Memory]:
        inputs, steps, looks, end = cache
        da: Any = [None] * len(steps)
        dkeys = np.zeros_like(looks[0].keys)
        dweights = [np.zeros_like(weight) for weight in self._weights()]
        dcontexts = np.concatenate([np.zeros_like(dcontexts[:1]), dcontexts])  # that of the first look, too
        for t in reversed(range(len(looks))):
            dquery, dkeys_t, dscore = attend_backward(dcontexts[t][:, None], looks[t])
            dstates[t, :, : dquery.shape[-1]] += dquery[:, 0]
            dkeys += dkeys_t
            for param, grad in zip(self.score, dscore, strict=True):
                param.grad += grad
            if t:
                context, step = steps[t - 1]
                da[t - 1], dstate, *grads = CELLS[self.cell.kind].backward(dstates[t], step)
                dstates[t - 1] += dstate
                dcontexts[t - 1] += self.context.backward(da[t - 1], context)
                for dweight, grad in zip(dweights, grads, strict=True):
                    dweight += grad
        return self._inputs_backward(np.stack(da), dweights, inputs), dstates[0], Memory(dkeys, np.zeros_like(end))


class Multiplying(Layer):
    """A layer in everything, but of its input [q; c] it multiplies c by 1 + q U."""

    def __init__(self, other: Linear, config: Seq2SeqConfig) -> None:
        self.joined, d = other, config.d_hidden  # its parameters are shared
        self.factor = Linear(d, d, np.random.default_rng(0), bias=False, dtype=config.dtype, init=normal)

    def forward(self, x: Array) -> tuple[Array, Any]:
        q, c = np.split(x, 2, axis=-1)
        factor, multiplied = self.factor.forward(q)
        out, joined = self.joined.forward(np.concatenate([q, c * (1 + factor)], axis=-1))
        return out, (c, factor, multiplied, joined)

    def backward(self, dout: Array, cache: Any) -> Array:
        c, factor, multiplied, joined = cache
        dq, dproduct = np.split(self.joined.backward(dout, joined), 2, axis=-1)
        return np.concatenate([dq + self.factor.backward(dproduct * c, multiplied), dproduct * (1 + factor)], axis=-1)


class EveryNth(Seq2Seq):
    """A model in everything, but all states other than the last, the n-th before it, and so on, are hidden."""

    def __init__(self, other: Seq2Seq, n: int) -> None:
        vars(self).update(vars(other))  # its parameters are shared
        self._n = n

    def _encode(self, source: tasks.Ids, mask: Mask | None) -> Any:
        memory, state, cache = super()._encode(source, mask)
        seen = np.broadcast_to(np.arange(source.shape[1])[::-1] % self._n == 0, source.shape)
        return memory._replace(mask=seen if memory.mask is None else memory.mask & seen), state, cache


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
    """Return a model with the same parameters, those of the additive score, that looks back with other functions.

    `score(query, keys, W_q, W_k, v)` gives (B, S); `average(scores, keys, mask)`, a context (B, d) and weights (B, S).
    """
    assert isinstance(model.decoder, Bahdanau)
    return _with(model, decoder=_LookBack(model.decoder, score, average))


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


# --- Small models that differ in their score, and in when they ask ----------------------------------------------------

TIMES = ("after", "before", "before, with the symbol")


def rows_on_letter(score: str, when: str, seed: int, steps: int = 600) -> float:
    """Train Luong's model on strings of 3 to 10 letters, with one score and one time to ask.

    Returns the share of the rows of its maps, over 200 strings of 10 letters, that peak on the letter they write.
    """
    model = untrained(score, seed=seed)
    if when != TIMES[0]:
        model = asking_before(model, symbol=when == TIMES[2])
    fit(model, steps, longest=10, peak=5e-3, seed=seed, progress=False)
    source, target = tasks.reversal(np.random.default_rng(10), 200, 10)
    _, alignment = model.forward(source, tasks.with_ends(target)[:, :-1])
    assert alignment is not None
    return mirrored(alignment) / target.size


# --- Gradients through time -------------------------------------------------------------------------------------------

FAR, FURTHEST = 20, 32  # steps back, in titles and in the figure


@cache
def gradient_norms(kind: str, scale: float = 1.0, gate_bias: float = 0.0) -> Array:
    """Return the gradient's norm 0 … FURTHEST steps before the end, at a fresh cell of width 32 on random inputs.

    Args:
        kind: "rnn", "gru" or "lstm".
        scale: of the recurrent weight matrices, 1 = orthogonal.
        gate_bias: added to the bias of the gate that keeps: z of a GRU, f of an LSTM (which begins at 1).
    """
    rng = np.random.default_rng(0)
    params = [np.array(p) for p in recurrent.init_params(kind, 16, 32, rng, np.float64)]
    params[1] *= scale
    if kind != "rnn":
        params[2][32:64] += gate_bias
    x = rng.normal(size=(16, FURTHEST + 1, 16))  # (B, T, d_in)
    return recurrent.gradient_norms_through_time(kind, x, params, rng)[::-1]  # the last step first


# --- 1 · A word goes in: what comes out? ------------------------------------------------------------------------------

LOOKS = {  # colour, dash, marker
    "one fixed vector": (plots.ORANGE, "--", "s"),
    "Bahdanau": (plots.GREEN, "-.", "^"),
    "Luong": (plots.BLUE, "-", "o"),
    "Luong with input feeding": (plots.PURPLE, ":", "D"),
    "Luong with a product": (plots.INK, "-", "v"),
    "Luong, 10,000 steps": (plots.BLUE, ":", "o"),
}


def shares_by_length(ax: "plots.Axes", label: str) -> None:
    """Label the axes of shares by the length of a string."""
    ax.set(xlabel="length of the string", ylabel=label, ylim=(-0.03, 1.05))
    ax.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %"))


def _where_it_falls(lengths: Sequence[int], shares: Sequence[float]) -> tuple[float, float]:
    """Find a place for the name of a falling curve: where it goes through 1/2; else its end."""
    for n in range(1, len(shares)):
        if shares[n - 1] >= 0.5 > shares[n]:
            part = (shares[n - 1] - 0.5) / (shares[n - 1] - shares[n])
            return lengths[n - 1] + part * (lengths[n] - lengths[n - 1]), 0.5
    return lengths[-1], shares[-1]


def _by_length(lengths: Iterable[int], shares: Iterable[float]) -> str:
    return formats.each((f"{n}:" for n in lengths), shares, ".0%")


@plots.still(8.4, 3.9)
def kept_plot(figure: "plots.Figure", measured: Mapping[int, Kept], at: int = 16) -> str:
    """Draw what one fixed vector keeps, by length: which letters there were, in which order, and where."""
    lengths = list(measured)
    present, in_order, in_place, chance = (
        [getattr(of, name) for of in measured.values()] for name in ("present", "in_order", "in_place", "chance")
    )
    ax = figure.add_subplot(xlim=(lengths[0] - 0.5, lengths[-1] + 5.6))
    shares_by_length(ax, "share")
    ax.fill_between(lengths, in_place, present, color="#EEEEEE", lw=0)
    middle = (measured[at].present + measured[at].in_place) / 2
    ax.text(at, middle, "places lost", ha="center", va="center", color=plots.GREY)
    for values, name, (colour, dash, marker) in (
        (in_order, "pairs in the\nright order", (plots.GREEN, "-.", "^")),
        (present, "letters in the answer", (plots.BLUE, "-", "o")),
        (in_place, "in the right place", LOOKS["one fixed vector"]),
        (chance, "in the answer to\nanother string", (plots.GREY, ":", "")),
    ):
        ax.plot(lengths, values, dash, color=colour, marker=marker, clip_on=False)
        y = values[-1] + 0.06 * (values is in_order) - 0.05 * (values is present)  # the two end near each other
        ax.text(lengths[-1] + 0.5, y, name, color=colour, va="center" if marker else "bottom")
    ax.set_xticks(lengths)
    ax.set_title(
        f"Of {at} letters, {measured[at].present:.0%} are in the answer, {measured[at].in_place:.0%} in their place"
    )
    rows = "; ".join(
        f"{n}: {k.present:.0%}, {k.in_place:.0%}, {k.in_order:.0%}, {k.chance:.0%}" for n, k in measured.items()
    )
    return (
        "… Shares by the length of a string: its letters anywhere in the answer, in the right place, pairs of "
        f"letters in the right order, its letters in the answer to another string. {rows}."
    )


# --- 3 · Look back instead --------------------------------------------------------------------------------------------


@plots.still(8.4, 4.0)
def accuracy_plot(
    figure: "plots.Figure", curves: Mapping[str, Mapping[int, float]], trained: tuple[int, int] = (3, 20), at: int = 12
) -> str:
    """Draw the share of strings that are all right, by length; the lengths of the training are shaded."""
    longest = max(max(curve) for curve in curves.values())
    ax = figure.add_subplot(xlim=(trained[0] - 0.5, longest + 4))
    shares_by_length(ax, "strings all right")
    ax.axvspan(*trained, color="#EEEEEE", lw=0)
    ax.text(trained[0] + 0.4, 0.04, f"training: lengths {trained[0]}–{trained[1]}", color=plots.GREY)
    for name, curve in curves.items():
        colour, dash, marker = LOOKS[name]
        ax.plot(list(curve), list(curve.values()), dash, color=colour, marker=marker, clip_on=False)
        x, y = _where_it_falls(list(curve), list(curve.values()))
        if x > longest - 1:
            x, y = longest, curve[longest]
        ax.text(x + 0.6, y, name, color=colour, va="center", weight="bold")
    ax.set_xticks(range(4, longest + 1, 4))
    alone, *back = (curve[at] for curve in curves.values())
    ax.set_title(f"{at} letters all right: {alone:.0%} with one fixed vector, {min(back):.0%} or more with a look back")
    rows = (f"{name}: {_by_length(curve, curve.values())}" for name, curve in curves.items())
    return f"… Strings all right by length. {'; '.join(rows)}."


TAIL = "qzjvkxwhfgpbmdyu"  # what the slider puts after a word: no words, so that nothing can be guessed
LONGEST = 24  # letters
END = "∎"
WIDTH, HEIGHT, LEFT = 9.4, 4.3, 1.45  # inches; the letters begin at LEFT
READ, WRITTEN, ALONE = 3.35, 1.3, 0.45  # heights of the three rows
SIZE = 15.5  # points
LETTER = 0.602 * SIZE / 72  # inches: the width of every character of the font
THICKEST = 12.0  # points: a weight of 1
AHEAD, BEHIND = "#BBBBBB", "#CBDBE8"  # letters to come, looks gone by


class Said(NamedTuple):
    """The answers of the models to a word."""

    read: str
    notes: tuple[str, ...]  # what was wrong with the word as typed
    written: str  # with END, if it stopped by itself
    weights: Array  # (T, S), a row for each character of `written`
    alone: str  # what the model with one fixed vector writes, likewise


@live.lab(
    width=WIDTH,
    height=HEIGHT,
    example=lambda: (untrained(), {"Luong": untrained("general"), "Bahdanau": untrained("additive")}),
    telling={"step": 9},
    word=live.Word("word", "attention", longest=40),
    more=live.Slider("letters after it", 0, len(TAIL), 3),
    step=live.Slider("step of the decoder", 1, LONGEST + 1, 4),
    look=live.Choice("attention", ("Luong", "Bahdanau"), "Luong"),
)
def word_lab(figure: "plots.Figure", fixed: Seq2Seq, attentive: Mapping[str, Seq2Seq]) -> live.Update:
    """Type a word, and follow the decoder: a model with attention, and one with a fixed vector below it."""
    from matplotlib.collections import LineCollection

    ask = lru_cache(64)(lambda word, more, look: _ask(fixed, attentive[look], word, more))
    ax = drawings.sheet(figure)
    side: dict[str, Any] = {"x": LEFT - 0.3, "color": plots.GREY, "ha": "right", "va": "center_baseline"}
    ax.text(y=READ, s="read", **side)
    ax.text(y=ALONE, s="one fixed\nvector", **side)
    name, note = ax.text(y=WRITTEN, s="", **side), ax.text(LEFT, READ + 0.27, "", color=plots.GREY, va="bottom")
    read, gone, ahead, alone = (
        _row(ax, y, c) for y, c in ((READ, plots.INK), (WRITTEN, plots.INK), (WRITTEN, AHEAD), (ALONE, plots.INK))
    )
    bold: dict[str, Any] = {"weight": "bold"}
    now, slips, slips_alone = (
        _row(ax, y, c, **bold) for y, c in ((WRITTEN, plots.BLUE), (WRITTEN, plots.ORANGE), (ALONE, plots.ORANGE))
    )
    lines = LineCollection([], colors=plots.BLUE, capstyle="butt", zorder=1.5)
    trail = LineCollection([], colors=BEHIND, capstyle="butt", zorder=1)
    for drawn in (trail, lines):
        ax.add_collection(drawn, autolim=False)

    def update(word: str, more: int, step: int, look: str) -> str:
        said = ask(word, more, look)
        T, S = said.weights.shape
        t = min(step, T) - 1
        weights, symbol = said.weights[t], said.written[t]
        gap = 3 if S <= 12 else 2 if S <= 17 else 1  # blanks between letters
        wrong, wrong_alone = (_wrong(said.read, text) for text in (said.written, said.alone))

        def show(row: Any, text: str, keep: Callable[[int], bool]) -> None:
            row.set_text((" " * gap).join(c if keep(n) else " " for n, c in enumerate(text)))

        show(read, said.read, lambda n: True)
        show(gone, said.written, lambda n: n < t and not wrong[n])
        show(slips, said.written, lambda n: n < t and wrong[n])
        show(now, said.written, lambda n: n == t)
        show(ahead, said.written, lambda n: n > t)
        show(alone, said.alone, lambda n: not wrong_alone[n])
        show(slips_alone, said.alone, lambda n: wrong_alone[n])
        left_out = f" ({', '.join(said.notes)})" if said.notes else ""
        name.set_text(look)
        note.set_text(f"{S} letter{'s' if S > 1 else ''}{left_out}")

        middles = LEFT + LETTER * (0.5 + (1 + gap) * np.arange(max(T, S)))
        up, down = READ - 0.2, WRITTEN + 0.24
        paths = [[((middles[s], up), (middles[n], down)) for s in range(S)] for n in range(t + 1)]
        lines.set_segments(paths[t])
        lines.set_linewidth([0.3 + THICKEST * w if w > 0.01 else 0.0 for w in weights.tolist()])
        trail.set_segments([line for path in paths[:t] for line in path])
        trail.set_linewidth([0.3 * THICKEST * w if w > 0.15 else 0.0 for w in said.weights[:t].ravel().tolist()])

        peak = int(weights.argmax())
        does = "ends" if symbol == END else f"writes {symbol}"
        ax.set_title(
            f"Step {t + 1} {does}: {weights[peak]:.2f} of its weight is on {said.read[peak]}, letter {peak + 1} of {S}"
        )
        return (
            f"… Read: {said.read}{left_out}. {look} writes {said.written.removesuffix(END)!r}, {_verdict(wrong)}; "
            f"the model with one fixed vector {said.alone.removesuffix(END)!r}, {_verdict(wrong_alone)}."
        )

    return update


def _row(ax: "plots.Axes", y: float, colour: str, **font: Any) -> Any:
    return ax.text(LEFT, y, "", size=SIZE, family="DejaVu Sans Mono", va="center_baseline", color=colour, **font)


def _wrong(read: str, written: str) -> list[bool]:
    """Tell for each symbol written, END among them, if it is wrong; then as many more as the answer is too short."""
    wanted = read[::-1] + END
    longer = max(len(wanted), len(written))
    return [a != b for a, b in zip(written.ljust(longer), wanted.ljust(longer), strict=True)]


def _verdict(wrong: list[bool]) -> str:
    return f"{sum(wrong)} wrong" if any(wrong) else "all right"


def _ask(fixed: Seq2Seq, attentive: Seq2Seq, word: str, more: int) -> Said:
    letters = "".join(c for c in word.lower() if c in LETTERS.characters)
    notes = ["only a–z"] if len(letters) < len(word) else []
    if len(letters) + more > LONGEST:
        notes.append(f"only {LONGEST}")
    read = (letters + TAIL[:more])[:LONGEST]
    if not read:
        read, notes = "abc", ["nothing to read: it got abc"]
    text, weights = answer(attentive, read)
    assert weights is not None
    alone = answer(fixed, read)[0]
    ended = len(alone) < len(read) + 2  # else it was stopped
    return Said(read, tuple(notes), (text + END)[: len(weights)], weights, alone + END * ended)


@plots.still(8.6, 4.0)
def few_states_plot(
    figure: "plots.Figure",
    found: Mapping[tuple[str, int], Mapping[int, float]],
    fixed: Mapping[int, float],
    at: int = 12,
) -> str:
    """Draw the strings that come out right, by length, where four decoders may read every fourth state only."""
    lengths = list(next(iter(found.values())))
    ax = figure.add_subplot(xlim=(lengths[0] - 0.8, lengths[-1] + 8.5), xticks=lengths)
    shares_by_length(ax, "strings all right")
    runs = {name: [[found[k][n] for n in lengths] for k in found if k[0] == name] for name, _ in found}
    runs["one fixed vector"] = [[fixed[n] for n in lengths]]
    middles, alt = {}, []
    lowest = -1.0
    for name, of in sorted(runs.items(), key=lambda run: float(np.median(run[1], axis=0)[-1])):
        colour, dash, marker = LOOKS[name]
        middle = np.median(of, axis=0)
        ax.plot(lengths, middle, dash, color=colour)
        for run in of:
            ax.plot(lengths, run, marker, color=colour, clip_on=False)
        lowest = max(middle[-1], lowest + 0.09)
        ax.text(lengths[-1] + 0.6, lowest, name, color=colour, va="center", weight="bold")
        middles[name] = middle[lengths.index(at)]
        alt.append(f"{name}: {'; '.join(_by_length(lengths, run) for run in of)}")
    simple, *others = (middles[name] for name in DECODERS)
    ax.set_title(
        f"{at} letters, {-(-at // 4)} states: medians of {min(others):.0%} to {max(others):.0%}, but Luong {simple:.0%}"
    )
    return f"… Strings all right by length, for each start. {'. '.join(alt)}."


# --- 4 · What a map says, and what it does not ------------------------------------------------------------------------


@plots.still(10.4, 7.1)
def maps_and_states(figure: "plots.Figure", maps: Mapping[str, tuple[Array, Array]], word: str) -> str:
    """Draw a column for each model: where it looks while it writes a word backwards, and what carries a letter."""
    letters = list(word)
    axes = figure.subplots(2, len(maps), sharex=True, sharey=True)
    alt = []
    for column, (name, pair) in zip(axes.T, maps.items(), strict=True):
        for ax, matrix, what in zip(column, pair, ("looks", "carries"), strict=True):
            title = f"{name}\n{what}: {weight_on(matrix):.2f} at hₛ, {weight_on(matrix, 1):.2f} at hₛ₊₁"
            shown, told = matrix.clip(0), title.replace("\n", ", ")
            plots.draw_heatmap(ax, shown, letters[::-1], letters, title, "written", "state", False, top=1.0)
            ax.label_outer()
            alt.append(plots.describe(shown, letters[::-1], letters, told, "written", "state"))
    for row, label in zip(axes, ("weight", "probability lost"), strict=True):
        figure.colorbar(row[-1].images[0], ax=list(row), label=label, pad=0.01)
    return " ".join(alt)


@plots.still(9.0, 4.2)
def asked_plot(figure: "plots.Figure", found: Mapping[tuple[str, str], Sequence[float]]) -> str:
    """Draw the rows of small models' maps that peak on the letter they write, a dot for each start."""
    scores = list(dict.fromkeys(score for score, _ in found))
    ax = figure.add_subplot(xlim=(-0.5, len(scores) + 0.4), xticks=range(len(scores)))
    ax.set_xticklabels(scores)
    ax.set(ylim=(-0.03, 1.05), ylabel="rows that peak\non the letter they write")
    ax.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0 %", "25 %", "50 %", "75 %", "100 %"))
    dots = ((plots.BLUE, "o"), (plots.ORANGE, "s"), (plots.GREEN, "^"))
    spread = {}
    for n, (when, (colour, marker)) in enumerate(zip(TIMES, dots, strict=True)):
        for x, score in enumerate(scores):
            of = found[score, when]
            ax.plot(x + 0.22 * (n - 1) + np.linspace(-0.06, 0.06, len(of)), sorted(of), marker, color=colour, alpha=0.8)
            spread[score, when] = f"{min(of):.0%} to {max(of):.0%}"
        ax.text(len(scores) - 0.55, 0.95 - 0.12 * n, f"asked {when}".replace(", ", ",\n"), color=colour, va="top")
    after, before = ([x for (_, w), of in found.items() if w == when for x in of] for when in TIMES[:2])
    ax.set_title(f"Asked after: {min(after):.0%} to {max(after):.0%}; before: {min(before):.0%} to {max(before):.0%}")
    rows = "; ".join(f"{score} asked {when}: {told}" for (score, when), told in spread.items())
    return f"… Shares of rows that peak on the letter they write. {rows}."


# --- 5 · Gradients through time ---------------------------------------------------------------------------------------

LINES = {"RNN": (plots.ORANGE, "--"), "GRU": (plots.GREEN, "-."), "LSTM": (plots.BLUE, "-")}


@live.lab(
    width=9.0,
    height=3.9,
    neutral="It opens at half the size of the matrices, where every memory is short.",
    telling=[{"scale": 1.0}, {"scale": 1.0, "gate_bias": 4}],
    scale=live.Slider("recurrent matrices ×", 0.5, 3.0, 0.5, 0.25),
    gate_bias=live.Slider("bias of the gate that keeps +", -2, 4, 0),
)
def gradient_lab(figure: "plots.Figure") -> live.Update:
    """Show how much of a gradient is left, many steps back, in three cells."""
    lowest, highest = 1e-10, 1e5
    ax = figure.add_subplot(xlim=(-0.5, FURTHEST + 2), ylim=(lowest, highest), yscale="log")
    ax.set(xlabel="steps back from the loss", ylabel="norm of the gradient")
    ax.axhline(1, color="#BBBBBB", lw=1, ls=":")
    lines, names = {}, {}
    for name, (colour, dash) in LINES.items():
        (lines[name],) = ax.plot(np.ones(FURTHEST + 1), dash, color=colour)
        names[name] = ax.text(FURTHEST + 0.4, 1, name, color=colour, va="center", bbox={"fc": "white", "ec": "none"})

    def update(scale: float, gate_bias: int) -> str:
        norms = {name: gradient_norms(name.lower(), scale, gate_bias) for name in LINES}
        lowest_free = np.log10(lowest) + 0.4
        for name in sorted(norms, key=lambda name: norms[name][-1]):
            lines[name].set_ydata(np.clip(norms[name], lowest / 10, highest * 10))
            height = min(max(np.log10(norms[name][-1]), lowest_free), np.log10(highest) - 0.4)
            names[name].set_y(10**height)
            lowest_free = height + 1.2
        far = ", ".join(f"{name} {formats.power(norm[FAR])}" for name, norm in norms.items())
        ax.set_title(f"× {scale:g}, gate {formats.signed(gate_bias)}: left after {FAR} steps: {far}")
        return "… What is left of a gradient by steps back, in three new cells."

    return update
