"""Boxes that are made: which records are in which, and where they end."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.rules import OneOf
from duckanon._core.numbers.ends import rounded_outward
from duckanon._methods.boxes.shaping import Sensitivities

KINDS = ("parts", "cell", "bounds", "rounded")


@dataclass(frozen=True)
class Boxes:
    """Records in boxes; pairs of ends are boxes by columns."""

    names: tuple[str, ...]  # of the columns
    box: Ints  # the number of each record's box, from 0
    counts: Ints  # of the records of each box
    bounds: tuple[Floats, Floats]  # the smallest and the largest value of the records
    cell: tuple[Floats, Floats]  # which tile the space between the data's extremes: cuts lie midway between neighbours
    sensitivities: Sensitivities  # what shaped the boxes
    parts: tuple[Floats, Floats] | None = None  # of the parts of columns that a box is made of, if it is made of them
    open_ends: tuple[Bools, Bools] | None = None  # which of these are of an outermost part, far beyond the rest

    @property
    def rounded(self) -> tuple[Floats, Floats]:
        """The bounds, grown outward to readable numbers."""
        return rounded_outward(*self.bounds)

    def intervals(self, kind: str = "parts") -> tuple[Floats, Floats]:
        """Return lower and upper ends, boxes by columns; `kind` is one of `KINDS`."""
        refuse_unless(OneOf(*KINDS), "kind", kind)
        if kind == "parts" and self.parts is None:
            raise ValueError("kind must be 'parts' when the boxes are made, too.")
        ends: tuple[Floats, Floats] = getattr(self, kind)
        return ends

    def uncertainty(self, kind: str = "bounds") -> float:
        """Return the linear half-width Delta of Fuzzy Boxes, Section II, with the derivatives at the boxes' midpoints.

        For one statistic it is its half-width over the desired accuracy; for several the mean of that (equation 4).
        """
        return self.uncertainty_of(*self.intervals(kind))

    def uncertainty_of(self, lower: Floats, upper: Floats) -> float:
        """Return the same for given ends, boxes by columns."""
        middle = lower / 2 + upper / 2
        weights = self.sensitivities.at(list(middle.T))
        half = upper / 2 - lower / 2
        return float(sum((self.counts * w * half[:, j]).sum() for j, w in enumerate(weights)) / self.counts.sum())
