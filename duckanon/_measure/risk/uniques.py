"""Numbers of people who are unique in a population, from the histogram of a sample's class sizes.

All estimators take the table for a simple random sample without replacement. They differ in what they believe about
classes that the sample has not shown.

Zayatz (1991), Hoshino (2001) for Pitman's distribution, Chen and Keller-McNulty (1998) for the shifted negative
binomial with Shlosser's estimate of the number of classes (Haas and Stokes 1998), and the rule of Dankar, El Emam,
Neisa and Roffey (2012). The numbers are those of ARX, except for the shifted negative binomial, in which ARX has two
slips: `variant` ``'arx'`` has them too.

Log-linear models of the values in a class: how many people each combination of values can be expected to have.

Columns that are in no interaction are independent of all others: a combination's share is the product of the values'.
Those that interact fall into parts that have no column in common, and each part is fitted on the grid of its values.

The fit is the maximum of the Poisson likelihood, which ``glm`` finds by iterated weighted least squares. Proportional
fitting (Deming and Stephan 1940) finds the same one without a matrix of all parameters, which for two columns of 500
and 50 values would have 25,000 columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import digamma, zeta

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.declare import report_rows
from duckanon._measure.risk.declared import POPULATION_UNIQUES_ROWS

SIZE = "_duckanon_size"
"""The column that comes with those of the classes: the number of people in the class."""

LARGEST_GRID = 2**24  # combinations of values of columns that interact: 128 MB
_SWEEPS = 5_000
_TOLERANCE = 1e-12  # by which share of all people the sums of the fit may differ from those that were counted
_PLACES = 90  # binary ones, of probabilities that are summed as integers
_BLOCK = 2**15  # rows whose numbers are 256 KB
_NONE_UNSEEN = 1e-9  # others expected with the same values, below which (1 - exp(-x)) / x is 1


def log_linear(
    classes: pa.Table, sampled: float, interactions: Sequence[Sequence[str]], variant: str
) -> tuple[float, float]:
    """Return how many people of a sample are expected to be unique in its population, and the sum of their 1 / F.

    The classes have the hash of each column's value, NULL for NULL, and their people as `SIZE`. `sampled` is the
    sample's share of the population (Elamir and Skinner 2006); the `variant` ``'sdcmicro'`` does not divide by it.
    """
    counts = classes[SIZE].to_numpy().astype(np.float64)
    people, single = float(counts.sum()), np.flatnonzero(counts == 1)
    columns = {name.lower(): name for name in classes.column_names if name != SIZE}
    joint = sorted({name.lower() for names in interactions for name in names})
    logarithms = np.zeros(len(single))  # of the share of people who have the values, by the model
    for name in (own for lowered, own in columns.items() if lowered not in joint):
        progress.check()
        [(codes, distinct)] = encode_columns(classes.select([name]))
        shares = np.log(np.bincount(codes, weights=counts, minlength=distinct) / people)
        for rows in _blocks(len(single)):
            logarithms[rows] += shares.take(codes.take(single[rows]), mode="clip")  # quicker than a check
    if joint:  # in the order of the values, so that sums do not depend on that of the rows
        values = [classes[columns[name]].fill_null(0).to_numpy() for name in joint]
        levels = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in values]
        places = [[joint.index(name.lower()) for name in names] for names in interactions]
        logarithms += np.log(fit_counts(levels, counts, places).take(single) / people)
    times, alone, matches = 1 if variant == "sdcmicro" else sampled, 0, 0
    for rows in _blocks(len(single)):
        unseen = (1 - sampled) * people * np.exp(logarithms[rows]) / times
        unmatched = np.exp(-unseen)
        matched = np.ones(len(unseen))
        np.divide(1 - unmatched, unseen, out=matched, where=unseen >= _NONE_UNSEEN)
        alone, matches = alone + _in_binary_places(unmatched), matches + _in_binary_places(matched)
    return alone / 2**_PLACES, matches / 2**_PLACES


def _blocks(count: int) -> Iterator[slice]:
    """Split `count` rows into blocks that stay in the processor's cache: whole columns took a quarter longer."""
    for start in range(0, count, _BLOCK):
        progress.check()
        yield slice(start, start + _BLOCK)


