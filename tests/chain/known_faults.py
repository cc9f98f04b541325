"""Faults that the chain finds and that are not mended yet.

The list is strict: a fault that is not in it fails the tests, and so does one in it that is no longer found. It is to
become empty, and to stay so.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """A fault: the step that says something wrong, a pattern of what it says, and a table and method that show it."""

    step: str
    pattern: str
    words: str
    table: str
    method: str


KNOWN: list[Known] = []
