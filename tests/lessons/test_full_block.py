"""The labs of notebook 05: the ledger is what the layers are, switches leave no trace, the figures hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lesson_utils.exercises import check
from lesson_utils.lessons.full_block import lab, ledger, maps, stacks, worth
from lesson_utils.maths import attention, gradcheck, ops, positions, tasks, training
from lesson_utils.maths.models import GPT, GPTConfig, Transformer, TransformerConfig
from lesson_utils.maths.models.gpt import Stack, StackConfig

SIZES = {"vocab": 13, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 20}


def small(**changes):
    return Transformer(TransformerConfig(**(SIZES | changes)), np.random.default_rng(0))


def gpt(of=GPT, **changes):
    sizes = {"vocab": 11, "d_model": 8, "num_heads": 2, "num_layers": 2}
    return of(GPTConfig(**(sizes | changes)), np.random.default_rng(0))


# --- The ledger -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize("tables", [{"shared": True}, {"shared": False}, {"target_vocab": 17}])
def test_the_count_is_that_of_the_layers(norm, tables):
    model = small(norm=norm, **tables)
    assert ledger.count_parameters(model.config) == model.num_params()
    assert ledger.count_parameters(replace(model.config, num_layers=5), num_layers=2) == model.num_params()


def test_ledger_of_a_whole_model_agrees_with_the_formula():
    """The notebook runs the same steps with a model in post-norm, and compares outputs and parameters."""
    model, T = small(shared=True), 5
    ids = np.random.default_rng(1).integers(3, 13, size=(1, T))
    book = lab.Ledger()
    memory = book.run("source", model.source, ids)
    for block in model.encoder.blocks:
        memory = book.run("encoder layer", block, memory)
    x = book.run("target", model.target, ids)
    for block in model.blocks:
        x = book.run("decoder layer", block, x, memory, attention.causal_mask(T))
    book.run("output", model.target.embedding.logits_forward, x)
    assert book.flops == sum(step.flops for step in ledger.count(model.config, T).values())
    assert book._repr_mimebundle_()["text/html"].count("<tr>") == 9


def test_the_page_about_the_papers_table_says_what_the_counts_give():
    page = (Path(__file__).parents[2] / "docs" / "65_million.md").read_text(encoding="utf-8")
    base = TransformerConfig.base(vocab=37_000)
    assert f"we get {ledger.count_parameters(base):,}." in page
    ranges = {}
    for row, (changes, millions) in ledger.PAPER_ROWS.items():
        low, high = ranges[row] = ledger.vocabulary_for(changes, millions)
        ours = ledger.count_parameters(base, **changes) / 1e6
        assert f"| {row} | {millions} M | {ours:.1f} M | {low:,.0f} | {high:,.0f} |" in page
    low, high = (
        choose(ends) for choose, ends in zip((max, min), zip(*list(ranges.values())[:-1], strict=True), strict=True)
    )
    assert f"agree on {low:,.0f} to {high:,.0f} symbols" in page
    attentions = 3 * 6  # in each of 6 encoder layers one, in each of 6 decoder layers two
    assert f"{attentions * 4 * 512:,} numbers" in page


# --- Before training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("residual", "norm"), stacks.FOUR.values())
def test_the_gradient_that_reaches_the_input_is_the_slope(residual, norm):
    """Nudge the input of the stack, and compare with what `fate` sent down."""
    rng = np.random.default_rng(0)
    config = StackConfig(vocab=1, d_model=32, num_heads=4, num_layers=2, norm=norm, dtype=np.float64)
    blocks = Stack(config, rng).blocks
    x, dy = rng.normal(size=(2, 2, 8, 32))
    dy /= np.linalg.norm(dy)
    for block in blocks:
        block.attention.skip = block.feed_forward.skip = residual

    def run(x):
        for block in blocks:
            x = block.forward(x)[0]
        return x

    found = stacks.fate(residual, norm, 2, seeds=1)
    assert found.size == pytest.approx(run(x).std())
    # The slopes along many random directions, in the mean of squares, are the squared norm of the gradient.
    slopes = []
    for _ in range(400):
        step = 1e-5 * rng.normal(size=x.shape)
        slopes.append(((run(x + step) - run(x - step)) * dy).sum() / 2e-5)
    assert np.sqrt(np.mean(np.square(slopes))) == pytest.approx(found.gradient, rel=0.15)


def test_one_part_alone_can_be_left_in_a_stack():
    both, feed = (stacks.likeness(stacks.cosines(False, only))[4] for only in ("", "feed_forward"))
    assert feed < 0.9 < both


# --- In training ----------------------------------------------------------------------------------------------------


def test_watch_sees_accuracy_gradients_and_sizes_of_the_steps():
    model = gpt()
    watch = lab.Watch(model, every=2)
    training.fit(model, lab.reversal_lines, 4, lr=1e-3, callback=watch, progress=False)
    assert watch.steps == [0, 2, 4]
    assert len(watch.ratios) == 4
    assert len(watch.moves) == 3  # from the second step on
    assert min(watch.moves) > 0
    bottom, top = (stacks.gradient_norm(model.stack.blocks[i]) for i in (0, 1))
    assert watch.ratios[-1] == pytest.approx(bottom / top)
    parts = [stacks.gradient_norm(model.stack.blocks[0], name) for name in ("W_Q", "W_K")]
    assert stacks.gradient_norm(model.stack.blocks[0], "W_Q", "W_K") == pytest.approx(np.hypot(*parts))
    seen = watch.seen()
    assert lab.training_plot({"post-norm": seen, "other": seen}).alt.startswith("0 of 2 learn")
    assert "0 of 2 learn (dotted: guessing). What learns: none yet." in lab.start_plot({"one": seen, "other": seen}).alt
    assert len(seen.sizes) == 3
    ids, following = lab.reversal_lines(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(ids[:, :4], following[:, :3:-1])
    # What the model reads in the end.
    assert stacks.stream_sizes(model, ids)[-1] == pytest.approx(model.forward(ids)[1].stack.stream.std(), rel=1e-5)


# --- Reading --------------------------------------------------------------------------------------------------------


def test_bits_are_the_loss_of_windows():
    model, ids = gpt(), np.random.default_rng(1).integers(9, size=500)
    loss = np.mean([model.loss((ids[a : a + 32][None], ids[a + 1 : a + 33][None])) for a in (0, 467)])
    assert lab.bits(model, ids, windows=2) == pytest.approx(loss / np.log(2), rel=1e-5)
    parameters = model.num_params()
    with lab.without(model, "feed-forward"):
        assert model.num_params() < parameters
        assert lab.bits(model, ids, windows=2) > 0


def test_what_the_neurons_fire_times_their_rows_is_what_the_layer_adds():
    model, windows = gpt(), np.random.default_rng(1).integers(9, size=(2, 32))
    fires, seen = worth.firing(model, windows), attention.causal_mask(32)
    assert fires.shape == (2, 32, 32)  # d_ff = 4 · d_model
    assert fires.min() == 0
    lower, upper = model.stack.blocks
    x = lower.forward(model.tokens.forward(windows)[0], seen)[0]
    x = upper.attention.forward(x, lambda x: upper.attention.inner.forward(x, mask=seen))[0]
    narrow = upper.feed_forward.inner.narrow
    last = model.forward(windows)[1].stack.stream
    np.testing.assert_allclose(x + fires @ narrow.W.value + narrow.b.value, last, atol=1e-4)
    assert np.abs(fires - worth.firing(model, windows, attention=False)).max() > 1e-3


def test_a_function_can_compute_the_feed_forward_layers():
    model, ids = gpt(), np.random.default_rng(1).integers(9, size=(2, 6))
    before = model.forward(ids)[0]
    for bias in (param for name, param in model.params().items() if name.endswith(".b")):
        bias.value += 0.5  # so that none can be left out
    biased = model.forward(ids)[0]
    assert np.abs(biased - before).max() > 1e-3
    with lab.feeding(model, check.feed_forward.mine(None)):
        np.testing.assert_allclose(model.forward(ids)[0], biased, atol=1e-5)
    with lab.feeding(model, lambda x, *parameters: np.zeros_like(x)):
        nothing = model.forward(ids)[0]
    with lab.without(model, "feed-forward"):
        np.testing.assert_array_equal(model.forward(ids)[0], nothing)
    np.testing.assert_array_equal(model.forward(ids)[0], biased)


def test_a_part_that_subtracts_lowers_the_share_of_a_tokens_own_vector():
    model, ids = gpt(num_layers=1, positions="none", norm="none"), np.random.default_rng(1).integers(9, size=(2, 6))
    block = model.stack.blocks[0]
    block.attention.inner.W_O.value[:] = 0
    np.testing.assert_allclose(lab.own_share(model, ids)[:2], 1, rtol=1e-5)
    feed = block.feed_forward.inner  # gives −x/2: relu(x) and relu(−x), with a half of each taken back
    feed.wide.W.value[:] = np.eye(8, 32) - np.eye(8, 32, 8)
    feed.narrow.W.value[:] = (np.eye(32, 8, -8) - np.eye(32, 8)) / 2
    assert lab.own_share(model, ids)[2] == pytest.approx(0.5, rel=1e-4)


def test_neurons_are_told_by_their_strongest_places():
    text = tasks.python_text()[:6000]
    vocabulary = tasks.text_vocabulary(text)
    found = lab.every_neuron(gpt(vocab=len(vocabulary)), vocabulary, vocabulary.encode(text), strongest=10)
    assert [neuron.number for neuron in found] == list(range(32))
    for neuron in found:
        assert len(neuron.places) == len(set(neuron.places)) == 10
        assert neuron.share == np.mean([place.endswith(neuron.ends) for place in neuron.places])
        last = [place[-1] for place in neuron.places]
        assert neuron.letter == max(last.count(letter) for letter in last) / 10
    chosen = lab.tidiest(found, 3)
    assert [neuron.share for neuron in chosen] == sorted((neuron.share for neuron in chosen), reverse=True)
    assert len({neuron.ends for neuron in chosen}) == 3
    assert lab.neurons_plot(chosen).alt.startswith(f"Neuron {chosen[0].number} fires most strongly at")


# --- Controls -------------------------------------------------------------------------------------------------------


def test_models_with_a_part_changed_have_the_right_gradients():
    rng = np.random.default_rng(0)
    untied, scaled, straight = gpt(lab.Untied, dtype=np.float64), gpt(dtype=np.float64), gpt(dtype=np.float64)
    lab.scale_sums(scaled, 0.7)
    unmasked, pairs = small(dtype=np.float64), lab.reversal_pairs(rng, 2)
    lines = rng.integers(11, size=(2, 2, 5))
    for model, off, batch in (
        (untied, (), lines),
        (scaled, (), lines),
        (straight, ("ReLU",), lines),
        (unmasked, ("mask",), pairs),
    ):
        with lab.without(model, *off):
            gradcheck.check_params(
                lambda m=model, b=batch: m.loss_and_grad(b), model.params(), np.random.default_rng(0), samples=4
            )


def test_scaled_sums_shrink_the_stream_and_no_relu_is_one_matrix():
    model, ids = gpt(num_layers=1, norm="none"), np.array([[1, 2, 3]])
    x = model.tokens.forward(ids)[0]
    block, mask = model.stack.blocks[0], attention.causal_mask(3)
    middle = 0.5 * (x + block.attention.inner.forward(x, mask=mask)[0])
    expected = 0.5 * (middle + block.feed_forward.inner.forward(middle)[0])
    lab.scale_sums(model, 0.5)
    np.testing.assert_allclose(model.forward(ids)[1].stack.stream, expected, atol=1e-6)
    feed = block.feed_forward.inner
    with lab.without(model, "ReLU"):
        product = feed.wide.W.value @ feed.narrow.W.value
        np.testing.assert_allclose(block.feed_forward.inner.forward(x)[0], x @ product, atol=1e-6)
    assert block.feed_forward.inner is feed


# --- The diagram ----------------------------------------------------------------------------------------------------


def told(model, T, E):
    """Give a model biases, so that none can be left out; return the names that the code of the maps reads."""
    rng = np.random.default_rng(1)
    for name, param in model.params().items():
        if name.rpartition(".")[2] in ("gamma", "beta", "b"):
            param.value += rng.normal(size=param.value.shape) / 4
    known = {"np": np, "h": 3, "d_k": 4, "d_model": 12, "T": T, "P": positions.sinusoidal_encoding(20, 12)}
    known |= {name: getattr(attention, name) for name in ("causal_mask", "split_heads", "merge_heads")}
    return known | {"softmax": ops.softmax, "layer_norm": ops.layer_norm, "E": E.table.value}


def weights_of(inner):
    """The parameters of attention or of a feed-forward layer, as the code of the maps calls them."""
    if hasattr(inner, "W_Q"):
        return {name: getattr(inner, name).value for name in ("W_Q", "W_K", "W_V", "W_O")}
    one, two = inner.wide, inner.narrow
    return {"W_1": one.W.value, "b_1": one.b.value, "W_2": two.W.value, "b_2": two.b.value}


def test_the_code_in_the_map_is_the_papers_model():
    """All lines that the diagram shows, run one after the other as its boxes stand, give the library's model."""
    model, rng = small(norm="post", shared=True, dtype=np.float64), np.random.default_rng(1)
    source, target = rng.integers(3, 13, size=(2, 5)), rng.integers(3, 13, size=(2, 4))
    known = told(model, 4, model.source.embedding)

    def run(part, **names):
        scope = known | names
        exec(maps.PARTS[part].code, scope)
        return scope

    def sublayer(part, residual, x, **more):
        y, norm = run(part, x=x, **more, **weights_of(residual.inner))["y"], residual.norm
        return run("add & norm", x=x, y=y, gamma=norm.gamma.value, beta=norm.beta.value)["x"]

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
    assert set(maps.BOXES) == set(maps.PARTS)


