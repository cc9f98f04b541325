"""A release written to a file or a server and read back: what is counted is what a reader sees."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon._methods.linked.declared import ROW_COUNT
from duckanon.job import methods
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy import Format, Table, Target, format_of
from duckanon.job.sources import Original
from duckanon.job.warehouse import Warehouse

_CATALOG = "release_file"
_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?"
_FORMULA = r'(^|[;\t\r\n])([\s\p{Z}"]*[=+\-@＝＋－＠]|[\t\r])'
_APOSTROPHE = r"\1'\2"
"""Where a cell could begin that a spreadsheet computes: some split at semicolons and tabs, whatever is quoted."""
_NO_TEXT = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?\b|FLOAT|DOUBLE|DECIMAL|BOOLEAN|DATE|TIME|UUID|STRUCT\(lo ")
"""Types whose values are no formulas, however they are written."""


@dataclass(frozen=True)
class Shape:
    """The columns of a release as its file has them."""

    kind: Format  # the format of the file
    is_compressed: bool  # whether a CSV file is
    table: str  # the name of the table in a DuckDB file
    expressions: dict[str, str]  # for each column of the file, the expression over the release that gives it
    types: dict[str, str]  # the types of the columns that the file has as they are in the release
    classes: list[str]  # the columns of the file that make classes
    no_formulas: bool = False  # whether texts that a spreadsheet would compute have an apostrophe before them

    @property
    def labels(self) -> dict[str, list[str]]:
        """The quasi-identifiers, each with the columns of the file that hold its labels: two for an interval."""
        columns: dict[str, list[str]] = {}
        for name in self.classes:
            columns.setdefault(name if name in self.types else name[: -len("_lo")], []).append(name)
        return {column: names for column, names in columns.items() if column != ROW_COUNT}

    @property
    def columns(self) -> list[str]:
        """The names of the columns in the file."""
        return [_defuse_name(name) if self.no_formulas else name for name in self.expressions]

    @property
    def selected(self) -> str:
        """The select list of the release to write."""
        shown = zip(self.columns, self.expressions.values(), strict=True)
        return ", ".join(f"{expression} AS {sql.quote(name)}" for name, expression in shown)


def in_order(table: Table, columns: Iterable[str]) -> list[str]:
    """Order columns as a file has them: those of the policy in its order, then those that the method adds."""
    there = list(columns)
    return [*(column for column in table.columns if column in there), *(c for c in there if c not in table.columns)]


def shape(con: sql.Connection, table_name: str, table: Table, released: str) -> Shape:
    """Say which columns the file has.

    A CSV file has two columns for an interval, and no empty texts: readers take them for missing values, and so would
    count other values than were counted here. A table of a server has two columns for an interval, too.
    """
    kind = format_of(table.target.path)
    assert kind is not None
    types = sql.columns(con, released)
    person = None if table.method.makes_cells else methods.person_to_drop(table)  # cells may have a column of its name
    shown = {column: types[column] for column in in_order(table, types) if column != person}
    parts = {column: _parts(column, column_type, kind) for column, column_type in shown.items()}
    if table.target.no_formulas:
        texts = [column for column, column_type in shown.items() if not _NO_TEXT.match(column_type)]
        parts |= {column: {column: _defuse(parts[column][column])} for column in texts}
        shown |= dict.fromkeys(texts, "VARCHAR")
    expressions: dict[str, str] = {}
    for part in parts.values():
        names = set(map(sql.fold_name, expressions))
        if taken := [name for name in part if sql.fold_name(name) in names]:
            raise PolicyError(
                f"target.path: an interval is two columns there, and needs the name {taken[0]}, which is taken; rename "
                "that column in source.query, or write a Parquet file."
            )
        expressions |= part
    quasi = table.with_roles("quasi_identifier") if table.method.makes_classes else []
    quasi += [ROW_COUNT] if table.is_linked and ROW_COUNT in types else []  # of which k people know, too
    classes = [name for column in quasi for name in parts.get(column, ())]
    is_compressed = table.target.path.lower().endswith(".gz")
    named = table.target.table or table_name
    return Shape(kind, is_compressed, named, expressions, shown, classes, table.target.no_formulas)


def text_at_target(target: Target, expression: str) -> str:
    """Return the expression of what a target shows of a text."""
    shown = f"nullif({expression}, '')" if format_of(target.path) == "csv" else expression
    return _defuse(shown) if target.no_formulas else shown


def restore_types(form: Shape, types: Mapping[str, str]) -> str:
    """Return the select list that makes columns of these types again of what a file shows, without those it lacks."""
    items = []
    for column, column_type in types.items():
        quoted = sql.quote(column)
        if column in form.expressions:
            items.append(f"{quoted}::{column_type} AS {quoted}")
        elif f"{column}_lo" in form.expressions:
            lo, hi = sql.quote(f"{column}_lo"), sql.quote(f"{column}_hi")
            whole = f"CASE WHEN {lo} IS NOT NULL OR {hi} IS NOT NULL THEN {{'lo': {lo}, 'hi': {hi}}} END"
            items.append(f"({whole})::{column_type} AS {quoted}")
    return ", ".join(items)


def _defuse(expression: str) -> str:
    """Put an apostrophe before what a spreadsheet would compute; a plain number is no formula."""
    text = f"({expression})::VARCHAR"
    defused = f"regexp_replace({text}, {sql.literal(_FORMULA)}, {sql.literal(_APOSTROPHE)}, 'g')"
    return f"CASE WHEN regexp_full_match({text}, {sql.literal(_NUMBER)}) THEN {text} ELSE {defused} END"


def _defuse_name(name: str) -> str:
    return f"'{name}" if re.match(r'[\s"]*[=+\-@＝＋－＠]|[\t\r]', name) else name


def _parts(column: str, column_type: str, kind: Format) -> dict[str, str]:
    quoted = sql.quote(column)
    if kind in ("csv", "postgresql") and column_type.startswith("STRUCT(lo ") and ", hi " in column_type:
        return {f"{column}_lo": f"{quoted}.lo", f"{column}_hi": f"{quoted}.hi"}
    if kind == "csv" and column_type == "VARCHAR":
        return {column: f"nullif({quoted}, '')"}
    if kind == "postgresql" and column_type in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        return {column: f"{quoted}::TIMESTAMP"}
    return {column: f"{quoted}::VARCHAR" if column_type.startswith("ENUM") else quoted}


def write(con: sql.Connection, form: Shape, released: str, path: Path) -> None:
    """Write a release to a file."""
    query, place = f"SELECT {form.selected} FROM {released}", sql.literal(str(path))
    try:
        if form.kind == "duckdb":
            con.execute(f"ATTACH {place} AS {_CATALOG}").fetchall()
            try:
                con.execute(f"CREATE TABLE {_CATALOG}.main.{sql.quote(form.table)} AS {query}").fetchall()
                con.execute(f"CHECKPOINT {_CATALOG}").fetchall()
            finally:
                con.execute(f"DETACH {_CATALOG}").fetchall()
        elif form.kind == "csv":
            compression = "gzip" if form.is_compressed else "none"
            con.execute(f"COPY ({query}) TO {place} (FORMAT csv, HEADER true, COMPRESSION {compression})").fetchall()
        else:
            con.execute(f"COPY ({query}) TO {place} (FORMAT parquet)").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"the release cannot be written ({sql.reason(error)}).") from None


def deliver(
    con: sql.Connection, warehouse: Warehouse, name: str, table: Table, form: Shape, original: Original, released: str
) -> str:
    """Write a release to its server, and return the query of what the server has.

    A column that passes as it is keeps the type that the source's server declares for it; a label does not, since it
    may be longer than the values.
    """
    before, after = sql.columns(con, original.table), sql.columns(con, released)
    passed = table.with_roles("sensitive", "free") if table.method.makes_classes else []
    declared = {
        column: original.declared[column]
        for column, column_type in after.items()
        if column in original.declared
        and before.get(column) == column_type
        and (column in passed or (column in methods.columns_to_protect(table) and column_type != "VARCHAR"))
    }
    return warehouse.write(con, name, f"SELECT {form.selected} FROM {released}", declared, _server_table(released))


def rows_on_server(released: str) -> str:
    """Return the query of what a server has of a release that was delivered."""
    return f"SELECT * FROM {_server_table(released)}"


def _server_table(released: str) -> str:
    return f"written_{released}"


def read_back(
    con: sql.Connection, table: Table, form: Shape, released: str, file: Path | str | None, counted: str
) -> None:
    """Make the table of what is counted, from the file, after its rows were compared with the release's one by one.

    Rows of the file are as the release's, in the same order, so that the person of a row can be counted although the
    file does not tell it. `file` is a path, or the query of a server's rows; without it nothing was written, and the
    table is what a reader would see.
    """
    person = methods.person_to_drop(table) if table.method.makes_classes else None
    owner = f", release.{sql.quote(person)}" if person else ""
    kept = table.with_roles("sensitive", "person", "pseudonym") if table.method.makes_classes else []
    needed = [*form.classes, *(column for column in kept if column != person)]
    needed = list(form.expressions) if table.method.makes_cells else needed
    columns = ", ".join(f"{_type_column(table, form, column)} AS {sql.quote(column)}" for column in needed)
    is_text = "::VARCHAR" if form.kind == "csv" else ""
    try:
        if file is None:
            seen = ", ".join(f"{value}{is_text} AS {sql.quote(name)}" for name, value in form.expressions.items())
            rows = f"SELECT {seen} FROM {released}"
        else:
            rows = file if isinstance(file, str) else file_rows(con, form, file, _CATALOG)
            _compare(con, form, released, rows, is_text)
        # a Parquet file is read again for each promise, which costs less than a copy of it
        kind = "VIEW" if form.kind == "parquet" and not person else "TABLE"
        con.execute(
            f"CREATE {kind} {counted} AS SELECT {columns or 'true AS row'}{owner} "
            f"FROM ({rows}) AS file{f' POSITIONAL JOIN {released} AS release' if person else ''}"
        ).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"the written release cannot be read back ({sql.reason(error)}).") from None
    finally:
        if file is not None and form.kind == "duckdb":
            con.execute(f"DETACH DATABASE IF EXISTS {_CATALOG}").fetchall()


def _type_column(table: Table, form: Shape, column: str) -> str:
    """Return a column of the file; sensitive numbers and dates of a CSV file as such, since t asks how far apart."""
    column_type = form.types.get(column, "VARCHAR")
    if form.kind == "csv" and column in table.with_roles("sensitive") and column_type != "VARCHAR":
        return f"file.{sql.quote(column)}::{column_type}"
    return f"file.{sql.quote(column)}"


def file_rows(con: sql.Connection, form: Shape, path: Path, catalog: str) -> str:
    """Return the query of a written file's rows; a DuckDB file is attached as a catalog."""
    place = sql.literal(str(path))
    if form.kind == "duckdb":
        con.execute(f"ATTACH {place} AS {catalog} (READ_ONLY)").fetchall()
        return f"SELECT * FROM {catalog}.main.{sql.quote(form.table)}"
    if form.kind == "csv":
        return _csv_rows(path, form.expressions, form.is_compressed)
    return f"SELECT * FROM read_parquet({place})"


