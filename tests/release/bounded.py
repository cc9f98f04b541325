"""Boxes by the records' own bounds, for tests of the search alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckanon._methods.boxes.make import BoxOptions, make_boxes
from duckanon._methods.boxes.nodes import Boxes
from duckanon._methods.boxes.shaping import Statistic


def bounded_boxes(
    columns: Mapping[str, Any],
    k: int,
    statistics: Sequence[Statistic] | None = None,
    people: np.ndarray | None = None,
    **options: Any,
) -> Boxes:
    """Make boxes that end at the smallest and largest value of their records."""
    return make_boxes(columns, k, statistics, BoxOptions(kind="bounds", bounds_are_public=True, **options), people)
