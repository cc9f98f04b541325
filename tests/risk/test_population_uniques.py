"""Population uniques: against ARX's and sdcMicro's numbers, the definitions, and generalized linear models."""

from __future__ import annotations

import itertools
import math
import re

import duckdb
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from duckanon._measure.risk import uniques
from duckanon._measure.risk.uniques import (
    Histogram,
    estimate_shifted_negative_binomial,
    fit_counts,
    pitman,
    zayatz,
)
from tests.profiles import cheap, dear
from tests.sqltest import data_file

KEYS = ["age", "education", "marital_status", "native_country", "occupation", "race", "sex", "workclass"]
ADULT_SIZES = {1: 14021, 2: 2026, 3: 796, 4: 379, 5: 209, 6: 153, 7: 114, 8: 67, 9: 55, 10: 54, 11: 47, 12: 32}


def histogram(sizes: dict[int, int], population: float) -> Histogram:
    return Histogram(np.array(list(sizes), dtype=float), np.array(list(sizes.values()), dtype=float), population)


@cheap
@given(st.dictionaries(st.integers(1, 9), st.integers(1, 20), min_size=1), st.integers(0, 300))
def test_zayatz_is_its_definition(sizes: dict[int, int], others: int) -> None:
    """P_s(1), the probability that a class of s people is met once, is hypergeometric."""
    people = sum(size * classes for size, classes in sizes.items())
    population = people + others
    met_once = {
        size: math.comb(size, 1) * math.comb(population - size, people - 1) / math.comb(population, people)
        for size in sizes
    }
    expected = (
        sizes.get(1, 0) ** 2 / sum(classes * met_once[size] for size, classes in sizes.items()) if 1 in sizes else 0
    )
    found = zayatz(histogram({1: 0} | sizes, population)) if 1 in sizes else 0
    assert found == pytest.approx(expected, rel=1e-9)


def test_pitman_solves_both_equations_of_its_likelihood() -> None:
    """The sums over people and classes, written out."""
    counted = histogram(ADULT_SIZES, 1e6)
    solved = uniques._pitman_newton(counted, *uniques._pitman_starts(counted)[0])
    assert solved is not None
    theta, alpha = solved
    people, classes = int(counted.people), sum(ADULT_SIZES.values())
    places = np.arange(1, classes)
    first = (1 / (theta + places * alpha)).sum() - (1 / (theta + np.arange(1, people))).sum()
    second = (places / (theta + places * alpha)).sum()
    second -= sum(count * sum(1 / (j - alpha) for j in range(1, size)) for size, count in ADULT_SIZES.items())
    assert abs(first) < 2e-6
    assert abs(second) < 2e-6


@pytest.mark.thorough
def test_shifted_negative_binomial_recovers_its_own_classes() -> None:
    """Classes of one and two as a population with known parameters shows them, all of them: ARX's slips lose it."""
    rng = np.random.default_rng(3)
    population = rng.negative_binomial(0.4, 0.2, size=400_000) + 1
    sample = rng.binomial(population, 0.3)
    sizes, classes = np.unique(sample[sample > 0], return_counts=True)
    counted = Histogram(sizes.astype(float), classes.astype(float), float(population.sum()))
    truth = int((population == 1).sum())
    corrected, slipped = (estimate_shifted_negative_binomial(counted, variant) for variant in ("corrected", "arx"))
    assert corrected is not None
    assert abs(corrected / truth - 1) < 0.1
    assert slipped is None or abs(slipped / truth - 1) > abs(corrected / truth - 1)


ODD = [{1: 5}, {1: 1, 2: 1}, {1: 3, 1_000_000: 1}]
SLOW = [{1: 10_000, 2: 20}, {1: 1, 2: 10_000}]


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [*ODD, *(pytest.param(sizes, marks=pytest.mark.thorough) for sizes in SLOW)])
def test_odd_histograms_have_an_answer_or_none(sizes: dict[int, int]) -> None:
    people = sum(size * classes for size, classes in sizes.items())
    for population in (people + 1, 1000 * people, 1e12):
        counted = histogram(sizes, population)
        with np.errstate(all="ignore"):
            found = [
                pitman(counted),
                *(estimate_shifted_negative_binomial(counted, name) for name in ("corrected", "arx")),
            ]
        found.append(zayatz(counted))
        assert all(estimate is None or 0 <= estimate <= population * (1 + 1e-9) for estimate in found), found