def read_csv_release(path: Path) -> str:
    """Return the query of the rows of a CSV file that a job wrote, by its own names, which DuckDB would trim."""
    is_compressed = path.name.lower().endswith(".gz")
    try:
        with gzip.open(path, "rb") if is_compressed else path.open("rb") as file:
            names = next(csv.reader(io.TextIOWrapper(file, encoding="utf-8", newline="")), [])
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is no CSV file in UTF-8"
        raise FileProblem(f"{path}: the release cannot be read ({why}).") from None
    if not names:
        raise FileProblem(f"{path}: the release cannot be read (its first line has no names of columns).")
    return _csv_rows(path, names, is_compressed)


def _csv_rows(path: Path, names: Iterable[str], is_compressed: bool) -> str:
    columns = sql.structure(dict.fromkeys(names, "VARCHAR"))
    compression = "gzip" if is_compressed else "none"
    return (
        f"SELECT * FROM read_csv({sql.literal(str(path))}, auto_detect = false, header = true, columns = {columns}, "
        f"""delim = ',', quote = '"', escape = '"', compression = '{compression}')"""
    )


def _compare(con: sql.Connection, form: Shape, released: str, rows: str, is_text: str) -> None:
    names = [row[0] for row in con.execute(f"DESCRIBE {rows}").fetchall()]
    written = ", ".join(f"{expression}{is_text}" for expression in form.expressions.values())
    other_rows, in_file, in_release = sql.fetch_row(
        con,
        f"SELECT count(*) FILTER (file.line IS DISTINCT FROM release.line), count(file.line), count(release.line) "
        f"FROM (SELECT row({sql.quote_all(form.expressions)}) AS line FROM ({rows})) AS file "
        f"POSITIONAL JOIN (SELECT row({written}) AS line FROM {released}) AS release",
    )
    if names != list(form.expressions) or other_rows or in_file != in_release:
        raise FileProblem(
            f"the written file is not what was released: {in_file} rows for {in_release}, {other_rows} of them others."
        )


def label_counts(con: sql.Connection, rows: str, held: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Count the labels of columns in what a reader sees, NULL included; `held` names the parts of each column."""
    return {
        column: int(
            sql.fetch_row(con, f"SELECT count(*) FROM (SELECT DISTINCT {sql.quote_all(list(names))} FROM {rows})")[0]
        )
        for column, names in held.items()
    }
