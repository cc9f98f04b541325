"""Tables of events, released together: one call for all of them, whose rows then become one table each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from duckanon._bridge import sql
from duckanon._core.common.amounts import counted
from duckanon._core.common.memory import bytes_of
from duckanon._core.common.release_record import Record
from duckanon.job import backends, methods, refusals
from duckanon.job.errors import PolicyError
from duckanon.job.linked_consistency import events_k
from duckanon.job.linked_counts import CLASS, WHOSE, LinkedPart, LinkedTables, people_query
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables, linked
from duckanon.job.readback import Shape
from duckanon.job.table_result import TableResult

_PEOPLE, _ROWS = "linked_people", "linked_rows"


def release_together(
    con: sql.Connection,
    file: PolicyFile,
    people: Mapping[str, Tables],
    events: Mapping[str, Tables],
    place: backends.Storage,
    say: Callable[[str], None],
) -> None:
    """Make the releases of all tables of events; those of people are there already, and give the classes.

    Events of people whom the tables of people do not have, such as those who were suppressed there, are left out.
    """
    tables = {name: file.policy.tables[name] for name in events}
    rows = sum(sql.one(con, f"SELECT count(*) FROM {one.original}")[0] for one in events.values())
    _refuse_memory(con, tables, events, place)
    say(f"release_linked of {rows} rows of {', '.join(events)}")
    refuse_other_types(file, {name: sql.columns(con, events[name].original) for name in events})
    parts = [
        LinkedPart(name, people[name].released, whose, file.policy.tables[name].named("quasi_identifier"), None)
        for name in people
        for whose in methods.linking(file.policy.tables[name])
    ]
    if parts:
        con.execute(f"CREATE TABLE {_PEOPLE} AS {people_query(parts)}").fetchall()
    names = {name: f"linked_{place}" for place, name in enumerate(events, 1)}
    for name, table in tables.items():
        others = "".join(f", {sql.name(column)}" for column in _released_columns(table))
        only = f" SEMI JOIN {_PEOPLE} USING ({WHOSE})" if parts else ""
        con.execute(
            f"CREATE VIEW {names[name]} AS FROM (SELECT {sql.name(table.person or '')}::VARCHAR AS {WHOSE}{others} "
            f"FROM {events[name].original}){only}"
        ).fetchall()
    policy_names = {view: name for name, view in names.items()} | {_PEOPLE: "the tables of people"}
    policy_names[WHOSE] = next(iter(tables.values())).person or ""
    with refusals.translate_errors(file, *tables, policy_names=policy_names):
        con.execute(f"CREATE TABLE {_ROWS} AS {_call(tables, events, names, bool(parts))}").fetchall()
    for name, table in tables.items():
        columns = [f"{WHOSE} AS {sql.name(table.person or '')}", *map(sql.name, _released_columns(table))]
        columns += ["row_count"] if getattr(table.method, "counts", None) else []
        con.execute(
            f"CREATE TABLE {events[name].released} AS SELECT {', '.join(columns)} FROM {_ROWS} "
            f"WHERE table_name = {sql.literal(names[name])}"
        ).fetchall()
    con.execute(f"DROP TABLE {_ROWS}").fetchall()


def _released_columns(table: Table) -> list[str]:
    return table.named("quasi_identifier", "sensitive", "free")


def _call(tables: Mapping[str, Table], events: Mapping[str, Tables], names: Mapping[str, str], people: bool) -> str:
    """Write the call of anon.release_linked for all tables."""
    first = next(iter(tables.values()))
    cols = _by_lower(column for table in tables.values() for column in methods.protected(table))
    kept = _by_lower(column for table in tables.values() for column in table.named("sensitive", "free"))
    narrowing = [WHOSE, *(one for table in tables.values() for one in getattr(table.method, "narrowing", None) or ())]
    given: dict[str, Any] = {
        "known": {names[name]: table.known for name, table in tables.items()},
        "keep": [WHOSE, *kept],
        "narrowing": _by_lower(narrowing),
        "max_suppressed_fraction": min(table.promises.max_suppressed_fraction for table in tables.values()),
    }
    if people:
        given |= {"class": [CLASS], "people": _PEOPLE}
    elif methods.class_columns(first):
        given["class"] = methods.class_columns(first)
    if counts := getattr(first.method, "counts", None):
        given["counts"] = counts
    trees = {column: name for one in events.values() for column, name in one.hierarchies.items()}
    given |= {"hierarchies": trees} if trees else {}
    given |= _sensitive(tables)
    by_name = ", ".join(f"{sql.name(name)} := {sql.literal(value)}" for name, value in given.items())
    if ladder := getattr(first.method, "ladder", None):  # a list of maps, which may name other columns each
        by_name += f", ladder := [{', '.join(map(sql.literal, ladder))}]"
    arguments = (list(names.values()), WHOSE, cols, first.promises.k)
    return f"FROM anon.release_linked({', '.join(map(sql.literal, arguments))}, {by_name})"


def _sensitive(tables: Mapping[str, Table]) -> dict[str, Any]:
    """Return the options of the sensitive column that labels are shaped for; the promises are counted of all."""
    given: dict[str, Any] = {}
    for column, promises in ((one, table.promises) for table in tables.values() for one in table.named("sensitive")):
        asked = {"max_confidence": promises.max_confidence, "l": promises.l, "t": promises.t}
        limits = {name: limit for name, limit in asked.items() if limit is not None and (name != "l" or limit > 1)}
        if limits and given.get("sensitive", column).lower() == column.lower():
            given["sensitive"] = column
            for name, limit in limits.items():
                given[name] = (max if name == "l" else min)(limit, given.get(name, limit))
    return given | ({"l": int(given["l"])} if "l" in given else {})


def _by_lower(columns: Iterable[str]) -> list[str]:
    """Return names once each, whatever their case, as they are first written."""
    found: dict[str, str] = {}
    for column in columns:
        found.setdefault(column.lower(), column)
    return list(found.values())


def _refuse_memory(
    con: sql.Connection, tables: Mapping[str, Table], events: Mapping[str, Tables], place: backends.Storage
) -> None:
    if place.memory is None:
        return
    need = place.begun_with + sum(
        backends.estimated_bytes(table, sql.one(con, f"SELECT count(*) FROM {events[name].original}")[0])
        for name, table in tables.items()
    )
    if need > bytes_of(place.memory):
        raise PolicyError(
            f"memory must be at least {backends.amount(need)} for release_linked of {', '.join(tables)}; got "
            f"{place.memory}, and linked tables cannot be processed in partitions."
        )
    backends.widen(con, place.memory)


def refuse_other_types(file: PolicyFile, types: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a column that two tables have in different types: they are released below each other."""
    seen: dict[str, tuple[str, str]] = {}
    for name, columns in types.items():
        for column in _released_columns(file.policy.tables[name]):
            first, column_type = seen.setdefault(column.lower(), (name, columns[column]))
            if column_type != columns[column]:
                text = (
                    f"columns.{column} has the type {columns[column]} here and {column_type} in {first}; cast one of "
                    "them, or rename it, in source.query."
                )
                raise file.wrong(name, ("columns", column), text)


