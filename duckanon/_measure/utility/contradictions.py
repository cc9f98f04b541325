"""What holds for everybody in a table, and for whom in its release it does not.

Rules of a table in words, and the rows that they are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, sql_type
from duckanon._core.common.declare import report_rows
from duckanon._core.common.names import match_columns
from duckanon._core.common.people import NOBODY, refuse_large_k
from duckanon._core.encoding.arrow import is_moment
from duckanon._core.encoding.column_split import SplitOptions, clean_floats, join_chunks, read_special, split_columns
from duckanon._core.encoding.formulas import Formula, find_formulas, find_offsets
from duckanon._core.encoding.parts import ColumnParts, read_doubles
from duckanon._core.encoding.whole_sources import read_people_apart
from duckanon._measure.utility.declared import CONTRADICTIONS
from duckanon._methods.synthesize.implications import (
    AllowedPairs,
    AllowedRanges,
    Implications,
    OrderRule,
    RuleRows,
    find_implications,
)
from duckanon._methods.synthesize.sequence_columns import (
    Sequences,
    find_ordering_columns,
    find_personal_columns,
    read_order,
    take_rows,
)

_SHOWN = 3  # choices that a rule lists
_NOTHING = 1e-6  # a constant that no formula names
_DAY = 86_400_000  # milliseconds


class Rule(NamedTuple):
    """A rule.

    Attributes:
        kind: ``excluded``, ``limit``, ``order`` or ``formula``.
        words: The rule as a sentence.
        column, other: The column that the rule is about, and the one that it depends on.
        source: The rule itself.
        choice: The choice that it begins with, where it does.
    """

    kind: str
    words: str
    column: int
    other: int
    source: AllowedPairs | AllowedRanges | OrderRule | Formula
    choice: int = -1

    def premise(self, rows: RuleRows) -> Bools:
        """Tell which rows a rule is about."""
        if isinstance(self.source, AllowedPairs):
            return np.asarray((rows.codes[self.other] == self.choice) & (rows.codes[self.column] >= 0))
        if isinstance(self.source, AllowedRanges):
            return np.asarray((rows.codes[self.other] == self.choice) & ~np.isnan(rows.numbers[self.column]))
        if isinstance(self.source, OrderRule):
            return ~np.isnan(rows.numbers[self.column]) & ~np.isnan(rows.numbers[self.other])
        is_known = ~np.isnan(rows.numbers[self.column])
        for index in self.source.sources:
            is_known &= ~np.isnan(rows.numbers[index])
        return is_known

    def is_broken(self, rows: RuleRows, tolerance: float) -> Bools:
        """Tell which rows break a rule; a formula by more than a tolerance."""
        if isinstance(self.source, Formula):
            computed = self.source.compute([rows.numbers[index] for index in self.source.sources])
            return self.premise(rows) & (np.abs(computed - rows.numbers[self.column]) > tolerance)
        return self.premise(rows) & self.source.is_broken(rows)


def write_rules(
    columns: Sequence[ColumnParts], implications: Implications, formulas: Sequence[Formula]
) -> Iterator[Rule]:
    """Write rules in words: they name values that at least k people stand behind, and nobody's alone."""
    for pair in implications.pairs:
        for choice in np.flatnonzero(~pair.allowed.all(axis=1)).tolist():
            excluded = [_is(columns[pair.second], code) for code in np.flatnonzero(~pair.allowed[choice]).tolist()]
            more = f" or {len(excluded) - _SHOWN} more" if len(excluded) > _SHOWN else ""
            words = f"if {_is(columns[pair.first], choice)}, never {' or '.join(excluded[:_SHOWN])}{more}"
            yield Rule("excluded", words, pair.second, pair.first, pair, choice)
    for limits in implications.ranges:
        for choice in np.flatnonzero(np.isfinite(limits.low) | np.isfinite(limits.high)).tolist():
            number = columns[limits.number]
            ends = [
                f"{side} {_write_number(float(end[choice]), number.type)}"
                for side, end in (("above", limits.low), ("below", limits.high))
                if np.isfinite(end[choice])
            ]
            words = f"if {_is(columns[limits.column], choice)}, {number.name} is {' and '.join(ends)}"
            yield Rule("limit", words, limits.number, limits.column, limits, choice)
    for order in implications.ordered:
        words = f"{columns[order.first].name} is at most {columns[order.second].name}"
        words += _constant(-order.offset, columns[order.second].type)
        yield Rule("order", words, order.first, order.second, order)
    for formula in formulas:
        yield Rule("formula", _formula(columns, formula), formula.column, formula.sources[0], formula)


def _is(column: ColumnParts, code: int) -> str:
    if code == len(column.outcomes):
        return f"{column.name} has a regular number" if column.outcomes else f"{column.name} has a number"
    value: Any = column.outcomes[code]
    if value is None:
        return f"{column.name} is NULL"
    quoted = f"'{value}'" if isinstance(value, str) else str(value)
    return f"{column.name} is {quoted}"


def _write_number(number: float, type_: pa.DataType) -> str:
    if not is_moment(type_):
        return f"{number:g}"
    whole = pa.array([round(number)], pa.int32() if type_.bit_width == 32 else pa.int64())
    return str(whole.cast(type_)[0].as_py())


