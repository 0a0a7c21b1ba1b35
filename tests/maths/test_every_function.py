"""What every public function promises of its input: one table of examples, and one test for each promise."""

import inspect
import re

import numpy as np
import pytest

from lesson_utils.maths import attention, costs, efficient, fast_weights, ops, positions, recurrent, tasks

# The axes of an array, all of different sizes; "..." stands for leading axes. Whatever is no string is passed on.
SIZES = {"q": 3, "k": 5, "d": 4, "v": 6, "w": 8, "m": 12, "a": 9, "h": 7, "3h": 21, "4h": 28, "d+v": 10, "2": 2}
FUNCTIONS = {
    ops.softmax: dict(x="... q k", axis=-2, temperature=0.5),
    ops.log_softmax: dict(x="... q k", axis=-2),
    ops.entropy: dict(weights="... q k", axis=-2),
    ops.softmax_jacobian: dict(weights="... k"),
    ops.cross_entropy: dict(logits="q d", targets=[0, 3, 1], smoothing=0.1),
    ops.linear: dict(x="... d", W="d v", b="v"),
    ops.embedding: dict(ids=[0, 2, 2], table="k d"),
    ops.layer_norm: dict(x="... d", gamma="d", beta="d", eps=0.3),
    ops.rms_norm: dict(x="... d", gamma="d", eps=0.3),
    ops.relu: dict(x="... d"),
    ops.gelu: dict(x="... d"),
    ops.sigmoid: dict(x="... d"),
    ops.swiglu: dict(gate="... d", value="... d"),
    ops.row_sums: dict(x="... d"),
    ops.column_sums: dict(x="q k d"),
    attention.scaled_dot_product_attention: dict(Q="... q d", K="... k d", V="... k v", mask="... q k", scale=0.7),
    attention.dot_score: dict(queries="... q d", keys="... k d"),
    attention.general_score: dict(queries="... q d", keys="... k v", W="d v"),
    attention.additive_score: dict(queries="... q d", keys="... k v", W_q="d a", W_k="v a", v="a"),
    attention.concat_score: dict(queries="... q d", keys="... k v", W="d+v a", v="a"),
    attention.split_heads: dict(x="... q w", num_heads=4),
    attention.merge_heads: dict(x="... h q d"),
    attention.repeat_heads: dict(x="... 2 q d", num_heads=4),
    attention.multi_head_attention: dict(
        x_q="... q d",
        x_kv="... k v",
        W_Q="d w",
        W_K="v w",
        W_V="v m",
        W_O="m a",
        num_heads=4,
        mask="q k",
        num_kv_heads=4,
    ),
    attention.causal_mask: dict(T_q=3, T_k=5),
    attention.padding_mask: dict(lengths=[2, 5], T=5),
    positions.rotary: dict(x="... k d", positions=[4, 0, -3, 100, 7], base=10.0, scale=0.5),
    positions.sinusoidal_encoding: dict(length=5, d_model=4, base=10.0),
    positions.wavelengths: dict(d_model=4, base=10.0),
    positions.shift_matrix: dict(offset=-3, d_model=4, base=10.0),
    positions.alibi_slopes: dict(num_heads=3),
    positions.alibi_bias: dict(num_heads=3, T_q=3, T_k=5),
    efficient.elu_feature_map: dict(x="... d"),
    efficient.linear_attention: dict(Q="... q d", K="... k d", V="... k v", causal=True),
    efficient.online_attention: dict(Q="... q d", K="... k d", V="... k v", mask="... q k", block_size=2),
    efficient.window_mask: dict(T=5, window=2),
    efficient.global_mask: dict(T=5, global_tokens=[0, 3]),
    efficient.block_mask: dict(T=5, block=2),
    efficient.strided_mask: dict(T=5, stride=2),
    efficient.reach: dict(mask="k k", layers=3),
    fast_weights.write: dict(S="... d v", k="... d", v="... v", decay=0.9, overwrite=True, rate=0.5),
    fast_weights.read: dict(S="... d v", q="... d"),
    fast_weights.decayed_attention: dict(Q="... q d", K="... k d", V="... k v", decay=0.9),
    recurrent.rnn_cell: dict(x="q d", h="q h", W_x="d h", W_h="h h", b="h"),
    recurrent.gru_cell: dict(x="q d", h="q h", W_x="d 3h", W_h="h 3h", b="3h", b_h="h"),
    recurrent.lstm_cell: dict(x="q d", h="q h", c="q h", W_x="d 4h", W_h="h 4h", b="4h"),
    recurrent.init_params: dict(kind="gru", d_in=3, d_h=2, rng=np.random.default_rng(0)),
    tasks.letters: dict(num_symbols=5),
    tasks.reversal: dict(rng=np.random.default_rng(0), batch=3, length=5, num_symbols=4),
    tasks.gather: dict(rng=np.random.default_rng(0), batch=3, T=5, k=2, num_symbols=4),
    tasks.scattered_offsets: dict(T=5, k=2),
    tasks.reversal_batches: dict(shortest=3, longest=5),
    tasks.text_batches: dict(ids=range(9), T=5, batch=3, rng=np.random.default_rng(0)),
    costs.attention_cost: dict(T=5, d_model=8, num_heads=4, T_k=3),
    costs.cache_bytes: dict(tokens=5, num_layers=3, num_kv_heads=2, d_head=4, bits=8, local_layers=1, window=2),
}


