"""The table that ``anon.suppress_cells`` releases: single cells are NULL, everything else is as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import generator, spelled
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.codes import encode, ranks_of
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import person_index, person_numbers, refuse_too_few
from duckanon._core.privacy.narrowing import MOST_ASKED, MOST_ROWS, Pairs, narrowed_pairs, sentence
from duckanon._methods.suppress.cells import matching_cells, refuse_unequal, refuse_unmatched, strict_cells
from duckanon._methods.suppress.patterns import Classes


def suppress_cells(
    table: pa.Table,
    *,
    cols: Sequence[str],
    k: int,
    importance: Sequence[str] | None,
    person: str | None,
    keep: Sequence[str] | None,
    nulls: str,
    narrowing: Sequence[str] | None,
) -> pa.Table:
    """Make single cells NULL, and return the rows in a random order. Options are as `SUPPRESS_CELLS` declares them."""
    names = spelled("cols", cols, table.column_names) or []
    people, allowed = None, {name.lower() for name in narrowing or []}
    if person is not None:
        index = person_index(person, table.column_names, names)
        people = person_numbers(table.column(index))
        allowed.add(person.lower())
        table = table if Kept(keep).has(person) else table.remove_column(index)
    refuse_too_few(k, table.num_rows, people, "records")
    order = generator(None).permutation(table.num_rows)
    table, people = table.take(pa.array(order)), None if people is None else people[order]
    encoded = encode(table.select(names))
    codes = np.stack([column.astype(np.int64) for column, _ in encoded], axis=1)
    costs = column_costs(names, [count for _, count in encoded], spelled("importance", importance, names) or [])
    is_null = np.stack([np.asarray(table.column(name).is_null()) for name in names], axis=1)
    cells = suppressed(codes, is_null, people, k, costs, nulls)
    _refuse_narrowing(table, dict(zip(names, cells.T, strict=True)), allowed)
    for place, name in enumerate(names):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        column = pc.if_else(pa.array(cells[:, place]), pa.scalar(None, column.type), column)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _refuse_narrowing(table: pa.Table, gone: Mapping[str, Bools], allowed: set[str]) -> None:
    """Refuse a kept column that tells what a cell was that is gone: its value could be any of the column's.

    Only a part of the rows is looked at, and ranked; rows are in a random order.
    """
    kept = [name for name in table.column_names if name not in gone and name.lower() not in allowed]
    pairs = Pairs([], [])
    for name, is_gone in gone.items():
        if kept and is_gone.any():
            rows = np.union1d(np.arange(min(MOST_ROWS, table.num_rows)), np.flatnonzero(is_gone)[:MOST_ASKED])
            part, alike = table.select([name, *kept]).take(pa.array(rows)), np.zeros(len(rows), np.int64)
            columns = {other: part.column(other) for other in kept}
            ranks = ranks_of(part.column(name))
            for all_pairs, found in zip(
                pairs,
                narrowed_pairs({name: ranks}, {name: alike}, columns, alike, generator(None), is_gone[rows]),
                strict=True,
            ):
                all_pairs += found
    if refused := sentence(pairs):
        raise ValueError(refused)


def suppressed(codes: Ints, is_null: Bools, people: Ints | None, k: int, costs: Floats, nulls: str) -> Bools:
    """Return the cells that become NULL, records by columns, and count what is promised."""
    classes = Classes(codes, people)
    if nulls == "value":
        cells = strict_cells(classes, people, k, costs) & ~is_null
        refuse_unequal(np.where(is_null, -1, codes) + 1, cells | is_null, people, k)
        return cells
    missing = np.zeros(classes.codes.shape, np.bool_)
    missing[classes.of_record] = is_null
    by_class = matching_cells(classes, missing, k, costs)
    refuse_unmatched(classes, missing | by_class, k)
    return by_class[classes.of_record]


def column_costs(names: Sequence[str], counts: Sequence[int], important: Sequence[str]) -> Floats:
    """Return what a NULL costs in each column: as good as 1, more where the column matters more.

    Columns of more values matter less, but the important ones, the first of all first, more than all others.
    """
    place = {name: position for position, name in enumerate(important)}
    least_first = sorted(range(len(names)), key=lambda column: (-place.get(names[column], len(place)), -counts[column]))
    costs = np.ones(len(names))
    # All of these together are less than one cell: few cells come first.
    costs[least_first] += np.arange(len(names)) / len(names) ** 2
    return costs
