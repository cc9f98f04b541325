"""Locks between processes, which end with the process however that ends, on every system that Python runs on."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where a system has no locks of its own, the file says whose lock it is
    from filelock import BaseFileLock, FileLock, Timeout

__all__ = ["BaseFileLock", "give_back", "is_own", "take_lock"]


def take_lock(path: Path) -> BaseFileLock | None:
    """Take a lock and return it; None if another process has it.

    Args:
        path: The file of the lock, which is made for it and removed with it.

    Raises:
        OSError: The file cannot be made.
    """
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
