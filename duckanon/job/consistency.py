"""Refuse policies whose parts contradict each other, before any data is read.

Refuse policies of linked tables that would tell more than their promise counts, before anything is released.

Which promise is counted of which table: one that nothing counts is refused, before the release and after the count.

`COUNTED` says of each field of a policy's promises what is counted for it. Before anything is read, `claim_faults`
refuses what cannot be counted of a table; before anything is published, `refuse_uncounted` refuses what was not.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from duckanon._bridge import sql
from duckanon._measure.assess import vocabulary
from duckanon._measure.assess.keys import SMALL_GROUP
from duckanon.job import aggregates, refusals
from duckanon.job.errors import PolicyError
from duckanon.job.methods import class_columns, linking
from duckanon.job.policy import (
    FORMATS,
    LEFT_OUT,
    UNDECIDED,
    Promises,
    Table,
    format_of,
    is_database,
    is_server,
    source_format,
)
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promises import Promise

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


def find_linked_faults(table: Table) -> Iterator[tuple[tuple[str, ...], str]]:
    """Check a table of events by itself."""
    if not table.is_linked:
        return
    person = table.person
    if person is None or not table.columns[person].pseudonym:
        where = ("columns", person) if person else ("columns",)
        text = 'release_linked needs one with { role = "person", pseudonym = true }, since it releases whose a row is.'
        yield (where, f"columns: {text}")
    for column in table.with_roles("pseudonym"):
        text = "links rows in a way that known_events does not count; its role must be identifier or drop."
        yield (("columns", column), f"columns.{column}: a pseudonym beside the person's {text}")
    if table.promises.l is not None and (table.promises.l_kind != "distinct" or table.promises.l % 1):
        text = 'promises.l must be a whole number, and l_kind "distinct", for release_linked.'
        yield (("promises", "l"), text)
    for column in class_columns(table):
        if column not in table.with_roles("quasi_identifier"):
            yield (("method", "class"), f"method.class: {column} must have the role quasi_identifier.")


def tables_of_people(file: PolicyFile) -> dict[str, Table]:
    """Return the tables whose released rows tell which of them are one person's."""
    return {name: table for name, table in file.policy.tables.items() if table.is_linked or linking(table)}


def events_k(tables: Iterable[Table]) -> int:
    """Return k of the tables of events, which is the same for all of them."""
    return next(table.promises.k for table in tables if table.is_linked and table.promises.k is not None)


def find_linked_errors(file: PolicyFile) -> list[PolicyError]:
    """Check the tables of events together with all others whose rows tell whose they are."""
    joined = tables_of_people(file)
    events = {name: table for name, table in joined.items() if table.is_linked}
    if not events:
        return []
    return [
        *_disagreements(file, events),
        *_classes(file, joined, events),
        *_check_shared_columns(file, joined),
        *_keys(file, joined),
    ]


def _disagreements(file: PolicyFile, events: dict[str, Table]) -> Iterator[PolicyError]:
    (first_name, first), *rest = events.items()
    if not any(table.known for table in events.values()):
        text = "promises.known_events must be at least 1 for one of the tables of release_linked."
        yield file.wrong(first_name, ("promises", "known_events"), text)
    for name, table in rest:
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
        keys = table.with_roles("pseudonym") if not table.is_linked else []
        for column in keys if table.person else keys[1:]:
            text = "links people in a way that known_events does not count; its role must be identifier or drop."
            yield file.wrong(name, ("columns", column), f"columns.{column}: a pseudonym beside the person's {text}")


def _check_shared_columns(file: PolicyFile, joined: dict[str, Table]) -> Iterator[PolicyError]:
    """Refuse a column that one table protects and another, whose rows can be joined with it, releases as it is."""
    protected: dict[str, str] = {}
    for name, table in joined.items():
        for column in table.with_roles("quasi_identifier"):
            protected.setdefault(column.lower(), name)
    for name, table in joined.items():
        for column in table.with_roles("free", "sensitive"):
            if column.lower() in protected and protected[column.lower()] != name:
                text = (
                    f"columns.{column} is a quasi_identifier of {protected[column.lower()]}, whose rows can be joined "
                    "with these; its role must be quasi_identifier or drop here, too."
                )
                yield file.wrong(name, ("columns", column), text)
    yield from _check_shared_hierarchies(file, {name: table for name, table in joined.items() if table.is_linked})


def _check_shared_hierarchies(file: PolicyFile, events: dict[str, Table]) -> Iterator[PolicyError]:
    trees: dict[str, tuple[str, list[str] | None]] = {}
    for name, table in events.items():
        hierarchies = {column.lower(): paths for column, paths in table.hierarchies.items()}
        for column in table.with_roles("quasi_identifier"):
            first, paths = trees.setdefault(column.lower(), (name, hierarchies.get(column.lower())))
            if paths != hierarchies.get(column.lower()):
                text = f"hierarchies.{column} must be the same in {name} and {first}, which both have the column."
                yield file.wrong(name, ("hierarchies", column), text)


