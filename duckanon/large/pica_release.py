"""Partitioned swapping of tables that are larger than memory: `duckanon.large.pica`.

A sample of a table that tells what the whole does: who holds which value, and who is at the ends.

Rows are drawn by a hash. Of values that are rare in what was drawn, up to k rows of each are added, and of numbers the
k lowest and the k highest: a value that k people of the table hold has k holders here, and one that fewer hold has
fewer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator, refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.rules import Whole
from duckanon._core.encoding.arrow import arrow_kind
from duckanon._core.encoding.column_codecs import Encoding, NumberColumn
from duckanon._core.encoding.fit import MOST_CATEGORIES, MOST_DECIMALS, fit_columns, refuse_nulls
from duckanon._core.encoding.parts import ColumnParts, read_doubles
from duckanon._methods.swap.declared import PICA
from duckanon._methods.swap.pica import SEARCHED_ROWS, ClusterSwap
from duckanon._methods.swap.thesis_columns import Settings, SurveyColumns, ThesisColumns
from duckanon.large import pipeline
from duckanon.large.checks import Checked, has_numbers, open_workspace, refuse_columns, rows_and_nulls
from duckanon.large.split_tree import Tree, divide_parts, fit_tree, nulls_beyond
from duckanon.large.split_tree import route_rows as routed_rows
from duckanon.large.survey import Drawing
from duckanon.large.workspace import SOURCE, Place, Source, Target, Workspace, arrow_reader

_PLACE = "_duckanon_place"


@dataclass(frozen=True)
class Sample:
    """Rows of a table: those that were drawn, and after them those that were added."""

    table: pa.Table
    drawn: int  # how many were drawn


def sample_table(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, k: int, rows: int, wanted: int, seed: int | None
) -> Sample:
    """Read a table of numbers, texts, booleans, dates and times once, and draw `wanted` of its rows.

    Of a value, and at an end, k rows are enough. `seed` decides which rows: the same of a table that comes in the same
    order. NaN, infinity and texts of more values than a release can tell apart are refused.
    """
    drawing, done = Drawing(rows, wanted, seed), 0
    kinds = {field.name: arrow_kind(field.name, field.type) for field in schema}
    held = {name: _Holders(name, k, kind == "category") for name, kind in kinds.items()}
    ends = {name: _Ends(name, k) for name, kind in kinds.items() if kind != "category"}
    drawn, extras = [pa.table(schema.empty_table())], []
    for batch in batches:
        chosen = drawing.rows(done, batch.num_rows)
        drawn.append(pa.Table.from_batches([batch]).take(pa.array(chosen)))
        left = np.setdiff1d(np.arange(batch.num_rows), chosen, assume_unique=True)
        kept = [seen.read(batch.column(name), chosen, left, done) for name, seen in held.items()]
        kept += [seen.read(batch.column(name), left, done) for name, seen in ends.items()]
        places = np.unique(np.concatenate(kept))
        if len(places):
            added = pa.Table.from_batches([batch]).take(pa.array(places))
            extras.append(added.append_column(_PLACE, pa.array(places + done)))
        done += batch.num_rows
    table = pa.concat_tables(drawn)
    count = table.num_rows
    if extras:
        seen_places = [one.places() for one in held.values()] + [one.places() for one in ends.values()]
        added = pa.concat_tables(extras)
        added = added.filter(pa.array(np.isin(added.column(_PLACE).to_numpy(), np.concatenate(seen_places))))
        table = pa.concat_tables([table, added.drop_columns([_PLACE])])
    return Sample(table.combine_chunks(), count)


class _Holders:
    """Up to k rows of every value, beside those that were drawn."""

    def __init__(self, name: str, k: int, is_category: bool) -> None:
        self._name, self._k, self._is_category = name, k, is_category
        self._drawn: dict[Any, int] = {}
        self._kept: dict[Any, list[int]] = {}
        self._is_open = True

    def read(self, array: pa.Array, drawn: Ints, left: Ints, first: int) -> Ints:
        """Look at the next rows; return those to be kept, for now."""
        if not self._is_open:
            return np.zeros(0, np.int64)
        if pa.types.is_temporal(array.type) and not pa.types.is_interval(array.type):  # Python has not all of them
            array = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
        coded = array.dictionary_encode(null_encoding="encode")
        values, indices = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        if len({*values, *self._kept}) > MOST_CATEGORIES + 1:
            return self._close()
        counts = np.bincount(indices[drawn], minlength=len(values))
        of_left = indices[left]
        order = np.argsort(of_left, kind="stable")
        begins = np.searchsorted(of_left[order], np.arange(len(values) + 1))
        chosen = []
        for code, value in enumerate(values):
            kept = self._kept.setdefault(value, [])
            self._drawn[value] = self._drawn.get(value, 0) + int(counts[code])
            missing = self._k - len(kept)
            if missing > 0:
                rows = left[order[begins[code] : min(begins[code] + missing, begins[code + 1])]]
                kept += (rows + first).tolist()
                chosen.append(rows)
        return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)

    def _close(self) -> Ints:
        if self._is_category:
            raise ValueError(
                f'column "{self._name}" has more than {MOST_CATEGORIES:,} different values; '
                "leave it out of cols or generalize it first."
            )
        self._is_open, self._kept = False, {}
        return np.zeros(0, np.int64)

    def places(self) -> Ints:
        """Return the rows of values of which fewer than k were drawn."""
        rare = [rows for value, rows in self._kept.items() if self._drawn[value] < self._k]
        return np.array([row for rows in rare for row in rows], np.int64)


class _Ends:
    """The k lowest and the k highest numbers of a column."""

    def __init__(self, name: str, k: int) -> None:
        self._name, self._k = name, k
        self._lowest: tuple[Floats, Ints] = (np.zeros(0), np.zeros(0, np.int64))
        self._highest = self._lowest

    def read(self, array: pa.Array, left: Ints, first: int) -> Ints:
        """Look at the next rows; return those to be kept, for now."""
        numbers = read_doubles(array)
        is_null = np.isnan(numbers)
        if int(is_null.sum()) > array.null_count or np.isinf(numbers).any():
            raise ValueError(f'column "{self._name}" holds NaN or infinity; remove these rows or set them to NULL.')
        rows = left[~is_null[left]]
        self._lowest = self._join(self._lowest, numbers[rows], rows + first)
        self._highest = self._join(self._highest, -numbers[rows], rows + first)
        places = self.places()
        return places[places >= first] - first

    def _join(self, before: tuple[Floats, Ints], numbers: Floats, rows: Ints) -> tuple[Floats, Ints]:
        lowest = _least(numbers, self._k)
        numbers, rows = np.append(before[0], numbers[lowest]), np.append(before[1], rows[lowest])
        lowest = _least(numbers, self._k)
        return numbers[lowest], rows[lowest]

    def places(self) -> Ints:
        """Return the rows that are kept."""
        return np.append(self._lowest[1], self._highest[1])


def _least(numbers: Floats, count: int) -> Ints:
    if len(numbers) <= count:
        return np.arange(len(numbers))
    return np.argpartition(numbers, count - 1)[:count]


BYTES_OF_ROW, BYTES_OF_CELL, BYTES_OF_CODE = 200, 80, 24
"""Memory of a part, for each row, for each of its values, and for each column of the matrix that they become."""

_SAMPLE = 200_000
"""Rows that columns are read by, at most, beside those of rare values."""

_BATCH = 100_000
_CHANCE = "_duckanon_chance"
_DRAWN = "drawn_rows"
_ENDS = "ends_of_numbers"


@face_of(PICA, "large")
def pica(
    source: Source,
    target: Target,
    options: Options,
    *,
    memory: str = "2GB",
    temporary: Place | None = None,
    replace: bool = False,
) -> pipeline.Released:
    """Write new records that keep nonlinear structure: the components of clusters of similar records are permuted.

    k must be at least 2. Where a part fails its checks with clusters of ``cluster_size``, it has larger ones. ``seed``
    makes the records of the same rows in the same order repeatable; the order of the released rows never is.

    Columns are read as in a sample of the table, to which rows are added until it tells what the table does: which
    categories k people share, and who the k people at the ends of a number are.

    Args:
        source, target, memory, temporary, replace: As for `workspace`.

    Returns:
        Its `smallest_class` are the people of the source who share the rarest category or special value that was
        written. Its notes say how large the clusters are, and how many rows a repair has suppressed.
    """
    k, nulls, seed, checks = (options[name] for name in ("k", "nulls", "seed", "checks"))
    with open_workspace("anon.pica", options, source, target, memory, temporary, replace) as (work, layout):
        refuse_unless(Whole(2), "k", k)
        random = make_generator(seed)
        rows = _rows(work.con, layout, nulls)
        sample = _sample(work, layout, k, rows, seed)
        settings = Settings(k, options["special"], options["categories"], options["derived"])
        plain = ThesisColumns.of(sample.table, None, nulls, settings, random)
        whole = _code_sample(plain, sample.drawn, plain.log(options["log"]), options["basis"], checks, random)
        bytes_of_row = BYTES_OF_ROW + BYTES_OF_CELL * len(layout.names) + BYTES_OF_CODE * whole.encoding.width
        part_rows = work.memory.part // bytes_of_row
        size = _size(whole, rows, options["cluster_size"], part_rows)
        tree, expressions = _tree(work.con, layout, whole.encoding, sample, random, rows, size, part_rows)
        least = max(k, int(size)) if size < rows else k
        files = pipeline.route(work, layout.columns, tree, expressions, least, None)
        alike = SurveyColumns(plain, k)
        del plain, sample

        def release_part(part: pa.Table) -> pa.Table:
            chance = random.spawn(1)[0]
            part = part.cast(alike.schema)
            if seed is not None:  # the order in which DuckDB's threads wrote them is another each time
                part = part.sort_by([(name, "ascending") for name in part.column_names])
            matrix = whole.encoding.matrix(alike.table(part, chance), np.float32)
            records = dataclasses.replace(whole, matrix=matrix, random=chance)
            return alike.release(records.release_enlarging(min(size, len(matrix))))

        results = pipeline.release_parts(work, files, release_part, pipeline.blocks_of(rows, part_rows))
        written = pipeline.mix_results(work, results, lambda block: block, None, False)
        fewest = _least_shared(work.con, written, alike, k, results.rows)
        return pipeline.Released(results.rows, len(files), fewest, _notes(size, rows, results.rows), work.reader())


def _rows(con: duckdb.DuckDBPyConnection, layout: Checked, nulls: str) -> int:
    """Count the rows, and refuse what no release is made of."""
    rows, missing = rows_and_nulls(con, layout.names)
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    refuse_columns(layout)
    if nulls == "error":
        refuse_nulls(missing)
    return rows


def _sample(work: Workspace, layout: Checked, k: int, rows: int, seed: int | None) -> Sample:
    """Draw the rows that columns are read by; an ENUM is text, as in what is released."""
    selected = ", ".join(
        f"{sql.quote(name)}::VARCHAR AS {sql.quote(name)}" if layout.types[name].startswith("ENUM") else sql.quote(name)
        for name in layout.columns
    )
    reader = arrow_reader(work.con.sql(f"SELECT {selected} FROM {SOURCE}"), _BATCH)
    wanted = min(_SAMPLE, work.memory.part // (BYTES_OF_ROW + BYTES_OF_CELL * len(layout.names)))
    return sample_table(reader, reader.schema, k, rows, wanted, seed)


def _code_sample(
    plain: ThesisColumns, drawn: int, log: list[str] | None, basis: str, checks: str, random: np.random.Generator
) -> ClusterSwap:
    """Code the rows that were drawn, with the categories of all of the sample and the scales of those rows alone."""
    partitioned = ClusterSwap.of(plain.table, log, "error", basis, "bisect", checks, random, plain.places)
    coded = partitioned.encoding
    logged = [column.name for column in coded.columns if isinstance(column, NumberColumn) and column.logged]
    rows = plain.table.slice(0, drawn)
    scales, _ = fit_columns(rows, log=logged, lenient=True, places=plain.places)
    columns = [
        _scale_column(column, scale) if isinstance(column, NumberColumn) and isinstance(scale, NumberColumn) else column
        for column, scale in zip(coded.columns, scales.columns, strict=True)
    ]
    encoding = Encoding(tuple(columns), coded.schema)
    return dataclasses.replace(partitioned, encoding=encoding, matrix=encoding.matrix(rows, np.float32))


def _scale_column(column: NumberColumn, scale: NumberColumn) -> NumberColumn:
    """Give a column the mean and the deviation of another one, which counts whole steps from another end."""
    apart = scale.low - column.low if isinstance(column.low, int) and not column.logged else 0
    return dataclasses.replace(column, mean=scale.mean + apart, deviation=scale.deviation)


def _size(whole: ClusterSwap, rows: int, asked: float | None, part_rows: int) -> float:
    """Return how many records a cluster should have: as asked, or as the search finds; infinity: all of a part."""
    if asked is not None:
        if rows > part_rows < 1.5 * asked:
            raise ValueError(
                f"cluster_size must be at most {int(part_rows / 1.5)}, so that a cluster fits into memory; got {asked}."
            )
        return float(asked)
    with progress.step(0.0, 0.0):  # the parts that follow take nearly all the time
        result = whole.search(None)
    if result.cluster_size is None:
        raise ValueError(result.refusal(rows))
    return result.cluster_size if result.cluster_size < min(len(whole.matrix), SEARCHED_ROWS) else float("inf")


def _tree(
    con: duckdb.DuckDBPyConnection,
    layout: Checked,
    encoding: Encoding,
    sample: Sample,
    random: np.random.Generator,
    rows: int,
    size: float,
    part_rows: int,
) -> tuple[Tree, Mapping[str, str]]:
    """Fit the tree that sends rows into parts: by their numbers, and at random where these tell no more apart.

    Where all rows should be one cluster, parts are drawn at random alone: each is like the whole table.
    """
    key = int(random.integers(2**62))
    expressions = {_CHANCE: f"(hash({sql.quote_all(layout.columns)}, {key}) / 18446744073709551616.0)"}
    tree: Tree = 0
    counts: dict[int, float] = {0: rows}
    if size < rows:
        con.register(_DRAWN, sample.table.slice(0, sample.drawn))
        axes = dict(_axes(con, layout, encoding))
        con.unregister(_DRAWN)
        columns = {name: numbers for name, (_, numbers) in axes.items()}
        expressions |= {name: expression for name, (expression, _) in axes.items()}
        if columns:
            weights = [1.0 / float(numbers.std()) for numbers in columns.values()]
            tree = fit_tree(columns, weights, rows, max(int(size), 2), part_rows)
            share = rows / sample.drawn
            counts = dict(enumerate((np.bincount(routed_rows(tree, columns)) * share).tolist()))
    return divide_parts(tree, counts, part_rows, _CHANCE), expressions


def _axes(
    con: duckdb.DuckDBPyConnection, layout: Checked, encoding: Encoding
) -> Iterator[tuple[str, tuple[str, Floats]]]:
    """Say how the tree sees the columns that are numbers: an SQL expression, and the numbers of the sample by it."""
    logged = {column.name for column in encoding.columns if isinstance(column, NumberColumn) and column.logged}
    for name in layout.names:
        if not has_numbers(con, layout.types[name]):
            continue
        expression = layout.expressions[name]
        if name in logged:
            least = f"(SELECT min({expression}) FROM {_DRAWN} WHERE {expression} > 0)"
            (lowest,) = sql.fetch_row(con, f"SELECT {least}::DOUBLE")
            expression = f"ln(greatest({expression}, {lowest!r}))"
        table = arrow_reader(con.sql(f"SELECT {expression} AS number FROM {_DRAWN}"), _BATCH).read_all()
        numbers = nulls_beyond(np.array(table.column(0).to_numpy(), np.float64))
        if numbers.min() < numbers.max():
            yield name, (expression, numbers)


def _notes(size: float, rows: int, released: int) -> tuple[str, ...]:
    notes = ["all rows of a partition are one cluster."]
    if size < rows:
        notes = [f"the clusters have about {round(size)} rows, or more where a partition had failed its checks."]
    if released < rows:
        notes.append(f"{rows - released} rows were suppressed, since they revealed records.")
    return tuple(notes)


def _least_shared(
    con: duckdb.DuckDBPyConnection,
    written: str,
    alike: SurveyColumns,
    k: int,
    rows: int,
) -> int:
    """Count what was promised of written rows: no choice of fewer than k people, no number beyond its bounds.

    Returns the people of the source who hold the rarest choice; all rows where there are no choices.
    """
    (count,) = sql.fetch_row(con, f"SELECT count(*) FROM {written}")
    if count != rows:
        raise AssertionError("rows are missing in the written release.")
    (fewest,) = sql.fetch_row(con, f"SELECT count(*) FROM {SOURCE}")
    for column in alike.list_independent():
        value = _round_for_counting(column)
        is_choice = "TRUE" if column.regular is None else _is_beyond(con, column, alike)
        is_label = f"value = {sql.literal(column.merged)}"
        (smallest,) = sql.fetch_row(
            con,
            f"WITH chosen AS (SELECT DISTINCT {value} AS value FROM {written} WHERE {is_choice}), "
            f"held AS (SELECT {value} AS value, TRUE AS is_held FROM {SOURCE}), "
            "counts AS (SELECT chosen.value, count(is_held) AS people FROM chosen LEFT JOIN held "
            "ON chosen.value IS NOT DISTINCT FROM held.value GROUP BY chosen.value) "
            f"SELECT min(people) FROM counts WHERE ({is_label}) IS NOT TRUE",
        )
        if smallest is not None and smallest < k:
            raise AssertionError(f"a value of the written release is shared by fewer than {k} people.")
        fewest = fewest if smallest is None else min(fewest, smallest)
    return int(fewest)


def _round_for_counting(column: ColumnParts) -> str:
    """Return what people are counted by: floats without what computations left behind their decimals."""
    quoted = sql.quote(column.name)
    if pa.types.is_floating(column.type):
        return f"round({quoted}::DOUBLE, {MOST_DECIMALS})"
    return f"{quoted}::VARCHAR" if column.regular is None else quoted


def _is_beyond(con: duckdb.DuckDBPyConnection, column: ColumnParts, alike: SurveyColumns) -> str:
    """Return the condition of values that only a choice can be."""
    bounds = alike.bounds[column.name]
    ends = alike.types.write_column(column.name, bounds.grid.array(np.array([bounds.lowest, bounds.highest]), None))
    con.register(_ENDS, pa.table({"low": ends[:1], "high": ends[1:]}))
    quoted = sql.quote(column.name)
    return f"({quoted} NOT BETWEEN (SELECT low FROM {_ENDS}) AND (SELECT high FROM {_ENDS}) OR {quoted} IS NULL)"
