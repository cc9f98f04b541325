"""A hierarchy as a tree that is changed by hand: values in groups, groups in groups, on several levels.

Hierarchies of a column: begun with prefixes, ranges, dates or single values, read from files, saved as files.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import duckdb

from duckanon._bridge import sql
from duckanon.job.errors import FileProblem
from duckanon.workbench.bench import Bench

ANYTHING = "*"
"""The label of the last level of a file, in which all values are one."""

MOST_LEVELS = 8
_LONGEST = 100


class Unfit(Exception):  # noqa: N818 - it says what is wrong with a change
    """A change that would not leave a tree; its text says why, without a value of the data."""


@dataclass(frozen=True)
class Level:
    """Groups, and the group of each member: a value on the lowest level, else a group of the level below."""

    names: tuple[str, ...]
    group_of: tuple[int, ...]


@dataclass(frozen=True)
class Tree:
    """Values with the people who have them, and levels of groups, the finest first. It is never changed, but replaced.

    Levels are numbered from 0, members and groups by their places. Every group has a member.
    """

    values: tuple[str, ...]
    people: tuple[int, ...]
    levels: tuple[Level, ...] = ()
    typed: frozenset[str] = frozenset()  # names that a person wrote: those are no values of few people

    @classmethod
    def of_labels(cls, values: Sequence[str], people: Sequence[int], labels: Sequence[Sequence[str]]) -> Self:
        """Make a tree of the labels that each value has, level by level.

        Examples:
            >>> tree = Tree.of_labels(["a", "b", "c"], [5, 6, 7], [["x", "x", "y"], ["z", "z", "z"]])
            >>> tree.levels[1]
            Level(names=('z',), group_of=(0, 0))
        """
        levels, below = [], list(range(len(values)))
        for of_values in labels:
            names = {label: place for place, label in enumerate(dict.fromkeys(of_values))}
            parents: dict[int, int] = {}
            for member, label in zip(below, of_values, strict=True):
                if parents.setdefault(member, names[label]) != names[label]:
                    raise Unfit("two values of one group are in different groups of the level above.")
            levels.append(Level(tuple(names), tuple(parents[member] for member in range(len(parents)))))
            below = [names[label] for label in of_values]
        return cls(tuple(values), tuple(people), tuple(levels))

    def labels(self) -> Iterator[tuple[str, ...]]:
        """Yield each value with its label on every level, and the one that all values share."""
        for place, value in enumerate(self.values):
            labels, member = [value], place
            for level in self.levels:
                member = level.group_of[member]
                labels.append(level.names[member])
            yield (*labels, ANYTHING)

    def sizes(self, number: int) -> list[int]:
        """Return the people of each group of a level; -1 stands for the values."""
        sizes = list(self.people)
        for level in self.levels[: number + 1]:
            above = [0] * len(level.names)
            for member, group in enumerate(level.group_of):
                above[group] += sizes[member]
            sizes = above
        return sizes

    def members(self, number: int) -> list[list[int]]:
        """Return the members of each group of a level."""
        groups: list[list[int]] = [[] for _ in self.levels[number].names]
        for member, group in enumerate(self.levels[number].group_of):
            groups[group].append(member)
        return groups

    def move(self, number: int, members: Sequence[int], to: int | None, name: str = "") -> Tree:
        """Put members into another group, or into a new one with a name, which stays where the first one was."""
        level = self.levels[number]
        if not members:
            raise Unfit("choose what to move first.")
        groups, names, above = list(level.group_of), list(level.names), self.levels[number + 1 :]
        typed = self.typed
        if to is None:
            names.append(self._free_name(number, name))
            to, typed = len(names) - 1, typed | {names[-1]}
            if above:
                parent = above[0].group_of[groups[members[0]]]
                above = (replace(above[0], group_of=(*above[0].group_of, parent)), *above[1:])
        for member in members:
            groups[member] = to
        levels = (*self.levels[:number], Level(tuple(names), tuple(groups)), *above)
        return replace(self, levels=_without_empty(levels), typed=typed)

    def rename(self, number: int, group: int, name: str) -> Tree:
        """Give a group another name."""
        names = list(self.levels[number].names)
        if names[group] == name.strip():
            return self
        names[group] = self._free_name(number, name)
        changed = replace(self.levels[number], names=tuple(names))
        levels = (*self.levels[:number], changed, *self.levels[number + 1 :])
        return replace(self, levels=levels, typed=self.typed | {names[group]})

    def merge(self, number: int, group: int, into: int) -> Tree:
        """Put all members of a group into another one, whose name stays."""
        if group == into:
            raise Unfit("choose another group to merge with.")
        return self.move(number, self.members(number)[group], into)

    def split(self, number: int, group: int) -> Tree:
        """Make every member of a group a group of its own, named as the member is."""
        members = self.members(number)[group]
        below = self.values if number == 0 else self.levels[number - 1].names
        taken = set(self.levels[number].names) - {self.levels[number].names[group]}
        level, above = self.levels[number], self.levels[number + 1 :]
        if len(members) < 2:
            raise Unfit("the group has one member; it cannot be split.")
        if taken & {below[member] for member in members}:
            raise Unfit("another group has the name of a member; rename it first.")
        groups, names = list(level.group_of), list(level.names)
        for member in members:
            names.append(below[member])
            groups[member] = len(names) - 1
        names[group] = ANYTHING  # which is empty now
        if above:
            parents = (*above[0].group_of, *[above[0].group_of[group]] * len(members))
            above = (replace(above[0], group_of=parents), *above[1:])
        levels = (*self.levels[:number], Level(tuple(names), tuple(groups)), *above)
        return replace(self, levels=_without_empty(levels))

    def with_level(self) -> Tree:
        """Add a level above all others, in which every group is alone."""
        if len(self.levels) >= MOST_LEVELS:
            raise Unfit(f"a hierarchy has at most {MOST_LEVELS} levels here.")
        names = self.levels[-1].names if self.levels else self.values
        return replace(self, levels=(*self.levels, Level(names, tuple(range(len(names))))))

    def without_level(self, number: int) -> Tree:
        """Take a level away: its members belong to the groups above then."""
        if len(self.levels) < 2:
            raise Unfit("a hierarchy has at least one level.")
        gone, above = self.levels[number], self.levels[number + 1 :]
        if above:
            through = tuple(above[0].group_of[group] for group in gone.group_of)
            above = (replace(above[0], group_of=through), *above[1:])
        return replace(self, levels=(*self.levels[:number], *above))

    def _free_name(self, number: int, name: str) -> str:
        name = " ".join(name.split())
        if not name or name == ANYTHING or len(name) > _LONGEST:
            raise Unfit(f"a group needs a name of at most {_LONGEST} letters; {ANYTHING} stands for all values.")
        if name in self.levels[number].names:
            raise Unfit("another group of this level has that name: move or merge into it.")
        return name


def _without_empty(levels: Sequence[Level]) -> tuple[Level, ...]:
    """Take groups without members away, from the finest level to the coarsest."""
    new_levels: list[Level] = []
    left: Mapping[int, int] | None = None  # the new places of the groups of the level below
    for level in levels:
        held = level.group_of if left is None else tuple(level.group_of[old] for old in left)
        used = sorted(set(held))
        left = {old: new for new, old in enumerate(used)}
        new_levels.append(Level(tuple(level.names[old] for old in used), tuple(left[old] for old in held)))
    return tuple(new_levels)


_MOST_STEPS = 6
_OTHER = "other"


def prefixes(column: str, longest: int) -> list[str]:
    """Return the levels of texts of which ever fewer letters are shown: `021**`, `02***`."""
    text = f"{sql.quote(column)}::VARCHAR"
    return [
        f"left({text}, {length}) || repeat('*', greatest(length({text}) - {length}, 0))"
        for length in range(longest, max(longest - _MOST_STEPS, 0), -1)
    ]


def ranges(column: str, width: float) -> list[str]:
    """Return the levels of numbers in ranges of a width, then of twice that, and so on: `[20, 25)`."""
    number, levels = f"{sql.quote(column)}::DOUBLE", []
    for power in range(_MOST_STEPS - 2):
        step = width * 2**power
        low = f"(floor({number} / {step!r}) * {step!r} + 0.0)"
        levels.append(f"format('[{{:.15g}}, {{:.15g}})', {low}, {low} + {step!r})")
    return levels


def dates(column: str) -> list[str]:
    """Return the levels of dates: months, years, ten years."""
    day = f"{sql.quote(column)}::DATE"
    return [f"strftime({day}, '%Y-%m')", f"strftime({day}, '%Y')", f"((year({day}) // 10) * 10)::VARCHAR || 's'"]


def begin_tree(bench: Bench, column: str, levels: list[str], con: sql.Connection) -> Tree:
    """Return the hierarchy of all values of a column, with labels by SQL expressions; without any, each value alone."""
    quoted = sql.quote(column)
    shown = levels or [f"{quoted}::VARCHAR"]
    names = ", ".join(f"level_{place}" for place, _ in enumerate(shown, 1))
    try:
        rows = con.execute(
            f"SELECT * FROM (SELECT {quoted}::VARCHAR, {_people(bench)}, {', '.join(shown)} FROM people "
            f"WHERE {quoted} IS NOT NULL GROUP BY ALL) AS found(value, people, {names}) "
            "ORDER BY TRY_CAST(value AS DOUBLE) ASC NULLS LAST, value"
        ).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{column}: its values cannot be put into such groups ({sql.reason(error)}).") from None
    values, people, *labels = map(list, zip(*rows, strict=True)) if rows else ([], [], *([] for _ in shown))
    return Tree.of_labels(values, people, labels)


def read_tree(bench: Bench, column: str, name: str, con: sql.Connection) -> Tree:
    """Read the hierarchy of a file; values of the table that it does not have are added as `other`."""
    plain = begin_tree(bench, column, [], con)
    path = sql.literal(str(bench.policy.path.parent / name))
    rows = (
        f"read_parquet({path})"
        if name.lower().endswith(".parquet")
        else f"read_csv({path}, all_varchar = true, header = true)"
    )
    try:
        lines = con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {rows}").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{name}: the hierarchy cannot be read ({sql.reason(error)}).") from None
    labels = {row[0]: [label or ANYTHING for label in row[1:]] for row in lines if row[0] is not None}
    if len(labels) < len({row for row in lines if row[0] is not None}):
        raise FileProblem(f"{name}: it must give each value one label of each level.")
    depth = max(map(len, labels.values()), default=0)
    if depth and all(row[-1] == ANYTHING for row in labels.values()):
        depth -= 1
    if not depth:
        return plain
    people = dict(zip(plain.values, plain.people, strict=True))
    values = [*plain.values, *(value for value in labels if value not in people)]
    of_values = [labels.get(value, [_OTHER] * depth)[:depth] for value in values]
    try:
        return Tree.of_labels(values, [people.get(value, 0) for value in values], list(zip(*of_values, strict=True)))
    except Unfit as error:
        raise FileProblem(f"{name}: it is no tree that can be changed here: {error}") from None


def save(bench: Bench, column: str, tree: Tree) -> str:
    """Write a hierarchy beside the policy, and return the name of its file.

    No file is overwritten: a release that runs, and the policy before an undo, name the former one. One that says the
    same is taken.
    """
    levels = [f"level_{place}" for place, _ in enumerate(tree.levels, 1)]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([("value", *levels, "everything"), *tree.labels()])
    folder, stem = bench.policy.path.parent, re.sub(r"\W+", "_", column)
    number, text = 1, written.getvalue()
    while True:
        path = folder / (f"{stem}_hierarchy.csv" if number == 1 else f"{stem}_hierarchy_{number}.csv")
        try:
            if path.exists() and path.read_text(encoding="utf-8") == text:
                return path.name
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            return path.name
        except (FileExistsError, UnicodeDecodeError):
            number += 1
        except OSError as error:
            raise FileProblem(f"{Path(path.name)}: the hierarchy cannot be written ({error.strerror}).") from None


def _people(bench: Bench) -> str:
    person = bench.policy.table().person
    return f"count(DISTINCT {sql.quote(person)})" if person else "count(*)"
