"""The rows that ``anon.release_linked`` returns: those of several tables, with labels that k people share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Ints, Ints32
from duckanon._core.common.codes import ranks_of
from duckanon._core.common.memory import give_back
from duckanon._core.common.parameters import Kept, refuse_other_columns
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.generalize.hierarchies import HierarchyRow, hierarchy_tables
from duckanon._methods.linked.class_levels import Part, levels_by_class
from duckanon._methods.linked.column_levels import column_levels
from duckanon._methods.linked.declared import ROW_COUNT, TABLE_NAME, SensitiveLimits, released_name
from duckanon._methods.linked.dense_numbers import ranked
from duckanon._methods.linked.ladders import asked_levels, found_steps, given_steps, hidden_steps, ladder_of
from duckanon._methods.linked.people import BAND_NAMES, bands_of, classes_of, counts_of, parts_of
from duckanon._methods.linked.sensitive_values import SensitiveValues


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
    give_back()  # what it took to collect the rows; and so on after each step that takes much
    table = tables.pop()
    names = _Spelling(table.column_names)
    whose = table.column(names.of(person))
    all_names = [*table_names, *([people] if people else [])]
    part_of = parts_of(table.column(TABLE_NAME), all_names)
    if whose.null_count:
        nobodys = np.bincount(part_of[np.asarray(whose.is_null())], minlength=len(all_names))
        raise ValueError(
            f'person must say whose row it is in every row; column "{names.of(person)}" is NULL in '
            f"{counts_of(all_names, nobodys)}."
        )
    person_of = ranks_of(whose) - 1
    class_columns = [names.of(name) for name in class_columns or ()]
    own_class = classes_of(table, class_columns, person_of, part_of, all_names, people)
    is_event = part_of < len(table_names)
    bands = bands_of(person_of[is_event], len(own_class)) if counts == "bands" else None
    if bands is not None:
        own_class = ranked(own_class * len(BAND_NAMES) + bands)
    sizes = np.bincount(own_class)
    if (sizes < k).any():
        raise ValueError(
            f"class must put at least {k} people into every class of {people or ', '.join(table_names)}; "
            f"{int((sizes < k).sum())} of {len(sizes)} have fewer: make its columns coarser first, such as with "
            "anon.recode."
        )
    trees = hierarchy_tables(hierarchies or [])
    refuse_other_columns("hierarchies", trees, cols)
    asked = asked_levels(ladder) if ladder else None
    refuse_other_columns("ladder", asked or {}, cols)
    cols = [names.of(one) for one in cols]
    parts = _parts(table, part_of, table_names, columns_of_tables, cols, known, trees, ladder, own_class[person_of], k)
    told = None
    if sensitive.sensitive is not None:
        told = SensitiveValues.of_column(table.column(names.of(sensitive.sensitive)), person_of, sensitive)
        told.refuse_classes(own_class)
    del whose
    if not kept.keep:  # the originals of cols are compared with kept columns only
        table = table.select([TABLE_NAME, *class_columns])  # one at least, for the number of rows
    give_back()
    level = levels_by_class(parts, person_of, part_of, own_class, known, k, told, max_suppressed_fraction)
    give_back()
    is_kept = ~is_event
    for part in parts:
        is_kept[part.rows] = level[part.rows] < len(part.ladder.steps)
    lost = int((~is_kept).sum())
    if lost > max_suppressed_fraction * int(is_event.sum()) + 1e-6:
        gone = np.bincount(part_of[~is_kept], minlength=len(all_names))
        raise ValueError(
            f"{lost} of {int(is_event.sum())} rows would have to be left out ({counts_of(all_names, gone)}), more than "
            "max_suppressed_fraction; make class coarser, give cols hierarchies, lower known or k, or allow more."
        )
    _refuse_narrowing(table, parts, level, kept, {person.lower(), *(one.lower() for one in class_columns)})
    texts = _texts(parts, level, cols, table.num_rows)
    order = generator(seed).permutation(np.flatnonzero(is_kept))
    released = _released(table, order, texts, [*(kept.keep or ()), *class_columns])
    released[TABLE_NAME] = pa.array(map(released_name, all_names)).take(pa.array(part_of[order]))
    if not kept.has(person):
        numbers = generator(seed).permutation(len(own_class)) + 1
        released[names.of(person)] = pa.array(numbers[person_of[order]])
    if bands is not None:
        released[ROW_COUNT] = pa.array(np.array(BAND_NAMES, object)[bands[person_of[order]]])
    return pa.table(released)


class _Spelling:
    """Names of columns as the tables spell them: DuckDB tells Ä and ä apart, and not A and a."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name.lower(): name for name in names} | {name: name for name in names}

    def of(self, name: str) -> str:
        """Return the column that is called so, whatever its case where none is spelled so."""
        return self._names.get(name) or self._names[name.lower()]


