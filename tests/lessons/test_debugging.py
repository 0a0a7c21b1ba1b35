"""What notebook 10 breaks, measures and asks for."""

import copy
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from learners import cell
from right_answers import RIGHT, bodies

from lesson_utils.classroom import course, progress
from lesson_utils.exercises import check
from lesson_utils.lessons.attention_bugs import WrongHeads
from lesson_utils.lessons.debugging import answers, broken, casefile, examined, exercises, heart, lab
from lesson_utils.maths import models, training
from lesson_utils.mistakes.judge import run

CLINIC = course.named("debugging")
NOTEBOOK = nbformat.read(Path(__file__).parents[2] / "notebooks" / CLINIC.notebook, as_version=4)
ALL_BUGS = tuple(dict.fromkeys((*examined.BUGS, *heart.BUGS)))
SIZES = {"d_model": 8, "num_heads": 2, "num_layers": 2, "dtype": np.float64}
ELSEWHERE = {  # bugs of the catalogue that no patient has, and the model that can have them
    "scaled by d_k": {},
    "queries split without the swap": {},
    "norm left out": {},
    "rotary left out": {"positions": "rotary"},
    "rotary pairs": {"positions": "rotary"},
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
    "norm over the sequence": {"leak in time", "cache parity", "right twin"},
    "positions forgotten": {"order", "right twin"},
    "cache counts calls": {"cache parity"},
    "backward without the row's sum": {"gradient"},
    "no scale": {"right twin"},
}


@pytest.mark.parametrize("bug", RINGS)
def test_each_instrument_finds_what_it_is_for_whatever_the_symbols(bug):
    for seed in range(3):
        assert {name for name, finds in lab.found_untrained(bug, seed).items() if finds} == RINGS[bug]


@pytest.mark.slow
def test_every_bug_is_found_by_something():
    assert all(any(lab.found_untrained(bug).values()) for bug in heart.BUGS)


def test_a_leak_climbs_one_place_a_layer():
    ids = np.arange(10) % 7
    for layers in (1, 2, 3):
        model = broken.patient("mask one too far", 11, **SIZES | {"num_layers": layers})
        moved = broken.leak_in_time(model, ids, 6) > 1e-9
        assert moved.tolist() == [place >= 6 - layers for place in range(10)]


def test_the_notebooks_instruments_are_the_labs():
    names = notebooks_instruments()
    model, rng = model_of("mask after softmax"), np.random.default_rng(2)
    ids, *others = rng.integers(11, size=(4, 9))
    shuffle = rng.permutation(9)
    np.testing.assert_allclose(names["order"](model, ids, shuffle), broken.order(model, ids, shuffle))
    parity = CLINIC.exercise("cache_parity").function()
    np.testing.assert_array_equal(parity(model, ids, 4), broken.cache_parity(model, ids, 4))
    sick, company = model_of("norm over the batch"), np.stack(others)
    across = names["leak_across_rows"](sick, ids, company)
    assert across.max() > 0.1
    np.testing.assert_allclose(across, broken.leak_across_rows(sick, ids, company))


def notebooks_instruments():
    """The functions of the notebook's cells."""
    source, names = {cell.id: cell.source for cell in NOTEBOOK.cells}, {"np": np}
    exec("\n\n".join(source[name] for name in ("leaks", "across-code", "order-parity")), names)
    return names


@pytest.mark.parametrize("bug", [{}, {"starts_again": True}, {"counts_calls": True}, {"looks_ahead": True}])
def test_a_toy_is_found_out_by_the_instrument_that_is_meant(bug):
    ids = IDS[:7] % broken.VOCAB
    assert (broken.cache_parity(broken.Toy(0, **bug), ids, 3).max() > 1e-6) == bool(bug)


# --- The case file ----------------------------------------------------------------------------------------------------


def test_the_file_holds_every_patient_and_no_name():
    assert set(examined.stored()) == set(examined.ALL) == {examined.HEALTHY, *casefile.CASES}
    assert len(examined.BUGS) == 12
    assert examined.STORED.stat().st_size < 12_000
    assert examined.WEIGHTS.stat().st_size < 460_000  # of 12 models
    figure = lab.case_lab(*broken.INSTRUMENTS)
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
    assert broken.loss_by_hand(examined.trained(examined.HEALTHY), examined.page()) < 2.5
    with pytest.raises(ValueError, match="choose 1 to 12"):
        lab.patient(21)


