"""Local recoding of tables that are larger than memory: `duckanon.large.recode`.

Rows of frequent combinations of values: most of them are released as they are, and need no search for a class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._bridge import sql
from duckanon._core.common.arrays import Floats
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import read_weights
from duckanon._core.numbers.ends import HIGH_PREFIX
from duckanon._methods.generalize.hierarchies import HierarchyRow, read_hierarchies
from duckanon._methods.recode import local_recoding
from duckanon._methods.recode.coding import LabelCoding, encode_values
from duckanon._methods.recode.declared import RECODE
from duckanon.large import pipeline
from duckanon.large.boxes_release import sample_rows
from duckanon.large.checks import Checked, has_numbers, open_workspace, options_of_parts
from duckanon.large.split_tree import Tree, fit_tree, nulls_beyond
from duckanon.large.survey import Drawing, count_values
from duckanon.large.workspace import SOURCE, Place, Source, Target, Workspace, arrow_reader

_FREQUENT = "frequent"
_INSIDE = "inside"
_PART = "_duckanon_part"


class Divided(NamedTuple):
    """A table whose frequent rows were set apart."""

    inside: str  # the name of the rows among which classes are searched
    rows: int  # how many these are
    apart: list[list[Path]]  # the files of parts that hold the others, at least k rows of every combination


def divide_rows(work: Workspace, layout: Checked, k: int, left: int, rows: int, part_rows: int) -> Divided:
    """Set rows apart that share their values with many others, where that leaves less to be searched.

    Of a combination that at least `left + k` rows, all of other people, have, all but `left` are set apart: at least k
    of them, so that they are a class whatever becomes of the others.
    """
    names = sql.quote_all(layout.names)
    (combinations,) = sql.fetch_row(work.con, f"SELECT approx_count_distinct(hash({names})) FROM {SOURCE}")
    if rows <= part_rows or 2 * combinations > rows:  # one part needs no others; so many combinations are not frequent
        return Divided(SOURCE, rows, [])
    work.con.execute(
        f"CREATE TABLE {_FREQUENT} AS SELECT {names}, row_number() OVER () AS _duckanon_number, _duckanon_rows "
        f"FROM (SELECT {names}, count(*) - {left} AS _duckanon_rows FROM {SOURCE} GROUP BY {names} "
        f"HAVING count(*) >= {left + k})"
    ).fetchall()
    (frequent_rows,) = sql.fetch_row(work.con, f"SELECT coalesce(sum(_duckanon_rows), 0)::BIGINT FROM {_FREQUENT}")
    if not frequent_rows:
        return Divided(SOURCE, rows, [])
    # a combination of very many rows is itself divided, into pieces of at least k
    piece = max(k, part_rows // 4)
    count = math.ceil(1.5 * frequent_rows / part_rows)  # pieces are of different sizes, and so are parts
    same = " AND ".join(f"source.{sql.quote(n)} IS NOT DISTINCT FROM frequent.{sql.quote(n)}" for n in layout.names)
    columns = ", ".join(f"source.{sql.quote(name)}" for name in layout.columns)
    last_piece = f"greatest(_duckanon_rows // {piece}, 1) - 1"
    query = (
        f"SELECT * EXCLUDE (_duckanon_place, _duckanon_number, _duckanon_rows), "
        f"CASE WHEN _duckanon_place < {left} THEN 0 ELSE 1 + (_duckanon_number + "
        f"least((_duckanon_place - {left}) // {piece}, {last_piece})) % {count} END AS {_PART} FROM ("
        f"SELECT {columns}, _duckanon_number, _duckanon_rows, "
        "row_number() OVER (PARTITION BY _duckanon_number) - 1 AS _duckanon_place "
        f"FROM {SOURCE} AS source JOIN {_FREQUENT} AS frequent ON {same}) "
        f"UNION ALL SELECT {columns}, 0 AS {_PART} FROM {SOURCE} AS source ANTI JOIN {_FREQUENT} AS frequent ON {same}"
    )
    files = work.partition(query, "divided", _PART, count + 1)
    work.con.execute(f"DROP TABLE {_FREQUENT}").fetchall()
    inside = sql.literal([str(path) for path in files[0]])
    work.con.execute(f"CREATE VIEW {_INSIDE} AS FROM read_parquet({inside}, hive_partitioning = false)").fetchall()
    return Divided(_INSIDE, rows - frequent_rows, [paths for paths in files[1:] if paths])


CALLER = "anon.recode"

BYTES_OF_ROW, BYTES_OF_CELL = 200, 80
"""Memory of a part, for each row and for each of its values that are recoded: measured with effort 'quick' by
`python -m tests.bench.part_memory`, and a quarter more."""

_BATCH = 100_000
_MOST_VALUES = 100_000
"""Values of a column without an order that the tree may tell apart; it does not cut a column of more."""

_BINARY = ("UUID", "INTERVAL")
"""Types that Parquet files hold as bytes: what parts would release is not what DuckDB writes."""


@dataclass(frozen=True)
class _Axis:
    """A column as the tree sees it."""

    expression: str  # in SQL, of a number between the ends; NULL for NULL
    low: float  # the ends, beyond which fewer than k rows lie
    high: float
    is_number: bool

    @property
    def span(self) -> float:
        """How far the numbers reach."""
        return max(self.high - self.low, 0.0)


@face_of(RECODE, "large")
def recode(
    source: Source,
    target: Target,
    options: Options,
    *,
    memory: str = "2GB",
    seed: int | None = None,
    temporary: Place | None = None,
    replace: bool = False,
) -> pipeline.Released:
    """Write a table that is generalized class by class, such that every class has at least k people.

    Where numbers are cut, and which values are named in sets, is decided for the whole table, as `anon.recode` does,
    where its values can be counted in memory. Where they cannot, and for numbers where people have several rows, each
    part decides itself, for k people of its own.

    Args:
        source, target, memory, temporary, replace: As for `workspace`. A hierarchy is an Arrow table: values, labels
            of level 1, of level 2, ...
        seed: Makes the classes of the same rows in the same order repeatable; the order of the released rows never is.
    """
    cols, k, effort, output = (options[name] for name in ("cols", "k", "effort", "output"))
    with open_workspace(CALLER, options, source, target, memory, temporary, replace) as (work, layout):
        trees = _hierarchies(work.con, options["hierarchies"])
        levels = [row for rows_of_tree in trees.values() for row in rows_of_tree]
        rows = sql.fetch_row(work.con, f"SELECT count(*) FROM {SOURCE}")[0]
        if k > rows:
            raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
        weight_of = dict(zip(layout.names, read_weights(options["weights"], layout.names, cols), strict=True))
        axes = {name: _axis(work.con, layout, name, k, name.lower() in trees) for name in layout.names}
        if output == "value" and not all(axis.is_number for axis in axes.values()):
            raise ValueError("output must be 'text' where columns are no numbers or have a hierarchy; got 'value'.")
        used = [name for name in layout.names if axes[name].span > 0]
        part_rows = work.memory.part // (BYTES_OF_ROW + BYTES_OF_CELL * len(layout.names))
        whole = _codings(work, layout, k, axes, levels, weight_of)
        division = Divided(SOURCE, rows, [])
        if layout.person is None and len(whole) == len(layout.names):
            division = divide_rows(work, layout, k, k if effort == "quick" else 2 * k, rows, part_rows)
        expressions = {name: axes[name].expression for name in used}
        tree: Tree = 0
        if used:
            drawing = Drawing(division.rows, sample_rows(work, len(used)), seed)
            sample = _sample(work.con, division.inside, expressions, drawing)
            tree = fit_tree(sample, [weight_of[n] / axes[n].span for n in used], division.rows, k, part_rows)
        files = (
            pipeline.route(work, layout.columns, tree, expressions, k, layout.person, division.inside) + division.apart
        )
        part_options = options_of_parts(layout, options) | {"hierarchies": levels}

        def release_part(part: pa.Table) -> pa.Table:
            weights = [
                weight_of[name] if name in whole else weight_of[name] * _share(part.column(name), axes[name])
                for name in layout.names
            ]
            return local_recoding.recode([part], **(part_options | {"weights": weights}), whole=whole)

        return pipeline.run_pipeline(work, layout, files, release_part, _Labels(layout), k, rows, part_rows)


def _codings(
    work: Workspace,
    layout: Checked,
    k: int,
    axes: Mapping[str, _Axis],
    levels: Sequence[HierarchyRow],
    weight_of: Mapping[str, float],
) -> dict[str, LabelCoding]:
    """Encode the columns whose values can be counted in memory."""
    tables, codings = read_hierarchies(levels), {}
    for name in layout.names:
        counts = None
        if layout.person is None or not axes[name].is_number:
            counts = count_values(work, name, k, layout.person)
        if counts is not None and (axes[name].is_number or len(counts.values) <= _MOST_VALUES):
            codings[name] = encode_values(name, *counts, k, tables.get(name.lower()), weight_of[name])
    return codings


def _share(column: pa.ChunkedArray, axis: _Axis) -> float:
    """Return how much of the whole column a part has, so that all parts lose in the same unit."""
    if axis.span <= 0:
        return 1.0
    if axis.is_number:
        ends = pc.min_max(column)
        least, largest = ends["min"], ends["max"]
        if not least.is_valid:
            return 1.0
        both = pa.array([least.as_py(), largest.as_py()], column.type)
        if pa.types.is_temporal(column.type):
            both = both.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        numbers = both.cast(pa.float64(), safe=False).to_numpy()
        width = float(np.diff(np.clip(numbers, axis.low, axis.high))[0])
    else:
        width = float(pc.count_distinct(column, mode="all").as_py() - 1)
    return max(width / axis.span, 1e-6)  # a weight must be above 0; a column of one value loses nothing


def _axis(con: duckdb.DuckDBPyConnection, layout: Checked, name: str, k: int, has_tree: bool) -> _Axis:
    """Say how the tree sees a column: the k-th least and largest number stand for all beyond, which decide no cut."""
    if layout.types[name] in _BINARY:
        raise ValueError(
            f'column "{name}" has the type {layout.types[name]}, which is no text here; cast it to VARCHAR.'
        )
    quoted = sql.quote(name)
    if has_numbers(con, layout.types[name]) and not has_tree:
        expression = layout.expressions[name]
        low, high = (
            float(end or 0.0)
            for end in sql.fetch_row(
                con, f"SELECT min({expression}, {k})[-1], max({expression}, {k})[-1] FROM {SOURCE}"
            )
        )
        least, largest = (f"'{end!r}'::DOUBLE" for end in (low, high))
        inside = f"WHEN {expression} < {least} THEN {least} WHEN {expression} > {largest} THEN {largest}"
        return _Axis(f"CASE {inside} ELSE {expression} END", low, high, True)
    text = f"{quoted}::VARCHAR"
    values = con.execute(
        f"SELECT DISTINCT {text} AS value FROM {SOURCE} WHERE {quoted} IS NOT NULL ORDER BY value "
        f"LIMIT {_MOST_VALUES + 1}"
    ).fetchall()
    if not 1 < len(values) <= _MOST_VALUES:
        return _Axis("NULL::DOUBLE", 0.0, 0.0, False)
    enum = sql.quote(f"values of {name}")
    con.execute(f"CREATE TYPE {enum} AS ENUM ({', '.join(sql.literal(value) for (value,) in values)})").fetchall()
    return _Axis(f"enum_code({text}::{enum})::DOUBLE", 0.0, float(len(values) - 1), False)


def _hierarchies(
    con: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table] | None
) -> dict[str, list[HierarchyRow]]:
    """Read hierarchies as the function in SQL does, by column in lower case."""
    names = {}
    for place, (column, table) in enumerate((tables or {}).items()):
        names[column] = f"hierarchy_{place}"
        con.register(names[column], table)
    rows = con.execute(f"FROM anon._hierarchies('{CALLER}', {sql.literal(names) if names else 'NULL'})").fetchall()
    trees: dict[str, list[HierarchyRow]] = {}
    for column, leaf, level, label in rows:
        trees.setdefault(column, []).append({"column_name": column, "leaf": leaf, "level": level, "label": label})
    return trees


def _sample(
    con: duckdb.DuckDBPyConnection, source: str, expressions: Mapping[str, str], drawing: Drawing
) -> dict[str, Floats]:
    """Draw rows; NULL lies beyond all numbers, where the tree sends it."""
    selected = ", ".join(f"{expression} AS {sql.quote(name)}" for name, expression in expressions.items())
    done = 0
    drawn: list[pa.RecordBatch] = []
    for batch in arrow_reader(con.sql(f"SELECT {selected} FROM {source}"), _BATCH):
        drawn.append(batch.take(pa.array(drawing.rows(done, batch.num_rows))))
        done += batch.num_rows
    table = pa.Table.from_batches(drawn)
    return {name: nulls_beyond(np.array(table.column(name).to_numpy(), np.float64)) for name in expressions}


class _Labels(pipeline.Columns):
    """The columns of classes: labels, or intervals and sets."""

    def finish(self, block: pa.Table) -> pa.Table:
        """Return the columns that are released: labels, then what is kept."""
        columns = {name: block.column(name) for name in [*self._layout.names, *self._layout.kept]}
        for name in self._layout.names:
            if HIGH_PREFIX + name in block.column_names:
                ends = [block.column(which).combine_chunks() for which in (name, HIGH_PREFIX + name)]
                columns[name] = pa.StructArray.from_arrays(ends, ["lo", "hi"])
        return pa.table(columns)
