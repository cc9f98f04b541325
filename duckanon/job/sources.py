"""Tables read: from DuckDB files, Parquet, CSV and PostgreSQL, once, with what must not go further left behind.

Beside the one to release, a policy names reference samples and hierarchies.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon.job import warehouse
from duckanon.job.errors import FileProblem, JobError, PolicyError
from duckanon.job.keys import Secret
from duckanon.job.policy import LEFT_OUT, Column, Source, Table, is_server, source_format
from duckanon.job.policy_file import PolicyFile
from duckanon.job.warehouse import Opened
from duckanon.postgresql.server import Relation

_SHIFTED = re.compile(r'DATE$|TIMESTAMP|"NULL"$')
"""Types of dates that can be shifted."""


@dataclass(frozen=True)
class Original:
    """A table that was read."""

    table: str  # its name in the job's database
    label: str  # where it comes from, as the record tells it
    files: list[Path]  # the files that it was read from
    sha256: str  # of the files' bytes; of the rows where they come from a database
    row_count: int  # its rows
    declared: dict[str, str] = field(default_factory=dict)  # the types of its columns on the server that it comes from
    relations: set[Relation] = field(default_factory=set)  # the tables of the server that it comes from


def files_of(file: PolicyFile, source: Source) -> list[Path]:
    """Return the files of a source, in order; a source without a path, and a server, have none."""
    if not source.path or is_server(source.path):
        return []
    return matching(str(file.place(source.path)), source.path)


def matching(pattern: str, shown: str) -> list[Path]:
    """Return the files of a path or a glob, in order, or refuse what errors show of it."""
    files = sorted(map(Path, glob.glob(pattern, recursive=True))) if glob.has_magic(pattern) else []
    if not files and Path(pattern).exists():
        files = [Path(pattern)]
    if not files:
        raise FileProblem(f"{shown}: there is no such file.")
    return files


def paths_in(file: PolicyFile, source: Source) -> list[str]:
    """Return the paths and globs that a source may be: its path, and what is in quotes in its query.

    A query's are meant from the folder of the policy or of the process; a star by itself is no glob.
    """
    query = source.query or ""
    quoted = [
        text for pair in re.findall(r"'([^']+)'|\"([^\"]+)\"", query) for text in pair if re.search(r"[./]", text)
    ]
    paths = [str(folder / text) for text in quoted for folder in (file.path.parent, Path.cwd())]
    return paths if not source.path or is_server(source.path) else [*paths, str(file.place(source.path))]


def read(
    con: sql.Connection,
    file: PolicyFile,
    table_name: str,
    number: int,
    key: Secret | None,
    look: Callable[[], None],
    schema: str = "memory.main",
) -> Original:
    """Read a table into a schema: columns that are left out stay behind, pseudonyms are in place, dates are shifted.

    `look` refuses files that the job writes; it is asked before all rows are read, too.
    """
    source, original = file.policy.tables[table_name].source, f"original_{number}"
    label = _label(source)
    files = files_of(file, source)
    before = [_state(path) for path in files]
    opened = load(con, file, table_name, f"{schema}.{original}", key, look)
    try:
        con.execute(f"USE {schema}").fetchall()
        con.execute(f"DROP TABLE IF EXISTS {warehouse.FETCHED}").fetchall()
        row_count = sql.fetch_row(con, f"SELECT count(*) FROM {original}")[0]
        is_of_rows = not files or source_format(str(files[0])) == "duckdb" or bool(source.query)
        hash_of_rows = warehouse.fingerprint(con, f"FROM {original}") if is_of_rows else ""
    except duckdb.Error as error:
        raise unreadable(source, error) from None
    if row_count == 0:
        raise FileProblem(f"{label}: the table has no rows.")
    if before != [_state(path) for path in files]:
        raise FileProblem(f"{label}: the file changed while it was read; run the job again.")
    sha256 = hash_of_rows or hash_of(files)
    return Original(original, label, files, sha256, row_count, opened.declared, opened.relations)


def load(
    con: sql.Connection,
    file: PolicyFile,
    table_name: str,
    name: str,
    key: Secret | None,
    look: Callable[[], None],
    sample: int | None = None,
) -> Opened:
    """Make the table of what is read of a source: of all its rows, or of about so many, the awkward ones among them."""
    table = file.policy.tables[table_name]
    try:
        check_types(con, file, table_name)
        opened = open_source(con, table.source, files_of(file, table.source), table.with_roles(*LEFT_OUT), sample)
        types = check_columns(con, file, table_name, opened.query)
        look()
        selected = ", ".join(
            f"{_expression(table, column, role, types[column])} AS {sql.quote(column)}"
            for column, role in table.columns.items()
            if role.role not in LEFT_OUT
        )
        parameters = {"key": key.reveal()} if key and "$key" in selected else {}
        rows = opened.query if sample is None else _sample(con, opened.query, table, types, sample)
        con.execute(f"CREATE TABLE {name} AS SELECT {selected} FROM ({rows})", parameters).fetchall()
    except duckdb.Error as error:
        raise unreadable(table.source, error) from None
    return opened


def _sample(con: sql.Connection, query: str, table: Table, types: dict[str, str], size: int) -> str:
    """Return the query of all rows, or of so many and, of each column with some, a NULL and a NaN."""
    columns = [column for column, role in table.columns.items() if role.role not in LEFT_OUT]
    awkward = [f"{sql.quote(column)} IS NULL" for column in columns]
    awkward += [f"isnan({sql.quote(column)})" for column in columns if types[column] in ("FLOAT", "DOUBLE")]
    counts = "".join(f", count(*) FILTER ({one})" for one in awkward)
    rows, *numbers = sql.fetch_row(con, f"SELECT count(*){counts} FROM ({query})")
    if rows <= size:
        return query
    drawn = f"(FROM ({query}) USING SAMPLE reservoir({size} ROWS) REPEATABLE (1))"
    rare = [f"(FROM ({query}) WHERE {one} LIMIT 1)" for one, count in zip(awkward, numbers, strict=True) if count]
    return " UNION ALL ".join([drawn, *rare])


def unreadable(source: Source, error: duckdb.Error) -> JobError:
    """Make the error of a source that cannot be read: the policy's, if DuckDB does not understand its query."""
    if source.query and isinstance(error, duckdb.ParserException | duckdb.BinderException | duckdb.SyntaxException):
        return PolicyError(f"source.query cannot be understood ({sql.reason(error)}).")
    return FileProblem(f"{_label(source)}: the table cannot be read ({sql.reason(error)}).")


