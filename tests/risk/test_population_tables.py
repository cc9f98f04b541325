"""Risk against a table of the population: brute force, and the numbers of ARX."""

from __future__ import annotations

import re
from collections import defaultdict

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given
from scipy.stats import poisson

from tests.profiles import dear
from tests.sqltest import data_file

ROW = st.tuples(
    st.sampled_from([1, 2, None]), st.sampled_from(["1", "x", None]), st.sampled_from(["p", "q", "r", "s", None])
)


def fill(con: duckdb.DuckDBPyConnection, name: str, rows: list[tuple], kind: pa.DataType) -> None:
    """Make a table of a, b and who; the types of a differ between the tables."""
    columns = zip(*rows, strict=True)
    kinds = {"a": kind, "b": pa.string(), "who": pa.string()}
    drawn = pa.table({key: pa.array(values, own) for (key, own), values in zip(kinds.items(), columns, strict=True)})
    con.register("drawn", drawn)
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM drawn").fetchall()


def classes(rows: list[tuple], places: list[int], nulls: str, person: bool) -> tuple[dict, dict]:
    """Return the people of each class, and its rows."""
    people, counts = defaultdict(set), defaultdict(int)
    for number, row in enumerate(rows):
        key = tuple(row[place] for place in places)
        if nulls == "value" or None not in key:
            counts[key] += 1
            people[key] |= ({row[2]} - {None}) if person else {number}
    return people, counts


@pytest.mark.thorough
@dear
@given(
    sample=st.lists(ROW, min_size=1, max_size=15),
    others=st.lists(ROW, max_size=15),
    places=st.sampled_from([[0], [1], [0, 1]]),
    nulls=st.sampled_from(["value", "drop"]),
    person=st.booleans(),
    is_subset=st.booleans(),
    k=st.integers(1, 4),
)
def test_against_brute_force(
    shared: duckdb.DuckDBPyConnection,
    sample: list[tuple],
    others: list[tuple],
    places: list[int],
    nulls: str,
    person: bool,
    is_subset: bool,
    k: int,
) -> None:
    population = sample + others if is_subset or not others else others
    fill(shared, "sample", sample, pa.int32())
    fill(shared, "population", population, pa.float64())
    own, row_counts = classes(sample, places, nulls, person)
    known, _ = classes(population, places, nulls, person)
    everybody = set().union(*own.values()) if own else set()
    arguments = f"{[['a', 'b'][place] for place in places]}, 'population', nulls := '{nulls}'"
    arguments += ", person := 'who'" if person else ""
    if not own or not everybody:
        with pytest.raises(duckdb.InvalidInputException, match=r"no rows to look at|NULL in every row"):
            shared.execute(f"FROM anon.k_map('sample', {arguments})").fetchall()
        return
    sizes = {key: len(known.get(key, ())) for key in own}
    below = [key for key in own if sizes[key] < k]
    (found,) = shared.execute(f"FROM anon.k_map('sample', {arguments}, k := {k})").fetchall()
    outside = sum(row_counts[key] for key in own if not sizes[key])
    rows_below = sum(row_counts[key] for key in below)
    smallest = min(map(len, own.values()))
    assert found == (min(sizes.values()), smallest, None, len(below), rows_below, outside)

    risk = {key: 1 / max(sizes[key], len(own[key]), 1) for key in own}
    per_person = [max(risk[key] for key in own if who in own[key]) for who in everybody]
    journalist = shared.execute(
        f"""SELECT maximum_risk, average_risk, rows_at_risk, people_at_risk
            FROM anon.reidentification_risk('sample', {arguments.replace("'pop", "population := 'pop")},
                                            threshold := 0.4)
            WHERE attacker = 'journalist'"""
    ).fetchall()[0]
    assert journalist == pytest.approx(
        (
            max(risk.values()),
            sum(per_person) / len(per_person),
            sum(row_counts[key] for key in own if risk[key] > 0.4),
            sum(own_risk > 0.4 for own_risk in per_person),
        )
    )

    shares = {key: min(len(own.get(key, ())) / len(known[key]), 1) for key in known if known[key]}
    if not shares:
        return
    presence = shared.execute(f"FROM anon.delta_presence('sample', {arguments})").fetchall()[0]
    expected = (min(shares.values()), max(shares.values()))
    assert presence[:2] == pytest.approx(expected)
    nearest = {one: max(shares[key] for key in shares if one in known[key]) for one in set().union(*known.values())}
    people = list(nearest.values())  # each once, whatever the number of their classes
    assert presence[3:6] == (len(shares), people.count(0), people.count(1))


