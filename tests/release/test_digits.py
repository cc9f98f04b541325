"""The digits of released numbers: those of most originals, and nobody's alone for all that."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import spectral
from duckanon._core.encoding.column_split import SplitOptions, clean_floats, split_columns
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from tests.profiles import cheap

ROWS = 1500


def noisy(numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Move a twentieth of numbers to the float beside, as the division of two numbers does."""
    return np.where(random.random(len(numbers)) < 0.05, np.nextafter(numbers, np.inf), numbers)


def taken(table: pa.Table) -> ColumnParts:
    """Take a column apart as releases do."""
    return split_columns(table, None, SplitOptions(10, {}, None, "category"))[0]


@cheap
@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30),
    st.integers(-3, 4),
    st.integers(-2, 2),
    st.sampled_from([np.float64, np.float32]),
)
def test_floats_beside_rounded_ones_are_rounded(places: list[int], decimals: int, off: int, dtype: type) -> None:
    """Values a float or two beside so many decimals come out as these decimals; all others as they were."""
    wanted = np.array([place / 10**decimals if decimals >= 0 else place * 10**-decimals for place in places], dtype)
    found = wanted.copy()
    for _ in range(abs(off)):
        found = np.nextafter(found, dtype(np.sign(off) * np.inf))
    found[0] = wanted[0]
    after = clean_floats(pa.array([*found, None])).to_pylist()
    zeros = next((n for n in range(decimals + 6, 0, -1) if all(place % 10**n == 0 for place in places)), 0)
    has_room = np.abs(found).max() * 10.0 ** (decimals - zeros) <= 2 ** (np.finfo(dtype).nmant - 7)
    assert after[:-1] == (wanted if has_room else found).tolist()
    assert after[-1] is None


@cheap
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
def test_what_is_cleaned_is_no_farther_away_than_rounding_takes_it(numbers: list[float]) -> None:
    """No value moves by more than two floats; what is clean stays."""
    after = np.array(clean_floats(pa.array(numbers)).to_pylist())
    assert (np.abs(after - numbers) <= 2 * np.spacing(np.abs(numbers))).all()
    assert clean_floats(pa.array(after)).to_pylist() == after.tolist()


def test_unrounded_numbers_and_other_types_stay() -> None:
    """Measured numbers, whole ones, texts, NaN."""
    measured = np.random.default_rng(0).normal(100, 20, ROWS)
    for array in (pa.array(measured), pa.array(measured.astype(np.float32)), pa.array([1, 2]), pa.array(["a"])):
        assert clean_floats(array).equals(array)
    assert np.isnan(clean_floats(pa.array([1.0, float("nan")]))[1].as_py())


def test_a_released_number_has_the_digits_of_most() -> None:
    """Noise behind the second decimal, a hundredth of two decimals, a DECIMAL and a whole number like them."""
    random = np.random.default_rng(1)
    weight = np.round(random.normal(80, 15, ROWS), 1)
    weight = np.where(random.random(ROWS) < 0.012, np.round(weight + 0.04, 2), weight)
    income = random.integers(100, 900, ROWS) * 10
    income = np.where(random.random(ROWS) < 0.03, income + 3, income)
    table = pa.table(
        {
            "index": noisy(np.round(random.normal(28, 6, ROWS), 2), random),
            "weight": weight,
            "price": pa.array([Decimal(f"{value:.2f}") for value in weight], pa.decimal128(8, 2)),
            "income": income,
        }
    )
    released = spectral.spectral_release(table, cluster_size=300, derived="off", seed=1).read_all()
    for name, decimals in (("index", 2), ("weight", 1), ("price", 1), ("income", -1)):
        values = np.array([float(value) for value in released.column(name).to_pylist()])
        assert (values == np.round(values, decimals)).all(), name
        holders = Counter(table.column(name).to_pylist())
        assert not any(0 < holders[value] < 3 for value in released.column(name).to_pylist()), name


def test_who_has_more_digits_does_not_hold_the_value_beside() -> None:
    """Two people weigh 80.2, and many nearly so: 80.2 must not come out, of whatever type."""
    ordinary = np.repeat(np.round(np.arange(60, 100) + 0.5, 1), 40)
    beside = np.round(80.2 + 0.01 * np.arange(-4, 5)[np.arange(70) % 9], 2)
    weights = np.concatenate([ordinary, beside[beside != 80.2], [80.2, 80.2]])
    exact = pa.array([Decimal(f"{value:.2f}") for value in weights], pa.decimal128(8, 2))
    for array in (pa.array(weights), exact):
        numbers = SafeNumbers.of(taken(pa.table({"weight": array})), None, 10)
        place = numbers.grid.places(pa.array([80.2]) if array is not exact else exact[-1:])
        assert np.isin(place, numbers.rare).all()
        scores = np.linspace(-3, 3, 4 * len(weights))
        drawn = numbers.at_ranks(scores, np.arange(len(weights)), None)
        assert not np.isin(place, drawn).any()


@pytest.mark.parametrize("share", [0.03, 0.4])
def test_digits_that_many_have_stay(share: float) -> None:
    """A column keeps the digits that more than a twentieth have, and loses those that fewer have."""
    random = np.random.default_rng(2)
    numbers = np.round(random.normal(500, 100, ROWS))
    numbers = np.where(random.random(ROWS) < share, numbers + 0.5, numbers)
    regular = taken(pa.table({"x": numbers})).regular
    assert regular is not None
    assert regular.decimals == (0 if share < 0.05 else 1)


def test_last_digits_make_no_other_value() -> None:
    """A body mass index of one person came out as 24.21875000000004, which is nobody's."""
    random = np.random.default_rng(1)
    height, weight = random.normal(1.72, 0.09, 600).round(2), random.normal(74, 12, 600).round(1)
    index = weight / height**2
    people = pa.table({"height": height, "weight": weight, "bmi": index})
    released = spectral.spectral_release(people, k=5, cluster_size=300, seed=1).read_all()
    shown = released.column("bmi").to_numpy()
    values, holders = np.unique(index, return_counts=True)
    apart = np.abs(shown[:, None] - values[holders < 5][None, :]).min(axis=1)
    assert (apart > 1e-9).all()
