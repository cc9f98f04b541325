"""Locks between processes, which end with the process however that ends, and the temporary folders that they guard."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where a system has no locks of its own, the file says whose lock it is
    from filelock import BaseFileLock, FileLock, Timeout

from duckanon._core.common import own_files

__all__ = ["BaseFileLock", "give_back", "is_own", "take_lock", "temporary_folder"]

_PREFIX, _LOCK = "duckanon-run-", ".lock"


def take_lock(path: Path) -> BaseFileLock | None:
    """Take a lock, whose file is made for it and removed with it; None if another process has it."""
    if not own_files.is_free_for_lock(path):
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


def give_back(lock: BaseFileLock) -> None:
    """Give a lock back, and remove its file: before that, so that whoever opened it meanwhile finds it gone."""
    with contextlib.suppress(OSError):
        os.unlink(lock.lock_file)
    lock.release()


def is_own(state: os.stat_result) -> bool:
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
            if is_own(lock_path.stat()) and (lock := take_lock(lock_path)):  # its process has ended
                own_files.remove_folder(lock_path.with_suffix(""))
                give_back(lock)
    while True:
        folder = where / f"{_PREFIX}{secrets.token_hex(8)}"
        if lock := take_lock(folder.with_suffix(_LOCK)):  # else another process took it for a dead one's
            break
    try:
        folder.mkdir(mode=0o700)
        own_files.mark_folder(folder)
        yield folder
    finally:
        own_files.remove_folder(folder)
        give_back(lock)
