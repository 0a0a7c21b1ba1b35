"""The Transformer of "Attention Is All You Need", and its encoder alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids, as_choice, as_ids, as_size
from lesson_utils.maths.layers import DecoderLayer, Embedding, KeyValueCache, Layer, Linear, Rng, norm_of
from lesson_utils.maths.models.stack import (
    HeadsOf,
    Stack,
    StackCache,
    StackConfig,
    Tokens,
    knocked_out,
    see_past,
    see_real,
)

Maps = dict[str, list[Array]]
ATTENTIONS = ("encoder", "decoder", "cross")  # where a Transformer has heads, as in `maps`


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """Sizes and choices of a Transformer; `vocab` is the source's, and the target's if `target_vocab` is None.

    Args:
        target_vocab: how many symbols in the target, the special ones included.
        shared: one table of vectors for source, target and output (needs one vocabulary).
        smoothing: label smoothing ε; the paper uses 0.1.
        causal: False lets the decoder look ahead, at what it is to predict. For experiments.
        pad, bos, eos: the ids of padding, of the beginning and of the end of a target.
    """

    target_vocab: int | None = None
    shared: bool = False
    smoothing: float = 0.0
    causal: bool = True
    pad: int = 0
    bos: int = 1
    eos: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared and self.target_vocab not in (None, self.vocab):
            raise ValueError(f"shared=True needs one vocabulary, not vocab={self.vocab} and {self.target_vocab=}")
        if self.positions not in ("sinusoidal", "learned", "none"):
            raise ValueError(f"positions={self.positions!r} is for encoders and GPTs; choose 'sinusoidal' or 'learned'")

    @classmethod
    def base(cls, vocab: int = 37_000) -> "TransformerConfig":
        """The paper's base model. Source: Vaswani et al. (2017), table 3; section 5.1 for the vocabulary."""
        sizes: dict[str, Any] = {"d_model": 512, "num_heads": 8, "num_layers": 6, "d_ff": 2048}
        return cls(vocab=vocab, **sizes, norm="post", dropout=0.1, smoothing=0.1, shared=True)


class EncodedCache(NamedTuple):
    tokens: Any
    stack: StackCache


class DecodedCache(NamedTuple):
    tokens: Any
    blocks: list[Any]
    norm: Any
    stream: Array  # what the blocks gave, before the last norm
    output: Any


class TransformerCache(NamedTuple):
    encoded: EncodedCache
    decoded: DecodedCache


