"""What notebook 10 breaks, measures and asks for."""

import json
import re

import numpy as np
import pytest
from learners import cell
from right_answers import RIGHT, bodies

from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.attention_bugs import BUGS, WrongHeads
from lesson_utils.lessons.debugging import (
    broken,
    casefile,
    cases,
    examined,
    exercises,
    instruments,
    lab,
    matrix,
    symptoms,
    tried,
)
from lesson_utils.lessons.debugging.mended import readings
from lesson_utils.maths import models
from lesson_utils.mistakes.judge import run

CLINIC = next(lesson for lesson in LESSONS if lesson.name == "debugging")
ALL_BUGS = tuple(dict.fromkeys((*examined.BUGS, *matrix.ROWS, "rotary pairs")))
SIZES = {"d_model": 8, "num_heads": 2, "num_layers": 2, "dtype": np.float64}


ELSEWHERE = {  # bugs of the catalogue that no patient has, and the model that can have them
    "scaled by d_k": {},
    "queries split without the swap": {},
    "norm left out": {},
    "rotary left out": {"positions": "rotary"},
    "values turned": {"positions": "rotary"},
    "gate and value swapped": {"activation": "swiglu"},
}


def model_of(bug, seed=0):
    """A broken model whose parameters are all away from where they begin."""
    sizes = SIZES | ELSEWHERE.get(bug, {}) | ({"num_heads": 4} if bug == "groups tiled" else {})
    model = broken.patient(bug, 11, seed, **sizes)
    rng = np.random.default_rng(seed)
    for param in model.params().values():
        param.value += 0.3 * rng.normal(size=param.value.shape)
    return model


# --- Broken models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", [bug for bug in (*ALL_BUGS, *ELSEWHERE) if "backward" not in bug])
def test_the_backward_pass_fits_the_broken_forward_pass(bug):
    """What happens in training is the bug's doing, not that of a second one."""
    model, rng = model_of(bug), np.random.default_rng(1)
    batch = rng.integers(11, size=(3, 5)), rng.integers(11, size=(3, 5))
    model.loss_and_grad(batch)
    for name, param in model.params().items():
        place = tuple(int(rng.integers(n)) for n in param.value.shape)
        value, losses = param.value[place], []
        for nudge in (1e-5, -1e-5):
            param.value[place] = value + nudge
            losses.append(model.loss(batch))
        param.value[place] = value
        assert param.grad[place] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-4, abs=1e-7), name


def test_without_a_bug_it_is_the_courses_own_model():
    """Also where queries, keys and values come through the broken layers' own code."""
    config = models.GPTConfig(vocab=11, **SIZES)
    own = models.GPT(config, np.random.default_rng(3))
    ids = np.random.default_rng(0).integers(11, size=(2, 7))
    healthy = broken.patient("", 11, 3, **SIZES)
    assert all(type(heads) is WrongHeads for heads in healthy.heads()["decoder"])
    np.testing.assert_allclose(healthy.forward(ids)[0], own.forward(ids)[0], rtol=1e-10)
    past, past_own = healthy.new_past(), own.new_past()
    for part in (ids[:, :4], ids[:, 4:5]):
        np.testing.assert_allclose(healthy.forward(part, past)[0], own.forward(part, past_own)[0], rtol=1e-10)


def test_a_bug_changes_no_parameter_but_the_loud_table():
    for bug in ALL_BUGS:
        sick = broken.patient(bug, 11, **SIZES | {"num_heads": 4})
        twin = broken.twin(sick)
        assert sick.params().keys() == twin.params().keys()
        if bug not in ("table too loud", "groups tiled"):
            healthy = broken.patient("", 11, **SIZES | {"num_heads": 4})
            for name, param in healthy.params().items():
                np.testing.assert_array_equal(param.value, sick.params()[name].value)


def test_a_bug_that_is_not_in_the_catalogue_is_refused():
    with pytest.raises(ValueError, match="bug='no masc' is not known; choose one of , no mask"):
        broken.patient("no masc", 11)


def test_a_bug_is_planted_in_every_place():
    model = tried.model_of("dates", "no scale", 0)
    for place in ("encoder", "decoder", "cross"):
        assert [heads.bug for heads in model.heads()[place]] == [BUGS["no scale"]]


# --- Instruments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_model_rings_nothing(seed):
    assert not any(matrix.found("", seed).values())


RINGS = {  # by the property that the bug breaks, not by what was measured
    "mask one too far": {"leak in time", "cache parity", "right twin"},
    "mask after softmax": {"leak in time", "cache parity", "right twin"},
    "norm over the sequence": {"leak in time", "cache parity", "right twin"},
    "positions forgotten": {"order", "right twin"},
    "cache counts calls": {"cache parity"},
    "backward without the row's sum": {"gradient"},
    "no scale": {"right twin"},
    "rotary pairs": {"right twin"},
}


