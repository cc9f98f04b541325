"""The table that ``anon.recode`` releases: in every class the labels that its own people need, and no coarser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Ints, is_number, is_time, run_starts
from duckanon._core.common.codes import encode, ranks_of
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.parameters import Kept, Sensitive, column_weights, refuse_other_columns
from duckanon._core.common.people import label_names, person_index, person_numbers, refuse_too_few
from duckanon._core.numbers.ends import HIGH
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.generalize.hierarchies import HierarchyRow, hierarchy_tables
from duckanon._methods.recode.classes import find_classes, search_order
from duckanon._methods.recode.coding import Coding
from duckanon._methods.recode.diverse import find_diverse_classes
from duckanon._methods.recode.encode import encoded
from duckanon._methods.recode.promises import Diversity, kept_rows, promise

ROUNDS = {"quick": 0, "default": 60, "thorough": 150}
"""Rounds that improve classes, by effort."""

MOST_VALUES = 256
"""Different values of a sensitive column: every cut and every class is judged by a count of each."""


def recode(
    tables: list[pa.Table],
    *,
    cols: Sequence[str],
    k: int,
    hierarchies: Sequence[HierarchyRow] | None,
    sensitive: Sensitive,
    weights: Any,
    person: str | None,
    kept: Kept,
    by: Sequence[str] | None,
    max_suppressed_fraction: float,
    effort: str,
    output: str,
    whole: Mapping[str, Coding] | None = None,
) -> pa.Table:
    """Put the rows of a table into classes of at least k people and return them with their classes' labels.

    Options are as `RECODE` declares them, `hierarchies` rows of column_name (lower case), leaf, level, label. The table
    is taken out of its list, so that its memory can be freed; `whole` has the codings of columns of a larger table that
    it is a part of, where they are known. The rows come in random order; recoded columns as dictionaries, intervals as
    two of them, of which the second begins with `HIGH`.
    """
    table = tables.pop()
    wanted = {name.lower() for name in cols}
    names = [name for name in table.column_names if name.lower() in wanted]
    trees = hierarchy_tables(hierarchies or [])
    refuse_other_columns("hierarchies", trees, names)
    weight_of = dict(zip(names, column_weights(weights, names, cols), strict=True))
    people, allowed = None, {name.lower() for name in [*(kept.narrowing or []), *(by or [])]}
    if person is not None:
        index = person_index(person, table.column_names, names)
        people = person_numbers(table.column(index))
        allowed.add(person.lower())
        table = table if kept.has(person) else table.remove_column(index)
    refuse_too_few(k, table.num_rows, people)
    groups = _groups(table, label_names(table, by)) if by else None
    diversity = None
    if sensitive.sensitive is not None:
        places = {name.lower(): place for place, name in enumerate(table.column_names)}
        if sensitive.sensitive.lower() not in places:
            raise ValueError(f'sensitive must be one column of the table; got "{sensitive.sensitive}".')
        index = places[sensitive.sensitive.lower()]
        diversity = _diversity(table.column(index), people, sensitive)
        table = table if kept.has(sensitive.sensitive) else table.remove_column(index)
    is_kept = kept_rows(groups, people, k, diversity, table.num_rows, max_suppressed_fraction)
    if not is_kept.all():
        table = table.filter(pa.array(is_kept))
        people = None if people is None else people[is_kept]
        groups = None if groups is None else np.unique(groups[is_kept], return_inverse=True)[1].reshape(-1)
        diversity = None if diversity is None else diversity.of_rows(is_kept, people)
    codings, known = [], whole or {}
    for name in names:
        progress.check()
        column = table.column(name)
        codings.append(
            known[name].of(column)
            if name in known
            else encoded(name, column, k, people, trees.get(name.lower()), weight_of[name])
        )
        del column
    others = {name: table.column(name) for name in table.column_names if name not in names}
    asked = {name: column for name, column in others.items() if name.lower() not in allowed}
    originals = {name: ranks_of(table.column(name)) for name in names} if asked else {}
    del table  # a gigabyte of text may go before the search begins, to the system and not only to Arrow
    pa.default_memory_pool().release_unused()
    classes = _classes(codings, groups, people, k, ROUNDS[effort], diversity)
    promise(classes, groups, people, k, diversity)
    if asked:
        _refuse_narrowing(originals, asked, codings, classes)
    return _released(others, codings, classes, output)


def _classes(
    codings: Sequence[Coding],
    groups: Ints | None,
    people: Ints | None,
    k: int,
    rounds: int,
    diversity: Diversity | None,
) -> Ints:
    """Find the class of each row, in an order of the rows that their codes decide.

    So a value that changes within its part, or beyond an end that k people decide, changes nobody else's class.
    """
    columns = [coding.column for coding in codings]
    is_diverse = diversity is not None and diversity.rule.is_asked
    told = diversity.values if diversity is not None and is_diverse else None
    order = search_order(columns, [coding.codes for coding in codings], groups, people, told)
    codes = [coding.codes[order] for coding in codings]
    groups, people = (None if numbers is None else numbers[order] for numbers in (groups, people))
    classes = np.empty(len(order), np.int64)
    if diversity is None or not is_diverse:
        classes[order] = find_classes(columns, codes, groups, people, k, rounds)
    else:
        diversity = diversity._replace(values=diversity.values[order])
        classes[order] = find_diverse_classes(columns, codes, groups, people, k, rounds, diversity)
    return classes


def _groups(table: pa.Table, labels: Sequence[str]) -> Ints:
    """Give numbers to the groups of rows with the same labels."""
    group = np.zeros(table.num_rows, np.int64)
    for codes, count in encode(table.select(labels)):
        group = np.unique(group * count + codes, return_inverse=True)[1].reshape(-1)
    return group


def _diversity(column: pa.ChunkedArray, people: Ints | None, asked: Sensitive) -> Diversity:
    """Return what is asked of the sensitive column."""
    if pa.types.is_nested(column.type):
        raise ValueError("sensitive must name a column of single values; got one of a nested type.")
    values = ranks_of(column) - 1
    is_ordered = is_number(column.type) or is_time(column.type) or pa.types.is_boolean(column.type)
    most = int(values.max(initial=0)) + 1
    if most > MOST_VALUES and (asked.l > 1 or asked.t is not None):
        raise ValueError(
            f"sensitive must have at most {MOST_VALUES} different values; got {most}: make it coarser first."
        )
    rule = DiversityRule(asked.l, asked.l_kind, asked.c, asked.t, bool(is_ordered))
    return Diversity(values, np.ones(most) / most, rule).of_rows(np.ones(len(values), np.bool_), people)


def _refuse_narrowing(
    originals: Mapping[str, Ints], kept: Mapping[str, pa.ChunkedArray], codings: Sequence[Coding], classes: Ints
) -> None:
    """Refuse a kept column that narrows down what the labels say."""
    order, starts, class_of_row = _by_class(classes)
    labels = {}
    for coding in codings:
        of_class = coding.texts(coding.codes[order], starts).indices.fill_null(-1).to_numpy(zero_copy_only=False)
        labels[coding.name] = of_class.astype(np.int64)[class_of_row] + 1
    refuse_narrowing(originals, labels, kept, classes)


def _by_class(classes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the rows class by class, where each class begins among them, and the number of each row's class."""
    order = np.argsort(classes, kind="stable")
    starts = run_starts(classes[order])
    class_of_row = np.empty(len(order), np.int64)
    class_of_row[order] = np.cumsum(np.isin(np.arange(len(order)), starts)) - 1
    return order, starts, class_of_row


def _released(kept: Mapping[str, pa.ChunkedArray], codings: Sequence[Coding], classes: Ints, output: str) -> pa.Table:
    """Return the rows in random order, with the labels of their classes."""
    order, starts, class_of_row = _by_class(classes)
    shuffled = generator(None).permutation(len(order))
    released: dict[str, Any] = {}
    taken = pa.array(class_of_row[shuffled])
    for coding in codings:
        progress.check()
        in_order = coding.codes[order]
        if output == "text":
            released[coding.name] = coding.texts(in_order, starts).take(taken)
        else:
            names = (coding.name, HIGH + coding.name)
            for name, ends in zip(names, coding.values(in_order, starts), strict=False):
                released[name] = ends.take(taken)
    for name, column in kept.items():
        is_coded = pa.types.is_dictionary(column.type)  # an ENUM, which is released as text
        released[name] = (column.cast(column.type.value_type) if is_coded else column).take(pa.array(shuffled))
    return pa.table(released)
