"""Several releases of one table, measured alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import sample_rows
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.declare import report_columns
from duckanon._core.encoding.measurement_encoding import CodingOptions, encode_tables
from duckanon._core.privacy.reference_test import find_smallest_class
from duckanon._measure.coarse.coarse_tables import RELEASE, Judged, read_tables, rows_of
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.declared import COMPARE_RELEASES
from duckanon._measure.privacy_measures import privacy_tests
from duckanon._measure.queries.answers import query_utility
from duckanon._measure.utility.classifiers import detect_released
from duckanon._measure.utility.kernels import compare_components
from duckanon._measure.utility.statistics import utility


def compare_releases(
    original: pa.Table | None,
    stacked: pa.Table | None,
    reference: pa.Table | None,
    hierarchies: HierarchyRows,
    max_rows: int,
    coding: CodingOptions,
    seed: int | None,
) -> pa.Table:
    """Measure releases of a table, which come stacked (`rows_of`)."""
    random = make_generator(seed)
    if stacked is None:
        raise ValueError("the released tables have no rows; give some that have.")
    everybody = original
    original, reference = (
        None if table is None else _draw_rows(table, max_rows, random) for table in (original, reference)
    )
    names = pc.unique(stacked[RELEASE]).to_pylist()
    rows: list[tuple[Any, ...]] = []
    baseline: dict[str, float] = {}
    for index, name in enumerate(sorted(names)):
        whole = rows_of(stacked, name)
        class_size = _class_size(everybody, whole)
        release = _draw_rows(whole, max_rows, random)
        read = read_tables(original, release, hierarchies, whole=(everybody, whole), reference=reference)
        first, other = read.original, read.outsiders[0]
        if other is not None and not baseline:
            baseline = _statistics(Judged(first, other, [None], {}, {}), coding, random)
        kept = _statistics(read, coding, random)
        with progress.step(index / len(names), (index + 1) / len(names)):
            tests = privacy_tests(read, coding, random, class_size=class_size)
        for test in tests:
            reference_value = None if test.shift_bound is not None else test.reference
            rows.append((name, "privacy", test.name, test.test_value, reference_value, test.is_within_limit))
        rows += [(name, "utility", measure, value, baseline.get(measure), None) for measure, value in kept.items()]
    schema = COMPARE_RELEASES.schema
    return report_columns(dict(zip(schema.names, zip(*rows, strict=True), strict=True)), schema)


def _draw_rows(table: pa.Table, rows: int, random: np.random.Generator) -> pa.Table:
    if table.num_rows <= rows:
        return table
    return table.take(pa.array(sample_rows(rows, table.num_rows, random)))


def _class_size(original: pa.Table | None, released: pa.Table) -> float | None:
    """Return how many people share a released row at least, before rows are drawn; None where rows are no classes."""
    if original is None or any(pa.types.is_nested(kind) for kind in released.schema.types):
        return None
    rows, release = (
        np.column_stack([codes for codes, _ in encode_columns(table)]).astype(np.float64)
        for table in (original, released)
    )
    return find_smallest_class(rows, release)


def _statistics(read: Judged, coding: CodingOptions, random: np.random.Generator) -> dict[str, float]:
    """Return the numbers that sum up the utility of a release."""
    original, released = read.original, read.draw_values(random)
    differences = utility(original, released, coding.special, coding.categories)
    medians = dict(zip(differences["statistic"].to_pylist(), differences["median_difference"].to_pylist(), strict=True))
    tables = encode_tables(original, released, [], coding)
    kernel = compare_components(tables.original, tables.released, random=random)
    queries = query_utility(original, read.released, random=random, labels=read.meanings)
    trees = detect_released(
        original, released, random=random, holdout=read.outsiders[0], categories=coding.categories, halves=False
    )
    return {
        **{name: value for name, value in medians.items() if value is not None},
        "kernel_ks": float(pc.mean(kernel["ks"]).as_py()),
        "detectability": float(trees["auc"][0].as_py()),
        "query_error": float(queries["median_relative_error"][0].as_py()),
    }