def check_exact_events(
    con: sql.Connection, file: PolicyFile, name: str, types: dict[str, str], rows: str | None
) -> PolicyError | None:
    """Refuse columns that are released as they are and tell of events what known_events does not count.

    That is a date, whose gaps to others single people out, be it a text or the seconds of an epoch; and in a table of
    people the key of a household, which links them. Values are looked for in `rows`, a query; without it, types count.
    """
    joined = tables_of_people(file)
    if name not in joined or not any(table.is_linked for table in joined.values()):
        return None
    table = joined[name]
    allowed = getattr(table.method, "narrowing", None) or ()
    for column in table.with_roles("free", "sensitive"):
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
    value = f"trim(TRY_CAST({sql.quote(column)} AS VARCHAR))"
    day = "regexp_extract(value, '^(.*?)(([ T]+\\d{1,2}:|T\\d{4}).*)?$', 1)"
    year = f"year(coalesce(try_strptime({day}, {_WRITTEN}), TRY_CAST(value AS TIMESTAMP)))"
    is_short = f"regexp_full_match({day}, '\\d{{1,2}}[./-]\\d{{1,2}}[./-]\\d{{2}}')"
    seconds = "abs(TRY_CAST(value AS DOUBLE))"
    is_epoch = " OR ".join(f"{seconds} BETWEEN 1e8 * {unit} AND 4.2e9 * {unit}" for unit in _EPOCH_UNITS)
    is_date = f"coalesce({year} BETWEEN 1850 AND 2150, false) OR {is_short} OR coalesce({is_epoch}, false)"
    (share,) = sql.fetch_row(
        con,
        f"SELECT coalesce(avg(({is_date})::INTEGER), 0) FROM (FROM (SELECT value FROM (SELECT {value} AS value "
        f"FROM ({rows})) WHERE value <> '') USING SAMPLE reservoir({refusals.MOST_ROWS} ROWS) REPEATABLE (1))",
    )
    return bool(share >= 0.5)


def _links_people(con: sql.Connection, rows: str, column: str) -> bool:
    """Tell whether a column is called as the keys of households are, and has as few rows of each value."""
    if "household key" not in vocabulary.topics(column):
        return False
    quoted = sql.quote(column)
    known, different = sql.fetch_row(con, f"SELECT count({quoted}), count(DISTINCT {quoted}) FROM ({rows})")
    return bool(0 < known <= SMALL_GROUP * different)


ClaimFault = tuple[tuple[str, ...], str]


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


def promise_names(promises: Promises) -> list[str]:
    """Return the promises that a policy gives, and max_suppressed_fraction, which is always one."""
    values = {name: getattr(promises, name) for name in Promises.model_fields}
    always = {"max_suppressed_fraction"}
    return [
        name
        for name, value in values.items()
        if name in always or (name in promises.model_fields_set and value is not None and value is not False)
    ]


def list_promises(table: Table) -> list[str]:
    """Return the promises that are counted of a table: those of the policy, and linked_k where rows are linked."""
    asked = [name for name in promise_names(table.promises) if name not in ("l_kind", "c")]
    is_implied = _kind(table) == "classes" and linking(table) and not table.is_linked and "linked_k" not in asked
    return [*asked[:1], "linked_k", *asked[1:]] if is_implied else asked


def claim_faults(file: PolicyFile, table_name: str) -> Iterator[ClaimFault]:
    """Find the promises of a table that nothing would count."""
    table = file.policy.tables[table_name]
    for promise in promise_names(table.promises):
        reason = _reason(file, table, promise)
        if reason and not _is_for_another(file, table_name, promise):
            yield ("promises", promise), f"promises.{promise} {reason}"


def refuse_uncounted(
    file: PolicyFile, counts: Mapping[str, Iterable[Promise]], first_releases: Iterable[str] = ()
) -> None:
    """Refuse a release of which something is promised that was not counted; first releases have nothing to change."""
    for table_name, promises in counts.items():
        names = {one.name.split(" of ")[0].split(":")[0] for one in promises}
        for promise in promise_names(file.policy.tables[table_name].promises):
            is_first = promise == "max_small_changes" and table_name in first_releases
            is_counted = promise in COUNTED and not names.isdisjoint(COUNTED[promise].as_)
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
        joined = tables_of_people(file).values()
        if not any(one.is_linked for one in joined) or (promise == "known_events" and not table.is_linked):
            return "is for tables that release_linked releases."
        if promise == "max_confidence" and not table.with_roles("sensitive"):
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
    if "sensitive" in needs and not table.with_roles("sensitive"):
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
    other_tables = [one for name, one in file.policy.tables.items() if name != table_name]
    return not is_own and any(_reason(file, one, promise) is None for one in other_tables)


