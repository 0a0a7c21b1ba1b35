"""An attention function that somebody types into the page: made, tried, and called; every error becomes a sentence."""

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Attend = Callable[..., Any]

NAME = "<your lines>"  # of the file that Python thinks they come from
LINES = '''\
def attention(Q, K, V, mask=None):
    """Q: (1, heads, new tokens, d_k). K and V: (1, heads, all tokens, d_k)."""
    scores = Q @ K.swapaxes(-1, -2)            # how well each key fits each query
    scores = scores / math.sqrt(Q.shape[-1])
    if mask is not None:                       # True = may attend
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights
'''


class Problem(Exception):
    """An error in somebody's lines; its text is a sentence for them."""


def made(lines: str, num_heads: int, d_k: int) -> Attend:
    """Make a function from lines, and try it: on three tokens under a causal mask, and on one more without.

    Raises:
        Problem: the lines are no Python, define no `attention`, or it fails.
    """
    names: dict[str, Any] = {"np": np, "math": math}
    try:
        exec(compile(lines, NAME, "exec"), names)
    except SyntaxError as error:
        raise Problem(f"Line {error.lineno} is not Python: {error.msg}.") from None
    except Exception as error:
        raise Problem(sentence(error)) from None
    function = names.get("attention")
    if not callable(function):
        raise Problem("These lines define no function with the name attention.")
    rng = np.random.default_rng(0)
    attend = careful(function)
    for T_q, T_k, mask in ((3, 3, np.tri(3, dtype=bool)), (1, 4, None)):
        Q, K, V = (rng.normal(size=(1, num_heads, T, d_k)).astype(np.float32) for T in (T_q, T_k, T_k))
        attend(Q, K, V, None if mask is None else np.broadcast_to(mask, (1, num_heads, T_q, T_k)))
    return attend


def careful(function: Attend) -> Attend:
    """Wrap a function: what it returns is looked at and made float32, and its errors become a Problem."""

    def attend(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
        try:
            with np.errstate(all="ignore"):
                given = function(Q, K, V, mask)
        except Exception as error:
            raise Problem(sentence(error)) from None
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise Problem("The function must return two arrays: return weights @ V, weights.")
        shapes = (("first", Q.shape), ("second", (*Q.shape[:-1], K.shape[-2])))
        found = []
        for array, (place, shape) in zip(given, shapes, strict=True):
            try:
                number = np.asarray(array, np.float32)
            except (TypeError, ValueError):
                raise Problem(f"The {place} array that the function returns does not consist of numbers.") from None
            if number.shape != shape:
                raise Problem(
                    f"The {place} array that the function returns has the shape {number.shape}. "
                    f"For Q of shape {Q.shape} and K of shape {K.shape} it must be {shape}."
                )
            if not np.isfinite(number).all():
                raise Problem(f"The {place} array that the function returns holds NaN or infinite values.")
            found.append(number)
        return found[0], found[1]

    return attend


def sentence(error: Exception) -> str:
    """Say where in somebody's lines an error arose, and what Python calls it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
    said = " ".join(str(error).split()) or "it gives no reason"
    where = f"Line {lines[-1]} stops" if lines else "The function cannot be called"
    return f"{where} with {type(error).__name__}: {said.rstrip('.')}."


def windowed(attend: Attend, window: int, first: int) -> Attend:
    """Hide from each token all but the last `window` tokens, itself among them, and the `first` ones of the text."""

    def with_window(Q: Array, K: Array, V: Array, mask: Array | None = None) -> Any:
        T_q, T_k = Q.shape[-2], K.shape[-2]
        now, at = np.arange(T_k - T_q, T_k)[:, None], np.arange(T_k)
        near = np.broadcast_to((at <= now) & ((now - at < window) | (at < first)), (*Q.shape[:-1], T_k))
        return attend(Q, K, V, near if mask is None else mask & near)

    return with_window
