"""Costs by formula are what arrays that count say."""

import numpy as np
import pytest

from lesson_utils.maths import attention, checks, costs
from lesson_utils.maths.layers import KeyValueCache


class Counting(np.ndarray):
    """An array that notes the multiply-adds of each `@` in `Counting.total`."""

    total = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [np.asarray(x) for x in inputs]
        options.pop("out", None)  # `a /= b` gets a new array, and puts it in place of a
        result = getattr(ufunc, method)(*inputs, **options)
        if ufunc is np.matmul:
            Counting.total += result.size * inputs[0].shape[-1]
        return result.view(Counting)


@pytest.fixture
def count(monkeypatch):
    """Counts what really is multiplied when a function is called with these arrays."""
    for module in (checks, attention):  # the checks would make plain arrays of them
        monkeypatch.setattr(module, "as_float", lambda x, *_, **__: x)
        monkeypatch.setattr(module, "as_floats", lambda **arrays: arrays.values())
    monkeypatch.setattr(attention, "softmax", lambda scores: scores)

    def counted(function, *arrays):
        Counting.total = 0
        function(*(x.view(Counting) for x in arrays))
        return Counting.total

    return counted


@pytest.mark.parametrize(("T", "T_k", "d", "h"), [(5, None, 8, 2), (3, 7, 12, 4), (9, 9, 6, 6), (1, 2, 4, 1)])
def test_attention_costs_what_its_products_cost(rng, count, T, T_k, d, h):
    x_q, x_kv = rng.normal(size=(T, d)), rng.normal(size=(T_k or T, d))
    W = rng.normal(size=(4, d, d))
    counted = count(lambda q, kv, *W: attention.multi_head_attention(q, kv, *W, h), x_q, x_kv, *W)
    cost = costs.attention_cost(T, d, h, T_k)
    assert cost.multiply_adds == sum(cost.parts.values()) == counted
    assert cost.flops == 2 * counted
    assert cost.parameters == W.size
    assert cost.memory == sum((T * d, 2 * (T_k or T) * d, h * T * (T_k or T), T * d))  # Q; K, V; weights; heads


@pytest.mark.parametrize("keep", [None, 1])
def test_the_bytes_of_a_cache_are_those_of_its_arrays(keep):
    layers, kv_heads, d_head, window = 3, 2, 4, 6
    caches = [KeyValueCache(window if keep else 50, keep) for _ in range(layers)]
    rng = np.random.default_rng(0)
    for tokens in range(1, 11):
        for cache in caches:
            kept = cache.append(*rng.normal(size=(2, 1, kv_heads, 1, d_head)).astype(np.float32))
        held = layers * sum(x.nbytes for x in kept)
        local = {"local_layers": layers, "window": window} if keep else {}
        assert costs.cache_bytes(tokens, layers, kv_heads, d_head, bits=32, **local) == held
    # local layers stop growing, and the others do not
    assert costs.cache_bytes(10, 6, 1, 1, 8, local_layers=5, window=4) == 2 * (10 + 5 * 4)
    assert costs.cache_bytes(3, 6, 1, 1, 8, local_layers=5, window=4) == 2 * 6 * 3
