"""The exercises of notebook 03, and the ways to get them wrong, as learners type them."""

from collections.abc import Sequence

import numpy as np

from lesson_utils.lessons.common_mistakes import answers
from lesson_utils.maths import attention
from lesson_utils.mistakes.exercise import Case, Exercise, change

# fmt: off

SPLIT = (
    change('reshaped without a swap', 'Your heads are cut as by a reshape straight to (..., h, T, d_k), which never moves an entry past another: head 0 is filled with the first tokens, head 1 with the next. Reshape to (..., T, h, d_k) first, then swap the axes T and h.', "x.reshape(num_heads, -1, x.shape[-1] // num_heads)", "x.reshape(num_heads, x.shape[-2], -1)", cut="x = x.reshape(*leading, num_heads, T, d_k)", swap="return x"),
    change('not swapped', 'T and h are not swapped in your result. After the cut into (..., T, h, d_k), let them change places, so that each head has all tokens: `.swapaxes(-2, -3)`.', swap="return x"),
    change('every h-th column', 'Your head 0 gets the columns 0, h, 2h …; it should get the first d_k columns. Cut each row into h pieces of d_k: with `*leading, T, d_model = x.shape`, that is `reshape(*leading, T, num_heads, d_model // num_heads)`. Then swap T and h.', "np.stack([x[..., i::num_heads] for i in range(num_heads)], axis=-3)", cut="x = x.reshape(*leading, T, d_k, num_heads)", swap="return np.moveaxis(x, -1, -3)"),
    change('heads and width mixed up', 'Your numbers are cut as by a reshape to (..., T, d_k, h). `num_heads` is how many pieces there are; each is `d_model // num_heads` wide. With `*leading, T, d_model = x.shape`, that is `reshape(*leading, T, num_heads, d_model // num_heads)`.', cut="x = x.reshape(*leading, T, d_k, num_heads)"),
    change('width and heads swapped', 'Other axes than T and h have changed places in your result. After the reshape the axes are (..., T, h, d_k), and T and h change places: `.swapaxes(-2, -3)`, or `axis=-3` of `np.stack`.', swap="return x.swapaxes(-1, -2)"),
    change("width and tokens swapped", "Your result is as if the last axis had changed places with the third from the end. After the reshape the axes are (..., T, h, d_k), and T and h change places: `.swapaxes(-2, -3)`.", swap="return x.swapaxes(-1, -3)"),
    change('all axes turned around', '`.T`, and `.transpose()` without arguments, reverse all axes. Only T and h change places: `.swapaxes(-2, -3)`.', swap="return x.T"),
    change(
        'two axes taken for granted', 'Your code is for x with two axes, (T, d_model). There may be any number in front: take the last two, `*leading, T, d_model = x.shape`, pass `*leading` on to `reshape`, and swap the axes −2 and −3.',
        "T, d_model = x.shape\nreturn x.reshape(T, num_heads, d_model // num_heads).swapaxes(0, 1)",
        "T, d_model = x.shape[0], x.shape[1]\nreturn x.reshape(T, num_heads, d_model // num_heads).swapaxes(0, 1)",
        "x.reshape(x.shape[0], num_heads, -1).swapaxes(0, 1)",
        "T, d_model = x.shape[-2:]\nreturn x.reshape(T, num_heads, d_model // num_heads).swapaxes(0, 1)",
        "x.reshape(len(x), num_heads, x.shape[1] // num_heads).transpose(1, 0, 2)",
        swap="return x.transpose(1, 0, 2)",
    ),
    change(
        "pieces cut for two axes", "Your pieces are cut for x with two axes, (T, d_model). There may be any number in front: cut the last axis, after `...` or with `axis=-1`, and put the pieces right before T, `np.stack(heads, axis=-3)`.",
        "d_k = x.shape[1] // num_heads\nreturn np.stack([x[:, i * d_k : (i + 1) * d_k] for i in range(num_heads)])",
        "d_k = x.shape[-1] // num_heads\nreturn np.stack([x[:, i * d_k : (i + 1) * d_k] for i in range(num_heads)])",
        "np.array(np.split(x, num_heads, axis=1))",
    ),
    change(
        'three axes taken for granted', 'Your code is for x with three axes, (B, T, d_model). There may be fewer or more in front: take the last two, `*leading, T, d_model = x.shape`, pass `*leading` on to `reshape`, and swap the axes −2 and −3.',
        "B, T, d = x.shape\nreturn x.reshape(B, T, num_heads, d // num_heads).swapaxes(1, 2)",
        "x.reshape(x.shape[0], x.shape[1], num_heads, x.shape[2] // num_heads).swapaxes(1, 2)",
        "x.reshape(x.shape[0], x.shape[1], num_heads, -1).swapaxes(1, 2)",
        swap="return x.transpose(0, 2, 1, 3)",
    ),
    change('axes counted from the front', 'You swap two axes counted from the front. Which axes these are depends on how many leading axes there are. Count from the end: `.swapaxes(-2, -3)`.', swap=("return x.swapaxes(0, 1)", "return x.swapaxes(1, 2)", "return np.moveaxis(x, 1, 0)")),
    change('heads before everything', 'Your heads stand in front of the leading axes. They belong right before T: (..., h, T, d_k). With `np.stack`, that is `axis=-3`.', "np.stack(np.split(x, num_heads, axis=-1))", swap="return np.moveaxis(x, -2, 0)"),
    change(
        'tokens split', 'You give each head some of the tokens. Each head sees all tokens, and some of the columns: split the last axis.',
        "np.stack(np.split(x, num_heads, axis=-2), axis=-3)",
        "np.stack(np.split(x, num_heads, axis=-2))",
        "np.stack(np.split(x, num_heads))",
        "np.split(x, num_heads, axis=-2)",
        "np.array(np.split(x, num_heads, axis=0))",
    ),
    change('a list of heads', 'You return a list. Put its arrays on an axis of their own, right before T: `np.stack(heads, axis=-3)`.', "np.split(x, num_heads, axis=-1)"),
    change('a float for a size', '`/` gives a float, even 6 / 2, and a size must be a whole number. Write `d_model // num_heads`.', sizes="*leading, T, d_model = x.shape\nd_k = d_model / num_heads"),
    change("pieces overlap", "Your pieces overlap: head i begins at column i, not at i · d_k. Head i takes the columns i·d_k … (i + 1)·d_k − 1.", "*leading, T, d_model = x.shape\nd_k = d_model // num_heads\nreturn np.stack([x[..., i : i + d_k] for i in range(num_heads)], axis=-3)"),
    change("num_heads for the width", "You make pieces of width `num_heads`. `num_heads` is how many pieces there are; each is `d_model // num_heads` wide.", sizes="*leading, T, d_model = x.shape\nd_k = num_heads\nnum_heads = d_model // d_k"),
)

