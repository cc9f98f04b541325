"""anon.suppress_cells: the fewest cells, by brute force, and fewer than sdcMicro; k people agree with every record."""

from __future__ import annotations

import csv
import itertools

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duckanon._core.common.people import NOBODY
from duckanon._methods.suppress.suppress_cells import choose_cells, weigh_columns
from tests.profiles import dear
from tests.sqltest import data_file

Connection = duckdb.DuckDBPyConnection
KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]

tables = st.tuples(st.integers(3, 30), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        arrays(np.int64, shape, elements=st.integers(0, 2)),
        arrays(np.bool_, shape, elements=st.sampled_from([False, False, False, True])),
        arrays(np.int64, shape[0], elements=st.integers(NOBODY, 2 * shape[0] // 3)),
    )
)


def people_among(rows: np.ndarray, people: np.ndarray | None) -> int:
    return int(rows.sum()) if people is None else len(set(people[rows].tolist()) - {NOBODY})


def agreeing(codes: np.ndarray, is_null: np.ndarray, row: int) -> np.ndarray:
    """The records that agree with one, where NULL agrees with anything."""
    return ((codes == codes[row]) | is_null | is_null[row]).all(axis=1)


@given(tables, st.integers(2, 4), st.booleans(), st.booleans())
def test_k_people_agree_with_every_record(table, k: int, with_nulls: bool, with_people: bool) -> None:
    codes, is_null, people = table
    is_null = is_null & with_nulls
    codes, whose = np.where(is_null, 3, codes), people if with_people else None
    if people_among(np.ones(len(codes), bool), whose) < k:
        return
    costs = weigh_columns([str(j) for j in range(codes.shape[1])], [3] * codes.shape[1], [])
    cells = choose_cells(codes, is_null, whose, k, costs, "any")
    assert not (cells & is_null).any()
    after = is_null | cells
    for row in range(len(codes)):
        assert people_among(agreeing(codes, after, row), whose) >= k
        # NULLs that other records got do not count: the original table is what an attacker may know.
        assert people_among(agreeing(codes, is_null | after[row], row), whose) >= k
    strict = is_null | choose_cells(codes, is_null, whose, k, costs, "value")
    released = np.where(strict, -1, codes)
    for row in released:
        assert people_among((released == row).all(axis=1), whose) >= k


@given(tables, st.integers(2, 4), st.booleans())
def test_no_record_could_do_with_fewer_cells(table, k: int, with_people: bool) -> None:
    codes, _, people = table
    whose = people if with_people else None
    if people_among(np.ones(len(codes), bool), whose) < k:
        return
    columns = codes.shape[1]
    costs = weigh_columns([str(j) for j in range(columns)], [3] * columns, [])
    cells = choose_cells(codes, np.zeros(codes.shape, bool), whose, k, costs, "any")
    for row, chosen in zip(codes, cells, strict=True):
        ways = [
            np.isin(np.arange(columns), left)
            for n in range(columns + 1)
            for left in itertools.combinations(range(columns), n)
        ]
        enough = [way for way in ways if people_among((codes[:, way] == row[way]).all(axis=1), whose) >= k]
        assert costs[chosen].sum() == pytest.approx(min(costs[~way].sum() for way in enough))


def test_importance_decides_among_equals() -> None:
    """Either column alone would do for the record (1, 1)."""
    codes = np.array([[0, 1]] * 3 + [[1, 0]] * 3 + [[1, 1]])
    nothing = np.zeros(codes.shape, bool)
    for important, place in ((["a"], 1), (["b"], 0)):
        cells = choose_cells(codes, nothing, None, 3, weigh_columns(["a", "b"], [2, 2], important), "any")
        assert cells.sum() == 1
        assert cells[-1, place]


def test_columns_of_many_values_matter_least() -> None:
    costs = weigh_columns(["a", "b", "c", "d"], [9, 2, 5, 7], ["d"])
    assert np.argsort(costs).tolist() == [0, 2, 1, 3]
    assert costs.sum() < 5


def survey() -> pa.Table:
    rows = list(csv.DictReader(data_file("risk/testdata.csv").open()))
    return pa.table({name: [int(row[name]) for row in rows] for name in KEYS})


@pytest.mark.thorough
@pytest.mark.parametrize(("k", "sdcmicro"), [(3, 293), (5, 500)])
def test_fewer_cells_than_sdcmicro(con: Connection, k: int, sdcmicro: int) -> None:
    con.register("survey", survey())
    con.execute(f"CREATE TABLE released AS FROM anon.suppress_cells('survey', {KEYS}, {k})").fetchall()
    sums = ", ".join(f"count(*) - count({name})" for name in KEYS)
    cells = con.execute(f"SELECT {sums} FROM released").fetchall()[0]
    assert sum(cells) < 0.97 * sdcmicro
    assert cells[KEYS.index("relat")] == max(cells)
    assert cells[KEYS.index("sex")] == 0
    found = con.execute(f"SELECT min(sample_frequency) FROM anon.individual_risk('released', {KEYS}, nulls := 'any')")
    assert found.fetchall() == [(k,)]


@dear
@given(tables, st.integers(2, 3), st.sampled_from(["any", "value"]))
def test_other_cells_stay_as_they_were(shared: Connection, table, k: int, nulls: str) -> None:
    codes, is_null, _ = table
    if len(codes) < k:
        return
    names = [f"c{place}" for place in range(codes.shape[1])]
    columns = {name: pa.array(codes[:, place], mask=is_null[:, place]) for place, name in enumerate(names)}
    shared.register("source", pa.table({**columns, "id": np.arange(len(codes))}))
    call = f"anon.suppress_cells('source', {names}, {k}, keep := ['id'], narrowing := ['id'], nulls := '{nulls}')"
    same = " AND ".join(f"(r.{name} IS NULL OR r.{name} = s.{name})" for name in names)
    found = shared.execute(f"SELECT count(*) FROM {call} AS r JOIN source AS s USING (id) WHERE {same}").fetchall()
    assert found == [(len(codes),)]


@pytest.mark.thorough
def test_a_large_table() -> None:
    codes = np.random.default_rng(0).zipf(1.7, size=(200_000, 6)) % 12
    costs = weigh_columns([str(j) for j in range(6)], [12] * 6, [])
    cells = choose_cells(codes, np.zeros(codes.shape, bool), None, 5, costs, "any")
    assert 0 < cells.mean() < 0.1
