"""What notebook 12's labs compute, beside the library's own models."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models

from lesson_utils.classroom import course
from lesson_utils.exercises import check
from lesson_utils.lessons.llama import another, grown, lab, swapped
from lesson_utils.lessons.real_model import grown as two_layers
from lesson_utils.lessons.real_model import measures
from lesson_utils.maths import attention, pretrained
from lesson_utils.maths.models.experiments import changed

EXERCISES = course.exercises()
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "12_llama.ipynb"


@pytest.fixture(scope="module")
def cells():
    """The notebook's own functions, with our solutions in place of what a learner writes."""
    source = {cell["id"]: "".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]}
    names = {"np": np, "attention": attention, "check": check, "lab": lab, "partial": __import__("functools").partial}
    for name in ("rms_norm", "swiglu", "grouped_attention", "llama_block"):
        names[EXERCISES[name].function_name] = EXERCISES[name].function()
    names |= {"rms_norm": names["my_rms_norm"], "swiglu": names["my_swiglu"], "grouped": names["my_grouped_attention"]}
    for id_ in ("read", "parts-2017"):
        exec(source[id_], names)
    exec(source["of-2017"].partition("\nfor name")[0], names)
    return names


@pytest.mark.parametrize("name", swapped.SWAPS)
def test_the_learners_block_computes_what_the_library_does_with_each_part_of_2017(cells, name):
    model, ids = grown.tiny_llama(), np.random.default_rng(1).integers(3, len(grown.LETTERS), size=9)
    for param in model.params().values():  # as training leaves them
        param.value = param.value * 1.3
    read, parts = cells["read"], cells["TODAY"] | cells["OF_2017"][name]
    found = np.array(list(read(grown.weights_of(model), ids.tolist(), **parts)))
    whole = model.forward(ids[None])[0][0]
    with changed(swapped.SWAPS[name](model)):
        np.testing.assert_allclose(found, model.forward(ids[None])[0][0], rtol=2e-3, atol=2e-4)
    moved = np.abs(found - whole).max()
    assert (moved < 1e-4) == (name in (swapped.AS_IT_IS, "own keys")), moved
    np.testing.assert_array_equal(model.forward(ids[None])[0][0], whole)  # the model is what it was


def test_taking_the_mean_out_is_layer_norm_and_the_main_direction_is_found():
    ids = np.random.default_rng(3).integers(3, len(grown.LETTERS), size=13)
    p = SimpleNamespace(model=grown.tiny_llama(), tokenizer=SimpleNamespace(encode=lambda text: ids.tolist()))
    planted = np.eye(48)[5]  # most of each token
    p.model.tokens.embedding.table.value += 300 * planted.astype(np.float32)
    out, (direction, share) = swapped.removed(p), swapped.main_direction(p)
    with changed(swapped.SWAPS["layer norm"](p.model)):
        assert out.mean == pytest.approx(measures.losses(p.model, ids[None]).mean(), abs=1e-5)
    assert abs(direction @ planted) > 0.98
    assert out.share == share > 0.9
    assert out.main == swapped.without(p, -direction)
    assert len({round(nats, 4) for nats in (out.mean, out.main, *out.random)}) == 12
    one, unread = swapped.gates(p)
    with changed(swapped.SWAPS["ReLU as the gate"](p.model)[1:]):
        assert one[1] == pytest.approx(measures.losses(p.model, ids[None]).mean(), abs=1e-6)
    assert one[0] != one[1]
    assert unread not in one


def test_all_that_is_compared_has_as_many_parameters():
    ways = (*lab.LADDER, *lab.BACK, (*lab.ALL, lab.SMALL))
    counts = [lab.small_gpt(changes, 106).num_params() for changes in ways]
    counts.append(lab.small_gpt(lab.ALL, 106, shared=1).num_params())
    assert max(counts) < 1.02 * min(counts)
    with pytest.raises(ValueError, match="there is no change 'rotation'"):
        grown.config_of(("rotation",), 106)


def test_changes_are_what_they_say():
    for changes in (*lab.LADDER, *lab.BACK):
        model = lab.small_gpt(changes, 20)
        config, feed = model.config, model.stack.blocks[0].feed_forward.inner
        built = (config.norm == "pre", config.norm_kind == "rms", config.activation == "swiglu")
        built += (config.positions == "rotary", config.num_kv_heads == 2, feed.wide.b is None)
        assert built == tuple(name in changes for name in lab.ALL)
    model = lab.small_gpt((*lab.BACK[1], lab.NO_BETA), 7)
    model.loss_and_grad((np.arange(6)[None], np.arange(1, 7)[None]))
    grads = {name: np.abs(param.grad).max() for name, param in model.params().items() if "norm." in name}
    assert len(grads) == 10
    assert all((grad > 0) == name.endswith("gamma") for name, grad in grads.items())
    small = lab.small_gpt((*lab.ALL, lab.SMALL), 106)
    assert 0.019 < small.tokens.embedding.table.value.std() < 0.021
    assert small.tokens.embedding.scale == 1


