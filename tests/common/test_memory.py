"""Memory that the process gives back to the system."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np
import pytest

from duckanon._core.common import memory


@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux gives memory back")
def test_what_threads_have_freed_is_given_back() -> None:
    """Arrays of a thread lie in a heap of its own, which stays as large as it ever was."""
    kept = []

    def work() -> None:
        for size in (1, 2, 4, 8):
            np.ones(size << 17)  # freed at once: arrays of this size are then taken from the heap
        arrays = [np.ones(1 << 16) for _ in range(100)]
        kept.append(np.ones(100))  # behind them, so that the heap cannot become shorter
        arrays.clear()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = memory.resident()
    memory.give_back()
    if memory._trim() is not None:
        assert memory.resident() < before - (20 << 20)


def test_other_c_libraries_have_no_such_function(monkeypatch: pytest.MonkeyPatch) -> None:
    memory._trim.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    memory.give_back()
    assert memory._trim() is None
    memory._trim.cache_clear()
