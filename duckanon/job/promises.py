"""The promises of a policy, counted on what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from duckanon._bridge import sql
from duckanon._bridge.shared_values import count_shared_values
from duckanon._core.common.arrays import spell_count
from duckanon._core.common.release_record import PromiseEntry, SuppressedEntry
from duckanon._methods.synthesize.declared import K
from duckanon.job import methods
from duckanon.job.policy import Table
from duckanon.job.readback import Shape

_FEWEST = 3  # people who have as many rows, or nobody


@dataclass(frozen=True)
class Promise:
    """A promise, what was measured, and what both mean."""

    name: str  # as in the policy; of a sensitive column with the column after it
    asked: float | int | bool
    measured: float | int | None  # None: nothing was reached
    passed: bool
    words: str  # the same for who has not read the policy
    help: str  # what to do where it is broken

    def entry(self) -> PromiseEntry:
        """Return what the record tells."""
        return {
            "name": self.name,
            "asked": self.asked,
            "measured": self.measured,
            "passed": self.passed,
            "words": self.words,
        }


@dataclass(frozen=True)
class Tables:
    """The names of a table's forms in the job's database."""

    original: str  # what was read
    released: str  # what the method made of it
    counted: str  # what a reader of the file sees
    reference: str | None  # other people, to compare with
    trees: dict[str, list[str]]  # the tables of hierarchies, by column
    has_former_people: bool = False  # whether the release has people who are not in the original any more

    @property
    def plan(self) -> str:
        """The plan by which it was released, if there was one."""
        return f"plan_of_{self.released}"

    @property
    def hierarchies(self) -> dict[str, str]:
        """The table of each column's hierarchy, for methods that take one only."""
        return {column: names[0] for column, names in self.trees.items()}


def count_promises(con: sql.Connection, table: Table, form: Shape, tables: Tables) -> Iterator[Promise]:
    """Count what the policy promises of one table."""
    is_empty = sql.fetch_row(con, f"SELECT count(*) FROM {tables.released}")[0] == 0
    if table.method.makes_classes and not table.is_linked:
        yield _k(con, table, form, tables)
        for column in table.with_roles("sensitive") if not is_empty else ():
            yield from _diversity(con, table, form, tables, column)
    yield _count_suppressed(con, table, tables)
    if is_empty:  # the promise of suppressed people, or k, is broken then
        return
    if table.method.name in methods.SHARED_VALUES:
        yield _count_shared_values(con, table, tables)
    if table.person and table.columns[table.person].numbered:
        yield _rows_of_people(con, table, tables)
    yield from compare_new_records(con, table, tables)


def compare_new_records(con: sql.Connection, table: Table, tables: Tables) -> Iterator[Promise]:
    """Count what the policy promises of the released rows beside the original ones."""
    if table.promises.prediction:
        yield from _prediction(con, table, tables)
    yield from _utility(con, table, tables)


def people(con: sql.Connection, table: Table, name: str) -> tuple[int, int | None]:
    """Return the rows of a table, and its people where the policy says whose rows they are."""
    person = f"count(DISTINCT {sql.quote(table.person)})" if table.person else "NULL"
    row_count, people_count = sql.fetch_row(con, f"SELECT count(*), {person} FROM {name}")
    return row_count, people_count


def suppression_entry(con: sql.Connection, table: Table, tables: Tables) -> SuppressedEntry:
    """Count who is not in the release: people all of whose rows are gone; without a person, and of events, rows."""
    rows, of_people = people(con, table, tables.original)
    limit = table.promises.max_suppressed_fraction
    if not table.method.makes_classes:
        released_rows = min(rows, sql.fetch_row(con, f"SELECT count(*) FROM {tables.released}")[0])
        asked_rows = getattr(table.method, "rows", None)
        gone = 0 if asked_rows else rows - released_rows
        return {"rows": gone, "people": None, "fraction": gone / rows, "limit": limit}
    counted = tables.counted
    if tables.has_former_people:
        counted = f"{counted} SEMI JOIN {tables.original} USING ({sql.quote(table.person or '')})"
    kept_rows, kept_people = people(con, table, counted)
    gone_people = None if of_people is None or kept_people is None else of_people - kept_people
    by_rows = gone_people is None or table.is_linked
    fraction = (rows - kept_rows) / rows if by_rows else (gone_people or 0) / max(of_people or 0, 1)
    gone_rows = max(rows - kept_rows, 0) if tables.has_former_people else rows - kept_rows
    return {"rows": gone_rows, "people": gone_people, "fraction": fraction, "limit": limit}


