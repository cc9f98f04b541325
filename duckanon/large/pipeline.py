"""From the source to the target: rows sent into parts, each part released, the results mixed, written and counted."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon.large.checks import Checked
from duckanon.large.split_tree import Tree, case, merge_parts, part_count
from duckanon.large.workspace import SOURCE, Workspace

_PART = "_duckanon_part"
_RESTING = "64MB"
"""Memory of DuckDB while partitions are processed, which need the rest."""

_MOST_PASSES = 256
"""Passes over the written release in which its classes are counted, at most."""

_GROUP_ROWS = 122_880
"""Rows of a row group of the released file: DuckDB's own number."""


@dataclass(frozen=True)
class Mixed:
    """The results of all parts, each in random order and cut into as many pieces as there are blocks."""

    pieces: list[list[tuple[Path, int]]]  # for each block, the files and the row groups of its pieces
    schema: pa.Schema
    rows: int


def route(
    work: Workspace,
    columns: Sequence[str],
    tree: Tree,
    expressions: Mapping[str, str],
    k: int,
    person: str | None,
    source: str = SOURCE,
) -> list[list[Path]]:
    """Send the rows of a source into parts of at least k people, and return the files of each part.

    `expressions` has for each column that the tree asks for an SQL expression of its number.
    """
    query = f"SELECT {sql.quote_all(columns)}, {case(tree, expressions)} AS {_PART} FROM {source}"
    files = work.partition(query, "parts", _PART, part_count(tree))
    _refuse_other_types(work.con, columns, next(paths for paths in files if paths))
    counts = {part: _people(work.con, paths, k, person) for part, paths in enumerate(files) if paths}
    homes = merge_parts(tree, counts, k)
    joined: dict[int, list[Path]] = {}
    for part, paths in enumerate(files):
        joined.setdefault(homes[part], []).extend(paths)
    return [paths for paths in joined.values() if paths]