def _released(
    table: pa.Table, order: Ints, texts: Mapping[str, tuple[Ints32, pa.Array]], others: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of the rows that are released, in their order."""
    whole = {name.lower() for name in others}
    released: dict[str, Any] = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes[order]), values) for name, (codes, values) in texts.items()
    }
    for name in table.column_names:
        if name.lower() in whole:
            column = table.column(name)
            is_coded = pa.types.is_dictionary(column.type)  # an ENUM, which is released as text
            released[name] = (column.cast(column.type.value_type) if is_coded else column).take(pa.array(order))
    return released


def _parts(
    table: pa.Table,
    part_of: Ints,
    table_names: Sequence[str],
    columns_of_tables: Sequence[Mapping[str, str]],
    cols: Sequence[str],
    known: Sequence[int],
    trees: Mapping[str, Any],
    ladder: Sequence[Mapping[str, str | None]] | None,
    classes: Ints,
    k: int,
) -> list[Part]:
    """Return the labels of each table; columns that it does not have are NULL in all its rows.

    Of tables of which nothing is known, the values are shown. A column that a table with more known events has too is
    not shown: the date of a lab result would tell that of the visit. With a ladder, a column without any value has its
    labels too: else the first value would change those of all rows.
    """
    parts: list[Part] = []
    most: dict[str, int] = {}  # the known events of the table that has a column, the largest number
    asked = asked_levels(ladder) if ladder else None
    for place in sorted(range(len(table_names)), key=lambda place: -known[place]):
        progress.check()
        rows = np.flatnonzero(part_of == place)
        own = table.select(cols).take(pa.array(rows))
        has = {one["column_name"].lower() for one in columns_of_tables if one["table_name"] == table_names[place]}
        columns = []
        for name in cols:
            if name.lower() in has and (asked is not None or own.column(name).null_count < len(rows)):
                with _naming(table_names[place], name):
                    of_column = None if asked is None else asked.get(name.lower(), [])
                    columns.append(column_levels(name, own.column(name), trees.get(name.lower()), of_column))
        if known[place] == 0:
            steps = [(0,) * len(columns)]
        elif ladder:
            with _naming(table_names[place], *cols):
                steps = given_steps(columns, ladder)
        else:
            steps = found_steps(columns, classes[rows], k)
        hidden = [most.setdefault(one.name, known[place]) > known[place] for one in columns]
        steps = hidden_steps(
            steps, [len(one.levels) - 1 if hide else 0 for one, hide in zip(columns, hidden, strict=True)]
        )
        parts.append(Part(table_names[place], place, rows, columns, ladder_of(columns, steps, len(rows))))
    return parts


@contextmanager
def _naming(table: str, *columns: str) -> Iterator[None]:
    """Say in refusals of a column whose table it is of."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for column in columns:
            text = text.replace(f'column "{column}"', f'column "{column}" of {table}')
        raise ValueError(text) from None


def _refuse_narrowing(table: pa.Table, parts: Sequence[Part], level: Ints, kept: Kept, allowed: set[str]) -> None:
    """Refuse a kept column that narrows down the labels of its own table."""
    allowed = allowed | {name.lower() for name in kept.narrowing or ()}
    for part in parts:
        shown = level[part.rows] < len(part.ladder.steps)
        rows = part.rows[shown]
        own = table.take(pa.array(rows))
        others = {
            name: own.column(name)
            for name in table.column_names
            if kept.has(name) and name.lower() not in allowed and own.column(name).null_count < len(rows)
        }
        if others and len(rows):
            labels = {
                column.name: _shown(part, place, level)[shown].astype(np.int64)
                for place, column in enumerate(part.columns)
            }
            originals = {column.name: ranks_of(own.column(column.name)) for column in part.columns}
            item = np.choose(
                np.minimum(level[rows], len(part.ladder.steps) - 1), [one[shown] for one in part.ladder.items]
            )
            try:
                refuse_narrowing(originals, labels, others, item)
            except ValueError as error:
                raise ValueError(f"in {part.name}, {error}") from None


def _shown(part: Part, place: int, level: Ints) -> Ints32:
    """Return the number of the text that each row of a table shows in one column."""
    last = len(part.ladder.steps) - 1
    levels = [part.columns[place].codes(steps[place]) for steps in part.ladder.steps]
    return np.choose(np.minimum(level[part.rows], last), levels)


def _texts(parts: Sequence[Part], level: Ints, cols: Sequence[str], rows: int) -> dict[str, tuple[Ints32, pa.Array]]:
    """Return the labels of each column: the number of each row's, and the texts."""
    found = {}
    for name in cols:
        texts: list[str | None] = [None]
        codes = np.zeros(rows, np.int32)
        for part in parts:
            for place, column in enumerate(part.columns):
                if column.name == name:
                    codes[part.rows] = _shown(part, place, level) + len(texts)
                    texts += column.texts
        found[name] = codes, pa.array(texts, pa.string())
    return found
