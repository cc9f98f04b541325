"""Profiles of columns for the rules of `assess.roles`: counts, numbers, texts.

Kinds of columns that are told by the spread of their values alone: ages, sexes, bodies, amounts, times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array
from duckanon._measure.assess import vocabulary

_DATE = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4}|\d{2})|\d{4}-\d{2}-\d{2}([ T].*)?|\d{8}T.*")
_PERIOD = re.compile(r"\d{4}[-/ ]?(0[1-9]|1[0-2]|[QqMmWw]\d{1,2}|\d{4})")
_ICD = re.compile(r"[A-TV-Z]\d{2}(\.?\d{1,3})?")
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})|(\d{1,2})[./-](\d{1,2})[./-](\d{2,4})")
_PROBED = 300  # different values of a text column that patterns are tried on
_READ = 2000  # different values of a text column whose words and shapes are counted


@dataclass
class Profile:
    """A column of the sample."""

    name: str
    kind: str  # numeric, date, period (a month, quarter or pair of years), boolean or text, as which nested ones count
    codes: Array  # the code of every row's value, -1 where it is missing
    values: list[str]  # the different values as texts, by their codes
    numbers: Array | None  # of every row, NaN where it is missing: a number, or the days of a date; None for texts
    distinct_share: float  # different values for each known one in the whole table: 1 where none repeats
    unique_fraction: float  # the share of people with a value of their own, in the whole table
    categories: list[str]  # by anon.direct_identifiers
    whole: Array | None  # rows of the sample in which every group of equal values is complete; None: all rows

    @cached_property
    def topics(self) -> frozenset[str]:
        """Topics that the name suggests."""
        return frozenset(vocabulary.topics(self.name))

    @cached_property
    def known(self) -> int:
        """Rows whose value is not missing."""
        return int((self.codes >= 0).sum())

    @cached_property
    def counts(self) -> Array:
        """Rows of each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    @property
    def distinct(self) -> int:
        """Different values in the sample."""
        return len(self.values)

    @property
    def missing(self) -> float:
        """Share of the rows without a value."""
        return 1 - self.known / max(len(self.codes), 1)

    @cached_property
    def top_share(self) -> float:
        """Share of the known rows that have the most frequent value."""
        return float(self.counts.max() / self.known) if self.known else 1.0

    @cached_property
    def agreement(self) -> float:
        """Probability that two random rows agree, missing values counted as one."""
        shares = np.bincount(self.codes + 1) / max(len(self.codes), 1)
        return float((shares**2).sum())

    @cached_property
    def plain_values(self) -> frozenset[str]:
        """Up to 500 values in lower case without accents."""
        return frozenset(vocabulary.plain(value).strip() for value in self.values[:500])

    @cached_property
    def numeric(self) -> Numbers:
        """The figures of a numeric column."""
        assert self.numbers is not None
        return Numbers(self.numbers, self.distinct)

    @cached_property
    def words(self) -> Words:
        """The figures of a text column."""
        return Words(self.values[:_READ])

    @property
    def is_integer(self) -> bool:
        """Whether it has whole numbers only."""
        return self.kind == "numeric" and self.numeric.is_integer

    @cached_property
    def span(self) -> float:
        """Days between the 5 % and the 95 % quantile of a date."""
        days = np.array([]) if self.numbers is None else self.numbers[np.isfinite(self.numbers)]
        return float(np.diff(np.quantile(days, [0.05, 0.95]))[0]) if len(days) else 0.0

    @property
    def has_icd_codes(self) -> bool:
        """Whether the values are codes of diseases."""
        return self.kind == "text" and self.distinct > 4 and _share(self.values, _ICD) > 0.8


