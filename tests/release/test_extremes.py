"""How far the largest or the smallest value lies beyond all others changes nothing that a release says of others.

`test_traces` holds the algorithms to it; here are the calls in SQL, whose rows arrive in an order of their own, and
tables that are larger than memory.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from duckanon import large
from duckanon.large import workspace
from duckanon.large.workspace import Budget
from tests.profiles import keep_one_in, seeds
from tests.traces import changed_labels, random_table, with_farther_extreme

RELEASES = [
    "recode('people', {cols}, {k}",
    "recode('people', {cols}, {k}, effort := 'quick'",
    "recode('people', {cols}, {k}, output := 'value'",
    "recode('people', {cols}, {k}, person := 'person'",
    "recode('people', {cols}, {k}, weights := [1, 3, 0.5]",
    "recode('people', {cols}, {k}, by := ['ward']",
    "recode('people', {cols}, {k}, sensitive := 'illness', l := 2",
    "recode('people', {cols}, {k}, sensitive := 'illness', l := 2, person := 'person'",
    "recode('people', {cols}, {k}, sensitive := 'illness', t := 0.4",
    "recode('people', {cols}, {k}, sensitive := 'illness', l := 3, by := ['ward'], max_suppressed_fraction := 0.9",
    "generalize('people', {cols}, {k}",
]


@pytest.mark.parametrize("call", keep_one_in(5, RELEASES))
@pytest.mark.parametrize("seed", seeds(quick=1, thorough=7))
def test_an_extreme_that_moves_farther_changes_nobody_elses_labels(
    con: duckdb.DuckDBPyConnection, call: str, seed: int
) -> None:
    column, k = ("income", "born")[seed % 2], (3, 5, 2, 10)[seed % 4]
    table = random_table(seed, 80 + 10 * (seed % 8))
    farther, row = with_farther_extreme(table, column, (0.1, 2, 0.003)[seed % 3], is_low=seed // 2 % 2 == 1)
    call = call.format(cols=["age", column, "area"], k=k)
    query = f"FROM anon.{call}, keep := ['number'], narrowing := ['number'])"
    assert changed_labels(con, query, table, farther, row) == []


@pytest.mark.parametrize(
    "call", ["boxes('people', {cols}, {k}", "microaggregate('people', {cols}, {k}, label := 'interval'"]
)
@pytest.mark.parametrize("seed", seeds(quick=1, thorough=7))
def test_how_far_beyond_an_end_a_value_lies_changes_nobody_elses_interval(
    con: duckdb.DuckDBPyConnection, call: str, seed: int
) -> None:
    """Up to the end it does: statistics and deviations are those of the values."""
    column, k = ("income", "born")[seed % 2], (3, 5, 2, 10)[seed % 4]
    table, _ = with_farther_extreme(random_table(seed, 80 + 10 * (seed % 8)), column, 2, is_low=seed // 2 % 2 == 1)
    farther, row = with_farther_extreme(table, column, (0.1, 2, 0.003)[seed % 3], is_low=seed // 2 % 2 == 1)
    query = f"FROM anon.{call.format(cols=['age', column], k=k)}, keep := ['number'], narrowing := ['number'])"
    assert changed_labels(con, query, table, farther, row) == []


@pytest.mark.thorough
@pytest.mark.parametrize("person", [None, "person"])
def test_an_extreme_that_moves_farther_changes_no_part_of_a_large_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, person: str | None
) -> None:
    monkeypatch.setattr(workspace, "budget", lambda memory: Budget(300 * 10**6, 500_000))
    table = random_table(1, 2000)
    farther, row = with_farther_extreme(table, "income", 5, is_low=False)
    said = []
    for place, rows in enumerate((table, farther)):
        target = tmp_path / f"{place}.parquet"
        made = large.recode(
            pa.table(rows),
            target,
            ["age", "income", "area"],
            5,
            effort="quick",
            person=person,
            keep=["number"],
            narrowing=["number"],
            seed=1,
        )
        assert made.parts > 1
        said.append(duckdb.sql(f"FROM '{target}' WHERE number <> {row} ORDER BY number ASC NULLS LAST").fetchall())
    assert said[0] == said[1]


@pytest.mark.thorough
def test_the_order_of_rows_says_nothing(con: duckdb.DuckDBPyConnection) -> None:
    """Nothing is kept, so that rows come as they are scanned; the same labels are released as often."""
    table = random_table(3, 300)
    backwards = {name: values[::-1] for name, values in table.items()}
    released = []
    for rows in (table, backwards):
        con.register("people", pa.table(rows))
        query = "FROM anon.recode('people', ['age', 'income', 'area'], 5) ORDER BY ALL ASC NULLS LAST"
        released.append(con.execute(query).fetchall())
    assert released[0] == released[1]
