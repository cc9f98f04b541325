"""anon.joint_releases: counted by brute force, and what twelve releases of the same people give away."""

from __future__ import annotations

import functools
import operator
from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._measure.joint_releases import joint_releases
from tests.profiles import cheap

Row = tuple[int | None, int, int]  # person, class, sensitive value


def stacked(releases: list[list[Row]]) -> pa.Table:
    """Put releases below each other as the bridge does."""
    rows = [(place, *row) for place, of_one in enumerate(releases, 1) for row in of_one]
    columns = zip(*rows, strict=True)
    kinds = (pa.int16(), pa.int64(), pa.int64(), pa.int64())
    names = ("_duckanon_release", "id", "zip", "value")
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


def shares_of(counts: Mapping[int, int]) -> dict[int, Fraction]:
    return {value: Fraction(count, sum(counts.values())) for value, count in counts.items()}


def counted(releases: list[list[Row]], k: int) -> list[dict[str, Any]]:
    """Count person by person: a class is the set of a person's classes, absent people have none."""
    found = []
    for last in range(1, len(releases) + 1):
        classes = []
        for rows in releases[:last]:
            of_person: dict[int, set[int]] = defaultdict(set)
            for person, zip_code, _ in rows:
                if person is not None:
                    of_person[person].add(zip_code)
            classes.append({person: frozenset(zips) for person, zips in of_person.items()})
        seen = set().union(*classes)
        lists = {person: tuple(one.get(person) for one in classes) for person in seen}
        sizes = Counter(lists.values())
        left, distances = [], []
        held = [pair for rows in releases[:last] for pair in {(person, value) for person, _, value in rows}]
        whole = shares_of(Counter(value for person, value in held if person is not None))
        for own in sizes:
            of_classes = [
                Counter(value for person, value in {(p, v) for p, _, v in rows} if one.get(person) == part)
                for rows, one, part in zip(releases, classes, own, strict=False)
                if part is not None
            ]
            fewest = functools.reduce(operator.and_, of_classes)
            left.append(len(fewest))
            own_shares = shares_of(fewest)
            distance = sum((abs(own_shares.get(value, 0) - share) for value, share in whole.items()), Fraction(0)) / 2
            distances.append(distance if fewest else Fraction(1))
        alone = Counter(classes[-1].values())
        values = [{v for p, _, v in releases[last - 1] if classes[-1].get(p) == part} for part in alone]
        found.append(
            {
                "release": f"month {last}",
                "people": len(classes[-1]),
                "k": min(alone.values(), default=None),
                "joint_people": len(seen),
                "joint_k": min(sizes.values(), default=None),
                "people_below_k": sum(size for size in sizes.values() if size < k),
                "l": min(map(len, values), default=None),
                "joint_l": min(left, default=None),
                "joint_t": float(max(distances)) if distances else None,
            }
        )
    return found


people = st.none() | st.integers(0, 7)
release = st.lists(st.tuples(people, st.integers(0, 2), st.integers(0, 3)), max_size=14)


@pytest.mark.thorough
@cheap
@given(st.lists(release, min_size=1, max_size=4).filter(any), st.integers(2, 4))
def test_candidates_are_those_of_brute_force(releases: list[list[Row]], k: int) -> None:
    names = [f"month {number}" for number in range(1, 1 + len(releases))]
    made = joint_releases(stacked(releases), releases=names, cols=["zip"], person="id", sensitive="value", k=k)
    expected = counted(releases, k)
    for row in expected:
        row["joint_t"] = pytest.approx(row["joint_t"], abs=1e-12)
    assert made.to_pylist() == expected


def test_independent_releases_of_the_same_people_give_them_away(shared: duckdb.DuckDBPyConnection) -> None:
    """Each of twelve releases has k = 10; together they leave nearly nobody ten candidates, and a fixed plan does."""
    random = np.random.default_rng(1)
    ages = random.integers(0, 1000, 600)
    for month in range(12):
        order = np.argsort(ages + random.normal(0, 30, 600), kind="stable")  # classes of ten that are cut anew
        cut = np.empty(600, np.int64)
        cut[order] = np.arange(600) // 10
        month_rows = pa.table({"id": np.arange(600), "age": cut})
        shared.register("month_rows", month_rows)
        shared.execute(f"CREATE OR REPLACE TEMP TABLE cut_{month} AS FROM month_rows").fetchall()
    names = [f"cut_{month}" for month in range(12)]
    found = shared.execute(
        f"SELECT k, joint_k, people_below_k FROM anon.joint_releases({names}, ['age'], 'id')"
    ).fetchall()
    assert {k for k, _, _ in found} == {10}
    assert found[0][1:] == (10, 0)
    assert found[-1][1] == 1
    assert found[-1][2] > 590
    same = shared.execute(f"SELECT joint_k FROM anon.joint_releases({['cut_0'] * 12}, ['age'], 'id')").fetchall()
    assert same == [(10,)] * 12
