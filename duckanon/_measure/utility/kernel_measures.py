"""The measures of structure that is not linear, as SQL calls them."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.declare import report
from duckanon._core.encoding.aligned import Coding, encoded, unscaled
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.coarse.tables import judged
from duckanon._measure.utility import kernel_components as components_of_kernels
from duckanon._measure.utility.declared import KERNEL_COMPONENTS


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
    return components_of_kernels.kernel_utility(
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
    placed = components_of_kernels.kernel_projections(
        *matrices, random=random, kernel=kernel, degree=degree, components=components, points=points
    )
    return report(
        {
            "source": ["original"] * len(placed[0]) + ["released"] * len(placed[1]),
            "projections": [*placed[0].tolist(), *placed[1].tolist()],
        },
        KERNEL_COMPONENTS.schema,
    )
