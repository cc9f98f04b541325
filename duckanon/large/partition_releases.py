"""Releases in partitions: each partition is released, then all are mixed, written and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from duckanon.large import pipeline
from duckanon.large.checks import Checked
from duckanon.large.workspace import Workspace


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


class Columns(Protocol):
    """How the results of parts become the columns of one release."""

    def collect(self, result: pa.Table) -> pa.Table:
        """Look at the result of a part."""

    def settle(self) -> None:
        """Decide what depends on all parts."""

    def finish(self, block: pa.Table) -> pa.Table:
        """Return the released columns of some rows."""


class PartColumns:
    """Columns that no other part has a say in."""

    def __init__(self, what: Checked) -> None:
        self._what = what

    def collect(self, result: pa.Table) -> pa.Table:
        """Take the result as it is."""
        return result

    def settle(self) -> None:
        """Nothing depends on all parts."""


def released(
    work: Workspace,
    what: Checked,
    files: Sequence[Sequence[Path]],
    release: Callable[[pa.Table], pa.Table],
    columns: Columns,
    k: int,
    rows: int,
    part_rows: int,
) -> Released:
    """Release all parts, write them in random order, and count what was promised.

    Args:
        work, what: Where it is done, and which columns there are.
        files: The files of each part.
        release: Makes the release of a part, in random order; the person's column is in it.
        columns: Puts the results together.
        k: How many people each class must have.
        rows: How many rows the release must have.
        part_rows: How many rows fit into memory.
    """
    count = pipeline.blocks_of(rows, part_rows)
    results = pipeline.made(work, files, lambda part: columns.collect(release(part)), count)
    columns.settle()
    written = pipeline.mixed(work, results, columns.finish, what.person, what.person in what.kept)
    smallest = pipeline.counted(work, written, what.names, k, what.person, rows)
    return Released(rows, len(files), smallest, reader=work.reader())
