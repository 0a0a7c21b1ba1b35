"""A recurrent encoder–decoder, without attention or with one of four."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.attention import padding_mask
from lesson_utils.maths.checks import Array, Ids, Mask, as_choice, as_ids, as_size
from lesson_utils.maths.layers import Embedding, Layer, Linear, normal
from lesson_utils.maths.layers.basic import EmbeddingCache, LinearCache
from lesson_utils.maths.models.decoders import Bahdanau, Decoded, Fixed, Luong, Memory
from lesson_utils.maths.ops import cross_entropy_backward, cross_entropy_forward
from lesson_utils.maths.recurrent import CELLS, Recurrent
from lesson_utils.maths.recurrent.through_time import Unrolled
from lesson_utils.maths.scores import SCORES

Batch = tuple[Any, ...]  # source ids, target ids, and the lengths of the sources if they are known


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes and choices of a Seq2Seq.

    Args:
        source_vocab, target_vocab: how many symbols, the special ones included.
        attention: None for one fixed context; "additive" (Bahdanau et al., 2015); or "dot", "general" or "concat" by
            Luong et al. (2015).
        d_embed: width of the embeddings.
        d_hidden: width of the decoder's state, and of the encoder's output for each symbol.
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
        if self.attention is not None:
            as_choice(self.attention, "attention", SCORES)
        as_choice(self.cell, "cell", CELLS)
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} must be even for two directions; try {self.d_hidden + 1}")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={np.dtype(self.dtype)} must be float32 or float64")
        ids = {"pad": self.pad, "bos": self.bos, "eos": self.eos}
        if len(set(ids.values())) < 3 or not all(0 <= i < self.target_vocab for i in ids.values()):
            raise ValueError(f"{ids} must be three different ids below target_vocab={self.target_vocab}")
        if self.pad >= self.source_vocab:
            raise ValueError(f"pad={self.pad} must be below source_vocab={self.source_vocab}")


class EncodedCache(NamedTuple):
    embedded: EmbeddingCache
    run: Unrolled
    bridge: LinearCache
    state: Array  # the decoder's first, (B, parts·d_hidden)


class ReadCache(NamedTuple):
    embedded: EmbeddingCache
    decoded: Decoded
    decoder: Any  # that of the decoder's class
    joined: LinearCache
    read: Array  # (T, B, d_hidden)
    out: LinearCache


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
        d_h, dtype = c.d_hidden, c.dtype
        self.source = Embedding(c.source_vocab, c.d_embed, rng, dtype, scale=1.0)
        self.target = Embedding(c.target_vocab, c.d_embed, rng, dtype, scale=1.0)
        self.encoder = Recurrent(c.cell, c.d_embed, d_h // 2 if c.bidirectional else d_h, rng, c.bidirectional, dtype)
        # From the encoder's end to the decoder's first state.
        self.bridge = Linear(d_h, CELLS[c.cell].parts * d_h, rng, dtype=dtype, init=normal)
        kinds: dict[str | None, Callable[..., Fixed | Bahdanau | Luong]] = {None: Fixed, "additive": Bahdanau}
        self.decoder = kinds.get(c.attention, Luong)(c, rng)
        self.read = Linear(2 * d_h, d_h, rng, dtype=dtype, init=normal)
        self.out = Linear(d_h, c.target_vocab, rng, dtype=dtype, init=normal)

    def loss(self, batch: Batch) -> float:
        """Return the mean cross-entropy, in nats, over the symbols after BOS that are not padding.

        Args:
            batch: source ids, (B, S), and target ids with BOS and EOS, (B, T), both padded at the end; as a third, the
                lengths of the sources, (B,). Without them what is not PAD counts.

        Raises:
            ValueError: shapes or ids do not fit.
        """
        return self._loss(batch)[0]

    def loss_and_grad(self, batch: Batch, rng: np.random.Generator | None = None) -> float:
        """Return `loss` and add its gradients to each `Param.grad`. Nothing here is random: `rng` is not used."""
        loss, cross, encoded, decoded = self._loss(batch)
        dmemory, dstate = self._decode_backward(cross_entropy_backward(1.0, cross), decoded)
        self._encode_backward(dmemory, dstate, encoded)
        return loss

    def forward(
        self, source: ArrayLike, target_in: ArrayLike, lengths: ArrayLike | None = None
    ) -> tuple[Array, Array | None]:
        """Predict what comes after each symbol of a given target, and say where the model looks.

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
        memory, state, _ = self._encode(*self._check_source(source, lengths))
        logits, cache = self._decode(self._check_target(target_in, len(memory.keys)), state, memory)
        return logits.swapaxes(0, 1), cache.decoded.alignment

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
        memory, state, _ = self._encode(*self._check_source(source, lengths))
        B = len(memory.keys)
        last = np.full((B, 1), self.config.bos)
        done = np.zeros(B, bool)
        ids: list[Ids] = []
        maps: list[Array] = []
        while len(ids) < max_length and not done.all():
            logits, (_, decoded, *_) = self._decode(last, state, memory)
            state = decoded.states[-1]
            logits[0][:, [self.config.pad, self.config.bos]] = -np.inf
            ids.append(np.where(done, self.config.pad, logits[0].argmax(axis=-1)))
            if decoded.alignment is not None:
                maps.append(decoded.alignment)
            done |= ids[-1] == self.config.eos
            last = ids[-1][:, None]
        return np.stack(ids, axis=1), np.concatenate(maps, axis=1) if maps else None

    def _loss(self, batch: Batch) -> tuple[float, tuple[Array, float], EncodedCache, ReadCache]:
        if len(batch) not in (2, 3):
            raise ValueError(f"batch has {len(batch)} parts; expected source, target and perhaps lengths")
        source, target, lengths = (*batch, None)[:3]
        memory, state, encoded = self._encode(*self._check_source(source, lengths))
        target = self._check_target(target, len(memory.keys), minimum=2)
        logits, decoded = self._decode(target[:, :-1], state, memory)
        wanted = target[:, 1:].T  # (T − 1, B), time first, as the logits
        loss, cross = cross_entropy_forward(logits, wanted, wanted != self.config.pad)
        return loss, cross, encoded, decoded

    def _encode(self, source: Ids, mask: Mask | None) -> tuple[Memory, Array, EncodedCache]:
        """Return what the decoder takes from the encoder, and the decoder's first state."""
        x, embedded = self.source.forward(source)  # (B, S, d_embed)
        (keys, end), run = self.encoder.forward(x, mask)  # (B, S, d_hidden), (B, d_hidden)
        bridged, bridge = self.bridge.forward(end)
        state = np.tanh(bridged)  # (B, parts·d_hidden)
        return Memory(keys, end, mask), state, EncodedCache(embedded, run, bridge, state)

    def _encode_backward(self, dmemory: Memory, dstate: Array, cache: EncodedCache) -> None:
        dend = dmemory.end + self.bridge.backward(dstate * (1 - cache.state * cache.state), cache.bridge)
        self.source.backward(self.encoder.backward((dmemory.keys, dend), cache.run), cache.embedded)

    def _decode(self, target_in: Ids, state: Array, memory: Memory) -> tuple[Array, ReadCache]:
        """Return logits, (T, B, V), for some steps (in `decode`: one)."""
        y, embedded = self.target.forward(target_in.T)  # (T, B, d_embed)
        decoded, decoder = self.decoder.forward(y, state, memory)
        h = decoded.states[1:, :, : self.config.d_hidden]  # (T, B, d_hidden)
        read, joined = self.read.forward(np.concatenate([h, decoded.contexts], axis=-1))
        read = np.tanh(read)  # (T, B, d_hidden)
        logits, out = self.out.forward(read)
        return logits, ReadCache(embedded, decoded, decoder, joined, read, out)

    def _decode_backward(self, dlogits: Array, cache: ReadCache) -> tuple[Memory, Array]:
        """Add the decoder's gradients, and return those of the encoder's outputs."""
        dread = self.out.backward(dlogits, cache.out) * (1 - cache.read * cache.read)
        djoined = self.read.backward(dread, cache.joined)  # (T, B, 2·d_hidden)
        dh, dcontexts = np.split(djoined, 2, axis=-1)
        dstates = np.zeros_like(cache.decoded.states)
        dstates[1:, :, : dh.shape[-1]] = dh
        dy, dstate, dmemory = self.decoder.backward(dstates, dcontexts, cache.decoder)
        self.target.backward(dy, cache.embedded)
        return dmemory, dstate

    def _check_source(self, source: ArrayLike, lengths: ArrayLike | None) -> tuple[Ids, Mask | None]:
        source = np.asarray(source)
        if source.ndim != 2 or 0 in source.shape:
            raise ValueError(f"source has shape {source.shape}; expected ids (B, S), at least one of one symbol")
        as_ids(source, "source", self.config.source_vocab)
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
        return as_ids(target, "target", self.config.target_vocab)