_FOR = "outputs, maps = [], []\nfor i in range(num_heads):\n    d_k, d_v = W_Q.shape[1] // num_heads, W_V.shape[1] // num_heads\n"


def _looped(query: str, key: str, value: str, end: str = "np.concatenate(outputs, axis=-1) @ W_O, np.stack(maps, axis=-3)", x: str = "x") -> str:
    return (
        f"{_FOR}    output, A = attention.scaled_dot_product_attention({x} @ {query}, {x} @ {key}, {x} @ {value})\n"
        f"    outputs.append(output)\n    maps.append(A)\nreturn {end}"
    )


def _sliced(rows: str, columns: str, values: str, x: str) -> str:
    matrices = f"W_Q[{rows}, {columns}]", f"W_K[{rows}, {columns}]", f"W_V[{rows}, {values}]"
    return f"d = x.shape[-1] // num_heads\n{_looped(*matrices, x=x)}"


_ROWS, _KEY_COLUMNS, _VALUE_COLUMNS = (f"i * {n} : (i + 1) * {n}" for n in ("d", "d_k", "d_v"))
_PIECE = ("W_Q[:, i * d_k : (i + 1) * d_k]", "W_K[:, i * d_k : (i + 1) * d_k]", "W_V[:, i * d_v : (i + 1) * d_v]")
_SCRAMBLED = {n: f"{n} = (x @ W_{n}).reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)" for n in "QKV"}
_CUT = {n: f"{n} = (x @ W_{n}).reshape(*x.shape[:-1], num_heads, -1)" for n in "QKV"}
_OWN = "weights = ops.softmax(Q @ K.swapaxes(-1, -2) / math.sqrt({}){})\nheads = weights @ V"

