"""Fast matrix products for JupyterLite: fast_products.wat, which pack.mjs assembles and puts beside this module.

Pyodide's NumPy comes without BLAS: its own loops for `a @ b` take 5 to 12 times as long as these, which use
WebAssembly's SIMD (1.2 against 11.8 billion products a second, 1024 × 64 × 256 in float32; nothing gained where rows
are as short as 16). It hangs on where NumPy keeps its loops, so on the one Pyodide that a JupyterLite has: when another
comes, tests/site/test_lite.py says whether it still holds.
"""

import ctypes
from pathlib import Path

import numpy as np

# In NumPy's PyUFuncObject the list of its loops, in the order of `types`, comes behind six numbers of 32 bits.
LOOPS = 24


def install() -> bool:
    """Put them in the place of two of NumPy's loops; return False if this browser has no SIMD."""
    try:
        library = ctypes.CDLL(str(Path(__file__).with_suffix(".wasm")))
    except OSError:
        return False
    loops = ctypes.POINTER(ctypes.c_void_p).from_address(id(np.matmul) + LOOPS)
    for types, loop in (("ff->f", library.matmul_f32), ("dd->d", library.matmul_f64)):
        loops[np.matmul.types.index(types)] = ctypes.cast(loop, ctypes.c_void_p).value
    return True
