"""The encoding of tables as matrices: round trips for every type, streamed moments, other tables, refusals."""

import datetime
import decimal
import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.encoding.column_codecs import CategoryColumn, NumberColumn, refuse_few_rows
from duckanon._core.encoding.fit import fit_columns
from duckanon._core.encoding.sources import open_source
from tests.profiles import cheap

OTHER = pa.array(["x", "y", "z"] * 100)


def picks(values: list, rows: int, seed: int = 0) -> list:
    """Every value at least once, in random order, never as many values as rows."""
    random = np.random.default_rng(seed)
    drawn = [values[i] for i in random.integers(0, len(values), rows - 2 * len(values))]
    drawn += values * 2
    return [drawn[i] for i in random.permutation(len(drawn))]


def beside(column: pa.Array) -> pa.Table:
    return pa.table({"v": column, "o": OTHER.slice(0, len(column))})


def round_trip(column: pa.Array, **options: object) -> pa.Array:
    table = beside(column)
    encoding, _ = fit_columns(table, **options)
    back = encoding.table(encoding.matrix(table))
    assert back.schema == table.schema
    assert back["o"].to_pylist() == table["o"].to_pylist()
    return back["v"].combine_chunks()


@st.composite
def exact_columns(draw: st.DrawFn) -> pa.Array:
    """Whole steps of any type, from all of its range, or a narrow range anywhere in it."""
    kinds = {
        pa.int8(): (-(2**7), 2**7 - 1), pa.int16(): (-(2**15), 2**15 - 1), pa.int32(): (-(2**31), 2**31 - 1),
        pa.int64(): (-(2**63), 2**63 - 1), pa.uint8(): (0, 2**8 - 1), pa.uint16(): (0, 2**16 - 1),
        pa.uint32(): (0, 2**32 - 1), pa.uint64(): (0, 2**64 - 1), pa.date32(): (-(2**31) + 2, 2**31 - 2),
        pa.timestamp("s"): (-(2**40), 2**40), pa.timestamp("ms", "Europe/Berlin"): (-(2**50), 2**50),
        pa.timestamp("us"): (-(2**62), 2**62), pa.timestamp("ns", "UTC"): (-(2**63) + 2, 2**63 - 2),
        pa.time32("s"): (0, 86399), pa.time32("ms"): (0, 86399999), pa.time64("us"): (0, 86399999999),
        pa.duration("us"): (-(2**62), 2**62), pa.decimal128(18, 4): (-(10**18) + 1, 10**18 - 1),
        pa.decimal128(38, 0): (-(2**63), 2**63 - 1), pa.decimal128(5, 2): (-99999, 99999),
    }  # fmt: skip
    kind = draw(st.sampled_from(list(kinds)))
    low, high = kinds[kind]
    start = draw(st.integers(low, high))
    step = draw(st.sampled_from([1, 1, 5, 1000]))
    span = min((high - start) // step, 2**50 // step)
    codes = draw(st.lists(st.integers(0, span), min_size=2, max_size=30))
    numbers = picks([start + code * step for code in codes], 100)
    if pa.types.is_decimal(kind):
        with decimal.localcontext(decimal.Context(prec=60)):
            return pa.array([decimal.Decimal(number).scaleb(-kind.scale) for number in numbers], kind)
    if pa.types.is_integer(kind):
        return pa.array(numbers, kind)
    return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


@cheap
@given(exact_columns())
def test_whole_steps_come_back_exactly(column: pa.Array) -> None:
    if len(column.unique()) == 1:
        with pytest.raises(ValueError, match=r"column .v. has the same value in every row"):
            fit_columns(beside(column), log=[])
    else:
        assert round_trip(column, log=[]).equals(column)
        mask = np.arange(len(column)) % 7 == 0
        blanked = pa.array([None if blank else v for blank, v in zip(mask, column, strict=True)], column.type)
        if len(blanked.drop_null().unique()) > 1:
            assert round_trip(blanked, log=[], nulls="category").equals(blanked)


@cheap
@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30, unique=True), st.integers(-3, 6))
def test_doubles_come_back_with_their_decimals(numbers: list[int], decimals: int) -> None:
    values = [number / 10**decimals if decimals >= 0 else number * 10.0**-decimals for number in numbers]
    column = pa.array(picks(values, 100))
    assert round_trip(column, log=[]).equals(column)
    encoding, _ = fit_columns(beside(column), log=[])
    noise = np.random.default_rng(0).normal(size=(200, encoding.width))
    released = encoding.table(noise)["v"].to_pylist()
    assert all(float(f"{v:.{max(decimals, 0)}f}") == v for v in released)
    assert min(values) <= min(released) <= max(released) <= max(values)
    if decimals < 0:
        assert all(v % 10**-decimals == 0 for v in released)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_floats_of_each_width_come_back_as_what_they_print(kind: pa.DataType) -> None:
    column = pa.array(np.array(picks([0.1, 12.3, -7.7, 99.9], 100), f"f{kind.bit_width // 8}"), kind)
    assert round_trip(column).equals(column)


