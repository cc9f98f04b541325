"""Columns as they are: special values, categories in numbers, columns that follow from others, identifiers, NULLs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import spectral
from duckanon._core.encoding.column_split import SplitOptions, find_special_values, read_special, split_columns
from duckanon._core.encoding.fit import fit_columns, looks_like_identifier
from duckanon._core.encoding.formulas import find_formulas, find_lookups
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import sort_by_values
from duckanon._methods.swap import svd
from duckanon._methods.swap.pica import ClusterSwap
from tests.profiles import cheap
from tests.release.surveys import age_groups, columns_of, income_survey, social_survey

THESIS = {"k": 1, "special": "off", "categories": [], "derived": "off"}


def apart(table: pa.Table, k: int = 10, **options: object) -> list[ColumnParts]:
    """Take a table apart as releases do."""
    reading = {"special": {}, "categories": None, "nulls": "category", **options}
    return split_columns(table, None, SplitOptions(k, **reading))  # type: ignore[arg-type]


# Special values


def specials(values: np.ndarray) -> list[float]:
    """Find the special values of rows."""
    return find_special_values(*np.unique(values.astype(float), return_counts=True)).tolist()


def test_zeros_and_codes_are_special_and_ordinary_values_are_not() -> None:
    """Of the surveys, and of columns that have none: rounded, counted, negative."""
    random = np.random.default_rng(0)
    incomes, social = columns_of(income_survey(1500, 0)), columns_of(social_survey(1500, 0))
    assert {name: specials(incomes[name]) for name in ("wage", "self_employed", "pension", "age")} == {
        "wage": [0.0],
        "self_employed": [0.0],
        "pension": [0.0],
        "age": [],
    }
    assert [specials(social[name]) for name in ("nociga", "unempdur", "income", "height")] == [[-8], [-8], [-8], []]
    assert specials(random.poisson(6, 1500)) == []
    assert specials(np.round(random.normal(0, 10, 1500))) == []
    codes = random.choice([-8, -7, 0], 1500, p=[0.1, 0.1, 0.8])
    assert specials(np.where(codes < 0, codes, random.integers(1, 60, 1500))) == [-8, -7]


def test_special_values_that_one_names() -> None:
    """A map says which values a column has, in any case; others are found; 'off' finds none."""
    table = income_survey(1500, 1).select(["age", "wage"])
    assert read_special("off", ["a"]) is None
    assert read_special({"WAGE": [0, 100]}, ["age", "wage"]) == {"wage": [0.0, 100.0]}
    assert apart(table, special=None)[1].outcomes == ()
    assert apart(table)[1].outcomes == (0.0,)
    assert apart(table, special={"wage": []})[1].outcomes == ()
    for wrong in (3, ["wage"], {"wage": 0}, "some"):
        with pytest.raises(ValueError, match="special must be 'auto', 'off' or a map such as"):
            read_special(wrong, ["wage"])


# Categories and identifiers


def test_whole_numbers_of_few_values_are_categories() -> None:
    """Up to twelve; others where they are named; rare ones join the nearest that many hold."""
    random = np.random.default_rng(2)
    codes = np.r_[np.repeat([1, 2, 4, 9], 100), [7] * 3]
    table = pa.table({"code": codes, "many": random.integers(0, 13, 403), "share": random.integers(0, 3, 403) / 2})
    code, many, share = apart(table)
    assert (code.regular, code.outcomes) == (None, (1, 2, 4, 9))
    assert (code.codes[-3:] == 3).all()  # 7 is nearer to 9 than to 4
    assert many.regular is not None
    assert share.regular is not None
    assert apart(table, categories=["many"])[0].regular is not None
    assert apart(table, categories=["many"])[1].regular is None


def test_rare_texts_are_called_other() -> None:
    """Where they are at least k together; a few are given the commonest value."""
    many = pa.table({"t": ["a"] * 100 + ["b"] * 50 + [f"rare {i}" for i in range(12)]})
    few = pa.table({"t": ["a"] * 100 + ["b"] * 50 + [f"rare {i}" for i in range(5)]})
    assert set(apart(many)[0].outcomes) == {"a", "b", "other"}
    assert set(apart(few)[0].outcomes) == {"a", "b"}
    assert np.bincount(apart(few)[0].codes).tolist() == [105, 50]


def test_numbers_of_people_are_no_data() -> None:
    """Numbers of rows and from registers, by shape or by name; amounts are data."""
    random = np.random.default_rng(3)
    register = random.choice(10**6, 1000, replace=False)
    wages = np.unique(np.exp(random.normal(9, 1, 1200)).astype(np.int64))[:1000]
    named = [("x", np.arange(1000)), ("x", register), ("person_id", wages), ("wage", wages), ("paid", wages)]
    found = [looks_like_identifier(name, values.astype(float), len(set(values.tolist()))) for name, values in named]
    assert found == [True, True, True, False, False]
    with pytest.raises(ValueError, match="as an identifier has"):
        spectral.svd_swap(pa.table({"nr": np.arange(1000), "x": random.normal(size=1000)}))


def test_nulls_of_all_columns_in_one_sentence() -> None:
    """Not one column at a time."""
    table = pa.table({"a": [1.5, None, 2.5] * 100, "b": ["x", "y", None] * 100, "c": range(300)})
    sentence = 'column "a" has 100 NULLs, column "b" has 100 NULLs; remove these rows or say nulls := \'category\'.'
    for call in (lambda: fit_columns(table), lambda: apart(table, nulls="error")):
        with pytest.raises(ValueError, match=sentence):
            call()


# Columns that follow from others


def test_functions_of_other_columns_are_found() -> None:
    """Formulas, intervals of numbers, skipped questions, NULLs that go together."""
    names = social_survey(1500, 4).column_names
    columns = apart(social_survey(1500, 4))
    (formula,) = find_formulas(columns)
    assert (names[formula.column], [names[i] for i in formula.sources]) == ("bmi", ["height", "weight"])
    assert (formula.logged, formula.factors) == (True, (-2.0, 1.0))
    lookups = find_lookups(columns, [formula.column], np.random.default_rng(0))
    assert {(names[one.source], names[one.column]) for one in lookups} == {
        ("mmarr", "marital"),
        ("mmarr", "ymarr"),
        ("smoke", "nociga"),
        ("age", "agegr"),
    }
    names = income_survey(1500, 4).column_names
    (total,) = find_formulas(apart(income_survey(1500, 4)))
    assert names[total.column] == "income"
    assert sorted(names[i] for i in total.sources) == ["pension", "self_employed", "wage"]
    assert total.factors == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("fortune", [3_000, 9_876_543])
def test_one_fortune_hides_no_term_of_a_sum(fortune: int) -> None:
    random = np.random.default_rng(8)
    pay = np.rint(np.exp(7 + 0.4 * random.normal(size=1000)))
    pay[0] = fortune
    hours = np.rint(38 + 8 * random.normal(size=1000))
    (formula,) = find_formulas(apart(pa.table({"pay": pay, "hours": hours, "both": pay + hours})))
    assert {formula.column, *formula.sources} == {0, 1, 2}
    assert np.abs(formula.factors).tolist() == [1.0, 1.0]
    noise = np.rint(1000 * random.normal(size=1000))
    assert not find_formulas(apart(pa.table({"pay": pay, "both": pay + noise})))


def test_columns_of_many_nulls_hide_no_sum() -> None:
    random = np.random.default_rng(9)
    pay, rent = np.rint(np.exp(7 + 0.4 * random.normal(size=(2, 400))))
    seldom = {f"seldom {i}": pa.array(random.normal(size=400), mask=random.random(400) < 0.6) for i in range(3)}
    (formula,) = find_formulas(apart(pa.table({"pay": pay, "rent": rent, "both": pay + rent} | seldom)))
    assert {formula.column, *formula.sources} == {0, 1, 2}


@pytest.mark.thorough
@cheap
@given(st.integers(0, 2**32 - 1))
def test_chance_is_no_function(seed: int) -> None:
    """Columns that have nothing to do with each other, whatever their shapes, follow from nothing."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(150, 500))
    table = pa.table(
        {
            "many": np.round(random.normal(size=rows), 1),
            "amount": random.standard_gamma(1, rows),
            "zeros": np.where(random.random(rows) < 0.5, 0, random.standard_gamma(1, rows)),
            "code": random.integers(0, int(random.integers(2, 12)), rows),
            "flag": random.random(rows) < random.uniform(0.05, 0.95),
        }
    )
    columns = apart(table, k=2)
    assert find_formulas(columns) == []
    assert find_lookups(columns, [], random) == []


