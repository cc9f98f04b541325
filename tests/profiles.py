"""How often a property is tried: two hypothesis profiles, and three classes of what one example costs.

A property without a decorator of this module is tried as often as the profile says, which is meant for examples of some
ten milliseconds, such as a query. ``@cheap`` is for pure functions on small inputs, ``@dear`` for examples that take
a good part of a second: these are not shrunk, a failure is shown as it was found.

Tests that draw from a seed take theirs from `seeds`.

``make test`` uses ``quick``; ``make test-thorough`` uses ``thorough``: ``pytest --hypothesis-profile=thorough``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, settings


@dataclass(frozen=True)
class Depth:
    """The number of examples of a property, by what one of them costs."""

    usual: int
    cheap: int
    dear: int


DEPTHS = {
    "quick": Depth(usual=25, cheap=60, dear=5),  # five minutes for everything, on two processors
    "thorough": Depth(usual=200, cheap=1000, dear=200),  # forty
}

# A busy machine is no failure: nothing here looks at the clock. Fixtures that a test's examples share are made for it.
UNTIMED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def register() -> None:
    """Make the profiles known to hypothesis, whose pytest plugin loads the one that is asked for."""
    for name, depth in DEPTHS.items():
        settings.register_profile(
            name, max_examples=depth.usual, deadline=None, suppress_health_check=UNTIMED, print_blob=True
        )
    settings.load_profile("quick")


def _is_thorough() -> bool:
    return settings.default.max_examples >= DEPTHS["thorough"].usual


def _depth() -> Depth:
    return DEPTHS["thorough" if _is_thorough() else "quick"]


def cheap(property_test):
    """Try a property more often than others: an example takes a few milliseconds."""
    return settings(max_examples=_depth().cheap)(property_test)


def dear(property_test):
    """Try a property less often than others, and do not shrink what fails: an example takes up to a second."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=_depth().dear, phases=phases)(property_test)


def seeds(quick: int, thorough: int) -> Sequence:
    """Return the seeds for which a test is run, as many as the profile's name says."""
    if _is_thorough():
        return [pytest.param(seed, marks=pytest.mark.thorough) for seed in range(thorough)]
    return range(quick)
