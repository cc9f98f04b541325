"""The multivariate distribution of a release: its kernel principal components, one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked, checked_by
from duckanon._core.common.arrays import Floats, sampled_rows
from duckanon._core.common.declare import report
from duckanon._core.common.rules import Number, Whole
from duckanon._measure.utility.declared import KERNEL_COMPONENTS, KERNEL_UTILITY
from duckanon._measure.utility.kernels import kernel_for, principal_components
from duckanon._measure.utility.kolmogorov_smirnov import ks_test


@checked_by(KERNEL_UTILITY)
@checked(width=Number(above=0, null=True), landmarks=Whole(2))
def kernel_utility(
    original: Floats,
    released: Floats,
    reference: Floats | None = None,
    *,
    random: np.random.Generator,
    kernel: str = "polynomial",
    degree: int = 4,
    width: float | None = None,
    components: int = 20,
    points: int | None = None,
    exact_rows: int = 3000,
    landmarks: int = 500,
    fit_rows: int = 20_000,
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
        exact_rows: Up to how many original rows the components are exact; above, so many `landmarks` span them, found
            from `fit_rows` random original rows; all rows are compared along them.
    """
    tables = _matrices({"original": original, "released": released, "reference": reference})
    chosen = kernel_for(kernel, degree, width, tables[0], random)
    principal = principal_components(chosen, tables[0], components, random, exact_rows, landmarks, fit_rows)
    compared = [rows if points is None else rows[sampled_rows(points, len(rows), random)] for rows in tables]
    projections = [np.sort(principal.project(rows), axis=1) for rows in compared]
    tests = _tests(projections[0], projections[1])
    reference_tests = _tests(projections[0], None if reference is None else projections[2])
    return report(
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


@checked_by(KERNEL_COMPONENTS)
def kernel_projections(
    original: Floats,
    released: Floats,
    *,
    random: np.random.Generator,
    kernel: str,
    degree: int,
    components: int,
    points: int,
) -> tuple[Floats, Floats]:
    """Place random rows of original and release along the original's kernel principal components (Thesis, Figure 3-1).

    Rows by components; the component of largest variance first. The sign of each is that of the longer tail of the
    original's, since an eigenvector has none of its own.
    """
    tables = _matrices({"original": original, "released": released})
    chosen = kernel_for(kernel, degree, None, tables[0], random)
    principal = principal_components(chosen, tables[0], components, random)
    drawn = [rows[sampled_rows(points, len(rows), random)] for rows in tables]
    first, second = (principal.project(rows).T * principal.grid for rows in drawn)
    centred = first - np.median(first, axis=0)
    sign = np.where(centred.max(axis=0) < -centred.min(axis=0), -1.0, 1.0)
    return first * sign, second * sign


def _tests(original: Floats, others: Floats | None) -> list[tuple[float, float]]:
    """Test every component for a difference; NaN where there is nothing to compare with."""
    if others is None:
        return [(np.nan, np.nan)] * len(original)
    return [ks_test(first, second) for first, second in zip(original, others, strict=True)]


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
