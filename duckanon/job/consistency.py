"""Refuse policies whose parts contradict each other, before any data is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from duckanon.job import aggregates
from duckanon.job.errors import PolicyError
from duckanon.job.linked_consistency import linked_errors, linked_faults
from duckanon.job.policy import FORMATS, LEFT_OUT, UNDECIDED, Table, format_of, is_database, is_server, source_format
from duckanon.job.policy_file import PolicyFile
from duckanon.job.promise_claims import claim_faults

Fault = tuple[tuple[str, ...], str]
"""Where a table of a policy is wrong, and the sentence that says so."""

_KEYED = re.compile(r"\b(pseudonym|shift_date)\s*\(", re.IGNORECASE)


def check(file: PolicyFile) -> None:
    """Raise PolicyError where columns are not decided, or the parts of a policy contradict each other: all at once."""
    found: list[PolicyError] = _undecided(file)
    for table_name, table in file.policy.tables.items():
        found += [file.wrong(table_name, *fault) for fault in claim_faults(file, table_name)]
        for check_one in (_check_source, _check_people, _check_roles, _check_promises, _check_names, linked_faults):
            found += [file.wrong(table_name, *fault) for fault in islice(check_one(table), 1)]
        if file.policy.plan_of(table_name) and table.method.name != "generalize":
            text = "a plan can be saved for tables with method generalize only."
            found.append(file.wrong(table_name, ("method",), text))
        if file.policy.plan and len(file.policy.tables) > 1:
            text = "plan is for a policy of one table; give each table a plan of its own."
            found.append(file.wrong(table_name, ("plan",), text))
        found += [file.wrong(table_name, *fault) for fault in islice(_check_account(file, table), 1)]
        if table.reference and not (table.promises.prediction or file.policy.report):
            text = "reference is compared where promises.prediction is true or a report is written; here nothing is."
            found.append(file.wrong(table_name, ("reference",), text))
        keyed = [name for name, one in table.columns.items() if one.is_pseudonym or one.shift_days]
        if aggregates.is_keyed(table) and file.policy.key is None:
            text = "method.method needs a key; add [key] with environment (the name of a variable) or file."
            found.append(file.wrong(table_name, ("method", "method"), text))
        if keyed and file.policy.key is None:
            text = f"columns.{keyed[0]} needs a key; add [key] with environment (the name of a variable) or file."
            found.append(file.wrong(table_name, ("columns", keyed[0]), text))
    if not found:
        found += linked_errors(file)
    if found:
        raise PolicyError("\n".join(dict.fromkeys(map(str, found))))


def _undecided(file: PolicyFile) -> list[PolicyError]:
    """Name all columns that nobody decided, of all tables, in one error; none where all are decided."""
    found = [(name, column) for name, table in file.policy.tables.items() for column in table.named(UNDECIDED)]
    if not found:
        return []
    shown = [f"{name}.{column}" if len(file.policy.tables) > 1 else column for name, column in found]
    name, column = found[0]
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
    people = table.named("person")
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
        if not table.named("quasi_identifier"):
            yield (("columns",), f"columns must have a quasi_identifier for {method} to protect.")
        for column_name in table.named("numeric"):
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
    protected, kept = table.protected, table.named("sensitive", "free")
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


def _check_among(given: Iterable[str] | None, allowed: list[str], path: tuple[str, ...]) -> Iterator[Fault]:
    for column_name in given or ():
        if column_name not in allowed:
            text = f"{'.'.join(path)}: {column_name} must be one of {', '.join(allowed) or 'no column'}."
            yield ((*path, column_name), text)
