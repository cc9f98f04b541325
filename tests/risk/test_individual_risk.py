"""Individual and global risk: against the definitions, brute force, and the numbers that sdcMicro prints."""

from __future__ import annotations

import math
from collections import defaultdict

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from scipy.integrate import quad
from scipy.special import hyp2f1

from tests.profiles import dear
from tests.sqltest import data_file

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
TYPES = {"a": pa.int32(), "b": pa.string(), "c": pa.bool_(), "w": pa.float64(), "home": pa.int32(), "who": pa.string()}
ROW = st.tuples(
    st.sampled_from([1, 2, None]),
    st.sampled_from(["1", "x", None]),
    st.sampled_from([True, None]),
    st.sampled_from([0.5, 1.0, 3.0, 40.0]),
    st.sampled_from([1, 2, None]),
    st.sampled_from(["p", "q", "r", None]),
)
TABLES = st.lists(ROW, min_size=1, max_size=25).filter(lambda rows: any(row[5] is not None for row in rows))
PLACES = st.sets(st.sampled_from([0, 1, 2]), min_size=1)


def fill(con: duckdb.DuckDBPyConnection, rows: list[tuple]) -> None:
    numbered = [(*row, place) for place, row in enumerate(rows)]
    columns = zip((TYPES | {"place": pa.int32()}).items(), zip(*numbered, strict=True), strict=True)
    random_table = pa.table({name: pa.array(values, kind) for (name, kind), values in columns})
    con.register("random_table", random_table)
    con.execute("CREATE OR REPLACE TABLE people AS FROM random_table").fetchall()


def expected_risk(frequency: float, weight: float) -> float:
    """The integral of v^(f - 1) / (1 + c v) from 0 to 1."""
    if frequency == 0:
        return 1.0
    p = min(frequency / weight, 1)
    if p == 1:
        return 1 / frequency
    return quad(lambda v: v ** (frequency - 1) / (1 + (1 - p) / p * v), 0, 1, epsabs=1e-14, limit=200)[0]


def do_match(own: tuple, other: tuple) -> bool:
    return all(x is None or y is None or x == y for x, y in zip(own, other, strict=True))


def matched(rows: list[tuple], places: list[int], own: tuple, alpha: float) -> tuple[float, float]:
    """Return frequency and weight of a row where NULL matches anything."""
    frequency = weight = 0.0
    for row in rows:
        other = tuple(row[place] for place in places)
        if do_match(own, other):
            counts = alpha if other != own and None in other else 1
            frequency, weight = frequency + counts, weight + counts * row[3]
    return frequency, weight


@pytest.mark.thorough
@dear
@given(rows=TABLES, places=PLACES, nulls=st.sampled_from(["value", "any"]), alpha=st.sampled_from([0, 0.25, 0.5, 1]))
def test_rows_against_brute_force(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], places: set[int], nulls: str, alpha: float
) -> None:
    fill(shared, rows)
    chosen = sorted(places)
    cols = [list(TYPES)[place] for place in chosen]
    options = f"weight := 'w', household := 'home', nulls := '{nulls}', alpha := {alpha}"
    found = shared.execute(
        f"""SELECT sample_frequency, population_frequency, risk, household_risk
            FROM anon.individual_risk('people', {cols}, {options}) ORDER BY place"""
    ).fetchall()
    keys = [tuple(row[place] for place in chosen) for row in rows]
    expected, homes = [], defaultdict(list)
    for place, (row, key) in enumerate(zip(rows, keys, strict=True)):
        same = [other for other, its in zip(rows, keys, strict=True) if its == key]
        counted = (len(same), sum(other[3] for other in same))
        frequency, weight = matched(rows, chosen, key, alpha) if nulls == "any" else counted
        expected.append((frequency, weight, expected_risk(frequency, weight)))
        homes[("nobody's", place) if row[4] is None else row[4]].append(expected[-1][2])
    for place, (own, shown) in enumerate(zip(expected, found, strict=True)):
        home = homes[("nobody's", place) if rows[place][4] is None else rows[place][4]]
        household = 1 - math.prod(1 - risk for risk in home)
        assert shown == pytest.approx((*own, household), rel=1e-5, abs=1e-12)
    overall = shared.execute(f"FROM anon.global_risk('people', {cols}, {options}) LIMIT 1").fetchall()[0]
    assert overall[1] == pytest.approx(sum(risk for _, _, risk in expected), rel=1e-5)
    assert overall[3] == pytest.approx(sum(row[3] for row in found), rel=1e-9)


