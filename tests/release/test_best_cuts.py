"""The best cuts of nodes against every cut tried by itself, and the order of choices against means of plain Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from duckanon._methods.recode.column_losses import NumberColumn, SetColumn, compute_losses
from duckanon._methods.recode.cuts import CutNodes, CutRules, CutTable, find_cuts
from duckanon._methods.synthesize.leaf_draws import Predictors, find_first_component


def random_table(random: np.random.Generator, rows: int, *, has_people: bool, has_sensitive: bool) -> CutTable:
    bounds = np.sort(random.uniform(0, 10, 7))
    columns = [NumberColumn(bounds[:-1], bounds[1:], has_null=True), SetColumn(5, pooled=2), SetColumn(3)]
    return CutTable(
        columns,
        [random.integers(0, column.size, rows) for column in columns],
        random.integers(1, 4, rows) if not has_people else np.ones(rows, np.int64),
        random.integers(0, rows // 2, rows) if has_people else None,
        random.integers(0, 3, rows) if has_sensitive else None,
    )


def nodes_of(table: CutTable, node_of_row: np.ndarray) -> CutNodes:
    orders = [np.lexsort((codes, node_of_row)) for codes in table.codes]
    starts = np.concatenate([[0], np.cumsum(np.bincount(node_of_row))])
    return CutNodes(orders, starts, starts[:-1])


def size_of(table: CutTable, rows: np.ndarray) -> int:
    return int(table.weights[rows].sum()) if table.people is None else len(set(table.people[rows].tolist()))


def loss_of(table: CutTable, rows: np.ndarray) -> float:
    return float(compute_losses(table.columns, [codes[rows] for codes in table.codes], np.zeros(1, np.int64))[0])


def tried_cuts(table: CutTable, rows: np.ndarray, rules: CutRules) -> dict[tuple[int, int], float]:
    """What every allowed cut of a node saves: the weighted loss of the whole less that of both sides."""
    weight, saved = table.weights, {}
    for index, codes in enumerate(table.codes):
        for code in np.unique(codes[rows])[:-1]:
            sides = rows[codes[rows] <= code], rows[codes[rows] > code]
            if min(size_of(table, side) for side in sides) < rules.k:
                continue
            if rules.holds is not None:
                held = [np.bincount(table.sensitive[side], weight[side], 3)[None] for side in sides]
                if not all(rules.holds(counts)[0] for counts in held):
                    continue
            left, right = (float(weight[side].sum()) for side in sides)
            gain = (left + right) * loss_of(table, rows) - sum(
                float(weight[side].sum()) * loss_of(table, side) for side in sides
            )
            balance = (4 * left * right / (left + right) ** 2) ** rules.balance
            saved[index, int(code)] = max(gain, 0.0) * balance + 1e-7 * min(left, right)
    return saved


@pytest.mark.parametrize(
    ("has_people", "has_sensitive", "balance"), [*itertools.product([False, True], [False, True], [0.0, 0.5])]
)
def test_best_cuts_by_trying_all(has_people: bool, has_sensitive: bool, balance: float) -> None:
    random = np.random.default_rng(17)
    cut = 0
    for _ in range(12):
        table = random_table(random, 40, has_people=has_people, has_sensitive=has_sensitive)
        node_of_row = np.sort(random.integers(0, 3, 40))
        rules = CutRules(4, (lambda counts: counts.min(axis=1) > 0) if has_sensitive else None, balance)
        result = find_cuts(table, nodes_of(table, node_of_row), rules)
        for node in range(3):
            tried = tried_cuts(table, np.flatnonzero(node_of_row == node), rules)
            if not tried:
                assert result.saved[node] == -1
                continue
            cut += 1
            assert result.saved[node] == pytest.approx(max(tried.values()), rel=1e-5, abs=1e-5)
            chosen = tried[int(result.column[node]), int(result.code[node])]
            assert chosen == pytest.approx(max(tried.values()), rel=1e-5, abs=1e-5)
    assert cut > 5


def test_choices_are_ordered_by_their_mean_response() -> None:
    """A rare choice is drawn to the mean of all: its sum gets one response of that size more."""
    random = np.random.default_rng(3)
    codes, response = random.integers(0, 6, 60), random.normal(3, 1, 60)
    codes[codes == 4], codes[0] = 5, 4  # one row of its own
    predictors = Predictors()
    predictors.add_choice(codes, codes[:5], 6)
    predictors.add_choice(codes % 2, codes[:5] % 2, 2)
    rows = np.arange(10, 60)  # where choice 4 has none
    ordered, both = predictors.orders(response[rows], rows)
    means = []
    for code in range(6):
        values = [float(response[row]) for row in rows if codes[row] == code]
        means.append((sum(values) + float(np.mean(response[rows]))) / (len(values) + 1))
    assert ordered.tolist() == [sorted(means).index(mean) for mean in means]
    assert both.tolist() == [0, 1]


def test_a_sample_has_every_nth_row_of_each_node() -> None:
    """Every third of eleven rows, every second of five, two of two: the same rows in the order of each column."""
    random = np.random.default_rng(5)
    table = random_table(random, 18, has_people=False, has_sensitive=False)
    node_of_row = random.permutation(np.repeat([0, 1, 2], [2, 5, 11]))
    nodes = nodes_of(table, node_of_row)
    sampled = nodes.sample(4)
    rows = [
        nodes.orders[0][start:end][::step]
        for start, end, step in zip(nodes.starts[:-1], nodes.starts[1:], [1, 2, 3], strict=True)
    ]
    assert sampled.starts.tolist() == np.concatenate([[0], np.cumsum([len(item) for item in rows])]).tolist()
    for order, codes in zip(sampled.orders, table.codes, strict=True):
        for node, expected in enumerate(rows):
            result = order[sampled.starts[node] : sampled.starts[node + 1]]
            assert sorted(result.tolist()) == sorted(expected.tolist())
            assert codes[result].tolist() == sorted(codes[expected].tolist())
    assert nodes.sample(11) is nodes


def test_the_first_component_of_choices_is_that_of_their_indicators() -> None:
    counts = np.array([5, 13, 2, 30])
    indicators = np.repeat(np.eye(4), counts, axis=0)
    (component, *_) = np.linalg.svd(indicators - indicators.mean(axis=0))[2]
    assert abs(component @ find_first_component(counts)) == pytest.approx(1)
