"""What holds for everybody in a table, and for whom in its release it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, sql_type
from duckanon._core.common.declare import report_rows
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import NOBODY, refuse_too_few
from duckanon._core.encoding.column_split import Reading, split_columns, whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.formulas import found_formulas
from duckanon._core.encoding.offsets import found_offsets
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_sources import whole_people
from duckanon._measure.utility.declared import CONTRADICTIONS
from duckanon._measure.utility.rule_words import Rule, tolerance_of, written_rules
from duckanon._methods.synthesize.implication_rules import Rows
from duckanon._methods.synthesize.implications import found_implications
from duckanon._methods.synthesize.sequence_columns import taken
from duckanon._methods.synthesize.sequence_order import Sequences, order_values, ordering_columns, personal_columns


def contradictions(
    original: pa.Table | None,
    released: pa.Table | None,
    *,
    k: int,
    person: str | None,
    order_by: str | None,
    special: Any,
    categories: Sequence[str] | None,
) -> pa.Table:
    """Count, for every rule that all people of a table keep, the rows of a release that break it.

    Raises:
        ValueError: For tables without rows, and a release whose columns hold other things than the table's.
    """
    if original is None or released is None:
        raise ValueError("original and released must have rows.")
    (table, people), (made, others) = (whole_people(one, person) for one in (original, released))
    refuse_too_few(k, table.num_rows, people)
    names = table.column_names
    named = None if categories is None else known_columns("categories", categories, names)
    columns = split_columns(table, people, Reading(k, special_choices(special, names), named, "category"))
    offsets = found_offsets(columns, people, k, 0)
    follow = [formula.column for formula in offsets]
    formulas = found_formulas(columns, follow)
    computed = [formula.column for formula in formulas]
    found = found_implications(columns, computed, people, k, 0, follow=follow)
    before, after = _rows(columns, table), _rows(columns, made)
    rows = list(_counted(written_rules(columns, found, [*offsets, *formulas]), columns, before, after))
    if people is not None and others is not None:
        personal = personal_columns(table, np.unique(people, return_inverse=True)[1].astype(np.int64))
        ordering = ordering_columns(table, personal, order_by)
        events = [index for index, name in enumerate(names) if name not in personal]
        if ordering:
            order = [_order(one, ordering, whose) for one, whose in ((table, people), (made, others))]
            pair = [_followed(events, one, own) for one, own in zip((before, after), order, strict=True)]
            both = [
                taken(columns[index], own, f"{prefix}{names[index]}")
                for own, prefix in ((order[0].before, "the last "), (order[0].later, ""))
                for index in events
            ]
            given = range(len(events))
            found = found_implications(both, [], people[order[0].later], k, 0, given)
            rows += _counted(written_rules(both, found, []), both, *pair)
    rows.sort(key=lambda row: (-(row["broken_fraction"] or 0.0), row["rule"]))
    return report_rows(rows, CONTRADICTIONS.schema)


def _counted(
    rules: Iterable[Rule], columns: Sequence[ColumnParts], before: Rows, after: Rows
) -> Iterator[dict[str, Any]]:
    """Count the rows that break rules; a formula that explains only nearly all is none."""
    for rule in rules:
        progress.check()
        tolerance = tolerance_of(columns[rule.column], before.numbers.get(rule.column, np.zeros(0)))
        broken_before = np.count_nonzero(rule.broken(before, tolerance))
        if broken_before:
            continue
        about, broken = (np.count_nonzero(one) for one in (rule.premise(after), rule.broken(after, tolerance)))
        yield {
            "kind": rule.kind,
            "rule": rule.words,
            "column_name": columns[rule.column].name,
            "other_column": columns[rule.other].name,
            "original_rows": int(np.count_nonzero(rule.premise(before))),
            "original_broken": broken_before,
            "released_rows": int(about),
            "released_broken": int(broken),
            "broken_fraction": broken / about if about else None,
        }


def _order(table: pa.Table, ordering: Sequence[str], people: Ints) -> Sequences:
    """Order the rows of people; those of nobody follow nothing."""
    alone = people.max(initial=0) + 1 + np.arange(len(people))
    whose = np.where(people == NOBODY, alone, people)
    return Sequences.of(whose, order_values(table, ordering), 1, np.random.default_rng(0))


def _followed(events: Sequence[int], rows: Rows, order: Sequences) -> Rows:
    """Return rows beside those before them: the columns of the last row come first."""
    both = [(index, own) for own in (order.before, order.later) for index in events]
    codes = {place: rows.codes[index][own] for place, (index, own) in enumerate(both)}
    numbers = {place: rows.numbers[index][own] for place, (index, own) in enumerate(both) if index in rows.numbers}
    return Rows(codes, numbers)


def _rows(columns: Sequence[ColumnParts], table: pa.Table) -> Rows:
    """Read a table by the choices of the original: -1 for others, which no rule is about."""
    codes: dict[int, Ints] = {}
    numbers: dict[int, Floats] = {}
    for index, column in enumerate(columns):
        array = whole(table.column(column.name))
        if column.regular is None:
            codes[index] = _codes(column, array)
            continue
        try:
            values = doubles(cleaned(array.cast(column.type)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ValueError(
                f'column "{column.name}" of released must hold {sql_type(column.type)}, as original does; got '
                f"{sql_type(array.type)}."
            ) from None
        code = np.full(len(values), len(column.outcomes), np.int64)
        code[np.isnan(values)] = -1
        for place, outcome in enumerate(column.outcomes):
            code[np.isnan(values) if outcome is None else values == float(outcome)] = place
        codes[index] = code
        numbers[index] = np.where(code == len(column.outcomes), values, np.nan)
    return Rows(codes, numbers)


def _codes(column: ColumnParts, array: pa.Array) -> Ints:
    known = {outcome: place for place, outcome in enumerate(column.outcomes)}
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    coded = plain.dictionary_encode(null_encoding="encode")
    of_value = np.array([known.get(value, -1) for value in coded.dictionary.to_pylist()], np.int64)
    return np.asarray(of_value[coded.indices.to_numpy()], np.int64)