class Transformer(Layer):
    """Encoder–decoder: the encoder reads the source, the decoder predicts each symbol of the target from those before.

    Source: Vaswani et al. (2017), figure 1.
    """

    def __init__(self, config: TransformerConfig, rng: Rng) -> None:
        self.config = c = config
        self.source = Tokens(c, rng)
        target_embedding = self.source.embedding
        if not c.shared:
            target_embedding = Embedding(c.target_vocab or c.vocab, c.d_model, rng, c.dtype)
        self.target = Tokens(c, rng, target_embedding)
        self.encoder = Stack(c, rng)
        self.blocks = [DecoderLayer(c, rng) for _ in range(c.num_layers)]
        self.norm = norm_of(c) if c.norm == "pre" else None

    def forward(
        self,
        source: ArrayLike,
        target_in: ArrayLike,
        rng: Rng | None = None,
        knock_out: Mapping[str, HeadsOf] | None = None,
        knock_out_by: str = "zero",
    ) -> tuple[Array, TransformerCache]:
        """What the model expects after each symbol of a given target.

        Args:
            source: ids, (B, S), padded at the end.
            target_in: ids from BOS on, (B, T).
            rng: for dropout, when training.
            knock_out: heads whose outputs are replaced, by place: {"cross": {0: [1, 3]}} are heads 1 and 3 of the
                cross-attention in layer 0. Places are those of `maps`: "encoder", "decoder" and "cross".
            knock_out_by: "zero", or their "mean" over batch and positions (padding among them).

        Returns:
            logits, (B, T, V), and a cache: `maps(cache)` are the attention weights of this very pass.
        """
        for place in knock_out or ():
            as_choice(place, "knock_out", ATTENTIONS)
        source, target_in = as_ids(source, "source", ndim=2), as_ids(target_in, "target_in", ndim=2)
        if len(source) != len(target_in):
            raise ValueError(f"source has {len(source)} rows, target_in {len(target_in)}; expected as many")
        heads = {place: (knock_out or {}).get(place) for place in ATTENTIONS}
        memory, encoded = self._encode(source, rng, heads["encoder"], knock_out_by)
        logits, decoded = self._decode(
            target_in,
            memory,
            see_real(source, self.config.pad, self.config.dtype),
            rng=rng,
            knock_out=heads["decoder"],
            knock_out_cross=heads["cross"],
            knock_out_by=knock_out_by,
        )
        return logits, TransformerCache(encoded, decoded)

    def maps(self, cache: TransformerCache) -> Maps:
        """By "encoder", "decoder" and "cross", a list with the weights of each layer: (B, h, T_q, T_k)."""
        encoded, decoded = cache
        decoder, cross = zip(*(b.maps(c) for b, c in zip(self.blocks, decoded.blocks, strict=True)), strict=True)
        return {"encoder": self.encoder.maps(encoded.stack), "decoder": list(decoder), "cross": list(cross)}

    def loss(self, batch: tuple[ArrayLike, ArrayLike]) -> float:
        """Mean cross-entropy, in nats, of the symbols after BOS that are not padding; without smoothing.

        Args:
            batch: source (B, S), and target with BOS and EOS (B, T + 1), both padded at the end.
        """
        source, target = as_ids(batch[0], "source", ndim=2), as_ids(batch[1], "target", ndim=2)
        logits, _ = self.forward(source, target[:, :-1])
        return ops.cross_entropy_forward(logits, target[:, 1:], target[:, 1:] != self.config.pad)[0]

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        """`loss` with smoothing (and, with `rng`, dropout), and its gradients added to each `Param.grad`."""
        source, target = as_ids(batch[0], "source", ndim=2), as_ids(batch[1], "target", ndim=2)
        logits, (encoded, decoded) = self.forward(source, target[:, :-1], rng)
        counts = target[:, 1:] != self.config.pad
        loss, cross = ops.cross_entropy_forward(logits, target[:, 1:], counts, self.config.smoothing)
        dmemory = self._decode_backward(ops.cross_entropy_backward(1.0, cross), decoded)
        self.source.backward(self.encoder.backward(dmemory, encoded.stack), encoded.tokens)
        return loss

    def decode(self, source: ArrayLike, max_length: int) -> Ids:
        """The model's own targets, the likeliest symbol at each step: ids (B, ≤ max_length), without BOS.

        Rows end with EOS and padding behind it. Keys and values of earlier steps are kept, not computed again.
        """
        c, source = self.config, as_ids(source, "source", ndim=2)
        max_length = as_size(max_length, "max_length")
        memory, _ = self._encode(source)
        memory_mask = see_real(source, c.pad, c.dtype)
        past = [KeyValueCache(max_length) for _ in self.blocks]
        ids = np.full((len(source), 1), c.bos)
        written: list[Ids] = []
        done = np.zeros(len(source), bool)
        while len(written) < max_length and not done.all():
            logits, _ = self._decode(ids, memory, memory_mask, past)  # (B, 1, V)
            ids = np.where(done[:, None], c.pad, logits.argmax(axis=-1))
            done |= ids[:, 0] == c.eos
            written.append(ids)
        return np.concatenate(written, axis=1)

    def _encode(
        self, source: Ids, rng: Rng | None = None, knock_out: HeadsOf | None = None, knock_out_by: str = "zero"
    ) -> tuple[Array, EncodedCache]:
        x, tokens = self.source.forward(source, rng=rng)
        mask = see_real(source, self.config.pad, self.config.dtype)
        x, stack = self.encoder.forward(x, mask, None, rng, knock_out, knock_out_by)
        return x, EncodedCache(tokens, stack)

    def _decode(
        self,
        ids: Ids,
        memory: Array,
        memory_mask: Array | None,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
        knock_out: HeadsOf | None = None,
        knock_out_cross: HeadsOf | None = None,
        knock_out_by: str = "zero",
    ) -> tuple[Array, DecodedCache]:
        start, T = (past[0].length if past else 0), ids.shape[1]
        x, tokens = self.target.forward(ids, start, rng)
        mask = see_past(T, start + T, self.config.dtype) if self.config.causal else None
        layers, h = len(self.blocks), self.config.num_heads
        own, cross = (knocked_out(heads, knock_out_by, layers, h) for heads in (knock_out, knock_out_cross))
        caches = []
        for i, block in enumerate(self.blocks):
            own_past = past[i] if past else None
            x, cache = block.forward(x, memory, mask, memory_mask, own_past, rng, own.get(i), cross.get(i))
            caches.append(cache)
        stream, top = x, None
        if self.norm is not None:
            x, top = self.norm.forward(x)
        logits, output = self.target.embedding.logits_forward(x)  # (B, T, V)
        return logits, DecodedCache(tokens, caches, top, stream, output)

    def _decode_backward(self, dlogits: Array, cache: DecodedCache) -> Array:
        dx = self.target.embedding.logits_backward(dlogits, cache.output)
        if self.norm is not None:
            dx = self.norm.backward(dx, cache.norm)
        dmemory: Any = 0
        for block, block_cache in zip(reversed(self.blocks), reversed(cache.blocks), strict=True):
            dx, share = block.backward(dx, block_cache)
            dmemory = dmemory + share
        self.target.backward(dx, cache.tokens)
        return np.asarray(dmemory)


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """Sizes and choices of an encoder with classes on top.

    Args:
        classes: how many classes there are.
        outputs: how many classes each position (or, pooled, each sequence) is asked for.
        pooled: one answer for the whole sequence, from the mean of its positions.
        pad: the id of padding; None if there is none.
    """

    classes: int
    outputs: int = 1
    pooled: bool = False
    pad: int | None = None


