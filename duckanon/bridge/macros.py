"""The macros: the files of ``sql/``, put in order and joined to one script."""

from __future__ import annotations

import functools
import graphlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

STAGES = ("catalog", "assess", "generalize", "release", "measure")
"""The folders of ``sql/`` that hold public functions, in the order in which they are listed."""

ATTACH = "ATTACH IF NOT EXISTS ':memory:' AS anon (READ_WRITE);"


@dataclass(frozen=True)
class MacroFile:
    """One file of ``sql/``: a macro, its comment, and what it needs."""

    name: str
    stage: str
    parameters: str
    needs_python: bool
    sql: str

    @property
    def is_public(self) -> bool:
        """Whether the macro is meant for users: helpers begin with an underscore."""
        return not self.name.startswith("_")

    @property
    def calls(self) -> set[str]:
        """The macros that this one calls and that must therefore exist before it."""
        code = re.sub(r"--[^\n]*", "", self.sql)
        return set(re.findall(r"\banon\.(\w+)\(", code)) - {self.name}


def sql_folder() -> Path:
    """Find the folder of macros: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("duckanon: the folder sql/ with its macros is missing; install the package again.")


@functools.cache
def macro_files() -> tuple[MacroFile, ...]:
    """Read all macros, each after those that it calls (CREATE MACRO binds its body)."""
    return _in_order([_read(path) for path in sorted(sql_folder().glob("*/*.sql"))])


def _in_order(macros: Iterable[MacroFile]) -> tuple[MacroFile, ...]:
    files = {file.name: file for file in macros}
    order = graphlib.TopologicalSorter({file.name: sorted(file.calls & files.keys()) for file in files.values()})
    return tuple(files[name] for name in order.static_order())


def _read(path: Path) -> MacroFile:
    sql = path.read_text(encoding="utf-8")
    signature = re.search(rf"^CREATE OR REPLACE MACRO anon\.{path.stem}\((.*?)\) AS\b", sql, re.MULTILINE | re.DOTALL)
    if signature is None:
        raise ValueError(f"duckanon: {path.name} does not define the macro anon.{path.stem} that it is named after.")
    return MacroFile(
        name=path.stem,
        stage=path.parent.name,
        parameters=" ".join(signature[1].split()),
        needs_python="\n-- needs: python\n" in sql,
        sql=sql,
    )


def script(database: int | None = None, more: Iterable[MacroFile] = ()) -> str:
    """Return the macros as one SQL script.

    Parameters
    ----------
    database
        The number by which Python functions tell this database from others; None for the macros that need no Python,
        as the stock shell can run them.
    more
        Macros that are in no file.
    """
    files = [file for file in _in_order([*macro_files(), *more]) if database is not None or not file.needs_python]
    number = [] if database is None else [f"CREATE OR REPLACE MACRO anon._database() AS {database};\n"]
    return "\n".join([ATTACH, *number, _signatures(files), *(file.sql for file in files)])


def _signatures(files: list[MacroFile]) -> str:
    rows = ",\n    ".join(
        f"('{file.name}', '{file.stage}', {STAGES.index(file.stage)}, $${file.parameters}$$)"
        for file in files
        if file.is_public
    )
    return (
        "CREATE OR REPLACE TABLE anon._signatures AS\n"
        f"FROM (VALUES\n    {rows}\n) AS _(function_name, stage, stage_place, parameters);\n"
    )
