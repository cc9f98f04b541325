"""Contracts: what a public function promises of its rows, as data.

A function that calls Python has its promises in its declaration, ``promises=(AtLeastKPeople("cols", "by"), ...)``; one
that is pure SQL has them in the header of its macro, ``-- promises: OneRow(), EqualsDefinition()``. The tests run every
function over a catalogue of awkward tables and hold its rows against an oracle of each promise (`tests/oracles`), made
from the sentences here.

In these sentences, people are what the option ``person`` names: without it every row is another person, and a row whose
person is NULL is nobody's and counts for nothing. ``parameters`` are those that name columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, init=False)
class _OfParameters:
    """A promise about the columns that some parameters name."""

    parameters: tuple[str, ...]

    def __init__(self, *parameters: str) -> None:
        object.__setattr__(self, "parameters", parameters)


# ---- rows and columns


@dataclass(frozen=True)
class OneRow:
    """There is one row, whatever the table holds."""


@dataclass(frozen=True)
class RowPer:
    """There is a row for each row of the table, for each of its columns, or for each column that an option names."""

    unit: Literal["row", "column", "column of secret_cols"]


@dataclass(frozen=True)
class KeepsRows:
    """There are as many rows as in the table, but for the share that the option ``fraction`` allows to suppress."""

    fraction: str = ""


@dataclass(frozen=True)
class DrawsRows:
    """There are as many rows as the option ``rows`` says; where it is NULL, as many as in the table."""


class OnlyColumns(_OfParameters):
    """No column leaves that the parameters do not name; ``column box`` is one that the function makes."""


class KeepsTypes(_OfParameters):
    """The columns that the parameters name have the types of the table; an ENUM may become a VARCHAR."""


class KeepsValues(_OfParameters):
    """Each released row has, in these columns, the values of the row that it was (where ``rid`` is kept)."""


class KeepsValuesOrNull(_OfParameters):
    """Each released row has, in these columns, the values of the row that it was, or NULL."""


class SameDistribution(_OfParameters):
    """Each of these columns has the same values as in the table, each as often."""


# ---- people


class AtLeastKPeople(_OfParameters):
    """Rows that agree in these columns, but for the ``key`` of a row, are of at least ``k`` different people."""


@dataclass(frozen=True)
class KPeopleAgree:
    """At least ``k`` different people of the table agree with every released row, where NULL agrees with anything."""


@dataclass(frozen=True)
class SharedValues:
    """Values are shared: a released text by ``k`` people, a number or date by min(k, 3), if it is one of the table.

    A text that nobody has is only ``other``, or ``{other}`` where that is a value. Where all numbers of a column are
    FLOATs that were stored as DOUBLEs, the released ones are.
    """


@dataclass(frozen=True)
class TrueLabels:
    """A label is true of the value that it stands for."""


@dataclass(frozen=True)
class TrueIntervals:
    """An interval contains its value, but for the few extremes that are coded."""


@dataclass(frozen=True)
class CellsOfKPeople:
    """A published cell has no people or at least ``k``, counted where the measure is not NULL."""


@dataclass(frozen=True)
class TrueCells:
    """People and values of the cells that are shown are those of the table, margins included."""


@dataclass(frozen=True)
class BucketsOfKRows:
    """Every bucket has at least ``k`` rows, and all buckets together have every row with a value."""


# ---- numbers


@dataclass(frozen=True)
class EqualsDefinition:
    """The numbers are those of the definition in the reference, computed by another program."""


@dataclass(frozen=True)
class EstimatesInside:
    """An estimate lies between its guaranteed ends."""


@dataclass(frozen=True, init=False)
class Between:
    """Numbers of these columns lie between two ends; none is NaN."""

    low: float
    high: float
    columns: tuple[str, ...]

    def __init__(self, low: float, high: float, *columns: str) -> None:
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "columns", columns)


@dataclass(frozen=True)
class FunctionOfValue:
    """Equal values have equal results, 0.0 and -0.0 too; where ``one_to_one``, different values have different ones."""

    one_to_one: bool = False


# ---- the same table said otherwise

Change: TypeAlias = Literal["order", "storage", "columns", "others", "types"]
"""What can be done to a table without a change of what it says.

``order``: its rows come in another order. ``storage``: it is a view, a CTE, two files, an Arrow table, or its
whole numbers are BIGINT or DECIMAL. ``columns``: its
columns come in another order, or under other names. ``others``: columns are added that the call does not name, some
called as parameters and results are. ``types``: whole numbers are BIGINT, DECIMAL or DOUBLE.
"""

TABLE: tuple[Change, ...] = ("order", "storage", "columns", "others")
"""A table is a set of rows under names, wherever it is."""


@dataclass(frozen=True, init=False)
class InvariantUnder:
    """The same rows come, in any order, after these changes of the table."""

    changes: tuple[Change, ...]

    def __init__(self, *changes: Change) -> None:
        object.__setattr__(self, "changes", changes)


@dataclass(frozen=True, init=False)
class CountsPeople:
    """With ``person``, these columns are the same where every row is there twice, or rows of nobody are added."""

    columns: tuple[str, ...]

    def __init__(self, *columns: str) -> None:
        object.__setattr__(self, "columns", columns)


Promise: TypeAlias = (
    OneRow
    | RowPer
    | KeepsRows
    | DrawsRows
    | OnlyColumns
    | KeepsTypes
    | KeepsValues
    | KeepsValuesOrNull
    | SameDistribution
    | AtLeastKPeople
    | KPeopleAgree
    | SharedValues
    | TrueLabels
    | TrueIntervals
    | CellsOfKPeople
    | TrueCells
    | BucketsOfKRows
    | EqualsDefinition
    | EstimatesInside
    | Between
    | FunctionOfValue
    | InvariantUnder
    | CountsPeople
)
"""What a function can promise."""
