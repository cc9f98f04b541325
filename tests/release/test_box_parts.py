"""Boxes of parts: what their ends tell about people, for all types; and how wide they are."""

from __future__ import annotations

import itertools
from collections import defaultdict

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.numbers.ends import round_outward
from duckanon._core.numbers.parts import NumberParts, _find_first_at_least, cut_column
from duckanon._core.numbers.support import Calendar, Decimals, find_support
from duckanon._methods.boxes.make import BoxOptions, make_boxes
from tests.profiles import cheap, dear
from tests.release.coded import check_held
from tests.sqltest import data_file

Connection = duckdb.DuckDBPyConnection
Columns = dict[str, np.ndarray]

numbers = st.one_of(
    st.integers(-9, 9).map(float),
    st.integers(-999, 999).map(lambda n: n / 100),
    st.integers(0, 20).map(lambda n: n * 500.0),
    st.floats(-5, 5),
    st.floats(-1e-300, 1e90),
)


def parts_of(
    values: np.ndarray, k: int, people: np.ndarray | None = None, kind: pa.DataType | None = None
) -> NumberParts:
    return cut_column(values, k, find_support(kind, values, k, people), people)


def check_parts(values: np.ndarray, k: int, people: np.ndarray | None, kind: pa.DataType | None = None) -> None:
    """Every promise about the parts of a column."""
    support = find_support(kind, values, k, people)
    parts = cut_column(values, k, support, people)
    check_held(values, parts.lower[parts.number], parts.upper[parts.number], people, k)
    values = support.round_and_clip(values)
    assert count_people(parts.number, people, len(parts.lower)).min() >= k
    assert (parts.lower[parts.number] <= values).all()
    assert (values <= parts.upper[parts.number]).all()
    assert (parts.lower <= parts.upper).all()
    assert (parts.upper[:-1] <= parts.lower[1:]).all()
    assert len({(value, part) for value, part in zip(values, parts.number, strict=True)}) == len(set(values))


@given(st.lists(st.tuples(numbers, st.integers(NOBODY, 12)), min_size=4, max_size=80), st.integers(2, 5), st.booleans())
@example([(0.0, 0), (0.0, 0), (0.0, 0), (1.0, 0), (0.01, 0)], 2, False)  # an end of .03, in whole numbers
@example([(0.0, 0), (0.0, 0), (0.0, 0), (-1.0, 0), (-0.01, 0)], 2, False)
@example([(0.0, 0), (-1.0, 0), (-0.01, 0), (500.0, 0), (500.0, 0)], 2, False)  # an end that is rounded over -1
def test_parts_hold_k(rows, k, with_people):
    values = np.array([value for value, _ in rows])
    people = np.array([person for _, person in rows]) if with_people else None
    if count_people(np.zeros(len(rows), np.int64), people, 1)[0] < k:
        return
    check_parts(values, k, people)
    moments = np.floor(np.clip(values, -1e4, 1e4) * 86_400_000_000)
    check_parts(moments, k, people, pa.timestamp("us"))


@cheap
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
def test_roundest_lies_in_the_gap(pairs):
    low, high = np.array([min(pair) for pair in pairs]), np.array([max(pair) for pair in pairs])
    differs = np.nextafter(low, np.inf) < high
    low, high = low[differs], high[differs]
    cut = Decimals(None).roundest(low, high)
    assert ((low < cut) & (cut < high)).all()
    low, high = np.rint(np.clip(low, -1e9, 1e9)), np.rint(np.clip(high, -1e9, 1e9))
    low, high = low[low < high], high[low < high]
    cut = Decimals(0).roundest(low, high)
    assert ((low < cut) & (cut <= high) & (cut == np.rint(cut))).all()


@pytest.mark.parametrize(
    ("low", "high", "roundest"),
    [(37, 43, 40), (-3, 8, 0), (-3, 0, 0), (120, 470, 200), (120, 680, 500), (61, 64, 62), (62, 63, 63), (1, 3, 2)],
)
def test_roundest_number(low, high, roundest):
    assert Decimals(0).roundest(np.array([float(low)]), np.array([float(high)])).tolist() == [roundest]


