"""What notebook 10 breaks, measures and asks for."""

import json
import re

import numpy as np
import pytest
from learners import cell
from right_answers import RIGHT, bodies

from lesson_utils.classroom import progress
from lesson_utils.classroom.course import LESSONS
from lesson_utils.exercises import check
from lesson_utils.lessons.attention_bugs import BUGS, WrongHeads
from lesson_utils.lessons.debugging import (
    answers,
    broken,
    casefile,
    cases,
    examined,
    exercises,
    instruments,
    lab,
    matrix,
    net,
    symptoms,
    toys,
    tried,
)
from lesson_utils.lessons.debugging.mended import readings
from lesson_utils.maths import models
from lesson_utils.mistakes.judge import run
from lesson_utils.mistakes.mutation_testing.result import TestResult

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


def again(model):
    """Let a model that draws at random draw the same."""
    model.noise = model.noise and np.random.default_rng(5)


# --- Broken models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bug", [bug for bug in (*ALL_BUGS, *ELSEWHERE) if "backward" not in bug])
def test_the_backward_pass_fits_the_broken_forward_pass(bug):
    """What happens in training is the bug's doing, not that of a second one."""
    model, rng = model_of(bug), np.random.default_rng(1)
    batch = rng.integers(11, size=(3, 5)), rng.integers(11, size=(3, 5))
    again(model)
    model.loss_and_grad(batch)
    for name, param in model.params().items():
        place = tuple(int(rng.integers(n)) for n in param.value.shape)
        value, losses = param.value[place], []
        for nudge in (1e-5, -1e-5):
            param.value[place] = value + nudge
            again(model)
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


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_is_found_whatever_the_symbols(seed):
    """Where the symbol before is the same, it is another one that takes the place."""
    assert matrix.found("mask one too far", seed=seed)["leak in time"]


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
    parity, across = (CLINIC.exercise(name).function() for name in ("cache_parity", "leak_across_rows"))
    np.testing.assert_array_equal(parity(model, ids, 4), instruments.cache_parity(model, ids, 4))
    sick = model_of("norm over the batch")
    company = instruments.leak_across_rows(sick, ids, np.stack(others))[-1]
    assert company > 0.1
    assert across(sick, ids, np.stack(others)).max() == pytest.approx(company)


def test_the_short_readings():
    ids = np.arange(9) % 7
    healthy, random = model_of(""), model_of("dropout left on")
    assert instruments.again(healthy, ids) == 0 < instruments.again(random, ids)
    assert (
        instruments.row_sums(healthy, ids).max()
        < 1e-9
        < 0.1
        < instruments.row_sums(model_of("mask after softmax"), ids).max()
    )
    assert instruments.looks_ahead(healthy, ids) == 0 < 0.1 < instruments.looks_ahead(model_of("no mask"), ids)
    assert instruments.single_symbols(model_of("norm over the sequence"), ids[:3]) < 1e-9
    assert instruments.single_symbols(healthy, ids[:3]) > 0.1
    rows = np.random.default_rng(0).integers(11, size=(3, 6))
    batch = rows[:, :-1], rows[:, 1:]
    assert instruments.loss_by_hand(healthy, rows) == pytest.approx(healthy.loss(batch))
    doubled = model_of("losses added up")
    even = rows[[0, 1]]
    assert doubled.loss((even[:, :-1], even[:, 1:])) == pytest.approx(2 * instruments.loss_by_hand(doubled, even))


def test_a_mask_from_the_first_key_is_wrong_behind_a_cache_only():
    ids = np.arange(8)[None]
    sick, right = (broken.patient(bug, 11, **SIZES) for bug in ("mask from the first key", ""))
    np.testing.assert_array_equal(sick.forward(ids)[0], right.forward(ids)[0])
    past = sick.new_past()
    sick.forward(ids[:, :5], past)
    _, cache = sick.forward(ids[:, 5:6], past)
    assert (sick.maps(cache)["decoder"][0][..., 0] == 1).all()  # nothing but the first key


