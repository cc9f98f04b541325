"""Commands that print, and need no connection: ``duckanon render`` and ``duckanon extension``."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path
from typing import Any


def add_render(commands: Any) -> None:
    """Describe ``duckanon render``, which prints a stored plan as SQL for another engine."""
    command = commands.add_parser(
        "render",
        help="print a stored plan as SQL for another engine",
        description="Print a stored plan as one SELECT for another engine: "
        "duckanon render plan.parquet --dialect snowflake --table clinic.patients --k 10 > release.sql",
    )
    command.add_argument("plan", metavar="PLAN.parquet", help="the plan: COPY (FROM anon.plan(...)) TO 'plan.parquet'")
    command.add_argument("--dialect", required=True, help="the engine, such as postgres, spark, snowflake or bigquery")
    command.add_argument("--table", default="patients", metavar="NAME", help="the table to read (default: patients)")
    command.add_argument("--k", type=int, metavar="K", help="suppress classes of fewer rows, or people with --person")
    command.add_argument("--keep", action="append", metavar="COLUMN", help="another column to release; may be repeated")
    command.add_argument("--person", metavar="COLUMN", help="with --k, the column that identifies people")
    command.add_argument(
        "--type",
        action="append",
        default=[],
        dest="types",
        metavar="COLUMN=TYPE",
        help="the type of a column, where the SQL depends on it; may be repeated",
    )


def add_extension(commands: Any) -> None:
    """Describe ``duckanon extension``, which writes the extension for the stock DuckDB shell."""
    command = commands.add_parser(
        "extension",
        help="write the extension for the stock DuckDB shell",
        description="Write duckanon.duckdb_extension, which brings all functions into the stock DuckDB shell. The file "
        "starts this Python: write it anew after you have updated duckanon or Python.",
    )
    target = command.add_mutually_exclusive_group()
    target.add_argument("--to", metavar="PATH", default=".", help="the file or its folder (default: this folder)")
    target.add_argument(
        "--repository", metavar="FOLDER", help="write a repository for INSTALL duckanon FROM 'FOLDER' instead"
    )


def print_command(options: argparse.Namespace) -> str:
    """Return what ``duckanon extension`` or ``duckanon render`` prints."""
    return _extension(options) if options.command == "extension" else _render(options)


def _render(options: argparse.Namespace) -> str:
    from duckanon._render.queries import render

    types = {}
    for pair in options.types:
        name, separator, type_name = pair.rpartition("=")
        if not separator or not name:
            raise ValueError(f"duckanon render: --type must be COLUMN=TYPE such as smoker=VARCHAR; got {pair}.")
        types[name] = type_name
    try:
        return render(
            options.plan, options.dialect, options.table, options.k, options.keep, options.person, types or None
        )
    except ValueError as error:
        raise ValueError(f"duckanon render: {error}") from error


def _extension(options: argparse.Namespace) -> str:
    """Write the file and return what to do with it."""
    from duckanon._extension.extension_file import write_extension, write_repository

    written = write_repository(Path(options.repository)) if options.repository else write_extension(Path(options.to))
    quoted = str(written).replace("'", "''")
    first = f"    INSTALL duckanon FROM '{quoted}';\n" if options.repository else ""
    load = "LOAD duckanon;" if options.repository else f"LOAD '{quoted}';"
    return (
        f"{written} starts Python {platform.python_version()} ({sys.executable}).\n\n"
        f"In the shell of DuckDB 1.5.2 or later:\n\n    duckdb -unsigned\n{first}    {load}\n\n"
        f"To load it at every start, add the line to ~/.duckdbrc:\n\n    {load}\n"
    )
