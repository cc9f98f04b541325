"""Who contributes to a cell: an oracle in plain Python, and attackers who know every row but one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import duckdb
import pytest

from tests.sqltest import registered

Row = tuple[str, str, int | None, float | None]
"""Region, sex, person and measure."""


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return registered().cursor()


def store(con: duckdb.DuckDBPyConnection, rows: Sequence[Row]) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE rows (region VARCHAR, sex VARCHAR, person INTEGER, measure DOUBLE)")
    con.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)


def drawn(draw: random.Random) -> list[Row]:
    """Draw the rows of people who are in several cells, some without a measure, and rows of nobody."""
    measures = [None, None, 0.0, -0.0, 1.0, 2.5, 40.0]
    return [
        (
            draw.choice("abcde"),
            draw.choice("fm"),
            None if draw.random() < 0.1 else draw.randrange(60),
            draw.choice(measures),
        )
        for _ in range(draw.randrange(60, 120))
    ]


def tabulate(rows: Sequence[Row], *, has_measure: bool, has_person: bool) -> dict[tuple[str, str], tuple[int, float]]:
    """Return people and value of every cell and margin to which a row contributes."""
    contributions: dict[tuple[str, str], dict[object, float]] = {}
    for number, (region, sex, person, measure) in enumerate(rows):
        if measure is None if has_measure else has_person and person is None:
            continue
        contributor = (number,) if not has_person else "nobody" if person is None else person
        for cell in itertools.product((region, "Total"), (sex, "Total")):
            own = contributions.setdefault(cell, {})
            own[contributor] = own.get(contributor, 0.0) + ((measure or 0.0) if has_measure else 1.0)
    found = {}
    for cell, own in contributions.items():
        people = len(own.keys() - {"nobody"})
        found[cell] = (people, sum(own.values()) if has_measure else float(people))
    return found


@pytest.mark.parametrize("has_person", [True, False])
@pytest.mark.parametrize("has_measure", [True, False])
def test_cells_show_those_who_contribute(con: duckdb.DuckDBPyConnection, has_measure: bool, has_person: bool) -> None:
    """Whatever is shown is the oracle's, nothing of fewer than k people is, and empty cells are not returned."""
    k, draw, shown, hidden = 8, random.Random(5), 0, 0
    call = f"'rows', ['region', 'sex'], k := {k}, measure := {'NULL' if not has_measure else repr('measure')}, "
    call += f"person := {'NULL' if not has_person else repr('person')}"
    for _ in range(2):
        rows = drawn(draw)
        store(con, rows)
        expected = tabulate(rows, has_measure=has_measure, has_person=has_person)
        cells = con.execute(f"SELECT region, sex, people, value FROM anon.cell_rules({call})").fetchall()
        assert {cell[:2]: cell[2:] for cell in cells} == {cell: pytest.approx(one) for cell, one in expected.items()}
        table = con.execute(
            f"SELECT region, sex, people, value FROM anon.protect_table({call}, max_suppressed_fraction := 1)"
        ).fetchall()
        assert {cell[:2] for cell in table} == expected.keys()
        for region, sex, people, value in table:
            true = expected[region, sex]
            assert people is None or (people == true[0] and people >= k)
            assert value is None or (value == pytest.approx(true[1]) and true[0] >= k)
            shown, hidden = shown + (value is not None), hidden + (value is None)
    assert min(shown, hidden) > 5


@pytest.mark.parametrize(
    ("options", "unseen"),
    [
        ("'measure', k := 4, person := 'person'", (7, None)),
        ("'measure', k := 4, person := 'person', zeros := 'protected'", (7, None)),
        ("'measure', k := 4, person := 'person', linked := [['sex']]", (7, None)),
        ("'measure', k := 4", (7, None)),
        ("k := 4, person := 'person'", (None, 1.0)),
        ("k := 4, person := 'person', method := 'cell_key', key := 'a secret of ours'", (None, 1.0)),
    ],
)
def test_nobody_learns_of_a_row_that_contributes_nothing(
    con: duckdb.DuckDBPyConnection, options: str, unseen: tuple[int | None, float | None]
) -> None:
    """An attacker who knows all other rows sees the same table with and without it, wherever it would be."""
    draw = random.Random(8)
    rows = [(region, sex, *row[2:]) for region, sex in itertools.product("abc", "fm") for row in drawn(draw)[:25]]
    call = f"'rows', ['region', 'sex'], {options}, max_suppressed_fraction := 1"
    query = f"FROM anon.protect_table({call}) ORDER BY ALL"
    store(con, rows)
    without = con.execute(query).fetchall()
    assert len(without) >= 12
    for region, sex in [("a", "f"), ("z", "x")]:
        store(con, [*rows, (region, sex, *unseen)])
        assert con.execute(query).fetchall() == without


def test_the_audit_counts_contributors(con: duckdb.DuckDBPyConnection) -> None:
    """Three people with a measure and seven without are a small cell, whatever the table says."""
    store(con, [("a", "f", person, 10.0 if person < 3 else None) for person in range(10)])
    con.execute(
        "INSERT INTO rows SELECT 'bc'[1 + i % 2], 'f', 20 + i, 6 FROM range(60) AS t(i) "
        "UNION ALL SELECT 'd', 'f', 99, NULL"
    )
    con.execute(
        "CREATE OR REPLACE TEMP TABLE told AS FROM (VALUES ('a', 10, 30), ('b', 30, 180), ('c', 30, 180), ('d', 0, 0), "
        "('Total', 70, 390)) AS t(region, people, value)"
    )
    faults = con.execute(
        "SELECT region, fault FROM anon.audit_table('told', ['region'], people := 'people', p := 1, "
        "original := 'rows', measure := 'measure', person := 'person')"
    )
    assert faults.fetchall() == [("a", "small")]
