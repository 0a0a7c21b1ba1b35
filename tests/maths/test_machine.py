"""One thread inside the block, and memory that is kept."""

import platform
import subprocess
import sys

import numpy as np
import pytest
from straight_line import Line, batches

from lesson_utils.maths import machine, training


@pytest.fixture
def threads():
    """Asks how many threads NumPy's products take; two of them, unless something changes that."""
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="threadpoolctl is missing: pip install threadpoolctl")
    pools = threadpoolctl.ThreadpoolController().select(user_api="blas")
    if not pools:
        pytest.skip("NumPy's own library for products is none that threadpoolctl knows, as on macOS")
    with pools.limit(limits=2):
        yield lambda: {pool["num_threads"] for pool in pools.info()}


def test_one_thread_inside_the_block_and_as_many_as_before_behind_it(threads):
    assert threads() == {2}
    with machine.single_thread():
        assert threads() == {1}
        with machine.single_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}
    with pytest.raises(ZeroDivisionError), machine.single_thread():
        1 / 0  # noqa: B018
    assert threads() == {2}


def test_training_takes_one_thread_unless_told_otherwise(threads):
    seen = []
    for one_thread in (True, False):
        options = {"progress": False, "one_thread": one_thread}
        training.fit(Line(), batches, 1, callback=lambda *_: seen.append(threads()), **options)
    assert seen == [{1}, {2}]
    assert threads() == {2}


def test_without_threadpoolctl_it_does_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with machine.single_thread():
        assert (np.eye(2) @ np.eye(2) == np.eye(2)).all()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator gives memory back so eagerly")
def test_freed_memory_is_kept():
    """In processes of their own: what a step gives back is found again by the next one, without new pages."""
    source = """
import resource, sys
import numpy as np
from lesson_utils.maths.machine import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
for step in range(20):
    if step == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.empty(2**19, np.uint8) for _ in range(8)]
    for array in arrays:
        array.fill(1)
    del arrays, array
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    pages = {}
    for way in ("kept", "as usual"):
        done = subprocess.run([sys.executable, "-c", source, way], capture_output=True, text=True, check=True)
        pages[way] = int(done.stdout)
    assert pages["kept"] < 100 < 1000 < pages["as usual"], pages
