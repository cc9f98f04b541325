"""The folder of a release without a target: removed when it is made, or after a crash by the next such release."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PREFIX, _LOCK = "duckanon-unnamed-", ".lock"


@contextmanager
def unnamed_folder(parent: Path | None) -> Iterator[Path]:
    """Make a folder that nobody else may look into, and remove those whose processes have ended.

    Parameters
    ----------
    parent
        Where it is made; None: among temporary files.
    """
    where = parent or Path(tempfile.gettempdir())
    for lock in where.glob(f"{_PREFIX}*{_LOCK}"):
        _remove_if_dead(lock)
    path, held = _locked(where)
    folder = path.with_suffix("")
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        path.unlink(missing_ok=True)
        held.close()


def _locked(where: Path) -> tuple[Path, IO[bytes]]:
    """Take a new lock, which ends with the process however that ends."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_LOCK, dir=where)
        held = os.fdopen(descriptor, "wb")
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.path.exists(name):
            return Path(name), held
        held.close()  # another process took it for a dead one's before it was locked


def _remove_if_dead(path: Path) -> None:
    with contextlib.suppress(OSError), open(path, "ab") as lock:
        if os.fstat(lock.fileno()).st_uid != os.getuid():
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path.with_suffix(""), ignore_errors=True)
        path.unlink()