def _refuse_other_types(con: duckdb.DuckDBPyConnection, columns: Sequence[str], paths: Sequence[Path]) -> None:
    """Refuse columns whose values Parquet files hold as another type, such as HUGEINT as DOUBLE."""
    of_file = {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM {_files(paths)}").fetchall()}
    for name, kind in sql.columns(con, SOURCE).items():
        if name in columns and kind != of_file[name] and not kind.startswith("ENUM"):
            raise ValueError(f'column "{name}" has the type {kind}, which no Parquet file holds; cast it first.')


def _files(paths: Sequence[Path]) -> str:
    return f"read_parquet({sql.literal([str(path) for path in paths])}, hive_partitioning = false)"


def _people(con: duckdb.DuckDBPyConnection, paths: Sequence[Path], k: int, person: str | None) -> int:
    """Count the people of a part, up to k."""
    if person is None:
        return sum(pq.read_metadata(path).num_rows for path in paths)
    column = sql.quote(person)
    query = f"SELECT DISTINCT {column} FROM {_files(paths)} WHERE {column} IS NOT NULL LIMIT {k}"
    return int(sql.fetch_row(con, f"SELECT count(*) FROM ({query})")[0])


def release_parts(
    work: Workspace, parts: Sequence[Sequence[Path]], release: Callable[[pa.Table], pa.Table], blocks: int
) -> Mixed:
    """Release one part after the other, in random order, and remove its files; the results are mixed in `blocks`."""
    limit = sql.fetch_row(work.con, "SELECT current_setting('memory_limit')")[0]
    work.con.execute(f"SET memory_limit = '{_RESTING}'").fetchall()
    random = make_generator(None)
    pieces: list[list[tuple[Path, int]]] = [[] for _ in range(blocks)]
    schema, rows = None, 0
    for number, paths in enumerate(parts):
        with progress.step(number / len(parts), (number + 1) / len(parts)):
            result = _plain(release(_read(paths)))
        for path in paths:
            path.unlink()
        schema = schema or result.schema
        path = work.folder / f"made_{number}.parquet"
        sizes = random.multinomial(result.num_rows, np.full(blocks, 1 / blocks))
        with pq.ParquetWriter(path, schema, compression="lz4") as writer:
            begin = groups = 0
            for block, size in enumerate(sizes.tolist()):
                if size:
                    writer.write_table(result.slice(begin, size), row_group_size=size)
                    pieces[block].append((path, groups))
                    begin, groups = begin + size, groups + 1
        rows += result.num_rows
        del result
        pa.default_memory_pool().release_unused()
        progress.advance((number + 1) / len(parts))
    work.con.execute(f"SET memory_limit = '{limit}'").fetchall()
    assert schema is not None
    return Mixed(pieces, schema, rows)


def _read(paths: Sequence[Path]) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(path).read() for path in paths])


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries, which would be others in every part."""
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, name, column.cast(column.type.value_type))
    return table.replace_schema_metadata(None)


def mix_results(
    work: Workspace, results: Mixed, finish: Callable[[pa.Table], pa.Table], person: str | None, keeps_person: bool
) -> str:
    """Write the results to the target, in an order that tells neither the source's nor the part.

    Every row goes to a random block, and the rows of a block are in random order; `finish` gives it the columns that
    are released. Returns the written rows in SQL, with those of `person` where they are not released.
    """
    beside_people = work.folder / "people.parquet"
    path = work.hidden if work.table is None else work.folder / "released.parquet"
    apart = person is not None and not keeps_person
    writer = people = None
    for block in _blocks(results):
        if apart:
            person_column = block.select([person])
            people = people or pq.ParquetWriter(beside_people, person_column.schema, compression="lz4")
            people.write_table(person_column, row_group_size=_GROUP_ROWS)
            block = block.drop_columns([person])
        released = finish(block)
        writer = writer or pq.ParquetWriter(path, released.schema)
        writer.write_table(released, row_group_size=_GROUP_ROWS)
        del block, released
        pa.default_memory_pool().release_unused()
    assert writer is not None
    writer.close()
    written = work.write_rows(path)
    if people is None:
        return f"(FROM {written})"
    people.close()
    return f"(SELECT * FROM {written} AS released POSITIONAL JOIN {_files([beside_people])} AS whose)"


def _blocks(results: Mixed) -> Iterator[pa.Table]:
    random = make_generator(None)
    for pieces in results.pieces:
        if pieces:
            block = pa.concat_tables([pq.ParquetFile(path).read_row_group(group) for path, group in pieces])
            yield block.take(pa.array(random.permutation(block.num_rows)))


def count_classes(work: Workspace, written: str, classes: Sequence[str], k: int, person: str | None, rows: int) -> int:
    """Count what was promised of the written rows, and return how many people the smallest class has.

    Where the classes do not fit into memory, they are counted in several passes, each with a share of them.
    """
    passes = 1
    while True:
        try:
            shares = [_count_share(work.con, written, classes, person, place, passes) for place in range(passes)]
            break
        except duckdb.OutOfMemoryException:
            if passes >= _MOST_PASSES:
                raise
            passes *= 4
    smallest = min(size for size, _ in shares if size is not None)
    if smallest < k:
        raise AssertionError(f"a class of the written release has fewer than {k} people.")
    if sum(class_rows for _, class_rows in shares) != rows:
        raise AssertionError("rows are missing in the written release.")
    return int(smallest)


def _count_share(
    con: sql.Connection, written: str, classes: Sequence[str], person: str | None, place: int, passes: int
) -> tuple[int | None, int]:
    """Return the people of the smallest class and the rows of all, of the classes whose hash falls to this pass."""
    progress.check()
    size = "count(*)" if person is None else f"count(DISTINCT {sql.quote(person)})"
    mine = f"WHERE hash(row({sql.quote_all(classes)})) % {passes} = {place}" if passes > 1 else ""
    smallest, class_rows = sql.fetch_row(
        con,
        f"SELECT min(size), coalesce(sum(class_rows), 0)::BIGINT FROM (SELECT {size} AS size, count(*) AS class_rows "
        f"FROM {written} {mine} GROUP BY {sql.quote_all(classes)})",
    )
    return smallest, class_rows


def blocks_of(rows: int, part_rows: int) -> int:
    """Return how many blocks results are mixed in: as large as parts."""
    return max(1, math.ceil(rows / part_rows))


@dataclass(frozen=True)
class Released:
    """A written release.

    Attributes:
        rows: How many rows.
        parts: How many parts they were made in.
        smallest_class: The people of the smallest class, counted in the written file.
        notes: Sentences on what the memory did not allow.
        reader: Reads the release, once, where there is no target; its space is free when it was read to the end or is
            dropped.
    """

    rows: int
    parts: int
    smallest_class: int
    notes: tuple[str, ...] = ()
    reader: pa.RecordBatchReader | None = field(default=None, repr=False, compare=False)


class Columns(ABC):
    """The way from the results of parts to the columns of one release; most depend on no other part."""

    def __init__(self, layout: Checked) -> None:
        self._layout = layout

    def collect(self, result: pa.Table) -> pa.Table:
        """Look at the result of a part, and return it."""
        return result

    def settle(self) -> None:  # noqa: B027 - most have nothing to decide
        """Decide what depends on all parts."""

    @abstractmethod
    def finish(self, block: pa.Table) -> pa.Table:
        """Return the released columns of some rows."""


def run_pipeline(
    work: Workspace,
    layout: Checked,
    files: Sequence[Sequence[Path]],
    release: Callable[[pa.Table], pa.Table],
    columns: Columns,
    k: int,
    rows: int,
    part_rows: int,
) -> Released:
    """Release all parts, write them in random order, and count what was promised.

    `release` makes the release of a part, in random order, with the person's column in it; `columns` puts the results
    of all parts together.
    """
    count = blocks_of(rows, part_rows)
    results = release_parts(work, files, lambda part: columns.collect(release(part)), count)
    columns.settle()
    written = mix_results(work, results, columns.finish, layout.person, layout.person in layout.kept)
    smallest = count_classes(work, written, layout.names, k, layout.person, rows)
    return Released(rows, len(files), smallest, reader=work.reader())
