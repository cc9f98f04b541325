"""The table that a policy releases: its columns, a sample of its people, and their risk for any choice of columns."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon.job import run, sources
from duckanon.job.policy import UNDECIDED, Table
from duckanon.workbench.counts import Counts, Risk
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.works import Work

MOST_PEOPLE = 50_000
"""People of the sample on which methods are tried."""

_MOST_COUNTED = 5_000_000
"""Rows up to which risk is counted on the whole table: of 1.4 million rows of nine columns, codes take 25 MB."""

_EXAMPLES = 3
_USUAL_K = 10


@dataclass(frozen=True)
class Glance:
    """A column as `anon.assess` sees it in the sample, with values that at least k people share."""

    name: str
    kind: str
    distinct: int
    seen: str  # the role that assess suggests
    why: str
    follows: list[str]  # the columns that it follows from
    examples: list[str]


class Bench:
    """A table in memory, and what was found out about it."""

    def __init__(self, policy: PolicyText) -> None:
        self.policy = policy
        self.con = run.connection()
        self.rows = 0
        self.glances: list[Glance] = []
        self.is_sampled = False
        self.counted = "people"
        self.weight: str | None = None
        self._sampled_by: tuple[str | None, int] | None = None
        self._lock = threading.Lock()
        self._populations: dict[tuple[str | None, ...], list[tuple[str, float, str]]] = {}
        self._counts = {name: Counts(name) for name in ("people", "sample")}

    @property
    def most_people(self) -> int:
        """People of the sample, at most."""
        return MOST_PEOPLE

    @property
    def least_shown(self) -> int:
        """People who must share a value before a page shows it."""
        return max(self.policy.table().promises.k or _USUAL_K, _USUAL_K)

    def open(self, work: Work) -> None:
        """Read the table, draw the sample and look at its columns."""
        table = self.policy.table()
        work.say("reading the table")
        con = work.cursor(self.con)
        file = self.policy.file()
        folder = sql.literal(str(self.policy.path.parent.resolve()))
        con.execute(f"SET file_search_path = {folder}").fetchall()
        try:
            query = sources.open_source(con, table.source, sources.files_of(file, table.source)).query
            types = sources.check_columns(con, file, self.policy.name, query)
            texts = [
                f"{sql.quote(name)}::VARCHAR AS {sql.quote(name)}" for name in types if types[name].startswith("ENUM")
            ]
            replaced = f"REPLACE ({', '.join(texts)})" if texts else ""
            con.execute(f"CREATE TABLE memory.main.people AS SELECT * {replaced} FROM ({query})").fetchall()
        except duckdb.Error as error:
            raise sources.unreadable(table.source, error) from None
        con.execute("USE memory.main").fetchall()  # a database file may have been attached and used
        self.rows = int(sql.fetch_row(con, "SELECT count(*) FROM people")[0])
        work.say("drawing a sample")
        self.sample(con)
        work.say("looking at the columns")
        self._glance(con)
        self.counted = "people" if self.rows <= _MOST_COUNTED else "sample"
        work.say("counting unique people")
        kept = [name for name, one in table.columns.items() if one.role not in ("identifier", "drop", "person")]
        self._counts[self.counted].prepare(con, kept)
        self.risk(self.quasi_identifiers(), con)

    def sample(self, con: sql.Connection) -> None:
        """Draw the sample anew where the column of people, or k, is another one: all rows of some people."""
        table = self.policy.table()
        if self._sampled_by == (table.person, 0):
            return
        with self._lock:
            if table.person:
                chosen = sql.quote(table.person)
                known = f"SELECT DISTINCT {chosen} FROM people WHERE {chosen} IS NOT NULL"
                ranking = f"SELECT * FROM ({known}) ORDER BY hash({chosen}), {chosen}"
                people = sql.fetch_row(con, f"SELECT count(DISTINCT {chosen}) FROM people")[0]
                of_nobody = f"{chosen} IS NULL AND hash(rowid) % {people} < {MOST_PEOPLE}"  # as many as of people
                query = f"SELECT * FROM people WHERE {chosen} IN ({ranking} LIMIT {MOST_PEOPLE}) OR ({of_nobody})"
            else:
                people = self.rows
                query = f"SELECT * FROM people ORDER BY hash(rowid), rowid LIMIT {MOST_PEOPLE}"
            self.is_sampled = people > MOST_PEOPLE
            con.execute(f"CREATE OR REPLACE TABLE sample AS {query if self.is_sampled else 'FROM people'}").fetchall()
            self._sampled_by = (table.person, 0)
            self._counts["sample"] = Counts("sample")

    def _glance(self, con: sql.Connection) -> None:
        """Look at the columns; examples of values that fewer than k people of the sample share are not taken."""
        table = self.policy.table()
        rows = con.execute(
            "SELECT column_name, kind, distinct_values, role, why, determined_by FROM anon.assess('sample')"
        ).fetchall()
        size = f"count(DISTINCT {sql.quote(table.person)})" if table.person else "count(*)"
        self.glances = []
        for name, kind, distinct, role, why, follows in rows:
            quoted = sql.quote(name)
            values = con.execute(
                f"SELECT {quoted}::VARCHAR FROM sample WHERE {quoted} IS NOT NULL GROUP BY {quoted} "
                f"HAVING {size} >= {self.least_shown} ORDER BY {size} DESC, {quoted} LIMIT {_EXAMPLES}"
            ).fetchall()
            examples = [value[:24] for (value,) in values] if name != table.person else []
            self.glances.append(Glance(name, kind, distinct, role, why, list(follows or []), examples))
            if role == "weight":
                self.weight = name
        # undecided ones first, and so they stay: a row that jumps away when it is decided takes the focus with it
        self.glances.sort(key=lambda one: table.columns[one.name].role != UNDECIDED)

    def quasi_identifiers(self) -> list[str]:
        """Return the columns that others may know, as the policy says now."""
        return self.policy.table().with_roles("quasi_identifier")

    def trial(self, **promises: Any) -> Table:
        """Return the table to try on the sample: undecided columns are left out, promises may be others."""
        table = self.policy.table()
        columns = {
            name: column.model_copy(update={"role": "drop"} if column.role == UNDECIDED or column.is_pseudonym else {})
            for name, column in table.columns.items()
        }
        changed = {"columns": columns, "promises": table.promises.model_copy(update=promises)}
        return table.model_copy(update=changed)

    def risk(self, columns: Sequence[str], con: sql.Connection | None = None, table: str | None = None) -> Risk:
        """Count people who look the same in some columns, in the table that is counted or in another; remembered."""
        cursor = con or self.con.cursor()
        try:
            return self._counts[table or self.counted].risk(cursor, columns, self.policy.table().person)
        finally:
            if con is None:
                cursor.close()

    def risks_without(self, columns: Sequence[str], con: sql.Connection) -> Iterator[tuple[str, Risk]]:
        """Yield each column with the risk of all others."""
        return self._counts[self.counted].without_each(con, columns, self.policy.table().person)

    def population(self, con: sql.Connection) -> list[tuple[str, float, str]]:
        """Return measures of risk in the population that the weights of the sample stand for; remembered."""
        table, columns = self.policy.table(), self.quasi_identifiers()
        if self.weight is None or not columns or self.weight in columns:
            return []
        asked = (table.person, *columns)
        if asked not in self._populations:
            self._populations[asked] = con.execute(
                f"SELECT measure, value, meaning FROM anon.risk_summary('sample', {sql.literal(columns)}, "
                f"weight := {sql.literal(self.weight)}, person := {sql.literal(table.person)}) "
                "WHERE measure IN ('expected_reidentifications', 'global_risk', 'highest_individual_risk')"
            ).fetchall()
        return self._populations[asked]

    def close(self) -> None:
        """Let go of the tables."""
        self.con.close()