def test_the_code_in_the_map_of_a_gpt_is_the_librarys_model():
    model = GPT(GPTConfig(**SIZES, dtype=np.float64), np.random.default_rng(0))
    ids = np.random.default_rng(1).integers(13, size=(2, 5))
    known = told(model, 5, model.tokens.embedding) | {"ids": ids}

    def run(*parts, norm=None, **names):
        known.update(names | ({"gamma": norm.gamma.value, "beta": norm.beta.value} if norm else {}))
        for part in parts:
            exec(maps.GPT_PARTS[part].code, known)

    run("embedding", "positions")
    for block in model.stack.blocks:
        for part, residual in (("attention", block.attention), ("feed-forward", block.feed_forward)):
            run("norm", part, "add", norm=residual.norm, **weights_of(residual.inner))
    run("norm", "output", "softmax", norm=model.stack.norm)
    np.testing.assert_allclose(known["logits"], model.forward(ids)[0], atol=1e-9)
    np.testing.assert_allclose(known["p"].sum(axis=-1), 1)
    assert set(maps.GPT_BOXES) == set(maps.GPT_PARTS)


def test_the_block_of_today_names_every_choice():
    alt = maps.block_of_today().alt
    assert all(choice.now in alt and choice.use in alt for choice in maps.CHOICES)


