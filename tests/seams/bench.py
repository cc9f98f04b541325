"""A table of the catalogue, and what functions take besides a table, made of it."""

from __future__ import annotations

import contextlib
import datetime
import re

import duckdb

from tests.awkward import TABLES, Awkward, quoted
from tests.oracles.call import ROW, Rows
from tests.seams.literals import sql_of

NUMBER = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|DOUBLE|FLOAT|DECIMAL.*)$")
TIME = re.compile(r"(DATE|TIMESTAMP.*)$")
UNUSUAL = re.compile(r"(.*\]|STRUCT.*|MAP.*|UNION.*|BLOB|BIT|INTERVAL|TIME|TIME WITH TIME ZONE|\"NULL\")$")
"""Types that few releases take."""


_STATE = """
    SELECT 'variable ' || name FROM duckdb_variables()
    UNION ALL SELECT 'settings ' || bit_xor(hash(name, value)) FROM duckdb_settings()"""


class Bench:
    """A table of the catalogue, its rows in Python, and the tables that are made of it when a call asks for them."""

    def __init__(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        self.table: Awkward = TABLES[name]
        self.con = con
        self.table.create(con)
        self._rows: dict[str, Rows] = {}
        rows = fetch(self.con, f"FROM {quoted(name)}")
        self.times_as_text = has_endless(rows)
        self.rows = fetch(self.con, f"FROM {quoted(name)}", self.times_as_text)
        self.types = {column: kind for column, kind in self.rows.types.items() if column in self.table.columns}
        self.columns = [column for column in self.types if column != self.table.person]
        self.numbers = [column for column in self.columns if NUMBER.match(self.types[column])]
        self.times = [column for column in self.columns if TIME.match(self.types[column])]
        self.usual = [column for column in self.columns if not UNUSUAL.match(self.types[column])] or self.columns
        self.few = [column for column in self.usual if self._has_few(column)] or self.usual
        self._made: dict[tuple[str, str | None], str] = {}
        self.before = self.state()

    @property
    def name(self) -> str:
        return self.table.name

    def rows_of(self, table: str) -> Rows:
        """Return the rows of a table that was made of this one."""
        if table not in self._rows:
            self._rows[table] = fetch(self.con, f"FROM {quoted(table)}", self.times_as_text)
        return self._rows[table]

    def _has_few(self, column: str) -> bool:
        """Tell whether a column may be released: it varies, is not called as ours are, and is no identifier."""
        values = [value for value in self.rows.column(column) if value is not None]
        if column in self.table.constant or column.lower().startswith("_duckanon_") or not values:
            return False
        is_measure = column in self.times or self.types[column] in ("DOUBLE", "FLOAT")
        return is_measure or len(set(map(repr, values))) < 0.4 * len(values)

    def state(self) -> list[str]:
        """Return what no call may change: variables, settings, and the rows of the table and those that go with it."""
        tables = [self.name, *self.table.linked, *map(self.table.hierarchy_of, self.table.hierarchies)]
        rows = " UNION ALL ".join(
            f"SELECT concat({sql_of(f'rows of {one} ')}, bit_xor(hash(t)), ' ', count(*)) FROM {quoted(str(one))} AS t"
            for one in tables
        )
        return [row[0] for row in self.con.execute(f"{_STATE} UNION ALL {rows}").fetchall()]

    def made(self, kind: str, column: str | None = None) -> str:
        """Return the name of a table made of this one; this one's where that is refused."""
        if (kind, column) not in self._made:
            self._made[kind, column] = self._make(kind, column)
        return self._made[kind, column]

    def _make(self, kind: str, column: str | None) -> str:
        name = f"{self.name}_{kind}" + (f"_{self.columns.index(column)}" if column in self.columns else "")
        if kind == "boxed":
            self.made("complete")
        for query in self._queries(kind, column):
            with contextlib.suppress(duckdb.Error):
                self.con.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS {query}").fetchall()
                return name
        return self.name

    def _queries(self, kind: str, column: str | None) -> list[str]:
        """Return queries of which the first that is answered makes a table."""
        found = self._releases(kind) or self._rows_again(kind) or self._lists(kind, column)
        assert found, f"there is no table {kind}"
        return found

    @property
    def _measures(self) -> list[str]:
        """Up to three numbers and dates."""
        return [one for one in [*self.numbers, *self.times] if one in self.usual][:3]

    def _releases(self, kind: str) -> list[str]:
        tbl, cols = sql_of(self.name), sql_of(self.usual[:6])
        several = self._measures if len(self._measures) > 1 else [*self._measures, ROW]
        synthesize = f"FROM anon.synthesize({tbl}, {{}}, k := 3, keep_out := 3, nulls := 'category', seed := 1)"
        return {
            "recoded": [f"FROM anon.recode({tbl}, {cols}, 3)", *self._singly("anon.recode", 3)],
            "generalized": [f"FROM anon.generalize({tbl}, {cols}, 3)", *self._singly("anon.generalize", 3)],
            "swapped": [f"FROM anon.swap({tbl}, {cols}, seed := 1)"],
            "synthetic": [synthesize.format(some) for some in (cols, *(sql_of([one]) for one in self.usual[:3]))],
            "boxed": [
                f"FROM anon.boxes({sql_of(f'{self.name}_complete')}, {sql_of(some)}, 3)"
                for some in (several, [*self._measures[:1], ROW], [ROW])
            ],
        }.get(kind, [])

    def _rows_again(self, kind: str) -> list[str]:
        known = [*self.numbers, *self.times, *([self.table.person] if self.table.person else [])]
        is_complete = " AND ".join(f"{quoted(one)} IS NOT NULL" for one in known) or "true"
        person = quoted(self.table.person or ROW)
        more = {"INTEGER": " + copy::INTEGER", "DOUBLE": " * (1 + copy / 16)", "DATE": " + copy::INTEGER"}
        more["TIMESTAMP_S"] = more["TIMESTAMP"] = " + to_hours(copy::INTEGER)"
        columns = ", ".join(f"{quoted(n)}{more.get(t, '')} AS {quoted(n)}" for n, t in self.types.items())
        table = quoted(self.name)
        return {
            "same": [f"FROM {table}"],
            "empty": [f"FROM {table} LIMIT 0"],
            "complete": [f"FROM {table} WHERE {is_complete}"],
            "people": [f"SELECT DISTINCT {person} FROM {table} WHERE {person} IS NOT NULL"],
            "copies": [f"SELECT {ROW} + 1000 * copy AS {ROW}, {columns} FROM {table}, range(6) AS r(copy)"],
        }.get(kind, [])

    def _lists(self, kind: str, column: str | None) -> list[str]:
        """Return the queries of partitions, plans and the like, which are no rows of people."""
        tbl, first = sql_of(self.name), column or (self._measures or self.usual)[0]
        value, end = quoted(first), "k := 3, max_suppressed_fraction := 1)"
        labels = f"SELECT DISTINCT {value} AS v, left({value}::VARCHAR, 1) AS l1, '*' AS l2"
        boxed = sql_of(self.made("boxed")) if kind in ("flat", "box_list") else ""
        return {
            "flat": [f"FROM anon.flatten_boxes({boxed})"],
            "box_list": [f"FROM anon.box_table({boxed})"],
            "plan": [f"FROM anon.plan({tbl}, {sql_of(some)}, 3)" for some in (self.usual[:6], [first])],
            "partition": [f"FROM anon.quantile_partition({tbl}, {sql_of(first)}, k := 3, nulls := 'drop')"],
            "published": [f"FROM anon.protect_table({tbl}, {sql_of(self.usual[:n])}, {end}" for n in (2, 1)],
            "hierarchy": [f"{labels} FROM {quoted(self.name)} WHERE {value} IS NOT NULL"],
        }.get(kind, [])

    def _singly(self, function: str, k: int) -> list[str]:
        """Return the call for one column after the other, where it is refused for all."""
        return [f"FROM {function}({sql_of(self.name)}, {sql_of([one])}, {k})" for one in self.usual[:4]]


def fetch(con: duckdb.DuckDBPyConnection, query: str, times_as_text: bool = False) -> Rows:
    """Return rows as Python; times as text where that is asked for, or where Python does not have them."""
    answer = con.execute(query)
    names = [name for name, *_ in answer.description]
    kinds = [str(kind) for _, kind, *_ in answer.description]
    if not times_as_text:
        try:
            return Rows(names, dict(zip(names, kinds, strict=True)), answer.fetchall())
        except (ValueError, OverflowError, duckdb.InvalidInputException, duckdb.ConversionException):
            pass
    told = (f"{quoted(n)}::VARCHAR" if TIME.match(kind) else quoted(n) for n, kind in zip(names, kinds, strict=True))
    rows = con.execute(f"SELECT {', '.join(told)} FROM ({query})").fetchall()
    return Rows(names, dict(zip(names, kinds, strict=True)), rows)


def has_endless(rows: Rows) -> bool:
    """Tell whether a table has dates that Python takes for others: infinity is its last day."""
    ends = (datetime.date.max, datetime.datetime.max)
    return any(isinstance(value, datetime.date) and value in ends for row in rows.rows for value in row)
