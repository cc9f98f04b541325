"""The paired audit: what tells isolated people from their releases, and what does not."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duckanon._core.privacy.audit import LIMIT, Audit, audit_halves, audit_pairs, count_wins, find_isolated
from duckanon._core.privacy.normal_scores import NormalScores
from duckanon._measure.attacks.audit import membership_audit
from tests.profiles import cheap


def people(random, rows):
    """Heavy tails in four columns, and a yes-or-no column."""
    values = random.standard_t(4, (rows, 4)) @ np.random.default_rng(7).normal(size=(4, 4))
    return np.column_stack([values, np.where(random.random(rows) < 0.3, 1.0, -1.0)])


def test_a_fresh_sample_passes():
    """The release is made of other people, so that nobody's being in the table can show."""
    random = np.random.default_rng(1)
    points = people(random, 400)
    rates = [audit_pairs(points, lambda rows, draw: people(draw, len(rows)), seed=seed) for seed in range(3)]
    assert max(rates) <= LIMIT


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_release_that_repeats_only_the_isolated_fails(noise):
    """Nine in ten rows are of other people; those of the isolated come back, verbatim or with noise."""
    random = np.random.default_rng(2)
    points = people(random, 400)
    isolated = np.argsort(-np.square(points).sum(axis=1))[:40]

    def release(rows, draw):
        kept = points[np.intersect1d(rows, isolated)]
        return np.vstack([kept + noise * draw.normal(size=kept.shape), people(draw, len(rows) - len(kept))])

    assert audit_pairs(points, release, seed=3) > LIMIT + 0.1


def test_halves_hold_everybody_once():
    """Complementary halves: whatever is released, everybody is in one of two releases."""
    points = people(np.random.default_rng(3), 61)
    seen = []
    audit_pairs(points, lambda rows, draw: (seen.append(rows), points[rows])[1], splits=2, seed=0)
    assert len(seen) == 4
    for first, second in (seen[:2], seen[2:]):
        assert sorted([*first, *second]) == list(range(61))


def test_the_same_seed_gives_the_same_answer():
    points = people(np.random.default_rng(4), 100)
    first, second = (audit_pairs(points, lambda rows, draw: people(draw, len(rows)), seed=9) for _ in range(2))
    assert first == second


def test_nobody_is_isolated_where_everybody_has_an_equal():
    points = np.repeat(people(np.random.default_rng(5), 50), 2, axis=0)
    assert {audit.people for audit in audit_halves(points, lambda rows, _: points[rows], seed=0).values()} == {0}
    assert audit_pairs(points, lambda rows, _: points[rows], seed=0) == 0.5


def test_too_few_people_are_refused():
    with pytest.raises(ValueError, match="an audit needs at least 40 rows; got 39"):
        audit_pairs(np.zeros((39, 2)), lambda rows, _: np.zeros((len(rows), 2)))


@pytest.mark.thorough
@cheap
@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=4, max_size=8), st.randoms())
def test_win_rates_are_areas_under_the_curve(rows, random):
    """Against scipy's Mann-Whitney statistic, person by person."""
    distances = np.array(rows, float)
    is_member = np.array([[random.random() < 0.5 for _ in row] for row in rows])
    is_member[0], is_member[1] = True, False
    rates = count_wins(distances, is_member)
    for place, rate in enumerate(rates):
        inside, outside = distances[is_member[:, place], place], distances[~is_member[:, place], place]
        area = stats.mannwhitneyu(outside, inside).statistic / (len(inside) * len(outside))
        assert rate == pytest.approx(area)


@cheap
@given(st.lists(st.integers(-5, 5).map(float), min_size=3, max_size=40))
def test_normal_scores_keep_the_order(values):
    """Scores of the people are scipy's, by mean ranks; a column of two values stays."""
    column = np.array(values)[:, None]
    scores = NormalScores(column)(column)[:, 0]
    if len(set(values)) <= 2:
        assert scores.tolist() == values
    else:
        ranks = (stats.rankdata(values) - 0.5) / len(values)
        assert scores == pytest.approx(stats.norm.ppf(ranks))


def test_isolated_people_are_the_farthest_who_have_no_equal():
    distances = np.concatenate([np.zeros(390), np.arange(1.0, 11.0)])
    assert find_isolated(distances).tolist() == list(range(399, 389, -1))
    assert len(find_isolated(np.arange(1.0, 1001.0))) == 100


def test_columns_that_follow_from_others_are_left_out_of_distances():
    """The audit is then that of the table without them; with them, a sum counts twice."""
    rows = people(np.random.default_rng(6), 400)
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1], "z": rows[:, 2]})
    summed = table.append_column("total", pc.add(table["x"], table["y"]))
    options = {"method": "svd_swap", "options": None, "releases": 4, "people": 20, "max_rows": 1000, "seed": 1}
    coding = {"log": None, "special": "auto", "categories": None}

    def by_distance(table, derived):
        return membership_audit(table, **options, **coding, derived=derived).slice(0, 4)  # queries are of all columns

    without = [by_distance(summed.drop([name]), "off") for name in ("x", "y", "total")]
    # Each of the three is the sum or the difference of the other two: any may be the one that is left out.
    assert by_distance(summed, "auto") in without
    assert by_distance(summed, "off") not in without


def test_an_audit_is_judged_by_its_error() -> None:
    assert Audit(win_rate=0.565, standard_error=0.043, people=40).is_within_limit
    assert not Audit(win_rate=0.565, standard_error=0.005, people=4_000).is_within_limit
    assert not Audit(win_rate=0.66, standard_error=0.043, people=40).is_within_limit
    assert Audit(win_rate=LIMIT, standard_error=0.0, people=2).is_within_limit
