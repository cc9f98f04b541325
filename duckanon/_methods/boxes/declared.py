"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common import parameters as shared
from duckanon._core.common.contracts import (
    AtLeastKPeople,
    EqualsDefinition,
    InvariantUnder,
    KeepsRows,
    KeepsTypes,
    KeepsValues,
    KeepsValuesOrNull,
    OneRow,
    OnlyColumns,
    TrueIntervals,
)
from duckanon._core.common.declare import Options, Parameter, Release, Report, Scalar
from duckanon._core.common.rules import Flag, ListOf, MapOf, Number, OneOf, Whole, fault_of

_STATISTICS = Parameter(
    "statistics",
    ListOf(MapOf("{'statistic': 'mean'}"), "[{'statistic': 'variance', 'columns': ['age']}]", null=True),
    "What the boxes should serve: `mean`, `variance`, `standard_deviation`, `covariance`, `correlation` or "
    "`regression` (the target first), with `probability` (how often it is asked for) and `accuracy` (which share of "
    "its value matters). NULL: the means of all columns. In a column that no statistic uses, each box covers all "
    "values",
    None,
)

BOX = Parameter(
    "box",
    OneOf("parts", "cell", "bounds", "rounded"),
    "Which ends are released. `'parts'`: those of parts of columns shared by at least `k` people, cut at round "
    "numbers. `'cell'`: boxes tile the space, cut midway between two records; the outermost ends are round. "
    "`'rounded'`: the smallest and largest value of a box, rounded outward, dates to whole months. "
    "`'bounds'`: these values themselves, which are real people's",
    "parts",
)
BY_LABELS = shared.BY.having(
    meaning="Columns of labels, the most important first, that are released as they are: no box has two groups. Groups "
    "of fewer than `k` people lose their last label, which becomes NULL, and join others that did"
).without("large", "spark")


def _l_is_at_most_k(options: Options) -> str | None:
    """Refuse more different values than a box has records."""
    return fault_of(Whole(1, options["k"]), "l", options["l"])


def _has_effect(options: Options) -> str | None:
    """Refuse options that have no effect with the others."""
    if options["top_code"] and options["box"] != "parts":
        return "top_code must be false unless box is 'parts'; got true."
    if options["epsilon"] is not None and options["l"] == 1:
        return "epsilon must come with l above 1, whose values it tells apart; got l = 1."
    if options["seconds"] is not None and options["effort"] != "thorough":
        return f"seconds must come with effort 'thorough', which they limit; got '{options['effort']}'."
    return None


def _bounds_are_public(options: Options) -> str | None:
    """Refuse to release the smallest and largest values of boxes, unless everybody may know them."""
    if options["box"] == "bounds" and not options["bounds_are_public"]:
        return (
            "box 'bounds' releases real people's values; take 'parts', or set bounds_are_public where everybody may "
            "know them."
        )
    return None


BOXES = Release(
    name="boxes",
    algorithm="duckanon._methods.boxes.boxed_table:boxes",
    stage="release",
    summary="Generalizes numbers and dates to intervals shared by at least k records, shaped for the statistics that "
    "matter.",
    promises=(
        AtLeastKPeople("column box"),
        OnlyColumns("cols", "keep", "by", "column box"),
        KeepsTypes("keep", "by"),
        KeepsValues("keep"),
        KeepsValuesOrNull("by"),
        KeepsRows(),
        TrueIntervals(),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        shared.TBL,
        shared.COLS.having(meaning="The columns of numbers and dates that become intervals, `STRUCT(lo, hi)`"),
        shared.K.having(meaning="The smallest number of people in a box"),
        _STATISTICS,
        Parameter("l", Whole(1), "How many values at least `epsilon` apart each column of a box has, at least", 1),
        Parameter(
            "epsilon",
            MapOf("MAP {'age': 2}, of finite numbers of at least 0", Number(0)),
            "How far apart values of a column are to count as different, dates in days; 0 where none is given",
            None,
        ),
        BOX,
        Parameter(
            "effort",
            OneOf("quick", "default", "thorough"),
            "`'quick'` takes a fourth to a tenth of the time up to 200,000 records, for boxes 5 to 20 % wider; "
            "`'thorough'` searches longer and never returns worse boxes",
            "default",
        ),
        Parameter("seconds", Number(0, null=True), "When `'thorough'` stops; NULL: when it is done", None).without(
            "spark"
        ),
        shared.PERSON,
        shared.KEPT,
        BY_LABELS,
        Parameter(
            "top_code",
            Flag(),
            "Whether outermost ends far from the rest of a column are open, which is NULL: those more than 3 "
            "interquartile ranges beyond the quartiles",
            False,
        ),
        Parameter("bounds_are_public", Flag(), "Whether everybody may know what `'bounds'` releases", False).without(
            "spark", "policy"
        ),
    ),
    checks=(
        shared.refuse_person_in_cols,
        shared.refuse_keep_in_cols,
        shared.refuse_by_in_cols,
        _l_is_at_most_k,
        _bounds_are_public,
        _has_effect,
    ),
    unpacked_by="_unpack_boxes",
)

OPTIMAL_UNCERTAINTY = Report(
    name="optimal_uncertainty",
    algorithm="duckanon._methods.boxes.boxed_table:optimal_uncertainty",
    stage="release",
    summary="Reports how uncertain statistics become through boxes of k records, and how uncertain at best.",
    promises=(
        OneRow(),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        shared.TBL,
        shared.COLS.having(meaning="The columns of numbers and dates"),
        shared.K.having(meaning="The smallest number of records in a box"),
        _STATISTICS,
    ),
    schema=pa.schema(
        (name, pa.float64())
        for name in ("optimum", "parts", "parts_ratio", "bounds", "bounds_ratio", "cell", "cell_ratio")
    ),
)


def _one_number_a_column(options: Options) -> str | None:
    """Refuse lists that are not of one number for each column."""
    sensitivities, epsilon = options["sensitivities"], options["epsilon"]
    if sensitivities is None:
        return None
    if not sensitivities:
        return "sensitivities must hold one number for each column; got an empty list."
    if epsilon is not None and len(epsilon) != len(sensitivities):
        return f"epsilon must be a list of as many numbers as there are sensitivities; got {epsilon}."
    return None


BOX_HALFWIDTHS = Scalar(
    name="box_halfwidths",
    algorithm="duckanon._methods.boxes.boxed_table:box_halfwidths",
    stage="release",
    summary="Returns the best half-widths of a box around a point, from sensitivities, density, k and diversity.",
    promises=(EqualsDefinition(),),
    parameters=(
        Parameter(
            "sensitivities",
            ListOf(Number(above=0), "[1, 2.5], of finite numbers above 0", null=True),
            "How much the statistic changes with each column at the point",
        ),
        Parameter("density", Number(above=0, null=True), "Records per unit of volume at the point"),
        Parameter("k", Number(above=0, null=True), "How many records the box has, at least"),
        Parameter("l", Whole(1, null=True), "How many values at least `epsilon` apart each column has, at least", 1),
        Parameter(
            "epsilon",
            ListOf(Number(0), "[0.5, 1], of finite numbers of at least 0", null=True),
            "How far apart values of each column are to count as different; NULL: 0",
            None,
        ),
    ),
    checks=(_one_number_a_column,),
    result=pa.list_(pa.float64()),
)

FUNCTIONS = (BOXES, OPTIMAL_UNCERTAINTY, BOX_HALFWIDTHS)
