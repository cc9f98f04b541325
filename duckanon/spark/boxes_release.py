"""Numbers and dates as what at least k people have in common: `boxes` and `microaggregate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import Kept
from duckanon._core.common.rules import OneOf
from duckanon._core.numbers.ends import HIGH
from duckanon._methods.boxes import boxed_table as boxing
from duckanon._methods.boxes.declared import BOX, BOXES
from duckanon._methods.boxes.shaping import Moments, sensitivities_of
from duckanon._methods.boxes.shaping import Whole as WholeTable
from duckanon._methods.microaggregate import microaggregated_table as grouping
from duckanon._methods.microaggregate.declared import MICROAGGREGATE
from duckanon.large.split_tree import fitted
from duckanon.spark import partwise
from duckanon.spark.frames import column, is_number, named_columns, other_column, public
from duckanon.spark.labels import kept_columns
from duckanon.spark.partwise import Asked
from duckanon.spark.targets import target_called

PART_ROWS = {"boxes": 200_000, "fast": 100_000, "mdav": 10_000}
"""Rows of a part: what an executor works on at a time. MDAV takes the square of them."""


@face_of(BOXES.having(BOX.having(rule=OneOf("parts", "rounded"))), "spark")
@public
def boxes(frame: Any, given: dict[str, Any], *, to: str) -> Any:
    """Write a table whose numbers and dates are intervals shared by at least k people.

    Args:
        frame, to: As in `generalize`; ``keep`` names columns one by one.

    Returns:
        What was written, after its classes were counted.
    """
    asked, kept = _asked(frame, given)
    with target_called(frame.sparkSession, to) as target:
        survey = partwise.surveyed(frame, asked.cols, has_nulls=False)
        moments = Moments.known(survey.means, survey.covariances)
        sensitivity = sensitivities_of(moments, asked.cols, boxing.read_statistics(given["statistics"], asked.cols))
        empty = frame.select(*(column(name) for name in asked.cols)).limit(0).toArrow()
        distances = boxing.read_distances(empty, asked.cols, given["epsilon"])
        apart = [distances.get(name, 0.0) for name in asked.cols]
        weights = sensitivity.at(list(survey.sample.values()))
        tree = fitted(survey.sample, weights, survey.rows, asked.k, PART_ROWS["boxes"], given["l"], apart)
        names = asked.cols
        options = given | {"cols": names, "person": asked.person, "kept": kept}

        def release(part: pa.Table) -> pa.Table:
            result = boxing.boxes(part, **options, whole=WholeTable(sensitivity))
            return partwise.plain(partwise.paired(result, names, HIGH))

        fields = [(name, partwise.interval_type(frame.schema[name].dataType)) for name in names]
        released = partwise.made(asked, partwise.routed(asked, tree), release, fields, has_box=True)
        return partwise.written(asked, released, survey.rows, target)


@face_of(MICROAGGREGATE, "spark")
@public
def microaggregate(frame: Any, given: dict[str, Any], *, to: str) -> Any:
    """Write a table whose numbers and dates are what groups of at least k similar records have in common.

    Args:
        frame, to: As in `generalize`; the method works within parts of the table, and ``keep`` names columns one by
            one.

    Returns:
        What was written, after its classes were counted.
    """
    is_interval = given["label"] == "interval"
    asked, kept = _asked(frame, given)
    with target_called(frame.sparkSession, to) as target:
        survey = partwise.surveyed(frame, asked.cols, has_nulls=False)
        variances = np.diag(survey.covariances) * (survey.rows / max(1, survey.rows - 1))
        deviations = [float(one) for one in np.sqrt(variances)]
        weights = [1.0 / one if one > 0 else 0.0 for one in deviations]
        tree = fitted(survey.sample, weights, survey.rows, asked.k, PART_ROWS[given["method"]])
        names = asked.cols
        options = given | {"cols": names, "person": asked.person, "kept": kept}

        def release(part: pa.Table) -> pa.Table:
            result = grouping.microaggregate(part, **options, deviations=deviations)
            return partwise.plain(partwise.paired(result, names, HIGH) if is_interval else result)

        fields = []
        for name in names:
            own = frame.schema[name].dataType
            of_mean = T.DoubleType() if is_number(frame, name) else own
            fields.append((name, partwise.interval_type(own) if is_interval else of_mean))
        rows = partwise.routed(asked, tree)
        released = partwise.made(asked, rows, release, fields, has_box=is_interval)
        return partwise.written(asked, released, survey.rows, target)


def _asked(frame: Any, given: dict[str, Any]) -> tuple[Asked, Kept]:
    """Find the columns of a release, and those that its parts release as they are: the column of people too."""
    named = named_columns(frame, "cols", given["cols"])
    names = [name for name in frame.columns if name in named]
    for name in names:
        if partwise.number_of(frame, name) is None:
            raise ValueError(f'cols must hold numbers, dates or timestamps; got "{name}".')
    whose = other_column(frame, "person", given["person"], names)
    kept, narrowing = kept_columns(frame, given["kept"].keep, names), given["kept"].narrowing
    allowed = [] if narrowing is None else kept_columns(frame, narrowing, names)
    return Asked(frame, names, kept, whose, given["k"]), Kept([*kept, *([whose] if whose else [])], allowed)
