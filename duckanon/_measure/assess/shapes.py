"""Kinds of columns that are told by the spread of their values alone: ages, sexes, bodies, amounts, times."""

from __future__ import annotations

from duckanon._measure.assess import vocabulary
from duckanon._measure.assess.profiles import Profile

LIFETIME = 9000  # days that dates of birth span at least, between their outer 5 percent: 25 years


def is_age(profile: Profile) -> bool:
    """Tell ages: whole years from 0 to about 100, nearly all of them, none frequent."""
    if not profile.is_integer or profile.distinct < 40:
        return False
    numbers = profile.numeric
    is_lifetime = numbers.lowest >= 0 and numbers.median >= 15 and 60 <= numbers.highest <= 120
    is_even = numbers.density > 0.85 and numbers.zeros < 0.1 and numbers.tail < 4 and profile.top_share < 0.12
    return is_lifetime and is_even


def is_sex(profile: Profile) -> bool:
    """Tell sex: words for it, or the codes 1 and 2 about equally often."""
    if profile.kind == "text":
        return 2 <= profile.distinct <= 4 and vocabulary.tells_sex(profile.plain_values)
    if profile.kind != "numeric" or profile.distinct != 2 or profile.missing > 0.02:
        return False
    return (profile.numeric.lowest, profile.numeric.highest) == (1, 2) and 0.3 < profile.top_share < 0.7


def is_height(profile: Profile) -> bool:
    """Tell heights of people in centimetres."""
    numbers = profile.numeric
    return numbers.lowest > 40 and 150 <= numbers.median <= 185 and numbers.highest < 230 and numbers.variation < 0.15


def is_body(profile: Profile) -> bool:
    """Tell weights and heights of people, in kilograms or centimetres."""
    if profile.kind != "numeric" or profile.distinct <= 25 or profile.numeric.lowest <= 15:
        return False
    numbers = profile.numeric
    is_heavy = 40 <= numbers.median <= 95 and 110 < numbers.highest < 300 and 0.12 < numbers.variation < 0.4
    return is_heavy or is_height(profile)


def is_amount(profile: Profile) -> bool:
    """Tell numbers as of money: a heavy tail with zeros, losses, cents or round values."""
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
    is_round = numbers.heaped > 0.5 and numbers.highest >= 1000 and profile.distinct >= 50
    return is_round or (is_heavy and (signs or not numbers.is_integer or numbers.highest > 5000))


def is_money(profile: Profile) -> bool:
    """Tell amounts that are hardly anything else than money: above 1,000, with cents or many zeros."""
    if not is_amount(profile) or profile.is_integer or profile.numeric.highest < 1000:
        return False
    return profile.numeric.zeros > 0.05 or (profile.numeric.decimals[2] < 0.05 and profile.numeric.median > 50)


def is_coordinate(profile: Profile) -> bool:
    """Tell degrees with many decimals."""
    numbers = profile.numeric
    is_within = numbers.lowest >= -180 and 1 < numbers.highest <= 180
    return is_within and not numbers.is_integer and numbers.decimals[3] > 0.5


def is_time(profile: Profile) -> bool:
    """Tell dates, years, months, quarters, weeks or waves, by which the rows of one person differ."""
    if profile.kind in ("date", "period"):
        return True
    if not profile.is_integer or profile.distinct < 2:
        return False
    numbers = profile.numeric
    is_year = 1900 < numbers.lowest <= numbers.highest < 2100
    return is_year or (numbers.lowest == 1 and numbers.highest == profile.distinct in (4, 12, 52, 53))
