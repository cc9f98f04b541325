"""A table generalized class by class: `recode`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import Kept, column_weights
from duckanon._methods.recode import local_recoding as recoding
from duckanon._methods.recode.declared import RECODE
from duckanon.large.split_tree import Tree, fitted
from duckanon.spark import partwise
from duckanon.spark.frames import named_columns, other_column, public
from duckanon.spark.labels import kept_columns
from duckanon.spark.partwise import Asked, Survey
from duckanon.spark.plans import hierarchy_rows
from duckanon.spark.targets import target_called

PART_ROWS = 50_000
"""Rows of a part: what an executor works on at a time."""


@face_of(RECODE, "spark")
@public
def recode(frame: Any, given: dict[str, Any], *, to: str) -> Any:
    """Write a table whose columns are generalized class by class, such that every class has at least k people.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its classes were counted.
    """
    k, kept = given["k"], given["kept"]
    named = named_columns(frame, "cols", given["cols"])
    names = [name for name in frame.columns if name in named]
    whose = other_column(frame, "person", given["person"], names)
    asked = Asked(frame, names, kept_columns(frame, kept.keep, names), whose, k)
    allowed = [] if kept.narrowing is None else kept_columns(frame, kept.narrowing, names)
    trees = hierarchy_rows(given["hierarchies"])
    weight_of = dict(zip(names, column_weights(given["weights"], names, named), strict=True))
    with target_called(frame.sparkSession, to) as target:
        tree, rows = _tree(asked)
        options = given | {
            "cols": names,
            "hierarchies": trees,
            "weights": weight_of,
            "person": whose,
            "kept": Kept([*asked.kept, *([whose] if whose else [])], allowed),
        }

        def release(part: pa.Table) -> pa.Table:  # sent to the executors: the frame, which is in `asked`, must not be
            return partwise.plain(recoding.recode([part], **options))

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
