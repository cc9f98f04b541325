"""SQL on the command line: scripts run statement by statement, errors as one sentence, and what is in a database.

Ctrl-C: ends what a statement is busy with, and nothing else.

Python's signals reach its main thread only, and not while that waits inside DuckDB. So statements run on another
thread, and the main one waits for them in Python.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import duckdb

from duckanon._bridge import errors, sql
from duckanon.cli.output import Style, format_result, visible

_OBJECTS = """
    FROM (SELECT database_name, schema_name, table_name AS name, sql, 1 AS place FROM duckdb_tables() WHERE NOT internal
          UNION ALL SELECT database_name, schema_name, view_name, sql, 2 FROM duckdb_views() WHERE NOT internal
          UNION ALL SELECT database_name, schema_name, table_name, sql, 3 FROM duckdb_indexes())
    WHERE database_name <> 'anon' AND ($pattern IS NULL OR name ILIKE $pattern)
"""


def script(file: str | Path) -> str:
    """Read a file of SQL."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"duckanon: {file}: it is not UTF-8 text.") from None


def split(script: str) -> Iterator[str]:
    """Yield the statements of a script, without their semicolons; what is only comment is left out."""
    code = script.encode()
    start = 0
    for end in [*_semicolons(code), len(code)]:
        statement = code[start:end].decode().strip()
        if _has_code(statement):
            yield statement
        start = end + 1


def is_complete(text: str) -> bool:
    """Tell whether typed lines end with a statement's semicolon, outside quotes and comments."""
    code = text.encode()
    ends = _semicolons(code)
    return bool(ends) and not _has_code(code[ends[-1] + 1 :].decode().strip())


def _semicolons(code: bytes) -> list[int]:
    """Find the semicolons between statements, by DuckDB's own tokens: its offsets count bytes."""
    return [offset for offset, _ in duckdb.tokenize(code.decode()) if code[offset : offset + 1] == b";"]


def _has_code(text: str) -> bool:
    """Tell whether a text holds more than comments; DuckDB 1.5 has no token for text in quotes that never end."""
    is_code = any(kind != duckdb.token_type.comment for _, kind in duckdb.tokenize(text))
    return is_code or bool(text and not text.startswith(("--", "/*")))


def run(con: duckdb.DuckDBPyConnection, statement: str, style: Style = Style()) -> str:  # noqa: B008 - it is frozen
    """Run one statement and return what there is to print: nothing for a statement without a result."""
    try:
        relation = con.sql(statement)
        has_result = relation is not None and (
            relation.columns not in (["Count"], ["Success"])
            or con.extract_statements(statement)[-1].type == duckdb.StatementType.SELECT
        )
        return format_result(relation, style) if has_result else ""
    except duckdb.Error as error:
        message = BaseException.__str__(error)
        text = errors.with_columns(errors.plain(message, statement), statement, con)
        if text == message:
            raise
        raise ValueError(text) from None


def listing(con: duckdb.DuckDBPyConnection, pattern: str | None = None) -> str:
    """List the functions to be read by people: the call on a line, what it does on the next.

    With a pattern, those whose names have it in them, or are like it where it has a % of SQL.
    """
    rows = con.execute(
        "SELECT name, parameters, description FROM anon.functions() "
        "WHERE $1 IS NULL OR name ILIKE CASE WHEN contains($1, '%') THEN $1 "
        "ELSE '%' || replace(replace($1, '\\', '\\\\'), '_', '\\_') || '%' END ESCAPE '\\'",
        [pattern],
    ).fetchall()
    if pattern is not None and not rows:
        raise ValueError(f".functions: there is no function like {pattern}.")
    return "".join(f"{name}({parameters})\n    {description}\n" for name, parameters, description in rows)


def failure(command: str, error: BaseException) -> str:
    """Say why a command failed: unlike a statement, of which `sentence` tells, it may run where others read along.

    What DuckDB quotes of the rows is left out, and of what a library raises only the kind is told.
    """
    if isinstance(error, duckdb.Error):
        return visible(f"{command}: {sql.reason(error)}.")
    is_ours = type(error).__module__.startswith("duckanon") or str(error).startswith(("duckanon", "anon."))
    if is_ours or isinstance(error, OSError):
        return sentence(error)
    return f"{command}: it failed unexpectedly ({type(error).__name__})."


