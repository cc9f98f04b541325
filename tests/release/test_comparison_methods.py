"""The comparison methods on NHANES: Thesis, Table 4.1, against the original, and re-identification."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from duckanon._core.encoding.fit import fit_columns
from duckanon._methods.baselines.additive_noise import add_noise
from duckanon._methods.baselines.copulas import draw_levels, draw_numbers, order_categories, shuffle_by_copula
from duckanon._methods.releasable import marginals
from duckanon._methods.swap.components import spectrum
from duckanon._methods.swap.halving import count_rows_in_small_groups, mask_rows, rhs, spectral_rhs
from tests.sqltest import data_file

CATEGORIES = {
    "gender": ["male", "female"],
    "race": ["mexican_american", "other_hispanic", "nh_white", "nh_black", "other"],
    "marital": ["never_married"],
    "hiv": ["positive", "negative", "indeterminate", "missing"],
    "drug_use": ["yes", "no", "missing"],
}
DECIMALS = {"ALB": 1, "ALT": 0, "AST": 0, "ALP": 0, "BUN": 0, "CA": 1, "CHOL": 0, "HCO3": 0, "GLU": 0, "PHOS": 1}
DECIMALS |= {"TBIL": 1, "TP": 1, "CREA": 1}
STOPS = np.cumsum([len(values) for values in CATEGORIES.values()])
GROUPS = [slice(stop - len(values), stop) for stop, values in zip(STOPS, CATEGORIES.values(), strict=True)]
BINARY = int(STOPS[-1])
DRAWS = 5


class Sample:
    """2,000 rows as 15 columns of -1 and 1 and 13 standardised logarithms, and 2,000 others."""

    def __init__(self, seed: int) -> None:
        source = pq.read_table(data_file("nhanes.parquet"), columns=[*CATEGORIES, *DECIMALS])
        rows = np.random.default_rng(seed).permutation(source.num_rows)[:4000]
        source = source.take(rows)
        binary = []
        for name, values in CATEGORIES.items():
            column = np.array(source[name].to_pylist())
            column[np.isin(column, ["dont_know", "refused"])] = "missing"
            binary += [np.where(column == value, 1.0, -1.0) for value in values]
        # Bilirubin of 0.0 is below what the laboratory reports: half its step.
        numbers = np.log(np.maximum(np.stack([source[name].to_numpy() for name in DECIMALS], axis=1), 0.05))
        self.mean, self.deviation = numbers[:2000].mean(axis=0), numbers[:2000].std(axis=0, ddof=1)
        matrix = np.column_stack((*binary, (numbers - self.mean) / self.deviation))
        self.original, self.reference = matrix[:2000], matrix[2000:]

    def possible(self, released: np.ndarray) -> np.ndarray:
        """Largest of each group, numbers with their own decimals inside their range."""
        binary = []
        for group in GROUPS:
            part = released[:, group]
            if part.shape[1] == 1:
                binary.append(np.where(part > 0, 1.0, -1.0))
            else:
                binary.append(np.where(np.arange(part.shape[1]) == part.argmax(axis=1)[:, np.newaxis], 1.0, -1.0))
        scale = 10.0 ** np.array(list(DECIMALS.values()))
        numbers = np.exp(released[:, BINARY:] * self.deviation + self.mean)
        numbers = (np.log(np.maximum(np.round(numbers * scale) / scale, 0.05)) - self.mean) / self.deviation
        known = self.original[:, BINARY:]
        return np.column_stack((*binary, np.clip(numbers, known.min(axis=0), known.max(axis=0))))

    def codes(self) -> list[np.ndarray]:
        coded = []
        for group in GROUPS:
            part, others = self.original[:, group], np.delete(self.original, group, axis=1)
            category = (part[:, 0] > 0).astype(int) if part.shape[1] == 1 else part.argmax(axis=1)
            coded.append(order_categories(category, others))
        return [*coded, *self.original[:, BINARY:].T]


def swapped(sample: Sample, random: np.random.Generator) -> np.ndarray:
    mean, _, vectors = spectrum(sample.original)
    return mean + random.permuted((sample.original - mean) @ vectors, axis=0) @ vectors.T


def shuffled(sample: Sample, random: np.random.Generator) -> np.ndarray:
    places = [*GROUPS, *(slice(j, j + 1) for j in range(BINARY, sample.original.shape[1]))]
    indices = shuffle_by_copula(sample.codes(), random)
    return np.column_stack([sample.original[index][:, place] for index, place in zip(indices, places, strict=True)])


def drawn(sample: Sample, random: np.random.Generator) -> np.ndarray:
    codes = sample.codes()
    levels = draw_levels(codes, 2000, random)
    parts = []
    for group, code, level in zip(GROUPS, codes, levels, strict=False):
        pieces = marginals.of_values(code.astype(int), None, 10)
        present, row = np.unique(code, return_index=True)
        column = pieces.value[pieces.at(level)[0]]
        parts.append(sample.original[row[np.searchsorted(present, column)]][:, group])
    numbers = pa.table({str(index): column for index, column in enumerate(codes[len(GROUPS) :])})
    for column, values, level in zip(
        fit_columns(numbers, log=[])[0].columns, numbers, levels[len(GROUPS) :], strict=True
    ):
        parts.append(draw_numbers(column, values, None, 10, level).to_numpy())
    return np.column_stack(parts)


def grouped(sample: Sample, random: np.random.Generator) -> np.ndarray:
    return mask_rows(sample.original, spectral_rhs(sample.original, 5), random)


def noisy(sample: Sample, random: np.random.Generator) -> np.ndarray:
    return add_noise(sample.original, random)


def differences(original: np.ndarray, released: np.ndarray) -> list[float]:
    """Median differences of means, variances, correlations and rank correlations; those of a constant column are 0."""
    varied = np.maximum(original.std(axis=0, ddof=1), 1e-12)
    pairs = np.triu_indices(original.shape[1], 1)

    def correlations(matrix: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(np.corrcoef(matrix, rowvar=False))[pairs]

    return [
        float(np.median(np.abs(difference)))
        for difference in (
            (released.mean(axis=0) - original.mean(axis=0)) / varied,
            (released.var(axis=0, ddof=1) - original.var(axis=0, ddof=1)) / varied**2,
            correlations(released) - correlations(original),
            correlations(rankdata(released, axis=0)) - correlations(rankdata(original, axis=0)),
        )
    ]


Method = Callable[[Sample, np.random.Generator], np.ndarray]


def mean_differences(samples: list[Sample], method: Method) -> np.ndarray:
    found = [
        differences(sample.original, sample.possible(method(sample, np.random.default_rng(seed))))
        for seed, sample in enumerate(samples)
    ]
    return np.mean(found, axis=0)


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return [Sample(seed) for seed in range(DRAWS)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        pytest.param(grouped, [0.010, 0.425, 0.042, 0.043], id="spectral_rhs"),
        pytest.param(shuffled, [0.0, 0.0, 0.024, 0.027], id="data_shuffle"),
        pytest.param(noisy, [0.001, 0.001, 0.003, 0.004], id="additive_noise"),
        pytest.param(swapped, [0.0, 0.019, 0.021, 0.026], id="svd_swap"),
        pytest.param(lambda sample, _: sample.reference, [0.021, 0.031, 0.020, 0.020], id="reference"),
    ],
)
def test_table_4_1(samples: list[Sample], method: Method, expected: list[float]) -> None:
    found = mean_differences(samples, method)
    margin = np.array([0.01, 0.06 if method is grouped else 0.01, 0.01, 0.01])
    assert (np.abs(found - expected) <= margin).all(), found


@pytest.mark.thorough
def test_synthetic_rows_are_no_further_off_than_other_people(samples: list[Sample]) -> None:
    reference = mean_differences(samples, lambda sample, _: sample.reference)
    assert (mean_differences(samples, drawn) <= reference + 0.01).all()


def matched(original: np.ndarray, released: np.ndarray) -> float:
    """How often a nearest released row is the own one; one of several equally near is taken at random."""
    distances = cdist(original, released)
    near = distances <= distances.min(axis=1, keepdims=True) + 1e-9
    return float((np.diag(near) / near.sum(axis=1)).mean())


@pytest.mark.thorough
def test_reidentification(samples: list[Sample]) -> None:
    for seed, sample in enumerate(samples[:3]):
        random = np.random.default_rng(seed)
        assert matched(sample.original, sample.possible(noisy(sample, random))) >= 0.97
        assert matched(sample.original, sample.possible(grouped(sample, random))) < 0.10
        members = mask_rows(sample.original, spectral_rhs(sample.original, 5), random, "member")
        assert matched(sample.original, members) < 0.10


def test_nonspectral_groups_fail(samples: list[Sample]) -> None:
    labels = rhs(samples[0].original, 5)
    assert count_rows_in_small_groups(labels, 5) > 1900
    assert count_rows_in_small_groups(labels, 2) > 1700
    assert count_rows_in_small_groups(spectral_rhs(samples[0].original, 5), 5) == 0
