"""Fresh samples of real surveys pass the tests of privacy, and a few copies among them fail."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from duckanon.matrix.fit import fit
from duckanon.privacy.reference_test import privacy_tests
from tests.sqltest import data_file

SURVEYS = {
    "acs": ("acs_pums_2024_workers.parquet", ["AGEP", "WKHP", "WKWN", "PINCP", "WAGP", "POVPIP", "SCHL"]),
    "adult": (
        "adult.csv",
        ["age", "workclass", "education_num", "occupation", "sex", "hours_per_week", "capital_gain"],
    ),
    "laboratory": ("nhanes.parquet", ["gender", "age_years", "ALB", "ALT", "BUN", "CHOL", "GLU", "TRIG", "HGB", "SBP"]),
    "households": ("risk/testdata.csv", ["urbrur", "roof", "relat", "sex", "age", "expend", "income", "savings"]),
}


def coded(name):
    """Read a survey's rows as numbers, 20,000 of them at most."""
    file, columns = SURVEYS[name]
    path = data_file(file)
    table = pq.read_table(path, columns=columns) if file.endswith("parquet") else pyarrow.csv.read_csv(path)
    places = np.random.default_rng(0).permutation(table.num_rows)[:20_000]
    table = table.select(columns).take(pa.array(places))
    encoding, _ = fit(table, nulls="category", lenient=True)
    return np.asarray(encoding.matrix(table), np.float64)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [300, 1000, 3000])
@pytest.mark.parametrize("survey", SURVEYS)
def test_fresh_samples_pass(survey, size):
    """At most 5 % fail; so few draws cannot show that, but more than one in ten would be seen."""
    people = coded(survey)
    if len(people) < 3 * size:
        pytest.skip(f"{survey} has {len(people)} people")
    draws = {300: 60, 1000: 30, 3000: 10}[size]
    alarms = 0
    for seed in range(draws):
        random = np.random.default_rng(seed)
        rows, fresh, other = (people[part] for part in np.split(random.permutation(len(people))[: 3 * size], 3))
        reference = other if seed % 2 else None
        tests = privacy_tests(rows, fresh, random, reference=reference, holdout=reference, replicates=200)
        alarms += not all(test.passed for test in tests)
    assert alarms <= {300: 7, 1000: 5, 3000: 3}[size]  # beyond 99 % of the binomial distribution at 5 %


@pytest.mark.thorough
@pytest.mark.parametrize("survey", ["laboratory", "households"])
def test_half_a_percent_of_copies_fails(survey):
    """Of otherwise unique records; where records have equals by chance, as in Adult, a few more are not seen."""
    people = coded(survey)
    caught = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        rows, leaky, other = (people[part] for part in np.split(random.permutation(len(people))[:3000], 3))
        leaky[:5] = rows[random.permutation(1000)[:5]]
        reference = other if seed % 2 else None
        tests = privacy_tests(rows, leaky, random, reference=reference, isolated=False, sample=50, replicates=20)
        caught.append(any(not test.passed for test in tests if test.name.endswith("_copies")))
    assert np.mean(caught) >= 0.95
