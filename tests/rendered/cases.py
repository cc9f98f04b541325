"""Plans and tables for which rendered SQL must say what `anon.apply_plan` says, and how each engine is asked."""

from __future__ import annotations

import datetime
import decimal
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

import duckanon

NAMES = ("Age", "a b", 'sel"ect', "x'y", "zip_code", "back`tick")
TYPES = {
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DECIMAL(6,2)": pa.decimal128(6, 2),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.string(),
}
COVERED = {
    "number": ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL(6,2)"),
    "time": ("DATE", "TIMESTAMP"),
    "value": ("VARCHAR", "INTEGER", "BOOLEAN", "DATE"),
    "prefix": ("VARCHAR", "INTEGER"),
}
LETTERS = st.sampled_from("aAbß0129'\"\\\n\t%_ `é;-$")
TEXTS = st.text(LETTERS, max_size=4)
LABELS = st.none() | TEXTS | st.sampled_from(["F", "f", "F ", "*", "[1, 2)", "--", "/*", "{x}", "$1", ":a", "?"])
NUMBERS = st.integers(-30, 30) | st.sampled_from([-0.5, 0.1, 0.3, 17.25, 1e-7, 123456.789012345678, 9007.1])
DAYS = st.dates(datetime.date(1959, 12, 25), datetime.date(1960, 1, 8))


