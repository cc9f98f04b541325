"""Properties of a whole table of which one partition is boxed: larger tables are released in partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duckanon._core.numbers.parts import Parts
from duckanon._core.numbers.support import Support
from duckanon._methods.boxes.shaping import Sensitivities


@dataclass(frozen=True)
class Whole:
    """Properties that all partitions of a table share.

    Attributes:
        sensitivities: What shapes the boxes, so that all parts lose in the same unit.
        supports: The units and ends of columns (`boxes.support`) that at least k people of the whole table decide,
            where they are known.
        parts: The parts of these columns (`boxes.parts`).
    """

    sensitivities: Sensitivities
    supports: Mapping[str, Support] = field(default_factory=dict)
    parts: Mapping[str, Parts] = field(default_factory=dict)
