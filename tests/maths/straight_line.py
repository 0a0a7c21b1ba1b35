"""A model of one line, for tests of what trains, saves and loads any model."""

import numpy as np

from lesson_utils.maths.layers import Param

TRUE_W, TRUE_B = np.array([[1.0, -2], [3, 0], [0, 1]]), np.array([0.5, -1])


class Line:
    """y = x W + b, and half the mean of the squared errors as loss."""

    def __init__(self, dtype=np.float64, seed=3):
        rng = np.random.default_rng(seed)
        self.W, self.b = Param(rng.normal(size=(3, 2)).astype(dtype)), Param(rng.normal(size=2).astype(dtype))
        self.draws = []

    def params(self):
        return {"W": self.W, "b": self.b}

    def loss_and_grad(self, batch, rng):
        x, y = batch
        self.draws.append(float(rng.random()))
        d = (x @ self.W.value + self.b.value - y) / len(x)
        self.W.grad += x.T @ d
        self.b.grad += d.sum(axis=0)
        return float(len(x) * (d**2).sum() / 2)


def batches(rng, dtype=np.float64):
    x = rng.normal(size=(20, 3))
    return x.astype(dtype), (x @ TRUE_W + TRUE_B).astype(dtype)


def values(params):
    """Return copies of the values of a model's parameters, or of parameters by name."""
    params = params.params() if isinstance(params, Line) else params
    return {name: param.value.copy() for name, param in params.items()}


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
