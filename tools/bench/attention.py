"""Attention forward, d_k = 64, float32: the plain form, the online form, and PyTorch's own; time and peak memory."""

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np

from lesson_utils.maths import attention, efficient
from tools.bench.clock import compare

SIZES = ((8, 8, 512), (1, 8, 2048))
T_MEMORY = 4096


def run(rounds: int = 9) -> None:
    """Print the times and the peak memory."""
    try:
        import torch
    except ModuleNotFoundError:
        print("  needs PyTorch: python course.py test --parity installs it")
        return
    rng = np.random.default_rng(0)
    for B, h, T in SIZES:
        QKV = rng.normal(size=(3, B, h, T, 64)).astype(np.float32)
        times = compare(
            rounds,
            plain=partial(attention.scaled_dot_product_attention, *QKV),
            online=partial(efficient.online_attention, *QKV),
            torch=partial(torch.nn.functional.scaled_dot_product_attention, *torch.from_numpy(QKV)),
        )
        print(f"  B {B}, h {h}, T {T}: PyTorch {times['torch'] * 1e3:.0f} ms", end="")
        for name in ("online", "plain"):
            print(f"; {name} {times[name] * 1e3:.0f} ms, {times[name] / times['torch']:.2f}×", end="")
        print(flush=True)

    QKV = rng.normal(size=(3, T_MEMORY, 64)).astype(np.float32)
    plain = _peak(partial(attention.scaled_dot_product_attention, *QKV))
    online = _peak(partial(efficient.online_attention, *QKV))
    print(f"  peak memory at T {T_MEMORY}: plain {plain:.0f} MiB, online {online:.1f} MiB, {online / plain:.1%}")
    for T in (64, 128, 512, 2048):
        QKV = rng.normal(size=(3, T, 64)).astype(np.float32)
        times = compare(
            rounds,
            plain=partial(attention.scaled_dot_product_attention, *QKV),
            linear=partial(efficient.linear_attention, *QKV),
        )
        print(f"  linear attention at T {T}: {times['linear'] / times['plain']:.2f}× the time of the plain form")


def _peak(call: Callable[[], object]) -> float:
    """Return the most memory that a call takes, in MiB."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20
