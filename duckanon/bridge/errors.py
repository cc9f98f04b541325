"""Errors: lets the sentences of duckanon reach the user without what DuckDB wraps them in."""

from __future__ import annotations

import json
import re

import duckdb

from duckanon.bridge.macros import macro_files

_FROM_PYTHON = r"Python exception occurred while executing the UDF: "
"""What DuckDB writes before the message of any exception in a Python function."""

_WRAPPED = (
    re.compile(rf"Invalid Input Error: (?:{_FROM_PYTHON}\w+: )?(?P<sentence>anon[.:].*)", re.DOTALL),
    re.compile(r"Conversion Error: Could not convert string '(?P<sentence>anon[.:].*)' to DOUBLE.*", re.DOTALL),
)
"""How a sentence comes out of Python, of SQL's error(), and of ``anon._refuse``."""

_WITHIN_ITSELF = re.compile(
    r'Binder Error: infinite recursion detected: attempting to recursively expand table macro "(?P<name>\w+)".*',
    re.DOTALL,
)
"""How DuckDB 2.0 refuses a macro whose table is a view that calls the same macro."""

_APPENDED = re.compile(r"\n\s*(?:LINE \d+:|At:).*", re.DOTALL)
"""What DuckDB adds after a message: the line of the query, or the lines of our code."""


def plain(message: str) -> str:
    """Return the sentence of duckanon that a message of DuckDB's carries, or the message as it is.

    Examples
    --------
    >>> plain("Invalid Input Error: Python exception occurred while executing the UDF: ValueError: anon.x: no.")
    'anon.x: no.'
    >>> plain("Catalog Error: Table with name anon does not exist!")
    'Catalog Error: Table with name anon does not exist!'
    """
    if (view := _WITHIN_ITSELF.fullmatch(message)) and view["name"] in {file.name for file in macro_files()}:
        return (
            f"anon.{view['name']}: a table that it reads is a view over anon.{view['name']} itself, which DuckDB "
            f"cannot bind; make a table of the view first."
        )
    wrapped = next(filter(None, (pattern.fullmatch(message) for pattern in _WRAPPED)), None)
    return _APPENDED.sub("", wrapped["sentence"]).strip() if wrapped else message


def without_python(message: str) -> str:
    """Leave out that an exception came from a Python function: for those who never see any Python."""
    return re.sub(_FROM_PYTHON, "", without_json(plain(message)))


def without_json(message: str) -> str:
    r"""Return the sentence of an error that DuckDB wrote as JSON into another, as it does where it writes files.

    Examples
    --------
    >>> without_json('IO Error: Async write failed: {"exception_type":"IO","exception_message":"Could not \"write\""}')
    'IO Error: Could not "write"'
    """
    found = re.search(r'\{"exception_type":.*', message, re.DOTALL)
    if found is None:
        return message
    try:
        inner = json.loads(found[0], strict=False)
    except ValueError:  # cut off, or two of them
        text = re.search(r'"exception_message":"((?:[^"\\]|\\.)*)', found[0])
        inner = {"exception_message": text[1].replace('\\"', '"') if text else ""}
    kind = re.match(r"(?:\w+ )+Error: ", message)
    return (kind[0] if kind else "") + without_json(str(inner.get("exception_message", "")))


def speak_plainly() -> None:
    """Let DuckDB's exceptions show the sentences of duckanon as they were written; doing it again is harmless.

    Notes
    -----
    The exceptions are made by DuckDB, also on connections that are not ours, and keep their types. Connections cannot
    be wrapped instead: DuckDB looks for data frames among the variables of whoever calls it, which would be the
    wrapper. So the types in which our sentences arrive are told how to show them; other messages stay as they are.
    """
    for exception in (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.BinderException):
        exception.__str__ = _shown  # type: ignore[method-assign]


def _shown(error: BaseException) -> str:
    return plain(BaseException.__str__(error))
