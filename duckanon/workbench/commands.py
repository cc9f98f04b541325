"""The commands that do on a terminal what the pages do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from duckanon._bridge import sql
from duckanon.job import methods
from duckanon.job.policy import Table, source_format
from duckanon.workbench.policy_text import PolicyText


def shell_word(text: str) -> str:
    r"""Quote a word for a shell, in double quotes where it has only single ones, which is easier to read.

    Examples:
        >>> shell_word("a 'b'")
        '"a \'b\'"'
    """
    is_plain = not set(text) & set('"$`\\!') and "'" in text
    return f'"{text}"' if is_plain else shlex.quote(text)


def command(page: str, policy: PolicyText, trial: Table, report: Path) -> str:
    """Return the command that does what a page does; `trial` is the table without columns that are undecided."""
    table, name = policy.table(), shell_word(policy.path.name)
    source = re.sub(r"(?<=://).*@", "", str(table.source.path or "..."))  # the name and password of a server
    if page == "columns":
        return f"duckanon policy init --from {shell_word(source)} --to {name}"
    if page == "risk":
        quasi, person = sql.literal(table.named("quasi_identifier")), _option("person", table.person)
        counted = f"FROM anon.k_anonymity('people', {quasi}{person})"
        return f"duckanon -c {shell_word(f'{_people(table, source)} {counted}')}"
    if page == "preview" and (table.is_linked or table.method.makes_cells):
        return f"duckanon release {name} --dry-run"
    if page == "preview":
        return f"duckanon -c {shell_word(f'{_people(table, source)} {_released(trial)} LIMIT 10')}"
    return (
        f"duckanon policy check {name}"
        if page == "method"
        else f"duckanon release {name} --report {shell_word(report.name)}"
    )


def _people(table: Table, source: str) -> str:
    """Write the statements that make the table of people."""
    given, file = table.source, sql.literal(source)
    if given.query:
        return f"CREATE VIEW source AS FROM {file}; CREATE TABLE people AS {given.query.rstrip(';')};"
    if given.table and source_format(source) == "duckdb":
        inside = ".".join(map(sql.name, given.table.split(".")))
        return f"ATTACH {file} AS opened (READ_ONLY); CREATE TABLE people AS FROM opened.{inside};"
    return f"CREATE TABLE people AS FROM {file};"


def _released(trial: Table) -> str:
    """Write the call of the job, with its options: who is counted, what is kept and may narrow down, l and t."""
    trees = {column: paths[0] for column, paths in trial.hierarchies.items() if column in trial.protected}
    called = methods.call(trial, "people", trees)
    if trial.person and trial.method.makes_classes:  # it is kept to be counted
        return f"SELECT * EXCLUDE ({sql.name(trial.person)}) {called}"
    return called


def _option(name: str, value: str | None) -> str:
    return "" if value is None else f", {name} := {sql.literal(value)}"
