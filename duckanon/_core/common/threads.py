"""The number of threads that the linear algebra may use.

The libraries behind numpy, scipy and scikit-learn start a thread per processor for every product. On small matrices
these threads cost more than they do, and where other work keeps the processors busy they wait for each other: the same
search took 6 seconds with one thread and 100 with two.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

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
    def held(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                _take_control()
                self._limiter = _controller(frozenset(_WITH_BLAS & sys.modules.keys())).limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    _take_control()
                    self._limiter.restore_original_limits()


_ONE = _Limit()
_WITH_BLAS = {"scipy.linalg", "scipy.special", "scipy.sparse.linalg"}
"""Modules that bring linear algebra of their own, beside numpy's. A controller knows only what is loaded when it is
made; an algorithm's modules are, before it is called."""


@functools.cache
def _controller(loaded: frozenset[str]) -> Any:
    return threadpoolctl.ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: since version 3.7 only the first that ever did is allowed to, and is not told."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let the linear algebra, and scikit-learn's trees and clusters, use one thread as long as the context lasts."""
    with _ONE.held(), threadpoolctl.threadpool_limits(1, user_api="openmp"):  # the latter holds for this thread only
        yield


def for_cells(cells: int) -> contextlib.AbstractContextManager[None]:
    """Let the linear algebra use one thread if the table is small."""
    return _ONE.held() if cells < SMALL_CELLS else contextlib.nullcontext()
