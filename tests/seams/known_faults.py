"""Faults that the matrix finds and that are not mended yet: by function and kind, with what they are.

The list is strict: a fault that is not in it fails the tests, and so does one in it that is no longer found. It is to
become empty, and to stay so.
"""

from __future__ import annotations

KNOWN: dict[tuple[str, str], str] = {}
"""By function and kind of fault (`tests.seams.outcomes`, or the name of a promise)."""