@pytest.mark.parametrize("bug", examined.ALL)
def test_the_gauges_on_file_are_those_of_the_weights_on_file(bug):
    """In order and in size; what is drawn at random is drawn anew."""
    filed, model = examined.stored()[bug], examined.trained(bug)
    found = filed._replace(**examined.gauges(model))
    assert casefile.alarms(found) == casefile.alarms(filed)
    assert found.by_hand == pytest.approx(filed.by_hand, rel=0.02)


def test_readme_opens_the_first_patient():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    cell_, patient = re.search(r"10_debugging\.html#([\w-]+)\?patient=(\d+)\)", readme).groups()
    assert "lab.case_lab(" in next(part.source for part in NOTEBOOK.cells if part.id == cell_)
    assert int(patient) == 1
    assert casefile.alarms(casefile.of(1)).count(True) > 2  # much to be seen


def test_the_figure_reads_with_the_functions_that_it_is_given():
    blind = [lambda model, ids, *rest: np.zeros(len(ids))] * 4
    ours, none = (lab.case_lab(*instruments).set(patient=1).alt for instruments in (broken.INSTRUMENTS, blind))
    assert "curve, time, cache, ahead are unlike" in ours
    assert "leak in time 0; leak across rows 0; cache parity 0; order 0" in none
    assert "curve, order, ahead are unlike" in none


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
    assert lab.reveal({6: "x", 7: "none"}, closed=(7, 8)).patients == (6,)
    assert "Not to be opened yet: 7. Section 4" in capsys.readouterr().out
    with pytest.raises(ValueError, match="patient=21 is not in the file"):
        lab.reveal({21: ""})


# --- Diagnosis --------------------------------------------------------------------------------------------------------


def test_what_is_right_passes_and_nothing_is_told_to_who_says_nothing():
    core = range(1, casefile.CORE + 1)
    assert check.diagnosis({n: answers.right(n)[0] for n in core}).passed is True
    assert check.diagnosis({n: answers.right(n)[-1].upper() + " " for n in core}).passed is True
    untouched = check.diagnosis(dict.fromkeys(core, ""))
    assert untouched.passed is None
    part = check.diagnosis({2: "heads", 3: ""})
    assert part.passed is False
    assert part.message == "1 of 2 patients is named rightly: 2. 1 has no diagnosis yet."
    assert check.diagnosis({3: "positions", 11: "softmax"}).passed is True  # the line that is wrong counts as well


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
    """Patient 11 has a wrong mask that rings the same gauges as patient 6, and takes weight away."""
    assert answers.reading(6) == answers.reading(11)
    assert "here the weights of one query sum to 3" in answers.against(6, "mask")
    assert max(casefile.of(6).sums) == pytest.approx(2, abs=0.1)
    assert max(casefile.of(11).sums) < 1
    figure = lab.case_lab(*broken.INSTRUMENTS)
    sums = {n: re.search(r"sums of weights ([\d.]+) to ([\d.]+)", figure.set(patient=n).alt).groups() for n in (6, 11)}
    assert float(sums[6][1]) > 2
    assert float(sums[11][1]) == 1


def test_what_counts_as_solved_are_all_numbered_exercises():
    importlib.reload(progress)  # a new kernel
    headings = re.findall(r"### Exercise \d", "\n".join(cell.source for cell in NOTEBOOK.cells))
    assert len(CLINIC.solved_by) == len(headings) == 5
    assert {*CLINIC.exercises, *CLINIC.answers, "finds_bugs"} == set(CLINIC.solved_by)
    assert all(callable(getattr(check, name)) for name in CLINIC.solved_by)
    check.diagnosis({2: "mask"})
    assert "any of the 5 exercises" in str(progress.here("debugging"))
    check.diagnosis({n: answers.right(n)[0] for n in range(1, 9)})
    assert "1 of 5 exercises here" in str(progress.here("debugging"))


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


# --- Ports ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first"), [("A", "attention 1"), ("B", "feed-forward 1"), ("C", "attention 3"), ("D", "feed-forward 2")]
)
def test_a_port_parts_from_the_original_where_its_bug_is(name, first):
    ids = np.random.default_rng(0).integers(50, size=(2, 9))
    right, port = (lab.streams(lab.port(which), ids) for which in ("original", name))
    assert next(part for part in right if np.abs(right[part] - port[part]).max() > 1e-5) == first
    logits, _ = lab.port(name).forward(ids)
    np.testing.assert_allclose(port["logits"], logits, atol=1e-5)
    with pytest.raises(ValueError, match="port='E' is not known"):
        lab.port("E")


