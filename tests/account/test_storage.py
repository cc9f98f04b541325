"""The file of an account: one key, transactions of several processes, crashes, versions."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from duckanon._core.account.storage import HASH_SIZE, Account, AccountError

KEY = "a key that nobody else has"
TABLES = ["CREATE TABLE spent (amount INTEGER NOT NULL); INSERT INTO spent VALUES (0)"]

SPENDER = """
import os, sys
from duckanon._core.account.storage import Account
with Account(sys.argv[1], sys.argv[2], create=True) as account:
    account.prepare("budget", sys.argv[3:4])
    for _ in range(20):
        with account.transaction() as con:
            (before,) = con.execute("SELECT amount FROM spent").fetchone()
            con.execute("UPDATE spent SET amount = ?", (before + 1,))
    with account.transaction() as con:
        con.execute("UPDATE spent SET amount = 1000000")
        os._exit(9)  # as a crash: what was not committed is gone
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "account.sqlite"


def test_a_key_opens_the_account_and_no_other(path: Path) -> None:
    with Account(path, KEY, create=True) as account:
        first = account.hash_value("person", "anna")
    assert os.name == "nt" or path.stat().st_mode & 0o077 == 0
    with Account(path, KEY) as account:
        assert account.hash_value("person", "anna") == first
        outsiders = [
            account.hash_value("value", "anna"),
            account.hash_value("person", None),
            account.hash_value("person", ""),
        ]
        assert len({first, *outsiders}) == 4
        assert len(first) == HASH_SIZE
    with pytest.raises(AccountError, match="another key"):
        Account(path, KEY + "!")
    with pytest.raises(AccountError, match="at least 16 characters"):
        Account(path, "short")
    with Account(path.with_name("other.sqlite"), KEY, create=True) as other:  # no two accounts can be matched
        assert other.hash_value("person", "anna") != first


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no open file")
def test_an_account_that_is_replaced_while_it_is_open_is_not_written(path: Path) -> None:
    with Account(path, KEY, create=True) as account:
        copy = path.with_name("copy.sqlite")
        copy.write_bytes(path.read_bytes())
        os.replace(copy, path)
        with pytest.raises(AccountError, match="the account was replaced while it was used"), account.transaction():
            pass
        path.unlink()
        with pytest.raises(AccountError, match="the account was replaced while it was used"), account.transaction():
            pass


def test_an_emptied_account_is_not_begun_anew(path: Path) -> None:
    path.write_bytes(b"")
    for key in (KEY, None):
        with pytest.raises(AccountError, match="the account is empty; restore it from a backup"):
            Account(path, key)
        assert path.read_bytes() == b""


def test_what_is_no_account_is_refused_and_left_alone(path: Path) -> None:
    with pytest.raises(AccountError, match="no such account"):
        Account(path, KEY)
    assert not path.exists()
    path.write_bytes(b"a text that is no database" * 50)
    with pytest.raises(AccountError, match=r"the account is damaged; restore .* adopt\.$"):
        Account(path, KEY)
    path.unlink()
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE theirs (a)")
    with pytest.raises(AccountError, match="no account of duckanon"):
        Account(path, KEY)
    with pytest.raises(AccountError, match="cannot be used"):
        Account(path.parent / "nowhere" / "account.sqlite", KEY, create=True)
    with pytest.raises(AccountError, match="this is a folder"):
        Account(path.parent, KEY, create=True)


def test_an_account_behind_a_link_is_made_where_it_leads_for_nobody_else(path: Path) -> None:
    path.symlink_to("elsewhere.sqlite")
    with Account(path, KEY, create=True):
        pass
    assert path.with_name("elsewhere.sqlite").stat().st_mode & 0o777 == 0o600
    assert path.is_symlink()


def test_an_account_that_another_process_makes_at_the_same_time_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Account(path, KEY, create=True) as account:
        account.prepare("budget", TABLES)
    monkeypatch.setattr(Path, "exists", lambda _: False)  # as it was a moment ago
    with Account(path, KEY, create=True) as account:
        assert account.query("SELECT name FROM parts") == [("budget",)]


def test_parts_are_brought_up_to_date_and_newer_ones_refused(path: Path) -> None:
    with Account(path, KEY, create=True) as account:
        account.prepare("budget", TABLES)
        newer = [*TABLES, "ALTER TABLE spent ADD COLUMN consumer TEXT"]
        account.prepare("budget", newer)
        account.prepare("budget", newer)
        assert account.query("SELECT * FROM spent") == [(0, None)]
        with pytest.raises(AccountError, match="newer version"):
            account.prepare("budget", TABLES)
        with pytest.raises(KeyError):
            _fail_after_deleting(account)
        assert account.query("SELECT amount FROM spent") == [(0,)]


def _fail_after_deleting(account: Account) -> None:
    with account.transaction() as con:
        con.execute("DELETE FROM spent")
        raise KeyError


@pytest.mark.thorough
def test_several_processes_lose_nothing_and_a_crash_leaves_nothing(path: Path) -> None:
    command = [sys.executable, "-c", SPENDER, str(path), KEY, TABLES[0]]
    processes = [subprocess.Popen(command) for _ in range(3)]
    codes = {process.wait() for process in processes}
    assert codes == {9}
    with Account(path, KEY) as account:
        assert account.query("SELECT amount FROM spent") == [(60,)]
