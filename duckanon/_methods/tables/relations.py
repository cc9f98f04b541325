"""Relations between cells: along each dimension, a group is the sum of its parts.

A relation is a row of a sparse matrix of cells, 1 for parts and -1 for the group, which all audits work on: subtraction
removes what follows at once, components say nothing about each other, and each is then looked at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from duckanon._core.common.arrays import Bools, Floats, Ints, sort_distinct
from duckanon._methods.tables.cells import TableCells, compute_strides


@dataclass(frozen=True)
class Relations:
    """The relations of a table; entries of the first three arrays are parallel, by relation."""

    relation: Ints
    cell: Ints
    is_group: Bools  # whether the cell is the sum of the others
    dimension: Ints  # of each relation
    matrix: sparse.csr_matrix  # relations by cells: 1 for parts, -1 for the group
    by_cell: sparse.csr_matrix

    @property
    def count(self) -> int:
        """How many relations there are."""
        return len(self.dimension)

    def sum_per_relation(self, of_entries: Bools | Floats | Ints) -> Floats:
        """Add up what entries have for each relation."""
        return np.asarray(np.bincount(self.relation, of_entries, self.count), dtype=np.float64)

    def sum_per_cell(self, of_entries: Bools) -> Floats:
        """Add up what entries have for each cell."""
        return np.asarray(np.bincount(self.cell, of_entries, self.by_cell.shape[0]), dtype=np.float64)

    def find_open_parts(self, hidden: Bools) -> tuple[Bools, Bools]:
        """Tell which entries are hidden parts, and which relations show a group and so the sum of its hidden parts."""
        is_hidden = hidden[self.cell]
        is_part = is_hidden & ~self.is_group
        shows_group = self.sum_per_relation(is_hidden & self.is_group) == 0
        return is_part, (self.sum_per_relation(is_part) > 0) & shows_group

    def list_members(self, relation: int) -> Ints:
        """Return the cells of a relation."""
        return np.asarray(self.matrix.indices[self.matrix.indptr[relation] : self.matrix.indptr[relation + 1]])

    def list_relations(self, cell: int) -> Ints:
        """Return the relations that a cell is in."""
        return np.asarray(self.by_cell.indices[self.by_cell.indptr[cell] : self.by_cell.indptr[cell + 1]])


def find_relations(cells: TableCells) -> Relations:
    """Return all relations between the cells of a table."""
    key, steps, count = cells.sums.key, compute_strides(cells.dimensions), 0
    rows, columns, signs, dimension_of = [], [], [], []
    for index, dimension in enumerate(cells.dimensions):
        label = cells.coordinates[:, index]
        for group in dimension.list_layers():
            part = np.flatnonzero(group[label] >= 0)
            group_key = key[part] + (group[label[part]] - label[part]) * steps[index]
            groups = sort_distinct(group_key)
            rows += [np.searchsorted(groups, group_key) + count, np.arange(len(groups)) + count]
            columns += [part, np.searchsorted(key, groups)]
            signs += [np.ones(len(part)), -np.ones(len(groups))]
            dimension_of.append(np.full(len(groups), index))
            count += len(groups)
    entries = np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))
    matrix = sparse.csr_matrix(entries, shape=(count, len(key)))
    matrix.sort_indices()
    return Relations(
        relation=np.repeat(np.arange(count), np.diff(matrix.indptr)),
        cell=matrix.indices.astype(np.int64),
        is_group=matrix.data < 0,
        dimension=np.concatenate(dimension_of),
        matrix=matrix,
        by_cell=matrix.T.tocsr(),
    )


def solve_by_subtraction(matrix: sparse.csr_matrix, unknown: Bools) -> Bools:
    """Return the unknown cells that remain when everything was derived that plain subtraction gives."""
    unknown, members = unknown.copy(), abs(matrix)
    by_cell = members.T.tocsr()
    missing = members @ unknown.astype(np.float64)
    while len(single := np.flatnonzero(missing == 1)):
        cells = members[single].indices
        cells = sort_distinct(cells[unknown[cells]])
        unknown[cells] = False
        missing -= by_cell[cells].sum(axis=0).A1
    return unknown


def find_components(matrix: sparse.csr_matrix, unknown: Bools) -> list[Ints]:
    """Return the unknown cells by components: two cells of different ones say nothing about each other."""
    cells = np.flatnonzero(unknown)
    if len(cells) == 0:
        return []
    part = abs(matrix[:, cells])
    graph = sparse.bmat([[None, part], [part.T, None]], format="csr")  # as many edges as there are entries
    label = csgraph.connected_components(graph, directed=False)[1][part.shape[0] :]
    order = np.argsort(label, kind="stable")
    return np.split(cells[order], np.flatnonzero(np.diff(label[order])) + 1)


def restrict_relations(matrix: sparse.csr_matrix, cells: Ints) -> sparse.csr_matrix:
    """Return the relations of some cells, without those that have none of them."""
    columns = matrix.tocsc()[:, cells].tocsr()  # of a matrix by columns, tocsc returns itself
    return columns[np.diff(columns.indptr) > 0]
