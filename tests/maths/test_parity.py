"""The same numbers as PyTorch."""

import numpy as np
import parity
import pytest
from parity import every_dtype, same, torch

from lesson_utils.maths import attention, efficient, ops
from lesson_utils.maths.efficient import online_softmax

pytestmark = parity.marks
F = torch.nn.functional


def tensors(*arrays):
    return [torch.from_numpy(array) for array in arrays]


@every_dtype
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(rng, dtype, axis):
    x = (5 * rng.normal(size=(3, 4, 5))).astype(dtype)
    same(ops.softmax(x, axis=axis), torch.softmax(torch.from_numpy(x), axis), dtype)


@every_dtype
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("kind", ["no mask", "boolean mask", "causal"])
def test_scaled_dot_product_attention(rng, dtype, leading, scale, kind):
    T_q, T_k, d_k, d_v = (5, 5, 7, 4) if kind == "causal" else (5, 6, 7, 4)
    Q, K, V = (rng.normal(size=(*leading, *s)).astype(dtype) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    mask = None
    if kind == "boolean mask":
        mask = rng.random((*leading, T_q, T_k)) < 0.6
        mask[..., 0] = True
    options = (
        {"is_causal": True} if kind == "causal" else {"attn_mask": None if mask is None else torch.from_numpy(mask)}
    )
    want = F.scaled_dot_product_attention(*tensors(Q, K, V), scale=scale, **options)
    output, _ = attention.scaled_dot_product_attention(
        Q, K, V, attention.causal_mask(T_q) if kind == "causal" else mask, scale
    )
    same(output, want, dtype)


@every_dtype
@pytest.mark.parametrize("num_heads", [1, 2, 4])
@pytest.mark.parametrize("padded", [False, True])
def test_multi_head_attention(rng, dtype, num_heads, padded):
    B, T_q, T_k, d_model = 3, 5, 6, 8
    layer = torch.nn.MultiheadAttention(
        d_model, num_heads, bias=False, batch_first=True, dtype=getattr(torch, dtype.__name__)
    )
    W_Q, W_K, W_V = (W.T.numpy() for W in layer.in_proj_weight.detach().chunk(3))  # PyTorch multiplies by Wᵀ
    W_O = layer.out_proj.weight.detach().T.numpy()
    x_q, x_kv = rng.normal(size=(B, T_q, d_model)).astype(dtype), rng.normal(size=(B, T_k, d_model)).astype(dtype)
    mask = attention.padding_mask([6, 1, 4], T_k) if padded else None
    hidden = None if mask is None else torch.from_numpy(~mask[:, 0])  # PyTorch marks what may *not* be attended
    q, kv = tensors(x_q, x_kv)
    want, maps = layer(q, kv, kv, key_padding_mask=hidden, average_attn_weights=False)
    output, weights = attention.multi_head_attention(x_q, x_kv, W_Q, W_K, W_V, W_O, num_heads, mask)
    same(output, want, dtype)
    same(weights, maps, dtype)


@every_dtype
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
@pytest.mark.parametrize("T_q", [1, 90, 300])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("queries", [1024, 100])
@pytest.mark.parametrize("kind", ["no mask", "random", "window", "causal"])
def test_online_attention(rng, monkeypatch, dtype, leading, T_q, size, kind, queries):
    """At once, and in blocks of queries and of keys; at size 5 the scores are too large to do without a maximum."""
    T_k, d_k, d_v = 300, 16, 12
    Q, K, V = (rng.normal(size=(*leading, *s)).astype(dtype) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    Q *= size
    mask = {
        "no mask": None,
        "random": rng.random((*leading, T_q, T_k)) < 0.3,
        "window": efficient.window_mask(T_k, 9)[-T_q:],
        "causal": attention.causal_mask(T_q, T_k),
    }[kind]
    their_mask = None if mask is None else torch.from_numpy(mask)
    want = F.scaled_dot_product_attention(*tensors(Q, K, V), attn_mask=their_mask)
    monkeypatch.setattr(online_softmax, "_QUERIES", queries)
    same(efficient.online_attention(Q, K, V, mask), want, dtype)


def test_the_feature_map(rng):
    x = rng.normal(size=(3, 4))
    np.testing.assert_allclose(efficient.elu_feature_map(x), F.elu(torch.from_numpy(x)).numpy() + 1, rtol=1e-12)