def hash_of(files: Sequence[Path]) -> str:
    """Return the SHA-256 of files, one after the other."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as opened_file:
            while block := opened_file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def hash_of_release(con: sql.Connection, written: Path | str) -> str:
    """Return the hash of a release: of a file's bytes, of a server's rows."""
    return warehouse.digest(con, written) if isinstance(written, str) else hash_of([written])


def open_source(
    con: sql.Connection, source: Source, files: list[Path], unread: Sequence[str] = (), limit: int | None = None
) -> Opened:
    """Open a source, to be asked for its rows; of a server, all or so many, without some columns."""
    if source.path and is_server(source.path):
        return warehouse.fetch_source(con, source, unread, limit)
    if files and source_format(str(files[0])) == "duckdb":
        return Opened(_database_query(con, source, files))
    if not files:
        return Opened(_check_query(con, source.query or ""))
    rows = files_query(files, source.types)
    if source.query is None:
        return Opened(rows)
    con.execute(f"CREATE OR REPLACE TEMP VIEW source AS {rows}").fetchall()
    return Opened(_check_query(con, source.query))


def _database_query(con: sql.Connection, source: Source, files: list[Path]) -> str:
    if len(files) > 1:
        raise FileProblem(f"{source.path}: a source is one database file; got {len(files)}.")
    catalog = _attach(con, files[0])
    if source.query is not None:
        con.execute(f"USE {sql.quote(catalog)}").fetchall()
        return _check_query(con, source.query)
    parts = [catalog, *(source.table or "").split(".")]
    return f"SELECT * FROM {'.'.join(map(sql.quote, parts))}"


def _attach(con: sql.Connection, file: Path) -> str:
    """Attach a database file under its own name, or another where that is taken, and return the name."""
    taken = {
        str(catalog).lower(): path
        for catalog, path in con.execute("SELECT database_name, path FROM duckdb_databases()").fetchall()
    }
    for number in range(1, len(taken) + 2):
        catalog = file.stem if number == 1 else f"{file.stem}_{number}"
        path = taken.get(catalog.lower())
        if path is not None and os.path.realpath(path) == os.path.realpath(file):
            return catalog
        if catalog.lower() not in taken:
            break
    con.execute(f"ATTACH {sql.literal(str(file))} AS {sql.quote(catalog)} (READ_ONLY)").fetchall()
    return catalog


def _check_query(con: sql.Connection, query: str) -> str:
    """Refuse what is more than one query: it might write."""
    try:
        statements = con.extract_statements(query)
    except duckdb.Error:
        raise PolicyError("source.query cannot be read as SQL.") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise PolicyError("source.query must be one SELECT.")
    return sql.bare(query)


def files_query(files: Sequence[Path], types: dict[str, str] | None = None) -> str:
    """Return the query for Parquet or CSV files; a CSV file's types are told by all of its rows."""
    paths = sql.literal([str(path) for path in files])
    kind = source_format(str(files[0]))
    if kind == "parquet":
        return f"SELECT * FROM read_parquet({paths}, union_by_name = true)"
    if kind == "csv":
        with_types = f", types = {sql.structure(types)}" if types else ""
        return f"SELECT * FROM read_csv({paths}, sample_size = -1, union_by_name = true{with_types})"
    raise FileProblem(f"{files[0]}: a source must be a DuckDB, Parquet or CSV file.")


