"""Random range counts against counting row by row, for values, intervals, sets and labels."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._measure.queries import answers as module
from duckanon._measure.queries.answers import query_column, query_utility
from duckanon._measure.queries.labels import Meaning
from tests.profiles import cheap


def column(values, kind=None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def covered(cell, low: float, high: float, step: float) -> float:
    """The part of an interval in a range, by trying whole numbers, or by lengths."""
    if cell is None:
        return 0.0
    start, end = cell["lo"], cell["hi"]
    if step:
        return float(np.mean([low <= value <= high for value in range(int(start), int(end) + 1)]))
    if start == end:
        return float(low <= start <= high)
    return max(0.0, min(end, high) - max(start, low)) / (end - start)


values = st.lists(st.none() | st.integers(-3, 6), min_size=1, max_size=25)
cells = st.lists(
    st.none() | st.tuples(st.integers(-4, 7), st.integers(0, 4)).map(lambda c: {"lo": c[0], "hi": c[0] + c[1]}),
    min_size=1,
    max_size=25,
)


@pytest.mark.thorough
@cheap
@given(values, values, cells, st.booleans(), st.integers(0, 99))
def test_ranges(original, released, intervals, whole, seed):
    kind = pa.int64() if whole else pa.float64()
    struct = pa.struct([("lo", kind), ("hi", kind)])
    found = query_column("c", column(original, kind), column(released, kind), 5, {}, np.random.default_rng(seed))
    boxed = query_column("c", column(original, kind), column(intervals, struct), 5, {}, np.random.default_rng(seed))
    known = np.array([value for value in original if value is not None], float)
    ends = np.full((5, 2), np.inf)
    if len(known):
        ends = np.sort(known[np.random.default_rng(seed).integers(0, len(known), (5, 2))], axis=1)
    for number, (low, high) in enumerate(ends):
        for cells_of, rows in ((found.original, original), (found.released, released), (boxed.original, original)):
            expected = [value is not None and low <= value <= high for value in rows]
            assert cells_of.share(number, slice(None)).tolist() == expected
        expected = [covered(cell, low, high, float(whole)) for cell in intervals]
        assert boxed.released.share(number, slice(None)).tolist() == pytest.approx(expected)


def test_sets_and_labels_cover_parts():
    original = column(["a", "b", "c", None, "a"])
    sets = column([["a"], ["b", "a"], ["c", "b", "a"], None, []])
    random = np.random.default_rng(3)
    found = query_column("c", original, sets, 20, {}, random)
    labels = {
        "ab": Meaning("listed", values=[("a", None), ("b", None)]),
        "*": Meaning("everything"),
        "or": Meaning("listed", values=[("c", None), (None, None)]),
        "-": Meaning("nothing"),
    }
    labelled = query_column("c", original, column(["a", "ab", "*", None, "or", "-"]), 20, labels, random)
    for number in range(20):
        a, b, c, null, again = found.original.share(number, slice(None)).astype(float).tolist()
        assert a == again
        assert 1 <= a + b + c + null <= 3
        expected = [a, (a + b) / 2, (a + b + c) / 3, null, null]
        assert found.released.share(number, slice(None)).tolist() == pytest.approx(expected)
        a, b, c, null, _ = labelled.original.share(number, slice(None)).astype(float).tolist()
        expected = [a, (a + b) / 2, (a + b + c + null) / 4, null, (c + null) / 2, 0]
        assert labelled.released.share(number, slice(None)).tolist() == pytest.approx(expected)


def test_open_ends_reach_to_the_originals():
    cells = column(
        [{"lo": None, "hi": 4.0}, {"lo": 4.0, "hi": None}, None],
        pa.struct([("lo", pa.float64()), ("hi", pa.float64())]),
    )
    found = query_column("c", column([0.0, 8.0]), cells, 30, {}, np.random.default_rng(1))
    shares = np.array([found.released.share(number, slice(None)) for number in range(30)])
    assert {tuple(row) for row in shares.tolist()} == {(0, 0, 0), (1, 1, 0)}


@pytest.mark.parametrize("chunk", [7, 1000])
def test_report_against_masks(chunk, monkeypatch):
    """The whole report, with a release of every second row, against plain boolean masks."""
    monkeypatch.setattr(module, "_CHUNK", chunk)
    random = np.random.default_rng(1)
    table = {
        "x": random.normal(size=60).round(1),
        "y": random.integers(0, 5, 60),
        "z": random.integers(0, 3, 60).astype(str),
    }
    original = pa.table(table)
    released = original.take(np.arange(0, 60, 2))
    asked = []

    def spy(name, first, second, predicates, labels, random):
        found = query_column(name, first, second, predicates, labels, random)
        asked.append((name, found))
        return found

    monkeypatch.setattr(module, "query_column", spy)
    counts = []
    real = module._counts
    monkeypatch.setattr(
        module, "_counts", lambda plan, *rest, **how: counts.append((plan, real(plan, *rest, **how))) or counts[-1][1]
    )
    report = query_utility(original, released, random=np.random.default_rng(2), queries=50, sanity_fraction=0.1)
    columns = dict(asked)
    names = original.column_names
    errors = []
    for query, predicates in enumerate(counts[0][0]):
        mask = np.ones(60, bool)
        for place, number in predicates:
            mask &= columns[names[place]].original.share(number, slice(None))
        assert counts[0][1][query] == mask.sum()
        assert counts[1][1][query] == mask[::2].sum()
        errors.append((len(predicates), abs(2 * mask[::2].sum() - mask.sum()) / max(mask.sum(), 6)))
    rows = report.to_pylist()
    assert [row["predicates"] for row in rows] == [None, 1, 2, 3]
    for row in rows:
        part = [error for size, error in errors if row["predicates"] in (None, size)]
        assert row["queries"] == len(part)
        assert row["median_relative_error"] == pytest.approx(np.median(part))
        assert row["mean_relative_error"] == pytest.approx(np.mean(part))
        assert row["p90_relative_error"] == pytest.approx(np.quantile(part, 0.9))


def test_errors_tell_releases_apart():
    random = np.random.default_rng(1)
    x = random.normal(size=5000)
    original = pa.table({"x": x, "y": x + random.normal(0, 0.3, 5000)})
    swapped = pa.table({"x": random.permutation(x), "y": original["y"]})
    low = np.floor(x * 2) / 2
    boxes = pa.table({"x": pa.StructArray.from_arrays([low, low + 0.5], ["lo", "hi"]), "y": original["y"]})
    errors = [
        query_utility(original, release, random=np.random.default_rng(2))["median_relative_error"][2].as_py()
        for release in (original, boxes, swapped)
    ]
    assert errors[0] == 0 < errors[1] < 0.05 < errors[2]


@pytest.mark.parametrize(
    ("released", "options", "message"),
    [
        ({"a": [1]}, {"queries": 0}, "queries must be a whole number of at least 1; got 0."),
        ({"a": [1]}, {"max_predicates": True}, "max_predicates must be a whole number of at least 1; got true."),
        ({"a": [1]}, {"sanity_fraction": 0}, "sanity_fraction must be a finite number above 0, at most 1; got 0."),
        ({"b": [1]}, {}, 'the released table has no column "a"'),
        ({"a": ["1-2"]}, {}, 'column "a" has a label that is not understood'),
        ({"a": [True]}, {}, 'column "a" holds BIGINT in the original and BOOLEAN in the release'),
        ({"a": [{"from": 1}]}, {}, r"its intervals must be STRUCT\(lo, hi\)"),
        ({"a": [{"lo": 2, "hi": 1}]}, {}, "ends before it starts; got row 1"),
    ],
)
def test_wrong_input(released, options, message):
    with pytest.raises(ValueError, match=message):
        query_utility(pa.table({"a": [1, 2]}), pa.table(released), random=np.random.default_rng(1), **options)


def test_constant_and_empty_columns():
    original = pa.table({"a": [1, 1], "b": ["x", "x"], "c": pa.nulls(2, pa.float64())})
    report = query_utility(original, original, random=np.random.default_rng(1), queries=30)
    assert report["mean_relative_error"].to_pylist() == [0] * 4
