"""The same numbers and gradients as PyTorch's functions and layers, in both dtypes."""

import numpy as np
import parity
import pytest
from parity import every_dtype, same, tensor, torch

from lesson_utils.maths import attention, efficient, layers, ops
from lesson_utils.maths.efficient import online_softmax

pytestmark = parity.marks
F = torch.nn.functional
B, T, S, d_model, h, d_ff, V = 2, 5, 7, 12, 3, 10, 11
X, TARGETS = (B, T, d_model), np.random.default_rng(0).integers(V, size=6)
TARGETS[2] = 0  # padding
MASK = np.random.default_rng(1).random((B, h, T, S)) < 0.6
MASK[..., 0] = True
QKV = ((B, h, T, 4), (B, h, S, 4), (B, h, S, 6))


def cross_entropy(smoothing):
    return (
        lambda logits: ops.cross_entropy_forward(logits, TARGETS, TARGETS != 0, smoothing),
        ops.cross_entropy_backward,
        lambda x: F.cross_entropy(x, torch.from_numpy(TARGETS), ignore_index=0, label_smoothing=smoothing),
        ((6, V),),
    )


def scaled_dot_product(mask, scale, shapes=QKV):
    hidden = None if mask is None else torch.from_numpy(mask)
    return (
        lambda Q, K, V: attention.attention_forward(Q, K, V, mask, scale),
        attention.attention_backward,
        lambda *tensors: F.scaled_dot_product_attention(*tensors, attn_mask=hidden, scale=scale),
        shapes,
    )


FUNCTIONS = {  # name -> forward, backward, theirs, the shapes of the inputs
    "softmax": (ops.softmax_forward, ops.softmax_backward, lambda x: F.softmax(x, -1), (X,)),
    **{f"cross-entropy, smoothing {smoothing}": cross_entropy(smoothing) for smoothing in (0.0, 0.1)},
    "layer norm": (
        ops.layer_norm_forward,
        ops.layer_norm_backward,
        lambda x, gamma, beta: F.layer_norm(x, (d_model,), gamma, beta),
        (X, (d_model,), (d_model,)),
    ),
    "RMS norm": (
        ops.rms_norm_forward,
        ops.rms_norm_backward,
        lambda x, gamma: F.rms_norm(x, (d_model,), gamma, eps=1e-5),
        (X, (d_model,)),
    ),
    "ReLU": (ops.relu_forward, ops.relu_backward, F.relu, (X,)),
    "GELU": (ops.gelu_forward, ops.gelu_backward, lambda x: F.gelu(x, approximate="tanh"), (X,)),
    "SwiGLU": (ops.swiglu_forward, ops.swiglu_backward, lambda gate, value: F.silu(gate) * value, (X, X)),
    "attention": scaled_dot_product(None, None),
    "attention, masked": scaled_dot_product(MASK, None),
    "attention, causal": scaled_dot_product(attention.causal_mask(T, S), 0.7),
    "attention, no batch": scaled_dot_product(MASK[0, 0], 0.7, [shape[2:] for shape in QKV]),
}


LARGE = [(name, 100) for name in FUNCTIONS if "max" in name or "entropy" in name]  # there, exp needs a maximum


@every_dtype
@pytest.mark.parametrize(("name", "size"), [*((name, 1) for name in FUNCTIONS), *LARGE])
def test_functions_and_their_gradients(name, size, dtype, rng):
    forward, backward, theirs, shapes = FUNCTIONS[name]
    arrays = [(size * rng.normal(size=shape)).astype(dtype) for shape in shapes]
    tensors = [tensor(array) for array in arrays]
    want, (got, cache) = theirs(*tensors), forward(*arrays)
    dy = np.asarray(rng.normal(size=np.shape(got)), dtype)
    want.backward(torch.from_numpy(dy))
    same(dtype(got) if isinstance(got, float) else got, want, dtype)
    gradients = backward(float(dy) if isinstance(got, float) else dy, cache)
    for gradient, array in zip(gradients if isinstance(gradients, tuple) else [gradients], tensors, strict=True):
        same(gradient, array.grad, dtype)


@every_dtype
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_along_any_axis_and_the_feature_map(rng, dtype, axis):
    x = (5 * rng.normal(size=(3, 4, 5))).astype(dtype)
    same(ops.softmax(x, axis=axis), torch.softmax(torch.from_numpy(x), axis), dtype)
    same(efficient.elu_feature_map(x), F.elu(torch.from_numpy(x)) + 1, dtype)


