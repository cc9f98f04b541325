"""No value of a row in what is printed: DuckDB's messages, those of libraries, and the commands that others read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon import large
from duckanon._bridge import calls, sql
from duckanon._core.common.arrays import sql_type
from duckanon._core.common.people import find_person_column
from duckanon.cli.main import main
from tests.profiles import keep_one_in

TEXT, NUMBER = "Zanzibar", "7700077"
"""The values of one person, which no message may hold."""

STATEMENTS = {
    "FROM read_csv('{}/byte.csv')": "line 32 of {}/byte.csv is not UTF-8 text",
    "FROM read_csv('{}/columns.csv')": "line 22002 of {}/columns.csv has too many values for 3 columns",
    "FROM read_csv('{}/number.csv')": 'line 22002 of {}/number.csv has a value in column "age" that cannot be '
    "converted to BIGINT",
    "FROM read_csv('{}/columns.csv', columns = {{'a': 'VARCHAR', 'b': 'VARCHAR', 'c': 'DATE'}})": None,
    "FROM read_json('{}/people.json')": "line 3 of {}/people.json cannot be read as JSON",
    "FROM read_parquet('{}/byte.csv')": None,
    "FROM read_parquet('{}/damaged.parquet')": None,
    "FROM read_csv('{}/absent.csv')": 'IO Error: No files found that match the pattern "{}/absent.csv"',
    "SELECT name::INTEGER FROM t": 'a value of column "name" cannot be converted to INTEGER',
    "SELECT name::DATE FROM t": 'a value of column "name" cannot be converted to DATE',
    "SELECT name::TIMESTAMP FROM t": 'a value of column "name" cannot be converted to TIMESTAMP',
    "SELECT name::ENUM('x', 'y') FROM t": 'a value of column "name" cannot be converted to ENUM',
    "SELECT name::DECIMAL(5, 2) FROM t": 'a value of column "name" cannot be converted to DECIMAL(5,2)',
    "SELECT name::INTEGER[] FROM t": 'a value of column "name" cannot be converted to INTEGER[]',
    "SELECT name::STRUCT(a INTEGER) FROM t": 'a value of column "name" cannot be converted to STRUCT',
    "SELECT n::TINYINT FROM t": 'a value of column "n" cannot be converted to TINYINT',
    "SELECT n::DECIMAL(4, 1) FROM t": 'a value of column "n" cannot be converted to DECIMAL(4,1)',
    "SELECT name::JSON FROM t": "a value is not JSON",
    "SELECT json_extract(name, '$.a') FROM t": "a value is not JSON",
    'SELECT json_transform_strict((\'{{"a":"\' || name || \'"}}\')::JSON, \'{{"a":"INTEGER"}}\') FROM t': None,
    "INSERT INTO keyed SELECT name, 1, 1 FROM t": 'a value of column "name" is there twice, and must not be',
    "INSERT INTO keyed SELECT 'x', n, 1 FROM t": None,
    "INSERT INTO keyed SELECT name || 'x', 1, NULL FROM t": "a value of keyed.m is NULL, and must not be",
    "INSERT INTO other SELECT 'x' || name FROM t": None,
    "SELECT n * n * n FROM t": "an overflow in multiplication of INTEGER",
    "SELECT 1 << n FROM t": None,
    "SELECT strptime(name, '%Y') FROM t": None,
    "SELECT name ~ (name || '(') FROM t": None,
    "SELECT date_part(name, now()) FROM t": None,
    "SELECT make_date(n, 13, 1) FROM t": None,
    "SELECT DATE '2020-01-01' + n * 1000 FROM t": "an overflow in multiplication of INTEGER",
    "SELECT timezone(name, now()) FROM t": None,
    "SELECT chr(n) FROM t": None,
    "SELECT error(name) FROM t": None,
    "SELECT error('anonymous: ' || name) FROM t": None,
    "SELECT ('anon.' || name || '@example.org')::DOUBLE FROM t": "a value cannot be converted to DOUBLE",
    "SELECT fail(name) FROM t": None,
    "SELECT nome FROM t": 'column "nome" does not exist',
    "FROM nowhere": "Catalog Error: Table with name nowhere does not exist!",
}
"""What is wrong with a value, a line or a name, and what is said of it; None: whatever it is."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    people = "id,sex,age\n" + "".join(f"{TEXT}{i},m,3\n" for i in range(30))
    many = "id,sex,age\n" + "".join(f"{TEXT}{i},m,{i}\n" for i in range(22_000))
    (made / "byte.csv").write_bytes(people.encode() + f"{TEXT},m,".encode() + b"\xff\xfe\n")
    (made / "columns.csv").write_text(f"{many}{TEXT},m,{NUMBER},4,5\n")
    (made / "number.csv").write_text(f"{many}P9,m,{TEXT}\n")
    (made / "people.json").write_text(f'{{"a": 1}}\n{{"a": {TEXT}}}\n')
    whole = made / "whole.parquet"
    duckdb.sql(f"COPY (SELECT '{TEXT}' AS a, i FROM range(9000) AS r(i)) TO '{whole}'")
    damaged = bytearray(whole.read_bytes())
    damaged[10:200] = bytes(byte ^ 0x5A for byte in damaged[10:200])
    (made / "damaged.parquet").write_bytes(damaged)
    return made


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckanon.connect()
    con.execute(
        f"CREATE TABLE t AS SELECT '{TEXT}' AS name, {NUMBER} AS n; "
        "CREATE TABLE keyed (name VARCHAR PRIMARY KEY, n INTEGER CHECK (n < 10), m INTEGER NOT NULL); "
        "CREATE TABLE other (name VARCHAR REFERENCES keyed (name)); INSERT INTO keyed SELECT name, 1, 1 FROM t"
    ).fetchall()

    def fail(name: str) -> str:
        raise KeyError(name)

    con.create_function("fail", fail, ["VARCHAR"], "VARCHAR")
    yield con
    con.close()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_message_of_duckdb_says_where_and_of_what_type_and_no_value(
    people: duckdb.DuckDBPyConnection, folder: Path, statement: str
) -> None:
    with pytest.raises(duckdb.Error) as raised:
        people.execute(statement.format(folder)).fetchall()
    why = sql.reason(raised.value)
    assert why
    assert not any(value in why for value in (TEXT, NUMBER, "LINE", "\n")), why
    expected = STATEMENTS[statement]
    has_same_words = not duckdb.__version__.startswith(
        "1."
    )  # older ones name other kinds and types, and no value either
    assert expected is None or not has_same_words or why == expected.format(folder)


