"""The rows that ``anon.release_linked`` returns: those of several tables, with labels that k people share.

People are put into classes by the class columns, and by the band of their number of events where that is released. Each
table gets a ladder of labels (`ladders`), and each class finds the finest level at which its rows can be shown
(`class_levels`); rows that no level can show are left out. What is left is joined, shuffled and returned as one table.
The cost is that of `class_levels`: it grows with the sets of at most m rows of a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Ints, Ints32, sort_distinct
from duckanon._core.common.codes import encode_columns, rank_values
from duckanon._core.common.parameters import Kept, refuse_other_columns
from duckanon._core.common.resources import free_memory
from duckanon._core.common.row_keys import pack_columns, rank_keys
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.generalize.hierarchies import HierarchyRow, HierarchyTable, read_hierarchies
from duckanon._methods.linked.class_levels import EventTable, find_levels
from duckanon._methods.linked.declared import ROW_COUNT, TABLE_NAME, SensitiveLimits, shorten_name
from duckanon._methods.linked.ladders import (
    build_ladder,
    find_column_levels,
    find_steps,
    read_levels,
    read_steps,
)
from duckanon._methods.linked.sensitive_values import SensitiveValues

_BANDS = (1, 2, 3, 5, 9, 17, 33, 65, 129)
"""The least number of rows of each band."""
BAND_NAMES = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+", "0")
"""The last one is that of people without events."""


@dataclass(frozen=True)
class LadderOptions:
    """How labels of the columns are found."""

    cols: Sequence[str]
    k: int
    trees: Mapping[str, HierarchyTable]  # by column, in lower case
    ladder: Sequence[Mapping[str, str | None]] | None  # the levels that the caller wrote; None: they are searched


def describe_counts(names: Sequence[str], rows: Ints) -> str:
    """Write how many rows of each table are concerned, for a refusal.

    Examples:
        >>> describe_counts(["visits", "labs"], np.array([0, 2]))
        '2 rows of labs'
    """
    counted = zip(names, rows.tolist(), strict=True)
    return ", ".join(f"{count} row{'s' * (count != 1)} of {name}" for name, count in counted if count)


def find_classes(
    table: pa.Table,
    columns: Sequence[str],
    person_of_row: Ints,
    table_of_row: Ints,
    names: Sequence[str],
    people: str | None,
) -> Ints:
    """Return the class of each person by the rows of `people`, or else by all rows, which must agree."""
    rows = np.arange(len(person_of_row))
    if people is not None:
        rows = np.flatnonzero(table_of_row == names.index(people))
        if len(rows) > len(sort_distinct(person_of_row[rows])):
            raise ValueError(f"people must have one row for each person; {people} has several for some.")
        missing = int(person_of_row.max(initial=-1)) + 1 - len(rows)
        if missing:
            raise ValueError(f"people must have every person of the tables; {people} lacks {missing}.")
    coded = encode_columns(table.select(columns).take(pa.array(rows))) if columns else []
    key = rank_keys(pack_columns(coded, len(rows))[0])
    class_of_person = np.empty(int(person_of_row.max(initial=-1)) + 1, np.int64)
    class_of_person[person_of_row[rows]] = key
    differing = table_of_row[rows][class_of_person[person_of_row[rows]] != key]
    if len(differing):
        tables = ", ".join(names[table_index] for table_index in np.unique(differing).tolist())
        raise ValueError(
            f"class must be the same in all rows of a person; {', '.join(columns)} differs in rows of {tables}."
        )
    return class_of_person


def release_linked(
    tables: list[pa.Table],
    *,
    table_names: Sequence[str],
    columns_of_tables: Sequence[Mapping[str, str]],
    person: str,
    cols: Sequence[str],
    k: int,
    known: Sequence[int],
    class_columns: Sequence[str] | None,
    people: str | None,
    hierarchies: Sequence[HierarchyRow] | None,
    ladder: Sequence[Mapping[str, str | None]] | None,
    kept: Kept,
    counts: str | None,
    sensitive: SensitiveLimits,
    max_suppressed_fraction: float,
    seed: int | None,
) -> pa.Table:
    """Return the rows of several tables below each other, with labels for `cols`; rows that cannot be shown are out.

    The table is taken out of its list, so that its memory can be freed. `known` has a number for each of `table_names`.
    """
    free_memory()  # what it took to collect the rows; and so on after each step that takes much
    table = tables.pop()
    names = _Spelling(table.column_names)
    person_column = table.column(names.of(person))
    all_names = [*table_names, *([people] if people else [])]
    table_of_row = np.asarray(
        pc.index_in(column := table.column(TABLE_NAME), pa.array(all_names, column.type)).to_numpy(), dtype=np.int64
    )
    if person_column.null_count:
        nobodys = np.bincount(table_of_row[np.asarray(person_column.is_null())], minlength=len(all_names))
        raise ValueError(
            f'person must say whose row it is in every row; column "{names.of(person)}" is NULL in '
            f"{describe_counts(all_names, nobodys)}."
        )
    person_of_row = rank_values(person_column) - 1
    class_columns = [names.of(name) for name in class_columns or ()]
    class_of_person = find_classes(table, class_columns, person_of_row, table_of_row, all_names, people)
    is_event = table_of_row < len(table_names)
    bands = None
    if counts == "bands":  # the band of each person's number of events; people without events are in the last band
        events_of_person = np.bincount(person_of_row[is_event], minlength=len(class_of_person))
        bands = np.searchsorted(_BANDS, events_of_person, side="right") - 1
        bands[events_of_person == 0] = len(_BANDS)
        class_of_person = rank_keys(class_of_person * len(BAND_NAMES) + bands)
    sizes = np.bincount(class_of_person)
    if (sizes < k).any():
        raise ValueError(
            f"class must put at least {k} people into every class of {people or ', '.join(table_names)}; "
            f"{int((sizes < k).sum())} of {len(sizes)} have fewer: make its columns coarser first, such as with "
            "anon.recode."
        )
    trees = read_hierarchies(hierarchies or [])
    refuse_other_columns("hierarchies", trees, cols)
    refuse_other_columns("ladder", read_levels(ladder or []), cols)
    cols = [names.of(name) for name in cols]
    options = LadderOptions(cols, k, trees, ladder)
    classes = class_of_person[person_of_row]
    event_tables = _build_event_tables(table, table_of_row, table_names, columns_of_tables, known, classes, options)
    sensitive_values = None
    if sensitive.sensitive is not None:
        sensitive_values = SensitiveValues.of_column(
            table.column(names.of(sensitive.sensitive)), person_of_row, sensitive
        )
        sensitive_values.refuse_classes(class_of_person)
    del person_column
    if not kept.keep:  # the originals of cols are compared with kept columns only
        table = table.select([TABLE_NAME, *class_columns])  # one at least, for the number of rows
    free_memory()
    level = find_levels(
        event_tables, person_of_row, table_of_row, class_of_person, known, k, sensitive_values, max_suppressed_fraction
    )
    free_memory()
    is_kept = ~is_event
    for events in event_tables:
        is_kept[events.rows] = level[events.rows] < len(events.ladder.steps)
    lost = int((~is_kept).sum())
    if lost > max_suppressed_fraction * int(is_event.sum()) + 1e-6:
        gone = np.bincount(table_of_row[~is_kept], minlength=len(all_names))
        raise ValueError(
            f"{lost} of {int(is_event.sum())} rows would have to be left out ({describe_counts(all_names, gone)}), "
            "more than max_suppressed_fraction; make class coarser, give cols hierarchies, lower known or k, or allow "
            "more."
        )
    _refuse_narrowing(table, event_tables, level, kept, {person.lower(), *map(str.lower, class_columns)})
    texts = _join_texts(event_tables, level, cols, table.num_rows)
    order = make_generator(seed).permutation(np.flatnonzero(is_kept))
    released: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes[order]), values) for name, (codes, values) in texts.items()
    }
    copied = {name.lower() for name in [*(kept.keep or ()), *class_columns]}
    for name in table.column_names:
        if name.lower() in copied:
            column = table.column(name)
            is_coded = pa.types.is_dictionary(column.type)  # an ENUM, which is released as text
            released[name] = (column.cast(column.type.value_type) if is_coded else column).take(pa.array(order))
    released[TABLE_NAME] = pa.array(map(shorten_name, all_names)).take(pa.array(table_of_row[order]))
    if not kept.has(person):
        numbers = make_generator(seed).permutation(len(class_of_person)) + 1
        released[names.of(person)] = pa.array(numbers[person_of_row[order]])
    if bands is not None:
        released[ROW_COUNT] = pa.array(np.array(BAND_NAMES, object)[bands[person_of_row[order]]])
    return pa.table(released)


class _Spelling:
    """Names of columns as the tables spell them: DuckDB tells Ä and ä apart, and not A and a."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name.lower(): name for name in names} | {name: name for name in names}

    def of(self, name: str) -> str:
        """Return the column of this name; of another case only where no column has this spelling."""
        return self._names.get(name) or self._names[name.lower()]