@pytest.mark.parametrize("bug", [{}, {"starts_again": True}, {"counts_calls": True}, {"looks_ahead": True}])
def test_a_toy_is_found_out_by_the_instrument_that_is_meant(bug):
    ids = np.arange(7) % toys.VOCAB
    assert (instruments.cache_parity(toys.Toy(0, **bug), ids, 3).max() > 1e-6) == bool(bug)
    assert instruments.leak_across_rows(toys.Toy(0, **bug), ids, ids[None][:, ::-1]).max() < 1e-9
    for mixes in ({"mixes_rows": True}, {"counts_rows": True}):
        assert instruments.leak_across_rows(toys.Toy(0, **mixes), ids, ids[None][:, ::-1]).max() > 1e-3


def exercises_notebook():
    from pathlib import Path

    return Path(__file__).parents[2] / "notebooks" / CLINIC.notebook


# --- The case file ----------------------------------------------------------------------------------------------------


def test_the_file_holds_every_patient_and_no_name():
    assert set(examined.stored()) == set(examined.ALL) == {examined.HEALTHY, *cases.CASES}
    assert len(examined.BUGS) == 20
    assert examined.STORED.stat().st_size < 20_000
    assert examined.WEIGHTS.stat().st_size < 720_000  # of 19 models
    figure = lab.case_lab()
    for patient in (casefile.HEALTHY, *casefile.PATIENTS):
        alt = figure.set(patient=patient).alt
        assert all(bug not in alt for bug in examined.BUGS if bug)


def test_a_patient_is_a_trained_model_that_says_no_name():
    patient = lab.patient(4)
    assert "mask" not in repr(patient)
    ids = lab.lines()[:1]
    logits, cache = patient.forward(ids)
    assert logits.shape == (1, 12, len(examined.text()[0]))
    assert patient.maps(cache)["decoder"][0].shape == (1, 4, 12, 12)
    assert patient.forward(ids, patient.new_past())[0].shape == logits.shape
    assert len(patient.log) == 30
    assert instruments.loss_by_hand(lab.healthy(), lab.page()) < 2.5
    np.testing.assert_array_equal(lab.twin(16).forward(ids)[0], lab.twin(2).forward(ids)[0])  # one model's weights
    with pytest.raises(ValueError, match="choose 1 to 20"):
        lab.patient(21)


def test_no_patient_is_the_healthy_models_image():
    """Else the figure would say which of 9 and 10 is well, before the twin does."""
    ids, healthy = lab.lines()[:1], lab.healthy()
    for number in (9, 10):
        assert not any(casefile.alarms(casefile.of(number)))
        assert np.abs(lab.patient(number).forward(ids)[0] - healthy.forward(ids)[0]).max() > 1
        assert lab.patient(number).log != healthy.log
    figure = lab.case_lab()
    told = [figure.set(patient=number).alt.split("It writes:") for number in (casefile.HEALTHY, 9, 10)]
    assert len({sample for _, sample in told}) == 3


def test_a_curve_begins_where_the_title_says():
    loud = examined.stored()["targets not shifted"]
    assert casefile._curve(loud).tolist() == [loud.start, *loud.losses]
    assert casefile._curve(examined.stored()["table too loud"]).max() == 9  # as far as it fits


@pytest.mark.parametrize("bug", examined.ALL)
def test_the_gauges_on_file_are_those_of_the_weights_on_file(bug):
    """In order and in size; what is drawn at random is drawn anew."""
    filed, model = examined.stored()[bug], examined.trained(bug)
    found = filed._replace(**examined.gauges(model))
    assert casefile.alarms(found) == casefile.alarms(filed)
    assert found.by_hand == pytest.approx(filed.by_hand, rel=0.02)


