"""SVD swapping, and partitioned ICA swapping as SQL calls it.

The matrix of the encoded table is turned into its principal components, every component is permuted on its own, and the
result is turned back: the same means and, up to chance, covariances, in records that are new (Thesis, Section 4.1,
Figure 4-1). Only the scores are held, in 32 bits; past a limit of memory they go to files, spread at random, and are
swapped block by block. A release is checked for copies, and permuted anew up to three times where it fails by chance.
Tables of people are read as columns of numbers and categories first (`thesis_columns`), and recombined in the end.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.declare import report_rows
from duckanon._core.common.resources import read_memory
from duckanon._core.encoding.column_codecs import (
    FEWEST_ROWS,
    ROWS_PER_COMPONENT,
    ChoiceCoordinates,
    Encoding,
    refuse_few_rows,
)
from duckanon._core.encoding.fit import Moments, choose_batch_rows, fit_columns
from duckanon._core.encoding.sources import Source, open_source, use_source
from duckanon._core.encoding.whole_sources import make_reader, read_table
from duckanon._core.privacy import self_check
from duckanon._methods.swap.components import permute_components, principal_components
from duckanon._methods.swap.declared import TRIALS
from duckanon._methods.swap.pica import ClusterSwap
from duckanon._methods.swap.thesis_columns import Settings, ThesisColumns

_WATCHED_ROWS = 20_000  # rows that the checks look at, in larger tables drawn at random
_FRESH_DRAWS = 3  # one that fails by chance does not fail again
_MOST_PAIRS = 2 * 10**7  # of rows whose distance is looked at: components permuted over many rows give nobody away
_FITTED, _SCORED, _PERMUTED = 0.3, 0.6, 0.75  # the share of the work done after each step, about as measured

_BYTES = 4  # of a float32
_MARGIN = 1.1  # blocks drawn at random differ in size
_READ_ROWS = 2**14  # turned from records to components at a time


@dataclass(frozen=True)
class SwapOptions:
    """The options of `anon.svd_swap` that the thesis has, too."""

    tolerance: float
    log: Sequence[str] | None
    nulls: str
    checks: str
    seed: int | None


def swap_scores(
    source: object,
    options: SwapOptions,
    *,
    memory_limit: int | None = None,
    places: Mapping[str, ChoiceCoordinates] | None = None,
) -> pa.RecordBatchReader:
    """Swap the principal components of a table.

    No left singular vectors are needed: one pass gives the covariance, whose eigenvectors are the right ones, a second
    one the scores, the only thing that is held, in float32. Corrected: the matrix is centred first, null components are
    left out, and every component is permuted, so that the order of the rows links nothing (REFERENCES.md, Thesis,
    points 1 to 4). When two components correlate too much for long, `permute_components` gives up; the checks look at
    up to 20,000 rows drawn at random, and repair tables of up to 20,000 rows.

    The source is read twice before this returns; the batches are made as they are read.

    Args:
        memory_limit: Bytes for the scores, 4 x rows x rank. Past it the records are swapped inside blocks to which they
            are assigned at random, kept in temporary files meanwhile.
        places: Coordinates of the values of columns that have many: see `fit.fit_columns`.
    """
    random = make_generator(options.seed)
    with use_source(source) as opened:
        with progress.step(0.0, _FITTED):
            encoding, moments = fit_columns(
                opened, log=options.log, nulls=options.nulls, is_watched=True, places=places
            )
        swap = _Swap.of(encoding, moments, options.tolerance, options.checks, random)
        blocks = _count_blocks(moments.rows, swap.rank, memory_limit)
        if blocks > 1:
            files = _ScoreBlocks(blocks, swap.rank, random)
            with progress.step(_FITTED, _SCORED):
                for piece in swap.scores(opened):
                    files.add(piece)
            batches = swap.release_blocks(files)
        else:
            batches = swap.swap(opened)
    return pa.RecordBatchReader.from_batches(encoding.schema, batches)


def swap_block(
    block: pa.Table, encoding: Encoding, moments: Moments, tolerance: float, checks: str, random: np.random.Generator
) -> pa.Table:
    """Swap the components of a whole table, known by its moments, among some of its rows, drawn at random."""
    block_moments = replace(moments, rows=block.num_rows)
    opened = open_source(block)
    batches = list(_Swap.of(encoding, block_moments, tolerance, checks, random).swap(opened))
    return pa.Table.from_batches(batches, encoding.schema)


@dataclass(frozen=True)
class _Swap:
    """Results of the first pass."""

    encoding: Encoding
    rows: int
    mean: NDArray[np.float32]
    directions: NDArray[np.float32]
    tolerance: float
    checks: str
    random: np.random.Generator
    watched: NDArray[np.intp]
    originals: NDArray[np.float32]

    @classmethod
    def of(
        cls, encoding: Encoding, moments: Moments, tolerance: float, checks: str, random: np.random.Generator
    ) -> _Swap:
        _, directions = principal_components(moments.covariance)
        refuse_few_rows(moments.rows, directions.shape[1])
        mean = moments.mean.astype(np.float32)[:, None]
        count = 0 if checks == "off" else min(moments.rows, _WATCHED_ROWS)
        watched = np.sort(random.choice(moments.rows, count, replace=False, shuffle=False))
        originals = np.empty((encoding.width, count), np.float32)
        return cls(
            encoding, moments.rows, mean, directions.astype(np.float32), tolerance, checks, random, watched, originals
        )

    @property
    def rank(self) -> int:
        return int(self.directions.shape[1])

    def scores(self, source: Source, out: NDArray[np.float32] | None = None) -> Iterator[NDArray[np.float32]]:
        """Read the source again and return the scores batch by batch, written into `out` if it is given."""
        projection = np.ascontiguousarray(self.directions.T)
        for start, batch in source.batches_of(self.rows, choose_batch_rows(self.encoding.width)):
            end = start + batch.num_rows
            features = self.encoding.features(batch, np.float32)
            first, last = np.searchsorted(self.watched, (start, end))
            self.originals[:, first:last] = features[:, self.watched[first:last] - start]
            features -= self.mean
            yield np.matmul(projection, features, out=None if out is None else out[:, start:end])
            progress.advance(end / self.rows)

    def swap(self, source: Source) -> Iterator[pa.RecordBatch]:
        """Read the source again, permute its components, and return the batches to be turned back."""
        scores = np.empty((self.rank, self.rows), np.float32)
        with progress.step(_FITTED, _SCORED):
            for _ in self.scores(source, scores):
                pass
        with progress.step(_SCORED, _PERMUTED):
            permute_components(scores, self.tolerance, self.random)
        return self.release([self.check(scores)], _PERMUTED)

    @progress.mute()
    def check(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the permuted scores, permuted anew where they fail by chance, or what is left after a repair."""
        if self.checks == "off":
            return scores
        for _ in range(_FRESH_DRAWS - 1):
            with contextlib.suppress(ValueError):
                return self._screen(scores)
            permute_components(scores, self.tolerance, self.random)
        return self._screen(scores)

    def _screen(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        is_whole = scores.shape[1] == self.rows
        looked_at = self.watched if is_whole else np.arange(min(len(self.watched), scores.shape[1]))
        checks = self.checks if len(looked_at) == self.rows else "error"  # what was not looked at cannot be repaired
        batch = self.encoding.batch(self.directions @ scores[:, looked_at] + self.mean)  # rounded, as it is given away
        released = self.encoding.features(batch, np.float32).T
        advice = "release fewer columns or coarser values"
        kept = self_check.screen_release(self.originals.T, released, checks, self.random, advice, _MOST_PAIRS)
        return scores if kept.all() else np.ascontiguousarray(scores[:, kept])

    def release(self, blocks: Iterable[NDArray[np.float32]], begun: float) -> Iterator[pa.RecordBatch]:
        """Turn permuted scores back into records; `begun` is the share of the work that is done before."""
        step = choose_batch_rows(
            2 * self.encoding.width
        )  # half of it: the reader holds a batch while the next one is made
        done = 0
        for scores in blocks:
            for start in range(0, scores.shape[1], step):
                features = self.directions @ scores[:, start : start + step]
                features += self.mean
                done += features.shape[1]
                yield self.encoding.batch(features)
                progress.advance(begun + (1 - begun) * done / self.rows)

    def release_blocks(self, files: _ScoreBlocks) -> Iterator[pa.RecordBatch]:
        """Permute block after block and turn each back."""
        try:
            yield from self.release(self._permute_blocks(files), _SCORED)
        finally:
            files.close()

    def _permute_blocks(self, files: _ScoreBlocks) -> Iterator[NDArray[np.float32]]:
        for number, scores in enumerate(files):
            with progress.mute():
                permute_components(scores, self.tolerance, self.random)
            yield self.check(scores) if number == 0 else scores


def _count_blocks(rows: int, rank: int, memory_limit: int | None) -> int:
    """Return into how many blocks the scores of a table must be cut; refuse a limit that leaves too few rows each."""
    if memory_limit is None:
        return 1
    needed = _BYTES * rank * rows
    if needed <= memory_limit:
        return 1
    blocks = math.ceil(needed * _MARGIN / memory_limit)
    most = rows // max(FEWEST_ROWS, ROWS_PER_COMPONENT * rank)
    if blocks > most:
        least = needed if most < 2 else math.ceil(needed * _MARGIN / most)
        raise ValueError(f"memory must be at least {least:,} bytes for {rank} components; got {memory_limit:,}.")
    return blocks


class _ScoreBlocks:
    """Float32 scores too many for memory, spread at random over files that are removed in the end."""

    def __init__(self, blocks: int, rank: int, random: np.random.Generator) -> None:
        folder = tempfile.mkdtemp(prefix="duckanon-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)  # also where nobody reads
        self._rank = rank
        self._random = random
        self._paths = [os.path.join(folder, f"{block}.scores") for block in range(blocks)]
        self._counts = np.zeros(blocks, np.int64)

    def add(self, scores: NDArray[np.float32]) -> None:
        """Spread more records, given as components x records, at random: slices would keep neighbours together."""
        block = self._random.integers(len(self._paths), size=scores.shape[1])
        counts = np.bincount(block, minlength=len(self._paths))
        records = np.ascontiguousarray(scores.T)[np.argsort(block, kind="stable")]
        for path, part in zip(self._paths, np.split(records, np.cumsum(counts)[:-1]), strict=True):
            if len(part):
                with open(path, "ab") as file:
                    file.write(part.data)
        self._counts += counts

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        """Return the blocks one by one, components x records, and remove each file once it is read."""
        for path, count in zip(self._paths, self._counts, strict=True):
            if count == 0:
                continue
            scores = np.empty((self._rank, count), np.float32)
            with open(path, "rb") as file:
                for start in range(0, count, _READ_ROWS):
                    part: NDArray[Any] = np.fromfile(file, np.float32, _READ_ROWS * self._rank)
                    part = part.reshape(-1, self._rank)
                    scores[:, start : start + len(part)] = part.T
            os.remove(path)
            yield scores

    def close(self) -> None:
        """Remove what is left of the files."""
        self._remove()


_PURPOSES = {"whole": "one cluster", "bisect": "search", "confirm": "confirm"}


def svd_swap(
    source: object,
    *,
    tolerance: float,
    log: Sequence[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
    k: int,
    special: Any,
    categories: Sequence[str] | None,
    derived: str,
    memory: str | None = None,
) -> pa.RecordBatchReader:
    """Swap the principal components of a table: see `svd_swap`.

    ``memory`` limits the matrix of components, '2GB'; a larger one is swapped within random blocks of rows. It needs
    the settings of the thesis.
    """
    settings = Settings(k, special, categories, derived)
    options = SwapOptions(tolerance, log, nulls, checks, seed)
    if settings.as_in_thesis:
        limit = None if memory is None else read_memory(memory)
        return swap_scores(source, options, memory_limit=limit)
    if memory is not None:
        raise ValueError(
            f"memory must be NULL unless k = 1, special = 'off', categories = [] and derived = 'off'; got {memory!r}."
        )
    thesis_columns = ThesisColumns.of(_read_whole(source), None, nulls, settings, make_generator(seed).spawn(1)[0])
    options = replace(options, log=thesis_columns.log(log), nulls="error")
    return thesis_columns.reader(swap_scores(thesis_columns.table, options, places=thesis_columns.places))


def pica(
    source: object, *, cluster_size: float | None, reference: object = None, **options: Any
) -> pa.RecordBatchReader:
    """Swap independent components inside clusters of similar records; the options are those of `ClusterOptions`.

    A ``reference`` of other people with the same columns is compared with where a cluster size is searched.
    """
    swap, other_people, thesis_columns = prepare_swap(
        source, None if cluster_size else reference, ClusterOptions(**options)
    )
    released = make_reader(swap.release(cluster_size, other_people))
    return released if thesis_columns is None else thesis_columns.reader(released)


def pica_report(table: pa.Table | None, reference: pa.Table | None, **options: Any) -> pa.Table:
    """Report the search for a cluster size; the options are those of `ClusterOptions`."""
    if table is None:
        return report_rows([], TRIALS)
    swap, other_people, _ = prepare_swap(table, reference, ClusterOptions(**options))
    search = swap.search(other_people)
    rows = [
        {
            "step": number,
            "purpose": _PURPOSES[step.stage],
            "cluster_size": round(step.cluster_size),
            **{f"{name}_shift": step.verdict.numbers.get(name) for name in ("distance", "ambiguity", "uncertainty")},
            **{name: step.verdict.numbers.get(name) for name in ("exact_copies", "unique_copies", "near_copies")},
            "passed": step.verdict.passed,
            "chosen": step.cluster_size == search.cluster_size,
        }
        for number, step in enumerate(search.steps, 1)
    ]
    return report_rows(rows, TRIALS)


@dataclass(frozen=True)
class ClusterOptions:
    """The options of `anon.pica` and its report, but for the size of clusters."""

    basis: str
    clustering: str
    log: Sequence[str] | None
    nulls: str
    checks: str
    seed: int | None
    k: int
    special: Any
    categories: Sequence[str] | None
    derived: str


def prepare_swap(
    source: object, reference: object, options: ClusterOptions
) -> tuple[ClusterSwap, pa.Table | None, ThesisColumns | None]:
    """Encode a table that is to be swapped in clusters.

    Also return other people in the same columns, and the thesis's columns; None where the table's own are taken.
    """
    settings = Settings(options.k, options.special, options.categories, options.derived)
    random = make_generator(options.seed)
    how = (options.basis, options.clustering, options.checks, random)
    if settings.as_in_thesis:
        swap = ClusterSwap.of(source, options.log, options.nulls, *how)
        return swap, None if reference is None else read_table(reference, swap.encoding.schema.names), None
    table = _read_whole(source)
    other_people = None if reference is None else read_table(reference, table.column_names)
    thesis_columns = ThesisColumns.of(
        table, other_people, options.nulls, settings, make_generator(options.seed).spawn(1)[0]
    )
    log = thesis_columns.log(options.log)
    swap = ClusterSwap.of(thesis_columns.table, log, "error", *how, thesis_columns.places)
    return swap, thesis_columns.reference, thesis_columns


def _read_whole(source: object) -> pa.Table:
    table = read_table(source)
    if table.num_rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if table.num_columns < 2:
        raise ValueError(f"cols must name at least two columns; got {table.num_columns}.")
    return table
