"""Containment in a generalized release, against a brute-force oracle on random releases."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear

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


def fill(con: duckdb.DuckDBPyConnection, name: str, rows: list[Any], types: list[pa.DataType], names: str) -> None:
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    con.register("random_table", pa.table(columns, names=list(names)))
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM random_table").fetchall()


@pytest.mark.thorough
@dear
@given(people=PEOPLE, others=PEOPLE, shown=ROWS)
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


@pytest.mark.thorough
@dear
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_recoding_is_the_class_size(shared: duckdb.DuckDBPyConnection, sizes: list[int]) -> None:
    """Where each value has one label, the candidates are the class: the risks of anon.reidentification_risk."""
    rows = [(place, 10 * place + member % 10) for place, size in enumerate(sizes) for member in range(size)]
    fill(shared, "original", rows, [pa.int32(), pa.int32()], "gx")
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


@pytest.mark.thorough
@dear
@given(
    rows=st.integers(30, 400),
    k=st.integers(2, 12),
    box=st.sampled_from(["parts", "cell", "rounded"]),
    ties=st.sampled_from([3, 50, 100_000]),
    seed=st.floats(-1, 1),
)
def test_boxes(shared: duckdb.DuckDBPyConnection, rows: int, k: int, box: str, ties: int, seed: float) -> None:
    """Records are in their own box, which k records share, but for fewer than k beyond each end, who are coded."""
    shared.execute("SELECT setseed(?)", [seed]).fetchall()
    shared.execute(
        f"CREATE OR REPLACE TABLE original AS SELECT (random() * {ties})::INTEGER AS a, "
        f"DATE '2000-01-01' + (random() * {ties})::INTEGER AS b, round(random() * {ties}) / 7 AS c FROM range({rows})"
    ).fetchall()
    shared.execute(
        f"CREATE OR REPLACE TABLE released AS FROM anon.boxes('original', ['a', 'b', 'c'], {k}, box := '{box}')"
    ).fetchall()
    found = candidates(shared, ["a", "b", "c"])
    held = " AND ".join(f"o.{name} BETWEEN r.{name}.lo AND r.{name}.hi" for name in "abc")
    pairs = f"FROM original AS o LEFT JOIN released AS r ON {held} GROUP BY o.rowid, o.a, o.b, o.c"
    assert found == sorted(shared.execute(f"SELECT o.a, o.b, o.c, count(r.a) {pairs}").fetchall())
    ends = [shared.execute(f"SELECT min({name}.lo), max({name}.hi) FROM released").fetchall()[0] for name in "abc"]
    beyond = [[row for row in found if row[place] < low or row[place] > high] for place, (low, high) in enumerate(ends)]
    assert all(len(coded) < 2 * k for coded in beyond)
    coded = {row for rows_beyond in beyond for row in rows_beyond}
    assert min(row[-1] for row in found if row not in coded) >= k


@pytest.mark.thorough
@dear
@given(seed=st.floats(-1, 1), narrow=st.floats(0, 1), width=st.sampled_from([2, 10, 40]))
def test_many_overlaps(shared: duckdb.DuckDBPyConnection, seed: float, narrow: float, width: int) -> None:
    """Narrow and wide intervals and sets, as many as different values: what is cut into buckets, and what is not."""
    shared.execute("SELECT setseed(?)", [seed]).fetchall()
    shared.execute(
        "CREATE OR REPLACE TABLE original AS SELECT (random() * 300)::INTEGER AS a, (random() * 40)::INTEGER AS b, "
        "'c' || lpad((random() * 99)::INTEGER::VARCHAR, 2, '0') AS c FROM range(300) "
        "UNION ALL SELECT range % 300, range % 41, 'c' || lpad(range::VARCHAR, 2, '0') FROM range(100)"
    ).fetchall()
    ends = f"(CASE WHEN random() < {narrow} THEN {width} ELSE 250 END * random())::INTEGER"
    shared.execute(
        "CREATE OR REPLACE TABLE drawn AS SELECT (random() * 300)::INTEGER AS a0, (random() * 40)::INTEGER AS b0, "
        f"{ends} AS wide, (random() * 9)::INTEGER AS c0, (random() * 99)::INTEGER AS c1, "
        "(random() * 99)::INTEGER AS c2, random() AS kind FROM range(300)"
    ).fetchall()
    shared.execute(
        """CREATE OR REPLACE TABLE released AS SELECT {'lo': a0, 'hi': a0 + wide} AS a,
               CASE WHEN kind < 0.1 THEN '*' WHEN kind < 0.5 THEN '>=' || b0
                    ELSE format('[{}, {})', b0, b0 + 1 + wide) END AS b,
               CASE WHEN kind < 0.4 THEN format('c{}*', c0) WHEN kind < 0.8 THEN format('{{c{:02d}, c{:02d}}}', c1, c2)
                    WHEN kind < 0.9 THEN format('c{:02d}', c1) ELSE '*' END AS c
           FROM drawn"""
    ).fetchall()
    pairs = """SELECT o.a, o.b, o.c, count(d.a0) FROM original AS o LEFT JOIN drawn AS d
        ON o.a BETWEEN a0 AND a0 + wide
       AND (kind < 0.1 OR CASE WHEN kind < 0.5 THEN o.b >= b0 ELSE o.b >= b0 AND o.b < b0 + 1 + wide END)
       AND CASE WHEN kind < 0.4 THEN o.c[2] = c0::VARCHAR WHEN kind < 0.8 THEN o.c[2:]::INTEGER IN (c1, c2)
                WHEN kind < 0.9 THEN o.c[2:]::INTEGER = c1 ELSE true END
        GROUP BY o.rowid, o.a, o.b, o.c"""
    wanted = sorted(shared.execute(pairs).fetchall())
    assert candidates(shared, ["a", "b", "c"]) == wanted
    risks = shared.execute(
        "FROM anon.containment_risk('original', 'released', ['c', 'a', 'b'], population := 'original')"
    ).fetchall()
    check(risks[0][1:], [row[-1] for row in wanted])
    pairs = pairs.replace("SELECT o.a, o.b, o.c, count(d.a0)", "SELECT count(o.a)").replace("LEFT JOIN", "RIGHT JOIN")
    fitting = shared.execute(pairs.replace("GROUP BY o.rowid, o.a, o.b, o.c", "GROUP BY d.rowid")).fetchall()
    check(risks[1][1:], [count for (count,) in fitting])


def candidates(con: duckdb.DuckDBPyConnection, cols: list[str]) -> list[Any]:
    return sorted(con.execute(f"FROM anon.containment_candidates('original', 'released', {cols})").fetchall())
