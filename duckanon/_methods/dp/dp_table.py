"""``anon.dp_table``: numbers by group with the noise of differential privacy.

The query has bounded what each person contributes, and sends one row a group (`duckanon._bridge.dp_query`). Here the
budget is spent, and only then the noise drawn: nothing that is returned or refused depends on the data in any other way
than through the mechanisms. The noise, its random numbers and its price are OpenDP's; here stands only what one person
changes, in whole numbers, and the search for the smallest noise whose price is within a share of epsilon. A mean drawn
as a sum and a count with half of epsilon each would have twice the variance of one drawn from both bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import opendp.domains as domains
import opendp.measurements as measurements
import opendp.metrics as metrics
import pyarrow as pa
import pyarrow.compute as pc
from opendp.measures import max_divergence
from opendp.mod import Measurement, enable_features

from duckanon._core.account.budget import make_amount, spend
from duckanon._core.account.storage import Account, AccountError
from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.dp.aggregates import PEOPLE, UNITS, Aggregate, name_part, parse_aggregates

enable_features("contrib")  # OpenDP's name for what its own process of proofs has not finished

_WHOLE = "i64"
_MOST_PEOPLE = 2**40  # a threshold beyond it finds no group on earth


def shares(epsilon: float, parts: int) -> list[float]:
    """Split epsilon into equal parts, which as floats add up to at most the number that is written in the call."""
    share = Fraction(repr(float(epsilon))) / parts
    rounded = float(share)
    return [rounded if Fraction(rounded) <= share else math.nextafter(rounded, 0)] * parts


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise on a vector of whole numbers, of which one person changes `most` in sum."""

    most: int
    epsilon: float

    @functools.cached_property
    def measurement(self) -> Measurement:
        """OpenDP's measurement."""
        space = domains.vector_domain(domains.atom_domain(T=_WHOLE)), metrics.l1_distance(T=_WHOLE)
        return _find_scale(
            self.epsilon,
            self.most / self.epsilon,
            lambda scale: measurements.make_laplace(*space, scale=scale),
            lambda measurement: float(measurement.map(self.most)),
        )[0]

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return _compute_deviation(self.most / self.epsilon)

    def draw(self, totals: Ints) -> Ints:
        """Return the numbers with noise."""
        return np.array(self.measurement(totals.copy()) if len(totals) else [], dtype=np.int64)


@dataclass(frozen=True)
class Threshold:
    """Counts of people by group with noise, of which those at a threshold or above are released.

    A person is in at most `most` groups, once in each.
    """

    most: int
    epsilon: float
    delta: float

    @functools.cached_property
    def measurement(self) -> Measurement:
        """OpenDP's measurement, with the lowest threshold that delta allows, and 1 more.

        OpenDP 0.16 releases counts at the threshold, and its price is that of counts above it: a group of one person
        was released with a probability of 0.0134 where the price said 0.0049 (our audit found it; it is OpenDP's issue
        2922). What it says of a threshold is true of the next one.
        """
        space = (
            domains.map_domain(domains.atom_domain(T=_WHOLE), domains.atom_domain(T=_WHOLE)),
            metrics.l01inf_distance(metrics.absolute_distance(T=_WHOLE)),
        )
        changed = (self.most, self.most, 1)  # groups, people in all of them, people in one

        def make(scale: float, threshold: int) -> Measurement:
            return measurements.make_laplace_threshold(*space, scale=scale, threshold=threshold)

        scale = _find_scale(
            self.epsilon,
            self.most / self.epsilon,
            lambda scale: make(scale, 2),
            lambda measurement: float(measurement.map(changed)[0]),
        )[1]
        low, high = 1, 2  # the price of `low` is too high, that of `high` in the end is not
        while make(scale, high).map(changed)[1] > self.delta:
            low, high = high, 2 * high
            if high > _MOST_PEOPLE:
                raise ValueError("epsilon and delta must be larger to find groups, or max_groups smaller.")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if make(scale, middle).map(changed)[1] > self.delta else (low, middle)
        return make(scale, high + 1)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return _compute_deviation(self.most / self.epsilon)

    def draw(self, people: Ints) -> dict[int, int]:
        """Return the noisy counts of the groups that are released, by their indexes in `people`."""
        measurement = self.measurement  # made, or refused, for an empty table too
        if not len(people):
            return {}
        noisy = measurement({index: int(count) for index, count in enumerate(people)})
        return {int(index): int(count) for index, count in noisy.items()}


