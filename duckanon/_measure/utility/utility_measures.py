"""The measures of utility as SQL calls them: tables are aligned or coded alike, options are named as in the macros."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import generator, spelled
from duckanon._core.common.declare import report
from duckanon._core.common.names import unknown_column
from duckanon._core.encoding.aligned import Coding, both_there, encoded, unscaled
from duckanon._core.encoding.pairs import kind_of
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.coarse.tables import judged, read_labels
from duckanon._measure.queries import answers as queries_utility
from duckanon._measure.utility import classifiers, statistics
from duckanon._measure.utility import kernel_components as kernel_measures
from duckanon._measure.utility.declared import KERNEL_COMPONENTS


def utility(
    original: pa.Table | None,
    released: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    log: list[str] | None,
    special: Any,
    categories: list[str] | None,
    seed: int | None,
) -> pa.Table:
    """Compare statistics."""
    read = judged(original, released, hierarchies)
    names = spelled("log", log, read.original.column_names) or []
    released = read.drawn(generator(seed))
    return statistics.utility(_logged(read.original, names), _logged(released, names), special, categories)


def kernel_utility(
    original: pa.Table | None,
    released: pa.Table | None,
    reference: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    degree: int,
    components: int,
    standardize: bool,
    kernel: str,
    points: int | None,
    coding: Coding,
    seed: int | None,
) -> pa.Table:
    """Compare distributions along kernel principal components."""
    random = generator(seed)
    read = judged(original, released, hierarchies, reference=reference)
    tables = encoded(read.original, read.drawn(random), read.others, coding)
    first, second, third = tables.original, tables.released, tables.others[0]
    if not standardize:
        first, second = (unscaled(tables.encoding, matrix) for matrix in (first, second))
        third = None if third is None else unscaled(tables.encoding, third)
    return kernel_measures.kernel_utility(
        first, second, third, random=random, kernel=kernel, degree=degree, components=components, points=points
    )


def kernel_components(
    original: pa.Table | None,
    released: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    degree: int,
    components: int,
    standardize: bool,
    kernel: str,
    points: int,
    coding: Coding,
    seed: int | None,
) -> pa.Table:
    """Place records along kernel principal components, for a plot."""
    random = generator(seed)
    read = judged(original, released, hierarchies)
    tables = encoded(read.original, read.drawn(random), [], coding)
    matrices = [tables.original, tables.released]
    if not standardize:
        matrices = [unscaled(tables.encoding, matrix) for matrix in matrices]
    placed = kernel_measures.kernel_projections(
        *matrices, random=random, kernel=kernel, degree=degree, components=components, points=points
    )
    return report(
        {
            "source": ["original"] * len(placed[0]) + ["released"] * len(placed[1]),
            "projections": [*placed[0].tolist(), *placed[1].tolist()],
        },
        KERNEL_COMPONENTS.schema,
    )


def classifier_utility(
    original: pa.Table | None,
    released: pa.Table | None,
    holdout: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    target: str,
    special: Any,
    categories: list[str] | None,
    seed: int | None,
) -> pa.Table:
    """Compare models trained on the release with models trained on originals."""
    random = generator(seed)
    read = judged(original, released, hierarchies, holdout=holdout)
    name = next((name for name in read.original.column_names if name.lower() == str(target).lower()), str(target))
    return classifiers.classifier_utility(
        read.original,
        read.drawn(random),
        name,
        random=random,
        holdout=read.others[0],
        special=special,
        categories=categories,
    )


def detectability(
    original: pa.Table | None,
    released: pa.Table | None,
    holdout: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    categories: list[str] | None,
    seed: int | None,
) -> pa.Table:
    """Tell released rows from other people's, or from original ones."""
    random = generator(seed)
    read = judged(original, released, hierarchies, holdout=holdout)
    return classifiers.detectability(
        read.original, read.drawn(random), random=random, holdout=read.others[0], categories=categories
    )


def query_utility(
    original: pa.Table | None, released: pa.Table | None, *, hierarchies: HierarchyRows, queries: int, seed: int | None
) -> pa.Table:
    """Compare random counts."""
    random = generator(seed)
    original, release = both_there(original, released)
    labels = read_labels(original, release, hierarchies)
    return queries_utility.query_utility(original, release, random=random, queries=queries, labels=labels)


def _logged(table: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        index = table.column_names.index(name) if name in table.column_names else None
        if index is None:
            raise ValueError(unknown_column(name, table.column_names, "log"))
        column = table.column(index)
        if kind_of(column.type) != "number" or pc.min(column).as_py() <= 0:
            raise ValueError(f'column "{name}" has no logarithms: it must hold positive numbers.')
        table = table.set_column(index, name, pc.ln(column.cast(pa.float64())))
    return table
