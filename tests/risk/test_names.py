"""Tables whose columns are called like the steps, results and parameters of the measures of risk."""

from __future__ import annotations

import duckdb
import pytest

NAMES = ["class", "weight", "risk", "codes", "home", "household", "member", "person", "population", "stands_for"]
NAMES += [
    "row_count",
    "left_out",
    "place",
    "places",
    "missing",
    "pattern",
    "whole",
    "people",
    "expected",
    "size",
    "p",
    "t",
]
NAMES += [
    "sample_frequency",
    "_duckanon_none",
    "_duckanon_class",
    "alpha",
    "method",
    "frequency",
    "names",
    "found",
    "tbl",
]
QUICK = {"class", "weight"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.thorough) for name in NAMES]
)
def test_columns_called_like_the_steps_of_a_measure(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """They give what they give under plain names, or a refusal."""
    source = "SELECT nullif(i % 3, 0) AS {}, i % 7 % 4 AS {}, 2 + i % 5 AS {}, i // 3 AS {} FROM range(60) AS t(i)"
    plain = ["a", "b", "x", "y"]
    for place in range(4):
        names = [*plain[:place], name, *plain[place + 1 :]]
        con.execute(f"CREATE OR REPLACE TABLE plain AS {source.format(*plain)}").fetchall()
        con.execute(
            f"CREATE OR REPLACE TABLE named AS {source.format(*(chr(34) + one + chr(34) for one in names))}"
        ).fetchall()
        for call in (
            "individual_risk('{}', ['{}', '{}'], weight := '{}', household := '{}')",
            "individual_risk('{}', ['{}', '{}'], weight := '{}', household := '{}', nulls := 'any')",
            "global_risk('{}', ['{}', '{}'], weight := '{}', person := '{}')",
        ):
            expected = con.execute(f"FROM anon.{call.format('plain', *plain)}").fetchall()
            try:
                found = con.execute(f"FROM anon.{call.format('named', *names)}").fetchall()
            except duckdb.InvalidInputException as error:
                assert "called like one of the " in str(error)  # noqa: PT017 - a refusal is right too
                assert name in {"risk", "sample_frequency"} or name.startswith("_duckanon_")
                continue
            if call.startswith("global"):
                expected, found = [row[1:] for row in expected], [row[1:] for row in found]
            assert rounded(found) == rounded(expected)


def rounded(rows: list[tuple]) -> list[str]:
    """Rows in an order of their own, numbers without the digits that depend on the order of a sum."""
    return sorted(repr([f"{cell:.12g}" if isinstance(cell, float) else cell for cell in row]) for row in rows)
