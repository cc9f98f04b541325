"""Find a k-anonymous global recoding of a table that loses as little as possible.

Every column's values are mapped to coarser groups by a function of the value alone. Rows in classes of fewer than k
rows are suppressed, up to a limit. The search starts from the fully generalized table, takes the best feasible move
until none is left, and then crosses the limit back and forth. A large table is first searched with its rare values
merged for good; these are opened again, stage by stage, around the recoding found so far.

What the constants of the search trade was measured on the Adult table, k = 10, at most 1 percent suppressed: with seven
columns (12,700 combinations; loss 0.2061 in 2.8 s) and with ten, fnlwgt among them (32,500 combinations, nearly all
rows; loss 0.3395 in 6.6 s). "The ten columns" below are the latter; the seven lost the same unless something is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Floats, Ints, distinct
from duckanon._core.common.people import NOBODY
from duckanon._core.common.rules import Whole
from duckanon._methods.generalize.recoding.column_moves import Column, Flat, Ordered, Recoding, State, Tree
from duckanon._methods.generalize.recoding.people import People
from duckanon._methods.generalize.recoding.sensitive import Sensitive
from duckanon._methods.generalize.recoding.stages import Leaves, search_stages
from duckanon._methods.generalize.recoding.table import Entries, Sizes, Table
from duckanon._methods.generalize.recoding.views import weighted_count

# By how much classes grow from one size to the next that is tried for the sake of their sensitive values.
_SIZE_STEP = 1.6
_MOST_SIZES = 10  # sizes that are tried at most: the last is 70 times k
_WORSE_SIZES = 2  # after so many sizes that brought nothing no more are tried


@checked(k=Whole(1), max_suppressed=Whole(0))
def recode(
    counts: Ints,
    columns: Sequence[Column],
    k: int,
    max_suppressed: int,
    *,
    sizes: Ints | None = None,
    persons: Ints | None = None,
    start: Sequence[State] | None = None,
    sensitive: Sensitive | None = None,
) -> Recoding:
    """Find a k-anonymous recoding with little loss.

    The same table gives the same recoding, in whatever order its combinations come.

    Args:
        counts: The number of rows of each combination. A combination may come several times.
        columns: The columns; their codes are parallel to ``counts``.
        k: The smallest class that is not suppressed.
        max_suppressed: The largest number of rows that may be suppressed.
        sizes: What each combination adds to the size of its class, where that is not its rows: people of a population.
        persons: Whose rows these are, where people have several: classes then have k different people. `NOBODY` is not
            counted.
        start: A recoding to try too: of each column its first leaf of each run, its nodes, its merged leaves, its
            level, or None for one group of everything.
        sensitive: What every class that is not suppressed must keep of its sensitive values.

    Examples:
        >>> ages = Column(np.array([0, 1, 2, 3]), Ordered(np.array([20.0, 22.0, 50.0, 52.0])))
        >>> recoding = recode(np.array([1, 1, 1, 1]), [ages], k=2, max_suppressed=0)
        >>> recoding.columns[0].group_of_leaf.tolist(), recoding.gcp
        ([0, 0, 1, 1], 0.0625)
    """
    counts = np.asarray(counts, dtype=np.int64)
    weights = np.array([column.weight for column in columns], dtype=np.float64)
    if not len(columns) or (weights < 0).any() or not weights.sum() > 0:
        raise ValueError("columns must have weights of at least 0, not all of them 0.")
    if sizes is None and persons is None and (rows := int(counts.sum())) < k:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    people = None
    if persons is not None:
        people = People.of_entries(np.arange(len(counts)), persons, len(counts))
        if (known := len(distinct(persons[persons != NOBODY]))) < k:
            raise ValueError(f"k must be at most the number of people, {known}; got {k}.")
    leaf_rows = [_leaf_rows(counts, column) for column in columns]
    # A fixed order of the columns, so that the caller's order decides ties only between equal columns.
    order = sorted(range(len(columns)), key=lambda column: _rank(columns[column], leaf_rows[column]))
    ordered = [columns[column] for column in order]
    entries = Entries([column.codes for column in ordered], counts, sizes, people, sensitive)
    ordered_rows = (leaf_rows[column] for column in order)
    leaves = [Leaves(rows, _leaf_sizes(entries, place, len(rows))) for place, rows in enumerate(ordered_rows)]
    begin = None if start is None else [start[column] for column in order]
    table, states = _best_of_sizes(entries, ordered, leaves, weights[order], k, max_suppressed, begin)
    table.set_states(states)
    score, closed, released, classes = table.closed_score(is_promised=True)
    if score.suppressed > max_suppressed:
        raise AssertionError(f"the recoding suppresses {score.suppressed} rows, more than {max_suppressed}")
    recodings = tuple(
        table.axes[place].recoding(states[place], closed[place], released[place])
        for place in np.argsort(order).tolist()
    )
    is_released = (classes.released > 0)[classes.of_combination][table.of_entry]
    gcp = score.loss / (table.full_price * max(table.rows, 1))
    return Recoding(recodings, is_released, int(score.suppressed), gcp)


def _leaf_sizes(entries: Entries, column: int, leaves: int) -> Ints | Floats:
    """Return how large the class of each leaf would be in a table with one column."""
    if entries.people is not None:
        return entries.people.sizes(entries.leaves[column], leaves)
    return weighted_count(entries.leaves[column], entries.counts if entries.sizes is None else entries.sizes, leaves)


def _leaf_rows(counts: Ints, column: Column) -> Ints:
    """Return the rows of each leaf, or say what does not fit together."""
    structure = column.structure
    if isinstance(structure, Ordered):
        leaves = len(structure.positions)
    elif isinstance(structure, Tree):
        parents = np.asarray(structure.parents)
        leaves = len(parents) - len(np.unique(parents[parents >= 0]))
        if (parents < 0).sum() != 1 or (parents[parents >= 0] < leaves).any():
            raise ValueError("parents must have one root, and number the leaves before all other nodes.")
    elif isinstance(structure, Flat):
        leaves = structure.leaves
    else:
        leaves = len(structure.maps[0])
        if len(structure.losses[-1]) != 1:
            raise ValueError("losses must end in a level with one group.")
    leaves += column.has_null
    if len(column.codes) != len(counts) or (len(counts) and not 0 <= column.codes.min() <= column.codes.max() < leaves):
        raise ValueError(f"codes must be parallel to the counts and lie between 0 and {leaves - 1}.")
    return np.bincount(column.codes, counts, leaves).astype(np.int64)


def _rank(column: Column, leaf_rows: Ints) -> tuple[str, int, float, list[int]]:
    """Return what a column is sorted by: nothing that depends on the order in which columns or combinations come."""
    return type(column.structure).__name__, len(leaf_rows), column.weight, np.sort(leaf_rows).tolist()


def _best_of_sizes(
    entries: Entries,
    columns: Sequence[Column],
    leaves: list[Leaves],
    weights: Floats,
    k: int,
    limit: int,
    start: Sequence[State] | None,
) -> tuple[Table, list[State]]:
    """Search with classes of k people and, where sensitive values must be spread, with larger ones too."""
    tried = [k] if entries.sensitive is None else _sizes_tried(k, int(entries.counts.sum()))
    best: tuple[float, list[State], Table] | None = None
    worse = 0
    for number, sought in enumerate(tried):
        with progress.part(number / len(tried), (number + 1) / len(tried)):
            table, (loss, states) = search_stages(entries, columns, leaves, weights, Sizes(k, sought), limit, start)
        if states and (best is None or loss < best[0]):
            best, worse = (loss, states, table), 0
        elif (worse := worse + 1) == _WORSE_SIZES:
            break
    if best is None:
        raise ValueError("l asks for more than the sensitive values of the whole table have; ask for less.")
    return best[2], best[1]


def _sizes_tried(k: int, rows: int) -> list[int]:
    """Return the sizes of classes with which sensitive values may be spread as is asked: k, then ever larger ones."""
    sizes = [k]
    while len(sizes) < _MOST_SIZES and sizes[-1] * _SIZE_STEP <= rows:
        sizes.append(int(np.ceil(sizes[-1] * _SIZE_STEP)))
    return sizes