def sentence(error: BaseException) -> str:
    """Boil an error down to one line: no traceback, no echo of the query, no Python wrapping of our own sentences."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return visible(f"duckanon: {error.filename}: {error.strerror}.")
    text = errors.without_python(str(error)).strip() or type(error).__name__
    text = re.split(r"\n\s*(?:LINE \d+:|At:)|\n\s*Candidate (?:functions|bindings)|\n\s*For more info", text)[0]
    text = re.sub(r'\n?Did you mean "(?:pg_\w+|pg_catalog\.\w+|_\w+)"\?', "", text)  # never what the user meant
    return visible(" ".join(text.split()))


def object_names(con: duckdb.DuckDBPyConnection, pattern: str | None = None) -> list[str]:
    """Name all tables and views, as they have to be written: those of other schemas and databases with these."""
    return _object_texts(
        con,
        f"""SELECT CASE WHEN database_name = 'temp' OR (database_name, schema_name)
                                                       = (current_database(), current_schema()) THEN written
                        WHEN database_name = current_database() THEN written_schema || '.' || written
                        ELSE written_database || '.' || written_schema || '.' || written END
            FROM (SELECT *, {_quote("name")} AS written, {_quote("schema_name")} AS written_schema,
                         {_quote("database_name")} AS written_database
                  {_OBJECTS} AND place < 3)
            ORDER BY database_name <> 'temp' ASC NULLS LAST, database_name <> current_database() ASC NULLS LAST,
                     database_name ASC NULLS LAST, schema_name ASC NULLS LAST, name ASC NULLS LAST""",
        pattern,
    )


def object_definitions(con: duckdb.DuckDBPyConnection, pattern: str | None = None) -> list[str]:
    """Return the statements that make the tables, views and indexes."""
    statements = _object_texts(
        con,
        f"""SELECT rtrim(sql, ';') || ';' {_OBJECTS} AND sql IS NOT NULL
            ORDER BY database_name ASC NULLS LAST, schema_name ASC NULLS LAST, place = 2 ASC NULLS LAST,
                     name ASC NULLS LAST, place ASC NULLS LAST""",
        pattern,
    )
    if pattern is not None and not statements:
        raise ValueError(f".schema: there is no table or view like {pattern}.")
    return statements


def _quote(column: str) -> str:
    """Write a name in double quotes where it is not a plain one."""
    return f"""CASE WHEN regexp_full_match({column}, '[a-z_][a-z0-9_]*', 'i') THEN {column}
                    ELSE '"' || replace({column}, '"', '""') || '"' END"""


def _object_texts(con: duckdb.DuckDBPyConnection, query: str, pattern: str | None) -> list[str]:
    # on the connection itself: a cursor would see neither its temporary tables nor the schema that it uses
    return [text for (text,) in con.execute(query, {"pattern": pattern}).fetchall()]


_LOOK_EVERY = 0.1  # seconds

_Result = TypeVar("_Result")


def interruptible(interrupt: Callable[[], None], function: Callable[[], _Result]) -> _Result:
    """Call a function that runs statements; where Ctrl-C is pressed, `interrupt` them and raise KeyboardInterrupt.

    The statement has ended then, and its connection can be used again.
    """
    was_interrupted = False
    is_done = threading.Event()
    results: list[_Result] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:  # to be raised where it is waited for
            failures.append(error)
        is_done.set()

    thread = threading.Thread(target=work, name="duckanon-statement")  # concurrent.futures imports logging
    thread.start()
    while not is_done.is_set():
        try:
            if was_interrupted:
                interrupt()  # again and again: it is lost on a statement that has not begun yet
            is_done.wait(_LOOK_EVERY)
        except KeyboardInterrupt:
            was_interrupted = True
    thread.join()
    if was_interrupted:
        raise KeyboardInterrupt
    if failures:
        raise failures[0]
    return results[0]