def test_bits(rng):
    model, ids = lab.small_gpt(lab.ALL, 7), rng.integers(7, size=70 * lab.LENGTH + 5)
    starts = range(0, 70 * lab.LENGTH, lab.LENGTH)
    windows = [(ids[None, n : n + lab.LENGTH], ids[None, n + 1 : n + 1 + lab.LENGTH]) for n in starts]
    assert lab.bits(model, ids) == pytest.approx(np.mean([*map(model.loss, windows)]) / np.log(2), rel=1e-5)


def test_words_are_asked_with_a_sign_behind():
    assert lab.asked("alpaca")[-1] == grown.SIGN
    with pytest.raises(ValueError, match="'llama' has 5 letters"):
        lab.asked("llama")
    given, wanted = lab.said_backwards(np.random.default_rng(0), 3)
    word, answer = given[:, : grown.WORD], wanted[:, grown.WORD :]
    np.testing.assert_array_equal(word[:, ::-1], answer)


def test_a_large_cache_in_bytes():
    assert lab.cache_bytes(8192, 0.25) == 2**30  # Llama 3 8B, at 8,192 tokens
    assert lab.cache_bytes(1, 1.0) == 2 * 32 * 32 * 128 * 2


def test_figures_tell_what_they_show():
    back = np.full((6, 10), 3.0)
    back[3] += 0.2
    longer = np.concatenate([back[:1], back[:4], back[:1]]) - 0.5
    longer[3] += 0.1
    alt = lab.ladder_plot(np.full((7, 10), 3.0), back, longer).alt
    assert "250 steps: rotary 1,000 steps: SwiGLU, rotary" in alt
    assert "after 1,000 steps: norm first +0.000 (+0.000 to +0.000)" in alt
    figure = lab.norm_lab.example()
    assert "RMS norm gives the same" in figure.picture.alt
    alt = figure.set(offset=3.0).alt
    assert "layer norm gives the same" in alt
    assert "RMS norm moves" in alt
    assert all(choice.now in lab.two_blocks().alt for choice in lab.CHOICES)
    assert "four query heads share a pair" in lab.four_ways().alt


# --- Another model is asked -------------------------------------------------------------------------------------------


def test_an_untrained_model_does_nothing_of_what_trained_ones_do():
    answers = lab.ask(two_layers.new_model(2))
    assert answers.heads == 4
    assert not any(row.holds for row in another.rows(answers))


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_models_of_all_kinds_are_asked(tmp_path, kind):
    folder = tiny_models.folder(kind, tmp_path)
    begin = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|im_start|>"}}]}
    (folder / "tokenizer.json").write_text(json.dumps(tiny_models.words() | {"post_processor": begin}))
    real = pretrained.load(folder, progress=False)
    answers = lab.ask(real)
    assert np.isfinite(answers).all()
    assert answers.heads == tiny_models.LAYERS * tiny_models.HEADS
    assert answers == lab.ask(real)
    assert len(lab.compared(answers).rows) == 5


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_patched_run_that_takes_nothing_out_is_a_plain_one(tmp_path, kind):
    """With the biases of queries, keys and values, too."""
    model = pretrained.load(tiny_models.folder(kind, tmp_path), progress=False).model
    ids = np.random.default_rng(1).integers(0, tiny_models.V, (2, 9))

    def whole(x, written, norm, W_Q, W_K, W_V):
        return norm(x) @ W_Q, norm(x) @ W_K, norm(x) @ W_V

    logits = measures.run_patched(model, ids, (0, 1), whole, {1: [0, 2]})[0]
    np.testing.assert_allclose(logits, model.forward(ids)[0], atol=1e-4)


def test_a_finding_holds_where_it_is_clearly_above_its_control():
    answers = another.Answers(0, 8, 0.5, 0.3, 0.09, 0.0, 0.2, 0.1, 0.5, 0.2)
    assert [row.holds for row in another.rows(answers)] == [False, False, False, False, True]
    assert [row.holds for row in another.rows(another.SMOLLM2)] == [True] * 5