@pytest.mark.parametrize("about", [*maps.PARTS.values(), *maps.GPT_PARTS.values()], ids=lambda part: part.title)
def test_the_page_beside_the_map_is_wide_enough(about):
    assert max(map(len, about.code.splitlines())) <= 52
    assert max(map(len, [*about.purpose.splitlines(), about.shapes])) <= 52


# --- The switchboard ------------------------------------------------------------------------------------------------


def test_switches_change_the_output_and_leave_no_trace():
    model = small()
    rng = np.random.default_rng(0)
    source, target = rng.integers(3, 13, size=(2, 2, 6))
    before, names = model.forward(source, target)[0], list(model.params())
    for off in lab.SWITCHES:
        with lab.without(model, off):
            assert np.abs(model.forward(source, target)[0] - before).max() > 1e-3, off
        np.testing.assert_array_equal(model.forward(source, target)[0], before)
    with pytest.raises(ArithmeticError), lab.without(model, *lab.SWITCHES):
        raise ArithmeticError
    np.testing.assert_array_equal(model.forward(source, target)[0], before)
    assert list(model.params()) == names
    with pytest.raises(ValueError, match=r"'heads' can't be switched off; choose from residuals, norm"):
        lab.without(model, "heads").__enter__()


def test_a_random_future_harms_only_a_model_that_sees_it():
    model, rng = small(), np.random.default_rng(2024)
    for block in model.blocks:
        block.attention.inner.W_O.value *= 50  # so that what a position sees counts
    source, target = lab.reversal_pairs(rng, 32)
    right = (model.forward(source, target[:, :-1])[0].argmax(axis=-1) == target[:, 1:]).mean()
    assert lab.random_future(model, batch=32) == pytest.approx(right)
    assert lab.random_future(model, "mask", batch=32) != pytest.approx(right)


class Afraid:
    """Writes each string right, unless something stands behind the position that it is asked for."""

    def forward(self, source, given):
        answers = np.concatenate([source[:, ::-1], np.full((len(source), 1), tasks.EOS)], axis=1)[:, : given.shape[1]]
        answers[:, :-1] = 0  # right at the last position only
        return np.eye(13)[answers], None


def test_letters_behind_reach_a_model_that_writes_without_a_cache():
    assert lab.right_without_cache(Afraid(), batch=8) == 1
    assert lab.right_without_cache(Afraid(), behind=True, batch=8) == 0


@pytest.mark.slow
def test_the_switchboard_says_what_is_off():
    figure = lab.switchboard_lab(small())
    for off in (*lab.SWITCHES, None):
        values = dict.fromkeys(lab.SWITCHES, True) | ({off: False} if off else {})
        assert figure.set(**values).alt.startswith(f"Off: {off} – " if off else "As trained – ")
    assert figure.set(**dict.fromkeys(lab.SWITCHES, False)).alt.startswith("Off: all but nothing – ")
