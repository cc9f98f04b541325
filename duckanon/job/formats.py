"""Which files are tables, told by the ends of their names, and what is a server."""

from __future__ import annotations

from typing import Literal

Format = Literal["parquet", "csv", "duckdb", "postgresql"]

FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".duckdb": "duckdb",
    ".db": "duckdb",
}
"""Formats that can be written."""

_READ: dict[str, Format] = {**FORMATS, ".tsv": "csv", ".txt": "csv", ".tsv.gz": "csv", ".ddb": "duckdb"}


def format_of(path: str) -> Format | None:
    """Return the format of what is to be written."""
    return "postgresql" if is_server(path) else _ending(path, FORMATS)


def source_format(path: str) -> Format | None:
    """Return the format of a file, or of the files of a glob, to be read."""
    return _ending(path, _READ)


def is_database(path: str) -> bool:
    """Tell whether a path has tables with names in it."""
    return is_server(path) or source_format(path) == "duckdb"


def is_server(path: str) -> bool:
    """Tell whether a path is the address of a PostgreSQL server."""
    return path.startswith(("postgresql://", "postgres://"))


def _ending(path: str, endings: dict[str, Format]) -> Format | None:
    lower = path.lower()
    return next((kind for ending, kind in endings.items() if lower.endswith(ending)), None)
