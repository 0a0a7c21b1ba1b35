"""Parameters in a file: back bit by bit, or refused."""

import os
import zipfile

import numpy as np
import pytest
from straight_line import Line, assert_same, values

from lesson_utils.maths import checkpoints
from lesson_utils.maths.layers import Linear

FLOATS = (np.float32, np.float64)


def test_parameters_come_back_bit_by_bit(tmp_path):
    for dtype in FLOATS:
        model, other = Line(dtype, seed=1), Line(dtype, seed=2)
        checkpoints.save(model, tmp_path / "model.npz")
        arrays = other.W.value, other.b.value
        checkpoints.load(other, str(tmp_path / "model.npz"))
        assert_same(values(model), values(other))
        assert (other.W.value is arrays[0], other.b.value is arrays[1]) == (True, True)  # an optimizer may hold them


def test_a_model_that_was_made_without_numbers_gets_them(tmp_path, rng):
    model, empty = Linear(3, 2, rng), Linear(3, 2, rng=None)
    assert empty.W.value.strides == (0, 0), "it takes no memory"
    checkpoints.save(model, tmp_path / "model.npz")
    checkpoints.load(empty, tmp_path / "model.npz")
    np.testing.assert_array_equal(empty.W.value, model.W.value)


def test_a_file_is_replaced_when_the_new_one_is_complete_and_nothing_else_stays(tmp_path):
    path = tmp_path / "parameters"
    checkpoints.save(Line(), path)
    before = path.read_bytes()
    os.link(path, tmp_path / "older")
    checkpoints.save(Line(seed=4), path)
    assert (tmp_path / "older").read_bytes() == before != path.read_bytes()  # nobody wrote into the file itself
    broken, before = Line(), path.read_bytes()
    broken.b.value[0] = np.inf
    with pytest.raises(ValueError, match="b holds NaN or infinite values; nothing was saved"):
        checkpoints.save(broken, path)
    assert path.read_bytes() == before
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        checkpoints.save(Line(), tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "older", "parameters"]
    with np.load(path, allow_pickle=False) as stored:
        assert set(stored.files) == {"W", "b", "#format"}


def refuses(path, message):
    model = Line(seed=8)
    before = values(model)
    with pytest.raises(ValueError, match=message) as error:
        checkpoints.load(model, path)
    assert str(path) in str(error.value)
    assert_same(values(model), before)


def test_nothing_in_a_file_is_executed(tmp_path):
    path = tmp_path / "model.npz"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)

    np.savez(path, W=np.array([Trap()], dtype=object), b=np.zeros(2))
    refuses(path, "is damaged, or is not a file of parameters")
    assert not (tmp_path / "trapped").exists()


W, b, FORMAT = np.zeros((3, 2)), np.zeros(2), {"#format": np.array(checkpoints.FORMAT)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"W": W, **FORMAT}, r"another model: missing b; not in the model: nothing; make the model with the"),
        ({"W": W, "b": b, "c": b, **FORMAT}, "missing nothing; not in the model: c"),
        ({"W": W, "b": b, "c": np.zeros(115_000), **FORMAT}, "missing nothing; not in the model: c"),
        ({"W": W, "b": b, "c": np.zeros(150_000), **FORMAT}, "it holds 1.2 MB, more than this model's"),
        ({"W": W.T, "b": b, **FORMAT}, r"W is float64 of shape \(2, 3\), the model has float64 of shape"),
        ({"W": W, "b": b[:1], **FORMAT}, r"b is float64 of shape \(1,\), the model has .* \(2,\)"),
        ({"W": W.astype("f"), "b": b, **FORMAT}, r"W is float32 of shape \(3, 2\), the model has flo"),
        ({"W": W, "b": b * np.nan, **FORMAT}, "b holds NaN or infinite values"),
        ({"W": W, "b": b}, r"was not written by checkpoints.save \(format 'none'"),
        (
            {"W": W, "b": b, "#format": np.array("version 99")},
            "was not written by checkpoints.save .format 'version 99'",
        ),
        (b"hello", "is damaged, or is not a file of parameters .*; save the model again"),
        (b"", "is damaged, or is not a file of parameters"),
    ],
)
def test_other_files_and_parameters_of_another_model_are_refused_and_change_nothing(tmp_path, arrays, message):
    path = tmp_path / "model.npz"
    if isinstance(arrays, bytes):
        path.write_bytes(arrays)
    else:
        np.savez(path, **arrays)
    refuses(path, message)


def test_a_file_of_something_else_is_refused_and_a_missing_one_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.npz"):
        checkpoints.load(Line(), tmp_path / "model.npz")
    np.save(tmp_path / "one.npy", W)
    refuses(tmp_path / "one.npy", "is damaged, or is not a file of parameters")
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("W.txt", "hello")
    refuses(tmp_path / "text.zip", "is damaged|was not written by")
