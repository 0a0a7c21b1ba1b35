"""What comes trained: loaded where it fits, made anew where it does not, and stored by the notebook's own code."""

import os
import re
from typing import NamedTuple

import numpy as np
import pytest
from learners import cell

from lesson_utils.classroom import trained, trained_storage
from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.multi_head.experiment import Result
from lesson_utils.maths import training
from lesson_utils.maths.models import GPT, GPTConfig
from tools import train as tool

pytestmark = pytest.mark.walks

NOTEBOOKS = tool.NOTEBOOKS


def batches(rng):
    ids = rng.integers(7, size=(4, 6))
    return ids[:, :-1], ids[:, 1:]


def train(layers, steps=12):
    model = GPT(GPTConfig(vocab=7, d_model=8, num_heads=2, num_layers=layers), np.random.default_rng(0))
    return model, training.fit(model, batches, steps, lr=1e-2, progress=False)


def loss_of(model):
    return {"loss": model.loss(batches(np.random.default_rng(9)))}


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """A lesson in a folder of its own, in which nothing is stored yet; and as for a learner, nothing is an error."""
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    (tmp_path / "toy").mkdir()
    return str(tmp_path / "toy")


@pytest.fixture
def store(lesson):
    """Call functions as `tools.train` has a notebook do it, and store what they return."""

    def run(*calls):
        trained.record()
        for function, *arguments in calls:
            trained.beforehand(lesson, unless=True)(function)(*arguments)
        trained.write_record(trained.path_of(lesson))
        return list(trained_storage.names(trained.path_of(lesson)))

    return run


def loaded(lesson, function):
    return trained.beforehand(lesson, unless=False)(function)


