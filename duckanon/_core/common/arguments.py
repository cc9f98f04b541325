"""Options as callers pass them: what each may be is declared beside the function, and refused in one shape.

    @checked(k=Whole(2), tolerance=Number(0, 1), kernel=OneOf("polynomial", "gaussian"), sample=Whole(1, null=True))
    def measure(rows, *, k, tolerance, kernel, sample=None): ...

A value that does not hold raises ``k must be a whole number of at least 2; got 1.``; the SQL functions put their name
before the sentence.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Rule(Protocol):
    """What an option may be."""

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""

    def __str__(self) -> str:
        """Say what is allowed, so that it can follow "must be"."""


@dataclass(frozen=True)
class Whole:
    """A whole number from ``least`` to ``most``; None too where ``null`` says so."""

    least: int
    most: int | None = None
    null: bool = False

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        if value is None:
            return self.null
        is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return is_whole and self.least <= value and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        span = f"of at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
        return f"{'NULL or ' * self.null}a whole number {span}"


@dataclass(frozen=True)
class Number:
    """A finite number from ``least`` to ``most``, or above ``above``; None too where ``null`` says so."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    null: bool = False

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        if value is None:
            return self.null
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(float(value)):
            return False
        return not (
            (self.least is not None and float(value) < self.least)
            or (self.most is not None and float(value) > self.most)
            or (self.above is not None and float(value) <= self.above)
        )

    def __str__(self) -> str:
        if self.above is not None:
            span = f" above {self.above:g}" + ("" if self.most is None else f", at most {self.most:g}")
        elif self.most is not None:
            span = f" from {self.least:g} to {self.most:g}"
        else:
            span = "" if self.least is None else f" of at least {self.least:g}"
        return f"{'NULL or ' * self.null}a finite number{span}"


class OneOf:
    """One of several texts."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        return isinstance(value, str) and value in self.choices

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.choices))}"


class Flag:
    """True or false."""

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class ColumnNames:
    """A list of at least one column's name; None too where ``null`` says so."""

    null: bool = False

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        if value is None:
            return self.null
        return isinstance(value, list | tuple) and bool(value) and all(isinstance(name, str) for name in value)

    def __str__(self) -> str:
        return f"{'NULL or ' * self.null}a list of column names such as ['age', 'zip']"


def refuse_unless(rule: Rule, parameter: str, value: Any) -> None:
    """Raise a ValueError where a value is not what its rule allows."""
    if not rule.holds(value):
        shown = "NULL" if value is None else repr(value)
        raise ValueError(f"{parameter} must be {rule}; got {shown}.")


def checked(**rules: Rule) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Declare what a function's arguments may be; each that is given is looked at before the function runs.

    Parameters
    ----------
    rules
        By the argument's name: `Whole`, `Number`, `OneOf`, `Flag` or `ColumnNames`.

    Examples
    --------
    >>> @checked(k=Whole(2))
    ... def classes(rows, k):
    ...     return rows // k
    >>> classes(10, k=1)
    Traceback (most recent call last):
    ValueError: k must be a whole number of at least 2; got 1.
    """

    def declare(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        signature = inspect.signature(function)
        if unknown := rules.keys() - signature.parameters.keys():
            raise TypeError(f"{function.__name__} has no argument {unknown.pop()}")

        @functools.wraps(function)
        def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
            given = signature.bind(*arguments, **options).arguments
            for name, rule in rules.items():
                if name in given:
                    refuse_unless(rule, name, given[name])
            return function(*arguments, **options)

        return call

    return declare


_SEED = Whole(0, null=True)


def generator(seed: object) -> np.random.Generator:
    """Make the random generator of one call, never shared between threads.

    Parameters
    ----------
    seed
        A whole number of at least 0 makes what is drawn repeatable; None draws from the operating system's entropy.

    Raises
    ------
    ValueError
        For any other seed.
    """
    refuse_unless(_SEED, "seed", seed)
    return np.random.default_rng(seed)  # type: ignore[arg-type]


def spelled(parameter: str, names: Any, columns: Iterable[str]) -> list[str] | None:
    """Spell names of columns as the table does, since their case does not matter in SQL; unknown ones stay as they are.

    Parameters
    ----------
    parameter
        The option that holds the names, for the error.
    names
        A list of names, or None, which is handed on.
    columns
        The table's own names.
    """
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{parameter} must be NULL or a list of column names such as ['age', 'zip']; got {names!r}.")
    known: dict[str, str] = {name.lower(): name for name in columns}
    return [known.get(str(name).lower(), str(name)) for name in names]
