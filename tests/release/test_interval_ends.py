"""The ends of intervals as doubles: the true value of a decimal or a moment is never outside."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("0.1::DECIMAL(3, 1)", Fraction(1, 10)),
        ("0.3::DECIMAL(3, 1)", Fraction(3, 10)),
        ("-0.7::DECIMAL(18, 3)", Fraction(-7, 10)),
        ("9007199254740993::BIGINT", Fraction(9007199254740993)),
        ("TIMESTAMP '1970-01-02 08:00:00'", Fraction(4, 3)),
        ("TIMESTAMP '2024-02-29 16:00:00'", Fraction(19782) + Fraction(2, 3)),
    ],
)
def test_a_point_encloses_the_value_that_no_double_is_equal_to(
    con: duckdb.DuckDBPyConnection, value: str, exact: Fraction
) -> None:
    con.execute(f"CREATE OR REPLACE TEMP TABLE points AS SELECT {{'lo': {value}, 'hi': {value}}} AS x FROM range(3)")
    lower, upper = con.execute(
        "SELECT lower, upper FROM anon.interval_statistics('points', ['x']) WHERE statistic = 'mean'"
    ).fetchone()
    assert Fraction(lower) < exact < Fraction(upper)
    assert upper - lower <= 1e-14 * abs(upper)


@pytest.mark.parametrize("value", ["7::DECIMAL(3, 1)", "42", "0.5::DOUBLE", "DATE '2024-02-29'"])
def test_a_value_that_is_a_double_stays_a_point(con: duckdb.DuckDBPyConnection, value: str) -> None:
    con.execute(f"CREATE OR REPLACE TEMP TABLE points AS SELECT {{'lo': {value}, 'hi': {value}}} AS x FROM range(3)")
    lower, upper = con.execute(
        "SELECT lower, upper FROM anon.interval_statistics('points', ['x']) WHERE statistic = 'mean'"
    ).fetchone()
    assert lower == upper
