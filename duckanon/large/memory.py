"""The memory that a release may take, shared between DuckDB and the parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from duckanon._core.common.memory import bytes_of, give_back, resident

_DATABASE_SHARE = 0.4
"""Share of the free memory that DuckDB may take while it routes and counts; parts are made when it rests."""

_LEAST_FREE = 200 * 10**6
"""Memory of a release besides Python and its libraries: DuckDB's buffers, and one partition of a useful size."""

_MOST_KEPT = 200 * 10**6
"""Bytes that are taken for what releases keep, at most: whatever else a process got meanwhile is not theirs."""

_kept = 0
"""Bytes that releases of this process keep for later ones: libraries, and what allocators do not give back."""


@dataclass(frozen=True)
class Budget:
    """The memory of a release, in bytes."""

    database: int  # that DuckDB may take
    part: int  # that the making of one part may take


def budget(memory: str) -> Budget:
    """Share the memory that the process may take between DuckDB and the parts."""
    given, used = bytes_of(memory), begun_with()
    free = given - used
    if free < _LEAST_FREE:
        least = (used + _LEAST_FREE) // 10**6 + 1
        raise ValueError(f"memory must be at least {least}MB here; got {memory}.")
    return Budget(int(free * _DATABASE_SHARE), int(free * (1 - _DATABASE_SHARE)))


def begun_with() -> int:
    """Return the bytes that the process has, without those that its releases keep and use again.

    The first release of a process counts its libraries as its own, and so do the others: what is enough once is enough
    again.
    """
    return max(resident() - _kept, 0)


@contextmanager
def counting_what_is_kept() -> Iterator[None]:
    """Count what a release keeps for later ones when the block ends."""
    global _kept
    kept, before = _kept, resident()
    try:
        yield
    finally:
        give_back()
        _kept = min(max(kept + resident() - before, _kept), _MOST_KEPT)
