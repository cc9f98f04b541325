"""Tests of the global recoding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.common.arrays import find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.people import NOBODY
from duckanon._methods.generalize.recoding.axes import (
    FlatStructure,
    LevelStructure,
    OrderedStructure,
    PlanColumn,
    Recoding,
    TreeStructure,
)
from duckanon._methods.generalize.recoding.classes import SensitiveEntries
from duckanon._methods.generalize.recoding.people import Moving, People
from duckanon._methods.generalize.recoding.search import recode
from duckanon._methods.generalize.recoding.table import Entries, PlanTable, Sizes
from duckanon._methods.generalize.recoding.trees import FlatAxis, TreeAxis, make_axis
from tests.profiles import cheap, dear, seeds


def leaves_of(column):
    s = column.structure
    if isinstance(s, OrderedStructure):
        return len(s.positions)
    if isinstance(s, FlatStructure):
        return s.leaves
    if isinstance(s, LevelStructure):
        return len(s.maps[0])
    return len(s.parents) - len({p for p in s.parents.tolist() if p >= 0})


def under(parents, node, n):
    """The leaves below a node."""
    result = set()
    for leaf in range(n):
        at = leaf
        while at != -1:
            if at == node:
                result.add(leaf)
            at = int(parents[at])
    return frozenset(result)


def group_loss(column, group, level=None):
    """An independent statement of the loss of a set of leaves, or None if it may not be a group."""
    n = leaves_of(column)
    null = n if column.has_null else None
    if null in group:
        if len(group) == 1:
            return 0.0
        return 1.0 if len(group) == n + 1 else None
    s = column.structure
    if isinstance(s, OrderedStructure):
        low, high = min(group), max(group)
        span = s.positions[-1] - s.positions[0]
        return (s.positions[high] - s.positions[low]) / span if n > 1 and span > 0 else 0.0
    if isinstance(s, LevelStructure):
        return float(s.losses[level][s.maps[level][min(group)]])
    if isinstance(s, FlatStructure):
        return 1.0 if len(group) == n > 1 else (len(group) - 1) / max(n + column.has_null - 1, 1)
    return (len(group) - 1) / max(n - 1, 1)


def rest_loss(column, group):
    """The loss of the values that are told of nobody, or that were merged: what no other label says."""
    n = leaves_of(column)
    if not isinstance(column.structure, FlatStructure) or len(group - {n}) == n > 1:
        return 1.0
    return (len(group) - 1) / max(n + column.has_null - 1, 1)


def all_recodings(column):
    """Every allowed recoding: a list of (groups, losses)."""
    n = leaves_of(column)
    s = column.structure
    out = []
    if isinstance(s, OrderedStructure):
        for cuts in itertools.product((0, 1), repeat=n - 1):
            edges = [0, *[i + 1 for i, c in enumerate(cuts) if c], n]
            out.append(([frozenset(range(a, b)) for a, b in itertools.pairwise(edges)], None))
    elif isinstance(s, FlatStructure):
        for kept in itertools.product((0, 1), repeat=n):
            other = frozenset(i for i in range(n) if not kept[i])
            if len(other) != 1:
                out.append(([frozenset([i]) for i in range(n) if kept[i]] + ([other] if other else []), None))
    elif isinstance(s, LevelStructure):
        for level, mapping in enumerate(s.maps):
            groups = [frozenset(np.flatnonzero(mapping == g).tolist()) for g in np.unique(mapping)]
            out.append((groups, level))
    else:
        parents = s.parents

        def cuts(node):
            results = [[under(parents, node, n)]]
            children = [c for c in range(len(parents)) if parents[c] == node]
            if children:
                for parts in itertools.product(*[cuts(c) for c in children]):
                    results.append([g for part in parts for g in part])
            return results

        root = int(np.flatnonzero(parents < 0)[0])
        unique = {frozenset(c) for c in cuts(root)}
        out = [(sorted(c, key=min), None) for c in unique]
    result = []
    for groups, level in out:
        extra = [frozenset([n])] if column.has_null else []
        result.append({g: group_loss(column, g, level) for g in [*groups, *extra]})
    if column.has_null:
        result.append({frozenset(range(n + 1)): 1.0})
    return result


def classes_of(rows, columns, per_leaf):
    """The class of each row, with dictionaries only; per_leaf gives (group, loss) for each leaf of each column."""
    return [tuple(per_leaf[c][int(column.codes[row])][0] for c, column in enumerate(columns)) for row in range(rows)]


def brute_measure(counts, columns, per_leaf, k, sizes=None, persons=None):
    """Suppressed rows, loss, and which groups of each column are released."""
    keys = classes_of(len(counts), columns, per_leaf)
    members = {}
    for row, key in enumerate(keys):
        if persons is None:
            members[key] = members.get(key, 0) + int((counts if sizes is None else sizes)[row])
        elif persons[row] != NOBODY:
            members.setdefault(key, set()).add(int(persons[row]))
    suppressed, total, released = 0, 0.0, [set() for _ in columns]
    for row, key in enumerate(keys):
        people = members.get(key, 0)
        small = (people if isinstance(people, int) else len(people)) < k
        suppressed += int(counts[row]) * small
        for c, column in enumerate(columns):
            group, loss = per_leaf[c][int(column.codes[row])]
            total += column.weight * (1.0 if small else loss) * int(counts[row])
            if not small and counts[row]:
                released[c].add(group)
    return suppressed, total / (sum(c.weight for c in columns) * int(counts.sum())), released


def check(counts, columns, k, limit, sizes=None, persons=None) -> Recoding:
    result = recode(counts, columns, k, limit, sizes=sizes, persons=persons)
    per_leaf = []
    for column, part in zip(columns, result.columns, strict=True):
        n = leaves_of(column) + column.has_null
        assert len(part.group_of_leaf) == n
        assert (part.level is not None) == isinstance(column.structure, LevelStructure)
        groups = {}
        for leaf, g in enumerate(part.group_of_leaf.tolist()):
            groups.setdefault(g, set()).add(leaf)
        losses = {}
        possible = {group for recoding in allowed(column) for group in recoding}
        for g, members in groups.items():
            loss = rest_loss(column, members) if g == part.rest else group_loss(column, members, part.level)
            assert loss is not None
            assert loss == pytest.approx(part.losses[g])
            losses[g] = loss
            assert g == part.rest or frozenset(members) in possible
        per_leaf.append([(g, losses[g]) for g in part.group_of_leaf.tolist()])
    suppressed, gcp, released = brute_measure(counts, columns, per_leaf, k, sizes, persons)
    assert suppressed == result.suppressed <= limit
    assert counts[~result.is_released].sum() == suppressed
    assert gcp == pytest.approx(result.gcp)
    for column, part, named in zip(columns, result.columns, released, strict=True):
        groups = set(part.group_of_leaf[: leaves_of(column)].tolist())
        assert groups - named <= {part.rest} or (len(groups) == 1 and not named & groups)
        rows = np.bincount(part.group_of_leaf[column.codes], counts, len(part.losses))
        assert ((part.rows > 0) == np.isin(np.arange(len(part.losses)), list(named))).all()
        assert (part.rows <= rows).all()
        assert part.rows.sum() == counts.sum() - suppressed
    return result


_ALLOWED = {}


def allowed(column):
    key = id(column)
    if key not in _ALLOWED:
        _ALLOWED[key] = (column, {frozenset(r) for r in all_recodings(column)})
    return _ALLOWED[key][1]


def random_tree(rng, n):
    parents = [-1] * n
    open_nodes = list(range(n))
    while len(open_nodes) > 1:
        take = int(rng.integers(1, min(4, len(open_nodes)) + 1))
        at = int(rng.integers(0, len(open_nodes) - take + 1))
        new = len(parents)
        parents.append(-1)
        for node in open_nodes[at : at + take]:
            parents[node] = new
        open_nodes[at : at + take] = [new]
        if len(parents) > 4 * n + 4:
            break
    if len(open_nodes) > 1:
        new = len(parents)
        parents.append(-1)
        for node in open_nodes:
            parents[node] = new
    if n == 1 and len(parents) == 1:
        parents = [1, -1]
    return TreeStructure(np.array(parents))


def random_levels(rng, n):
    maps = [np.arange(n)]
    while maps[-1].max() > 0:
        groups = int(maps[-1].max()) + 1
        merged = np.sort(rng.integers(0, max(groups // 2, 1), groups))
        maps.append(np.unique(merged, return_inverse=True)[1][maps[-1]])
    losses = [np.array([((m == g).sum() - 1) / max(n - 1, 1) for g in range(m.max() + 1)]) for m in maps]
    return LevelStructure(tuple(maps), tuple(losses))


def random_case(rng, combos=12, most_columns=3, most_leaves=5):
    counts = rng.integers(1, 6, combos)
    columns = []
    for _ in range(int(rng.integers(1, most_columns + 1))):
        has_null = bool(rng.random() < 0.3)
        codes = np.unique(rng.integers(0, rng.integers(1, most_leaves + 1) + has_null, combos), return_inverse=True)[1]
        n = int(codes.max()) + 1 - has_null
        if n < 1:
            has_null, n = False, int(codes.max()) + 1
        kind = int(rng.integers(4))
        structure = [
            lambda n: OrderedStructure(np.cumsum(rng.integers(1, 9, n)).astype(float)),
            lambda n: random_tree(rng, n),
            lambda n: FlatStructure(n),
            lambda n: random_levels(rng, n),
        ][kind](n)
        columns.append(PlanColumn(codes.astype(np.int64), structure, float(rng.integers(1, 3)), has_null))
    k = int(rng.integers(1, 8))
    limit = int(rng.integers(0, max(int(counts.sum()) // 5, 1)))
    return counts, columns, k, limit


def closed(column, recoding, named):
    """What a recoding can be when groups that are told of nobody have merged: a list of recodings.

    Args:
        recoding: Pairs of a group of leaves and its loss.
        told: The groups of which a row is released.
    """
    n = leaves_of(column)
    null = frozenset([n]) if column.has_null else None
    values = sorted((group for group in recoding if group != null), key=min)
    hidden = [group for group in recoding if group not in named]
    if not hidden or len(recoding) == 1:
        return [recoding]
    if isinstance(column.structure, OrderedStructure):
        null_part = {null: 1.0 if null in hidden else 0.0} if null else {}
        released = [min(group) for group in values if group in named]
        runs = [[0, *(min(group) for group in values[1:])]] if released else [[0]]
        choices = [
            [start for start in runs[0] if left < start <= right] for left, right in itertools.pairwise(released)
        ]
        result = []
        for cuts in itertools.product(*choices):
            edges = [0, *cuts, n]
            parts = [frozenset(range(low, high)) for low, high in itertools.pairwise(edges)]
            result.append({**{part: group_loss(column, part) for part in parts}, **null_part})
        return result
    if isinstance(column.structure, FlatStructure):
        hidden = list({*hidden, *(group for group in values if len(group) > 1)})
    rest = frozenset().union(*hidden)
    kept = {group: loss for group, loss in recoding.items() if group not in hidden}
    return [{**kept, rest: rest_loss(column, rest)}]


def per_leaf_of(columns, recodings):
    """The group and the loss of each leaf of each column."""
    return [
        [next((g, loss) for g, loss in part.items() if leaf in g) for leaf in range(leaves_of(c) + c.has_null)]
        for c, part in zip(columns, recodings, strict=True)
    ]


def optimum(counts, columns, k, limit):
    """The best over all recodings as they are released, by exhaustive search."""
    best = np.inf
    for combination in itertools.product(*[all_recodings(column) for column in columns]):
        _, _, named = brute_measure(counts, columns, per_leaf_of(columns, combination), k)
        finals = [closed(c, part, own) for c, part, own in zip(columns, combination, named, strict=True)]
        for final in itertools.product(*finals):
            suppressed, loss, _ = brute_measure(counts, columns, per_leaf_of(columns, final), k)
            best = min(best, loss) if suppressed <= limit else best
    return best


@dear
@given(st.integers(0, 10**9))
def test_results_are_allowed_feasible_and_measured_right(seed):
    rng = np.random.default_rng(seed)
    counts, columns, k, limit = random_case(rng, combos=int(rng.integers(2, 25)))
    if counts.sum() < k:
        with pytest.raises(ValueError, match="k must be at most the number of rows"):
            recode(counts, columns, k, limit)
    else:
        check(counts, columns, k, limit)


@dear
@given(st.integers(0, 10**9))
def test_classes_have_k_people_where_people_have_several_rows(seed):
    rng = np.random.default_rng(seed)
    counts, columns, k, limit = random_case(rng, combos=int(rng.integers(2, 40)))
    persons = rng.integers(-1, max(len(counts) // 2, 1), len(counts))
    people = len(set(persons.tolist()) - {NOBODY})
    if people < k:
        with pytest.raises(ValueError, match="k must be at most the number of people"):
            recode(counts, columns, k, limit, persons=persons)
    else:
        check(counts, columns, k, limit, persons=persons)


@pytest.mark.parametrize(("k", "sizes"), [(1, None), (5, np.array([5, 6, 7]))])
def test_a_class_of_one_row_is_released_where_that_is_enough(k, sizes):
    """It has the values of its row: of a class of one person, or of five people of a population."""
    ages = PlanColumn(np.array([0, 1, 2]), OrderedStructure(np.array([20.0, 40.0, 60.0])))
    result = check(np.array([1, 1, 3]), [ages], k, 0, sizes=sizes)
    assert result.is_released.tolist() == [True] * 3
    assert (result.suppressed, result.gcp) == (0, 0)


@dear
@given(st.integers(0, 10**9))
def test_classes_have_k_people_of_a_population(seed):
    rng = np.random.default_rng(seed)
    counts, columns, k, _ = random_case(rng, combos=int(rng.integers(2, 25)))
    sizes = counts + rng.integers(0, 5, len(counts))
    if sizes.sum() >= k:
        check(counts, columns, k, int(counts.sum()), sizes=sizes)


class ForgetfulTable(PlanTable):
    """A table that looks at itself anew each time."""

    def view(self, column):
        self._views.clear()
        self._kept.clear()
        return super().view(column)

    def score_release(self, is_promised=False):
        self._kept.clear()
        return super().score_release(is_promised)


@pytest.mark.thorough
@dear
@given(st.integers(0, 10**9))
def test_what_a_search_keeps_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    counts, columns, k, limit = random_case(rng, combos=int(rng.integers(2, 25)))
    k = min(k, int(counts.sum()))
    kept = recode(counts, columns, k, limit)
    with pytest.MonkeyPatch.context() as forgetting:
        forgetting.setattr("duckanon._methods.generalize.recoding.search._MOST_KEPT_MOVES", -1)
        forgetting.setattr("duckanon._methods.generalize.recoding.search.PlanTable", ForgetfulTable)
        forgetting.setattr(TreeAxis, "node_costs", TreeAxis._node_costs)
        anew = recode(counts, columns, k, limit)
    assert (kept.suppressed, kept.gcp) == (anew.suppressed, anew.gcp)
    for with_keeping, without in zip(kept.columns, anew.columns, strict=True):
        assert with_keeping.group_of_leaf.tolist() == without.group_of_leaf.tolist()


@pytest.mark.thorough
@dear
@given(st.integers(0, 10**9), st.booleans())
def test_hierarchies_are_searched_alike_in_matrices_and_in_entries(seed, cells_are_many):
    rng = np.random.default_rng(seed)
    counts, columns, k, limit = random_case(rng, combos=int(rng.integers(2, 25)))
    k = min(k, int(counts.sum()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("duckanon._methods.generalize.recoding.views._FEW_CELLS", 0 if cells_are_many else 10**9)
        in_matrices = recode(counts, columns, k, limit)
        patched.setattr("duckanon._methods.generalize.recoding.table.is_dense", lambda keys, entries: False)
        in_entries = recode(counts, columns, k, limit)
    assert in_matrices.suppressed == in_entries.suppressed
    assert in_matrices.gcp == pytest.approx(in_entries.gcp, abs=1e-9)


@pytest.mark.parametrize(("between", "suppressed"), [(3, 0), (100, 120)])
def test_a_label_that_no_released_row_has_is_no_release(between, suppressed):
    """Three ages, the one in the middle with one diagnosis: it joins a neighbour, which may not be diverse then."""
    age, diagnosis = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 0, 0, 1])
    counts = np.array([5, 5, between, 5, 5])
    sensitive = SensitiveEntries.of_entries(DiversityRule(l=1.5, l_kind="entropy"), diagnosis, counts, None)
    axis = make_axis(PlanColumn(age, OrderedStructure(np.arange(3.0))), np.array([10, between, 10]), 0)
    table = PlanTable(Entries([age], counts, sensitive=sensitive), [axis], np.ones(1), Sizes(4, 4))
    table.set_state(0, (0, 1, 2))
    score, *_ = table.score_release(is_promised=True)
    assert score.suppressed == suppressed


@cheap
@given(st.lists(st.integers(-3, 3)), st.integers(0, 3))
def test_runs_are_those_of_numpy(values, repeated):
    entries = np.sort(np.repeat(np.array(values, dtype=np.int64), repeated))
    result, starts, lengths = np.unique(entries, return_index=True, return_counts=True)
    assert find_run_starts(entries).tolist() == starts.tolist()
    assert measure_runs(find_run_starts(entries), len(entries)).tolist() == lengths.tolist()
    assert sort_distinct(np.array(values, dtype=np.int64)).tolist() == np.unique(values).tolist()
    assert sort_distinct(entries).tolist() == result.tolist()


@dear
@given(st.integers(0, 10**9))
def test_every_move_is_scored_as_the_state_that_it_leads_to(seed):
    rng = np.random.default_rng(seed)
    counts, columns, k, _ = random_case(rng, combos=int(rng.integers(2, 25)))
    people = People.of_entries(np.arange(len(counts)), rng.integers(-1, 8, len(counts)), len(counts))
    kind = rng.integers(3)
    entries = Entries(
        [column.codes for column in columns],
        counts,
        counts + rng.integers(0, 3, len(counts)) if kind == 1 else None,
        people if kind == 2 else None,
    )
    weights = np.array([column.weight for column in columns])
    axes = [make_axis(c, np.bincount(c.codes, counts, leaves_of(c) + c.has_null).astype(int), 0) for c in columns]
    table = PlanTable(entries, axes, weights, Sizes(k, k))
    for _ in range(4):
        column = int(rng.integers(len(columns)))
        state = table.states[column]
        moves = axes[column].list_moves(state, table.view(column))
        states = [
            axes[column].apply(state, int(kind), int(removed), int(added))
            for kind, removed, added in zip(moves.kind, moves.removed, moves.added, strict=True)
        ]
        for new, loss, suppressed in zip(states, moves.loss, moves.suppressed, strict=True):
            table.set_state(column, new)
            score = table.score()
            assert (score.loss, score.suppressed) == (pytest.approx(loss), suppressed)
        table.set_state(column, states[int(rng.integers(len(states)))] if states else state)


def test_people_with_several_rows_count_once():
    """Each of 20 people has ten rows: alone they fill a class of ten rows, and none of two people."""
    persons = np.repeat(np.arange(20), 10)
    columns = [PlanColumn(np.arange(20), OrderedStructure(np.arange(20.0)))]
    entries = [PlanColumn(column.codes[persons], column.structure) for column in columns]
    counts = np.ones(200, dtype=np.int64)
    assert len(set(recode(counts, entries, 10, 0).columns[0].group_of_leaf.tolist())) == 20
    recoding = recode(counts, entries, 10, 0, persons=persons)
    assert recoding.columns[0].group_of_leaf.tolist() == [0] * 10 + [1] * 10


def test_people_who_move_are_counted_where_they_are():
    """Ten people with a row in each of five places: every place has ten of them, whatever shares they were given."""
    persons, places = np.divmod(np.arange(50), 5)
    recoding = check(
        np.ones(50, dtype=np.int64), [PlanColumn(places, OrderedStructure(np.arange(5.0)))], 10, 0, persons=persons
    )
    assert recoding.columns[0].group_of_leaf.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("tables", [5, pytest.param(200, marks=pytest.mark.thorough)])
def test_close_to_the_optimum_on_tiny_tables(tables):
    gaps = []
    for seed in range(tables):
        counts, columns, k, limit = random_case(np.random.default_rng(seed))
        reached = recode(counts, columns, k, limit).gcp
        best = optimum(counts, columns, k, limit)
        assert reached >= best - 1e-9
        gaps.append(reached - best)
    assert np.mean(np.array(gaps) < 1e-9) >= 0.97
    assert np.mean(gaps) < 0.003


def adult_like(rng, rows):
    """Correlated columns with regular trees; also each tree's levels."""
    hidden = rng.random(rows)
    columns, levels = [], []
    for n, branch in ((16, 2), (9, 3), (8, 2), (2, 2)):
        codes = np.minimum((np.abs(rng.normal(hidden, 0.3)) * n * 0.7).astype(int), n - 1)
        codes = np.unique(codes, return_inverse=True)[1]
        n = int(codes.max()) + 1
        parents, maps, here = [-1] * n, [np.arange(n)], list(range(n))
        while len(here) > 1:
            new = [len(parents) + i for i in range(-(-len(here) // branch))]
            for i, node in enumerate(here):
                parents[node] = new[i // branch]
            parents += [-1] * len(new)
            maps.append(maps[-1] // branch)
            here = new
        columns.append(PlanColumn(codes, TreeStructure(np.array(parents))))
        losses = tuple((np.bincount(m) - 1) / max(n - 1, 1) for m in maps)
        levels.append(PlanColumn(codes, LevelStructure(tuple(maps), losses)))
    return np.ones(rows, dtype=np.int64), columns, levels


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(2, 7))
@pytest.mark.parametrize("share", [0, 0.05])
def test_not_worse_than_the_best_full_domain_recoding(seed, share):
    counts, columns, levels = adult_like(np.random.default_rng(seed), 400)
    limit = int(share * 400)
    best = optimum(counts, levels, 5, limit)
    assert recode(counts, columns, 5, limit).gcp <= best + 1e-9
    assert recode(counts, levels, 5, limit).gcp == pytest.approx(best, rel=0.02)


@pytest.mark.thorough
def test_order_of_combinations_and_columns_does_not_matter():
    counts, columns, _ = adult_like(np.random.default_rng(3), 500)
    result = recode(counts, columns, 5, 10)
    shuffled = np.random.default_rng(4).permutation(500)
    moved = [PlanColumn(c.codes[shuffled], c.structure) for c in columns]
    again = recode(counts[shuffled], moved[::-1], 5, 10)
    for item, other in zip(result.columns, again.columns[::-1], strict=True):
        assert (item.group_of_leaf == other.group_of_leaf).all()
    assert again.gcp == pytest.approx(result.gcp)


def test_null_is_a_group_of_its_own_or_joins_the_root():
    counts = np.array([10, 10, 2])
    column = PlanColumn(np.array([0, 1, 2]), OrderedStructure(np.array([1.0, 2.0])), has_null=True)
    apart = check(counts, [column], 5, 2)
    assert (apart.suppressed, apart.gcp) == (2, pytest.approx(2 / 22))
    assert len(set(apart.columns[0].group_of_leaf.tolist())) == 3
    joined = check(counts, [column], 5, 0)
    assert (joined.suppressed, joined.gcp) == (0, 1.0)
    assert set(joined.columns[0].group_of_leaf.tolist()) == {0}


@pytest.mark.parametrize(
    "structure",
    [
        OrderedStructure(np.array([5.0])),
        TreeStructure(np.array([1, -1])),
        TreeStructure(np.array([-1])),
        FlatStructure(1),
        LevelStructure((np.array([0]),), (np.array([0.0]),)),
    ],
)
def test_all_rows_equal(structure):
    result = check(np.array([7]), [PlanColumn(np.array([0]), structure)], 7, 0)
    assert (result.suppressed, result.gcp) == (0, 0.0)


def test_k_is_the_number_of_rows():
    rng = np.random.default_rng(0)
    counts, columns, _, _ = random_case(rng, combos=20)
    assert check(counts, columns, int(counts.sum()), 0).suppressed == 0


def test_too_few_rows():
    with pytest.raises(ValueError, match="k must be at most the number of rows"):
        recode(np.array([3]), [PlanColumn(np.array([0]), FlatStructure(1))], 4, 3)


def test_wrong_input():
    with pytest.raises(ValueError, match="parallel"):
        recode(np.array([3, 3]), [PlanColumn(np.array([0]), FlatStructure(1))], 2, 0)
    with pytest.raises(ValueError, match="one root"):
        recode(np.array([3]), [PlanColumn(np.array([0]), TreeStructure(np.array([-1, -1])))], 2, 0)
    levels = LevelStructure((np.array([0, 1]),), (np.zeros(2),))
    with pytest.raises(ValueError, match="one group"):
        recode(np.array([3, 3]), [PlanColumn(np.array([0, 1]), levels)], 2, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("has_null", [False, True])
def test_stages_of_a_large_table_end_feasible(has_null, monkeypatch):
    monkeypatch.setattr("duckanon._methods.generalize.recoding.search._FIRST_COMBOS", 50)
    rng = np.random.default_rng(1)
    rows = 3000
    tree = random_tree(rng, 40)
    kinds = [
        (OrderedStructure(np.sort(rng.normal(size=900))), 900),
        (FlatStructure(60), 60),
        (tree, 40),
        (random_levels(rng, 30), 30),
    ]
    columns = []
    for structure, n in kinds:
        codes = np.minimum(np.append(np.arange(n + has_null), rng.geometric(8 / n, rows - n - has_null) - 1), n - 1)
        if has_null:
            codes[-20:] = n
        columns.append(PlanColumn(codes, structure, 1.0, has_null))
    counts = np.ones(rows, dtype=np.int64)
    result = recode(counts, columns, 5, 60)
    assert result.suppressed <= 60
    assert result.gcp < 0.75


def test_entries_may_be_taken_that_nobody_moves_between() -> None:
    moving = Moving(np.array([0, 1]), np.array([7, 7]), 3)
    counts = moving.count_first_and_last(np.zeros(3, np.int64))
    assert [of_entry.tolist() for of_entry in counts] == [[1, 0, 0], [0, 1, 0]]
    nobody = moving.select(np.array([False, False, True]))
    assert [of_entry.tolist() for of_entry in nobody.count_first_and_last(np.zeros(1, np.int64))] == [[0], [0]]


@pytest.mark.parametrize("most_block", [1, 1 << 17])
@cheap
@given(st.integers(0, 10**9))
def test_people_are_counted_as_sets(most_block: int, seed: int) -> None:
    """Of people with few and with many rows: those of each class, and those who move between entries of one."""
    rng = np.random.default_rng(seed)
    combinations, classes = int(rng.integers(1, 60)), int(rng.integers(1, 6))
    rows = np.minimum(rng.zipf(1.5, int(rng.integers(1, 30))), 100)
    person, combination = np.repeat(np.arange(len(rows)), rows), rng.integers(0, combinations, rows.sum())
    class_of_entry = np.sort(rng.integers(0, classes, int(rng.integers(1, 20))))
    entry = rng.integers(0, len(class_of_entry), combinations)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("duckanon._methods.generalize.recoding.people._MOST_BLOCK", most_block)
        people = People.of_entries(combination, person, combinations)
        sizes = people.sizes(class_of_entry[entry], classes)
        counted, moving = people.moving(entry, class_of_entry)
    own_class = class_of_entry[entry[combination]]
    assert sizes.tolist() == [len(set(person[own_class == place])) for place in range(classes)]
    entries_of = {}
    for persons, place in zip(people.person.tolist(), entry[people.combination].tolist(), strict=True):
        entries_of.setdefault((persons, class_of_entry[place]), set()).add(place)
    alone = [place for entries in entries_of.values() if len(entries) == 1 for place in entries]
    assert counted.tolist() == np.bincount(alone, minlength=len(class_of_entry)).tolist()
    among = {}
    for (persons, _), entries in entries_of.items():
        if len(entries) > 1:
            among.setdefault(persons, []).extend(entries)
    result = (
        {}
        if moving is None
        else {persons: moving.entry[moving.person == persons].tolist() for persons in moving.person}
    )
    assert sorted(result.values()) == sorted(sorted(entries) for entries in among.values())


@pytest.mark.parametrize("least", [0, 1, 3, 4, 5, 100])
def test_leaves_of_few_rows_are_one_atom_and_each_other_one_its_own(least: int) -> None:
    rows = np.array([7, 2, 9, 3, 4, 1, 30])
    axis = FlatAxis(FlatStructure(len(rows)), rows, least, False)
    few = set(np.flatnonzero(rows < least).tolist())
    groups: dict[int, set[int]] = {}
    for leaf, atom in enumerate(axis.atom_of_leaf[: len(rows)].tolist()):
        groups.setdefault(atom, set()).add(leaf)
    assert sorted(groups) == list(range(axis.n_atoms))
    alone = [{leaf} for leaf in range(len(rows)) if leaf not in few or len(few) == 1]
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, [few, *alone] if len(few) > 1 else alone))