MULTI = (
    change(
        "the width of a head from d_model",
        "You take the width of a head as d_model // num_heads. Here it need not be: the queries and keys of a head have `W_Q.shape[-1] // num_heads` columns, and its values `W_V.shape[-1] // num_heads`.",
        Q="Q = (x @ W_Q).reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-3, -2)",
        K="K = (x @ W_K).reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-3, -2)",
        V="V = (x @ W_V).reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-3, -2)",
    ),
    change(
        "merged to d_model",
        "The merged heads are h·d_v wide, and not always d_model: write -1 for the last size in `reshape`, or use `attention.merge_heads`.",
        merge="joined = heads.swapaxes(-3, -2).reshape(x.shape)",
    ),
    change('one big head', 'This is one big head: queries and keys meet in their full width, and there is one set of weights. Split the queries, keys and values into heads first; each head then has weights of its own.', Q="Q = x @ W_Q", K="K = x @ W_K", V="V = x @ W_V", merge="joined = heads"),
    change('W_O left out', 'Your output is not multiplied by W_O, which mixes what the heads brought. Multiply the joined heads by it: `… @ W_O`.', mix="output = joined"),
    change('heads scrambled', 'Your heads hold the wrong tokens, as after a reshape without a swap. Reshape to (..., T, h, d_k), then swap T and h; merge the same way back.', **_SCRAMBLED, merge=("joined = attention.merge_heads(heads)", "joined = heads.reshape(*x.shape[:-1], -1)")),
    change('merged without a swap', 'Your heads are merged as by `reshape` alone: tokens of one head end up in one row. Swap T and h first.', merge="joined = heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)"),
    change('not swapped after the cut', 'Your heads have the shape (..., T, h, d_k), so that the heads of one token attend to each other. Swap T and h: the tokens of one head attend to each other.', **_CUT, merge="joined = heads.reshape(*x.shape[:-1], -1)"),
    change('every h-th column', 'Your head 0 takes the columns 0, h, 2h …; it should take the first d_k columns, head 1 the next.', _looped("W_Q[:, i::num_heads]", "W_K[:, i::num_heads]", "W_V[:, i::num_heads]"), _looped(_PIECE[0], _PIECE[1], "W_V[:, i::num_heads]"), _looped("W_Q[:, i::num_heads]", "W_K[:, i::num_heads]", _PIECE[2])),
    change("last head first", "You join the heads in the reverse order, the last one first. The first rows of W_O belong to the first head.", merge="joined = attention.merge_heads(heads[..., ::-1, :, :])"),
    change('one piece, many times', 'Your heads share one piece: they take the same columns of the queries and the keys. Head i takes the columns i·d_k … (i + 1)·d_k − 1.', _looped("W_Q[:, :d_k]", "W_K[:, :d_k]", "W_V[:, :d_v]"), _looped("W_Q[:, :d_k]", "W_K[:, :d_k]", _PIECE[2])),
    change("the whole matrix for each head", "Each of your heads takes the whole of a matrix. Its columns are divided among the heads: head i takes the columns i·d_k … (i + 1)·d_k − 1 of `W_Q` and `W_K`, and i·d_v … (i + 1)·d_v − 1 of `W_V`.", _looped("W_Q", "W_K", "W_V")),
    change("rows for columns", "You cut `W_Q`, `W_K` and `W_V` into rows. Every head needs all their rows, because it reads all of x. Head i has columns of its own: i·d_k … (i + 1)·d_k − 1 of `W_Q` and `W_K`, and i·d_v … (i + 1)·d_v − 1 of `W_V`.", _looped(f"W_Q[{_KEY_COLUMNS}]", f"W_K[{_KEY_COLUMNS}]", f"W_V[{_VALUE_COLUMNS}]"), _looped(f"W_Q[{_KEY_COLUMNS}, :]", f"W_K[{_KEY_COLUMNS}, :]", f"W_V[{_VALUE_COLUMNS}, :]")),
    change("one under the other", "You join the heads along the first axis, as if they were more tokens. They go side by side: `axis=-1` of `np.concatenate`.", _looped(*_PIECE, end="np.concatenate(outputs) @ W_O, np.stack(maps, axis=-3)"), _looped(*_PIECE, end="np.concatenate(outputs) @ W_O, np.stack(maps)")),
    change('heads not side by side', 'Your heads are added up, averaged, not joined, or only one of them is left. They go side by side, width h·d_v, so that W_O can use each in its own way.', merge=("joined = heads.sum(axis=-3)", "joined = heads.mean(axis=-3)", "joined = heads[..., 0, :, :]", "joined = heads")),
    change("values cut by d_k", "You cut the values into pieces of width d_k. Their width is d_v = W_V.shape[1] // num_heads, which may be another.", _looped(_PIECE[0], _PIECE[1], "W_V[:, i * d_k : (i + 1) * d_k]"), V="V = (x @ W_V).reshape(*x.shape[:-1], num_heads, W_Q.shape[1] // num_heads).swapaxes(-2, -3)"),
    change('values not projected', 'What your weights average are not the values. The values have a matrix of their own: `x @ W_V`, split into heads. The weights of each head average the values of that head.', V=("V = attention.split_heads(x, num_heads)", "V = attention.split_heads(x @ W_K, num_heads)", "V = attention.split_heads(x @ W_Q, num_heads)")),
    change('nothing projected', 'You split x itself. Project first: queries are `x @ W_Q`, keys `x @ W_K`, and values `x @ W_V`. Then split each into heads.', Q="Q = attention.split_heads(x, num_heads)", K="K = attention.split_heads(x, num_heads)", V="V = attention.split_heads(x, num_heads)"),
    change(
        "a slice of x for each head", "You give each head a slice of x. But every head reads all of x: only the columns of `W_Q`, `W_K` and `W_V` are divided among the heads. Multiply first, `x @ W_Q`, and then split the result into heads.",
        _sliced(_ROWS, _KEY_COLUMNS, _VALUE_COLUMNS, x=f"x[..., {_ROWS}]"),
        _sliced(_ROWS, _KEY_COLUMNS, _VALUE_COLUMNS, x="attention.split_heads(x, num_heads)[..., i, :, :]"),
        _sliced(_ROWS, _ROWS, _ROWS, x=f"x[..., {_ROWS}]"),
        _sliced(_ROWS, ":", ":", x=f"x[..., {_ROWS}]"),
        _sliced(":", _KEY_COLUMNS, _VALUE_COLUMNS, x=f"x[..., {_ROWS}]"),
        **{n: f"{n} = attention.split_heads(x, num_heads) @ W_{n}" for n in "QKV"},
    ),
    change('keys are queries', "Your keys are x itself, or made with the queries' matrix. Queries are `x @ W_Q`, keys `x @ W_K`.", K=("K = attention.split_heads(x @ W_Q, num_heads)", "K = attention.split_heads(x, num_heads)")),
    change("queries not projected", "Your queries are x itself, or made with the keys' matrix. The queries are `x @ W_Q`, split into heads.", Q=("Q = attention.split_heads(x, num_heads)", "Q = attention.split_heads(x @ W_K, num_heads)")),
    change('queries and keys swapped', 'You have queries and keys the wrong way round: queries are `x @ W_Q`, keys `x @ W_K`.', Q="Q = attention.split_heads(x @ W_K, num_heads)", K="K = attention.split_heads(x @ W_Q, num_heads)"),
    change('matrices transposed', 'You multiply x by a transposed matrix. Multiply it by each matrix as it is: `x @ W_Q`, with W_Q of shape (d_model, h·d_k).', Q=("Q = attention.split_heads(x @ W_Q.T, num_heads)", "Q = attention.split_heads(x @ W_Q, num_heads)"), K="K = attention.split_heads(x @ W_K.T, num_heads)", V=("V = attention.split_heads(x @ W_V.T, num_heads)", "V = attention.split_heads(x @ W_V, num_heads)")),
    change('W_O transposed', 'You multiply by W_O transposed. W_O is (h·d_v, d_out), and the joined heads are h·d_v wide: `… @ W_O`.', mix="output = joined @ W_O.T"),
    change("matrix in front", "You put a matrix in front of x. Each row of x is a token, so the matrix comes after it: `x @ W_Q`.", Q="Q = attention.split_heads(W_Q @ x, num_heads)"),
    change("W_O in front", "You put W_O in front. Each row is a token, so the matrix comes after it: `… @ W_O`.", mix="output = W_O @ joined"),
    change("W_O before the merge", "You multiply each head by W_O before the heads are joined. Join first, (..., T, h·d_v), then `@ W_O`.", merge="joined = heads @ W_O", mix="output = attention.merge_heads(joined)"),
    change('scaled by the whole width', "You divide the scores by √d_model, or √(h·d_k): the root of the whole width. Each head's dot products have d_k terms: √d_k. `attention.scaled_dot_product_attention` does it for you.", attend=[_OWN.format(size, "") for size in ("W_Q.shape[1]", "x.shape[-1]")]),
    change("scaled by another size", "You divide by the root of a size that is not d_k, such as d_model / h, the number of heads or of tokens. d_k is the width of a head's key: `W_K.shape[1] // num_heads`.", attend=[_OWN.format(size, "") for size in ("x.shape[-1] // num_heads", "num_heads", "x.shape[-2]", "V.shape[-1]")]),
    change("divided by d_k", "Your scores are divided by d_k in all. Divide by its root, once: `attention.scaled_dot_product_attention` does it for you.", attend="weights = ops.softmax(Q @ K.swapaxes(-1, -2) / Q.shape[-1])\nheads = weights @ V"),
    change('not scaled', 'Your scores are not divided by √d_k. `attention.scaled_dot_product_attention` does it for you.', attend="weights = ops.softmax(Q @ K.swapaxes(-1, -2))\nheads = weights @ V"),
    change("scaled twice", "You divide by √d_k twice: the scores, and also the queries or the heads. Divide the scores once: `attention.scaled_dot_product_attention` does it for you.", attend=("heads, weights = attention.scaled_dot_product_attention(Q / math.sqrt(Q.shape[-1]), K, V)", "heads, weights = attention.scaled_dot_product_attention(Q, K, V)\nheads = heads / math.sqrt(Q.shape[-1])")),
    change('softmax over another axis', "Your weights do not sum to 1 over the keys. Softmax runs over the last axis of each head's scores.", attend=[_OWN.format("Q.shape[-1]", f", axis={axis}") for axis in (-2, -3)]),
    change("masked", "Your heads are masked: a token sees none of those after it. No mask is asked for here.", attend="heads, weights = attention.scaled_dot_product_attention(Q, K, V, attention.causal_mask(x.shape[-2]))"),
    change("arguments of attention in another order", "Queries, keys and values are mixed up in your attention. It takes them in this order: queries, keys, values.", attend=("heads, weights = attention.scaled_dot_product_attention(K, Q, V)", "heads, weights = attention.scaled_dot_product_attention(Q, V, K)", "heads, weights = attention.scaled_dot_product_attention(V, K, Q)")),
    change("pair not unpacked", "`attention.scaled_dot_product_attention` returns two things, the heads' outputs and the weights. Unpack them: `heads, weights = …`.", attend="heads = attention.scaled_dot_product_attention(Q, K, V)\nweights = heads"),
    change("pair unpacked the wrong way round", "You take the weights for the heads' outputs. `attention.scaled_dot_product_attention` returns first the outputs, then the weights: `heads, weights = …`.", attend="weights, heads = attention.scaled_dot_product_attention(Q, K, V)"),
    change('weights averaged over the heads', "You return the heads' weights as one map, their mean or their sum. Return those of each head, (..., h, T, T).", answer=("return output, weights.mean(axis=-3)", "return output, weights.sum(axis=-3)")),
    change("one head's weights", 'You return the weights of one head only. Return those of each head, (..., h, T, T).', _looped(*_PIECE, end="np.concatenate(outputs, axis=-1) @ W_O, A"), answer=("return output, weights[..., 0, :, :]", "return output, weights[..., -1, :, :]")),
    change('weights with the heads in front', 'The heads of your weights stand in front of the leading axes. They belong right before the queries, (..., h, T, T): `np.stack(weights, axis=-3)`.', _looped(*_PIECE, end="np.concatenate(outputs, axis=-1) @ W_O, np.stack(maps)")),
    change("heads returned", "Your second result is what the heads have found. Return their weights, (..., h, T, T), as the second result.", answer="return output, heads"),
    *answers("output", "weights"),
    change("width of a head from d_model", "You cut pieces of width d_model / h. The width of a head is that of its matrix: d_k is `W_Q.shape[1] // num_heads`, and d_v is `W_V.shape[1] // num_heads`.", "d_k = x.shape[-1] // num_heads\npairs = [attention.scaled_dot_product_attention(*((x @ W)[..., i * d_k : (i + 1) * d_k] for W in (W_Q, W_K, W_V))) for i in range(num_heads)]\nheads, maps = zip(*pairs)\nreturn np.concatenate(heads, axis=-1) @ W_O, np.stack(maps, axis=-3)"),
    change("the first rows of W_O for all", "Every head is multiplied by the first rows of W_O. Head i has d_v rows of its own, i·d_v … (i + 1)·d_v − 1.", mix="d_v = heads.shape[-1]\noutput = sum(heads[..., i, :, :] @ W_O[:d_v] for i in range(num_heads))"),
)

