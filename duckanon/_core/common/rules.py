"""Rules: what an option may be, as declarations say it, and the sentence that refuses anything else.

A value that a rule does not allow is refused in one shape: ``k must be a whole number of at least 2; got 1.``
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


class Rule(Protocol):
    """The allowed values of an option."""

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""

    def __str__(self) -> str:
        """Say what is allowed, so that it can follow "must be"."""


class _OrNull:
    """A rule that allows None too where ``null`` says so."""

    null: bool = False

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        return self.null if value is None else self._allows(value)

    def __str__(self) -> str:
        return f"{'NULL or ' * self.null}{self._words()}"

    def _allows(self, value: Any) -> bool:
        raise NotImplementedError

    def _words(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Whole(_OrNull):
    """A whole number from ``least`` to ``most``."""

    least: int
    most: int | None = None
    null: bool = False

    def _allows(self, value: Any) -> bool:
        is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return is_whole and self.least <= value and (self.most is None or value <= self.most)

    def _words(self) -> str:
        return "a whole number " + (
            f"of at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
        )


@dataclass(frozen=True)
class Number(_OrNull):
    """A finite number from ``least`` to ``most``, between ``above`` and ``below``."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    null: bool = False
    below: float | None = None

    def _allows(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(float(value)):
            return False
        return not (
            (self.least is not None and float(value) < self.least)
            or (self.most is not None and float(value) > self.most)
            or (self.above is not None and float(value) <= self.above)
            or (self.below is not None and float(value) >= self.below)
        )

    def _words(self) -> str:
        if self.above is not None:
            span = f" above {self.above:g}" + ("" if self.most is None else f", at most {self.most:g}")
            span += "" if self.below is None else f" and below {self.below:g}"
        elif self.most is not None:
            span = f" from {self.least:g} to {self.most:g}"
        else:
            span = "" if self.least is None else f" of at least {self.least:g}"
        return f"a finite number{span}"


class OneOf(_OrNull):
    """One of several texts."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def _allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices

    def _words(self) -> str:
        return f"{'one of ' * (len(self.choices) > 1)}{', '.join(map(repr, self.choices))}"


@dataclass(frozen=True)
class Text(_OrNull):
    """A text that is not empty."""

    example: str
    null: bool = False

    def _allows(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value.strip())

    def _words(self) -> str:
        return f"a text such as {self.example}"


class Flag(_OrNull):
    """True or false."""

    def _allows(self, value: Any) -> bool:
        return isinstance(value, bool) or type(value).__name__ == "bool_"  # numpy's

    def _words(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class ColumnNames(_OrNull):
    """A list of columns' names, each once; no name where ``empty`` says so."""

    null: bool = False
    empty: bool = False
    kind: ClassVar[str] = "columns"

    def _allows(self, value: Any) -> bool:
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            return False
        return (bool(value) or self.empty) and len({name.lower() for name in value}) == len(value)

    def _words(self) -> str:
        return "a list of column names such as ['age', 'zip'], each once"


@dataclass(frozen=True)
class ColumnName(_OrNull):
    """The name of one column."""

    null: bool = False
    kind: ClassVar[str] = "column"

    def _allows(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value.strip())

    def _words(self) -> str:
        return "the name of one column, in quotes"


@dataclass(frozen=True)
class TableName(_OrNull):
    """The name of a table, which is not called as our own steps are."""

    null: bool = False
    kind: ClassVar[str] = "table"

    def _allows(self, value: Any) -> bool:
        last = value.rpartition(".")[2].strip() if isinstance(value, str) else ""
        return bool(last) and not last.lower().startswith("_duckanon_")

    def _words(self) -> str:
        return "the name of a table, a view or a CTE, in quotes"


@dataclass(frozen=True)
class Tables(_OrNull):
    """Several tables: a list of names, or a map to them where ``named`` says so."""

    example: str
    named: bool = False
    null: bool = False
    kind: ClassVar[str] = "tables"

    def _allows(self, value: Any) -> bool:
        if self.named:
            value = list(value.values()) if _is_map(value) else None
        return isinstance(value, list | tuple) and bool(value) and all(map(TableName().holds, value))

    def _words(self) -> str:
        return f"{'a map from names to tables' if self.named else 'a list of tables'} such as {self.example}"


@dataclass(frozen=True)
class MapOf(_OrNull):
    """A map from columns' names to what ``values`` allows."""

    example: str
    values: Rule | None = None
    null: bool = True

    def _allows(self, value: Any) -> bool:
        return _is_map(value) and (self.values is None or all(map(self.values.holds, value.values())))

    def _words(self) -> str:
        return f"a map such as {self.example}"


@dataclass(frozen=True)
class ListOf(_OrNull):
    """A list whose members a rule allows."""

    members: Rule
    example: str
    null: bool = False

    def _allows(self, value: Any) -> bool:
        return isinstance(value, list | tuple) and all(map(self.members.holds, value))

    def _words(self) -> str:
        return f"a list such as {self.example}"


@dataclass(frozen=True)
class Either:
    """Values that one of several rules allows."""

    rules: tuple[Rule, ...]

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        return any(rule.holds(value) for rule in self.rules)

    def __str__(self) -> str:
        return " or ".join(map(str, self.rules))


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


@dataclass(frozen=True)
class Words:
    """The values of an option as an interface writes them: SQL says NULL where Python says None."""

    null: str
    true: str
    false: str

    def show(self, value: Any) -> str:
        """Write a value of an option."""
        if value is None or isinstance(value, bool):
            return {None: self.null, True: self.true, False: self.false}[value]
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self.show(key)}: {self.show(member)}" for key, member in value.items()) + "}"
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.show, value))}]"
        return f"'{value}'" if isinstance(value, str) else str(value)


IN_SQL = Words("NULL", "true", "false")
IN_PYTHON = Words("None", "True", "False")


def fault_of(rule: Rule, parameter: str, value: Any, words: Words = IN_SQL) -> str | None:
    """Return the sentence that refuses a value which is not what its rule allows; None where it is."""
    if rule.holds(value):
        return None
    return f"{parameter} must be {str(rule).replace('NULL or ', words.null + ' or ')}; got {words.show(value)}."
