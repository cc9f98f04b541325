"""Drawing from a table's distributions: no value of fewer than k people, shares kept, against brute force."""

from __future__ import annotations

import datetime
import decimal
import re
from collections import defaultdict
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, spearmanr

from duckanon import spectral
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.fit import fit_columns
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.grids import Rounded, Steps, Unrounded, find_free_places, grid_of
from duckanon._methods.releasable.marginals import measure_groups
from tests.profiles import cheap

Connection = duckdb.DuckDBPyConnection

REFUSED = re.compile(
    "no value shared by at least|too few numbers inside its range|as an identifier has|the same value in every row"
    "|holds nothing but NULL|too far apart for a double"
)
"""What may be said of a small table instead of a release."""

DAY = datetime.date(1960, 1, 1)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "dense": (pa.int32(), st.integers(0, 9)),
    "gaps": (pa.int64(), st.integers(0, 12).map(lambda n: n * n * 7)),
    "wide": (pa.int64(), st.sampled_from([-(2**63), -(2**63) + 1, -5, 0, 2**53 + 1, 2**53 + 2, 2**63 - 2, 2**63 - 1])),
    "unsigned": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    "cents": (pa.decimal128(9, 2), st.integers(-20, 20).map(lambda n: decimal.Decimal(n).scaleb(-2))),
    "rounded": (pa.float64(), st.integers(-30, 30).map(lambda n: n / 10)),
    "thousands": (pa.float64(), st.integers(-9, 9).map(lambda n: n * 1000.0)),
    "double": (pa.float64(), st.floats(-5, 5) | st.sampled_from([0.0, -0.0, 1 / 3])),
    "next": (pa.float64(), st.integers(0, 9).map(lambda n: 1 + n * 2.0**-52)),
    "float": (pa.float32(), st.floats(-5, 5, width=32) | st.integers(0, 9).map(lambda n: 1 + n * 2.0**-23)),
    "coarse": (pa.float32(), st.integers(0, 30).map(lambda n: 1e6 + n / 16) | st.just(1.1)),
    "half": (pa.float64(), st.integers(0, 9).map(lambda n: n / 2)),
    "day": (pa.date32(), st.integers(0, 30).map(lambda n: DAY + datetime.timedelta(days=n))),
    "moment": (pa.timestamp("us"), st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 2))),
    "text": (pa.string(), st.sampled_from(list("abcdef"))),
    "enum": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(list("abcdef"))),
    "flag": (pa.bool_(), st.booleans()),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[int | None] | None, int]:
    """A table of several types, whose each row is, and k."""
    size = draw(st.integers(8, 60))
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=4, unique=True))
    arrays = {}
    for name in names:
        kind, values = KINDS[name]
        known = st.one_of(values, st.none()) if draw(st.booleans()) else values
        listed = draw(st.lists(known, min_size=size, max_size=size))
        arrays[name] = pa.array(listed, kind.value_type).dictionary_encode().cast(kind) if name == "enum" else (
            pa.array(listed, kind)
        )  # fmt: skip
    people = draw(st.none() | st.lists(st.none() | st.integers(0, 12), min_size=size, max_size=size))
    if people is not None:
        people[:4] = 0, 1, 2, 3
    return pa.table(arrays), people, draw(st.integers(2, 4))


def released(table: pa.Table, people: list[int | None] | None, **options: Any) -> pa.Table | None:
    """A release; None where it was refused for a reason that small tables have."""
    person = {}
    if people is not None:
        table, person = table.append_column("person", pa.array(people, pa.int64())), {"person": "person"}
    try:
        return spectral.copula_synthesize(table, nulls="category", **person, **options).read_all()
    except ValueError as error:
        if not REFUSED.search(str(error)):
            raise
        return None


def holders(values: list[Any], people: list[int | None] | None) -> dict[Any, set]:
    """The people who hold each value."""
    found: dict[Any, set] = defaultdict(set)
    for row, value in enumerate(values):
        person = row if people is None else people[row]
        found[value] |= {person} - {None}
    return found


@pytest.mark.thorough
@given(tables(), st.integers(0, 99))
def test_no_value_of_fewer_than_k_people_is_released(case: tuple, seed: int) -> None:
    table, people, k = case
    found = released(table, people, k=k, rows=300, seed=seed)
    if found is None:
        return
    assert found.schema == table.schema
    for name in table.column_names:
        original = table[name].to_pylist()
        held = holders(original, people)
        drawn = set(found[name].to_pylist())
        assert all(len(held[value]) >= k for value in drawn if value in held)
        known = [value for value in original if value is not None]
        assert all(min(known) <= value <= max(known) for value in drawn if value is not None)
        if name in ("text", "enum", "flag"):
            assert drawn <= set(original)
        if name == "enum":
            assert {value for chunk in found[name].chunks for value in chunk.dictionary.to_pylist()} <= {
                value for value, who in held.items() if len(who) >= k
            }


