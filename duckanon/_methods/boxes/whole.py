"""What is known of a whole table where boxes are made of a part of it: larger tables are released part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duckanon._core.numbers.parts import Parts
from duckanon._core.numbers.support import Support
from duckanon._methods.boxes.shaping import Sensitivities


@dataclass(frozen=True)
class Whole:
    """What the parts of a table have in common.

    Attributes
    ----------
    sensitivities
        What shapes the boxes, so that all parts lose in the same unit.
    supports
        The units and ends of columns (`boxes.support`) that at least k people of the whole table decide, where they are
        known.
    parts
        The parts of these columns (`boxes.parts`).
    """

    sensitivities: Sensitivities
    supports: Mapping[str, Support] = field(default_factory=dict)
    parts: Mapping[str, Parts] = field(default_factory=dict)