@pytest.mark.parametrize(
    ("low", "high", "roundest"),
    [
        ("1989-12-20", "1990-03-15", "1990-01-01"),  # a decade begins before the middle, and none after it
        ("1989-10-20", "1990-01-20", "1990-01-01"),  # after the middle, and none before it
        ("1990-02-03", "1991-11-20", "1991-01-01"),
        ("1985-05-05", "2004-01-01", "1990-01-01"),  # of two decades the nearer one
        ("1985-05-05", "2014-01-01", "2000-01-01"),
        ("2021-03-04", "2021-03-06", "2021-03-05"),
    ],
)
def test_roundest_day(low, high, roundest):
    days = [float(np.datetime64(day).astype(int)) for day in (low, high, roundest)]
    calendar = Calendar.of(np.array(days) * 86_400e6)
    assert calendar.roundest(np.array(days[:1]), np.array(days[1:2])).tolist() == [days[2]]


def test_units():
    digits = [(np.array([1000.0, 25000.0]), -3), (np.array([0.0, 0.0]), 0), (np.array([0.25, 3.0]), 2)]
    digits += [
        (np.array([0.1 + 0.2]), None),
        (np.array([2.0**60]), None),
        (np.random.default_rng(0).normal(size=9), None),
    ]
    for values, expected in digits:
        grid = Decimals.of(values)
        assert grid.has_unit == (expected is not None)
        np.testing.assert_allclose(grid.whole(values), values * 10.0 ** (expected or 0), rtol=1e-15)
        np.testing.assert_array_equal(grid.values(grid.whole(values)), values)


def test_sizes_without_ties_are_nearly_k():
    parts = parts_of(np.random.default_rng(2).normal(size=1003), 10)
    assert len(parts.lower) == 100


def spread(values: np.ndarray, epsilon: float) -> int:
    """The largest number of values that are pairwise at least epsilon apart."""
    count, last = 0, -np.inf
    for value in np.unique(values):
        if value - last >= epsilon:
            count, last = count + 1, value
    return count


@dear
@given(
    st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[numbers] * n), min_size=6, max_size=60)),
    st.integers(2, 5),
    st.sampled_from([(1, 0.0), (2, 0.0), (2, 1.5)]),
    st.sampled_from(["default", "thorough"]),
    st.randoms(use_true_random=False),
)
def test_boxes_of_parts(rows, k, diversity, effort, random):
    """At least k records and l values; each record lies in its box only, whatever the order of the records."""
    columns = {f"c{j}": np.array(column) for j, column in enumerate(zip(*rows, strict=True))}
    l, epsilon = diversity  # noqa: E741
    coded = {name: find_support(None, v, k, is_exact=l > 1).round_and_clip(v) for name, v in columns.items()}
    if any(spread(values, epsilon) < l for values in coded.values()):
        return
    more = {"l": l, "epsilon": dict.fromkeys(columns, epsilon), "effort": effort, "kind": "parts"}
    more |= {"seconds": 0} if effort == "thorough" else {}
    options = BoxOptions(**more)
    boxes = make_boxes(columns, k, options=options)
    assert np.bincount(boxes.box).min() >= k
    assert all(spread(v[boxes.box == box], epsilon) >= l for v in columns.values() for box in range(len(boxes.counts)))
    data = np.stack(list(coded.values()), axis=1)
    lower, upper = boxes.intervals("parts")
    for place, values in enumerate(columns.values()):
        check_held(values, lower[boxes.box, place], upper[boxes.box, place], None, k)
    held = ((lower[None] <= data[:, None]) & (data[:, None] <= upper[None])).all(axis=2)
    assert held[np.arange(len(data)), boxes.box].all()
    close = np.array([(np.nextafter(np.unique(v)[:-1], np.inf) == np.unique(v)[1:]).any() for v in coded.values()])
    assert close.any() or (held.sum(axis=1) == 1).all()  # nothing parts two neighbouring doubles
    shuffled = random.sample(range(len(rows)), len(rows))
    again = make_boxes({name: values[shuffled] for name, values in columns.items()}, k, options=options)
    np.testing.assert_array_equal(again.box, boxes.box[shuffled])
    np.testing.assert_array_equal(again.parts, boxes.parts)


