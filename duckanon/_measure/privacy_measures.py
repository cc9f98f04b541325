"""The measures of privacy as SQL calls them: tables are coded alike, options are named as in the macros.

The values of a release in the digits that the original's columns have, and as codes of equal values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.declare import report_columns
from duckanon._core.encoding.column_codecs import NumberColumn
from duckanon._core.encoding.measurement_encoding import (
    CodingOptions,
    align_tables,
    encode_tables,
    find_derived_columns,
    read_measure_options,
)
from duckanon._core.encoding.pairs import NumberPair, pair_kind, pair_tables, read_column_numbers, stack_tables
from duckanon._core.encoding.pairs import decode_storage as plain_texts
from duckanon._core.privacy import prediction, reference_test
from duckanon._core.privacy.cells import ReleasedCells
from duckanon._core.privacy.copies import Amounts
from duckanon._core.privacy.rarity import ColumnCodes
from duckanon._core.privacy.reference_test import PrivacyTest
from duckanon._measure.attacks import inference, matching, singling_out
from duckanon._measure.coarse.coarse_tables import RELEASE, Judged, code_linked_tables, matrices, read_tables, rows_of
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.declared import PRIVACY_TEST

_MOST_DECIMALS = 6  # numbers with more are taken to be unrounded


def with_digits_of(original: pa.Table, released: pa.Table) -> pa.Table:
    """Round released numbers to the decimals that all numbers of the original's column have.

    A copy with a little noise then is a copy again, and a release of unrounded numbers comparable with people's.
    """
    for name in original.column_names:
        kinds = {pair_kind(table.schema.field(name).type) for table in (original, released)}
        if kinds != {"number"} or pa.types.is_integer(released.schema.field(name).type):
            continue
        decimals = _decimals(read_column_numbers(name, original.column(name)))
        if decimals is not None:
            values = np.round(read_column_numbers(name, released.column(name)), decimals)
            place = released.column_names.index(name)
            released = released.set_column(place, name, pa.chunked_array([pa.array(values, from_pandas=True)]))
    return released


def _decimals(values: Floats) -> int | None:
    """Return how many decimals numbers have; None where they are unrounded."""
    known = values[~np.isnan(values)]
    for decimals in range(_MOST_DECIMALS + 1):
        if (np.round(known, decimals) == known).all():
            return decimals
    return None


def column_codes(original: pa.Table, released: pa.Table, outsiders: pa.Table | None) -> list[ColumnCodes]:
    """Give equal values of each column the same number in all tables."""
    people = original if outsiders is None else stack_tables(original, outsiders)
    columns = []
    for pair in pair_tables(people, released):
        codes, shown = pair.original, pair.released
        if isinstance(pair, NumberPair):
            both = np.concatenate([codes, shown])
            both = np.where(np.isnan(both), np.inf, both)  # NULL is one value
            _, both = np.unique(both, return_inverse=True)
            codes, shown = np.split(both.reshape(-1), [len(codes)])
        inside, outside = np.split(np.asarray(codes, np.int64), [original.num_rows])
        columns.append(ColumnCodes(inside, np.asarray(shown, np.int64), None if outsiders is None else outside))
    return columns


_SAMPLED = 5_000
AMOUNTS = CodingOptions(log=[], special="off", categories=[])
"""All numbers as amounts."""


def prediction_risk(
    original: pa.Table,
    released: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    weights: Mapping[str, float] | None,
    k: int,
    sample: int | None,
    coding: CodingOptions,
    seed: int | None,
) -> pa.Table:
    """Return the originals looked at, each with its distance, ambiguity and uncertainties."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies)
    coded = matrices(read, coding)
    tables, rows = coded.values, coded.values.original
    looked_at = np.arange(len(rows)) if sample is None else np.sort(random.permutation(len(rows))[:sample])
    measures = prediction.measure_queries(rows[looked_at], tables.released, k, variances=coded.variances)
    table = original.take(pa.array(looked_at))
    names, groups = tables.encoding.names, tables.encoding.groups
    by_column = [measures.column_uncertainty[:, group].mean(axis=1) for group in groups]
    uncertainty = measures.uncertainty
    if weights is not None:
        uncertainty = np.average(by_column, axis=0, weights=_column_weights(weights, names))
    left_out = pa.nulls(len(looked_at), pa.float64())  # of a column that follows from others
    of_columns = dict(zip(names, map(pa.array, by_column), strict=True))
    for name, values in (
        ("distance", pa.array(measures.distance)),
        ("ambiguity", pa.array(measures.ambiguity)),
        ("uncertainty", pa.array(uncertainty)),
        *((f"uncertainty of {name}", of_columns.get(name, left_out)) for name in original.column_names),
    ):
        table = table.append_column(f" {name}", values)
    return table