def make_shape(axes, leading=()):
    """Return the shape that a string of axes stands for."""
    return sum((leading if axis == "..." else (SIZES[axis],) for axis in axes.split()), ())


def is_array(value):
    return isinstance(value, str) and set(value.split()) <= {*SIZES, "..."}


def make_arguments(function, rng, dtype=np.float64, leading=(), **spoilt):
    """Return arguments that fit: read-only arrays, and everything else as it stands in the table."""
    arguments = dict(FUNCTIONS[function])
    for name, axes in FUNCTIONS[function].items():
        if is_array(axes):
            shape, whole = make_shape(axes, leading), np.dtype(dtype).kind in "biu"
            reals = rng.random(shape) if name == "weights" else rng.normal(size=shape)
            numbers = rng.integers(2, size=shape) if whole else reals
            arguments[name] = rng.random(shape) < 0.7 if name == "mask" else numbers.astype(dtype)
            arguments[name].flags.writeable = False
    return arguments | spoilt


def results(function, arguments):
    """Return all results of a function, as a tuple."""
    found = function(**arguments)
    return found if type(found) is tuple else (found,)


def refuses(function, arguments, message):
    """Check that a call is refused with a message in which this pattern is found, and return the message."""
    with pytest.raises(ValueError, match=message) as error:
        function(**arguments)
    return str(error.value)


def each(condition):
    """Parametrize over every function, argument and value in the table that satisfies the condition."""
    found = [(f, name, value) for f, given in FUNCTIONS.items() for name, value in given.items()]
    found = [case for case in found if condition(*case)]
    ids = [f"{f.__name__}-{name}" for f, name, _ in found]
    return pytest.mark.parametrize(("function", "name", "value"), found, ids=ids)


def real_arrays(function):
    """Return the names and axes of a function's arrays of real numbers."""
    return {name: value for name, value in FUNCTIONS[function].items() if is_array(value) and name != "mask"}


computing = [f for f in FUNCTIONS if real_arrays(f)]
every_function = pytest.mark.parametrize("function", computing, ids=lambda f: f.__name__)
MODULES = (ops, attention, positions, efficient, fast_weights, recurrent, costs)
PUBLIC = {
    function
    for module in MODULES
    for name, function in vars(module).items()
    if inspect.isfunction(function)
    and function.__module__.startswith("lesson_utils.")
    and not re.match(r"_|as_|check_|same_|x_|.*_(forward|backward)$", name)  # x_: mutmut's copies
} - {recurrent.gradient_norms_through_time}  # it takes a list of arrays


def test_the_table_holds_every_public_function():
    assert set(FUNCTIONS) >= PUBLIC


# --- Dtypes, memory, leading axes -------------------------------------------------------------------------------------