def _k(con: sql.Connection, table: Table, form: Shape, tables: Tables) -> Promise:
    asked = table.promises.k or 0
    nulls = getattr(table.method, "nulls", None) or "value"
    measured = 0
    if sql.fetch_row(con, f"SELECT count(*) FROM {tables.counted}")[0]:
        arguments = f"{sql.literal(tables.counted)}, {sql.literal(form.classes)}, nulls := {sql.literal(nulls)}"
        query = f"SELECT k FROM anon.k_anonymity({arguments}, person := {sql.literal(table.person)})"
        measured = sql.fetch_row(con, query)[0]
    passed = measured >= asked
    size = spell_count(measured, "person", "people") if table.person else spell_count(measured, "row", "rows")
    words = f"Every class has at least {size}." if passed else f"The smallest class has {size}; {asked} were promised."
    return Promise("k", asked, measured, passed, words, "fewer or coarser quasi-identifiers, or a smaller k")


def _diversity(con: sql.Connection, table: Table, form: Shape, tables: Tables, column: str) -> Iterator[Promise]:
    promises = table.promises
    arguments = (
        f"{sql.literal(tables.counted)}, {sql.literal(form.classes)}, {sql.literal(column)}, "
        f"person := {sql.literal(table.person)}"
    )
    if promises.l is not None:
        yield _l(con, table, arguments, column, promises.l)
    if promises.t is not None:
        measured = sql.fetch_row(con, f"SELECT t FROM anon.t_closeness({arguments})")[0]
        passed = round(measured, 12) <= promises.t
        words = f"In every class, {column} is distributed as in the whole release, up to a distance of {measured:.3g}."
        yield Promise(f"t of {column}", promises.t, measured, passed, words, "larger classes (k), or a larger t")


def _l(con: sql.Connection, table: Table, arguments: str, column: str, asked: float) -> Promise:
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
    words = f"Every class has at least {spell_count(measured, 'value', 'values')} of {column}" + (
        "." if kind == "distinct" else ", counted by their entropy."
    )
    return Promise(f"l of {column}", asked, measured, round(measured, 9) >= asked, words, helpful)


def _count_suppressed(con: sql.Connection, table: Table, tables: Tables) -> Promise:
    gone = suppression_entry(con, table, tables)
    by_rows = gone["people"] is None or table.is_linked
    count = (
        spell_count(gone["rows"], "row was", "rows were")
        if by_rows
        else spell_count(gone["people"] or 0, "person was", "people were")
    )
    passed = gone["fraction"] <= gone["limit"]
    words = f"{count} suppressed ({gone['fraction']:.4%}; limit {gone['limit']:.4%})."
    helpful = (
        "a smaller k, fewer quasi-identifiers, a larger max_suppressed_fraction, or a new plan where one was reused"
    )
    return Promise("max_suppressed_fraction", gone["limit"], gone["fraction"], passed, words, helpful)


def _count_shared_values(con: sql.Connection, table: Table, tables: Tables) -> Promise:
    k = getattr(table.method, "k", None) or K.default
    cells = count_shared_values(
        con, tables.original, tables.released, methods.columns_to_protect(table), k, table.person
    ).rare
    words = (
        f"No category of fewer than {k} people and no number of fewer than three is released."
        if cells == 0
        else f"{spell_count(cells, 'released value is that', 'released values are those')} of fewer people than "
        f"promised: {k} for categories, three for numbers."
    )
    return Promise("rare_values", 0, cells, cells == 0, words, "running the job again, or a larger k")


def _rows_of_people(con: sql.Connection, table: Table, tables: Tables) -> Promise:
    """Count new people with as many rows as only one or two people have, or with more than k people have."""
    person, k = sql.quote(table.person or ""), getattr(table.method, "k", None) or K.default
    sizes = f"(SELECT count(*) AS size FROM {{}} WHERE {person} IS NOT NULL GROUP BY {person})"
    count = sql.fetch_row(
        con,
        f"WITH held AS (FROM {sizes.format(tables.original)}), shown AS (FROM {sizes.format(tables.released)}), "
        f"longest AS (SELECT coalesce(min(size), 1) AS most FROM (FROM held ORDER BY size DESC LIMIT {k})), "
        "counts AS (SELECT least(size, most) AS size, count(*) AS people FROM held, longest GROUP BY ALL) "
        "SELECT count(*) FROM shown CROSS JOIN longest LEFT JOIN counts ON shown.size = counts.size "
        f"WHERE shown.size > most OR people < {_FEWEST}",
    )[0]
    words = (
        f"Nobody has more rows than {k} people of the original have, or as many as only one or two."
        if count == 0
        else f"{spell_count(count, 'new person has', 'new people have')} as many rows as only one or two people of the "
        f"original, or more than {k} have."
    )
    return Promise("rows_of_people", 0, count, count == 0, words, "running the job again, or a larger k")