def _column_weights(weights: Mapping[str, float], names: list[str]) -> list[float]:
    """Return the weight of each of the measured columns, names, 1 for those that are not named."""
    weight_of = {name.lower(): weight for name, weight in weights.items()}
    for name in weight_of:
        if name not in [measured.lower() for measured in names]:
            raise ValueError(f"weights must name columns that are not left out as derived; got {name}.")
    result = [float(weight_of.get(name.lower(), 1.0)) for name in names]
    if not sum(result):
        raise ValueError("weights must be above 0 for one column at least; got 0 for all.")
    return result


def privacy_test(
    original: pa.Table | None,
    released: pa.Table | None,
    reference: pa.Table | None,
    holdout: pa.Table | None,
    stacked: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    k: int,
    sample: int | None,
    coding: CodingOptions,
    seed: int | None,
) -> pa.Table:
    """Test a release against a sample of other people; `stacked` are more releases of the same people."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies, reference=reference, holdout=holdout)
    draws = []
    for name in [] if stacked is None else sorted(pc.unique(stacked[RELEASE]).to_pylist()):
        coded = matrices(read_tables(original, rows_of(stacked, name), hierarchies), coding)
        draws.append((coded.values.released, coded.variances))
    looked_at = max(20, min(read.original.num_rows, _SAMPLED)) if sample is None else sample
    tests = privacy_tests(read, coding, random, k=k, sample=looked_at, draws=draws)
    columns: dict[str, list[Any]] = {
        "measure": [test.name for test in tests],
        "reference_value": [test.reference for test in tests],
        "pass": [test.is_within_limit for test in tests],
    }
    for name in ("value", "ks", "p_value", "shift", "shift_bound", "limit", "answer"):
        columns[name] = [getattr(test, name) for test in tests]
    return report_columns(columns, PRIVACY_TEST.schema)


def privacy_tests(
    read: Judged, coding: CodingOptions, random: np.random.Generator, **options: Any
) -> list[PrivacyTest]:
    """Test a release that was read, against the first of the other tables, and with the second as holdout."""
    coded = matrices(read, coding)
    reference, holdout = (*coded.values.outsiders, None)[:2]
    cells, rounded = None, None
    columns: list[ColumnCodes] = []
    plain: Amounts | None = None
    if coded.variances is not None:
        outsiders = None if read.outsiders[0] is None else read.plain(read.outsiders[0])
        cells = ReleasedCells(
            coded.variances, [column.cells for column in read.columns], read.plain(read.original), outsiders
        )
    else:
        release = with_digits_of(read.original, read.released)
        rounded = None if release is read.released else coded.values.encoding.matrix(release)
        outside = next((table for table in reversed(read.outsiders) if table is not None), None)
        columns = column_codes(read.original, release, outside)
        # Noise turns a zero that many have, or a code, into another number: no longer special, a code of nobody.
        plain = amounts_of(read.original, read.released, outside)
    setting = reference_test.PrivacySetting(
        reference=reference,
        holdout=holdout,
        cells=cells,
        groups=coded.values.encoding.groups,
        rounded=rounded,
        plain=plain,
        columns=columns,
        **options,
    )
    return reference_test.run_privacy_tests(coded.values.original, coded.values.released, random, setting)


def amounts_of(original: pa.Table, released: pa.Table, outsiders: pa.Table | None) -> Amounts:
    """Code tables with all numbers as amounts."""
    coded = encode_tables(original, released, [outsiders], AMOUNTS)
    columns = zip(coded.encoding.columns, coded.encoding.groups, strict=True)
    numbers = [(group, column.width > 1) for column, group in columns if isinstance(column, NumberColumn)]
    return Amounts(
        coded.original,
        coded.released,
        coded.outsiders[0],
        np.array([group.start for group, _ in numbers], np.int64),
        np.array([group.start + 1 if has_nulls else -1 for group, has_nulls in numbers], np.int64),
    )


def matching_attack(
    original: pa.Table | None,
    released: pa.Table | None,
    *,
    key: str | None,
    k: int,
    coding: CodingOptions,
) -> pa.Table:
    """Match every original with its nearest released row."""
    keys, records = _key_apart(original, key)
    released_keys, images = _key_apart(released, key)
    tables = encode_tables(*align_tables(records, images), coding)
    return matching.matching_attack(tables.original, tables.released, keys, released_keys, k)


def linkage_risk(
    original: pa.Table | None,
    released: pa.Table | None,
    control: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    known_cols: list[str],
    secret_cols: list[str],
    attacks: int,
    tolerance: float,
    coding: CodingOptions,
    seed: int | None,
) -> pa.Table:
    """Guess secret columns from known ones by way of the release; known ones may be left out, secrets never are."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies, control=control)
    tables, groups = code_linked_tables(read, secret_cols, replace(coding, derived="off"), random)
    if coding.derived == "auto":
        known = read.original.select([groups[name.lower()][0] for name in known_cols])
        follow = find_derived_columns(
            known, read_measure_options(read.original.column_names, coding.special, coding.categories)
        )
        known_cols = [name for name in known.column_names if name not in follow]
    apart = tables.outsiders[0]
    attacked = _draw_rows(len(tables.original), attacks, random)
    attacked_apart = None if apart is None else _draw_rows(len(apart), attacks, random)
    return inference.linkage_risk(
        tables.original[attacked],
        tables.released,
        None if apart is None else apart[attacked_apart],
        [groups[name.lower()][1] for name in known_cols],
        dict(groups[name.lower()] for name in secret_cols),
        tolerance=tolerance,
        cells=_code_known_cells(read, known_cols, attacked, attacked_apart) if read.coarse else None,
    )