def check_columns(con: sql.Connection, file: PolicyFile, table_name: str, query: str) -> dict[str, str]:
    """Return the types of the columns, each of which has a role: what is not named does not travel."""
    roles = file.policy.tables[table_name].columns
    present = {row[0]: str(row[1]) for row in con.execute(f"DESCRIBE {query}").fetchall()}
    nameless = [column for column in present if column not in roles]
    if nameless:
        text = f"columns must give every column a role; without one: {', '.join(nameless)}."
        raise file.wrong(table_name, ("columns",), text)
    for column in roles:
        if column not in present:
            raise file.wrong(table_name, ("columns", column), f"columns.{column}: the table has no such column.")
        if roles[column].shift_days and not _SHIFTED.match(present[column]):
            text = (
                f"columns.{column}: shift_days is for dates and timestamps; the column has the type {present[column]}."
            )
            raise file.wrong(table_name, ("columns", column), text)
    return present


def check_types(con: sql.Connection, file: PolicyFile, table_name: str) -> None:
    """Refuse types of columns that the CSV files do not have, and types that DuckDB does not have."""
    source = file.policy.tables[table_name].source
    if not source.types:
        return
    paths = sql.literal([str(path) for path in files_of(file, source)])
    rows = con.execute(f"DESCRIBE FROM read_csv({paths}, all_varchar = true, union_by_name = true)").fetchall()
    present = {row[0].lower() for row in rows}
    for column, kind in source.types.items():
        text = None if column.lower() in present else f"{column} is no column of the source."
        try:
            con.execute(f"SELECT NULL::{kind}").fetchall()
        except duckdb.Error:
            text = text or f"{kind} is no type of DuckDB, such as VARCHAR, BIGINT or DATE."
        if text:
            raise file.wrong(table_name, ("source", "types", column), f"source.types.{column}: {text}")


def _expression(table: Table, column: str, role: Column, column_type: str) -> str:
    """Return what is read of a column; ENUMs become texts, since their type lists values that nobody may have."""
    quoted = sql.quote(column)
    if role.is_pseudonym:
        # as text, so that a key that is a number here and a text there gets the same pseudonym
        return f"anon.pseudonym({quoted}::VARCHAR, $key)"
    if role.shift_days:
        person = sql.quote(table.person or "")
        return f"anon.shift_date({quoted}, {person}::VARCHAR, $key, max_days := {role.shift_days})"
    return f"{quoted}::VARCHAR" if column_type.startswith("ENUM") else quoted


def _label(source: Source) -> str:
    """Return what the record calls a source: an address of a server without its name and password."""
    if source.path is None:
        return "query"
    return "postgresql" if is_server(source.path) else source.path


def _state(path: Path) -> tuple[int, int, int]:
    state = path.stat()
    return state.st_mtime_ns, state.st_size, state.st_ino


def reference(con: sql.Connection, file: PolicyFile, table: Table, number: int) -> str | None:
    """Read the sample of other people, and return the name of its table."""
    if table.reference is None:
        return None
    _load(con, f"reference_{number}", files_query([file.place(table.reference)]), table.reference)
    return f"reference_{number}"


def hierarchies(
    con: sql.Connection, file: PolicyFile, table_name: str, number: int, original: str
) -> dict[str, list[str]]:
    """Read the hierarchies, as texts, and return the names of their tables by column.

    One without any value of its column is of another column, or has no header: it would make all values one.
    """
    names: dict[str, list[str]] = {}
    named = [(column, path) for column, paths in file.policy.tables[table_name].hierarchies.items() for path in paths]
    for place, (column, path) in enumerate(named, 1):
        name = f"hierarchy_{number}_{place}"
        literal = sql.literal(str(file.place(path)))
        is_parquet = path.lower().endswith(".parquet")
        rows = f"read_parquet({literal})" if is_parquet else f"read_csv({literal}, all_varchar = true, header = true)"
        _load(con, name, f"SELECT * FROM {rows}", path)
        if not _has_values(con, name, original, column):
            text = f"no value of the column stands in the first column of {path}, below its header."
            raise file.wrong(table_name, ("hierarchies", column), f"hierarchies.{column}: {text}")
        try:
            con.execute(f"SELECT count(*) FROM anon._hierarchy('', '', '{name}')").fetchall()
        except duckdb.Error:
            text = f"hierarchies.{column}: {path} must give each value one label of each level."
            raise file.wrong(table_name, ("hierarchies", column), text) from None
        names.setdefault(column, []).append(name)
    return names


def _has_values(con: sql.Connection, hierarchy: str, original: str, column: str) -> bool:
    """Tell whether one value of a column is a leaf of a hierarchy; a column of NULLs has none to miss."""
    leaf = sql.quote(next(iter(sql.columns(con, hierarchy))))
    leaves = f"SELECT CAST({leaf} AS VARCHAR) FROM {hierarchy}"
    values = f"SELECT CAST({sql.quote(column)} AS VARCHAR) AS value FROM {original}"
    matches, known = sql.fetch_row(con, f"SELECT count(*) FILTER (value IN ({leaves})), count(value) FROM ({values})")
    return bool(matches or not known)


def _load(con: sql.Connection, name: str, query: str, path: str) -> None:
    try:
        con.execute(f"CREATE TABLE {name} AS {query}").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the table cannot be read ({sql.reason(error)}).") from None