def _prediction(con: sql.Connection, table: Table, tables: Tables) -> Iterator[Promise]:
    rows = con.execute(
        f'SELECT measure, coalesce(shift_bound, value), "limit", pass, answer '
        f"FROM anon.privacy_test({sql.literal(tables.original)}, {sql.literal(tables.released)}, "
        f"{sql.literal(table.protected)}, reference := {sql.literal(tables.reference)}, "
        f"hierarchies := {sql.literal(tables.hierarchies or None)})"
    ).fetchall()
    for measure, measured, limit, passed, answer in rows:
        than = "another sample of the population" if tables.reference else "all other records"
        words = f"The release reveals as little about its people as {than} ({measure}): {answer}."
        helpful = "larger clusters, a larger k, or more records; anon.privacy_test shows the measures"
        yield Promise(f"prediction: {measure}", limit, measured, bool(passed), words, helpful)


def _utility(con: sql.Connection, table: Table, tables: Tables) -> Iterator[Promise]:
    promises, helpful = table.promises, "another method, a smaller k, or a lower demand on utility"
    arguments = (
        f"{sql.literal(tables.original)}, {sql.literal(tables.released)}, {sql.literal(table.protected)}, "
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
            measured = sql.fetch_row(con, query.format(arguments))[0]
            passed = measured is not None and measured <= asked
            shown = "an unknown amount" if measured is None else f"{measured:.3g}"
            yield Promise(name, asked, measured, passed, words.format(shown), helpful)


def count_linked(con: sql.Connection, releases: Mapping[str, tuple[Table, Shape, Tables]]) -> dict[str, Promise]:
    """Count, for each table whose rows a pseudonym links, the people whose rows are in exactly the same classes.

    A class of ten hides nobody whose rows, taken together, are in a set of classes that nobody else has. Where a
    pseudonym is released, the people of one such set are counted (as linked_k of anon.k_anonymity, over all tables at
    once). Tables of events have a promise of their own, `known_events`.
    """
    counted = {name: one for name, one in releases.items() if methods.linking(one[0]) and not one[0].is_linked}
    parts = [
        (tables.counted, person, form.classes)
        for table, form, tables in counted.values()
        for person in methods.linking(table)
    ]
    if not parts:
        return {}
    measured = count_linked_people(con, parts)
    together = (
        "all tables, those of events left out," if any(one[0].is_linked for one in releases.values()) else "all tables,"
    )
    return {name: _promise_of_linked(table, measured, together) for name, (table, _, _) in counted.items()}


def count_linked_people(con: sql.Connection, parts: Sequence[tuple[str, str, Sequence[str]]]) -> int:
    """Count the people of the rarest combination of classes, given each table, its column of people and its classes."""
    rows = []
    for number, (table, person, classes) in enumerate(parts):
        # a class is named by hashes, since texts put together could be read in two ways
        cells = " || ".join(f"md5(coalesce('=' || {sql.quote(column)}::VARCHAR, ''))" for column in classes)
        rows.append(
            f"SELECT {number} AS part, {sql.quote(person)}::VARCHAR AS whose, md5({cells}) AS class FROM {table}"
        )
    return int(
        sql.fetch_row(
            con,
            f"WITH people AS (SELECT list_sort(list(DISTINCT part || ' ' || class), 'ASC', 'NULLS LAST') AS classes "
            f"FROM ({' UNION ALL '.join(rows)}) WHERE whose IS NOT NULL GROUP BY whose) "
            "SELECT coalesce(min(size), 0) FROM (SELECT count(*) AS size FROM people GROUP BY classes)",
        )[0]
    )


def _promise_of_linked(table: Table, measured: int, together: str) -> Promise:
    asked = table.promises.linked_k if table.promises.linked_k is not None else table.promises.k or 0
    words = (
        f"Linked by pseudonym across {together} at least "
        f"{spell_count(measured, 'person shares', 'people share')} every combination of classes."
        if measured >= asked
        else f"Linked by pseudonym across {together} the rarest combination of classes belongs to "
        f"{spell_count(measured, 'person', 'people')}; {asked} were promised."
    )
    helpful = "dropping the pseudonym, coarser quasi-identifiers, or a smaller linked_k where that is acceptable"
    return Promise("linked_k", asked, measured, measured >= asked, words, helpful)
