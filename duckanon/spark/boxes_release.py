"""Numbers and dates as what at least k people have in common: `boxes` and `microaggregate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import Flag, OneOf, Whole
from duckanon._core.numbers.ends import HIGH
from duckanon._methods.boxes import boxed_table as boxing
from duckanon._methods.boxes.shaping import Moments, sensitivities_of
from duckanon._methods.boxes.whole import Whole as WholeTable
from duckanon._methods.microaggregate import microaggregated_table as grouping
from duckanon.large.split_tree import fitted
from duckanon.spark import partwise
from duckanon.spark.frames import column, is_number, named_columns, other_column, public, refuse_option
from duckanon.spark.labels import kept_columns
from duckanon.spark.partwise import Asked
from duckanon.spark.targets import target_called

PART_ROWS = {"boxes": 200_000, "fast": 100_000, "mdav": 10_000}
"""Rows of a part: what an executor works on at a time. MDAV takes the square of them."""


@public
def boxes(
    frame: Any,
    cols: Any,
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None = None,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None = None,
    box: str = "parts",
    effort: str = "default",
    seconds: float | None = None,
    person: str | None = None,
    keep: Any = None,
    narrowing: Any = None,
    by: Any = None,
    top_code: bool = False,
    bounds_are_public: bool = False,
    *,
    to: str,
) -> Any:
    """Write a table whose numbers and dates are intervals that at least k people share.

    Parameters
    ----------
    frame, cols, k, statistics, l, epsilon, effort, person, keep, narrowing, top_code
        As in `anon.boxes`; ``keep`` names columns one by one.
    box
        ``parts`` or ``rounded``.
    seconds, by, bounds_are_public
        None, None and False: they are not there on Spark.
    to
        As in `generalize`.

    Returns
    -------
    pyspark.sql.DataFrame
        What was written, after its classes were counted.
    """
    refuse_option("seconds", seconds, None)
    refuse_option("by", by, None)
    refuse_option("bounds_are_public", bounds_are_public, False)
    refuse_unless(OneOf("parts", "rounded"), "box", box)
    refuse_unless(OneOf("default", "thorough"), "effort", effort)
    refuse_unless(Flag(), "top_code", top_code)
    asked = _asked(frame, cols, k, person, keep)
    refuse_unless(Whole(1, k), "l", l)
    allowed = [] if narrowing is None else kept_columns(frame, narrowing, asked.cols)
    with target_called(frame.sparkSession, to) as target:
        survey = partwise.surveyed(frame, asked.cols, has_nulls=False)
        moments = Moments.known(survey.means, survey.covariances)
        sensitivity = sensitivities_of(moments, asked.cols, boxing.read_statistics(statistics, asked.cols))
        empty = frame.select(*(column(name) for name in asked.cols)).limit(0).toArrow()
        distances = boxing.read_distances(empty, asked.cols, epsilon)
        apart = [distances.get(name, 0.0) for name in asked.cols]
        weights = sensitivity.at(list(survey.sample.values()))
        tree = fitted(survey.sample, weights, survey.rows, k, PART_ROWS["boxes"], l, apart)
        names, whose = asked.cols, asked.person

        def release(part: pa.Table) -> pa.Table:
            result = boxing.boxes(
                part,
                cols=names,
                k=k,
                statistics=statistics,
                l=l,
                epsilon=epsilon,
                box=box,
                effort=effort,
                seconds=None,
                person=whose,
                keeps_person=True,
                narrowing=allowed,
                by=None,
                top_code=top_code,
                refused=None,
                whole=WholeTable(sensitivity),
            )
            return partwise.plain(partwise.paired(result, names, HIGH))

        fields = [(name, partwise.interval_type(frame.schema[name].dataType)) for name in names]
        released = partwise.made(asked, partwise.routed(asked, tree), release, fields, has_box=True)
        return partwise.written(asked, released, survey.rows, target)


@public
def microaggregate(
    frame: Any,
    cols: Any,
    k: int,
    method: str = "mdav",
    label: str = "mean",
    by: Any = None,
    person: str | None = None,
    keep: Any = None,
    narrowing: Any = None,
    *,
    to: str,
) -> Any:
    """Write a table whose numbers and dates are what groups of at least k similar records have in common.

    Parameters
    ----------
    frame, cols, k, label, person, keep, narrowing
        As in `anon.microaggregate`; ``keep`` names columns one by one.
    method
        ``mdav`` or ``fast``, within parts of the table.
    by
        None: it is not there on Spark.
    to
        As in `generalize`.

    Returns
    -------
    pyspark.sql.DataFrame
        What was written, after its classes were counted.
    """
    refuse_option("by", by, None)
    refuse_unless(OneOf("mdav", "fast"), "method", method)
    refuse_unless(OneOf("mean", "median", "interval"), "label", label)
    asked = _asked(frame, cols, k, person, keep)
    allowed = [] if narrowing is None else kept_columns(frame, narrowing, asked.cols)
    with target_called(frame.sparkSession, to) as target:
        survey = partwise.surveyed(frame, asked.cols, has_nulls=False)
        variances = np.diag(survey.covariances) * (survey.rows / max(1, survey.rows - 1))
        deviations = [float(one) for one in np.sqrt(variances)]
        weights = [1.0 / one if one > 0 else 0.0 for one in deviations]
        tree = fitted(survey.sample, weights, survey.rows, k, PART_ROWS[method])
        names, whose = asked.cols, asked.person

        def release(part: pa.Table) -> pa.Table:
            result = grouping.microaggregate(
                part,
                cols=names,
                k=k,
                method=method,
                label=label,
                by=None,
                person=whose,
                keeps_person=True,
                narrowing=allowed,
                refused=None,
                deviations=deviations,
            )
            return partwise.plain(partwise.paired(result, names, HIGH) if label == "interval" else result)

        fields = []
        for name in names:
            own = frame.schema[name].dataType
            of_mean = T.DoubleType() if is_number(frame, name) else own
            fields.append((name, partwise.interval_type(own) if label == "interval" else of_mean))
        rows = partwise.routed(asked, tree)
        released = partwise.made(asked, rows, release, fields, has_box=label == "interval")
        return partwise.written(asked, released, survey.rows, target)


def _asked(frame: Any, cols: Any, k: Any, person: Any, keep: Any) -> Asked:
    named = named_columns(frame, "cols", cols)
    names = [name for name in frame.columns if name in named]
    for name in names:
        if partwise.number_of(frame, name) is None:
            raise ValueError(f'cols must hold numbers, dates or timestamps; got "{name}".')
    refuse_unless(Whole(2), "k", k)
    whose = other_column(frame, "person", person, names)
    return Asked(frame, names, kept_columns(frame, keep, names), whose, k)
