"""The rows that ``anon._table_rows`` sends, read as the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, distinct
from duckanon._core.common.made_labels import TOTAL
from duckanon._methods.tables.cells import NOBODY, Cells, Contributions, strides, table_cells
from duckanon._methods.tables.dimensions import Label, Tree, dimension
from duckanon._methods.tables.person_keys import person_keys

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
) -> Cells:
    """Return the cells of the tables to publish; of several, the cells of one table that covers all of them.

    With a `secret`, entries are the cell keys of `duckanon._methods.tables.cell_key`.
    """
    names = [name for name in table.column_names if not name.startswith(_OWN)]
    dimensions, codes = [], []
    for name in names:
        labels, code = _coded(table.column(name))
        dimensions.append(dimension(name, labels, trees_of(name, hierarchies)))
        codes.append(code)
    contributes = _contributes(table)
    if not contributes.any():
        raise ValueError(
            f"{'person' if measure is None else 'measure'} must have a value in some row; got NULL in all."
        )
    table, key = table.filter(pa.array(contributes)), (np.stack(codes, axis=1) @ strides(dimensions))[contributes]
    hashes, people = (None, None) if person is None else _people(table.column(f"{_OWN}person"))
    return table_cells(
        dimensions,
        _contributions(table, key, people, largest),
        people,
        counts_people=measure is None,
        with_empty=with_empty,
        tables=[spelled_as(names, one) for one in tables] if len(tables) > 1 else (),
        person_keys=None if secret is None or hashes is None else person_keys(hashes, secret),
    )


def without_empty(table: pa.Table) -> pa.Table:
    """Leave out rows that contribute nothing, so that no label tells of them."""
    return table.filter(pa.array(_contributes(table)))


def read_labels(
    table: pa.Table, tables: Sequence[Sequence[str]], hierarchies: Sequence[Mapping[str, Any]] | None
) -> Cells:
    """Return the cells that the labels of a published table stand for, with their margins.

    Of several tables, the inner cells of the one that covers all of them are not published: any may have people.
    """
    names = [name for name in table.column_names if name.lower() not in ("people", "value")]
    dimensions, codes = [], []
    for name in names:
        trees = trees_of(name, hierarchies)
        labels, code = _coded(table.column(name))
        values = [label for label in labels if label != TOTAL and (not trees or any(label in tree for tree in trees))]
        place = {label: number for number, label in enumerate(values)}
        codes.append(np.array([place.get(label, -1) for label in labels], dtype=np.int64)[code])
        dimensions.append(dimension(name, values, trees))
    steps = strides(dimensions)
    if len(tables) > 1:
        if np.prod([float(one.values) for one in dimensions]) > MOST_COVERED:
            raise ValueError("linked must name tables that one table of a million cells covers; give the original too.")
        grid = np.meshgrid(*(np.arange(one.values) for one in dimensions), indexing="ij")
        key = sum(axis.ravel() * step for axis, step in zip(grid, steps, strict=True))
    else:
        code = np.stack(codes, axis=1)
        key = code[(code >= 0).all(axis=1)] @ steps
    if len(key) == 0:
        raise ValueError("published must have inner cells, not only margins.")
    none, zero = np.zeros(len(key), dtype=np.int64), np.zeros(len(key))
    inner = Contributions(key, none, none, zero, zero, np.zeros((len(key), 1)), np.full(len(key), NOBODY))
    spelled = [spelled_as(names, one) for one in tables] if len(tables) > 1 else ()
    return table_cells(dimensions, inner, None, counts_people=True, tables=spelled)


def spelled_as(names: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return column names as the table spells them."""
    spelled = {name.lower(): name for name in names}
    return [spelled[name.lower()] for name in given]


def trees_of(name: str, hierarchies: Sequence[Mapping[str, Any]] | None) -> list[Tree]:
    """Return the hierarchies of a column."""
    trees: dict[str, dict[Label, Sequence[Label]]] = {}
    for row in hierarchies or ():
        if row["column_name"] == name.lower():
            trees.setdefault(row["tree"], {})[row["labels"][0]] = row["labels"][1:]
    return [trees[tree] for tree in sorted(trees)]


def locate(cells: Cells, table: pa.Table, what: str) -> Ints:
    """Return the cell of each row of a table with the same columns; -1 where there is none."""
    key = np.zeros(table.num_rows, dtype=np.int64)
    is_known = np.ones(table.num_rows, dtype=bool)
    for one, step in zip(cells.dimensions, strides(cells.dimensions), strict=True):
        column = table.column(one.name)
        places = {label: place for place, label in enumerate(one.labels)}
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        place = np.array([places.get(label, -1) for label in encoded.dictionary.to_pylist()], dtype=np.int64)
        code = place[encoded.indices.to_numpy(zero_copy_only=False)]
        is_known &= code >= 0
        key += np.maximum(code, 0) * step
    found = np.minimum(np.searchsorted(cells.sums.key, key), len(cells) - 1)
    is_known &= cells.sums.key[found] == key
    if len(distinct(found[is_known])) < is_known.sum():
        raise ValueError(f"{what} must have each cell once.")
    return np.where(is_known, found, -1)


def labels_of(cells: Cells, rows: Ints) -> dict[str, pa.Array]:
    """Return the labels of some cells, by column."""
    return {
        one.name: pa.array(one.labels, pa.string()).take(pa.array(cells.coordinates[rows, place]))
        for place, one in enumerate(cells.dimensions)
    }


def _coded(column: pa.ChunkedArray) -> tuple[list[Label], Ints]:
    """Return the different labels of a column, ascending with NULL last, and the place of each row's label."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    labels = encoded.dictionary.to_pylist()
    order = sorted(range(len(labels)), key=lambda place: (labels[place] is None, labels[place] or ""))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels))
    return [labels[place] for place in order], rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _people(column: pa.ChunkedArray) -> tuple[list[int], Ints]:
    """Number people by their hashes, and return these too; -1 for nobody."""
    hashes = column.combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
    different = distinct(hashes)
    numbers = np.searchsorted(different, hashes).astype(np.int64)
    return different.tolist(), np.where(column.is_null().to_numpy(zero_copy_only=False), -1, numbers)


def _contributions(table: pa.Table, key: Ints, people: Ints | None, largest: int) -> Contributions:
    entries = _numbers(table, "entries").astype(np.int64)
    value = _numbers(table, "value")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(np.abs(value).sum())
    if not is_finite:
        raise ValueError("measure must have finite values and sums.")
    if people is None:
        owner = np.argsort(np.argsort(key))  # of a cell of one person the number of its only inner cell
        who, absolute = entries, _numbers(table, "absolute")
        tops = np.stack([_numbers(table, f"largest_{rank}") for rank in range(1, largest + 1)], axis=1)
    else:
        who = (people >= 0).astype(np.int64)
        owner, absolute, tops = people, np.abs(value), np.zeros((len(key), largest))
        tops[:, 0] = absolute
    return Contributions(key, entries, who, value, absolute, tops, np.where(who > 0, owner, NOBODY))


def _contributes(table: pa.Table) -> Bools:
    return _numbers(table, "entries") > 0


def _numbers(table: pa.Table, name: str) -> Floats:
    column = pc.fill_null(table.column(f"{_OWN}{name}").cast(pa.float64()), 0.0)
    return np.asarray(column.to_numpy())
