"""Options as callers pass them to algorithms: looked at by their declaration, or by rules beside the function.

    @checked_by(PICA)
    def pica(source, *, cluster_size, basis, seed): ...

    @checked(k=Whole(2), kernel=OneOf("polynomial", "gaussian"))
    def measure(rows, *, k, kernel): ...

A value that does not hold raises ``k must be a whole number of at least 2; got 1.``; the SQL functions put their name
before the sentence. Sentences of our own errors are shown as they are; those of libraries, which may quote a person's
value, are replaced by the line that failed.
"""

from __future__ import annotations

import functools
import inspect
import opcode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from duckanon._core.common.declare import Function
from duckanon._core.common.rules import Rule, Whole, fault_of

Parameters = ParamSpec("Parameters")
Outcome = TypeVar("Outcome")


def refuse_unless(rule: Rule, parameter: str, value: Any) -> None:
    """Raise a ValueError where a value is not what its rule allows."""
    if sentence := fault_of(rule, parameter, value):
        raise ValueError(sentence)


def check_arguments(**rules: Rule) -> Callable[[Callable[Parameters, Outcome]], Callable[Parameters, Outcome]]:
    """Declare what a function's arguments may be; each that is given is looked at before the function runs.

    Examples:
        >>> from duckanon._core.common.rules import Whole
        >>> @check_arguments(k=Whole(2))
        ... def classes(rows, k):
        ...     return rows // k
        >>> classes(10, k=1)
        Traceback (most recent call last):
        ValueError: k must be a whole number of at least 2; got 1.
    """

    def declare(function: Callable[Parameters, Outcome]) -> Callable[Parameters, Outcome]:
        signature = inspect.signature(function)
        if unknown := rules.keys() - signature.parameters.keys():
            raise TypeError(f"{function.__name__} has no argument {unknown.pop()}")

        @functools.wraps(function)
        def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Outcome:
            values = signature.bind(*arguments, **options).arguments
            for name, rule in rules.items():
                if name in values:
                    refuse_unless(rule, name, values[name])
            return function(*arguments, **options)

        return call

    return declare


def check_by(declared: Function) -> Callable[[Callable[Parameters, Outcome]], Callable[Parameters, Outcome]]:
    """Look at the arguments of an algorithm by its declaration, where Python calls it without SQL before it."""

    def declare(function: Callable[Parameters, Outcome]) -> Callable[Parameters, Outcome]:
        names = inspect.signature(function).parameters
        known = (parameter for parameter in declared.flat if parameter.name in names)
        rules = {parameter.name: parameter.rule for parameter in known if parameter.kind not in ("table", "tables")}
        return check_arguments(**rules)(function)

    return declare


def make_generator(seed: object) -> np.random.Generator:
    """Make the random generator of one call, never shared between threads; None draws from the system's entropy."""
    refuse_unless(Whole(0, null=True), "seed", seed)
    return np.random.default_rng(seed)  # type: ignore[arg-type]


def spell_columns(parameter: str, names: Any, columns: Iterable[str]) -> list[str] | None:
    """Spell names of columns as the table does, since their case does not matter in SQL; keep unknown ones."""
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{parameter} must be NULL or a list of column names such as ['age', 'zip']; got {names!r}.")
    known: dict[str, str] = {name.lower(): name for name in columns}
    return [known.get(str(name).lower(), str(name)) for name in names]


UNFIT_TYPE = (
    "a column holds values of a type that it cannot work on, or out of its range; leave the column out, or cast it to "
    "VARCHAR or a number first."
)
"""The sentence for what Arrow has no way to compute."""

UNFIT_VALUES = (ValueError, TypeError, ArithmeticError, LookupError, pa.ArrowException)
"""What libraries raise about values; ours is a ValueError."""

_PACKAGE = str(Path(__file__).parents[2])
_RAISE = opcode.opmap["RAISE_VARARGS"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def sentence_of(error: Exception) -> str:
    """Return the sentence that our own code has raised; of what a library raises, which may quote a value, the place.

    The instruction that failed tells them apart: libraries that are not written in Python leave no frame of theirs.
    """
    if isinstance(error, pa.ArrowException):  # some are ValueErrors
        return UNFIT_TYPE
    trace = error.__traceback__
    innermost = ours = trace
    while trace is not None:
        innermost = trace
        ours = trace if trace.tb_frame.f_code.co_filename.startswith(_PACKAGE) else ours
        trace = trace.tb_next
    assert ours is not None
    code = ours.tb_frame.f_code
    is_ours = ours is innermost and code.co_code[ours.tb_lasti] == _RAISE
    if is_ours and isinstance(error, ValueError | AssertionError):
        return str(error)
    return f"it failed unexpectedly ({type(error).__name__} in {Path(code.co_filename).name}, line {ours.tb_lineno})."


def name_refusals(caller: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Put the caller's name before the sentences of a function's errors, and let numpy warn nobody of infinities."""

    def declare(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
            try:
                with np.errstate(all="ignore"):
                    return function(*arguments, **options)
            except UNFIT_VALUES as error:
                raise ValueError(f"{caller}: {sentence_of(error)}") from None

        return call

    return declare
