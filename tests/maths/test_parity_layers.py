"""The same layers as PyTorch's: outputs, and gradients of inputs and parameters."""

import numpy as np
import parity
import pytest
from parity import TOLERANCE, every_dtype, same, tensor, torch

from lesson_utils.maths import attention, layers, ops

pytestmark = parity.marks
F = torch.nn.functional

B, T, S, d_model, h, d_ff, V = 2, 5, 7, 12, 3, 10, 11


def shaken(layer, rng):
    for param in layer.params().values():
        param.value += (0.2 * rng.normal(size=param.value.shape)).astype(param.value.dtype)
    return layer


def copy_to(theirs, ours):
    """`ours` maps names of PyTorch's parameters to functions of ours; those not named must be zero."""
    with torch.no_grad():
        for name, param in theirs.named_parameters():
            param.zero_()
            if name in ours:
                param.copy_(torch.from_numpy(np.ascontiguousarray(ours[name])))


@every_dtype
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("size", [1, 100])
def test_cross_entropy(rng, dtype, smoothing, size):
    logits, targets = (size * rng.normal(size=(6, V))).astype(dtype), rng.integers(V, size=6)
    targets[2] = 0  # padding
    theirs = tensor(logits)
    want = F.cross_entropy(theirs, torch.from_numpy(targets), ignore_index=0, label_smoothing=smoothing)
    want.backward()
    loss, cache = ops.cross_entropy_forward(logits, targets, targets != 0, smoothing)
    np.testing.assert_allclose(loss, want.item(), rtol=TOLERANCE[dtype])
    same(ops.cross_entropy_backward(1.0, cache), theirs.grad, dtype)


@every_dtype
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms(rng, dtype, name):
    x, dy = rng.normal(size=(2, B, T, d_model)).astype(dtype)
    gamma, beta = rng.normal(size=(2, d_model)).astype(dtype)
    ours = [x, gamma, beta] if name == "layer_norm" else [x, gamma]
    theirs = [tensor(array) for array in ours]
    want = getattr(F, name)(theirs[0], (d_model,), *theirs[1:], eps=1e-5)
    want.backward(torch.from_numpy(dy))
    got, cache = getattr(ops, f"{name}_forward")(*ours)
    same(got, want, dtype)
    for gradient, array in zip(getattr(ops, f"{name}_backward")(dy, cache), theirs, strict=True):
        same(gradient, array.grad, dtype)


@every_dtype
def test_activations(rng, dtype):
    x, value, dy = rng.normal(size=(3, B, T, d_model)).astype(dtype)
    for name, ours, theirs in (
        ("relu", (x,), F.relu),
        ("gelu", (x,), lambda x: F.gelu(x, approximate="tanh")),
        ("swiglu", (x, value), lambda gate, value: F.silu(gate) * value),
    ):
        tensors = [tensor(array) for array in ours]
        want = theirs(*tensors)
        want.backward(torch.from_numpy(dy))
        got, cache = getattr(ops, f"{name}_forward")(*ours)
        same(got, want, dtype, name)
        gradients = getattr(ops, f"{name}_backward")(dy, cache)
        for gradient, array in zip(gradients if isinstance(gradients, tuple) else (gradients,), tensors, strict=True):
            same(gradient, array.grad, dtype, name)


@every_dtype
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_attention(rng, dtype, masked):
    arrays = [rng.normal(size=(B, h, n, d)).astype(dtype) for n, d in ((T, 4), (S, 4), (S, 6))]
    mask = rng.random((B, h, T, S)) < 0.6
    mask[..., 0] = True
    mask = mask if masked else None
    theirs = [tensor(array) for array in arrays]
    want = F.scaled_dot_product_attention(*theirs, attn_mask=None if mask is None else torch.from_numpy(mask))
    dy = rng.normal(size=want.shape).astype(dtype)
    want.backward(torch.from_numpy(dy))
    got, cache = attention.attention_forward(*arrays, mask)
    same(got, want, dtype)
    for gradient, array in zip(attention.attention_backward(dy, cache), theirs, strict=True):
        same(gradient, array.grad, dtype)


def attention_arrays(layer, what, prefix=""):
    """Our parameters (what="value") or gradients ("grad") under PyTorch's names."""
    W_Q, W_K, W_V, W_O = (getattr(param, what) for param in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O))
    return {
        f"{prefix}in_proj_weight": np.concatenate([W_Q, W_K, W_V], axis=1).T,
        f"{prefix}out_proj.weight": W_O.T,
    }


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
    x_ = tensor(x)
    memory_ = tensor(memory) if cross else x_
    hidden = torch.from_numpy(~mask) if masked else None  # PyTorch's masks for layers hide where True
    want, weights = theirs(x_, memory_, memory_, attn_mask=hidden, average_attn_weights=False)
    dy = rng.normal(size=want.shape).astype(dtype)
    want.backward(torch.from_numpy(dy))
    got, cache = ours.forward(x, memory if cross else None, mask if masked else None)
    same(got, want, dtype)
    same(cache.attended.weights, weights, dtype)
    back = ours.backward_cross(dy, cache) if cross else (ours.backward(dy, cache),)
    for gradient, array in zip(back, (x_, memory_), strict=False):
        same(gradient, array.grad, dtype)
    gradients = attention_arrays(ours, "grad")
    for name, param in theirs.named_parameters():
        same(gradients[name], param.grad, dtype, name)


