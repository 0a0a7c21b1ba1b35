"""The labs of notebook 05: the ledger is what the layers are, switches leave no trace, the figures hold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from lesson_utils.classroom import formats
from lesson_utils.lessons.full_block import counts, diagram, places, reading
from lesson_utils.lessons.full_block import lab as full_block
from lesson_utils.maths import attention, layers, ops, positions
from lesson_utils.maths.models import GPT, Encoder, EncoderConfig, GPTConfig, Transformer, TransformerConfig

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
    assert counts.count(config, 4, num_layers=3) == counts.count(replace(config, num_layers=3), 4)


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
    assert book.flops == sum(step.flops for step in counts.count(model.config, T).values())
    assert book.note("softmax", logits) is logits
    assert book.steps[-1] == ("softmax", (1, T, 13), 0, 0)


def test_ledger_counts_pieces_like_the_layer_and_shows_itself():
    layer = layers.DecoderLayer(layers.LayerConfig(d_model=12, num_heads=3, d_ff=20), np.random.default_rng(0))
    x, memory = np.ones((2, 5, 12), np.float32), np.ones((2, 7, 12), np.float32)
    whole, pieces = full_block.Ledger(), full_block.Ledger()
    whole.run("layer", layer.forward, x, memory)
    pieces.run("self", layer.attention.inner.forward, x)
    pieces.run("cross", layer.cross.inner.forward, x, memory)
    pieces.run("feed", layer.feed_forward.inner.forward, x)
    assert pieces.flops == whole.flops
    shown = pieces._repr_mimebundle_()
    assert f"{pieces.flops:,}" in shown["text/plain"]
    assert shown["text/html"].count("<tr>") == 5


def test_parts_are_functions_of_the_layer():
    layer = layers.EncoderLayer(layers.LayerConfig(d_model=12, num_heads=3, d_ff=20), np.random.default_rng(0))
    attend, feed_forward, norm_1, norm_2 = full_block.parts(layer)
    x = np.random.default_rng(1).normal(size=(2, 5, 12)).astype(np.float32)
    y = x + attend(norm_1(x))
    np.testing.assert_allclose(y + feed_forward(norm_2(y)), layer.forward(x)[0], atol=1e-5)
    book = full_block.Ledger()
    for part in (attend, feed_forward, norm_1, norm_2):
        book.run("part", part, x)
    assert book.parameters == layer.num_params()


# --- The stream -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_tokens_get_alike_without_the_residual_connection(seed):
    with_it, without = (full_block.likeness(full_block.cosines(residual, seed=seed)) for residual in (True, False))
    assert abs(with_it[0]) < 0.1
    assert without[4] > 0.95 > 0.6 > with_it[4]


def test_likeness_is_the_mean_over_different_tokens():
    assert full_block.likeness(np.array([[1.0, 0.2], [0.4, 1.0]])) == pytest.approx(0.3)
    plot = full_block.likeness_plot(full_block.cosines(True), full_block.cosines(False))
    assert f"cosine is {full_block.likeness(full_block.cosines(False))[2]:.2f} after 2 layers" in plot.alt


def test_the_river_tells_the_sizes():
    written = [np.array([1.0, -1.0]), np.array([0.5, -0.5]), np.array([0.25, 0.75])]
    alt = full_block.river(written).alt
    assert "1 layers add to the residual stream, and it grows from 1.0 to 1.2" in alt  # ±1.5 + (0.25, 0.75)
    assert "in turn: 0.50, 0.25." in alt


# --- Before training ------------------------------------------------------------------------------------------------


def test_at_start():
    for norm in ("pre", "post"):
        few, many = (full_block.at_start(norm, depth, 16) for depth in (2, 24))
        assert len(many.scales) == len(many.alike) == 25
        assert len(many.gradients) == len(many.looking) == 24
        assert (many.looking < many.gradients).all()
        if norm == "post":
            np.testing.assert_allclose(many.scales[1:], 1, atol=0.01)
            assert 0.5 < many.gradients[-1] / few.gradients[-1] < 2
            assert many.alike[-1] > 0.95
            assert many.looking[-1] < 1e-2 * many.looking[0]
        else:
            assert many.scales[-1] > 2.5 * few.scales[-1]
            assert 2 < few.gradients[-1] / many.gradients[-1] < 5  # √12 = 3.5
    assert full_block.stream_without_norm(24) > 1e4


@pytest.mark.slow
def test_the_lab_at_every_width_shows_what_the_text_says():
    for width in places.WIDTHS:
        pre, post = ({n: full_block.at_start(norm, n, width) for n in (2, 12, 48)} for norm in ("pre", "post"))
        assert 3.5 < pre[2].gradients[-1] / pre[48].gradients[-1] < 5.5
        assert 0.6 < post[2].gradients[-1] / post[48].gradients[-1] < 1.6
        assert post[48].looking[-1] < 1e-5
        assert pre[48].looking[-1] > 1e-2


# --- In training ----------------------------------------------------------------------------------------------------


def test_watch_sees_accuracy_and_gradients_of_the_steps():
    from lesson_utils.maths import training

    model = GPT(GPTConfig(vocab=11, d_model=8, num_heads=2, num_layers=2), np.random.default_rng(0))
    watch = full_block.Watch(model, every=2)
    training.fit(model, full_block.reversal_lines, 4, lr=1e-3, callback=watch, progress=False)
    assert watch.steps == [0, 2, 4]
    assert len(watch.ratios) == 4
    bottom, top = (places.gradient_norm(model.stack.blocks[i]) for i in (0, 1))
    assert watch.ratios[-1] == pytest.approx(bottom / top)
    parts = [places.gradient_norm(model.stack.blocks[0], name) for name in ("W_Q", "W_K")]
    assert places.gradient_norm(model.stack.blocks[0], "W_Q", "W_K") == pytest.approx(np.hypot(*parts))
    alt = full_block.training_plot({"post-norm": watch, "other": watch}).alt
    assert alt.startswith("0 of 2 runs learn")
    assert f"post-norm: 1/{1 / watch.ratios[-1]:,.0f} at step 4" in alt
    watch.accuracy[-1] = 0.97
    assert full_block.training_plot({"a": watch}).alt.startswith("1 of 1 runs learn: a.")
    ids, following = full_block.reversal_lines(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(ids[:, :4], following[:, :3:-1])


@pytest.mark.slow
def test_large_first_steps_take_the_bottom_layers_gradient():
    """Twenty steps of the run that fails, and of the one at a third of the rate."""
    from lesson_utils.maths import training

    ratios = {}
    for rate in (3e-3, 1e-3):
        config = GPTConfig(vocab=11, norm="post", d_model=32, num_heads=4, num_layers=12)
        model = GPT(config, np.random.default_rng(0))
        watch = full_block.Watch(model, every=100)
        training.fit(model, full_block.reversal_lines, 21, lr=rate, callback=watch, progress=False)
        ratios[rate] = watch.ratios
    assert 0.3 < ratios[3e-3][0] < 0.7
    assert ratios[3e-3][0] == pytest.approx(ratios[1e-3][0])
    assert ratios[3e-3][20] < 1e-3 < 1 / 30 < ratios[1e-3][20]


# --- Reading --------------------------------------------------------------------------------------------------------


def test_bits_and_firing():
    model = GPT(GPTConfig(vocab=9, d_model=8, num_heads=2, num_layers=2), np.random.default_rng(0))
    ids = np.random.default_rng(1).integers(9, size=500)
    windows = ids[: 2 * 32].reshape(2, 32)
    loss = np.mean([model.loss((ids[a : a + 32][None], ids[a + 1 : a + 33][None])) for a in (0, 467)])
    assert full_block.bits(model, ids, windows=2) == pytest.approx(loss / np.log(2), rel=1e-5)
    with full_block.without(model, "feed-forward"):
        assert model.num_params() < GPT(model.config, np.random.default_rng(0)).num_params()
        assert full_block.bits(model, ids, windows=2) > 0
    fires = reading.firing(model, windows)
    assert fires.shape == (2, 32, 32)  # d_ff = 4 · d_model
    assert fires.min() == 0
    # What the neurons give, times their rows, is what the layer adds.
    feed = model.stack.blocks[1].feed_forward.inner.narrow
    cache = model.forward(windows)[1]
    last = cache.stack.stream
    seen = attention.causal_mask(32)
    x = model.stack.blocks[0].forward(model.tokens.forward(windows)[0], seen)[0]
    attention_part = model.stack.blocks[1].attention
    x = attention_part.forward(x, lambda x: attention_part.inner.forward(x, mask=seen))[0]
    np.testing.assert_allclose(x + fires @ feed.W.value + feed.b.value, last, atol=1e-4)


def test_neurons_that_wait_for_something_are_found():
    from lesson_utils.maths import tasks

    text = tasks.python_text()[:6000]
    vocabulary = tasks.text_vocabulary(text)
    config = GPTConfig(vocab=len(vocabulary), d_model=8, num_heads=2, num_layers=2)
    chosen = full_block.neurons(GPT(config, np.random.default_rng(0)), vocabulary, vocabulary.encode(text), 3, 10)
    assert [neuron.share for neuron in chosen] == sorted((neuron.share for neuron in chosen), reverse=True)
    for neuron in chosen:
        assert len(neuron.places) == len(set(neuron.places)) == 10
        assert neuron.share == np.mean([place.endswith(neuron.ends) for place in neuron.places])
    assert full_block.neurons_plot(chosen).alt.startswith(f"Neuron {chosen[0].number} waits for")


# --- Wirings and the diagram ----------------------------------------------------------------------------------------


def test_wirings():
    rng = np.random.default_rng(0)
    sizes = {"vocab": 13, "d_model": 12, "num_heads": 3}
    models = Encoder(EncoderConfig(classes=13, **sizes), rng), GPT(GPTConfig(**sizes), rng)
    reach = full_block.wirings(*models, Transformer(TransformerConfig(**sizes), rng), T=5)
    for name, matrix in reach.items():
        full = name in ("encoder-only", "from the source")
        np.testing.assert_array_equal(matrix, np.ones((5, 5)) if full else np.tri(5), err_msg=name)
    assert "decoder-only: 60% of the pairs, never" in full_block.wirings_plot(reach).alt


def test_the_code_in_the_map_is_the_papers_model():
    """All lines that the diagram shows, run one after the other as its boxes stand, give the library's model."""
    config = TransformerConfig(**SIZES, norm="post", shared=True, dtype=np.float64)
    model, rng = Transformer(config, np.random.default_rng(0)), np.random.default_rng(1)
    source, target = rng.integers(3, 13, size=(2, 5)), rng.integers(3, 13, size=(2, 4))
    for name, param in model.params().items():
        if name.rpartition(".")[2] in ("gamma", "beta", "b"):
            param.value += rng.normal(size=param.value.shape) / 4  # so that none can be left out
    known = {"np": np, "h": 3, "d_k": 4, "d_model": 12, "T": 4, "P": positions.sinusoidal_encoding(20, 12)}
    known |= {"softmax": ops.softmax, "layer_norm": ops.layer_norm, "causal_mask": attention.causal_mask}
    known |= {"split_heads": attention.split_heads, "merge_heads": attention.merge_heads}
    known["E"] = model.source.embedding.table.value

    def run(part, **names):
        scope = known | names
        exec(diagram.PARTS[part].code, scope)
        return scope

    def sublayer(part, residual, x, **more):
        inner = residual.inner
        if part == "feed-forward":
            more |= {"W_1": inner.wide.W.value, "b_1": inner.wide.b.value}
            more |= {"W_2": inner.narrow.W.value, "b_2": inner.narrow.b.value}
        else:
            more |= {name: getattr(inner, name).value for name in ("W_Q", "W_K", "W_V", "W_O")}
        y = run(part, x=x, **more)["y"]
        return run("add & norm", x=x, y=y, gamma=residual.norm.gamma.value, beta=residual.norm.beta.value)["x"]

    def embedded(ids):
        return run("positions", x=run("embedding", ids=ids)["x"], T=ids.shape[1])["x"]

    memory, x = embedded(source), embedded(target)
    for block in model.encoder.blocks:
        memory = sublayer("self-attention", block.attention, memory)
        memory = sublayer("feed-forward", block.feed_forward, memory)
    for block in model.blocks:
        x = sublayer("masked", block.attention, x)
        x = sublayer("cross", block.cross, x, memory=memory)
        x = sublayer("feed-forward", block.feed_forward, x)
    logits = run("output", x=x)["logits"]
    np.testing.assert_allclose(logits, model.forward(source, target)[0], atol=1e-9)
    np.testing.assert_allclose(run("softmax", logits=logits)["p"].sum(axis=-1), 1)
    assert set(diagram.BOXES) == set(diagram.PARTS)


