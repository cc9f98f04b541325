"""New records of numbers that a double does not hold as they are written: FLOATs in DOUBLE, whole numbers from 2^53."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import large, spectral
from duckanon._core.encoding.column_codecs import FEWEST_ROWS
from duckanon._core.encoding.number_types import NumberTypes
from tests.profiles import cheap

ROWS = 400
_LONG = Context(prec=60)
LOOSE: dict[str, dict[str, Any]] = {
    "synthesize": {"k": 5, "leaf": 10, "keep_out": 3},
    "spectral_release": {"k": 5, "keep_out": 3, "cluster_size": 100},
    "copula_synthesize": {"k": 5},
    "svd_swap": {"k": 5, "checks": "off"},
    "pica": {"k": 5, "checks": "off", "cluster_size": 100},
    "rhs": {"k": 5, "checks": "off"},
    "spectral_rhs": {"k": 5},
    "additive_noise": {},
    "data_shuffle": {},
}
"""Options with which a small table is released, by function."""
SHARED_AGAIN = ("synthesize", "spectral_release", "copula_synthesize")
"""The functions that release values which k people share as they are."""


def released(function: str, table: pa.Table, **options: object) -> list[Any]:
    """Release a table; return the values of its column `x`, which must keep its type."""
    made = getattr(spectral, function)(table, seed=1, nulls="category", **LOOSE[function], **options).read_all()
    assert made.schema.types == table.schema.types
    values: list[Any] = made["x"].to_pylist()
    return values


def beside(values: pa.Array) -> pa.Table:
    """Put a column called `x` beside two others."""
    row = np.arange(len(values))
    return pa.table({"x": values, "sex": np.array(["F", "M"])[row % 2], "ward": row * 7 % 13})


@pytest.mark.parametrize("function", LOOSE)
def test_floats_stored_in_double_are_floats_again(function: str) -> None:
    """The spike of 90 people is .7215 as a FLOAT, and nothing comes out that is no FLOAT."""
    random = np.random.default_rng(1)
    values = np.where(np.arange(ROWS) < 90, 0.7215, random.integers(0, 10_000, ROWS) / 10_000).astype(np.float32)
    made = np.array(released(function, beside(pa.array(values.astype(np.float64)))))
    assert (made == made.astype(np.float32)).all()
    spike = np.count_nonzero(made == float(np.float32(0.7215)))
    assert spike >= (60 if function in SHARED_AGAIN else 0)


@pytest.mark.parametrize("function", ["synthesize", "spectral_release"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_of_more_digits_that_many_share_come_out_as_they_are(function: str, dtype: type) -> None:
    """Logarithms of round wages have all the digits of a double, or of a FLOAT; k people have each of four."""
    random = np.random.default_rng(2)
    wages = np.where(np.arange(ROWS) < 200, 100 * (5 + np.arange(ROWS) % 4), random.lognormal(6, 1, ROWS))
    values = np.log(wages).astype(dtype)
    made = np.array(released(function, beside(pa.array(values.astype(np.float64)))))
    assert sorted(set(made[np.isin(made, values)])) == sorted(set(values[:4].astype(np.float64)))
    assert np.count_nonzero(np.isin(made, values[:4])) >= 150


@pytest.mark.parametrize("function", ["synthesize", "spectral_release"])
def test_a_shared_value_beside_the_digits_of_most_comes_out_as_it_is(function: str) -> None:
    """97 of 100 weights have one decimal, and 12 people 26.25; nobody has 26.2."""
    values = np.round(np.random.default_rng(3).normal(60, 9, ROWS), 1)
    values[:12] = 26.25
    made = np.array(released(function, beside(pa.array(values))))
    assert 26.25 in made
    assert 26.2 not in made
    assert np.mean(np.round(made, 1) == made) >= 0.95


@pytest.mark.parametrize("function", LOOSE)
@pytest.mark.parametrize(
    ("kind", "highest"),
    [
        (pa.int64(), 2**63 - 1),
        (pa.int64(), -(2**63) + 39),
        (pa.uint64(), 2**64 - 1),
        (pa.decimal128(38, 0), 10**30),
        (pa.decimal128(38, 10), 12345678901234567890 * 10**6),
    ],
)
def test_large_numbers_are_exact(function: str, kind: pa.DataType, highest: int) -> None:
    """40 neighbours, of ten people each: nothing else comes out, and more than a few of them."""
    numbers = [highest - place * 7 % 40 for place in range(ROWS)]
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    values = pa.array([Decimal(number).scaleb(-scale, _LONG) for number in numbers] if scale else numbers, kind)
    made = released(function, beside(values))
    assert set(made) <= set(values.to_pylist())
    assert len(set(made)) >= 10


@pytest.mark.parametrize("function", LOOSE)
def test_numbers_that_a_double_does_not_tell_apart_are_refused(function: str) -> None:
    """They are up to 2^64 apart, and neighbours; only what moves values as they are takes them."""
    values = [(2**63 - 1 - row % 40) * (1 if row % 3 else -1) for row in range(ROWS)]
    table = beside(pa.array(values))
    if function == "data_shuffle":
        assert sorted(released(function, table)) == sorted(values)
        return
    with pytest.raises(ValueError, match=r'column "x" holds whole numbers from 2\^53 on') as caught:
        released(function, table)
    assert "promise" not in str(caught.value)


@cheap
@given(
    st.sampled_from([pa.int64(), pa.uint64(), pa.decimal128(38, 0), pa.decimal128(30, 7), pa.float64()]),
    st.integers(-(10**29), 10**29),
    st.lists(st.integers(0, 2**52), min_size=1, max_size=20),
    st.sampled_from([1, 3, 1000]),
)
def test_what_is_read_is_written_again(kind: pa.DataType, base: int, apart: list[int], step: int) -> None:
    """Steps are below 2^53, in the order of the numbers, as far apart as these, and NULL stays NULL."""
    ends = (-(2**63), 2**63 - 1) if pa.types.is_int64(kind) else (0, 2**64 - 1)
    numbers = [base + step * one for one in apart]
    if pa.types.is_integer(kind):
        numbers = [min(max(number, ends[0]), ends[1]) for number in numbers]
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    values: list[Any] = [Decimal(number).scaleb(-scale, _LONG) for number in numbers]
    if not pa.types.is_decimal(kind):
        values = [float(number) if pa.types.is_floating(kind) else number for number in numbers]
    table = pa.table({"x": pa.array([*values, None], kind)})
    types = NumberTypes.of(table)
    read = types.read(table)
    assert types.write(read).equals(table)
    if types.types and not pa.types.is_floating(kind):
        steps = read["x"].to_pylist()[:-1]
        assert max(map(abs, steps)) < 2**53
        assert [numbers[0] - one for one in numbers] == [
            types.types["x"].step * (steps[0] - one)
            for one in steps  # type: ignore[union-attr]
        ]


@pytest.mark.parametrize("function", ["synthesize", "spectral_release", "svd_swap"])
def test_a_computed_unsigned_column_is_computed(function: str) -> None:
    """A sum in UBIGINT was 2^62 in every row."""
    random = np.random.default_rng(4)
    one, other = random.integers(0, 500, 600), random.integers(0, 300, 600)
    table = pa.table(
        {name: values.astype(np.uint64) for name, values in (("a", one), ("b", other), ("x", one + other))}
    )
    assert max(released(function, table)) <= 800


@pytest.mark.parametrize("function", ["synthesize", "spectral_release"])
def test_the_largest_number_as_a_code_comes_out(function: str) -> None:
    """18446744073709551615 for "unknown": as a double it is none of UBIGINT."""
    random = np.random.default_rng(5)
    values = random.integers(0, 100, ROWS).astype(np.uint64)
    values[random.random(ROWS) < 0.2] = 2**64 - 1
    made = released(function, beside(pa.array(values)))
    assert abs(made.count(2**64 - 1) - np.count_nonzero(values == 2**64 - 1)) <= 0.05 * ROWS


def test_few_records_with_the_same_noise_are_released() -> None:
    """Numbers of nanograms have their decimals up to a rounding, and are told apart by more digits than counted."""
    random = np.random.default_rng(1344)
    for _ in range(3):
        values = np.round(random.normal(50, 10, 70)) * 1e-9
        table = pa.table({"x": values, "sex": random.choice(["F", "M"], 70), "p": random.integers(0, 35, 70)})
        made = spectral.synthesize(table, k=5, leaf=10, keep_out=0, person="p", seed=1).read_all()
        assert made.num_rows


@pytest.mark.parametrize("function", [name for name in LOOSE if name != "data_shuffle"])
def test_no_zero_has_a_sign(function: str) -> None:
    """One person's -0.0 is the zero of all."""
    values = np.random.default_rng(6).integers(-3, 4, ROWS) / 2
    values[np.flatnonzero(values == 0)[0]] = -0.0
    made = np.array(released(function, beside(pa.array(values))))
    assert not np.signbit(made[made == 0]).any()


