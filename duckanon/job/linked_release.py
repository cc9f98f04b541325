"""Tables of events, released together: one call for all of them, whose rows then become one table each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from duckanon._bridge import sql
from duckanon._core.common.arrays import spell_count
from duckanon._core.common.release_record import Record
from duckanon._core.common.resources import read_memory
from duckanon.job import backends, methods, refusals
from duckanon.job.consistency import events_k
from duckanon.job.errors import PolicyError
from duckanon.job.linked_counts import CLASS, PERSON, LinkedPart, LinkedTables, people_query
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise, Tables, count_linked
from duckanon.job.readback import Shape

if TYPE_CHECKING:
    from duckanon.job.run import Run

_PEOPLE, _ROWS = "linked_people", "linked_rows"


def release_together(run: Run, people: Mapping[str, Tables], events: Mapping[str, Tables]) -> None:
    """Make the releases of all tables of events; those of people are there already, and give the classes.

    Events of people whom the tables of people do not have, such as those who were suppressed there, are left out.
    """
    con, file = run.con, run.file
    tables = {name: file.policy.tables[name] for name in events}
    rows = sum(sql.fetch_row(con, f"SELECT count(*) FROM {one.original}")[0] for one in events.values())
    _refuse_memory(con, tables, events, run.storage)
    run.say(f"release_linked of {rows} rows of {', '.join(events)}")
    refuse_other_types(file, {name: sql.columns(con, events[name].original) for name in events})
    parts = [
        LinkedPart(name, people[name].released, person, file.policy.tables[name].with_roles("quasi_identifier"), None)
        for name in people
        for person in methods.linking(file.policy.tables[name])
    ]
    if parts:
        con.execute(f"CREATE TABLE {_PEOPLE} AS {people_query(parts)}").fetchall()
    names = {name: f"linked_{number}" for number, name in enumerate(events, 1)}
    for name, table in tables.items():
        fields = "".join(f", {sql.quote(column)}" for column in _columns_of_events(table))
        only = f" SEMI JOIN {_PEOPLE} USING ({PERSON})" if parts else ""
        con.execute(
            f"CREATE VIEW {names[name]} AS FROM (SELECT {sql.quote(table.person or '')}::VARCHAR AS {PERSON}{fields} "
            f"FROM {events[name].original}){only}"
        ).fetchall()
    policy_names = {view: name for name, view in names.items()} | {_PEOPLE: "the tables of people"}
    policy_names[PERSON] = next(iter(tables.values())).person or ""
    with refusals.translate_errors(file, *tables, policy_names=policy_names):
        con.execute(f"CREATE TABLE {_ROWS} AS {_call(tables, events, names, bool(parts))}").fetchall()
    for name, table in tables.items():
        columns = [f"{PERSON} AS {sql.quote(table.person or '')}", *map(sql.quote, _columns_of_events(table))]
        columns += ["row_count"] if getattr(table.method, "counts", None) else []
        con.execute(
            f"CREATE TABLE {events[name].released} AS SELECT {', '.join(columns)} FROM {_ROWS} "
            f"WHERE table_name = {sql.literal(names[name])}"
        ).fetchall()
    con.execute(f"DROP TABLE {_ROWS}").fetchall()


def _columns_of_events(table: Table) -> list[str]:
    return table.with_roles("quasi_identifier", "sensitive", "free")


def _call(tables: Mapping[str, Table], events: Mapping[str, Tables], names: Mapping[str, str], people: bool) -> str:
    """Write the call of anon.release_linked for all tables."""
    first = next(iter(tables.values()))
    cols = _by_lower(column for table in tables.values() for column in methods.columns_to_protect(table))
    kept = _by_lower(column for table in tables.values() for column in table.with_roles("sensitive", "free"))
    narrowing = [PERSON, *(one for table in tables.values() for one in getattr(table.method, "narrowing", None) or ())]
    options: dict[str, Any] = {
        "known": {names[name]: table.known for name, table in tables.items()},
        "keep": [PERSON, *kept],
        "narrowing": _by_lower(narrowing),
        "max_suppressed_fraction": min(table.promises.max_suppressed_fraction for table in tables.values()),
    }
    if people:
        options |= {"class": [CLASS], "people": _PEOPLE}
    elif methods.class_columns(first):
        options["class"] = methods.class_columns(first)
    if counts := getattr(first.method, "counts", None):
        options["counts"] = counts
    trees = {column: name for one in events.values() for column, name in one.hierarchies.items()}
    options |= {"hierarchies": trees} if trees else {}
    options |= _sensitive(tables)
    by_name = ", ".join(f"{sql.quote(name)} := {sql.literal(value)}" for name, value in options.items())
    if ladder := getattr(first.method, "ladder", None):  # a list of maps, which may name other columns each
        by_name += f", ladder := [{', '.join(map(sql.literal, ladder))}]"
    arguments = (list(names.values()), PERSON, cols, first.promises.k)
    return f"FROM anon.release_linked({', '.join(map(sql.literal, arguments))}, {by_name})"


def _sensitive(tables: Mapping[str, Table]) -> dict[str, Any]:
    """Return the options of the sensitive column that labels are shaped for; the promises are counted of all."""
    options: dict[str, Any] = {}
    for column, promises in (
        (column, table.promises) for table in tables.values() for column in table.with_roles("sensitive")
    ):
        asked = {"max_confidence": promises.max_confidence, "l": promises.l, "t": promises.t}
        limits = {name: limit for name, limit in asked.items() if limit is not None and (name != "l" or limit > 1)}
        if limits and options.get("sensitive", column).lower() == column.lower():
            options["sensitive"] = column
            for name, limit in limits.items():
                options[name] = (max if name == "l" else min)(limit, options.get(name, limit))
    return options | ({"l": int(options["l"])} if "l" in options else {})


def _by_lower(columns: Iterable[str]) -> list[str]:
    """Return names once each, whatever their case, as they are first written."""
    names: dict[str, str] = {}
    for column in columns:
        names.setdefault(column.lower(), column)
    return list(names.values())


def _refuse_memory(
    con: sql.Connection, tables: Mapping[str, Table], events: Mapping[str, Tables], storage: backends.Storage
) -> None:
    if storage.memory is None:
        return
    need = storage.begun_with + sum(
        backends.estimate_bytes(table, sql.fetch_row(con, f"SELECT count(*) FROM {events[name].original}")[0])
        for name, table in tables.items()
    )
    if need > read_memory(storage.memory):
        raise PolicyError(
            f"memory must be at least {backends.amount(need)} for release_linked of {', '.join(tables)}; got "
            f"{storage.memory}, and linked tables cannot be processed in partitions."
        )
    backends.widen(con, storage.memory)


def refuse_other_types(file: PolicyFile, types: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a column that two tables have in different types: they are released below each other."""
    seen: dict[str, tuple[str, str]] = {}
    for name, columns in types.items():
        for column in _columns_of_events(file.policy.tables[name]):
            first, column_type = seen.setdefault(column.lower(), (name, columns[column]))
            if column_type != columns[column]:
                text = (
                    f"columns.{column} has the type {columns[column]} here and {column_type} in {first}; cast one of "
                    "them, or rename it, in source.query."
                )
                raise file.wrong(name, ("columns", column), text)