TYPES = {
    "TINYINT": "(i % 100 - 50)::TINYINT",
    "UINTEGER": "(i * 1000)::UINTEGER",
    "BIGINT": "i * 10**12::BIGINT + hash(i) % 1000000",
    "DOUBLE": "i / 7",
    "tenths": "i / 10",
    "FLOAT": "(i / 7)::FLOAT",
    "DECIMAL(9,2)": "(i / 8)::DECIMAL(9,2)",
    "DECIMAL(18,4)": "(i * 99999999.0001)::DECIMAL(18,4)",
    "DATE": "DATE '1900-02-27' + i::INTEGER",
    "TIMESTAMP": "TIMESTAMP '2020-02-28 23:59:59.999999' + to_microseconds(i * i * 12345)",
    "TIMESTAMP_S": "(TIMESTAMP '1969-12-31 12:00:00' + to_seconds(i * 60))::TIMESTAMP_S",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2020-01-01 00:00:00+02' + to_hours(i::INTEGER)",
}


@dear
@given(
    kinds=st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3),
    values=st.lists(
        st.lists(st.integers(0, 1000) | st.integers(0, 5), min_size=3, max_size=3), min_size=6, max_size=70
    ),
    k=st.integers(2, 6),
    people=st.none() | st.integers(6, 40),
)
def test_every_type(shared: Connection, kinds, values, k, people):
    """At least k people a box; each record lies in its box and in no other; equal records are in one box."""
    names = [f"c{place}" for place in range(len(kinds))]
    columns = {f"i{place}": [row[place] for row in values] for place in range(len(kinds))}
    shared.register("drawn", pa.table({**columns, "id": range(len(values))}))
    typed = ", ".join(
        f"{TYPES[kind].replace('i ', f'i{n} ').replace('i:', f'i{n}:').replace('(i)', f'(i{n})')} AS {name}"
        for n, (kind, name) in enumerate(zip(kinds, names, strict=True))
    )
    shared.execute(f"CREATE OR REPLACE TABLE t AS SELECT {typed}, id, id % {people or 1} AS who FROM drawn").fetchall()
    if len(values) < k or (people and min(people, len(values)) < k):
        return
    person = ", person := 'who'" if people else ""
    shared.execute(
        f"CREATE OR REPLACE TABLE boxed AS "
        f"FROM anon.boxes('t', {names}, {k}, keep := ['id'], narrowing := ['id']{person})"
    ).fetchall()
    counted = "who" if people else "id"
    least = f"SELECT min(n) FROM (SELECT count(DISTINCT {counted}) AS n FROM boxed JOIN t USING (id) GROUP BY box)"
    assert shared.execute(least).fetchall()[0][0] >= k
    held = " AND ".join(f"t.{name} BETWEEN b.{name}.lo AND b.{name}.hi" for name in names)
    found = shared.execute(f"""
        SELECT t.id, list(b.box), any_value(o.box)
        FROM t JOIN (SELECT DISTINCT ON (box) * FROM boxed) AS b ON {held} JOIN boxed AS o ON t.id = o.id
        GROUP BY t.id""").fetchall()
    assert all(boxes == [own] for _, boxes, own in found)
    for name in names:
        own = f"SELECT t.{name}, b.{name}.lo, b.{name}.hi, t.{counted} FROM t JOIN boxed AS b USING (id)"
        check_held(*zip(*shared.execute(own).fetchall(), strict=True), k)
    same = shared.execute(
        "SELECT max(n) FROM (SELECT count(DISTINCT box) AS n FROM boxed JOIN t USING (id) GROUP BY "
        + ", ".join(f"t.{name}" for name in names)
        + ")"
    )
    assert same.fetchall() == [(1,)]


def reflected(values: np.ndarray, ends: np.ndarray, unit: float) -> float:
    """How often a member's value, reflected at an end, is somebody else's: the attack 2 * end - own value."""
    column, own = np.unique(np.rint(values / unit)), np.rint(values / unit)
    guesses = np.rint((2 * ends - values) / unit)
    found = column[np.clip(np.searchsorted(column, guesses), 0, len(column) - 1)] == guesses
    return float(np.mean(found[guesses != own]))