@dataclass(frozen=True)
class Quantile:
    """The step from 0 to `steps` that is about the quantile of whole numbers from 0 to `steps`.

    A person changes one number in each of at most `most` groups, of which each is asked with its part of epsilon.
    """

    most: int
    epsilon: float
    share: float
    steps: int

    @functools.cached_property
    def measurement(self) -> Measurement:
        """OpenDP's measurement of one group."""
        return self._calibration[0]

    @property
    def deviation(self) -> float:
        """The largest root mean square error that any data can cause, in people.

        The error of a step is by how many people more its rank misses the quantile's than that of the best step. Noise
        of scale s takes a step whose error is t, rather than the best one, with at most exp(-t / s) times the
        probability (OpenDP's exponential noise, known as permute-and-flip, is never worse; McKenna and Sheldon, 2020).
        The mean of t * t is largest where all other steps have the same t, which solves 2 * steps * exp(-t / s) =
        t / s - 2.
        """
        low, high = 2.0, 2.0 + 2.0 * self.steps
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if 2 * self.steps * math.exp(-middle) > middle - 2 else (low, middle)
        return math.sqrt(high * (high - 2)) * self._calibration[1]

    @functools.cached_property
    def _calibration(self) -> tuple[Measurement, float]:
        """OpenDP's measurement, and the scale of its noise in people."""
        space = domains.vector_domain(domains.atom_domain(T=_WHOLE)), metrics.symmetric_distance()
        candidates = list(range(self.steps + 1))

        def make(scale: float) -> Measurement:
            return measurements.make_private_quantile(
                *space, max_divergence(), candidates=candidates, alpha=self.share, scale=scale
            )

        part = shares(self.epsilon, self.most)[0]
        return _find_scale(part, float(make(1.0).map(1)) / part, make, lambda measurement: float(measurement.map(1)))

    def draw(self, values: Ints) -> int:
        """Return the noisy quantile of one group."""
        return int(self.measurement(values if len(values) else []))


def _find_scale(
    epsilon: float, scale: float, make: Callable[[float], Measurement], price: Callable[[Measurement], float]
) -> tuple[Measurement, float]:
    """Return the measurement with the smallest noise from a scale on whose price is at most epsilon, and its scale."""
    while price(measurement := make(scale)) > epsilon:
        scale *= 1 + 2.0**-45
    return measurement, scale


def _compute_deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


FEWEST_DEVIATIONS = 2
"""A mean is returned where the noisy number of its people is above so many standard deviations of its noise."""

Answer = tuple[pa.Array, pa.Array]
"""The values of an aggregate and their standard errors, by group."""


def dp_table(
    table: pa.Table,
    *,
    by: Sequence[str],
    aggregates: Sequence[str],
    epsilon: float,
    delta: float,
    person: str | None,
    max_groups: int,
    max_rows: int | None,
    bounds: Mapping[str, Sequence[float]] | None,
    groups: str | None,
    account: str | None,
    dataset: str | None,
    consumer: str | None,
    unaccounted: bool,
) -> pa.Table:
    """Spend the budget, then return the noisy table. Options are as `DP_TABLE` declares them."""
    requests = parse_aggregates(aggregates, bounds, max_rows)
    finds_groups = bool(by) and groups is None
    counts = next((index for index, aggregate in enumerate(requests) if aggregate.kind == "count"), None)
    if not unaccounted:
        question = f"{', '.join(aggregates)} by {', '.join(by)}"
        try:
            with Account(account or "", None) as budget:
                spend(budget, dataset or "", consumer, make_amount(epsilon, delta), question)
        except AccountError as error:  # refused with nothing drawn
            raise ValueError(str(error)) from error
    parts = shares(epsilon, len(requests) + (finds_groups and counts is None))
    table = _sort_groups(table.filter(pc.is_valid(table.column(PEOPLE))), len(by))
    answers: dict[int, Answer] = {}
    if finds_groups:
        threshold = Threshold(max_groups, parts[-1], delta)
        noisy_people = threshold.draw(_read_whole(table, PEOPLE))
        indices = sorted(noisy_people)
        table = table.take(pa.array(indices, pa.int64()))
        if counts is not None:
            people = np.array([noisy_people[index] for index in indices], np.int64)
            answers[counts] = _attach_error(people, threshold.deviation)
    columns = {table.column_names[index]: table.column(index) for index in range(len(by))}
    for index, aggregate in enumerate(requests):
        progress.advance(index / len(requests))
        if index not in answers:
            answers[index] = _draw_aggregate(table, index, aggregate, parts[index], max_groups)
        columns[aggregate.name], columns[aggregate.error_name] = answers[index]
    return pa.table(columns)


