"""Reports over boxes that search: regressions with guaranteed ranges, boxes to leave out, weights.

Leaving out large boxes, or giving them small weights, trades the width that they bring (privacy part) for a larger
standard error (statistical part).  The papers forget a third part: the boxes that are left out are not like the others,
and the statistic shifts.  Both objectives are solved, without and with the shift, and nothing is applied unasked.
Leaving out is exact by one sort, since boxes above a threshold go; weights by the papers' objective are, too. With the
shift, weights descend by convex steps from several starts. Regressions are those of `regression`.

References:
    Accurate Boxes, Section III; Fuzzy Boxes, Sections II and III; REFERENCES.md, Boxes, points 4, 5, 8 and 10.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from duckanon._core.common import progress
from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts
from duckanon._core.common.declare import report_rows
from duckanon._core.common.imports import import_function
from duckanon._core.common.rules import Number
from duckanon._methods.intervals import regression
from duckanon._methods.intervals.boxed_columns import ReportRows, answer_by_group, read_boxes, read_ends
from duckanon._methods.intervals.declared import BOX_WEIGHTS, DISMISSAL, INTERVAL_REGRESSION
from duckanon._methods.intervals.moments import check_statistic, compute_influence, compute_statistic
from duckanon._methods.intervals.scaled import check_counts, check_ends, read_matrix


@dataclass(frozen=True)
class BoxChoice:
    """Boxes to keep, or weights, and what they cost."""

    # one per box: share of each of its records in the statistic; those of all records sum to 1, and 0 means left out
    weight: Floats
    # the largest d that is kept (crisp), or lambda, from which d on the weight is 0 (weights). For weights that count
    # the shift the limit is on d + multiplier * psi of the last step, nearly.
    threshold: float
    multiplier: float  # of psi, within [-1, 1]; 0 where the shift does not count
    # privacy, statistical, shift, total: half-width from the boxes, standard error A sqrt(sum w^2), change |C_S - C| of
    # the statistic, and their sum
    privacy: float
    statistical: float
    shift: float
    total: float
    objective: float  # what was made smallest: `total`, or `total` less `shift` in the papers' version
    estimate: float  # the statistic of the midpoints with these weights, C_S
    # sqrt(sum w^2 psi^2), the statistical part when weights depend on x (REFERENCES.md, Boxes, point 10)
    standard_error: float
    # kept_boxes, kept_records: how many count
    kept_boxes: int
    kept_records: int


@dataclass(frozen=True)
class Comparison:
    """The statistic of all records, the papers' choice, and the one that counts the shift."""

    everything: BoxChoice
    paper: BoxChoice
    corrected: BoxChoice


class BoxContributions(NamedTuple):
    """Contributions of boxes to a statistic when all records have the same weight."""

    estimate: float  # the statistic of the midpoints
    # one per box: sum |b_i| Delta_i, the contribution of a record of the box to the half-width; in the papers n c(x)
    d: Floats
    psi: Floats  # one per box: the influence function
    deviation: float  # A = sqrt(mean(psi^2)): A / sqrt(N) is the standard error of N records that count alike


def compute_contributions(
    statistic: str, points: ArrayLike, multiplicity: ArrayLike, halfwidths: ArrayLike
) -> BoxContributions:
    """Compute what each box contributes to a statistic, to its half-width and to its standard error.

    Points and half-widths are boxes x columns, in the order of the statistic; of a regression it is the coefficient of
    the first predictor. Where the statistic is undefined for these points, it is refused.

    Examples:
        >>> compute_contributions("mean", [1.0, 3.0], [1, 1], [0.5, 0.25]).d
        array([0.5 , 0.25])
    """
    midpoints, half = read_matrix(points, "points"), read_matrix(halfwidths, "halfwidths")
    check_statistic(statistic, midpoints.shape[1])
    if midpoints.shape != half.shape:
        raise ValueError(f"halfwidths must have the shape of the points, {midpoints.shape}; got {half.shape}.")
    if not np.isfinite(midpoints).all():
        raise ValueError("points must be finite numbers; got others.")
    if not (np.isfinite(half).all() and (half >= 0).all()):
        raise ValueError("halfwidths must be finite numbers of at least 0; got others.")
    counts = check_counts(multiplicity, len(midpoints)).astype(np.float64)
    share = counts / counts.sum()
    effect = compute_influence(statistic, midpoints.T, share)
    if not (np.isfinite(effect.estimate) and np.isfinite(effect.psi).all()):
        raise ValueError(
            f"the {statistic.replace('_', ' ')} must exist for the midpoints; it does not, as columns are constant or "
            "depend on each other."
        )
    d = np.sum(np.abs(effect.slopes) * half.T, axis=0)
    return BoxContributions(effect.estimate, d, effect.psi, float(np.sqrt(np.sum(share * effect.psi**2))))


