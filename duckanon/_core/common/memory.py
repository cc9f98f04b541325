"""Memory: amounts as they are written, what the process has, and how it gives back what it does not need."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}

_MOST = 2.0**60
"""An exabyte: DuckDB takes no more than 64 bits."""


def bytes_of(memory: Any) -> int:
    """Read an amount of memory, as DuckDB writes it: '800MB', '2GB', '1.5GiB'.

    Examples:
        >>> bytes_of("1.5GB")
        1500000000
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)\s*", memory.lower()) if isinstance(memory, str) else None
    amount = float(found[1]) * _UNITS[found[2]] if found else math.inf
    if amount > _MOST:
        raise ValueError(f"memory must be an amount such as '800MB' or '2GB'; got {memory!r}.")
    return round(amount)


def resident() -> int:
    """Return the bytes of memory that the process has now, or had at most where the system does not tell."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # not on every system

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def give_back() -> None:
    """Return freed memory to the system: allocators keep it, and what one of them keeps another cannot use."""
    pa.default_memory_pool().release_unused()
    if trim := _trim():
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Return the function of the C library that gives back what numpy's arrays had; only glibc has it.

    Arrow's system pool does not call it.
    """
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # a C library without it, or one that has no name
        return None
    return found
