"""What does not fit is refused with what was given, what was expected and what to do: one table of all messages.

What every function refuses in the same words (dtypes, NaN, shapes, sizes) is in `test_every_function.py`.
"""

import re
from datetime import date
from functools import partial

import numpy as np
import pytest
from straight_line import Line, batches

from lesson_utils.maths import (
    attention,
    checks,
    costs,
    efficient,
    fast_weights,
    layers,
    models,
    ops,
    positions,
    recurrent,
    scores,
    tasks,
)
from lesson_utils.maths.layers import Param
from lesson_utils.maths.positions import Rotary
from lesson_utils.maths.tasks import Vocabulary
from lesson_utils.maths.training import SGD, Adam, clip_gradients, fit, warmup_linear

Z = np.zeros
INF, NAN = np.inf, np.nan
ROWS, ONES, X, SQUARE = np.ones((2, 3)), np.ones(3), Z((2, 3, 4)), Z((4, 4))
INPUT, STATE, MATRIX = np.ones((2, 3)), np.ones((2, 4)), np.ones((3, 4))
GRU = [np.ones(shape) for shape in ((3, 12), (4, 12), 12, 4)]
RNG = np.random.default_rng(0)


def unroll(kind, x, state, params, mask=None):
    return recurrent.unroll_forward(kind, x, [p[None] for p in params], mask, state[None])


def one(dtype=float):
    return {"a": Param(np.ones(2, dtype))}