Fault = tuple[tuple[str, ...], str]
"""Where a table of a policy is wrong, and the sentence that says so."""

_KEYED = re.compile(r"\b(pseudonym|shift_date)\s*\(", re.IGNORECASE)


def check(file: PolicyFile) -> None:
    """Raise PolicyError where columns are not decided, or the parts of a policy contradict each other: all at once."""
    errors: list[PolicyError] = _check_undecided(file)
    for table_name, table in file.policy.tables.items():
        errors += [file.wrong(table_name, *fault) for fault in claim_faults(file, table_name)]
        for check_one in (
            _check_source,
            _check_people,
            _check_roles,
            _check_promises,
            _check_names,
            find_linked_faults,
        ):
            errors += [file.wrong(table_name, *fault) for fault in islice(check_one(table), 1)]
        if file.policy.plan_of(table_name) and table.method.name != "generalize":
            text = "a plan can be saved for tables with method generalize only."
            errors.append(file.wrong(table_name, ("method",), text))
        if file.policy.plan and len(file.policy.tables) > 1:
            text = "plan is for a policy of one table; give each table a plan of its own."
            errors.append(file.wrong(table_name, ("plan",), text))
        errors += [file.wrong(table_name, *fault) for fault in islice(_check_account(file, table), 1)]
        if table.reference and not (table.promises.prediction or file.policy.report):
            text = "reference is compared where promises.prediction is true or a report is written; here nothing is."
            errors.append(file.wrong(table_name, ("reference",), text))
        keyed = [name for name, one in table.columns.items() if one.is_pseudonym or one.shift_days]
        if aggregates.is_keyed(table) and file.policy.key is None:
            text = "method.method needs a key; add [key] with environment (the name of a variable) or file."
            errors.append(file.wrong(table_name, ("method", "method"), text))
        if keyed and file.policy.key is None:
            text = f"columns.{keyed[0]} needs a key; add [key] with environment (the name of a variable) or file."
            errors.append(file.wrong(table_name, ("columns", keyed[0]), text))
    if not errors:
        errors += find_linked_errors(file)
    if errors:
        raise PolicyError("\n".join(dict.fromkeys(map(str, errors))))


def _check_undecided(file: PolicyFile) -> list[PolicyError]:
    """Name all columns that nobody decided, of all tables, in one error; none where all are decided."""
    columns = [(name, column) for name, table in file.policy.tables.items() for column in table.with_roles(UNDECIDED)]
    if not columns:
        return []
    shown = [f"{name}.{column}" if len(file.policy.tables) > 1 else column for name, column in columns]
    name, column = columns[0]
    text = (
        f'columns must be decided before anything is released; "?" is the role of {", ".join(shown)}: write '
        "identifier, drop, pseudonym, person, quasi_identifier, sensitive or free in its place."
    )
    return [file.wrong(name, ("columns", column), text)]


def _check_source(table: Table) -> Iterator[Fault]:
    source = table.source
    if source.query and source.table:
        yield (("source",), "source must have a table or a query, not both.")
    if not source.path and not source.query:
        yield (("source",), "source must have a path, or a query that reads files.")
    if source.path and is_database(source.path) and not (source.table or source.query):
        yield (("source",), "source.table must say which table of the database is meant.")
    if source.query and _KEYED.search(source.query):
        yield (
            ("source", "query"),
            "source.query must not call anon.pseudonym or anon.shift_date, since it would contain the key; give the "
            'column the role "pseudonym", or shift_days.',
        )
    if source.types and (source.path is None or is_server(source.path) or source_format(source.path) != "csv"):
        yield (("source", "types"), "source.types is for CSV files, whose types are guessed; cast in source.query.")
    yield from _check_target(table)


def _check_target(table: Table) -> Iterator[Fault]:
    target = table.target
    if format_of(target.path) is None:
        endings = ", ".join(FORMATS)
        yield (("target", "path"), f"target.path must end in one of {endings}, or begin with postgresql://.")
    if is_server(target.path) and not target.table:
        yield (("target",), "target.table must say which table of the server is written.")
    if target.table and not is_database(target.path):
        yield (("target", "table"), "target.table is for DuckDB files and servers, which have tables; remove it.")
    if target.replace and not is_server(target.path):
        yield (
            ("target", "replace"),
            "target.replace is for tables of a server; a file of a former release is replaced.",
        )
    if target.no_formulas and format_of(target.path) != "csv":
        yield (("target", "no_formulas"), "target.no_formulas is for CSV files, which spreadsheets open.")


