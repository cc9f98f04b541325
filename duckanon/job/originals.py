"""The files that a job reads, none of which it may write, by whatever name they are reached."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from duckanon._bridge.opened_files import opened_files
from duckanon._core.common.outbox import lock_path
from duckanon.job.errors import FileProblem


class Originals:
    """The files that a job has read so far.

    Two names are of one file if its device and its number are the same, or, where there is no file yet, if they lead to
    the same place.

    Args:
        written: The files that the job writes.
        read: The files that it is known to read before it begins.
    """

    def __init__(self, written: Iterable[Path], read: Iterable[Path] = ()) -> None:
        self._written = list(written)
        self._read: set[tuple[int, int] | str] = set()
        self.add(read)

    def add(self, paths: Iterable[Path]) -> None:
        """Remember files that are read, and refuse where the job would write one of them."""
        for path in paths:
            self._read |= _identities(path)
        for path in self._written:
            self.refuse(path)
            if _identities(lock_path(path)) & self._read:
                raise FileProblem(f"{lock_path(path)}: the job reads this file, and must not use it as its lock.")

    def refuse(self, path: Path) -> None:
        """Refuse to write a file that was read."""
        if _identities(path) & self._read:
            raise FileProblem(f"{path}: the job reads this file, and must not overwrite it; name another.")

    @contextmanager
    def watched(self, con: duckdb.DuckDBPyConnection) -> Iterator[Callable[[], None]]:
        """Remember all that DuckDB opens as long as the block lasts; give a function that looks before the end."""
        with opened_files(con) as so_far:

            def look() -> None:
                self.add(so_far())

            yield look
            look()


def _identities(path: Path) -> set[tuple[int, int] | str]:
    """Return what tells a file from others: where its name leads, and, if it is there, its device and number."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # what DuckDB reads elsewhere, on a server, is no file here
        return {os.path.realpath(path)}
    return {os.path.realpath(path), (state.st_dev, state.st_ino)}
