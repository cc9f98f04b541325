"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Parameter, Report
from duckanon._core.common.parameters import SEED
from duckanon._core.common.rules import Whole
from duckanon._measure.parameters import COLS, HIERARCHIES, PAIR
from duckanon._measure.schemas import columns

QUERY_UTILITY = Report(
    name="query_utility",
    algorithm="duckanon._measure.utility.utility_measures:query_utility",
    stage="measure",
    summary="Relative errors of random range counts on a release.",
    parameters=(
        *PAIR,
        COLS.having(meaning="The columns to ask about"),
        Parameter("queries", Whole(1), "How many random counts to compare", 1000),
        HIERARCHIES,
        SEED,
    ),
    schema=pa.schema(
        [
            *columns(pa.int64(), "predicates", "queries"),
            *columns(pa.float64(), "median_relative_error", "mean_relative_error", "p90_relative_error"),
        ]
    ),
    tables=("original", "released"),
    reads_labels=True,
)

FUNCTIONS = (QUERY_UTILITY,)
