"""Tables coded for measuring: special values, numbers that are categories, and what stays as the thesis has it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.encoding.fit import fit_columns
from duckanon._core.encoding.measurement_encoding import CodeColumn, SpecialColumn, fit_measure_encoding
from tests.profiles import cheap


def people(rows=400, seed=0):
    """Incomes of which many are 0, a code of three values, an amount, a text, and NULLs here and there."""
    random = np.random.default_rng(seed)
    income = np.where(random.random(rows) < 0.4, 0, random.integers(1000, 9000, rows))
    race, age = random.integers(1, 4, rows), random.integers(18, 90, rows)
    missing = random.random(rows) < 0.1
    return pa.table(
        {
            "income": pa.array(income, mask=missing),
            "race": pa.array(race, mask=missing),
            "age": age,
            "city": random.choice(["Rome", "Oslo"], rows),
        }
    )


def test_special_values_and_categories_by_hand():
    table = people()
    encoding = fit_measure_encoding(table, log=[])
    assert [type(column).__name__ for column in encoding.columns[:2]] == ["SpecialColumn", "CodeColumn"]
    matrix = encoding.matrix(table)
    income, race, age, city = (table[name].to_numpy(zero_copy_only=False) for name in table.column_names)
    regular = income[(income != 0) & ~np.isnan(income)]
    amount = np.where(np.isnan(income) | (income == 0), 0.0, (income - regular.mean()) / regular.std())
    expected = [
        amount,
        np.where(income == 0, 1, -1),
        np.where(np.isnan(income), 1, -1),
        *(np.where(race == value, 1, -1) for value in (1, 2, 3)),
        np.where(np.isnan(race), 1, -1),
        (age - age.mean()) / age.std(),
        np.where(city == "Rome", 1, -1),
    ]
    assert matrix == pytest.approx(np.column_stack(expected), abs=1e-9)
    assert [group.stop for group in encoding.groups] == [3, 7, 8, 9]


def test_as_in_the_thesis():
    table = people()
    plain, _ = fit_columns(table, nulls="category", lenient=True)
    results = fit_measure_encoding(table, special="off", categories=[])
    assert results.columns == plain.columns
    assert (results.matrix(table) == plain.matrix(table)).all()


def test_what_is_named():
    table = people()
    named = fit_measure_encoding(table, special={"AGE": [18]}, categories=["income"]).columns
    assert isinstance(named[0], CodeColumn)
    assert len(named[0].values) == len(table["income"].unique())
    assert not isinstance(named[1], CodeColumn)
    assert isinstance(named[2], SpecialColumn)
    assert named[2].special == (18.0,)
    logged = fit_measure_encoding(table, log=["income", "race"]).columns  # of what is not special, and of no category
    assert isinstance(logged[0], SpecialColumn)
    assert logged[0].regular.logged
    assert not isinstance(logged[1], CodeColumn)


@pytest.mark.parametrize("option", ["log", "categories"])
def test_refusals(option):
    with pytest.raises(ValueError, match=f"column .nope. in {option} does not exist; the columns are income, race"):
        fit_measure_encoding(people(), **{option: ["nope"]})
    with pytest.raises(ValueError, match=r"column .nope. in special does not exist"):
        fit_measure_encoding(people(), special={"nope": [1]})


def test_values_that_the_original_does_not_have():
    table = people()
    encoding = fit_measure_encoding(table)
    other = pa.table({"income": [0.0, 7.5], "race": [9, 1], "age": [20, 20], "city": ["Oslo", "Oslo"]})
    first, second = encoding.matrix(other)
    assert first[3:7].tolist() == [-1, -1, -1, -1]
    assert second[3:7].tolist() == [1, -1, -1, -1]
    with pytest.raises(ValueError, match='column "race" must hold numbers; got VARCHAR'):
        encoding.matrix(other.set_column(1, "race", pa.array(["a", "b"])))
    with pytest.raises(ValueError, match='column "income" holds NaN or infinity'):
        encoding.matrix(other.set_column(0, "income", pa.array([np.nan, 1.0])))


@cheap
@given(st.lists(st.one_of(st.none(), st.integers(-9, 30)), min_size=2, max_size=60), st.booleans())
def test_rows_are_coded_alike_if_they_are_equal(values, as_in_thesis):
    """What is coded differs exactly where the values do, so that copies are copies in every encoding."""
    table = pa.table({"x": pa.array(values, pa.int64()), "y": list(range(len(values)))})
    if all(value is None for value in values):
        return
    options = {"special": "off", "categories": []} if as_in_thesis else {"categories": ["x"]}
    matrix = fit_measure_encoding(table, **options).matrix(table)[:, :-1]
    for first in range(len(values)):
        same = (matrix == matrix[first]).all(axis=1)
        assert same.tolist() == [value == values[first] for value in values]
