"""The counter beside an account: whole or not there, and nobody else's file gives way to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from duckanon._core.account.storage import AccountError, Counter, read_counter, write_counter

COUNTER = Counter("a1", 3, "ff", 2)


@pytest.mark.parametrize("left", [None, "", '{"acc', '{"account": "a1", "releases": 2'])
def test_what_a_killed_process_left_is_replaced(left: str | None, tmp_path: Path) -> None:
    if left is not None:
        (tmp_path / ".account.sqlite.counter").write_text(left)
    write_counter(tmp_path / "account.sqlite", COUNTER)
    assert read_counter(tmp_path / "account.sqlite") == COUNTER
    assert [path.name for path in tmp_path.iterdir()] == ["account.sqlite.counter"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"account": "a1", "releases": "3", "last": "ff"}',
        '{"account": "a1", "releases": null, "last": "ff"}',
        '{"account": "a1", "releases": -3, "last": null}',
        '{"account": "a1", "releases": 3, "last": null}',
        '{"account": 1, "releases": 3, "last": "ff"}',
        '{"account": "a1", "releases": 3, "last": "ff", "answers": true}',
        "[" * 100_000,
    ],
)
def test_a_damaged_counter_is_not_read_as_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "account.sqlite.counter").write_text(text)
    with pytest.raises(AccountError, match="the counter of the account cannot be read; restore it from a backup"):
        read_counter(tmp_path / "account.sqlite")


@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_of_somebody_else_is_not_overwritten(is_link: bool, tmp_path: Path) -> None:
    notes = tmp_path / ("notes.txt" if is_link else ".account.sqlite.counter")
    notes.write_text("my notes")
    if is_link:
        (tmp_path / ".account.sqlite.counter").symlink_to(notes)
    with pytest.raises(AccountError, match="duckanon did not write this file"):
        write_counter(tmp_path / "account.sqlite", COUNTER)
    assert notes.read_text() == "my notes"
    assert read_counter(tmp_path / "account.sqlite") is None
