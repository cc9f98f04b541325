"""Hierarchies of values, as a caller's table gives them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from duckanon._core.common.made_labels import EVERYTHING


class HierarchyTable:
    """A hierarchy: for each leaf its label on every level, the leaf itself first.

    It is made of rows of leaf, level from 1, and label; the column's name is for the error where they are no tree.
    """

    def __init__(self, name: str, rows: Iterable[tuple[str, int, str]]) -> None:
        paths: dict[str, dict[int, str]] = {}
        several = {leaf for leaf, level, label in rows if paths.setdefault(leaf, {}).setdefault(level, label) != label}
        if several:
            must = f'the hierarchy of column "{name}" must give each value one label of each level'
            raise ValueError(f"{must}; got {len(several)} with several.")
        levels = max((max(path) for path in paths.values()), default=0)
        tops = {path.get(levels) for path in paths.values()}
        self.root = next(iter(tops)) or EVERYTHING if len(tops) == 1 else EVERYTHING
        self.height = levels + (len(tops) != 1) + (levels == 0)
        self._paths = {leaf: self._filled(leaf, path) for leaf, path in paths.items()}
        self._refuse_two_parents(name)

    def _filled(self, leaf: str, path: dict[int, str]) -> tuple[str, ...]:
        """Fill levels that a leaf does not have with the label below."""
        labels = [leaf]
        for level in range(1, self.height):
            labels.append(path.get(level) or labels[-1])
        return tuple(labels)

    def _refuse_two_parents(self, name: str) -> None:
        parents: dict[tuple[int, str], str] = {}
        for path in self._paths.values():
            for level in range(1, len(path) - 1):
                parent = parents.setdefault((level, path[level]), path[level + 1])
                if parent != path[level + 1]:
                    raise ValueError(
                        f'the hierarchy of column "{name}" is not a tree: a label on level {level} lies in two '
                        f"labels on level {level + 1}; give it another name in one of them."
                    )

    @property
    def leaves(self) -> Iterable[str]:
        """The values that the hierarchy knows."""
        return self._paths

    def path(self, text: str) -> tuple[str, ...]:
        """Return the labels of a value below the root, itself first; a value that is not known is alone."""
        return self._paths.get(text) or (text,) * self.height


class HierarchyRow(TypedDict):
    """A label of a value: the column in lower case, the value, how coarse the label is, from 1 on."""

    column_name: str
    leaf: str | None
    level: int
    label: str


def hierarchy_tables(rows: Iterable[HierarchyRow]) -> dict[str, HierarchyTable]:
    """Return the hierarchy of each column that has one; a row whose leaf is NULL is left out."""
    rows_of_column: dict[str, list[tuple[str, int, str]]] = {}
    for row in rows:
        if row["leaf"] is not None:
            rows_of_column.setdefault(row["column_name"], []).append((row["leaf"], row["level"], row["label"]))
    return {name: HierarchyTable(name, column_rows) for name, column_rows in rows_of_column.items()}
