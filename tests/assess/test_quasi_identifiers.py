"""The search over column sets: codes, lattice walk and samples against brute force, and the macro against GROUP BY."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._core.common import row_keys
from duckanon._core.common.codes import encode_columns
from duckanon._measure.assess import column_sets, lattice, sampling

Rows = list[tuple[Any, ...]]


def brute_force(rows: Rows, columns: int, largest: int) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """Distinct combinations, singletons and smallest class of every set."""
    found = {}
    for size in range(1, largest + 1):
        for members in itertools.combinations(range(columns), size):
            counts = Counter(tuple(row[member] for member in members) for row in rows)
            singletons = sum(count == 1 for count in counts.values())
            found[members] = (len(counts), singletons, min(counts.values(), default=0))
    return found


def random_table(draw: random.Random) -> tuple[pa.Table, Rows]:
    """Few or many values, NULLs, text, wide and negative numbers, repeated rows, one chunk or two."""
    rows, columns = draw.choice([1, 2, 3, 10, 50, 300, 2000]), draw.randint(1, 6)
    table = []
    for _ in range(columns):
        values, nulls = draw.choice([1, 2, 3, 10, 100, 700, 5 * rows]), draw.choice([0, 0, 0.1, 0.9, 1])
        make = draw.choice([lambda x: x, str, lambda x: x * 10**12, lambda x: -x])
        skew = draw.choice([1, 3])
        column = [None if draw.random() < nulls else make(int(values * draw.random() ** skew)) for _ in range(rows)]
        table.append(column)
    if draw.random() < 0.4:
        table = [column * 3 for column in table]
    arrow = pa.table({f"c{place}": pa.array(column) for place, column in enumerate(table)})
    if draw.random() < 0.3:
        half = arrow.num_rows // 2
        arrow = pa.concat_tables([arrow.slice(0, half), arrow.slice(half)])
    return arrow, list(zip(*table, strict=True))


CODE_PATHS = [  # constants that force the walk to collapse always, to sort always, to run out of key space
    {},
    {"_FEW_ROWS": 2, "_GAIN": -99.0},
    {"_FEW_ROWS": 2, "_GAIN": -99.0, "DENSE": 0.0, "_DENSE_DEEPER": 0.0},
    {"_FEW_ROWS": 2, "_GAIN": -99.0, "DENSE": 0.05, "_DENSE_DEEPER": 0.05},
    {"_FEW_ROWS": 2, "_GAIN": -99.0, "DENSE": 0.0, "_DENSE_DEEPER": 0.0, "LARGEST_KEY": 2**12},
    {"_FEW_ROWS": 2, "_GAIN": -99.0, "LARGEST_KEY": 2**6},
]


@pytest.mark.thorough
@pytest.mark.parametrize("constants", CODE_PATHS)
def test_the_walk_equals_brute_force(monkeypatch: pytest.MonkeyPatch, constants: dict[str, float]) -> None:
    for name, value in constants.items():
        for module in (lattice, row_keys):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    draw = random.Random(len(constants))
    for _ in range(40):
        table, rows = random_table(draw)
        largest = draw.randint(1, table.num_columns)
        columns = encode_columns(table)
        for (codes, distinct), values in zip(columns, zip(*rows, strict=True), strict=True):
            assert distinct == len(set(values))
            assert set(codes.tolist()) == set(range(distinct))
        expected = brute_force(rows, table.num_columns, largest)
        found = list(lattice.walk(columns, largest))
        assert {one.columns: one[1:4] for one in found} == expected
        assert len(found) == len(expected)
        check_minimal(draw, columns, rows, expected, largest)


def check_minimal(draw: random.Random, columns: list, rows: Rows, expected: dict, largest: int) -> None:
    alpha, limit = draw.random(), draw.choice([10, 1000, 10**9])

    def stop(members: tuple[int, ...], singletons: int) -> bool:
        return singletons >= alpha * len(rows) or math.prod(float(columns[i][1]) for i in members) >= limit

    found = list(lattice.walk(columns, largest, stop))
    qualified = {members for members in expected if stop(members, expected[members][1])}
    minimal = {members for members in qualified if not any(set(other) < set(members) for other in qualified)}
    assert {one.columns for one in found if one.stopped} == minimal
    assert {one.columns for one in found if not one.stopped} == set(expected) - qualified
    assert all(one[1:4] == expected[one.columns] for one in found)


def numbered(values: list) -> list[int]:
    seen: dict[Any, int] = {}
    return [seen.setdefault(value, len(seen)) for value in values]


NANS = [float("nan"), float(np.frombuffer(np.uint64(0xFFF8000000000001).tobytes(), np.float64)[0])]
THREE_DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]
ENCODED = [
    (pa.array([0.0, -0.0, *NANS, None, 1.5]), [0, 0, "nan", "nan", None, 1.5]),
    (pa.array([0.0, -0.0, *NANS, None, 1.5], pa.float32()), [0, 0, "nan", "nan", None, 1.5]),
    (pa.array([True, False, None, True]), [1, 0, None, 1]),
    (pa.array([2**64 - 1, 2**64 - 2, None, 2**64 - 1], pa.uint64()), [1, 0, None, 1]),
    (pa.array([2**64 - 1, 0, None, 3], pa.uint64()), [1, 0, None, 3]),
    (pa.array([-128, 127, 0, None, -128], pa.int8()), [1, 2, 3, None, 1]),
    (pa.array([-(2**63), 2**63 - 1, 0, None, -(2**63)]), [1, 2, 3, None, 1]),
    (pa.nulls(4), [0] * 4),
    (pa.nulls(4, pa.string()), [0] * 4),
    (pa.array([], pa.int64()), []),
    (pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("1.5"), decimal.Decimal("2.5")]), [1, None, 1, 2]),
    (pa.array(THREE_DAYS), THREE_DAYS),
    (pa.array(THREE_DAYS).cast(pa.timestamp("us")), THREE_DAYS),
    (pa.array(["a", None, "b", "a"], pa.string_view()), ["a", None, "b", "a"]),
    (pa.array([b"a", None, b"b", b"a"]), ["a", None, "b", "a"]),
    (
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3, None, 0], pa.int8()), pa.array(["x", "y", "x", None, "-"])
        ),
        ["x", "y", "x", None, None, "x"],
    ),
    (pa.chunked_array([["b", None, "a"], [], ["z", "a", None]], pa.string()), ["b", None, "a", "z", "a", None]),
    (
        pa.chunked_array([pa.array(["a", "b", None]).dictionary_encode(), pa.array(["b", "c"]).dictionary_encode()]),
        ["a", "b", None, "b", "c"],
    ),
]


@pytest.mark.parametrize("case", ENCODED, ids=lambda case: str(case[0].type))
def test_encoding(case: tuple[pa.Array, list]) -> None:
    array, values = case
    [(codes, distinct)] = encode_columns(pa.table({"a": array}))
    assert numbered(codes.tolist()) == numbered(values)
    assert distinct == len(set(values))


def test_nested_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="nested types"):
        encode_columns(pa.table({"a": [[1], [2]]}))


def skewed(generator: np.random.Generator, rows: int, domains: list[int]) -> list[np.ndarray]:
    return [(domain * generator.random(rows) ** 2).astype(np.uint64) for domain in domains]


def test_small_samples_are_exact() -> None:
    generator = np.random.default_rng(0)
    sets = [members for size in (1, 2, 3) for members in itertools.combinations(range(3), size)]
    for rows in (1, 2, 100, 5000):
        columns = skewed(generator, rows, [2, 5, 40])
        sampler = sampling.DistinctSampler(sets, 1000)
        for start in range(0, rows, 333):
            sampler.update([column[start : start + 333] for column in columns])
        for estimate in sampler.estimates():
            counts = Counter(zip(*(columns[member].tolist() for member in estimate.columns), strict=True))
            assert (estimate.distinct, estimate.singletons) == (len(counts), list(counts.values()).count(1))
            assert (estimate.rate, estimate.distinct_error) == (1, 0)


def test_batches_and_merging_do_not_matter() -> None:
    columns = skewed(np.random.default_rng(1), 200_000, [300, 900, 50])
    sets = [(0,), (0, 1), (0, 1, 2)]
    reference = sampling.DistinctSampler(sets, 2000)
    reference.update(columns)
    expected = list(reference.estimates())
    in_batches = sampling.DistinctSampler(sets, 2000)
    for start in range(0, 200_000, 997):
        in_batches.update([column[start : start + 997] for column in columns])
    assert list(in_batches.estimates()) == expected
    halves = [sampling.DistinctSampler(sets, 2000) for _ in range(2)]
    halves[0].update([column[:70_000] for column in columns])
    halves[1].update([column[70_000:] for column in columns])
    halves[0].merge(halves[1])
    assert list(halves[0].estimates()) == expected
    assert halves[0].rows == 200_000


@pytest.mark.parametrize("limit", [None, 1, 2**63, 2**64 - 1])
def test_what_is_looked_up_is_never_mistaken(limit: int | None) -> None:
    """A lookup may miss some of its hashes, and finds nothing else: not 0, which its empty slots hold."""
    generator = np.random.default_rng(3)
    for count in (0, 1, 2, 5, 1000, 8192):
        both = generator.integers(0, 2**64 if limit is None else limit, 2 * count, np.uint64) | np.uint64(1)
        hashes, others = np.unique(both[:count]), np.setdiff1d(both[count:], both[:count])
        left = hashes
        for lookup in sampling._lookups(hashes, None if limit is None else np.uint64(limit)):
            assert lookup.is_missing(others).all()
            left = left[lookup.is_missing(left)]
        assert len(left) <= 0.1 * len(hashes)


@pytest.mark.thorough
def test_products_of_hashes_sample_a_grid_evenly() -> None:
    """All pairs of few values, over 400 samples: as many as a binomial count has, without the heavy tail of sums."""
    left, right = (axis.ravel().astype(np.uint64) for axis in np.meshgrid(np.arange(64), np.arange(64)))
    scores = []
    for seed in range(400):
        mixed = [sampling._mix(axis, sampling._salt(seed, place)) for place, axis in enumerate((left, right))]
        [(_, hashes)] = sampling._set_hashes([(0, 1)], dict(enumerate(mixed)))
        scores.append((np.count_nonzero(hashes < np.uint64(2**58)) - 64) / math.sqrt(64 * (1 - 1 / 64)))
    assert abs(np.mean(scores)) < 0.2
    assert 0.9 < np.std(scores) < 1.1
    assert np.mean(np.array(scores) ** 4) < 4.5  # 3 for a normal distribution


@pytest.mark.thorough
@pytest.mark.parametrize("most", [0, 30_000])
@pytest.mark.parametrize("person", ["NULL", "'who'"])
def test_sampled_and_held_rows_are_exact(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, most: int, person: str
) -> None:
    """Few combinations are all in the sample, whether rows were held first, and whichever thread saw them."""
    monkeypatch.setattr(column_sets, "MOST_CELLS", most)
    con.execute("""CREATE TABLE t AS SELECT hash(i) % 9 AS a, hash(i + 1) % 700 AS b, nullif(hash(i + 2) % 5, 0) AS c,
                          nullif(hash(i // 3) % 20_000, 7) AS who FROM range(200_000) AS t(i)""").fetchall()
    exact, near = (
        con.execute(f"""SELECT columns, "rows", people, distinct_observed, singletons
                        FROM anon.quasi_identifiers('t', ['a', 'b', 'c'], max_size := 2, approximate := {mode},
                                                    person := {person}) ORDER BY columns""").fetchall()
        for mode in ("false", "true")
    )
    assert exact == near


def test_swapped_values_do_not_collide() -> None:
    numbers = np.arange(1000, dtype=np.uint64)
    sampler = sampling.DistinctSampler([(0, 1)], 10_000)
    sampler.update([numbers, numbers + np.uint64(1)])
    sampler.update([numbers + np.uint64(1), numbers])
    assert [estimate.distinct for estimate in sampler.estimates()] == [2000]


@pytest.mark.thorough
def test_the_stated_error_is_the_real_one() -> None:
    """Over 200 independent samples: no bias, errors as large as stated."""
    columns = skewed(np.random.default_rng(2), 100_000, [300, 900])
    counts = Counter(zip(*(column.tolist() for column in columns), strict=True))
    truth = np.array([len(counts), list(counts.values()).count(1)])
    scores = []
    for seed in range(200):
        sampler = sampling.DistinctSampler([(0, 1)], 500, seed)
        sampler.update(columns)
        [estimate] = sampler.estimates()
        found = np.array([estimate.distinct, estimate.singletons])
        scores.append((found - truth) / np.array([estimate.distinct_error, estimate.singletons_error]))
    assert np.all(np.abs(np.mean(scores, axis=0)) < 0.3)
    assert np.all((np.std(scores, axis=0) > 0.85) & (np.std(scores, axis=0) < 1.15))
    assert np.all(np.mean(np.abs(scores) <= 2, axis=0) > 0.92)


COLUMNS = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "hours_per_week"]


@pytest.mark.thorough
def test_every_set_equals_quasi_identifier(adult: duckdb.DuckDBPyConnection) -> None:
    """Each row is what anon.quasi_identifier, a plain GROUP BY, says about the set."""
    rows = adult.execute(
        f"FROM anon.quasi_identifiers('adult', {COLUMNS}, max_size := 3, population := 3e8)"
    ).fetchall()
    assert len(rows) == sum(math.comb(8, size) for size in (1, 2, 3))
    for columns, size, *figures in random.Random(1).sample(rows, 25):
        expected = adult.execute(f"FROM anon.quasi_identifier('adult', {columns}, population := 3e8)").fetchall()[0]
        assert size == len(columns)
        assert [*figures[:9], figures[-1]] == pytest.approx(expected)
        assert figures[9:-1] == [expected[3] >= 0.2, expected[5] >= 0.2, 0, 0]


def test_minimal_sets_by_definition(adult: duckdb.DuckDBPyConnection) -> None:
    call = f"anon.quasi_identifiers('adult', {COLUMNS}, max_size := 4, alpha := 0.05, population := 5e6"
    verdict = "quasi_identifier_in_table OR quasi_identifier_in_population"
    found = [set(row[0]) for row in adult.execute(f"SELECT columns FROM {call}) WHERE {verdict}").fetchall()]
    expected = {frozenset(one) for one in found if not any(other < one for other in found)}
    assert len(expected) > 3
    minimal = adult.execute(f"SELECT columns, {verdict} FROM {call}, minimal := true)").fetchall()
    assert {frozenset(columns) for columns, _ in minimal} == expected
    assert all(qualifies for _, qualifies in minimal)


def unique_people(rows: list[dict[str, Any]], columns: Iterable[str], person: str | None) -> float:
    """The share of people who are alone in a class; a row without a person counts as nobody."""
    members: dict[tuple, set] = {}
    for number, row in enumerate(rows):
        members.setdefault(tuple(row[column] for column in columns), set()).add(row[person] if person else number)
    known = [who - {None} for who in members.values()]
    return len(set().union(*(who for who in known if len(who) == 1))) / len(set().union(*known))


@pytest.mark.parametrize("mode", ["false", "true"])
@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize("population", [None, 1, 1.5, 40])
def test_minimal_sets_by_brute_force(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    person: str | None,
    population: float | None,
) -> None:
    """All sets, their unique people and their bounds in plain Python; a sample of all combinations is exact."""
    monkeypatch.setattr(column_sets, "MOST_CELLS", 0)
    draw = random.Random(7)
    names = ["a", "b", "c", "d"]
    for alpha in (0.07, 0.2, 0.5):
        values = [draw.choice([2, 5, 10, 30]) for _ in names]
        rows = [
            {
                "who": draw.choice([None, *range(40)]),
                **{name: draw.randrange(count) for name, count in zip(names, values, strict=True)},
            }
            for _ in range(100)
        ]
        people = len({row["who"] for row in rows} - {None}) if person else len(rows)
        con.register("t", pa.Table.from_pylist(rows))
        universe = people if population is None else int(population * people)
        qualified = []
        for size in (1, 2, 3, 4):
            for columns in itertools.combinations(names, size):
                product = math.prod(len({row[column] for row in rows}) for column in columns)
                bound = product / math.e / universe if product <= universe else math.exp(-universe / product)
                if unique_people(rows, columns, person) >= alpha or (universe > people and bound >= alpha):
                    qualified.append(set(columns))
        found = con.execute(
            f"""SELECT columns, quasi_identifier_in_table OR quasi_identifier_in_population
                FROM anon.quasi_identifiers('t', {names}, max_size := 4, alpha := {alpha}, minimal := true,
                    approximate := {mode}, person := {f"'{person}'" if person else "NULL"},
                    population := {"NULL" if population is None else universe})"""
        ).fetchall()
        expected = {frozenset(one) for one in qualified if not any(other < one for other in qualified)}
        assert {frozenset(columns) for columns, _ in found} == expected
        assert all(qualifies for _, qualifies in found)


@pytest.mark.thorough
def test_the_approximate_search_is_as_good_as_it_says(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a million rows, sampled although they are few: nearly all estimates within two standard errors."""
    monkeypatch.setattr(column_sets, "MOST_CELLS", 0)
    con.execute("""CREATE TABLE big AS
        SELECT hash(i) % 90 AS a, hash(i + 1000000) % 5000 AS b, (hash(i + 2000000) % 1000 * (hash(i + 3) % 7)) AS c,
               CASE WHEN i % 11 = 0 THEN NULL ELSE i % 365 END AS d, i // 3 AS e, 'v' || hash(i + 7) % 40000 AS f
        FROM range(500_000) AS t(i)""").fetchall()
    exact, near = (
        con.execute(f"""SELECT columns, distinct_observed, singletons, distinct_error, singletons_error
                        FROM anon.quasi_identifiers('big', approximate := {mode}) ORDER BY columns""").fetchall()
        for mode in ("false", "true")
    )
    assert [row[0] for row in exact] == [row[0] for row in near]
    assert all(row[3:] == (0, 0) for row in exact)
    sampled = [(truth, guess) for truth, guess in zip(exact, near, strict=True) if guess[3] > 0]
    assert len(sampled) > 20
    for place, error in ((1, 3), (2, 4)):
        scores = [abs(guess[place] - truth[place]) / guess[error] for truth, guess in sampled]
        assert max(scores) < 4.5
        assert np.mean(np.array(scores) <= 2) > 0.85
    assert all(guess[1:3] == truth[1:3] for truth, guess in zip(exact, near, strict=True) if guess[3] == 0)


def test_two_approximate_searches_in_one_query(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 9 AS a, i % 7 AS b FROM range(10_000) AS t(i)").fetchall()
    call = "anon.quasi_identifiers('t', approximate := true)"
    query = f"""SELECT x.columns, x."rows", x.distinct_observed = y.distinct_observed
                FROM {call} x JOIN {call} y USING (columns)"""
    assert sorted(con.execute(query).fetchall()) == [
        (["a"], 10_000, True),
        (["a", "b"], 10_000, True),
        (["b"], 10_000, True),
    ]


def test_too_many_sets_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    columns = ", ".join(f"i AS c{place}" for place in range(30))
    con.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(3) AS t(i)").fetchall()
    for mode in ("false", "true"):
        with pytest.raises(
            duckdb.InvalidInputException, match=r"anon\.quasi_identifiers: up to 9 of 30 columns make 22,964,086 sets"
        ):
            con.execute(f"FROM anon.quasi_identifiers('wide', max_size := 9, approximate := {mode})").fetchall()


@pytest.mark.parametrize("bits", [29, 30, 31, 32, 40])
def test_classes_are_counted_at_every_width_of_keys(bits: int) -> None:
    """Keys on both sides of a power of two, as rows and as weighted rows, whose key carries one bit more."""
    keys = np.repeat(2**bits + np.arange(-3, 3), [1, 2, 3, 1, 1, 2])
    sizes = Counter(keys.tolist())
    assert lattice.class_counts(keys.copy(), 2**bits + 3, None) == (6, 3, 1)
    weighted = np.array([*sizes.values(), 1.0])
    distinct = np.array([*sizes, 2**bits + 2])  # once more: a class of two rows, one of which stands for two
    assert lattice.class_counts(distinct, 2**bits + 3, weighted) == (6, 3, 1)
