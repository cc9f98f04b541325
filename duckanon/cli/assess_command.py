"""``duckanon assess``: what is known of one's own table at a glance, and what to type next."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # `duckanon --version` can do without DuckDB
    import duckdb

    from duckanon.job.policy import Source

WIDTH = 100
"""Columns of the text."""

_DATABASES = (".duckdb", ".db", ".ddb")
_TEXTS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".csv.zst")

ROLES = {
    "identifier": "Identifiers: they name people; remove them.",
    "person key": "Person keys: they say which person a row belongs to.",
    "household key": "Household keys: they say who belongs together; remove them.",
    "quasi-identifier": "Quasi-identifiers: others may know these values and find a person by them.",
    "possible quasi-identifier": "Possible quasi-identifiers: decide whether others may know them.",
    "sensitive": "Sensitive: nobody should learn these values of a person.",
    "weight": "Sampling weights.",
    "constant": "Constants.",
    "undecided": "Undecided: decide before you release.",
}


class Column(NamedTuple):
    """A column of the table, as anon.assess sees it."""

    name: str
    role: str
    why: str


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    import duckanon
    from duckanon.cli import output, statements
    from duckanon.job.draft import without_password

    con = duckanon.connect()
    try:
        con.execute("SET python_enable_replacements = false; SET enable_progress_bar = false").fetchall()

        def work() -> str:
            opened = open_table(con, options.file, options.table)
            return assessment(con, without_password(options.file), opened, options.person)

        output.writer(sys.stdout)(output.visible(statements.interruptible(con.interrupt, work), keep="\n"))
    finally:
        con.close()
    return 0


def open_table(con: duckdb.DuckDBPyConnection, file: str, table: str | None = None) -> str | None:
    """Make the table or the file the view ``assessed``, and return the name of the table in its file, if it has one.

    Nothing is written: a database is opened read-only. A text is read once, into memory.
    """
    from duckanon.job.policy import Source, is_server

    if is_server(file):
        return _open_server(con, Source(path=file, table=table))
    path = Path(file)
    if not path.exists():
        raise ValueError(f"duckanon assess: there is no file {file}.")
    quoted = "'" + file.replace("'", "''") + "'"
    if not file.lower().endswith(_DATABASES):
        if table is not None:
            raise ValueError(f"duckanon assess: --table is for DuckDB files, which end in .duckdb or .db; got {file}.")
        if file.lower().endswith(".sql"):
            raise ValueError(
                f"duckanon assess: {file} is a file of SQL; run it with duckanon run {shlex.quote(file)}, and assess "
                "the file or table that it makes."
            )
        if file.lower().endswith(_TEXTS):
            con.execute(f"CREATE TEMP TABLE assessed AS FROM read_csv({quoted})").fetchall()
        else:
            con.execute(f"CREATE TEMP VIEW assessed AS FROM read_parquet({quoted})").fetchall()
        return None
    con.execute(f"ATTACH {quoted} AS assessed_file (READ_ONLY)").fetchall()
    tables = con.execute(
        """SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'assessed_file' UNION ALL
           SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'assessed_file' AND NOT internal"""
    ).fetchall()
    names = {f"{schema}.{name}": (schema, name) for schema, name in sorted(tables)}
    chosen = [
        full for full, (_, name) in names.items() if table is None or table.lower() in (name.lower(), full.lower())
    ]
    if len(chosen) != 1:
        wanted = "must name one of its tables" if table is None else f"must be one of its tables, not {table}"
        raise ValueError(f"duckanon assess: --table {wanted}: {', '.join(names) or 'there is none'}.")
    schema, name = (part.replace('"', '""') for part in names[chosen[0]])
    con.execute(f'CREATE TEMP VIEW assessed AS FROM assessed_file."{schema}"."{name}"').fetchall()
    return chosen[0].removeprefix("main.")


def _open_server(con: duckdb.DuckDBPyConnection, source: Source) -> str:
    """Fetch a table of a PostgreSQL server as the view ``assessed``."""
    from duckanon.job.errors import JobError
    from duckanon.job.warehouse import fetch_source

    if source.table is None:
        raise ValueError("duckanon assess: --table must say which table of the server is meant.")
    try:
        con.execute(f"CREATE TEMP VIEW assessed AS {fetch_source(con, source).query}").fetchall()
    except JobError as error:
        raise ValueError(f"duckanon assess: {error}") from None
    return source.table


def assessment(
    con: duckdb.DuckDBPyConnection, file: str, table: str | None, person: str | None, is_last: bool = True
) -> str:
    """Return the assessment of the view ``assessed`` as text, with what to type next if nothing else follows."""
    query = "SELECT column_name, role, why FROM anon.assess('assessed', person := $1)"
    columns = [Column(*row) for row in con.execute(query, [person]).fetchall()]
    (count,) = con.execute("SELECT count(*) FROM assessed").fetchall()[0]
    lines = [f"{file}{f', table {table}' if table else ''}: {count:,} rows, {len(columns)} columns", ""]
    for role, meaning in ROLES.items():
        lines += _list_columns(meaning, [column for column in columns if column.role == role])
    keys = [column.name for column in columns if column.role == "person key"]
    known = [column.name for column in columns if column.role == "quasi-identifier"]
    if known:
        lines += _crowds(con, known, person or next(iter(keys), None))
    return "\n".join([*lines, *(_next_steps(file, table) if is_last else []), ""])


def _list_columns(meaning: str, columns: list[Column]) -> list[str]:
    if not columns:
        return []
    widest = min(max(len(column.name) for column in columns), 30)
    lines = [meaning]
    for column in columns:
        begin = f"  {column.name.ljust(widest)}  "
        lines += textwrap.wrap(column.why or "", WIDTH, initial_indent=begin, subsequent_indent=" " * (widest + 4)) or [
            begin.rstrip()
        ]
    return [*lines, ""]


def _crowds(con: duckdb.DuckDBPyConnection, columns: list[str], person: str | None) -> list[str]:
    """Say how many people are unique in all quasi-identifiers together; rows where no column says whose they are."""
    query = "SELECT k, people, rows_under_2 FROM anon.k_anonymity($1, $2, person := $3)"
    smallest, everybody, unique = con.execute(query, ["assessed", columns, person]).fetchall()[0]
    singular, plural, within = ("person", "people", "for") if person else ("row", "rows", "in")
    if person:  # of the rows in such classes some may be nobody's, and several one person's
        query = (
            "SELECT people_at_risk FROM anon.reidentification_risk($1, $2, threshold := 0.5, person := $3) "
            "WHERE attacker = 'prosecutor'"
        )
        unique = con.execute(query, ["assessed", columns, person]).fetchall()[0][0] if everybody else 0
    text = (
        f"The {len(columns)} quasi-identifiers together are unique {within} {unique:,} of {everybody:,} {plural} ("
        f"{unique / max(everybody, 1):.1%}); the smallest class has {smallest} {singular if smallest == 1 else plural}."
    )
    if person:
        quoted = person.replace('"', '""')
        ((nobody,),) = con.execute(f'SELECT count(*) FROM assessed WHERE "{quoted}" IS NULL').fetchall()
        text += f" {nobody:,} {'row has' if nobody == 1 else 'rows have'} no {person} and count as nobody." * (
            nobody > 0
        )
    return [*textwrap.wrap(text, WIDTH), ""]


def _next_steps(file: str, table: str | None) -> list[str]:
    source = f"--from {shlex.quote(file)}" + (f" --table {shlex.quote(table)}" if table else "")
    draft, release = f"  duckanon policy init {source} --to policy.toml", "  duckanon release policy.toml"
    return [
        "Roles are suggestions from names, values and structure: correct them where you know better. Next, type",
        f"{draft}  # drafts a policy; review every role",
        f"{release.ljust(len(draft))}  # writes the release and its record",
    ]
