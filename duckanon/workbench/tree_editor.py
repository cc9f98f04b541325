"""Hierarchies while somebody changes them: drafts in memory, until one is saved as a file that the policy names."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from duckanon._bridge import sql
from duckanon.job.errors import FileProblem
from duckanon.workbench import pictures, policy_text, trees
from duckanon.workbench.bench import Bench
from duckanon.workbench.policy_text import Conflict
from duckanon.workbench.trees import Tree

Form = Mapping[str, str]

_LISTED = 300
"""Members, and groups, that a page lists."""


@dataclass
class Draft:
    """A hierarchy that is being changed."""

    tree: Tree
    file: str | None  # what the policy names, as it was read or saved last
    person: str | None  # by which people were counted
    is_saved: bool = True
    past: list[Tree] = field(default_factory=list)
    version: int = 0
    said: str = ""  # what the last change did


@dataclass(frozen=True)
class Shown:
    """A member or a group on the page; without a name where fewer than k people have it and nobody wrote the name."""

    number: int
    name: str | None
    people: int
    bar: Markup
    members: tuple[Shown, ...] = ()
    rare: int = 0  # members that fewer than k people have
    is_listed: bool = True


class Editor:
    """The drafts of a workbench, one of each column."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._drafts: dict[str, Draft] = {}
        self._lock = threading.RLock()

    def draft(self, column: str) -> Draft:
        """Return the draft of a column: begun with what the policy names, or with each value alone."""
        with self._lock:
            table, draft = self._bench.policy.table(), self._drafts.get(column)
            file = next(iter(table.hierarchies.get(column, ())), None)  # several are of an aggregate table
            is_old = draft is None or (draft.is_saved and draft.file != file)
            if draft is not None and not is_old and draft.person == table.person:
                return draft
            con = self._bench.con.cursor()
            try:
                if draft is None or is_old:
                    draft = self._drafts[column] = self._open(column, file, table.person, con)
                else:  # the same groups, with the people counted as the policy says now
                    plain = trees.begin_tree(self._bench, column, [], con)
                    people = dict(zip(plain.values, plain.people, strict=True))
                    draft.tree = replace(draft.tree, people=tuple(people.get(value, 0) for value in draft.tree.values))
                    draft.person, draft.past = table.person, []
            finally:
                con.close()
            return draft

    def _open(self, column: str, file: str | None, person: str | None, con: sql.Connection) -> Draft:
        """Begin a draft with a file, or with each value alone where there is none, or none that can be changed here."""
        said = ""
        if file:
            try:
                return Draft(trees.read_tree(self._bench, column, file, con), file, person)
            except FileProblem as error:
                said = str(error)
        return Draft(trees.begin_tree(self._bench, column, [], con), file, person, said=said)

    def change(self, column: str, level: int, form: Form) -> None:
        """Do what a form says to the draft of a column, on one of its levels.

        Raises:
            Unfit: The change would not leave a tree.
            Conflict: Another window changed the draft, or the policy.
        """
        with self._lock:
            draft = self.draft(column)
            if form["draft"] != str(draft.version):
                raise Conflict("Another window changed this hierarchy. Nothing was changed; look again.")
            if form["do"] == "save":
                self._save(column, draft, form["seen"])
                return
            if form["do"] == "back":
                if not draft.past:
                    return
                draft.tree, draft.said = draft.past.pop(), "The last change was taken back."
            else:
                tree, said = self._change(column, draft.tree, level, form)
                if tree == draft.tree:
                    return
                draft.past.append(draft.tree)
                draft.tree, draft.said = tree, said
            draft.is_saved = False
            draft.version += 1

    def _change(self, column: str, tree: Tree, level: int, form: Form) -> tuple[Tree, str]:
        """Return the tree after a change, and the change in words."""
        match form["do"]:
            case "begin":
                return self._begin(column, form), "The hierarchy was begun anew."
            case "add":
                return tree.with_level(), "A level was added above all others."
            case "remove":
                return tree.without_level(level), "The level was removed."
            case "move":
                members = self._read_choice(tree, level, form)
                to = None if form["to"] == "new" else _place(form["to"])
                count = "1 member was" if len(members) == 1 else f"{len(members):,} members were"
                return tree.move(level, members, to, form.get("name", "")), f"{count} moved."
        group = _place(form["group"])
        match form["do"]:
            case "rename":
                return tree.rename(level, group, form["name"]), "The group has another name."
            case "merge":
                return tree.merge(level, group, _place(form["into"])), "Two groups are one now."
            case "split":
                return tree.split(level, group), "The group was split: each member is a group of its own."
        raise KeyError("do")

    def _save(self, column: str, draft: Draft, seen: str) -> None:
        self._bench.policy.refuse_old(seen)  # before a file is written that nobody names
        file = trees.save(self._bench, column, draft.tree)
        self._bench.policy.edit(seen, f"hierarchy of {column}", policy_text.hierarchy(column, file))
        draft.file, draft.is_saved, draft.said = file, True, ""

    def _begin(self, column: str, form: Form) -> Tree:
        """Return the hierarchy to begin with, of the kind that a form asks for."""
        kind, levels = form["kind"], []
        if kind == "prefixes":
            levels = trees.prefixes(column, min(max(int(form["length"]), 1), 20))
        elif kind == "ranges":
            if not float(form["width"]) > 0:
                raise ValueError(form["width"])
            levels = trees.ranges(column, float(form["width"]))
        elif kind == "dates":
            levels = trees.dates(column)
        elif kind != "values":
            raise KeyError(kind)
        con = self._bench.con.cursor()
        try:
            return trees.begin_tree(self._bench, column, levels, con)
        finally:
            con.close()

    def context(self, column: str, level: int, opened: int | None = None) -> dict[str, Any]:
        """Return what the page of a column shows of a level: groups with their members, and what is rare as a count."""
        with self._lock:
            draft, k = self.draft(column), self._bench.least_shown
            tree = draft.tree
        level = min(max(level, 0), len(tree.levels) - 1)
        members, sizes, total = tree.members(level), tree.sizes(level), max(sum(tree.people), 1)
        below, people = _below(tree, level), tree.sizes(level - 1)
        is_long, groups, places = len(below) > _LISTED, [], list(range(len(members)))
        for place in sorted(places, key=lambda one: -sizes[one])[:_LISTED] if is_long else places:
            name, count, is_listed = tree.levels[level].names[place], sizes[place], not is_long or place == opened
            common = [member for member in members[place] if _is_told(tree, level, member, people[member], k)]
            entries = [
                Shown(member, below[member], people[member], pictures.bar(people[member] / total))
                for member in (common[:_LISTED] if is_listed else ())
            ]
            is_named = count >= k or name in tree.typed
            bar, rare = pictures.bar(count / total), len(members[place]) - len(common)
            groups.append(Shown(place, name if is_named else None, count, bar, tuple(entries), rare, is_listed))
        return {
            "column": column,
            "level": level,
            "draft": draft,
            "levels": [len(one.names) for one in tree.levels],
            "groups": groups,
            "hidden_groups": len(members) - len(groups),
            "values": len(tree.values),
            "least": k,
        }

    def _read_choice(self, tree: Tree, level: int, form: Form) -> list[int]:
        """Return the members that are checked, and those that fewer than k people have of the groups checked so."""
        known = [_place(key.removeprefix("member:")) for key in form if key.startswith("member:")]
        bundles = {_place(key.removeprefix("rare:")) for key in form if key.startswith("rare:")}
        if bundles:
            people, k = tree.sizes(level - 1), self._bench.least_shown
            known += [
                member
                for member, group in enumerate(tree.levels[level].group_of)
                if group in bundles and not _is_told(tree, level, member, people[member], k)
            ]
        return known


def _below(tree: Tree, level: int) -> tuple[str, ...]:
    """Return the names of the members of a level."""
    return tree.levels[level - 1].names if level else tree.values


def _is_told(tree: Tree, level: int, member: int, people: int, k: int) -> bool:
    """Tell whether the page names a member: k people have it, or it is a group that somebody named."""
    return people >= k or (level > 0 and _below(tree, level)[member] in tree.typed)


def _place(text: str) -> int:
    """Read the number of a member or a group, which a form of ours has."""
    if not text.isdecimal():
        raise KeyError(text)
    return int(text)
