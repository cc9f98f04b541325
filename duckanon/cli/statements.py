"""SQL scripts on the command line: split into statements, run one by one, results printed, errors as one sentence."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Iterator

import duckdb

FORMATS = ("table", "csv", "json", "markdown")
"""How results can be printed: DuckDB's own table, or something that other programs read."""

_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*(?:'|\Z)                      # text
    | "(?:[^"]|"")*(?:"|\Z)                      # a quoted name
    | --[^\n]*                                   # a comment to the end of the line
    | /\*.*?(?:\*/|\Z)                           # a comment in the middle
    | (?P<dollar>\$\w*\$).*?(?:(?P=dollar)|\Z)   # text in dollar quotes
    | ;
    | [^'"/$;-]+ | .                             # anything else
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"\s*(--|/\*)")


def split(script: str) -> Iterator[str]:
    """Yield the statements of a script, without their semicolons; what is only comment is left out."""
    statement: list[str] = []
    has_code = False
    for token in (match[0] for match in _TOKEN.finditer(script)):
        if token == ";":
            if has_code:
                yield "".join(statement).strip()
            statement, has_code = [], False
        else:
            statement.append(token)
            has_code = has_code or bool(token.strip() and not _COMMENT.match(token))
    if has_code:
        yield "".join(statement).strip()


def is_complete(text: str) -> bool:
    """Tell whether typed lines end with a statement's semicolon, outside quotes and comments."""
    last = ""
    for token in (match[0] for match in _TOKEN.finditer(text)):
        if token.strip() and not token.startswith(("--", "/*")):
            last = token
    return last == ";"


def run(con: duckdb.DuckDBPyConnection, statement: str, output_format: str = "table") -> str:
    """Run one statement and return what there is to print: nothing for a statement without a result."""
    relation = con.sql(statement)
    if relation is None or (relation.columns in (["Count"], ["Success"]) and not _is_query(con, statement)):
        return ""
    if output_format == "table":
        return _as_table(relation)
    if output_format == "json":
        return _as_json(relation)
    return _as_csv(relation) if output_format == "csv" else _as_markdown(relation)


def _as_table(relation: duckdb.DuckDBPyRelation) -> str:
    """Return DuckDB's own table, as wide as the terminal where there is one."""
    if not sys.stdout.isatty():
        return str(relation).rstrip("\n") + "\n"
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        relation.show(max_width=shutil.get_terminal_size().columns)
    return shown.getvalue().rstrip("\n") + "\n"


def _is_query(con: duckdb.DuckDBPyConnection, statement: str) -> bool:
    return con.extract_statements(statement)[-1].type == duckdb.StatementType.SELECT


def _texts(relation: duckdb.DuckDBPyRelation) -> list[tuple[str | None, ...]]:
    return relation.project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()


def _as_csv(relation: duckdb.DuckDBPyRelation) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(relation.columns)
    writer.writerows(_texts(relation))
    return buffer.getvalue()


def _as_json(relation: duckdb.DuckDBPyRelation) -> str:
    names = [json.dumps(name, ensure_ascii=False) for name in relation.columns]
    records = (
        "{" + ", ".join(f"{name}: {value or 'null'}" for name, value in zip(names, row, strict=True)) + "}"
        for row in relation.project("CAST(to_json(COLUMNS(*)) AS VARCHAR)").fetchall()
    )
    return "[" + ",\n ".join(records) + "]\n"


def _as_markdown(relation: duckdb.DuckDBPyRelation) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |\n"

    numbers = [_is_number(str(column_type)) for column_type in relation.types]
    rows = [["" if value is None else value for value in row] for row in _texts(relation)]
    dashes = "|" + "|".join(" ---: " if number else " --- " for number in numbers) + "|\n"
    return line(relation.columns) + dashes + "".join(line(row) for row in rows)


def _is_number(type_name: str) -> bool:
    return re.match(r"U?(TINY|SMALL|BIG|HUGE)?INT|FLOAT|DOUBLE|DECIMAL", type_name) is not None


def listing(con: duckdb.DuckDBPyConnection) -> str:
    """List the functions to be read by people: the call on a line, what it does on the next."""
    rows = con.execute("SELECT name, parameters, description FROM anon.functions()").fetchall()
    return "".join(f"{name}({parameters})\n    {description}\n" for name, parameters, description in rows)


def sentence(error: BaseException) -> str:
    """Boil an error down to one line: no traceback, no echo of the query, no Python wrapping of our own sentences."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"duckanon: {error.filename}: {error.strerror}."
    text = str(error).strip() or type(error).__name__
    text = re.split(r"\n\s*(?:LINE \d+:|At:)|\n\s*Candidate (?:functions|bindings)|\n\s*For more info", text)[0]
    text = re.sub(
        r"^Invalid Input Error: (?:Python exception occurred while executing the UDF: \w+: )?(?=anon[.:])", "", text
    )
    text = re.sub(r"^Conversion Error: Could not convert string '(anon[.:].*)' to DOUBLE$", r"\1", text)  # anon._refuse
    text = re.sub(r'\n?Did you mean "(?:pg_\w+|pg_catalog\.\w+|_\w+)"\?', "", text)  # never what the user meant
    return " ".join(text.split())
