"""A year of releases: an account that was lost, emptied, set back, copied or locked is refused, and nothing is written.

What joint_k says is compared with a count over the files that were released, which are all kept here, and with the
people who were in them: in plain Python, by a number that nobody else knows of (the row's `trace`).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckanon._core.account import storage
from duckanon._core.account.storage import counter_path
from duckanon.cli.main import main
from duckanon.job import FileProblem, PromiseBroken, release
from tests.job.test_account import KEY

POLICY = """
{report}

[account]
path = "account.sqlite"
key = {{ environment = "ACCOUNT_KEY" }}

[method]
name = "recode"

[promises]
k = 3
joint_k = {joint_k}
max_suppressed_fraction = 1.0

[tables.stays]
source = {{ path = "{people}" }}
target = {{ path = "stays.parquet" }}
columns = {{ id = "person", age = "quasi_identifier", ward = "drop", sex = "drop", trace = "free" }}

[tables.wards]
source = {{ path = "{people}" }}
target = {{ path = "wards.csv" }}
columns = {{ id = "person", age = "drop", ward = "quasi_identifier", sex = "quasi_identifier", trace = "free" }}
"""
WRITTEN = ("stays.parquet", "wards.csv", "stays.parquet.record.json", "report.html")
KEPT = (*WRITTEN, "account.sqlite", "account.sqlite.counter")


class Year:
    """The releases of a folder, month by month, and what was given away by them."""

    def __init__(self, folder: Path, database: duckdb.DuckDBPyConnection) -> None:
        self.has_report = False
        self.folder, self._con = folder, database
        self.policy = folder / "policy.toml"
        self.write_policy(self.policy)
        self.backups: list[dict[str, bytes]] = []
        self.others = 0  # releases of the account of another policy
        self._lists: dict[int, list[Any]] = {}

    def write_policy(self, path: Path, people: str = "people.parquet") -> None:
        report = 'report = "report.html"' if self.has_report else ""
        path.write_text(POLICY.format(report=report, people=people, joint_k=2))

    def people(self, month: int) -> None:
        """Write the table of a month: twelve people come and twelve leave, and some move between wards."""
        first = 12 * month
        self._con.execute(f"""
            COPY (SELECT i AS id, i AS trace, 20 + 10 * (i // 12 % 4) AS age, ['f', 'm'][1 + i // 6 % 2] AS sex,
                         'ward ' || ((i // 12 + (i % 48 < 6)::INTEGER * {month}) % 3) AS ward
                  FROM range({first}, {first + 288}) AS t(i)) TO 'people.parquet'""").fetchall()

    def release(self) -> dict[str, Any]:
        """Release, and compare joint_k with the count over all files so far."""
        record = release(self.policy)
        self.backups.append(self.state())
        for path in ("stays.parquet", "wards.csv"):
            columns = "age" if path == "stays.parquet" else "ward, sex"
            shown = duckdb.sql(f"SELECT trace, ({columns})::VARCHAR FROM '{path}'").fetchall()
            here = {int(trace): labels for trace, labels in shown}
            for one in here.keys() | self._lists.keys():
                self._lists.setdefault(one, [None] * self._files).append(here.get(one))
            self._files += 1
        assert record["account"]["joint_k"] == self.joint_k
        return dict(record["account"])

    _files = 0

    @property
    def joint_k(self) -> int:
        """How many people share the rarest list of classes."""
        return min(Counter(map(tuple, self._lists.values())).values())

    def forget_files(self) -> None:
        """Begin the count anew, as an account that lost all releases does."""
        self._lists, self._files = {}, 0

    def state(self) -> dict[str, bytes]:
        return {name: Path(name).read_bytes() for name in sorted(map(str, Path().iterdir())) if name in KEPT}

    def everything(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


@pytest.fixture
def year(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Year:
    monkeypatch.setenv("ACCOUNT_KEY", KEY)
    monkeypatch.setattr(storage, "_WAIT", 0.05)
    return Year(folder, database)


def remove_release(prefix: str = "") -> None:
    """Take away the record and what it is of: a file without its record is not replaced."""
    for name in ("stays.parquet", "wards.csv", "stays.parquet.record.json"):
        Path(f"{prefix}{name}").unlink(missing_ok=True)


def delete(year: Year) -> None:
    Path("account.sqlite").unlink()


def delete_with_counter(year: Year) -> None:
    Path("account.sqlite").unlink()
    counter_path(Path("account.sqlite")).unlink()


def empty(year: Year) -> None:
    Path("account.sqlite").write_bytes(b"")


def empty_tables(year: Year) -> None:
    with sqlite3.connect("account.sqlite") as con:
        con.execute("DELETE FROM arrays")
        con.execute("DELETE FROM releases")


def set_back(year: Year) -> None:
    Path("account.sqlite").write_bytes(year.backups[-2]["account.sqlite"] if len(year.backups) > 1 else b"")


def set_back_with_counter(year: Year) -> None:
    set_back(year)
    before = year.backups[-2]["account.sqlite.counter"] if len(year.backups) > 1 else b"{}"
    Path("account.sqlite.counter").write_bytes(before)


def set_back_without_record(year: Year) -> None:
    set_back(year)
    remove_release()


def copy_of_another(year: Year) -> None:
    """Put the account of another policy, which has as many releases, in the place."""
    other = Path("other")
    other.mkdir(exist_ok=True)
    path = other / "policy.toml"
    year.write_policy(path, "../people.parquet")
    while year.others < len(year.backups):
        release(path)
        year.others += 1
    shutil.copy(other / "account.sqlite", "account.sqlite")


def copy_with_counter(year: Year) -> None:
    copy_of_another(year)
    shutil.copy("other/account.sqlite.counter", "account.sqlite.counter")


def name_another(year: Year) -> None:
    """Change the path of the account in the policy: the new one would begin anew."""
    year.policy.write_text(year.policy.read_text().replace('"account.sqlite"', '"another.sqlite"'))


def lose_the_counter(year: Year) -> None:
    Path("account.sqlite.counter").unlink()


def damage_the_counter(year: Year) -> None:
    Path("account.sqlite.counter").write_text('{"account": ')


def empty_the_counter(year: Year) -> None:
    Path("account.sqlite.counter").write_text("{}")


def mistype_the_counter(year: Year) -> None:
    counter = json.loads(Path("account.sqlite.counter").read_text())
    Path("account.sqlite.counter").write_text(json.dumps({**counter, "releases": str(counter["releases"])}))


def delete_from_record_too(year: Year) -> None:
    """Delete the account, and what the record says of it: its joint promise is left."""
    delete_with_counter(year)
    record = json.loads(Path("stays.parquet.record.json").read_text())
    del record["account"]
    Path("stays.parquet.record.json").write_text(json.dumps(record))


def branch_off(year: Year) -> None:
    """Set the account back and let it have as many releases as it had, by another policy."""
    set_back(year)
    counter_path(Path("account.sqlite")).unlink()
    year.policy.with_name("other.toml").write_text(
        year.policy.read_text().replace('"stays.', '"other_stays.').replace('"wards.', '"other_wards.')
        .replace('"account', '"branch')
    )  # fmt: skip
    shutil.move("account.sqlite", "branch.sqlite")
    if len(year.backups) > 1:
        Path("branch.sqlite.counter").write_bytes(year.backups[-2]["account.sqlite.counter"])
    remove_release("other_")
    release("other.toml")
    shutil.move("branch.sqlite", "account.sqlite")
    Path("account.sqlite.counter").write_bytes(year.backups[-1]["account.sqlite.counter"])
    remove_release()
    Path("branch.sqlite.counter").unlink()


def release_without_account(year: Year) -> None:
    """Release once without the account, which lacks that release then."""
    text = year.policy.read_text()
    account = text[text.index("[account]") : text.index("[method]")]
    year.policy.write_text(text.replace(account, "").replace("joint_k = 2", ""))
    release(year.policy)
    year.policy.write_text(text)


LOSSES: list[Callable[[Year], None]] = [
    delete, empty, set_back, copy_of_another, set_back_with_counter, delete_with_counter, empty_tables, branch_off,
    set_back_without_record, copy_with_counter, name_another, lose_the_counter,
    damage_the_counter, release_without_account, empty_the_counter, mistype_the_counter, delete_from_record_too,
]  # fmt: skip


def refused(year: Year, words: str) -> None:
    """See that release and the account's commands exit with 3, and that they write nothing."""
    before = year.everything()
    for arguments in (["release"], ["release", "--dry-run"], ["account", "check"], ["account", "adopt"]):
        assert main([*arguments, "policy.toml"]) == 3, arguments
    assert year.everything() == before
    with pytest.raises(FileProblem, match=words):
        release(year.policy)
    assert year.everything() == before


def restored(year: Year) -> None:
    """Put everything back as it was after the last release."""
    for name, content in year.backups[-1].items():
        Path(name).write_bytes(content)
    year.policy.write_text(year.policy.read_text().replace('"another.sqlite"', '"account.sqlite"'))
    for leftover in ("another.sqlite", "another.sqlite.counter"):
        Path(leftover).unlink(missing_ok=True)


@contextmanager
def locked() -> Iterator[None]:
    """Hold the account as another process does."""
    con = sqlite3.connect("account.sqlite")
    try:
        con.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        con.close()


def adopted(year: Year, capsys: pytest.CaptureFixture[str]) -> None:
    """Let a person decide: the release is made, says what is not counted, and the next one is no question any more."""
    assert main(["account", "adopt", "policy.toml", "--accept-loss"]) == 0
    assert "adopted" in capsys.readouterr().out
    assert main(["account", "adopt", "policy.toml"]) == 0
    assert "nothing was changed" in capsys.readouterr().out


def test_an_account_that_lost_releases_is_refused_until_a_person_decides(
    year: Year, capsys: pytest.CaptureFixture[str]
) -> None:
    year.people(0)
    text = year.policy.read_text()
    year.policy.write_text(text.replace("joint_k = 2", "joint_k = 200"))
    with pytest.raises(PromiseBroken) as broken:
        release(year.policy)
    assert "Over all releases of the account (1), the rarest list of classes is that of " in str(broken.value)
    assert "fewer tables of the same people, or a smaller promise" in str(broken.value)
    assert "less often" not in str(broken.value)
    year.policy.write_text(text)
    assert year.release()["releases"] == 1
    year.people(1)
    assert year.release()["releases"] == 2
    set_back(year)
    refused(
        year, "the account lacks .*, so that joint promises would be counted without what is lost; restore the account"
    )
    restored(year)
    empty(year)
    capsys.readouterr()
    assert main(["account", "adopt", "policy.toml"]) == 3
    assert "lacks the last of 2 releases that its counter knows" in capsys.readouterr().err
    adopted(year, capsys)
    year.forget_files()
    told = year.release()  # an account of one release, which says that it had two more
    assert (told["releases"], told["lost"]) == (1, 2)
    assert main(["account", "show", "policy.toml"]) == 0
    assert "lost: 2 releases" in capsys.readouterr().out
    capsys.readouterr()
    assert main(["verify", "--record", "stays.parquet.record.json", "stays.parquet", "wards.csv"]) == 0
    record = Path("stays.parquet.record.json").read_text()
    assert "Over all releases of the account (1, without 2 that were lost)," in record


@pytest.mark.thorough
def test_each_month_of_a_year(year: Year) -> None:
    for month in range(12):
        year.people(month)
        assert year.release()["releases"] == month + 1
        year.people(month + 1)
        for lose in LOSSES:
            lose(year)
            refused(
                year,
                "so that joint promises would be counted without what is lost; restore the account and its counter",
            )
            restored(year)
        before = year.everything()
        with locked(), pytest.raises(FileProblem, match="another process holds the account; try again"):
            release(year.policy)
        assert year.everything() == before


@pytest.mark.thorough
def test_a_report_is_enough_to_know(year: Year) -> None:
    year.has_report = True
    year.write_policy(year.policy)
    for month in range(2):
        year.people(month)
        year.release()
    set_back_with_counter(year)
    remove_release()
    refused(year, r"the account lacks the last of 2 releases that the report report\.html knows")
    assert main(["account", "adopt", "policy.toml", "--accept-loss"]) == 0
    Path("report.html").unlink()
    release(year.policy)
    assert 'without <data value="1" data-path="/account/lost">1</data> that was lost' in Path("report.html").read_text()


@pytest.mark.thorough
@pytest.mark.parametrize("lose", LOSSES, ids=lambda one: one.__name__)
def test_the_way_out_of_each_loss(year: Year, lose: Callable[[Year], None], capsys: pytest.CaptureFixture[str]) -> None:
    for month in range(3):
        year.people(month)
        year.release()
    year.people(3)
    lose(year)
    adopted(year, capsys)
    record = release(year.policy)
    is_whole = lose in (lose_the_counter, damage_the_counter, empty_the_counter, mistype_the_counter)
    assert ("lost" in record["account"]) == (not is_whole)
    year.people(4)
    assert release(year.policy)["account"]["releases"] == record["account"]["releases"] + 1
