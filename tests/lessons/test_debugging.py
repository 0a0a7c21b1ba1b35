"""What notebook 10 breaks, measures and asks for."""

import importlib
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from learners import cell
from right_answers import RIGHT, bodies

from lesson_utils.classroom import course, progress
from lesson_utils.exercises import check
from lesson_utils.lessons.attention_bugs import WrongHeads
from lesson_utils.lessons.debugging import answers, broken, casefile, examined, exercises, lab, tried
from lesson_utils.maths import models
from lesson_utils.mistakes.judge import run

CLINIC = course.named("debugging")
NOTEBOOK = nbformat.read(Path(__file__).parents[2] / "notebooks" / CLINIC.notebook, as_version=4)
ALL_BUGS = tuple(dict.fromkeys((*examined.BUGS, *tried.BUGS, "rotary pairs")))
SIZES = {"d_model": 8, "num_heads": 2, "num_layers": 2, "dtype": np.float64}
ELSEWHERE = {  # bugs of the catalogue that no patient has, and the model that can have them
    "scaled by d_k": {},
    "queries split without the swap": {},
    "norm left out": {},
    "rotary left out": {"positions": "rotary"},
    "values turned": {"positions": "rotary"},
    "gate and value swapped": {"activation": "swiglu"},
}
IDS = np.arange(9) % 7


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


# --- Instruments ------------------------------------------------------------------------------------------------------


RINGS = {  # by the property that the bug breaks, not by what was measured
    "": set(),
    "mask one too far": {"leak in time", "cache parity", "right twin"},
    "mask after softmax": {"leak in time", "cache parity", "right twin"},
    "mask from the first key": {"cache parity"},
    "norm over the sequence": {"leak in time", "cache parity", "right twin"},
    "positions forgotten": {"order", "right twin"},
    "cache counts calls": {"cache parity"},
    "backward without the row's sum": {"gradient"},
    "no scale": {"right twin"},
    "rotary pairs": {"right twin"},
}


@pytest.mark.parametrize("bug", RINGS)
def test_each_instrument_finds_what_it_is_for_whatever_the_symbols(bug):
    for seed in range(3):
        assert {name for name, finds in lab.found_untrained(bug, seed).items() if finds} == RINGS[bug]


@pytest.mark.slow
def test_every_bug_is_found_by_something():
    assert all(any(lab.found_untrained(bug).values()) for bug in tried.BUGS)


def test_a_leak_climbs_one_place_a_layer():
    ids = np.arange(10) % 7
    for layers in (1, 2, 3):
        model = broken.patient("mask one too far", 11, **SIZES | {"num_layers": layers})
        moved = broken.leak_in_time(model, ids, 6) > 1e-9
        assert moved.tolist() == [place >= 6 - layers for place in range(10)]


def test_the_notebooks_instruments_are_the_labs():
    source = {cell.id: cell.source for cell in NOTEBOOK.cells}
    names = {"np": np}
    exec(source["leaks"] + "\n\n" + source["order-parity"], names)
    model, rng = model_of("mask after softmax"), np.random.default_rng(2)
    ids, *others = rng.integers(11, size=(4, 9))
    shuffle = rng.permutation(9)
    ours = broken.order(model, ids, shuffle[None])[0]
    assert names["order"](model, ids, shuffle).max() == pytest.approx(ours)
    parity, across = (CLINIC.exercise(name).function() for name in ("cache_parity", "leak_across_rows"))
    np.testing.assert_array_equal(parity(model, ids, 4), broken.cache_parity(model, ids, 4))
    sick = model_of("norm over the batch")
    company = broken.leak_across_rows(sick, ids, np.stack(others))[-1]
    assert company > 0.1
    assert across(sick, ids, np.stack(others)).max() == pytest.approx(company)


@pytest.mark.parametrize("bug", [{}, {"starts_again": True}, {"counts_calls": True}, {"looks_ahead": True}])
def test_a_toy_is_found_out_by_the_instrument_that_is_meant(bug):
    ids = IDS[:7] % broken.VOCAB
    assert (broken.cache_parity(broken.Toy(0, **bug), ids, 3).max() > 1e-6) == bool(bug)
    assert broken.leak_across_rows(broken.Toy(0, **bug), ids, ids[None][:, ::-1]).max() < 1e-9
    for mixes in ({"mixes_rows": True}, {"counts_rows": True}):
        assert broken.leak_across_rows(broken.Toy(0, **mixes), ids, ids[None][:, ::-1]).max() > 1e-3


# --- The case file ----------------------------------------------------------------------------------------------------


def test_the_file_holds_every_patient_and_no_name():
    assert set(examined.stored()) == set(examined.ALL) == {examined.HEALTHY, *casefile.CASES}
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
    assert broken.loss_by_hand(lab.healthy(), lab.page()) < 2.5
    np.testing.assert_array_equal(lab.twin(16).forward(ids)[0], lab.twin(2).forward(ids)[0])  # one model's weights
    with pytest.raises(ValueError, match="choose 1 to 20"):
        lab.patient(21)


