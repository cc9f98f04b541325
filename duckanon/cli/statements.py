"""SQL scripts on the command line: split into statements, run one by one, errors as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb

from duckanon._bridge import errors
from duckanon.cli.output import Style, printed, visible


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
        return printed(relation, style) if has_result else ""
    except duckdb.Error as error:
        message = BaseException.__str__(error)
        told = errors.with_columns(errors.plain(message, statement), statement, con)
        if told == message:
            raise
        raise ValueError(told) from None


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


def sentence(error: BaseException) -> str:
    """Boil an error down to one line: no traceback, no echo of the query, no Python wrapping of our own sentences."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return visible(f"duckanon: {error.filename}: {error.strerror}.")
    text = errors.without_python(str(error)).strip() or type(error).__name__
    text = re.split(r"\n\s*(?:LINE \d+:|At:)|\n\s*Candidate (?:functions|bindings)|\n\s*For more info", text)[0]
    text = re.sub(r'\n?Did you mean "(?:pg_\w+|pg_catalog\.\w+|_\w+)"\?', "", text)  # never what the user meant
    return visible(" ".join(text.split()))
