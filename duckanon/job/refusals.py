"""Refusals of our functions as the job's errors, among them columns that narrow down one that is protected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb

from duckanon._bridge import sql
from duckanon.job.errors import FileProblem, PolicyError, PromiseBroken
from duckanon.job.policy_file import PolicyFile

_UNREACHABLE = re.compile(
    "must be at most the number|would have to be left out|put at least|asks for more|cannot(?! be computed)|no release|"
    "too few|could not|is left"
)
"""Words of our functions where no release of this table keeps a promise; other refusals are about parameters."""

MOST_ROWS = 10_000
"""Rows that are looked at: the release looks at all of its classes, this tells within seconds what it will refuse."""

_JUDGED = re.compile(r'"(?P<kept>[^"]+)"(?: in keep)? narrows down "(?P<of>[^"]+)"')
_COLUMN = re.compile(r'column "((?:[^"]|"")+)"')
_OPTION = re.compile(r"(anon\.\w+: )(\w+)\b")
_POLICY_WORDS = [
    (re.compile(r"(has|holds) \d+ NULLs"), r"\1 NULLs"),
    (re.compile(r"remove (them|these rows)"), "leave these rows out by source.query"),
    (re.compile(r"\b(say|with) (\w+) := '(\w+)'"), r'write \2 = "\3" under [method]'),
    (re.compile(r"\b(rename|cast) it\b( first)?"), r"\1 it in source.query"),
]
"""What the ways out of our functions are in a policy."""
_UNJUDGED = "too few rows to tell whether"

Judged = tuple[str, str, bool | None]
"""A column that is kept, one that is protected, and whether it narrows it down; None: too few rows tell."""


@contextmanager
def translate_errors(file: PolicyFile, *tables: str, policy_names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn refusals of our functions into the job's errors; what DuckDB says beyond them may quote a person's value.

    What is refused of the tables' columns is said in the words of the policy, with their lines; `policy_names` tells
    what the policy calls tables and columns to which the job gave names of its own.
    """
    try:
        yield
    except duckdb.Error as error:
        why = sql.reason(error)
        if not why.startswith("anon."):
            raise FileProblem(f"{file.path}: the release failed ({why}).") from None
        for name, policy_name in (policy_names or {}).items():
            why = policy_name.join(re.split(rf"\b{name}\b", why))
        if narrowed := _narrowing_errors(file, tables, read_judged_pairs(why)):
            raise PolicyError("\n".join(narrowed)) from None
        if _UNREACHABLE.search(why):
            raise PromiseBroken(
                f"{why}. What may help: a smaller k or l, fewer or coarser quasi-identifiers, or a larger "
                "max_suppressed_fraction."
            ) from None
        raise _in_policy_words(file, tables, why) from None


def _in_policy_words(file: PolicyFile, tables: Sequence[str], why: str) -> PolicyError:
    """Say what a function refuses as the policy calls it, with the line of the column or the option."""
    for pattern, words in _POLICY_WORDS:
        why = pattern.sub(words, why)
    columns = _COLUMN.findall(why)
    named = [(name, column) for name in tables for column in columns if column in file.policy.tables[name].columns]
    if named:
        name, column = named[0]
        path = ("method", "methods", column) if "the method of" in why else ("columns", column)
        return file.wrong(name, path, re.sub(rf"(?<!\ba ){_COLUMN.pattern}", r"columns.\1", f"{why}."))
    option = _OPTION.match(why)
    for name in tables:
        table = file.policy.tables[name]
        if option and option[2] in type(table.method).model_fields:
            return file.wrong(name, ("method", option[2]), f"{option[1]}method.{why[len(option[1]) :]}.")
        return file.wrong(name, ("method",), f"{why}.")
    return PolicyError(f"{file.path}: {why}.")


def foreseen(
    con: sql.Connection,
    rows: str,
    protected: Sequence[str],
    kept: Sequence[str],
    k: int,
    hierarchies: Mapping[str, str] | None = None,
) -> list[Judged]:
    """Return the pairs that a release would refuse, judged by a plan for a sample of a query's rows."""
    if not protected or not kept:
        return []
    listed = sql.quote_all([*protected, *kept])
    option = f", hierarchies := {sql.literal(hierarchies)}" if hierarchies else ""
    try:
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE looked_at AS SELECT {listed} FROM ({rows}) "
            f"USING SAMPLE reservoir({MOST_ROWS} ROWS) REPEATABLE (1)"
        ).fetchall()
        con.execute(
            "CREATE OR REPLACE TEMP TABLE foreseen_plan AS FROM anon.plan('looked_at', "
            f"{sql.literal(list(protected))}, {k}{option})"
        ).fetchall()
        pairs: list[Judged] = con.execute(
            "SELECT kept_column, column_name, narrows FROM anon.kept_column_risk('looked_at', "
            f"{sql.literal(list(protected))}, {sql.literal(list(kept))}, plan := 'foreseen_plan') "
            "WHERE narrows IS DISTINCT FROM false"
        ).fetchall()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # another refusal, about which the release speaks
        return []
    return pairs


def read_judged_pairs(refusal: str) -> list[Judged]:
    """Return the pairs that a refusal of one of our functions names.

    Examples:
        >>> text = 'anon.boxes: the column "age" in keep narrows down "born", "year" narrows down "born"; omit them.'
        >>> read_judged_pairs(text)
        [('age', 'born', True), ('year', 'born', True)]
    """
    known, _, unknown = refusal.partition(_UNJUDGED)
    return [
        (pair["kept"], pair["of"], narrows)
        for text, narrows in ((known, True), (unknown, None))
        for pair in _JUDGED.finditer(text)
    ]


def _narrowing_errors(file: PolicyFile, tables: Sequence[str], judged: Sequence[Judged]) -> list[str]:
    errors = []
    for name in tables:
        of_table = [pair for pair in judged if pair[0] in file.policy.tables[name].columns]
        errors += [str(error) for error in [narrowing_error(file, name, of_table)] if error]
    return errors


def narrowing_error(file: PolicyFile, table: str, judged: Iterable[Judged]) -> PolicyError | None:
    """Make the error about all pairs, a line each, in the words of a policy; None where there is none."""
    ways_out = "give it the role quasi_identifier or drop, or name it in narrowing under [method]."
    errors = [
        file.wrong(table, ("columns", kept), f"{finding(f'columns.{kept}', protected, narrows)}; {ways_out}")
        for kept, protected, narrows in judged
    ]
    return PolicyError("\n".join(map(str, errors))) if errors else None


def finding(kept: str, protected: str, narrows: bool | None) -> str:
    """Say what a column tells of another."""
    beginning = "" if narrows else "there are too few rows to tell whether "
    return f"{beginning}{kept} narrows down {protected}"