PROBABILITIES = [
    (ops.softmax, (Z((3, 0)),), "(3, 0): nothing along axis -1"),
    (ops.softmax, (Z((0, 3)), 0), "(0, 3): nothing along axis 0"),
    (ops.softmax, (ROWS, 2), "axis=2 does not exist: x has shape (2, 3)"),
    (ops.softmax, (ROWS, -3), "axis=-3 does not exist: x has shape (2, 3)"),
    (ops.softmax, (np.float64(1),), "axis=-1 does not exist: x has shape ()"),
    (ops.softmax, ([1.0, NAN],), "x holds NaN or +∞"),
    (ops.softmax, ([[1.0, 2.0], [1.0, NAN]],), "x holds NaN or +∞"),
    (ops.softmax, ([[1.0, 2.0], [1.0, INF]],), "x holds NaN or +∞"),
    (ops.softmax, ([1.0, INF],), "x holds NaN or +∞"),
    (ops.softmax, ([1.0], -1, 0), "temperature=0.0 must be a positive number"),
    (ops.softmax, ([1.0], -1, -1), "temperature=-1.0 must be a positive number"),
    (ops.softmax, (np.ones(2, np.float32), -1, 1e-60), "temperature=1e-60 must be a positive number (float32)"),
    (ops.softmax, (np.ones(2, np.float32), -1, 1e60), "temperature=1e+60 must be a positive number (float32)"),
    (ops.log_softmax, (np.ones((2, 0)),), "x has shape (2, 0): nothing along axis -1; expected at least one"),
    (ops.log_softmax, (ROWS, 2), "axis=2 does not exist: x has shape (2, 3)"),
    (ops.cross_entropy, (ROWS, [0, 3]), "targets holds 0…3; expected integers 0…2"),
    (ops.cross_entropy, (ROWS, [0]), "targets has shape (1,); expected (2,)"),
    (ops.cross_entropy, (ROWS, [0, 1], [1, 0]), "mask is int64 (2,); expected booleans (2,), True = counts"),
    (ops.cross_entropy, (ROWS, [0, 1], [False, False]), "no target counts"),
    (ops.cross_entropy, (ROWS, [0, 1], None, -0.1), "smoothing=-0.1 must be at least 0 and below 1"),
    (ops.cross_entropy, (ROWS, [0, 1], None, 1.0), "smoothing=1.0 must be at least 0 and below 1"),
]
FEATURES = [
    (ops.linear, (ROWS, np.ones((4, 5))), "x (2, 3) and W (4, 5) do not fit; expected (..., d_in) and (d_in, d_out)"),
    (ops.layer_norm, (ROWS, ONES, ONES, 0.0), "eps=0.0 must be positive"),
    (ops.layer_norm, (ROWS, Z(1), ONES, 1e-5, False), "gamma has shape (1,); expected (3,), one for each feature of x"),
    (ops.layer_norm, (ROWS, ONES, Z(1), 1e-5, False), "beta has shape (1,); expected (3,), one for each feature of x"),
    (ops.layer_norm, (1.0, ONES, ONES), "x has shape (); expected (..., d_model)"),
    (ops.embedding, ([2], ROWS), "ids holds 2…2; expected integers 0…1"),
    (ops.embedding, ([0], ONES), "table has shape (3,); expected (V, d_model)"),
    (ops.dropout_forward, (ROWS, -0.1, None), "rate=-0.1 must be at least 0 and below 1"),
    (ops.dropout_forward, (ROWS, 1.0, None), "rate=1.0 must be at least 0 and below 1"),
]
ATTENTION = [
    (attention.causal_mask, (4, 3), "T_q=4 is larger than T_k=3; the queries must be the last"),
    (attention.padding_mask, ([5, 4], 4), "lengths must lie in 0…T=4; got values from 4 to 5"),
    (attention.padding_mask, ([2, -1], 4), "lengths must lie in 0…T=4; got values from -1 to 2"),
    (attention.split_heads, (Z((3, 65)), 8), "d_model=65 must be divisible by num_heads=8; try 64 or 72"),
    (attention.repeat_heads, (Z((3, 5, 4)), 8), "num_heads=8 must be divisible by num_kv_heads=3; try 6 or 9"),
    (attention.multi_head_attention, (X, X, *[SQUARE] * 4, 3), "h·d_k=4 must be divisible by num_heads=3; try 3 or 6"),
    (attention.multi_head_attention, (X, X, SQUARE, SQUARE, Z((4, 3)), Z((3, 4)), 2), "h·d_v=3 must be divisible by"),
    (scores.score_forward, ("cosine", INPUT, INPUT), "kind='cosine' is not known; choose one of additive, dot, gen"),
    (scores.score_forward, ("general", INPUT, INPUT), "params has 0 arrays; the general score needs 1"),
    (attention.general_score, (INPUT, INPUT, ROWS), "W has shape (2, 3); expected (3, 3)"),
    (attention.additive_score, (INPUT, INPUT, ROWS, ROWS, ONES), "W_q has shape (2, 3)"),
    (attention.additive_score, (INPUT, INPUT, np.ones((3, 3)), ROWS, ONES), "W_k has shape (2, 3)"),
    (attention.concat_score, (INPUT, INPUT, ROWS, ONES), "W has shape (2, 3); expected (6, "),
    (scores.attend_forward, ("dot", X, X, (), np.ones((1, 3), bool)), "mask is bool (1, 3)"),
]
EFFICIENT = [
    (efficient.global_mask, (4, [0, 4]), "global_tokens holds 0…4; expected integers 0…3"),
    (efficient.global_mask, (4, 1), "global_tokens is int64 of shape (); expected integers 0…3 with 1 axis"),
    (efficient.reach, (Z((3, 4), bool), 1), "mask has shape (3, 4); expected (T, T)"),
    (efficient.linear_attention, (Z((4, 2)), Z((3, 2)), Z((3, 2)), True), "T_q=4 is larger than T_k=3; the queries"),
    (fast_weights.write, (Z(3), 1.0, Z(3)), "S has shape (3,), k (), v (3,); expected (..., d_k, d_v)"),
    (fast_weights.read, (Z(3), 1.0), "S has shape (3,), q (); expected (..., d_k, d_v)"),
    (fast_weights.write, (Z((4, 3)), Z(4), Z(3), 1.2), "decay=1.2 must be between 0 and 1"),
    (fast_weights.write, (Z((4, 3)), Z(4), Z(3), 1.0, True, -0.1), "rate=-0.1 must be between 0 and 1"),
    (fast_weights.decayed_attention, (Z((3, 2)), Z((2, 2)), Z((2, 1))), "T_q=3 is larger than T_k=2"),
]
POSITIONS = [
    (positions.sinusoidal_encoding, (5, 65), "d_model=65 must be even: columns go in pairs; try 64 or 66"),
    (positions.sinusoidal_encoding, (5, 1), "d_model=1 must be even: columns go in pairs; try 2"),
    (positions.sinusoidal_encoding, (5, 4, 0.5), "base=0.5 must be a finite number of at least 1; usual is 10000"),
    (positions.alibi_bias, (2, 4, 3), "T_q=4 is larger than T_k=3; the queries must be the last"),
    *(
        (positions.rotary, arguments, message)
        for arguments, message in (
            ((Z((3, 5)), range(3)), "width d=5 must be even: columns go in pairs; try 4 or 6"),
            ((X, range(4)), "positions has shape (4,), x (2, 3, 4); expected (3,), one position for each of the"),
            ((X, [0]), "positions has shape (1,), x (2, 3, 4); expected (3,)"),
            ((X, 0), "positions has shape (), x (2, 3, 4); expected (3,)"),
            ((X, Z((3, 3), int)), "positions has shape (3, 3), x (2, 3, 4); expected (3,)"),
            ((X, Z((1, 2, 3), int)), "positions has shape (1, 2, 3), x (2, 3, 4); expected (3,)"),
            ((X[:1], Z((2, 3), int)), "positions has shape (2, 3), x (1, 3, 4); expected (3,)"),
            ((X, [0.0, 1.0, INF]), "positions holds NaN or infinite values; expected finite numbers"),
            ((X, ["0", "1", "2"]), "positions has dtype <U1; expected real numbers"),
            ((X, [0, 1, 2], 1e4, 1.0, "odd"), "pairs='odd' is not known; choose one of adjacent, halves"),
        )
    ),
]
RECURRENT = [
    (recurrent.gru_cell, (INPUT, STATE, GRU[1], *GRU[1:]), "W_x has shape (4, 12); expected (3, 12) for kind='gru'"),
    (unroll, ("gnu", INPUT[None], STATE, GRU), "kind='gnu' is not known; choose one of rnn, gru"),
    (unroll, ("gru", INPUT, STATE, GRU), "x has shape (2, 3); expected (B, T, d_in)"),
    (unroll, ("gru", INPUT[None], STATE, GRU), "state is float64 (1, 2, 4); expected float64 (1, 1, 4)"),
    (unroll, ("gru", INPUT[None], STATE[:1].astype(np.float32), GRU), "state is float32 (1, 1, 4)"),
    (unroll, ("gru", INPUT[None], STATE[:1], GRU[:3]), "params has 3 arrays; kind='gru' needs 4: "),
    (unroll, ("gru", INPUT[None], STATE[:1], GRU[::-1]), "W_x has shape (1, 4)"),
    (unroll, ("rnn", INPUT[None], STATE[:1], [MATRIX]), "params has 1 arrays; kind='rnn' needs 3"),
    (unroll, ("gru", INPUT[None], STATE[:1], [GRU[0].astype(np.float32), *GRU[1:]]), "x is float64, params are "),
    (unroll, ("rnn", INPUT[None], STATE[:1], []), "params has 0 arrays; kind='rnn' needs 3"),
    (unroll, ("gru", INPUT[None].astype(np.float32), STATE[:1], GRU), "x is float32, params are "),
    (unroll, ("gru", INPUT[None], STATE[:1], GRU, np.ones((1, 2))), "mask is float64 (1, 2); exp"),
    (unroll, ("gru", INPUT[None], STATE[:1], GRU, np.ones(2, bool)), "mask is bool (2,); expec"),
    (recurrent.unroll_forward, ("gru", INPUT[None], GRU), "W_x has shape (3, 12); expected (1, 3, 12)"),
    (recurrent.init_params, ("tree", 1, 1, RNG), "kind='tree' is not known"),
    (recurrent.gradient_norms_through_time, ("gru", INPUT, GRU, RNG), "x has shape (2, 3); expected (B, T, d"),
]
TASKS = [
    (Vocabulary, ("",), "characters is empty"),
    (Vocabulary, ("abcb",), "characters holds 'b' 2 times; give each once"),
    (Vocabulary("ab").encode, ("abxa",), "the character 'x' at position 2 is not in the vocabulary, which"),
    (Vocabulary("ab").decode, ([0, 5],), "ids holds 0…5; expected integers 0…4"),
    (Vocabulary("ab").decode, ([[3]],), "ids is int64 of shape (1, 1); expected integers 0…4 with 1 axis"),
    (tasks.letters, (63,), "num_symbols=63 is more than there are letters and digits, 62"),
    (tasks.text_vocabulary, ("",), "the text is empty"),
    (tasks.pad, ([],), "sequences is empty"),
    (tasks.pad, ([[1], [[2]]],), "sequences[1] is int64 of shape (1, 1); expected integers with 1 axis"),
    (tasks.with_ends, ([1, 2],), "target is int64 of shape (2,); expected integers with 2 axes"),
    (tasks.reversal_batches, (64, 5, 4), "shortest=5 is larger than longest=4"),
    (tasks.scattered_offsets, (4, 5), "k=5 is more than T=4"),
    (tasks.write_date, (date(2021, 3, 3), 4), "style=4 must be one of 0…3, for 3 March 2021"),
    (tasks.split_text, ([1, 2], 0), "validation=0 must lie between 0 and 1; try 0.1"),
    (tasks.split_text, ([1, 2], 1), "validation=1 must lie between 0 and 1; try 0.1"),
    (tasks.text_batches, (range(5), 5, 2, RNG), "ids has 5 characters; windows of T=5 and the one after need at"),
    (tasks.unigram_entropy, ([],), "ids is empty"),
    *(
        (tasks.gather, (RNG, 2, 24, 4, 20, offsets), "must be k=4 different places on a circle of T=24")
        for offsets in ((1, 2), (1, 2, 3, 1), (1, 2, 3, 25))
    ),
]
TRAINING = [
    (Adam, ({},), "params is empty"),
    (SGD, (one(np.float16), 0.1), "a is float16; train in float32 or float64"),
    (Adam, (dict.fromkeys("ab", Param(np.ones(2))),), "a parameter appears twice in params"),
    (SGD, (one(), -0.1), "lr=-0.1 must be 0 or a positive number; try 1e-3"),
    (SGD(one(), 0.1).step, (NAN,), "lr=nan must be 0 or a positive number"),
    (SGD, (one(), INF), "lr=inf must be 0 or a positive number"),
    (SGD, (one(), "fast"), "lr='fast' must be 0 or a positive number"),
    (SGD, (one(), 0.1, 1), "momentum=1 must be at least 0 and less than 1"),
    (Adam, (one(), 0.1, (0.9, 1.0)), "betas[1]=1.0 must be at least 0 and less than 1"),
    (Adam, (one(), 0.1, (-1, 0.9)), "betas[0]=-1 must be at least 0 and less than 1"),
    (Adam, (one(), 0.1, (0.9, 0.9), 0), "eps=0 must be a positive number; try 1e-8"),
    (Adam, (one(), 0.1, (0.9, 0.9), 1e-8, -1), "weight_decay=-1 must be 0 or a positive number"),
    (Adam, (one(), 0.1, (0.9, 0.9), INF), "eps=inf must be a positive number; try 1e-8"),
    (Adam, (one(), 0.1, (0.9, 0.9), 1e-8, INF), "weight_decay=inf must be 0 or a positive number"),
    (clip_gradients, (one(), 0), "max_norm=0 must be a positive number; try 1.0"),
    (warmup_linear, (0, 1, 2, 3), "step=0 must be at least 1"),
    (warmup_linear, (1, 2, -1, 3), "warmup=-1 must be at least 0"),
    (warmup_linear, (1, 1, 3, 3), "warmup=3 must be smaller than total=3"),
]
FIT = partial(fit, Line(), batches, progress=False)
FITS = [
    (FIT, (-1,), "steps=-1 must be at least 0"),
    (partial(FIT, every=0), (5,), "every=0 must be at least 1"),
    (partial(FIT, clip=0), (5,), "clip=0 must be a positive number, or None"),
    (partial(FIT, lr=1, schedule=float), (5,), "lr and schedule are both given"),
    (partial(FIT, lr=-1), (5,), "lr=-1 must be 0 or a positive number"),
    (partial(FIT, optimizer=Adam(Line().params())), (5,), "optimizer was made for other parameters"),
]
COSTS = [
    (costs.attention_cost, (5, 65, 8), "d_model=65 must be divisible by num_heads=8; try 64 or 72"),
    (costs.cache_bytes, (3, 6, 1, 1, 8, 7), "local_layers=7 is more than num_layers=6"),
]
LAYER = partial(layers.LayerConfig, d_model=12, num_heads=3)
LAYERS = [
    (layers.MultiHead, (65, 8, RNG), "d_model=65 must be divisible by num_heads=8; try 64 or 72"),
    (layers.FeedForward, (4, 8, RNG, "tanh"), "activation='tanh' is not known; choose one of relu"),
    (layers.LayerNorm, (3, -1), "eps=-1 must be positive"),
    (layers.RMSNorm, (3, -1), "eps=-1 must be positive"),
    (partial(LAYER, norm="before"), (), "norm='before' is not known; choose one of pre, post, none"),
    (partial(LAYER, norm_kind="batch"), (), "norm_kind='batch' is not known; choose one of layer, rms"),
    (partial(LAYER, num_heads=5), (), "d_model=12 must be divisible by num_heads=5; try 10 or 15"),
    (partial(LAYER, num_heads=6, num_kv_heads=4), (), "num_heads=6 must be divisible by num_kv_heads=4; try 4"),
    (partial(LAYER, dtype=np.float16), (), "dtype=float16 must be float32 or float64"),
    (layers.MultiHead(4, 2, RNG, rotary=Rotary()).forward, (X, X), "rotary positions are for self-attention"),
    (layers.normal, (3, 4, RNG, np.float32, 0.0), "divisor=0.0 must be above 0"),
    (layers.Linear, (0, 3, RNG), "d_in=0 must be at least 1"),
    (layers.Linear(4, 3, RNG).forward, (np.zeros((2, 5), np.float32),), "x (2, 5) and W (4, 3) do not fit"),
    (layers.Embedding, (3, 2.5, RNG), "d_model=2.5 must be a whole number"),
    (layers.Embedding(4, 3, RNG).forward, (np.array([[0, 4]]),), "ids holds 0…4; expected integers 0…3"),
    (layers.KeyValueCache, (0,), "capacity=0 must be at least 1"),
    (layers.KeyValueCache, (3, -1), "keep=-1 must be at least 0"),
    (layers.KeyValueCache, (3, 3), "keep=3 must be smaller than capacity=3; what is left is the window"),
    (layers.KeyValueCache(3).append, (Z((1, 1, 4, 2)),) * 2, "no room for 4 more positions: 0 of 3 are taken"),
    (layers.KeyValueCache(3, 1).append, (Z((1, 1, 4, 2)),) * 2, "a full cache that rolls takes one at a time"),
    (Rotary().turn, (X, np.arange(1)), "positions (1,) does not fit x (2, 3, 4)"),
]
IDS, TARGET = np.array([[5, 3, 6, 2, 4], [3, 3, 2, 0, 0]]), np.array([[1, 4, 5, 3, 2], [1, 6, 2, 0, 0]])
SMALL = {"vocab": 7, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 10}
CONFIG, SEQ2SEQ = partial(models.GPTConfig, **SMALL, max_length=9), partial(models.Seq2SeqConfig, 9, 8)
GPT, ALIBI = (models.GPT(CONFIG(**options), RNG) for options in ({}, {"positions": "alibi"}))
LEARNED = models.GPT(CONFIG(positions="learned"), RNG)
TRANSFORMER = models.Transformer(models.TransformerConfig(**SMALL), RNG)
ENCODER = models.Encoder(models.EncoderConfig(**SMALL, classes=4), RNG)
RECURRENT_MODEL = models.Seq2Seq(SEQ2SEQ("general"), RNG)
SOURCE, WRITTEN = np.full((2, 4), 5), np.full((2, 3), 4)


