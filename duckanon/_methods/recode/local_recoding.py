"""``anon.recode``: classes of k people, each with the labels that its own people need, and no coarser.

Columns become codes (`coding`), rows of rare codes are put into classes (`classes`), every class is counted again, and
labels are written from the codes of its rows. The search sees codes only, in an order that they alone decide: a value
that changes within its part, or beyond an end that k people share, changes nobody else's class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Ints, find_run_starts, is_number, is_time
from duckanon._core.common.codes import encode_columns, rank_values
from duckanon._core.common.diversity import DiversityRule
from duckanon._core.common.parameters import Kept, Sensitive, read_weights, refuse_other_columns
from duckanon._core.common.people import find_person_column, number_people, refuse_large_k, spell_label_columns
from duckanon._core.common.row_keys import order_keys, pack_columns, rank_keys
from duckanon._core.numbers.ends import HIGH_PREFIX
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.generalize.hierarchies import HierarchyRow, read_hierarchies
from duckanon._methods.recode.classes import (
    Diversity,
    find_classes,
    find_diverse_classes,
    order_rows,
    select_rows,
    verify_classes,
)
from duckanon._methods.recode.coding import LabelCoding, encode_column
from duckanon._methods.recode.column_losses import CodedRows

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
    whole: Mapping[str, LabelCoding] | None = None,
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
    trees = read_hierarchies(hierarchies or [])
    refuse_other_columns("hierarchies", trees, names)
    weight_of = dict(zip(names, read_weights(weights, names, cols), strict=True))
    people, allowed = None, {name.lower() for name in [*(kept.narrowing or []), *(by or [])]}
    if person is not None:
        index = find_person_column(person, table.column_names, names)
        people = number_people(table.column(index))
        allowed.add(person.lower())
        table = table if kept.has(person) else table.remove_column(index)
    refuse_large_k(k, table.num_rows, people)
    groups = None
    if by:
        labels = encode_columns(table.select(spell_label_columns(table, by)))
        groups = rank_keys(pack_columns(labels, table.num_rows)[0])
    diversity = None
    if sensitive.sensitive is not None:
        lower_names = [name.lower() for name in table.column_names]
        if sensitive.sensitive.lower() not in lower_names:
            raise ValueError(f'sensitive must be one column of the table; got "{sensitive.sensitive}".')
        index = lower_names.index(sensitive.sensitive.lower())
        diversity = _read_diversity(table.column(index), people, sensitive)
        table = table if kept.has(sensitive.sensitive) else table.remove_column(index)
    is_kept = select_rows(table.num_rows, groups, people, k, diversity, max_suppressed_fraction)
    if not is_kept.all():
        table = table.filter(pa.array(is_kept))
        people = None if people is None else people[is_kept]
        groups = None if groups is None else rank_keys(groups[is_kept])
        diversity = None if diversity is None else diversity.of_rows(is_kept, people)
    codings = []
    for name in names:
        progress.check()
        if whole and name in whole:
            codings.append(whole[name].of(table.column(name)))
        else:
            tree = trees.get(name.lower())
            codings.append(encode_column(name, table.column(name), k, people, tree, weight_of[name]))
    kept_columns = {name: table.column(name) for name in table.column_names if name not in names}
    narrowing = {name: column for name, column in kept_columns.items() if name.lower() not in allowed}
    originals = {name: rank_values(table.column(name)) for name in names} if narrowing else {}
    del table  # a gigabyte of text may go before the search begins, to the system and not only to Arrow
    pa.default_memory_pool().release_unused()
    columns, codes = [coding.column for coding in codings], [coding.codes for coding in codings]
    rows = CodedRows(columns, codes, groups, people, None if diversity is None else diversity.values)
    order = order_rows(rows)
    classes = np.empty(len(order), np.int64)
    if diversity is None:
        classes[order] = find_classes(rows.take(order), k, ROUNDS[effort])
    else:
        in_order = diversity._replace(values=diversity.values[order])
        classes[order] = find_diverse_classes(rows.take(order), k, ROUNDS[effort], in_order)
    verify_classes(classes, groups, people, k, diversity)
    if narrowing:
        _refuse_narrowing(originals, narrowing, codings, classes)
    return _release_rows(kept_columns, codings, classes, output)


def _read_diversity(column: pa.ChunkedArray, people: Ints | None, options: Sensitive) -> Diversity | None:
    """Return the conditions on the sensitive column; None where there are none."""
    if pa.types.is_nested(column.type):
        raise ValueError("sensitive must name a column of single values; got one of a nested type.")
    values = rank_values(column) - 1
    is_ordered = is_number(column.type) or is_time(column.type) or pa.types.is_boolean(column.type)
    most = int(values.max(initial=0)) + 1
    if most > MOST_VALUES and (options.l > 1 or options.t is not None):
        raise ValueError(
            f"sensitive must have at most {MOST_VALUES} different values; got {most}: make it coarser first."
        )
    rule = DiversityRule(options.l, options.l_kind, options.c, options.t, bool(is_ordered))
    if not rule.is_active:
        return None
    return Diversity(values, np.ones(most) / most, rule).of_rows(np.ones(len(values), np.bool_), people)


def _refuse_narrowing(
    originals: Mapping[str, Ints], kept: Mapping[str, pa.ChunkedArray], codings: Sequence[LabelCoding], classes: Ints
) -> None:
    """Refuse a kept column that narrows down what the labels say."""
    order, starts, class_of_row = _sort_by_class(classes)
    labels = {}
    for coding in codings:
        label_of_class = coding.texts(coding.codes[order], starts).indices.fill_null(-1)
        labels[coding.name] = label_of_class.to_numpy(zero_copy_only=False).astype(np.int64)[class_of_row] + 1
    refuse_narrowing(originals, labels, kept, classes)


def _sort_by_class(classes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the rows class by class, where each class begins among them, and the number of each row's class."""
    order, ordered = order_keys(classes)
    return order, find_run_starts(ordered), rank_keys(classes)


def _release_rows(
    kept: Mapping[str, pa.ChunkedArray], codings: Sequence[LabelCoding], classes: Ints, output: str
) -> pa.Table:
    """Return the rows in random order, with the labels of their classes."""
    order, starts, class_of_row = _sort_by_class(classes)
    shuffled = make_generator(None).permutation(len(order))
    released: dict[str, Any] = {}
    taken = pa.array(class_of_row[shuffled])
    for coding in codings:
        progress.check()
        in_order = coding.codes[order]
        if output == "text":
            released[coding.name] = coding.texts(in_order, starts).take(taken)
        else:
            names = (coding.name, HIGH_PREFIX + coding.name)
            for name, ends in zip(names, coding.values(in_order, starts), strict=False):
                released[name] = ends.take(taken)
    for name, column in kept.items():
        is_coded = pa.types.is_dictionary(column.type)  # an ENUM, which is released as text
        released[name] = (column.cast(column.type.value_type) if is_coded else column).take(pa.array(shuffled))
    return pa.table(released)