def test_doubles_without_decimals_are_not_rounded_and_close() -> None:
    values = np.random.default_rng(0).normal(size=300) * 1e-9 + 1
    assert np.abs(round_trip(pa.array(values)).to_numpy() - values).max() < 1e-15


def test_the_whole_of_64_bits_comes_back_nearly_and_without_overflow() -> None:
    for kind, bounds in ((pa.int64(), (-(2**63), 2**63 - 1)), (pa.uint64(), (0, 2**64 - 1))):
        column = pa.array(picks([*bounds, 2**62], 100), kind)
        back = [int(v) for v in round_trip(column, log=[]).to_pylist()]
        assert max(abs(a - b) for a, b in zip(back, column.to_pylist(), strict=True)) <= 2**13
        encoding, _ = fit_columns(beside(column), log=[])
        wild = encoding.table(np.array([[-9.0, 0, 0, 0], [9.0, 0, 0, 0]]))["v"].to_pylist()
        assert wild[0] == bounds[0]
        assert 0 <= bounds[1] - wild[1] <= 2**12


TEXTS = ["b", "", "a'b", "ü", "a" * 100]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
     pa.dictionary(pa.uint32(), pa.large_string(), ordered=True)],
    ids=str,
)  # fmt: skip
def test_categories_come_back(kind: pa.DataType, count: int) -> None:
    texts = picks(TEXTS[:count], 100)
    blanked = [None if i % 5 == 0 else v for i, v in enumerate(texts)]
    for column in (pa.array(texts), pa.array(blanked)):
        if pa.types.is_dictionary(kind):
            indices = column.dictionary_encode()
            column = pa.DictionaryArray.from_arrays(
                indices.indices.cast(kind.index_type), indices.dictionary.cast(kind.value_type), ordered=kind.ordered
            )
        else:
            column = column.cast(kind)
        assert round_trip(column, nulls="category").to_pylist() == column.to_pylist()


def test_booleans_and_nulls_are_groups_of_plus_and_minus_one() -> None:
    table = pa.table({"b": [True, False, None] * 40, "t": [False, True] * 60, "n": [1.0, None, 3.0] * 40})
    encoding, _ = fit_columns(table, nulls="category")
    matrix = encoding.matrix(table)
    assert encoding.groups == [slice(0, 3), slice(3, 4), slice(4, 6)]
    np.testing.assert_array_equal(matrix[:3, :4], [[-1, 1, -1, -1], [1, -1, -1, 1], [-1, -1, 1, -1]])
    np.testing.assert_allclose(matrix[:3, 4:], [[-1, -1], [0, 1], [1, -1]])
    assert (matrix[:, :3].sum(axis=1) == 2 - 3).all()
    assert encoding.table(matrix).equals(table)