# The thesis's methods


def test_settings_of_the_thesis_are_the_thesis() -> None:
    """Row by row the release that the method itself makes."""
    table = income_survey(800, 5)
    plainly = {"tolerance": 1.5, "log": None, "nulls": "error", "checks": "off", "seed": 3}
    ordered = sort_by_values(table)
    plain = svd.swap_scores(ordered, svd.SwapOptions(**plainly)).read_all()
    assert spectral.svd_swap(table, **plainly, **THESIS).read_all() == plain
    options = {"cluster_size": 200, "basis": "pca", "clustering": "bisect", "checks": "off", "seed": 3}
    whole = ClusterSwap.of(ordered, None, "error", "pca", "bisect", "off", np.random.default_rng(3))
    assert spectral.pica(table, **options, **THESIS).read_all() == whole.release(200, None)
    with pytest.raises(ValueError, match="memory must be NULL unless k = 1"):
        spectral.svd_swap(table, memory="1MB")


@pytest.mark.parametrize("method", ["svd_swap", "pica"])
def test_swaps_know_columns_of_people(method: str) -> None:
    """Shares of special values, no contradiction, no extreme word for word; none of it holds as in the thesis."""
    options = {"seed": 1, "checks": "off", "nulls": "category"}
    if method == "pica":
        options |= {"cluster_size": 300, "basis": "pca", "clustering": "bisect"}
    table = social_survey(1500, 6)
    release = getattr(spectral, method)
    data, made = columns_of(table), columns_of(release(table, **options).read_all())
    before = columns_of(release(table, **options, **THESIS).read_all())
    assert (age_groups(made["age"]) == made["agegr"]).all()
    assert (age_groups(before["age"]) != before["agegr"]).mean() > 0.1
    assert np.abs(made["bmi"] - made["weight"] / (made["height"] / 100) ** 2).max() < 0.01
    assert ((made["smoke"] == "NO") == (made["nociga"] == -8)).all()
    assert not np.isin(made["nociga"], np.arange(-7, 1)).any()
    assert abs((made["unempdur"] == -8).mean() - (data["unempdur"] == -8).mean()) < 0.07
    assert np.isin(before["nociga"], np.arange(-7, 1)).mean() > 0.02
    paid = income_survey(1500, 6)
    largest = [
        columns_of(one)["wage"].max()
        for one in (paid, release(paid, **options).read_all(), release(paid, **options, **THESIS).read_all())
    ]
    assert largest[1] < 0.5 * largest[0]
    assert largest[2] > 0.7 * largest[0]


@pytest.mark.thorough
def test_a_reference_is_read_like_the_table() -> None:
    """Other people, with values that the table does not have, are compared with in a search."""
    table, others = income_survey(600, 7), income_survey(500, 8)
    columns = ["age", "wage", "region", "citizenship"]
    made = spectral.pica(
        table, columns, reference=others, basis="pca", clustering="bisect", checks="repair", seed=1
    ).read_all()
    assert made.column_names == columns
    assert set(made["citizenship"].to_pylist()) <= set(table["citizenship"].to_pylist())
