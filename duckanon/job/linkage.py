"""Linkage by pseudonym: the rows of one person, in all tables of a job.

A class of ten hides nobody whose rows, taken together, are in a set of classes that nobody else has. Where a pseudonym
is released, the people of one such set are counted (as linked_k of anon.k_anonymity, over all tables at once).
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from duckanon._bridge import sql
from duckanon.job.policy import Table
from duckanon.job.promises import Promise, Tables
from duckanon.job.readback import Shape

Release = tuple[Table, Shape, Tables]


def linked(con: duckdb.DuckDBPyConnection, releases: Mapping[str, Release]) -> dict[str, Promise]:
    """Count, for each table whose rows a pseudonym links, the people whose rows are in exactly the same classes."""
    parts = [
        f"SELECT {number} AS part, {sql.name(column)}::VARCHAR AS whose, {_class(form)} AS class FROM {tables.counted}"
        for number, (table, form, tables) in enumerate(releases.values())
        for column in linking(table)
    ]
    if not parts:
        return {}
    measured = sql.one(
        con,
        f"WITH people AS (SELECT list_sort(list(DISTINCT part || ' ' || class), 'ASC', 'NULLS LAST') AS classes "
        f"FROM ({' UNION ALL '.join(parts)}) WHERE whose IS NOT NULL GROUP BY whose) "
        "SELECT coalesce(min(size), 0) FROM (SELECT count(*) AS size FROM people GROUP BY classes)",
    )[0]
    return {name: _promise(table, measured) for name, (table, _, _) in releases.items() if linking(table)}


def _class(form: Shape) -> str:
    """Return the expression of a class's name: of hashes, since texts put together could be read in two ways."""
    cells = (f"md5(coalesce('=' || {sql.name(column)}::VARCHAR, ''))" for column in form.classes)
    return f"md5({' || '.join(cells)})"


def linking(table: Table) -> list[str]:
    """Return the released columns that tell which rows are one person's.

    Where the policy says which person a row belongs to, other pseudonyms are those of doctors, houses and the like.
    """
    person = table.person
    if person:
        return [person] if table.columns[person].pseudonym else []
    return table.named("pseudonym") if table.method.makes_classes else []


def _promise(table: Table, measured: int) -> Promise:
    asked = table.promises.linked_k if table.promises.linked_k is not None else table.promises.k or 0
    words = (
        f"Linked by pseudonym across all tables, at least {measured} people share every combination of classes."
        if measured >= asked
        else f"Linked by pseudonym across all tables, the rarest combination of classes belongs to {measured} "
        f"{'person' if measured == 1 else 'people'}; "
        f"{asked} were promised."
    )
    helpful = "dropping the pseudonym, coarser quasi-identifiers, or a smaller linked_k where that is acceptable"
    return Promise("linked_k", asked, measured, measured >= asked, words, helpful)
