"""Mechanisms of OpenDP with the noise that a share of epsilon pays for.

The noise, its random numbers and the account of what it costs are OpenDP's. Here stands only what one person changes,
in whole numbers, and the search for the smallest noise whose price, as OpenDP computes it, is within the share.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import opendp.domains as domains
import opendp.measurements as measurements
import opendp.metrics as metrics
from opendp.measures import max_divergence
from opendp.mod import Measurement, enable_features

from duckanon._core.common.arrays import Ints

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
        return _within(
            self.epsilon,
            self.most / self.epsilon,
            lambda scale: measurements.make_laplace(*space, scale=scale),
            lambda made: float(made.map(self.most)),
        )[0]

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return _deviation(self.most / self.epsilon)

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

        def made(scale: float, threshold: int) -> Measurement:
            return measurements.make_laplace_threshold(*space, scale=scale, threshold=threshold)

        scale = _within(
            self.epsilon,
            self.most / self.epsilon,
            lambda scale: made(scale, 2),
            lambda one: float(one.map(changed)[0]),
        )[1]
        low, high = 1, 2  # the price of `low` is too high, that of `high` in the end is not
        while made(scale, high).map(changed)[1] > self.delta:
            low, high = high, 2 * high
            if high > _MOST_PEOPLE:
                raise ValueError("epsilon and delta must be larger to find groups, or max_groups smaller.")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if made(scale, middle).map(changed)[1] > self.delta else (low, middle)
        return made(scale, high + 1)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return _deviation(self.most / self.epsilon)

    def draw(self, people: Ints) -> dict[int, int]:
        """Return the noisy counts of the groups that are released, by their places in `people`."""
        measurement = self.measurement  # made, or refused, for an empty table too
        if not len(people):
            return {}
        noisy = measurement({place: int(count) for place, count in enumerate(people)})
        return {int(place): int(count) for place, count in noisy.items()}


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
        return self._made[0]

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
        return math.sqrt(high * (high - 2)) * self._made[1]

    @functools.cached_property
    def _made(self) -> tuple[Measurement, float]:
        """OpenDP's measurement, and the scale of its noise in people."""
        space = domains.vector_domain(domains.atom_domain(T=_WHOLE)), metrics.symmetric_distance()
        candidates = list(range(self.steps + 1))

        def made(scale: float) -> Measurement:
            return measurements.make_private_quantile(
                *space, max_divergence(), candidates=candidates, alpha=self.share, scale=scale
            )

        part = shares(self.epsilon, self.most)[0]
        return _within(part, float(made(1.0).map(1)) / part, made, lambda one: float(one.map(1)))

    def draw(self, values: Ints) -> int:
        """Return the noisy quantile of one group."""
        return int(self.measurement(values if len(values) else []))


def _within(
    epsilon: float, scale: float, make: Callable[[float], Measurement], price: Callable[[Measurement], float]
) -> tuple[Measurement, float]:
    """Return the measurement with the smallest noise from a scale on whose price is at most epsilon, and its scale."""
    while price(made := make(scale)) > epsilon:
        scale *= 1 + 2.0**-45
    return made, scale


def _deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
