"""Several releases of the same people together: candidates and sensitive values left to who knows a person in each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.account.joint import (
    ABSENT,
    JointCounts,
    PeopleOfRelease,
    classify_people,
    classify_rows,
    count_people_by_value,
    find_smallest,
)
from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.declare import report_rows
from duckanon._core.common.people import NOBODY, number_people
from duckanon._measure.coarse.coarse_tables import RELEASE
from duckanon._measure.declared import JOINT_RELEASES


def joint_releases(
    stacked: pa.Table | None,
    *,
    releases: Sequence[str],
    cols: Sequence[str],
    person: str,
    sensitive: str | None,
    k: int,
    followed: bool = False,
) -> pa.Table:
    """Count candidates and values after each release, given all releases up to it.

    Who knows a person's values in every release sees the list of their classes, absent ones too; the people with the
    same list are the candidates. A sensitive value that never changes is in all of these classes. People with several
    rows have the set of their rows' classes for a class. If people can be `followed`, candidates show their own values.
    """
    if stacked is None:
        raise ValueError("the releases have no rows; give some that have.")
    people_of_releases, value_count = _read(stacked, len(releases), cols, person, sensitive, followed)
    joint = JointCounts.of_nobody(len(people_of_releases[0].classes))
    column = sensitive or ""
    rows = []
    for place, (name, release) in enumerate(zip(releases, people_of_releases, strict=True)):
        progress.advance(place / len(people_of_releases))
        joint = joint.after(release, {column: value_count})
        here = release.classes[release.classes != ABSENT]
        values = release.values.get(column)
        rows.append(
            {
                "release": name,
                "people": len(here),
                "k": find_smallest(np.bincount(here)),
                "joint_people": int(joint.is_seen.sum()),
                "joint_k": joint.k,
                "people_below_k": int(joint.sizes[joint.sizes < k].sum()),
                "l": None if values is None else find_smallest(np.bincount(values // value_count)),
                "joint_l": joint.count_values_left(column),
                "joint_t": joint.distance(column),
            }
        )
    return report_rows(rows, JOINT_RELEASES.schema)


def _read(
    stacked: pa.Table, count: int, cols: Sequence[str], person: str, sensitive: str | None, followed: bool
) -> tuple[list[PeopleOfRelease], int]:
    """Give people, classes and sensitive values numbers, and read the classes of each release."""
    name_of = {name.lower(): name for name in stacked.column_names}
    numbers = stacked[RELEASE].to_numpy()
    people = number_people(stacked[name_of[person.lower()]])
    values, value_count = None, 0
    if sensitive is not None:
        ((values, value_count),) = encode_columns(stacked.select([name_of[sensitive.lower()]]))
    classes_of_rows = classify_rows(stacked.select([name_of[name.lower()] for name in cols]))
    everybody = int(people.max(initial=NOBODY)) + 1
    people_of_releases = []
    for number in range(1, count + 1):
        progress.check()
        rows = np.flatnonzero((numbers == number) & (people != NOBODY))
        who = people[rows]
        classes = classify_people(who, classes_of_rows[rows], everybody)
        pairs: dict[str, Ints] = {}
        counts: dict[str, Ints] = {}
        sets: dict[str, Ints] = {}
        if sensitive is not None and values is not None:
            shown = values[rows].astype(np.int64)
            pairs[sensitive], counts[sensitive] = count_people_by_value(who, classes, shown, value_count)
            sets = {sensitive: classify_people(who, shown, everybody)} if followed else {}
        people_of_releases.append(PeopleOfRelease(classes, pairs, counts, sets))
    return people_of_releases, value_count
