"""The folder of macros."""

from __future__ import annotations

from pathlib import Path


def sql_folder() -> Path:
    """Find the folder of macros: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("duckanon: the folder sql/ with its macros is missing; install the package again.")
