"""The aggregates of ``anon.dp_table``: their text in a call, their bounds, and the whole numbers they are computed in.

A person's contribution to a group is a whole number of units before anything is added up. Sums of whole numbers are
exact, whatever the order of the rows, so that one person moves them by what the bounds say and not by a rounding more:
sums of floats break the promise (Casacuberta et al., Widespread Underestimation of Sensitivity in Differentially
Private Libraries, 2022). The units follow from the bounds alone, which are public.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

UNITS = 2**30
"""The largest contribution of a person in units: rounding is a thousand-millionth of what the noise hides, and the sums
of eight thousand million people fit into 64 bits."""

MOST_STEPS = 1000
"""Steps between the bounds of a quantile: the more there are, the likelier is one that noise makes look right."""

PEOPLE = "_duckanon_people"
"""The column with the number of people of a group; NULL in the row that comes where there are no groups."""

_FORM = re.compile(r"\s*(?:(count)|(rows)|(sum|mean)\((.+)\)|quantile\((.+),\s*([0-9.eE+-]+)\s*\))\s*", re.DOTALL)


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a call."""

    text: str  # as the call has it
    kind: str  # count, rows, sum, mean, quantile
    column: str | None = None
    share: float = 0.0  # of a quantile
    lower: float = 0.0
    upper: float = 0.0

    @property
    def name(self) -> str:
        """The column of its values in the answer."""
        if self.kind == "quantile":
            return f"quantile_{self.column}_{100 * self.share:g}".replace(".", "_")
        return self.kind if self.column is None else f"{self.kind}_{self.column}"

    @property
    def error_name(self) -> str:
        """The column of its standard errors: those of a quantile are in people, not in units of the values."""
        return f"{self.name}_rank_error" if self.kind == "quantile" else f"{self.name}_error"

    @property
    def unit(self) -> float:
        """The value of one unit of a sum: a power of two."""
        return math.ldexp(1.0, math.frexp(max(abs(self.lower), abs(self.upper)))[1]) / UNITS

    @property
    def span(self) -> tuple[int, int]:
        """The bounds of a person's contribution in units, rounded inwards; means and quantiles count from `lower`."""
        if self.kind != "sum":
            return 0, UNITS
        unit = Fraction(self.unit)
        return math.ceil(Fraction(self.lower) / unit), math.floor(Fraction(self.upper) / unit)

    @property
    def steps(self) -> int:
        """The steps between the bounds that a quantile may take; whole numbers where that is possible."""
        width = self.upper - self.lower
        is_whole = float(self.lower).is_integer() and float(width).is_integer()
        return int(width) if is_whole and MOST_STEPS / 10 <= width <= MOST_STEPS else MOST_STEPS


def name_part(index: int, name: str) -> str:
    """Name the column in which a part of an aggregate travels."""
    return f"_duckanon_{name}_{index}"


def parse_aggregates(
    texts: Sequence[str], bounds: Mapping[str, Sequence[float]] | None, max_rows: int | None
) -> list[Aggregate]:
    """Return the aggregates of a call, or raise a ValueError with the sentence that refuses one of them."""
    pairs = {name.lower(): pair for name, pair in (bounds or {}).items()}
    aggregates, idle = [], dict.fromkeys(pairs)
    for text in texts:
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(
                "aggregates must be like 'count', 'rows', 'sum(cost)', 'mean(age)' and 'quantile(age, 0.5)'; "
                f"got '{text}'."
            )
        _, _, kind, column, ranked, share = match.groups()
        if match[1] or match[2]:
            aggregates.append(Aggregate(text, match[1] or match[2], upper=1.0 if match[1] else float(max_rows or 0)))
            continue
        column = (column or ranked).strip()
        key = next((key for key in (text.strip().lower(), column.lower()) if key in pairs), None)
        if key is None:
            raise ValueError(f"bounds must have the smallest and the largest value of {text}; got none.")
        idle.pop(key, None)
        lower, upper = _read_bounds(key, pairs[key])
        aggregates.append(Aggregate(text, kind or "quantile", column, _read_share(text, share), lower, upper))
    _refuse_idle(aggregates, list(idle), max_rows)
    return aggregates


def _read_bounds(name: str, pair: Sequence[Any]) -> tuple[float, float]:
    if len(pair) != 2 or not float(pair[0]) < float(pair[1]) or not math.isfinite(float(pair[1]) - float(pair[0])):
        raise ValueError(f"bounds must be a smaller and a larger number such as [0, 120]; got {list(pair)} of {name}.")
    if max(abs(float(end)) for end in pair) > 1e200 or float(pair[1]) - float(pair[0]) < 1e-200:
        raise ValueError(f"bounds must be from -1e200 to 1e200 and 1e-200 apart; got {list(pair)} of {name}.")
    return float(pair[0]), float(pair[1])


def _read_share(text: str, share: str | None) -> float:
    if share is None:
        return 0.0
    try:
        number = float(share)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise ValueError(f"a quantile must be from 0 to 1; got '{text}'.")
    return number


def _refuse_idle(aggregates: Sequence[Aggregate], idle_bounds: Sequence[str], max_rows: int | None) -> None:
    """Refuse what is asked for twice, and options that nothing uses."""
    if not aggregates:
        raise ValueError("aggregates must have at least one aggregate such as 'count'; got [].")
    names = [aggregate.name.lower() for aggregate in aggregates]
    for index, name in enumerate(names):
        if name in names[:index]:
            text = aggregates[index].text
            raise ValueError(f"aggregates must be different, since each costs a part of epsilon; got '{text}' twice.")
    if idle_bounds:
        raise ValueError(f"bounds must be of columns in aggregates; got {idle_bounds[0]}.")
    if (max_rows is None) == ("rows" in names):
        needs = "max_rows must be the most rows of a person that count in a group where aggregates have 'rows'"
        raise ValueError(f"{needs}, and NULL where not; got {'NULL' if max_rows is None else max_rows}.")
