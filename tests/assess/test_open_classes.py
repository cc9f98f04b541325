"""Classes where NULL matches anything: against brute force, and the numbers that sdcMicro prints."""

from __future__ import annotations

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear
from tests.sqltest import data_file

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
ROWS = st.lists(st.tuples(*[st.sampled_from([1, 2, 3, None])] * 3), min_size=1, max_size=30)


def do_match(own: tuple, other: tuple) -> bool:
    return all(x is None or y is None or x == y for x, y in zip(own, other, strict=True))


def size(rows: list[tuple], own: tuple, alpha: float) -> float:
    """Count the rows that a class matches; those of other classes with a NULL count as alpha."""
    matches = [other for other in rows if do_match(own, other)]
    return sum(alpha if other != own and None in other else 1 for other in matches)


@pytest.mark.thorough
@dear
@given(rows=ROWS, alpha=st.sampled_from([0, 0.1, 0.5, 1]), k=st.integers(2, 6))
def test_against_brute_force(shared: duckdb.DuckDBPyConnection, rows: list[tuple], alpha: float, k: int) -> None:
    random_table = pa.table([pa.array(column, pa.int32()) for column in zip(*rows, strict=True)], names=["a", "b", "c"])
    shared.register("random_table", random_table)
    options = f"nulls := 'any', alpha := {alpha}"
    sizes = [round(size(rows, row, alpha), 9) for row in rows]
    smallest, singletons, under_2, under_5 = shared.execute(
        f"""SELECT k, singletons, rows_under_2, rows_under_5
            FROM anon.k_anonymity('random_table', ['a', 'b', 'c'], {options})"""
    ).fetchall()[0]
    assert smallest == pytest.approx(min(sizes))
    assert singletons == len({row for row, own in zip(rows, sizes, strict=True) if own == 1})
    assert (under_2, under_5) == tuple(sum(own < limit for own in sizes) for limit in (2, 5))
    histogram = shared.execute(
        f"SELECT class_size, \"rows\" FROM anon.class_sizes('random_table', ['a', 'b', 'c'], {options})"
    ).fetchall()
    assert histogram == [(own, sizes.count(own)) for own in sorted(set(sizes))]
    risky = shared.execute(f"FROM anon.risky_rows('random_table', ['a', 'b', 'c'], {k}, {options})").fetchall()
    expected = [(*row, own) for row, own in zip(rows, sizes, strict=True) if own < k]
    assert sorted(risky, key=repr) == sorted(expected, key=repr)
    small = shared.execute(f"FROM anon.small_classes('random_table', ['a', 'b', 'c'], {k}, {options})").fetchall()
    assert sorted(small, key=repr) == sorted(set(expected), key=repr)


@pytest.mark.thorough
def test_many_classes_are_joined_by_anchors(shared: duckdb.DuckDBPyConnection) -> None:
    """Above 65,536 classes a few columns find the candidates, of which each is compared in full."""
    random, rows = np.random.default_rng(5), 70_000
    columns = [random.integers(0, width, rows) for width in (900, 70, 40, 3, 2)]
    holes = np.zeros((rows, len(columns)), dtype=bool)
    holes[:300] = random.random((300, len(columns))) < 0.3
    for place, column in enumerate(columns):
        column[150:300] = columns[place][1_000:1_150]  # so that rows with NULLs match others in all their columns
    names = [f"c{place}" for place in range(len(columns))]
    table = pa.table([pa.array(column, mask=holes[:, place]) for place, column in enumerate(columns)], names)
    shared.register("many", table.append_column("id", pa.array(np.arange(rows))))
    is_open = holes.any(axis=1)
    _, numbers = np.unique(np.stack(columns)[:, ~is_open], axis=1, return_inverse=True)
    expected = np.zeros(rows)
    expected[~is_open] = np.bincount(numbers.ravel())[numbers.ravel()]
    for own in np.flatnonzero(is_open):
        pairs = [(column == column[own], holes[:, place], holes[own, place]) for place, column in enumerate(columns)]
        matches = np.logical_and.reduce([same | hole | own_hole for same, hole, own_hole in pairs])
        alike = np.logical_and.reduce([np.where(own_hole, hole, same & ~hole) for same, hole, own_hole in pairs])
        expected[matches & ~alike] += 0.5
        expected[own] += alike.sum() + (matches & ~is_open).sum()
    assert expected[is_open].max() > 2
    found = shared.execute(
        f"SELECT sample_frequency FROM anon.individual_risk('many', {names}, nulls := 'any', alpha := 0.5) ORDER BY id"
    ).fetchnumpy()
    np.testing.assert_allclose(found["sample_frequency"], expected)


@pytest.mark.parametrize(("alpha", "singles", "under_3"), [(1, 83, 162), (0.5, 83, 222), (0, 159, 286)])
def test_sdcmicro_on_a_table_with_nulls(
    con: duckdb.DuckDBPyConnection, alpha: float, singles: int, under_3: int
) -> None:
    con.execute(f"CREATE TABLE gaps AS FROM '{data_file('risk/testdata_na.csv')}'").fetchall()
    found = con.execute(
        f"""SELECT k, singletons, rows_under_3
            FROM anon.k_anonymity('gaps', {KEYS}, nulls := 'any', alpha := {alpha})"""
    ).fetchall()
    assert found == [(1, singles, under_3)]
