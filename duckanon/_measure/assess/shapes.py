"""Kinds of columns that are told by the spread of their values alone: ages, sexes, bodies, amounts, times."""

from __future__ import annotations

from duckanon._measure.assess import vocabulary
from duckanon._measure.assess.profiles import Profile

LIFETIME = 9000
"""Days that dates of birth span at least, between their outer 5 percent: 25 years."""


def is_age(profile: Profile) -> bool:
    """Whole years from 0 to about 100, nearly all of them, none frequent."""
    if not profile.is_integer or profile.distinct < 40:
        return False
    numbers = profile.numeric
    return (
        numbers.lowest >= 0
        and 60 <= numbers.highest <= 120
        and numbers.median >= 15
        and numbers.density > 0.85
        and numbers.zeros < 0.1
        and numbers.tail < 4
        and profile.top_share < 0.12
    )


def is_sex(profile: Profile) -> bool:
    """Words for sex, or the codes 1 and 2 about equally often."""
    if profile.kind == "text":
        return 2 <= profile.distinct <= 4 and vocabulary.tells_sex(profile.plain_values)
    if profile.kind != "numeric" or profile.distinct != 2 or profile.missing > 0.02:
        return False
    return (profile.numeric.lowest, profile.numeric.highest) == (1, 2) and 0.3 < profile.top_share < 0.7


def is_height(profile: Profile) -> bool:
    """Centimetres of people."""
    numbers = profile.numeric
    return numbers.lowest > 40 and 150 <= numbers.median <= 185 and numbers.highest < 230 and numbers.variation < 0.15


def is_body(profile: Profile) -> bool:
    """Kilograms or centimetres of people."""
    if profile.kind != "numeric" or profile.distinct <= 25 or profile.numeric.lowest <= 15:
        return False
    numbers = profile.numeric
    is_heavy = 40 <= numbers.median <= 95 and 110 < numbers.highest < 300 and 0.12 < numbers.variation < 0.4
    return is_heavy or is_height(profile)


def is_amount(profile: Profile) -> bool:
    """Numbers as of money: a heavy tail with zeros, losses, cents or round values."""
    if profile.kind != "numeric" or profile.distinct < 25:
        return False
    numbers = profile.numeric
    if profile.distinct < 0.002 * profile.known * (1 - numbers.zeros) and numbers.highest < 1000:
        return False
    if numbers.is_integer and profile.distinct_share > 0.5 and numbers.heaped < 0.1 and numbers.zeros < 0.05:
        return False  # as well a code
    if is_coordinate(profile):
        return False
    is_heavy = numbers.tail > 4 or abs(numbers.skew) > 2
    signs = numbers.zeros > 0.05 or numbers.negative > 0 or numbers.heaped > 0.3
    return (is_heavy and (signs or not numbers.is_integer or numbers.highest > 5000)) or (
        numbers.heaped > 0.5 and numbers.highest >= 1000 and profile.distinct >= 50
    )


def is_money(profile: Profile) -> bool:
    """Amounts that are hardly anything else: above 1,000, with cents or many zeros."""
    if not is_amount(profile) or profile.is_integer or profile.numeric.highest < 1000:
        return False
    return profile.numeric.zeros > 0.05 or (profile.numeric.decimals[2] < 0.05 and profile.numeric.median > 50)


def is_coordinate(profile: Profile) -> bool:
    """Degrees with many decimals."""
    numbers = profile.numeric
    return (
        not numbers.is_integer and numbers.lowest >= -180 and 1 < numbers.highest <= 180 and numbers.decimals[3] > 0.5
    )


def is_time(profile: Profile) -> bool:
    """Dates, years, months, quarters, weeks or waves: what rows of one person differ by."""
    if profile.kind in ("date", "period"):
        return True
    if not profile.is_integer or profile.distinct < 2:
        return False
    numbers = profile.numeric
    is_year = 1900 < numbers.lowest <= numbers.highest < 2100
    return is_year or (
        numbers.lowest == 1 and numbers.highest == profile.distinct and profile.distinct in (4, 12, 52, 53)
    )
