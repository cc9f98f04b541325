"""The paired audit: copies are recognized, fresh people are not, and bounds hold as often as they say."""

import numpy as np
import pytest
from scipy import stats

from duckanon._core.encoding.pairs import CategoryPair, NumberPair
from duckanon._measure.attacks import audit
from duckanon._measure.attacks.audit import Finding, Released, draw_isolated_people, lower_bound, memberships


def findings(release, rows=400, releases=12, people=20):
    points = np.random.default_rng(1).normal(size=(rows, 4)) ** 3
    codes = np.digitize(points, [-1, 0, 1])

    def make_release(places, random):
        results = release(points[places], random)
        return Released(results, np.digitize(results, [-1, 0, 1]), codes)

    random = np.random.default_rng(2)
    return audit.audit_pairs(points, 4, make_release, people=people, releases=releases, random=random)


def test_copies_are_recognized_and_fresh_people_are_not():
    copies = findings(lambda rows, _: rows)
    assert [(entry.attack, entry.scale) for entry in copies[::2]] == [
        ("nearest_row", "standardised"),
        ("nearest_rows", "standardised"),
        ("queries", None),
    ]
    assert [entry.mean for entry in copies[:4]] == [1.0] * 4
    assert {entry.answer for entry in copies} == {"fail"}
    fresh = findings(lambda rows, random: random.normal(size=rows.shape) ** 3, releases=24)
    assert all(abs(entry.mean - 0.5) < 4 * entry.standard_error for entry in fresh)
    assert all(entry.answer != "fail" for entry in fresh)


def test_few_releases_are_no_pass():
    rates = np.tile([0.35, 0.75], 10)
    assert Finding("nearest_row", None, rates, 4).answer == "too few releases to tell"
    assert Finding("nearest_row", None, np.full(20, 0.55), 20).answer == "pass"
    assert Finding("nearest_row", None, np.full(20, 0.62), 20).answer == "fail"
    one_person = np.full(20, 0.5)
    one_person[3] = 1.0
    assert Finding("nearest_row", None, one_person, 20).answer == "fail"  # the mean is .525
    assert Finding("nearest_row", None, one_person, 4).answer != "fail"


def test_everybody_is_part_of_half_of_the_releases():
    drawn = memberships(10, 7, np.random.default_rng(1))
    assert drawn.shape == (10, 7)
    assert (drawn.sum(axis=0) == 5).all()
    assert (drawn[0] == ~drawn[1]).all()


def test_people_with_an_equal_are_not_isolated():
    random = np.random.default_rng(4)
    points = random.normal(size=(400, 2))
    points[:3] = 50.0  # far from all, but together
    assert not set(draw_isolated_people(points, 20, random)) & {0, 1, 2}
    with pytest.raises(ValueError, match="nobody is isolated"):
        audit.audit_pairs(np.zeros((400, 2)), 2, None, people=20, releases=4, random=random)


@pytest.mark.parametrize(("rate", "releases"), [(0.5, 20), (0.8, 20), (0.9, 10)])
def test_errors_of_rates_are_those_of_exponential_scores(rate, releases):
    random = np.random.default_rng(5)
    scale = rate / (1 - rate)  # P(x < y) for exponential variables of scales 1 and this
    inside, outside = random.exponential(1, (3000, releases)), random.exponential(scale, (3000, releases))
    rates = (inside[:, :, None] < outside[:, None]).mean(axis=(1, 2))
    assert rates.mean() == pytest.approx(rate, abs=0.01)
    assert audit.rate_error(rate, releases) == pytest.approx(rates.std(), rel=0.06)
    missed = np.mean([lower_bound(entry, releases, 0.95) > max(rate, 0.5) + 1e-9 for entry in rates[:500]])
    assert missed <= stats.binom.ppf(0.99, 500, 0.06) / 500


def test_codes_of_queries():
    numbers = np.concatenate([np.zeros(50), np.arange(1.0, 151.0), [np.nan]])
    pairs = [
        NumberPair("n", numbers, np.array([0.0, 0.5, 150.0, np.nan])),
        CategoryPair("c", np.zeros(201, int), np.array([0, 1, 0, 1]), ["a", "b"]),
    ]
    original, released = audit.query_codes(pairs)
    assert released[:, 1].tolist() == [0, 1, 0, 1]
    assert released[0, 0] == original[0, 0]  # a zero that many have
    assert released[1, 0] == original[50, 0]  # the first twentieth
    assert released[2, 0] == original[199, 0]
    assert released[3, 0] == original[200, 0] == -1
    assert len(np.unique(original[:, 0])) == 22