def values_of(numbers: np.ndarray) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(numbers)])


def distribution(numbers: np.ndarray, people: np.ndarray | None, k: int) -> marginals.Numbers:
    column = fit_columns(pa.table({"x": numbers}), lenient=True)[0].columns[0]
    grid = grid_of(column)
    return marginals.of_numbers(grid, grid.places(pa.array(numbers)), people, k)


@cheap
@given(
    st.lists(st.integers(0, 40) | st.integers(0, 3), min_size=2, max_size=80),
    st.integers(0, 15),
    st.integers(2, 5),
    st.booleans(),
)
def test_pieces_are_those_of_k_people(numbers: list[int], most: int, k: int, are_people: bool) -> None:
    """Values that many hold are pieces of their own; all others come in groups of k people, or with the nearest."""
    values = np.array(numbers)
    people = np.random.default_rng(len(numbers)).integers(-1, most + 1, len(values)) if are_people else None
    whose = [row if people is None else (None if people[row] < 0 else people[row]) for row in range(len(values))]
    held = holders(numbers, whose)
    pieces = distribution(values, people, k).pieces
    many = {value for value, who in held.items() if len(who) >= k}
    is_value = np.isnan(pieces.low)
    assert set(pieces.value[is_value]) == many
    assert (np.diff(pieces.value) > 0).all()
    for index in np.flatnonzero(~is_value):
        after = pieces.value[index + 1] if index + 1 < len(pieces.value) else values.max() + 1
        of_group = (values >= pieces.value[index]) & (values < after)
        assert pieces.rows[index] == of_group.sum()
        assert len({whose[row] for row in np.flatnonzero(of_group)} - {None}) >= k
        low, high = pieces.low[index] + values.min(), pieces.high[index] + values.min()  # counted from the smallest
        assert values.min() <= low <= high <= values.max()
    if many or not is_value.all():
        assert pieces.rows.sum() == len(values)
    rare = sorted(set(numbers) - many)
    assert distribution(values, people, k).rare.tolist() == rare


@cheap
@given(st.sets(st.integers(0, 20)), st.lists(st.integers(0, 20), min_size=1, max_size=9), st.sampled_from([1, 3]))
def test_the_nearest_free_place(taken: set[int], places: list[int], step: int) -> None:
    free = set(range(21)) - taken
    found = find_free_places(
        np.array(places) * step, np.array(sorted(taken), dtype=np.int64) * step, step, lowest=0, highest=20 * step
    )
    if not free:
        assert found is None
        return
    for place, moved in zip(places, found // step, strict=True):
        assert moved in free
        assert abs(moved - place) == min(abs(other - place) for other in free)


CELLS = st.sampled_from([None, 0.0, -0.0, 1.5, -2.0, float("nan"), 7.0])


@cheap
@given(st.lists(CELLS, min_size=1, max_size=40), st.lists(CELLS, max_size=4), st.integers(1, 6), st.sampled_from("fs"))
def test_the_last_count_sees_every_value_of_a_few(before: list, after: list, k: int, kind: str) -> None:
    """NULL and NaN are values, -0.0 is 0.0; what nobody has may be shown."""
    same = {None: "null", 0.0: "zero"}

    def key(cell: float | None) -> object:
        return "nan" if cell is not None and np.isnan(cell) else same.get(cell, cell)

    held = defaultdict(int)
    for cell in before:
        held[key(cell)] += 1
    is_wrong = any(0 < held[key(cell)] < k for cell in after)
    cells = [[c if kind == "f" or c is None else f"{c + 0.0}" for c in one] for one in (before, after)]
    tables = [pa.table({"x": pa.array(one, pa.float64() if kind == "f" else pa.string())}) for one in cells]
    if is_wrong:
        with pytest.raises(ValueError, match="the promise is not kept"):
            marginals.refuse_rare(*tables, None, [k])
    else:
        marginals.refuse_rare(*tables, None, [k])


@cheap
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=40))
def test_the_distance_of_two_lists(pairs: list[tuple[int, int]]) -> None:
    before, after = (np.sort(column) for column in np.array(pairs).T)
    expected = max(abs((before <= place).mean() - (after <= place).mean()) for place in range(16))
    assert marginals.measure_distance(before, after, np.ones(len(pairs), np.int64)) == pytest.approx(
        expected, abs=1e-12
    )


