"""Options that name columns: maps from columns to something, and weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from duckanon._core.common.rules import Number

_WEIGHT = Number(0)


def by_column(parameter: str, option: Any, names: Sequence[str]) -> dict[str, Any]:
    """Read a MAP or STRUCT from column names to something, the names in lower case."""
    pairs = option.items() if isinstance(option, dict) else option or []
    named = {str(name).lower(): value for name, value in pairs}
    refuse_other_columns(parameter, named, names)
    return named


def refuse_other_columns(parameter: str, named: Iterable[str], names: Sequence[str]) -> None:
    """Refuse an option that names, in lower case, a column that is none of ``names``."""
    known = {name.lower() for name in names}
    for name in named:
        if name not in known:
            raise ValueError(f'{parameter} must name columns of cols; got "{name}".')


def column_weights(option: Any, names: Sequence[str], cols: Sequence[str]) -> list[float]:
    """Return the weight of each column: from a list parallel to `cols`, or from a map; 1 where nothing is said."""
    is_plain_list = isinstance(option, list) and not (option and isinstance(option[0], tuple))
    if is_plain_list:
        if len(option) != len(cols):
            raise ValueError(f"weights must have one number for each of the {len(cols)} columns; got {len(option)}.")
        option = dict(zip(cols, option, strict=True))
    if option is not None and not isinstance(option, list | dict):
        raise ValueError(f"weights must be a list of numbers or a map such as MAP {{'age': 2}}; got {option}.")
    given = by_column("weights", option, names)
    weights = [given.get(name.lower(), 1.0) for name in names]
    if not all(_WEIGHT.holds(weight) for weight in weights) or not sum(weights) > 0:
        raise ValueError("weights must be numbers of at least 0, not all of them 0.")
    return [float(weight) for weight in weights]