@pytest.mark.parametrize("bug", RINGS)
def test_each_instrument_finds_what_it_is_for(bug):
    assert {name for name, finds in matrix.found(bug).items() if finds} == RINGS[bug]


@pytest.mark.slow
def test_every_bug_is_found_by_something():
    assert all(any(matrix.found(bug).values()) for bug in matrix.ROWS)


def test_a_leak_climbs_one_place_a_layer():
    ids = np.arange(10) % 7
    for layers in (1, 2, 3):
        model = broken.patient("mask one too far", 11, **SIZES | {"num_layers": layers})
        moved = instruments.leak_in_time(model, ids, 6) > 1e-9
        assert moved.tolist() == [place >= 6 - layers for place in range(10)]


def test_the_notebooks_instruments_are_the_labs():
    notebook = json.loads((exercises_notebook()).read_text(encoding="utf-8"))
    source = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    names = {"np": np}
    exec(source["leaks"] + "\n\n" + source["order-parity"], names)
    model, rng = model_of("mask after softmax"), np.random.default_rng(2)
    ids, *others = rng.integers(11, size=(4, 9))
    shuffle = rng.permutation(9)
    ours = instruments.order(model, ids, shuffle[None])[0]
    assert names["order"](model, ids, shuffle).max() == pytest.approx(ours)
    np.testing.assert_array_equal(names["cache_parity"](model, ids, 4), instruments.cache_parity(model, ids, 4))
    company = instruments.leak_across_rows(model, ids, np.stack(others))[-1]
    assert names["leak_across_rows"](model, ids, others).max() == pytest.approx(company)


def exercises_notebook():
    from pathlib import Path

    return Path(__file__).parents[2] / "notebooks" / CLINIC.notebook


# --- The case file ----------------------------------------------------------------------------------------------------


def test_the_file_holds_every_patient_and_no_name():
    assert set(examined.stored()) == set(examined.BUGS) == set(cases.CASES)
    assert len(examined.BUGS) == 16
    assert examined.STORED.stat().st_size < 20_000
    figure = lab.case_lab()
    for patient in (casefile.HEALTHY, *casefile.PATIENTS):
        alt = figure.set(patient=patient).alt
        assert all(bug not in alt for bug in examined.BUGS if bug)


def test_the_gauges_on_file_are_those_of_models_like_them():
    """Exact properties hold before training as after it: a fresh model rings the same gauges but for the loss."""
    vocabulary, _ = examined.text()
    for bug in ("merged without the swap", "norm over the batch", "positions start again", "no scale"):
        time, rows, order, parity = examined.gauges(broken.patient(bug, len(vocabulary)))
        measured = examined.stored()[bug]._replace(time=time, rows=rows, order=order, parity=parity)
        assert casefile.alarms(measured)[2:] == casefile.alarms(examined.stored()[bug])[2:]


@pytest.mark.slow
def test_a_patient_can_be_trained_anew(capsys, monkeypatch):
    monkeypatch.setattr(examined, "STEPS", 20)
    first = examined.examine("no scale", steps=20)
    assert first == examined.examine("no scale", steps=20)
    assert len(first.losses) == 1
    assert first.sample.startswith("The value")
    with pytest.raises(ValueError, match="choose 1 to 16"):
        casefile.of(17)


def test_a_case_is_revealed_with_its_link_when_it_is_opened():
    shown = lab.reveal()._repr_mimebundle_()
    assert shown["text/plain"].count("https://github.com/") == 15
    assert all(bug in shown["text/plain"] for bug in examined.BUGS)
    in_sight = re.sub(r"<pre.*?</pre>", "", shown["text/html"], flags=re.S)
    assert re.findall(r"<summary[^>]*>([^<]*)</summary>", in_sight) == [f"Patient {n}" for n in casefile.PATIENTS]
    assert all(bug not in in_sight for bug in examined.BUGS if bug)
    assert lab.reveal(3).patients == (3,)
    with pytest.raises(ValueError, match="patient=17 is not in the file"):
        lab.reveal(17)


# --- Tasks ------------------------------------------------------------------------------------------------------------


def test_what_is_stored_of_the_tasks_is_whole():
    assert list(tried.stored()) == ["", *tried.BUGS]
    for bug, by_task in tried.stored().items():
        assert list(by_task) == list(tried.TASKS)
        for task, runs in by_task.items():
            assert len(runs) == (4 if bug in tried.CLOSELY else 1)
            assert all((own is None) == (task == "gather-k") and 0 <= told <= 1 for told, own in runs)


@pytest.mark.parametrize("task", tried.TASKS)
def test_a_task_trains_and_is_judged(task):
    told, own = tried.run(task, "merged without the swap", steps=2)
    assert 0 <= told <= 1
    assert (own is None) == (task == "gather-k")


