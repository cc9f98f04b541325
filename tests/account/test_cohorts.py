"""Cohorts: whatever people do, everybody keeps k companions with the same list, and these l values."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.account.cohorts import POOL, Rules
from duckanon._core.account.joint import ABSENT
from tests.account.population import InCohorts
from tests.profiles import dear

PEOPLE, CLASSES, VALUES = 40, 3, 3

month = st.fixed_dictionaries(
    {
        "now": st.lists(st.integers(-1, CLASSES), min_size=PEOPLE, max_size=PEOPLE).map(np.array),
        "share": st.sampled_from([0.05, 0.3, 1.0]),
        "value": st.lists(st.integers(0, VALUES - 1), min_size=PEOPLE, max_size=PEOPLE).map(np.array),
        "erased": st.lists(st.integers(0, PEOPLE - 1), max_size=2),
        "seed": st.integers(0, 99),
    }
)


@dear
@given(months=st.lists(month, min_size=2, max_size=6), k=st.integers(2, 5), l=st.integers(1, 2), refresh=st.booleans())
def test_groups_never_fall_below_k_and_l(months: list[dict], k: int, l: int, refresh: bool) -> None:  # noqa: E741
    cohorts = InCohorts(PEOPLE, VALUES, Rules(k, l, size=2 * k, patience=2, refresh=refresh))
    now, value = np.full(PEOPLE, ABSENT), months[0]["value"]
    lists: list[tuple[int, ...]] = [()] * PEOPLE
    sets: dict[tuple[int, int], set[int]] = {}
    for number, month in enumerate(months):
        changes = np.random.default_rng(month["seed"]).random(PEOPLE) < (month["share"] if number else 1)
        now = np.where(changes, np.where(month["now"] == POOL, ABSENT, month["now"]), now)
        value = np.where(changes, month["value"], value)
        must_go = np.isin(np.arange(PEOPLE), month["erased"])
        before, shown = cohorts.classes, cohorts.shown_value
        decided = cohorts.release(now, value, must_go)
        classes = decided.classes
        assert (classes[must_go] == ABSENT).all()
        is_fresh = (classes != ABSENT) & ~decided.is_old
        assert np.isin(classes[is_fresh], [POOL, *now[is_fresh]]).all()
        assert ((classes == now) | (classes == POOL))[is_fresh].all()
        assert (now[is_fresh] != ABSENT).all()
        assert (classes == before)[decided.is_old].all()
        # by brute force: who has the same list, which values a reader subtracts for those who came, stayed and went
        lists = [(*known, int(one)) for known, one in zip(lists, classes, strict=True)]
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for person, known in enumerate(lists):
            if set(known) != {ABSENT}:
                groups[known].append(person)
        for person in np.flatnonzero(classes != ABSENT):
            sets.setdefault((number, int(classes[person])), set()).add(int(cohorts.shown_value[person]))
        for known, members in groups.items():
            assert len(members) >= k
            places = [(place, one) for place, one in enumerate(known) if one != ABSENT]
            assert l == 1 or len(set.intersection(*(sets[place] for place in places))) >= l
            last = cohorts.shown_value if known[-1] != ABSENT else shown
            if known[-1] != ABSENT or (len(known) > 1 and known[-2] != ABSENT):
                assert len({int(last[person]) for person in members}) >= l


def test_people_enter_together_leave_together_and_move_by_the_pool() -> None:
    now = np.array([1] * 20 + [2] * 20 + [ABSENT] * 6)
    value = np.arange(len(now)) % 3
    cohorts = InCohorts(len(now), 3, Rules(k=4, l=2, size=6, patience=2))
    assert (cohorts.release(now, value).classes == now).all()
    now[:3] = ABSENT  # three people are gone, and two join: nothing happens yet
    now[40:42] = 1
    decided = cohorts.release(now, value)
    assert list(decided.classes[:3]) == [1, 1, 1]
    assert list(np.flatnonzero(decided.is_stale)) == [0, 1, 2]
    assert list(decided.classes[40:]) == [ABSENT] * 6
    now[3] = ABSENT  # the fourth who leaves; four move, one each to a class; four more join, so that six enter
    now[4:8] = [3, 4, 5, 2]
    now[42:46] = 1
    decided = cohorts.release(now, value)
    assert list(decided.classes[:9]) == [ABSENT] * 4 + [POOL] * 4 + [1]
    assert list(decided.classes[40:]) == [1] * 6
    assert not decided.is_stale.any()
    assert cohorts.counts.k == 4


def test_people_who_must_go_take_others_along_and_small_classes_are_pooled() -> None:
    now = np.array([1] * 12 + [2] * 3 + [3] * 3)
    value = np.arange(len(now)) % 3
    cohorts = InCohorts(len(now), 3, Rules(k=5, l=2, size=5, patience=1))
    decided = cohorts.release(now, value)
    assert list(decided.classes[12:]) == [ABSENT] * 6  # too few in each class
    must_go = np.arange(len(now)) == 0
    decided = cohorts.release(now, value, must_go)
    assert decided.classes[0] == ABSENT
    assert (decided.classes[:12] == ABSENT).sum() == 5
    decided = cohorts.release(now, value, must_go)
    assert list(decided.classes[12:]) == [POOL] * 6
