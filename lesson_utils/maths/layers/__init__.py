"""Trainable layers: thin, around the functions of `ops` and `attention`.

`forward(x) -> (y, cache)`, `backward(dy, cache) -> dx`. Caches are returned, never kept, so that a layer can be used
many times before `backward`. Parameters add up their gradients in `Param.grad`, until a step of training clears them.

`Packed` is a matrix that stays in 4 or 8 bits a number; the layers of a model that only answers take it as a value.

With a random generator as `rng`, `forward` drops out what `dropout` says; without, it drops nothing.
"""

from lesson_utils.maths.layers.basic import (
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    Linear,
    Param,
    RMSNorm,
    Rng,
    glorot,
    normal,
)
from lesson_utils.maths.layers.blocks import DecoderLayer, EncoderLayer, LayerConfig, NormPlace, Residual, norm_of
from lesson_utils.maths.layers.cache import KeyValueCache
from lesson_utils.maths.layers.heads import Attend, KnockOut, MultiHead
from lesson_utils.maths.layers.packed import Packed