@pytest.mark.thorough
def test_null_matches_anything_in_a_large_table(con: duckdb.DuckDBPyConnection) -> None:
    """Tables of many classes are joined by a few columns first, and what these find is compared in full."""
    rng = np.random.default_rng(5)
    rows, widths = 110_000, (300, 200, 2, 3)
    codes = np.stack([rng.integers(0, width, rows) for width in widths], axis=1)
    codes[np.arange(0, rows, 400), rng.integers(0, 4, rows // 400)] = -1  # NULL
    codes[::4_000, :2] = -1
    is_open = (codes < 0).any(axis=1)
    names = ["a", "b", "c", "d"]
    columns = {name: pa.array(own, mask=own < 0) for name, own in zip(names, codes.T, strict=True)}
    con.register("gaps", pa.table({"place": range(rows)} | columns))
    found = con.execute(
        f"SELECT sample_frequency FROM anon.individual_risk('gaps', {names}, nulls := 'any') ORDER BY place"
    ).fetchnumpy()["sample_frequency"]
    _, number, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    assert len(counts) > 2**16
    expected = np.where(is_open, 0, counts[number.reshape(-1)])
    for own in np.flatnonzero(is_open):
        matches = ((codes == codes[own]) | (codes < 0) | (codes[own] < 0)).all(axis=1)
        expected[own] = matches.sum()
        expected[matches & ~is_open] += 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.thorough
@dear
@given(rows=TABLES, places=PLACES, population=st.sampled_from([None, 40, 1e6]))
def test_people_against_brute_force(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], places: set[int], population: float | None
) -> None:
    """A person counts once in a class, has the largest risk of the rows, and belongs to the household once."""
    fill(shared, rows)
    chosen = sorted(places)
    cols = [list(TYPES)[place] for place in chosen]
    options = f"population := {population or 'NULL'}, household := 'home', person := 'who'"
    people = {row[5] for row in rows} - {None}
    risk_of, home_of = defaultdict(float), defaultdict(lambda: defaultdict(float))
    for row in rows:
        key = tuple(row[place] for place in chosen)
        members = {other[5] for other in rows if tuple(other[place] for place in chosen) == key} - {None}
        risk = expected_risk(len(members), len(members) * (population or len(people)) / len(people))
        if row[5] is not None:
            risk_of[row[5]] = max(risk_of[row[5]], risk)
            if row[4] is not None:
                home_of[row[4]][row[5]] = max(home_of[row[4]][row[5]], risk)
    expected, risk = shared.execute(
        f"SELECT expected, risk FROM anon.global_risk('people', {cols}, {options.replace('home', 'c_')})".replace(
            ", household := 'c_'", ""
        )
    ).fetchall()[0]
    assert expected == pytest.approx(sum(risk_of.values()), rel=1e-6)
    assert risk == pytest.approx(sum(risk_of.values()) / len(people), rel=1e-6)
    shown = shared.execute(
        f"SELECT DISTINCT home, household_risk FROM anon.individual_risk('people', {cols}, {options}) WHERE home > 0"
    ).fetchall()
    for home, household_risk in shown:
        assert household_risk == pytest.approx(1 - math.prod(1 - own for own in home_of[home].values()), rel=1e-6) or (
            not home_of[home]
        )


@pytest.mark.thorough
@dear
@given(rows=TABLES)
def test_what_a_column_contributes_is_the_risk_without_it(shared: duckdb.DuckDBPyConnection, rows: list[tuple]) -> None:
    fill(shared, rows)
    found = shared.execute("SELECT left_out, expected FROM anon.global_risk('people', ['c', 'a', 'b'])").fetchall()
    assert [left_out for left_out, _ in found] == [None, "a", "b", "c"]
    for left_out, expected in found:
        others = [name for name in ("a", "b", "c") if name != left_out]
        (alone,) = shared.execute(f"SELECT sum(risk) FROM anon.individual_risk('people', {others})").fetchall()[0]
        assert expected == pytest.approx(alone)


@pytest.mark.thorough
@pytest.mark.parametrize("frequency", [1, 1.001, 1.5, 2, 2.75, 3, 4, 5, 5.5, 6, 7.5, 10, 107, 1000, 100_000])
def test_the_expected_risk_is_the_hypergeometric_function(con: duckdb.DuckDBPyConnection, frequency: float) -> None:
    """It was off by 8e-6 at three rows and small p."""
    for p in (1e-8, 1e-5, 1e-3, 0.01, 0.1, 0.3, 0.49, 0.5, 0.7, 0.99):
        (risk,) = con.execute("SELECT anon._expected_risk($1::DOUBLE, $2::DOUBLE)", [frequency, p]).fetchall()[0]
        expected = p / frequency * hyp2f1(1, 1, frequency + 1, 1 - p)
        if math.isnan(expected):  # scipy's, for large classes and small p
            assert p / frequency <= risk <= p / (frequency - 1)
        else:
            assert risk == pytest.approx(expected, rel=2e-6 if frequency % 1 else 1e-9)


def test_sdcmicro_row_by_row(con: duckdb.DuckDBPyConnection) -> None:
    """Frequencies, approximate and exact risk, household risk; sdcMicro's exact risk is NaN for large classes."""
    for name in ("testdata.csv", "testdata_indivrisk.csv", "testdata_indivrisk_hhweights.csv"):
        table = name.removesuffix(".csv")
        con.execute(f"CREATE TABLE {table} AS FROM read_csv('{data_file(f'risk/{name}')}', nullstr = 'NA')").fetchall()
    con.execute("CREATE VIEW numbered AS SELECT *, row_number() OVER () AS place FROM testdata").fetchall()
    for expected, weight in (
        ("testdata_indivrisk", "sampling_weight"),
        ("testdata_indivrisk_hhweights", "household_weights"),
    ):
        approximate = "rk_approx" if weight == "sampling_weight" else "rk"
        options = f"weight := '{weight}', household := 'ori_hid'"
        (differences,) = con.execute(
            f"""SELECT [max(abs(sample_frequency - fk)), max(abs(population_frequency / pop_Fk - 1)),
                        max(abs(own.risk / {approximate} - 1)), max(abs(own.household_risk / hier - 1)),
                        max(abs(exact.risk / rk_exact - 1)) FILTER (NOT isnan(rk_exact))]
                FROM anon.individual_risk('numbered', {KEYS}, {options}, method := 'approximate') AS own
                     JOIN {expected} ON place = {expected}.row
                     JOIN (SELECT place, risk FROM anon.individual_risk('numbered', {KEYS}, {options})) AS exact
                          USING (place)"""
        ).fetchall()[0]
        assert max(differences) < 1e-9, differences


@pytest.mark.thorough
def test_sdcmicro_null_that_matches_anything(con: duckdb.DuckDBPyConnection) -> None:
    """alpha 0 and 1 equal sdcMicro; in between it has risk 0 where we have the integral."""
    path = data_file("risk/testdata_na.csv")
    numbered = f"SELECT *, row_number() OVER () AS place FROM read_csv('{path}', nullstr = ['NA', ''])"
    con.execute(f"CREATE TABLE gaps AS {numbered}").fetchall()
    for alpha in ("0", "0.5", "1"):
        theirs = f"read_csv('{data_file(f'risk/testdata_na_risk_alpha{alpha}.csv')}')"
        (differences,) = con.execute(
            f"""SELECT [max(abs(sample_frequency - fk)), max(abs(population_frequency / pop_Fk - 1)),
                        max(abs(own.risk - rk)) FILTER (rk > 0), max(rk) FILTER (NOT fk BETWEEN 1 AND 2 AND rk = 0)]
                FROM anon.individual_risk('gaps', {KEYS}, weight := 'household_weights', nulls := 'any',
                                          alpha := {alpha}, method := 'approximate') AS own
                     JOIN {theirs} AS theirs ON place = theirs.row"""
        ).fetchall()[0]
        assert max(filter(None, differences), default=0) < 1e-9, (alpha, differences)


@pytest.mark.thorough
def test_sdcmicro_in_all(con: duckdb.DuckDBPyConnection) -> None:
    """Expected re-identifications, their household version, the threshold."""
    con.execute(f"CREATE TABLE testdata AS FROM '{data_file('risk/testdata.csv')}'").fetchall()
    for options, expected in (
        (
            "weight := 'sampling_weight', method := 'approximate', target := 0.001",
            (10.7782989187348, 51.8129274359607, 0.00497512437811),
        ),
        (
            "weight := 'sampling_weight', method := 'approximate', target := 0.01",
            (10.7782989187348, 51.8129274359607, None),
        ),
        ("weight := 'household_weights', method := 'approximate'", (39.4229057064, 196.400603606, None)),
        ("target := 0.01", (412, 1281.72725107, 0.0106382978723)),
    ):
        found = con.execute(
            f"""SELECT expected, household_expected, threshold
                FROM anon.global_risk('testdata', {KEYS}, household := 'ori_hid', {options}) LIMIT 1"""
        ).fetchall()[0]
        assert found[:2] == pytest.approx(expected[:2], rel=1e-9), options
        if expected[2] is None:
            assert found[2] is None, options
            continue
        # theirs is the largest risk that occurs below the threshold at which the mean is the target
        asked, target = options.split("target := ")
        below, mean = con.execute(
            f"""SELECT max(risk) FILTER (risk <= {found[2]!r}), avg(least(risk, {found[2]!r}))
                FROM anon.individual_risk('testdata', {KEYS}, {asked}nulls := 'value')"""
        ).fetchall()[0]
        assert below == pytest.approx(expected[2], rel=1e-9), options
        assert mean == pytest.approx(float(target), rel=1e-9), options
    exact = f"SELECT expected FROM anon.global_risk('testdata', {KEYS}, weight := 'household_weights') LIMIT 1"
    assert con.execute(exact).fetchall()[0][0] == pytest.approx(39.3723053684, rel=1e-9)
