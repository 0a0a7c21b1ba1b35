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


def test_the_file_has_the_name_it_was_given_and_nothing_else_stays(tmp_path):
    checkpoints.save(Line(), tmp_path / "parameters")
    checkpoints.save(Line(seed=4), tmp_path / "parameters")
    assert [path.name for path in tmp_path.iterdir()] == ["parameters"]
    with np.load(tmp_path / "parameters", allow_pickle=False) as stored:
        assert set(stored.files) == {"W", "b", "#format"}


def test_the_older_file_stays_until_the_new_one_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    checkpoints.save(Line(), path)
    before = path.read_bytes()

    def half(file, **arrays):
        file.write(b"PK half")
        raise OSError("the disk is full")

    def gone(*_):
        raise OSError("the folder is gone")

    for module, name, failing, message in (
        (np, "savez", half, "disk is full"),
        (os, "replace", gone, "folder is gone"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, failing)
            with pytest.raises(OSError, match=message):
                checkpoints.save(Line(seed=9), path)
    broken = Line()
    broken.b.value[0] = np.inf
    with pytest.raises(ValueError, match="b holds NaN or infinite values; nothing was saved"):
        checkpoints.save(broken, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def refuses(path, message):
    model = Line(seed=8)
    before = values(model)
    with pytest.raises(ValueError, match=message) as error:
        checkpoints.load(model, path)
    assert str(path) in str(error.value)
    assert_same(values(model), before)


def test_a_flipped_bit_is_found_or_does_not_matter(tmp_path):
    path, model = tmp_path / "model.npz", Line()
    checkpoints.save(model, path)
    whole, found = path.read_bytes(), 0
    places = range(0, len(whole), len(whole) // 10)
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        other = Line(seed=8)
        before = values(other)
        try:
            checkpoints.load(other, path)
        except ValueError:
            found += 1
            assert_same(values(other), before)
        else:
            assert_same(values(other), values(model))
    assert found > 0.5 * len(places)


def test_truncated_and_foreign_files_are_refused_and_a_missing_one_is_named(tmp_path):
    path = tmp_path / "model.npz"
    with pytest.raises(FileNotFoundError, match=r"model\.npz"):
        checkpoints.load(Line(), path)
    checkpoints.save(Line(), path)
    whole = path.read_bytes()
    truncated = [whole[:length] for length in range(0, len(whole), len(whole) // 10)]
    for content in (*truncated, b"hello", np.random.default_rng(0).bytes(999)):
        path.write_bytes(content)
        refuses(path, "is damaged, or is not a file of parameters .*; save the model again")
    np.savez(path, W=np.zeros((3, 2)), b=np.zeros(2))
    refuses(path, "was not written by checkpoints.save")
    np.savez(path, W=np.zeros((3, 2)), b=np.zeros(2), **{"#format": np.array("version 99")})
    refuses(path, "was not written by checkpoints.save .format 'version 99'")
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    refuses(path, "is damaged, or is not a file of parameters")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("W.txt", "hello")
    refuses(path, "is damaged|was not written by")


def test_nothing_in_a_file_is_executed(tmp_path):
    path = tmp_path / "model.npz"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)

    np.savez(path, W=np.array([Trap()], dtype=object), b=np.zeros(2))
    refuses(path, "is damaged, or is not a file of parameters")
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"W": np.zeros((3, 2))}, r"another model: missing b; not in the model: nothing; make the model with the"),
        ({"W": np.zeros((3, 2)), "b": np.zeros(2), "c": np.zeros(2)}, "missing nothing; not in the model: c"),
        ({"W": np.zeros((3, 2)), "b": np.zeros(2), "c": np.zeros(115_000)}, "missing nothing; not in the model: c"),
        ({"W": np.zeros((3, 2)), "b": np.zeros(2), "c": np.zeros(150_000)}, "it holds 1.2 MB, more than this model's"),
        ({"W": np.zeros((2, 3)), "b": np.zeros(2)}, r"W is float64 of shape \(2, 3\), the model has float64 of shape"),
        ({"W": np.zeros((3, 2)), "b": np.zeros(1)}, r"b is float64 of shape \(1,\), the model has .* \(2,\)"),
        ({"W": np.zeros((3, 2), np.float32), "b": np.zeros(2)}, r"W is float32 of shape \(3, 2\), the model has flo"),
        ({"W": np.zeros((3, 2)), "b": np.array([0, np.nan])}, "b holds NaN or infinite values"),
    ],
)
def test_parameters_of_another_model_are_refused_and_change_nothing(tmp_path, arrays, message):
    np.savez(tmp_path / "model.npz", **{"#format": np.array(checkpoints.FORMAT)}, **arrays)
    refuses(tmp_path / "model.npz", message)