@dear
@given(
    st.integers(1, 12), st.integers(12, 3000), st.sampled_from([0.001, 0.05, 0.3]), st.booleans(), st.integers(1, 60)
)
def test_estimates_against_the_distribution(
    shared: duckdb.DuckDBPyConnection, size: int, population: int, significance: float, truncated: bool, k: int
) -> None:
    """One class: the size that is needed for k, found by trying all, and the largest k that needs no more."""

    def needed(wished: int) -> int:
        mean = wished * size / population
        events, first = (1, 1) if truncated else (0, 2)
        nobody = poisson.pmf(0, mean) if truncated else 0
        while (poisson.cdf(events, mean) - nobody) / (1 - nobody) < 1 - significance:
            events += 1
        return min(wished, events + first)

    shared.execute(f"CREATE OR REPLACE TABLE alike AS SELECT 1 AS a FROM range({size})").fetchall()
    model = "truncated" if truncated else "poisson"
    found, needed_class = shared.execute(
        f"""SELECT k, needed_class FROM anon.k_map('alike', ['a'], {population}, k := {k},
                                                   significance := {significance}, model := '{model}')"""
    ).fetchall()[0]
    assert needed_class == needed(k)
    assert needed(found) <= size < needed(found + 1)


def every_tenth(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables adult, the 30,162 complete rows, and tenth, the sample that ARX was given."""
    complete = "'?' NOT IN (workclass, occupation, native_country)"
    con.execute(f"CREATE TABLE adult AS FROM read_csv('{data_file('adult.csv')}') WHERE {complete}").fetchall()
    con.execute("CREATE TABLE tenth AS SELECT * FROM adult WHERE rowid % 10 = 9").fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["race__education", "sex__workclass", "sex_marital__education"])
def test_presence_of_arx(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """delta presence by bisection of ARX's verdict, k-map by its largest k."""
    every_tenth(con)
    text = data_file(f"risk/arx_criteria_{name}.txt").read_text()
    columns = ["marital_status" if key == "marital" else key for key in name.partition("__")[0].split("_")]
    low, high = con.execute(
        f"SELECT delta_min, delta_max FROM anon.delta_presence('tenth', {columns}, 'adult')"
    ).fetchall()[0]
    for found, expected in ((high, r"dmax \(dmin 0\)"), (low, r"dmin \(dmax 1\)")):
        (critical,) = re.findall(rf"DPresence {expected} critical in \[(\S+), (\S+)\]", text)
        assert float(critical[0]) - 1e-9 <= found <= float(critical[1]) + 1e-9
    (k,) = con.execute(f"SELECT k FROM anon.k_map('tenth', {columns}, 'adult')").fetchall()[0]
    largest = re.findall(r"KMap subset max k (>?)(\d+)", text)[0]
    assert k > int(largest[1]) if largest[0] else k == int(largest[1])


def test_journalist_of_arx(con: duckdb.DuckDBPyConnection) -> None:
    every_tenth(con)
    keys = ["age", "marital_status", "race", "sex"]
    number = r"(\S+)"
    line = rf"t={number} prosecutor rar={number} max=1.0 succ={number} journalist rar={number} max=1.0 succ={number} "
    cases = re.findall(line + rf"marketer={number}", data_file("risk/arx_kmap.txt").read_text())
    assert len(cases) == 3
    for threshold, *expected in cases:
        rows = con.execute(
            f"""SELECT fraction_at_risk, average_risk
                FROM anon.reidentification_risk('tenth', {keys}, population := 'adult', threshold := {threshold})"""
        ).fetchall()
        found = [value for row in rows for value in row if value is not None]
        assert found == pytest.approx([float(value) for value in expected], rel=1e-12)


CASES = re.compile(r"kmap (.*)Poisson k=(\d+) sig=(\S+) N=(\d+) derivedK=(\d+)")


@pytest.mark.thorough
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(1, 6))])
def test_estimated_k_map_of_arx(con: duckdb.DuckDBPyConnection, part: int) -> None:
    cases = CASES.findall(data_file("risk/arx_kmap.txt").read_text())
    assert len(cases) == 72
    con.execute("CREATE TABLE people AS SELECT 1 AS a FROM range(30162)").fetchall()
    for prefix, k, significance, population, expected in cases[part::6]:
        model = "truncated" if prefix else "poisson"
        (found,) = con.execute(
            f"""SELECT needed_class FROM anon.k_map('people', ['a'], {population}, k := {k},
                                                    significance := {significance}, model := '{model}')"""
        ).fetchall()[0]
        assert found == int(expected), (prefix, k, significance, population)
