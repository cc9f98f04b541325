"""Names that callers write, of columns and of options: an unknown one is refused, and the nearest one is offered."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_NEAR = 0.65
"""The share of letters in common from which on one name is meant by another: "zpi" and "zip" have two thirds."""


def find_nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelled one is probably meant to be; None where none is near.

    Examples:
        >>> [find_nearest_name(name, ["age", "zip", "person"]) for name in ("zpi", "persn", "height")]
        ['zip', 'person', None]
    """
    spelled = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=_NEAR)
    return spelled[close[0]] if close else None


def suggest_name(name: str, names: Iterable[str], quote: str = '"') -> str:
    """Return what a refusal of a name ends with: the nearest one that there is, or a full stop.

    Examples:
        >>> print("there is no zpi" + suggest_name("zpi", ["age", "zip"]))
        there is no zpi; did you mean "zip"?
    """
    near = find_nearest_name(name, names)
    return f"; did you mean {quote}{near}{quote}?" if near else "."


def match_columns(parameter: str, names: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return names of columns as the table spells them, whatever their case, or refuse those that it does not have.

    Examples:
        >>> match_columns("cols", ["AGE"], ["age", "zip"])
        ['age']
        >>> match_columns("cols", ["zpi"], ["age", "zip"])
        Traceback (most recent call last):
        ValueError: column "zpi" in cols does not exist; did you mean "zip"?
    """
    known = list(columns)
    spelled = {name.lower(): name for name in known}
    wanted = [name if name in known else spelled.get(name.lower()) for name in names]  # Ä and ä are two columns
    if None in wanted:
        raise ValueError(unknown_column(list(names)[wanted.index(None)], known, parameter))
    return [name for name in wanted if name is not None]


def unknown_column(name: str, columns: Iterable[str], parameter: str | None = None) -> str:
    """Return the sentence that refuses a column which the table does not have."""
    advice = _suggest_or_list(name, list(columns), "columns")
    return f'column "{name}"{f" in {parameter}" if parameter else ""} does not exist; {advice}'


def unknown_option(caller: str, name: str, options: Iterable[str]) -> TypeError:
    """Return the error that refuses an option which a function does not have."""
    return TypeError(f'{caller}: there is no option "{name}"; {_suggest_or_list(name, list(options), "options")}')


def _suggest_or_list(name: str, names: list[str], plural: str) -> str:
    near = find_nearest_name(name, names)
    return f'did you mean "{near}"?' if near else f"the {plural} are {', '.join(names)}."


def refuse_unknown_options(module: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let a function of a public module refuse options that it does not have with a TypeError that names the nearest.

    Examples:
        >>> @refuse_unknown_options("duckanon.large")
        ... def boxes(source, person=None):
        ...     return source
        >>> boxes(1, persn="id")
        Traceback (most recent call last):
        TypeError: duckanon.large.boxes: there is no option "persn"; did you mean "person"?
    """

    def declare(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        known = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
            for name in options:
                if name not in known:
                    raise unknown_option(f"{module}.{function.__name__}", name, known)
            return function(*arguments, **options)

        return call

    return declare
