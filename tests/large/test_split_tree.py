"""The routing tree: its SQL and its numpy agree, and joined parts have k people."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.large.split_tree import case, fit_tree, merge_parts, part_count, parts_of, route_rows


@pytest.mark.thorough
@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 40))
def test_sql_and_numpy_send_rows_to_the_same_parts(seed: int, rows: int, part_rows: int) -> None:
    draw = np.random.default_rng(seed)
    columns = {"a": draw.normal(size=rows), "b c": draw.integers(0, 4, rows).astype(float)}
    tree = fit_tree(columns, [1.0, 0.5], rows, 2, part_rows)
    holes = {"a": np.where(draw.random(rows) < 0.1, np.nan, columns["a"]), "b c": columns["b c"]}
    expressions = {"a": "CASE WHEN NOT isnan(a) THEN a END", "b c": '"b c"'}
    table = {"a": holes["a"], "b c": holes["b c"], "place": np.arange(rows)}
    con = duckdb.connect()
    con.register("t", table)
    by_case = con.execute(f"SELECT {case(tree, expressions)} FROM t ORDER BY place").fetchall()
    parts = route_rows(tree, holes)
    assert [part for (part,) in by_case] == parts.tolist()


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_joined_parts_have_enough(seed: int, k: int) -> None:
    draw = np.random.default_rng(seed)
    columns = {"a": draw.normal(size=200), "b": draw.normal(size=200)}
    tree = fit_tree(columns, [1.0, 1.0], 200, 2, int(draw.integers(5, 60)))
    counts = {part: int(draw.integers(0, 2 * k)) for part in parts_of(tree)}
    if max(counts.values()) < k:
        with pytest.raises(ValueError, match="k must be at most"):
            merge_parts(tree, counts, k)
        return
    homes = merge_parts(tree, counts, k)
    assert sorted(homes) == list(range(part_count(tree)))
    for home in set(homes.values()):
        assert max(counts[part] for part, of in homes.items() if of == home) >= k
    assert all(homes[part] == part for part in counts if counts[part] >= k)


def test_every_part_has_about_as_many_rows_as_are_allowed() -> None:
    draw = np.random.default_rng(1)
    whole = {"a": draw.normal(size=100_000), "b": draw.exponential(size=100_000)}
    sample = {name: values[:5_000] for name, values in whole.items()}
    tree = fit_tree(sample, [1.0, 1.0], 100_000, 10, 12_000)
    sizes = np.bincount(route_rows(tree, whole))
    assert sizes.max() < 13_500
    assert len(sizes) < 20
