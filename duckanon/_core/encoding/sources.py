"""Tables that can be read more than once as Arrow batches, whatever they come from.

Batches have exactly the rows that were asked for, so that sums are rounded the same way however a source cuts its rows,
and a seed repeats a release. A reader that can be read only once is kept in a temporary file until it is closed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from duckanon._core.common.names import unknown_column


@dataclass(frozen=True)
class Source:
    """Columns of a table that can be read again and again.

    The schema is that of the chosen columns, as they were asked for; `rows` is None where it is not known before.
    """

    schema: pa.Schema
    rows: int | None
    _read: Callable[[], Iterable[pa.RecordBatch]] = field(repr=False)
    _spool: Any = field(default=None, repr=False)

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Read all rows from the start, in batches of exactly `rows`, the last one smaller.

        Exactly, so that sums are rounded the same way however the source cuts its rows: a seed repeats a release.
        """
        waiting: list[pa.RecordBatch] = []
        count = 0
        names = self.schema.names
        for batch in self._read():
            chosen = batch if batch.schema.names == names else batch.select(names)
            start = 0
            while start < chosen.num_rows:
                piece = chosen.slice(start, rows - count)
                start += piece.num_rows
                count += piece.num_rows
                waiting.append(piece)
                if count == rows:
                    yield _join_batches(waiting)
                    waiting, count = [], 0
        if waiting:
            yield _join_batches(waiting)

    def batches_of(self, total: int, rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read the rows once more in batches of `rows`, each with the number of rows before it.

        A source that does not have as many rows in total as the time before is refused.
        """
        start = 0
        for batch in self.batches(rows):
            if start + batch.num_rows > total:
                break
            yield start, batch
            start += batch.num_rows
        if start != total:
            raise ValueError(
                f"the source must give the same rows each time that it is read; got {total:,}, then other ones."
            )

    def close(self) -> None:
        """Remove the temporary file, if there is one."""
        if self._spool is not None:
            self._spool.cleanup()


Readable: TypeAlias = (
    Source
    | pa.Table
    | pa.RecordBatch
    | ds.Dataset
    | pa.RecordBatchReader
    | str
    | os.PathLike[str]
    | Callable[[], pa.RecordBatchReader | pa.Table | Iterable[pa.RecordBatch]]
)
"""Whatever `open_source` can read."""


def open_source(source: Readable, cols: Sequence[str] | None = None) -> Source:
    """Make a source of whatever holds a table.

    Args:
        source: A pyarrow Table, RecordBatch or Dataset, the path of a Parquet file or of a folder of them, a function
            that returns a RecordBatchReader or batches each time that it is called, or a RecordBatchReader, which can
            be read only once and is therefore kept in a temporary file until `close`. A Source is returned as it is.
        cols: The columns to read; None for all.
    """
    if isinstance(source, Source) and cols is None:
        return source
    schema, rows, read, spool = _open_any(source, cols)
    try:
        return Source(_choose_columns(schema, cols), rows, read, spool)
    except ValueError:
        if spool is not None:
            spool.cleanup()
        raise


@contextmanager
def use_source(source: Readable, cols: Sequence[str] | None = None) -> Iterator[Source]:
    """Open a source as `open_source` does, and close it in the end unless it was open already."""
    opened = open_source(source, cols)
    try:
        yield opened
    finally:
        if opened is not source:
            opened.close()


_OpenSource = tuple[pa.Schema, int | None, Callable[[], Iterable[pa.RecordBatch]], Any]


def _open_any(source: Readable, cols: Sequence[str] | None) -> _OpenSource:
    wanted = None if cols is None else list(dict.fromkeys(cols))
    if isinstance(source, Source):
        return source.schema, source.rows, source._read, source._spool
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        table = source
        return table.schema, table.num_rows, lambda: table.select(_list_known(table.schema, wanted)).to_batches(), None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_file():
            try:
                parquet = pq.ParquetFile(path)
            except pa.ArrowInvalid:
                raise ValueError(f"{source} is no Parquet file; give the path of one.") from None
            schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
            parquet.close()
            return schema, rows, lambda: _parquet_batches(path, _list_known(schema, wanted)), None
        if not path.exists():
            raise ValueError(f"there is no Parquet file {source}; give the path of one that exists.")
        source = ds.dataset(path, format="parquet")
    if isinstance(source, ds.Dataset):
        dataset = source
        # Read little ahead: by default hundreds of batches are held, which take more memory than the work itself.
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}
        names = _list_known(dataset.schema, wanted)
        return dataset.schema, None, lambda: dataset.scanner(columns=names, **ahead).to_batches(), None
    if isinstance(source, pa.RecordBatchReader):
        return _spool_reader(source)
    if callable(source):
        rows_read = source()
        if isinstance(rows_read, pa.RecordBatchReader | pa.Table):
            schema = rows_read.schema
        else:
            first = next(iter(rows_read), None)
            if first is None:
                raise ValueError("the table has no rows; give one that has.")
            schema = first.schema
        return schema, None, lambda: _batches(source()), None
    raise ValueError(
        "the source must be an Arrow table, dataset or reader, the path of a Parquet file, or a function that returns "
        f"batches; got {type(source).__name__}."
    )


def _choose_columns(schema: pa.Schema, cols: Sequence[str] | None) -> pa.Schema:
    names = schema.names if cols is None else list(cols)
    for name in names:
        if name not in schema.names:
            raise ValueError(unknown_column(name, schema.names))
        if names.count(name) > 1 or schema.names.count(name) > 1:
            raise ValueError(f'column "{name}" occurs more than once; give every column once, under a name of its own.')
    return pa.schema([schema.field(name) for name in names])


def _list_known(schema: pa.Schema, wanted: list[str] | None) -> list[str]:
    return schema.names if wanted is None else [name for name in wanted if name in schema.names]


def _batches(table: Any) -> Any:
    return table.to_batches() if isinstance(table, pa.Table) else table


def _parquet_batches(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as parquet:
        yield from parquet.iter_batches(columns=names)


def _spool_reader(reader: pa.RecordBatchReader) -> _OpenSource:
    spool = tempfile.TemporaryDirectory(prefix="duckanon-")
    path = os.path.join(spool.name, "rows.arrow")
    rows = 0
    try:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
    except BaseException:
        spool.cleanup()
        raise
    return reader.schema, rows, lambda: _stream_batches(path), spool


def _stream_batches(path: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path, "rb") as file, pa.ipc.open_stream(file) as stream:
        yield from stream


def _join_batches(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches)
    if any(pa.types.is_dictionary(kind) for kind in table.schema.types):
        table = table.unify_dictionaries()
    return table.combine_chunks().to_batches()[0]
