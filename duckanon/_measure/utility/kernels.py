"""Kernels, and the kernel principal components of a matrix: exact, or by landmarks in linear time.

The test of Kolmogorov and Smirnov.

The multivariate distribution of a release: its kernel principal components, one by one.

The measures of structure that is not linear, as SQL calls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import stats
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_by, make_generator, refuse_unless
from duckanon._core.common.arrays import Array, Floats, Ints, sample_rows
from duckanon._core.common.declare import report_columns
from duckanon._core.common.rules import Number
from duckanon._core.encoding.measurement_encoding import CodingOptions, encode_tables, unscale_matrix
from duckanon._measure.coarse.coarse_tables import read_tables
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.utility.declared import KERNEL_COMPONENTS, KERNEL_UTILITY
from duckanon._measure.utility.statistics import ks_distance

_BATCH_CELLS = 4_000_000  # of a kernel matrix at a time: 32 MB
_WIDTH_ROWS = 1000  # from half a million pairs of rows the median distance is known well enough
_LARGEST_EXPONENT = 300.0  # sums and products of such numbers stay finite
_GRID = 1e-9  # of the largest projection: far above rounding, far below what matters
_LANDMARKS = 500  # rows that span the components of a large table, found from ...
_FIT_ROWS = 20_000  # ... so many random ones; all rows are compared along them
_DENSE_ROWS = 600  # larger matrices are left to Lanczos iterations, for a few eigenvectors


@dataclass(frozen=True)
class Kernel:
    """A kernel function of the rows of two matrices.

    ``polynomial``: (x'y + 1)^degree. ``gaussian``: exp(-|x - y|^2 / (2 width^2)). ``exponential``: exp((x - c)'(y - c)
    / width^2) with the mean row c, the centre: an exponential of uncentred rows would be one huge constant.
    """

    name: str
    degree: int
    width: float
    centre: Floats

    def __call__(self, first: Floats, second: Floats) -> Floats:
        """Return the kernel of every row of the first with every row of the second matrix."""
        if self.name == "polynomial":
            return self._power(first @ second.T)
        first, second = (first - self.centre) / self.width, (second - self.centre) / self.width
        product = first @ second.T
        if self.name == "gaussian":
            product -= (first**2).sum(axis=1)[:, None] / 2
            product -= (second**2).sum(axis=1) / 2
            np.minimum(product, 0.0, out=product)
        np.minimum(product, _LARGEST_EXPONENT, out=product)
        return np.exp(product, out=product)

    def diagonal(self, rows: Floats) -> Floats:
        """Return the kernel of every row with itself."""
        if self.name == "gaussian":
            return np.ones(len(rows))
        if self.name == "polynomial":
            return self._power((rows**2).sum(axis=1))
        squares: Floats = (((rows - self.centre) / self.width) ** 2).sum(axis=1)
        return np.asarray(np.exp(np.minimum(squares, _LARGEST_EXPONENT)))

    def _power(self, product: Floats) -> Floats:
        product += 1
        power = product.copy() if self.degree > 1 else product
        for digit in f"{self.degree:b}"[1:]:  # squares are far cheaper than a general power
            np.square(power, out=power)
            if digit == "1":
                power *= product
        return power


def kernel_for(name: str, degree: int, width: float | None, original: Floats, random: np.random.Generator) -> Kernel:
    """Make a kernel; its width is by default the median distance between two rows of the original."""
    if width is None:
        width = _median_distance(original[random.choice(len(original), min(len(original), _WIDTH_ROWS), replace=False)])
    return Kernel(name, int(degree), float(width), original.mean(axis=0))


def _median_distance(rows: Floats) -> float:
    """Return the median distance between two different rows; 1 where all are equal."""
    centred = rows - rows.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squares = (norms[:, None] + norms - 2 * centred @ centred.T)[np.triu_indices(len(centred), 1)]
    apart = squares[squares > 1e-12 * max(norms.max(), 1e-300)]  # in tables of few distinct rows most are equal
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0


@dataclass(frozen=True)
class Components:
    """Kernel principal components: the projection of a row x is k(x, landmarks) @ weights - offset."""

    kernel: Kernel
    landmarks: Floats
    weights: Floats
    offset: Floats
    eigenvalues: Floats  # variances along the components, largest first
    total: float  # the variance along all components that there are
    grid: Floats  # projections are rounded to multiples of this

    def project(self, rows: Floats) -> Floats:
        """Return the projections, one row per component.

        They are rounded to a 10^-9 of the largest one: sums differ in their last digits from batch to batch, and equal
        rows must stay equal, or else a distance between distributions sees differences where there are none.
        """
        projections = np.empty((len(self.eigenvalues), len(rows)))
        for start, batch in _batches(rows, len(self.landmarks)):
            projected = self.kernel(batch, self.landmarks) @ self.weights - self.offset
            projections[:, start : start + len(batch)] = projected.T
        projections /= self.grid[:, None]
        return np.round(projections, out=projections)


@dataclass(frozen=True)
class ComponentOptions:
    """Which kernel has components, how many of them are found, and of how many rows.

    Attributes:
        kernel, degree, components: As in `anon.kernel_utility`.
        width: The kernel's; None: the median distance between two rows of the original.
        exact_rows: Up to how many original rows the components are exact; above, landmarks span them.
    """

    kernel: str = "polynomial"
    degree: int = 4
    width: float | None = None
    components: int = 20
    exact_rows: int = 3000

    def __post_init__(self) -> None:
        rules = {parameter.name: parameter.rule for parameter in KERNEL_UTILITY.flat}
        for name in ("kernel", "degree", "components"):
            refuse_unless(rules[name], name, getattr(self, name))
        refuse_unless(Number(above=0, null=True), "width", self.width)


def find_components(rows: Floats, options: ComponentOptions, random: np.random.Generator) -> Components:
    """Find the kernel principal components of a matrix: exact ones, or by landmarks where it has more rows."""
    kernel = kernel_for(options.kernel, options.degree, options.width, rows, random)
    if len(rows) <= options.exact_rows:
        return exact_components(kernel, rows, options.components, random)
    return landmark_components(kernel, rows, options.components, _LANDMARKS, _FIT_ROWS, random)


def exact_components(kernel: Kernel, rows: Floats, count: int, random: np.random.Generator) -> Components:
    """Find the kernel principal components of a matrix from its whole centred kernel matrix.

    Thesis, Section 3.2; the kernel matrix is centred, or else the first component is little more than the mean.
    Components without variance are left out.
    """
    size = len(rows)
    matrix = _finite(kernel(rows, rows))
    means = matrix.mean(axis=0)
    matrix -= means
    matrix -= means[:, None]
    matrix += means.mean()
    total = float(np.trace(matrix)) / size
    values, vectors = _largest(matrix, count, random)
    kept = values > size * np.finfo(np.float64).eps * max(values[0], means.mean())
    values, vectors = values[kept], vectors[:, kept]
    weights = vectors / np.sqrt(values)
    weights -= weights.mean(axis=0)  # centring a new row's kernel in its second argument
    # eigenvectors sum to 0, so that what is left of the centring is one constant per component
    return _components(kernel, rows, weights, means @ weights, values / size, total, np.sqrt(values) * np.abs(vectors))


def landmark_components(
    kernel: Kernel, rows: Floats, count: int, landmarks: int, fit_rows: int, random: np.random.Generator
) -> Components:
    """Find the kernel principal components within the span of a sample of rows, in linear time.

    The Nystroem method (Thesis, Section 3.2): with the kernel matrix M of m random landmarks, k(x, landmarks) M^(-1/2)
    stands for the image of x, and its principal components for those of the kernel, in O(m^2 n) time. What the
    landmarks do not span counts as variance that is not explained. The components are those of at most `fit_rows`
    random rows: a component is a fixed function of a row, along which all rows can then be compared.
    """
    if len(rows) > fit_rows:
        rows = rows[random.choice(len(rows), fit_rows, replace=False)]
    chosen = np.unique(rows[_landmarks(kernel, rows, landmarks, random)], axis=0)
    values, vectors = eigh(_finite(kernel(chosen, chosen)))
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    # The mean comes from the first batch, so that the sums of squares do not cancel; it is corrected at the end.
    shift = None
    diagonal = 0.0
    for _, batch in _batches(rows, len(chosen)):
        images = kernel(batch, chosen) @ whiten
        if shift is None:
            shift = images.mean(axis=0)
            sums, gram = np.zeros(images.shape[1]), np.zeros((images.shape[1], images.shape[1]))
        images -= shift
        sums += images.sum(axis=0)
        gram += images.T @ images
        diagonal += float(kernel.diagonal(batch).sum())
    assert shift is not None
    drift = sums / len(rows)
    mean = shift + drift
    covariance = _finite(gram / len(rows) - np.outer(drift, drift))
    variances, axes = _largest(covariance, count, random)
    kept = variances > len(covariance) * np.finfo(np.float64).eps * max(variances[0], float(mean @ mean))
    variances, axes = variances[kept], axes[:, kept]
    total = max(diagonal / len(rows) - float(mean @ mean), float(np.trace(covariance)))
    return _components(kernel, chosen, whiten @ axes, mean @ axes, variances, total, None)


def _components(
    kernel: Kernel,
    landmarks: Floats,
    weights: Floats,
    offset: Floats,
    eigenvalues: Floats,
    total: float,
    projections: Floats | None,
) -> Components:
    """Choose the grid: from the largest projection, or from 30 standard deviations where it is not known."""
    if not len(eigenvalues):
        raise ValueError("the original's columns are all constant, so that there are no components to compare.")
    largest = 30 * np.sqrt(eigenvalues) if projections is None else projections.max(axis=0)
    return Components(kernel, landmarks, weights, offset, eigenvalues, total, _GRID * largest)


def _landmarks(kernel: Kernel, rows: Floats, count: int, random: np.random.Generator) -> Ints:
    """Draw landmarks: half of them uniformly, half by their kernel with themselves.

    Rows far out carry most of the variance of a polynomial kernel, and few of them are among uniform draws.
    """
    if count >= len(rows):
        return np.arange(len(rows))
    share = _finite(kernel.diagonal(rows))
    share = 0.5 / len(rows) + 0.5 * share / share.sum()
    return random.choice(len(rows), count, replace=False, p=share / share.sum())


def _largest(matrix: Floats, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues and their eigenvectors, largest first."""
    size = len(matrix)
    if size > _DENSE_ROWS and 5 * count < size and matrix.any():
        values, vectors = eigsh(matrix, count, which="LA", v0=random.uniform(-1, 1, size))
        order = np.argsort(-values)
        return values[order], vectors[:, order]
    values, vectors = eigh(matrix, subset_by_index=(max(size - count, 0), size - 1), check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _batches(rows: Floats, width: int) -> Iterator[tuple[int, Floats]]:
    size = max(_BATCH_CELLS // max(width, 1), 1)
    for start in range(0, len(rows), size):
        progress.check()
        yield start, rows[start : start + size]


def _finite(matrix: Floats) -> Floats:
    if not np.isfinite(matrix).all():
        raise ValueError("the kernel of these numbers is too large; standardize the columns or lower the degree.")
    return matrix


def ks_test(first: Array, second: Array) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov distance of two sorted samples and its two-sided p-value.

    As `scipy.stats.ks_2samp` with ``method="asymp"``: the distribution of the one-sample distance at the effective
    number of rows.
    """
    distance = ks_distance(first, second)
    effective = len(first) * (len(second) / (len(first) + len(second)))
    return distance, float(np.clip(stats.kstwo.sf(distance, max(np.round(effective), 1.0)), 0.0, 1.0))


@check_by(KERNEL_UTILITY)
def compare_components(
    original: Floats,
    released: Floats,
    reference: Floats | None = None,
    *,
    random: np.random.Generator,
    options: ComponentOptions = ComponentOptions(),
    points: int | None = None,
) -> pa.Table:
    """Compare the distributions of a release and its original along the original's kernel principal components.

    Thesis, Sections 3.2 and 5.2, Table 5.1, with one correction: the kernel matrix is centred, or else the first
    component is little more than the mean.

    Args:
        original, released: Rows as numbers, encoded and scaled alike. The thesis chooses unstandardised logarithms, but
            then the top components are almost linear; components of standardised columns are the better test of
            nonlinear structure.
        reference: A sample of the original's population that does not overlap with it, such as the half that was set
            aside, whose distances are those of an honest sample. Judge a release against it rather than by p-values.
        points: How many random rows of each table to compare, all by default. Without it a p-value says little: from
            10^5 rows on it is small for every difference, however unimportant. With 1,296 rows a shift of 5 % of the
            rows is detected with a power of .8 at a level of .05.
    """
    tables = _matrices({"original": original, "released": released, "reference": reference})
    principal = find_components(tables[0], options, random)
    compared = [rows if points is None else rows[sample_rows(points, len(rows), random)] for rows in tables]
    projections = [np.sort(principal.project(rows), axis=1) for rows in compared]
    tests = _tests(projections[0], projections[1])
    reference_tests = _tests(projections[0], None if reference is None else projections[2])
    return report_columns(
        {
            "component": np.arange(1, len(principal.eigenvalues) + 1),
            "eigenvalue": principal.eigenvalues,
            "cumulative": np.minimum(np.cumsum(principal.eigenvalues) / principal.total, 1.0),
            "ks": [distance for distance, _ in tests],
            "p_value": [p_value for _, p_value in tests],
            "reference_ks": [distance for distance, _ in reference_tests],
            "reference_p_value": [p_value for _, p_value in reference_tests],
        },
        KERNEL_UTILITY.schema,
    )


@check_by(KERNEL_COMPONENTS)
def kernel_projections(
    original: Floats, released: Floats, *, random: np.random.Generator, options: ComponentOptions, points: int
) -> tuple[Floats, Floats]:
    """Place random rows of original and release along the original's kernel principal components (Thesis, Figure 3-1).

    Rows by components; the component of largest variance first. The sign of each is that of the longer tail of the
    original's, since an eigenvector has none of its own.
    """
    tables = _matrices({"original": original, "released": released})
    principal = find_components(tables[0], options, random)
    drawn = [rows[sample_rows(points, len(rows), random)] for rows in tables]
    first, second = (principal.project(rows).T * principal.grid for rows in drawn)
    centred = first - np.median(first, axis=0)
    sign = np.where(centred.max(axis=0) < -centred.min(axis=0), -1.0, 1.0)
    return first * sign, second * sign


def _tests(original: Floats, sample: Floats | None) -> list[tuple[float, float]]:
    """Test every component for a difference; NaN where there is nothing to compare with."""
    if sample is None:
        return [(np.nan, np.nan)] * len(original)
    return [ks_test(first, second) for first, second in zip(original, sample, strict=True)]


def _matrices(tables: Mapping[str, Floats | None]) -> list[Floats]:
    """Take the tables that are given in double precision; refuse those that cannot be compared."""
    matrices = []
    for role, rows in tables.items():
        if rows is not None:
            least = 2 if role == "original" else 1
            if rows.ndim != 2 or rows.shape[0] < least or rows.shape[1] < 1:
                raise ValueError(f"the {role} table must have at least {least} rows and a column; got {rows.shape}.")
            if not np.isfinite(rows).all():
                raise ValueError(f"the {role} table holds NaN or infinity; replace them by NULL or a number first.")
            matrices.append(np.asarray(rows, np.float64))
    if len({rows.shape[1] for rows in matrices}) > 1:
        widths = ", ".join(str(rows.shape[1]) for rows in matrices)
        raise ValueError(f"all matrices must have as many columns; got {widths}.")
    return matrices


def kernel_utility(
    original: pa.Table | None,
    released: pa.Table | None,
    reference: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    degree: int,
    components: int,
    standardize: bool,
    kernel: str,
    points: int | None,
    coding: CodingOptions,
    seed: int | None,
) -> pa.Table:
    """Compare distributions along kernel principal components."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies, reference=reference)
    tables = encode_tables(read.original, read.draw_values(random), read.outsiders, coding)
    first, second, third = tables.original, tables.released, tables.outsiders[0]
    if not standardize:
        first, second = (unscale_matrix(tables.encoding, matrix) for matrix in (first, second))
        third = None if third is None else unscale_matrix(tables.encoding, third)
    options = ComponentOptions(kernel, degree, components=components)
    return compare_components(first, second, third, random=random, options=options, points=points)


def kernel_components(
    original: pa.Table | None,
    released: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    degree: int,
    components: int,
    standardize: bool,
    kernel: str,
    points: int,
    coding: CodingOptions,
    seed: int | None,
) -> pa.Table:
    """Place records along kernel principal components, for a plot."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies)
    tables = encode_tables(read.original, read.draw_values(random), [], coding)
    matrices = [tables.original, tables.released]
    if not standardize:
        matrices = [unscale_matrix(tables.encoding, matrix) for matrix in matrices]
    options = ComponentOptions(kernel, degree, components=components)
    placed = kernel_projections(*matrices, random=random, options=options, points=points)
    return report_columns(
        {
            "source": ["original"] * len(placed[0]) + ["released"] * len(placed[1]),
            "projections": [*placed[0].tolist(), *placed[1].tolist()],
        },
        KERNEL_COMPONENTS.schema,
    )