_ROWS_OF_HEAD = "head * d_v : (head + 1) * d_v"

WITHOUT = (
    change("columns", "You set columns to 0. A head's output meets rows of W_O: head i has the rows i·d_v … (i + 1)·d_v − 1.", f"d_v = W_O.shape[1] // num_heads\nW_O = W_O.copy()\nW_O[:, {_ROWS_OF_HEAD}] = 0\nreturn W_O", zero=f"W_O[:, {_ROWS_OF_HEAD}] = 0"),
    change("one row", "You set a single row to 0. A head has d_v rows, `len(W_O) // num_heads` of them: head i has the rows i·d_v … (i + 1)·d_v − 1.", zero=("W_O[head] = 0", "W_O[head * d_v] = 0")),
    change("one column", "You set a single column to 0. A head has d_v rows: head i has the rows i·d_v … (i + 1)·d_v − 1.", zero="W_O[:, head] = 0"),
    change("every h-th row", "You take every h-th row. The outputs of the heads stand side by side as whole pieces, so the rows of a head are neighbours: i·d_v … (i + 1)·d_v − 1.", zero="W_O[head::num_heads] = 0"),
    change("only this head is left", "You take all the other heads away. The rows of this head must be 0, and those of the others stay.", size="d_v = len(W_O) // num_heads\nkept = np.zeros_like(W_O)", zero=f"kept[{_ROWS_OF_HEAD}] = W_O[{_ROWS_OF_HEAD}]", answer="return kept"),
    change("rows taken out", "You take the rows out, so the matrix no longer fits the heads' outputs. Keep its shape, and set these rows to 0.", f"d_v = len(W_O) // num_heads\nreturn np.delete(W_O, np.s_[{_ROWS_OF_HEAD}], axis=0)", "d_v = len(W_O) // num_heads\nreturn np.concatenate([W_O[: head * d_v], W_O[(head + 1) * d_v :]])"),
    change("width from the columns", "You take the width of a head from the columns of W_O, which are d_out. Each head has `len(W_O) // num_heads` rows.", size="d_v = W_O.shape[1] // num_heads"),
    change("num_heads rows", "You set `num_heads` rows to 0. `num_heads` is how many heads there are; each has `len(W_O) // num_heads` rows.", zero="W_O[head * num_heads : (head + 1) * num_heads] = 0"),
    change("from row i on", "Your rows begin at row i. Those of head i begin at row i·d_v.", zero="W_O[head : head + d_v] = 0"),
    change("counted from 1", "Your heads are counted from 1. They are counted from 0: head 0 has the first d_v rows.", zero="W_O[(head - 1) * d_v : head * d_v] = 0"),
    change("all up to this head", "You take this head away, and all before it. The rows of one head are i·d_v … (i + 1)·d_v − 1.", zero="W_O[: (head + 1) * d_v] = 0"),
    change(
        "rows counted from the end", "You count the rows from the end. Head i has the rows i·d_v … (i + 1)·d_v − 1, counted from the front.",
        "W_O = W_O.copy()\nd = len(W_O) // num_heads\nW_O[-head * d :] = 0\nreturn W_O",
    ),
    change("all from this head on", "You take this head away, and all after it. The rows of one head are i·d_v … (i + 1)·d_v − 1.", zero="W_O[head * d_v :] = 0"),
    change("the mean row", "You put the mean of the head's rows in their place. Taken away means that they add nothing: set them to 0.", zero=f"W_O[{_ROWS_OF_HEAD}] = W_O[{_ROWS_OF_HEAD}].mean(axis=0)"),
    change("still cut into heads", "Your matrix is still cut into heads, (h, d_v, d_out). Return it in the shape that it had: `.reshape(W_O.shape)`.", size="cut = W_O.copy().reshape(num_heads, -1, W_O.shape[1])", copy="cut[head] = 0", zero="", answer="return cut"),
    change("ones", "You set the rows to 1. What a head brings is multiplied by its rows, so only 0 takes it away.", zero=f"W_O[{_ROWS_OF_HEAD}] = 1"),
    change("a float for a size", "`/` gives a float, even 6 / 2, and a slice needs whole numbers. Write `len(W_O) // num_heads`.", size="d_v = len(W_O) / num_heads"),
)

