"""Numbers of things in sentences: 1 person, 2 people."""

from __future__ import annotations


def counted(count: float, one: str, many: str) -> str:
    """Return a number of things in words.

    Examples:
        >>> counted(1, "person", "people"), counted(0, "person", "people"), counted(2.5, "value", "values")
        ('1 person', '0 people', '2.5 values')
    """
    return f"{count if isinstance(count, int) else format(count, '.4g')} {one if count == 1 else many}"
