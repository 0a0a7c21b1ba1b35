"""Files that are damaged in any way: refused with a ValueError or an OSError, in little time and memory, or read."""

import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
import tiny_llama
import tiny_models
from hypothesis import given, settings
from hypothesis import strategies as st
from straight_line import Line, assert_same, values

from lesson_utils.classroom import trained_storage
from lesson_utils.maths import checkpoints, pretrained
from lesson_utils.maths.pretrained.tokenizer import Tokenizer

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
many = settings(max_examples=40 if settings().max_examples < 1000 else 10_000)  # that is the weekly profile
FACTS = tiny_llama.facts()
LYING = [n.to_bytes(8, "little") for n in (0, 1, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)]


def damaged(whole, rng):
    """Return a file with up to four places flipped, overwritten by a number that lies, cut out, doubled or swapped."""
    data = bytearray(whole)
    for _ in range(rng.integers(1, 5)):
        reach = len(data) if rng.integers(2) else min(len(data), 600)  # what describes the rest mostly stands in front
        a, b = sorted(rng.integers(0, reach + 1, 2).tolist())
        match rng.integers(7):
            case 0 | 1:
                data[a : a + 1] = bytes([rng.integers(256)])
            case 2:
                lie = LYING[rng.integers(len(LYING))][: 4 if rng.integers(2) else 8]
                data[a : a + len(lie)] = lie
            case 3:
                del data[a:b]
            case 4:
                data[a:a] = data[a:b]
            case 5:
                data[a:a] = rng.bytes(rng.integers(1, 20))
            case 6:
                del data[a:]
        data = data or bytearray(b"\0")
    return bytes(data)


@contextmanager
def bounded(seconds=5, megabytes=30):
    """Fail if a block takes more, of this process's own time and of what Python and NumPy allocate."""
    tracemalloc.start()
    start = time.process_time()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < seconds
    assert peak < megabytes * 2**20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


# --- Models in GGUF, and their tokenizers -----------------------------------------------------------------------------

ARRAYS = tiny_llama.arrays(np.random.default_rng(0))
GGUF = tiny_llama.gguf(FACTS, ARRAYS)


@pytest.mark.filterwarnings("ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning")
@many
@given(rng=seeds)
def test_a_model(folder, rng):
    path = folder / "model.gguf"
    path.write_bytes(damaged(GGUF, rng) if rng.integers(3) else with_an_odd_fact(rng))
    with bounded():
        try:
            model = pretrained.load(path, max_length=16, progress=False)
            assert model.model.num_params() == sum(array.size for array in ARRAYS.values()), "half a model"
            model.model.forward(np.array([[1, 2]]) % model.model.config.vocab)
            model.tokenizer.decode(model.tokenizer.encode("the hat 12 é"))
        except (ValueError, OSError) as error:
            said = str(error)
            assert "\n" not in said


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", tiny_models.KINDS)
@pytest.mark.parametrize("form", ["gguf", "folder"])
def test_models_of_every_kind(folder, kind, form):
    """2,000 files in all, the same ones each time."""
    path, rng, read = tiny_models.folder(kind, folder / kind), np.random.default_rng(0), 0
    files = sorted(path.iterdir()) if form == "folder" else [folder / "model.gguf"]
    if form == "gguf":
        path = files[0]
        path.write_bytes(tiny_models.gguf(kind))
    size = sum(array.size for array in tiny_models.arrays(kind).values())
    wholes = {file: file.read_bytes() for file in files}
    for i in range(334):
        file = files[i % len(files)]
        file.write_bytes(damaged(wholes[file], rng))
        try:
            real = pretrained.load(path, max_length=16, progress=False)
            assert size - 48 * tiny_models.D <= real.model.num_params() <= size, "half a model"
            real.model.forward(real.prompt("the hat 12 é")[None, :9])
            read += 1
        except (ValueError, OSError) as error:
            said = str(error)
            assert "\n" not in said
        file.write_bytes(wholes[file])
    assert 0 < read < 200


def with_an_odd_fact(rng):
    """Return a whole file that says something strange: nothing is cut off, and no number lies about a size."""
    odd_facts = (True, False, 0, 1, 2**31, 0.5, 1e30, float("nan"), "", "odd", [1, 2], ["a"])
    name = rng.choice([*FACTS, "general.alignment", "llama.rope.scaling.type"])
    return tiny_llama.gguf(FACTS | {name: odd_facts[rng.integers(len(odd_facts))]}, ARRAYS)


def odd(x, rng):
    """Return something that stands in the place of a fact: of another kind, or with one entry replaced."""
    others = (None, True, -1, 2**63, 0.5, "", "<odd>", "\ud800", [], [[]], [1, 2], ["a"], ["a b c"], ["a", "a"])
    if isinstance(x, list) and x and rng.integers(4):
        copy = list(x)
        copy[rng.integers(len(copy))] = others[rng.integers(len(others))]
        return copy
    return others[rng.integers(len(others))]


@many
@given(rng=seeds, text=st.text(max_size=20))
def test_a_tokenizer(rng, text):
    names = [name for name in FACTS if name.startswith("tokenizer")]
    spoilt = {name: odd(FACTS[name], rng) for name in rng.choice(names, rng.integers(0, 3)).tolist()}
    with bounded():
        try:
            tokenizer = Tokenizer(FACTS | spoilt)
            said = tokenizer.decode(tokenizer.encode(text, special=bool(rng.integers(2))))
        except ValueError as error:
            said = str(error)
            assert "\n" not in said
        else:
            assert said == text


# --- Files of parameters, and of what was trained beforehand ----------------------------------------------------------


@pytest.fixture(scope="module")
def parameters(folder):
    checkpoints.save(Line(), folder / "parameters.npz")
    return (folder / "parameters.npz").read_bytes()


@many
@given(rng=seeds)
def test_parameters(folder, parameters, rng):
    path = folder / "parameters.npz"
    path.write_bytes(damaged(parameters, rng))
    model = Line(seed=8)
    before = values(model)
    with bounded():
        try:
            checkpoints.load(model, path)
        except (ValueError, OSError):
            assert_same(values(model), before)
        else:
            assert_same(values(model), values(Line()))


def test_parameters_that_would_fill_the_memory(folder):
    """Zeros take a thousandth of their size in a file. What is larger than the model is not unpacked."""
    path = folder / "bomb.npz"
    np.savez_compressed(path, W=np.zeros(2**21))
    with (
        bounded(megabytes=8),
        pytest.raises(ValueError, match=r"bomb\.npz belongs to another model: it holds 16\.8 MB, more than"),
    ):
        checkpoints.load(Line(), path)


@many
@given(rng=seeds)
def test_what_was_trained(folder, rng):
    trained_storage.write(folder / "whole.npz", {"f": trained_storage.Made("hash", 1.0, {"x": np.arange(6.0)})})
    whole = (folder / "whole.npz").read_bytes()
    path = folder / f"trained_{rng.integers(2**63)}.npz"  # what was read is kept by path and time
    path.write_bytes(damaged(whole, rng))
    with bounded():
        try:
            made = trained_storage.read(path, "f")
        except (ValueError, OSError):
            pass
        else:
            np.testing.assert_array_equal(made.result["x"], np.arange(6.0))
    path.unlink()
