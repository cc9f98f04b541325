"""Labels that the package makes up, and values that look like one: ``*``, ``other``, ``{a, b}``, ``021**``, ``Total``.

A value that could be read as a label is released as the set of itself, in quotation marks: ``{"other"}``. Within braces
quotation marks mean a value of the column, and ``other`` without them means all values that no label names. Merged
values are called ``other``, and ``{other}`` beside a value ``other`` that may be released (`rest_label`). Only such
values, which enough people share, decide how labels are written: the value of one person changes none. Numbers and
dates need none of this, since their ranges are no numbers. Columns of new records keep their values as they are.

In SQL ``anon._value_label``, ``anon._list_text`` and ``anon._label_members`` write and read the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

EVERYTHING = "*"
"""Any value, or NULL."""

OTHER = "other"
"""Values of the column that no label names: fewer than k people share each."""

TOTAL = "Total"
"""The margin of a column of a table: all its values together. ``anon._cell_label`` quotes values that are called so."""

NULL = "NULL"

QUOTED_MARKS, QUOTED_VALUES = r'[,{}"]', ("", NULL)
"""Members of a set are quoted that have one of these marks, are one of these, or end in a star."""

MARKED = r'\{("(?:[^"]|"")*")\}'
"""The label of a value in quotation marks."""

_MEMBER = re.compile(r'(?:^|, )("(?:[^"]|"")*"|(?:[^,]|,[^ ])*)')
_MARKED = re.compile(MARKED)
_RESTS = (OTHER, "{" + OTHER + "}")


def is_like_label(value: str) -> bool:
    """Tell whether a value could be read as a label: ``*``, ``other``, a set, or the beginning of codes."""
    return value == OTHER or value.startswith("{") or value.endswith(EVERYTHING)


def value_label(value: str) -> str:
    """Write a value as a label: itself, or in quotation marks where it could be read as a label that is made up.

    Examples:
        >>> [value_label(value) for value in ("a", "other", "*", "021**")]
        ['a', '{"other"}', '{"*"}', '{"021**"}']
    """
    return "{" + _quoted(value) + "}" if is_like_label(value) else value


def listed_value(value: str | None) -> str | None:
    """Write a value as an entry of a list: itself, or its label where it could be read as `OTHER` or as such a label.

    Examples:
        >>> listed_value("*"), listed_value("other"), listed_value('{"a"}')
        ('*', '{"other"}', '{"{""a""}"}')
    """
    if value is None or (value not in _RESTS and not _MARKED.fullmatch(value)):
        return value
    return value_label(value)


def rest_label(shared: Collection[str | None]) -> str:
    """Return what merged values are called beside the values that enough people share.

    Examples:
        >>> rest_label(["a", "b"]), rest_label(["a", "other"])
        ('other', '{other}')
    """
    return "{" + OTHER + "}" if OTHER in shared else OTHER


def set_label(listed: Sequence[str | None]) -> str | None:
    """Write the entries of a list (`listed_value`, `rest_label`, None for NULL) as one label.

    Examples:
        >>> set_label(["a"]), set_label(["*"]), set_label(["a, b", '{"other"}', "other", None])
        ('a', '{"*"}', '{"a, b", "other", other, NULL}')
    """
    if len(listed) == 1 and (listed[0] is None or listed[0] in _RESTS or not is_like_label(listed[0])):
        return listed[0]
    return "{" + ", ".join(map(_member, listed)) + "}"


def set_members(label: str | None) -> list[str | None]:
    """Read the values of a label, None for NULL. In a set, `OTHER` without marks is no value.

    Examples:
        >>> set_members('{"a, b", c, other, NULL}'), set_members('{"other"}')
        (['a, b', 'c', None], ['other'])
    """
    if label is None or not (label.startswith("{") and label.endswith("}")):
        return [label]
    return [_value(written) for written in _MEMBER.findall(label[1:-1]) if written != OTHER]


def _member(entry: str | None) -> str:
    if entry is None or entry in _RESTS:
        return NULL if entry is None else OTHER
    if is_marked := _MARKED.fullmatch(entry):
        return is_marked[1]
    is_hard = entry in QUOTED_VALUES or entry.endswith(EVERYTHING) or re.search(QUOTED_MARKS, entry)
    return _quoted(entry) if is_hard else entry


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _value(written: str) -> str | None:
    if written == NULL:
        return None
    is_quoted = len(written) > 1 and written.startswith('"') and written.endswith('"')
    return written[1:-1].replace('""', '"') if is_quoted else written
