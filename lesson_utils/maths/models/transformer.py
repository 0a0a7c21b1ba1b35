"""The Transformer of "Attention Is All You Need": an encoder and a decoder."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths import ops
from lesson_utils.maths.checks import Array, Ids, as_ids, as_size
from lesson_utils.maths.layers import DecoderLayer, Embedding, KeyValueCache, Layer, MultiHead, Rng, norm_of
from lesson_utils.maths.layers.basic import LinearCache, NormCache
from lesson_utils.maths.layers.blocks import DecoderCache
from lesson_utils.maths.models.encoder import Encoder as Encoder  # stored models look for it here
from lesson_utils.maths.models.encoder import EncoderConfig as EncoderConfig
from lesson_utils.maths.models.gpt import (
    Stack,
    StackCache,
    StackConfig,
    Tokens,
    TokensCache,
    see_past,
    see_real,
)


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
        """Make the config of the paper's base model.

        Source: Vaswani et al. (2017), table 3; section 5.1 for the vocabulary.
        """
        sizes: dict[str, Any] = {"d_model": 512, "num_heads": 8, "num_layers": 6, "d_ff": 2048}
        return cls(vocab=vocab, **sizes, norm="post", dropout=0.1, smoothing=0.1, shared=True)


class EncodedCache(NamedTuple):
    tokens: TokensCache
    stack: StackCache


class DecodedCache(NamedTuple):
    tokens: TokensCache
    blocks: list[DecoderCache]
    norm: NormCache | None
    stream: Array  # what the blocks gave, before the last norm
    output: LinearCache


class TransformerCache(NamedTuple):
    encoded: EncodedCache
    decoded: DecodedCache


class Transformer(Layer):
    """Encoder–decoder: the encoder reads the source, the decoder predicts each symbol of the target from those before.

    Source: Vaswani et al. (2017), figure 1.
    """

    def __init__(self, config: TransformerConfig, rng: Rng | None) -> None:
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
        self, source: ArrayLike, target_in: ArrayLike, rng: Rng | None = None
    ) -> tuple[Array, TransformerCache]:
        """Predict what comes after each symbol of a given target.

        Args:
            source: ids, (B, S), padded at the end.
            target_in: ids from BOS on, (B, T).
            rng: for dropout, when training.

        Returns:
            logits, (B, T, V), and a cache: `maps(cache)` are the attention weights of this very pass.
        """
        source, target_in = as_ids(source, "source", ndim=2), as_ids(target_in, "target_in", ndim=2)
        if len(source) != len(target_in):
            raise ValueError(f"source has {len(source)} rows, target_in {len(target_in)}; expected as many")
        memory, encoded = self._encode(source, rng)
        memory_mask = see_real(source, self.config.pad, self.config.dtype)
        logits, decoded = self._decode(target_in, memory, memory_mask, rng=rng)
        return logits, TransformerCache(encoded, decoded)

    def maps(self, cache: TransformerCache) -> dict[str, list[Array]]:
        """Return, by "encoder", "decoder" and "cross", a list with the weights of each layer: (B, h, T_q, T_k)."""
        encoded, decoded = cache
        decoder, cross = zip(*(b.maps(c) for b, c in zip(self.blocks, decoded.blocks, strict=True)), strict=True)
        return {"encoder": self.encoder.maps(encoded.stack), "decoder": list(decoder), "cross": list(cross)}

    def heads(self) -> dict[str, list[MultiHead]]:
        """Return, by the same places as `maps`, the attention of each layer."""
        decoder, cross = [b.attention.inner for b in self.blocks], [b.cross.inner for b in self.blocks]
        return {"encoder": self.encoder.heads(), "decoder": decoder, "cross": cross}

    def loss(self, batch: tuple[ArrayLike, ArrayLike]) -> float:
        """Return the mean cross-entropy, in nats, of the symbols after BOS that are not padding; without smoothing.

        Args:
            batch: source (B, S), and target with BOS and EOS (B, T + 1), both padded at the end.
        """
        source, target = as_ids(batch[0], "source", ndim=2), as_ids(batch[1], "target", ndim=2)
        logits, _ = self.forward(source, target[:, :-1])
        return ops.cross_entropy_forward(logits, target[:, 1:], target[:, 1:] != self.config.pad)[0]

    def loss_and_grad(self, batch: tuple[ArrayLike, ArrayLike], rng: Rng | None = None) -> float:
        """Return `loss` with smoothing (and, with `rng`, dropout); add its gradients to each `Param.grad`."""
        source, target = as_ids(batch[0], "source", ndim=2), as_ids(batch[1], "target", ndim=2)
        logits, (encoded, decoded) = self.forward(source, target[:, :-1], rng)
        counts = target[:, 1:] != self.config.pad
        loss, cross = ops.cross_entropy_forward(logits, target[:, 1:], counts, self.config.smoothing)
        dmemory = self._decode_backward(ops.cross_entropy_backward(1.0, cross), decoded)
        self.source.backward(self.encoder.backward(dmemory, encoded.stack), encoded.tokens)
        return loss

    def decode(self, source: ArrayLike, max_length: int) -> Ids:
        """Write targets, the likeliest symbol at each step: ids (B, ≤ max_length), without BOS.

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

    def _encode(self, source: Ids, rng: Rng | None = None) -> tuple[Array, EncodedCache]:
        x, tokens = self.source.forward(source, rng=rng)
        mask = see_real(source, self.config.pad, self.config.dtype)
        x, stack = self.encoder.forward(x, mask, rng=rng)
        return x, EncodedCache(tokens, stack)

    def _decode(
        self,
        ids: Ids,
        memory: Array,
        memory_mask: Array | None,
        past: list[KeyValueCache] | None = None,
        rng: Rng | None = None,
    ) -> tuple[Array, DecodedCache]:
        start, T = (past[0].length if past else 0), ids.shape[1]
        x, tokens = self.target.forward(ids, start, rng)
        mask = see_past(T, start + T, self.config.dtype) if self.config.causal else None
        caches = []
        for i, block in enumerate(self.blocks):
            x, cache = block.forward(x, memory, mask, memory_mask, past[i] if past else None, rng)
            caches.append(cache)
        stream, top = x, None
        if self.norm is not None:
            x, top = self.norm.forward(x)
        logits, output = self.target.embedding.logits_forward(x)  # (B, T, V)
        return logits, DecodedCache(tokens, caches, top, stream, output)

    def _decode_backward(self, dlogits: Array, cache: DecodedCache) -> Array:
        dx = self.target.embedding.logits_backward(dlogits, cache.output)
        if self.norm is not None and cache.norm is not None:
            dx = self.norm.backward(dx, cache.norm)
        dmemory: Any = 0
        for block, block_cache in zip(reversed(self.blocks), reversed(cache.blocks), strict=True):
            dx, share = block.backward(dx, block_cache)
            dmemory = dmemory + share
        self.target.backward(dx, cache.tokens)
        return np.asarray(dmemory)