@dataclass(frozen=True)
class Case:
    """A plan and a table, whose first column is ``id``."""

    plan: pa.Table
    table: pa.Table
    types: dict[str, str]

    @property
    def planned(self) -> list[str]:
        return self.table.column_names[1:]

    def expected(self, con: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
        """The rows of `anon.apply_plan`."""
        con.register("plan", self.plan)
        con.register("patients", self.table)
        return con.execute("FROM anon.apply_plan('patients', 'plan', keep := ['id']) ORDER BY id").fetchall()

    def rendered(self, dialect: str, with_types: bool, **options: Any) -> str:
        types = self.types if with_types else None
        return duckanon.render(self.plan, dialect, keep=["id"], types=types, **options)


def plan_table(columns: Sequence[str], rows: Sequence[tuple[str, str, str | None, str | None]]) -> pa.Table:
    """A plan of rows of column_name, covers, lower, label."""
    kinds = [(name, pa.string()) for name in columns]
    by_name = dict(zip(("column_name", "covers", "lower", "label"), zip(*rows, strict=True), strict=True))
    return pa.table(
        {
            **{name: pa.array(values, pa.string()) for name, values in by_name.items()},
            "upper": pa.nulls(len(rows), pa.string()),
            "rows": pa.array([1] * len(rows)),
            "released": pa.nulls(len(rows), pa.struct(kinds)),
        }
    )


@st.composite
def cases(draw: st.DrawFn, booleans: bool = True, nan: bool = True) -> Case:
    """Draw a plan of one to three columns and a table of up to twelve rows; without booleans or NaN where asked for."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    row_count = draw(st.integers(1, 12))
    plan_rows: list[tuple[str, str, str | None, str | None]] = []
    types, arrays = {"id": "INTEGER"}, [pa.array(range(row_count), pa.int32())]
    for name in names:
        covers = draw(st.sampled_from(sorted(COVERED)))
        of_type = draw(st.sampled_from([kind for kind in COVERED[covers] if booleans or kind != "BOOLEAN"]))
        lowers, values = draw(buckets_and_values(covers, of_type))
        spelled = draw(st.sampled_from([name, name.lower()]))
        plan_rows += [(spelled, covers, lower, draw(LABELS)) for lower in draw(st.permutations(lowers))]
        plan_rows += [(spelled, other, None, draw(LABELS)) for other in draw(st.sampled_from([[], ["rest"], OTHERS]))]
        if not any(row[0] == spelled for row in plan_rows):
            plan_rows.append((spelled, "rest", None, draw(LABELS)))
        values = values if nan else values.filter(lambda value: value == value)
        cells = draw(st.lists(st.none() | values, min_size=row_count, max_size=row_count))
        types[name] = of_type
        arrays.append(pa.array(cells, TYPES[of_type]))
    return Case(plan_table(names, plan_rows), pa.table(arrays, names=list(types)), types)


OTHERS = ["rest", "null"]


@st.composite
def buckets_and_values(draw: st.DrawFn, covers: str, of_type: str) -> tuple[list[str | None], st.SearchStrategy[Any]]:
    """Draw where the buckets of a column begin, and say which values are near them."""
    if covers == "number":
        ends = draw(st.lists(NUMBERS, min_size=1, max_size=20, unique=True))
        lowers: list[str | None] = [str(end) for end in ends]
        near = st.sampled_from([float(end) for end in ends]) | st.integers(-40, 40).map(float)
        return _opened(draw, lowers), near.map(_as_number(of_type)) | st.sampled_from(_EXTREMES[of_type])
    if covers == "time":
        if of_type == "DATE":
            return _opened(draw, [str(day) for day in draw(st.lists(DAYS, min_size=1, unique=True))]), DAYS
        moments = st.builds(datetime.datetime.combine, DAYS, st.sampled_from(_CLOCKS))
        ends = draw(st.lists(moments, min_size=1, max_size=9, unique=True))
        far = st.sampled_from([datetime.datetime(1677, 10, 1), datetime.datetime(2200, 1, 1, 1)])
        return _opened(draw, [str(end) for end in ends]), st.sampled_from(ends) | moments | far
    if of_type == "BOOLEAN":
        return draw(st.lists(st.sampled_from(["true", "false"]), min_size=1, unique=True)), st.booleans()
    if of_type == "DATE":
        return [str(day) for day in draw(st.lists(DAYS, min_size=1, unique=True))], DAYS
    if of_type == "INTEGER":
        codes = draw(st.lists(st.integers(-20, 300), min_size=1, unique=True))
        return [str(code) for code in codes], st.sampled_from(codes) | st.integers(-20, 3100)
    texts = draw(st.lists(TEXTS, min_size=1, max_size=8, unique=True))
    return list(texts), st.sampled_from(texts) | TEXTS | st.builds(str.__add__, st.sampled_from(texts), TEXTS)


_CLOCKS = [datetime.time(0), datetime.time(12), datetime.time(23, 59, 59, 999999), datetime.time(12, 0, 0, 500000)]
_EXTREMES: dict[str, list[Any]] = {
    "INTEGER": [-(2**31), 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "DOUBLE": [float("inf"), float("-inf"), float("nan"), 1e300, -0.0],
    "DECIMAL(6,2)": [decimal.Decimal("9999.99"), decimal.Decimal("-9999.99")],
}


def _opened(draw: st.DrawFn, lowers: list[str | None]) -> list[str | None]:
    """Let the first bucket be open below, or not."""
    return [*lowers, None] if draw(st.booleans()) else lowers


def _as_number(of_type: str) -> Any:
    if of_type == "DOUBLE":
        return float
    return int if of_type != "DECIMAL(6,2)" else lambda value: decimal.Decimal(min(value, 9999)).quantize(_CENT)


_CENT = decimal.Decimal("0.01")


def in_duckdb(con: duckdb.DuckDBPyConnection, case: Case, query: str) -> list[tuple[Any, ...]]:
    con.register("patients", case.table)
    return by_id(con.execute(query).fetchall())


def in_sqlite(case: Case, query: str, declared: str = "") -> list[tuple[Any, ...]]:
    """Run a query on SQLite, which keeps times as texts and decimals as doubles; NaN is NULL there."""
    with sqlite3.connect(":memory:") as database:
        names = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" {declared}' for name in case.table.column_names)
        database.execute(f"CREATE TABLE patients ({names})")
        places = ", ".join("?" * case.table.num_columns)
        columns = [[_for_sqlite(value) for value in column.to_pylist()] for column in case.table.columns]
        database.executemany(f"INSERT INTO patients VALUES ({places})", list(zip(*columns, strict=True)))
        return by_id(database.execute(query).fetchall())


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, datetime.date | datetime.datetime):
        return str(value)
    return float(value) if isinstance(value, decimal.Decimal) else value


def by_id(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=lambda row: row[-1])


def large_classes(rows: list[tuple[Any, ...]], k: int) -> list[tuple[Any, ...]]:
    """The oracle of what k leaves: rows whose labels, all but the last column, at least k rows have."""
    return [row for row in rows if sum(other[:-1] == row[:-1] for other in rows) >= k]
