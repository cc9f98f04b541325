"""The call of the function that makes a release, from what the policy says of it."""

from __future__ import annotations

from typing import Any

from duckanon._bridge import sql
from duckanon.job.policy import LEFT_OUT, Table

SHARED_VALUES = ("synthesize", "spectral_release")
"""Methods of new records whose values are shared by k people, or by nobody."""

_TREATMENTS = {
    "generalize": "generalized",
    "recode": "generalized class by class",
    "release_linked": "generalized event by event",
    "suppress_cells": "single cells suppressed",
    "boxes": "replaced by intervals",
    "microaggregate": "replaced by the group's mean, median or interval",
    "svd_swap": "swapped",
    "pica": "swapped within clusters",
    "spectral_release": "synthesized",
    "synthesize": "synthesized",
    "protect_table": "tabulated",
}


def columns_to_protect(table: Table) -> list[str]:
    """Return the columns that the method changes, without those that it only groups by."""
    by = [*(getattr(table.method, "by", None) or ()), *class_columns(table)] if not table.method.makes_cells else []
    return [column for column in table.protected if column not in by]


def class_columns(table: Table) -> list[str]:
    """Return the columns of events that are the person's, already coarse, and make classes."""
    return list(getattr(table.method, "class", None) or ())


def linking(table: Table) -> list[str]:
    """Return the released columns that tell which rows are one person's.

    Where the policy says which person a row belongs to, other pseudonyms are those of doctors, houses and the like.
    """
    person = table.person
    if person:
        return [person] if table.columns[person].pseudonym else []
    return table.with_roles("pseudonym") if table.method.makes_classes else []


def columns_to_keep(table: Table) -> list[str]:
    """Return the columns that pass through the method as they are; the person too, to be counted."""
    return table.with_roles("sensitive", "free", "pseudonym", "person") if table.method.makes_classes else []


def columns_to_judge(table: Table) -> list[str]:
    """Return the kept columns that must not narrow down others: all but those that the policy lets do so."""
    allowed = getattr(table.method, "narrowing", None) or ()
    return [column for column in table.with_roles("sensitive", "free") if column not in allowed]


def person_to_drop(table: Table) -> str | None:
    """Return the person's column where it is needed for counting only, and is not released."""
    person = table.person
    return person if person and not (table.columns[person].pseudonym or table.columns[person].numbered) else None


def treatment(table: Table, column: str) -> str:
    """Say what is done to a column."""
    role = table.columns[column]
    if role.is_pseudonym:
        return "replaced by a pseudonym"
    if role.numbered:
        return "replaced by the number of a new person"
    if role.role in (*LEFT_OUT, "person"):
        return "dropped"
    if table.method.makes_cells and column == getattr(table.method, "measure", None):
        return "summed"
    shifted = "shifted per person, then " if role.shift_days else ""
    if column in columns_to_protect(table):
        return shifted + _TREATMENTS[table.method.name]
    if column in (getattr(table.method, "by", None) or ()):
        return f"{shifted}released as it is, with rare groups merged"
    if column in class_columns(table):
        return f"{shifted}released as it is, the class of a person"
    return f"{shifted}released as it is" if not shifted else "shifted per person"


def treatments(method: str, role: str) -> tuple[str, ...]:
    """Return what `treatment` may say of a column of a role."""
    if role in LEFT_OUT or role == "person":
        of_people = ("replaced by a pseudonym", "replaced by the number of a new person")
        return ("dropped", *(of_people if role == "person" else ()))
    if role == "pseudonym":
        return ("replaced by a pseudonym",)
    kept = ("summed",) if method == "protect_table" else ("released as it is", "shifted per person")
    changed = (
        _TREATMENTS[method],
        "released as it is, with rare groups merged",
        "released as it is, the class of a person",
    )
    is_new = _TREATMENTS[method].startswith(("sw", "syn"))
    return changed if role in ("quasi_identifier", "numeric") or is_new else kept


def parameters(table: Table) -> dict[str, Any]:
    """Return the parameters that the function is called with, without columns: what the record tells."""
    promises, method = table.promises, table.method.name
    options = {name: value for name, value in table.method.model_dump(exclude={"name"}).items() if value is not None}
    if table.method.makes_cells:
        limit = promises.max_suppressed_fraction if "max_suppressed_fraction" in promises.model_fields_set else 0.5
        options |= {"hierarchies": sorted(table.hierarchies)} if table.hierarchies else {}
        return {"k": promises.k, "by": table.protected, **options, "max_suppressed_fraction": limit}
    if not table.method.makes_classes:
        return options
    if method == "suppress_cells":
        options.setdefault("nulls", "value")  # which anon.k_anonymity counts of people too
    if table.is_linked:
        options |= {"known": table.known, "max_suppressed_fraction": promises.max_suppressed_fraction}
        limits = {"max_confidence": promises.max_confidence, "l": promises.l, "t": promises.t}
        options |= {name: limit for name, limit in limits.items() if limit is not None}
    if method in ("generalize", "recode"):
        options["max_suppressed_fraction"] = promises.max_suppressed_fraction
        sensitive = table.with_roles("sensitive")
        if sensitive and (promises.l is not None or promises.t is not None):
            # the function shapes classes for one column; the promise is counted of all
            options |= {"sensitive": sensitive[0], "l": promises.l or 1, "l_kind": promises.l_kind, "c": promises.c}
            options |= {"t": promises.t} if promises.t is not None else {}
    return {"k": promises.k, **options}


def call(
    table: Table, original: str, hierarchies: dict[str, str], function: str | None = None, k: int | None = None
) -> str:
    """Write the call of the method, or of ``plan``, the function that makes a plan for the same release.

    `k` takes the place of the promised one.
    """
    options = parameters(table) | ({"k": k} if k else {})
    arguments = [sql.literal(original), sql.literal(columns_to_protect(table))]
    if table.method.makes_classes:
        arguments.append(sql.literal(options.pop("k")))
    is_release = function is None
    if not is_release:
        options.pop("narrowing", None)
    if table.person and (table.method.makes_classes or table.method.name in SHARED_VALUES):
        options["person"] = table.person
    if is_release and table.method.makes_classes:
        options |= keeping(table)
    if hierarchies:
        options["hierarchies"] = hierarchies
    by_name = [f"{sql.quote(name)} := {sql.literal(value)}" for name, value in options.items()]
    called = f"FROM anon.{function or table.method.name}({', '.join([*arguments, *by_name])})"
    if is_release and table.method.name == "synthesize" and (person := person_to_drop(table)):
        return f"SELECT * EXCLUDE ({sql.quote(person)}) {called}"
    return called


def keeping(table: Table) -> dict[str, Any]:
    """Return the columns to keep; codes that mean nothing to a reader may narrow, since they tell no value."""
    keep = columns_to_keep(table)
    if not keep:
        return {}
    codes = table.with_roles("pseudonym", "person")
    return {"keep": keep, "narrowing": [*(getattr(table.method, "narrowing", None) or ()), *codes]}