class Numbers:
    """Figures of a numeric column; of those without a value nothing is asked."""

    def __init__(self, numbers: Array, distinct: int) -> None:
        finite = numbers[np.isfinite(numbers)]
        if not len(finite):
            finite = np.zeros(1)
        self.is_integer = bool((finite == np.round(finite)).all())
        self.lowest, self.highest, self.median = float(finite.min()), float(finite.max()), float(np.median(finite))
        self.mean, self.deviation, self.total = float(finite.mean()), float(finite.std()), float(finite.sum())
        self.zeros, self.negative = float((finite == 0).mean()), float((finite < 0).mean())
        self.decimals = {
            places: float((np.abs(finite * 10**places - np.round(finite * 10**places)) > 1e-6).mean())
            for places in (2, 3)
        }
        """Share of the numbers with more than so many decimals."""
        sizes = np.abs(finite[finite != 0]) if (finite != 0).any() else np.ones(1)
        middle = float(np.median(sizes))
        step = 10.0 ** max(np.floor(np.log10(middle)) - 1, 1)
        self.heaped = float((np.abs(sizes / step - np.round(sizes / step)) < 1e-9).mean()) if middle >= 100 else 0.0
        """Share of round numbers, as of amounts that people tell."""
        self.tail = float(np.quantile(sizes, 0.99) / max(middle, 1e-300))
        spread = max(self.deviation, 1e-300)
        with np.errstate(over="ignore", invalid="ignore"):
            self.skew = float(np.nan_to_num((((finite - self.mean) / spread) ** 3).mean()))
        lengths = np.floor(np.log10(sizes)).astype(int)
        self.same_length = float(
            np.bincount(lengths - lengths.min()).max() / len(lengths)
        )  # with as many digits as most
        width = self.highest - self.lowest
        self.density = distinct / (width + 1) if self.is_integer else 0.0  # share of whole numbers in range that occur
        placed = (np.sort(finite) - self.lowest) / (width or 1.0)
        self.unevenness = float(np.abs(placed - np.linspace(0, 1, len(placed))).max())
        """Kolmogorov's distance to even spacing."""
        self.ascending = float((np.diff(finite) >= 0).mean()) if len(finite) > 1 else 0.0

    @property
    def variation(self) -> float:
        """Standard deviation over the mean."""
        return self.deviation / abs(self.mean) if self.mean else np.inf


class Words:
    """Figures of the values of a text column."""

    def __init__(self, values: list[str]) -> None:
        values = values or [""]
        lengths = [len(value) for value in values]
        self.per_value = float(np.mean([len(value.split()) for value in values]))
        self.length, self.length_deviation = float(np.mean(lengths)), float(np.std(lengths))
        self.with_digits = float(np.mean([any(map(str.isdigit, value)) for value in values]))
        self.with_letters = float(np.mean([any(map(str.isalpha, value)) for value in values]))
        shapes = [re.sub(r"\d", "9", re.sub(r"[^\W\d_]", "a", value)) for value in values]
        counts = np.unique(shapes, return_counts=True)[1]
        self.shapes, self.top_shape = len(counts), float(counts.max() / len(shapes))


def profile(
    name: str,
    column: pa.Array,
    kind: str,
    distinct_share: float | None,
    unique_fraction: float,
    categories: list[str],
    whole: Array | None,
) -> Profile:
    """Make the profile of a column from its values as texts and its kind by type: numeric, date, text, boolean, other.

    Where `distinct_share` is None, it is that of the sample.
    """
    encoded = pc.dictionary_encode(column)
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values, codes = _without_missing(values, codes)
    kind = kind if kind in ("numeric", "date", "boolean") else _kind_of_text(values)
    numbers = None
    if kind in ("numeric", "date"):
        read = np.array(values if kind == "numeric" else [_day(value.strip()) for value in values], dtype=float)
        numbers = np.append(read, np.nan)[codes]
    known = int((codes >= 0).sum())
    share = len(values) / max(known, 1) if distinct_share is None else distinct_share
    return Profile(name, kind, codes, values, numbers, share, unique_fraction, categories, whole)


def _without_missing(values: list[str], codes: Array) -> tuple[list[str], Array]:
    kept = [place for place, value in enumerate(values) if not vocabulary.is_missing(value)]
    if len(kept) == len(values):
        return values, codes
    moved = np.full(len(values) + 1, -1)
    moved[kept] = np.arange(len(kept))
    return [values[place] for place in kept], moved[codes]


def _kind_of_text(values: list[str]) -> str:
    """Tell dates, periods and numbers that are written as text."""
    if _share(values, _DATE) > 0.95:
        return "date"
    if _share(values, _PERIOD) > 0.95 and any(re.search("[-/Q]", value) for value in values[:_PROBED]):
        return "period"
    if values and all(_NUMBER.fullmatch(value.strip()) for value in values):
        return "numeric"
    return "text"


def _share(values: list[str], pattern: re.Pattern[str]) -> float:
    """Return the share of the first values that a pattern matches."""
    probed = values[:_PROBED]
    return sum(bool(pattern.fullmatch(value.strip())) for value in probed) / max(len(probed), 1)


def _day(value: str) -> float:
    """Return a date as days, NaN where a text is none; of 3/4/2020 it does not matter which is the month."""
    match = _DAY.match(value)
    if not match:
        return np.nan
    year, month, day, first, second, last = match.groups()
    if year is None:
        year = last if len(last) == 4 else f"{19 if int(last) > 30 else 20}{last}"
        month, day = (first, second) if int(second) > 12 else (second, first)
    try:
        return date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return np.nan


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