def count(run: Run, entry: Record) -> None:
    """Count what is promised of the rows of a person in all tables together."""
    con, results = run.con, run.results
    releases = {name: (result.table, result.form, result.tables) for name, result in results.items()}
    for name, promise in count_linked(con, releases).items():
        results[name].promises.append(promise)
    with refusals.translate_errors(run.file):
        tables = open_linked_tables(con, releases)
        if tables is None:
            return
        run.say("counting known events")
        for name, promises in count_known_events(tables, releases).items():
            results[name].promises.extend(promises)
        k = events_k(result.table for result in results.values())
        entry["linked"] = {
            "tables": [part.name for part in tables.events],
            "k": k,
            "known": tables.known,
            "exposure": tables.exposure(k),
        }


def open_linked_tables(con: sql.Connection, releases: Mapping[str, tuple[Table, Shape, Tables]]) -> LinkedTables | None:
    """Return the tables whose known events are to be counted; None where there are none."""
    if not any(table.is_linked for table, _, _ in releases.values()):
        return None
    return LinkedTables(
        con,
        [
            LinkedPart(
                name,
                tables.counted,
                person,
                form.classes,
                table.known if table.is_linked else None,
                table.with_roles("sensitive"),
            )
            for name, (table, form, tables) in releases.items()
            for person in methods.linking(table)
        ],
    )


def count_known_events(
    linked: LinkedTables, releases: Mapping[str, tuple[Table, Shape, Tables]]
) -> dict[str, list[Promise]]:
    """Count, for each table that a person's key links, who holds any known events of a person."""
    asked = events_k(table for table, _, _ in releases.values())
    measured = linked.smallest()
    who = f"Whoever knows {linked.known_words} of a person finds "
    words = (
        f"{who}at least {spell_count(measured, 'person', 'people')} of the same class."
        if measured >= asked
        else f"{who}{spell_count(measured, 'person', 'people')} of the same class; {asked} were promised."
    )
    helpful = "fewer known_events, coarser classes of people, hierarchies, or dropping the pseudonym"
    promises = {}
    for name, (table, _, _) in releases.items():
        if methods.linking(table):
            promises[name] = [Promise("known_events", asked, measured, measured >= asked, words, helpful)]
            for column in table.with_roles("sensitive"):
                promises[name].extend(_count_learned(linked, table, column))
    return promises


def _count_learned(linked: LinkedTables, table: Table, column: str) -> Iterator[Promise]:
    """Count what known events tell about a sensitive column; l and t of a table of people are those of its classes."""
    who = f"the people who hold {linked.known_words} of a person"
    helpful = "fewer known_events, coarser classes of people, or "
    if (most := table.promises.max_confidence) is not None:
        share = linked.count_learned(column)["max_confidence"]
        words = f"Of {who}, at most {share:.1%} have the same value of {column}."
        kept = share <= most + 1e-9
        yield Promise(f"max_confidence of {column}", most, share, kept, words, f"{helpful}a larger max_confidence")
    if not table.is_linked:
        return
    if (least := table.promises.l) is not None:
        values = linked.count_learned(column)["l"]
        held = f"is at least {values:g} value" if values == 1 else f"are at least {values:g} values"
        words = f"Among {who} {held} of {column}."
        yield Promise(f"l of {column}", least, values, values >= least, words, f"{helpful}a smaller l")
    if (farthest := table.promises.t) is not None:
        distance = linked.count_learned(column)["t"]
        words = f"Among {who}, {column} is distributed as among all people, up to a distance of {distance:.3g}."
        kept = round(distance, 12) <= farthest
        yield Promise(f"t of {column}", farthest, distance, kept, words, f"{helpful}a larger t")
