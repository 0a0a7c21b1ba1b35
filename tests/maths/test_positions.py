"""What the maths promises of positions: turning, distances, and where each number stands."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson_utils.maths import positions

FLOATS = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
widths = st.integers(1, 12).map(lambda n: 2 * n)
bases = st.sampled_from((1, 10.0, 10000.0, 1e6))


# --- Sinusoids --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 9), widths, bases)
def test_the_table_is_what_the_formula_says(length, d_model, base):
    encoding = positions.sinusoidal_encoding(length, d_model, base)
    assert encoding.shape == (length, d_model)
    assert encoding.dtype == np.float64
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / base ** (2 * i / d_model)
            np.testing.assert_allclose(encoding[pos, 2 * i], math.sin(angle), atol=1e-14)
            np.testing.assert_allclose(encoding[pos, 2 * i + 1], math.cos(angle), atol=1e-14)


@given(widths, bases)
def test_wavelengths_go_from_2_pi_towards_the_base_times_2_pi(d_model, base):
    lengths = positions.wavelengths(d_model, base)
    assert lengths.shape == (d_model // 2,)
    np.testing.assert_allclose(lengths, 2 * math.pi * base ** (2 * np.arange(d_model // 2) / d_model), rtol=1e-12)


@given(st.integers(-1000, 1000), widths, bases)
def test_one_shift_matrix_of_2_by_2_rotations_serves_every_position(offset, d_model, base):
    encoding = positions.sinusoidal_encoding(4000, d_model, base)
    start, n = max(-offset, 0), 4000 - abs(offset)
    before, after = (encoding[i : i + n] for i in (start, start + offset))
    M = positions.shift_matrix(offset, d_model, base)
    np.testing.assert_allclose(before @ M.T, after, rtol=0, atol=1e-12)
    np.testing.assert_allclose(M @ M.T, np.eye(d_model), atol=1e-14)  # orthogonal
    pair = np.arange(d_model) // 2
    assert (M[pair[:, None] != pair] == 0).all()
    np.testing.assert_array_equal(positions.shift_matrix(0, d_model, base), np.eye(d_model))


# --- Rotary -----------------------------------------------------------------------------------------------------------


@st.composite
def turning(draw, dtypes=st.just(np.float64)):
    """x and positions (T,) or with leading axes; T and leading axes differ, positions may be negative."""
    rng, dtype, d = draw(seeds), draw(dtypes), draw(widths)
    leading = draw(st.sampled_from(((), (2,), (3, 2))))
    T = draw(st.integers(1, 5))
    x = rng.normal(size=(*leading, T, d)).astype(dtype)
    own = tuple(draw(st.sampled_from((1, n))) for n in leading)[draw(st.integers(0, len(leading))) :]
    return x, rng.integers(-50, 500, size=(*own, T))


@given(turning(st.sampled_from(FLOATS)), bases)
def test_rotary_turns_each_adjacent_pair_as_the_loops_say(case, base):
    x, pos = case
    turned = positions.rotary(x, pos, base)
    assert turned.dtype == x.dtype
    assert turned.shape == x.shape
    everywhere = np.broadcast_to(pos, x.shape[:-1])
    want = np.zeros(x.shape)
    for *at, i in np.ndindex(*x.shape[:-1], x.shape[-1] // 2):
        angle = int(everywhere[*at]) / base ** (2 * i / x.shape[-1])
        a, b = map(float, x[(*at, slice(2 * i, 2 * i + 2))])
        want[(*at, 2 * i)] = a * math.cos(angle) - b * math.sin(angle)
        want[(*at, 2 * i + 1)] = a * math.sin(angle) + b * math.cos(angle)
    np.testing.assert_allclose(turned, want, atol=4 * TOLERANCE[x.dtype.type])


@given(turning(st.sampled_from(FLOATS)), bases, st.sampled_from((0.25, 1.0, 1.7)))
def test_halves_are_adjacent_pairs_in_another_order_of_columns(case, base, scale):
    x, pos = case
    d = x.shape[-1]
    order = np.arange(d).reshape(2, d // 2).T.ravel()  # 0, d/2, 1, d/2 + 1, …
    adjacent = positions.rotary(x[..., order], pos, base, scale)
    halves = positions.rotary(x, pos, base, scale, "halves")
    assert halves.dtype == x.dtype
    np.testing.assert_array_equal(halves[..., order], adjacent)
    back = positions.rotary(halves, -pos, base, scale, "halves")
    np.testing.assert_allclose(back, x, atol=20 * TOLERANCE[x.dtype.type])


@given(turning(), bases, st.floats(-2, 2))
def test_a_scale_is_on_the_positions_which_may_be_fractions(case, base, scale):
    x, pos = case
    want = positions.rotary(x, pos * scale, base)
    np.testing.assert_allclose(positions.rotary(x, pos, base, scale), want, atol=1e-11)
    two_halves = positions.rotary(positions.rotary(x, pos / 2, base), pos / 2, base)
    np.testing.assert_allclose(two_halves, positions.rotary(x, pos, base), atol=1e-11)
    turn = positions.Rotary(base, scale, "halves")
    np.testing.assert_array_equal(turn.turn(x, pos), positions.rotary(x, pos, base, scale, "halves"))
    np.testing.assert_array_equal(positions.Rotary().turn(x, pos), positions.rotary(x, pos))
    slower = positions.Rotary(base, scale, "halves", (2.0,) * (x.shape[-1] // 2))
    np.testing.assert_allclose(slower.turn(x, pos), positions.rotary(x, pos, base, scale / 2, "halves"), atol=1e-11)


@given(seeds, widths, bases, st.integers(-300, 300))
def test_products_of_turned_queries_and_keys_depend_on_the_offset_only(rng, d, base, offset):
    q, k = rng.normal(size=(3, d)), rng.normal(size=(4, d))
    q_at, k_at = rng.integers(-100, 100, size=3), rng.integers(-100, 100, size=4)
    here = positions.rotary(q, q_at, base) @ positions.rotary(k, k_at, base).T
    there = positions.rotary(q, q_at + offset, base) @ positions.rotary(k, k_at + offset, base).T
    np.testing.assert_allclose(there, here, atol=1e-10)
    same = positions.rotary(q, [offset] * 3, base) @ positions.rotary(k, [offset] * 4, base).T
    np.testing.assert_allclose(same, q @ k.T, atol=1e-10)


def test_far_positions_stay_exact_in_float32(rng):
    x = rng.normal(size=(3, 8)).astype(np.float32)
    far = [10**6, 10**6 + 1, 10**7 + 3]
    np.testing.assert_allclose(positions.rotary(x, far), positions.rotary(x.astype(float), far), atol=1e-6)
    assert positions.rotary(np.ones((2, 0, 4)), np.arange(0)).shape == (2, 0, 4)  # no rows are fine


def test_changing_positions_or_results_afterwards_spoils_nothing(rng):
    """Tables are remembered between calls."""
    x, pos = rng.normal(size=(4, 6)), np.arange(4)
    first = positions.rotary(x, pos)
    want = first.copy()
    np.testing.assert_array_equal(pos, np.arange(4))
    pos += 1
    assert (positions.rotary(x, pos) != want).any()
    first[:] = np.nan
    np.testing.assert_array_equal(positions.rotary(x, np.arange(4)), want)
    np.testing.assert_array_equal(positions.rotary(x, np.arange(4, dtype=np.uint8)), want)
    assert (positions.rotary(x, np.arange(4), base=100) != want).any()


# --- ALiBi ------------------------------------------------------------------------------------------------------------


def slopes_as_in_the_authors_code(n):
    """From https://github.com/ofirpress/attention_with_linear_biases, fairseq/models/transformer.py, renamed."""

    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + slopes_as_in_the_authors_code(2 * closest)[0::2][: n - closest]


@pytest.mark.parametrize("num_heads", range(1, 41))
def test_slopes_are_those_of_the_authors_code(num_heads):
    slopes = positions.alibi_slopes(num_heads)
    assert slopes.shape == (num_heads,)
    np.testing.assert_allclose(slopes, slopes_as_in_the_authors_code(num_heads), rtol=1e-12)


@given(st.integers(1, 7), st.integers(0, 5), st.integers(0, 4))
def test_the_bias_falls_with_the_distance_to_the_query(num_heads, T_q, cached):
    bias, slopes = positions.alibi_bias(num_heads, T_q, T_q + cached), positions.alibi_slopes(num_heads)
    assert bias.dtype == np.float64
    distance = abs(np.arange(cached, cached + T_q)[:, None] - np.arange(T_q + cached))
    np.testing.assert_allclose(bias, -slopes[:, None, None] * distance, rtol=1e-15)
    assert not np.signbit(bias[bias == 0]).any()  # 0, not −0
    np.testing.assert_array_equal(positions.alibi_bias(num_heads, T_q), bias[:, :, cached:])
