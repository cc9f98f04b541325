"""The releases of an account: counted as brute force counts them, with nothing in the file that is not a hash."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.account.entries import Entry, find_hashes
from duckanon._core.account.joint import ABSENT, classify_people
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import Account, AccountError
from tests.measure.test_joint_releases import Row, counted
from tests.profiles import dear

KEY = "a key that nobody else has"


def entry(account: Account, rows: list[Row]) -> Entry:
    """Make the entry of a release from its rows, class by class."""
    rows = [row for row in rows if row[0] is not None]
    people = sorted({str(row[0]) for row in rows})
    who = np.array([people.index(str(row[0])) for row in rows], np.int64)
    classes = classify_people(who, np.array([row[1] for row in rows], np.int64), len(people))
    of_people = {(int(person), row[2]) for person, row in zip(who, rows, strict=True)}
    pairs = Counter((int(classes[person]), value) for person, value in of_people)  # in any order
    hashes = b"".join(account.hash_value("value", str(value)) for _, value in pairs)
    return Entry(
        policy="policy.toml",
        name="patients",
        sha256=None,
        naming=b"as it is",
        people=b"".join(account.hash_value("person", person) for person in people),
        classes=classes,
        values={"diagnosis": (np.array([item for item, _ in pairs], np.int64), hashes)},
        counts={"diagnosis": np.array(list(pairs.values()), np.int64)},
    )


def joint(releases: Releases, new: list[Entry] = []) -> list[tuple[Any, Any, Any]]:  # noqa: B006
    results = [counts for _, counts in releases.joint(new)]
    return [(item.k, item.count_values_left("diagnosis"), item.distance("diagnosis")) for item in results]


_ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12)


@dear
@given(months=st.lists(_ROWS, min_size=1, max_size=4))
def test_joint_counts_are_those_of_brute_force(months: list[list[Row]]) -> None:
    expected = [
        (row["joint_k"], row["joint_l"], pytest.approx(row["joint_t"], abs=1e-12)) for row in counted(months, 2)
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        Account(Path(folder) / "account.sqlite", KEY, create=True) as account,
    ):
        releases = Releases(account)
        new = [entry(account, rows) for rows in months]
        assert joint(releases, new) == expected
        releases.enter(new[:1], "first run", 0)
        assert joint(releases, new[1:]) == expected
        releases.enter(new[1:], "second run", 1)
        assert joint(releases) == expected


def test_a_forgotten_person_is_nobody_and_the_counts_stay(tmp_path: Path) -> None:
    rows: list[Row] = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1)]
    with Account(tmp_path / "account.sqlite", KEY, create=True) as account:
        releases = Releases(account)
        releases.enter([entry(account, rows), entry(account, rows[1:])], "run", 0)
        before, anna = joint(releases), account.hash_value("person", "1")
        assert before == [(2, 2, 0), (1, 1, pytest.approx(3 / 7))]
        assert (tmp_path / "account.sqlite").stat().st_mode & 0o077 == 0
        assert list(find_hashes(releases.read_hashes().people, anna)) == [0]
        bertha = account.hash_value("person", "2")
        with pytest.raises(AccountError, match=r"the person is in the last release of policy\.toml, table patients"):
            releases.forget(bertha)
        assert list(find_hashes(releases.read_hashes().people, bertha)) == [1]
        assert releases.forget(anna)
        assert list(find_hashes(releases.read_hashes().people, anna)) == [ABSENT]
        assert joint(releases) == before
        assert not releases.forget(anna)


def test_values_of_a_release_stay_its_own_where_later_releases_have_more(tmp_path: Path) -> None:
    """A release is read again when more values are known than when it was entered."""
    first: list[Row] = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1)]
    second: list[Row] = [(1, 0, 2), (2, 0, 0), (3, 0, 1), (4, 0, 3)]
    with Account(tmp_path / "account.sqlite", KEY, create=True) as account:
        releases = Releases(account)
        releases.enter([entry(account, first)], "first run", 0)
        releases.enter([entry(account, second)], "second run", 1)
        assert [(k, left) for k, left, _ in joint(releases)] == [(2, 2), (2, 2)]  # both values of a class, both times


@pytest.mark.parametrize("name", ["people", "classes"])
@pytest.mark.parametrize("release", [1, 2, 3])
def test_an_account_that_lost_a_part_is_damaged(name: str, release: int, tmp_path: Path) -> None:
    """A count without it would be too large."""
    path, rows = tmp_path / "account.sqlite", [(one, one // 2, 0) for one in range(6)]
    with Account(path, KEY, create=True) as account:
        releases = Releases(account)
        for number in range(3):
            releases.enter([entry(account, rows[number : number + 4])], f"run {number}", number)
        account.query("DELETE FROM arrays WHERE release = ? AND name = ?", (release, name))
        with pytest.raises(AccountError, match="the account is damaged; restore"):
            joint(releases, [entry(account, rows)])
        data = b"no array of bytes that were compressed"
        account.query("INSERT INTO arrays VALUES (?, ?, 0, ?)", (release, name, data))
        with pytest.raises(AccountError, match="the account is damaged; restore"):
            joint(releases, [entry(account, rows)])


def test_who_counted_other_releases_or_names_people_otherwise_is_refused(tmp_path: Path) -> None:
    with Account(tmp_path / "account.sqlite", KEY, create=True) as account:
        releases = Releases(account)
        new = entry(account, [(1, 0, 0), (2, 0, 1)])
        releases.enter([new], "first run", 0)
        with pytest.raises(AccountError, match="another job entered a release"):
            releases.enter([new], "second run", 0)
        named_otherwise = Entry(**{**new.__dict__, "naming": b"a pseudonym"})
        with pytest.raises(AccountError, match="named otherwise"):
            releases.enter([named_otherwise], "second run", 1)
        assert [item.number for item in releases.list_tables()] == [1]
        assert releases.has("first run")
        assert not releases.has("second run")


def test_a_release_without_counts_leaves_the_distance_unknown_for_good(tmp_path: Path) -> None:
    """An earlier version entered values without the people who have them."""
    rows: list[Row] = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1)]
    with Account(tmp_path / "account.sqlite", KEY, create=True) as account:
        releases = Releases(account)
        new = entry(account, rows)
        releases.enter([new, replace(new, counts={}), new], "run", 0)
        assert joint(releases, [new]) == [(2, 2, 0), (2, 2, None), (2, 2, None), (2, 2, None)]


@dear
@given(months=st.lists(_ROWS, min_size=1, max_size=4))
def test_who_follows_pseudonyms_is_left_what_brute_force_finds(months: list[list[Row]]) -> None:
    """The values of the people with one list, in the release where these are fewest, and furthest from the whole."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Account(Path(folder) / "account.sqlite", KEY, create=True) as account,
    ):
        releases = Releases(account)
        new = [replace(entry(account, rows), sets={"diagnosis": sets_of(rows)}) for rows in months]
        without = [entry(account, rows) for rows in months]
        expected = []
        for count, (_, by_class, by_class_t) in enumerate(joint(releases, without), 1):
            fewest, distance = follow(months[:count])
            expected.append((min(by_class, fewest), pytest.approx(max(by_class_t, distance), abs=1e-9)))
        assert [item[1:] for item in joint(releases, new)] == expected
        releases.enter(new, "run", 0)
        assert [item[1:] for item in joint(releases)] == expected
        assert not releases.cannot_follow("diagnosis")
        releases.enter(without[:1], "another run", len(new))
        assert releases.cannot_follow("diagnosis")