@cheap
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=20), st.sampled_from(["f8", "f4"]))
def test_places_are_in_the_order_of_the_numbers(numbers: list[float], dtype: str) -> None:
    values = np.array(numbers, dtype)
    column = fit_columns(pa.table({"x": values}), lenient=True, log=[])[0].columns[0]
    for grid in (grid_of(column), Unrounded(column)):
        places = grid.places(pa.array(values))
        np.testing.assert_array_equal(grid.array(places, None).to_numpy(), values)
        order = np.argsort(places, kind="stable")
        assert (np.diff(values[order]) >= 0).all()
        assert len(set(places)) == len(set(values))


def test_which_grid() -> None:
    columns = {
        "i": [1, 5],
        "r": [0.5, 1.25],
        "u": [1 / 3, 2.0],
        "h": [1e30, 3e30],
        "d": [DAY, DAY.replace(year=2026)],
    }
    grids = [grid_of(column) for column in fit_columns(pa.table(columns), lenient=True)[0].columns]
    assert [type(grid) for grid in grids] == [Steps, Rounded, Unrounded, Unrounded, Steps]
    assert grids[0].step == 4


def test_shares_and_shapes_are_kept() -> None:
    """Point masses keep their shares, and what lies between them its shape; half of the numbers are unique."""
    random = np.random.default_rng(6)
    income = np.where(random.random(5000) < 0.3, 0.0, random.lognormal(10, 1, 5000).round())
    other = income * random.lognormal(0, 0.5, 5000) + random.normal(size=5000)
    city = random.choice(["a", "b", "c"], p=[0.6, 0.3, 0.1], size=5000).astype(object)
    city[:9] = "d"
    table = pa.table({"income": income, "other": other, "city": city})
    drawn = spectral.copula_synthesize(table, rows=50_000, seed=1).read_all()
    sampling = 5 / np.sqrt(50_000)
    assert (drawn["income"].to_numpy() == 0).mean() == pytest.approx((income == 0).mean(), abs=sampling)
    for name in ("income", "other"):
        assert ks_2samp(drawn[name].to_numpy(), table[name].to_numpy()).statistic < sampling
        counts = dict(zip(*np.unique(table[name].to_numpy(), return_counts=True), strict=True))
        assert min(counts.get(value, 10) for value in set(drawn[name].to_pylist())) >= 10
    for value, share in (("a", 0.6), ("b", 0.3), ("c", 0.1), ("d", 0)):
        assert (np.array(drawn["city"].to_pylist()) == value).mean() == pytest.approx(share, abs=0.02)
    before, after = (spearmanr(t["income"].to_numpy(), t["other"].to_numpy()).statistic for t in (table, drawn))
    assert after == pytest.approx(before, abs=sampling)


def test_floats_get_a_decimal_where_they_need_one() -> None:
    """Five people on each of 200 numbers: whole ones are refused, those of one decimal get a second."""
    number = np.repeat(np.arange(200), 5)
    table = pa.table({"x": number / 10, "y": np.arange(1000) % 7})
    drawn = spectral.copula_synthesize(table, rows=20_000, seed=1).read_all()["x"].to_numpy()
    np.testing.assert_array_equal(drawn, np.round(drawn, 2))
    assert ks_2samp(drawn, number / 10).statistic < 0.03
    for whole in (number, np.where(number == 100, 101, number)):
        with pytest.raises(ValueError, match='column "x" has too few numbers inside its range shared by 10 people'):
            spectral.copula_synthesize(pa.table({"x": whole, "y": np.arange(1000) % 7}))


def test_missing_values_keep_their_share_where_k_people_miss_them() -> None:
    random = np.random.default_rng(7)
    number = random.gamma(2, size=5000)
    for missing, expected in ((0.3, 0.3), (9 / 5000, 0.0)):
        column = pa.array(number, mask=np.arange(5000) < missing * 5000)
        table = pa.table({"x": column, "y": random.normal(size=5000)})
        drawn = spectral.copula_synthesize(table, rows=20_000, nulls="category", seed=1).read_all()
        assert drawn["x"].null_count / 20_000 == pytest.approx(expected, abs=0.02 if expected else 0)