def test_judging_is_by_the_symbols_that_are_wanted():
    """A model that says what stands in the source is right on `copy`, and where a palindrome is asked on `reverse`."""

    class Copies:
        def forward(self, source, target_in):
            wanted = np.pad(source, ((0, 0), (0, 1)), constant_values=2)
            return np.eye(30)[wanted], None

        def decode(self, source, length):
            return np.pad(source, ((0, 0), (0, 1)), constant_values=2)[:, :length]

    assert tried.judged("copy", Copies()) == (1.0, 1.0)
    told, own = tried.judged("reverse", Copies())
    assert told == own < 0.3


# --- Exercises --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", exercises.MENDS, ids=lambda e: e.name)
def test_a_broken_stub_runs_is_told_by_its_symptom_and_can_be_mended(exercise):
    names = exercise.names()
    exec(exercise.stub, names)
    untouched = run(exercise, names[exercise.function_name])
    assert (untouched.passed, untouched.message) == (None, exercise.symptom)
    exec(exercise.solution, names)
    assert run(exercise, names[exercise.function_name]).passed is True
    assert exercise.body(exercise.broken) not in exercise.symptom


def test_what_is_mended_wrongly_is_answered_as_ever():
    exercise = exercises.MENDS[0]
    names = exercise.names()
    exec("def mended_merge(x):\n    return x.swapaxes(-1, -2).reshape(x.shape[:-3] + (x.shape[-2], -1))", names)
    assert run(exercise, names["mended_merge"]).passed is False


def test_who_changes_the_lines_in_vain_is_told_of_the_mistake():
    exercise = exercises.MENDS[1]
    changed = exercise.stub.replace("np.where(mask, -np.inf, scores)", "np.where(~mask, scores, -np.inf)")
    assert changed != exercise.stub
    result = run(exercise, cell(changed, exercise.names())["mended_hiding"])
    assert (result.passed, result.misconception) == (False, "mask inverted")
    reworded = exercise.stub.replace("    scores =", "    # look here\n    scores =")  # the same lines
    assert run(exercise, cell(reworded, exercise.names())["mended_hiding"]).message == exercise.symptom


def test_the_triage_finds_the_part_of_every_patient(capsys):
    """The order of questions leads to the part that is ill, but where nothing rings."""
    found = exercises.EXERCISES[0].right(casefile.gauges())
    for bug, number in zip(examined.BUGS, found, strict=True):
        part = cases.CASES[bug].part
        assert number in cases.LEADS.get(part, (0,)), bug
    lab.diagnoses(exercises.EXERCISES[0].right)
    assert "15 of 16 are sent to the right place." in capsys.readouterr().out
    lab.diagnoses(lambda gauges: np.zeros(len(gauges), int))
    assert "1 of 16 are sent" in capsys.readouterr().out


TREATED = {  # by the property that the exercise's bug breaks
    "merge": {"leak in time", "cache parity", "right twin"},
    "hiding": {"leak in time", "cache parity", "right twin"},
    "mask": {"cache parity"},
    "norm": {"leak in time", "cache parity", "right twin"},
    "block": {"right twin"},
    "step": {"cache parity"},
    "groups": {"right twin"},
    "attention": {"leak in time", "cache parity", "right twin"},
}


@pytest.mark.parametrize("exercise", exercises.MENDS, ids=lambda e: e.name)
def test_a_mended_function_cures_the_model_that_the_broken_one_makes_ill(exercise):
    part = exercise.name.removeprefix("mend_")
    mended = CLINIC.exercise(exercise.name).function()
    ill, well = (readings(part, function) for function in (exercise.program(exercise.broken), mended))
    assert {name for name, (_, alarm) in ill.items() if alarm} == TREATED[part]
    assert not any(alarm for _, alarm in well.values())


@pytest.mark.parametrize("exercise", exercises.MENDS, ids=lambda e: e.name)
def test_a_model_can_run_on_every_right_answer(exercise):
    base = next(
        e
        for e in (lesson.exercise(n) for lesson in LESSONS if lesson is not CLINIC for n in lesson.exercises)
        if e.mistakes == exercise.mistakes
    )
    for body in bodies(RIGHT, base):
        readings_of = readings(exercise.name.removeprefix("mend_"), exercise.program({"": body}))
        assert not any(alarm for _, alarm in readings_of.values()), body


def test_what_a_treatment_prints(capsys):
    lab.treat("merge", exercises.MENDS[0].program({}))
    printed = capsys.readouterr().out
    assert re.search(r"leak in time +X 0\.\d+ +o 0", printed)
    assert printed.count("X") == 4  # three, and what it means


# --- First states -----------------------------------------------------------------------------------------------------


def test_the_figures_first_states_tell_nothing_of_what_is_asked():
    matrix_figure, chatbot = lab.matrix_lab(), lab.symptoms_lab()
    assert "copy" not in matrix_figure.picture.alt
    assert "1.00" in matrix_figure.set(task="copy").alt
    assert "4.28" not in chatbot.picture.alt
    perplexities = [of["perplexity"] or np.inf for of in symptoms.symptoms().values()]
    assert perplexities != sorted(perplexities)
    assert "no causal mask 4.28" in chatbot.set(others=True).alt
