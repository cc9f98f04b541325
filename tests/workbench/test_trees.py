"""Hierarchies changed by hand: whatever is done to one, it stays a tree of the same values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.workbench.trees import MOST_LEVELS, Tree, Unfit
from tests.profiles import cheap

PEOPLE = (5, 1, 20, 7, 3, 11)
VALUES = ("a", "b", "c", "d", "e", "f")


def plain() -> Tree:
    return Tree.of_labels(VALUES, PEOPLE, [VALUES])


def check(tree: Tree) -> None:
    """Compare a tree with the labels of its values, counted plainly."""
    rows = list(tree.labels())
    assert [row[0] for row in rows] == list(VALUES)
    for number, level in enumerate(tree.levels):
        held: dict[str, int] = {}
        parents: dict[str, set[str]] = {}
        for row, people in zip(rows, PEOPLE, strict=True):
            held[row[number + 1]] = held.get(row[number + 1], 0) + people
            parents.setdefault(row[number + 1], set()).add(row[number + 2])
        assert dict(zip(level.names, tree.sizes(number), strict=True)) == held  # names differ, and no group is empty
        assert all(len(above) == 1 for above in parents.values())
    labels = [[row[number + 1] for row in rows] for number, _ in enumerate(tree.levels)]
    assert list(Tree.of_labels(VALUES, PEOPLE, labels).labels()) == rows


number = st.integers(0, 5)


@cheap
@given(
    st.lists(st.tuples(st.sampled_from(["move", "new", "rename", "merge", "split", "add", "remove"]), number, number))
)
def test_a_tree_stays_a_tree(changes: list[tuple[str, int, int]]) -> None:
    tree = plain()
    for place, (do, first, second) in enumerate(changes):
        level = second % len(tree.levels)
        groups, members = len(tree.levels[level].names), len(tree.levels[level].group_of)
        before = tree
        try:
            match do:
                case "move":
                    tree = tree.move(level, [first % members], second % groups)
                    assert groups - 1 <= len(tree.levels[level].names) <= groups
                case "new":
                    tree = tree.move(level, sorted({first % members, second % members}), None, f"new {place}")
                    assert f"new {place}" in tree.levels[level].names
                case "rename":
                    tree = tree.rename(level, first % groups, f"named {place}")
                case "merge":
                    tree = tree.merge(level, first % groups, second % groups)
                    assert len(tree.levels[level].names) == groups - 1
                case "split":
                    own = len(tree.members(level)[first % groups])
                    tree = tree.split(level, first % groups)
                    assert len(tree.levels[level].names) == groups - 1 + own
                case "add":
                    tree = tree.with_level()
                case "remove":
                    tree = tree.without_level(level)
        except Unfit:
            assert tree is before
        check(tree)


def test_what_is_no_tree_is_refused_in_a_sentence() -> None:
    tree = plain().move(0, [0, 1], None, "x")
    for do, words in (
        (lambda: tree.move(0, [], 0), "choose what to move"),
        (lambda: tree.move(0, [2], None, " "), "needs a name"),
        (lambda: tree.move(0, [2], None, "*"), "needs a name"),
        (lambda: tree.rename(0, 0, "x"), "has that name"),
        (lambda: tree.merge(0, 1, 1), "another group"),
        (lambda: tree.without_level(0), "at least one level"),
        (lambda: tree.split(0, 0), "one member"),
        (lambda: Tree.of_labels("ab", [1, 1], ["xx", "yz"]), "different groups"),
    ):
        with pytest.raises(Unfit, match=re.escape(words)):
            do()
    for _ in range(MOST_LEVELS - 1):
        tree = tree.with_level()
    with pytest.raises(Unfit, match="at most"):
        tree.with_level()


def test_a_new_group_stays_below_the_group_that_it_came_from() -> None:
    tree = Tree.of_labels(VALUES, PEOPLE, [("x", "x", "x", "y", "y", "y"), ("one", "one", "one", "two", "two", "two")])
    labels = list(tree.move(0, [1, 4], None, "z").labels())
    assert labels[1] == ("b", "z", "one", "*")
    assert labels[4] == ("e", "z", "one", "*")
    assert labels[5] == ("f", "y", "two", "*")
    assert list(tree.without_level(0).labels())[3] == ("d", "two", "*")
    assert [level.names for level in tree.merge(0, 0, 1).levels] == [("y",), ("two",)]