def _check_people(table: Table) -> Iterator[Fault]:
    people = table.with_roles("person")
    if len(people) > 1:
        text = "columns must have at most one person; give other keys the role identifier."
        yield (("columns", people[1]), text)
    for column_name, column in table.columns.items():
        path = ("columns", column_name)
        if column.pseudonym and column.role != "person":
            yield (path, f'columns.{column_name}: pseudonym is for a person; else the role is "pseudonym".')
        if column.numbered and (column.role != "person" or table.method.name != "synthesize"):
            yield (path, f"columns.{column_name}: numbered is for the person of a table that is synthesized.")
        if column.shift_days and column.role in ("person", "pseudonym", *LEFT_OUT):
            yield (path, f"columns.{column_name}: shift_days is for dates that are released.")
        if column.shift_days and not people:
            yield (path, f"columns.{column_name}: shift_days needs a column with the role person.")


def _check_roles(table: Table) -> Iterator[Fault]:
    method = table.method.name
    if (table.kind == "aggregate") != table.method.makes_cells and (table.kind or table.method.makes_cells):
        yield (("kind",), 'kind must be "aggregate" for protect_table, and for no other method.')
    if table.method.makes_cells:
        yield from aggregates.check_roles(table)
        return
    if table.method.makes_classes:
        if not table.with_roles("quasi_identifier"):
            yield (("columns",), f"columns must have a quasi_identifier for {method} to protect.")
        for column_name in table.with_roles("numeric"):
            yield (
                ("columns", column_name),
                f"columns.{column_name}: numeric is for synthesize, spectral_release, svd_swap and pica; for {method} "
                "the column is a quasi_identifier, sensitive or free.",
            )
        return
    if not table.protected:
        yield (("columns",), f"columns must have something for {method} to release.")
    for column_name, column in table.columns.items():
        if column.role == "free" or column.is_pseudonym:
            yield (
                ("columns", column_name),
                f"columns.{column_name}: {method} makes new records, and no column of people passes beside them; its "
                "role must be numeric, quasi_identifier, sensitive, identifier or drop.",
            )


def _check_promises(table: Table) -> Iterator[Fault]:
    promises, method = table.promises, table.method.name
    if table.method.makes_cells:
        yield from aggregates.check_promises(table)
        return
    if not table.method.makes_classes:
        if not promises.prediction:
            text = f"promises.prediction must be true for {method}: nothing else protects its rows."
            yield (("promises",), text)
        return
    if table.person and getattr(table.method, "nulls", None) == "any":
        yield (("method", "nulls"), 'method.nulls must be "value" where people are counted.')
    if promises.k is None:
        yield (("promises",), f"promises.k must say how many people every class of {method} has.")


def _check_account(file: PolicyFile, table: Table) -> Iterator[Fault]:
    if file.policy.account is not None and table.method.makes_classes and not table.person:
        yield (("columns",), "columns must have a person: the account counts people.")
    if file.policy.cohorts is not None:
        yield from _check_cohorts(file, table)


def _check_cohorts(file: PolicyFile, table: Table) -> Iterator[Fault]:
    if file.policy.account is None:
        yield ((), "cohorts are kept in an account; add [account] with path and key.")
    if file.policy.plan is None and table.plan is None:
        yield ((), "cohorts need a plan, so that classes stay the same; add plan, the name of a Parquet file.")
    if table.promises.joint_k is None:
        yield (("promises",), "promises.joint_k must say how many people of a cohort enter and leave together.")


def _check_names(table: Table) -> Iterator[Fault]:
    """Check the columns that parameters name: those of a role that the parameter is about."""
    protected, kept = table.protected, table.with_roles("sensitive", "free")
    for parameter in ("by", "importance", "weights", "methods", "epsilon", "log", "categories", "narrowing"):
        allowed = kept if parameter == "narrowing" else protected
        yield from _check_among(getattr(table.method, parameter, None), allowed, ("method", parameter))
    yield from _check_among(table.hierarchies, protected, ("hierarchies",))
    if table.hierarchies and table.method.name not in ("generalize", "recode", "release_linked", "protect_table"):
        text = "hierarchies are for generalize, recode, release_linked and protect_table, not for "
        yield (("hierarchies",), f"{text}{table.method.name}.")
    for column_name, files in table.hierarchies.items():
        if len(files) > 1 and not table.method.makes_cells:
            text = f"hierarchies.{column_name} must be one file for {table.method.name}; a list is for protect_table."
            yield (("hierarchies", column_name), text)
    by = set(getattr(table.method, "by", None) or ())
    if by and by == set(protected) and not table.method.makes_cells:
        yield (("method", "by"), "method.by must leave a column to protect.")


def _check_among(names: Iterable[str] | None, allowed: list[str], path: tuple[str, ...]) -> Iterator[Fault]:
    for column_name in names or ():
        if column_name not in allowed:
            text = f"{'.'.join(path)}: {column_name} must be one of {', '.join(allowed) or 'no column'}."
            yield ((*path, column_name), text)
