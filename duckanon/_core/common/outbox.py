"""Files that appear under their names only when all is well: written beside, renamed in the end.

A file is written into a hidden folder beside the place where it is to stand, which nobody else may look into, and takes
its name by a rename, which the file system does at once or not at all. Whoever kills the job leaves a hidden folder at
the worst; the next run of the same target removes it.

A file system renames one file at once, not several. So a journal of all renames is written first: a run that is killed
between two of them is completed by the next run of any of its targets, and one that is killed before the journal is
whole has decided nothing.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from duckanon._core.common import own_files
from duckanon._core.common.own_files import BaseFileLock, is_of_user, release_lock, take_lock, temporary_folder

_JOURNAL = ".duckanon-journal"
_FORMER = ".duckanon-former"

Pair = tuple[Path, Path]
"""Where a file is, and where it is to be."""


def sync(path: Path) -> None:
    """Wait until a file or a folder is safe on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def decide(pairs: Sequence[Pair], mark: str | None) -> None:
    """Write down what is going to be renamed; with the mark of a server's tables, once these are committed."""
    first = pairs[0][0].parent
    for hidden, _ in pairs[1:]:
        (hidden.parent / _JOURNAL).write_text(json.dumps({"first": str(first)}), encoding="utf-8")
        sync(hidden.parent)
    draft = first / f"{_JOURNAL}-draft"
    files = [[str(hidden), str(path)] for hidden, path in pairs]
    draft.write_text(json.dumps({"files": files, "mark": mark}), encoding="utf-8")
    sync(draft)
    os.replace(draft, first / _JOURNAL)
    sync(first)


def rename(pairs: Sequence[Pair], refuse: Callable[[Path], None], *, is_undone: bool) -> None:
    """Give all files their names; where one cannot have it, the others get back what was there if `is_undone`.

    Of several files the last is the record of the others: what is in its place goes first, so that there is no moment
    in which a record tells of other files than those that are there.
    """
    done: list[Pair] = []
    try:
        for hidden, path in pairs[-1:] if len(pairs) > 1 else []:
            refuse(path)
            with contextlib.suppress(FileNotFoundError):
                os.replace(path, hidden.parent / _FORMER)
                done.append((hidden.parent / _FORMER, path))
                sync(path.parent)
        for hidden, path in pairs:
            refuse(path)
            kept = (hidden.parent / _FORMER, path)
            if kept not in done:
                _keep_former(path, kept[0])
            os.replace(hidden, path)
            if kept not in done:
                done.append(kept)
            sync(path.parent)
    except Exception:
        for former, path in reversed(done if is_undone else []):
            with contextlib.suppress(OSError):
                _put_back(former, path)
        raise


def _keep_former(path: Path, former: Path) -> None:
    """Keep what is in a file's place, to be put back."""
    try:
        os.link(path, former)
    except (FileNotFoundError, FileExistsError):
        return
    except OSError:  # a file system without hard links
        shutil.copy2(path, former)


def _put_back(former: Path, path: Path) -> None:
    if not former.exists():
        path.unlink()
        return
    try:
        os.replace(former, path)
    except OSError:
        shutil.copy2(former, path)


def forget(pairs: Sequence[Pair]) -> None:
    """Take a decision back, or strike it off once it is done: before any of its files goes."""
    if pairs:
        (pairs[0][0].parent / _JOURNAL).unlink(missing_ok=True)


def complete(folder: Path, is_committed: Callable[[str], bool], refuse: Callable[[Path], None]) -> None:
    """Do what a killed run had decided, if it had, and the folder is of its files.

    Only folders of this user that nobody else may look into are believed, and only files in folders that were made for
    the names that they get.
    """
    journal = _read_journal(folder)
    if journal and "first" in journal:
        journal = _read_journal(Path(journal["first"]))
    if not journal or "files" not in journal:
        return
    pairs = [(Path(hidden), Path(path)) for hidden, path in journal["files"]]
    for hidden, path in pairs:
        folder = hidden.parent
        if (hidden.name, folder.parent) != (path.name, path.parent) or not folder.name.startswith(
            f".{path.name}.duckanon-"
        ):
            return
    if journal.get("mark") is None or is_committed(journal["mark"]):
        rename([(hidden, path) for hidden, path in pairs if hidden.exists()], refuse, is_undone=False)
    forget(pairs)


def _read_journal(folder: Path) -> dict[str, Any] | None:
    try:
        state = folder.stat()
        if not is_of_user(state) or (os.name != "nt" and state.st_mode & 0o077):
            return None
        journal = json.loads((folder / _JOURNAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return journal if isinstance(journal, dict) else None


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
        self._only_read = [_follow_links(path) for path in only_read]
        self._paths = [_follow_links(path) for path in paths]
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
                self._locks.append(self._take_lock(path))
            for path in self._paths:
                self._clean(path)
            for path in self._only_read:
                with contextlib.suppress(OSError):
                    if lock := take_lock(lock_path(path)):  # else a run that still writes it
                        self._clean(path)
                        release_lock(lock)
            self.spill = self._open.enter_context(temporary_folder(self._spill_in))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what did not get its name."""
        with contextlib.suppress(OSError):
            forget(self._pairs())
        for hidden in self._beside.values():
            own_files.remove_folder(hidden.parent)
        self._open.close()
        for lock in self._locks:
            release_lock(lock)
        self._locks = []

    def beside(self, path: Path) -> Path:
        """Return where a file is written before it is published."""
        path = _follow_links(path)
        if path not in self._beside:
            self._beside[path] = self._make_hidden(path)
        return self._beside[path]

    def write(self, path: Path, text: str) -> None:
        """Write a text beside its place."""
        hidden = self.beside(path)
        with self._writing(path):
            hidden.write_text(text, encoding="utf-8")

    def put(self, path: Path, text: str) -> None:
        """Write a text that is not part of the release, at once or not at all."""
        path = _follow_links(path)
        hidden = self._make_hidden(path)
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
                sync(hidden)
            decide(pairs, mark if commit else None)
            if commit:
                commit(mark)
            rename(pairs, self._refuse, is_undone=is_undone)
        except OSError as error:
            raise self.problem(f"{error.filename}: it cannot be put in its place ({error.strerror}).") from None

    def _pairs(self) -> list[Pair]:
        return [(hidden, path) for path, hidden in self._beside.items()]

    def _make_hidden(self, path: Path) -> Path:
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

    def _take_lock(self, path: Path) -> BaseFileLock:
        with self._writing(path):
            lock = take_lock(lock_path(path))
        if lock is None:
            raise self.problem(
                f"{path}: another run writes it at the moment; if it is that of another policy, name another file."
            )
        return lock

    def _clean(self, path: Path) -> None:
        for leftover in path.parent.glob(f".{glob.escape(path.name)}.duckanon-*"):
            if not own_files.has_mark(leftover):
                continue
            try:
                complete(leftover, self._is_committed, self._refuse)
            except OSError as error:
                raise self.problem(
                    f"{path}: what a killed run had released cannot be put in its place ({error.strerror})."
                ) from None
            own_files.remove_folder(leftover)


def lock_path(path: Path) -> Path:
    """Return the file of the lock of a file."""
    path = _follow_links(path)
    return path.parent / f".{path.name}.duckanon.lock"


def _follow_links(path: Path) -> Path:
    """Follow links: a rename would replace the link, and leave the old release where readers look."""
    return Path(os.path.realpath(path))