def check_contributions(d: ArrayLike, multiplicity: ArrayLike, deviation: float) -> tuple[Floats, Ints]:
    """Return contributions to the half-width and records per box as arrays, or say what is wrong with them."""
    values = np.asarray(d, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("d must be a list of at least one number, each of them finite; got another.")
    refuse_unless(Number(0), "A", deviation)
    return values, check_counts(multiplicity, values.size)


class Pricing:
    """The cost of weights for the boxes of one table in one statistic, whose columns the boxes have in its order."""

    def __init__(self, statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> None:
        low, high = check_ends(lo, hi)
        self.statistic = statistic
        self.points = 0.5 * low + 0.5 * high
        self.contributions = compute_contributions(statistic, self.points, multiplicity, 0.5 * high - 0.5 * low)
        self.counts = check_counts(multiplicity, len(low))

    def price(self, weight: Floats, threshold: float, *, multiplier: float = 0.0, shifts: bool = True) -> BoxChoice:
        """Return what weights cost; threshold and multiplier come from the search, shifts says if the shift counted."""
        estimate, d, psi, deviation = self.contributions
        counts, kept = self.counts, weight > 0
        moved = estimate
        if not kept.all() or np.ptp(weight):
            moved = compute_influence(self.statistic, self.points[kept].T, (counts * weight)[kept]).estimate
        privacy = float(np.sum(counts * weight * d))
        statistical = deviation * float(np.sqrt(np.sum(counts * weight**2)))
        shift = abs(moved - estimate) if np.isfinite(moved) else np.inf
        return BoxChoice(
            weight=weight,
            threshold=threshold,
            multiplier=multiplier,
            privacy=privacy,
            statistical=statistical,
            shift=shift,
            total=privacy + statistical + shift,
            objective=privacy + statistical + (shift if shifts else 0.0),
            estimate=moved,
            standard_error=float(np.sqrt(np.sum(counts * weight**2 * psi**2))),
            kept_boxes=int(kept.sum()),
            kept_records=int(counts[kept].sum()),
        )


_SMALL = 1e-9  # running sums of squares carry about half the digits of a double: what is smaller is their rounding


def find_threshold(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, Bools, float]:  # noqa: N803
    """Find the boxes to keep, by the papers' objective: mean d of the kept records plus A / sqrt(their number).

    Of a record of each box d is its contribution to the half-width; A is the standard error of one record. Return the
    largest d that is kept, whether each box is, and the objective.

    Examples:
        >>> threshold, keep, _ = find_threshold([0.1, 0.2, 0.4, 1.0], [1, 1, 1, 1], 0.5)
        >>> threshold, keep.tolist()
        (0.2, [True, True, False, False])
    """
    values, counts = check_contributions(d, multiplicity, A)
    order = np.argsort(values, kind="stable")
    ends, costs = _cost_prefixes(values[order], counts[order], A)
    best = int(np.argmin(costs))
    threshold = float(values[order][ends[best]])
    return threshold, values <= threshold, float(costs[best])


def dismiss_boxes(statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> Comparison:
    """Choose which boxes to leave out of a statistic, without and with the shift in the objective.

    Every threshold on d is tried: the result is exact for sets of that kind. The boxes have the columns of the
    statistic in its order (for 'regression' the target first; the coefficient is that of the first predictor).

    Examples:
        >>> dismiss_boxes("mean", [0, 1, 2, 0], [1, 2, 3, 90], [9, 9, 9, 9]).paper.kept_boxes
        3
    """
    pricing = Pricing(statistic, lo, hi, multiplicity)
    estimate, d, _, deviation = pricing.contributions
    order = np.argsort(d, kind="stable")
    counts = pricing.counts[order]
    ends, costs = _cost_prefixes(d[order], counts, deviation)
    moved = _evaluate_prefixes(statistic, pricing.points[order].T, counts.astype(np.float64))[ends]
    totals = np.where(np.isfinite(moved), costs + np.abs(moved - estimate), np.inf)
    totals[-1] = costs[-1]  # nothing left out, nothing shifted

    def choice(threshold: float, shifts: bool) -> BoxChoice:
        keep = d <= threshold
        return pricing.price(keep / float(pricing.counts[keep].sum()), threshold, shifts=shifts)

    return Comparison(
        everything=choice(float(d.max()), True),
        paper=choice(find_threshold(d, pricing.counts, deviation)[0], False),
        corrected=choice(float(d[order][ends[np.argmin(totals)]]), True),
    )


def _cost_prefixes(sorted_d: Floats, counts: Ints, deviation: float) -> tuple[Ints, Floats]:
    """Return the papers' objective of every prefix that ends with a run of equal d, and where those end.

    Boxes that are alike are kept or left out together.
    """
    ends = np.append(find_run_starts(sorted_d)[1:], len(sorted_d)) - 1
    size = np.cumsum(counts)
    costs = np.cumsum(counts * sorted_d) / size + deviation / np.sqrt(size)
    return ends, costs[ends]


def _evaluate_prefixes(statistic: str, points: Floats, counts: Floats) -> Floats:
    """Compute a statistic of the first 1, 2, ... points (columns x points) by running sums; NaN if undefined."""
    origin = points @ counts / counts.sum()
    gaps = (points - origin[:, None]).T  # about the common mean, so that little cancels
    size = np.cumsum(counts)[:, None]
    mean = np.cumsum(counts[:, None] * gaps, axis=0) / size
    products = counts[:, None, None] * gaps[:, :, None] * gaps[:, None, :]
    covariance = np.cumsum(products, axis=0) / size[:, :, None] - mean[:, :, None] * mean[:, None, :]
    variances = np.einsum("pii->pi", covariance)  # a view: what is set here is set in the matrices
    variances[variances <= _SMALL**2 * variances[-1]] = 0.0
    return compute_statistic(statistic, mean + origin, covariance, dependent=_SMALL)


_STEPS = 100  # of the search for the multiplier of the shift, which needs about ten
_ROUNDS = 60  # of convex steps from one start; most need about ten
_SHORTEST = 1e-6  # share of a step that is not halved any more
_SETTLED = 1e-9  # share of the total that a step must gain to be followed by another


def find_weights(d: ArrayLike, multiplicity: ArrayLike, A: float) -> tuple[float, Floats, float]:  # noqa: N803
    """Find the weights, by the papers' objective: sum w d + A sqrt(sum w^2) over the records, sum w = 1, w >= 0.

    Exact by one sort: sum m (lambda - d)^2 over d < lambda is A^2, and grows with lambda (REFERENCES.md, Boxes, point
    8). Return lambda, the weight of each record of a box, proportional to lambda - d and 0 from there on, and the
    objective, which equals lambda.

    Examples:
        >>> limit, weights, _ = find_weights([0.1, 0.3], [10, 5], 0.5)
        >>> weights.round(3).tolist()
        [0.1, 0.0]
    """
    values, counts = check_contributions(d, multiplicity, A)
    least = float(values.min())
    order = np.argsort(values, kind="stable")
    excess, records = values[order] - least, counts[order]
    size, first, second = np.cumsum(records), np.cumsum(records * excess), np.cumsum(records * excess * excess)
    reached = size * excess * excess - 2 * excess * first + second
    below = np.flatnonzero(reached < A * A)
    # With A = 0 only the least d count, all alike.
    last = int(below[-1]) if below.size else int(np.searchsorted(excess, 0.0, side="right")) - 1
    mean = first[last] / size[last]
    variance = max(second[last] / size[last] - mean**2, 0.0)
    limit = float(mean + np.sqrt(max(A * A / size[last] - variance, 0.0)))
    raw = np.maximum(limit - (values - least), 0.0)
    if not raw.any():
        raw = (values == least).astype(np.float64)
    weights = raw / np.sum(counts * raw)
    return limit + least, weights, float(np.sum(counts * weights * values) + A * np.sqrt(np.sum(counts * weights**2)))


def solve_box_weights(statistic: str, lo: ArrayLike, hi: ArrayLike, multiplicity: ArrayLike) -> Comparison:
    """Choose the weights of boxes in a statistic, without and with the shift in the objective.

    The total is convex but for the shift |C(w) - C|, as C is not linear in the weights.  So C is replaced by its
    tangent at the weights at hand; the best weights for that are the papers' for d + mu psi, with the mu of [-1, 1] at
    which the shift vanishes, or an end.  Towards them the weights move as long as the true total falls.  It begins at
    equal weights, the papers' weights, and both choices of `dismiss_boxes`, and the best of all is the
    corrected choice: never above any of those.

    Examples:
        >>> solve_box_weights("mean", [0, 1, 2, 0], [1, 2, 3, 90], [9, 9, 9, 9]).paper.weight.round(3).tolist()
        [0.037, 0.037, 0.037, 0.0]
    """
    pricing = Pricing(statistic, lo, hi, multiplicity)
    _, d, _, deviation = pricing.contributions
    limit, weight, _ = find_weights(d, pricing.counts, deviation)
    paper = pricing.price(weight, limit)
    everything = pricing.price(np.full(len(d), 1.0 / float(pricing.counts.sum())), np.inf)
    crisp = dismiss_boxes(statistic, lo, hi, multiplicity)
    starts = [everything, paper, crisp.corrected, crisp.paper]
    corrected = min((_descend(pricing, start) for start in starts), key=lambda choice: choice.total)
    return Comparison(everything, pricing.price(weight, limit, shifts=False), corrected)


def _descend(pricing: Pricing, start: BoxChoice) -> BoxChoice:
    """Lower the total of weights by convex steps until that gains nothing."""
    best = start
    for _ in range(_ROUNDS):
        progress.check()
        target = _solve_tangent(pricing, best)
        if target is None:
            break
        share, moved = 1.0, None
        while share > _SHORTEST and moved is None:
            weight = best.weight + share * (target.weight - best.weight)
            tried = pricing.price(weight, target.threshold, multiplier=target.multiplier)
            moved = tried if tried.total < best.total else None
            share /= 2
        if moved is None:
            break
        gained, best = best.total - moved.total, moved
        if gained <= _SETTLED * best.total:
            break
    return best


class _TangentWeights(NamedTuple):
    """The best weights where the statistic is replaced by its tangent, and the limit and multiplier they come from."""

    weight: Floats
    threshold: float
    multiplier: float


def _solve_tangent(pricing: Pricing, at: BoxChoice) -> _TangentWeights | None:
    """Find the best weights for the statistic's tangent at some; None where it has none."""
    estimate, d, _, deviation = pricing.contributions
    counts = pricing.counts
    effect = compute_influence(pricing.statistic, pricing.points.T, counts * at.weight)
    if not (np.isfinite(effect.estimate) and np.isfinite(effect.psi).all()):
        return None
    psi, offset = effect.psi, effect.estimate - estimate

    def weights(mu: float) -> _TangentWeights:
        limit, weight, _ = find_weights(d + mu * psi, counts, deviation)
        return _TangentWeights(weight, limit, mu)

    def shift(mu: float) -> float:
        return offset + float(np.sum(counts * weights(mu).weight * psi))

    # The shift falls with mu.  Where it does not vanish within [-1, 1], an end is best.
    if shift(-1.0) <= 0:
        return weights(-1.0)
    if shift(1.0) >= 0:
        return weights(1.0)
    brentq = import_function("scipy.optimize:brentq")
    return weights(float(brentq(shift, -1.0, 1.0, xtol=1e-12, rtol=1e-12, maxiter=_STEPS, disp=False)))


def interval_regression(
    table: pa.Table | None, *, target: str, predictors: Sequence[str], weights: str | None, seconds: float | None
) -> pa.Table:
    """Report the coefficients of a linear regression with guaranteed ranges; the intercept has no predictor."""
    started = time.monotonic()

    def answer(boxes: pa.Table) -> ReportRows:
        names, lower, upper, counts, weight = read_boxes(boxes, weights)
        index_of = {name.lower(): index for index, name in enumerate(names)}
        wanted = tuple(index_of[name.lower()] for name in predictors)
        left = None if seconds is None else max(seconds - (time.monotonic() - started), 0)  # for this group and others
        coefficients = regression.regress_boxes(
            lower, upper, counts, weight, target=index_of[target.lower()], predictors=wanted, seconds=left
        )
        return [
            {**vars(row), "predictor": None if row.predictor is None else names[row.predictor]} for row in coefficients
        ]

    return report_rows(answer_by_group(table, answer), INTERVAL_REGRESSION.schema)


def dismissal(table: pa.Table | None, *, statistic: str, cols: Sequence[str]) -> pa.Table:
    """Report which boxes to leave out of a statistic: all kept, as the papers choose, and with the shift counted."""
    numbers, lower, upper, counts = _read_numbered_boxes(table, cols)
    choices = dismiss_boxes(statistic, lower, upper, counts)
    rows = [
        {**_report_choice(choice), "version": version, "dismissed": numbers[choice.weight == 0].tolist()}
        for version, choice in vars(choices).items()
    ]
    return report_rows(rows, DISMISSAL.schema)


def box_weights(table: pa.Table | None, *, statistic: str, cols: Sequence[str]) -> pa.Table:
    """Report with which weights to count the boxes in a statistic, in the same three versions."""
    numbers, lower, upper, counts = _read_numbered_boxes(table, cols)
    choices = solve_box_weights(statistic, lower, upper, counts)
    rows = []
    for version, choice in vars(choices).items():
        pairs = zip(numbers.tolist(), choice.weight.tolist(), strict=True)
        weights = [{"box": box, "weight": weight} for box, weight in pairs]
        rows.append({**_report_choice(choice), "version": version, "weights": weights})
    return report_rows(rows, BOX_WEIGHTS.schema)


def _report_choice(choice: BoxChoice) -> dict[str, Any]:
    names = ("threshold", "privacy", "statistical", "shift", "total", "estimate", "standard_error")
    numbers = {name: float(getattr(choice, name)) for name in names}
    return {**numbers, "kept_boxes": choice.kept_boxes, "kept_records": choice.kept_records}


def _read_numbered_boxes(table: pa.Table | None, cols: Sequence[str]) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the numbers, ends and records of the boxes, the columns in the order of ``cols``."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    if table.column("_duckanon_box").null_count:
        raise ValueError('column "box" has NULLs; leave out what is in no box.')
    spelling = {name.lower(): name for name in table.column_names}
    ends = [read_ends(name, table.column(spelling[name.lower()])) for name in cols]
    numbers, counts = (table.column(name).to_numpy().astype(np.int64) for name in ("_duckanon_box", "_duckanon_size"))
    order = np.argsort(numbers, kind="stable")
    low, high = (np.column_stack([pair[side] for pair in ends])[order] for side in (0, 1))
    return numbers[order], low, high, counts[order]