def adult(con: duckdb.DuckDBPyConnection) -> None:
    complete = "'?' NOT IN (workclass, occupation, native_country)"
    con.execute(f"CREATE TABLE adult AS FROM read_csv('{data_file('adult.csv')}') WHERE {complete}").fetchall()


@pytest.mark.parametrize("part", [6, *(pytest.param(part, marks=pytest.mark.thorough) for part in (0, 1, 2, 3))])
def test_arx(con: duckdb.DuckDBPyConnection, part: int) -> None:
    """All populations that ARX was asked for; its snb of 0 is none. The corrected one is ours."""
    adult(con)
    text = data_file("risk/arx_adult.txt").read_text()
    line = re.compile(r"N=(\d+) rep=0 zayatz=(\S+) pitman=(\S+) snb=(\S+) dankar=(\S+) model=(\w+) fracD=(\S+)")
    cases = line.findall(text)
    assert len(cases) == 8
    for population, *numbers, model, fraction in cases[part::4]:
        rows = con.execute(
            f"""SELECT method, uniques, fraction, meaning
                FROM anon.population_uniques('adult', {KEYS}, {population}, variant := 'arx')"""
        ).fetchall()
        found = {method: uniques for method, uniques, *_ in rows}
        for method, expected in zip(("zayatz", "pitman", "snb", "dankar"), map(float, numbers), strict=True):
            assert found[method] == (pytest.approx(expected, rel=1e-9) if expected else None), (population, method)
        dankar = next(row for row in rows if row[0] == "dankar")
        assert dankar[2] == pytest.approx(float(fraction), rel=1e-9)
        assert dankar[3].endswith(f": {model.lower()}.")
    (corrected,) = con.execute(
        f"SELECT uniques FROM anon.population_uniques('adult', {KEYS}, 60324) WHERE method = 'snb'"
    ).fetchall()[0]
    assert corrected == pytest.approx(23_056.674, abs=1e-3)


@pytest.mark.thorough
def test_sdcmicro(con: duckdb.DuckDBPyConnection) -> None:
    """modRisk of columns of categories, one weight: the sums over classes of one, as shares of their number."""
    con.execute(f"CREATE TABLE testdata AS FROM '{data_file('risk/testdata.csv')}'").fetchall()
    rows = con.execute(
        f"""SELECT formula, gr1::DOUBLE, gr2::DOUBLE, cells FROM '{data_file("risk/testdata_modrisk.csv")}'
            WHERE columns = 'factor' AND weights = 'sampling_weight' AND method IN ('default', 'IPF')
                  AND bound::DOUBLE = 1"""
    ).fetchall()
    assert len(rows) == 4
    for formula, alone, matches, cells in rows:
        columns = re.findall(r"\w+", formula)
        (found,) = con.execute(
            f"""SELECT list(in_table / {cells}) FROM anon.population_uniques('testdata', {columns}, 458000,
                                                                        variant := 'sdcmicro')
                WHERE starts_with(method, 'log')"""
        ).fetchall()[0]
        assert sorted(found) == pytest.approx(sorted([alone, matches]), rel=1e-7), formula
        (published,) = con.execute(
            f"""SELECT in_table / {cells} FROM anon.population_uniques('testdata', {columns}, 458000)
                WHERE method = 'log_linear'"""
        ).fetchall()[0]
        assert published < alone / 2  # as Elamir and Skinner have it, far fewer are alone in the population


def test_sdcmicro_interaction(con: duckdb.DuckDBPyConnection) -> None:
    """With relat:sex, and a weight for each household: the fit is ours, the sum is written out."""
    con.execute(f"CREATE TABLE testdata AS FROM '{data_file('risk/testdata.csv')}'").fetchall()
    columns = ["urbrur", "roof", "relat", "sex"]
    cells = con.execute(
        f"SELECT {', '.join(columns)}, count(*), max(household_weights) FROM testdata GROUP BY {', '.join(columns)}"
    ).fetchall()
    counts = np.array([cell[4] for cell in cells], dtype=float)
    everybody = counts.sum()
    levels = [np.unique([cell[place] for cell in cells], return_inverse=True)[1] for place in (2, 3)]
    expected = fit_counts(levels, counts, [[0, 1]])
    for place in (0, 1):
        values = np.array([cell[place] for cell in cells])
        expected = expected * np.array([counts[values == value].sum() for value in values]) / everybody
    alone = counts == 1
    unseen = (1 - 1 / np.array([cell[5] for cell in cells])[alone]) * expected[alone]
    assert np.exp(-unseen).mean() == pytest.approx(0.405660803262339, rel=1e-7)
    assert ((1 - np.exp(-unseen)) / unseen).mean() == pytest.approx(0.613131420833705, rel=1e-7)


