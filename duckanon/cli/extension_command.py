"""The command ``duckanon extension``: writes the extension for the stock DuckDB shell."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command and its options."""
    command = commands.add_parser(
        "extension",
        prog="duckanon extension",
        help="write the extension for the stock DuckDB shell",
        description="Write duckanon.duckdb_extension, which brings all functions into the stock DuckDB shell. The file "
        "starts this Python: write it anew after you have updated duckanon or Python.",
    )
    target = command.add_mutually_exclusive_group()
    target.add_argument("--to", metavar="PATH", default=".", help="the file or its folder (default: this folder)")
    target.add_argument(
        "--repository", metavar="FOLDER", help="write a repository for INSTALL duckanon FROM 'FOLDER' instead"
    )


def run(options: argparse.Namespace) -> str:
    """Write the file and return what to do with it."""
    from duckanon._extension.extension_file import write_extension, write_repository

    if options.repository:
        folder = write_repository(Path(options.repository))
        written, first, load = folder, f"    INSTALL duckanon FROM '{_quoted(folder)}';\n", "LOAD duckanon;"
    else:
        written = write_extension(Path(options.to))
        first, load = "", f"LOAD '{_quoted(written)}';"
    return (
        f"{written} starts Python {platform.python_version()} ({sys.executable}).\n\n"
        f"In the shell of DuckDB 1.5.2 or later:\n\n    duckdb -unsigned\n{first}    {load}\n\n"
        f"To load it at every start, add the line to ~/.duckdbrc:\n\n    {load}\n"
    )


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
