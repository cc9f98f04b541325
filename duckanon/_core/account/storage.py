"""The file of an account: SQLite, shared by several processes, safe against crashes, opened with a key.

Each part of the account (`releases`, `budget`) has tables of its own, made and brought up to date by `Account.prepare`.
Nothing that is written tells a value without the key: `Account.hash_value` turns values into keyed hashes.

A counter stands beside the account: a small file that says how many releases and answers it has, and its last release.
It is written after each entry and never before, so an account has what its counter knows, or more where a process was
killed in between. An account that has less was deleted, emptied, set back to an older copy, or is another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from duckanon._core.common.outbox import sync

HASH_SIZE = 16
"""Bytes of a keyed hash: among a thousand million people, two share one with a probability of 10^-21."""
SHORTEST_KEY = 16
"""Characters: a shorter key could be found by trying, and with it the people of the account."""

_APPLICATION = 0x6475636B  # "duck", in the header of the file: another program's SQLite file is refused
_FORMAT = 1
_WAIT = 60.0
"""Seconds that a process waits for another's transaction, which takes seconds even with millions of people."""


class AccountError(Exception):
    """An account that cannot be used, in one sentence without a value."""


class Account:
    """An open account; leave it (`with`) to close the file.

    Args:
        path: The file.
        key: The key that turns values into hashes; every process must give the same. None: only parts without values
            are wanted, such as budgets.
        create: Whether to make the file if it is not there, or is empty.

    Raises:
        AccountError: The file is not there, is no account, was made by a newer version, or has another key.
    """

    identity: str | None = None
    """What tells this account from all others; None where it was opened without a key. No secret."""

    def __init__(self, path: str | Path, key: str | None, *, create: bool = False) -> None:
        if key is not None and len(key) < SHORTEST_KEY:
            raise AccountError(f"the key of the account must have at least {SHORTEST_KEY} characters.")
        self.path = Path(path)
        if self.path.is_dir():
            raise AccountError(f"{self.path}: this is a folder; name the file of an account.")
        if is_missing(self.path) and not create:
            state = "the account is empty" if self.path.exists() else "there is no such account"
            raise AccountError(f"{self.path}: {state}; restore it from a backup.")
        if not self.path.exists():
            with self._translate_errors(), contextlib.suppress(FileExistsError):  # another process made it just now
                # a link may lead to where no file is yet, which must not be open to others either
                os.close(os.open(os.path.realpath(self.path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self._translate_errors():
            self._con = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            # the journal of SQLite's default mode leaves one file, also where folders are on a network
            self._con.execute("PRAGMA synchronous = EXTRA")
            self._con.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
            self._con.execute("PRAGMA foreign_keys = ON")
        try:
            self._number = self._file_number()
            self._key = self._derive_key(key)
        except BaseException:
            self._con.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._con.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the only write transaction of the file: committed at the end, undone where the block raises.

        Other processes wait at the beginning of theirs, so what is read here stays true until the end.
        """
        with self._translate_errors():
            self._con.execute("BEGIN IMMEDIATE")
            try:
                if self._number != self._file_number():
                    raise AccountError(f"{self.path}: the account was replaced while it was used; run the job again.")
                yield self._con
                self._con.execute("COMMIT")
            except BaseException:
                if self._con.in_transaction:
                    self._con.execute("ROLLBACK")
                raise

    def query(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that only reads."""
        with self._translate_errors():
            return self._con.execute(statement, parameters).fetchall()

    def prepare(self, part: str, migrations: Sequence[str]) -> None:
        """Make the tables of a part of the account, or bring them up to date.

        Args:
            part: The name of the part.
            migrations: For each version a script of statements without a semicolon inside; the first makes the tables.
                Later versions of duckanon append to the list, and never change what is in it.
        """
        if self._version(part) == len(migrations):
            return
        with self.transaction() as con:
            version = self._version(part)
            if version > len(migrations):
                raise AccountError(f"{self.path}: a newer version of duckanon wrote this account; use that.")
            for script in migrations[version:]:
                for statement in filter(str.strip, script.split(";")):
                    con.execute(statement)
            con.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (part, len(migrations)))

    def hash_value(self, kind: str, value: str | bytes | None) -> bytes:
        """Return the keyed hash of a value; equal values of different kinds have different hashes, as has None."""
        if self._key is None:
            raise AccountError(f"{self.path}: the account was opened without its key.")
        data = b"0" if value is None else b"1" + (value.encode() if isinstance(value, str) else value)
        start = f"{len(kind.encode())}:{kind}".encode()
        return hashlib.blake2b(start + data, digest_size=HASH_SIZE, key=self._key).digest()

    def damage_error(self) -> AccountError:
        """Return the error about a file of which a part is lost."""
        return AccountError(
            f"{self.path}: the account is damaged; restore the account and its counter from a backup, or move it away "
            "and let a person decide with duckanon account adopt."
        )

    def _file_number(self) -> tuple[int, int] | None:
        """Return what tells the file from another of its name; None where it is gone."""
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return None
        return state.st_dev, state.st_ino

    def _version(self, part: str) -> int:
        versions = self.query("SELECT version FROM parts WHERE name = ?", (part,))
        return int(versions[0][0]) if versions else 0

    def _derive_key(self, key: str | None) -> bytes | None:
        """Return the key of the hashes: from the user's and the salt of this file, so that no two accounts match."""
        with self.transaction() as con:
            (application,) = con.execute("PRAGMA application_id").fetchone()
            (version,) = con.execute("PRAGMA user_version").fetchone()
            if (application, version) == (0, 0) and not con.execute("SELECT 1 FROM sqlite_master").fetchone():
                con.execute(f"PRAGMA application_id = {_APPLICATION}")
                con.execute(f"PRAGMA user_version = {_FORMAT}")
                con.execute("CREATE TABLE account (salt BLOB NOT NULL, key_check BLOB NOT NULL)")
                con.execute("CREATE TABLE parts (name TEXT PRIMARY KEY, version INTEGER NOT NULL)")
            elif application != _APPLICATION:
                raise AccountError(
                    f"{self.path}: it is no account of duckanon; restore the account and its counter from a backup, or "
                    "move it away and let a person decide with duckanon account adopt."
                )
            elif version > _FORMAT:
                raise AccountError(f"{self.path}: a newer version of duckanon wrote this account; use that.")
            if key is None:
                return None
            row = con.execute("SELECT salt, key_check FROM account").fetchone()
            salt = row[0] if row else secrets.token_bytes(16)
            derived = hashlib.blake2b(key.encode(), digest_size=32, key=salt).digest()
            if row is None:  # the first that comes with a key
                con.execute("INSERT INTO account VALUES (?, ?)", (salt, _check_value(derived)))
            elif not hmac.compare_digest(row[1], _check_value(derived)):
                raise AccountError(f"{self.path}: the account was made with another key; give it that key.")
        self.identity = hashlib.blake2b(b"identity", digest_size=HASH_SIZE, key=salt).hexdigest()
        return derived

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Say in one sentence why SQLite or the file system failed."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise AccountError(f"{self.path}: another process holds the account; try again.") from None
            raise AccountError(f"{self.path}: the account cannot be used ({error}).") from None
        except sqlite3.DatabaseError:
            raise self.damage_error() from None
        except OSError as error:
            raise AccountError(f"{self.path}: the account cannot be used ({error.strerror}).") from None


def is_missing(path: Path) -> bool:
    """Tell whether there is no account in a file: it is not there, or has no byte."""
    return not path.exists() or not path.stat().st_size


def _check_value(derived: bytes) -> bytes:
    return hashlib.blake2b(b"duckanon account", digest_size=HASH_SIZE, key=derived).digest()


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
        counter = Counter(**json.loads(path.read_text(encoding="utf-8")))
        if not _is_whole(counter):
            raise ValueError
    except FileNotFoundError:
        return None
    except (OSError, TypeError, ValueError, RecursionError):
        raise AccountError(f"{path}: the counter of the account cannot be read; restore it from a backup.") from None
    return counter


def _is_whole(counter: Counter) -> bool:
    """Tell whether all that was read is of its type: damaged files are JSON, too."""
    counts = (counter.releases, counter.answers)
    return (
        isinstance(counter.account, str)
        and (counter.last is None or isinstance(counter.last, str))
        and all(type(count) is int and count >= 0 for count in counts)
        and (counter.last is None) == (counter.releases == 0)
    )


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
        return _BEGINNING.startswith(file.read(len(_BEGINNING)))
