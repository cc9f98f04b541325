"""How often a property is tried: two hypothesis profiles, and three classes of what one example costs.

A property without a decorator of this module is tried as often as the profile says, which is meant for examples of some
ten milliseconds, such as a query. ``@cheap`` is for pure functions on small inputs, ``@dear`` for examples that take
a good part of a second: these are not shrunk, a failure is shown as it was found.

``make test`` uses ``quick``, whose examples are the same in every run, so that chance decides nothing; ``make
test-thorough`` uses ``thorough``, which draws new ones: ``pytest --hypothesis-profile=thorough``.

A test that takes half a second of the processor or more is marked ``thorough``, unless nothing quicker tests its
promise or its function. Where a test has many cases, `keep_one_in` leaves most of them to the thorough run; so does
`seeds` where the cases are seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings


@dataclass(frozen=True)
class Depth:
    """The number of examples of a property, by what one of them costs."""

    usual: int
    cheap: int
    dear: int


DEPTHS = {"quick": Depth(usual=8, cheap=30, dear=3), "thorough": Depth(usual=30, cheap=150, dear=12)}

# A busy machine is no failure: nothing here looks at the clock. Fixtures that a test's examples share are made for it.
UNTIMED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def register() -> None:
    """Make the profiles known to hypothesis, whose pytest plugin loads the one that is asked for."""
    for name, depth in DEPTHS.items():
        settings.register_profile(
            name,
            max_examples=depth.usual,
            derandomize=name == "quick",
            deadline=None,
            suppress_health_check=UNTIMED,
            print_blob=True,
        )
    settings.load_profile("quick")


def _depth() -> Depth:
    return DEPTHS["quick" if settings.default.derandomize else "thorough"]


def cheap(property_test):
    """Try a property more often than others: an example takes a few milliseconds."""
    return settings(max_examples=_depth().cheap)(property_test)


def dear(property_test):
    """Try a property less often than others, and do not shrink what fails: an example takes up to a second."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=_depth().dear, phases=phases)(property_test)


def seeds(quick: int, thorough: int) -> list[Any]:
    """Return the seeds for which a test is run: the first for `make test`, the others for the thorough run."""
    return [*range(quick), *_for_thorough(range(quick, quick + thorough))]


def keep_one_in(share: int, cases: Iterable[Any]) -> list[Any]:
    """Return cases of a test of which `make test` runs one in so many, and the thorough run the others."""
    return [case if place % share == 0 else _for_thorough([case])[0] for place, case in enumerate(cases)]


def _for_thorough(items: Iterable[Any]) -> list[Any]:
    return [pytest.param(item, marks=pytest.mark.thorough) for item in items]
