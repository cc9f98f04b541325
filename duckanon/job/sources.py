"""Tables read: from DuckDB files, Parquet, CSV and PostgreSQL, once, with what must not go further left behind."""

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
from duckanon.job import postgresql
from duckanon.job.errors import FileProblem, JobError, PolicyError
from duckanon.job.formats import is_server, source_format
from duckanon.job.keys import Secret
from duckanon.job.policy import LEFT_OUT, Column, Source, Table
from duckanon.job.policy_file import PolicyFile
from duckanon.postgresql.server import Relation


@dataclass(frozen=True)
class Original:
    """A table that was read.

    Attributes:
        table: Its name in the job's database.
        label: Where it comes from, as the record tells it.
        files: The files that it was read from.
        sha256: Of the files' bytes; of the rows where they come from a database.
        row_count: Its rows.
        declared: The types of its columns on the server that it comes from.
        relations: The tables of the server that it comes from.
    """

    table: str
    label: str
    files: list[Path]
    sha256: str
    row_count: int
    declared: dict[str, str] = field(default_factory=dict)
    relations: set[Relation] = field(default_factory=set)


def files_of(file: PolicyFile, source: Source) -> list[Path]:
    """Return the files of a source, in order; a source without a path, and a server, have none."""
    if not source.path or is_server(source.path):
        return []
    pattern = str(file.place(source.path))
    found = sorted(Path(path) for path in glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if not found and Path(pattern).exists():
        found = [Path(pattern)]
    if not found:
        raise FileProblem(f"{source.path}: there is no such file.")
    return found


def named_in(file: PolicyFile, source: Source) -> list[str]:
    """Return the paths and globs that a source may be: its path, and what is in quotes in its query.

    A query's are meant from the folder of the policy or of the process; a star by itself is no glob.
    """
    query = source.query or ""
    quoted = [
        text for pair in re.findall(r"'([^']+)'|\"([^\"]+)\"", query) for text in pair if re.search(r"[./]", text)
    ]
    found = [str(folder / text) for text in quoted for folder in (file.path.parent, Path.cwd())]
    return found if not source.path or is_server(source.path) else [*found, str(file.place(source.path))]


def read(
    con: duckdb.DuckDBPyConnection,
    file: PolicyFile,
    table_name: str,
    number: int,
    key: Secret | None,
    look: Callable[[], None],
    schema: str = "memory.main",
) -> Original:
    """Read a table into a schema: columns that are left out stay behind, pseudonyms are in place, dates are shifted.

    `look` refuses files that the job writes; it is asked before all rows are read, too.

    Raises:
        PolicyError: A column has no role, or a role has no column.
        FileProblem: The source cannot be read.
    """
    table = file.policy.tables[table_name]
    source, original = table.source, f"original_{number}"
    label = _label(source)
    files = files_of(file, source)
    before = [_state(path) for path in files]
    try:
        fetched = _fetched(con, table)
        query = fetched.query if fetched else open_source(con, source, files)
        types = checked_columns(con, file, table_name, query)
        look()
        selected = ", ".join(_selected(table, types))
        parameters = {"key": key.reveal()} if key and "$key" in selected else {}
        con.execute(f"CREATE TABLE {schema}.{original} AS SELECT {selected} FROM ({query})", parameters).fetchall()
        con.execute(f"USE {schema}").fetchall()
        if fetched:
            con.execute(f"DROP TABLE {postgresql.FETCHED}").fetchall()
        row_count = sql.one(con, f"SELECT count(*) FROM {original}")[0]
        is_of_rows = not files or source_format(str(files[0])) == "duckdb" or bool(source.query)
        fingerprint = " ".join(map(str, sql.one(con, _fingerprint(con, original)))) if is_of_rows else ""
    except duckdb.Error as error:
        raise unreadable(source, error) from None
    if row_count == 0:
        raise FileProblem(f"{label}: the table has no rows.")
    if before != [_state(path) for path in files]:
        raise FileProblem(f"{label}: the file changed while it was read; run the job again.")
    sha256 = hashlib.sha256(fingerprint.encode()).hexdigest() if is_of_rows else hash_of(files)
    if fetched is None:
        return Original(original, label, files, sha256, row_count)
    return Original(original, label, files, sha256, row_count, fetched.declared, fetched.relations)


def unreadable(source: Source, error: duckdb.Error) -> JobError:
    """Make the error of a source that cannot be read: the policy's, if DuckDB does not understand its query."""
    if source.query and isinstance(error, duckdb.ParserException | duckdb.BinderException | duckdb.SyntaxException):
        return PolicyError(f"source.query cannot be understood ({sql.why(error)}).")
    return FileProblem(f"{_label(source)}: the table cannot be read ({sql.why(error)}).")


def _fetched(con: duckdb.DuckDBPyConnection, table: Table) -> postgresql.Fetched | None:
    """Fetch a table of a server, without the columns that stay behind."""
    if not table.source.path or not is_server(table.source.path):
        return None
    return postgresql.fetched(con, table.source, unread=table.named(*LEFT_OUT))


def hash_of(files: Sequence[Path]) -> str:
    """Return the SHA-256 of files, one after the other."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as opened_file:
            while block := opened_file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def relation(path: Path, types: dict[str, str] | None = None) -> str:
    """Return a query for a Parquet or CSV file; a CSV file's types are told by all of its rows."""
    return _files_query([path], types)


def open_source(
    con: duckdb.DuckDBPyConnection,
    source: Source,
    files: list[Path],
    unread: Sequence[str] = (),
    limit: int | None = None,
) -> str:
    """Open a source and return the query that gives its rows; of a server, all or so many, without some columns."""
    if source.path and is_server(source.path):
        return postgresql.fetched(con, source, unread, limit).query
    if files and source_format(str(files[0])) == "duckdb":
        return _database_query(con, source, files)
    if not files:
        return _checked_query(con, source.query or "")
    rows = _files_query(files, source.types)
    if source.query is None:
        return rows
    con.execute(f"CREATE OR REPLACE TEMP VIEW source AS {rows}").fetchall()
    return _checked_query(con, source.query)


def _database_query(con: duckdb.DuckDBPyConnection, source: Source, files: list[Path]) -> str:
    if len(files) > 1:
        raise FileProblem(f"{source.path}: a source is one database file; got {len(files)}.")
    catalog = _attached(con, files[0])
    if source.query is not None:
        con.execute(f"USE {sql.name(catalog)}").fetchall()
        return _checked_query(con, source.query)
    parts = [catalog, *(source.table or "").split(".")]
    return f"SELECT * FROM {'.'.join(map(sql.name, parts))}"


def _attached(con: duckdb.DuckDBPyConnection, file: Path) -> str:
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
    con.execute(f"ATTACH {sql.literal(str(file))} AS {sql.name(catalog)} (READ_ONLY)").fetchall()
    return catalog


def _checked_query(con: duckdb.DuckDBPyConnection, query: str) -> str:
    """Refuse what is more than one query: it might write."""
    try:
        statements = con.extract_statements(query)
    except duckdb.Error:
        raise PolicyError("source.query cannot be read as SQL.") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise PolicyError("source.query must be one SELECT.")
    return sql.bare(query)


def _files_query(files: Sequence[Path], types: dict[str, str] | None) -> str:
    paths = sql.literal([str(path) for path in files])
    kind = source_format(str(files[0]))
    if kind == "parquet":
        return f"SELECT * FROM read_parquet({paths}, union_by_name = true)"
    if kind == "csv":
        with_types = f", types = {sql.structure(types)}" if types else ""
        return f"SELECT * FROM read_csv({paths}, sample_size = -1, union_by_name = true{with_types})"
    raise FileProblem(f"{files[0]}: a source must be a DuckDB, Parquet or CSV file.")


def checked_columns(con: duckdb.DuckDBPyConnection, file: PolicyFile, table_name: str, query: str) -> dict[str, str]:
    """Return the types of the columns, each of which has a role: what is not named does not travel."""
    roles = file.policy.tables[table_name].columns
    present = {row[0]: str(row[1]) for row in con.execute(f"DESCRIBE {query}").fetchall()}
    nameless = [column for column in present if column not in roles]
    if nameless:
        raise file.wrong(
            table_name,
            ("columns",),
            f"columns must give every column a role; without one: {', '.join(nameless)}.",
        )
    for column in roles:
        if column not in present:
            raise file.wrong(table_name, ("columns", column), f"columns.{column}: the table has no such column.")
    return present


def _selected(table: Table, types: dict[str, str]) -> list[str]:
    """Return what is read of each column; ENUMs become texts, since their type lists values that nobody may have."""
    return [
        f"{_expression(table, column, role, types[column])} AS {sql.name(column)}"
        for column, role in table.columns.items()
        if role.role not in LEFT_OUT
    ]


def _expression(table: Table, column: str, role: Column, column_type: str) -> str:
    quoted = sql.name(column)
    if role.role == "pseudonym" or role.pseudonym:
        # as text, so that a key that is a number here and a text there gets the same pseudonym
        return f"anon.pseudonym({quoted}::VARCHAR, $key)"
    if role.shift_days:
        person = sql.name(table.person or "")
        return f"anon.shift_date({quoted}, {person}::VARCHAR, $key, max_days := {role.shift_days})"
    return f"{quoted}::VARCHAR" if column_type.startswith("ENUM") else quoted


def _fingerprint(con: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return the query for a table's hash, which is the same in whatever order the rows are read."""
    row = sql.names(sql.columns(con, table))
    return f"SELECT count(*), sum(hash({row})), bit_xor(hash({row})) FROM {table}"


def _label(source: Source) -> str:
    """Return what the record calls a source: an address of a server without its name and password."""
    if source.path is None:
        return "query"
    return "postgresql" if is_server(source.path) else source.path


def _state(path: Path) -> tuple[int, int, int]:
    state = path.stat()
    return state.st_mtime_ns, state.st_size, state.st_ino