# --- One batch by heart -----------------------------------------------------------------------------------------------


def test_by_heart_is_what_training_gives():
    names = {"np": np, "lab": lab, "rng": np.random.default_rng(0)}
    exec(next(part.source for part in NOTEBOOK.cells if part.id == "heart").partition("\n\n\nrows =")[0], names)
    for bug in ("", "cache counts calls"):
        now = heart.learn(bug, 3, heart.random_rows(3))
        np.testing.assert_allclose(now, heart.stored()["random"][bug][3], rtol=0.1, atol=2e-3)
        found = names["by_heart"](broken.patient(bug, heart.VOCAB, 3), heart.random_rows(3))
        np.testing.assert_allclose(found, now[1:], atol=1e-4)
    for batch, by_bug in heart.stored().items():
        assert set(by_bug) == {"", *heart.BUGS}
        assert all(len(starts) == heart.STARTS[batch] for starts in by_bug.values())


def test_by_heart_is_a_test_of_the_loop_around_the_model():
    """A gradient of the wrong sign, or one that is never set to 0, does not pass; frozen attention does."""
    rows = heart.random_rows(0)

    def ends_at(change):
        model = broken.patient("", heart.VOCAB, 0)
        right, before = model.loss_and_grad, dict.fromkeys(model.params(), 0)

        def wrong(batch, rng=None):
            loss = right(batch, rng)
            for name, param in model.params().items():
                param.grad[...] = before[name] = change(name, param.grad, before[name])
            return loss

        model.loss_and_grad = wrong
        batch = rows[:, :-1], rows[:, 1:]
        return training.fit(model, lambda rng: batch, 150, lr=1e-2, progress=False).losses[-1]

    assert ends_at(lambda name, grad, before: -grad) > 10
    assert ends_at(lambda name, grad, before: grad + before) > 2
    assert ends_at(lambda name, grad, before: 0 * grad if "attention" in name else grad.copy()) < heart.LEARNT


# --- Exercises --------------------------------------------------------------------------------------------------------


def test_a_broken_stub_runs_is_told_by_its_symptom_and_can_be_mended():
    exercise, names = exercises.MEND, exercises.MEND.names()
    exec(exercise.stub, names)
    untouched = run(exercise, names[exercise.function_name])
    assert (untouched.passed, untouched.message) == (None, exercise.symptom)
    exec(exercise.solution, names)
    assert run(exercise, names[exercise.function_name]).passed is True
    assert exercise.body(exercise.broken) not in exercise.symptom


SOLUTION = CLINIC.exercise("cache_parity").solution
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
        (CACHE, "is the second part of the pair that `forward` returned, and not the cache"),
        (
            SOLUTION.replace("whole = model.forward(ids[None])[0][0]", "whole = model.forward(ids[None])[1]"),
            "computes with",
        ),
        (SOLUTION.replace("model.forward(ids[None])", "model.forward(ids)"), "write `model.forward(ids[None])`"),
    ],
)
def test_who_takes_the_wrong_part_of_the_pair_is_told_so(source, says):
    exercise = CLINIC.exercise("cache_parity")
    result = run(exercise, cell(source, exercise.names())["my_cache_parity"])
    assert result.passed is False
    assert says in result.message
    assert "(Explained)" not in result.message
    assert "None" not in result.message.replace("[None]", "").replace("[None,", "")


def test_who_changes_the_lines_in_vain_is_told_of_the_mistake():
    exercise = exercises.MEND
    changed = exercise.stub.replace("return j <= i", "return i >= j")
    assert changed != exercise.stub
    result = run(exercise, cell(changed, exercise.names())[exercise.function_name])
    assert (result.passed, result.misconception) == (False, "queries counted from the start")
    reworded = exercise.stub.replace("    return", "    # look here\n    return")  # the same lines
    assert run(exercise, cell(reworded, exercise.names())[exercise.function_name]).message == exercise.symptom


def test_an_input_shows_the_bug_or_does_not():
    shows, hides = (check.mend_mask.shows(*sizes) for sizes in ((1, 4), (5, 5)))
    assert (shows.passed, hides.passed) == (True, False)
    assert "shows the bug" in shows.message
    assert "3 of 4 entries are wrong" in shows.message
    assert "The bug hides" in hides.message
    assert check.mend_mask.shows(...).passed is None
    assert check.mend_mask.shows(3).message == "It takes T_q, T_k; you gave 1."
    with pytest.raises(ValueError, match="cache_parity has no bug of its own"):
        check.cache_parity.shows(1)