@every_function
def test_float32_stays_float32_and_nearly_the_same_numbers(function, rng):
    """Read-only arrays show that no input is changed; a number from NumPy does not promote."""
    narrow = make_arguments(function, rng, np.float32)
    wide = {name: x.astype(float) if name in real_arrays(function) else x for name, x in narrow.items()}
    numbers = {name: np.float64(x) for name, x in narrow.items() if isinstance(x, float)}
    for got, want in zip(results(function, narrow | numbers), results(function, wide), strict=True):
        if function is ops.cross_entropy:
            assert type(got) is type(want) is float
        else:
            assert (got.dtype, want.dtype) == (np.float32, np.float64)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@every_function
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
def test_whole_numbers_become_float64_and_lists_are_fine(function, dtype, rng):
    arguments = make_arguments(function, rng, dtype)
    lists = {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
    for got, want in zip(results(function, arguments), results(function, lists), strict=True):
        assert np.asarray(got).dtype == np.float64
        np.testing.assert_array_equal(got, want)


VIEWS = {
    "turned round": lambda x: x[..., ::-1],
    "every other column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "columns first": np.asfortranarray,
    "axes swapped": lambda x: x.swapaxes(0, -1).copy().swapaxes(0, -1),
    "one row for all": lambda x: np.broadcast_to(x[:1], x.shape),
}


@every_function
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_serve_as_well_as_copies(function, view, rng):
    arguments = make_arguments(function, rng, leading=(2, 3))
    views = {name: view(x) if is_array(FUNCTIONS[function][name]) else x for name, x in arguments.items()}
    copies = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in views.items()}
    for got, want in zip(results(function, views), results(function, copies), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [f for f in computing if "..." in str(FUNCTIONS[f])], ids=lambda f: f.__name__)
@pytest.mark.parametrize("leading", [(1,), (2,), (3, 2), (0,), (2, 0)])
def test_leading_axes_are_a_loop_over_them(function, leading, rng):
    arguments = make_arguments(function, rng, leading=leading)
    batched = [name for name, value in FUNCTIONS[function].items() if is_array(value) and "..." in value]
    alone = [x.shape for x in results(function, make_arguments(function, rng))]
    found = results(function, arguments)
    assert [x.shape for x in found] == [leading + shape for shape in alone]
    for i in np.ndindex(leading):
        one = results(function, arguments | {name: arguments[name][i] for name in batched})
        for got, want in zip(found, one, strict=True):
            np.testing.assert_allclose(got[i], want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [f for f in computing if "Q" in FUNCTIONS[f]], ids=lambda f: f.__name__)
def test_no_queries_are_fine(function, rng, monkeypatch):
    monkeypatch.setitem(SIZES, "q", 0)
    assert results(function, make_arguments(function, rng))[0].shape == (0, SIZES["v"])


USUAL = dict(axis=-1, temperature=1.0, smoothing=0.0, eps=1e-5, base=1e4, scale=1.0, causal=False, bits=16)
USUAL |= dict(decay=1.0, overwrite=False, rate=1.0, gates=1, local_layers=0)
UNDRAWN = [f for f in FUNCTIONS if "rng" not in FUNCTIONS[f] and "tasks" not in f.__module__]