@pytest.mark.parametrize("part", diagram.PARTS)
def test_the_page_beside_the_map_is_wide_enough(part):
    about = diagram.PARTS[part]
    assert max(map(len, about.code.splitlines())) <= 52
    assert max(map(len, [*about.purpose.splitlines(), about.shapes])) <= 52


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
    with pytest.raises(ValueError, match=r"'heads' can't be switched off; choose from residuals, norm"):
        full_block.without(model, "heads").__enter__()


@pytest.mark.slow
def test_without_mask_the_future_leaks_and_gradients_still_fit():
    from lesson_utils.maths import gradcheck

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
    for on in itertools.product((False, True), repeat=6):
        values = dict(zip(full_block.SWITCHES, on, strict=True))
        picture = switchboard.set(**values)
        off = [name for name, is_on in values.items() if not is_on]
        assert picture.alt.startswith(f"Off: {', '.join(off)}" if off else "As trained")
        pictures.add(picture.png)
    assert len(pictures) > 16


def test_parts_plot_says_who_is_not_missed():
    model = small()
    good = full_block.measure(model, batch=4)
    off = {name: good._replace(alone=0.25) for name in full_block.SWITCHES}
    never = {name: good._replace(alone=0.95 if name in ("norm", "mask") else 0.5) for name in full_block.SWITCHES}
    alt = full_block.parts_plot(good, off, never).alt
    assert alt.startswith("2 of 6 parts are not missed if the model learns without them: norm, mask.")
    assert "scaling 0.25 and 0.50" in alt


def test_ledger_shares_are_those_of_the_count():
    alt = full_block.ledger_lab().set(num_layers=2, vocab=1_000, length=16).alt
    config = TransformerConfig(vocab=1_000, d_model=256, num_layers=2, num_heads=8, norm="post", shared=True)
    total = full_block.count_parameters(config)
    feed = sum(step.parameters for name, step in counts.count(config).items() if "feed" in name)
    row = next(part for part in alt.split("; ") if part.startswith("d_model 256"))
    assert f"feed-forward {feed / total:.1%}" in row
    assert formats.large(total) in row
