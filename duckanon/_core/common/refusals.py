"""Sentences of errors: our own as they are, those of libraries, which may quote a person's value, by their place."""

from __future__ import annotations

import functools
import opcode
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pyarrow as pa

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
    innermost = own = trace
    while trace is not None:
        innermost = trace
        own = trace if trace.tb_frame.f_code.co_filename.startswith(_PACKAGE) else own
        trace = trace.tb_next
    assert own is not None
    code = own.tb_frame.f_code
    is_ours = own is innermost and code.co_code[own.tb_lasti] == _RAISE
    if is_ours and isinstance(error, ValueError | AssertionError):
        return str(error)
    return f"it failed unexpectedly ({type(error).__name__} in {Path(code.co_filename).name}, line {own.tb_lineno})."


def naming_refusals(caller: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Put the caller's name before the sentences of a Python function's errors about values."""

    def named(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
            try:
                return function(*arguments, **options)
            except UNFIT_VALUES as error:
                raise ValueError(f"{caller}: {sentence_of(error)}") from None

        return call

    return named
