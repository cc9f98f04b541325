"""A table made coarser class by class: `recode`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arguments import OneOf, Whole, refuse_unless
from duckanon._methods.generalize.options import column_weights
from duckanon._methods.recode import local_recoding as recoding
from duckanon.large.split_tree import Tree, fitted
from duckanon.spark import partwise
from duckanon.spark.frames import named_columns, other_column, public, refuse_option
from duckanon.spark.labels import kept_columns
from duckanon.spark.partwise import Asked, Survey
from duckanon.spark.plans import hierarchy_rows
from duckanon.spark.targets import target_called

PART_ROWS = 50_000
"""Rows of a part: what an executor works on at a time."""


@public
def recode(
    frame: Any,
    cols: Any,
    k: int,
    hierarchies: Mapping[str, Any] | None = None,
    sensitive: str | None = None,
    l: int = 1,  # noqa: E741 - the papers' name
    l_kind: str = "distinct",
    c: float = 3,
    t: float | None = None,
    weights: Any = None,
    person: str | None = None,
    keep: Any = None,
    narrowing: Any = None,
    by: Any = None,
    max_suppressed_fraction: float = 0,
    effort: str = "default",
    output: str = "text",
    *,
    to: str,
) -> Any:
    """Write a table whose columns are made coarser class by class, such that every class has at least k people.

    Parameters
    ----------
    frame, cols, k, person, keep, narrowing, effort
        As in `anon.recode`; ``keep`` names columns one by one.
    hierarchies, weights
        As in `plan`.
    sensitive, l, l_kind, c, t, by, max_suppressed_fraction, output
        None, 1, distinct, 3, None, None, 0 and text: nothing else is there on Spark.
    to
        As in `generalize`.

    Returns
    -------
    pyspark.sql.DataFrame
        What was written, after its classes were counted.
    """
    for parameter, value, default in (
        ("sensitive", sensitive, None),
        ("l", l, 1),
        ("l_kind", l_kind, "distinct"),
        ("c", c, 3),
        ("t", t, None),
        ("by", by, None),
        ("max_suppressed_fraction", max_suppressed_fraction, 0),
        ("output", output, "text"),
    ):
        refuse_option(parameter, value, default)
    refuse_unless(OneOf(*recoding.ROUNDS), "effort", effort)
    refuse_unless(Whole(2), "k", k)
    named = named_columns(frame, "cols", cols)
    names = [name for name in frame.columns if name in named]
    whose = other_column(frame, "person", person, names)
    asked = Asked(frame, names, kept_columns(frame, keep, names), whose, k)
    allowed = [] if narrowing is None else kept_columns(frame, narrowing, names)
    trees = hierarchy_rows(hierarchies)
    weight_of = dict(zip(names, column_weights(weights, names, named), strict=True))
    with target_called(frame.sparkSession, to) as target:
        tree, rows = _tree(asked)

        def release(part: pa.Table) -> pa.Table:
            result = recoding.recode(
                [part],
                cols=names,
                k=k,
                hierarchies=trees,
                sensitive=None,
                l=1,
                l_kind="distinct",
                c=3.0,
                t=None,
                weights=weight_of,
                person=whose,
                keeps_person=True,
                keeps_sensitive=None,
                narrowing=allowed,
                by=None,
                max_suppressed_fraction=0.0,
                effort=effort,
                output="text",
                refused=None,
            )
            return partwise.plain(result)

        fields = [(name, T.StringType()) for name in names]
        released = partwise.made(asked, partwise.routed(asked, tree), release, fields, has_box=False)
        return partwise.written(asked, released, rows, target)


def _tree(asked: Asked) -> tuple[Tree, int]:
    """Fit a tree to the columns that hold numbers; tables of one part need none."""
    numeric = [name for name in asked.cols if partwise.number_of(asked.frame, name)]
    if not numeric:
        rows = asked.frame.count()
        if rows > PART_ROWS:
            raise ValueError(
                f"cols must have a column of numbers or dates where there are more than {PART_ROWS:,} rows, to part "
                "them by; got none."
            )
        return 0, rows
    survey: Survey = partwise.surveyed(asked.frame, numeric, has_nulls=True)
    if not len(survey.sample[numeric[0]]):
        return 0, survey.rows
    deviations = [float(np.std(values)) for values in survey.sample.values()]
    weights: list[Any] = [1.0 / one if one > 0 else 0.0 for one in deviations]
    return fitted(survey.sample, weights, survey.rows, asked.k, PART_ROWS), survey.rows
