"""The measures by classifiers, as SQL calls them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.coarse.tables import judged
from duckanon._measure.utility import classifiers


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
