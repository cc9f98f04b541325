"""Releases whose classes of at least k people are made part by part: `boxes`, `microaggregate` and `recode`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arrays import Floats
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.parameters import Kept, column_weights
from duckanon._core.common.rules import OneOf
from duckanon._core.numbers.ends import HIGH
from duckanon._methods.boxes import boxed_table as boxing
from duckanon._methods.boxes.declared import BOX, BOXES
from duckanon._methods.boxes.shaping import Moments, sensitivities_of
from duckanon._methods.boxes.shaping import Whole as WholeTable
from duckanon._methods.microaggregate import microaggregated_table as grouping
from duckanon._methods.microaggregate.declared import MICROAGGREGATE
from duckanon._methods.recode import local_recoding as recoding
from duckanon._methods.recode.declared import RECODE
from duckanon.large.split_tree import Tree, fitted
from duckanon.spark import partwise
from duckanon.spark.frames import column, is_number, named_columns, ordered_columns, other_column, public
from duckanon.spark.partwise import Asked
from duckanon.spark.plans import hierarchy_rows, kept_columns
from duckanon.spark.targets import target_called

PART_ROWS = {"boxes": 200_000, "fast": 100_000, "mdav": 10_000, "recode": 50_000}
"""Rows of a part: what an executor works on at a time. MDAV takes the square of them."""


@face_of(BOXES.having(BOX.having(rule=OneOf("parts", "rounded"))), "spark")
@public
def boxes(frame: DataFrame, given: Options, *, to: str) -> DataFrame:
    """Write a table whose numbers and dates are intervals shared by at least k people.

    Args:
        frame, to: As in `generalize`; ``keep`` names columns one by one.

    Returns:
        What was written, after its classes were counted.
    """
    asked, options = _asked(frame, given, only_numbers=True)
    names = asked.cols
    with target_called(frame.sparkSession, to) as target:
        survey = partwise.surveyed(frame, names, has_nulls=False)
        moments = Moments.known(survey.means, survey.covariances)
        sensitivity = sensitivities_of(moments, names, boxing.read_statistics(given["statistics"], names))
        empty = frame.select(*map(column, names)).limit(0).toArrow()
        distances = boxing.read_distances(empty, names, given["epsilon"])
        apart = [distances.get(name, 0.0) for name in names]
        weights = sensitivity.at(list(survey.sample.values()))
        tree = fitted(survey.sample, weights, survey.rows, asked.k, PART_ROWS["boxes"], given["l"], apart)

        def release(part: pa.Table) -> pa.Table:
            result = boxing.boxes(part, **options, whole=WholeTable(sensitivity))
            return partwise.plain(partwise.paired(result, names, HIGH))

        fields = [(name, partwise.interval_type(frame.schema[name].dataType)) for name in names]
        released = partwise.made(asked, tree, release, fields, has_box=True)
        return partwise.written(asked, released, survey.rows, target)


@face_of(MICROAGGREGATE, "spark")
@public
def microaggregate(frame: DataFrame, given: Options, *, to: str) -> DataFrame:
    """Write a table whose numbers and dates are what groups of at least k similar records have in common.

    Args:
        frame, to: As in `generalize`; the method works within parts of the table, and ``keep`` names columns one by
            one.

    Returns:
        What was written, after its classes were counted.
    """
    is_interval = given["label"] == "interval"
    asked, options = _asked(frame, given, only_numbers=True)
    names = asked.cols
    with target_called(frame.sparkSession, to) as target:
        survey = partwise.surveyed(frame, names, has_nulls=False)
        variances = np.diag(survey.covariances) * (survey.rows / max(1, survey.rows - 1))
        deviations = [float(one) for one in np.sqrt(variances)]
        tree = fitted(survey.sample, _inverse(deviations), survey.rows, asked.k, PART_ROWS[given["method"]])

        def release(part: pa.Table) -> pa.Table:
            result = grouping.microaggregate(part, **options, deviations=deviations)
            return partwise.plain(partwise.paired(result, names, HIGH) if is_interval else result)

        fields = [(name, frame.schema[name].dataType) for name in names]
        if is_interval:
            fields = [(name, partwise.interval_type(kind)) for name, kind in fields]
        else:  # means of numbers
            fields = [(name, T.DoubleType() if is_number(frame, name) else kind) for name, kind in fields]
        released = partwise.made(asked, tree, release, fields, has_box=is_interval)
        return partwise.written(asked, released, survey.rows, target)


@face_of(RECODE, "spark")
@public
def recode(frame: DataFrame, given: Options, *, to: str) -> DataFrame:
    """Write a table whose columns are generalized class by class, such that every class has at least k people.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its classes were counted.
    """
    asked, options = _asked(frame, given)
    weights = column_weights(given["weights"], asked.cols, named_columns(frame, "cols", given["cols"]))
    options = {
        **options,
        "hierarchies": hierarchy_rows(given["hierarchies"]),
        "weights": dict(zip(asked.cols, weights, strict=True)),
    }
    with target_called(frame.sparkSession, to) as target:
        tree, rows = _tree(asked)

        def release(part: pa.Table) -> pa.Table:  # sent to the executors: the frame, which is in `asked`, must not be
            return partwise.plain(recoding.recode([part], **options))

        released = partwise.made(asked, tree, release, [(name, T.StringType()) for name in asked.cols], has_box=False)
        return partwise.written(asked, released, rows, target)


def _tree(asked: Asked) -> tuple[Tree, int]:
    """Fit a tree to the columns that hold numbers; tables of one part need none."""
    numeric = [name for name in asked.cols if partwise.number_of(asked.frame, name)]
    if not numeric:
        rows = asked.frame.count()
        if rows > PART_ROWS["recode"]:
            raise ValueError(
                f"cols must have a column of numbers or dates where there are more than {PART_ROWS['recode']:,} rows, "
                "to part them by; got none."
            )
        return 0, rows
    survey = partwise.surveyed(asked.frame, numeric, has_nulls=True)
    if not len(survey.sample[numeric[0]]):
        return 0, survey.rows
    sample = {name: _without_extremes(values, asked.k) for name, values in survey.sample.items()}
    weights = _inverse([float(np.std(values)) for values in sample.values()])
    return fitted(sample, weights, survey.rows, asked.k, PART_ROWS["recode"]), survey.rows


def _without_extremes(values: Floats, k: int) -> Floats:
    """Put the k-th least and the k-th largest number in the place of all beyond: nobody's value alone decides a cut."""
    if len(values) < 2 * k:
        return values
    ends = np.partition(values, [k - 1, len(values) - k])[[k - 1, len(values) - k]]
    return np.clip(values, *ends)


def _inverse(deviations: list[float]) -> list[float]:
    """Return the weights of columns by which all vary as much; a column of one value has none."""
    return [1.0 / one if one > 0 else 0.0 for one in deviations]


def _asked(frame: DataFrame, given: Options, only_numbers: bool = False) -> tuple[Asked, Options]:
    """Find the columns of a release, and the options of its parts, which release the column of people too."""
    names = ordered_columns(frame, given["cols"])
    for name in names if only_numbers else ():
        if partwise.number_of(frame, name) is None:
            raise ValueError(f'cols must hold numbers, dates or timestamps; got "{name}".')
    whose = other_column(frame, "person", given["person"], names)
    kept, allowed = (kept_columns(frame, some, names) for some in (given["kept"].keep, given["kept"].narrowing))
    asked = Asked(frame, names, kept, whose, given["k"])
    released = Kept([*kept, *([whose] if whose else [])], allowed)
    return asked, {**given, "cols": names, "person": whose, "kept": released}