@pytest.mark.parametrize("digits", [2, 0])
def test_reflected_ends_meet_nobody(digits):
    """Ends of parts are as far from one value as from any other: ends that are moved at random do as well."""
    values, unit = np.round(np.random.default_rng(3).lognormal(5, 0.5, 20_000), digits), 10.0**-digits
    parts = parts_of(values, 10)
    for ends in (parts.lower[parts.number], parts.upper[parts.number]):
        chance = np.mean([reflected(values, ends + shift * unit, unit) for shift in (-3, -2, -1, 1, 2, 3)])
        assert reflected(values, ends, unit) <= chance + 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("digits", [2, 1, 0])
def test_a_cut_is_no_better_a_mirror_than_any_other_of_its_gap(digits):
    """Who is next to a cut reflects his own value at the ends beside it, or between them, to find the neighbour."""
    better = {"lower": [], "upper": [], "between": []}
    for seed in range(10):
        generator = np.random.default_rng(seed)
        values = np.round(generator.lognormal(5, 0.5, 20_000), digits)
        parts = parts_of(values, 10)
        column = np.unique(np.rint(values * 10**digits))
        cuts = np.unique(np.rint(parts.lower * 10**digits))[1:]
        above = np.searchsorted(column, cuts)
        own, neighbour = column[above - 1], column[above]
        others = own + 1 + np.floor(generator.random((20, len(cuts))) * (neighbour - own))  # cuts of the same gaps
        for name, doubled in (("lower", 0), ("upper", -2), ("between", -1)):
            mirrored, by_chance = 2 * cuts + doubled - own, 2 * others + doubled - own
            hits, luck = (np.isin(guess, column) & (guess != own) for guess in (mirrored, by_chance))
            better[name].append(hits.mean() - luck.mean())
    assert {name: np.mean(points) < 0.01 for name, points in better.items()} == dict.fromkeys(better, True)


def test_the_neighbour_beyond_a_cut_cannot_be_computed():
    """Who is next to a cut of a cell knows whose value is as far beyond it; cuts of parts are where nobody is."""
    values = np.sort(np.random.default_rng(4).lognormal(5, 0.5, 2000))
    found = {}
    for kind in ("cell", "parts"):
        cuts = np.unique(
            make_boxes({"x": values}, 10, options=BoxOptions(kind=kind, bounds_are_public=True)).intervals(kind)[0]
        )[1:]
        above = np.searchsorted(values, cuts)
        found[kind] = np.mean(np.abs(2 * cuts - values[above - 1] - values[above]) < 1e-9)
    assert found == {"cell": 1, "parts": 0}


def certain(tables: np.ndarray, released: list[tuple]) -> float:
    """The share of tables whose release tells of some value that somebody has it: all tables with that release do."""
    values: dict[tuple, set[float]] = {}
    counts: dict[tuple, int] = defaultdict(int)
    for table, release in zip(tables, released, strict=True):
        values[release] = values.get(release, set(table)) & set(table)
        counts[release] += 1
    return sum(count for release, count in counts.items() if values[release]) / len(tables)


@pytest.mark.thorough
def test_tiny_tables_are_less_certain_than_cells():
    """All tables of six of the ages 20 to 29, and all that their releases leave open."""
    n, k = 6, 3
    tables = np.array(list(itertools.combinations_with_replacement(range(20, 30), n)), float)
    strata, values = np.repeat(np.arange(len(tables)), n), tables.ravel()
    made = [parts_of(table, k) for table in tables]
    ends = [tuple(np.concatenate([parts.lower[parts.number], parts.upper[parts.number]])) for parts in made]
    boxes = make_boxes({"x": values}, k, options=BoxOptions(kind="cell"), strata=strata)
    low, high = (end[boxes.box, 0].reshape(len(tables), n) for end in boxes.cell)
    outer = round_outward(tables.min(axis=1), tables.max(axis=1))
    low = np.ceil(np.where(low == values.min(), outer[0][:, None], low))
    high = np.floor(np.where(high == values.max(), outer[1][:, None], high))
    of_parts = certain(tables, ends)
    of_cells = certain(tables, [tuple(row) for row in np.concatenate([low, high], axis=1)])
    assert of_parts < of_cells


