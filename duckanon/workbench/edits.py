"""The changes that the workbench makes to a policy: to the part that holds its table, or to the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import tomlkit

Edit = Callable[[Any, Any], None]
"""Takes the document and the part of it that holds the table."""

TERMS = ("recipient", "purpose", "legal_basis", "valid_until", "reviewers")


def role(column: str, value: str) -> Edit:
    """Give a column a role; what else the policy says of it stays."""

    def change(document: Any, part: Any) -> None:
        columns = _section(document, part, "columns")
        if isinstance(columns.get(column), Mapping):
            columns[column]["role"] = value
        else:
            columns[column] = value

    return change


def method(name: str) -> Edit:
    """Choose the method; options of another method are taken away, narrowing columns stay."""

    def change(document: Any, part: Any) -> None:
        chosen = _section(document, part, "method")
        if chosen["name"] == name:
            return
        for option in [option for option in chosen if option not in ("name", "narrowing")]:
            del chosen[option]
        chosen["name"] = name

    return change


def promise(name: str, value: float | int | bool | None) -> Edit:
    """Promise a number; None takes the promise away."""

    def change(document: Any, part: Any) -> None:
        promises = _section(document, part, "promises")
        if value is None:
            promises.pop(name, None)
        else:
            promises[name] = value

    return change


def hierarchy(column: str, path: str | None) -> Edit:
    """Name the file of a column's hierarchy; None takes it away."""

    def change(document: Any, part: Any) -> None:
        hierarchies = _section(document, part, "hierarchies")
        if path is None:
            hierarchies.pop(column, None)
        else:
            hierarchies[column] = path

    return change


def terms(given: Mapping[str, str]) -> Edit:
    """Say who gets the release and why; an empty text takes an entry away."""

    def change(document: Any, _: Any) -> None:
        said = _section(document, document, "release")
        for name in TERMS:
            text = given.get(name, "").strip()
            if not text:
                said.pop(name, None)
            elif name == "valid_until":
                said[name] = date.fromisoformat(text)
            elif name == "reviewers":
                said[name] = [one.strip() for one in text.split(";") if one.strip()]
            else:
                said[name] = text

    return change


def narrowing(column: str) -> Edit:
    """Let a kept column narrow down others, as somebody decided."""

    def change(document: Any, part: Any) -> None:
        chosen = _section(document, part, "method")
        listed = list(chosen.get("narrowing", []))
        if column not in listed:
            chosen["narrowing"] = [*listed, column]

    return change


def _section(document: Any, part: Any, key: str) -> Any:
    """Return a section of a table: its own, or the one that is said for all tables; a new one where there is none."""
    if key not in part and key not in document:
        part[key] = tomlkit.table()
    return part[key] if key in part else document[key]