def tried(model, **options):
    with models.trying(model, **options):
        model.forward(IDS)


def knocked(model, where, **options):
    return partial(tried, model, knock_out=where, **options)


MODELS = [
    (partial(CONFIG, num_heads=5), (), "d_model=12 must be divisible by num_heads=5; try 10 or 15"),
    (partial(CONFIG, positions="absolute"), (), "positions='absolute' is not known; choose one of sinusoidal"),
    (partial(CONFIG, vocab=0), (), "vocab=0 must be at least 1"),
    (partial(CONFIG, rotary=Rotary()), (), "needs positions='rotary', not 'sinusoidal'; else rotary=None"),
    (partial(models.TransformerConfig, **SMALL, shared=True, target_vocab=9), (), "shared=True needs one vocabulary"),
    (partial(models.TransformerConfig, **SMALL, positions="rotary"), (), "choose 'sinusoidal' or 'learned'"),
    (LEARNED.forward, (np.zeros((1, 10), int),), "position 9 has no learned vector"),
    (GPT.forward, (np.zeros(3, int),), "ids is int64 of shape (3,); expected integers with 2 axes"),
    (GPT.forward, (np.zeros((1, 3)),), "ids is float64 of shape (1, 3); expected integers with 2 axes"),
    (GPT.forward, (np.zeros((1, 0), int),), "ids has shape (1, 0); expected (B, T) with T at least 1"),
    (GPT.forward, (np.full((1, 2), 7),), "ids holds 7…7; expected integers 0…6"),
    (GPT.forward, (IDS, None, None, np.ones((5, 4), bool)), "mask has shape (5, 4); expected one"),
    (GPT.forward, (IDS, None, None, np.ones((5, 5))), "mask has dtype float64; expected booleans"),
    (GPT.generate, (np.zeros((1, 0), int), 3, RNG), "the prompt is empty"),
    (GPT.generate, (IDS, -1, RNG), "length=-1 must be at least 0"),
    (partial(GPT.generate, keep=2, use_cache=False), (IDS, 1, RNG), "keep=2 is about a cache that rolls"),
    (GPT.new_past, (2,), "positions='sinusoidal' cannot roll; build it with 'rotary'"),
    (TRANSFORMER.forward, (IDS, TARGET[:1]), "source has 2 rows, target_in 1"),
    (ENCODER.loss, ((IDS, TARGET[:, :2]),), "targets has shape (2, 2, 1); expected (2, 5, 1)"),
    (knocked(TRANSFORMER, {"cross": {0: [3]}}), (), "knock_out={0: [3]} names heads that are not"),
    (knocked(TRANSFORMER, {"middle": {0: [0]}}), (), "'middle' is not known; choose one of encoder, decoder, cross"),
    (knocked(GPT, {"decoder": {2: [0]}}), (), "knock_out={2: [0]} names heads that are not"),
    (knocked(ENCODER, {"encoder": {0: [3]}}), (), "expected a layer in 0…1 with heads in 0…2, such"),
    (knocked(GPT, {"decoder": {0: [1]}}, by="one"), (), "by='one' is not known; choose one of zero, mean"),
    *(
        (partial(tried, model, attend=attend), (), message)
        for model, attend, message in (
            (ALIBI, attention.scaled_dot_product_attention, "a mask: there is no place for a bias"),
            (GPT, lambda Q, K, V, mask: V, "returned a ndarray; expected two arrays"),
            (GPT, lambda Q, K, V, mask: (Q[:1], Q), "returned output of shape (1, 3, 5, 4); expected (2, 3, 5, 4)"),
            (GPT, lambda Q, K, V, mask: (V, V), "returned weights of shape (2, 3, 5, 4); expected (2, 3, 5, 5)"),
        )
    ),
    (models.sample, ([1.0], RNG, -1), "temperature=-1 must be a number from 0 on"),
    (models.sample, ([1.0], RNG, 1.0, None, 0), "top_p=0 must be above 0 and at most 1"),
    (models.sample, ([1.0], RNG, 1.0, 0), "top_k=0 must be at least 1"),
    (models.sample, (np.zeros((3, 0)), RNG), "logits has shape (3, 0); expected (..., V) with V at least 1"),
    (models.sample, ([NAN], RNG), "logits holds NaN"),
]
SEQ2SEQS = [
    (partial(models.Seq2SeqConfig, 0, 8), (), "source_vocab=0 must be at least 1"),
    (partial(SEQ2SEQ, d_embed=2.5), (), "d_embed=2.5 must be a whole number"),
    (SEQ2SEQ, ("cosine",), "attention='cosine' is not known; choose one of additive, dot"),
    (partial(SEQ2SEQ, cell="gnu"), (), "cell='gnu' is not known; choose one of rnn, gru, lstm"),
    (partial(SEQ2SEQ, d_hidden=7), (), "d_hidden=7 must be even for two directions; try 8"),
    (partial(SEQ2SEQ, dtype=np.float16), (), "dtype=float16 must be float32 or float64"),
    (partial(SEQ2SEQ, eos=1), (), "{'pad': 0, 'bos': 1, 'eos': 1} must be three different ids below target_vocab=8"),
    (partial(SEQ2SEQ, bos=8), (), "must be three different ids below target_vocab=8"),
    (partial(SEQ2SEQ, pad=-1), (), "must be three different ids below target_vocab=8"),
    (partial(models.Seq2SeqConfig, 3, 8, pad=5), (), "pad=5 must be below source_vocab=3"),
    *(
        (RECURRENT_MODEL.loss, (batch,), message)
        for batch, message in (
            ((SOURCE[0], WRITTEN), "source has shape (4,); expected ids (B, S)"),
            ((SOURCE[:, :0], WRITTEN), "source has shape (2, 0); expected ids (B, S), at least one of one symbol"),
            ((SOURCE, WRITTEN[:1]), "target has shape (1, 3); expected ids (2, T) with T at least 2"),
            ((SOURCE, WRITTEN[:, :1]), "target has shape (2, 1); expected ids (2, T) with T at least 2"),
            ((SOURCE + 4, WRITTEN), "source holds 9…9; expected integers 0…8"),
            ((SOURCE.astype(float), WRITTEN), "source is float64 of shape (2, 4); expected integers 0…8"),
            ((SOURCE, WRITTEN + 4), "target holds 8…8; expected integers 0…7"),
            ((SOURCE, 0 * WRITTEN), "no target counts"),
            ((SOURCE, WRITTEN, [4]), "lengths has shape (1,); expected (2,), one a source"),
            ((SOURCE, WRITTEN, [4, 5]), "lengths must lie in 0…T=4; got values from 4 to 5"),
            ((SOURCE,), "batch has 1 parts; expected source, target and perhaps lengths"),
        )
    ),
    (RECURRENT_MODEL.forward, (SOURCE, WRITTEN[:, :0]), "target has shape (2, 0); expected ids (2, T) with T at least"),
    (RECURRENT_MODEL.forward, (SOURCE, WRITTEN - 5), "target holds -1…-1; expected integers 0…7"),
    (RECURRENT_MODEL.decode, (SOURCE, 0), "max_length=0 must be at least 1"),
    (RECURRENT_MODEL.decode, (SOURCE + 4, 3), "source holds 9…9; expected integers 0…8"),
]
CHECKS = [
    (checks.as_float, (None, "x"), "x has dtype object; expected real numbers (float32, float64 or integers)"),
    (checks.as_float, (np.ones(2, "M8[s]"), "x"), "x has dtype datetime64[s]; expected real numbers"),
    (checks.as_float, (np.float16(1), "x"), "x has dtype float16, too narrow to add up in; convert to"),
    (checks.as_float, (ROWS, "x", 3), "x has shape (2, 3); expected at least 3 axes"),
    (checks.as_weights, (1.0,), "weights has shape (); expected at least 1 axes"),
    *((checks.as_weights, ([0.5, x],), "weights holds numbers outside 0…1, or NaN") for x in (-0.1, 1.01, NAN, 1e300)),
    (checks.check_no_overflow, (np.array([1.0, INF]),), "the input is so large that the output overflows"),
    (checks.as_number, ("a", "eps"), "eps='a' must be a finite number"),
    (checks.as_axis, (None, (2, 3)), "axis=None must be a whole number"),
    (checks.as_choice, ("d", "letter", "abc"), "letter='d' is not known; choose one of a, b, c"),
    (checks.as_ids, ([-1], "ids", 3), "ids holds -1…-1; expected integers 0…2"),
    (checks.as_qkv, (ROWS, ROWS, ROWS[:1]), "V has 1 rows, K has 2; each key needs one value (K (2, 3), V (1, 3))"),
    (checks.as_qkv, (ROWS, ROWS[:, :2], ROWS), "Q has width 3, K has width 2; a dot product needs the same width"),
    (checks.as_qkv, (ROWS, ROWS[:0], ROWS[:0]), "K has shape (0, 3); expected at least one key of width at least 1"),
    (checks.as_qkv, (ROWS, ROWS[None], ROWS), "leading axes do not fit: Q (2, 3), K (1, 2, 3), V (2, 3); they"),
    (checks.as_qkv, (ROWS[:, :0], ROWS[:, :0], ROWS), "K has shape (2, 0); expected at least one key of width"),
    (partial(checks.same_leading, x=ONES), (), "x has shape (3,); expected at least 2 axes, (..., T, d)"),
    (checks.check_matrix, ("W", ROWS, (None, 4)), "W has shape (2, 3); expected (any, 4)"),
    (checks.check_matrix, ("W", ONES, (None, None)), "W has shape (3,); expected (any, any)"),
    (checks.check_real, (ROWS, (2, 3)), "mask is float64 (2, 3); expected booleans (2, 3), True = a re"),
]
OF_FUNCTIONS = [*PROBABILITIES, *FEATURES, *ATTENTION, *EFFICIENT, *POSITIONS, *RECURRENT, *TASKS, *TRAINING, *COSTS]
ALL = [*OF_FUNCTIONS, *LAYERS, *MODELS, *SEQ2SEQS, *FITS, *CHECKS]


