"""The same numbers as PyTorch, without the matrix of weights."""

import numpy as np
import pytest

from lesson_utils.maths import attention, efficient
from lesson_utils.maths.efficient import online_softmax

torch = pytest.importorskip("torch", reason="compares with PyTorch; install it with: python course.py test --parity")
pytestmark = [pytest.mark.slow, pytest.mark.parity]
F = torch.nn.functional

TOLERANCE = {np.float64: 1e-9, np.float32: 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCE)
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
    q, k, v = (torch.from_numpy(x) for x in (Q, K, V))
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else torch.from_numpy(mask))
    monkeypatch.setattr(online_softmax, "_QUERIES", queries)
    output = efficient.online_attention(Q, K, V, mask)
    np.testing.assert_allclose(output, want.numpy(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_the_feature_map(rng):
    x = rng.normal(size=(3, 4))
    np.testing.assert_allclose(efficient.elu_feature_map(x), F.elu(torch.from_numpy(x)).numpy() + 1, rtol=1e-12)
