"""The labs of notebook 05: stacks are what the layers are, switches leave no trace, the figures hold."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from lesson_utils.lessons.full_block import lab, maps, stacks
from lesson_utils.maths import attention, gradcheck, ops
from lesson_utils.maths.models import GPT, Encoder, EncoderConfig, GPTConfig, Transformer, TransformerConfig
from lesson_utils.maths.models.gpt import Stack, StackConfig

SIZES = {"vocab": 13, "d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 20}


def small(**changes):
    return Transformer(TransformerConfig(**(SIZES | changes)), np.random.default_rng(0))


def gpt(**changes):
    sizes = {"vocab": 11, "d_model": 8, "num_heads": 2, "num_layers": 2}
    return GPT(GPTConfig(**(sizes | changes)), np.random.default_rng(0))


# --- The page beside the notebook -----------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "65_million.md"
# Table 3 of the paper: what differs from the base model, and how many million parameters are given.
PAPER_ROWS = {
    "base": ({}, 65),
    "N = 2": ({"N": 2}, 36),
    "N = 4": ({"N": 4}, 50),
    "N = 8": ({"N": 8}, 80),
    "d_model = 256": ({"d": 256}, 28),
    "d_model = 1024": ({"d": 1024}, 168),
    "d_ff = 1024": ({"d_ff": 1024}, 53),
    "d_ff = 4096": ({"d_ff": 4096}, 90),
    "big": ({"d": 1024, "d_ff": 4096}, 213),
}


def counted(symbols=37_000, d=512, d_ff=2048, N=6):
    """Count the parameters of an encoder–decoder in post-norm with one table: table, attention, feed-forward, norms."""
    return symbols * d, 3 * N * 4 * d**2, 2 * N * (2 * d * d_ff + d_ff + d), 5 * N * 2 * d


def test_the_count_is_that_of_the_layers():
    model = small(norm="post", shared=True)
    assert sum(counted(13, d=12, d_ff=20, N=2)) == model.num_params()


def test_the_page_about_the_papers_table_says_what_the_counts_give():
    page = PAGE.read_text(encoding="utf-8")
    assert f"we get {sum(counted()):,}." in page
    ranges = []
    for row, (changes, millions) in PAPER_ROWS.items():
        one = sum(counted(0, **changes))
        low, high = ((1e6 * (millions + half) - one) / changes.get("d", 512) for half in (-0.5, 0.5))
        ranges.append((low, high))
        assert f"| {row} | {millions} M | {sum(counted(**changes)) / 1e6:.1f} M | {low:,.0f} | {high:,.0f} |" in page
    low, high = (choose(ends) for choose, ends in zip((max, min), zip(*ranges[:-1], strict=True), strict=True))
    assert f"agree on {low:,.0f} to {high:,.0f} symbols" in page
    assert f"{3 * 6 * 4 * 512:,} numbers" in page  # biases of attention
    for d in (64, 128, 256, 512, 1024):
        parts = counted(d=d, d_ff=4 * d)
        shares = " | ".join(f"{100 * part / sum(parts):.0f} %" for part in parts[:3])
        assert f"| {d} | {sum(parts) / 1e6:.1f} M | {shares} |" in page


# --- Before training ------------------------------------------------------------------------------------------------


def test_an_untrained_stack_is_the_librarys():
    x, blocks = lab.untrained(2, 3)
    rng = np.random.default_rng(3)
    stack = Stack(StackConfig(vocab=1, d_model=32, num_heads=4, num_layers=2, dtype=np.float64), rng)
    stream = x
    for block, parts in zip(stack.blocks, blocks, strict=True):
        for part in parts.values():
            stream = stream + part(ops.layer_norm(stream, np.ones(32), np.zeros(32)))
        x, _ = block.forward(x)
        np.testing.assert_allclose(x, stream)
    assert parts["attention"].gave.shape == (1, 16, 32)


def test_float32_hides_how_small_a_gradient_is():
    """In float64 it falls with depth as far as one looks; in float32 rounding noise is left."""
    exact, rounded = (stacks.one_start("post", 48, 0, dtype).looking[-1] for dtype in (np.float64, np.float32))
    assert exact < 1e-11 < 1e-8 < rounded
    assert stacks.one_start("post", 12, 0).looking[-1] == pytest.approx(
        stacks.one_start("post", 12, 0, np.float32).looking[-1], rel=0.01
    )


def test_each_gradient_of_a_stack_is_measured():
    start = stacks.one_start("pre", 3, 0)
    assert [len(values) for values in start] == [4, 4, 3, 3]
    assert all(start.looking < start.gradients)


def test_what_stands_behind_attention_in_a_tiny_model():
    """Nothing leaves the stream as it is, and one matrix is linear: twice the input, twice what it adds."""
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    parts = {name: lab.tiny(name, 2, 8, 0).stack.blocks[1].feed_forward.inner for name in ("nothing", "one matrix")}
    assert not parts["nothing"].forward(x)[0].any()
    once, twice = (parts["one matrix"].forward(n * x)[0] for n in (1, 2))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-4, atol=1e-6)
    ids, following = lab.as_lines(np.array([[3, 4, 5, 6]]), np.array([[6, 5, 4, 3]]))
    assert (ids.tolist(), following.tolist()) == ([[3, 4, 5, 6, 1, 6, 5, 4]], [[4, 5, 6, 1, 6, 5, 4, 3]])


# --- In training ----------------------------------------------------------------------------------------------------


def test_fit_sees_what_a_model_learns():
    seen = lab.fit(gpt(), lambda step: 1e-3, 20, 0)
    assert seen.steps == [0, 10, 20]
    assert len(seen.accuracy) == len(seen.sizes) == 3
    runs = {"one": [seen, seen], "other": [seen, seen]}
    assert "0 and 0 of 2 starts learn." in lab.start_plot(runs).alt
    assert "one: 0 of 2 starts learn" in lab.learning_plot(runs).alt
    model, (ids, following) = gpt(), stacks.reversal_lines(np.random.default_rng(0), 3)
    np.testing.assert_array_equal(ids[:, :4], following[:, :3:-1])
    # What the model reads in the end.
    assert stacks.stream_sizes(model, ids)[-1] == pytest.approx(model.forward(ids)[1].stack.stream.std(), rel=1e-5)


def test_fit_ends_where_numbers_become_infinite():
    model = gpt(norm="none")
    for block in model.stack.blocks:
        block.feed_forward.inner.narrow.W.value *= np.float32(1e30)
    with np.errstate(all="ignore"):
        assert lab.fit(model, lambda step: 1.0, 20, 0).steps == [0]


# --- Controls -------------------------------------------------------------------------------------------------------


def test_models_with_a_part_changed_have_the_right_gradients():
    rng = np.random.default_rng(0)
    scaled, unmasked, pairs = gpt(dtype=np.float64), small(dtype=np.float64), lab.reversal_pairs(rng, 2)
    lab.scale_sums(scaled, 0.7)
    for model, batch in ((scaled, rng.integers(11, size=(2, 2, 5))), (unmasked, pairs)):
        with lab.without(model, "mask") if model is unmasked else contextlib.nullcontext():
            gradcheck.check_params(
                lambda m=model, b=batch: m.loss_and_grad(b), model.params(), np.random.default_rng(0), samples=4
            )


def test_scaled_sums_shrink_the_stream():
    model, ids = gpt(num_layers=1, norm="none"), np.array([[1, 2, 3]])
    x = model.tokens.forward(ids)[0]
    block, mask = model.stack.blocks[0], attention.causal_mask(3)
    middle = 0.5 * (x + block.attention.inner.forward(x, mask=mask)[0])
    expected = 0.5 * (middle + block.feed_forward.inner.forward(middle)[0])
    lab.scale_sums(model, 0.5)
    np.testing.assert_allclose(model.forward(ids)[1].stack.stream, expected, atol=1e-6)


# --- The maps -------------------------------------------------------------------------------------------------------


def test_the_wirings_differ_by_their_masks():
    encoder = Encoder(EncoderConfig(classes=13, **SIZES), np.random.default_rng(0))
    reach = lab.wirings(encoder, gpt(vocab=13), small())
    assert reach["encoder-only"].all()
    assert (reach["decoder-only"] == np.tri(6)).all()
    assert "GPT: decoder-only: 58% of the pairs, never from inputs behind it" in lab.wirings_plot(reach).alt
    assert set(maps.COLOURS) < set(maps.BOXES)
    assert {part for _, part, _ in maps.NOTES} < set(maps.BOXES)


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


def test_the_plot_of_parts_counts_those_that_are_not_needed():
    picture = lab.parts_plot(1.0, {"norm": 0.1, "mask": 1.0}, {"norm": [0.95, 1.0], "mask": [0.0, 0.3]})
    assert picture.alt.startswith("1 of 2 parts are not needed by models")
    assert "norm 0.10 and 0.97 (0.95 to 1.00)" in picture.alt


@pytest.mark.slow
def test_the_switchboard_says_what_is_off():
    figure = lab.switchboard_lab(small())
    for off in (*lab.SWITCHES, None):
        values = dict.fromkeys(lab.SWITCHES, True) | ({off: False} if off else {})
        assert figure.set(**values).alt.startswith(f"Off: {off} – " if off else "As trained – ")
    assert figure.set(**dict.fromkeys(lab.SWITCHES, False)).alt.startswith("Off: all but nothing – ")
