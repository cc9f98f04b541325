"""Columns that tell people apart, which are no data: numbers of persons and rows, names."""

from __future__ import annotations

import re

import numpy as np

from duckanon._core.common.arrays import Floats

MOST_CATEGORIES = 1000
"""Each category is a column of the matrix, and the covariance grows with the square of their number."""
_NEARLY_ALL = 0.95  # the share of rows with a value of their own, from which on numbers may be those of people
_NAMED = re.compile(
    r"(^|[^a-z])(id|pid|uid|key|ssn|mrn|seqn|serial|serialno)$"
    r"|(person|patient|customer|user|household|row|case)[^a-z]?(id|no|nr|number)$"
)
_FEWEST_ROWS = 100  # in shorter tables different values are no sign
_CRITICAL = 1.2  # of sqrt(rows) times the distance to even numbers: nine in ten columns of even numbers are below


def refuse_identifier(name: str, values: Floats, distinct: int) -> None:
    """Refuse whole numbers that look like an identifier's."""
    if looks_like_identifier(name, values, distinct):
        raise ValueError(
            f'column "{name}" has {distinct:,} different whole numbers in {len(values):,} rows, as an identifier has; '
            "leave it out of cols or generalize it first."
        )


def refuse_distinct_texts(name: str, distinct: int, rows: int) -> None:
    """Refuse texts that are different for most people."""
    if distinct == rows or (rows > 100 and 2 * distinct > rows):
        raise ValueError(
            f'column "{name}" has {distinct:,} different values in {rows:,} rows, as an identifier has; '
            "leave it out of cols or generalize it first."
        )


def refuse_many_categories(name: str, distinct: int) -> None:
    """Refuse more categories than a release can tell apart."""
    if distinct > MOST_CATEGORIES:
        raise ValueError(
            f'column "{name}" has more than {MOST_CATEGORIES:,} different values; '
            "leave it out of cols or generalize it first."
        )


def looks_like_identifier(name: str, values: Floats, distinct: int) -> bool:
    """Tell whether whole numbers, different for nearly everybody, are named or shaped like an identifier's.

    Numbers of rows, and of people drawn from a register, are spread evenly from the smallest to the largest; amounts
    are not. Values are those of all rows, without NULLs, so many of them distinct.

    Examples:
        >>> numbers = np.arange(1000.0)
        >>> looks_like_identifier("SEQN", numbers, 1000), looks_like_identifier("x", numbers**2, 1000)
        (True, False)
    """
    rows = len(values)
    if rows < _FEWEST_ROWS or distinct < _NEARLY_ALL * rows or not bool((values == np.rint(values)).all()):
        return False
    if _NAMED.search(name.lower()):
        return True
    ordered = np.sort(values)
    width = ordered[-1] - ordered[0]
    expected = (ordered - ordered[0]) / width
    away = np.abs(expected - (np.arange(rows) + 0.5) / rows).max()
    return bool(away * np.sqrt(rows) < _CRITICAL)
