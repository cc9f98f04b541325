"""Queries of a report: comparable columns, samples, and calls of the functions of `anon`.

Names of roles and measures in the report, for readers who are not statisticians; of promises: `quantities`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from duckanon._core.common.release_record import ColumnEntry, TableEntry

MOST_ROWS = 5_000  # compared: distributions and correlations of so many are as exact as a report may be

NEW_RECORDS = frozenset(
    {"synthesize", "spectral_release", "svd_swap", "pica", "swap", "copula_synthesize", "data_shuffle"}
)
"""Methods whose records belong to nobody: how many of them look the same says nothing about people."""

REFUSE_NARROWING = frozenset({"generalize", "recode", "boxes", "microaggregate", "release_linked"})
"""Methods that refuse a kept column which narrows down a protected one, but for those that are named in `narrowing`."""

_ABOUT_NOBODY = frozenset({"identifier", "drop", "person", "person_key", "pseudonym"})


def literal(text: str) -> str:
    """Write a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote(name: str) -> str:
    """Write the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def name_list(names: Sequence[str]) -> str:
    """Write names as a list for SQL."""
    return "[" + ", ".join(map(literal, names)) + "]"


def role_of(column: ColumnEntry) -> str:
    """Return the role of a column, however it is spelled: quasi-identifier, quasi identifier, quasi_identifier."""
    return str(column.get("role", "")).lower().replace("-", "_").replace(" ", "_")


@dataclass(frozen=True)
class Pair:
    """An original and its release in a connection, and their entry in the record."""

    con: duckdb.DuckDBPyConnection  # with everything registered
    original: str  # the tables' names, as the functions of `anon` take them
    released: str
    table: TableEntry  # the entry of the record
    hierarchies: Mapping[str, str]  # names of tables that hold hierarchies, by column

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Run a query."""
        result = self.con.execute(query)
        names = [column[0] for column in result.description or []]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def columns_of(self, name: str) -> list[str]:
        """Return the columns of a table in the connection."""
        result = self.con.execute(f"FROM query_table({literal(name)}) LIMIT 0")
        names = [column[0] for column in result.description or []]
        result.fetchall()
        return names

    def count(self, name: str) -> int:
        """Count the rows of a table."""
        return int(self.rows(f'SELECT count(*) AS "rows" FROM query_table({literal(name)})')[0]["rows"])

    def _in_both(self) -> list[ColumnEntry]:
        there = set(self.columns_of(self.original)) & set(self.columns_of(self.released))
        return [column for column in self.table["columns"] if column["name"] in there]

    def with_role(self, *roles: str) -> list[str]:
        """Return the columns of some roles that original and release have both."""
        return [column["name"] for column in self._in_both() if role_of(column) in roles]

    @property
    def columns_of_people(self) -> list[str]:
        """The released columns that say something about people, and no name or key."""
        return [column["name"] for column in self._in_both() if role_of(column) not in _ABOUT_NOBODY]

    @property
    def method(self) -> str:
        """The name of the method."""
        return str((self.table.get("method") or {}).get("name", ""))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the method."""
        return (self.table.get("method") or {}).get("parameters") or {}

    def person(self, name: str) -> str | None:
        """Return the column of a table that says which person a row belongs to, where it has one."""
        keys = [column["name"] for column in self.table["columns"] if role_of(column) in ("person", "person_key")]
        there = self.columns_of(name)
        return next((key for key in keys if key in there), None)

    def person_option(self, name: str) -> str:
        """Write the option that names the column of people in a table, where it has one."""
        person = self.person(name)
        return f", person := {literal(person)}" if person else ""

    def options(self) -> str:
        """Write the option of functions that read labels."""
        if not self.hierarchies:
            return ""
        entries = ", ".join(f"{literal(column)}: {literal(name)}" for column, name in self.hierarchies.items())
        return f", hierarchies := MAP {{{entries}}}"


def find_erased_columns(pair: Pair) -> list[str]:
    """Return the columns of which nothing is left: they say the same in every row of the release, as `*`."""
    constant = _constant(pair, pair.released, pair.columns_of_people)
    changed = set(constant) - set(_constant(pair, pair.original, constant))
    return [name for name in constant if name in changed]


def _constant(pair: Pair, table: str, names: Sequence[str]) -> list[str]:
    """Return the columns that have one value in all rows, or none in any."""
    if not names:
        return []
    same = [f"bool_and(rows_of.{quote(name)} IS NOT DISTINCT FROM one.{quote(name)})" for name in names]
    source = f"query_table({literal(table)})"
    [flags] = pair.con.execute(
        f"SELECT {', '.join(same)} FROM {source} AS rows_of CROSS JOIN (FROM {source} LIMIT 1) AS one"
    ).fetchall()
    return [name for name, is_same in zip(names, flags, strict=True) if is_same]


@contextlib.contextmanager
def sample_tables(pair: Pair) -> Iterator[tuple[Pair, int]]:
    """Draw at most `MOST_ROWS` of both tables into temporary ones, which are gone afterwards.

    Rows without a person are nobody's, and left out: a bar of them would be one of no people. The second result is the
    most rows that one person has in the original's sample: as many times k rows are k people.
    """
    names = ("duckanon_report_original", "duckanon_report_released")
    try:
        for name, source in zip(names, (pair.original, pair.released), strict=True):
            column = pair.person(source)
            of_people = f"WHERE {quote(column)} IS NOT NULL" if column else ""
            pair.con.execute(
                f"""CREATE OR REPLACE TEMP TABLE {name} AS
                    FROM (FROM query_table({literal(source)}) {of_people}) USING SAMPLE reservoir({MOST_ROWS} ROWS)"""
            ).fetchall()
        most, person = 1, pair.person(pair.original)
        if person:
            counted = pair.rows(
                f"""SELECT coalesce(max(rows_of), 1) AS most
                    FROM (SELECT count(*) AS rows_of FROM {names[0]} GROUP BY {quote(person)})"""
            )
            most = counted[0]["most"]
        yield replace(pair, original=names[0], released=names[1]), most
    finally:
        for name in names:
            pair.con.execute(f"DROP TABLE IF EXISTS temp.{name}").fetchall()


def comparable(pair: Pair, columns: Sequence[str]) -> list[str]:
    """Return the columns that can be compared: not nested ones, nor labels whose hierarchy is not there."""
    if columns and _compares(pair, columns):
        return list(columns)
    return [name for name in columns if _compares(pair, [name])]


def _compares(pair: Pair, columns: Sequence[str]) -> bool:
    try:
        pair.rows(utility_query(pair, columns) + " LIMIT 1")
    except duckdb.Error:
        return False
    return True


def utility_query(pair: Pair, columns: Sequence[str]) -> str:
    """Write the call of `anon.utility` for two tables."""
    return (
        f"FROM anon.utility({literal(pair.original)}, {literal(pair.released)}, {name_list(columns)}{pair.options()})"
    )


ROLES = {
    "identifier": "names a person",
    "drop": "",
    "pseudonym": "names a person",
    "person": "identifies the person of a row",
    "person_key": "identifies the person of a row",
    "quasi_identifier": "others may know it",
    "sensitive": "nobody should learn it",
    "numeric": "a number, to be synthesized",
    "spectral": "a number, to be synthesized",
    "free": "declared free by the policy",
}

MEASURES = {
    "distance": "distance to the nearest released record",
    "ambiguity": "how many records are as near as the nearest one",
    "uncertainty": "how much the nearest records differ",
    "class_size": "people who share a record",
    "exact_copies": "records that equal an original",
    "unique_copies": "copies of unique people",
    "near_copies": "near copies of the most isolated people",
    "noisy_copies": "copies with a little noise",
    "rare_values": "values of single people, column by column",
    "membership": "can an attacker tell members from others?",
    "isolated_membership": "can an attacker tell isolated members from others?",
}

STATISTICS = {
    "mean": "means, in standard deviations",
    "variance": "variances, as a share of the original's",
    "correlation": "correlations",
    "rank_correlation": "rank correlations",
    "ks": "distributions of numbers",
    "total_variation": "shares of categories",
}

TERMS = {
    "recipient": "Recipient",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "valid_until": "Valid until",
    "reviewers": "Reviewers",
}
