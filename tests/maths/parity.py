"""What tests of parity share: PyTorch, if it is there, and a comparison with its tensors."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch; install it with: python course.py test --parity")
marks = [pytest.mark.slow, pytest.mark.parity]
TOLERANCE = {np.float64: 1e-9, np.float32: 1e-5}
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)


def tensor(array):
    return torch.from_numpy(array.copy()).requires_grad_()


def same(got, want, dtype, name=""):
    want = want.detach().numpy()
    assert got.dtype == want.dtype == dtype, name
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=name)
