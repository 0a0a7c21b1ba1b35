"""The labs of notebook 05: the ledger is what the layers are, switches leave no trace, the figures hold."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from lesson_utils import attention, layers, ops
from lesson_utils.lessons.full_block import lab as full_block
from lesson_utils.models import GPT, Encoder, EncoderConfig, GPTConfig, Transformer, TransformerConfig

SIZES = {"vocab": 13, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 20}


def small(**changes):
    return Transformer(TransformerConfig(**(SIZES | changes)), np.random.default_rng(0))


# --- The ledger -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize("shared", [True, False])
def test_the_count_is_that_of_the_layers(norm, shared):
    model = small(norm=norm, shared=shared)
    assert full_block.count_parameters(model.config) == model.num_params()


def test_different_vocabularies_are_counted():
    model = small(target_vocab=17)
    assert full_block.count_parameters(model.config) == model.num_params()


def test_changes_are_counted():
    config = TransformerConfig(**SIZES)
    assert full_block.count(config, 4, num_layers=3) == full_block.count(replace(config, num_layers=3), 4)


def test_base_model_and_the_papers_rows():
    assert full_block.count_parameters(TransformerConfig.base()) == 63_045_632
    for changes, millions in full_block.PAPER_ROWS.values():
        for vocab, rounds_to in zip(full_block.vocabulary_for(changes, millions), (-0.5, 0.5), strict=True):
            sizes = [full_block.count_parameters(TransformerConfig.base(v), **changes) for v in (1, 2)]
            exact = sizes[0] + (vocab - 1) * (sizes[1] - sizes[0])
            assert exact == pytest.approx(1e6 * (millions + rounds_to))


def test_ledger_of_a_whole_model_agrees_with_the_formula():
    model, T = small(shared=True), 5
    ids = np.random.default_rng(1).integers(3, 13, size=(1, T))
    book = full_block.Ledger()
    memory = book.run("source", model.source.forward, ids)
    for block in model.encoder.blocks:
        memory = book.run("encoder layer", block.forward, memory)
    memory = book.run("norm", model.encoder.norm.forward, memory)
    x = book.run("target", model.target.forward, ids)
    for block in model.blocks:
        x = book.run("decoder layer", block.forward, x, memory, attention.causal_mask(T))
    logits = book.run("output", model.target.embedding.logits_forward, book.run("norm", model.norm.forward, x))
    np.testing.assert_allclose(logits, model.forward(ids, ids)[0], atol=1e-5)
    assert book.parameters == model.num_params()
    assert book.flops == sum(step.flops for step in full_block.count(model.config, T).values())
    assert book.note("softmax", logits) is logits
    assert book.steps[-1] == ("softmax", (1, T, 13), 0, 0)


def test_ledger_counts_pieces_like_the_layer_and_shows_itself():
    layer = layers.DecoderLayer(layers.LayerConfig(d_model=12, num_heads=3, d_ff=20), np.random.default_rng(0))
    x, memory = np.ones((2, 5, 12), np.float32), np.ones((2, 7, 12), np.float32)
    whole, pieces = full_block.Ledger(), full_block.Ledger()
    whole.run("layer", layer.forward, x, memory)
    pieces.run("self", layer.attention.inner.forward, x)
    pieces.run("cross", layer.cross.forward, x, memory)
    pieces.run("feed", layer.feed_forward.inner.forward, x)
    assert pieces.flops == whole.flops
    shown = pieces._repr_mimebundle_()
    assert f"{pieces.flops:,}" in shown["text/plain"]
    assert shown["text/html"].count("<tr>") == 5


# --- Before training ------------------------------------------------------------------------------------------------


def test_at_start():
    for norm in ("pre", "post"):
        few, many = (full_block.at_start(norm, depth, 16, 4, 32, seeds=4) for depth in (2, 24))
        assert len(many.scales) == 25
        assert len(many.gradients) == 24
        if norm == "post":
            np.testing.assert_allclose(many.scales[1:], 1, atol=0.01)
            assert 0.5 < many.gradients[-1] / few.gradients[-1] < 2
        else:
            assert many.scales[-1] > 2.5 * few.scales[-1]
            assert 2 < few.gradients[-1] / many.gradients[-1] < 5  # √12 = 3.5
    assert full_block.stream_without_norm(24) > 1e4


@pytest.mark.slow
def test_the_lab_at_every_width_shows_what_the_text_says():
    for d, h, ratio in itertools.product(full_block.WIDTHS, full_block.HEADS, full_block.RATIOS):
        pre, post = ({n: full_block.at_start(norm, n, d, h, ratio * d) for n in (2, 48)} for norm in ("pre", "post"))
        assert 3.8 < pre[2].gradients[-1] / pre[48].gradients[-1] < 5.5
        assert 0.6 < post[2].gradients[-1] / post[48].gradients[-1] < 1.6


def test_first_layers_in_post_norm():
    """Not starved at 12 layers; in a narrow and deep stack mostly, with a wide spread."""
    assert 0.5 < full_block.first_to_last("post", 12, 16)[4] < 2
    deep = full_block.first_to_last("post", 48, 16)
    assert deep[4] < 0.6
    assert deep[-1] > 5 * deep[0]
    assert full_block.first_to_last("pre", 12, 16)[0] > 1


def test_tokens_get_alike_without_the_way_around():
    with_way, without_way = (full_block.token_similarity(way) for way in (True, False))
    assert abs(with_way[0]) < 0.05
    assert without_way[4] > 0.95 > 0.6 > with_way[4]
    assert f"{without_way[2]:.2f} without" in full_block.similarity_plot(with_way, without_way).alt


def test_training_plot_names_who_learns():
    model = GPT(GPTConfig(vocab=11, d_model=8, num_heads=2, num_layers=1), np.random.default_rng(0))
    good, bad = full_block.Accuracy(model), full_block.Accuracy(model)
    good(20, 0.0, None)
    assert good.steps == [0, 20]
    good.values[-1] = 0.97
    assert full_block.training_plot({"a": good, "b": bad}).alt.startswith("1 of 2 learn: a.")
    assert full_block.training_plot({"b": bad}).alt.startswith("None has learnt yet.")
    ids, following = full_block.reversal_lines(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(ids[:, :4], following[:, :3:-1])


# --- Wirings and the diagram ----------------------------------------------------------------------------------------


def test_wirings():
    rng = np.random.default_rng(0)
    sizes = {"vocab": 13, "d_model": 12, "num_heads": 3}
    models = Encoder(EncoderConfig(classes=13, **sizes), rng), GPT(GPTConfig(**sizes), rng)
    reach = full_block.wirings(*models, Transformer(TransformerConfig(**sizes), rng), T=5)
    for name, matrix in reach.items():
        full = name in ("Encoder-only", "Both: source")
        np.testing.assert_array_equal(matrix, np.ones((5, 5)) if full else np.tri(5), err_msg=name)
    assert "Decoder-only: 60% of the pairs; never" in full_block.wirings_plot(reach).alt


@pytest.mark.parametrize("name", full_block.PARTS)
def test_each_part_has_boxes_and_shows_its_own_source(name):
    part = full_block.PARTS[name]
    where, lines = full_block.source_lines(part)
    assert where.startswith(("layers.", "attention.", "ops.", "positions."))
    assert 1 <= len(lines) <= 14
    assert max(map(len, lines)) <= 74
    assert lines[0].startswith(part.first)
    assert lines[-1].lstrip().startswith("return")
    assert set(full_block.BOXES) == set(full_block.PARTS)


# --- The switchboard ------------------------------------------------------------------------------------------------


def test_switches_change_the_output_and_leave_no_trace():
    model = small()
    rng = np.random.default_rng(0)
    source, target = rng.integers(3, 13, size=(2, 2, 6))
    before, names = model.forward(source, target)[0], list(model.params())
    for off in full_block.SWITCHES:
        with full_block.without(model, off):
            assert np.abs(model.forward(source, target)[0] - before).max() > 1e-3, off
        np.testing.assert_array_equal(model.forward(source, target)[0], before)
    with pytest.raises(ArithmeticError), full_block.without(model, *full_block.SWITCHES):
        raise ArithmeticError
    np.testing.assert_array_equal(model.forward(source, target)[0], before)
    assert list(model.params()) == names
    with pytest.raises(ValueError, match=r"'heads' can't be switched off; choose from scaling, residuals"):
        full_block.without(model, "heads").__enter__()


@pytest.mark.slow
def test_without_mask_the_future_leaks_and_gradients_still_fit():
    from lesson_utils import gradcheck

    model = small(dtype=np.float64)
    assert full_block.measure(model, batch=4).leak < 1e-9
    batch = full_block.reversal_pairs(np.random.default_rng(0), 2)
    with full_block.without(model, "mask"):
        assert full_block.measure(model, batch=4).leak > 1e-4
        gradcheck.check_params(lambda: model.loss_and_grad(batch), model.params(), np.random.default_rng(0), samples=4)


def test_without_positions_the_source_has_no_order():
    model = small()
    assert full_block.measure(model, batch=4).order > 1e-3
    assert full_block.measure(model, "positions", batch=4).order < 1e-5


@pytest.mark.slow
def test_switchboard_at_every_setting():
    switchboard = full_block.switchboard_lab(small())
    pictures = set()
    for on in itertools.product((False, True), repeat=5):
        values = dict(zip(full_block.SWITCHES, on, strict=True))
        picture = switchboard.set(**values)
        off = [name for name, is_on in values.items() if not is_on]
        assert picture.alt.startswith(f"Off: {', '.join(off)}" if off else "As trained")
        pictures.add(picture.png)
    assert len(pictures) > 16


def test_ledger_titles_say_what_the_count_says():
    picture = full_block.ledger_lab().set(d_model=256, num_layers=2, norm="pre")
    config = TransformerConfig.base()
    n = full_block.count_parameters(config, d_model=256, num_layers=2, norm="pre")
    assert f": {n:,} parameters" in picture.alt


def test_norm_lab_has_both_formulas():
    alt = full_block.norm_lab(sigma=1e-3).picture.alt
    inside, outside = map(float, re.findall(r"0\.\d{4}", alt)[-2:])
    x = 1e-3 * full_block.TOKEN
    for shown, is_inside in ((inside, True), (outside, False)):
        assert shown == pytest.approx(ops.layer_norm(x, np.ones(8), np.zeros(8), 1e-5, is_inside).std(), abs=1e-4)
