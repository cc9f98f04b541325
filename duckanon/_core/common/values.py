"""The values of a column as numbers: what they count, and how they are written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, is_number, is_time, sql_type
from duckanon._core.common.labels import FIRST_DAY, LAST_DAY, MICROSECONDS_PER_DAY, Numbers, Scale, Times

_FIRST_INEXACT = 2.0**53  # the double of two whole numbers
_EXACT_DIGITS = 15  # decimals of so many digits are all different as doubles, and are written as they were
_LARGEST = 1e150  # the square of such a number, and sums of such squares, are still finite


def is_time_scale(scale: Scale) -> bool:
    """Tell whether numbers are moments."""
    return scale.covers == "time"


def take_numbers(name: str, column: pa.Array | pa.ChunkedArray) -> tuple[Floats, Bools, Scale]:
    """Take a column as numbers: dates and timestamps in microseconds since 1970, as ``anon._plan_number`` does.

    Returns the numbers that are not NULL, which rows these are, and how such numbers are written. Refuses other types,
    and values that cannot be computed with: NaN, infinity, numbers beyond 1e150, days outside the years 1 to 9999.

    Examples:
        >>> ages, is_known, scale = take_numbers("age", pa.array([40, None, 25]))
        >>> ages.tolist(), is_known.tolist(), scale.text(ages[0])
        ([40.0, 25.0], [True, False, True], '40')
    """
    is_known = np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), bool)
    scale = _scale_of(name, column.type)
    if is_time_scale(scale):
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    known = column.drop_null() if column.null_count else column
    if not pa.types.is_decimal(column.type):
        result = np.asarray(known).astype(np.float64, copy=False)
    elif known.type.precision > _EXACT_DIGITS:
        result = np.asarray(known.cast(pa.string()).cast(pa.float64()))
    else:  # the nearest doubles: Arrow multiplies by 0.1 where DuckDB divides by 10
        result = np.asarray(np.round(np.asarray(known.cast(pa.float64(), safe=False)), known.type.scale), np.float64)
    _refuse_incomputable(name, result, scale)
    return result, is_known, scale


def take_exact_numbers(name: str, column: pa.Array | pa.ChunkedArray) -> tuple[Floats, Bools, Scale]:
    """Take a column as `take_numbers` does, where different values are different numbers and are written as they were.

    For cutting a column into buckets and counting the rows of each: two values that became one number would be counted
    together here and told apart by their labels. Whole numbers from 2^53 on, decimals of more than 15 digits, and
    moments so far from 1970 that a double does not hold their microseconds are refused, too.
    """
    result, is_known, scale = take_numbers(name, column)
    if not len(result):
        return result, is_known, scale
    if is_time_scale(scale):
        moments = column.drop_null().cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        if not np.array_equal(result.astype(np.int64), np.asarray(moments)):
            raise ValueError(
                f'column "{name}" holds moments so far from 1970 that their microseconds are lost; '
                "cut them to seconds with date_trunc, or cast it to DATE."
            )
    elif scale.is_whole and np.abs(result).max() >= _FIRST_INEXACT:
        raise ValueError(
            f'column "{name}" holds whole numbers from 2^53 on, which a double does not tell apart; '
            "divide it, or cast it to DOUBLE, or to VARCHAR where it is a code."
        )
    elif pa.types.is_decimal(column.type) and _count_most_digits(column) > _EXACT_DIGITS:
        raise ValueError(
            f'column "{name}" holds decimals of more than {_EXACT_DIGITS} digits, which a double does not tell apart; '
            "round it, or cast it to DOUBLE."
        )
    return result, is_known, scale


def _count_most_digits(column: pa.Array | pa.ChunkedArray) -> int:
    """Count the digits of the decimal that has most of them, without zeros before and after."""
    if column.type.precision <= _EXACT_DIGITS:
        return 0
    digits = pc.replace_substring_regex(column.cast(pa.string()), "[eE].*$|[-.]", "")
    return int(pc.max(pc.utf8_length(pc.utf8_trim(digits, "0"))).as_py())


def _scale_of(name: str, arrow_type: pa.DataType) -> Scale:
    """Return how the numbers of a type are written."""
    if is_time(arrow_type):
        return Times(pa.types.is_date(arrow_type), pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None)
    if is_number(arrow_type):
        is_whole = pa.types.is_integer(arrow_type) or (pa.types.is_decimal(arrow_type) and arrow_type.scale == 0)
        return Numbers(bool(is_whole))
    raise ValueError(f'column "{name}" must hold numbers, dates or timestamps; its type is {sql_type(arrow_type)}.')


def _refuse_incomputable(name: str, known: Floats, scale: Scale) -> None:
    if not len(known):
        return
    if not np.isfinite(known).all():
        raise ValueError(f'column "{name}" holds NaN or infinity; replace them by NULL or a number first.')
    first, end = FIRST_DAY * MICROSECONDS_PER_DAY, (LAST_DAY + 1) * MICROSECONDS_PER_DAY
    if is_time_scale(scale) and not first <= known.min() <= known.max() < end:
        raise ValueError(f'column "{name}" holds dates before the year 1 or after 9999; replace them by NULL first.')
    if np.abs(known).max() > _LARGEST:
        raise ValueError(f'column "{name}" holds numbers beyond {_LARGEST:g}, whose squares cannot be computed.')
