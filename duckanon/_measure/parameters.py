"""Parameters that measures share."""

from __future__ import annotations

from typing import Any

from duckanon._core.common import parameters
from duckanon._core.common.declare import Group, Parameter
from duckanon._core.common.imports import import_function
from duckanon._core.common.rules import TableName, Whole

ORIGINAL = Parameter("original", TableName(), "The table that the release was made from")
PAIR = (ORIGINAL, Parameter("released", TableName(), "The release, with the same columns"))
COLS = parameters.COLS.having(meaning="The columns to compare")
REFERENCE = Parameter(
    "reference", TableName(null=True), "A sample of other people from the same population, to compare with", None
)
HOLDOUT = Parameter("holdout", TableName(null=True), "Other people from the same population", None)
CONTROL = Parameter(
    "control", TableName(null=True), "People from the same population who are not in `original`, as the baseline", None
)
HIERARCHIES = parameters.HIERARCHIES.having(
    meaning="Hierarchy tables of a generalized release by column, as in `anon.generalization_loss`"
)
DERIVED = parameters.DERIVED.having(
    default="off", meaning="`'auto'` leaves out columns that can be computed from others; `'off'` keeps them"
)
NEAREST = Parameter("k", Whole(2), "How many of the nearest released rows to look at", 5)


def _coding(**options: Any) -> Any:
    return import_function("duckanon._core.encoding.measurement_encoding:CodingOptions")(
        **options
    )  # declarations load no numpy


def coding(log: Parameter = parameters.LOG, derived: Parameter = DERIVED) -> Group:
    """Group the options that say how values are coded as numbers: the algorithm takes them as one `Coding`."""
    return Group("coding", _coding, (log, parameters.SPECIAL, parameters.CATEGORIES, derived))
