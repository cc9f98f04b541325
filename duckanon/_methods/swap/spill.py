"""Scores too many for memory, in temporary files: records go to blocks at random, and come back a block at a time."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckanon._core.encoding.table_encoding import FEWEST_ROWS, ROWS_PER_COMPONENT

_BYTES = 4  # of a float32
_MARGIN = 1.1  # blocks drawn at random differ in size
_READ_ROWS = 2**14  # turned from records to components at a time


def blocks_needed(rows: int, rank: int, memory_limit: int | None) -> int:
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


class ScoreBlocks:
    """Float32 scores of records, spread at random over files that are removed in the end."""

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
