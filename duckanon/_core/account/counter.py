"""The counter beside an account: a small file that says how many releases and answers it has, and its last release.

It is written after each entry and never before, so an account has what its counter knows, or more where a process was
killed in between. An account that has less was deleted, emptied, set back to an older copy, or is another one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from duckanon._core.account.storage import AccountError
from duckanon._core.common.journal import sync

_BEGINNING = b'{"account": "'


@dataclass(frozen=True)
class Counter:
    """What the counter knows of its account: identity, releases, the mark of the last, and answers of budgets."""

    account: str = ""
    releases: int = 0
    last: str | None = None
    answers: int = 0


def counter_path(account: Path) -> Path:
    """Return the file of an account's counter."""
    account = Path(os.path.realpath(account))
    return account.with_name(f"{account.name}.counter")


def read_counter(account: Path) -> Counter | None:
    """Read the counter of an account; None where there is none."""
    path = counter_path(account)
    try:
        found = Counter(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, TypeError, ValueError):
        raise AccountError(f"{path}: the counter of the account cannot be read; restore it from a backup.") from None
    return found


def update_counter(path: Path, **changes: Any) -> None:
    """Write the counter of an account with some changes; one that cannot be read begins anew."""
    try:
        former = read_counter(path)
    except AccountError:
        former = None
    write_counter(path, replace(former or Counter(), **changes))


def write_counter(account: Path, counter: Counter) -> None:
    """Write the counter of an account, at once or not at all."""
    path = counter_path(account)
    draft = path.with_name(f".{path.name}")  # of one process: it holds the account
    try:
        if os.path.lexists(draft) and not _is_draft(draft):
            raise AccountError(f"{draft}: duckanon did not write this file, which is in its way; move it away.")
        with open(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:
            opened.write(json.dumps(asdict(counter)) + "\n")
        sync(draft)
        os.replace(draft, path)
        sync(path.parent)
    except OSError as error:
        raise AccountError(f"{path}: the counter of the account cannot be written ({error.strerror}).") from None


def _is_draft(path: Path) -> bool:
    """Tell whether a file is what a process wrote of a counter before it was killed."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        found = file.read(len(_BEGINNING))
    return _BEGINNING.startswith(found)
