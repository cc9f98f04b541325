"""Flat columns and columns with levels as the search sees them."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.generalize.recoding.axes import Axis, Candidates
from duckanon._methods.generalize.recoding.column_moves import EDIT, SMALLEST, Closed, Flat, Levels, State
from duckanon._methods.generalize.recoding.views import Slice, weighted_count


class FlatAxis(Axis):
    """Leaves without structure, fewest rows first. A state is the atoms that are merged."""

    def __init__(self, structure: Flat, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        self.leaves = structure.leaves
        self.least_of_all = max(self.leaves, 2)  # leaves from which on a merged group says nothing
        order = np.argsort(leaf_rows[: self.leaves], kind="stable")
        rare = int(np.searchsorted(leaf_rows[order], atom_rows))
        rare = rare if rare >= 2 else 0
        self.rest = rare  # leaves that the first atom holds; 0 where it is a leaf like all others
        n_atoms = self.leaves - max(rare - 1, 0)
        atom_of_leaf = np.empty(self.leaves, dtype=np.int64)
        atom_of_leaf[order] = np.maximum(np.arange(self.leaves) - max(rare - 1, 0), 0)
        super().__init__(atom_of_leaf, n_atoms, has_null)
        self.coarsest = tuple(range(n_atoms)) if self.leaves > 1 else ()
        self.size = np.ones(self.n_atoms, dtype=np.int64)  # leaves of each atom
        self.size[0] = max(rare, 1)

    def _portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return the merged leaves."""
        merged = np.zeros(self.n_atoms + 1, dtype=bool)
        merged[list(state)] = True
        return tuple(np.flatnonzero(merged[self.atom_of_leaf[: self.leaves]]).tolist())

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state of this axis that is the same recoding, but for leaves that are merged for good."""
        atoms = np.unique(self.atom_of_leaf[list(portable)])
        return tuple(np.union1d(atoms, [0]).tolist()) if self.rest else tuple(atoms.tolist())

    def _loss(self, size: Ints | int, with_null: bool = False) -> Floats:
        """Return the share of the other values, NULL among them, that a group of so many leaves holds too."""
        share = np.maximum(np.asarray(size) + with_null - 1.0, 0) / max(self.leaves + self.has_null - 1, 1)
        return np.where(np.asarray(size) >= self.least_of_all, 1.0, share)

    def _groups(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        merged = np.zeros(self.n_atoms, dtype=bool)
        merged[list(state)] = True
        group = np.cumsum(~merged) - 1 + bool(state)
        group[merged] = 0
        loss = np.zeros(int(group.max()) + 1)
        if state:
            loss[0] = self._loss(int(self.size[merged].sum()))
        return group, loss

    def _rest(self, state: State) -> int:
        return -1 if state == () else 0

    def _closed(self, state: tuple[int, ...], is_released: Bools, group: Ints, losses: Floats) -> Closed:
        """Merge leaves of which no row is released with those that are merged already: other is what is not named."""
        is_told = is_released[group].copy()
        is_told[: self.n_atoms][list(state)] = False
        if not state:  # group numbers begin with the leaves that are kept
            group, losses = group + 1, np.append(0.0, losses)
        group = np.where(is_told, group, 0)
        losses = losses.copy()
        merged = int(self.size[~is_told[: self.n_atoms]].sum())
        losses[0] = self._loss(merged, with_null=not is_told[self.n_atoms :].all())
        return Closed(group, losses, 0, True)

    def _candidates(self, state: tuple[int, ...], view: Slice) -> list[Candidates]:
        merged = np.zeros(self.n_atoms, dtype=bool)
        merged[list(state)] = True
        small, price = view.below_k(view.entry_size, view.count)
        alone_small = weighted_count(view.atom, small, self.n_atoms)
        alone_price = weighted_count(view.atom, price, self.n_atoms)
        candidates: list[Candidates] = []
        atoms = np.arange(self.n_atoms)
        # The j leaves with the fewest rows merged, for every j.
        whole = np.zeros((1, self.n_atoms), dtype=np.int64)
        (first_small,), (first_price,), _, _ = view.prefixes(whole, whole + self.n_atoms - 1)
        size = np.cumsum(self.size)
        cost = view.cost(self._loss(size), np.cumsum(view.marginal), first_small, first_price)
        cost += alone_price.sum() - np.cumsum(alone_price)
        keep = size >= 2
        new_small = first_small + alone_small.sum() - np.cumsum(alone_small)
        # One leaf "merged" is the state that keeps all leaves.
        keep[0] |= bool(state)
        candidates.append((cost[keep], new_small[keep], SMALLEST, atoms[keep], 0))
        if not state:
            return candidates
        # One atom more or less in the merged group.
        inside = merged[view.atom]
        other_rows = weighted_count(view.other[inside], view.count[inside], view.n_other)
        other_size, change = self._merged_sizes(view, inside, other_rows)
        other_small = np.where(other_size < view.k, other_rows, 0)
        before_rows, before = other_rows[view.other], other_size[view.other]
        changed = view.below_k(before + change, before_rows + np.where(inside, -1, 1) * view.count)
        present = view.below_k(before, before_rows)
        change_small = weighted_count(view.atom, changed[0] - present[0], self.n_atoms)
        change_price = weighted_count(view.atom, changed[1] - present[1], self.n_atoms)
        sign_atom = np.where(merged, -1, 1)
        size = int(self.size[merged].sum()) + sign_atom * self.size
        rows = int(view.marginal[merged].sum()) + sign_atom * view.marginal
        group_small: Floats = float(other_small.sum()) + change_small
        group_price: Floats = float(other_small @ view.price) + change_price
        kept_small = float(alone_small[~merged].sum()) - sign_atom * alone_small
        kept_price = float(alone_price[~merged].sum()) - sign_atom * alone_price
        cost = view.cost(self._loss(size), rows, group_small, group_price) + kept_price
        keep = self.size == 1
        candidates.append((cost[keep], (group_small + kept_small)[keep], EDIT, atoms[keep], 0))
        return candidates

    @staticmethod
    def _merged_sizes(view: Slice, inside: Bools, rows: Floats) -> tuple[Floats, Floats]:
        """Return how many people each class of the merged atoms has, and how many more if an entry is moved in or out.

        ``inside`` says whether each entry is merged, ``rows`` how many merged rows each class of the other columns has.
        """
        sign: Floats = np.where(inside, -1.0, 1.0)
        if view.size is view.count:
            return rows, np.asarray(sign * view.count, dtype=np.float64)
        sizes = weighted_count(view.other[inside], view.size[inside], view.n_other)
        change: Floats = np.asarray(sign * view.size, dtype=np.float64)
        if view.moving is not None:
            # Whoever is in one merged entry of a class leaves with it; whoever is in none comes in with another.
            moving, merged = view.moving, view.moving.taken(inside)
            sizes = sizes + merged.distinct(view.other[inside], view.n_other)
            of_person = np.cumsum(moving.is_first(view.other)) - 1
            times = np.bincount(of_person, inside[moving.entry])[of_person]
            counts = times == np.where(inside[moving.entry], 1, 0)
            change = change + sign * np.bincount(moving.entry[counts], minlength=len(sign))
        return sizes, change

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        merged = set(range(removed + 1)) if kind == SMALLEST else set(state) ^ {removed}
        return tuple(sorted(merged)) if len(merged) > 1 or (0 in merged and self.rest) else ()


class LevelsAxis(Axis):
    """One of several recodings of the whole column. A state is one level."""

    def __init__(self, structure: Levels, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        maps = [np.asarray(part, dtype=np.int64) for part in structure.maps]
        self.losses = [np.asarray(part, dtype=np.float64) for part in structure.losses]
        # Groups of the first level that is coarse enough are the atoms, if all later levels are made of them.
        rows = int(leaf_rows.sum())
        coarse_enough = [level for level, loss in enumerate(self.losses) if len(loss) * atom_rows <= rows]
        self.skipped = coarse_enough[0] if coarse_enough else len(maps) - 1  # levels that are too fine for the atoms
        lowest = maps[self.skipped]
        atoms, first_leaf = np.unique(lowest, return_index=True)
        if self.skipped and all(_is_function(lowest, part) for part in maps[self.skipped :]):
            atom_of_leaf = np.searchsorted(atoms, lowest)
            self.maps = [part[first_leaf] for part in maps]
        else:
            self.skipped = 0
            atom_of_leaf = np.arange(len(lowest))
            self.maps = maps
        super().__init__(atom_of_leaf, len(self.maps[0]), has_null)
        self.coarsest = (len(self.maps) - 1,)

    def _level(self, state: State) -> int:
        return self.coarsest[0] if state is None else state[0]

    def _portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return state  # all axes number levels alike

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        return portable

    def _groups(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        return self.maps[state[0]], self.losses[state[0]]

    def _candidates(self, state: tuple[int, ...], view: Slice) -> list[Candidates]:
        cost, small = np.zeros(len(self.maps)), np.zeros(len(self.maps))
        for level in range(self.skipped, len(self.maps)):
            group, loss = self.maps[level], self.losses[level]
            key, which = np.unique(view.other * len(loss) + group[view.atom], return_inverse=True)
            rows = np.bincount(which, view.count, len(key))
            sizes = rows if view.size is view.count else view.sizes(which.reshape(-1), len(key))
            kept_small = np.where(sizes < view.k, rows, 0)
            per_group = [np.bincount(key % len(loss), v, len(loss)) for v in (rows, kept_small)]
            priced = kept_small @ view.price[key // len(loss)]
            small[level] = kept_small.sum()
            cost[level] = priced + view.weight * float(loss @ (per_group[0] - per_group[1]))
        keep = (np.arange(len(self.maps)) != state[0]) & (np.arange(len(self.maps)) >= self.skipped)
        return [(cost[keep], small[keep], EDIT, np.flatnonzero(keep), 0)]

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        return (removed,)


def _is_function(fine: Ints, coarse: Ints) -> bool:
    """Whether each fine group lies within one coarse group."""
    pairs = np.unique(np.stack([fine, coarse]), axis=1)
    return int(pairs.shape[1]) == len(np.unique(fine))
