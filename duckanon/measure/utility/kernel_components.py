"""How well a release keeps the multivariate distribution: its kernel principal components, one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duckanon.common.arrays import Floats
from duckanon.common.reports import report
from duckanon.measure.declared import KERNEL_UTILITY
from duckanon.measure.two_samples import ks_test
from duckanon.measure.utility.kernels import exact_components, kernel_for, landmark_components


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

    Parameters
    ----------
    original, released
        Rows as numbers, encoded and scaled alike. Unstandardised logarithms are the thesis's choice, but then the top
        components are almost linear; components of standardised columns are the better test of nonlinear structure.
    reference
        A sample of the original's population that does not overlap with it, such as the half that was set aside: what
        an honest sample's distances are. Judge a release against it rather than by p-values alone.
    random
        Draws landmarks and points.
    kernel, degree, width
        See `kernels.Kernel`.
    components
        How many components, those of largest variance, to look at; those without variance are left out.
    points
        How many random rows of each table to compare, all by default. A p-value says little without it: from 10^5
        rows on it is small for every difference, however unimportant. With 1,296 rows a shift of 5 % of the rows is
        found with a power of .8 at a level of .05.
    exact_rows
        Up to how many original rows the components are exact; above, they are found with landmarks.
    landmarks
        How many original rows span the components.
    fit_rows
        From how many random original rows the components are found with landmarks; all rows are compared along them.

    Returns
    -------
    pyarrow.Table
        Rows of `KERNEL_UTILITY`: the variance along the component, the share of all variance up to it, and the
        two-sided Kolmogorov-Smirnov distance between original and release with its p-value; the same for the reference.

    Notes
    -----
    Sections 3.2 and 5.2 of the thesis, Table 5.1, with one correction: the kernel matrix is centred, or else the first
    component is but the mean.
    """
    tables = [_checked(rows, role) for rows, role in ((original, "original"), (released, "released"))]
    if reference is not None:
        tables.append(_checked(reference, "reference"))
    if len({rows.shape[1] for rows in tables}) > 1:
        raise ValueError(f"all matrices must have as many columns; got {', '.join(str(t.shape[1]) for t in tables)}.")
    for name, value, least in (("components", components, 1), ("landmarks", landmarks, 2), ("points", points, 2)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least):
            raise ValueError(f"{name} must be an integer of at least {least}; got {value}.")
    chosen = kernel_for(kernel, degree, width, tables[0], random)
    if len(tables[0]) <= exact_rows:
        found = exact_components(chosen, tables[0], components, random)
    else:
        found = landmark_components(chosen, tables[0], components, landmarks, fit_rows, random)
    compared = [rows if points is None or points >= len(rows) else _some(rows, points, random) for rows in tables]
    ordered = []
    for rows in compared:
        places = found.project(rows)
        places.sort(axis=1)
        ordered.append(places)
    count = len(found.eigenvalues)
    unknown = [(np.nan, np.nan)] * count
    tests = [[ks_test(ordered[0][at], places[at]) for at in range(count)] for places in ordered[1:]]
    return report(
        {
            "component": np.arange(1, count + 1),
            "eigenvalue": found.eigenvalues,
            "cumulative": np.minimum(np.cumsum(found.eigenvalues) / found.total, 1.0),
            "ks": [distance for distance, _ in tests[0]],
            "p_value": [p for _, p in tests[0]],
            "reference_ks": [distance for distance, _ in (tests[1] if reference is not None else unknown)],
            "reference_p_value": [p for _, p in (tests[1] if reference is not None else unknown)],
        },
        KERNEL_UTILITY,
    )


def _some(rows: Floats, points: int, random: np.random.Generator) -> Floats:
    return rows[random.choice(len(rows), points, replace=False)]


def _checked(rows: Floats, role: str) -> Floats:
    least = 2 if role == "original" else 1
    if rows.ndim != 2 or rows.shape[0] < least or rows.shape[1] < 1:
        raise ValueError(f"the {role} table must have at least {least} rows and a column; got {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError(f"the {role} table holds NaN or infinity; replace them by NULL or a number first.")
    return np.asarray(rows, np.float64)