def make_mixed_table(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    names = pa.array([f"k{i:02}" for i in range(20)])
    return pa.table({
        "g": random.normal(size=rows),
        "far": 1e9 + random.normal(size=rows),
        "skewed": np.exp(2 * random.normal(size=rows)),
        "i": random.integers(1, 50, rows),
        "u": pa.array(2**64 - 1 - random.integers(0, 100, rows).astype(np.uint64)),
        "s": names.take(pa.array(np.minimum(random.geometric(0.2, rows), 19))),
        "day": pa.array(random.integers(0, 9999, rows).astype(np.int32)).view(pa.date32()),
        "b": random.random(rows) < 0.2,
        "ng": pa.array(random.exponential(size=rows), mask=random.random(rows) < 0.2),
        "ns": names.take(pa.array(random.integers(0, 4, rows), mask=random.random(rows) < 0.1)),
    })  # fmt: skip


@pytest.mark.parametrize("order", [None, "g", "s", "ng", "ns", "skewed", "b"])
def test_streamed_moments_are_those_of_the_whole_matrix(order: str | None) -> None:
    """Sorted: categories and NULLs first turn up in the last of many batches, and the first batch is constant."""
    table = make_mixed_table(20_000)
    if order is not None:
        table = table.sort_by([(order, "descending")])
    encoding, moments = fit_columns(lambda: iter(table.to_batches(max_chunksize=3000)), nulls="category")
    matrix = encoding.matrix(table)
    np.testing.assert_allclose(moments.mean, matrix.mean(axis=0), atol=1e-11)
    np.testing.assert_allclose(moments.covariance, np.cov(matrix.T), atol=1e-11)
    assert moments.rows == 20_000
    assert encoding.columns[2].logged
    assert not encoding.columns[0].logged


def test_the_order_of_rows_changes_no_code() -> None:
    table = make_mixed_table(5000)
    straight, _ = fit_columns(table, nulls="category")
    shuffled, _ = fit_columns(table.take(np.random.default_rng(1).permutation(5000)), nulls="category")
    np.testing.assert_allclose(straight.matrix(table), shuffled.matrix(table), atol=1e-9)


def test_offsets_cost_no_precision() -> None:
    noise = np.random.default_rng(0).integers(-1000, 1000, (2, 5000)) / 1024  # exact, even beside 1e9
    table = pa.table({"a": 1e9 + noise[0], "b": -1e9 + noise[0] + noise[1]})
    _, moments = fit_columns(table)
    np.testing.assert_allclose(moments.covariance[0, 1], np.corrcoef(noise[0], noise[0] + noise[1])[0, 1] * 5000 / 4999)


def test_logarithms_where_asked() -> None:
    table = make_mixed_table(1000)

    def list_logged(**options: object) -> list[str]:
        columns = fit_columns(table, nulls="category", **options)[0].columns
        return [column.name for column in columns if getattr(column, "logged", False)]

    assert list_logged() == ["skewed"]
    assert list_logged(log=[]) == []
    assert list_logged(log=["i", "u"]) == ["i", "u"]
    encoding, _ = fit_columns(table, nulls="category", log=["i", "skewed"])
    np.testing.assert_allclose(encoding.matrix(table)[:, 2], _standardise(np.log(table["skewed"].to_numpy())))
    assert encoding.table(encoding.matrix(table))["i"].equals(table["i"])


def _standardise(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def test_other_tables() -> None:
    table = pa.table({"n": [1, 2, 3, 4] * 30, "two": ["a", "b"] * 60, "three": ["a", "b", "c"] * 40})
    encoding, _ = fit_columns(table)
    other = pa.table({"three": ["c", "new", None], "two": ["b", "new", None], "n": [2.5, 9.0, None]})
    centre, deviation = 2.5, np.sqrt(1.25)
    np.testing.assert_allclose(
        encoding.matrix(other),
        [[0, 1, -1, -1, 1], [(9 - centre) / deviation, 0, -1, -1, -1], [0, 0, -1, -1, -1]],
    )
    assert encoding.matrix(other, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match=r"column .two. does not exist; the columns are n, three"):
        encoding.matrix(table.drop_columns("two"))
    with pytest.raises(ValueError, match=r"column .n. holds NaN or infinity"):
        encoding.matrix(table.set_column(0, "n", pa.array([np.nan] * 120)))
    with pytest.raises(ValueError, match=r"column .n. must hold numbers \(BIGINT\); got VARCHAR"):
        encoding.matrix(table.set_column(0, "n", table["two"]))


GOOD = list(np.random.default_rng(0).normal(size=300))


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ([1.0, np.nan] * 150, {}, "column .bad. holds NaN or infinity"),
        ([1.0, np.inf] * 150, {}, "column .bad. holds NaN or infinity"),
        ([1.0, 1e151] * 150, {}, r"column .bad. holds numbers beyond 1e\+150; set them to NULL"),
        ([1.0, None] * 150, {}, "column .bad. has 150 NULLs; remove these rows or say nulls := 'category'"),
        (["a", "b", None] * 100, {}, "column .bad. has 100 NULLs"),
        ([7] * 300, {}, "column .bad. has the same value in every row"),
        (["a"] * 300, {}, "column .bad. has the same value in every row"),
        ([True] * 300, {}, "column .bad. has the same value in every row"),
        (pa.nulls(300), {"nulls": "category"}, "column .bad. holds nothing but NULL"),
        (pa.nulls(300, pa.int32()), {"nulls": "category"}, "column .bad. holds nothing but NULL"),
        (pa.nulls(300, pa.string()), {"nulls": "category"}, "column .bad. has nothing but NULL"),
        ([f"{i}" for i in range(300)], {}, "column .bad. has 300 different values in 300 rows, as an identifier has"),
        ([f"{i // 1.8}" for i in range(300)], {}, "different values in 300 rows, as an identifier has"),
        ([[1]] * 300, {}, "column .bad. must hold numbers, booleans, texts, dates or times; got BIGINT\\[\\]"),
        ([b"a", b"b"] * 150, {}, "column .bad. must hold numbers, .* got BLOB"),
        ([decimal.Decimal(10**20), decimal.Decimal(1)] * 150, {}, "numbers of more than 18 digits"),
        ([1, 0] * 150, {"log": ["bad"]}, "column .bad. has no logarithms: it must hold positive numbers"),
        (["a", "b"] * 150, {"log": ["bad"]}, "column .bad. has no logarithms: it holds no numbers; got VARCHAR"),
        ([datetime.date(2000, 1, d % 28 + 1) for d in range(300)], {"log": ["bad"]}, "holds no numbers; got DATE"),
        ([1, 2] * 150, {"log": ["worse"]}, "column .worse. in log does not exist; the columns are good, bad"),
        ([1, 2] * 150, {"nulls": "drop"}, "nulls must be one of 'error', 'category'; got 'drop'"),
        ([1, 2] * 150, {"cols": ["good"]}, "cols must name at least two columns; got 1"),
        ([1, 2] * 150, {"cols": ["good", "worse"]}, "column .worse. does not exist; the columns are good, bad"),
        ([1, 2] * 150, {"cols": ["good", "good"]}, "column .good. occurs more than once"),
    ],
)  # fmt: skip
def test_refusals(column: object, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_columns(pa.table({"good": GOOD, "bad": column}), **options)


@pytest.mark.thorough
def test_more_refusals() -> None:
    many = pa.table({"good": np.arange(9000.0), "bad": [f"{i % 1001}" for i in range(9000)]})
    with pytest.raises(ValueError, match=r"column .bad. has more than 1,000 different values"):
        fit_columns(many.append_column("x", pa.array(np.arange(9000.0))), nulls="category")
    fit_columns(many.filter(pa.array(np.arange(9000) % 1001 < 1000)))
    with pytest.raises(ValueError, match="the table has no rows"):
        fit_columns(many.slice(0, 0))
    with pytest.raises(ValueError, match="at least 200 rows are needed for 3 independent components; got 199"):
        refuse_few_rows(199, 3)
    with pytest.raises(ValueError, match="at least 400 rows are needed for 50 independent components; got 399"):
        refuse_few_rows(399, 50)
    refuse_few_rows(400, 50)


def test_every_source_gives_the_same(tmp_path: os.PathLike) -> None:
    table = make_mixed_table(5000).append_column("d", make_mixed_table(5000)["s"].combine_chunks().dictionary_encode())
    path = os.path.join(tmp_path, "rows.parquet")
    pq.write_table(table, path, row_group_size=700)
    expected, moments = fit_columns(table, nulls="category")
    sources = {
        "path": path, "folder": tmp_path, "dataset": ds.dataset(path), "reader": table.to_reader(max_chunksize=900),
        "function": lambda: table.to_reader(max_chunksize=11), "tables": lambda: table,
        "batches": lambda: iter(table.to_batches(max_chunksize=4999)), "batch": table.to_batches()[0],
    }  # fmt: skip
    for name, source in sources.items():
        opened = open_source(source)
        for _ in range(2):
            again = pa.Table.from_batches(list(opened.batches(1000)))
            assert [batch.num_rows for batch in opened.batches(1500)] == [1500, 1500, 1500, 500]
            assert again["d"].cast(pa.string()).equals(table["d"].cast(pa.string())), name
            assert again.drop_columns("d").equals(table.drop_columns("d")), name
        encoding, results = fit_columns(opened, nulls="category")
        np.testing.assert_allclose(encoding.matrix(table), expected.matrix(table), atol=1e-9)
        np.testing.assert_allclose(results.covariance, moments.covariance, atol=1e-11)
        chosen = open_source(opened, ["s", "g"])
        assert pa.Table.from_batches(list(chosen.batches(10**6))).equals(table.select(["s", "g"])), name
        opened.close()


def test_a_spooled_reader_leaves_no_file(tmp_path: os.PathLike, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_source(make_mixed_table(100).to_reader())
    assert len(os.listdir(tmp_path)) == 1
    source.close()
    fit_columns(make_mixed_table(300).to_reader(), nulls="category")
    with pytest.raises(ValueError, match=r"column .q. does not exist"):
        open_source(make_mixed_table(100).to_reader(), ["q"])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("source", [3, ["a"], None])
def test_what_is_no_source(source: object) -> None:
    with pytest.raises(ValueError, match="the source must be an Arrow table, dataset or reader"):
        open_source(source)
    with pytest.raises(ValueError, match=r"there is no Parquet file nowhere.parquet"):
        open_source("nowhere.parquet")


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(-5, 9, 2), (0, 2**53 + 1, 1), (2**62 - 1, 2**63 - 1, 1), (-(2**63), 2**63 - 1, 1), (-(2**63), 2**63 - 1, 3)],
)
def test_codes_stay_in_their_range(low, high, step):
    """Counts are doubles, which past 2^53 are not all there: no count is rounded to one beyond the range."""
    column = NumberColumn("x", pa.int64(), low, high, step, None, False, 0.0, 1.0, False)
    codes = column.codes(np.array([-1e30, 0.0, step, float(high - low), 1e30])).tolist()
    assert codes[:3] == [low, low, low + step]
    for code in codes:
        assert low <= code <= high
        assert (code - low) % step == 0
    assert min(codes[3:]) >= high - step - (high - low) / 2**52


def test_two_values_come_back_by_sign() -> None:
    """A row that is neither, such as one of a value that was never seen, is the first."""
    column = CategoryColumn("sex", pa.string(), ("f", "m"))
    assert column.back(np.array([[-0.2, 0.3, 0.0]])).to_pylist() == ["f", "m", "f"]
