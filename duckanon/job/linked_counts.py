"""Linked tables of events, counted as a reader of the files can: how many people hold any known events of a person.

The class of a person is the set of their classes in the tables of people; a label is a table with all its released
quasi-identifying cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from duckanon._bridge import sql
from duckanon._core.common.release_record import ExposureEntry

PERSON, CLASS = "duckanon_whose", "duckanon_class"
"""Columns of the tables that are counted."""
_PEOPLE = "linked_people_counted"
_ATTACKED = 400
"""People whom the simulated attacker looks for."""
_FREQUENT = 100
"""Labels of a class, the most frequent ones, of which one that a person does not have may be known."""


@dataclass(frozen=True)
class LinkedPart:
    """A table of a release whose rows tell whose they are."""

    name: str  # what people call it
    rows: str  # its table or view in the connection
    person_column: str  # the column that tells whose row it is
    columns: Sequence[str]  # the columns of labels, or of classes
    known: int | None  # the events that somebody may know; None: it describes people
    sensitive: Sequence[str] = ()


def people_query(parts: Sequence[LinkedPart]) -> str:
    """Write the query of all people of the tables of people, each with the number of their class."""
    rows = []
    for number, part in enumerate(parts):
        # a list of texts, since texts put together could be read in two ways
        cells = "".join(f", coalesce('=' || {sql.quote(column)}::VARCHAR, '')" for column in part.columns)
        rows.append(
            f"SELECT {sql.quote(part.person_column)}::VARCHAR AS {PERSON}, ['{number}'{cells}] AS class "
            f"FROM {part.rows}"
        )
    return (
        f"SELECT {PERSON}, dense_rank() OVER (ORDER BY classes ASC NULLS LAST) AS {CLASS} FROM "
        f"(SELECT {PERSON}, list_sort(list(DISTINCT class), 'ASC', 'NULLS LAST') AS classes "
        f"FROM ({' UNION ALL '.join(rows)}) WHERE {PERSON} IS NOT NULL GROUP BY {PERSON})"
    )


class LinkedTables:
    """The tables of a release, in a connection, whose rows are counted together."""

    def __init__(self, con: sql.Connection, parts: Sequence[LinkedPart]) -> None:
        self._con = con
        self._learned: dict[str, dict[str, float]] = {}
        self.events = [part for part in parts if part.known is not None]
        self._people = [part for part in parts if part.known is None]
        for number, part in enumerate(self.events):
            columns = sql.quote_all(dict.fromkeys([*part.columns, *part.sensitive]))
            con.execute(
                f"CREATE OR REPLACE TEMP VIEW {self._view(number)} AS "
                f"SELECT {sql.quote(part.person_column)}::VARCHAR AS {PERSON}"
                f"{', ' if columns else ''}{columns} FROM {part.rows}"
            ).fetchall()
        if self._people:
            con.execute(f"CREATE OR REPLACE TEMP TABLE {_PEOPLE} AS {people_query(self._people)}").fetchall()

    @staticmethod
    def _view(number: int) -> str:
        return f"linked_events_{number + 1}"

    @property
    def known(self) -> int:
        """How many events somebody may know in all."""
        return max(part.known for part in self.events if part.known is not None)

    @property
    def known_words(self) -> str:
        """The number of known events, of each table where they differ."""
        each = {part.known for part in self.events}
        words = f"any {self.known} event{'s' if self.known > 1 else ''}"
        return words if len(each) == 1 else f"{words} ({', '.join(f'{p.name}: {p.known}' for p in self.events)})"

    def smallest(self) -> int:
        """Return the smallest number of people who hold a choice of known events."""
        return int(self._count("coalesce(min(k), 0)")[0])

    def count_learned(self, column: str) -> dict[str, float]:
        """Return what the people who hold a choice tell about a sensitive column, by the names of the promises.

        Nobody holds any where there are no people: then nothing is told, and no promise of values is kept.
        """
        if column not in self._learned:
            counted = "coalesce(max(confidence), 0), coalesce(min(l), 0), coalesce(max(t), 1)"
            share, values, distance = self._count(counted, column)
            self._learned[column] = {"max_confidence": share, "l": values, "t": distance}
        return self._learned[column]

    def _count(self, expression: str, sensitive: str | None = None) -> tuple[float, ...]:
        views = {self._view(number): part.known for number, part in enumerate(self.events)}
        options: dict[str, object] = {}
        for number, part in enumerate(self._people):  # where a person's values stand, of which no event is known
            if sensitive in part.sensitive:
                view = f"linked_told_{number + 1}"
                self._con.execute(
                    f"CREATE OR REPLACE TEMP VIEW {view} AS "
                    f"SELECT {sql.quote(part.person_column)}::VARCHAR AS {PERSON}, "
                    f"{sql.quote(sensitive or '')} FROM {part.rows}"
                ).fetchall()
                views[view] = 0
        if self._people:
            options |= {"class": [CLASS], "people": _PEOPLE}
        if sensitive:
            options["sensitive"] = sensitive
        cols = list(dict.fromkeys(column for part in self.events for column in part.columns))
        listed = "".join(f", {sql.quote(name)} := {sql.literal(value)}" for name, value in options.items())
        counts: tuple[float, ...] = sql.fetch_row(
            self._con,
            f"SELECT {expression} FROM anon.known_events({sql.literal(list(views))}, {sql.literal(PERSON)}, "
            f"{sql.literal(cols)}, known := {sql.literal(views)}{listed})",
        )
        return counts

    def exposure(self, k: int) -> list[ExposureEntry]:
        """Measure what the promise does not cover: shares of people whom an attacker finds who knows more."""
        counted = [(number, part) for number, part in enumerate(self.events) if part.known]
        rows = []
        for number, part in counted:
            cells = "".join(f", coalesce('=' || {sql.quote(column)}::VARCHAR, '')" for column in part.columns)
            rows.append(f"SELECT {PERSON}, ['{number}'{cells}] AS cells FROM {self._view(number)}")
        joined = f"JOIN {_PEOPLE} USING ({PERSON})" if self._people else ""
        self._con.execute(
            f"CREATE OR REPLACE TEMP TABLE linked_shown AS WITH shown AS ({' UNION ALL '.join(rows)}), "
            "labels AS (SELECT cells, row_number() OVER (ORDER BY cells ASC NULLS LAST) AS label "
            "FROM (SELECT DISTINCT cells FROM shown)) "
            f"SELECT dense_rank() OVER (ORDER BY {PERSON} ASC NULLS LAST) AS person, "
            f"{CLASS if self._people else '0'} AS class, label, times, "
            f"sum(times) OVER (PARTITION BY {PERSON})::BIGINT AS total "
            f"FROM (SELECT {PERSON}, cells, count(*) AS times FROM shown WHERE {PERSON} IS NOT NULL GROUP BY ALL) "
            f"JOIN labels USING (cells) {joined}"
        ).fetchall()
        return list(self._exposures(k))

    def _exposures(self, k: int) -> Iterator[ExposureEntry]:
        events = f"{self.known} event{'s' if self.known > 1 else ''}"
        yield self._attack(f"{self.known + 1} events", self.known + 1, k)
        yield self._attack(f"{events} and the number of all rows", self.known, k, "shown.total = chosen.total")
        yield self._attack(f"{events} and one that the person does not have", self.known, k, is_absent_known=True)
        yield self._share(
            "the whole record",
            "SELECT count(*) AS candidates, count(*) AS people FROM (SELECT class, "
            "list_sort(list(row(label, times)), 'ASC', 'NULLS LAST') AS record FROM linked_shown "
            "GROUP BY class, person) GROUP BY class, record",
            k,
        )

    def _attack(
        self, knows: str, size: int, k: int, condition: str = "true", *, is_absent_known: bool = False
    ) -> ExposureEntry:
        """Let somebody who knows some events of a person, chosen at random, look for people who have them all.

        Where an absent event is known, it is the one that most people of the class have and this one has not.
        """
        absent = (
            ", frequent AS (SELECT class, label, row_number() OVER (PARTITION BY class ORDER BY count(*) DESC NULLS "
            "LAST, label ASC NULLS LAST) AS place FROM linked_shown GROUP BY class, label "
            f"QUALIFY place <= {_FREQUENT}), "
            "lacking AS (SELECT person, arg_min(label, place) AS label FROM (SELECT DISTINCT person, class "
            "FROM chosen) JOIN frequent USING (class) ANTI JOIN linked_shown USING (person, label) GROUP BY person), "
            "left_over AS (FROM found SEMI JOIN lacking USING (person) ANTI JOIN (SELECT lacking.person, shown.person "
            "AS candidate FROM lacking JOIN linked_shown AS shown USING (label)) AS others USING (person, candidate))"
        )
        return self._share(
            knows,
            "WITH attacked AS (SELECT person FROM linked_shown GROUP BY person "
            f"HAVING any_value(total) >= {size} ORDER BY hash(person) ASC NULLS LAST LIMIT {_ATTACKED}), "
            "single AS (SELECT person, class, total, label, unnest(range(times)) AS place FROM linked_shown "
            "SEMI JOIN attacked USING (person)), "
            "chosen AS (SELECT person, class, total, label, count(*) AS times FROM (SELECT *, row_number() OVER "
            "(PARTITION BY person ORDER BY hash(person, label, place) ASC NULLS LAST, label ASC NULLS LAST) AS number "
            f"FROM single) WHERE number <= {size} GROUP BY ALL), "
            "asked AS (SELECT *, count(*) OVER (PARTITION BY person) AS labels FROM chosen), "
            "found AS (SELECT chosen.person, shown.person AS candidate, any_value(chosen.labels) AS labels, "
            "count(*) AS fitting FROM asked AS chosen JOIN linked_shown AS shown ON chosen.label = shown.label "
            f"AND chosen.class = shown.class AND shown.times >= chosen.times AND {condition} "
            f"GROUP BY chosen.person, shown.person){absent if is_absent_known else ''} "
            "SELECT count(*) AS candidates, 1 AS people "
            f"FROM {'left_over' if is_absent_known else 'found'} WHERE fitting = labels GROUP BY person",
            k,
        )

    def _share(self, knows: str, query: str, k: int) -> ExposureEntry:
        people, unique, few = sql.fetch_row(
            self._con,
            "SELECT coalesce(sum(people), 0)::BIGINT, coalesce(sum(people) FILTER (candidates = 1), 0) / "
            f"greatest(sum(people), 1), coalesce(sum(people) FILTER (candidates < {k}), 0) / "
            f"greatest(sum(people), 1) FROM ({query})",
        )
        return {"knows": knows, "people": people, "unique": unique or 0.0, "under_k": few or 0.0}
