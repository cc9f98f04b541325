"""Files that appear under their names only when all is well: written beside, renamed in the end.

A file is written into a hidden folder beside the place where it is to stand, which nobody else may look into, and takes
its name by a rename, which the file system does at once or not at all. Whoever kills the job leaves a hidden folder at
the worst; the next run of the same target removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Self


class Outbox:
    """The files of one run; leaving it removes what did not get its name.

    Parameters
    ----------
    targets
        The files of the releases: no other run may write them meanwhile.
    others
        Other files that the run writes.
    spill_in
        The folder for what does not fit into memory; None: that of temporary files.

    Attributes
    ----------
    problem
        What is raised where a file cannot be written.
    """

    problem: ClassVar[type[Exception]] = OSError

    def __init__(self, targets: Iterable[Path], others: Iterable[Path] = (), spill_in: Path | None = None) -> None:
        self._targets = [_real(path) for path in targets]
        self._others = [_real(path) for path in others]
        self._beside: dict[Path, Path] = {}
        self._locks: list[tuple[Path, IO[bytes]]] = []
        self._spill_in = spill_in or Path(tempfile.gettempdir())
        self.spill = Path()

    def __enter__(self) -> Self:
        """Take the locks, and remove what killed runs left."""
        try:
            for path in self._targets:
                _check_place(path, self.problem)
                self._locks.append(_locked(path, self.problem))
            for path in [*self._targets, *self._others]:
                _check_place(path, self.problem)
                for leftover in path.parent.glob(f".{glob.escape(path.name)}.duckanon-*"):
                    _remove(leftover)
            self.spill = self._spill_folder()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what did not get its name."""
        self._leave()

    def beside(self, path: Path) -> Path:
        """Return where a file is written before it gets its name."""
        path = _real(path)
        if path not in self._beside:
            try:
                folder = tempfile.mkdtemp(prefix=f".{path.name}.duckanon-", dir=path.parent)
            except OSError as error:
                raise self.problem(f"{path}: it cannot be written ({error.strerror}).") from None
            self._beside[path] = Path(folder) / path.name
        return self._beside[path]

    def write(self, path: Path, text: str) -> None:
        """Write a text beside its place."""
        try:
            self.beside(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise self.problem(f"{path}: it cannot be written ({error.strerror}).") from None

    def publish(self) -> None:
        """Give all files their names, in the order in which they were begun, after all are safe on the disk."""
        try:
            for hidden in self._beside.values():
                _sync(hidden)
            for path, hidden in list(self._beside.items()):
                os.replace(hidden, path)
                _sync(path.parent)
        except OSError as error:
            raise self.problem(f"{error.filename}: it cannot be put in its place ({error.strerror}).") from None

    def _spill_folder(self) -> Path:
        """Make a folder for what does not fit into memory: originals do not belong where releases are fetched."""
        prefix = f"duckanon-{hashlib.sha256(str(self._targets).encode()).hexdigest()[:16]}-"
        for leftover in self._spill_in.glob(f"{prefix}*") if self._targets else ():
            if leftover.stat().st_uid == os.getuid():
                _remove(leftover)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=self._spill_in))

    def _leave(self) -> None:
        for hidden in self._beside.values():
            _remove(hidden.parent)
        if self.spill != Path():
            _remove(self.spill)
        for path, lock in self._locks:
            path.unlink(missing_ok=True)
            lock.close()
        self._locks = []


def _real(path: Path) -> Path:
    """Follow links: a rename would replace the link, and leave the old release where readers look."""
    return Path(os.path.realpath(path))


def _check_place(path: Path, problem: type[Exception]) -> None:
    if path.is_dir():
        raise problem(f"{path}: it is a folder; a file must be named.")
    if not path.parent.is_dir():
        raise problem(f"{path}: there is no folder {path.parent}.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise problem(f"{path}: nothing may be written into the folder {path.parent}.")


def _locked(path: Path, problem: type[Exception]) -> tuple[Path, IO[bytes]]:
    """Take the lock of a target, which ends with the process however that ends."""
    lock_path = path.parent / f".{path.name}.duckanon.lock"
    while True:
        try:
            lock = open(lock_path, "ab")  # noqa: SIM115 - as long as the run lasts
        except OSError as error:
            raise problem(f"{path}: it cannot be written ({error.strerror}).") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise problem(f"{path}: another run writes it at the moment.") from None
        with contextlib.suppress(OSError):
            if os.fstat(lock.fileno()).st_ino == os.stat(lock_path).st_ino:
                return lock_path, lock
        lock.close()  # the run that had it removed it between our two steps


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