@pytest.mark.slow
def test_a_patient_can_be_trained_anew(capsys, monkeypatch):
    monkeypatch.setattr(examined, "STEPS", 20)
    first, again = (examined.examine("rotary pairs", steps=20)[1] for _ in range(2))
    assert first == again
    assert len(first.losses) == 1
    assert first.sample.startswith("The value")
    with pytest.raises(ValueError, match="choose 1 to 20"):
        casefile.of(21)


def test_a_case_opens_for_those_that_have_a_diagnosis(capsys):
    assert lab.reveal({1: "", 2: ""}) is None
    assert "2 patients have no diagnosis yet" in capsys.readouterr().out
    shown = lab.reveal(dict.fromkeys(casefile.PATIENTS, "mask"))._repr_mimebundle_()
    links = re.findall(r'href="(https://github.com/[^"]+)"', shown["text/html"])
    assert len(links) == sum(bool(case.link) for case in cases.CASES.values()) == 19
    assert shown["text/plain"].count("https://github.com/") == 19
    assert all(bug in shown["text/plain"] for bug in examined.BUGS)
    in_sight = re.sub(r"</summary>.*?</details>", "</summary></details>", shown["text/html"], flags=re.S)
    assert re.findall(r"<summary[^>]*>([^<]*)</summary>", in_sight) == [f"Patient {n}" for n in casefile.PATIENTS]
    assert all(bug not in in_sight for bug in examined.BUGS if bug)
    assert lab.reveal({3: "x", 4: ""}).patients == (3,)
    assert lab.reveal({8: "x", 9: "none"}, closed=(9, 10)).patients == (8,)
    assert "Not to be opened yet: 9. Section 4" in capsys.readouterr().out
    assert lab.reveal({9: "none", 10: "scale"}, closed=(9, 10)) is None
    with pytest.raises(ValueError, match="patient=21 is not in the file"):
        lab.reveal({21: ""})


# --- Diagnosis --------------------------------------------------------------------------------------------------------


def test_what_is_right_passes_and_nothing_is_told_to_who_says_nothing():
    ten = range(1, 11)
    assert check.diagnosis({n: answers.right(n)[0] for n in ten}).passed is True
    assert check.diagnosis({n: answers.right(n)[-1].upper() + " " for n in ten}).passed is True
    untouched = check.diagnosis(dict.fromkeys(ten, ""))
    assert untouched.passed is None
    part = check.diagnosis({1: "heads", 2: ""})
    assert part.passed is False
    assert part.message == "1 of 2 patients is named rightly: 1. 1 has no diagnosis yet."
    assert check.diagnosis({2: "positions", 16: "cache"}).passed is True  # the line that is wrong counts as well


@pytest.mark.parametrize("patient", casefile.PATIENTS)
def test_a_wrong_part_is_answered_by_a_reading_that_is_true_and_the_right_one_is_not_named(patient):
    read = answers.reading(patient)
    for part in answers.PARTS:
        if part in answers.right(patient):
            continue
        message = answers.against(patient, part)
        assert len(message) > 40
        words = set(re.findall(r"[a-z]+", message.lower())) - {part}
        assert answers.right(patient)[0] not in words - {"cache", "loss", "data", "positions", "none"}, message
        if message == answers.NEEDS.get(part, ("", ""))[1]:
            assert not read[answers.NEEDS[part][0]]
        for gauge, seen in answers.SEEN.items():
            if message.startswith(seen):
                assert read[gauge]


def test_a_mask_is_refused_for_what_no_mask_can_do():
    """Patient 11 has a wrong mask that rings the same gauges as patient 8, and takes weight away."""
    assert answers.reading(8) == answers.reading(11)
    assert "here the weights of one query sum to 3" in answers.against(8, "mask")
    assert max(casefile.of(8).sums) == pytest.approx(2, abs=0.1)
    assert max(casefile.of(11).sums) < 1