# fmt: on

# --- Split and merge ------------------------------------------------------------------------------------------------


def _split_cases(rng: np.random.Generator) -> Sequence[Case]:
    return [
        Case("4 tokens of width 6, 3 heads", (rng.normal(size=(4, 6)), 3)),
        Case("leading axes (2,), 5 tokens of width 12, 4 heads", (rng.normal(size=(2, 5, 12)), 4)),
        Case("leading axes (2, 3), 7 tokens of width 10, 5 heads", (rng.normal(size=(2, 3, 7, 10)), 5)),
        Case("12 tokens of width 6, 2 heads", (rng.normal(size=(12, 6)), 2)),
        Case("one head", (rng.normal(size=(3, 4)), 1)),
        Case("as many heads as columns", (rng.normal(size=(2, 5, 3)), 3)),
        Case("float32 input", (rng.normal(size=(5, 8)).astype(np.float32), 2)),
        Case("as many heads as tokens", (rng.normal(size=(4, 8)), 4)),
        Case("leading axes (2, 1, 3), a single token of width 6, 2 heads", (rng.normal(size=(2, 1, 3, 1, 6)), 2)),
        Case("columns that stand one after the other in memory", (rng.normal(size=(6, 5)).T, 3)),
    ]


_SPLIT = Exercise(
    name="split_heads",
    called="my_split_heads",
    takes="x, num_heads",
    task="""Cut each token's vector into `num_heads` pieces, one for each head.

x: (..., T, d_model), any leading axes, also none; num_heads divides d_model.
Returns (..., h, T, d_k), with d_k = d_model // num_heads. NumPy only.
x stays as it was.""",
    reference=attention.split_heads,
    steps={
        "sizes": "*leading, T, d_model = x.shape\nd_k = d_model // num_heads",
        "cut": "x = x.reshape(*leading, T, num_heads, d_k)  # cut each row into pieces",
        "swap": "return x.swapaxes(-2, -3)  # (..., h, T, d_k)",
    },
    cases=_split_cases,
    returns=("heads",),
    hints=(
        "Two steps, as in the figure: cut each row into h pieces, then let two axes change places. What is the shape after each?",
        "Take the sizes from the end: `*leading, T, d_model = x.shape`. Whatever stands in front goes on unchanged: "
        "`x.reshape(*leading, ...)`.",
        "`reshape(*leading, T, num_heads, d_model // num_heads)`, then `.swapaxes(-2, -3)`.",
    ),
    mistakes=SPLIT,
    library=(attention.split_heads,),
    praise="Ten cases: any leading axes, one head, d_k = 1, float32. Each head has its own columns of every token.",
    in_pytorch="""# A `view` straight to (..., h, T, d_k) has the right shape, too, and mixes the tokens, as `reshape` does in NumPy.
heads = x.view(*x.shape[:-1], num_heads, -1).transpose(-3, -2)""",
)