def test_every_right_answer_cures_the_model_that_the_broken_one_makes_ill():
    def parity_by(function):
        return broken.cache_parity(lab.gpt_by(function), IDS, 4).max()

    assert parity_by(exercises.MEND.program(exercises.MEND.broken)) > 0.1
    for body in bodies(RIGHT, course.exercises()["causal_mask"]):
        assert parity_by(exercises.MEND.program({"": body})) < 1e-5


# --- In PyTorch -------------------------------------------------------------------------------------------------------


def torch_instruments(torch):
    """The functions that the notebook shows as text; `torch` is PyTorch, or what stands in for it."""
    names = {"torch": torch}
    for text in (part.source for part in NOTEBOOK.cells if part.id in ("torch-instruments", "torch-streams")):
        exec(re.search(r"```python\n(?:import torch\n)?(.*?)```", text, re.S)[1], names)
    return names


class InNumPy:
    """What those functions need of PyTorch, in NumPy, so that their text runs where PyTorch is missing."""

    class Tensor(np.ndarray):
        clone = np.ndarray.copy

        def abs(self):
            return np.abs(self)

        def amax(self, axis):
            return self.max(axis=axis)

    @staticmethod
    def no_grad():
        return lambda function: function

    @staticmethod
    def cat(tensors):
        return np.concatenate(tensors).view(InNumPy.Tensor)

    @staticmethod
    def from_numpy(x):
        return np.asarray(x).view(InNumPy.Tensor)


class LikeHuggingFace:
    """A patient called as the models of transformers are: tensors go in, an output with its logits comes back."""

    def __init__(self, model, torch):
        self.model, self.torch = model, torch

    def __call__(self, ids, past_key_values=None, use_cache=False, attention_mask=None):
        past = past_key_values if past_key_values is not None else self.model.new_past() if use_cache else None
        T = ids.shape[1]
        mask = None if attention_mask is None else np.ones((T, T), bool)
        logits, _ = self.model.forward(np.array(ids), past, mask=mask)
        return SimpleNamespace(logits=self.torch.from_numpy(logits), past_key_values=past)


def read_in_torch(torch, bug):
    """What the shown functions read on a patient, and what those of the library read, as pairs."""
    model, rng, shown = model_of(bug), np.random.default_rng(4), torch_instruments(torch)
    ids, *others = rng.integers(11, size=(4, 9))
    others, shuffle = np.array(others), rng.permutation(9)
    outside = LikeHuggingFace(model, torch)
    run = lambda ids: outside(ids).logits  # noqa: E731
    seeing_all = lambda ids: outside(ids, attention_mask=True).logits  # noqa: E731
    row, rest = torch.from_numpy(ids), torch.from_numpy(others)
    changed = ids.copy()
    changed[6] = (ids[6] + 1) % 11
    moved = np.abs(model.forward(changed[None])[0] - model.forward(ids[None])[0])[0].max(axis=-1)
    return {
        "leak in time": (shown["leak_in_time"](run, row, 6, 11), moved),
        "leak across rows": (shown["leak_across_rows"](run, row, rest), broken.leak_across_rows(model, ids, others)),
        "order": (
            shown["order"](seeing_all, row, torch.from_numpy(shuffle)),
            broken.order(model, ids, shuffle),
        ),
        "cache parity": (shown["cache_parity"](outside, row, 4), broken.cache_parity(model, ids, 4)),
    }


SHOWN_ON = ("", "no mask", "norm over the batch", "positions forgotten", "positions start again", "cache counts calls")


@pytest.mark.parametrize("bug", SHOWN_ON)
def test_the_text_in_pytorch_reads_what_the_instruments_read(bug):
    for name, (found, expected) in read_in_torch(InNumPy, bug).items():
        np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=name)


def pytorch():
    return pytest.importorskip("torch", reason="compares with PyTorch: python course.py test --parity")