def _formula(columns: Sequence[ColumnParts], formula: Formula) -> str:
    column, names = columns[formula.column], [columns[index].name for index in formula.sources]
    if formula.logged:
        factors = [f"{name}^{factor:g}" for name, factor in zip(names, formula.factors, strict=True)]
        return f"{column.name} is {np.exp(formula.constant):.4g} * {' * '.join(factors)}"
    terms = [
        name if factor == 1 else f"{factor:g} * {name}" for name, factor in zip(names, formula.factors, strict=True)
    ]
    constant = formula.constant if formula.factors == (1.0,) else float(f"{formula.constant:.4g}")
    return f"{column.name} is {' + '.join(terms)}{_constant(constant, column.type)}"


def _constant(constant: float, type_: pa.DataType) -> str:
    """Write what is added to a number, or to a date."""
    if abs(constant) <= _NOTHING:
        return ""
    written: object = f"{abs(constant):.9g}"
    if pa.types.is_date(type_):
        written = f"{abs(constant) / (_DAY if type_.bit_width == 64 else 1):g} days"
    elif is_moment(type_):
        unit = pa.duration(type_.unit)
        written = pa.scalar(round(abs(constant)), pa.int64()).cast(unit).as_py()
    return f" {'+' if constant > 0 else '-'} {written}"


def tolerance_of(column: ColumnParts, numbers: Floats) -> float:
    """Return how far a computed number may be from one that is rounded as a column is."""
    known = np.abs(numbers[~np.isnan(numbers)])
    decimals = column.regular.decimals if column.regular is not None and pa.types.is_floating(column.type) else 0
    digits = 1e-9 if decimals is None else 10.0**-decimals
    return float(digits + 1e-6 * known.max(initial=0.0))


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
    (table, people), (release, released_people) = (read_people_apart(one, person) for one in (original, released))
    refuse_large_k(k, table.num_rows, people)
    names = table.column_names
    named = None if categories is None else match_columns("categories", categories, names)
    columns = split_columns(table, people, SplitOptions(k, read_special(special, names), named, "category"))
    offsets = find_offsets(columns, people, k, 0)
    follow = [formula.column for formula in offsets]
    formulas = find_formulas(columns, follow)
    computed = [formula.column for formula in formulas]
    implications = find_implications(columns, computed, people, k, 0, follow=follow)
    before, after = _rows(columns, table), _rows(columns, release)
    rows = list(_count_breaks(write_rules(columns, implications, [*offsets, *formulas]), columns, before, after))
    if people is not None and released_people is not None:
        personal = find_personal_columns(table, np.unique(people, return_inverse=True)[1].astype(np.int64))
        ordering = find_ordering_columns(table, personal, order_by)
        events = [index for index, name in enumerate(names) if name not in personal]
        if ordering:
            order = [_order(one, ordering, whose) for one, whose in ((table, people), (release, released_people))]
            pair = [_pair_rows(events, one, own) for one, own in zip((before, after), order, strict=True)]
            both = [
                take_rows(columns[index], places, f"{prefix}{names[index]}")
                for places, prefix in ((order[0].before, "the last "), (order[0].later, ""))
                for index in events
            ]
            positions = range(len(events))
            implications = find_implications(both, [], people[order[0].later], k, 0, positions)
            rows += _count_breaks(write_rules(both, implications, []), both, *pair)
    rows.sort(key=lambda row: (-(row["broken_fraction"] or 0.0), row["rule"]))
    return report_rows(rows, CONTRADICTIONS.schema)


def _count_breaks(
    rules: Iterable[Rule], columns: Sequence[ColumnParts], before: RuleRows, after: RuleRows
) -> Iterator[dict[str, Any]]:
    """Count the rows that break rules; a formula that explains only nearly all is none."""
    for rule in rules:
        progress.check()
        tolerance = tolerance_of(columns[rule.column], before.numbers.get(rule.column, np.zeros(0)))
        broken_before = np.count_nonzero(rule.is_broken(before, tolerance))
        if broken_before:
            continue
        about, broken = (np.count_nonzero(one) for one in (rule.premise(after), rule.is_broken(after, tolerance)))
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
    person_of_row = np.where(people == NOBODY, alone, people)
    return Sequences.of(person_of_row, read_order(table, ordering), 1, np.random.default_rng(0))


def _pair_rows(events: Sequence[int], rows: RuleRows, order: Sequences) -> RuleRows:
    """Return rows beside those before them: the columns of the last row come first."""
    both = [(index, own) for own in (order.before, order.later) for index in events]
    codes = {place: rows.codes[index][own] for place, (index, own) in enumerate(both)}
    numbers = {place: rows.numbers[index][own] for place, (index, own) in enumerate(both) if index in rows.numbers}
    return RuleRows(codes, numbers)


def _rows(columns: Sequence[ColumnParts], table: pa.Table) -> RuleRows:
    """Read a table by the choices of the original: -1 for others, which no rule is about."""
    codes: dict[int, Ints] = {}
    numbers: dict[int, Floats] = {}
    for index, column in enumerate(columns):
        array = join_chunks(table.column(column.name))
        if column.regular is None:
            codes[index] = _codes(column, array)
            continue
        try:
            values = read_doubles(clean_floats(array.cast(column.type)))
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
    return RuleRows(codes, numbers)


def _codes(column: ColumnParts, array: pa.Array) -> Ints:
    known = {outcome: place for place, outcome in enumerate(column.outcomes)}
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    coded = plain.dictionary_encode(null_encoding="encode")
    of_value = np.array([known.get(value, -1) for value in coded.dictionary.to_pylist()], np.int64)
    return np.asarray(of_value[coded.indices.to_numpy()], np.int64)
