"""Containment in a generalized release, against a brute-force oracle on random releases."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

import duckanon

WORDS = ["aa", "ab", "b", "ca", None]
LABELS = {
    "aa": {"aa"},
    "ab": {"ab"},
    "a*": {"aa", "ab"},
    "{b, ca}": {"b", "ca"},
    "c": {"ca"},
    "*": set(WORDS),
    None: {None},
    "low": {"aa", "b"},
}
RANGES = {
    "[0, 4)": range(0, 4),
    "(2, 6]": range(3, 7),
    "<3": range(-100, 3),
    ">=5": range(5, 100),
    "4": range(4, 5),
    "[7, 9]": range(7, 10),
    "*": range(-100, 100),
}
NUMBERS = st.one_of(st.none(), st.integers(0, 9))
PEOPLE = st.lists(st.tuples(st.sampled_from(WORDS), NUMBERS, st.integers(0, 5)), min_size=1, max_size=25)
BOX = st.tuples(st.integers(-1, 6), st.integers(0, 4)).map(lambda ends: {"lo": ends[0], "hi": ends[0] + ends[1]})
ROWS = st.lists(
    st.tuples(st.sampled_from([*LABELS, "other"]), st.sampled_from([*RANGES, None]), BOX), min_size=1, max_size=25
)
TYPES = [pa.string(), pa.int64(), pa.int32()]
SHOWN_TYPES = [pa.string(), pa.string(), pa.struct([("lo", pa.int32()), ("hi", pa.int32())])]


@pytest.fixture(scope="module")
def shared() -> duckdb.DuckDBPyConnection:
    return duckanon.connect()


def fill(con: duckdb.DuckDBPyConnection, name: str, rows: list[Any], types: list[pa.DataType], names: str) -> None:
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    con.register("random_table", pa.table(columns, names=list(names)))
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM random_table").fetchall()


@given(people=PEOPLE, others=PEOPLE, shown=ROWS)
@settings(max_examples=12, deadline=None, phases=[Phase.generate])
def test_against_brute_force(
    shared: duckdb.DuckDBPyConnection, people: list[Any], others: list[Any], shown: list[Any]
) -> None:
    """Overlapping ranges, sets, prefixes, a hierarchy, boxes, NULL as a value or saying nothing."""
    everyone = people + others
    words, has_null = {row[0] for row in everyone}, any(row[1] is None for row in everyone)
    shown = [row for row in shown if row[0] in ("other", "*", None) or LABELS[row[0]] & words] or [
        ("*", "*", shown[0][2])
    ]
    told = set().union(*(LABELS[row[0]] for row in shown if row[0] not in ("*", "other")), set())

    def holds(row: Any, person: Any) -> bool:
        label, word = row[0], person[0]
        meant = set(WORDS) - told if label == "other" else LABELS[label]
        is_word = word in meant or (label is None and None not in words)
        if row[1] is None:
            is_number = person[1] is None or not has_null
        else:
            is_number = row[1] == "*" or person[1] in RANGES[row[1]]
        return is_word and is_number and row[2]["lo"] <= person[2] <= row[2]["hi"]

    fill(shared, "original", people, TYPES, "wnx")
    fill(shared, "population", everyone, TYPES, "wnx")
    fill(shared, "released", [row[::-1] for row in shown], SHOWN_TYPES[::-1], "xnw")  # columns in another order
    shared.execute("CREATE OR REPLACE TABLE tree AS SELECT unnest(['aa', 'b']) AS leaf, 'low' AS label").fetchall()
    more = "hierarchies := {'w': 'tree'}"
    risks = {
        row[0]: row[1:]
        for row in shared.execute(
            f"FROM anon.containment_risk('original', 'released', ['W', 'n', 'x'], population := 'population', {more})"
        ).fetchall()
    }
    held = [sum(holds(row, person) for row in shown) for person in people]
    check(risks["prosecutor"], held)
    fitting = [sum(holds(row, person) for person in everyone) for row in shown]
    check(risks["journalist"], fitting)
    assert risks["marketer"][1] == risks["journalist"][1]
    if words == {row[0] for row in people} and has_null == any(row[1] is None for row in people):
        got = shared.execute(
            f"FROM anon.containment_candidates('original', 'released', ['n', 'w', 'x'], {more})"
        ).fetchall()
        assert sorted(got, key=str) == sorted(((*row, n) for row, n in zip(people, held, strict=True)), key=str)


def check(found: Any, counts: list[int]) -> None:
    risks = [1 / count if count else 0 for count in counts]
    assert math.isclose(found[0], max(risks))
    assert math.isclose(found[1], sum(risks) / len(risks), abs_tol=1e-12)
    at_risk = sum(risk > 0.2 for risk in risks)
    assert found[2:] == (at_risk, at_risk / len(risks), counts.count(0))


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8))
@settings(max_examples=3, deadline=None, phases=[Phase.generate])
def test_recoding_is_the_class_size(shared: duckdb.DuckDBPyConnection, sizes: list[int]) -> None:
    """Where each value has one label, the candidates are the class: the risks of anon.reidentification_risk."""
    rows = [(place, member) for place, size in enumerate(sizes) for member in range(size)]
    shared.execute("CREATE OR REPLACE TABLE original (g INTEGER, x INTEGER)").fetchall()
    shared.executemany("INSERT INTO original VALUES (?, ?)", [[g, 10 * g + x % 10] for g, x in rows])
    shared.execute(
        "CREATE OR REPLACE TABLE released AS SELECT g, format('[{}, {})', x // 10 * 10, x // 10 * 10 + 10) AS x "
        "FROM original"
    ).fetchall()
    for population in ("NULL", "1000"):
        found = shared.execute(
            f"FROM anon.containment_risk('original', 'released', ['g', 'x'], population := {population})"
        ).fetchall()
        wanted = shared.execute(
            f"FROM anon.reidentification_risk('released', ['g', 'x'], population := {population})"
        ).fetchall()
        for got, row in zip(found, wanted, strict=True):
            assert got[0] == row[0]
            assert got[1:5] == pytest.approx(row[1:5], nan_ok=True)


def test_boxes(shared: duckdb.DuckDBPyConnection) -> None:
    """Every record is in its own box, which k records share: nobody has fewer than k candidates."""
    shared.execute(
        "CREATE OR REPLACE TABLE original AS SELECT (random() * 1000)::INTEGER AS a, "
        "DATE '2000-01-01' + (random() * 9000)::INTEGER AS b, random() AS c FROM range(1500)"
    ).fetchall()
    for box in ("cell", "bounds"):
        shared.execute(
            f"CREATE OR REPLACE TABLE released AS FROM anon.boxes('original', ['a', 'b', 'c'], 7, box := '{box}')"
        ).fetchall()
        query = "FROM anon.containment_candidates('original', 'released', ['a', 'b', 'c'])"
        fewest, total = shared.execute(f"SELECT min(candidates), sum(candidates) {query}").fetchone() or (0, 0)
        assert fewest >= 7
        pairs = """SELECT count(*) FROM original AS o, released AS r WHERE o.a BETWEEN r.a.lo AND r.a.hi
                   AND o.b BETWEEN r.b.lo AND r.b.hi AND o.c BETWEEN r.c.lo AND r.c.hi"""
        assert (total,) == shared.execute(pairs).fetchone()
