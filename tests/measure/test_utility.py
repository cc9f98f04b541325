"""Statistics of a release against its original: scipy and numpy say the same."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duckanon._core.encoding.pairs import pair_tables
from duckanon._measure.utility.declared import UTILITY
from duckanon._measure.utility.kernels import ks_test
from duckanon._measure.utility.statistics import ks_distance, utility
from tests.profiles import cheap


def rows(found: pa.Table, statistic: str) -> dict[tuple[str, str | None], dict]:
    return {
        (row["column_name"], row["other_column"]): row for row in found.to_pylist() if row["statistic"] == statistic
    }


def test_against_scipy():
    random = np.random.default_rng(1)
    first = np.round(random.normal(size=(300, 4)) @ random.normal(size=(4, 4)) + 1e6, 1)
    second = np.round(random.normal(size=(170, 4)) @ random.normal(size=(4, 4)) + 1e6, 1)
    names = list("abcd")
    found = utility(pa.table(list(first.T), names), pa.table(list(second.T), names))
    assert [f"{name} {found.schema.field(name).type}" for name in found.column_names][:4] == [
        "statistic string", "column_name string", "other_column string", "original double",
    ]  # fmt: skip
    assert found.schema == UTILITY.schema
    means, variances = rows(found, "mean"), rows(found, "variance")
    linear, ranked, ks = rows(found, "correlation"), rows(found, "rank_correlation"), rows(found, "ks")
    expected_rank = [stats.spearmanr(values).statistic for values in (first, second)]
    for j, name in enumerate(names):
        a, b = first[:, j], second[:, j]
        shift = (b - 1e6).mean() - (a - 1e6).mean()  # numpy's own mean loses digits so far from 0
        assert means[name, None]["normalized_difference"] == pytest.approx(shift / a.std(ddof=1), rel=1e-8)
        ratio = b.var(ddof=1) / a.var(ddof=1) - 1
        assert variances[name, None]["normalized_difference"] == pytest.approx(ratio, rel=1e-8)
        assert variances[name, None]["released"] == pytest.approx(b.var(ddof=1))
        assert ks[name, None]["difference"] == pytest.approx(stats.ks_2samp(a, b).statistic, abs=1e-12)
        for i in range(j):
            key = names[i], name
            assert linear[key]["original"] == pytest.approx(np.corrcoef(first.T)[i, j])
            assert linear[key]["released"] == pytest.approx(np.corrcoef(second.T)[i, j])
            assert ranked[key]["original"] == pytest.approx(expected_rank[0][i, j])
            assert ranked[key]["difference"] == pytest.approx(expected_rank[1][i, j] - expected_rank[0][i, j])
    assert len(linear) == len(ranked) == 6
    median = np.median([abs(row["normalized_difference"]) for row in linear.values()])
    assert [row["median_difference"] for row in linear.values()] == pytest.approx([median] * 6)


def test_types_and_nulls():
    first = pa.table(
        {
            "sex": ["f", "m", "f", None],
            "born": [datetime.date(2000, 1, day) for day in (1, 2, 3, 4)],
            "on": [True, False, True, True],
            "pay": pa.array([1, 2, None, 3], pa.int32()),
        }
    )
    second = first.set_column(0, "sex", pa.array(["m", "m", "f", None]).dictionary_encode())
    second = second.set_column(3, "pay", pa.array([1.0, None, None, 3.0]))
    found = utility(first, second)
    assert rows(found, "total_variation")["sex", None]["difference"] == 0.25
    assert rows(found, "ks")["pay", None]["difference"] == 0.25
    assert rows(found, "ks")["born", None]["difference"] == 0
    assert rows(found, "mean")["born", None]["original"] == 10957 + 1.5
    assert rows(found, "mean")["pay IS NULL", None]["released"] == 0.5
    assert rows(found, "mean")["sex = m", None]["difference"] == 0.25
    assert rows(found, "mean")["on = True", None]["original"] == 0.75


def test_constant_columns():
    first = pa.table({"a": [0.1] * 7, "b": [1.0, 2, 3, 4, 5, 6, 7], "c": [0.1] * 7})
    second = pa.table({"a": [0.1] * 5, "b": [1.0, 2, 3, 4, 5], "c": [0.1, 0.1, 0.1, 0.1, 0.3]})
    found = utility(first, second)
    assert rows(found, "mean")["a", None]["normalized_difference"] == 0
    assert rows(found, "variance")["a", None]["normalized_difference"] == 0
    assert rows(found, "mean")["c", None]["normalized_difference"] == np.inf
    assert rows(found, "correlation")["a", "b"]["original"] is None
    assert rows(found, "correlation")["a", "b"]["difference"] is None
    assert rows(found, "rank_correlation")["a", "b"]["difference"] is None
    alone = utility(first.select(["a"]), second.select(["a"]))
    assert alone["statistic"].to_pylist() == ["mean", "variance", "ks"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"a": [1]}, {"b": [1]}, 'the released table has no column "a"'),
        ({"a": [1]}, {"a": ["1"]}, 'column "a" holds BIGINT in the original and VARCHAR in the release'),
        ({"a": [True]}, {"a": ["1"]}, 'column "a" holds BOOLEAN in the original and VARCHAR in the release'),
        ({"a": [1]}, {"a": [datetime.date(2000, 1, 1)]}, "cast one of them"),
        ({"a": [1.0]}, {"a": [float("nan")]}, 'column "a" holds NaN or infinity'),
    ],
)
def test_wrong_input(first, second, message):
    with pytest.raises(ValueError, match=message):
        utility(pa.table(first), pa.table(second))
    with pytest.raises(ValueError, match="the released table has no rows to compare"):
        utility(pa.table(first), pa.table(first).slice(0, 0))


def test_columns_without_values():
    found = utility(pa.table({"a": [1.0, 2.0]}), pa.table({"a": pa.nulls(3)}))
    assert rows(found, "ks")["a", None]["difference"] == 1
    assert rows(found, "mean")["a IS NULL", None]["released"] == 1
    assert pair_tables(pa.table({"a": pa.nulls(2)}), pa.table({"a": pa.nulls(3)}))[0].texts == [None]


def test_special_values_and_codes_by_hand():
    random = np.random.default_rng(2)
    tables = []
    for zeros in (0.3, 0.1):
        wage = np.where(random.random(500) < zeros, 0, random.integers(900, 9000, 500)).astype(float)
        race = random.integers(1, 4, 500)
        born = [datetime.date(1970, 1, day) for day in random.integers(1, 4, 500).tolist()]
        missing = random.random(500) < 0.1
        tables.append(
            (wage, race, missing, pa.table({"wage": wage, "race": pa.array(race, mask=missing), "born": born}))
        )
    found = utility(tables[0][-1], tables[1][-1], "auto", None)
    means, linear = rows(found, "mean"), rows(found, "correlation")
    for side, (wage, race, missing, _) in zip(("original", "released"), tables, strict=True):
        assert means["wage", None][side] == pytest.approx(wage.mean())
        assert means["wage = 0", None][side] == pytest.approx((wage == 0).mean())
        assert means["race = 2", None][side] == pytest.approx(((race == 2) & ~missing).mean())
        assert means["race IS NULL", None][side] == pytest.approx(missing.mean())
        assert linear["wage", "wage = 0"][side] == pytest.approx(np.corrcoef(wage, wage == 0)[0, 1])
    assert [name for name, _ in rows(found, "total_variation")] == ["race"]
    assert [name for name, _ in rows(found, "ks")] == ["wage", "born"]  # few days are no codes
    assert rows(utility(tables[0][-1], tables[1][-1]), "mean").keys() == {
        (name, None) for name in ("wage", "race", "race IS NULL", "born")
    }


def test_categories_that_only_the_release_has():
    before, after = pa.table({"code": [1, 2] * 20}), pa.table({"code": [1, 7] * 20})
    found = utility(before, after, "off", ["code"])
    assert rows(found, "total_variation")["code", None]["difference"] == 0.5
    assert rows(found, "mean")["code = 7", None]["released"] == 0.5


samples = st.lists(st.integers(0, 5) | st.floats(-2, 8, width=16), min_size=2, max_size=20).map(sorted)


@cheap
@given(samples, samples)
def test_ks(first, second):
    expected = stats.ks_2samp(first, second, method="asymp")
    assert ks_distance(np.array(first), np.array(second)) == pytest.approx(expected.statistic, abs=1e-12)
    assert ks_test(np.array(first), np.array(second))[1] == pytest.approx(expected.pvalue)


def test_ks_of_many_rows():
    random = np.random.default_rng(1)
    first, second = np.sort(random.normal(size=5000)), np.sort(random.normal(0.05, 1, size=3000))
    expected = stats.ks_2samp(first, second, method="asymp")
    assert ks_test(first, second) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
