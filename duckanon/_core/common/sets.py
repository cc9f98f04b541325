"""Sets of values as labels, ``{a, b}``, written such that they can be read back whatever the values are.

In SQL ``anon._list_text`` writes the same, and ``anon._label_members`` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NULL = "NULL"

QUOTED_MARKS, QUOTED_VALUES = r'[,{}"]', ("", NULL, "*")
"""Values are quoted that have one of these marks, or are one of these: they would be read as something else."""

_MEMBER = re.compile(r'(?:^|, )("(?:[^"]|"")*"|(?:[^,]|,[^ ])*)')


def set_label(values: Sequence[str | None]) -> str | None:
    """Write values as a label: the value itself where there is one.

    Examples:
        >>> set_label(["a"]), set_label(["a, b", "c", None]), set_label(["*"])
        ('a', '{"a, b", c, NULL}', '{"*"}')
    """
    if len(values) == 1 and not (values[0] or "").startswith("{") and values[0] != "*":
        return values[0]  # others would be read as a set, or as nothing said: even alone they are written as a set
    return "{" + ", ".join(map(_member, values)) + "}"


def set_members(label: str | None) -> list[str | None]:
    """Read the values of a label, None for NULL.

    Examples:
        >>> set_members('{"a, b", c, NULL}')
        ['a, b', 'c', None]
    """
    if label is None or not (label.startswith("{") and label.endswith("}")):
        return [label]
    return [_value(written) for written in _MEMBER.findall(label[1:-1])]


def _member(value: str | None) -> str:
    if value is None:
        return NULL
    is_quoted = value in QUOTED_VALUES or re.search(QUOTED_MARKS, value)
    return '"' + value.replace('"', '""') + '"' if is_quoted else value


def _value(written: str) -> str | None:
    if written == NULL:
        return None
    is_quoted = len(written) > 1 and written.startswith('"') and written.endswith('"')
    return written[1:-1].replace('""', '"') if is_quoted else written