def _draw_aggregate(table: pa.Table, index: int, aggregate: Aggregate, epsilon: float, most: int) -> Answer:
    """Draw one aggregate of all groups."""
    if aggregate.kind in ("count", "rows"):
        is_count = aggregate.kind == "count"
        noise = Laplace(most if is_count else most * int(aggregate.upper), epsilon)
        totals = _read_whole(table, PEOPLE if is_count else name_part(index, "sum"))
        return _attach_error(noise.draw(totals), noise.deviation)
    if aggregate.kind == "sum":
        noise, unit = Laplace(most * max(map(abs, aggregate.span)), epsilon), aggregate.unit
        sums = noise.draw(_read_whole(table, name_part(index, "sum"))).astype(np.float64)
        return _attach_error(sums * unit, noise.deviation * unit)
    if aggregate.kind == "mean":
        above, people = (_read_whole(table, name_part(index, name)) for name in ("sum", "people"))
        return _draw_mean(above, people, aggregate, epsilon, most)
    quantile = Quantile(most, epsilon, aggregate.share, aggregate.steps)
    steps = []
    for text in table.column(name_part(index, "steps")).to_pylist():
        progress.check()
        steps.append(quantile.draw(_read_histogram(text)))
    width = aggregate.upper - aggregate.lower
    values = (aggregate.lower * aggregate.steps + np.array(steps, np.float64) * width) / aggregate.steps
    return _attach_error(values, quantile.deviation)


def _draw_mean(above: Ints, people: Ints, aggregate: Aggregate, epsilon: float, most: int) -> Answer:
    """Draw means: of how far people are above the lower bound, and how far below the upper one.

    The two add up to the same for everybody, so that one person changes both together by no more than a sum alone, and
    their total is the number of people. That halves the variance of a sum and a count with half of epsilon each.
    """
    noise = Laplace(most * UNITS, epsilon)
    drawn = noise.draw(np.concatenate([above, people * UNITS - above])).astype(np.float64)
    above_noisy, below_noisy = drawn[: len(above)], drawn[len(above) :]
    total = above_noisy + below_noisy
    is_known = total > FEWEST_DEVIATIONS * math.sqrt(2) * noise.deviation
    total = np.where(is_known, total, 1.0)
    width = aggregate.upper - aggregate.lower
    mean: Floats = aggregate.lower + width * np.clip(above_noisy / total, 0, 1)
    error = width * noise.deviation * np.hypot(above_noisy, below_noisy) / total**2
    return pa.array(mean, mask=~is_known), pa.array(error, mask=~is_known)


def _attach_error(values: Ints | Floats, deviation: float) -> Answer:
    return pa.array(values), pa.array(np.full(len(values), deviation))


def _read_whole(table: pa.Table, name: str) -> Ints:
    return np.asarray(pc.fill_null(table.column(name), 0).to_numpy(), dtype=np.int64)


def _read_histogram(text: str | None) -> Ints:
    """Read ``{3=2, 7=1}``, how often each step occurs, as the steps of all people."""
    if not text or text == "{}":
        return np.zeros(0, np.int64)
    pairs = np.array([pair.split("=") for pair in text.strip("{}").split(",")], dtype=np.int64)
    return np.repeat(pairs[:, 0], pairs[:, 1])


def _sort_groups(table: pa.Table, columns: int) -> pa.Table:
    """Sort groups by their values: an order that came from the data could tell of groups that are not released."""
    if not columns:
        return table
    keys = []
    for column in table.columns[:columns]:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        elif pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        keys.append(column)
    names = [str(index) for index in range(columns)]
    order = pc.sort_indices(pa.table(keys, names=names), sort_keys=[(name, "ascending") for name in names])
    return table.take(order)
