"""Options as callers pass them to algorithms: looked at by their declaration, or by rules beside the function.

    @checked_by(PICA)
    def pica(source, *, cluster_size, basis, seed): ...

    @checked(k=Whole(2), kernel=OneOf("polynomial", "gaussian"))
    def measure(rows, *, k, kernel): ...

A value that does not hold raises ``k must be a whole number of at least 2; got 1.``; the SQL functions put their name
before the sentence.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from duckanon._core.common.declare import Function
from duckanon._core.common.rules import Rule, Whole, fault_of

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def refuse_unless(rule: Rule, parameter: str, value: Any) -> None:
    """Raise a ValueError where a value is not what its rule allows."""
    if sentence := fault_of(rule, parameter, value):
        raise ValueError(sentence)


def checked(**rules: Rule) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Declare what a function's arguments may be; each that is given is looked at before the function runs.

    Examples:
        >>> from duckanon._core.common.rules import Whole
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


def checked_by(declared: Function) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Look at the arguments of an algorithm by its declaration, where Python calls it without SQL before it."""

    def declare(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        own = inspect.signature(function).parameters
        options = [one for one in declared.flat if one.name in own and one.kind not in ("table", "tables")]
        return checked(**{one.name: one.rule for one in options})(function)

    return declare


def generator(seed: object) -> np.random.Generator:
    """Make the random generator of one call, never shared between threads; None draws from the system's entropy."""
    refuse_unless(Whole(0, null=True), "seed", seed)
    return np.random.default_rng(seed)  # type: ignore[arg-type]


def spelled(parameter: str, names: Any, columns: Iterable[str]) -> list[str] | None:
    """Spell names of columns as the table does, since their case does not matter in SQL; keep unknown ones."""
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{parameter} must be NULL or a list of column names such as ['age', 'zip']; got {names!r}.")
    known: dict[str, str] = {name.lower(): name for name in columns}
    return [known.get(str(name).lower(), str(name)) for name in names]