# --- Multi-head attention -------------------------------------------------------------------------------------------


def _reference(x, W_Q, W_K, W_V, W_O, num_heads):  # type: ignore[no-untyped-def]
    return attention.multi_head_attention(x, x, W_Q, W_K, W_V, W_O, num_heads)


def _multi_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, T: int, d_model: int, h: int, d_k: int, d_v: int, d_out: int, *leading: int) -> Case:
        shapes = (*leading, T, d_model), (d_model, h * d_k), (d_model, h * d_k), (d_model, h * d_v), (h * d_v, d_out)
        return Case(label, (*(rng.normal(size=shape) for shape in shapes), h))

    *arrays, heads = case("", 5, 6, 3, 2, 2, 6).arguments
    return [
        case("5 tokens of width 12, 3 heads", 5, 12, 3, 4, 4, 12),
        case("leading axes (2,), 4 tokens of width 6, 2 heads", 4, 6, 2, 3, 3, 6, 2),
        case("leading axes (2, 3), 4 tokens of width 10, 5 heads", 4, 10, 5, 2, 2, 10, 2, 3),
        case("d_model = 5, h = 2, d_k = 3, d_v = 4, output width 7", 6, 5, 2, 3, 4, 7),
        case("one head", 3, 4, 1, 4, 4, 4),
        Case("float32 input", (*(a.astype(np.float32) for a in arrays), heads)),
        case("a batch of one, a single token", 1, 6, 2, 3, 3, 6, 1),
        case("as many sequences and heads as tokens", 3, 6, 3, 2, 2, 6, 3),
    ]