class EncoderCache(NamedTuple):
    tokens: Any
    stack: StackCache
    share: Array | None  # of each position in the mean, if there is one
    head: Any


class Encoder(Layer):
    """An encoder that puts symbols, or whole sequences, into classes: the family of BERT."""

    def __init__(self, config: EncoderConfig, rng: Rng) -> None:
        self.config = c = config
        classes, outputs = as_size(c.classes, "classes"), as_size(c.outputs, "outputs")
        self.tokens, self.stack = Tokens(c, rng), Stack(c, rng)
        self.head = Linear(c.d_model, outputs * classes, rng, dtype=c.dtype)

    def forward(
        self,
        ids: ArrayLike,
        rng: Rng | None = None,
        knock_out: HeadsOf | None = None,
        knock_out_by: str = "zero",
    ) -> tuple[Array, EncoderCache]:
        """ids (B, T) → logits (B, T, outputs, classes), or pooled (B, outputs, classes), and a cache.

        With `knock_out`, layer -> heads, outputs of heads are replaced: by "zero", or by their "mean" over batch and
        positions (padding among them).
        """
        c, ids = self.config, as_ids(ids, "ids", ndim=2)
        mask = None if c.pad is None else see_real(ids, c.pad, c.dtype)
        x, tokens = self.tokens.forward(ids, rng=rng)
        x, stack = self.stack.forward(x, mask, None, rng, knock_out, knock_out_by)  # (B, T, d_model)
        share = None
        if c.pooled:
            share = np.ones(ids.shape, c.dtype) if mask is None else mask[:, 0, 0]  # (B, T)
            share = share / np.maximum(share.sum(axis=1, keepdims=True), 1)
            x = (share[:, None, :] @ x)[:, 0]  # (B, d_model)
        logits, head = self.head.forward(x)
        return logits.reshape(*x.shape[:-1], c.outputs, c.classes), EncoderCache(tokens, stack, share, head)

    def maps(self, cache: EncoderCache) -> Maps:
        """Under "encoder", a list with the attention weights of each layer: (B, h, T, T)."""
        return {"encoder": self.stack.maps(cache.stack)}

    def loss(self, batch: tuple[ArrayLike, ArrayLike]) -> float:
        """Mean cross-entropy, in nats.

        Args:
            batch: ids (B, T), and classes in the shape of the logits without their last axis; with one output, that
                axis may be left out: (B, T), or pooled (B,).
        """
        return self._loss(batch, None)[0]

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        """`loss` (with `rng`, under dropout), and its gradients added to each `Param.grad`."""
        loss, cross, (tokens, stack, share, head) = self._loss(batch, rng)
        dlogits = ops.cross_entropy_backward(1.0, cross)  # (..., outputs, classes)
        dx = self.head.backward(dlogits.reshape(*dlogits.shape[:-2], -1), head)
        if share is not None:
            dx = share[:, :, None] * dx[:, None, :]  # (B, T, d_model)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def _loss(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None) -> tuple[float, Any, Any]:
        c, ids, targets = self.config, as_ids(batch[0], "ids", ndim=2), np.asarray(batch[1])
        logits, cache = self.forward(ids, rng)
        if c.outputs == 1 and targets.ndim == logits.ndim - 2:
            targets = targets[..., None]  # (..., 1)
        mask = None
        if c.pad is not None and not c.pooled:
            mask = np.broadcast_to((ids != c.pad)[:, :, None], logits.shape[:-1])
        loss, cross = ops.cross_entropy_forward(logits, targets, mask)
        return loss, cross, cache
