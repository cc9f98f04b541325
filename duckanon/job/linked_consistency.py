"""Refuse policies of linked tables that would tell more than their promise counts, before anything is released."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from duckanon._bridge import sql
from duckanon._measure.assess import vocabulary
from duckanon._measure.assess.keys import SMALL_GROUP
from duckanon.job import refusals
from duckanon.job.errors import PolicyError
from duckanon.job.methods import class_columns, linking
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile

_DATE = re.compile(r"\b(DATE|TIME)")
_WRITTEN = (
    "['%Y-%m-%d', '%d.%m.%Y', '%m/%d/%Y', '%d/%m/%Y', '%d-%m-%Y', '%m-%d-%Y', '%Y/%m/%d', '%Y.%m.%d', '%Y%m%d', "
    "'%d %b %Y', '%d %B %Y', '%d. %B %Y', '%b %d, %Y', '%B %d, %Y', '%d-%b-%Y']"
)
"""Ways in which days are written, for DuckDB."""
_EPOCH_UNITS = ("1", "1e3", "1e6", "1e9")
"""Units in a second in which moments are counted: from 1e8 of them, in 1973, to 4.2e9, in 2103."""
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
    if table.promises.l is not None and (table.promises.l_kind != "distinct" or table.promises.l % 1):
        text = 'promises.l must be a whole number, and l_kind "distinct", for release_linked.'
        yield (("promises", "l"), text)
    for column in class_columns(table):
        if column not in table.named("quasi_identifier"):
            yield (("method", "class"), f"method.class: {column} must have the role quasi_identifier.")


def joined_tables(file: PolicyFile) -> dict[str, Table]:
    """Return the tables whose released rows tell which of them are one person's."""
    return {name: table for name, table in file.policy.tables.items() if table.is_linked or linking(table)}


def events_k(tables: Iterable[Table]) -> int:
    """Return k of the tables of events, which is the same for all of them."""
    return next(table.promises.k for table in tables if table.is_linked and table.promises.k is not None)


def linked_errors(file: PolicyFile) -> list[PolicyError]:
    """Check the tables of events together with all others whose rows tell whose they are."""
    joined = joined_tables(file)
    events = {name: table for name, table in joined.items() if table.is_linked}
    if not events:
        return []
    return [
        *_disagreements(file, events),
        *_classes(file, joined, events),
        *_shared_columns(file, joined),
        *_keys(file, joined),
    ]


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


def _keys(file: PolicyFile, joined: dict[str, Table]) -> Iterator[PolicyError]:
    """Refuse pseudonyms of a table of people beside that of the person: households link people and their events."""
    for name, table in joined.items():
        keys = table.named("pseudonym") if not table.is_linked else []
        for column in keys if table.person else keys[1:]:
            text = "links people in a way that known_events does not count; its role must be identifier or drop."
            yield file.wrong(name, ("columns", column), f"columns.{column}: a pseudonym beside the person's {text}")


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


def uncounted(
    con: sql.Connection, file: PolicyFile, name: str, types: dict[str, str], rows: str | None
) -> PolicyError | None:
    """Refuse columns that are released as they are and tell of events what known_events does not count.

    That is a date, whose gaps to others single people out, be it a text or the seconds of an epoch; and in a table of
    people the key of a household, which links them. Values are looked for in `rows`, a query; without it, types count.
    """
    joined = joined_tables(file)
    if name not in joined or not any(table.is_linked for table in joined.values()):
        return None
    table = joined[name]
    allowed = getattr(table.method, "narrowing", None) or ()
    for column in table.named("free", "sensitive"):
        if column in allowed:
            continue
        is_date = _DATE.search(types[column]) is not None
        if is_date or (rows and _holds_dates(con, rows, column)):
            text = (
                f"columns.{column} {'is a date' if is_date else 'holds dates'}, more exact than the labels that "
                "known_events counts: the gaps between the dates of a person would single most people out; give it "
                "the role quasi_identifier or drop, or name it in narrowing under [method]."
            )
            return file.wrong(name, ("columns", column), text)
        if rows and not table.is_linked and _links_people(con, rows, column):
            text = (
                f"columns.{column} links people, as the key of a household does, in a way that known_events does not "
                "count; give it the role identifier or drop, or name it in narrowing under [method]."
            )
            return file.wrong(name, ("columns", column), text)
    return None


def _holds_dates(con: sql.Connection, rows: str, column: str) -> bool:
    """Tell whether half of the values of a column are days or moments, in years that people live in, in a sample."""
    value = f"trim(TRY_CAST({sql.name(column)} AS VARCHAR))"
    day = "regexp_extract(value, '^(.*?)(([ T]+\\d{1,2}:|T\\d{4}).*)?$', 1)"
    year = f"year(coalesce(try_strptime({day}, {_WRITTEN}), TRY_CAST(value AS TIMESTAMP)))"
    is_short = f"regexp_full_match({day}, '\\d{{1,2}}[./-]\\d{{1,2}}[./-]\\d{{2}}')"
    seconds = "abs(TRY_CAST(value AS DOUBLE))"
    is_epoch = " OR ".join(f"{seconds} BETWEEN 1e8 * {unit} AND 4.2e9 * {unit}" for unit in _EPOCH_UNITS)
    is_date = f"coalesce({year} BETWEEN 1850 AND 2150, false) OR {is_short} OR coalesce({is_epoch}, false)"
    (share,) = sql.one(
        con,
        f"SELECT coalesce(avg(({is_date})::INTEGER), 0) FROM (FROM (SELECT value FROM (SELECT {value} AS value "
        f"FROM ({rows})) WHERE value <> '') USING SAMPLE reservoir({refusals.MOST_ROWS} ROWS) REPEATABLE (1))",
    )
    return bool(share >= 0.5)


def _links_people(con: sql.Connection, rows: str, column: str) -> bool:
    """Tell whether a column is called as the keys of households are, and has as few rows of each value."""
    if "household key" not in vocabulary.topics(column):
        return False
    quoted = sql.name(column)
    known, different = sql.one(con, f"SELECT count({quoted}), count(DISTINCT {quoted}) FROM ({rows})")
    return bool(0 < known <= SMALL_GROUP * different)
