"""Special uniques: against brute force over all sets of columns, and the numbers that sdcMicro prints."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from typing import NamedTuple

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from duckanon._measure.assess.special_uniques import MOST_BYTES, Cells, _score_cells
from tests.profiles import dear
from tests.sqltest import data_file

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
ADULT = ["age", "education", "marital_status", "native_country", "occupation", "race", "sex", "workclass"]
TINY = [(1, 1, 1, 1), (1, 1, 2, 1), (1, 2, 1, 1), (2, 1, 1, 2), (2, 2, 1, 1), (2, 2, 1, 2), (3, 1, 2, 2)]


class Case(NamedTuple):
    """A table, a person for each row, and the options."""

    rows: list[tuple]
    people: list[int | None]
    max_size: int | None
    weighting: str
    nulls: str
    has_people: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    width = draw(st.integers(1, 6))
    row = st.tuples(*[st.sampled_from([0, 1, 2, None])] * width)
    rows = draw(st.lists(row, min_size=1, max_size=25))
    people = draw(st.lists(st.sampled_from([1, 2, 3, 4, None]), min_size=len(rows) - 1, max_size=len(rows) - 1))
    size, weighting = draw(st.sampled_from([None, 1, 2, 9])), draw(st.sampled_from(["factorial", "share"]))
    return Case(rows, [1, *people], size, weighting, draw(st.sampled_from(["drop", "value"])), draw(st.booleans()))


def fill(con: duckdb.DuckDBPyConnection, rows: list[tuple], people: list) -> list[str]:
    """Make the table `people` of some rows; return the names of their columns."""
    cols = [f"c{place}" for place in range(len(rows[0]))]
    values = [pa.array(column, pa.int32()) for column in zip(*rows, strict=True)]
    random_table = pa.table([*values, pa.array(people, pa.int32()), range(len(rows))], names=[*cols, "who", "place"])
    con.register("random_table", random_table)
    con.execute("CREATE OR REPLACE TABLE people AS FROM random_table").fetchall()
    return cols


def counted(case: Case, columns: tuple[int, ...]) -> dict[tuple, int]:
    """Count the people of each combination of values; rows are people where nobody is named."""
    holders = defaultdict(set)
    for place, row in enumerate(case.rows):
        holder = case.people[place] if case.has_people else place
        holders[tuple(row[column] for column in columns)] |= set() if holder is None else {holder}
    return {values: len(held_by) for values, held_by in holders.items()}


def minimal_sets(case: Case) -> list[list[tuple[int, ...]]]:
    """Find the minimal unique sets of every row, from the smallest to the largest."""
    width = len(case.rows[0])
    found: list[list[tuple[int, ...]]] = [[] for _ in case.rows]
    for size in range(1, min(case.max_size or width, width) + 1):
        for columns in itertools.combinations(range(width), size):
            people = counted(case, columns)
            for row, sets in zip(case.rows, found, strict=True):
                values = tuple(row[column] for column in columns)
                is_counted = case.nulls == "value" or None not in values
                if is_counted and people[values] <= 1 and not any(set(small) <= set(columns) for small in sets):
                    sets.append(columns)
    return found


def weight(width: int, size: int, weighting: str) -> float:
    if weighting == "factorial":
        return math.factorial(width - size)
    return (2 ** (width - size) - 1) * math.factorial(size) * math.factorial(width - size) / math.factorial(width)


def expected_rows(case: Case, sampling_fraction: float) -> list[tuple]:
    """Return what anon.special_uniques should say of each row that has a minimal set."""
    width, every = len(case.rows[0]), minimal_sets(case)
    people = counted(case, tuple(range(width)))
    pairs = sum(people[row] == 2 for row in case.rows)
    weights = [[weight(width, len(columns), case.weighting) for columns in sets] for sets in every]
    scores = [sum(of_row) for of_row in weights]
    power = 1 + (8 - width) / 20
    inverse = sum(score**-power for score in scores if score > 0)
    expected = []
    for place, (sets, of_row, score) in enumerate(zip(every, weights, scores, strict=True)):
        if not sets:
            continue
        largest = min(case.max_size or width, width)
        by_size = [sum(len(columns) == size for columns in sets) for size in range(1, largest + 1)]
        odds = pairs * (1 - sampling_fraction) / sampling_fraction
        dis = 1 / (1 + odds / (score**power * inverse)) if score else 0
        shares = [
            sum(own for own, columns in zip(of_row, sets, strict=True) if column in columns) / (score or 1)
            for column in range(width)
        ]
        expected.append((place, len(sets), by_size, score, dis, shares))
    return expected


def check(con: duckdb.DuckDBPyConnection, case: Case) -> None:
    cols = fill(con, case.rows, case.people)
    options = f"max_size := {case.max_size or 'NULL'}, weighting := '{case.weighting}', nulls := '{case.nulls}'"
    options += ", person := 'who'" if case.has_people else ""
    found = con.execute(
        f"""SELECT place, unique_sets, sets_by_size, suda_score, dis_score, contributions
            FROM anon.special_uniques('people', {cols}, sampling_fraction := 0.2, {options}) ORDER BY place"""
    ).fetchall()
    expected = expected_rows(case, 0.2)
    assert [row[:3] for row in found] == [row[:3] for row in expected]
    for own, wanted in zip(found, expected, strict=True):
        assert own[3:5] == pytest.approx(wanted[3:5], rel=1e-9)
        assert list(own[5]) == cols
        assert list(own[5].values()) == pytest.approx(wanted[5], rel=1e-9)
    in_all = con.execute(f"FROM anon.special_unique_columns('people', {cols}, {options})").fetchall()
    total, every = sum(row[3] for row in expected), minimal_sets(case)
    assert sorted(row[0] for row in in_all) == cols
    for name, unique_sets, row_count, contribution in in_all:
        column = cols.index(name)
        assert unique_sets == sum(column in columns for sets in every for columns in sets)
        assert row_count == sum(any(column in columns for columns in sets) for sets in every)
        assert contribution == pytest.approx(sum(row[3] * row[5][column] for row in expected) / (total or 1))


@dear
@given(case=cases())
def test_against_brute_force(shared: duckdb.DuckDBPyConnection, case: Case) -> None:
    check(shared, case)


@pytest.mark.thorough
@pytest.mark.parametrize(("rows", "has_people", "nulls"), [(900, False, "drop"), (500, True, "value")])
def test_tables_large_enough_to_collapse(
    shared: duckdb.DuckDBPyConnection, rows: int, has_people: bool, nulls: str
) -> None:
    """Cells are put together and left out of the walk where there are hundreds; both are taken one by one here."""
    draw = random.Random(rows)
    distinct = (40, 12, 5, 3, 2)
    drawn = [tuple(min(draw.randrange(n), draw.randrange(n)) or None for n in distinct) for _ in range(rows)]
    people = [draw.randrange(1, rows // 2) for _ in range(rows)]
    check(shared, Case(drawn, people, None, "factorial", nulls, has_people))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_larger_tables(shared: duckdb.DuckDBPyConnection, seed: int) -> None:
    draw = random.Random(seed)
    distinct = [draw.choice([2, 3, 6, 20, 150]) for _ in range(6)]
    drawn = [tuple(min(draw.randrange(n), draw.randrange(n)) or None for n in distinct) for _ in range(6000)]
    people = [draw.randrange(1, 3000) for _ in drawn]
    check(shared, Case(drawn, people, draw.choice([None, 3]), "share", draw.choice(["drop", "value"]), seed % 3 == 0))


def test_rows_that_are_special_are_those_under_two(con: duckdb.DuckDBPyConnection) -> None:
    """Whoever is alone in all columns has a minimal set, people or rows, and nobody else has."""
    con.execute(
        """CREATE TABLE people AS
           SELECT i * 7 % 11 AS a, i * 5 % 13 AS b, i % 3 AS c, nullif(i // 2, 5) AS who FROM range(150) t(i)"""
    ).fetchall()
    for options in ("", ", person := 'who'"):
        (under_two,) = con.execute(
            f"SELECT rows_under_2 FROM anon.k_anonymity('people', ['a', 'b', 'c']{options})"
        ).fetchall()[0]
        (found,) = con.execute(
            f"SELECT count(*) FROM anon.special_uniques('people', ['a', 'b', 'c']{options})"
        ).fetchall()[0]
        assert found == under_two > 0


