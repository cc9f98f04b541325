"""What is raised in Python: DuckDB's types of exceptions, our own sentences."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import errors
from duckanon._bridge import sql_text as sql

FROM_PYTHON = "FROM anon.swap('people', ['age'], seed := -1)"
SAID = "anon.swap: seed must be NULL or a whole number of at least 0; got -1."

WAYS: dict[str, Callable[[duckdb.DuckDBPyConnection, str], object]] = {
    "execute": lambda con, query: con.execute(query).fetchall(),
    "fetchone": lambda con, query: con.execute(query).fetchone(),
    "sql": lambda con, query: con.sql(query).fetchall(),
    "show": lambda con, query: con.sql(query).show(),
    "str": lambda con, query: str(con.sql(query)),
    "create": lambda con, query: con.execute(f"CREATE TABLE released AS {query}").fetchall(),
    "cursor": lambda con, query: con.cursor().execute(query).fetchall(),
    "parameter": lambda con, query: con.execute(query.replace("-1", "$1"), [-1]).fetchall(),
    "numpy": lambda con, query: con.sql(query).fetchnumpy(),
}


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckanon.connect()
    con.execute("CREATE TABLE people AS SELECT 30 AS age").fetchall()
    yield con
    con.close()


@pytest.mark.parametrize("way", WAYS)
def test_an_error_from_python_is_our_sentence_alone(people: duckdb.DuckDBPyConnection, way: str) -> None:
    with pytest.raises(duckdb.InvalidInputException) as raised:
        WAYS[way](people, FROM_PYTHON)
    assert str(raised.value) == SAID
    assert isinstance(raised.value, duckdb.Error)
    assert traceback.format_exception_only(raised.value)[-1].endswith(f"InvalidInputException: {SAID}\n")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "SELECT anon.distinct_for_alpha(2, 100)",
            "anon.distinct_for_alpha: alpha must be between 0 and 1, both excluded; got 2.",
        ),
        (
            "FROM anon.column_profile(NULL)",
            "anon.column_profile: tbl must be the name of a table, a view or a CTE, in quotes; got NULL.",
        ),
    ],
)
def test_an_error_from_sql_is_our_sentence_alone(con: duckdb.DuckDBPyConnection, query: str, sentence: str) -> None:
    with pytest.raises(duckdb.Error) as raised:
        con.sql(query).fetchall()
    assert str(raised.value) == sentence


def test_other_errors_stay_as_duckdb_says_them(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.ConversionException, match=r"^Conversion Error: Could not convert string 'x' to INT32"):
        con.execute("SELECT 'x'::INTEGER").fetchall()
    with pytest.raises(duckdb.ConversionException, match=r"^Conversion Error: Could not convert string 'anonymous'"):
        con.execute("SELECT 'anonymous'::DOUBLE").fetchall()
    with pytest.raises(duckdb.InvalidInputException, match=r"^Invalid Input Error: by a user$"):
        con.execute("SELECT error('by a user')").fetchall()


def test_a_users_own_function_keeps_its_error(people: duckdb.DuckDBPyConnection) -> None:
    def fail(value: int) -> int:
        raise KeyError(value)

    people.create_function("fail", fail, ["BIGINT"], "BIGINT")
    with pytest.raises(duckdb.InvalidInputException, match=r"Python exception occurred.*KeyError"):
        people.execute("SELECT fail(1)").fetchall()


@pytest.mark.parametrize(
    "wrapped",
    [
        "Invalid Input Error: Python exception occurred while executing the UDF: ValueError: "
        "anon.x: it's 'a' to DOUBLE.",
        "Invalid Input Error: Python exception occurred while executing the UDF: ValueError: "
        "anon.x: it's 'a' to DOUBLE.\n\nAt:\n  calls.py(108): called\n",
        "Invalid Input Error: anon.x: it's 'a' to DOUBLE.\n\nLINE 1: SELECT 1\n        ^",
        "Conversion Error: Could not convert string 'anon.x: it's 'a' to DOUBLE.' to DOUBLE\n\nLINE 1: SELECT 1\n    ^",
    ],
)
def test_every_wrapping_is_taken_off(wrapped: str) -> None:
    assert errors.plain(wrapped) == "anon.x: it's 'a' to DOUBLE."


def test_a_view_over_a_release_is_answered_or_refused_in_one_sentence(con: duckdb.DuckDBPyConnection) -> None:
    """DuckDB 2.0 expands no table macro within itself."""
    con.execute("CREATE TABLE people AS SELECT i % 3 AS age FROM range(9) AS t(i)").fetchall()
    con.execute("CREATE VIEW swapped AS FROM anon.swap('people', ['age'])").fetchall()
    assert con.execute("SELECT k FROM anon.k_anonymity('swapped', ['age'])").fetchall() == [(3,)]
    said = ""
    try:
        con.execute("FROM anon.swap('swapped', ['age'])").fetchall()
    except duckdb.BinderException as error:
        said = str(error)
    sentence = (
        "anon.swap: a table that it reads is a view over anon.swap itself, which DuckDB cannot bind; "
        "make a table of the view first."
    )
    assert said in ("", sentence)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("FROM anon.generalize('people', ['age'], persn := 'id')", "there is no option persn; did you mean person?"),
        ("FROM ANON.Generalize('people', ['age'], 5, Keeep => ['x'])", "there is no option Keeep; did you mean keep?"),
        ("SELECT anon.top_code(3, capp := 2)", "there is no option capp; did you mean cap?"),
        ("FROM anon.boxes('people', ['agee'], 5)", 'column "agee" does not exist in people; did you mean "age"?'),
    ],
)
def test_a_misspelt_option_or_column_is_named(people: duckdb.DuckDBPyConnection, query: str, said: str) -> None:
    with pytest.raises(duckdb.Error) as raised:
        people.execute(query).fetchall()
    assert str(raised.value).partition(": ")[2] == said
    assert str(raised.value).startswith("anon.")


def test_other_macros_are_left_alone(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("CREATE OR REPLACE TEMP MACRO doubled(x) AS 2 * x").fetchall()
    with pytest.raises(duckdb.BinderException, match="explicit type casts"):
        people.execute("SELECT doubled(1, persn := 2)").fetchall()


def test_a_schema_called_anon_in_the_database_in_use(people: duckdb.DuckDBPyConnection) -> None:
    cursor = people.cursor()
    cursor.execute("ATTACH ':memory:' AS other; CREATE SCHEMA other.anon; USE other").fetchall()
    with pytest.raises(duckdb.BinderException, match=r"^anon: the database in use has a schema called anon, too"):
        cursor.execute("FROM anon.functions()").fetchall()
    cursor.execute("USE memory; DETACH other").fetchall()


def test_a_subquery_as_an_argument_is_answered_with_what_to_do(people: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error) as raised:
        people.execute("FROM anon.recode('people', ['age'], k := (SELECT 2))")
    assert str(raised.value).startswith("anon.recode: its arguments must be constants, not subqueries; SET VARIABLE x")
    people.execute("SET VARIABLE least = (SELECT 2)").fetchall()
    with pytest.raises(duckdb.Error, match="at most the number of rows, 1; got 2"):  # it got there
        people.execute("FROM anon.recode('people', ['age'], getvariable('least'))").fetchall()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "FROM anon.kanonymity('people', ['age'])",
            "anon.kanonymity: there is no such function; did you mean anon.k_anonymity?",
        ),
        (
            "FROM anon.matching_opn('people')",
            "anon.matching_opn: there is no such function; did you mean anon.matching_attack?",
        ),
        ("SELECT anon.topcode(3, 4)", "anon.topcode: there is no such function; did you mean anon.top_code?"),
        ("FROM anon.zzz()", "anon.zzz: there is no such function; FROM anon.functions() lists all."),
        ("FROM anon.top_code(3, 4)", "anon.top_code: call it as SELECT anon.top_code(...)."),
        (
            "FROM anon.recode('peple', ['age'], 2)",
            'anon.recode: Table with name peple does not exist; did you mean "people"?',
        ),
        ("FROM anon.k_anonymity('pg', ['age'])", "anon.k_anonymity: Table with name pg does not exist."),
    ],
)
def test_a_misspelt_function_or_table_is_named_and_nothing_private_is_offered(
    people: duckdb.DuckDBPyConnection, query: str, said: str
) -> None:
    for statement in (query, f"CREATE TABLE released AS {query if query.startswith('FROM') else f'({query})'}"):
        with pytest.raises(duckdb.Error) as raised:
            people.execute(statement).fetchall()
        assert str(raised.value) == said


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('two "words"', """a table must be named as in SQL, such as visits, clinic.visits or '"my visits"'."""),
        ('"', """a table must be named as in SQL, such as visits, clinic.visits or '"my visits"'."""),
        ("no.such.visits", 'Table with name "no.such.visits" does not exist because schema "no.such" does not exist.'),
        ("none.parquet", 'No files found that match the pattern "none.parquet".'),
        ("latin.csv", "line 3 of latin.csv is not UTF-8 text."),
        ("long.csv", 'line 30002 of long.csv has a value in column "age" that cannot be converted to BIGINT.'),
        ("text.parquet", "text.parquet is not a Parquet file."),
        ("converted", 'a value of column "age" cannot be converted to INTEGER.'),
    ],
)
@pytest.mark.parametrize("call", ["k_anonymity({}, ['age'])", "swap({}, ['age'])", "k_map('people', ['age'], {})"])
def test_a_table_that_cannot_be_found_or_read_is_refused_without_its_rows(
    people: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, said: str, call: str
) -> None:
    """DuckDB prints the line of a CSV file, and the value of a cast."""
    monkeypatch.chdir(tmp_path)
    Path("latin.csv").write_bytes(b"age,name\n30,P1\n39,Zanzib\xff\xfear\n")
    Path("long.csv").write_text("age\n" + "30\n" * 30_000 + "Zanzibar\n")
    Path("text.parquet").write_text("Zanzibar, Zanzibar")
    people.execute("CREATE OR REPLACE TEMP TABLE texts AS SELECT unnest(['30', 'Zanzibar']) AS age").fetchall()
    people.execute("CREATE OR REPLACE TEMP VIEW converted AS SELECT age::INTEGER AS age FROM texts").fetchall()
    query = f"FROM anon.{call}".format(sql.literal(table))
    with pytest.raises(duckdb.Error) as raised:
        people.execute(query).fetchall()
    if duckdb.__version__ < "2" and table in ('two "words"', "no.such.visits"):  # whose older words are others
        assert "Zanzibar" not in str(raised.value)
        return
    sentence = f"anon.{call.partition('(')[0]}: {said}"
    assert errors.plain(BaseException.__str__(raised.value), query) == sentence  # as a shell tells it
    if table != "converted":  # of a cast in a view of the user's, DuckDB says to Python neither the call nor the view
        assert str(raised.value) == sentence


def test_the_users_own_sql_keeps_the_words_of_duckdb(people: duckdb.DuckDBPyConnection) -> None:
    """But for the offer of a function that is private."""
    people.execute("CREATE OR REPLACE TEMP TABLE t AS SELECT 1 AS a").fetchall()
    for query, said in {
        "SELECT nope FROM t": 'Referenced column "nope" not found',
        "SELECT COLUMNS(['nope']) FROM anon.k_anonymity('t', ['a'])": 'Column "nope" was selected but was not found',
        "FROM matching_opn('t')": "Table Function with name matching_opn does not exist!",
    }.items():
        with pytest.raises(duckdb.Error, match=said) as raised:
            people.execute(query).fetchall()
        assert "anon._" not in str(raised.value)


CALLS_OF_MACROS = """
    class_sizes('people', @) class_sizes('people', ['age'], person := $) k_anonymity('people', @)
    k_anonymity('people', ['age'], person := $) small_classes('people', @, 3) risky_rows('people', @, 3)
    l_diversity('people', @, 'age') l_diversity('people', ['age'], $) l_diversity_classes('people', ['age'], $)
    t_closeness('people', @, 'age') t_closeness_classes('people', ['age'], $) quasi_identifier('people', @)
    reidentification_risk('people', ['age'], person := $) known_events(['people'], $, ['age'])
    delta_presence('people', @, 'people') k_map('people', ['age'], 'people', person := $) global_risk('people', @)
    individual_risk('people', @) individual_risk('people', ['age'], household := $) risk_summary('people', @)
    sensitive_risk('people', @, 'age') sensitive_risk_classes('people', ['age'], $)
    interval_disclosure('people', 'people', @) hierarchy_level('people', $, 'people', 3)
    sampled_partition('people', $, 2) containment_risk('people', 'people', @)
    containment_candidates('people', 'people', @)
    recode_classes('people', @) generalization_loss('people', 'people', @) protect_table('people', @)
    suppressed('people', 'people', @) recode('people', @, 2) swap('people', @) utility('people', 'people', @)
"""
"""Functions of pure SQL, and three others, with a column that does not exist: @ is a list with it, $ the column."""


@pytest.mark.parametrize("call", re.findall(r"\w+\(.*?\)(?=\s)", CALLS_OF_MACROS))
def test_a_column_that_does_not_exist_is_named_in_every_function(people: duckdb.DuckDBPyConnection, call: str) -> None:
    """Those that call Python find it themselves (`_anon_choose`); in the others DuckDB does, and points at the call."""
    name = call.partition("(")[0]
    for column, offered in (("age; drop", "."), ("aeg", '; did you mean "age"?')):
        written = call.replace("@", f"['{column}']").replace("$", f"'{column}'")
        with pytest.raises(duckdb.Error) as raised:
            people.execute(f"CREATE TABLE released AS FROM anon.{written}").fetchall()
        assert str(raised.value) == f'anon.{name}: column "{column}" does not exist in people{offered}'