def values_of(rows: list[Row]) -> dict[str, frozenset]:
    """Return the set of each person's values."""
    people = sorted({str(row[0]) for row in rows})
    return {item: frozenset(row[2] for row in rows if str(row[0]) == item) for item in people}


def sets_of(rows: list[Row]) -> np.ndarray:
    results = list(values_of(rows).values())
    return np.array([results.index(item) for item in results], np.int64)


def follow(months: list[list[Row]]) -> tuple[int, float]:
    """Return the fewest sets of values among people with one list in a release, and the largest distance."""
    lists: dict[tuple, list[str]] = {}
    for item in {str(row[0]) for rows in months for row in rows}:
        known = tuple(frozenset(row[1] for row in rows if str(row[0]) == item) or None for rows in months)
        lists.setdefault(known, []).append(item)
    fewest, distance = 99, 0.0
    for rows in months:
        shown = values_of(rows)
        whole = Counter(shown.values())
        for people in lists.values():
            indexes = Counter(shown[item] for item in people if item in shown)
            if indexes:
                fewest = min(fewest, len(indexes))
                apart = sum(abs(indexes[item] / indexes.total() - whole[item] / whole.total()) for item in whole)
                distance = max(distance, apart / 2)
    return fewest, distance


def test_a_release_without_a_sensitive_column_tells_nothing_of_it(tmp_path: Path) -> None:
    """What is left of the column stays as it was, before the releases are entered and when they are read again."""
    rows: list[Row] = [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1), (5, 1, 1)]
    with Account(tmp_path / "account.sqlite", KEY, create=True) as account:
        releases, with_it = Releases(account), entry(account, rows)
        new = [with_it, replace(with_it, values={}, counts={}), entry(account, rows[:4])]
        expected = [(row["joint_k"], row["joint_l"]) for row in counted([rows, rows[:4]], 2)]
        found = joint(releases, new)
        assert [(k, left) for k, left, _ in found] == [expected[0], expected[0], expected[1]]
        releases.enter(new, "run", 0)
        assert joint(releases) == found
