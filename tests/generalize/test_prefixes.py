"""Prefixes of codes: the tree that a plan of them is searched in."""

from __future__ import annotations

import time

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._methods.generalize.hierarchies import build_prefix_tree
from duckanon._methods.generalize.leaves import Holders, read_text_leaves
from duckanon._methods.generalize.methods import Prefixes
from duckanon._methods.generalize.plans import _climb
from duckanon._methods.generalize.recoding.axes import walk_tree

TEXTS = st.sets(st.text("ab\0ü", max_size=6) | st.text("a", max_size=80), min_size=1, max_size=12).map(sorted)


@given(TEXTS)
def test_nodes_are_the_prefixes_after_which_texts_differ(texts: list[str]) -> None:
    length = max(map(len, texts))
    below = {
        frozenset(place for place, text in enumerate(texts) if text.startswith(prefix))
        for prefix in {text[:end] for text in texts for end in range(len(text) + 1)}
    }
    expected = {leaves for leaves in below if len(leaves) > 1} | {frozenset({place}) for place in range(len(texts))}
    tree, node_leaf, node_level = build_prefix_tree(texts)
    steps = walk_tree(tree.parents)
    result = [frozenset(steps.leaves[first:end].tolist()) for first, end in zip(steps.first, steps.end, strict=True)]
    assert set(result) == expected
    assert len(result) == len(expected)
    for node, leaves in zip(steps.nodes.tolist(), result, strict=True):
        assert node_leaf[node] in leaves
        if len(leaves) > 1:  # as many characters as all texts below share
            prefix = texts[node_leaf[node]][: length - node_level[node]]
            assert leaves == {place for place, text in enumerate(texts) if text.startswith(prefix)}
            assert len({texts[place][len(prefix) : len(prefix) + 1] for place in leaves}) > 1
    assert tree.parents[-1] == -1
    assert node_level[-1] == length


@given(TEXTS, st.integers(1, 12))
def test_climbing_cuts_all_texts_at_one_length(texts: list[str], most: int) -> None:
    tree, _, _ = build_prefix_tree(texts)
    nodes = _climb(tree, len(texts), most)
    lengths = range(max(map(len, texts)), -1, -1)
    finest = next(count for end in lengths if (count := len({text[:end] for text in texts})) <= most)
    assert len(nodes) == finest


def codes(size: int) -> pa.ChunkedArray:
    digits = np.random.default_rng(1).integers(0, 16, (size, 32))
    return pa.chunked_array([pa.array(["".join(f"{digit:x}" for digit in code) for code in digits.tolist()])])


@pytest.mark.thorough
def test_long_codes_take_no_node_for_every_length() -> None:
    """All prefixes of 20,000 codes of 32 characters would be 600,000 nodes."""
    column = codes(20_000)
    leaves = read_text_leaves("code", column, Holders(np.ones(len(column), np.int64)))
    assert len(Prefixes(leaves, 5).structure.parents) < 2 * len(column)


@pytest.mark.thorough
def test_a_plan_of_200_000_long_codes_takes_seconds(con: duckdb.DuckDBPyConnection) -> None:
    """It took 56 s and 1.6 GB, and takes 4 s. The processor's time counts, since the machine may have other work."""
    con.execute("CREATE TABLE codes AS SELECT md5(CAST(i AS VARCHAR)) AS code FROM range(200_000) AS t(i)").fetchall()
    start = time.process_time()
    rows = con.execute("SELECT sum(rows) FROM anon.plan('codes', ['code'], 100, methods := MAP {'code': 'prefix'})")
    assert rows.fetchall() == [(200_000,)]
    assert time.process_time() - start < 8
