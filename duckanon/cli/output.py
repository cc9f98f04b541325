"""Results as they are printed: DuckDB's own table, or for other programs to read; safe to look at and to open."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:  # `duckanon --version` needs the names of the formats, not DuckDB
    import duckdb

FORMATS = ("table", "csv", "json", "markdown")

MOST_ROWS = 10_000
"""DuckDB's own table looks at no more rows of a result."""

_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that command a terminal, turn the direction of writing, or are not seen at all."""

_ESCAPES = dict(zip("\0\a\b\t\n\v\f\r\x1b", "0abtnvfre", strict=True))
"""As DuckDB's own table writes them."""

_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?)(?:(nan)|inf(?:inity)?)', re.IGNORECASE)
"""A string of JSON, or what DuckDB writes in JSON for numbers that JSON does not have."""

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?"
_FORMULA = re.compile(r'(^|[;\t\r\n])(?=[\s"]*[=+\-@＝＋－＠])')
"""Where a cell could begin that a spreadsheet computes: some split at semicolons and tabs, whatever is quoted."""


@dataclass(frozen=True)
class Style:
    """The format of results."""

    output_format: str = "table"  # one of `FORMATS`
    max_rows: int | None = None  # how many rows a table shows; None leaves it to DuckDB
    formulas: bool = True  # whether texts that a spreadsheet would compute are written to CSV as they are


def format_result(relation: duckdb.DuckDBPyRelation, style: Style) -> str:
    """Return a result as text in one of the formats."""
    if style.output_format == "table":
        return _as_table(relation, style.max_rows)
    if style.output_format == "json":
        return _as_json(relation)
    return _as_csv(relation, style.formulas) if style.output_format == "csv" else _as_markdown(relation)


def visible(text: str, keep: str = "") -> str:
    r"""Write control characters as what they are, so that a terminal shows them instead of doing what they say.

    Examples:
        >>> print(visible("red: \x1b[31m"))
        red: \e[31m
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def _escape(letter: str) -> str:
    if letter in _ESCAPES:
        return f"\\{_ESCAPES[letter]}"
    return f"\\x{ord(letter):02x}" if letter < "\x80" else f"\\u{ord(letter):04x}"


def writer(stream: TextIO) -> Callable[[str], None]:
    """Return what writes to a stream at once; on a terminal, nothing but lines and tabs reaches it as a command."""
    is_terminal = stream.isatty()

    def write(text: str) -> None:
        stream.write(visible(text, keep="\n\t") if is_terminal else text)
        stream.flush()

    return write


def complain(text: str) -> None:
    """Write a line to standard error, if that can be written: a full disk changes no exit code."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr)


def _as_table(relation: duckdb.DuckDBPyRelation, max_rows: int | None) -> str:
    """Return DuckDB's own table, as wide as the terminal where there is one."""
    limits: dict[str, Any] = {} if max_rows is None else {"max_rows": max_rows}
    if sys.stdout.isatty():
        limits["max_width"] = shutil.get_terminal_size().columns
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        relation.show(**limits)
    return visible(shown.getvalue().rstrip("\n"), keep="\n") + "\n"


def _texts(relation: duckdb.DuckDBPyRelation) -> list[tuple[str | None, ...]]:
    return relation.project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()


def _as_csv(relation: duckdb.DuckDBPyRelation, formulas: bool) -> str:
    header, rows = relation.columns, _texts(relation)
    if not formulas:
        is_text = [not _is_number(str(kind)) for kind in relation.types]
        header = [_defuse(name) for name in header]
        rows = [
            tuple(_defuse(cell) if text and cell else cell for cell, text in zip(row, is_text, strict=True))
            for row in rows
        ]
    lines = _Lines()
    table = csv.writer(lines, lineterminator="\r\n")
    table.writerow(header)
    table.writerows(rows)
    return "\n".join([*lines, ""])


class _Lines(list[str]):
    """The lines that csv writes: only what is in its line ends gets quotes, which a lone carriage return needs too."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n"))


def _defuse(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would compute; a plain number is no formula."""
    return text if re.fullmatch(_NUMBER, text) else _FORMULA.sub(r"\1'", text)


def _as_json(relation: duckdb.DuckDBPyRelation) -> str:
    names = [_json_text(json.dumps(name, ensure_ascii=False)) for name in _number_names(relation.columns)]
    records = (
        "{" + ", ".join(f"{name}: {_json_text(value or 'null')}" for name, value in zip(names, row, strict=True)) + "}"
        for row in relation.project("CAST(to_json(COLUMNS(*)) AS VARCHAR)").fetchall()
    )
    return "[" + ",\n ".join(records) + "]\n"


def _json_text(value: str) -> str:
    """Make what DuckDB writes JSON: numbers that are none become texts, control characters are escaped."""
    value = _NO_NUMBER.sub(_json_token, value)
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def _json_token(match: re.Match[str]) -> str:
    if match[0].startswith('"'):
        return match[0]
    return '"NaN"' if match[2] else f'"{match[1]}Infinity"'


def _number_names(names: Sequence[str]) -> list[str]:
    """Give names that came before a number, as DuckDB does where it makes a table of them: a, a_1."""
    apart: list[str] = []
    for name in names:
        number, candidate = 0, name
        while candidate in apart or (number and candidate in names):
            number += 1
            candidate = f"{name}_{number}"
        apart.append(candidate)
    return apart


def _as_markdown(relation: duckdb.DuckDBPyRelation) -> str:
    def line(cells: Sequence[str | None]) -> str:
        return "| " + " | ".join(_markdown_text(cell or "") for cell in cells) + " |\n"

    numbers = [_is_number(str(column_type)) for column_type in relation.types]
    dashes = "|" + "|".join(" ---: " if number else " --- " for number in numbers) + "|\n"
    return line(relation.columns) + dashes + "".join(line(row) for row in _texts(relation))


def _markdown_text(cell: str) -> str:
    """Write a cell so that it is shown as it is: no markup, no link, no picture that would be fetched."""
    cell = cell.replace("&", "&amp;").replace("<", "&lt;")
    cell = re.sub(r"[\\|`]|(?<=\])\(", r"\\\g<0>", cell)
    return "<br>".join(visible(part) for part in re.split(r"\r?\n", cell))


def _is_number(type_name: str) -> bool:
    return re.fullmatch(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)", type_name) is not None
