"""How results are printed: DuckDB's own table, or something that other programs read."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `duckanon --version` needs the names of the formats, not DuckDB
    import duckdb

FORMATS = ("table", "csv", "json", "markdown")


def printed(relation: duckdb.DuckDBPyRelation, output_format: str) -> str:
    """Return a result as text in one of the formats."""
    if output_format == "table":
        return _as_table(relation)
    if output_format == "json":
        return _as_json(relation)
    return _as_csv(relation) if output_format == "csv" else _as_markdown(relation)


def _as_table(relation: duckdb.DuckDBPyRelation) -> str:
    """Return DuckDB's own table, as wide as the terminal where there is one."""
    if not sys.stdout.isatty():
        return str(relation).rstrip("\n") + "\n"
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        relation.show(max_width=shutil.get_terminal_size().columns)
    return shown.getvalue().rstrip("\n") + "\n"


def _texts(relation: duckdb.DuckDBPyRelation) -> list[tuple[str | None, ...]]:
    return relation.project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()


def _as_csv(relation: duckdb.DuckDBPyRelation) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(relation.columns)
    writer.writerows(_texts(relation))
    return buffer.getvalue()


def _as_json(relation: duckdb.DuckDBPyRelation) -> str:
    names = [json.dumps(name, ensure_ascii=False) for name in relation.columns]
    records = (
        "{" + ", ".join(f"{name}: {value or 'null'}" for name, value in zip(names, row, strict=True)) + "}"
        for row in relation.project("CAST(to_json(COLUMNS(*)) AS VARCHAR)").fetchall()
    )
    return "[" + ",\n ".join(records) + "]\n"


def _as_markdown(relation: duckdb.DuckDBPyRelation) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |\n"

    numbers = [_is_number(str(column_type)) for column_type in relation.types]
    rows = [["" if value is None else value for value in row] for row in _texts(relation)]
    dashes = "|" + "|".join(" ---: " if number else " --- " for number in numbers) + "|\n"
    return line(relation.columns) + dashes + "".join(line(row) for row in rows)


def _is_number(type_name: str) -> bool:
    return re.match(r"U?(TINY|SMALL|BIG|HUGE)?INT|FLOAT|DOUBLE|DECIMAL", type_name) is not None