def test_what_is_said_of_the_log_is_true_of_it():
    """Patients 7, 15 and 20 have wrong positions; only the last was trained by other code than it runs."""
    for said in ("loss", "targets", "data"):
        for patient in (7, 15):
            assert answers.against(patient, said) == answers.NEEDS[said][1]
        assert "what runs now is other code" in answers.against(20, said)
    rotary, healthy = (examined.stored()[bug] for bug in ("rotary pairs", examined.HEALTHY))
    assert rotary.start == pytest.approx(healthy.start, abs=0.1)
    assert np.mean(rotary.losses[-3:]) < np.mean(healthy.losses[-3:])


def test_what_counts_as_solved_are_all_numbered_exercises(monkeypatch):
    monkeypatch.setattr(progress, "_seen", {})
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    headings = re.findall(r"### Exercise \d", exercises_notebook().read_text(encoding="utf-8"))
    assert len(CLINIC.solved_by) == len(headings) == 9
    assert {*CLINIC.exercises, *CLINIC.answers, "finds_bugs"} == set(CLINIC.solved_by)
    assert all(callable(getattr(check, name)) for name in CLINIC.solved_by)
    for name in CLINIC.exercises[:2]:
        progress.note(name)
    assert "2 of 9 exercises here; next: `check.diagnosis`" in str(progress.here("debugging"))
    check.diagnosis({n: answers.right(n)[0] for n in range(1, 11)})
    assert "3 of 9 exercises here; next: `check.triage`" in str(progress.here("debugging"))
    check.diagnosis({1: "mask"})
    assert "3 of 9" in str(progress.here("debugging"))
    judge = "lesson_utils.mistakes.mutation_testing.analysis.judge_test"
    for passed, words in ((False, "3 of 9"), (True, "4 of 9")):
        monkeypatch.setattr(judge, lambda *_, passed=passed: TestResult(passed, "so many bugs"))
        check.finds_bugs(lambda attention: None)
        assert words in str(progress.here("debugging"))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["mask"], "Hand over a dictionary"),
        ({31: "mask"}, "There is no patient 31"),
        ({1: 2}, "write the part as text"),
        ({1: "batch norm"}, "“batch norm” is not on the list: mask, softmax"),
    ],
)
def test_a_diagnosis_that_cannot_be_read_is_answered(said, words):
    result = check.diagnosis(said)
    assert result.passed is False
    assert words in result.message


def test_all_but_one_pair_can_be_told_by_their_readings():
    """Of the ten of the core: no two others have the same part said of them, and the same readings."""
    readings_of = [tuple(answers.reading(n).values()) for n in range(1, 11)]
    same = [(a, b) for a in range(10) for b in range(a) if readings_of[a] == readings_of[b]]
    assert same == [(9, 8)]


# --- A net, and ports -------------------------------------------------------------------------------------------------


def test_a_net_says_who_slips_through():
    found = net.caught({"nobody": lambda patient: False, "order": lambda patient: "4" in repr(patient)})
    assert found.shape == (21, 2)  # the healthy model, and the patients
    assert not found[:, 0].any()
    assert np.flatnonzero(found[:, 1]).tolist() == [4, 14]
    alt = lab.net({"all": lambda patient: True}).alt
    assert alt.startswith("19 of 19 bugs are caught, with 1 false alarm.")
    assert "Caught by no test: nobody. The healthy model sets off all." in alt
    with pytest.raises(ValueError, match="there are no tests"):
        lab.net({})


def test_a_net_does_not_tell_which_patient_is_well():
    alt = lab.net({"nobody": lambda patient: False}).alt
    assert "Caught by no test: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11" in alt


@pytest.mark.parametrize("test", [lambda patient, ids: True, lambda patient: np.array([True, False])])
def test_a_test_that_breaks_is_named_with_what_it_should_do(test):
    with pytest.raises(ValueError, match=r"the test “mine” takes a patient and says yes or no.*Error: "):
        lab.net({"mine": test})


