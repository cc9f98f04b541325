"""What columns of a spectral release have to do with each other: what is more than chance stays, the rest does not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency

from duckanon import spectral
from duckanon._methods.synthesize import redrawing
from duckanon._methods.synthesize.pair_tables import Residuals, measure_covariance, shrink_covariance


def indicators(codes: np.ndarray) -> np.ndarray:
    """Write -1 and 1 for each value."""
    return np.where(codes[:, None] == np.arange(codes.max() + 1), 1.0, -1.0)


def counts(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Count the pairs of two columns."""
    return np.array([[np.sum((one == a) & (other == b)) for b in np.unique(other)] for a in np.unique(one)])


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.3, 1.0])
def test_chance_is_that_of_the_chi_squared_test(strength: float) -> None:
    """Pearson's statistic of the table of two columns says how much of their covariances is left."""
    random = np.random.default_rng(3)
    one = random.integers(0, 4, 900)
    other = np.where(random.random(900) < strength, one % 3, random.integers(0, 3, 900))
    matrix = np.hstack([indicators(one), indicators(other)])
    covariance = measure_covariance(matrix, np.zeros(900, np.int32))
    np.testing.assert_allclose(covariance, np.cov(matrix.T, ddof=0), atol=1e-12)
    found = chi2_contingency(counts(one, other), correction=False)
    share = max(0.0, 1 - (found.dof + 2.326 * np.sqrt(2 * found.dof)) / found.statistic)
    shrunk = shrink_covariance(covariance, [4, 3], 900)
    np.testing.assert_allclose(shrunk[:4, 4:], share * covariance[:4, 4:], atol=1e-9)
    np.testing.assert_allclose(shrunk[:4, :4], covariance[:4, :4], atol=1e-9)
    assert (share == 0) == (strength == 0)


def test_what_is_left_is_a_covariance() -> None:
    """A column that is another one has something to do with a third by chance where the other has not."""
    random = np.random.default_rng(0)
    for _ in range(20):
        first = random.normal(size=60)
        numbers = np.column_stack([first, first + 0.05 * random.normal(size=60), random.normal(size=(60, 4))])
        shrunk = shrink_covariance(np.cov(numbers.T), [1] * 6, 60)
        assert np.linalg.eigvalsh(shrunk).min() > -1e-9


def families(rows: int, seed: int) -> pa.Table:
    """Make husbands, who are men and married, wives, and others; and ages."""
    random = np.random.default_rng(seed)
    sex = np.where(random.random(rows) < 0.5, "male", "female")
    marital = random.choice(["married", "single", "divorced"], rows, p=[0.5, 0.35, 0.15])
    alone = np.where(random.random(rows) < 0.6, "alone", "with others")
    relationship = np.where(marital == "married", np.where(sex == "male", "husband", "wife"), alone)
    age = np.round(random.normal(40, 12, rows) + 8 * (marital != "single"), 1)
    return pa.table({"sex": sex, "marital": marital, "relationship": relationship, "age": age})


def impossible(table: pa.Table) -> float:
    """Return the share of husbands who are women or not married, wives likewise, and of others who are married."""
    sex, marital, relationship = (np.asarray(table[name].to_pylist()) for name in ("sex", "marital", "relationship"))
    wrong = (relationship == "husband") & (sex != "male") | (relationship == "wife") & (sex == "male")
    return float(np.mean(wrong | (np.isin(relationship, ["husband", "wife"]) != (marital == "married"))))


def test_pairs_that_nobody_has_are_seldom(monkeypatch) -> None:
    """Each column chosen by its own scores has them in 28 % of the rows, one after the other in 11 %."""
    table = families(2000, 1)
    assert impossible(table) == 0

    def share() -> float:
        options = {"cluster_size": 10_000, "derived": "off"}
        releases = [spectral.spectral_release(table, seed=seed, **options).read_all() for seed in range(3)]
        return float(np.mean([impossible(made) for made in releases]))

    handed_on = share()
    monkeypatch.setattr(Residuals, "settle", lambda *_: None)
    apart = share()
    assert handed_on <= 0.15
    assert apart >= 0.22


@pytest.mark.thorough
def test_what_chance_put_together_is_not_handed_on(monkeypatch) -> None:
    """Who counts pairs of unrelated columns learns who has them no better than if nothing were handed on."""

    def learnt() -> float:
        rates = []
        for seed in range(12):
            random = np.random.default_rng(seed)
            columns = {name: random.integers(0, 4, 400) for name in ("region", "citizenship")}
            table = pa.table({**columns, "x": random.normal(size=400)})
            made = spectral.spectral_release(table, cluster_size=10_000, seed=seed).read_all()
            pairs = [counts(*(np.asarray(one[name]) for name in columns)) for one in (table, made)]
            residuals = [one - np.outer(one.sum(axis=1), one.sum(axis=0)) / one.sum() for one in pairs]
            rates.append(np.corrcoef(residuals[0].ravel(), residuals[1].ravel())[0, 1])
        return float(np.mean(rates))

    released = learnt()
    with monkeypatch.context() as patch:
        patch.setattr(redrawing, "shrink_covariance", lambda covariance, *_: covariance)
        all_handed_on = learnt()
    monkeypatch.setattr(Residuals, "settle", lambda *_: None)
    nothing_handed_on = learnt()
    assert released <= nothing_handed_on + 0.05
    assert all_handed_on >= nothing_handed_on + 0.1
