"""The file of an account: SQLite, shared by several processes, safe against crashes, opened with a key.

Each part of the account (`releases`, `budget`) has tables of its own, made and brought up to date by `Account.prepare`.
Nothing that is written tells a value without the key: `Account.keyed` turns values into keyed hashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

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
        if is_missing(self.path) and not create:
            state = "the account is empty" if self.path.exists() else "there is no such account"
            raise AccountError(f"{self.path}: {state}; restore it from a backup.")
        if not self.path.exists():
            with contextlib.suppress(FileExistsError), self._translated():  # another process made it just now
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self._translated():
            self._con = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            # the journal of SQLite's default mode leaves one file, also where folders are on a network
            self._con.execute("PRAGMA synchronous = EXTRA")
            self._con.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
            self._con.execute("PRAGMA foreign_keys = ON")
        try:
            self._number = self._file_number()
            self._key = self._unlocked(key)
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
        with self._translated():
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
        with self._translated():
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

    def keyed(self, kind: str, value: str | bytes | None) -> bytes:
        """Return the keyed hash of a value; equal values of different kinds have different hashes, as has None."""
        if self._key is None:
            raise AccountError(f"{self.path}: the account was opened without its key.")
        data = b"0" if value is None else b"1" + (value.encode() if isinstance(value, str) else value)
        start = f"{len(kind.encode())}:{kind}".encode()
        return hashlib.blake2b(start + data, digest_size=HASH_SIZE, key=self._key).digest()

    def _file_number(self) -> tuple[int, int] | None:
        """Return what tells the file from another of its name; None where it is gone."""
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return None
        return state.st_dev, state.st_ino

    def _version(self, part: str) -> int:
        found = self.query("SELECT version FROM parts WHERE name = ?", (part,))
        return int(found[0][0]) if found else 0

    def _unlocked(self, key: str | None) -> bytes | None:
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
                raise AccountError(f"{self.path}: it is no account of duckanon.")
            elif version > _FORMAT:
                raise AccountError(f"{self.path}: a newer version of duckanon wrote this account; use that.")
            if key is None:
                return None
            found = con.execute("SELECT salt, key_check FROM account").fetchone()
            salt = found[0] if found else secrets.token_bytes(16)
            derived = hashlib.blake2b(key.encode(), digest_size=32, key=salt).digest()
            if found is None:  # the first that comes with a key
                con.execute("INSERT INTO account VALUES (?, ?)", (salt, _check_value(derived)))
            elif not hmac.compare_digest(found[1], _check_value(derived)):
                raise AccountError(f"{self.path}: the account was made with another key; give it that key.")
        self.identity = hashlib.blake2b(b"identity", digest_size=HASH_SIZE, key=salt).hexdigest()
        return derived

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Say in one sentence why SQLite or the file system failed."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise AccountError(f"{self.path}: another process holds the account; try again.") from None
            raise AccountError(f"{self.path}: the account cannot be used ({error}).") from None
        except sqlite3.DatabaseError as error:
            raise AccountError(f"{self.path}: the account cannot be used ({error}).") from None
        except OSError as error:
            raise AccountError(f"{self.path}: the account cannot be used ({error.strerror}).") from None


def is_missing(path: Path) -> bool:
    """Tell whether there is no account in a file: it is not there, or has no byte."""
    return not path.exists() or not path.stat().st_size


def _check_value(derived: bytes) -> bytes:
    return hashlib.blake2b(b"duckanon account", digest_size=HASH_SIZE, key=derived).digest()