@every_dtype
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
@pytest.mark.parametrize("T_q", [1, 90, 300])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("queries", [1024, 100])
@pytest.mark.parametrize("kind", ["no mask", "random", "window", "causal"])
def test_attention_plain_and_online(rng, monkeypatch, dtype, leading, T_q, size, kind, queries):
    """At once, and in blocks of queries and of keys; at size 5 the scores are too large to do without a maximum."""
    T_k, d_k, d_v = 300, 16, 12
    Q, K, V = (rng.normal(size=(*leading, *s)).astype(dtype) for s in ((T_q, d_k), (T_k, d_k), (T_k, d_v)))
    Q *= size
    mask = {
        "no mask": None,
        "random": rng.random((*leading, T_q, T_k)) < 0.3,
        "window": efficient.window_mask(T_k, 9)[-T_q:],
        "causal": attention.causal_mask(T_q, T_k),
    }[kind]
    their_mask = None if mask is None else torch.from_numpy(mask)
    want = F.scaled_dot_product_attention(*(torch.from_numpy(x) for x in (Q, K, V)), attn_mask=their_mask)
    monkeypatch.setattr(online_softmax, "_QUERIES", queries)
    same(efficient.online_attention(Q, K, V, mask), want, dtype)
    same(attention.scaled_dot_product_attention(Q, K, V, mask)[0], want, dtype)


# --- Layers -----------------------------------------------------------------------------------------------------------


def shaken(layer, rng):
    for param in layer.params().values():
        param.value += (0.2 * rng.normal(size=param.value.shape)).astype(param.value.dtype)
    return layer


def copy_to(theirs, ours):
    """`ours` maps names of PyTorch's parameters to arrays of ours; those not named must be zero."""
    with torch.no_grad():
        for name, param in theirs.named_parameters():
            param.zero_()
            if name in ours:
                param.copy_(torch.from_numpy(np.ascontiguousarray(ours[name])))


def attention_arrays(layer, what, prefix=""):
    """Our parameters (what="value") or gradients ("grad") under PyTorch's names; PyTorch multiplies by Wᵀ."""
    W_Q, W_K, W_V, W_O = (getattr(param, what) for param in layer.params().values())
    return {
        f"{prefix}in_proj_weight": np.concatenate([W_Q, W_K, W_V], axis=1).T,
        f"{prefix}out_proj.weight": W_O.T,
    }


def block_arrays(block, what):
    """Our parameters (or gradients) of an encoder or decoder layer under PyTorch's names."""
    cross = isinstance(block, layers.DecoderLayer)
    ours = attention_arrays(block.attention.inner, what, "self_attn.")
    ours |= attention_arrays(block.cross.inner, what, "multihead_attn.") if cross else {}
    parts = [block.attention, *([block.cross] if cross else []), block.feed_forward]
    for i, part in enumerate(parts, 1):
        ours |= {f"norm{i}.weight": getattr(part.norm.gamma, what), f"norm{i}.bias": getattr(part.norm.beta, what)}
    for name, linear in (("linear1", block.feed_forward.inner.wide), ("linear2", block.feed_forward.inner.narrow)):
        ours |= {f"{name}.weight": getattr(linear.W, what).T, f"{name}.bias": getattr(linear.b, what)}
    return ours


def compare(got, want, backward, inputs, dtype, rng):
    """Compare outputs, and gradients of the inputs that are tensors."""
    dy = rng.normal(size=want.shape).astype(dtype)
    want.backward(torch.from_numpy(dy))
    same(got, want, dtype)
    gradients = backward(dy)
    for gradient, x in zip(gradients if isinstance(gradients, tuple) else [gradients], inputs, strict=False):
        same(gradient, x.grad, dtype)


