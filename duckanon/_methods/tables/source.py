"""The rows that ``anon._table_rows`` sends, or a published table, read as the cells of a table.

The query has grouped the rows by inner cell, and by person where people have several rows; its own columns begin with
`_duckanon_`. Labels become codes in their order, NULL last, so that the same table always has the same cells. People
come as hashes, from which a secret makes the numbers that cell keys are the sums of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, sort_distinct
from duckanon._core.common.labels import TOTAL
from duckanon._methods.tables.cells import (
    NOBODY,
    CellSums,
    Label,
    LabelTree,
    TableCells,
    compute_strides,
    make_cells,
    make_dimension,
)

KEY_BITS = 36
"""Bits of a person's number: the sum of those of a hundred million people fits into 64."""


def derive_person_keys(hashes: Sequence[int], secret: str) -> Ints:
    """Return the secret number of each person, from a hash under a key."""
    progress.check()
    key = hashlib.sha256(secret.encode()).digest()
    digests = [hashlib.blake2b(int(number).to_bytes(8, "big"), digest_size=8, key=key).digest() for number in hashes]
    return np.array([int.from_bytes(digest, "big") >> (64 - KEY_BITS) for digest in digests], dtype=np.int64)


_OWN = "_duckanon_"

MOST_COVERED = 1_000_000
"""Inner cells of the table that covers linked ones, where nobody knows which are empty."""


def read_cells(
    table: pa.Table,
    *,
    tables: Sequence[Sequence[str]],
    measure: str | None,
    person: str | None,
    hierarchies: Sequence[Mapping[str, Any]] | None,
    largest: int,
    with_empty: bool,
    secret: str | None = None,
) -> TableCells:
    """Return the cells of the tables to publish; of several, the cells of one table that covers all of them.

    With a `secret`, entries are the cell keys of `duckanon._methods.tables.cell_key`.
    """
    names = [name for name in table.column_names if not name.startswith(_OWN)]
    dimensions, codes = [], []
    for name in names:
        labels, code = _encode_labels(table.column(name))
        dimensions.append(make_dimension(name, labels, read_trees(name, hierarchies)))
        codes.append(code)
    contributes = _has_entries(table)
    if not contributes.any():
        raise ValueError(
            f"{'person' if measure is None else 'measure'} must have a value in some row; got NULL in all."
        )
    table = table.filter(pa.array(contributes))
    key = (np.stack(codes, axis=1) @ compute_strides(dimensions))[contributes]
    hashes, people = (None, None) if person is None else _number_people(table.column(f"{_OWN}person"))
    return make_cells(
        dimensions,
        _read_sums(table, key, people, largest),
        people,
        counts_people=measure is None,
        with_empty=with_empty,
        tables=tables,
        person_keys=None if secret is None or hashes is None else derive_person_keys(hashes, secret),
    )


def drop_empty_rows(table: pa.Table) -> pa.Table:
    """Drop rows that contribute nothing, so that their labels do not occur."""
    return table.filter(pa.array(_has_entries(table)))


def read_labels(
    table: pa.Table, tables: Sequence[Sequence[str]], hierarchies: Sequence[Mapping[str, Any]] | None
) -> TableCells:
    """Return the cells that the labels of a published table stand for, with their margins.

    Of several tables, the inner cells of the one that covers all of them are not published: any may have people.
    """
    names = [name for name in table.column_names if name.lower() not in ("people", "value")]
    dimensions, codes = [], []
    for name in names:
        trees = read_trees(name, hierarchies)
        labels, code = _encode_labels(table.column(name))
        values = [label for label in labels if label != TOTAL and (not trees or any(label in tree for tree in trees))]
        codes.append(_index_labels(labels, values)[code])
        dimensions.append(make_dimension(name, values, trees))
    steps = compute_strides(dimensions)
    if len(tables) > 1:
        if np.prod([float(dimension.values) for dimension in dimensions]) > MOST_COVERED:
            raise ValueError("linked must name tables that one table of a million cells covers; give the original too.")
        grid = np.meshgrid(*(np.arange(dimension.values) for dimension in dimensions), indexing="ij")
        key = sum(axis.ravel() * step for axis, step in zip(grid, steps, strict=True))
    else:
        code = np.stack(codes, axis=1)
        key = code[(code >= 0).all(axis=1)] @ steps
    if len(key) == 0:
        raise ValueError("published must have inner cells, not only margins.")
    none, zero = np.zeros(len(key), dtype=np.int64), np.zeros(len(key))
    inner = CellSums(key, none, none, zero, zero, np.zeros((len(key), 1)), np.full(len(key), NOBODY))
    return make_cells(dimensions, inner, None, counts_people=True, tables=tables)


