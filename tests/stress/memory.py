"""How much memory the process has."""

from __future__ import annotations

from pathlib import Path


def resident() -> int:
    """Return the megabytes that the process has in memory (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 >> 20
