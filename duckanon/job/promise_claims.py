"""Which promise is counted of which table: one that nothing counts is refused, before the release and after the count.

`COUNTED` says of each field of a policy's promises what is counted for it. Before anything is read, `claim_faults`
refuses what cannot be counted of a table; before anything is published, `refuse_uncounted` refuses what was not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from duckanon.job.linked_consistency import joined_tables
from duckanon.job.methods import linking
from duckanon.job.policy import Promises, Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise

Fault = tuple[tuple[str, ...], str]


class Counted(NamedTuple):
    """What is counted for a promise."""

    of: tuple[str, ...]  # the kinds of releases of which it is counted
    as_: tuple[str, ...]  # the names of the counts, without the columns that they are of; one of them suffices
    needs: str | None = None  # what a policy needs for it


_CLASSES, _ALL = ("classes",), ("classes", "new records")

COUNTED = {
    "k": Counted(("classes", "cells"), ("k", "known_events", "open_cells")),
    "linked_k": Counted(_CLASSES, ("linked_k",), "pseudonym"),
    "known_events": Counted(_ALL, ("known_events",), "events"),
    "max_confidence": Counted(_ALL, ("max_confidence",), "events"),
    "l": Counted(_CLASSES, ("l", "recursive l"), "sensitive"),
    "l_kind": Counted(_ALL, ("l", "recursive l"), "l"),
    "c": Counted(_ALL, ("recursive l",), "recursive"),
    "t": Counted(_CLASSES, ("t",), "sensitive"),
    "joint_k": Counted(_CLASSES, ("joint_k",), "account"),
    "joint_l": Counted(_CLASSES, ("joint_l",), "account, sensitive"),
    "joint_t": Counted(_CLASSES, ("joint_t",), "account, sensitive"),
    "max_suppressed_fraction": Counted((*_ALL, "cells"), ("max_suppressed_fraction",)),
    "max_small_changes": Counted(_CLASSES, ("max_small_changes",)),
    "prediction": Counted(_ALL, ("prediction",)),
    "max_correlation_difference": Counted(_ALL, ("max_correlation_difference",)),
    "max_detectability_auc": Counted(_ALL, ("max_detectability_auc",)),
    "max_marginal_difference": Counted(_ALL, ("max_marginal_difference",)),
}
"""What is counted for each promise. That of l_kind and c is the l whose kind and whose bound they are."""


def asked_promises(promises: Promises) -> list[str]:
    """Return the promises that a policy gives, and max_suppressed_fraction, which is always one."""
    given = {name: getattr(promises, name) for name in Promises.model_fields}
    always = {"max_suppressed_fraction"}
    return [
        name
        for name, value in given.items()
        if name in always or (name in promises.model_fields_set and value is not None and value is not False)
    ]


def counted_promises(table: Table) -> list[str]:
    """Return the promises that are counted of a table: those of the policy, and linked_k where rows are linked."""
    asked = [name for name in asked_promises(table.promises) if name not in ("l_kind", "c")]
    is_implied = _kind(table) == "classes" and linking(table) and not table.is_linked and "linked_k" not in asked
    return [*asked[:1], "linked_k", *asked[1:]] if is_implied else asked


def claim_faults(file: PolicyFile, table_name: str) -> Iterator[Fault]:
    """Find the promises of a table that nothing would count."""
    table = file.policy.tables[table_name]
    for promise in asked_promises(table.promises):
        reason = _reason(file, table, promise)
        if reason and not _is_for_another(file, table_name, promise):
            yield ("promises", promise), f"promises.{promise} {reason}"


def refuse_uncounted(
    file: PolicyFile, counts: Mapping[str, Iterable[Promise]], first_releases: Iterable[str] = ()
) -> None:
    """Refuse a release of which something is promised that was not counted; first releases have nothing to change."""
    for table_name, promises in counts.items():
        found = {one.name.split(" of ")[0].split(":")[0] for one in promises}
        for promise in asked_promises(file.policy.tables[table_name].promises):
            is_first = promise == "max_small_changes" and table_name in first_releases
            is_counted = promise in COUNTED and not found.isdisjoint(COUNTED[promise].as_)
            if not (is_counted or is_first or _is_for_another(file, table_name, promise)):
                text = f"promises.{promise} was not counted of this release, so that nobody can rely on it; remove it."
                raise file.wrong(table_name, ("promises", promise), text)


def _kind(table: Table) -> str:
    return "cells" if table.method.makes_cells else "classes" if table.method.makes_classes else "new records"


def _reason(file: PolicyFile, table: Table, promise: str) -> str | None:
    """Say why a promise is not counted of a table; None where it is."""
    counted, kind, method = COUNTED.get(promise), _kind(table), table.method.name
    if counted is None:
        return "is not counted by this version of duckanon; remove it."
    if counted.needs == "events":
        joined = joined_tables(file).values()
        if not any(one.is_linked for one in joined) or (promise == "known_events" and not table.is_linked):
            return "is for tables that release_linked releases."
        if promise == "max_confidence" and not table.named("sensitive"):
            return "needs a column with the role sensitive."
        return None if table in joined else "needs a table whose person is released as a pseudonym."
    if kind not in counted.of:
        if kind == "cells":
            return "is for records; an aggregate table has cells."
        way_out = "." if promise.startswith("joint") else "; promise prediction."
        return f"cannot be counted for {method}, whose records are new{way_out}"
    needs = counted.needs or ""
    if "account" in needs and file.policy.account is None:
        return "counts the releases of an account; add [account] with path and key."
    if "sensitive" in needs and not table.named("sensitive"):
        return "needs a column with the role sensitive."
    if needs == "pseudonym" and table.is_linked:
        return "is not for release_linked; promise known_events, or give it under another table."
    if needs == "pseudonym" and not linking(table):
        return (
            "is of people whose rows a released pseudonym links, and none is released; remove it, or give the person "
            '{ role = "person", pseudonym = true }.'
        )
    if needs in ("l", "recursive") and table.promises.l is None:
        return "says how l is counted, and no l is promised; add l, or remove it."
    if needs == "recursive" and table.promises.l_kind != "recursive":
        return 'is for l_kind = "recursive"; remove it.'
    return None


def _is_for_another(file: PolicyFile, table_name: str, promise: str) -> bool:
    """Tell whether a promise about the tables of a person is made for all tables at once, and counted of another."""
    if promise not in ("linked_k", "known_events", "max_confidence"):
        return False
    document = tomllib.loads(file.text)
    tables = document.get("tables", {})
    is_own = promise in tables.get(table_name, {}).get("promises", {}) or not tables
    others = [one for name, one in file.policy.tables.items() if name != table_name]
    return not is_own and any(_reason(file, one, promise) is None for one in others)
