"""Commands that print, and need no connection: ``duckanon render`` and ``duckanon extension``."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path


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