@every_dtype
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention(rng, dtype, cross, masked):
    ours = layers.MultiHead(d_model, h, rng, dtype=dtype)
    theirs = torch.nn.MultiheadAttention(d_model, h, bias=False, batch_first=True, dtype=getattr(torch, dtype.__name__))
    copy_to(theirs, attention_arrays(ours, "value"))
    x, memory = (rng.normal(size=(B, n, d_model)).astype(dtype) for n in (T, S))
    memory = memory if cross else x
    mask = rng.random((T, memory.shape[1])) < 0.6
    mask[:, 0] = True
    mask = mask if masked else None
    x_ = tensor(x)
    memory_ = tensor(memory) if cross else x_
    hidden = None if mask is None else torch.from_numpy(~mask)  # PyTorch's masks for layers hide where True
    want, weights = theirs(x_, memory_, memory_, attn_mask=hidden, average_attn_weights=False)
    W = [param.value for param in ours.params().values()]
    for got, expected in zip(attention.multi_head_attention(x, memory, *W, h, mask), (want, weights), strict=True):
        same(got, expected, dtype)
    got, cache = ours.forward(x, memory if cross else None, mask)
    same(cache.attended.weights, weights, dtype)
    backward = ours.backward_cross if cross else ours.backward
    compare(got, want, lambda dy: backward(dy, cache), (x_, memory_), dtype, rng)
    gradients = attention_arrays(ours, "grad")
    for name, param in theirs.named_parameters():
        same(gradients[name], param.grad, dtype, name)


@every_dtype
@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("by", [None, "zero", "mean"])
@pytest.mark.parametrize("cross", [False, True])
def test_heads_that_share_keys_and_heads_knocked_out(rng, dtype, num_kv_heads, by, cross):
    ours, out = layers.MultiHead(d_model, 4, rng, num_kv_heads, dtype=dtype), [0, 2]
    x, memory = (rng.normal(size=(B, n, d_model)).astype(dtype) for n in (T, S))
    x_, memory_, W = tensor(x), tensor(memory), [tensor(param.value) for param in ours.params().values()]

    def split(y):
        return y.view(B, y.shape[1], -1, d_model // 4).transpose(1, 2)

    kv = memory_ if cross else x_
    heads = F.scaled_dot_product_attention(
        split(x_ @ W[0]), split(kv @ W[1]), split(kv @ W[2]), is_causal=not cross, enable_gqa=True
    )
    if by:
        instead = heads.mean(dim=(0, 2), keepdim=True) if by == "mean" else torch.zeros_like(heads[:1, :, :1])
        kept = torch.tensor([head not in out for head in range(4)])[:, None, None]
        heads = torch.where(kept, heads, instead)
        ours.knock_out = layers.KnockOut(tuple(out), by)
    want = heads.transpose(1, 2).reshape(B, T, d_model) @ W[3]
    got, cache = ours.forward(x, memory if cross else None, None if cross else attention.causal_mask(T))
    backward = ours.backward_cross if cross else ours.backward
    compare(got, want, lambda dy: backward(dy, cache), (x_, memory_), dtype, rng)
    for param, theirs in zip(ours.params().values(), W, strict=True):
        same(param.grad, theirs.grad, dtype)


@every_dtype
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("cross", [False, True])
def test_encoder_and_decoder_layers(rng, dtype, norm, activation, cross):
    kind = layers.DecoderLayer if cross else layers.EncoderLayer
    sizes = layers.LayerConfig(d_model=d_model, num_heads=h, d_ff=d_ff, norm=norm, activation=activation, dtype=dtype)
    ours = shaken(kind(sizes, rng), rng)
    kind = torch.nn.TransformerDecoderLayer if cross else torch.nn.TransformerEncoderLayer
    theirs = kind(
        d_model,
        h,
        d_ff,
        dropout=0.0,
        activation="relu" if activation == "relu" else lambda x: F.gelu(x, approximate="tanh"),
        batch_first=True,
        norm_first=norm == "pre",
        dtype=getattr(torch, dtype.__name__),
    )
    copy_to(theirs, block_arrays(ours, "value"))  # PyTorch's biases of attention stay 0: ours has none
    x, memory = (rng.normal(size=(B, n, d_model)).astype(dtype) for n in (T, S))
    real, causal = np.arange(S) < np.array([[S], [4]]), attention.causal_mask(T)
    x_, memory_, future = tensor(x), tensor(memory), torch.from_numpy(~causal)
    if cross:
        want = theirs(x_, memory_, tgt_mask=future, memory_key_padding_mask=torch.from_numpy(~real))
        got, cache = ours.forward(x, memory, causal, real[:, None, None])
    else:
        want = theirs(x_, src_mask=future)
        got, cache = ours.forward(x, causal)
    compare(got, want, lambda dy: ours.backward(dy, cache), (x_, memory_), dtype, rng)
    gradients = block_arrays(ours, "grad")
    for name, param in theirs.named_parameters():
        if name in gradients:
            same(gradients[name], param.grad, dtype, name)
