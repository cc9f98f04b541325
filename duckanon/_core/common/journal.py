"""The renames that a run has decided on, written down before the first file is published.

A file system renames one file at once, not several. So the list of all renames is written first: a run that is killed
between two of them is completed by the next run of any of its targets, and one that is killed before the list is
whole has decided nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from duckanon._core.common.locks import is_own

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
                _keep(path, kept[0])
            os.replace(hidden, path)
            if kept not in done:
                done.append(kept)
            sync(path.parent)
    except Exception:
        for former, path in reversed(done if is_undone else []):
            with contextlib.suppress(OSError):
                _put_back(former, path)
        raise


def _keep(path: Path, former: Path) -> None:
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
    journal = _read(folder)
    if journal and "first" in journal:
        journal = _read(Path(journal["first"]))
    if not journal or "files" not in journal:
        return
    pairs = [(Path(hidden), Path(path)) for hidden, path in journal["files"]]
    if any(not _is_beside(hidden, path) for hidden, path in pairs):
        return
    if journal.get("mark") is None or is_committed(journal["mark"]):
        rename([(hidden, path) for hidden, path in pairs if hidden.exists()], refuse, is_undone=False)
    forget(pairs)


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        state = folder.stat()
        if not is_own(state) or (os.name != "nt" and state.st_mode & 0o077):
            return None
        found = json.loads((folder / _JOURNAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _is_beside(hidden: Path, path: Path) -> bool:
    folder = hidden.parent
    return (
        hidden.name == path.name and folder.parent == path.parent and folder.name.startswith(f".{path.name}.duckanon-")
    )
