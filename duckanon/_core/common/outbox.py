"""Files that appear under their names only when all is well: written beside, renamed in the end.

A file is written into a hidden folder beside the place where it is to stand, which nobody else may look into, and takes
its name by a rename, which the file system does at once or not at all. Whoever kills the job leaves a hidden folder at
the worst; the next run of the same target removes it. What was decided and not done, since a run was killed between two
of its renames, is done by the next run (`journal`).
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Self

from duckanon._core.common import journal, own_files
from duckanon._core.common.locks import BaseFileLock, give_back, take_lock, temporary_folder


class Outbox:
    """The files of one run; leaving it removes what did not get its name.

    Args:
        paths: The files that the run may write: no other run may write them meanwhile.
        is_committed: Tells whether the tables of servers that a killed run wrote have its mark.
        refuse: Raises an error about a file that must not be replaced; asked before each rename.
        spill_in: The folder for what does not fit into memory; None: that of temporary files.
        only_read: Files that former runs wrote, and this one reads: others may read them meanwhile.
    """

    problem: ClassVar[type[Exception]] = OSError
    """Raised where a file cannot be written."""

    def __init__(
        self,
        paths: Iterable[Path],
        is_committed: Callable[[str], bool] = lambda mark: False,
        refuse: Callable[[Path], None] = lambda path: None,
        spill_in: Path | None = None,
        only_read: Iterable[Path] = (),
    ) -> None:
        self._only_read = [_real(path) for path in only_read]
        self._paths = [_real(path) for path in paths]
        self._is_committed = is_committed
        self._refuse = refuse
        self._beside: dict[Path, Path] = {}
        self._locks: list[BaseFileLock] = []
        self._spill_in = spill_in
        self._open = contextlib.ExitStack()
        self.spill = Path()  # for what does not fit into memory: originals do not belong where releases are fetched

    def __enter__(self) -> Self:
        """Take the locks, do what killed runs had decided, and remove what else they left."""
        try:
            for path in self._paths:
                self.check_place(path)
                self._locks.append(self._locked(path))
            for path in self._paths:
                self._clean(path)
            for path in self._only_read:
                with contextlib.suppress(OSError):
                    if lock := take_lock(lock_path(path)):  # else a run that still writes it
                        self._clean(path)
                        give_back(lock)
            self.spill = self._open.enter_context(temporary_folder(self._spill_in))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what did not get its name."""
        with contextlib.suppress(OSError):
            journal.forget(self._pairs())
        for hidden in self._beside.values():
            own_files.remove_folder(hidden.parent)
        self._open.close()
        for lock in self._locks:
            give_back(lock)
        self._locks = []

    def beside(self, path: Path) -> Path:
        """Return where a file is written before it is published."""
        path = _real(path)
        if path not in self._beside:
            self._beside[path] = self._hidden(path)
        return self._beside[path]

    def write(self, path: Path, text: str) -> None:
        """Write a text beside its place."""
        hidden = self.beside(path)
        with self._writing(path):
            hidden.write_text(text, encoding="utf-8")

    def put(self, path: Path, text: str) -> None:
        """Write a text that is not part of the release, at once or not at all."""
        path = _real(path)
        hidden = self._hidden(path)
        try:
            with self._writing(path):
                hidden.write_text(text, encoding="utf-8")
                self._refuse(path)
                os.replace(hidden, path)
        finally:
            own_files.remove_folder(hidden.parent)

    def publish(self, commit: Callable[[str], None] | None = None, *, is_undone: bool = True) -> None:
        """Give all files their names, in the order in which they were begun, after all are safe on the disk.

        `commit` makes the tables of servers visible, with a mark at them, after everything is decided, or enters the
        release with the mark into an account. Unless it is final (`is_undone`), files get back what was there if one
        cannot be renamed.
        """
        mark = f"A release of duckanon, run {secrets.token_hex(8)}"
        pairs = self._pairs()
        for _, path in pairs:
            self._refuse(path)
        try:
            for hidden, _ in pairs:
                journal.sync(hidden)
            journal.decide(pairs, mark if commit else None)
            if commit:
                commit(mark)
            journal.rename(pairs, self._refuse, is_undone=is_undone)
        except OSError as error:
            raise self.problem(f"{error.filename}: it cannot be put in its place ({error.strerror}).") from None

    def _pairs(self) -> list[journal.Pair]:
        return [(hidden, path) for path, hidden in self._beside.items()]

    def _hidden(self, path: Path) -> Path:
        with self._writing(path):
            return own_files.make_folder(f".{path.name}.duckanon-", path.parent) / path.name

    @contextlib.contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.problem(f"{path}: it cannot be written ({error.strerror}).") from None

    def check_place(self, path: Path) -> None:
        """Refuse a path at which no file can be written."""
        if path.is_dir():
            raise self.problem(f"{path}: it is a folder; a file must be named.")
        if not path.parent.is_dir():
            raise self.problem(f"{path}: there is no folder {path.parent}.")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise self.problem(f"{path}: nothing may be written into the folder {path.parent}.")

    def _locked(self, path: Path) -> BaseFileLock:
        with self._writing(path):
            lock = take_lock(lock_path(path))
        if lock is None:
            raise self.problem(
                f"{path}: another run writes it at the moment; if it is that of another policy, name another file."
            )
        return lock

    def _clean(self, path: Path) -> None:
        for leftover in path.parent.glob(f".{glob.escape(path.name)}.duckanon-*"):
            if not own_files.is_marked(leftover):
                continue
            try:
                journal.complete(leftover, self._is_committed, self._refuse)
            except OSError as error:
                raise self.problem(
                    f"{path}: what a killed run had released cannot be put in its place ({error.strerror})."
                ) from None
            own_files.remove_folder(leftover)


def lock_path(path: Path) -> Path:
    """Return the file of the lock of a file."""
    path = _real(path)
    return path.parent / f".{path.name}.duckanon.lock"


def _real(path: Path) -> Path:
    """Follow links: a rename would replace the link, and leave the old release where readers look."""
    return Path(os.path.realpath(path))
