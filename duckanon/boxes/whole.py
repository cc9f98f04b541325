"""What is known of a whole table where boxes are made of a part of it: larger tables are released part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duckanon.boxes.grids import Grid
from duckanon.boxes.parts import Parts
from duckanon.boxes.shaping import Sensitivities


@dataclass(frozen=True)
class Whole:
    """What the parts of a table have in common.

    Attributes
    ----------
    sensitivities
        What shapes the boxes, so that all parts lose in the same unit.
    grids
        What the values of each column are multiples of.
    fences
        Beyond which numbers the values of a column are far from the rest (`boxes.parts.fences_of`).
    parts
        The parts of columns (`boxes.parts`) that at least k people of the whole table share, where they are known.
    """

    sensitivities: Sensitivities
    grids: Mapping[str, Grid]
    fences: Mapping[str, tuple[float, float]]
    parts: Mapping[str, Parts] = field(default_factory=dict)