def test_large_files_keep_the_same_values(tmp_path: Path) -> None:
    """In parts, too: FLOATs in DOUBLE, and whole numbers near 2^63."""
    row = np.arange(4 * FEWEST_ROWS)
    table = pa.table(
        {
            "x": np.where(row % 3 == 0, 0.7215, row * 7919 % 97 / 10_000).astype(np.float32).astype(np.float64),
            "far": 2**63 - 1 - row * 7 % 40,
            "sex": np.array(["F", "M"])[row % 2],
        }
    )
    source, target = tmp_path / "people.parquet", tmp_path / "new.parquet"
    pq.write_table(table, source)
    large.synthesize(str(source), str(target), ["x", "far", "sex"], k=5, leaf=10, keep_out=3, seed=1)
    made = pq.read_table(target)
    assert made.schema.types == table.schema.types
    assert np.count_nonzero(np.array(made["x"]) == float(np.float32(0.7215))) > 0.25 * len(row)
    assert set(made["far"].to_pylist()) <= set(table["far"].to_pylist())
    assert len(set(made["far"].to_pylist())) > 10


def test_large_files_refuse_texts_in_which_rare_values_have_no_name(tmp_path: Path) -> None:
    """A UUID is bytes in Parquet files."""
    source = tmp_path / "people.parquet"
    rows = "SELECT ('00000000-0000-0000-0000-00000000000' || i % 3)::UUID AS u, i % 7 AS x FROM range(900) r(i)"
    duckdb.sql(rows).write_parquet(str(source))
    for function in (large.synthesize, large.pica):
        with pytest.raises(ValueError, match=r'column "u" has the type UUID, which is no text here'):
            function(str(source), None, ["u", "x"], k=5)
