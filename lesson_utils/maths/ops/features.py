"""What is done to the features of each token: products, tables, norms."""

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.maths.checks import Array, Ids, as_floats, as_ids, as_number
from lesson_utils.maths.ops.sums import column_sums, row_sums, rows


def linear(x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None) -> Array:
    """x W + b.

    Args:
        x: (..., d_in).
        W: (d_in, d_out).
        b: (d_out,), or None.

    Returns:
        (..., d_out).
    """
    x, W, *rest = as_floats(x=x, W=W) if b is None else as_floats(x=x, W=W, b=b)
    return linear_forward(x, W, *rest)[0]


def linear_forward(x: Array, W: Array, b: Array | None = None) -> tuple[Array, tuple[Array, Array]]:
    if x.ndim < 1 or W.ndim != 2 or x.shape[-1] != W.shape[0]:
        raise ValueError(f"x {x.shape} and W {W.shape} do not fit; expected (..., d_in) and (d_in, d_out)")
    if b is not None and b.shape != W.shape[1:]:
        raise ValueError(f"b has shape {b.shape}; expected {W.shape[1:]}")
    y = rows(x) @ W  # (N, d_out): one large product instead of one for each leading index
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), (x, W)


def linear_backward(dy: Array, cache: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """dx, dW, db; for a layer without b, the last is not used."""
    x, W = cache
    dy = rows(dy)  # (N, d_out)
    return (dy @ W.T).reshape(x.shape), rows(x).T @ dy, column_sums(dy)


def embedding(ids: ArrayLike, table: ArrayLike) -> Array:
    """The rows of `table` (V, d_model) at `ids` (...): shape (..., d_model)."""
    (table,) = as_floats(table=table)
    return embedding_forward(np.asarray(ids), table)[0]


def embedding_forward(ids: Ids, table: Array) -> tuple[Array, tuple[Ids, tuple[int, ...]]]:
    if table.ndim != 2:
        raise ValueError(f"table has shape {table.shape}; expected (V, d_model)")
    return table[as_ids(ids, "ids", len(table))], (ids, table.shape)


def embedding_backward(dy: Array, cache: tuple[Ids, tuple[int, ...]]) -> Array:
    """The gradient of the table: the rows of dy, added up by symbol."""
    ids, shape = cache
    dtable = np.zeros(shape, dy.dtype)
    np.add.at(dtable, ids, dy)  # not dtable[ids] += dy, which counts a symbol once
    return dtable


def layer_norm(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, eps: float = 1e-5, eps_inside_root: bool = True
) -> Array:
    """Each token's features with mean 0 and variance 1, then scaled and shifted: gamma · (x − μ) / σ + beta.

    Args:
        x: (..., d_model). μ and σ (divided by d_model, not d_model − 1) are taken over the last axis.
        gamma, beta: (d_model,).
        eps: keeps a constant row from dividing by 0.
        eps_inside_root: True (the default, as in libraries): (x − μ) / √(σ² + ε). False: (x − μ) / (σ + ε).

    Raises:
        ValueError: shapes or dtypes do not fit, the input is not finite, or eps is not positive.

    Source: Ba et al. (2016), equation 4.
    """
    x, gamma, beta = as_floats(x=x, gamma=gamma, beta=beta)
    if eps_inside_root:
        return layer_norm_forward(x, gamma, beta, eps)[0]
    _check_features(x, eps, gamma=gamma, beta=beta)
    return gamma * (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + eps) + beta


def layer_norm_forward(x: Array, gamma: Array, beta: Array, eps: float = 1e-5) -> tuple[Array, tuple[Array, ...]]:
    _check_features(x, eps, gamma=gamma, beta=beta)
    n = x.shape[-1]
    centred = x - row_sums(x) / n
    rstd = 1 / np.sqrt(row_sums(centred * centred) / n + eps)  # (..., 1)
    normal = centred * rstd
    return normal * gamma + beta, (normal, rstd, gamma)


def layer_norm_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    """dx, dgamma, dbeta. A change of x moves μ and σ as well: hence the two means that are taken off."""
    normal, rstd, gamma = cache
    n = dy.shape[-1]
    dnormal = dy * gamma
    dx = (dnormal - row_sums(dnormal) / n - normal * (row_sums(dnormal * normal) / n)) * rstd
    return dx, column_sums(dy * normal), column_sums(dy)


def rms_norm(x: ArrayLike, gamma: ArrayLike, eps: float = 1e-5) -> Array:
    """gamma · x / √(mean(x²) + ε): layer norm without the mean and without beta.

    Args:
        x: (..., d_model).
        gamma: (d_model,).

    Source: Zhang and Sennrich (2019), equation 4.
    """
    x, gamma = as_floats(x=x, gamma=gamma)
    return rms_norm_forward(x, gamma, eps)[0]


def rms_norm_forward(x: Array, gamma: Array, eps: float = 1e-5) -> tuple[Array, tuple[Array, ...]]:
    _check_features(x, eps, gamma=gamma)
    rstd = 1 / np.sqrt(row_sums(x * x) / x.shape[-1] + eps)  # (..., 1)
    normal = x * rstd
    return normal * gamma, (normal, rstd, gamma)


def rms_norm_backward(dy: Array, cache: tuple[Array, ...]) -> tuple[Array, Array]:
    """dx, dgamma."""
    normal, rstd, gamma = cache
    dnormal = dy * gamma
    dx = (dnormal - normal * (row_sums(dnormal * normal) / dy.shape[-1])) * rstd
    return dx, column_sums(dy * normal)


def _check_features(x: Array, eps: float, **parameters: Array) -> None:
    if x.ndim < 1 or x.shape[-1] == 0:
        raise ValueError(f"x has shape {x.shape}; expected (..., d_model) with d_model at least 1")
    for name, parameter in parameters.items():
        if parameter.shape != x.shape[-1:]:
            raise ValueError(f"{name} has shape {parameter.shape}; expected {x.shape[-1:]}, one for each feature of x")
    if not as_number(eps, "eps") > 0:
        raise ValueError(f"eps={eps} must be positive; try 1e-5")
