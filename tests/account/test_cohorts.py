"""Cohorts: whatever people do, everybody keeps k companions with the same list, and these l values."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.account.cohorts import POOL, CohortPeople, CohortRules, GroupParts, have_values
from duckanon._core.account.joint import ABSENT, ValuesLeft
from tests.account.population import InCohorts, coarser_classes, only_the_pool
from tests.profiles import dear

PEOPLE, SHAPE, CLASSES, VALUES = 40, (2, 2), 4, 3

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
@given(
    months=st.lists(month, min_size=2, max_size=6),
    k=st.integers(2, 5),
    l=st.integers(1, 2),
    refresh=st.booleans(),
    is_followed=st.booleans(),
)
def test_groups_never_fall_below_k_and_l(
    months: list[dict],
    k: int,
    l: int,  # noqa: E741
    refresh: bool,
    is_followed: bool,
) -> None:
    coarser = coarser_classes(SHAPE)
    cohorts = InCohorts(PEOPLE, VALUES, CohortRules(k, l, 2 * k, 1, refresh), coarser, is_followed=is_followed)
    now, value = np.full(PEOPLE, ABSENT), months[0]["value"]
    lists: list[tuple[int, ...]] = [()] * PEOPLE
    sets: dict[tuple[int, int], set[int]] = {}
    records: list[np.ndarray] = []
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
        assert (now[is_fresh] != ABSENT).all()
        assert (coarser[now[is_fresh]] == classes[is_fresh][:, None]).any(axis=1).all()  # labels are true
        is_true = (classes != ABSENT) & (now != ABSENT) & (coarser[now] == classes[:, None]).any(axis=1)
        assert (is_true | decided.is_stale)[classes != ABSENT].all()
        assert (classes == before)[decided.is_old].all()
        # by brute force: who has the same list, which values a reader subtracts for those who came, stayed and went
        records.append(cohorts.shown_value)
        lists = [(*known, int(entry)) for known, entry in zip(lists, classes, strict=True)]
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for person, known in enumerate(lists):
            if set(known) != {ABSENT}:
                groups[known].append(person)
        for person in np.flatnonzero(classes != ABSENT):
            sets.setdefault((number, int(classes[person])), set()).add(int(cohorts.shown_value[person]))
        for known, members in groups.items():
            assert len(members) >= k
            places = [(place, entry) for place, entry in enumerate(known) if entry != ABSENT]
            assert l == 1 or len(set.intersection(*(sets[place] for place in places))) >= l
            last = cohorts.shown_value if known[-1] != ABSENT else shown
            if known[-1] != ABSENT or (len(known) > 1 and known[-2] != ABSENT):
                assert len({int(last[person]) for person in members}) >= l
            for place, _ in places if is_followed else ():  # who follows pseudonyms sees what these people showed
                assert len({int(records[place][person]) for person in members}) >= l
        assert cohorts.counts.k is None or cohorts.counts.k >= k
        assert (cohorts.counts.count_values_left("value") or l) >= l


def test_people_enter_together_leave_together_and_move_by_the_pool() -> None:
    now = np.array([1] * 20 + [2] * 20 + [ABSENT] * 6)
    value = np.arange(len(now)) % 3
    cohorts = InCohorts(len(now), 3, CohortRules(k=4, l=2, size=6, patience=1), only_the_pool(5))
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
    assert list(decided.classes[:9]) == [ABSENT] * 4 + [1] * 5
    assert list(np.flatnonzero(decided.is_stale)) == [4, 5, 6, 7]  # nobody is without labels at once
    assert list(decided.classes[40:]) == [1] * 6
    decided = cohorts.release(now, value)
    assert list(decided.classes[:9]) == [ABSENT] * 4 + [POOL] * 4 + [1]
    assert not decided.is_stale.any()
    assert cohorts.counts.k == 4


def test_people_who_move_keep_the_labels_that_did_not_change() -> None:
    """Classes 1 to 3 have the first label of the first column, 4 to 6 the second one."""
    coarser = coarser_classes((2, 3))
    now = np.array([1] * 20 + [5] * 10)
    value = np.arange(len(now)) % 3
    cohorts = InCohorts(len(now), 3, CohortRules(k=4, l=2, size=4), coarser)
    cohorts.release(now, value)
    now[:4] = [2, 2, 3, 3]
    decided = cohorts.release(now, value)
    first_only = set(coarser[1]) & set(coarser[2]) - {POOL}  # true of both classes: the second column is unknown
    assert set(decided.classes[:4]) == first_only
    assert not decided.is_stale.any()
    now[:3] = [3, 1, 2]  # under labels that stay true nobody moves; who leaves them becomes stale
    now[3] = 6
    decided = cohorts.release(now, value)
    assert set(decided.classes[:4]) == first_only
    assert list(np.flatnonzero(decided.is_stale)) == [3]


def test_newcomers_of_small_classes_enter_under_coarser_labels() -> None:
    coarser = coarser_classes((2, 3))
    now = np.array([1] * 8 + [4, 4, 5, 5, 6, 6])
    value = np.arange(len(now)) % 3
    cohorts = InCohorts(len(now), 3, CohortRules(k=5, l=2, size=5, patience=1), coarser)
    for _ in range(2):
        assert list(cohorts.release(now, value).classes[8:]) == [ABSENT] * 6
    classes = cohorts.release(now, value).classes[8:]
    assert set(classes) == set(coarser[4]) & set(coarser[5]) & set(coarser[6]) - {POOL}


def test_who_follows_pseudonyms_finds_several_values_in_every_release() -> None:
    """The group that leaves showed one value in the first release, unless what pseudonyms tell is looked at."""
    for is_followed in (False, True):
        now, value = np.full(20, 1), np.array([0] * 5 + [1] * 15)
        cohorts = InCohorts(
            20, 3, CohortRules(k=5, l=2, size=5, refresh=True), only_the_pool(1), is_followed=is_followed
        )
        cohorts.release(now, value)
        value = np.array([0, 1, 0, 1, 0] * 4)  # values change, and then the five who had the first one leave
        cohorts.release(now, value)
        now[:5] = ABSENT
        classes = cohorts.release(now, value).classes
        assert (classes[:5] == ABSENT).all() != is_followed
        assert cohorts.counts.count_values_left("value") == 2


def test_people_who_must_go_take_others_along_and_small_classes_are_pooled() -> None:
    now = np.array([1] * 12 + [2] * 3 + [3] * 3)
    value = np.arange(len(now)) % 3
    cohorts = InCohorts(len(now), 3, CohortRules(k=5, l=2, size=5, patience=1), only_the_pool(3))
    decided = cohorts.release(now, value)
    assert list(decided.classes[12:]) == [ABSENT] * 6  # too few in each class
    must_go = np.arange(len(now)) == 0
    decided = cohorts.release(now, value, must_go)
    assert decided.classes[0] == ABSENT
    assert (decided.classes[:12] == ABSENT).sum() == 5
    decided = cohorts.release(now, value, must_go)
    assert list(decided.classes[12:]) == [POOL] * 6


@dear
@given(
    months=st.lists(st.tuples(month, month), min_size=1, max_size=4), k=st.integers(2, 4), patience=st.integers(1, 2)
)
def test_two_tables_of_the_same_people_leave_k_and_l_together(months: list[tuple], k: int, patience: int) -> None:
    """One table is decided after the other, and knows what that one shows; people may be in one of them only."""
    rules, coarser = CohortRules(k, 2, k, patience), coarser_classes(SHAPE)
    tables = [InCohorts(PEOPLE, VALUES, rules, coarser, is_followed=True) for _ in range(2)]
    now = [np.full(PEOPLE, ABSENT)] * 2
    shown: list[tuple[np.ndarray, np.ndarray]] = []
    value = months[0][0]["value"]
    for number, drawn in enumerate(months):
        for place, table in enumerate(tables):
            entry = drawn[place]
            changes = np.random.default_rng(entry["seed"]).random(PEOPLE) < (entry["share"] if number else 1)
            now[place] = np.where(changes, np.where(entry["now"] == POOL, ABSENT, entry["now"]), now[place])
            table.release(now[place], value, np.isin(np.arange(PEOPLE), entry["erased"]))
            tables[1 - place].counts = table.counts
            shown.append((table.classes, np.where(table.classes == ABSENT, ABSENT, table.shown_value)))
            lists = np.array([classes for classes, _ in shown]).T
            seen = np.flatnonzero((lists != ABSENT).any(axis=1))
            _, group, sizes = np.unique(lists[seen], axis=0, return_inverse=True, return_counts=True)
            assert sizes.min(initial=k) >= k
            for _, values in shown:
                pairs = np.unique(np.column_stack([group.ravel(), values[seen]]), axis=0)
                counts = np.bincount(pairs[pairs[:, 1] != ABSENT, 0])
                assert (counts[counts > 0] >= 2).all()


def test_values_that_a_class_of_the_list_did_not_have_do_not_count() -> None:
    """Two groups show the values 0 and 1; the earlier classes of the first had 0 and 2, the second was in none."""
    numbers, nobody = np.arange(4), np.zeros(4, np.bool_)
    pairs = numbers * 3 + [0, 1, 0, 1]
    people = CohortPeople(
        groups=np.array([0, 0, 1, 1]),
        before=np.ones(4, np.int64),
        now=np.ones(4, np.int64),
        is_seen=~nobody,
        was_in=~nobody,
        must_go=nobody,
        waited=np.zeros(4, np.int64),
        stale=np.zeros(4, np.int64),
        coarser=only_the_pool(1),
        left={"value": ValuesLeft(np.array([0, 2]), np.array([False, True]), 3, None, None)},
        widths={"value": 3},
    )
    for l, expected in ((1, [True, True]), (2, [False, True]), (3, [False, False])):  # noqa: E741
        assert [have_values(people, l, members, {"value": pairs}) for members in (numbers[:2], numbers[2:])] == expected
        parts = GroupParts.of(people, people.now, ~nobody)
        assert list(parts.is_diverse({"value": pairs}, people, l)) == expected