def _in_binary_places(probabilities: Floats) -> int:
    """Sum numbers from 0 to 1 as integers of `_PLACES` binary places, so that the order of the rows does not matter.

    ``math.fsum`` has the same sums, and takes three times as long for a million. The numbers are overwritten.
    """
    total = 0
    for _ in range(_PLACES // 30):
        probabilities *= 2.0**30
        whole = probabilities.astype(np.int64)
        probabilities -= whole
        total = total * 2**30 + int(whole.sum())
    return total


def fit_counts(levels: Sequence[Ints], counts: Floats, interactions: Sequence[Sequence[int]]) -> Floats:
    """Fit the model to counted combinations, a code in each of `levels`, and return the expected count of each.

    The interactions are sets of columns by their places in `levels`; a set means all its subsets, too.
    """
    shares = np.ones(len(counts))
    for part in _parts([sorted(set(places)) for places in interactions]):
        shares *= _fit_part(levels, counts, part)
    return np.asarray(shares * counts.sum(), np.float64)


def _parts(interactions: list[list[int]]) -> list[list[list[int]]]:
    """Sort interactions into parts that have no column in common."""
    parts: list[list[list[int]]] = []
    for places in interactions:
        connected = [part for part in parts if any(set(places) & set(other) for other in part)]
        parts = [part for part in parts if part not in connected]
        parts.append([places, *(other for part in connected for other in part)])
    return parts


def _fit_part(levels: Sequence[Ints], counts: Floats, part: list[list[int]]) -> Floats:
    """Fit one part by scaling the grid to each counted sum in turn."""
    columns = sorted({place for places in part for place in places})
    shape = tuple(int(levels[place].max()) + 1 for place in columns)
    if np.prod([float(width) for width in shape]) > LARGEST_GRID:
        raise ValueError(
            f"interactions must lead to at most {LARGEST_GRID:,} combinations of values; got columns with "
            f"{' x '.join(map(str, shape))}."
        )
    places_in_grid = tuple(levels[place] for place in columns)
    counted = np.zeros(shape)
    np.add.at(counted, places_in_grid, counts)
    everybody = counts.sum()
    summed_axes = [tuple(axis for axis, place in enumerate(columns) if place not in places) for places in part]
    targets = [counted.sum(axis=axes, keepdims=True) for axes in summed_axes]
    fitted = np.full(shape, everybody / counted.size)
    for _ in range(_SWEEPS):
        largest_error = 0.0
        for axes, target in zip(summed_axes, targets, strict=True):
            progress.check()
            sums = fitted.sum(axis=axes, keepdims=True)
            largest_error = max(largest_error, float(np.abs(sums - target).max()))
            fitted *= np.divide(target, sums, out=np.zeros_like(target), where=sums > 0)
        if largest_error <= _TOLERANCE * everybody:
            break
    return np.asarray(fitted[places_in_grid] / everybody)


_SMALL_SAMPLE = 0.1  # up to this share of the population Dankar's rule takes Pitman's estimate
_NEWTON_STEPS = 200
_PITMAN_TOLERANCE = 1e-6  # where ARX stops; the steps are Newton's, so that the estimate has ten digits by then
_SOLVED = 1e-8  # difference of the logarithms of both sides of the shifted negative binomial's equations, at most
_SOLVED_EXACTLY = 1e-14
_SOLVER_STEPS = (200, 40)  # from the first start, and from each other: a dozen are usual, more where most are unique


_BOUND = 30.0  # of the logarithms of both unknowns
_MOVE = 1e-6
_MOVES = np.eye(2) * _MOVE
_MOST_DAMPED = 1e12


@dataclass(frozen=True)
class Histogram:
    """Numbers of classes of each size, and the population that the people in them are drawn from."""

    sizes: Floats
    classes: Floats
    population: float

    @property
    def people(self) -> float:
        """The people of the sample."""
        return float(self.sizes @ self.classes)

    @property
    def sampled(self) -> float:
        """The sample's share of the population."""
        return self.people / self.population

    def of_size(self, size: int) -> float:
        """Count the classes of one size."""
        return float(self.classes[self.sizes == size].sum())


def zayatz(histogram: Histogram) -> float:
    """Estimate the uniques by Zayatz: the probability that a class of one in the sample is one in the population.

    Classes of the population are taken to be as often of each size as those of the sample.
    """
    people, population, alone = histogram.people, histogram.population, histogram.of_size(1)
    steps = np.arange(int(histogram.sizes.max()) - 1, dtype=np.float64)
    shares = np.clip((population - people - steps) / np.maximum(population - 1 - steps, 1), 0, None)
    none_of_rest = np.concatenate([[1.0], np.cumprod(shares)])
    seen_once = histogram.sizes * histogram.sampled * none_of_rest[histogram.sizes.astype(np.int64) - 1]
    return alone * alone / float(histogram.classes @ seen_once)


def pitman(histogram: Histogram) -> float | None:
    """Estimate the uniques by the likeliest of Pitman's distributions; None where none is."""
    for theta, alpha in _pitman_starts(histogram):
        solved = _pitman_newton(histogram, theta, alpha)
        if solved is not None:
            theta, alpha = solved
            logarithm = math.lgamma(theta + 1) - math.lgamma(theta + alpha) + alpha * math.log(histogram.population)
            return min(math.exp(min(logarithm, 700.0)), histogram.population)
    return None


def _pitman_starts(histogram: Histogram) -> list[tuple[float, float]]:
    """Return where to begin: first the estimate by moments."""
    people, classes, alone = histogram.people, float(histogram.classes.sum()), histogram.of_size(1)
    ratio = alone * (alone - 1) / max(histogram.of_size(2), 1)
    divisor = 2 * alone * classes + alone * ratio - people * ratio
    starts = [(share * people, alpha) for share in (0.01, 0.1, 1.0) for alpha in (0.1, 0.5, 0.9)]
    if divisor == 0:
        return starts
    theta = (people * classes * ratio - alone * (people - 1) * (2 * classes + ratio)) / divisor
    return [(theta, (theta * (alone - people) + (people - 1) * alone) / (people * classes)), *starts]


def _pitman_newton(histogram: Histogram, theta: float, alpha: float) -> tuple[float, float] | None:
    """Solve both equations of the likelihood; sums over people and classes are differences of digamma functions.

    Hurwitz's zeta function of 2 is the derivative of the digamma function.
    """
    people, classes = histogram.people, float(histogram.classes.sum())
    several = histogram.sizes > 1
    sizes, counts = histogram.sizes[several], histogram.classes[several]
    for _ in range(_NEWTON_STEPS):
        progress.check()
        if not (0 < alpha < 1 and np.isfinite(theta) and theta > -alpha):
            return None
        first, last = theta / alpha + 1, theta / alpha + classes
        inverse = (digamma(last) - digamma(first)) / alpha  # sum of 1 / (theta + i alpha), i = 1 .. classes - 1
        squared = (zeta(2, first) - zeta(2, last)) / alpha**2
        weighted = (classes - 1 - theta * inverse) / alpha  # ... of i / (theta + i alpha)
        weighted_squared = (inverse - theta * squared) / alpha
        twice_weighted = (weighted - theta * weighted_squared) / alpha
        errors = np.array(
            [
                inverse - (digamma(theta + people) - digamma(theta + 1)),
                weighted - counts @ (digamma(sizes - alpha) - digamma(1 - alpha)),
            ]
        )
        if np.abs(errors).max() <= _PITMAN_TOLERANCE:
            return theta, alpha
        derivatives = np.array(
            [
                [zeta(2, theta + 1) - zeta(2, theta + people) - squared, -weighted_squared],
                [-weighted_squared, -twice_weighted - counts @ (zeta(2, 1 - alpha) - zeta(2, sizes - alpha))],
            ]
        )
        if not np.isfinite(derivatives).all() or np.linalg.matrix_rank(derivatives) < 2:
            return None
        step = np.linalg.solve(derivatives, errors)
        theta, alpha = theta - float(step[0]), alpha - float(step[1])
    return None


def estimate_shifted_negative_binomial(histogram: Histogram, variant: str) -> float | None:
    """Estimate the uniques by the shifted negative binomial distribution of class sizes; None where none fits."""
    alone, pairs, sampled = histogram.of_size(1), histogram.of_size(2), histogram.sampled
    all_classes = _shlosser(histogram, variant)
    if pairs == 0 or not np.isfinite(all_classes) or all_classes <= 0:
        return None
    power = 1 if variant == "arx" else -1  # ARX multiplies by what it should divide by

    def errors(unknowns: Floats) -> Floats:
        alpha, beta, seen = math.exp(unknowns[0]), _expit(unknowns[1]), _expit(-unknowns[1])
        unseen = (1 - sampled) * seen
        of_one = math.log(all_classes * sampled) + alpha * math.log(beta / (1 - unseen))
        of_one += math.log1p(alpha * unseen / (1 - unseen))
        of_two = math.log(all_classes * alpha) + alpha * math.log(beta) + 2 * math.log(sampled)
        of_two += math.log(seen / 2) + math.log(2 - (1 - alpha) * unseen)
        of_two += power * (alpha + 2) * math.log1p(-unseen)
        return np.array([of_one - math.log(alone), of_two - math.log(pairs)])

    for place, (alpha, beta) in enumerate(itertools.product((0.1, 1.0, 0.01, 10.0), (0.1, 0.5, 0.01, 0.9))):
        progress.check()
        start = np.array([math.log(alpha), math.log(beta / (1 - beta))])
        solved = _root(errors, start, _SOLVER_STEPS[min(place, 1)])
        if solved is not None:
            estimate = float(all_classes * _expit(solved[1]) ** math.exp(solved[0]))
            return min(estimate, histogram.population)
    return None


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _root(errors: Callable[[Floats], Floats], start: Floats, steps: int) -> Floats | None:
    """Solve two equations by Levenberg and Marquardt's steps between the bounds; None where there is no solution."""
    place, damping = start, 1e-3
    current = errors(place)
    for _ in range(steps):
        if np.abs(current).max() < _SOLVED_EXACTLY:
            break
        slopes = np.column_stack([(errors(place + move) - errors(place - move)) / (2 * _MOVE) for move in _MOVES])
        normal = slopes.T @ slopes
        step = np.linalg.lstsq(normal + damping * np.diag(normal.diagonal()), slopes.T @ current, rcond=None)[0]
        moved = np.clip(place - step, -_BOUND, _BOUND)
        moved_errors = errors(moved)
        if moved_errors @ moved_errors < current @ current:
            place, current, damping = moved, moved_errors, damping / 10
        elif damping > _MOST_DAMPED or np.array_equal(moved, place):
            break
        else:
            damping *= 10
    return place if np.abs(current).max() < _SOLVED else None


def _shlosser(histogram: Histogram, variant: str) -> float:
    """Estimate how many classes the population has, seen or not."""
    sizes, classes, sampled = histogram.sizes, histogram.classes, histogram.sampled
    missed = (1 - sampled) ** sizes
    numerator = float((sizes * sampled**2 * (1 - sampled**2) ** (sizes - 1)) @ classes)
    seen = (1 - sampled**2) ** sizes  # (1 - f)^s (1 + f)^s, in which no power overflows
    # ARX subtracts 1 from each product where it should subtract it from (1 + f)^s
    denominator = float((seen * classes - 1).sum() if variant == "arx" else (seen - missed) @ classes)
    once = float((sizes * sampled * (1 - sampled) ** (sizes - 1)) @ classes)
    if denominator == 0 or once == 0:
        return float("nan")
    return float(classes.sum()) + histogram.of_size(1) * numerator / denominator * (float(missed @ classes) / once) ** 2


def population_uniques(
    classes: pa.Table | None,
    groups: pa.Table | None,
    *,
    population: float,
    interactions: Sequence[Sequence[str]] | None,
    variant: str,
    person: str | None,
) -> pa.Table:
    """Estimate the uniques of a population by all methods, from the classes of a sample.

    The classes have the hash of each column's value, NULL for NULL, and their people as `SIZE`; None where the table
    has no rows. With `person` the `groups` say how many groups of ``size`` people there are whose rows are in the same
    classes.
    """
    if classes is None:
        raise ValueError("the table has no rows to look at.")
    if person is not None and groups is None:
        raise ValueError(
            f"person must name a column that says whose rows they are; got {person}, which is NULL in every row."
        )
    sizes = classes[SIZE].to_numpy()
    counts = np.bincount(sizes)
    histogram = pa.table({"size": np.flatnonzero(counts), "groups": counts[counts > 0]}) if groups is None else groups
    histogram = histogram.sort_by("size")  # so that sums do not depend on the order in which the query delivers
    group_sizes, group_counts = (histogram[name].to_numpy().astype(np.float64) for name in ("size", "groups"))
    counted = Histogram(group_sizes, group_counts, population)
    if population < counted.people:
        people = "rows" if person is None else "people"
        raise ValueError(
            f"population must be NULL or at least the number of {people}, {counted.people:.0f}; got {population:g}."
        )
    estimates = _estimates(counted, variant)
    chosen = _dankar(estimates, counted.sampled)
    rows = [_row(counted, method, uniques) for method, uniques in estimates.items()]
    rows.append(_row(counted, "dankar", estimates[chosen]) | {"chosen": chosen})
    alone, matches = None, None
    if sizes.sum() == counted.people:  # nobody has several combinations of values
        populated = classes if sizes.all() else classes.filter(pa.array(sizes > 0))
        alone, matches = log_linear(populated, counted.sampled, interactions or (), variant)
    rows.append(_row(counted, "log_linear", None if alone is None else alone / counted.sampled))
    rows.append({"method": "log_linear_matches", "in_table": matches})
    return report_rows(rows, POPULATION_UNIQUES_ROWS)


def _row(counted: Histogram, method: str, uniques: float | None) -> dict[str, Any]:
    return {"method": method, "uniques": uniques, "in_table": None if uniques is None else uniques * counted.sampled}


def _estimates(counted: Histogram, variant: str) -> dict[str, float | None]:
    """Estimate the uniques by the methods that need no more than the sizes."""
    alone = counted.of_size(1)
    if alone == 0 or counted.people == counted.population:  # nobody to begin with, or everybody is known
        return dict.fromkeys(("zayatz", "pitman", "snb"), alone)
    with np.errstate(all="ignore"):
        return {
            "zayatz": zayatz(counted),
            "pitman": pitman(counted),
            "snb": estimate_shifted_negative_binomial(counted, variant),
        }


def _dankar(estimates: dict[str, float | None], sampled: float) -> str:
    """Name the estimate to take: Pitman's for small samples, the lower of the others for large ones."""
    if sampled <= _SMALL_SAMPLE:
        return "zayatz" if estimates["pitman"] is None else "pitman"
    binomial, by_classes = estimates["snb"], estimates["zayatz"]
    return "snb" if binomial is not None and by_classes is not None and binomial < by_classes else "zayatz"
