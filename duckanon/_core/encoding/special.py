"""Special values of numbers: zeros that many have, and codes such as -8 for "does not apply"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.names import known_columns

_SHARE = 0.05  # the least share of the rows that hold a special value
_TIMES_NEIGHBOURS = 5  # how many times as many people hold it as the values beside it (their median)
_FEWEST_VALUES = 8  # in columns of fewer values none is told from the others
MOST_SPECIAL = 4
LOWEST_CODE = -99
"""Codes are whole negative numbers, at least this, at most `MOST_SPECIAL` of them, `CODES_SHARE` of the rows in all."""
CODES_SHARE = 0.01
_NEIGHBOURS = 3  # on each side


def special_values(values: Floats, counts: Ints) -> Floats:
    """Find the special values among the different ones of a column, ascending, given how many rows hold each.

    Examples:
        >>> special_values(np.arange(-1.0, 20.0), np.array([30, 400, *([50] * 19)])).tolist()
        [-1.0, 0.0]
    """
    rows = int(counts.sum())
    found: set[float] = set()
    if len(values) >= _FEWEST_VALUES:
        for index in np.argsort(-counts, kind="stable")[:MOST_SPECIAL].tolist():
            at_edge = index in (0, len(values) - 1) or values[index] <= 0
            if counts[index] < _SHARE * rows or not at_edge:
                continue
            beside = np.concatenate(
                [counts[max(0, index - _NEIGHBOURS) : index], counts[index + 1 : index + 1 + _NEIGHBOURS]]
            )
            if counts[index] >= _TIMES_NEIGHBOURS * max(float(np.median(beside)), 1.0):
                found.add(float(values[index]))
        found |= _codes(values, counts)
    return np.array(sorted(found))


def _codes(values: Floats, counts: Ints) -> set[float]:
    """Return the negative codes of a column whose other values are not negative."""
    is_negative = values < 0
    codes = values[is_negative]
    are_codes = (
        0 < len(codes) <= MOST_SPECIAL
        and codes.min() >= LOWEST_CODE
        and bool((codes == np.round(codes)).all())
        and counts[is_negative].sum() >= CODES_SHARE * counts.sum()
    )
    return set(codes.tolist()) if are_codes else set()


def special_choices(special: Any, columns: Sequence[str]) -> Mapping[str, list[float]] | None:
    """Read the option `special`: the values of each column that it names, in the table's spelling.

    ``'auto'`` finds them, ``'off'`` has none (None is returned), and a map has those of the columns that it names.
    """
    if special == "off":
        return None
    if special == "auto":
        return {}
    sentence = "special must be 'auto', 'off' or a map such as MAP {'cigarettes': [-8, 0]}"
    spelled = {name.lower(): name for name in columns}
    try:
        pairs = list(special.items() if isinstance(special, dict) else special)
        read = {str(name): [float(value) for value in values] for name, values in pairs}
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"{sentence}; got {special!r}.") from None
    known_columns("special", read, columns)
    return {spelled[name.lower()]: values for name, values in read.items()}
