"""The papers' best boxes at a point, and what boxes can reach in the limit of much data.

Where the density of records hardly changes within a box, the best box around a point is known in closed form: the width
times the sensitivity is the same in all columns. With l-diversity the columns whose values lie far apart
have their least width, and the others share the rest. The mean over all records is a lower bound that real boxes are
compared with; its density comes from a histogram of cells of equal count, grown as boxes are, which scales to millions
of records and follows thin structures.

References:
    Accurate Boxes, Sections II and IV; Fuzzy Boxes, Section II; REFERENCES.md, Boxes, points 6 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Floats
from duckanon._core.common.rules import Number, Whole
from duckanon._methods.boxes.blocks import cut_into_blocks
from duckanon._methods.boxes.box_search import BoxRules, grow_boxes
from duckanon._methods.boxes.nodes import Points, make_roots
from duckanon._methods.boxes.shaping import Statistic, measure_sensitivities


@check_arguments(k=Number(above=0), l=Whole(1))
def compute_halfwidths(
    sensitivity: ArrayLike,
    density: ArrayLike,
    k: float,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: ArrayLike | None = None,
) -> Floats:
    """Compute the half-widths of the best box around a point (Accurate Boxes, Sections II and IV).

    With the columns sorted by falling a_i epsilon_i the first t have Delta_i = l epsilon_i / 2, the others c_t / a_i;
    t = n is tested first, then the smallest t with 2 c_t / l >= a_(t+1) epsilon_(t+1) is taken (REFERENCES.md, Boxes,
    point 7).

    Args:
        sensitivity: Points by columns, or columns: a_i = N |dC/dx_i|, above 0: a column that no statistic depends on
            has no part in the box (REFERENCES.md, Boxes, point 6).
        density: The count density rho at each point: its integral is the number of records.

    Returns:
        Half-widths with the smallest sum of a_i Delta_i of all boxes with rho * prod(2 Delta_i) >= k and 2 Delta_i >= l
        epsilon_i.

    Examples:
        A box for 8 records where there are 50 in a unit of area: half as wide in the column that matters twice as much.

        >>> compute_halfwidths([1.0, 2.0], 50, 8).round(4).tolist()
        [0.2828, 0.1414]
    """
    a = np.atleast_1d(np.asarray(sensitivity, dtype=np.float64))
    n = a.shape[-1]
    rho = np.broadcast_to(np.asarray(density, dtype=np.float64), a.shape[:-1])
    least = l * np.broadcast_to(np.asarray(0.0 if epsilon is None else epsilon, dtype=np.float64), (n,))
    if not ((a > 0) & np.isfinite(a)).all():
        raise ValueError(
            "sensitivities must be finite numbers above 0; got others, so leave out the columns without any."
        )
    if not ((rho > 0) & np.isfinite(rho)).all():
        raise ValueError("density must be finite and above 0; got another.")
    if not ((least >= 0) & np.isfinite(least)).all():
        raise ValueError("epsilon must be finite numbers of at least 0; got others.")
    if l > k:
        raise ValueError(f"l must be at most k, {k}; got {l}.")
    order = np.argsort(-(a * least), axis=-1, kind="stable")
    sorted_a = np.take_along_axis(a, order, axis=-1)
    sorted_least = least[order]
    log_a = np.log(sorted_a)
    volume = np.log(k / rho)
    with np.errstate(divide="ignore"):
        log_least = np.log(sorted_least)
    widths = np.broadcast_to(sorted_least, a.shape).copy()  # t = n: every column is at its least width
    open_points = log_least.sum(axis=-1) < volume
    for t in range(n):
        with np.errstate(over="ignore"):  # only at points that are done
            twice_c = np.exp((volume + log_a[..., t:].sum(axis=-1) - log_least[..., :t].sum(axis=-1)) / (n - t))
        taken = open_points & (twice_c >= sorted_a[..., t] * sorted_least[..., t] * (1 - 1e-14))
        widths[..., t:] = np.where(taken[..., None], twice_c[..., None] / sorted_a[..., t:], widths[..., t:])
        open_points = open_points & ~taken
    result = np.empty_like(widths)
    np.put_along_axis(result, order, widths / 2, axis=-1)
    return result


def measure_uncertainty(sensitivity: Sequence[Floats | float], density: Floats, k: float) -> Floats:
    """Compute n c(x), the part of every record in the uncertainty of the best boxes (Fuzzy Boxes, Section II).

    Columns whose sensitivity is 0 everywhere are left out (REFERENCES.md, Boxes, point 6), in which case `density` must
    be the count density of the others.
    """
    used = [a for a in sensitivity if np.max(a) > 0]
    if not used:
        return np.zeros(len(density))
    logs = np.log(k / density)
    with np.errstate(divide="ignore"):
        for a in used:
            logs = logs + np.log(a)
    result: Floats = len(used) / 2 * np.exp(logs / len(used))
    return result


def estimate_optimum(
    columns: Mapping[str, ArrayLike],
    k: int,
    statistics: Sequence[Statistic] | None = None,
    density: ArrayLike | None = None,
    neighbours: int = 64,
) -> float:
    """Compute what the best boxes reach in the limit of much data: (n/N) times the sum of c(x).

    The formula is that of Fuzzy Boxes, Section II; the result is to be compared with `Boxes.uncertainty`.

    The estimate cuts the space into cells of `neighbours` records (a histogram with bins of equal count) and takes the
    volume of their bounds, each width stretched by (m + 1) / (m - 1), as the bounds of m uniform records are that much
    narrower than their cell. So it scales to millions of records and follows thin structures. Columns with few distinct
    values have no density: where a cell has no width in a column, the width is that of the average cell. Where
    `density`, the count density at the records of the columns that a statistic uses, is given, nothing is estimated.

    Examples:
        Boxes of 10 of 1,000 evenly spread records are 0.01 wide, and the mean is wanted to within 0.05:

        >>> statistic = Statistic("mean", ("x",), accuracy=0.1)
        >>> round(estimate_optimum({"x": (np.arange(1000) + 0.5) / 1000}, 10, [statistic], np.full(1000, 1000.0)), 6)
        0.1
    """
    data = {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in columns.items()}
    weights = measure_sensitivities(data, statistics).at(list(data.values()))
    used = [values for values, w in zip(data.values(), weights, strict=True) if np.max(w) > 0]
    if not used:
        return 0.0
    estimate = _estimate_density(used, neighbours) if density is None else np.asarray(density, dtype=np.float64)
    return float(np.mean(measure_uncertainty(weights, estimate, k)))


def _estimate_density(columns: Sequence[Floats], neighbours: int = 64) -> Floats:
    """Estimate the count density at every record, records per unit of volume, from cells of about equal count."""
    size = len(columns[0])
    count = max(min(neighbours, size), 2)
    scales = [float(np.ptp(values)) or 1.0 for values in columns]
    points = Points([values / scale for values, scale in zip(columns, scales, strict=True)], [1.0] * len(columns))
    density = np.empty(size)
    for block in cut_into_blocks(points, rules := BoxRules(count, tries=1)):
        block_points = points.take(block.records)
        nodes = make_roots(block_points, np.array([len(block.records)]), block.lower[None], block.upper[None])
        leaves, _, _ = grow_boxes(block_points, nodes, rules)
        starts = np.cumsum(leaves.sizes) - leaves.sizes
        logs = np.log(leaves.sizes.astype(np.float64))
        for values, scale in zip(block_points.values, scales, strict=True):
            by_leaf = values.take(leaves.records)
            width = np.maximum.reduceat(by_leaf, starts) - np.minimum.reduceat(by_leaf, starts)
            width *= (leaves.sizes + 1) / (leaves.sizes - 1)
            usual = float(width.mean()) or 1.0
            logs -= np.log(np.where(width > 0, width, usual) * scale)
        density[block.records.take(leaves.records)] = np.repeat(np.exp(logs), leaves.sizes)
    return density