@pytest.mark.parametrize(
    "value",
    [
        f"x' to DATE when casting from source column {TEXT}",
        f"x\n\nLINE 1: {TEXT}\n ^",
        f'x"\n  file = {TEXT}\nColumn {TEXT} is being converted as type DATE\n',
        f"anon.x: {TEXT}",
    ],
)
def test_a_value_that_reads_like_a_message_is_not_believed(people: duckdb.DuckDBPyConnection, value: str) -> None:
    with pytest.raises(duckdb.ConversionException) as raised:
        people.execute("SELECT v::INTEGER FROM (SELECT $1::VARCHAR AS v)", [value]).fetchall()
    assert TEXT not in sql.reason(raised.value)


@pytest.mark.parametrize("file", keep_one_in(4, ["number.csv", "byte.csv", "columns.csv", "damaged.parquet"]))
def test_no_command_prints_a_value_of_a_file_it_cannot_read(
    capfd: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, file: str
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[source]\npath = {json.dumps(str(folder / file))}\n[target]\npath = "out.parquet"\n[columns]\n'
        'id = "identifier"\nsex = "quasi_identifier"\nage = "quasi_identifier"\n'
        '[method]\nname = "recode"\n[promises]\nk = 2\n'
    )
    for arguments in (
        ["assess", str(folder / file)],
        ["policy", "init", "--from", str(folder / file), "--to", str(tmp_path / "new.toml")],
        ["policy", "check", str(policy)],
        ["release", str(policy)],
    ):
        code = main(arguments)
        out, err = capfd.readouterr()
        assert TEXT not in out + err, arguments
        assert NUMBER not in out + err, arguments
        assert code == 0 or err, arguments


def test_assess_says_which_line_of_the_file_is_wrong(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["assess", str(folder / "byte.csv")]) == 1
    assert capsys.readouterr().err == f"duckanon assess: line 32 of {folder}/byte.csv is not UTF-8 text.\n"


def test_a_large_release_quotes_no_value(tmp_path: Path) -> None:
    database = tmp_path / "people.duckdb"
    with duckdb.connect(str(database)) as con:
        con.execute(f"CREATE VIEW t AS SELECT i AS age, '{TEXT}'::INTEGER + i AS b FROM range(9) AS r(i)").fetchall()
    with pytest.raises((duckdb.Error, OSError, ValueError)) as raised:
        large.recode((database, "t"), None, cols=["age", "b"], k=2)
    assert TEXT not in str(raised.value)
    assert "cannot be converted to INTEGER" in str(raised.value)


def test_what_a_library_raises_is_a_sentence_without_its_words() -> None:
    """A ValueError of numpy or Python's own quotes the value as ours never do."""

    wrong = pa.array([TEXT])
    for fails in (lambda _: np.asarray([TEXT]).astype(float), lambda _: float(TEXT), lambda _: {}[TEXT]):
        with pytest.raises(ValueError, match=r"^anon\.x: it failed unexpectedly \(\w+Error in \w+\.py, line \d+\)\.$"):
            calls.naming_errors("anon.x", fails)(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^anon\.x: person must be NULL or the name of one column"):
        calls.naming_errors("anon.x", lambda _: find_person_column(1, []))(wrong)  # type: ignore[arg-type, return-value]


def test_the_workbench_answers_and_logs_no_value() -> None:
    starlette = pytest.importorskip("starlette.testclient")
    from duckanon.workbench.app import application

    class Failing:
        root = "/secret"

        def page(self, *_: Any, **__: Any) -> str:
            raise duckdb.ConversionException(f"Conversion Error: Could not convert string '{TEXT}' to INT32")

    with starlette.TestClient(application(Failing()), base_url="http://127.0.0.1") as client:  # type: ignore[arg-type]
        answer = client.get("/secret/columns")  # an exception that came out would be raised here, and be logged
    assert (answer.status_code, answer.text) == (500, "It failed (a value cannot be converted to INTEGER).")


def test_types_are_named_as_duckdb_does() -> None:
    con = duckdb.connect()
    numbers = ["TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "FLOAT"]
    times = ["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "INTERVAL"]
    others = [
        "DOUBLE",
        "DECIMAL(5,2)",
        "VARCHAR",
        "BLOB",
        "BOOLEAN",
        "INTEGER[]",
        "INTEGER[2]",
        "MAP(VARCHAR, INTEGER)",
    ]
    types = [*numbers, *times, *others]
    relation = con.sql("SELECT " + ", ".join(f"NULL::{name}" for name in [*types, "TIMESTAMPTZ", "ENUM('x')"]))
    schema = relation.limit(0).to_arrow_table().schema
    named = [sql_type(field.type) for field in schema]
    assert named[:-1] == [str(kind) for kind in relation.types[:-1]]
    assert named[-1] == "ENUM"
