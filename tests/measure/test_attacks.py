"""The attacks on a release, against brute force, closed forms and what an honest or a careless release must give."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from duckanon._core.common.row_keys import find_distinct_rows
from duckanon._core.privacy.neighbours import find_tied_nearest
from duckanon._measure.attacks import inference, matching, rates, singling_out
from tests.profiles import cheap

SEEDS = st.integers(0, 2**32 - 1)


def few_values(random: np.random.Generator, rows: int, width: int) -> np.ndarray:
    """Whole numbers of which there are few, so that rows are equal and distances tie."""
    return random.integers(0, 3, size=(rows, width)).astype(float)


def brute_ties(query: np.ndarray, points: np.ndarray) -> set[int]:
    gaps = [sum((a - b) ** 2 for a, b in zip(query, point, strict=True)) for point in points]
    return {place for place, gap in enumerate(gaps) if gap <= min(gaps) * (1 + 1e-9)}


@cheap
@given(seed=SEEDS, rows=st.integers(1, 40), width=st.integers(0, 4))
def test_distinct_rows(seed: int, rows: int, width: int) -> None:
    matrix = few_values(np.random.default_rng(seed), rows, width)
    matrix[matrix == 0] *= np.random.default_rng(seed).choice([1, -1])  # -0 is 0
    places, codes, counts = find_distinct_rows(matrix)
    seen = [tuple(row) for row in matrix.tolist()]
    assert [seen[place] for place in places] == list(dict.fromkeys(seen))
    assert [seen[places[code]] for code in codes] == seen
    assert counts.tolist() == [seen.count(seen[place]) for place in places]
    assert all(seen.index(seen[place]) == place for place in places)


@cheap
@given(seed=SEEDS, queries=st.integers(1, 15), points=st.integers(1, 40), width=st.integers(0, 3))
def test_tied_nearest(seed: int, queries: int, points: int, width: int) -> None:
    random = np.random.default_rng(seed)
    asked, given_points = few_values(random, queries, width), few_values(random, points, width)
    distances, owners, members = find_tied_nearest(asked, given_points)
    pairs = set(zip(owners.tolist(), members.tolist(), strict=True))
    assert len(pairs) == len(owners)
    for place, query in enumerate(asked):
        wanted = brute_ties(query, given_points)
        assert {member for owner, member in pairs if owner == place} == wanted
        gap = (given_points[min(wanted)] - query) if width else np.zeros(1)
        assert math.isclose(distances[place], math.sqrt(np.mean(gap**2)), abs_tol=1e-12)


def matched(original: np.ndarray, released: np.ndarray, **more: object) -> dict[str, float]:
    return matching.matching_attack(original, released, **more).to_pylist()[0]  # type: ignore[arg-type]


@cheap
@given(seed=SEEDS, rows=st.integers(3, 25), width=st.integers(1, 3), extra=st.integers(-2, 5))
def test_matching_by_key(seed: int, rows: int, width: int, extra: int) -> None:
    """Records without an image, with several, and rows of nobody; ties on nearly every distance."""
    random = np.random.default_rng(seed)
    original, released = few_values(random, rows, width), few_values(random, rows + extra, width)
    if len(released) < 2:
        return
    keys, image_keys = random.permutation(rows + 5)[:rows], random.integers(0, rows + 5, size=len(released))
    nobody = random.random(len(released)) < 0.2
    got = matched(
        original,
        released,
        keys_original=pa.array(keys),
        keys_released=pa.array(image_keys, mask=nobody),
        k=2,
    )
    shares, chances, sizes = [], [], []
    for key, record in zip(keys, original, strict=True):
        own = {place for place, other in enumerate(image_keys) if other == key and not nobody[place]}
        tied = brute_ties(record, released)
        shares.append(len(own & tied) / len(tied))
        chances.append(len(own) / len(released))
        sizes.append(len(tied))
    assert math.isclose(got["matched"], np.mean(shares), abs_tol=1e-12)
    assert math.isclose(got["expected"], np.mean(chances), abs_tol=1e-12)
    assert math.isclose(got["tied_rows"], np.mean(sizes), abs_tol=1e-12)
    assert got["images"] == np.count_nonzero(chances)


def test_matching_identity_and_chance() -> None:
    random = np.random.default_rng(3)
    original = random.normal(size=(2000, 8))
    same = matched(original, original)
    assert (same["matched"], same["images"]) == (1, 2000)
    assert same["expected"] == pytest.approx(1 / 2000)
    assert same["distance_auc"] is same["ambiguity_auc"] is same["uncertainty_auc"] is None
    other = matched(original, random.normal(size=(2000, 8)))
    assert other["matched"] <= 5 / 2000
    noisy = matched(original, original + 0.05 * random.normal(size=original.shape))
    assert noisy["matched"] > 0.99
    far = matched(original, original + 0.6 * random.normal(size=original.shape))
    assert 0.2 < far["matched"] < 0.9
    assert far["ambiguity_auc"] > 0.6
    shuffled = random.permutation(2000)
    again = matched(original, original[shuffled], keys_original=pa.array(range(2000)), keys_released=pa.array(shuffled))
    assert again["matched"] == 1


def test_matching_group_means() -> None:
    """Groups of 8 that are released as their mean: each nearest group has 8 rows, of which one is the own image."""
    random = np.random.default_rng(4)
    centres = 100 * random.normal(size=(50, 5))
    groups = np.repeat(np.arange(50), 8)
    original = centres[groups] + random.normal(size=(400, 5))
    means = np.array([original[groups == group].mean(axis=0) for group in range(50)])
    got = matched(original, means[groups])
    assert got["matched"] == pytest.approx(1 / 8)
    assert got["tied_rows"] == pytest.approx(8)
    assert got["ambiguity_auc"] == 0.5  # of equal rows it is 1 everywhere, and their variance 0
    assert got["uncertainty_auc"] == 0.5
    assert got["distance_auc"] == pytest.approx(0.5, abs=1e-9)


@pytest.mark.thorough
@cheap
@given(seed=SEEDS, rows=st.integers(2, 30))
def test_auc(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    values, right = random.integers(0, 5, rows).astype(float), random.integers(0, 2, rows)
    got = matching.auc(values, right.astype(float))
    if 0 < right.sum() < rows:
        assert got == pytest.approx(roc_auc_score(right, -values))
    else:
        assert got is None
    chances = random.random(rows)
    won = sum(
        chances[i] * (1 - chances[j]) * ((values[i] < values[j]) + (values[i] == values[j]) / 2)
        for i, j in itertools.permutations(range(rows), 2)
    )
    total = sum(chances[i] * (1 - chances[j]) for i, j in itertools.permutations(range(rows), 2))
    assert matching.auc(values, chances) == pytest.approx(won / total)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"k": 1}, "k must be a whole number of at least 2; got 1."),
        ({"k": 9}, "the release must have at least k = 9 rows; got 8."),
        ({"released": np.zeros((7, 2))}, "without a key the release must have as many rows"),
        ({"released": np.zeros((8, 3))}, "the original and the release must have the same columns."),
        ({"original": np.zeros((0, 2))}, "the original has no rows to look at."),
        ({"keys_original": pa.array([1] * 8)}, "a key must be given for both tables or for none."),
        (
            {"keys_original": pa.array([1] * 8), "keys_released": pa.array([1] * 8)},
            "the key must be unique in the original and not NULL; name another column.",
        ),
        (
            {"keys_original": pa.array(range(8)), "keys_released": pa.array(list("abcdefgh"))},
            "the key must have the same type in both tables; got BIGINT and VARCHAR.",
        ),
    ],
)
def test_matching_refuses(more: dict[str, object], sentence: str) -> None:
    arguments = {"original": np.zeros((8, 2)), "released": np.zeros((8, 2)), **more}
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        matching.matching_attack(**arguments)  # type: ignore[arg-type]


@cheap
@given(attacks=st.integers(1, 500), share=st.floats(0, 1))
def test_wilson(attacks: int, share: float) -> None:
    successes = round(share * attacks)
    middle, half = rates.wilson(successes, attacks)
    interval = binomtest(successes, attacks).proportion_ci(0.95, method="wilson")
    assert (middle - half, middle + half) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_excess_risk() -> None:
    """The numbers that anonymeter 1.1.0 gives for 800 and 300 of 1,000."""
    risk = rates.excess_risk((800, 1000), (300, 1000))
    assert risk == pytest.approx((0.7123311494447928, 0.6750336761907809, 0.7496286226988047), abs=1e-12)
    assert rates.excess_risk((10, 1000), (500, 1000)) == (0, 0, 0)


def linkage(original: np.ndarray, released: np.ndarray, control: np.ndarray | None, **more: object) -> dict[str, float]:
    known, secret = [slice(0, 1), slice(1, 3)], {"number": slice(3, 4), "kind": slice(4, 7), "gap": slice(7, 9)}
    table = inference.linkage_risk(original, released, control, known, secret, **more)  # type: ignore[arg-type]
    return {row["secret"]: row for row in table.to_pylist()}


def people(random: np.random.Generator, rows: int) -> np.ndarray:
    """Known: a number with few values, a pair; secret: a number, a category of three, a number that may be missing."""
    kinds = np.where(np.arange(3) == random.integers(0, 3, rows)[:, None], 1.0, -1.0)
    missing = random.random(rows) < 0.3
    gap = np.column_stack([np.where(missing, 0.0, random.integers(-3, 4, rows)), np.where(missing, 1.0, -1.0)])
    numbers = random.integers(0, 40, rows)[:, None].astype(float)
    return np.hstack([few_values(random, rows, 3), numbers, kinds, gap])


@pytest.mark.thorough
@given(
    seed=SEEDS, rows=st.integers(2, 25), released_rows=st.integers(1, 40), tolerance=st.sampled_from([0.0, 0.05, 0.3])
)
def test_linkage_against_brute_force(seed: int, rows: int, released_rows: int, tolerance: float) -> None:
    random = np.random.default_rng(seed)
    original, released, control = people(random, rows), people(random, released_rows), people(random, 5)
    got = linkage(original, released, control, tolerance=tolerance)
    reach = tolerance * np.ptp(original, axis=0)

    def is_right(record: np.ndarray, row: np.ndarray, columns: slice) -> bool:
        first = columns.start
        return abs(record[first] - row[first]) <= reach[first] + 1e-9 and np.array_equal(
            record[first + 1 : columns.stop], row[first + 1 : columns.stop]
        )

    for name, columns in {"number": slice(3, 4), "kind": slice(4, 7), "gap": slice(7, 9)}.items():
        for table, field in ((original, "success"), (control, "control_success")):
            shares = []
            for record in table:
                tied = brute_ties(record[:3], released[:, :3])
                shares.append(np.mean([is_right(record, released[place], columns) for place in tied]))
            assert got[name][field] == pytest.approx(np.mean(shares))
        naive = np.mean([is_right(record, row, columns) for record in original for row in released])
        assert got[name]["naive_success"] == pytest.approx(naive)


def test_linkage_identity_fresh_sample_and_no_control() -> None:
    random = np.random.default_rng(5)
    draw = lambda rows: np.hstack([random.normal(size=(rows, 3)), people(random, rows)[:, 3:]])  # noqa: E731
    original, control = draw(800), draw(800)
    own = linkage(original, original, control)
    for row in own.values():
        assert row["success"] == 1
        assert row["risk"] > 0.98
        assert row["risk_lower"] <= row["risk"] <= row["risk_upper"]
    for row in linkage(original, draw(800), control).values():
        assert row["risk"] < 0.1
        assert row["risk_lower"] < 0.03
    alone = linkage(original, draw(800), None)
    assert alone["kind"]["control_success"] is None
    assert alone["kind"]["naive_success"] == pytest.approx(1 / 3, abs=0.03)
    assert alone["kind"]["risk_lower"] < 0.03
    # where nothing is known that tells rows apart, the attack is the naive guess
    blind = original.copy()
    blind[:, :3] = 0
    for row in linkage(original, blind, None).values():
        assert row["success"] == pytest.approx(row["naive_success"])


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"tolerance": 1.5}, "tolerance must be a finite number from 0 to 1; got 1.5."),
        ({"known": []}, "at least one column must be known to the attacker; got none."),
        ({"control": np.zeros((0, 2))}, "the control group has no rows to look at."),
        ({"released": np.zeros((3, 1))}, "the release must have the same columns as the original."),
    ],
)
def test_linkage_refuses(more: dict[str, object], sentence: str) -> None:
    arguments = {
        "original": np.zeros((3, 2)),
        "released": np.zeros((3, 2)),
        "control": None,
        "known": [slice(0, 1)],
        "secret": {"x": slice(1, 2)},
        **more,
    }
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        inference.linkage_risk(**arguments)  # type: ignore[arg-type]


def brute_counts(matrix: np.ndarray, predicates: singling_out.Predicates) -> list[int]:
    counts = []
    for columns, lower, upper in zip(predicates.columns, predicates.lower, predicates.upper, strict=True):
        holds = np.ones(len(matrix), bool)
        for column, low, high in zip(columns, lower, upper, strict=True):
            cells = matrix[:, column]
            holds &= np.isnan(cells) if np.isinf(low) else (cells >= low) & (cells <= high)
        counts.append(int(holds.sum()))
    return counts


@given(seed=SEEDS, rows=st.integers(1, 40), other=st.integers(1, 40), width=st.integers(1, 4))
def test_predicates_against_brute_force(seed: int, rows: int, other: int, width: int) -> None:
    random = np.random.default_rng(seed)
    released, asked = few_values(random, rows, 4) * 7, few_values(random, other, 4) * 7
    released[random.random(released.shape) < 0.1] = np.nan
    asked[random.random(asked.shape) < 0.1] = np.nan
    is_ordered = np.array([True, False, True, False])
    source = singling_out.Sorted(released)
    single = singling_out.univariate(source, is_ordered, 1000, random)
    several = singling_out.multivariate(source, is_ordered, 20, width, random)
    for made in (single, several):
        assert brute_counts(released, made) == [1] * len(made)
        assert singling_out.Sorted(asked).counts(made).tolist() == brute_counts(asked, made)
    texts = {(*a, *b, *c) for a, b, c in zip(several.columns, several.lower, several.upper, strict=True)}
    assert len(texts) == len(several) <= 20
    assert all(len(set(columns)) == width for columns in several.columns)
    # every value that occurs once is asked for, and both ends of the numbers where they occur once
    expected = 0
    for column in range(4):
        cells = released[:, column]
        values, counts = np.unique(cells, return_counts=True)  # NaN is one value
        expected += int(np.sum(counts == 1))
        present = counts[~np.isnan(values)]
        expected += int(is_ordered[column] and len(present) > 0) and int(present[0] == 1) + int(present[-1] == 1)
    assert len(single) == expected


@pytest.mark.thorough
def test_singling_out_identity_fresh_sample_and_no_control() -> None:
    random = np.random.default_rng(6)
    draw = lambda: np.hstack([random.normal(size=(1500, 4)), few_values(random, 1500, 3)])  # noqa: E731
    original, control, flags = draw(), draw(), np.arange(7) < 4
    attack = lambda released, outside: {  # noqa: E731
        row["mode"]: row
        for row in singling_out.singling_out_risk(
            original, released, outside, flags, np.random.default_rng(1), attacks=500
        ).to_pylist()
    }
    own = attack(original, control)
    for row in own.values():
        assert (row["success"], row["attacks"], row["rows_looked_at"]) == (1, 500, 1500)
        assert row["risk"] > 0.97
    assert own["univariate"]["control_success"] < 0.02
    assert 0.1 < own["multivariate"]["control_success"] < 0.45  # at most about 1/e by chance
    for row in attack(draw(), control).values():
        assert row["risk_lower"] == 0
        assert row["risk"] < 0.06
    alone = attack(draw(), None)
    assert alone["multivariate"]["control_success"] is None
    assert alone["multivariate"]["naive_success"] < alone["multivariate"]["success"]
    # both tables are asked at the size of the smaller
    assert attack(original, control[:300])["univariate"]["rows_looked_at"] == 300
    # groups of equal rows have no predicate that singles one out
    doubled = attack(np.vstack([original[:700], original[:700]]), control)
    for row in doubled.values():
        assert (row["attacks"], row["success"], row["risk"]) == (0, None, None)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"attacks": 0}, "attacks must be a whole number of at least 1; got 0."),
        ({"predicate_columns": True}, "predicate_columns must be a whole number of at least 1; got true."),
        ({"released": np.zeros((0, 2))}, "the release has no rows to look at."),
        ({"control": np.zeros((3, 1))}, "the control group must have the same columns as the others."),
        ({"released": np.full((3, 2), np.inf)}, "the release has values that are infinite; leave them out."),
    ],
)
def test_singling_out_refuses(more: dict[str, object], sentence: str) -> None:
    arguments = {"original": np.zeros((3, 2)), "released": np.zeros((3, 2)), "control": None, **more}
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        singling_out.singling_out_risk(
            **arguments,
            is_ordered=np.array([True, True]),
            random=np.random.default_rng(1),  # type: ignore[arg-type]
        )
