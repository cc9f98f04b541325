"""What duckanon may remove or overwrite: only what it knows as its own by what is inside.

A name decides nothing, since files of somebody else may have any name, those that duckanon makes up among them.

- A folder is removed if it has the mark of `make_folder`, or is empty.
- A file is taken for a lock, which goes with its end, if it is empty or says what locks say.
- A file is replaced if it was there when the run began, the run knew it as its own, and it is still the same one.

Locks between processes guard temporary folders, and end with the process, however that ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_MARK = ".duckanon-folder"
_TEXT = "duckanon made this folder, and removes it with all that is in it.\n"
_LOCK_TEXT = re.compile(rb"\d+\n[^\n\0]{1,255}\n[^\n\0]{0,255}\n?")
"""What a lock says where the system has none of its own: process, computer and start (`filelock.SoftFileLock`)."""

_State = tuple[int, int, int, int]


def make_folder(prefix: str, parent: Path) -> Path:
    """Make a folder that nobody else may look into, with the mark in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    mark_folder(folder)
    return folder


def mark_folder(folder: Path) -> None:
    """Put the mark into a folder that was made just now."""
    (folder / _MARK).write_text(_TEXT, encoding="utf-8")


def has_mark(folder: Path) -> bool:
    """Tell whether a folder has the mark; a process that was killed while it wrote it left nothing else."""
    try:
        names = os.listdir(folder) if not folder.is_symlink() else [""]
        text = (folder / _MARK).read_text(encoding="utf-8") if _MARK in names else None
    except (OSError, UnicodeDecodeError):
        return False
    return not names or text == _TEXT or (names == [_MARK] and _TEXT.startswith(text or ""))


def remove_folder(folder: Path) -> None:
    """Remove a folder of duckanon's, as far as that is possible; one without the mark is left as it is."""
    if not has_mark(folder):
        return
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != _MARK:
            with contextlib.suppress(OSError):
                entry.unlink()
    with contextlib.suppress(OSError):
        if os.listdir(folder) == [_MARK]:  # it goes last: whoever is killed before leaves it
            (folder / _MARK).unlink()
        folder.rmdir()


def is_free_for_lock(path: Path) -> bool:
    """Tell whether a lock may have a name: nothing is there, or a file that holds nothing else than a lock would."""
    try:
        state = os.lstat(path)
        is_small = stat.S_ISREG(state.st_mode) and state.st_size <= 1024
        return is_small and (not state.st_size or _LOCK_TEXT.fullmatch(path.read_bytes()) is not None)
    except FileNotFoundError:
        return True
    except OSError:
        return False


class Replaceable:
    """The files that a run may replace: none is refused before `look`, so that a killed run can be completed.

    Args:
        is_ours: For each path tells whether the file that is there is duckanon's; asked where there is a file.
        error: Makes the error of a file that is not.
    """

    def __init__(self, is_ours: Mapping[Path, Callable[[Path], bool]], error: Callable[[Path], Exception]) -> None:
        self._is_ours = is_ours
        self._error = error
        self._known: dict[str, _State | None] | None = None

    def look(self) -> None:
        """Look once at what is there, and refuse what is not duckanon's."""
        if self._known is not None:
            return
        known = {}
        for path, is_ours in self._is_ours.items():
            state = known[os.path.realpath(path)] = _read_state(path)
            if state is not None and not is_ours(path):
                raise self._error(path)
        self._known = known

    def refuse(self, path: Path) -> None:
        """Refuse to replace a file that is not the one that was looked at, or came since."""
        state = _read_state(path)
        if self._known is not None and state is not None and self._known.get(os.path.realpath(path)) != state:
            raise self._error(path)


def _read_state(path: Path) -> _State | None:
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where a system has no locks of its own, the file says whose lock it is
    from filelock import BaseFileLock as BaseFileLock
    from filelock import FileLock, Timeout


_PREFIX, _LOCK = "duckanon-run-", ".lock"


def take_lock(path: Path) -> BaseFileLock | None:
    """Take a lock, whose file is made for it and removed with it; None if another process has it."""
    if not is_free_for_lock(path):
        why = f"{path.name} has the name of its lock, and is none; move it away"
        raise OSError(errno.EEXIST, why, str(path))
    for _ in range(3):  # a lock is given back at this moment, or says that it is that of a process that was killed
        lock = FileLock(path, blocking=False, thread_local=False)
        with contextlib.suppress(Timeout):
            lock.acquire()
            return lock
    if not path.exists():  # filelock takes this for a lock that is given back
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return None


def release_lock(lock: BaseFileLock) -> None:
    """Give a lock back, and remove its file: before that, so that whoever opened it meanwhile finds it gone."""
    with contextlib.suppress(OSError):
        os.unlink(lock.lock_file)
    lock.release()


def is_of_user(state: os.stat_result) -> bool:
    """Tell whether a file belongs to this user; where systems have no numbers of users, folders are a user's own."""
    return not hasattr(os, "getuid") or state.st_uid == os.getuid()


@contextlib.contextmanager
def temporary_folder(parent: Path | None) -> Iterator[Path]:
    """Make a folder of a run for what does not fit into memory, among temporary files where no parent is given.

    Nobody else may look into it. It is removed in the end, and after a crash by the next run.
    """
    where = parent or Path(tempfile.gettempdir())
    for lock_path in where.glob(f"{_PREFIX}{'[0-9a-f]' * 16}{_LOCK}"):
        with contextlib.suppress(OSError):
            if is_of_user(lock_path.stat()) and (lock := take_lock(lock_path)):  # its process has ended
                remove_folder(lock_path.with_suffix(""))
                release_lock(lock)
    while True:
        folder = where / f"{_PREFIX}{secrets.token_hex(8)}"
        if lock := take_lock(folder.with_suffix(_LOCK)):  # else another process took it for a dead one's
            break
    try:
        folder.mkdir(mode=0o700)
        mark_folder(folder)
        yield folder
    finally:
        remove_folder(folder)
        release_lock(lock)
