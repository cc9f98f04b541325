"""`anon.suppressed` against a release whose suppressed rows are known, and against what `anon.generalize` left out."""

from __future__ import annotations

from collections import Counter

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear
from tests.sqltest import data_file

ROWS = st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["p", "q", "r", "s", None])), min_size=1, max_size=40)


@pytest.mark.thorough
@dear
@given(rows=ROWS, dropped=st.sets(st.integers(0, 3)), lost=st.integers(0, 3))
def test_decades(shared: duckdb.DuckDBPyConnection, rows: list[tuple], dropped: set[int], lost: int) -> None:
    """Ages in decades: some decades are dropped whole, some rows of the others are lost."""
    decades = [age // 10 for age, _ in rows if age // 10 not in dropped]
    kept = list(decades)
    for _ in range(lost):  # a decade keeps a row at least, or its rows would be gone for sure
        spare = next((at for at, decade in enumerate(kept) if kept.count(decade) > 1), None)
        if spare is not None:
            kept.pop(spare)
    missing = len(decades) - len(kept)
    original = pa.table({"age": [age for age, _ in rows], "who": pa.array([who for _, who in rows], pa.string())})
    released = pa.table({"age": pa.array([f"[{10 * one}, {10 * one + 10})" for one in kept], pa.string())})
    shared.register("suppressed_original", original)
    shared.register("suppressed_released", released)
    call = "anon.suppressed('suppressed_original', 'suppressed_released', ['age'"
    sizes = Counter(age for age, _ in rows)
    gone = {age for age in sizes if age // 10 in dropped}
    expected = [
        (size, count, size * count, size * count) for size, count in sorted(Counter(sizes[age] for age in gone).items())
    ]
    expected += [(None, None, missing, missing)] if missing else []
    found = shared.execute(f'SELECT class_size, classes, "rows", people FROM {call}])').fetchall()
    assert found == expected
    by_person = shared.execute(f"SELECT sum(\"rows\"), sum(people) FROM {call}], person := 'WHO')").fetchall()
    everybody = {who for _, who in rows} - {None}
    lost_people = {who for who in everybody if all(age in gone for age, other in rows if other == who)}
    total = sum(line[2] for line in expected)
    assert [(row or 0, people or 0) for row, people in by_person] == [(total, len(lost_people))]


@pytest.mark.thorough
def test_what_generalize_left_out_of_adult(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE adult AS FROM '{data_file('adult.csv')}'").fetchall()
    con.execute("""CREATE TABLE coarse AS FROM anon.generalize('adult', ['age', 'race', 'sex'], k := 20,
                                                               max_suppressed_fraction := 0.02)""").fetchall()
    [(original, released)] = con.execute(
        "SELECT (SELECT count(*) FROM adult), (SELECT count(*) FROM coarse)"
    ).fetchall()
    lines = con.execute("FROM anon.suppressed('adult', 'coarse', ['age', 'race', 'sex'])").fetchall()
    assert original > released
    assert sum(line[2] for line in lines) == original - released
    assert all(line[0] is not None and line[0] < 20 for line in lines)