@pytest.mark.parametrize("interactions", ["NULL", "[['a', 'b']]"])
def test_rows_of_nobody_are_as_good_as_left_out(
    con: duckdb.DuckDBPyConnection, interactions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their values are none of the combinations that there may be at most: people have five by five."""
    monkeypatch.setattr(uniques, "LARGEST_GRID", 25)
    con.execute(
        """CREATE TABLE t AS SELECT i AS who, (i * i % 17) // 4 AS a, i % 5 AS b FROM range(30) AS r(i)
           UNION ALL FROM (VALUES (NULL, 7, 0), (NULL, 7, 8), (NULL, 1, 1))"""
    ).fetchall()
    con.execute("CREATE TABLE people AS FROM t WHERE who IS NOT NULL").fetchall()
    query = "FROM anon.population_uniques('{}', ['a', 'b'], 90, person := 'who', interactions := {})"
    found, expected = (con.execute(query.format(name, interactions)).fetchall() for name in ("t", "people"))
    assert found == expected
    assert all(row[1] is not None for row in found if row[0] == "log_linear")


def likeliest(counts: np.ndarray, interactions: list[tuple[int, ...]]) -> np.ndarray:
    """Fit a Poisson model by iterated weighted least squares, with a column for every effect."""
    axes = range(counts.ndim)
    terms = {
        subset
        for names in interactions
        for size in range(1, len(names) + 1)
        for subset in itertools.combinations(names, size)
    }
    cells = list(itertools.product(*(range(counts.shape[axis]) for axis in axes)))
    columns = [np.ones(len(cells))]
    for term in terms:
        for levels in itertools.product(*(range(1, counts.shape[axis]) for axis in term)):
            columns.append(
                np.array(
                    [all(cell[axis] == level for axis, level in zip(term, levels, strict=True)) for cell in cells],
                    dtype=float,
                )
            )
    design, observed = np.array(columns).T, counts.reshape(-1)
    fitted = observed + 0.1
    linear = np.log(fitted)
    for _ in range(60):
        working = linear + (observed - fitted) / fitted
        root = np.sqrt(fitted)
        effects = np.linalg.lstsq(design * root[:, None], working * root, rcond=None)[0]
        linear = design @ effects
        fitted = np.exp(linear)
    return fitted.reshape(counts.shape)


@dear
@given(
    st.lists(st.integers(1, 30), min_size=24, max_size=24),
    st.sampled_from([[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 1, 2)], [(0, 2), (1, 0)]]),
)
def test_the_fit_is_that_of_least_squares(numbers: list[int], interactions: list[tuple[int, ...]]) -> None:
    counts = np.array(numbers, dtype=float).reshape(2, 3, 4)
    cells = list(itertools.product(range(2), range(3), range(4)))
    joint = sorted({axis for names in interactions for axis in names})
    sums = counts.sum(axis=tuple(set(range(3)) - set(joint)))
    places = [[joint.index(axis) for axis in names] for names in interactions]
    levels = [np.array([cell[axis] for cell in cells]) for axis in joint]
    found = fit_counts(levels, counts.reshape(-1), places).reshape(counts.shape)
    expected = likeliest(sums, [tuple(joint.index(axis) for axis in names) for names in interactions])
    if len(joint) == 2:
        expected = expected[..., None]
    np.testing.assert_allclose(found, np.broadcast_to(expected, counts.shape), rtol=1e-5)


def test_parts_that_have_no_column_in_common_are_independent() -> None:
    rng = np.random.default_rng(1)
    codes = [tuple(int(value) for value in row) for row in rng.integers(0, 3, size=(200, 4))]
    found = fit_counts(list(np.array(codes).T), np.ones(200), [[0, 1], [2, 3]])
    pairs = [np.array([sum(other[a:b] == own[a:b] for other in codes) for own in codes]) for a, b in ((0, 2), (2, 4))]
    np.testing.assert_allclose(found, pairs[0] * pairs[1] / 200)
