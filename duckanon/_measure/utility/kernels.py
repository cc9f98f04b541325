"""Kernels, and the kernel principal components of a matrix: exact, or by landmarks in linear time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints

_BATCH_CELLS = 4_000_000  # of a kernel matrix at a time: 32 MB
_WIDTH_ROWS = 1000  # from half a million pairs of rows the median distance is known well enough
_LARGEST_EXPONENT = 300.0  # sums and products of such numbers stay finite
_GRID = 1e-9  # of the largest projection: far above rounding, far below what matters
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


def principal_components(
    kernel: Kernel,
    rows: Floats,
    count: int,
    random: np.random.Generator,
    exact_rows: int = 3000,
    landmarks: int = 500,
    fit_rows: int = 20_000,
) -> Components:
    """Find the kernel principal components: exact up to `exact_rows` rows, by landmarks above."""
    if len(rows) <= exact_rows:
        return exact_components(kernel, rows, count, random)
    return landmark_components(kernel, rows, count, landmarks, fit_rows, random)


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
