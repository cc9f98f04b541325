"""The folder of a run for what does not fit into memory: removed when it ends, or after a crash by the next run."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duckanon._core.common.locks import give_back, is_own, take_lock

_PREFIX, _LOCK = "duckanon-run-", ".lock"


@contextmanager
def temporary_folder(parent: Path | None) -> Iterator[Path]:
    """Make a folder that nobody else may look into, and remove those whose processes have ended.

    Args:
        parent: Where it is made; None: among temporary files.
    """
    where = parent or Path(tempfile.gettempdir())
    for lock_path in where.glob(f"{_PREFIX}{'[0-9a-f]' * 16}{_LOCK}"):
        _remove_if_dead(lock_path)
    while True:
        folder = where / f"{_PREFIX}{secrets.token_hex(8)}"
        if lock := take_lock(folder.with_suffix(_LOCK)):  # else another process took it for a dead one's
            break
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        give_back(lock)


def _remove_if_dead(lock_path: Path) -> None:
    with contextlib.suppress(OSError):
        if is_own(lock_path.stat()) and (lock := take_lock(lock_path)):
            shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
            give_back(lock)