@pytest.mark.parametrize(("function", "arguments", "message"), ALL, ids=[message for _, _, message in ALL])
def test_what_does_not_fit_is_refused_with_what_was_given_and_what_is_expected(function, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments)


def test_what_fits_is_given_back_as_it_is():
    for dtype in (np.float32, np.float64, np.longdouble):
        x = np.ones(3, dtype)
        assert checks.as_float(x, "x") is checks.as_floats(x=x, y=x)[1] is x
    ids = np.array([[0, 2]])
    assert checks.as_ids(ids, "ids", V=3, ndim=2) is ids
    assert checks.as_ids(np.zeros((0,), np.uint8), "ids", V=1).size == 0
    assert (checks.as_size(np.int8(3), "n"), checks.as_axis(-1, (2, 3)), checks.as_heads(4, 64, "d_model")) == (
        3,
        -1,
        4,
    )
    assert type(checks.as_number(np.float32(2), "x")) is float
    assert checks.as_mask([True, False, True], (2, 3)).tolist() == [[True, False, True]] * 2
    assert checks.as_weights([0.5, 1.0005]).max() == 1.0005  # rounding, in float32
    checks.same_leading(a=np.ones((1, 4, 5)), b=np.ones((3, 6, 7)))
    checks.check_matrix("W", ROWS, (None, 3))
    checks.check_real(None, (2, 3))
    checks.check_last_queries(2, 2)