_MULTI = Exercise(
    name="multi_head_attention",
    called="my_multi_head",
    takes="x, W_Q, W_K, W_V, W_O, num_heads",
    task="""Multi-head self-attention, without a mask.

x: (..., T, d_model). W_Q, W_K: (d_model, h·d_k). W_V: (d_model, h·d_v).
W_O: (h·d_v, d_out). num_heads: h. Returns output, (..., T, d_out), and the
weights of all heads, (..., h, T, T). NumPy, your own functions, and those in
`attention` but for `multi_head_attention`. The arguments stay as they were.""",
    reference=_reference,
    steps={
        "Q": "Q = attention.split_heads(x @ W_Q, num_heads)  # (..., h, T, d_k)",
        "K": "K = attention.split_heads(x @ W_K, num_heads)  # (..., h, T, d_k)",
        "V": "V = attention.split_heads(x @ W_V, num_heads)  # (..., h, T, d_v)",
        "attend": "heads, weights = attention.scaled_dot_product_attention(Q, K, V)  # all heads at once",
        "merge": "joined = attention.merge_heads(heads)  # (..., T, h·d_v)",
        "mix": "output = joined @ W_O  # (..., T, d_out)",
        "answer": "return output, weights  # weights: (..., h, T, T)",
    },
    cases=_multi_cases,
    returns=("output", "weights"),
    hints=(
        "Five steps: project, split, attend, merge, mix. Write down the shape after each.",
        "`attention.scaled_dot_product_attention` accepts leading axes: give it all heads at once, (..., h, T, d_k). No loop "
        "is needed.",
        "Q = `attention.split_heads(x @ W_Q, num_heads)`, K and V likewise; then attention; then "
        "`attention.merge_heads(heads) @ W_O`.",
    ),
    mistakes=MULTI,
    library=(attention.multi_head_attention,),
    praise="Eight cases: any leading axes, widths that all differ, one head, float32. This is section 3.2.2 of “Attention Is All "
    "You Need”.",
    in_pytorch="""Q, K, V = ((x @ W).unflatten(-1, (num_heads, -1)).transpose(-3, -2) for W in (W_Q, W_K, W_V))
weights = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(dim=-1)
output = (weights @ V).transpose(-3, -2).flatten(-2) @ W_O
# nn.MultiheadAttention(d_model, h, bias=False, batch_first=True) is the same with weights of its own: it expects (T, B, d)
# without `batch_first`, keeps W_Q, W_K and W_V transposed in `in_proj_weight`, and returns the mean of the heads' weights
# unless you say `average_attn_weights=False`.""",
)