@pytest.mark.parametrize(
    ("variables", "cores", "expected"),
    [
        ({}, 2, True),
        ({}, 0.5, False),
        ({"BINDER_LAUNCH_HOST": "https://mybinder.org/"}, 2, False),
        ({"BINDER_SERVICE_HOST": "10.0.0.1"}, 2, False),
        ({"COURSE_TRAIN": "yes", "BINDER_LAUNCH_HOST": "x"}, 0.5, True),
        ({"COURSE_TRAIN": "no"}, 2, False),
    ],
)
def test_models_are_trained_where_that_does_not_take_long(variables, cores, expected, monkeypatch, capsys):
    for name in ("COURSE_TRAIN", "BINDER_LAUNCH_HOST", "BINDER_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(trained, "cores", lambda: cores)
    assert trained.here() is expected
    assert ("To train it yourself, set TRAIN = True" in capsys.readouterr().out) is not expected


def test_a_wish_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("COURSE_TRAIN", "perhaps")
    with pytest.raises(ValueError, match="COURSE_TRAIN='perhaps' is unknown; set it to yes, no or all, or not at all"):
        trained.here()


def test_cores_of_a_container(tmp_path):
    file = tmp_path / "cpu.max"
    assert trained.cores(file) == os.cpu_count()
    for text, cores in (("50000 100000", 0.5), ("200000 100000", 2), ("max 100000", os.cpu_count())):
        file.write_text(text + "\n")
        assert trained.cores(file) == cores


def test_a_call_gives_what_it_returned_beforehand_unless_told_to_train(lesson, store, capsys):
    store((train, 1))
    assert capsys.readouterr().out == ""
    model, history = train(1)
    again, stored = loaded(lesson, train)(1)
    beginning, _, curve = capsys.readouterr().out.partition("; loss ")
    assert beginning == "train(1): made beforehand by this very code, in less than a second"
    assert re.fullmatch(r"\d\.\d\d [▁▂▃▄▅▆▇█]{12} \d\.\d\d\n", curve)
    assert again.config == model.config
    for name, param in model.params().items():
        found = again.params()[name].value
        assert found.dtype == param.value.dtype
        np.testing.assert_allclose(found, param.value, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(stored.losses, history.losses, rtol=1e-3)


def test_what_is_returned_comes_back_as_it_was(lesson, store):
    rng = np.random.default_rng(3)
    weights = rng.random((2, 3, 3))
    result = Result(np.array([0.1, 1e-9]), 0.5, weights.astype(np.float32), np.arange(4), 0.25)

    def make():
        return {("a", 1): result, None: [True, "x", (1, 2.5)]}, [0.1**n for n in range(20)], np.float32(2)

    store((make,))
    (table, numbers, two) = loaded(lesson, make)()
    assert table[None] == [True, "x", (1, 2.5)]
    found = table["a", 1]
    assert isinstance(found, Result)
    for name, value in result._asdict().items():
        assert getattr(getattr(found, name), "dtype", None) == getattr(value, "dtype", None)
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(numbers, [0.1**n for n in range(20)], rtol=1e-3)  # not one is 0
    assert two == 2


class Foreign(NamedTuple):
    x: int


@pytest.mark.parametrize("thing", [Foreign(1), object()])
def test_what_no_file_of_the_course_may_hold_is_refused(thing, store):
    with pytest.raises(TypeError, match="return models, arrays, numbers, text and tuples"):
        store((lambda: thing,))


def test_other_settings_train_and_say_so(lesson, store, capsys, monkeypatch):
    loaded(lesson, train)(1, steps=1)
    assert "train(1, steps=1) was not made beforehand, so it runs now." in capsys.readouterr().out
    assert store((train, 1)) == ["train(layers=1, steps=12)"]
    _, history = loaded(lesson, train)(1, steps=3)
    assert len(history.losses) == 3
    said = capsys.readouterr().out
    assert said == "train(1, steps=3) was not made beforehand with these settings, so it runs now.\n"
    loaded(lesson, train)(layers=1)  # the same call, otherwise written
    assert "train(layers=1): made beforehand" in capsys.readouterr().out
    with pytest.raises(ValueError, match="an argument is of type ndarray; give numbers, text, functions or models"):
        loaded(lesson, train)(np.ones(2))
    monkeypatch.setenv("COURSE_STRICT", "1")  # in tests nothing may be missing
    with pytest.raises(
        AssertionError, match=r"train\(2\) was not made beforehand.*; python -m tools.train .*toy makes it"
    ):
        loaded(lesson, train)(2)


CELL = """
RATE, MORE = 1e-2, 0

def loss_of(model, more=MORE):
    return {"loss": model * RATE + more, "colour": "#C8C8C8 1"}

def measure(steps=2):
    return loss_of(steps)
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("loss_of(steps)", "loss_of(steps + 0)", True),  # its own code
        ("= 1e-2", "= 2e-2", True),  # a number it reads
        ("model * RATE", "RATE * model", True),  # a function it calls
        ("1e-2, 0", "1e-2, 1", True),  # that one's defaults
        ("#C8C8C8 1", "#C8C8C8 2", True),  # what stands behind a number sign in a text
        ("#C8C8C8 1", "#C8C8C81", True),  # a blank in a text
        ("return loss_of(steps)", "# all of it\n    return loss_of(\n        steps)", False),
    ],
)
def test_code_that_was_changed_trains_and_says_so_but_comments_and_line_breaks_are_no_change(
    old, new, changed, lesson, store, capsys
):
    store((cell(CELL, {"__name__": "__main__"})["measure"],))
    now = cell(CELL.replace(old, new), {"__name__": "__main__"})["measure"]
    assert loaded(lesson, now)() == now()
    because = "has been changed since it was made beforehand, so it runs now." if changed else "made beforehand by this"
    assert because in capsys.readouterr().out


def test_models_count_by_their_parameters(lesson, store, capsys):
    model, _ = train(1)
    names = store((train, 1), (loss_of, model))
    assert re.fullmatch(r"loss_of\(model=<GPT [0-9a-f]{12}>\)", names[1])
    stored, _ = loaded(lesson, train)(1)
    assert loaded(lesson, loss_of)(stored) == loaded(lesson, loss_of)(model)  # rounded, it is the same model
    assert "runs now" not in capsys.readouterr().out
    next(iter(model.params().values())).value[0] += 1
    loaded(lesson, loss_of)(model)
    assert "loss_of(GPT) was not made beforehand with these settings" in capsys.readouterr().out


def test_calls_within_a_call_are_a_part_of_it(lesson, store):
    inner = trained.beforehand(lesson, unless=True)(train)

    def outer(layers):
        return loss_of(inner(layers)[0])

    assert store((outer, 1)) == ["outer(layers=1)"]


def test_a_file_that_is_damaged_or_no_longer_fits_is_named(lesson, store, capsys):
    store((train, 1))
    path = trained.path_of(lesson)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"0": arrays["0"][:3]})
    _, history = loaded(lesson, train)(1)
    assert len(history.losses) == 12
    assert "was made beforehand, but that no longer fits (3 parameters for a model of" in capsys.readouterr().out
    path.write_bytes(b"PK nothing")
    loaded(lesson, train)(1, steps=1)
    assert "is damaged" in capsys.readouterr().out


# --- What is stored ---------------------------------------------------------------------------------------------------


def test_every_lesson_that_trains_has_its_file():
    with_file = {lesson.name for lesson in LESSONS if trained.path_of(lesson.name).exists()}
    assert {lesson.name for lesson in tool.lessons()} == with_file


def test_all_files_together_are_small():
    sizes = {path.parent.name: path.stat().st_size for path in trained.FOLDER.glob("*/trained.npz")}
    assert sum(sizes.values()) <= 3_500_000, sizes


@pytest.mark.parametrize("name", [lesson.name for lesson in tool.lessons()])
def test_what_is_stored_can_be_read(name):
    path = trained.path_of(name)
    functions = set()
    for call in trained_storage.names(path):
        made = trained_storage.read(path, call)
        assert made.source
        assert made.seconds >= 0
        functions.add(call.partition("(")[0])
    (notebook,) = (NOTEBOOKS / lesson.notebook for lesson in LESSONS if lesson.name == name)
    written = re.findall(r'@trained\.beforehand\([^)]*\)\\n",\s*"def (\w+)', notebook.read_text(encoding="utf-8"))
    assert functions == set(written)


def test_losses_that_end_elsewhere_are_found(lesson, store, tmp_path):
    store((train, 1), (train, 2))
    path, other = trained.path_of(lesson), tmp_path / "other.npz"
    calls = {name: trained_storage.read(path, name) for name in trained_storage.names(path)}
    trained_storage.write(other, calls)
    assert tool.differences(path, other) == []
    first, second = calls
    worse = training.History([5.0] * 12, [0.1] * 12, [1.0] * 12)
    trained_storage.write(other, calls | {second: calls[second]._replace(result=(calls[second].result[0], worse))})
    (found,) = tool.differences(path, other)
    assert re.fullmatch(r"train\(layers=2, steps=12\): the loss ends at 5.00, not at \d.\d\d", found)
    trained_storage.write(other, {first: calls[first]})
    assert tool.differences(path, other) == [f"other calls: {[second]}"]
    trained_storage.write(other, calls | {first: calls[first]._replace(source="another")})
    assert tool.differences(path, other) == [f"{first}: made by other code"]


@pytest.mark.long_form
@pytest.mark.own_job  # minutes for each lesson
@pytest.mark.parametrize("lesson", tool.lessons(), ids=lambda lesson: lesson.name)
def test_trained_anew_it_ends_the_same(lesson, tmp_path):
    """The whole notebook, with training: what its text claims is guarded there."""
    tool.make(lesson, tmp_path / "trained.npz")
    assert tool.differences(trained.path_of(lesson.name), tmp_path / "trained.npz") == []