def _build_event_tables(
    table: pa.Table,
    table_of_row: Ints,
    table_names: Sequence[str],
    columns_of_tables: Sequence[Mapping[str, str]],
    known: Sequence[int],
    classes: Ints,
    options: LadderOptions,
) -> list[EventTable]:
    """Build the ladder of each table; columns that it does not have are NULL in all its rows.

    Tables without known events show their values. A column that a table with more known events has too is hidden: the
    date of a lab result would tell that of the visit. With a ladder, a column without any value has its labels too:
    else the first value would change those of all rows.
    """
    event_tables: list[EventTable] = []
    most: dict[str, int] = {}  # the known events of the table that has a column, the largest number
    levels_of_column = read_levels(options.ladder) if options.ladder else None
    for index in sorted(range(len(table_names)), key=lambda index: -known[index]):
        progress.check()
        name = table_names[index]
        rows = np.flatnonzero(table_of_row == index)
        values = table.select(options.cols).take(pa.array(rows))
        in_table = {line["column_name"].lower() for line in columns_of_tables if line["table_name"] == name}
        columns = []
        try:
            for col in options.cols:
                key = col.lower()
                if key in in_table and (levels_of_column is not None or values.column(col).null_count < len(rows)):
                    levels = None if levels_of_column is None else levels_of_column.get(key, [])
                    columns.append(find_column_levels(col, values.column(col), options.trees.get(key), levels))
            if known[index] == 0:
                steps = [(0,) * len(columns)]
            elif options.ladder:
                steps = read_steps(columns, options.ladder)
            else:
                steps = find_steps(columns, classes[rows], options.k)
        except ValueError as error:  # say in refusals of a column whose table it is of
            text = str(error)
            for col in options.cols:
                text = text.replace(f'column "{col}"', f'column "{col}" of {name}')
            raise ValueError(text) from None
        # A hidden column shows its coarsest level, ``*``, at every step; steps that become equal are one.
        least = [
            len(column.levels) - 1 if most.setdefault(column.name, known[index]) > known[index] else 0
            for column in columns
        ]
        steps = list(dict.fromkeys(tuple(map(max, step, least)) for step in steps))
        event_tables.append(EventTable(name, index, rows, columns, build_ladder(columns, steps, len(rows))))
    return event_tables