# --- Take a head away -----------------------------------------------------------------------------------------------


def _reference_without(W_O: np.ndarray, head: int, num_heads: int) -> np.ndarray:
    rows = np.arange(len(W_O)) // (len(W_O) // num_heads)
    return np.where((rows == head)[:, None], W_O.dtype.type(0), W_O)


def _without_cases(rng: np.random.Generator) -> Sequence[Case]:
    def case(label: str, head: int, h: int, d_v: int, d_out: int) -> Case:
        return Case(label, (rng.normal(size=(h * d_v, d_out)), head, h))

    return [
        case("head 1 of 3, each with 4 rows", 1, 3, 4, 12),
        case("head 0 of 2", 0, 2, 3, 6),
        case("the last head of 4, d_v = 5, output width 8", 3, 4, 5, 8),
        case("head 2 of 5, d_v = 2, output width 7", 2, 5, 2, 7),
        case("one head", 0, 1, 4, 4),
        case("d_v = 1", 2, 4, 1, 4),
        Case("float32 input", (rng.normal(size=(6, 6)).astype(np.float32), 1, 2)),
        case("as many heads as rows of each", 1, 3, 3, 9),
    ]


_WITHOUT = Exercise(
    name="without_head",
    called="my_without_head",
    takes="W_O, head, num_heads",
    task="""Take a head away: W_O with the rows of this head at 0.

W_O: (h·d_v, d_out). head: 0 … h − 1. num_heads: h.
Returns a new matrix, (h·d_v, d_out). NumPy only. W_O stays as it was.""",
    reference=_reference_without,
    steps={
        "size": "d_v = len(W_O) // num_heads  # each head has so many rows",
        "copy": "W_O = W_O.copy()",
        "zero": "W_O[head * d_v : (head + 1) * d_v] = 0",
        "answer": "return W_O",
    },
    cases=_without_cases,
    returns=("without",),
    hints=(
        "The merged heads are h·d_v wide, and each of these numbers meets one row of W_O. Which rows does head i meet?",
        "Each head has d_v = `len(W_O) // num_heads` rows, and head 0 has the first of them. Change a copy: `W_O.copy()`.",
        "`W_O[head * d_v : (head + 1) * d_v] = 0`, in the copy.",
    ),
    mistakes=WITHOUT,
    praise="Eight cases: the first, a middle and the last head, and widths that differ. Now you can ask a trained model what "
    "each of its heads is for.",
    in_pytorch="""d_v = len(W_O) // num_heads
without = W_O.clone()
without[head * d_v : (head + 1) * d_v] = 0
# `nn.MultiheadAttention` keeps this matrix transposed, in `out_proj.weight`: there a head has d_v columns, not rows.""",
)

EXERCISES = (_SPLIT, _MULTI, _WITHOUT)