@pytest.mark.parametrize(("name", "first"), [("A", "attention 1"), ("B", "feed-forward 1"), ("C", "attention 3")])
def test_a_port_parts_from_the_original_where_its_bug_is(name, first):
    ids = np.random.default_rng(0).integers(50, size=(2, 9))
    right, port = (lab.streams(lab.port(which), ids) for which in ("original", name))
    assert next(part for part in right if np.abs(right[part] - port[part]).max() > 1e-5) == first
    logits, _ = lab.port(name).forward(ids)
    np.testing.assert_allclose(port["logits"], logits, atol=1e-5)
    with pytest.raises(ValueError, match="port='D' is not known"):
        lab.port("D")


# --- Tasks ------------------------------------------------------------------------------------------------------------


def test_what_is_stored_of_the_tasks_is_whole():
    assert list(tried.stored()) == ["", *tried.BUGS]
    for bug, by_task in tried.stored().items():
        assert list(by_task) == list(tried.TASKS)
        for task, runs in by_task.items():
            assert len(runs) == (4 if bug in tried.CLOSELY else 1)
            assert all((own is None) == (task == "gather-k") and 0 <= told <= 1 for told, own in runs)


@pytest.mark.slow
def test_what_merged_models_write_in_other_ways():
    """A healthy model writes alike in all ways; what is stored of the merged ones lists three ways and three seeds."""
    healthy = tried.fitted("copy", "")
    assert (
        min(tried.judged("copy", healthy)[1], *(tried.written("copy", healthy, fill) for fill in (False, True))) > 0.99
    )
    assert len(lab.ways().splitlines()) == 1 + 2 * len(tried.WAYS)


def test_a_bug_that_a_tasks_model_cannot_have_changes_nothing_in_it():
    batch = tried.batch_of("gather-k", np.random.default_rng(0), 4)

    def learnt(bug):
        model = tried.model_of("gather-k", bug, 0)
        model.loss_and_grad(batch)
        return [array for param in model.params().values() for array in (param.value, param.grad)]

    healthy = learnt("")
    for bug in matrix.ROWS:
        same = all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(learnt(bug), healthy, strict=True))
        assert same == (bug in tried.ABSENT["gather-k"]), bug
    assert len(matrix.possible("gather-k")) == 14
    assert matrix.possible("copy") == list(matrix.ROWS)


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


PAIR = """def my_leak_across_rows(model, ids, others):
    alone = model.forward(ids[None])
    both = model.forward(np.concatenate([others, ids[None]]))
    return np.abs({} - {}).max(axis=-1)
"""
CACHE = """def my_cache_parity(model, ids, prompt):
    whole = model.forward(ids[None])[0][0]
    out, past = model.forward(ids[None, :prompt], model.new_past())
    parts = [out[0]]
    for t in range(prompt, len(ids)):
        parts.append(model.forward(ids[None, t : t + 1], past)[0][0])
    return np.abs(np.concatenate(parts) - whole).max(axis=-1)
"""


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (PAIR.format("alone[0]", "both[-1]"), "`forward` returns a pair, and this line computes with its second part."),
        (PAIR.format("alone", "both[-1]"), "`forward` returns a pair, and this line computes with its second part."),
        (PAIR.format("both", "alone"), "A tuple stands where one array belongs."),
        (PAIR.format("alone[0]", "both[0][-1]"), "One of your runs keeps the axis of the batch"),
        (
            PAIR.format("alone[0][0]", "both[0][-1]").replace("np.abs", "np.argmax(np.abs").replace(".max(", ", "),
            "place",
        ),
        (CACHE, "is the second part of the pair that `forward` returned, and not the cache"),
    ],
)
def test_who_takes_the_wrong_part_of_the_pair_is_told_so(source, says):
    name = re.match(r"def my_(\w+)", source)[1]
    exercise = CLINIC.exercise(name)
    result = run(exercise, cell(source, exercise.names())[f"my_{name}"])
    assert result.passed is False
    assert says in result.message
    assert "(Explained)" not in result.message
    assert "None" not in result.message.replace("[None]", "").replace("[None,", "")


