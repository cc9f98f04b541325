"""The macros: the files of ``sql/``, put in order and joined to one script."""

from __future__ import annotations

import functools
import graphlib
import re
from pathlib import Path

from duckanon._bridge.generated import generate_macros
from duckanon._bridge.qualified import MacroFile, qualify
from duckanon._bridge.registration import ATTACH, database_macro, sql_folder

STAGES = ("catalog", "assess", "risk", "pseudonymize", "generalize", "release", "measure")
"""The folders of ``sql/`` that hold public functions, in the order in which they are listed."""


@functools.cache
def macro_files() -> tuple[MacroFile, ...]:
    """Read all macros, each after those that it calls (CREATE MACRO binds its body)."""
    macros = [*map(_read, sorted(sql_folder().glob("*/*.sql"))), *generate_macros()]
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
        is_table=sql[signature.end() :].startswith(" TABLE"),
        sql=sql,
    )


def script(database: int | None = None) -> str:
    """Return the macros as one SQL script.

    Python functions tell databases apart by their number; without one, the script has the macros that the stock shell
    can run without Python, and the others say what they need.
    """
    files = [file for file in macro_files() if database is not None or not file.needs_python]
    number, last = ([], []) if database is None else ([database_macro(database)], [_RANDOM])
    absent = [_refusal(file) for file in macro_files() if database is None and file.is_public and file.needs_python]
    return "\n".join([ATTACH, *number, _signatures(files), *(file.immune_sql for file in files), *last, *absent])


_RANDOM = "CREATE OR REPLACE MACRO anon._random() AS system.main._anon_random(system.main.random());\n"
"""In place of ``sql/bridge/_random.sql``, where there is Python."""


def _refusal(file: MacroFile) -> str:
    """Return a macro that takes the place of one that needs Python where there is none.

    It has the same parameters, so that every call is answered. A table is refused when the query is bound: later, a
    column that somebody asks for would be missed first, and a mere count of the rows would be answered.
    """
    sentence = (
        f"anon.{file.name}: it needs Python, which is not available here; "
        f"call it in `duckanon shell`, or in Python after `duckanon.register(con)`."
    )
    first = file.parameters.partition(",")[0]
    # the parameter adds nothing to the sentence, but without one DuckDB would stop where the macro is created
    body = f"TABLE FROM query(error(concat('{sentence}', left({first}::VARCHAR, 0))))"
    return qualify(
        f"CREATE OR REPLACE MACRO anon.{file.name}({file.parameters}) AS\n"
        + (f"    {body};\n" if file.is_table else f"    error('{sentence}');\n")
    )


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
