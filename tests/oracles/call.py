"""What an oracle looks at: a call with its options, the table that it was made on, and the rows that came."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ROW = "rid"
"""The column that numbers the rows of every table of the catalogue."""


@dataclass(frozen=True)
class Rows:
    """A table: its columns, their types in DuckDB's words, and its rows."""

    columns: Sequence[str]
    types: Mapping[str, str]
    rows: Sequence[tuple[Any, ...]]

    def index(self, column: str) -> int:
        """Return the place of a column, whatever the case of its name's ASCII letters."""
        if column in self.columns:
            return list(self.columns).index(column)
        return [one.lower() for one in self.columns].index(column.lower())

    def has(self, column: str) -> bool:
        return column in self.columns

    def column(self, column: str) -> list[Any]:
        place = self.index(column)
        return [row[place] for row in self.rows]

    def keys(self, columns: Iterable[str]) -> list[tuple[Hashable, ...]]:
        """Return what rows are grouped by: equal where DuckDB groups values together."""
        places = [self.index(column) for column in columns]
        return [tuple(key(row[place]) for place in places) for row in self.rows]


@dataclass(frozen=True)
class Call:
    """A call of a function, and its answer."""

    function: str
    options: Mapping[str, Any]  # every parameter, defaults too
    table: Rows
    answer: Rows
    others: Mapping[str, Rows] = field(default_factory=dict)  # other tables that options name

    def names(self, *parameters: str) -> list[str]:
        """Return the columns that parameters name; ``column box`` names one by itself."""
        found: list[str] = []
        for parameter in parameters:
            made = parameter.partition("column ")[2]
            value = made or self.options.get(parameter)
            found += [value] if isinstance(value, str) else list(value or [])
        return found

    @property
    def k(self) -> int:
        return int(self.options["k"])

    @property
    def people(self) -> list[Hashable]:
        """The person of each row of the table, None for nobody's; rows are people where `person` is not given."""
        person = self.options.get("person")
        return [key(value) for value in self.table.column(person)] if person else list(range(len(self.table.rows)))

    @property
    def source(self) -> list[int] | None:
        """The row of the table that each released row was; None where the release does not say."""
        if not self.answer.has(ROW) or not self.table.has(ROW):
            return None
        place = {number: row for row, number in enumerate(self.table.column(ROW))}
        return [place[number] for number in self.answer.column(ROW)]


def key(value: Any) -> Hashable:
    """Return what tells a value from others, as GROUP BY does: NaN equals itself, and -0.0 is 0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list | dict):
        return repr(value)
    return value


def different_people(rows: Iterable[int], people: Sequence[Hashable]) -> int:
    """Count the different people of some rows; rows of nobody count for nothing."""
    return len({people[row] for row in rows} - {None})


def groups(keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """Return the rows of each class."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for row, one in enumerate(keys):
        found[one].append(row)
    return found