def _refuse_narrowing(
    table: pa.Table, event_tables: Sequence[EventTable], level: Ints, kept: Kept, allowed: set[str]
) -> None:
    """Refuse a kept column that narrows down the labels of its own table."""
    allowed = allowed | {name.lower() for name in kept.narrowing or ()}
    for events in event_tables:
        shown = level[events.rows] < len(events.ladder.steps)
        rows = events.rows[shown]
        part = table.take(pa.array(rows))
        kept_columns = {
            name: part.column(name)
            for name in table.column_names
            if kept.has(name) and name.lower() not in allowed and part.column(name).null_count < len(rows)
        }
        if kept_columns and len(rows):
            labels = {
                column.name: _read_codes(events, index, level)[shown].astype(np.int64)
                for index, column in enumerate(events.columns)
            }
            originals = {column.name: rank_values(part.column(column.name)) for column in events.columns}
            last = len(events.ladder.steps) - 1
            item = np.choose(np.minimum(level[rows], last), [items[shown] for items in events.ladder.items])
            try:
                refuse_narrowing(originals, labels, kept_columns, item)
            except ValueError as error:
                raise ValueError(f"in {events.name}, {error}") from None


def _read_codes(events: EventTable, index: int, level: Ints) -> Ints32:
    """Return the number of the text that each row of a table shows in one column."""
    last = len(events.ladder.steps) - 1
    levels = [events.columns[index].codes(steps[index]) for steps in events.ladder.steps]
    return np.choose(np.minimum(level[events.rows], last), levels)


def _join_texts(
    event_tables: Sequence[EventTable], level: Ints, cols: Sequence[str], rows: int
) -> dict[str, tuple[Ints32, pa.Array]]:
    """Return the labels of each column: the number of each row's, and the texts."""
    label_of_column = {}
    for name in cols:
        texts: list[str | None] = [None]
        codes = np.zeros(rows, np.int32)
        for events in event_tables:
            for index, column in enumerate(events.columns):
                if column.name == name:
                    codes[events.rows] = _read_codes(events, index, level) + len(texts)
                    texts += column.texts
        label_of_column[name] = codes, pa.array(texts, pa.string())
    return label_of_column
