"""Dimensions of a table: the values of a column, the groups of its hierarchies, and which groups add up to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Ints
from duckanon._core.common.made_labels import TOTAL

Label = str | None
Tree = Mapping[Label, Sequence[Label]]
"""A hierarchy: ever coarser labels for each value of a column."""


@dataclass(frozen=True)
class Dimension:
    """A column of a table: values first, then groups of them, then their total."""

    name: str
    labels: tuple[Label, ...]
    values: int  # how many of the labels are values of the column
    relations: tuple[tuple[int, tuple[int, ...]], ...]  # a group and the parts that it is the sum of
    ancestors: tuple[Ints, ...]  # for each value, itself and all groups that contain it

    @property
    def total(self) -> int:
        """The place of the total, which is the last label."""
        return len(self.labels) - 1

    def layers(self) -> list[Ints]:
        """Return maps from parts to groups, in which a part has one group, -1 where it has none; all relations once."""
        found: list[Ints] = []
        for group, parts in self.relations:
            children = np.array(parts)
            layer = next((one for one in found if (one[children] < 0).all() and group not in one), None)
            if layer is None:
                layer = np.full(len(self.labels), -1, dtype=np.int64)
                found.append(layer)
            layer[children] = group
        return found


def dimension(name: str, values: Sequence[Label], trees: Sequence[Tree] = (), total: str = TOTAL) -> Dimension:
    """Build the dimension of a column from its values and hierarchies.

    A label stands for the same values in every hierarchy, and a group of all values is the total.
    """
    places: dict[Label, int] = {value: place for place, value in enumerate(values)}
    members: dict[int, frozenset[int]] = {place: frozenset((place,)) for place in places.values()}
    everything, whole = frozenset(range(len(values))), -1
    relations: dict[tuple[int, tuple[int, ...]], None] = {}
    for tree in trees:
        absent = sum(value not in tree for value in values)
        if absent:
            raise ValueError(f'hierarchies must have a row for each value of "{name}"; {absent} values have none.')
        below = list(range(len(values)))
        for level in range(max((len(tree[value]) for value in values), default=0)):
            groups: dict[Label, set[int]] = {}
            for place, value in enumerate(values):
                groups.setdefault(tree[value][level], set()).add(place)
            above = below.copy()
            for label, contained in groups.items():
                held = frozenset(contained)
                group = whole if held == everything else places.setdefault(label, len(places))
                if members.setdefault(group, held) != held:
                    raise ValueError(f'hierarchies of "{name}" must use a label for one set of values only.')
                parts = {below[place] for place in held} - {group}
                if frozenset().union(*(members[part] for part in parts), *([held] if not parts else [])) != held:
                    raise ValueError(f'hierarchies of "{name}" must have levels that are ever coarser.')
                if parts:
                    relations[group, tuple(sorted(parts))] = None
                for place in held:
                    above[place] = group
            below = above
        if set(below) != {whole}:
            relations[whole, tuple(sorted(set(below)))] = None
    if total in places:
        raise ValueError(
            f"hierarchies of \"{name}\" must not call a value or some of them '{total}', as its margin is."
        )
    if not trees:
        relations[whole, tuple(range(len(values)))] = None
    last = len(places)
    above_each: list[set[int]] = [{place, last} for place in range(len(values))]
    for group, held in members.items():
        for place in held:
            above_each[place].add(last if group == whole else group)
    return Dimension(
        name=name,
        labels=(*places, total),
        values=len(values),
        relations=tuple((last if group == whole else group, parts) for group, parts in relations),
        ancestors=tuple(np.array(sorted(found)) for found in above_each),
    )
