"""What solutions show as "In PyTorch" computes the same as the solution."""

import numpy as np
import pytest

from lesson_utils.classroom import course

torch = pytest.importorskip("torch", reason="compares with PyTorch: python course.py test --parity")
pytestmark = pytest.mark.parity
EXERCISES = {name: exercise for name, exercise in course.exercises().items() if exercise.in_pytorch}


def to_torch(x):
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy())
    if callable(x):
        return lambda *tensors: to_torch(x(*(tensor.numpy() for tensor in tensors)))
    if hasattr(x, "_make"):  # a NamedTuple
        return x._make(map(to_torch, x))
    return type(x)(map(to_torch, x)) if isinstance(x, list | tuple) else x


@pytest.mark.parametrize("name", EXERCISES)
def test_it_computes_the_same(name):
    exercise = EXERCISES[name]
    for case in exercise.drawn:
        expected = exercise.right(*case.arguments)
        names = {"torch": torch, "F": torch.nn.functional}
        names |= dict(zip(exercise.parameters, map(to_torch, case.arguments), strict=False))
        exec(exercise.in_pytorch, names)
        for name, one in zip(exercise.returns, expected if len(exercise.returns) > 1 else [expected], strict=True):
            found = names[name].numpy() if isinstance(names[name], torch.Tensor) else names[name]
            np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-5, err_msg=f"{name} of {case.label}")


def test_it_is_short():
    for exercise in EXERCISES.values():
        lines = [line for line in exercise.in_pytorch.splitlines() if line and not line.startswith("#")]
        assert 1 <= len(lines) <= 5, exercise.name