def differences(con: duckdb.DuckDBPyConnection, cols: list[str], golden: str, options: str) -> tuple:
    """Score `people` and return the largest differences from sdcMicro's numbers: score, DIS, contributions."""
    con.execute(f"CREATE OR REPLACE TABLE golden AS FROM {golden}").fetchall()
    contributions = [name for name in con.table("golden").columns if name.endswith("_contribution")]
    more = "".join(
        f', abs(coalesce(own.contributions."{name.removesuffix("_contribution")}", 0) - golden.{name})'
        for name in contributions
    )
    return con.execute(
        f"""SELECT max(abs(coalesce(suda_score, 0) - golden.score)), max(abs(coalesce(dis_score, 0) - golden.dis)),
                   max(greatest(0{more})), count(*)
            FROM golden LEFT JOIN (FROM anon.special_uniques('people', {cols}, {options})) AS own
                 ON own.place = golden.row"""
    ).fetchall()[0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "cols", "weighting"),
    [
        ("testdata_suda_origTRUE", KEYS, "factorial"),
        ("testdata_suda_origFALSE", KEYS, "share"),
        ("testdata_suda_age6", ["urbrur", "roof", "electcon", "relat", "sex", "age"], "factorial"),
    ],
)
def test_sdcmicro_row_by_row(con: duckdb.DuckDBPyConnection, name: str, cols: list[str], weighting: str) -> None:
    """DIS is a single precision number in sdcMicro."""
    con.execute(
        f"CREATE TABLE people AS SELECT *, row_number() OVER () AS place FROM '{data_file('risk/testdata.csv')}'"
    ).fetchall()
    golden = f"'{data_file(f'risk/{name}.csv')}'"
    score, dis, contribution, rows = differences(con, cols, golden, f"weighting := '{weighting}'")
    assert score < 1e-9
    assert dis < 2e-7
    assert contribution < 1e-12
    assert rows == 4580
    sets = con.execute(f"SELECT sets_by_size FROM anon.special_uniques('people', {KEYS})").fetchall()
    assert [sum(column) for column in zip(*(by_size for (by_size,) in sets), strict=True)] == [1, 11, 94, 86, 35, 7, 1]