def count(
    con: sql.Connection, file: PolicyFile, made: dict[str, TableResult], run: Record, say: Callable[[str], None]
) -> None:
    """Count what is promised of the rows of a person in all tables together."""
    releases = {name: (one.table, one.form, one.tables) for name, one in made.items()}
    for name, promise in linked(con, releases).items():
        made[name].promises.append(promise)
    with refusals.translate_errors(file):
        tables = opened(con, releases)
        if tables is None:
            return
        say("counting known events")
        for name, found in known_promises(tables, releases).items():
            made[name].promises.extend(found)
        k = events_k(one.table for one in made.values())
        run["linked"] = {
            "tables": [part.name for part in tables.events],
            "k": k,
            "known": tables.known,
            "exposure": tables.exposure(k),
        }


def opened(con: sql.Connection, releases: Mapping[str, tuple[Table, Shape, Tables]]) -> LinkedTables | None:
    """Return the tables whose known events are to be counted; None where there are none."""
    if not any(table.is_linked for table, _, _ in releases.values()):
        return None
    return LinkedTables(
        con,
        [
            LinkedPart(
                name,
                tables.counted,
                whose,
                form.classes,
                table.known if table.is_linked else None,
                table.named("sensitive"),
            )
            for name, (table, form, tables) in releases.items()
            for whose in methods.linking(table)
        ],
    )


def known_promises(
    linked: LinkedTables, releases: Mapping[str, tuple[Table, Shape, Tables]]
) -> dict[str, list[Promise]]:
    """Count, for each table that a person's key links, who holds any known events of a person."""
    asked = events_k(table for table, _, _ in releases.values())
    measured = linked.smallest()
    who = f"Whoever knows {linked.known_words} of a person finds "
    words = (
        f"{who}at least {counted(measured, 'person', 'people')} of the same class."
        if measured >= asked
        else f"{who}{counted(measured, 'person', 'people')} of the same class; {asked} were promised."
    )
    helpful = "fewer known_events, coarser classes of people, hierarchies, or dropping the pseudonym"
    found = {}
    for name, (table, _, _) in releases.items():
        if methods.linking(table):
            found[name] = [Promise("known_events", asked, measured, measured >= asked, words, helpful)]
            for column in table.named("sensitive"):
                found[name].extend(_learned(linked, table, column))
    return found


def _learned(linked: LinkedTables, table: Table, column: str) -> Iterator[Promise]:
    """Count what known events tell about a sensitive column; l and t of a table of people are those of its classes."""
    who = f"the people who hold {linked.known_words} of a person"
    helpful = "fewer known_events, coarser classes of people, or "
    if (most := table.promises.max_confidence) is not None:
        share = linked.learned(column)["max_confidence"]
        words = f"Of {who}, at most {share:.1%} have the same value of {column}."
        kept = share <= most + 1e-9
        yield Promise(f"max_confidence of {column}", most, share, kept, words, f"{helpful}a larger max_confidence")
    if not table.is_linked:
        return
    if (least := table.promises.l) is not None:
        values = linked.learned(column)["l"]
        held = f"is at least {values:g} value" if values == 1 else f"are at least {values:g} values"
        words = f"Among {who} {held} of {column}."
        yield Promise(f"l of {column}", least, values, values >= least, words, f"{helpful}a smaller l")
    if (farthest := table.promises.t) is not None:
        distance = linked.learned(column)["t"]
        words = f"Among {who}, {column} is distributed as among all people, up to a distance of {distance:.3g}."
        kept = round(distance, 12) <= farthest
        yield Promise(f"t of {column}", farthest, distance, kept, words, f"{helpful}a larger t")