@pytest.mark.parametrize("function", UNDRAWN, ids=lambda f: f.__name__)
def test_what_is_left_out_has_the_value_of_papers_and_of_pytorch(function, rng):
    """The notebooks' numbers rest on it."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    usual = {name: value for name, value in USUAL.items() if defaults.get(name) not in (None, inspect.Parameter.empty)}
    given = {name: x for name, x in make_arguments(function, rng).items() if name not in usual}
    np.testing.assert_equal(function(**given), function(**given | usual))


# --- What is refused --------------------------------------------------------------------------------------------------


def is_real(function, name, value):
    return function in computing and name in real_arrays(function)


@each(is_real)
def test_what_is_no_real_number_is_refused(function, name, value, rng):
    for bad in (complex, "U1", object):  # other dtypes: test_checks.py
        spoilt = np.ones(make_shape(value)).astype(bad)
        message = f"^{name} has dtype {spoilt.dtype}; expected real numbers"
        refuses(function, make_arguments(function, rng, **{name: spoilt}), message)


# −∞ may be a score that is hidden; heads and rotations move numbers without looking at them.
UNSEEN = (ops.softmax, ops.sigmoid, ops.row_sums, ops.column_sums, efficient.elu_feature_map, positions.rotary)
UNSEEN += (attention.split_heads, attention.merge_heads, attention.repeat_heads)


@each(lambda function, name, value: is_real(function, name, value) and function not in UNSEEN)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(function, name, value, bad, rng):
    spoilt = make_arguments(function, rng)[name].copy()
    spoilt.flat[-1] = bad
    reason = "numbers outside 0…1, or NaN" if name == "weights" else "NaN or infinite values; expected finite numbers"
    refuses(function, make_arguments(function, rng, **{name: spoilt}), f"^{name} holds {reason}")


@each(lambda function, name, value: is_real(function, name, value) and len(real_arrays(function)) > 1)
def test_mixed_dtypes_are_refused(function, name, value, rng):
    spoilt = np.ones(make_shape(value), np.float32)
    refuses(function, make_arguments(function, rng, **{name: spoilt}), rf"^dtypes differ \(.*\b{name} float32")


ANY_SHAPE = (ops.relu, ops.gelu, ops.sigmoid, ops.column_sums, ops.cross_entropy, efficient.elu_feature_map)


def misfits(function, name):
    """Yield shapes that an array must not have: too few axes or too many, or one unlike that of another array."""
    arrays = {other: axes.split() for other, axes in real_arrays(function).items()}
    axes, inner = arrays[name], make_shape(real_arrays(function)[name])
    if function not in ANY_SHAPE:
        yield inner[1:]
    if len(arrays) == 1:
        return
    others = [axis for other in arrays for axis in arrays[other] if other != name]
    if axes[0] != "...":
        yield (1, *inner)
    elif "..." in others:
        yield from (inner, (9, *inner))
    for i, axis in enumerate(axes[-len(inner) :]):
        beside = [*others, *axes]
        beside.remove(axis)
        if any(set(re.findall("[a-z]", axis)) & set(re.findall("[a-z]", other)) for other in beside):
            yield ((2,) if axes[0] == "..." else ()) + (*inner[:i], 2 * inner[i], *inner[i + 1 :])


@each(is_real)
def test_shapes_that_do_not_fit_are_refused_and_named(function, name, value, rng):
    for shape in misfits(function, name):
        arguments = make_arguments(function, rng, leading=(2,), **{name: np.ones(shape)})
        message = refuses(function, arguments, "expect|must|need|not exist")
        shapes = {other: np.shape(arguments[other]) for other in real_arrays(function)}
        named = [other for other, size in shapes.items() if other in message and str(size) in message]
        assert named or str(shape) in message, (message, shapes)


@each(lambda function, name, value: name == "mask")
def test_masks_are_boolean_and_fit(function, name, value, rng):
    for dtype in (float, int):
        spoilt = np.ones(make_shape(value), dtype)
        refuses(function, make_arguments(function, rng, mask=spoilt), f"^mask .*{spoilt.dtype}.*; expected booleans")
    for shape in ((3, 4), (4,), (2, *make_shape(value))):
        message = f"^mask has shape {re.escape(str(shape))}; expected"
        refuses(function, make_arguments(function, rng, mask=np.ones(shape, bool)), message)


MASKS = (attention, positions, efficient)  # they accept that there is nothing


@each(lambda function, name, value: type(value) is int)
def test_sizes_are_whole_numbers_and_large_enough(function, name, value, rng):
    for bad in (2.5, 2.0, "3"):
        refuses(function, make_arguments(function, rng, **{name: bad}), f"^{name}={bad!r} must be a whole number")
    if name not in ("axis", "offset"):
        of_masks = function.__module__.startswith(tuple(module.__name__ for module in MASKS))
        from_0 = ("tokens", "local_layers", "window", "layers", *(("T", "T_q", "T_k", "length") if of_masks else ()))
        least = 0 if name in from_0 else 1
        message = f"^{name}={least - 1} must be at least {least}"
        refuses(function, make_arguments(function, rng, **{name: least - 1}), message)


@each(lambda function, name, value: name in ("ids", "targets", "lengths", "global_tokens"))
@pytest.mark.parametrize("bad", [float, bool])
def test_places_in_a_table_are_integers(function, name, value, bad, rng):
    message = f"^{name} (is|has dtype) {np.dtype(bad)}.*; expected integers"
    refuses(function, make_arguments(function, rng, **{name: np.array(value, bad)}), message)


@each(lambda function, name, value: type(value) is float)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, "a"])
def test_numbers_are_finite(function, name, value, bad, rng):
    refuses(function, make_arguments(function, rng, **{name: bad}), f"^{name}={bad!r} must be a finite number")
