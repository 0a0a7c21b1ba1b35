"""The same steps as PyTorch's optimisers."""

import functools

import numpy as np
import parity
import pytest
from parity import TOLERANCE, every_dtype, torch

from lesson_utils.maths import training
from lesson_utils.maths.layers import Param

pytestmark = parity.marks

SHAPES = {"W": (4, 3), "b": (3,), "scale": ()}
STEPS = 20

PAPER = {"betas": (0.9, 0.98), "eps": 1e-9}
PAIRS = {
    "SGD": (training.SGD, torch.optim.SGD, {}),
    "momentum": (training.SGD, torch.optim.SGD, {"momentum": 0.9}),
    "Adam": (training.Adam, torch.optim.Adam, {}),
    "Adam of the paper": (training.Adam, torch.optim.Adam, PAPER),
    "Adam, forgetful": (training.Adam, torch.optim.Adam, {"betas": (0.0, 0.5), "eps": 1e-3}),
    "AdamW": (training.Adam, torch.optim.AdamW, {"weight_decay": 0.1}),
    "AdamW of the paper": (training.Adam, torch.optim.AdamW, {"weight_decay": 0.03, **PAPER}),
}
every_pair = pytest.mark.parametrize(("ours", "theirs", "options"), PAIRS.values(), ids=PAIRS)


def start(rng, dtype):
    params = {name: Param(np.asarray(rng.normal(size=shape)).astype(dtype)) for name, shape in SHAPES.items()}
    return params, [torch.nn.Parameter(torch.tensor(param.value)) for param in params.values()]


def set_gradients(rng, params, tensors, size=1.0):
    for param, tensor in zip(params.values(), tensors, strict=True):
        param.grad[...] = size * rng.normal(size=param.grad.shape)
        tensor.grad = torch.tensor(param.grad)


@every_dtype
@every_pair
@pytest.mark.parametrize("scheduled", [False, True])
def test_steps(rng, ours, theirs, options, dtype, scheduled):
    """Scheduled, the learning rate is another at each step, and 0 at the last; PyTorch counts from 0, times lr=1."""
    params, tensors = start(rng, dtype)
    lr = 1.0 if scheduled else 0.03
    optimizer, reference = ours(params, lr=lr, **options), theirs(tensors, lr=lr, **options)
    schedule = functools.partial(training.warmup_linear, peak=0.1, warmup=5, total=STEPS)
    scheduler = torch.optim.lr_scheduler.LambdaLR(reference, lambda step: schedule(step + 1) if scheduled else 1.0)
    for step in range(1, STEPS + 1):
        set_gradients(rng, params, tensors, size=1.0 if scheduled else 10.0 ** (step % 4 - 2))
        optimizer.step(schedule(step) if scheduled else None)
        reference.step()
        scheduler.step()
        for param, tensor in zip(params.values(), tensors, strict=True):
            parity.same(param.value, tensor, dtype)


@every_dtype
@pytest.mark.parametrize("max_norm", [0.1, 1e3])
def test_clipping(rng, dtype, max_norm):
    params, tensors = start(rng, dtype)
    set_gradients(rng, params, tensors)
    want = torch.nn.utils.clip_grad_norm_(tensors, max_norm)
    np.testing.assert_allclose(training.clip_gradients(params, max_norm), float(want), rtol=TOLERANCE[dtype])
    for param, tensor in zip(params.values(), tensors, strict=True):  # PyTorch adds 1e-6 to the norm it divides by
        np.testing.assert_allclose(param.grad, tensor.grad.numpy(), rtol=1e-5)


@every_dtype
def test_fit(rng, dtype):
    """The whole loop, on a regression: gradients, clipping, schedule, Adam."""
    x, y = rng.normal(size=(30, 4)).astype(dtype), rng.normal(size=(30, 3)).astype(dtype)
    params, (W, b, scale) = start(rng, dtype)

    class Regression:
        def params(self):
            return params

        def loss_and_grad(self, batch, rng):
            x, y = batch
            raw = x @ params["W"].value
            d = (raw * params["scale"].value + params["b"].value - y) * (2 / y.size)
            params["scale"].grad += (d * raw).sum()
            params["W"].grad += x.T @ d * params["scale"].value
            params["b"].grad += d.sum(axis=0)
            return float(((d * (y.size / 2)) ** 2).mean())

    schedule = functools.partial(training.warmup_linear, peak=0.09, warmup=8, total=STEPS + 1)
    optimizer = training.Adam(params, **PAPER)
    history = training.fit(
        Regression(), lambda rng: (x, y), STEPS, optimizer=optimizer, schedule=schedule, clip=0.5, progress=False
    )

    reference, losses, norms = torch.optim.Adam([W, b, scale], **PAPER), [], []
    for step in range(1, STEPS + 1):
        reference.param_groups[0]["lr"] = schedule(step)
        reference.zero_grad()
        loss = torch.nn.functional.mse_loss(torch.tensor(x) @ W * scale + b, torch.tensor(y))
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_([W, b, scale], 0.5)))
        reference.step()
        losses.append(float(loss.detach()))
    assert max(norms) > 0.5 > min(norms)
    # The 1e-6 in PyTorch's clipping is most of what differs.
    np.testing.assert_allclose(history.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(history.norms, norms, rtol=1e-4)
    for param, tensor in zip(params.values(), (W, b, scale), strict=True):
        np.testing.assert_allclose(param.value, tensor.detach().numpy(), rtol=1e-4, atol=1e-5)