@every_dtype
@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_grouped_queries(rng, dtype, num_kv_heads):
    ours = layers.MultiHead(d_model, 4, rng, num_kv_heads, dtype=dtype)
    x, dy = rng.normal(size=(2, B, T, d_model)).astype(dtype)
    x_, (W_Q, W_K, W_V, W_O) = tensor(x), (tensor(param.value) for param in ours.params().values())

    def split(y):
        return y.view(B, T, -1, d_model // 4).transpose(1, 2)

    Q, K, V = split(x_ @ W_Q), split(x_ @ W_K), split(x_ @ W_V)
    out = F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=True)
    want = out.transpose(1, 2).reshape(B, T, d_model) @ W_O
    want.backward(torch.from_numpy(dy))
    got, cache = ours.forward(x, None, attention.causal_mask(T))
    same(got, want, dtype)
    same(ours.backward(dy, cache), x_.grad, dtype)
    for param, theirs in zip(ours.params().values(), (W_Q, W_K, W_V, W_O), strict=True):
        same(param.grad, theirs.grad, dtype)


@every_dtype
@pytest.mark.parametrize("by", ["zero", "mean"])
@pytest.mark.parametrize("cross", [False, True])
def test_heads_knocked_out(rng, dtype, by, cross):
    ours, out = layers.MultiHead(d_model, h, rng, dtype=dtype), [0, 2]
    x, dy = rng.normal(size=(2, B, T, d_model)).astype(dtype)
    memory = rng.normal(size=(B, S, d_model)).astype(dtype)
    x_, memory_, (W_Q, W_K, W_V, W_O) = tensor(x), tensor(memory), (tensor(p.value) for p in ours.params().values())

    def split(y):
        return y.view(B, y.shape[1], h, d_model // h).transpose(1, 2)

    kv = memory_ if cross else x_
    heads = F.scaled_dot_product_attention(split(x_ @ W_Q), split(kv @ W_K), split(kv @ W_V))
    instead = heads.mean(dim=(0, 2), keepdim=True) if by == "mean" else torch.zeros_like(heads[:1, :, :1])
    kept = torch.tensor([head not in out for head in range(h)])[:, None, None]
    want = torch.where(kept, heads, instead).transpose(1, 2).reshape(B, T, d_model) @ W_O
    want.backward(torch.from_numpy(dy))
    ours.knock_out = layers.KnockOut(tuple(out), by)
    got, cache = ours.forward(x, memory if cross else None)
    same(got, want, dtype)
    back = ours.backward_cross(dy, cache) if cross else (ours.backward(dy, cache),)
    for gradient, array in zip(back, (x_, memory_), strict=False):
        same(gradient, array.grad, dtype)
    for param, theirs in zip(ours.params().values(), (W_Q, W_K, W_V, W_O), strict=True):
        same(param.grad, theirs.grad, dtype)


def block_arrays(block, what, cross):
    """Our parameters (or gradients) under PyTorch's names."""

    def of(param):
        return getattr(param, what)

    ours = attention_arrays(block.attention.inner, what, "self_attn.")
    if cross:
        ours |= attention_arrays(block.cross.inner, what, "multihead_attn.")
    parts = [block.attention, block.cross, block.feed_forward] if cross else [block.attention, block.feed_forward]
    for i, part in enumerate(parts, 1):
        ours |= {f"norm{i}.weight": of(part.norm.gamma), f"norm{i}.bias": of(part.norm.beta)}
    for name, linear in (("linear1", block.feed_forward.inner.wide), ("linear2", block.feed_forward.inner.narrow)):
        ours |= {f"{name}.weight": of(linear.W).T, f"{name}.bias": of(linear.b)}
    return ours


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
    copy_to(theirs, block_arrays(ours, "value", cross))  # PyTorch's biases of attention stay 0: ours has none
    x, memory = (rng.normal(size=(B, n, d_model)).astype(dtype) for n in (T, S))
    real = np.arange(S) < np.array([[S], [4]])
    x_, memory_, causal = tensor(x), tensor(memory), attention.causal_mask(T)
    future = torch.from_numpy(~causal)
    if cross:
        want = theirs(x_, memory_, tgt_mask=future, memory_key_padding_mask=torch.from_numpy(~real))
        got, cache = ours.forward(x, memory, causal, real[:, None, None])
    else:
        want = theirs(x_, src_mask=future)
        got, cache = ours.forward(x, causal)
    dy = rng.normal(size=want.shape).astype(dtype)
    want.backward(torch.from_numpy(dy))
    same(got, want, dtype)
    back = ours.backward(dy, cache)
    for gradient, array in zip(back if cross else (back,), (x_, memory_), strict=False):
        same(gradient, array.grad, dtype)
    gradients = block_arrays(ours, "grad", cross)
    for name, param in theirs.named_parameters():
        if name in gradients:
            same(gradients[name], param.grad, dtype, name)