def read_trees(name: str, hierarchies: Sequence[Mapping[str, Any]] | None) -> list[LabelTree]:
    """Return the hierarchies of a column."""
    trees: dict[str, dict[Label, Sequence[Label]]] = {}
    for row in hierarchies or ():
        if row["column_name"] == name.lower():
            trees.setdefault(row["tree"], {})[row["labels"][0]] = row["labels"][1:]
    return [trees[tree] for tree in sorted(trees)]


def locate_rows(cells: TableCells, table: pa.Table, option: str) -> Ints:
    """Return the cell of each row of a table with the same columns, the value of an option; -1 where there is none."""
    key = np.zeros(table.num_rows, dtype=np.int64)
    is_known = np.ones(table.num_rows, dtype=bool)
    for dimension, step in zip(cells.dimensions, compute_strides(cells.dimensions), strict=True):
        labels, code = _encode_labels(table.column(dimension.name))
        code = _index_labels(labels, dimension.labels)[code]
        is_known &= code >= 0
        key += np.maximum(code, 0) * step
    cell = np.minimum(np.searchsorted(cells.sums.key, key), len(cells) - 1)
    is_known &= cells.sums.key[cell] == key
    if len(sort_distinct(cell[is_known])) < is_known.sum():
        raise ValueError(f"{option} must have each cell once.")
    return np.where(is_known, cell, -1)


def select_labels(cells: TableCells, rows: Ints) -> dict[str, pa.Array]:
    """Return the labels of some cells, by column."""
    return {
        dimension.name: pa.array(dimension.labels, pa.string()).take(pa.array(cells.coordinates[rows, index]))
        for index, dimension in enumerate(cells.dimensions)
    }


def _encode_labels(column: pa.ChunkedArray) -> tuple[list[Label], Ints]:
    """Return the different labels of a column, ascending with NULL last, and the index of each row's label."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    labels = encoded.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=lambda index: (labels[index] is None, labels[index] or ""))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels))
    return [labels[index] for index in order], rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _index_labels(labels: Sequence[Label], codes: Sequence[Label]) -> Ints:
    """Return the index of each label among those that have a code; -1 where it is none of them."""
    index_of = {label: index for index, label in enumerate(codes)}
    return np.array([index_of.get(label, -1) for label in labels], dtype=np.int64)


def _number_people(column: pa.ChunkedArray) -> tuple[list[int], Ints]:
    """Number people by their hashes, and return these too; -1 for nobody."""
    hashes = column.combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
    different = sort_distinct(hashes)
    numbers = np.searchsorted(different, hashes).astype(np.int64)
    return different.tolist(), np.where(column.is_null().to_numpy(zero_copy_only=False), -1, numbers)


def _read_sums(table: pa.Table, key: Ints, people: Ints | None, largest: int) -> CellSums:
    entries = _read_numbers(table, "entries").astype(np.int64)
    value = _read_numbers(table, "value")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(np.abs(value).sum())
    if not is_finite:
        raise ValueError("measure must have finite values and sums.")
    if people is None:
        owner = np.argsort(np.argsort(key))  # of a cell of one person the number of its only inner cell
        count, absolute = entries, _read_numbers(table, "absolute")
        tops = np.stack([_read_numbers(table, f"largest_{rank}") for rank in range(1, largest + 1)], axis=1)
    else:
        count = (people >= 0).astype(np.int64)
        owner, absolute, tops = people, np.abs(value), np.zeros((len(key), largest))
        tops[:, 0] = absolute
    return CellSums(key, entries, count, value, absolute, tops, np.where(count > 0, owner, NOBODY))


def _has_entries(table: pa.Table) -> Bools:
    return _read_numbers(table, "entries") > 0


def _read_numbers(table: pa.Table, name: str) -> Floats:
    column = pc.fill_null(table.column(f"{_OWN}{name}").cast(pa.float64()), 0.0)
    return np.asarray(column.to_numpy())
