"""Training on a release and telling it apart: good and bad releases in the right order, odd classes, no crash."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from duckanon._core.encoding.pairs import pair_tables
from duckanon._measure.utility.classifiers import (
    Features,
    compare_classifiers,
    detect_released,
    features,
    probabilities,
)


def people(rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    age = random.integers(20, 80, rows)
    sex = random.choice(["f", "m"], rows)
    pay = np.round(1000 + 30 * age * (sex == "f") + random.normal(0, 200, rows))
    ill = random.random(rows) < 1 / (1 + np.exp(-(age - 50) / 5))
    job = np.where(pay > 2500, "chief", np.where(ill, "none", "clerk"))
    return pa.table({"age": age, "sex": sex, "pay": pay, "ill": ill, "job": job})


def swapped(table: pa.Table) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        [c.combine_chunks().take(pa.array(random.permutation(len(c)))) for c in table.columns], table.schema
    )


def measured(*tables, **options) -> dict[tuple[str, str], dict]:
    found = compare_classifiers(*tables, random=np.random.default_rng(1), **options)
    return {(row["model"], row["measure"]): row for row in found.to_pylist()}


@pytest.mark.parametrize(
    ("model", "target", "expected"),
    [
        ("constant", [0, 2, 2, 2], [0.25, 0, 0.75]),
        ("constant", [2, 2, 2, 2], [0, 0, 1]),
        ("linear", [2, 2, 2, 2], [0, 0, 1]),
    ],
)
def test_who_knows_only_the_distribution_says_its_shares(model, target, expected):
    """A class that was not trained has the probability 0; a single one is certain."""
    rows = Features(np.arange(4.0)[:, None], np.arange(4.0)[:, None], [])
    shares = probabilities(model, rows, np.array(target), rows.take(np.arange(2)), 3, np.random.default_rng(1))
    assert shares.tolist() == [expected, expected]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("target", "measure"),
    [("ill", "auc"), ("pay", "r2"), pytest.param("job", "accuracy", marks=pytest.mark.thorough)],
)
def test_good_and_bad_releases(target, measure):
    original = people(2000, 1)
    good = measured(original, people(1500, 2), target)["boosted_trees", measure]
    bad = measured(original, swapped(original), target)["boosted_trees", measure]
    assert good["train_rows"] == bad["train_rows"] == 1400
    assert good["test_rows"] == 600
    assert good["trained_on_original"] == pytest.approx(bad["trained_on_original"], abs=0.05)
    assert abs(good["difference"]) < 0.06
    assert bad["difference"] < -0.2


def test_constant_model():
    found = measured(people(500, 1), people(500, 2), "ill")
    assert found["constant", "auc"]["trained_on_released"] == 0.5
    assert set(found) == {
        (model, name) for model in ("boosted_trees", "linear", "constant") for name in ("auc", "accuracy")
    }


def test_linear_model_against_scikit_learn():
    """With a holdout the rows are known: everything is trained and tested on."""
    original, released, holdout = (
        people(rows, seed).select(["age", "pay"]) for rows, seed in ((80, 1), (80, 2), (50, 3))
    )
    row = measured(original, released, "pay", holdout=holdout)["linear", "r2"]
    assert row["test_rows"] == 50
    age, new, held = (table["age"].to_numpy() for table in (original, released, holdout))
    both = np.concatenate([age, held])  # columns are standardised by the originals

    def expected(train, pay):
        model = Ridge().fit(((train - both.mean()) / both.std())[:, None], pay)
        return r2_score(holdout["pay"].to_numpy(), model.predict(((held - both.mean()) / both.std())[:, None]))

    assert row["trained_on_original"] == pytest.approx(expected(age, original["pay"].to_numpy()))
    assert row["trained_on_released"] == pytest.approx(expected(new, released["pay"].to_numpy()))


def test_columns_of_linear_models_are_standardised_by_the_originals_rows():
    """Of the rows that are used: a column of one value is centred only; far values of the release are cut off."""
    original = pa.table({"x": [1.0, 3.0, 5.0, 900.0], "one": [7.0, 7.0, 7.0, 8.0], "sex": ["f", "m", "m", "f"]})
    released = pa.table({"x": [5.0, 1e12, -7.0], "one": [9.0, 7.0, 6.0], "sex": ["f", "f", "m"]})
    known, new = features(pair_tables(original, released), np.arange(3), np.array([0, 1]))
    spread, sex = (8 / 3) ** 0.5, 2**0.5 / 3  # of 1, 3, 5, and of 0, 1, 1
    np.testing.assert_allclose(known.linear.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(known.linear.std(axis=0), [1, 0, 1])
    np.testing.assert_allclose(known.linear[:, 0], np.array([-2, 0, 2]) / spread)
    np.testing.assert_allclose(new.linear, [[2 / spread, 2, -2 / 3 / sex], [1e6, 0, -2 / 3 / sex]])
    assert known.categorical == [2]
    assert known.trees[:, 0].tolist() == [1, 3, 5]  # trees split numbers as they are


@pytest.mark.thorough
def test_odd_classes():
    x = np.arange(60.0)
    common = pa.table({"x": x, "y": ["a"] * 29 + ["b"] * 29 + ["rare", None]})
    one = pa.table({"x": x, "y": ["a"] * 60})
    new = pa.table({"x": x, "y": ["new"] * 60})
    for original, released in ((common, one), (one, common), (common, new), (one, one), (common, common)):
        found = measured(original, released, "y")
        assert all(0 <= row["trained_on_released"] <= 1 for (_, name), row in found.items() if name == "accuracy")
    assert measured(one, new, "y")["boosted_trees", "accuracy"]["trained_on_released"] == 0
    assert measured(one, new, "y")["boosted_trees", "auc"]["trained_on_original"] is None


def test_numbers_with_two_values_are_classes():
    x = np.arange(60.0)
    table = pa.table({"x": x, "y": pa.array([None if v == 3 else int(v > 30) for v in x], pa.int8())})
    found = measured(table, table, "y")
    assert found["linear", "auc"]["trained_on_original"] == 1
    constant = table.set_column(1, "y", pa.array([7.0] * 60))
    assert measured(constant, constant, "y")["linear", "r2"]["trained_on_original"] is None


def test_many_categories():
    names = np.array([f"n{i % 400}" for i in range(12000)])
    table = pa.table({"name": names, "y": np.arange(12000) % 400 > 200})
    assert measured(table, table, "y")["boosted_trees", "auc"]["trained_on_released"] > 0.7
    with pytest.raises(ValueError, match='column "name" has 400 classes'):
        measured(table, table, "name")


@pytest.mark.thorough
def test_detectability():
    original = people(3000, 1)
    found = {}
    noisy = original.set_column(2, "pay", pa.array(original["pay"].to_numpy() + 0.37))
    for name, release in (("sample", people(2000, 2)), ("swapped", swapped(original)), ("noisy", noisy)):
        rows = detect_released(original, release, random=np.random.default_rng(1)).to_pylist()
        assert [row["comparison"] for row in rows] == ["released", "reference"]
        assert rows[1]["auc"] == pytest.approx(0.5, abs=0.05)
        assert rows[1]["rows_each"] == 1500
        found[name] = rows[0]["auc"]
    assert found["sample"] == pytest.approx(0.5, abs=0.05)
    assert found["swapped"] > 0.75
    assert found["noisy"] == 1  # digits give it away


@pytest.mark.thorough
def test_copies_hide_among_their_own_people_only():
    original, others = people(1000, 1), people(1000, 2)
    found = {}
    for name, holdout in (("own", None), ("others", others)):
        rows = detect_released(original, original, random=np.random.default_rng(1), holdout=holdout, folds=2)
        found[name] = rows["auc"][0].as_py()
        assert rows["rows_each"].to_pylist() == [1000, 500 if holdout is None else 1000]
    assert found["own"] < 0.4
    assert found["others"] == pytest.approx(0.5, abs=0.05)
    moved = others.set_column(0, "age", pa.array(others["age"].to_numpy() + 40))
    against = detect_released(original, original, random=np.random.default_rng(1), holdout=moved, folds=2)
    assert against["auc"].to_pylist() == pytest.approx([1, 1], abs=0.2)  # other people must be of the same population


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("none", {}, 'the original table has no column "none"'),
        ("ill", {"test_fraction": 1.5}, "test_fraction must be a finite number from 0 to 1; got 1.5."),
        ("ill", {"test_fraction": 0.99}, "at least 10 rows to train on"),
    ],
)
def test_wrong_input(target, options, message):
    with pytest.raises(ValueError, match=message):
        measured(people(100, 1), people(100, 2), target, **options)


def test_too_little():
    with pytest.raises(ValueError, match='no column beside "ill"'):
        measured(people(100, 1).select(["ill"]), people(100, 2), "ill")
    with pytest.raises(ValueError, match="at least 10 rows for 5 folds; got 9, 100 and 20000"):
        detect_released(people(9, 1), people(100, 2), random=np.random.default_rng(1))
