"""On which line of a TOML file a value stands: ``tomllib`` does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

Path = tuple[str | int, ...]
"""The way to a value: keys of tables, places in arrays."""


def line_of(text: str, path: Sequence[str | int]) -> int:
    r"""Return the line of the value at a path of a TOML document, or of the nearest that is around it.

    Lines are counted from 1, which is also that of a path of which not even the first key is written down.

    Examples:
        >>> line_of('[promises]\nk = 10\nl = 2\n', ("promises", "l"))
        3
        >>> line_of('[promises]\nk = 10\n', ("promises", "t"))
        1
    """
    line_of_path: dict[Path, int] = {}
    for place, line in _places(text):
        for length in range(1, len(place) + 1):
            line_of_path.setdefault(place[:length], line)
    written = (tuple(path[:length]) for length in range(len(path), 0, -1))
    return next((line_of_path[part] for part in written if part in line_of_path), 1)


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Yield every key that is written down, with its line.

    A statement of TOML begins on a line of its own and ends where what was read so far can be understood, which lets
    strings and arrays of several lines, quoted keys and comments be as they like.
    """
    header: Path = ()
    lengths: dict[Path, int] = {}  # of the arrays of tables so far
    lines = text.replace("\r\n", "\n").split("\n")  # TOML knows no other ends of lines
    start = 0
    while start < len(lines):
        statement, end = _statement(lines, start)
        if lines[start].lstrip().startswith("["):
            header = _numbered(_header(statement), lengths)
            yield header, start + 1
        else:
            for path, offset in _keys(statement, lines[start:end]):
                yield header + path, start + 1 + offset
        start = end


def _statement(lines: list[str], start: int) -> tuple[dict[str, Any], int]:
    for end in range(start + 1, len(lines) + 1):
        try:
            return tomllib.loads("\n".join(lines[start:end]) + "\n"), end
        except tomllib.TOMLDecodeError:
            continue
    return {}, start + 1


def _header(statement: Any) -> Path:
    path: Path = ()
    while statement:
        if isinstance(statement, list):
            return (*path, -1)  # an array of tables; which of them is counted by whoever reads the document
        key, statement = next(iter(statement.items()))
        path = (*path, key)
    return path


def _numbered(path: Path, lengths: dict[Path, int]) -> Path:
    """Put the number of the last element after the name of each array of tables."""
    numbered: Path = ()
    for key in path:
        if key == -1:
            lengths[numbered] = lengths.get(numbered, 0) + 1
            numbered = (*numbered, lengths[numbered] - 1)
        else:
            numbered = (*numbered, key)
            if numbered in lengths and path[-1] != -1:
                numbered = (*numbered, lengths[numbered] - 1)
    return numbered


def _keys(statement: Any, lines: list[str], path: Path = ()) -> Iterator[tuple[Path, int]]:
    """Yield the keys of a statement, also those inside its arrays and inline tables.

    In a value of several lines a key stands on the first line that has its name; of others it is the first line.
    """
    pairs = statement.items() if isinstance(statement, dict) else enumerate(statement)
    for key, value in pairs:
        names = [part for part in (*path, key) if isinstance(part, str)]
        offset = next((place for place, line in enumerate(lines) if names and names[-1] in line), 0)
        yield (*path, key), offset
        if isinstance(value, dict | list):
            yield from _keys(value, lines, (*path, key))
