"""How often a property is tried: two hypothesis profiles, and three classes of what one example costs.

A property without a decorator of this module is tried as often as the profile says, which is meant for examples of some
ten milliseconds, such as a query. ``@cheap`` is for pure functions on small inputs, ``@dear`` for examples that take
a good part of a second: these are not shrunk, a failure is shown as it was found.

Tests that draw from a seed take theirs from `seeds`, sweeps over all functions theirs from `sample_of_today`: what
one day leaves out, another one tries. A test that takes about half a second of the processor, and is neither a
promise's own nor a function's ``.test`` file, is marked ``rotating``, and so is a ``.test`` file of four seconds:
``make test`` runs it on one day of six, and ``make test-thorough`` on the other five, so that both together run all of
them every day. A study that takes ten
seconds or more is marked ``study``: the thorough run has it on one day of three. So it is with the depth of ``@dear``
properties: all examples on one day of three, fewer on the others. (No study takes its parameters from thirds of
`sample_of_today`: some would never have their day.)
``DUCKANON_TEST_DAY=2026-11-17`` repeats the choice of a day.

``make test`` uses ``quick``; ``make test-thorough`` uses ``thorough``: ``pytest --hypothesis-profile=thorough``.
"""

from __future__ import annotations

import datetime
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings


@dataclass(frozen=True)
class Depth:
    """The number of examples of a property, by what one of them costs."""

    usual: int
    cheap: int
    dear: int


DEPTHS = {
    "quick": Depth(usual=8, cheap=30, dear=3),  # four minutes for everything, on two processors
    "thorough": Depth(usual=50, cheap=300, dear=42),  # thirty
}

T = TypeVar("T")

_DAY = os.environ.get("DUCKANON_TEST_DAY") or str(datetime.datetime.now(datetime.UTC).date())
"""The same in all processes of a run that begins before midnight."""

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
    examples = _depth().dear
    if _is_thorough() and not has_its_day(property_test.__qualname__, days=3):
        examples //= 3
    return settings(max_examples=examples, phases=phases)(property_test)


def seeds(quick: int, thorough: int) -> Sequence:
    """Return the seeds for which a test is run, as many as the profile's name says; the thorough ones rotate."""
    if _is_thorough():
        first = quick + _day_number() * thorough
        return [pytest.param(seed, marks=pytest.mark.thorough) for seed in range(first, first + thorough)]
    return range(quick)


def sample_of_today(items: Sequence[T], part: int) -> list[T]:
    """Return one of `part` equal shares of a sequence, another one each day."""
    return list(items[_day_number() % part :: part])


def has_its_day(name: str, days: int = 6) -> bool:
    """Tell whether it is the turn of a test that runs on one of so many days."""
    return (zlib.crc32(name.encode()) + _day_number()) % days == 0


def _day_number() -> int:
    return datetime.date.fromisoformat(_DAY).toordinal()