def test_the_outermost_number_is_not_approached() -> None:
    """However many rows are drawn: an end of the range would be the income of the richest."""
    income = np.append(np.random.default_rng(8).normal(5e4, 1e4, 2000), 9_876_543.21)
    table = pa.table({"income": income, "other": np.arange(2001) % 7})
    drawn = spectral.copula_synthesize(table, rows=200_000, seed=1).read_all()
    assert max(drawn["income"].to_pylist()) < 0.6 * 9_876_543


def test_a_value_of_one_visitor_is_not_released(con: Connection) -> None:
    """Twelve visits of one person are no twelve people: the attack that counting rows does not see."""
    con.execute("""
        CREATE TABLE visits AS
        SELECT p AS patient, (20 + p % 40) AS age,
               CASE WHEN p = 0 THEN 'rabies' WHEN p % 3 = 0 THEN 'cold' ELSE 'cough' END AS reason,
               CASE WHEN p = 0 THEN 777 ELSE 100 + p % 20 END AS weight
        FROM range(400) AS a(p), range(12) AS b(v)""").fetchall()
    query = "SELECT count(*) FILTER (reason = 'rabies'), count(*) FILTER (weight = 777) FROM anon.copula_synthesize("
    columns = "'visits', ['age', 'weight', 'reason'], rows := 100_000"
    assert con.execute(f"{query} {columns}, person := 'PATIENT')").fetchall() == [(0, 0)]
    ((reasons, weights),) = con.execute(f"{query} {columns})").fetchall()
    assert reasons > 0 < weights


@pytest.mark.thorough
def test_adult_keeps_its_distributions(adult: Connection) -> None:
    columns = ["age", "fnlwgt", "capital_gain", "capital_loss", "hours_per_week"]
    drawn = adult.execute(f"FROM anon.copula_synthesize('adult', {columns}, seed := 1)").fetchnumpy()
    table = adult.execute(f"SELECT {', '.join(columns)} FROM adult").fetchnumpy()
    for name in columns:
        before, after = table[name], drawn[name]
        assert ks_2samp(before, after).statistic < 0.012
        values, counts = np.unique(before, return_counts=True)
        assert not np.isin(after, values[counts < 10]).any()


def test_one_outlier_moves_no_piece() -> None:
    """However far away the outermost number is, what is drawn between stays the same."""
    numbers = np.sort(np.random.default_rng(9).lognormal(10, 1, 200))
    farther = np.append(numbers[:-1], numbers[-1] * 1e6)
    one, other = (distribution(values, None, 10).pieces for values in (numbers, farther))
    for before, after in zip(one[2:], other[2:], strict=True):
        np.testing.assert_array_equal(before, after)


def test_half_of_a_group_is_drawn_below_its_median() -> None:
    """Nine of ten people with the same number are drawn on both sides of it, not evenly over the group."""
    numbers = np.concatenate([np.arange(10) / 7, np.full(9, 100 / 7), [900 / 7], 1000 / 7 + np.arange(10) / 7])
    found = distribution(numbers, None, 10)
    pieces = found.pieces
    assert pieces.middle[1] == 100 / 7
    assert pieces.below[1] == 0.45
    assert pieces.low[1] < pieces.middle[1] < pieces.high[1]


def test_the_row_before_is_the_last_one_of_the_same_person() -> None:
    whose = np.random.default_rng(1).integers(-1, 12, 200)
    assert NOBODY == -1
    last: dict[int, int] = {}
    expected = []
    for row, person in enumerate(whose.tolist()):
        expected.append(len(whose) if person == NOBODY else last.get(person, -1))
        last[person] = row
    assert marginals._find_rows_before(whose).tolist() == expected


def test_a_group_reaches_beyond_its_quartiles_as_far_as_these_lie_from_its_middle() -> None:
    """Ten people from 10 to 19, between two who are far away, and five at each end of the column."""
    numbers = np.array([0.0, *range(10, 20), 100.0])
    people = rows = np.ones(12, np.int64)
    is_grouped = (numbers >= 10) & (numbers < 20)
    ((low, middle, high, below),) = measure_groups(numbers, rows, people, is_grouped, np.array([1])).T
    assert (low, middle, high, below) == (10.5, 14.5, 18.5, 0.5)
    inner = measure_groups(numbers[1:11], rows[1:11], people[1:11], np.ones(10, bool), np.array([0]))
    assert inner.T.tolist() == [[12.5, 14.5, 16.5, 0.5]]  # nothing lies beyond: the ends are the quartiles
