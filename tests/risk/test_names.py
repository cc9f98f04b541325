"""Tables whose columns are called like the steps, results and parameters of the measures of risk."""

from __future__ import annotations

import re

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
    "contributions",
    "suda_score",
    "_duckanon_size",
    "call",
    "record",
]


MAY_BE_REFUSED = {"risk", "sample_frequency", "contributions", "suda_score"}
REFUSED = re.compile("called like one of the |begins with _duckanon_")


def may_be_refused(name: str) -> bool:
    return name in MAY_BE_REFUSED or name.startswith("_duckanon_")


def groups(names: list[str]) -> list[list[str]]:
    """Put four names into a group, each of which comes in every place; one that may be refused hides no other."""
    others = [name for name in names if not may_be_refused(name)]
    fours = [(others[place:] + others)[:4] for place in range(0, len(others), 4)]
    return [*fours, *([name, "b", "x", "y"] for name in names if may_be_refused(name))]


@pytest.mark.thorough
@pytest.mark.parametrize("group", groups(NAMES), ids="-".join)
def test_columns_called_like_the_steps_of_a_measure(con: duckdb.DuckDBPyConnection, group: list[str]) -> None:
    """They give what they give under plain names, or a refusal."""
    source = "SELECT nullif(i % 3, 0) AS {}, i % 7 % 4 AS {}, 2 + i % 5 AS {}, i // 3 AS {} FROM range(60) AS t(i)"
    plain = ["a", "b", "x", "y"]
    con.execute(f"CREATE TABLE plain AS {source.format(*plain)}").fetchall()
    for place in range(4):
        names = [*group[place:], *group[:place]]
        con.execute(
            f"CREATE OR REPLACE TABLE named AS {source.format(*(chr(34) + one + chr(34) for one in names))}"
        ).fetchall()
        for call in (
            "individual_risk('{}', ['{}', '{}'], weight := '{}', household := '{}')",
            "individual_risk('{}', ['{}', '{}'], weight := '{}', household := '{}', nulls := 'any')",
            "global_risk('{}', ['{}', '{}'], weight := '{}', person := '{}')",
            "special_uniques('{}', ['{}', '{}', '{}'], person := '{}')",
            "risk_summary('{}', ['{}', '{}'], weight := '{}', sensitive := '{}') SELECT measure, value",
        ):
            expected = con.execute(f"FROM anon.{call.format('plain', *plain)}").fetchall()
            try:
                found = con.execute(f"FROM anon.{call.format('named', *names)}").fetchall()
            except duckdb.InvalidInputException as error:
                assert REFUSED.search(str(error))  # noqa: PT017 - a refusal is right too
                assert may_be_refused(group[0])
                continue
            if call.startswith("global"):
                expected, found = [row[1:] for row in expected], [row[1:] for row in found]
            assert rounded(found) == rounded(expected)


MORE_NAMES = ["class", "value", "key", "is_sample", "votes", "code", "numbers", "size", "names", "_duckanon_place"]
CALLS = {
    "population_uniques('{0}', ['{1}', '{2}', '{3}'], 100, interactions := [['{1}', '{2}']], person := '{4}')": "*",
    "k_map('{0}', ['{1}', '{2}', '{3}'], '{0}', person := '{4}')": "*",
    "delta_presence('{0}', ['{1}', '{2}', '{3}'], '{0}', person := '{4}')": "*",
    "reidentification_risk('{0}', ['{1}', '{2}', '{3}'], population := '{0}', person := '{4}')": "*",
    "sensitive_risk('{}', ['{}', '{}'], '{}', person := '{}')": "measure, value, worst_class_size",
    "interval_disclosure('{0}', '{0}', ['{1}', '{2}', '{3}'], person := '{4}')": "half_width, people_inside, fraction",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MORE_NAMES)
def test_columns_called_like_the_steps_of_a_measure_of_populations(con: duckdb.DuckDBPyConnection, name: str) -> None:
    source = "SELECT nullif(i % 3, 0) AS {}, i % 7 % 4 AS {}, 2 + i % 5 AS {}, i // 3 AS {} FROM range(60) AS t(i)"
    plain = ["a", "b", "x", "y"]
    con.execute(f"CREATE TABLE plain AS {source.format(*plain)}").fetchall()
    for place in (0, 2, 3):
        names = [*plain[:place], name, *plain[place + 1 :]]
        quoted = source.format(*(chr(34) + one + chr(34) for one in names))
        con.execute(f"CREATE OR REPLACE TABLE named AS {quoted}").fetchall()
        for call, shown in CALLS.items():
            expected = con.execute(f"SELECT {shown} FROM anon.{call.format('plain', *plain)}").fetchall()
            try:
                found = con.execute(f"SELECT {shown} FROM anon.{call.format('named', *names)}").fetchall()
            except duckdb.InvalidInputException as error:
                assert REFUSED.search(str(error))  # noqa: PT017 - a refusal is right too
                assert name.startswith("_duckanon_")
                continue
            assert rounded(found) == rounded(expected), call


def rounded(rows: list[tuple]) -> list[str]:
    """Rows in an order of their own, numbers without the digits that depend on the order of a sum."""
    return sorted(repr([plain_cell(cell) for cell in row]) for row in rows)


def plain_cell(cell: object) -> object:
    """A cell without the names of its fields, which are those of the columns."""
    if isinstance(cell, dict):
        return [plain_cell(field) for field in cell.values()]
    return f"{cell:.12g}" if isinstance(cell, float) else cell