labelled = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("aab"), st.sampled_from(["x", "x", "y", None]), st.integers(0, 25)),
    min_size=8,
    max_size=60,
)


@dear
@given(rows=labelled, k=st.integers(2, 5), box=st.sampled_from(["parts", "cell"]), of_people=st.booleans())
def test_strata_hold_k(shared: Connection, rows, k, box, of_people):
    """Boxes of k people of one group; labels are lost from the last on, and only where fewer than k had them."""
    if len({row[3] for row in rows} if of_people else rows) < k:
        return
    names = ["x", "first", "second", "who"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    shared.register("drawn", pa.table({**columns, "id": range(len(rows))}))
    person = ", person := 'who'" if of_people else ""
    shared.execute(f"""
        CREATE OR REPLACE TABLE boxed AS
        FROM anon.boxes('drawn', ['x'], {k}, by := ['first', 'second'], keep := ['id'], narrowing := ['id'],
                        box := '{box}'{person})""").fetchall()
    found = shared.execute("SELECT id, box, first, second, x.lo, x.hi FROM boxed ORDER BY id").fetchall()
    assert len(found) == len(rows)
    people, groups = defaultdict(set), defaultdict(set)
    originals = defaultdict(set)
    for (_, first, second, who), (record, number, *labels, _, _) in zip(rows, found, strict=True):
        assert labels in ([first, second], [first, None], [None, None])
        person_or_record = who if of_people else record
        people[number].add(person_or_record)
        groups[number].add(tuple(labels))
        originals[first, second].add(person_or_record)
        originals[first].add(person_or_record)
    assert min(map(len, people.values())) >= k
    assert max(map(len, groups.values())) == 1
    check_held([row[0] for row in rows], *zip(*(row[4:] for row in found), strict=True), None, len(rows))
    if all(len(holders) >= k for holders in originals.values()):
        assert all(
            labels == [first, second] for (_, first, second, _), (_, _, *labels, _, _) in zip(rows, found, strict=True)
        )


def widths(columns: Columns, kind: str) -> float:
    """The sum over columns of the mean half-width, in tenths of a standard deviation."""
    boxes = make_boxes(columns, 10, options=BoxOptions(kind=kind, bounds_are_public=True))
    lower, upper = boxes.intervals(kind)
    mean = boxes.counts @ (upper - lower) / 2 / boxes.counts.sum()
    return float(sum(mean / [0.1 * values.std() for values in columns.values()]))


def survey(file: str, *names: str, sample: int | None = None) -> Columns:
    known = " AND ".join(f'"{name}" IS NOT NULL' for name in names)
    chosen = ", ".join(f'"{name}"' for name in names)
    found = duckdb.sql(f"SELECT {chosen} FROM '{data_file(file)}' WHERE {known}").fetchnumpy()
    rows = np.random.default_rng(1).permutation(len(found[names[0]]))[:sample]
    return {name: np.asarray(values, float)[rows] for name, values in found.items()}


def dependent(shape: str) -> Columns:
    random = np.random.default_rng(0)
    if shape == "x, 2x + 5":
        x = np.round(random.lognormal(5, 0.5, 20_000), 2)
        return {"x": x, "y": np.round(2 * x + 5, 2)}
    x, y = random.normal(size=(2, 20_000))
    return {"x": 10 + x, "y": 10 + 0.99 * x + np.sqrt(1 - 0.99**2) * y}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("columns", "most"),
    [
        (lambda: dependent("x, 2x + 5"), 1.28),
        (lambda: dependent("normal"), 1.28),
        (lambda: survey("nhanes.parquet", "TP", "ALB", "GLOB"), 1.08),
        (lambda: survey("nhanes.parquet", "WEIGHT", "BMI", "HEIGHT"), 1.12),  # outer ends lie beyond what k people have
        (lambda: survey("nhanes.parquet", "age_years", "SBP", "BMI", "WEIGHT"), 1.06),
        (lambda: survey("acs_pums_2024_workers.parquet", "AGEP", "WKHP", "PINCP", sample=100_000), 1.06),
    ],
)
def test_parts_are_hardly_wider_than_bounds(columns, most):
    data = columns()
    of_parts, of_bounds, of_cells = (widths(data, kind) for kind in ("parts", "bounds", "cell"))
    assert of_parts <= most * of_bounds
    assert of_parts < of_cells


