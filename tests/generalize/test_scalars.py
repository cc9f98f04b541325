"""Scalar functions on values of every type, at their ends: exact arithmetic says which label is true."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pytest

KEY = "'a key of at least 16 bytes'"

NUMBERS = [
    *("0", "42", "-3", "90", "(-128)::TINYINT", "255::UTINYINT", "9007199254740992", "9007199254740993"),
    *("9007199254740993::UBIGINT", "9223372036854775807", "18446744073709551615::UBIGINT", "123456789012345678"),
    *("170141183460469231731687303715884105727::HUGEINT", "(-170141183460469231731687303715884105728)::HUGEINT"),
    *("340282366920938463463374607431768211455::UHUGEINT", "'9999999999999999999999999999999999999999999'::BIGNUM"),
    *("1.5", "3.25::DECIMAL(4, 2)", "99999999999999999999999999.5000000001::DECIMAL(38, 10)", "0.7", "0.3::DOUBLE"),
    *("-0.0::DOUBLE", "5e-324::DOUBLE", "1e308::DOUBLE", "-1e308::DOUBLE", "0.7::FLOAT", "16777217::FLOAT"),
]
OTHERS = [
    *("'nan'::DOUBLE", "'-nan'::FLOAT", "'inf'::DOUBLE", "true", "'low'", "'*'", "''", "'2020-01-31'", "TIME '10:00'"),
    *("DATE '2020-02-29'", "DATE '0044-03-15 (BC)'", "DATE 'infinity'", "'5877642-06-25 (BC)'::DATE"),
    *("TIMESTAMP '2020-10-25 02:30:00.000001'", "TIMESTAMPTZ '2020-01-01 00:00:00+02'", "'10:00:00+02'::TIMETZ"),
    *("'2020-01-01'::TIMESTAMP_NS", "INTERVAL 3 DAY", "[1, 2]", "{'a': 1}", "MAP {'m': 1}", "'x'::BLOB", "'101'::BIT"),
    *("'low'::ENUM('low', 'secret')", "['low'::ENUM('low', 'secret')]", "uuid()", "NULL", "NULL::VARCHAR"),
]
CALLS = [
    *("top_code(v, 90)", "top_code(v, DATE '2020-01-01')", "bottom_code(v, 18.5)", "generalize_range(v, 10)"),
    *("generalize_date(v, 'month')", "generalize_prefix(v, 2)", "safe_harbor_age(v)", "safe_harbor_date(v)"),
    *("safe_harbor_zip(v)", "mask(v, 1, 1)", f"pseudonym(v, {KEY})", f"shift_date(v, 1, {KEY})"),
    *(f"shift_date(DATE '2020-01-01', v, {KEY})", "top_code(42, v)", "generalize_range(42, v)", "mask('abc', v)"),
    *("generalize_date(DATE '2020-01-01', v)", "safe_harbor_date(DATE '2020-01-01', as_of := v)"),
]


def refusal(con: duckdb.DuckDBPyConnection, query: str) -> str | None:
    """The sentence that refuses a query; None where there is an answer."""
    try:
        con.execute(query).fetchall()
    except duckdb.Error as error:
        return str(error)
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("call", CALLS)
def test_every_type_is_answered_or_refused_by_a_sentence(con: duckdb.DuckDBPyConnection, call: str) -> None:
    """A refusal names the function, and no value: neither a cell's nor a label of an ENUM."""
    name = call.partition("(")[0]
    for value in [*NUMBERS[8:20:2], *OTHERS]:
        sentence = refusal(con, f"SELECT anon.{call} FROM (SELECT {value} AS v)")
        if sentence is not None:
            assert sentence.startswith(f"anon.{name}: "), (value, sentence)
            assert "\n" not in sentence
            assert "secret" not in sentence


def exact(text: str) -> Fraction:
    return Fraction(text)


def numbers(con: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Each number as SQL, and as its text says it."""
    return [(number, con.execute(f"SELECT CAST({number} AS VARCHAR)").fetchall()[0][0]) for number in NUMBERS]


@pytest.mark.thorough
def test_ends_are_coded_by_exact_order(con: duckdb.DuckDBPyConnection) -> None:
    """A number is in the category if it is at least the cap: as fractions, and as doubles where one is a double."""
    caps = (
        "9007199254740993",
        "18446744073709551615::UBIGINT",
        "0.7",
        "99999999999999999999999999.5::DECIMAL(38, 10)",
        "0",
    )
    for turn, cap in enumerate(caps):
        columns, expected = [], []
        ((cap_text,),) = con.execute(f"SELECT CAST({cap} AS VARCHAR)").fetchall()
        for number, text in numbers(con)[turn % 2 :: 2]:
            kind = float if "DOUBLE" in number + cap or "FLOAT" in number else exact
            beyond, below = kind(text) >= kind(cap_text), kind(text) <= kind(cap_text)
            plain = "0.0" if text == "-0.0" else text
            expected += [f">={cap_text}" if beyond else plain, f"<={cap_text}" if below else plain]
            columns += [f"anon.top_code({number}, {cap})", f"anon.bottom_code({number}, {cap})"]
        assert list(con.execute(f"SELECT {', '.join(columns)}").fetchall()[0]) == expected


@pytest.mark.thorough
def test_ranges_hold_their_numbers(con: duckdb.DuckDBPyConnection) -> None:
    """A range has the width that was asked for, and the number in it; large numbers are refused."""
    refused = []
    for number, text in numbers(con):
        for step in ("10", "0.1"):
            query = f"SELECT anon.generalize_range({number}, {step})"
            if (sentence := refusal(con, query)) is not None:
                assert "value must be in a range below 2^53, and fewer than 2^53 steps from origin" in sentence
                refused.append(exact(text))
                continue
            ((label,),) = con.execute(query).fetchall()
            lower, upper = map(exact, label.strip("[)").split(", "))
            assert lower <= exact(text) < upper
            assert upper - lower == exact(step)
            assert lower / exact(step) == math.floor(lower / exact(step))
    assert refused
    assert all(abs(number) * 10 >= 2**53 for number in refused)


def test_no_sentence_has_a_value_of_a_column(con: duckdb.DuckDBPyConnection) -> None:
    """Two arguments in the wrong order: the column is named."""
    con.execute("CREATE TABLE people AS SELECT DATE '1974-03-02' AS born, 'Miller' AS name, 7 AS n")
    for call, got in [
        ("generalize_date('month', born)", "born"),
        ("generalize_prefix(2, name)", "name"),
        ("top_code(90, name)", "name"),
        ("generalize_range(10, name)", "name"),
        ("mask(2, name)", "name"),
        (f"pseudonym(n, {KEY}, n)", "n"),
    ]:
        with pytest.raises(duckdb.Error, match=rf"; got {got}\.$"):
            con.execute(f"SELECT anon.{call} FROM people").fetchall()