@pytest.mark.parametrize("bug", examined.ALL)
def test_the_gauges_on_file_are_those_of_the_weights_on_file(bug):
    """In order and in size; what is drawn at random is drawn anew."""
    filed, model = examined.stored()[bug], examined.trained(bug)
    found = filed._replace(**examined.gauges(model))
    assert casefile.alarms(found) == casefile.alarms(filed)
    assert found.by_hand == pytest.approx(filed.by_hand, rel=0.02)


def test_a_case_opens_for_those_that_have_a_diagnosis(capsys):
    assert lab.reveal({1: "", 2: ""}) is None
    assert "2 patients have no diagnosis yet" in capsys.readouterr().out
    shown = lab.reveal(dict.fromkeys(casefile.PATIENTS, "mask"))._repr_mimebundle_()
    links = re.findall(r'href="(https://github.com/[^"]+)"', shown["text/html"])
    assert (
        len(links)
        == shown["text/plain"].count("https://github.com/")
        == sum(bool(c.link) for c in casefile.CASES.values())
    )
    assert all(bug in shown["text/plain"] for bug in examined.BUGS)
    in_sight = re.sub(r"</summary>.*?</details>", "</summary></details>", shown["text/html"], flags=re.S)
    assert re.findall(r"<summary[^>]*>([^<]*)</summary>", in_sight) == [f"Patient {n}" for n in casefile.PATIENTS]
    assert all(bug not in in_sight for bug in examined.BUGS if bug)
    assert lab.reveal({3: "x", 4: ""}).patients == (3,)
    assert lab.reveal({8: "x", 9: "none"}, closed=(9, 10)).patients == (8,)
    assert "Not to be opened yet: 9. Section 4" in capsys.readouterr().out
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


def test_what_counts_as_solved_are_all_numbered_exercises():
    importlib.reload(progress)  # a new kernel
    headings = re.findall(r"### Exercise \d", "\n".join(cell.source for cell in NOTEBOOK.cells))
    assert len(CLINIC.solved_by) == len(headings) == 9
    assert {*CLINIC.exercises, *CLINIC.answers, "finds_bugs"} == set(CLINIC.solved_by)
    assert all(callable(getattr(check, name)) for name in CLINIC.solved_by)
    check.diagnosis({1: "mask"})
    assert "any of the 9 exercises" in str(progress.here("debugging"))
    check.diagnosis({n: answers.right(n)[0] for n in range(1, 11)})
    assert "1 of 9 exercises here" in str(progress.here("debugging"))


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


# --- A net, and ports -------------------------------------------------------------------------------------------------


def test_a_net_says_who_slips_through_and_not_which_patient_is_well():
    found = lab.caught({"nobody": lambda patient: False, "order": lambda patient: "4" in repr(patient)})
    assert found.shape == (21, 2)  # the healthy model, and the patients
    assert not found[:, 0].any()
    assert np.flatnonzero(found[:, 1]).tolist() == [4, 14]
    alt = lab.net({"all": lambda patient: True}).alt
    assert alt.startswith("19 of 19 bugs are caught, with 1 false alarm.")
    assert "Caught by no test: nobody. The healthy model sets off all." in alt
    assert "Caught by no test: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11" in lab.net({"nobody": lambda patient: False}).alt
    with pytest.raises(ValueError, match="there are no tests"):
        lab.net({})


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


@pytest.mark.parametrize("task", tried.TASKS)
def test_a_task_trains_and_is_judged(task):
    told, own = tried.run(task, "merged without the swap", steps=2)
    assert 0 <= told <= 1
    assert (own is None) == (task == "gather-k")


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
    rows = lab.diagnoses(triage.right).rows
    told = f"{capsys.readouterr().out} {rows}"
    assert "17 of 20 are sent to the right place; wrong are 17, 20, one of 9 and 10." in told
    assert ("the cache", "2, 16") in rows
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
def test_every_right_answer_cures_the_model_that_the_broken_one_makes_ill(exercise):
    part = exercise.name.removeprefix("mend_")
    ill = lab.readings(part, exercise.program(exercise.broken))
    assert {name for name, (_, alarm) in ill.items() if alarm} == TREATED[part]
    others = (lesson.exercise(name) for lesson in course.LESSONS if lesson is not CLINIC for name in lesson.exercises)
    base = next((other for other in others if other.mistakes == exercise.mistakes), exercise)  # that it was taken from
    for function in (exercise.function(), *(exercise.program({"": body}) for body in bodies(RIGHT, base))):
        assert not any(alarm for _, alarm in lab.readings(part, function).values())
    assert str(lab.treat(part, exercise.function())).count("X") == len(TREATED[part]) + 1  # and what it means


# --- First states -----------------------------------------------------------------------------------------------------


def test_the_figures_first_states_tell_nothing_of_what_is_asked():
    matrix_figure, chatbot = lab.matrix_lab(), lab.symptoms_lab()
    assert "copy" not in matrix_figure.picture.alt
    assert "Found by: (healthy): nothing; merged" in matrix_figure.picture.alt  # a row to compare with
    assert "(healthy) 1.00, merged" in matrix_figure.set(task="gather-k").alt
    assert "1.00" in matrix_figure.set(task="copy").alt
    assert "4.28" not in chatbot.picture.alt
    perplexities = [of["perplexity"] or np.inf for of in lab.symptoms().values()]
    assert perplexities != sorted(perplexities)
    assert "no causal mask 4.28" in chatbot.set(others=True).alt
