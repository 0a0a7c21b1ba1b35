"""A recurrent encoder–decoder, without attention or with one of four."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesson_utils._checks import Array, Mask, as_size
from lesson_utils.attention import padding_mask
from lesson_utils.layers import Layer, Param
from lesson_utils.ops import (
    cross_entropy_backward,
    cross_entropy_forward,
    embedding_backward,
    embedding_forward,
    linear_backward,
    linear_forward,
)
from lesson_utils.recurrent import (
    CELLS,
    SCORES,
    Recurrent,
    attend_backward,
    attend_forward,
    bahdanau_backward,
    bahdanau_forward,
    recurrence_backward,
    recurrence_forward,
)

Ids = NDArray[np.integer[Any]]
Batch = tuple[Any, ...]  # source ids, target ids, and the lengths of the sources if they are known


@dataclass(frozen=True)
class Seq2SeqConfig:
    """What a Seq2Seq is made of.

    Args:
        source_vocab, target_vocab: how many symbols, the special ones included.
        attention: None for one fixed context, "additive" (Bahdanau et al., 2015), or "dot", "general", "concat"
            (Luong et al., 2015).
        d_embed: width of the embeddings.
        d_hidden: width of the decoder's state, and of what the encoder gives for each symbol.
        bidirectional: the encoder reads both ways, each direction d_hidden / 2 wide.
        cell: "rnn", "gru" or "lstm".
        pad, bos, eos: the ids of padding, of the beginning and of the end of a target.
        dtype: of all parameters.

    Raises:
        ValueError: a size, a name or an id that does not fit.
    """

    source_vocab: int
    target_vocab: int
    attention: str | None = None
    d_embed: int = 32
    d_hidden: int = 64
    bidirectional: bool = True
    cell: str = "gru"
    pad: int = 0
    bos: int = 1
    eos: int = 2
    dtype: Any = np.float32

    def __post_init__(self) -> None:
        for name in ("source_vocab", "target_vocab", "d_embed", "d_hidden"):
            as_size(getattr(self, name), name)
        if self.attention is not None and self.attention not in SCORES:
            raise ValueError(f"attention={self.attention!r} is not known; expected None or one of {', '.join(SCORES)}")
        if self.cell not in CELLS:
            raise ValueError(f"cell={self.cell!r} is not known; expected one of {', '.join(CELLS)}")
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} must be even for two directions; try {self.d_hidden + 1}")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={np.dtype(self.dtype)} must be float32 or float64")
        ids = {"pad": self.pad, "bos": self.bos, "eos": self.eos}
        if len(set(ids.values())) < 3 or not all(0 <= i < self.target_vocab for i in ids.values()):
            raise ValueError(f"{ids} must be three different ids below target_vocab={self.target_vocab}")
        if self.pad >= self.source_vocab:
            raise ValueError(f"pad={self.pad} must be below source_vocab={self.source_vocab}")


class Seq2Seq(Layer):
    """An encoder reads the source; a decoder writes the target, symbol by symbol, with a context c_t for each.

        without attention   c_t is the encoder's last state, the same for each step (Cho et al., 2014)
        "additive"          c_t is a look back with the state before the step, h_{t−1} (Bahdanau et al., 2015)
        the others          c_t is a look back with the state after it, h_t (Luong et al., 2015)

    In the first two, c_t is an input of the decoder's cell. In all, the next symbol is read off [h_t; c_t]. That is
    the whole difference: where c_t comes from, and when.
    """

    def __init__(self, config: Seq2SeqConfig, rng: np.random.Generator) -> None:
        self.config = c = config
        d_e, d_h = c.d_embed, c.d_hidden
        d_state = CELLS[c.cell].parts * d_h

        def normal(*shape: int) -> Param:
            return Param((rng.normal(size=shape) / np.sqrt(shape[0])).astype(c.dtype))

        def zeros(size: int) -> Param:
            return Param(np.zeros(size, c.dtype))

        self.source_table = Param(rng.normal(size=(c.source_vocab, d_e)).astype(c.dtype))
        self.target_table = Param(rng.normal(size=(c.target_vocab, d_e)).astype(c.dtype))
        self.encoder = Recurrent(c.cell, d_e, d_h // 2 if c.bidirectional else d_h, rng, c.bidirectional, c.dtype)
        self.W_s, self.b_s = normal(d_h, d_state), zeros(d_state)  # from the encoder's end to the decoder's first state
        self.decoder = Recurrent(c.cell, d_e, d_h, rng, dtype=c.dtype)
        if c.attention in (None, "additive"):
            self.W_c = normal(d_h, CELLS[c.cell].gates * d_h)  # the context as an input of the cell
        self.score: list[Param] = []
        if c.attention == "additive":
            self.score = [normal(d_h, d_h), normal(d_h, d_h), normal(d_h)]
        elif c.attention == "general":
            self.score = [normal(d_h, d_h)]
        elif c.attention == "concat":
            self.score = [normal(2 * d_h, d_h), normal(d_h)]
        self.W_r, self.b_r = normal(2 * d_h, d_h), zeros(d_h)
        self.W_o, self.b_o = normal(d_h, c.target_vocab), zeros(c.target_vocab)

    def loss(self, batch: Batch) -> float:
        """Mean cross-entropy, in nats, over the symbols after BOS that are not padding.

        Args:
            batch: source ids, (B, S), and target ids with BOS and EOS, (B, T), both padded at the end; as a third, the
                lengths of the sources, (B,). Without them what is not PAD counts.

        Raises:
            ValueError: shapes or ids do not fit.
        """
        return self._loss(batch)[0]

    def loss_and_grad(self, batch: Batch, rng: np.random.Generator | None = None) -> float:
        """`loss`, and its gradients added to each `Param.grad`. Nothing here is random: `rng` is not used."""
        loss, cross, encoded, decoded = self._loss(batch)
        dmemory = self._decode_backward(cross_entropy_backward(1.0, cross), decoded)
        self._encode_backward(dmemory, encoded)
        return loss

    def forward(
        self, source: ArrayLike, target_in: ArrayLike, lengths: ArrayLike | None = None
    ) -> tuple[Array, Array | None]:
        """What the model expects after each symbol of a given target, and where it looks.

        Args:
            source: ids, (B, S).
            target_in: ids from BOS on, (B, T).
            lengths: of the sources, (B,). Default: what is not PAD counts.

        Returns:
            logits, (B, T, target_vocab), and alignment, (B, T, S): row t has the weights of the step that predicts the
            symbol after target_in[t]. None without attention.

        Raises:
            ValueError: shapes or ids do not fit.
        """
        memory, _ = self._encode(*self._check_source(source, lengths))
        logits, alignment, _, _ = self._decode(self._check_target(target_in, len(memory.keys)), memory.state, memory)
        return logits.swapaxes(0, 1), alignment

    def decode(self, source: ArrayLike, max_length: int, lengths: ArrayLike | None = None) -> tuple[Ids, Array | None]:
        """Write a target, always taking the likeliest symbol; never PAD or BOS, which are none.

        Args:
            source: ids, (B, S).
            max_length: stop after this many symbols at the latest.
            lengths: of the sources, (B,).

        Returns:
            ids, (B, T), T ≤ max_length: without BOS, up to and with EOS, then PAD; and alignment, (B, T, S), or None.

        Raises:
            ValueError: shapes or ids do not fit.
        """
        max_length = as_size(max_length, "max_length")
        memory, _ = self._encode(*self._check_source(source, lengths))
        B = len(memory.keys)
        state, last = memory.state, np.full((B, 1), self.config.bos)
        done = np.zeros(B, bool)
        ids: list[Ids] = []
        maps: list[Array] = []
        while len(ids) < max_length and not done.all():
            logits, alignment, state, _ = self._decode(last, state, memory)
            logits[0][:, [self.config.pad, self.config.bos]] = -np.inf
            ids.append(np.where(done, self.config.pad, logits[0].argmax(axis=-1)))
            if alignment is not None:
                maps.append(alignment)
            done |= ids[-1] == self.config.eos
            last = ids[-1][:, None]
        return np.stack(ids, axis=1), np.concatenate(maps, axis=1) if maps else None

    def _loss(self, batch: Batch) -> tuple[float, Any, Any, Any]:
        if len(batch) not in (2, 3):
            raise ValueError(f"batch has {len(batch)} parts; expected source, target and perhaps lengths")
        source, target, lengths = (*batch, None)[:3]
        memory, encoded = self._encode(*self._check_source(source, lengths))
        target = self._check_target(target, len(memory.keys), minimum=2)
        logits, _, _, decoded = self._decode(target[:, :-1], memory.state, memory)
        wanted = target[:, 1:].T  # (T − 1, B), time first, as the logits
        loss, cross = cross_entropy_forward(logits, wanted, wanted != self.config.pad)
        return loss, cross, encoded, decoded

    def _encode(self, source: Ids, mask: Mask | None) -> tuple["_Memory", Any]:
        embedded, ids = embedding_forward(source, self.source_table.value)  # (B, S, d_embed)
        (keys, summary), run = self.encoder.forward(embedded, mask)  # (B, S, d_hidden), (B, d_hidden)
        bridge, inner = linear_forward(summary, self.W_s.value, self.b_s.value)
        state = np.tanh(bridge)  # (B, parts·d_hidden)
        return _Memory(keys, summary, state, mask), (ids, run, inner, state)

    def _encode_backward(self, dmemory: "_Memory", cache: Any) -> None:
        ids, run, inner, state = cache
        dsummary = _linear_backward(dmemory.state * (1 - state * state), inner, self.W_s, self.b_s)
        dembedded = self.encoder.backward((dmemory.keys, dsummary + dmemory.summary), run)
        self.source_table.grad += embedding_backward(dembedded, ids)

    def _decode(self, target_in: Ids, state: Array, memory: "_Memory") -> tuple[Array, Array | None, Array, Any]:
        """Logits, (T, B, V), alignment, (B, T, S), and the last state, for some steps (in `decode`: one)."""
        kind, attention, d_h = self.config.cell, self.config.attention, self.config.d_hidden
        recurrent, score = [p.value for p in self.decoder.recurrent()], [p.value for p in self.score]
        embedded, ids = embedding_forward(target_in.T, self.target_table.value)  # (T, B, d_embed)
        a, inner = linear_forward(embedded, self.decoder.W_x.value, self.decoder.b.value)  # (T, B, gates·d_hidden)
        alignment = look = None
        if attention is None:
            a += memory.summary @ self.W_c.value  # the same for all steps
            states, run = recurrence_forward(kind, a, state, recurrent)  # (T + 1, B, parts·d_hidden)
            contexts = np.broadcast_to(memory.summary, (len(a), *memory.summary.shape))  # (T, B, d_hidden)
        elif attention == "additive":
            found, run = bahdanau_forward(kind, a, state, recurrent, self.W_c.value, memory.keys, score, memory.mask)
            states, contexts, weights = found
            alignment = weights.swapaxes(0, 1)  # (B, T, S)
        else:
            states, run = recurrence_forward(kind, a, state, recurrent)
            queries = states[1:, :, :d_h].swapaxes(0, 1)  # (B, T, d_hidden)
            (context, alignment), look = attend_forward(attention, queries, memory.keys, score, memory.mask)
            contexts = context.swapaxes(0, 1)  # (T, B, d_hidden)
        joined = np.concatenate([states[1:, :, :d_h], contexts], axis=-1)  # (T, B, 2·d_hidden)
        read, inner_r = linear_forward(joined, self.W_r.value, self.b_r.value)
        read = np.tanh(read)  # (T, B, d_hidden)
        logits, inner_o = linear_forward(read, self.W_o.value, self.b_o.value)
        return logits, alignment, states[-1], (ids, inner, run, look, states, memory, read, inner_r, inner_o)

    def _decode_backward(self, dlogits: Array, cache: Any) -> "_Memory":
        """Adds the decoder's gradients, and returns those of what the encoder gave."""
        ids, inner, run, look, states, memory, read, inner_r, inner_o = cache
        attention, d_h = self.config.attention, self.config.d_hidden
        dread = _linear_backward(dlogits, inner_o, self.W_o, self.b_o)
        djoined = _linear_backward(dread * (1 - read * read), inner_r, self.W_r, self.b_r)
        dcontexts = djoined[..., d_h:]  # (T, B, d_hidden)
        dstates = np.zeros_like(states)
        dstates[1:, :, :d_h] = djoined[..., :d_h]
        dkeys, dsummary = np.zeros_like(memory.keys), np.zeros_like(memory.summary)
        dscore: Sequence[Array] = ()
        drecurrent: Sequence[Array]
        if attention is None:
            da, dstate, *drecurrent = recurrence_backward(dstates, run)
            da_steps = da.sum(axis=0)  # (B, gates·d_hidden): the context took part in each step
            self.W_c.grad += memory.summary.T @ da_steps
            dsummary = dcontexts.sum(axis=0) + da_steps @ self.W_c.value.T
        elif attention == "additive":
            da, dstate, drecurrent, dW_c, dkeys, dscore = bahdanau_backward(dstates, dcontexts, run)
            self.W_c.grad += dW_c
        else:
            dqueries, dkeys, dscore = attend_backward(dcontexts.swapaxes(0, 1), look)
            dstates[1:, :, :d_h] += dqueries.swapaxes(0, 1)
            da, dstate, *drecurrent = recurrence_backward(dstates, run)
        _add(self.decoder.recurrent(), drecurrent)
        _add(self.score, dscore)
        dembedded = _linear_backward(da, inner, self.decoder.W_x, self.decoder.b)
        self.target_table.grad += embedding_backward(dembedded, ids)
        return _Memory(dkeys, dsummary, dstate, None)

    def _check_source(self, source: ArrayLike, lengths: ArrayLike | None) -> tuple[Ids, Mask | None]:
        source = np.asarray(source)
        if source.ndim != 2 or 0 in source.shape:
            raise ValueError(f"source has shape {source.shape}; expected ids (B, S), at least one of one symbol")
        _check_ids(source, self.config.source_vocab, "source")
        if lengths is None:
            mask = source != self.config.pad
        else:
            mask = padding_mask(lengths, source.shape[1])[..., 0, :]
            if mask.shape != source.shape:
                raise ValueError(f"lengths has shape {np.shape(lengths)}; expected {source.shape[:1]}, one a source")
        return source, None if mask.all() else mask

    def _check_target(self, target: ArrayLike, B: int, minimum: int = 1) -> Ids:
        target = np.asarray(target)
        if target.ndim != 2 or len(target) != B or target.shape[1] < minimum:
            raise ValueError(f"target has shape {target.shape}; expected ids ({B}, T) with T at least {minimum}")
        _check_ids(target, self.config.target_vocab, "target")
        return target


class _Memory(NamedTuple):
    """What the decoder is given (or the gradients of it)."""

    keys: Array  # (B, S, d_hidden)
    summary: Array  # (B, d_hidden), the encoder's end
    state: Array  # (B, parts·d_hidden), the decoder's first state
    mask: Mask | None  # (B, S), True = a real symbol


def _check_ids(ids: Ids, V: int, name: str) -> None:
    if ids.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {ids.dtype}; expected integers 0…{V - 1}")
    if ids.min() < 0 or ids.max() >= V:
        raise ValueError(f"{name} holds {ids.min()}…{ids.max()}; expected integers 0…{V - 1}")


def _add(params: Sequence[Param], grads: Sequence[Array]) -> None:
    for param, grad in zip(params, grads, strict=True):
        param.grad += grad


def _linear_backward(dy: Array, cache: Any, W: Param, b: Param) -> Array:
    dx, dW, db = linear_backward(dy, cache)
    W.grad += dW
    b.grad += db
    return dx
