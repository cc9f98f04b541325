"""The promises of a policy, counted on what was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon.job.policy import Table
from duckanon.job.readback import Shape


@dataclass(frozen=True)
class Promise:
    """A promise, what was measured, and what both mean.

    Attributes:
        name: As in the policy; of a sensitive column with the column after it.
        asked, measured, passed: What the policy asks for, what was counted, and whether that is enough.
        words: The same for who has not read the policy.
        help: What to do where it is broken.
    """

    name: str
    asked: float | int | bool
    measured: float | int | None
    passed: bool
    words: str
    help: str

    def entry(self) -> dict[str, Any]:
        """Return what the record tells."""
        return {key: value for key, value in asdict(self).items() if key != "help"}


@dataclass(frozen=True)
class Tables:
    """The names of a table's forms in the job's database.

    Attributes:
        original, released: What was read, and what the method made of it.
        counted: What a reader of the file sees.
        reference: Other people, to compare with.
        hierarchies: The tables of hierarchies.
    """

    original: str
    released: str
    counted: str
    reference: str | None
    hierarchies: dict[str, str]


def promised(con: duckdb.DuckDBPyConnection, table: Table, form: Shape, tables: Tables) -> Iterator[Promise]:
    """Count what the policy promises of one table."""
    is_empty = sql.one(con, f"SELECT count(*) FROM {tables.released}")[0] == 0
    if table.method.makes_classes:
        yield _k(con, table, form, tables)
        for column in table.named("sensitive") if not is_empty else ():
            yield from _diversity(con, table, form, tables, column)
    yield _suppressed(con, table, tables)
    if is_empty:  # the promise of suppressed people, or k, is broken then
        return
    if table.promises.prediction:
        yield from _prediction(con, table, tables)
    yield from _utility(con, table, tables)


def people(con: duckdb.DuckDBPyConnection, table: Table, name: str) -> tuple[int, int | None]:
    """Return the rows of a table, and its people where the policy says whose rows they are."""
    person = f"count(DISTINCT {sql.name(table.person)})" if table.person else "NULL"
    row_count, people_count = sql.one(con, f"SELECT count(*), {person} FROM {name}")
    return row_count, people_count


def left_out(con: duckdb.DuckDBPyConnection, table: Table, tables: Tables) -> dict[str, Any]:
    """Count who is not in the release: people all of whose rows are gone; without a person, rows."""
    rows, of_people = people(con, table, tables.original)
    if not table.method.makes_classes:
        released_rows = min(rows, sql.one(con, f"SELECT count(*) FROM {tables.released}")[0])
        asked_rows = getattr(table.method, "rows", None)
        gone = 0 if asked_rows else rows - released_rows
        return {"rows": gone, "people": None, "fraction": gone / rows, "limit": _limit(table)}
    kept_rows, kept_people = people(con, table, tables.counted)
    gone_people = None if of_people is None or kept_people is None else of_people - kept_people
    fraction = (rows - kept_rows) / rows if gone_people is None else gone_people / max(of_people or 0, 1)
    return {"rows": rows - kept_rows, "people": gone_people, "fraction": fraction, "limit": _limit(table)}


def _limit(table: Table) -> float:
    return table.promises.max_suppressed_fraction


def _k(con: duckdb.DuckDBPyConnection, table: Table, form: Shape, tables: Tables) -> Promise:
    asked = table.promises.k or 0
    nulls = getattr(table.method, "nulls", None) or "value"
    who = "people" if table.person else "rows"
    count = sql.one(con, f"SELECT count(*) FROM {tables.counted}")[0]
    measured = 0
    if count:
        person = sql.literal(table.person)
        classes = sql.literal(form.classes)
        measured = sql.one(
            con,
            f"SELECT k FROM anon.k_anonymity({sql.literal(tables.counted)}, {classes}, nulls := {sql.literal(nulls)}, "
            f"person := {person})",
        )[0]
    passed = measured >= asked
    words = (
        f"Every class has at least {measured} {who}."
        if passed
        else f"The smallest class has {measured} {who}; {asked} were promised."
    )
    return Promise("k", asked, measured, passed, words, "fewer or coarser quasi-identifiers, or a smaller k")


def _diversity(
    con: duckdb.DuckDBPyConnection, table: Table, form: Shape, tables: Tables, column: str
) -> Iterator[Promise]:
    promises = table.promises
    arguments = (
        f"{sql.literal(tables.counted)}, {sql.literal(form.classes)}, {sql.literal(column)}, "
        f"person := {sql.literal(table.person)}"
    )
    if promises.l is not None:
        yield _l(con, table, arguments, column, promises.l)
    if promises.t is not None:
        measured = sql.one(con, f"SELECT t FROM anon.t_closeness({arguments})")[0]
        passed = round(measured, 12) <= promises.t
        words = f"In every class, {column} is distributed as in the whole release, up to a distance of {measured:.3g}."
        yield Promise(f"t of {column}", promises.t, measured, passed, words, "larger classes (k), or a larger t")


def _l(con: duckdb.DuckDBPyConnection, table: Table, arguments: str, column: str, asked: float) -> Promise:
    kind, helpful = table.promises.l_kind, "larger classes (k), coarser quasi-identifiers, or a smaller l"
    rows = con.execute(f"SELECT measure, l, c FROM anon.l_diversity({arguments})").fetchall()
    if kind == "recursive":
        # a class with fewer than l values has no row for l, and keeps no promise about the l-th
        excess = next((c for measure, level, c in rows if measure == "recursive" and level == asked), float("inf"))
        words = f"In every class the top {column} is less frequent than {table.promises.c:g} times the rare values."
        passed = excess < table.promises.c
        measured = excess if excess < float("inf") else None
        return Promise(f"recursive l of {column}", table.promises.c, measured, passed, words, helpful)
    measured = next(level for measure, level, _ in rows if measure == kind)
    words = f"Every class has at least {measured:.4g} values of {column}" + (
        "." if kind == "distinct" else ", counted by their entropy."
    )
    return Promise(f"l of {column}", asked, measured, round(measured, 9) >= asked, words, helpful)


def _suppressed(con: duckdb.DuckDBPyConnection, table: Table, tables: Tables) -> Promise:
    gone = left_out(con, table, tables)
    who = "people" if gone["people"] is not None else "rows"
    count = gone["people"] if gone["people"] is not None else gone["rows"]
    passed = gone["fraction"] <= gone["limit"]
    words = f"{count} {who} were suppressed ({gone['fraction']:.4%}; limit {gone['limit']:.4%})."
    helpful = (
        "a smaller k, fewer quasi-identifiers, a larger max_suppressed_fraction, or a new plan where one was reused"
    )
    return Promise("max_suppressed_fraction", gone["limit"], gone["fraction"], passed, words, helpful)


def _prediction(con: duckdb.DuckDBPyConnection, table: Table, tables: Tables) -> Iterator[Promise]:
    rows = con.execute(
        f'SELECT measure, coalesce(shift_bound, value), "limit", pass, answer '
        f"FROM anon.privacy_test({sql.literal(tables.original)}, {sql.literal(tables.released)}, "
        f"{sql.literal(compared(table))}, reference := {sql.literal(tables.reference)}, "
        f"hierarchies := {sql.literal(tables.hierarchies or None)})"
    ).fetchall()
    for measure, measured, limit, passed, answer in rows:
        than = "another sample of the population" if tables.reference else "all other records"
        words = f"The release reveals as little about its people as {than} ({measure}): {answer}."
        helpful = "larger clusters, a larger k, or more records; anon.privacy_test shows the measures"
        yield Promise(f"prediction: {measure}", limit, measured, bool(passed), words, helpful)


def _utility(con: duckdb.DuckDBPyConnection, table: Table, tables: Tables) -> Iterator[Promise]:
    promises, helpful = table.promises, "another method, a smaller k, or a lower demand on utility"
    arguments = (
        f"{sql.literal(tables.original)}, {sql.literal(tables.released)}, {sql.literal(compared(table))}, "
        f"hierarchies := {sql.literal(tables.hierarchies or None)}"
    )
    for name, query, words in (
        (
            "max_correlation_difference",
            "SELECT any_value(median_difference) FROM anon.utility({}) WHERE statistic = 'correlation'",
            "Correlations differ from the original's by {} in the median.",
        ),
        (
            "max_marginal_difference",
            "SELECT max(abs(difference)) FROM anon.utility({}) WHERE statistic IN ('ks', 'total_variation')",
            "The distribution of no column differs from the original's by more than {}.",
        ),
        (
            "max_detectability_auc",
            "SELECT auc FROM anon.detectability({}) WHERE comparison = 'released'",
            "A classifier tells released from original records with an AUC of {}.",
        ),
    ):
        asked = getattr(promises, name)
        if asked is not None:
            measured = sql.one(con, query.format(arguments))[0]
            passed = measured is not None and measured <= asked
            shown = "an unknown amount" if measured is None else f"{measured:.3g}"
            yield Promise(name, asked, measured, passed, words.format(shown), helpful)


def compared(table: Table) -> list[str]:
    """Return the columns whose values are compared with the original's."""
    if table.method.makes_classes:
        return table.named("quasi_identifier")
    return table.named("numeric", "quasi_identifier", "sensitive")