def test_an_end_that_a_float_cannot_hold(con: duckdb.DuckDBPyConnection) -> None:
    """Records below the end are coded to .2, and the nearest FLOAT lies above it."""
    sevenths = [0, 2, 4, 4, 5, 5, 76, 198, 778]
    con.execute("CREATE OR REPLACE TABLE few AS SELECT (unnest($1) / 7)::FLOAT AS x", [sevenths]).fetchall()
    (ends,) = con.execute("SELECT DISTINCT x.lo, x.hi FROM anon.boxes('few', ['x'], 6)").fetchall()
    assert ends == pytest.approx((0.2, 40))


@pytest.mark.parametrize(
    "values",
    [
        [3.5, 2.9999, 4, 103, 3.5, 3],
        [1, 0.0003, 2, 0.0006, 2, 100],
        [299999999, 299999996.9999, 299999996.9999, 299999997, 299999997, 299999997.0003],
    ],
)
def test_a_unit_that_hardly_anybody_has_rounds_nothing_away(
    con: duckdb.DuckDBPyConnection, values: list[float]
) -> None:
    """Tables of fewer than 2 k people: any five of six values were rounded to the unit of the sixth."""
    con.execute("CREATE OR REPLACE TABLE few AS SELECT unnest($1)::DECIMAL(18, 4) AS x", [values]).fetchall()
    ((low, high),) = con.execute("SELECT DISTINCT x.lo, x.hi FROM anon.boxes('few', ['x'], 6)").fetchall()
    assert low <= sorted(values)[2]
    assert high >= sorted(values)[3]


@pytest.mark.parametrize("sign", [1, -1])
def test_each_end_is_shared_or_not_by_itself(sign: int) -> None:
    """Coding one end of a column for many people changes nothing at the other one, which nobody shares."""
    plain = np.round(np.random.default_rng(1).normal(0, 1000, 2001))
    coded = sign * np.minimum(sign * plain, 1200)
    supports = [find_support(None, values, 5) for values in (plain, coded)]
    shared, other = (1, 0) if sign == 1 else (0, 1)
    ends = [(support.low, support.high) for support in supports]
    assert (supports[1].is_shared[shared], supports[1].is_shared[other]) == (True, False)
    assert ends[1][shared] == sign * 1200
    assert ends[1][other] == ends[0][other]
    assert sign * ends[0][other] < sign * sorted(plain, reverse=sign < 0)[4]


def test_hardly_any_normal_number_is_coded() -> None:
    """An end that nobody shares lies as far out as the outermost of so many normal numbers, on either side."""
    beyond = np.zeros(2, np.int64)
    for seed in range(20):
        values = np.round(np.random.default_rng(seed).normal(0, 1000, 2000))
        beyond += [np.count_nonzero(side) for side in find_support(None, values, 10).beyond(values)]
    assert beyond.max() <= 5  # of 200 that are among the ten outermost of a table


@pytest.mark.parametrize("seed", range(5))
def test_the_first_place_that_is_not_below_a_cut_is_found_between_two(seed: int) -> None:
    random = np.random.default_rng(seed)
    column = np.sort(random.integers(0, 30, 60).astype(np.float64))
    least = random.integers(0, 60, 200)
    most = np.minimum(least + random.integers(0, 20, 200), 59)
    cuts = column[random.integers(0, 60, 200)] + random.choice([-0.5, 0.0, 0.5], 200)
    expected = [
        next((place for place in range(low, high) if column[place] >= cut), high)
        for cut, low, high in zip(cuts, least.tolist(), most.tolist(), strict=True)
    ]
    assert _find_first_at_least(column, cuts, least, most).tolist() == expected
