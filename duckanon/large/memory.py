"""The memory that a release may take, shared between DuckDB and the parts."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon._core.common.memory import bytes_of, resident

_DATABASE_SHARE = 0.4
"""Share of the free memory that DuckDB may take while it routes and counts; parts are made when it rests."""

_LEAST_FREE = 200 * 10**6
"""Memory of a release besides Python and its libraries: DuckDB's buffers, and one partition of a useful size."""


@dataclass(frozen=True)
class Budget:
    """The memory of a release, in bytes."""

    database: int  # that DuckDB may take
    part: int  # that the making of one part may take


def budget(memory: str) -> Budget:
    """Share the memory that the process may take between DuckDB and the parts."""
    given = bytes_of(memory)
    free = given - resident()
    if free < _LEAST_FREE:
        least = (resident() + _LEAST_FREE) // 10**6 + 1
        raise ValueError(f"memory must be at least {least}MB here; got {memory}.")
    return Budget(int(free * _DATABASE_SHARE), int(free * (1 - _DATABASE_SHARE)))
