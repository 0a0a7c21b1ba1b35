"""The published model in NumPy: a token and a prompt against transformers on PyTorch, and against their limit.

A token asks for every parameter once, so the products with them are its limit. Loading is held against
reading and unpacking the same arrays. "packed" is the same model with its weights left in 4 and 8 bits.

NumPy's floor: for a prompt the products alone, by OpenBLAS, take 1.05× of all that transformers does with it; a token
as a straight line of the fewest calls, without layers, checks or caches, takes 1.12× of its products, which is 0.68×.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.maths import pretrained
from tools.bench.clock import compare

CONTEXT, PROMPT = 200, 200


def run(rounds: int = 9) -> None:
    """Print the time of loading, of a token and of prompts."""
    path = pretrained.find()
    if path is None:
        print("  needs the model: python course.py real")
        return
    start = time.thread_time()
    reader = pretrained.Reader(path)
    for name in reader.arrays:
        reader.read(name)
    unpacking = time.thread_time() - start
    start = time.thread_time()
    real = pretrained.load(path, progress=False)
    loading = time.thread_time() - start
    print(f"  loading: {loading:.1f} s, {loading / unpacking:.1f}× of reading and unpacking its arrays", flush=True)

    rng = np.random.default_rng(0)
    ids, past = rng.integers(100, len(real.tokenizer), PROMPT), real.model.new_past()
    real.model.forward(ids[None, :CONTEXT], past)
    matrices = [param.value for param in real.model.params().values() if param.value.ndim == 2]
    matrices = [W.T if len(W) == len(real.tokenizer) else W for W in matrices]  # the output layer
    rows = [np.ones((1, len(W)), np.float32) for W in matrices]
    token: dict[str, Any] = {
        "ours": lambda: real.model.forward(ids[None, :1], past),
        "products": lambda: [row @ W for row, W in zip(rows, matrices, strict=True)],
    }
    prompt: dict[str, Any] = {"ours": partial(real.model.forward, ids[None])}
    prompts = [np.repeat(row, PROMPT, axis=0) for row in rows[1:]]  # the output layer's has only one row
    begin: dict[str, Any] = {
        "ours": partial(real.model.forward, ids[None], last=True),  # what writing needs of it
        "products": lambda: [x @ W for x, W in zip(prompts, matrices[1:], strict=True)],
    }
    packed = pretrained.load(path, progress=False, packed=True).model
    sizes = [sum(param.value.nbytes for param in model.params().values()) / 1e6 for model in (real.model, packed)]
    print(f"  weights: {sizes[0]:.0f} MB; packed {sizes[1]:.0f} MB", flush=True)
    packed_past = packed.new_past()
    packed.forward(ids[None, :CONTEXT], packed_past)
    token["packed"] = lambda: packed.forward(ids[None, :1], packed_past)
    begin["packed"] = partial(packed.forward, ids[None], last=True)
    if theirs := _transformers(path, ids):
        token["transformers"], prompt["transformers"], begin["transformers"] = theirs
    else:
        print("  for a comparison: pip install transformers accelerate gguf, beside PyTorch")
    labels = f"a token after {CONTEXT}", f"a prompt of {PROMPT}", f"a prompt of {PROMPT}, up to the first answer"
    for label, ways in zip(labels, (token, prompt, begin), strict=True):
        times = compare(rounds, **ways)
        others = [f"{times['ours'] / times[way]:.2f}× of {way}" for way in ways if way != "ours"]
        print(f"  {label}: {times['ours'] * 1e3:.0f} ms; {', '.join(others) or 'nothing to compare with'}", flush=True)


def _transformers(path: Path, ids: Any) -> tuple[Any, Any, Any] | None:
    """Return calls for a token, a prompt, and a prompt with its last logits only; None if transformers is missing."""
    try:
        import torch
        from transformers import AutoModelForCausalLM
    except ModuleNotFoundError:
        return None
    torch.set_grad_enabled(False)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    ids = torch.from_numpy(ids)[None]
    past = model(ids[:, :CONTEXT], use_cache=True).past_key_values
    return (
        partial(model, ids[:, :1], past_key_values=past, use_cache=True),
        partial(model, ids),
        partial(model, ids, logits_to_keep=1),
    )
