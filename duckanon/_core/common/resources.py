"""Threads and memory of the process: how many threads the linear algebra uses, and how memory is given back.

The libraries behind numpy, scipy and scikit-learn start a thread per processor for every product. On small matrices
these threads cost more than they do, and where other work keeps the processors busy they wait for each other: the same
search took 6 seconds with one thread and 100 with two. Allocators keep freed memory, and what one keeps another cannot
use, so large steps return it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import threadpoolctl

SMALL_CELLS = 10_000_000
"""Tables of fewer values are worked on by one thread."""


class _Limit:
    """A limit that several threads may ask for at the same time; the first one sets it, the last one lifts it."""

    def __init__(self) -> None:
        self.forget_users()
        if hasattr(os, "register_at_fork"):  # whoever held the lock is not in the forked process, and never lets go
            os.register_at_fork(after_in_child=self.forget_users)

    def forget_users(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                _take_control()
                self._limiter = _make_controller(frozenset(_WITH_BLAS & sys.modules.keys())).limit(
                    limits=1, user_api="blas"
                )
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    _take_control()
                    self._limiter.restore_original_limits()


_SINGLE_THREAD = _Limit()
_WITH_BLAS = {"scipy.linalg", "scipy.special", "scipy.sparse.linalg"}
"""Modules that bring linear algebra of their own, beside numpy's. A controller knows only what is loaded when it is
made; an algorithm's modules are, before it is called."""


@functools.cache
def _make_controller(loaded: frozenset[str]) -> Any:
    return threadpoolctl.ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: since version 3.7 only the first that ever did is allowed to, and is not told."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextlib.contextmanager
def use_one_thread() -> Iterator[None]:
    """Let the linear algebra, and scikit-learn's trees and clusters, use one thread as long as the context lasts."""
    with (
        _SINGLE_THREAD.hold(),
        threadpoolctl.threadpool_limits(1, user_api="openmp"),
    ):  # the latter holds for this thread only
        yield


def limit_threads(cells: int) -> contextlib.AbstractContextManager[None]:
    """Let the linear algebra use one thread if the table is small."""
    return _SINGLE_THREAD.hold() if cells < SMALL_CELLS else contextlib.nullcontext()


_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}

_MOST = 2.0**60
"""An exabyte: DuckDB takes no more than 64 bits."""


def read_memory(memory: Any) -> int:
    """Read an amount of memory, as DuckDB writes it: '800MB', '2GB', '1.5GiB'.

    Examples:
        >>> read_memory("1.5GB")
        1500000000
    """
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)\s*", memory.lower()) if isinstance(memory, str) else None
    amount = float(written[1]) * _UNITS[written[2]] if written else math.inf
    if amount > _MOST:
        raise ValueError(f"memory must be an amount such as '800MB' or '2GB'; got {memory!r}.")
    return round(amount)


def measure_memory() -> int:
    """Return the bytes of memory that the process has now, or had at most where the system does not tell."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # not on every system

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def free_memory() -> None:
    """Return freed memory to the system: allocators keep it, and what one of them keeps another cannot use."""
    pa.default_memory_pool().release_unused()
    if trim := _find_trim():
        trim(0)


@functools.cache
def _find_trim() -> Callable[[int], int] | None:
    """Return the function of the C library that gives back what numpy's arrays had; only glibc has it.

    Arrow's system pool does not call it.
    """
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # a C library without it, or one that has no name
        return None
    return trim
