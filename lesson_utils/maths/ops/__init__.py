"""The operations of a Transformer, each with its derivative.

Learners call `softmax(x)`, `layer_norm(x, gamma, beta)` and get an array; input is checked in full. Training calls the
pairs behind them: `op_forward(...) -> out, cache` and `op_backward(dout, cache) -> gradients` in the order of the
inputs. Pairs run thousands of times a second, in float32 or float64: they check shapes, but do not search for NaN.
"""

from lesson_utils.maths.ops.features import (
    column_sums,
    dropout_backward,
    dropout_forward,
    embedding,
    embedding_backward,
    embedding_forward,
    gelu,
    gelu_backward,
    gelu_forward,
    layer_norm,
    layer_norm_backward,
    layer_norm_forward,
    linear,
    linear_backward,
    linear_forward,
    relu,
    relu_backward,
    relu_forward,
    rms_norm,
    rms_norm_backward,
    rms_norm_forward,
    row_sums,
    sigmoid,
    swiglu,
    swiglu_backward,
    swiglu_forward,
)
from lesson_utils.maths.ops.probabilities import (
    cross_entropy,
    cross_entropy_backward,
    cross_entropy_forward,
    entropy,
    log_softmax,
    softmax,
    softmax_backward,
    softmax_forward,
    softmax_jacobian,
)