def test_what_is_mended_wrongly_is_answered_as_ever():
    exercise = exercises.MENDS[0]
    names = exercise.names()
    exec("def mended_merge(x):\n    return x.swapaxes(-1, -2).reshape(x.shape[:-3] + (x.shape[-2], -1))", names)
    assert run(exercise, names["mended_merge"]).passed is False


def test_who_changes_the_lines_in_vain_is_told_of_the_mistake():
    exercise = exercises.MENDS[1]
    changed = exercise.stub.replace("return j <= i", "return i >= j")
    assert changed != exercise.stub
    result = run(exercise, cell(changed, exercise.names())[exercise.function_name])
    assert (result.passed, result.misconception) == (False, "queries counted from the start")
    reworded = exercise.stub.replace("    return", "    # look here\n    return")  # the same lines
    assert run(exercise, cell(reworded, exercise.names())[exercise.function_name]).message == exercise.symptom


SHOWN = {  # inputs that show the bug, and inputs on which it hides
    "merge": ((np.arange(12).reshape(2, 3, 2),), (np.arange(6).reshape(1, 3, 2),)),
    "mask": ((1, 4), (5, 5)),
    "block": ((np.arange(8.0).reshape(2, 4), *4 * [np.zeros_like]), (np.zeros((2, 4)), *4 * [np.zeros_like])),
    "groups": (
        tuple(np.random.default_rng(0).normal(size=(h, 3, 2)) for h in (4, 2, 2)),
        tuple(np.random.default_rng(0).normal(size=(h, 3, 2)) for h in (4, 1, 1)),
    ),
}


@pytest.mark.parametrize("part", SHOWN)
def test_an_input_shows_the_bug_or_does_not(part):
    shows, hides = (getattr(check, f"mend_{part}").shows(*arguments) for arguments in SHOWN[part])
    assert (shows.passed, hides.passed) == (True, False)
    assert "shows the bug" in shows.message
    assert "The bug hides" in hides.message


def test_what_is_no_input_is_answered():
    assert check.mend_mask.shows(...).passed is None
    assert check.mend_mask.shows(3).message == "It takes T_q, T_k; you gave 1."
    assert "The right function can't take this" in check.mend_merge.shows(np.arange(3)).message
    assert "1 of 1 entries" not in check.mend_mask.shows(1, 4).message
    assert "3 of 4 entries are wrong" in check.mend_mask.shows(1, 4).message
    with pytest.raises(ValueError, match="triage has no bug of its own"):
        check.triage.shows(1)


def test_the_triage_leads_to_the_part_but_for_three(capsys):
    triage = CLINIC.exercise("triage")
    lab.diagnoses(triage.right)
    told = capsys.readouterr().out
    assert "17 of 20 are sent to the right place; wrong are 17, 20, one of 9 and 10." in told
    assert "the cache                  2, 16" in told
    assert not any(bug in told for bug in examined.BUGS if bug)
    lab.diagnoses(lambda gauges: np.zeros(len(gauges), int))
    told = capsys.readouterr().out
    assert "1 of 20 are sent" in told
    assert "one of 9 and 10" in told


TREATED = {  # by the property that the exercise's bug breaks
    "merge": {"leak in time", "cache parity", "right twin"},
    "mask": {"cache parity"},
    "block": {"right twin"},
    "groups": {"right twin"},
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
    assert "Found by: (healthy): nothing; merged" in matrix_figure.picture.alt  # a row to compare with
    assert "(healthy) 1.00, merged" in matrix_figure.set(task="gather-k").alt
    assert "1.00" in matrix_figure.set(task="copy").alt
    assert "4.28" not in chatbot.picture.alt
    perplexities = [of["perplexity"] or np.inf for of in symptoms.symptoms().values()]
    assert perplexities != sorted(perplexities)
    assert "no causal mask 4.28" in chatbot.set(others=True).alt
