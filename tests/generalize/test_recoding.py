"""Tests of the global recoding."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.generalize.recoding.columns import Column, Flat, Levels, Ordered, Tree
from duckanon.generalize.recoding.recode import Recoding, recode
from tests.profiles import dear, seeds


def leaves_of(column):
    s = column.structure
    if isinstance(s, Ordered):
        return len(s.positions)
    if isinstance(s, Flat):
        return s.leaves
    if isinstance(s, Levels):
        return len(s.maps[0])
    return len(s.parents) - len({p for p in s.parents.tolist() if p >= 0})


def under(parents, node, n):
    """The leaves below a node."""
    found = set()
    for leaf in range(n):
        at = leaf
        while at != -1:
            if at == node:
                found.add(leaf)
            at = int(parents[at])
    return frozenset(found)


def group_loss(column, group, level=None):
    """An independent statement of the loss of a set of leaves, or None if it may not be a group."""
    n = leaves_of(column)
    null = n if column.has_null else None
    if null in group:
        if len(group) == 1:
            return 0.0
        return 1.0 if len(group) == n + 1 else None
    s = column.structure
    if isinstance(s, Ordered):
        low, high = min(group), max(group)
        span = s.positions[-1] - s.positions[0]
        return (s.positions[high] - s.positions[low]) / span if n > 1 and span > 0 else 0.0
    if isinstance(s, Levels):
        return float(s.losses[level][s.maps[level][min(group)]])
    return (len(group) - 1) / max(n - 1, 1)


def all_recodings(column):
    """Every allowed recoding: a list of (groups, losses)."""
    n = leaves_of(column)
    s = column.structure
    out = []
    if isinstance(s, Ordered):
        for cuts in itertools.product((0, 1), repeat=n - 1):
            edges = [0, *[i + 1 for i, c in enumerate(cuts) if c], n]
            out.append(([frozenset(range(a, b)) for a, b in itertools.pairwise(edges)], None))
    elif isinstance(s, Flat):
        for kept in itertools.product((0, 1), repeat=n):
            other = frozenset(i for i in range(n) if not kept[i])
            if len(other) != 1:
                out.append(([frozenset([i]) for i in range(n) if kept[i]] + ([other] if other else []), None))
    elif isinstance(s, Levels):
        for level, mapping in enumerate(s.maps):
            groups = [frozenset(np.flatnonzero(mapping == g).tolist()) for g in np.unique(mapping)]
            out.append((groups, level))
    else:
        parents = s.parents

        def cuts(node):
            found = [[under(parents, node, n)]]
            children = [c for c in range(len(parents)) if parents[c] == node]
            if children:
                for parts in itertools.product(*[cuts(c) for c in children]):
                    found.append([g for part in parts for g in part])
            return found

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


def brute_measure(counts, columns, per_leaf, k):
    """Suppressed rows and loss with dictionaries only; per_leaf gives (group, loss) for each leaf."""
    sizes = Counter()
    keys = []
    for row in range(len(counts)):
        key = tuple(per_leaf[c][int(column.codes[row])][0] for c, column in enumerate(columns))
        keys.append(key)
        sizes[key] += int(counts[row])
    suppressed, total = 0, 0.0
    for row, key in enumerate(keys):
        small = sizes[key] < k
        suppressed += int(counts[row]) * small
        for c, column in enumerate(columns):
            loss = 1.0 if small else per_leaf[c][int(column.codes[row])][1]
            total += column.weight * loss * int(counts[row])
    return suppressed, total / (sum(c.weight for c in columns) * int(counts.sum()))


def check(counts, columns, k, limit) -> Recoding:
    result = recode(counts, columns, k, limit)
    per_leaf = []
    for column, part in zip(columns, result.columns, strict=True):
        n = leaves_of(column) + column.has_null
        assert len(part.group_of_leaf) == n
        assert (part.level is not None) == isinstance(column.structure, Levels)
        groups = {}
        for leaf, g in enumerate(part.group_of_leaf.tolist()):
            groups.setdefault(g, set()).add(leaf)
        losses = {}
        for g, members in groups.items():
            loss = group_loss(column, members, part.level)
            assert loss is not None
            assert loss == pytest.approx(part.losses[g])
            losses[g] = loss
        assert frozenset(map(frozenset, groups.values())) in allowed(column)
        if isinstance(column.structure, Tree):
            for g, members in groups.items():
                real = members - {n - 1} if column.has_null else members
                node = int(part.nodes[g])
                assert (under(column.structure.parents, node, leaves_of(column)) if node >= 0 else set()) == real
        per_leaf.append([(g, losses[g]) for g in part.group_of_leaf.tolist()])
    suppressed, gcp = brute_measure(counts, columns, per_leaf, k)
    assert suppressed == result.suppressed <= limit
    assert gcp == pytest.approx(result.gcp)
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
    return Tree(np.array(parents))


def random_levels(rng, n):
    maps = [np.arange(n)]
    while maps[-1].max() > 0:
        groups = int(maps[-1].max()) + 1
        merged = np.sort(rng.integers(0, max(groups // 2, 1), groups))
        maps.append(np.unique(merged, return_inverse=True)[1][maps[-1]])
    losses = [np.array([((m == g).sum() - 1) / max(n - 1, 1) for g in range(m.max() + 1)]) for m in maps]
    return Levels(tuple(maps), tuple(losses))


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
            lambda n: Ordered(np.cumsum(rng.integers(1, 9, n)).astype(float)),
            lambda n: random_tree(rng, n),
            lambda n: Flat(n),
            lambda n: random_levels(rng, n),
        ][kind](n)
        columns.append(Column(codes.astype(np.int64), structure, float(rng.integers(1, 3)), has_null))
    k = int(rng.integers(1, 8))
    limit = int(rng.integers(0, max(int(counts.sum()) // 5, 1)))
    return counts, columns, k, limit


def optimum(counts, columns, k, limit):
    """The best over all recodings, by exhaustive search."""
    rows = int(counts.sum())
    weights = [c.weight for c in columns]
    choices = []
    for column in columns:
        n = leaves_of(column) + column.has_null
        of = []
        for recoding in all_recodings(column):
            group, loss = np.zeros(n, int), np.zeros(n)
            for g, (members, value) in enumerate(recoding.items()):
                group[list(members)], loss[list(members)] = g, value
            of.append((group[column.codes], loss[column.codes]))
        choices.append(of)
    best = np.inf
    for combination in itertools.product(*choices):
        key = np.zeros(len(counts), int)
        for group, _ in combination:
            key = key * 16 + group
        _, which = np.unique(key, return_inverse=True)
        small = np.bincount(which, counts)[which] < k
        if counts[small].sum() <= limit:
            loss = sum(w * np.where(small, 1, part) for w, (_, part) in zip(weights, combination, strict=True))
            best = min(best, float(loss @ counts) / (sum(weights) * rows))
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
    assert np.mean(gaps) < 0.002


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
        columns.append(Column(codes, Tree(np.array(parents))))
        losses = tuple((np.bincount(m) - 1) / max(n - 1, 1) for m in maps)
        levels.append(Column(codes, Levels(tuple(maps), losses)))
    return np.ones(rows, dtype=np.int64), columns, levels


@pytest.mark.parametrize("seed", seeds(2, 30))
@pytest.mark.parametrize("share", [0, 0.05])
def test_not_worse_than_the_best_full_domain_recoding(seed, share):
    counts, columns, levels = adult_like(np.random.default_rng(seed), 400)
    limit = int(share * 400)
    best = optimum(counts, levels, 5, limit)
    assert recode(counts, columns, 5, limit).gcp <= best + 1e-9
    assert recode(counts, levels, 5, limit).gcp == pytest.approx(best, rel=0.02)


def test_order_of_combinations_and_columns_does_not_matter():
    counts, columns, _ = adult_like(np.random.default_rng(3), 500)
    result = recode(counts, columns, 5, 10)
    shuffled = np.random.default_rng(4).permutation(500)
    moved = [Column(c.codes[shuffled], c.structure) for c in columns]
    again = recode(counts[shuffled], moved[::-1], 5, 10)
    for one, other in zip(result.columns, again.columns[::-1], strict=True):
        assert (one.group_of_leaf == other.group_of_leaf).all()
    assert again.gcp == pytest.approx(result.gcp)


def test_null_is_a_group_of_its_own_or_joins_the_root():
    counts = np.array([10, 10, 2])
    column = Column(np.array([0, 1, 2]), Ordered(np.array([1.0, 2.0])), has_null=True)
    apart = check(counts, [column], 5, 2)
    assert (apart.suppressed, apart.gcp) == (2, pytest.approx(2 / 22))
    assert len(set(apart.columns[0].group_of_leaf.tolist())) == 3
    joined = check(counts, [column], 5, 0)
    assert (joined.suppressed, joined.gcp) == (0, 1.0)
    assert set(joined.columns[0].group_of_leaf.tolist()) == {0}


@pytest.mark.parametrize(
    "structure",
    [
        Ordered(np.array([5.0])),
        Tree(np.array([1, -1])),
        Tree(np.array([-1])),
        Flat(1),
        Levels((np.array([0]),), (np.array([0.0]),)),
    ],
)
def test_all_rows_equal(structure):
    result = check(np.array([7]), [Column(np.array([0]), structure)], 7, 0)
    assert (result.suppressed, result.gcp) == (0, 0.0)


def test_k_is_the_number_of_rows():
    rng = np.random.default_rng(0)
    counts, columns, _, _ = random_case(rng, combos=20)
    assert check(counts, columns, int(counts.sum()), 0).suppressed == 0


def test_too_few_rows():
    with pytest.raises(ValueError, match="k must be at most the number of rows"):
        recode(np.array([3]), [Column(np.array([0]), Flat(1))], 4, 3)


def test_wrong_input():
    with pytest.raises(ValueError, match="parallel"):
        recode(np.array([3, 3]), [Column(np.array([0]), Flat(1))], 2, 0)
    with pytest.raises(ValueError, match="one root"):
        recode(np.array([3]), [Column(np.array([0]), Tree(np.array([-1, -1])))], 2, 0)
    levels = Levels((np.array([0, 1]),), (np.zeros(2),))
    with pytest.raises(ValueError, match="one group"):
        recode(np.array([3, 3]), [Column(np.array([0, 1]), levels)], 2, 0)


@pytest.mark.parametrize("has_null", [False, True])
def test_stages_of_a_large_table_end_feasible(has_null, monkeypatch):
    monkeypatch.setattr("duckanon.generalize.recoding.recode._FIRST_COMBOS", 50)
    rng = np.random.default_rng(1)
    rows = 3000
    tree = random_tree(rng, 40)
    kinds = [(Ordered(np.sort(rng.normal(size=900))), 900), (Flat(60), 60), (tree, 40), (random_levels(rng, 30), 30)]
    columns = []
    for structure, n in kinds:
        codes = np.minimum(np.append(np.arange(n + has_null), rng.geometric(8 / n, rows - n - has_null) - 1), n - 1)
        if has_null:
            codes[-20:] = n
        columns.append(Column(codes, structure, 1.0, has_null))
    counts = np.ones(rows, dtype=np.int64)
    result = recode(counts, columns, 5, 60)
    assert result.suppressed <= 60
    assert result.gcp < 0.75
