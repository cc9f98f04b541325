"""The audit against attackers who know nothing of the code, on tables that nobody protected: every kind of fault."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from duckanon._methods.tables import hidden_cell_audits as exact_module
from duckanon._methods.tables.audit_table import audit_table
from duckanon._methods.tables.cells import TableCells
from duckanon._methods.tables.hidden_cell_audits import run_exact_audit
from duckanon._methods.tables.relations import find_relations
from tests.release.tabulated import (
    count_table,
    derivable_by_fractions,
    derivable_by_rank,
    interval_by_program,
    names_of,
    relation_matrix,
)

Rows = dict[tuple[str, str], list[int]]
"""Contributions to each inner cell; all are of different people."""


def drawn(random: np.random.Generator) -> Rows:
    """Draw the contributions to a table of two columns."""
    cells = itertools.product("abc"[: random.integers(2, 4)], "xyz"[: random.integers(2, 4)])
    sizes = random.choice([0, 1, 1, 2, 3, 5, 9], 9)
    return {cell: random.integers(1, 40, size).tolist() for cell, size in zip(cells, sizes, strict=False) if size}


def contributions(rows: Rows, cell: tuple[str | None, ...]) -> list[int]:
    """Return what is contributed to a cell, largest first."""
    own = [rows[item] for item in rows if all(label in (part, "Total") for part, label in zip(item, cell, strict=True))]
    return sorted(itertools.chain(*own), reverse=True)


def protection(values: list[int], k: int, p: float | None) -> tuple[float, float] | None:
    """Return by how much a cell must stay uncertain below and above; None where it breaks no rule.

    Without `p` it is a count, of which anything from 1 to k - 1 has to stay possible.
    """
    if p is None:
        return (len(values) - 1.0, k - 1.0 - len(values)) if len(values) < k else None
    short = p / 100 * values[0] - sum(values[2:])
    if len(values) >= k and short <= 0:
        return None
    need = short if short > 0 else p / 100 * values[0]
    return min(need, sum(values)), need


def attacked(rows: Rows, cells: TableCells, value: np.ndarray, hidden: np.ndarray, k: int, p: float | None) -> Iterator:
    """Yield each cell with the worst that attackers can do: ranks, subtractions and a program per end."""
    matrix, names = relation_matrix(cells), names_of(cells, np.arange(len(cells)))
    values = [contributions(rows, name) for name in names]
    people = np.array(list(map(len, values)))
    follows = derivable_by_rank(matrix, hidden)
    unions = {
        int(cell)
        for relation in matrix
        if not hidden[relation < 0].any() and people[(relation > 0) & hidden].sum() < k
        for cell in np.flatnonzero((relation > 0) & hidden)
    }
    alone = {name: rows_of for name, rows_of in zip(names, values, strict=True) if len(rows_of) == 1}
    for cell, name in enumerate(names):
        need = protection(values[cell], k, p)
        fault = None
        if not hidden[cell]:
            fault = "small" if need else None
        elif need and follows[cell]:
            fault = "derivable"
        elif cell in unions:
            fault = "subtraction"
        elif need and p is not None and _known_to_another(rows, cells, matrix, hidden, cell, alone):
            fault = "contributor"
        elif need:
            low, high = interval_by_program(matrix, value, hidden, cell)
            is_narrow = low > value[cell] - need[0] + 1e-6 or high < value[cell] + need[1] - 1e-6
            fault = "narrow" if is_narrow else None
        yield name, fault


def _known_to_another(
    rows: Rows, cells: TableCells, matrix: np.ndarray, hidden: np.ndarray, cell: int, alone: dict[tuple, list[int]]
) -> bool:
    """Tell whether somebody who is alone in another hidden cell, and not in this one alone, can compute this one."""
    names = names_of(cells, np.arange(len(cells)))
    persons = {name: next(item for item in rows if _is_in(item, name)) for name in alone}
    for other, name in enumerate(names):
        if other == cell or name not in alone or not hidden[other] or persons.get(names[cell]) == persons[name]:
            continue
        knows = hidden.copy()
        knows[other] = False
        if derivable_by_rank(matrix, knows)[cell]:
            return True
    return False


def _is_in(inner: tuple[str, str], name: tuple[str | None, ...]) -> bool:
    return all(label in (part, "Total") for part, label in zip(inner, name, strict=True))


def audited(rows: Rows, cells: TableCells, value: np.ndarray, hidden: np.ndarray, k: int, p: float | None) -> dict:
    """Return the fault of each cell that the audit returns."""
    names, inner = names_of(cells, np.arange(len(cells))), list(rows)
    counted = np.array([len(contributions(rows, name)) for name in names], dtype=float)
    columns = {column: pa.array([name[place] for name in names]) for place, column in enumerate(("one", "two"))}
    numbers = {
        "value": pa.array(value, mask=hidden),
        "people": pa.array(counted if p is not None else value, mask=hidden),
    }
    tops = [[*sorted(rows[item], reverse=True), 0, 0] for item in inner]
    original = {
        "one": pa.array([item for item, _ in inner]),
        "two": pa.array([two for _, two in inner]),
        "_duckanon_entries": pa.array([len(rows[item]) for item in inner]),
        "_duckanon_value": pa.array([float(sum(rows[item])) for item in inner]),
        "_duckanon_absolute": pa.array([float(sum(rows[item])) for item in inner]),
        "_duckanon_largest_1": pa.array([float(top[0]) for top in tops]),
        "_duckanon_largest_2": pa.array([float(top[1]) for top in tops]),
    }
    result = audit_table(
        pa.table(columns | numbers),
        pa.table(original),
        by=["one", "two"],
        k=k,
        p=p,
        has_people=p is not None,
        overlapping=False,
        hierarchies=None,
        linked=None,
        measure=None if p is None else "cost",
        person=None,
    )
    return {(row["one"], row["two"]): row["fault"] for row in result.to_pylist()}


@pytest.mark.thorough
def test_every_kind_of_fault_is_found_where_it_is_and_nowhere_else() -> None:
    """Sums and counts of which primary cells alone are hidden, fewer, or others at random."""
    random, kinds = np.random.default_rng(0), Counter()
    for round_ in range(36):
        rows = drawn(random)
        if not rows:
            continue
        k, p = int(random.integers(2, 6)), (None, 10.0)[round_ % 2]
        cells = count_table({cell: len(values) for cell, values in rows.items()}, ["one", "two"])
        names = names_of(cells, np.arange(len(cells)))
        values = [contributions(rows, name) for name in names]
        value = np.array([len(item) if p is None else sum(item) for item in values], dtype=float)
        hidden = np.array([protection(item, k, p) is not None for item in values])
        hidden ^= random.random(len(hidden)) < random.choice([0.0, 0.2, 0.4])
        if hidden.all():
            continue
        expected = dict(attacked(rows, cells, value, hidden, k, p))
        result = audited(rows, cells, value, hidden, k, p)
        assert {name: fault for name, fault in result.items() if fault} == {
            name: fault for name, fault in expected.items() if fault
        }
        assert all(name in result for name, is_hidden in zip(names, hidden, strict=True) if is_hidden)
        kinds.update(fault for fault in expected.values() if fault)
    assert min(kinds[kind] for kind in ("small", "derivable", "subtraction", "contributor", "narrow")) >= 2, kinds


@pytest.mark.thorough
def test_a_hundred_random_patterns_are_audited_as_elimination_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """By fractions, which round nothing; a part of the patterns by projection, as of large components."""
    random, derivable = np.random.default_rng(7), 0
    for pattern in range(100):
        monkeypatch.setattr(exact_module, "ELIMINATED", 0 if pattern % 2 else 1_500)
        sizes = random.integers(2, 5, random.integers(2, 4))
        counts = dict.fromkeys(itertools.product(*("abcd"[:size] for size in sizes)), 1)
        halves = {label: ["low" if label in "ab" else "high"] for label in "abcd"[: sizes[0]]}
        trees = {"one": [halves, {label: [f"odd {label in 'ac'}"] for label in halves}]} if pattern % 3 == 0 else None
        cells = count_table(counts, ["one", "two", "three"][: len(sizes)], trees)
        hidden = random.random(len(cells)) < random.choice([0.2, 0.35, 0.5])
        result = run_exact_audit(find_relations(cells).matrix, hidden).is_derivable
        assert (result == derivable_by_fractions(relation_matrix(cells), hidden)).all(), pattern
        derivable += int(result.sum())
    assert derivable > 300
