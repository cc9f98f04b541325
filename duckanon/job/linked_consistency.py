"""Refuse policies of linked tables that would tell more than their promise counts, before any data is read."""

from __future__ import annotations

from collections.abc import Iterator

from duckanon.job.errors import PolicyError
from duckanon.job.methods import class_columns, linking
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile

_DATES = ("DATE", "TIME")
_SHARED = ("ladder", "counts")
"""Parameters that all linked tables have in common."""


def linked_faults(table: Table) -> Iterator[tuple[tuple[str, ...], str]]:
    """Check a table of events by itself."""
    if not table.is_linked:
        return
    person = table.person
    if person is None or not table.columns[person].pseudonym:
        where = ("columns", person) if person else ("columns",)
        text = 'release_linked needs one with { role = "person", pseudonym = true }, since it releases whose a row is.'
        yield (where, f"columns: {text}")
    for column in table.named("pseudonym"):
        text = "links rows in a way that known_events does not count; its role must be identifier or drop."
        yield (("columns", column), f"columns.{column}: a pseudonym beside the person's {text}")
    if table.promises.linked_k is not None:
        text = "promises.linked_k is not for release_linked; promise known_events, or give it under another table."
        yield (("promises", "linked_k"), text)
    if table.promises.l is not None and (table.promises.l_kind != "distinct" or table.promises.l % 1):
        text = 'promises.l must be a whole number, and l_kind "distinct", for release_linked.'
        yield (("promises", "l"), text)
    if table.promises.max_confidence is not None and not table.named("sensitive"):
        yield (("promises", "max_confidence"), "promises.max_confidence needs a column with the role sensitive.")
    for column in class_columns(table):
        if column not in table.named("quasi_identifier"):
            yield (("method", "class"), f"method.class: {column} must have the role quasi_identifier.")


def linked_errors(file: PolicyFile) -> list[PolicyError]:
    """Check the tables of events together with all others whose rows tell whose they are."""
    joined = {name: table for name, table in file.policy.tables.items() if table.is_linked or linking(table)}
    events = {name: table for name, table in joined.items() if table.is_linked}
    if not events:
        return [
            file.wrong(name, ("promises", promise), f"promises.{promise} is for tables that release_linked releases.")
            for name, table in file.policy.tables.items()
            for promise in ("known_events", "max_confidence")
            if getattr(table.promises, promise) is not None
        ]
    return [*_disagreements(file, events), *_classes(file, joined, events), *_shared_columns(file, joined)]


def _disagreements(file: PolicyFile, events: dict[str, Table]) -> Iterator[PolicyError]:
    (first_name, first), *others = events.items()
    if not any(table.known for table in events.values()):
        text = "promises.known_events must be at least 1 for one of the tables of release_linked."
        yield file.wrong(first_name, ("promises", "known_events"), text)
    for name, table in others:
        for parameter in _SHARED:
            if getattr(table.method, parameter) != getattr(first.method, parameter):
                text = f"method.{parameter} must be the same for all tables of release_linked, as for {first_name}."
                yield file.wrong(name, ("method", parameter), text)
        if table.promises.k != first.promises.k:
            text = f"promises.k must be the same for all tables of release_linked, as for {first_name}."
            yield file.wrong(name, ("promises", "k"), text)


def _classes(file: PolicyFile, joined: dict[str, Table], events: dict[str, Table]) -> Iterator[PolicyError]:
    for name, table in events.items():
        if class_columns(table) and len(joined) > 1:
            text = "method.class is for a table of events by itself; else a table of people has these columns."
            yield file.wrong(name, ("method", "class"), text)


def _shared_columns(file: PolicyFile, joined: dict[str, Table]) -> Iterator[PolicyError]:
    """Refuse a column that one table protects and another, whose rows can be joined with it, releases as it is."""
    protected: dict[str, str] = {}
    for name, table in joined.items():
        for column in table.named("quasi_identifier"):
            protected.setdefault(column.lower(), name)
    for name, table in joined.items():
        for column in table.named("free", "sensitive"):
            if column.lower() in protected and protected[column.lower()] != name:
                text = (
                    f"columns.{column} is a quasi_identifier of {protected[column.lower()]}, whose rows can be joined "
                    "with these; its role must be quasi_identifier or drop here, too."
                )
                yield file.wrong(name, ("columns", column), text)
    yield from _shared_hierarchies(file, {name: table for name, table in joined.items() if table.is_linked})


def _shared_hierarchies(file: PolicyFile, events: dict[str, Table]) -> Iterator[PolicyError]:
    trees: dict[str, tuple[str, list[str] | None]] = {}
    for name, table in events.items():
        own = {column.lower(): paths for column, paths in table.hierarchies.items()}
        for column in table.named("quasi_identifier"):
            first, paths = trees.setdefault(column.lower(), (name, own.get(column.lower())))
            if paths != own.get(column.lower()):
                text = f"hierarchies.{column} must be the same in {name} and {first}, which both have the column."
                yield file.wrong(name, ("hierarchies", column), text)


def exact_dates(file: PolicyFile, name: str, types: dict[str, str]) -> PolicyError | None:
    """Refuse dates of events that are released as they are: known_events does not count the gaps between them."""
    table = file.policy.tables[name]
    allowed = getattr(table.method, "narrowing", None) or ()
    found = [
        column
        for column in table.named("free", "sensitive")
        if table.is_linked and types[column].startswith(_DATES) and column not in allowed
    ]
    if not found:
        return None
    text = (
        f"columns.{found[0]} is a date, more exact than the labels that known_events counts: the gaps between the "
        "dates of a person would single most people out; give it the role quasi_identifier or drop, or name it in "
        "narrowing under [method]."
    )
    return file.wrong(name, ("columns", found[0]), text)