def _code_known_cells(
    read: Judged, known_cols: list[str], attacked: Ints, attacked_apart: Ints | None
) -> inference.KnownCells:
    """Take the people who are attacked in the numbers of the known columns' cells."""
    columns = {column.name.lower(): column for column in read.columns}
    known = [columns[name.lower()] for name in known_cols]
    people = np.column_stack([column.original[attacked] for column in known])
    apart = None
    if read.outsiders[0] is not None:
        apart = np.column_stack([column.numbers(read.outsiders[0].column(column.name)) for column in known])
        apart = apart[attacked_apart]
    cells = {place: column.cells for place, column in enumerate(known) if column.name in read.coarse}
    return inference.KnownCells(cells, people, apart)


def singling_out_risk(
    original: pa.Table | None,
    released: pa.Table | None,
    control: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    attacks: int,
    predicate_columns: int,
    seed: int | None,
) -> pa.Table:
    """Single out people by predicates made from the release."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies, control=control)
    if read.coarse:
        return singling_out.cell_singling_out_risk(
            read.plain(read.original),
            [column.cells for column in read.columns],
            None if control is None else read.plain(read.outsiders[0]),
            random,
            attacks=attacks,
            predicate_columns=predicate_columns,
        )
    is_ordered = np.array([pair_kind(kind) in ("number", "time") for kind in read.original.schema.types])
    rows, release, apart = _plain_numbers([read.original, read.released, *read.outsiders], is_ordered)
    return singling_out.singling_out_risk(
        rows, release, apart, is_ordered, random, attacks=attacks, predicate_columns=predicate_columns
    )


def _key_apart(table: pa.Table | None, key: str | None) -> tuple[pa.ChunkedArray | None, pa.Table | None]:
    """Split off the column that identifies rows: the key, or the row's number."""
    if table is None:
        return None, None
    index = [name.lower() for name in table.column_names].index((key or "_duckanon_number").lower())
    return plain_texts(table.column(index)), table.remove_column(index)


def _plain_numbers(tables: list[pa.Table | None], is_ordered: Bools) -> list[Any]:
    """Take numbers and dates as they are, categories as codes that are the same in all tables; NaN is NULL."""
    present = [table for table in tables if table is not None]
    matrices = [np.empty((table.num_rows, len(is_ordered))) for table in present]
    for index, name in enumerate(present[0].column_names):
        if is_ordered[index]:
            columns = [read_column_numbers(name, table.column(name)) for table in present]
        else:
            texts = [plain_texts(table.column(name)) for table in present]
            both = pa.chunked_array([chunk for column in texts for chunk in column.chunks], texts[0].type)
            codes = encode_columns(pa.table({name: both}))[0][0].astype(np.float64)
            codes[np.asarray(both.is_null())] = np.nan
            columns = np.split(codes, np.cumsum([len(column) for column in texts])[:-1])
        for matrix, values in zip(matrices, columns, strict=True):
            matrix[:, index] = values
    left = iter(matrices)
    return [None if table is None else next(left) for table in tables]


def _draw_rows(rows: int, count: int, random: np.random.Generator) -> Ints:
    """Draw rows, by index; all where there are no more."""
    return np.arange(rows) if rows <= count else np.sort(random.permutation(rows)[:count])
