"""How much memory a release may take, and how it is shared between DuckDB and the parts."""

from __future__ import annotations

import os
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}

_DATABASE_SHARE = 0.4
"""Of the memory that is free, what DuckDB may take while it routes and counts; parts are made when it rests."""

_LEAST_FREE = 200 * 10**6
"""What a release needs besides Python and its libraries: DuckDB's buffers, and one part of a useful size."""


@dataclass(frozen=True)
class Budget:
    """The memory of a release.

    Attributes
    ----------
    database
        Bytes that DuckDB may take.
    part
        Bytes that the making of one part may take.
    """

    database: int
    part: int


def bytes_of(memory: Any) -> int:
    """Read an amount of memory, as DuckDB writes it: '800MB', '2GB', '1.5GiB'.

    Examples
    --------
    >>> bytes_of("1.5GB")
    1500000000
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)\s*", memory.lower()) if isinstance(memory, str) else None
    if found is None:
        raise ValueError(f"memory must be an amount such as '800MB' or '2GB'; got {memory!r}.")
    return round(float(found[1]) * _UNITS[found[2]])


def budget(memory: Any) -> Budget:
    """Share the memory that the process may take between DuckDB and the parts."""
    given = bytes_of(memory)
    free = given - resident()
    if free < _LEAST_FREE:
        least = (resident() + _LEAST_FREE) // 10**6 + 1
        raise ValueError(f"memory must be at least {least}MB here; got {memory}.")
    return Budget(int(free * _DATABASE_SHARE), int(free * (1 - _DATABASE_SHARE)))


def resident() -> int:
    """Return the bytes of memory that the process has now, or had at the most where the system does not tell."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