@pytest.mark.parity
@pytest.mark.parametrize("bug", SHOWN_ON)
def test_in_pytorch_they_read_the_same(bug):
    for name, (found, expected) in read_in_torch(pytorch(), bug).items():
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-9, err_msg=name)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("wrong", "rings"),
    [
        ("", set()),
        ("mask inverted", {"leak in time"}),  # in torch.nn, True means hidden
        ("no mask", {"leak in time"}),
        ("batch second", {"leak across rows"}),  # batch_first left out
        ("no positions", {"order"}),
        ("dropout on", {"leak in time", "leak across rows"}),  # model.eval() left out
    ],
)
def test_in_pytorch_they_find_what_is_wrong_with_a_model_of_torch_nn(wrong, rings):
    torch = pytorch()
    nn, T, vocab, d_model = torch.nn, 9, 11, 16
    torch.manual_seed(0)
    drop = 0.5 if wrong == "dropout on" else 0.0
    table, places, head = nn.Embedding(vocab, d_model), torch.randn(T, d_model), nn.Linear(d_model, vocab)
    layer = nn.TransformerEncoderLayer(d_model, 4, 32, drop, batch_first=wrong != "batch second", norm_first=True)
    stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    stack.train(wrong == "dropout on")
    future = torch.ones(T, T, dtype=torch.bool).triu(1)  # True = may not attend

    def run(ids, seeing_all=False):
        x = table(ids) if wrong == "no positions" else table(ids) + places
        hidden = {"mask inverted": future.T, "no mask": None}.get(wrong, future)
        if wrong == "batch second":  # the layer takes the rows for time
            hidden = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
        return head(stack(x, mask=None if seeing_all else hidden))

    shown = torch_instruments(torch)
    ids, *others = torch.randint(vocab, (4, T), generator=torch.Generator().manual_seed(1))
    found = {
        "leak in time": shown["leak_in_time"](run, ids, 6, vocab)[:6].max() > 1e-4,
        "leak across rows": shown["leak_across_rows"](run, ids, torch.stack(others)).max() > 1e-4,
        "order": shown["order"](lambda ids: run(ids, True), ids, torch.arange(T).roll(4)).max() < 1e-4,
    }
    assert {name for name, alarm in found.items() if alarm} == rings


@pytest.mark.parity
@pytest.mark.parametrize("wrong", ["", "positions start again", "mask from the first key"])
def test_in_pytorch_cache_parity_finds_what_is_wrong_with_a_cache(wrong):
    """A module that is called as those of transformers are, with one layer of attention."""
    torch = pytorch()
    nn, F, vocab, d_model = torch.nn, torch.nn.functional, 11, 16

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(vocab, d_model), nn.Embedding(20, d_model)
            self.qkv, self.head = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, vocab)

        def forward(self, ids, past_key_values=None, use_cache=False):
            past = past_key_values[0].shape[1] if past_key_values else 0
            T = ids.shape[1]
            first = 0 if wrong == "positions start again" else past
            x = self.table(ids) + self.places(torch.arange(first, first + T))
            Q, K, V = self.qkv(x).chunk(3, dim=-1)
            if past_key_values:
                K, V = (torch.cat([old, new], dim=1) for old, new in zip(past_key_values, (K, V), strict=True))
            if wrong == "mask from the first key":
                y = F.scaled_dot_product_attention(Q, K, V, is_causal=True)
            else:
                seen = torch.ones(T, past + T, dtype=torch.bool).tril(past)
                y = F.scaled_dot_product_attention(Q, K, V, attn_mask=seen)
            return SimpleNamespace(logits=self.head(x + y), past_key_values=(K, V) if use_cache else None)

    torch.manual_seed(0)
    model, ids = Small().eval(), torch.arange(9) % vocab
    shown = torch_instruments(torch)
    moved = shown["cache_parity"](model, ids, 4)
    assert moved.shape == (9,)
    assert moved[:4].max() < 1e-5  # the prompt itself is right in each of them
    assert (moved.max() > 1e-3) == bool(wrong)
    run = lambda ids: model(ids).logits  # noqa: E731
    assert shown["leak_in_time"](run, ids, 6, vocab)[:6].max() < 1e-5
    assert shown["leak_across_rows"](run, ids, ids.flip(0)[None]).max() < 1e-5


@pytest.mark.parity
def test_in_pytorch_streams_lead_to_the_layer_that_differs():
    torch = pytorch()
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
    original = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    port = copy.deepcopy(original)
    with torch.no_grad():
        port.layers[1].linear1.weight.copy_(port.layers[1].linear1.weight.bfloat16().float())
    shown, x = torch_instruments(torch), torch.randn(2, 5, 16)
    right, found = (shown["streams"](model, x, dict(model.layers.named_children())) for model in (original, port))
    assert list(right) == ["0", "1", "2"]
    agree = CLINIC.exercise("first_difference").function()
    assert agree(*([stream.numpy() for stream in of.values()] for of in (right, found))) == 1
    assert not any(len(part._forward_hooks) for part in port.layers)  # none is left behind
