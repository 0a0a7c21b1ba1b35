"""Matrices that stay packed: the same numbers and the same answers as unpacked, in a fraction of the memory."""

import struct

import numpy as np
import pytest
import tiny_llama
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import checkpoints, pretrained
from lesson_utils.maths.layers import Packed
from lesson_utils.maths.layers.packed import AT_ONCE, FEW
from lesson_utils.maths.pretrained.gguf import Reader

NUMBER = {"Q4_1": 3, "Q8_0": 8}  # of a kind, in a file


def pack(matrix, kind):
    """A matrix in blocks, written one by one: (kind, shape, bytes), as `tiny_llama.gguf` takes it."""
    data = b""
    for block in matrix.reshape(-1, 32).astype(np.float64):
        if kind == "Q8_0":
            scale = np.float16(np.abs(block).max() / 127)
            data += scale.tobytes() + np.rint(block / scale).clip(-127, 127).astype("i1").tobytes()
        else:
            scale, least = np.float16(np.ptp(block) / 15), np.float16(block.min())
            n = np.rint((block - least) / scale).clip(0, 15).astype(int)
            data += scale.tobytes() + least.tobytes() + struct.pack("16B", *(n[:16] + 16 * n[16:]))
    return NUMBER[kind], matrix.shape, data


def packed_file(path, kinds):
    """A Llama whose matrices are packed; `kinds` says how, by the end of their names, and "" is for all others."""
    arrays = tiny_llama.arrays(np.random.default_rng(0))
    for name, array in arrays.items():
        if array.ndim == 2:
            arrays[name] = pack(array, next((kinds[part] for part in kinds if part and part in name), kinds[""]))
    path.write_bytes(tiny_llama.gguf(tiny_llama.facts(), arrays))
    return path


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny_llama, "D", 32)  # rows that can be packed
    return lambda **kinds: packed_file(tmp_path / "tiny.gguf", {"": kinds.pop("rest"), **kinds})


@pytest.mark.parametrize("kind", NUMBER)
@pytest.mark.parametrize("N", [1, FEW - 1, FEW, 40])
def test_a_product_is_that_with_the_unpacked_matrix(kind, N, rng, tmp_path):
    path = tmp_path / "one.gguf"
    path.write_bytes(tiny_llama.gguf({}, {"a": pack(rng.normal(size=(AT_ONCE + 5, 96)), kind)}))
    file, x = Reader(path), rng.normal(size=(N, 96)).astype(np.float32)
    W, floats = file.packed("a"), file.read("a")
    assert (W.shape, W.T.shape, W.size, W.dtype) == (floats.shape, floats.T.shape, floats.size, floats.dtype)
    assert len(W) == AT_ONCE + 5
    y = x @ W.T
    assert y.dtype == np.float32
    expected = x.astype(np.float64) @ floats.T
    np.testing.assert_allclose(y, expected, atol=2e-6 * np.abs(expected).max())
    assert W.nbytes < floats.nbytes / 3.7


@given(st.sampled_from([*NUMBER]), st.lists(st.integers(0, 6), max_size=5))
def test_rows_and_the_whole_are_the_numbers_of_the_file(tmp_path_factory, kind, ids):
    path = tmp_path_factory.getbasetemp() / f"{kind}.gguf"
    path.write_bytes(tiny_llama.gguf({}, {"a": pack(np.random.default_rng(1).normal(size=(7, 64)), kind)}))
    W, floats = Reader(path).packed("a"), Reader(path).read("a")
    np.testing.assert_array_equal(np.asarray(W), floats)
    np.testing.assert_array_equal(np.asarray(W.T), floats.T)
    place = np.empty((64, 7), np.float32)
    W.unpack_into(place)
    np.testing.assert_array_equal(place, floats.T)
    ids = np.array(ids, np.int64)
    np.testing.assert_array_equal(W[ids], floats[ids])
    np.testing.assert_array_equal(W[ids[None]], floats[ids[None]])


@pytest.mark.parametrize(
    "kinds",
    [{"rest": "Q4_1"}, {"rest": "Q8_0"}, {"rest": "Q4_1", "token_embd": "Q8_0"}, {"rest": "Q4_1", "ffn_up": "Q8_0"}],
)
def test_a_model_that_stays_packed_gives_the_same_logits(write, rng, kinds):
    path, ids = write(**kinds), rng.integers(0, tiny_llama.V, (2, 13))
    floats, packed = (
        pretrained.load(path, max_length=32, progress=False, packed=packed).model for packed in (False, True)
    )
    np.testing.assert_allclose(packed.forward(ids)[0], floats.forward(ids)[0], atol=1e-4)
    writing = [model.generate(ids[:1], 8, rng, temperature=0) for model in (packed, floats)]
    np.testing.assert_array_equal(*writing)
    values = {name: param.value for name, param in packed.params().items()}
    assert packed.num_params() == floats.num_params()
    unpacked = {name for name, value in values.items() if not isinstance(value, Packed)}
    mixed = {"feed_forward.inner.wide.W"} if "ffn_up" in kinds else set()  # its two halves are packed in two ways
    assert {name.split(".", 3)[-1] if "blocks" in name else name for name in unpacked} == mixed | {
        "stack.norm.gamma", "attention.norm.gamma", "feed_forward.norm.gamma",
    }  # fmt: skip


def test_a_packed_model_is_not_trained_and_is_saved_as_floats(write, tmp_path, rng):
    floats, packed = (
        pretrained.load(write(rest="Q8_0"), max_length=32, progress=False, packed=packed).model
        for packed in (False, True)
    )
    with pytest.raises(ValueError, match=r"expected x @ W\.T; weights to train are not packed"):
        packed.loss_and_grad((rng.integers(0, 9, (1, 4)), rng.integers(0, 9, (1, 4))))
    checkpoints.save(packed, tmp_path / "saved.npz")
    before = {name: param.value.copy() for name, param in floats.params().items()}
    for param in floats.params().values():
        param.value = np.zeros_like(param.value)
    checkpoints.load(floats, tmp_path / "saved.npz")
    for name, param in floats.params().items():
        np.testing.assert_array_equal(param.value, before[name])


def test_what_does_not_fit_is_refused(write, rng):
    file = Reader(write(rest="Q4_1"))
    W = file.packed("token_embd.weight")
    with pytest.raises(ValueError, match=r"x \(2, 31\) and packed \(32, 261\): expected x @ W\.T"):
        rng.normal(size=(2, 31)) @ W.T
    with pytest.raises(ValueError, match=r"it has no rows to take; take W\.T\[ids\]"):
        W.T[np.array([0])]