@pytest.mark.thorough
def test_sdcmicro_on_adult(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        f"""CREATE TABLE people AS SELECT *, row_number() OVER () AS place FROM '{data_file("adult.csv")}'
            WHERE workclass <> '?' AND occupation <> '?' AND native_country <> '?'"""
    ).fetchall()
    golden = f"'{data_file('risk/adult_suda_30162.csv')}'"
    score, dis, _, rows = differences(con, ADULT, golden, "weighting := 'factorial'")
    assert (score, rows) == (0, 30162)
    assert dis < 1e-12
    (in_sets,) = con.execute(f"SELECT sum(unique_sets) FROM anon.special_unique_columns('people', {ADULT})").fetchall()[
        0
    ]
    by_size = [2, 1198, 13852, 20569, 9287, 1616, 119, 5]  # as sdcMicro counts them
    assert in_sets == sum(size * sets for size, sets in enumerate(by_size, 1))


@pytest.mark.parametrize("every", [80, pytest.param(1, marks=pytest.mark.thorough)])
def test_sdcmicro_on_random_tables(con: duckdb.DuckDBPyConnection, every: int) -> None:
    con.execute(f"CREATE TABLE tables AS FROM '{data_file('risk/suda_random.csv')}'").fetchall()
    for number, width in con.execute('SELECT DISTINCT "set", M FROM tables ORDER BY ALL').fetchall()[::every]:
        cols = [f"V{place}" for place in range(1, width + 1)]
        con.execute(
            f"""CREATE OR REPLACE TABLE people AS SELECT {", ".join(cols)}, "row" AS place FROM tables
                WHERE "set" = {number}"""
        ).fetchall()
        golden = f'(SELECT "row", score, dis FROM tables WHERE "set" = {number})'
        score, dis, _, _ = differences(con, cols, golden, "weighting := 'factorial'")
        assert (score, dis < 2e-7) == (0, True), number


def test_sdcmicro_on_a_table_with_nulls(con: duckdb.DuckDBPyConnection) -> None:
    """A NULL is in no minimal set and matches nothing, so that the others' sets stay."""
    rows = [list(row) for row in TINY]
    rows[1][2] = rows[6][0] = None
    cols = fill(con, [tuple(row) for row in rows], [None] * 7)
    query = f"SELECT place, suda_score FROM anon.special_uniques('people', {cols})"
    found = dict(con.execute(query).fetchall())
    assert [found.get(place, 0) for place in range(7)] == [2, 0, 2, 3, 2, 2, 6]
    golden = con.execute(f"SELECT score FROM '{data_file('risk/suda_tiny_na.csv')}' ORDER BY row").fetchall()
    assert [score for (score,) in golden] == [2, 0, 2, 3, 2, 2, 6]


def test_too_many_sets_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    cols = ", ".join(f"i % {place + 2} AS c{place}" for place in range(24))
    con.execute(f"CREATE TABLE wide AS SELECT {cols} FROM range(50) t(i)").fetchall()
    names = [f"c{place}" for place in range(24)]
    with pytest.raises(duckdb.Error, match=r"anon.special_uniques: up to 24 of 24 columns make 16,777,215 sets, more "):
        con.execute(f"FROM anon.special_uniques('wide', {names})").fetchall()
    assert len(con.execute(f"FROM anon.special_uniques('wide', {names}, max_size := 2)").fetchall()) == 50


def test_as_many_sets_as_bytes_hold_a_bit_of_each_row() -> None:
    """20 columns make 21,699 sets of up to five: of 8 * 2^31 bits each of 800,000 rows has 21,474."""
    count = 800_000
    assert 8 * MOST_BYTES // count < sum(math.comb(20, size) for size in range(1, 6)) < 9 * MOST_BYTES // count
    nothing = np.zeros(count, np.int8)
    with pytest.raises(ValueError, match=r"make 21,699 sets, more than 21,474"):
        _score_cells(Cells([None] * 20, nothing, None, nothing, nothing, 0), 5, "sdcmicro")
