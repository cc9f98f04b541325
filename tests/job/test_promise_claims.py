"""Every promise of a policy is counted or refused: none is listed that nobody counts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from duckanon.job import PolicyError, check, consistency, policy_file
from duckanon.job.consistency import list_promises
from duckanon.job.policy import Promises, Table
from duckanon.job.run import release
from tests.job.conftest import POLICY, changed, leave_release

SENTENCES = {
    "linked_k = 5000": "promises.linked_k is of people whose rows a released pseudonym links, and none is released",
    "known_events = 2": "promises.known_events is for tables that release_linked releases.",
    "max_confidence = 0.5": "promises.max_confidence is for tables that release_linked releases.",
    'l_kind = "entropy"': "promises.l_kind says how l is counted, and no l is promised",
    "c = 2": "promises.c says how l is counted, and no l is promised",
    "l = 2\nc = 2": 'promises.c is for l_kind = "recursive"',
    "joint_k = 10": "promises.joint_k counts the releases of an account",
}


@pytest.mark.parametrize("given", SENTENCES)
def test_a_promise_that_nothing_counts_is_refused_with_its_line(given: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY + given + "\n", encoding="utf-8")
    line = POLICY.count("\n") + given.count("\n") + 1
    with pytest.raises(PolicyError) as error:
        consistency.check(policy_file.read(path))
    assert str(error.value).startswith(f"{path}, line {line}: {SENTENCES[given]}")


def test_every_field_of_the_promises_is_claimed() -> None:
    assert set(consistency.COUNTED) == set(Promises.model_fields)


def test_a_promise_that_a_later_version_forgets_to_claim_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(consistency.COUNTED, "max_small_changes")
    path = changed(folder, ("k = 10", "k = 10\nmax_small_changes = 0"))
    with pytest.raises(PolicyError, match=r"line 20: promises\.max_small_changes is not counted by this version"):
        check.check_policy(path)


def test_a_promise_that_nobody_counted_stops_the_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of t is forgotten: what was claimed before the release is compared with what was counted after it."""
    path = changed(folder, ("k = 10", "k = 10\nt = 0.9"))
    monkeypatch.setattr("duckanon.job.promises._diversity", lambda *_: iter(()))
    with pytest.raises(PolicyError, match=r"line 20: promises\.t was not counted of this release"):
        release(path)
    assert not (folder / "release.parquet").exists()


def test_changes_that_cannot_be_counted_stop_the_release(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    """The first release has nothing before it; one with other columns before it cannot be compared."""
    path = changed(folder, ("k = 10", "k = 10\nmax_small_changes = 0"))
    release(path)
    database.execute("COPY (SELECT 1 AS other) TO 'other.parquet'").fetchall()
    before = (folder / "other.parquet").read_bytes()
    leave_release(folder / "release.parquet", before)
    with pytest.raises(PolicyError, match=r"line 20: promises\.max_small_changes was not counted"):
        release(path)
    assert (folder / "release.parquet").read_bytes() == before


def test_a_promise_for_all_tables_is_counted_of_those_that_it_is_about(
    hospital: Path, database: duckdb.DuckDBPyConnection
) -> None:
    """known_events for all tables is about the events; by itself, at a table of people, it would be nobody's."""
    policy = (hospital / "policy.toml").read_text(encoding="utf-8")
    path = hospital / "policy.toml"
    path.write_text(policy.replace("k = 5\n", "k = 5\nknown_events = 1\n", 1), encoding="utf-8")
    consistency.check(policy_file.read(path))
    path.write_text(policy.replace("{ k = 30 }", "{ k = 30, known_events = 1 }"), encoding="utf-8")
    with pytest.raises(PolicyError, match=r"line 15: promises\.known_events is for tables that release_linked"):
        consistency.check(policy_file.read(path))


def test_a_released_pseudonym_is_listed_with_what_is_counted_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUCKANON_TEST_KEY", "a key of at least sixteen characters")
    person = ('patient = "person"', 'patient = { role = "person", pseudonym = true }')
    key = ("[source]", '[key]\nenvironment = "DUCKANON_TEST_KEY"\n\n[source]')
    listed = check.check_policy(changed(folder, person, key))
    assert listed == ["table: suppress_cells to release.parquet; promises k, linked_k, max_suppressed_fraction"]


@pytest.mark.parametrize(
    ("method", "is_shown", "promises", "is_implied"),
    [
        ("recode", True, {"k": 5}, True),
        ("recode", True, {"k": 5, "linked_k": 3}, True),
        ("recode", False, {"k": 5}, False),
        ("release_linked", True, {"k": 5}, False),
        ("synthesize", False, {}, False),
    ],
)
def test_linked_rows_are_promised_where_a_pseudonym_links_classes(
    method: str, is_shown: bool, promises: dict[str, int], is_implied: bool
) -> None:
    table = {
        "source": {"path": "a.parquet"},
        "target": {"path": "b.parquet"},
        "columns": {"p": {"role": "person", "pseudonym": is_shown}, "ward": "quasi_identifier"},
        "method": {"name": method},
        "promises": promises,
    }
    assert list_promises(Table.model_validate(table)).count("linked_k") == is_implied
