"""Fresh samples of real surveys pass the tests of privacy, and a few copies among them fail.

Limits were set with other seeds than those here.
"""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import stats

from duckanon.matrix.marked import measured_encoding
from duckanon.privacy.equal_rows import known_codes, row_codes
from duckanon.privacy.rarity import rarity_of
from duckanon.privacy.reference_test import privacy_tests
from duckanon.privacy.unique_copies import unique_copies
from tests.sqltest import data_file

SURVEYS = {
    "acs": ("acs_pums_2024_workers.parquet", ["AGEP", "WKHP", "WKWN", "PINCP", "WAGP", "POVPIP", "SCHL"]),
    "adult": (
        "adult.csv",
        ["age", "workclass", "education_num", "occupation", "sex", "hours_per_week", "capital_gain"],
    ),
    "laboratory": ("nhanes.parquet", ["gender", "age_years", "ALB", "ALT", "BUN", "CHOL", "GLU", "TRIG", "HGB", "SBP"]),
    "households": ("risk/testdata.csv", ["urbrur", "roof", "relat", "sex", "age", "expend", "income", "savings"]),
    "census": ("CASCrefmicrodata.csv", None),
}
ALL_OF_ADULT = [
    *("age", "workclass", "education", "education_num", "marital_status", "occupation", "relationship", "race", "sex"),
    *("capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
]
SEEDS = 40_000


def coded(name):
    """Read a survey's rows as numbers, 30,000 of them at most, and which of these each column is."""
    file, columns = SURVEYS.get(name, ("adult.csv", ALL_OF_ADULT))
    path = data_file(file)
    table = pq.read_table(path, columns=columns) if file.endswith("parquet") else pyarrow.csv.read_csv(path)
    places = np.random.default_rng(0).permutation(table.num_rows)[:30_000]
    table = table.select(columns or table.column_names).take(pa.array(places))
    encoding = measured_encoding(table)
    return encoding.matrix(table), encoding.groups


@pytest.mark.thorough
@pytest.mark.parametrize("size", [300, 1000, 3000])
@pytest.mark.parametrize("survey", SURVEYS)
def test_fresh_samples_pass(survey, size):
    """At most 5 % fail; so few draws cannot show that, but one in ten would be seen."""
    people, groups = coded(survey)
    if len(people) < 3 * size:
        pytest.skip(f"{survey} has {len(people)} people")
    draws = {300: 200, 1000: 80, 3000: 40}[size]
    alarms = 0
    for seed in range(SEEDS, SEEDS + draws):
        random = np.random.default_rng(seed)
        rows, fresh, other = (people[part] for part in np.split(random.permutation(len(people))[: 3 * size], 3))
        reference = other if seed % 2 else None
        tests = privacy_tests(
            rows, fresh, random, reference=reference, holdout=reference, replicates=200, groups=groups
        )
        alarms += not all(test.passed for test in tests)
    assert alarms <= stats.binom.ppf(0.99, draws, 0.05)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("survey", "size", "least"),
    [
        ("laboratory", 1000, 0.95),
        ("households", 1000, 0.95),
        ("acs", 1000, 0.95),
        ("acs", 3000, 0.95),
        ("all of adult", 1000, 0.65),
        ("adult", 1000, 0.35),
        ("adult", 3000, 0.6),
    ],
)
def test_half_a_percent_of_copies_fails(survey, size, least):
    """Of records that nobody else in the survey has.

    Chance copies 43 of 1,000 people of Adult, and among the rarest half of those who have no equal 4: five copies more
    are within what chance does in half of the cases, whatever is counted.
    """
    people, groups = coded(survey)
    codes = row_codes(people)[0]
    is_alone = np.bincount(codes)[codes] == 1
    caught, alarms = [], []
    for seed in range(SEEDS, SEEDS + 60):
        random = np.random.default_rng(seed)
        parts = np.split(random.permutation(len(people))[: 3 * size], 3)
        rows, fresh, other = (people[part] for part in parts)
        leaky = fresh.copy()
        leaky[: size // 200] = rows[random.permutation(np.flatnonzero(is_alone[parts[0]]))[: size // 200]]
        rarity = rarity_of(rows, groups, other if seed % 2 else None)
        for release, failed in ((fresh, alarms), (leaky, caught)):
            own, released, *reference = known_codes(rows, release, *([other] if seed % 2 else []))
            found = unique_copies(own, released, reference[0] if reference else None, rarity, random, 0.99)
            failed.append(not found.passed)
    assert np.mean(caught) >= least
    assert np.mean(alarms) <= 0.05


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "draws"), [(1000, 400), (3000, 150)])
def test_copies_that_nobody_could_tell_from_chance(size, draws):
    """Who knows from all others of Adult how rare a record is does not see 5 copies in 1,000 either.

    Records are weighed by the likelihood ratio, by how often others have them: no other count tells more.
    """
    people = row_codes(coded("adult")[0])[0]
    random = np.random.default_rng(5)
    ends = np.array([1, 2, 3, 5, 9, 17, 33])  # classes of how many of the others have the same
    repeated, leaked, members = np.zeros((3, draws, len(ends) + 1))
    for draw in range(draws):
        own, released, others = np.split(people[random.permutation(len(people))], [size, 2 * size])
        alone = np.flatnonzero(np.bincount(own) == 1)
        rarity = np.searchsorted(ends, np.bincount(others, minlength=people.max() + 1)[alone], side="right")
        is_repeated = np.isin(alone, released)
        is_leaked = is_repeated.copy()
        is_leaked[random.choice(len(alone), size // 200, replace=False)] = True
        for counts, weights in ((repeated, is_repeated), (leaked, is_leaked), (members, None)):
            counts[draw] = np.bincount(rarity, weights, len(ends) + 1)
    chance = repeated.sum(axis=0) / np.maximum(members.sum(axis=0), 1)
    added = (size / 200) / members.sum(axis=1).mean()
    weight = np.log((chance + added * (1 - chance)) / np.maximum(chance, 1e-9)) * (chance > 0)
    assert np.mean(leaked @ weight > np.quantile(repeated @ weight, 0.99)) < 0.4
    assert np.mean(leaked @ weight > np.quantile(repeated @ weight, 0.95)) < 0.7
