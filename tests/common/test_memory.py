"""Memory that the process gives back to the system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from duckanon._core.common import resources

# arrays of a thread lie in a heap of its own, which stays as long as it ever was: the last one is kept
WORK = """
import threading
import numpy as np
from duckanon._core.common import resources
kept = []
def work():
    for size in (1, 2, 4, 8):
        np.ones(size << 17)  # freed at once: arrays of this size are then taken from the heap
    arrays = [np.ones(1 << 16) for _ in range(100)]
    kept.append(np.ones(100))
    arrays.clear()
thread = threading.Thread(target=work)
thread.start()
thread.join()
before = resources.measure_memory()
resources.free_memory()
print(before - resources.measure_memory())
"""


@pytest.mark.thorough
@pytest.mark.skipif(resources._find_trim() is None, reason="the C library cannot give memory back")
def test_what_threads_have_freed_is_given_back() -> None:
    """In a process of its own, whose heaps hold nothing else."""
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 20 << 20


def test_other_c_libraries_have_no_such_function(monkeypatch: pytest.MonkeyPatch) -> None:
    resources._find_trim.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    resources.free_memory()
    assert resources._find_trim() is None
    resources._find_trim.cache_clear()
