"""Boxes of tables that are larger than memory: `duckanon.large.boxes`.

Groups of similar records in tables that are larger than memory: `duckanon.large.microaggregate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._bridge import sql
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.rules import OneOf
from duckanon._core.numbers.ends import HIGH_PREFIX
from duckanon._core.numbers.parts import NumberParts, cut_counts
from duckanon._core.numbers.support import NumberSupport, find_support
from duckanon._methods.boxes import boxed_table
from duckanon._methods.boxes.boxed_table import read_numbers
from duckanon._methods.boxes.declared import BOXES
from duckanon._methods.boxes.shaping import WholeTable, combine_sensitivities
from duckanon._methods.microaggregate import microaggregated_table
from duckanon._methods.microaggregate.declared import METHOD, MICROAGGREGATE
from duckanon.large import pipeline
from duckanon.large.checks import Checked, open_workspace, options_of_parts, rows_and_nulls
from duckanon.large.split_tree import fit_tree
from duckanon.large.survey import Survey, count_values, survey_table
from duckanon.large.workspace import SOURCE, Place, Source, Target, Workspace, arrow_reader

SAMPLE = 1_000_000
"""Rows that the routing tree is fitted on, at most: with a million, boxes of ten million rows lose .08 % more than
in memory, with 200,000 .22 %."""

_LEAST_SAMPLE = 10_000

_BYTES_OF_DRAWN = 80
"""Memory of fitting the tree, for each value of the sample: 22 to 48 were measured, beside the sample itself."""

BYTES_OF_ROW, BYTES_OF_CELL = 90, 65
"""Memory of a part, for each row and for each of its values that become intervals: measured by
`python -m tests.bench.part_memory`, and a quarter more."""

_BATCH = 100_000


@face_of(BOXES, "large")
def boxes(
    source: Source,
    target: Target,
    options: Options,
    *,
    memory: str = "2GB",
    seed: int | None = None,
    temporary: Place | None = None,
    replace: bool = False,
) -> pipeline.Released:
    """Write a table whose numbers and dates are intervals shared by at least k people, as `anon.boxes` makes them.

    Args:
        source, target, memory, temporary, replace: As for `workspace`.
        seed: Makes the boxes of the same rows in the same order repeatable; the order of the released rows never is.
    """
    k, l, box, seconds = (options[name] for name in ("k", "l", "box", "seconds"))  # noqa: E741 - the papers' name
    with open_workspace("anon.boxes", options, source, target, memory, temporary, replace) as (work, layout):
        survey = numbers_of(work, layout, k, seed)
        statistics_asked = boxed_table.read_statistics(options["statistics"], layout.names)
        shape = arrow_reader(
            work.con.sql(f"SELECT {sql.quote_all(layout.columns)} FROM {SOURCE} LIMIT 0"), 1
        ).read_all()
        distances = boxed_table.read_distances(shape, layout.names, options["epsilon"])
        sensitivity = combine_sensitivities(survey.moments, layout.names, statistics_asked)
        is_counted = box == "parts" and layout.person is None
        whole = WholeTable(sensitivity, *(_parts(work, layout, k, is_exact=l > 1) if is_counted else ()))
        part_rows = work.memory.part // (BYTES_OF_ROW + BYTES_OF_CELL * len(layout.names))
        weights = sensitivity.at(list(survey.sample.values()))
        apart = [distances.get(name, 0.0) for name in layout.names]
        tree = fit_tree(survey.sample, weights, survey.rows, k, part_rows, l, apart)
        files = pipeline.route(work, layout.columns, tree, layout.expressions, k, layout.person)
        part_options = options_of_parts(layout, options) | {
            "seconds": None if seconds is None else seconds / len(files)
        }
        shaping = {name for name, weight in zip(layout.names, weights, strict=True) if np.max(weight) > 0}
        of_boxes = BoxColumns(layout, set() if box in ("bounds", "rounded") else set(layout.names) - shaping)

        def release_part(part: pa.Table) -> pa.Table:
            return boxed_table.boxes(part, **part_options, whole=whole)

        return pipeline.run_pipeline(work, layout, files, release_part, of_boxes, k, survey.rows, part_rows)


def _parts(
    work: Workspace, layout: Checked, k: int, *, is_exact: bool
) -> tuple[dict[str, NumberSupport], dict[str, NumberParts]]:
    """Cut columns into parts that k people of the whole table share, where their values can be counted in memory.

    Where they cannot, or where people have several rows, each part of the table cuts its columns itself, for k people
    of its own.
    """
    supports, parts = {}, {}
    for name in layout.names:
        counts = count_values(work, name, k)
        if counts is None:
            continue
        numbers = read_numbers(pa.table({name: counts.values}), [name])[name]
        supports[name] = find_support(counts.values.type, numbers, k, None, counts.people, is_exact=is_exact)
        parts[name] = cut_counts(numbers, counts.people, k, supports[name])
    return supports, parts


class BoxColumns(pipeline.Columns):
    """The columns of boxes: numbers that do not reveal the part, and the same ends in all parts where no column shapes.

    Every box covers the `covered` columns from end to end, in the whole table.
    """

    def __init__(self, layout: Checked, covered: set[str]) -> None:
        super().__init__(layout)
        self._ends_of_parts: dict[str, list[tuple[Any, Any]]] = {name: [] for name in covered}
        self._ends: dict[str, tuple[Any, Any]] = {}
        self._count = 0
        self._order = np.zeros(0, np.int64)

    def collect(self, result: pa.Table) -> pa.Table:
        """Tell the boxes of a part from those of the parts before."""
        place = result.column_names.index("_duckanon_box")
        numbers = result.column(place).to_numpy() + self._count
        self._count = int(numbers.max())
        for name, ends in self._ends_of_parts.items():
            least = pc.min(result.column(name), skip_nulls=False).as_py()
            ends.append((least, pc.max(result.column(HIGH_PREFIX + name), skip_nulls=False).as_py()))
        return result.set_column(place, "_duckanon_box", pa.array(numbers))

    def settle(self) -> None:
        """Draw the numbers, and find the outermost ends; None is open, farther than all."""
        self._order = make_generator(None).permutation(self._count) + 1
        for name, ends in self._ends_of_parts.items():
            lows, highs = zip(*ends, strict=True)
            self._ends[name] = None if None in lows else min(lows), None if None in highs else max(highs)

    def finish(self, block: pa.Table) -> pa.Table:
        """Return the columns that are released: the box, the intervals, and what is kept."""
        columns = {"box": pa.array(self._order[block.column("_duckanon_box").to_numpy() - 1])}
        for name in self._layout.names:
            ends = [block.column(which).combine_chunks() for which in (name, HIGH_PREFIX + name)]
            if name in self._ends:
                ends = [
                    pa.repeat(pa.scalar(end, old.type), len(old))
                    for old, end in zip(ends, self._ends[name], strict=True)
                ]
            columns[name] = pa.StructArray.from_arrays(ends, ["lo", "hi"])
        return pa.table(columns | {name: block.column(name) for name in self._layout.kept})


def sample_rows(work: Workspace, columns: int) -> int:
    """Return how many rows the tree of so many columns is fitted on."""
    return min(max(work.memory.part // (_BYTES_OF_DRAWN * max(columns, 1)), _LEAST_SAMPLE), SAMPLE)


def numbers_of(work: Workspace, layout: Checked, k: int, seed: int | None) -> Survey:
    """Read the columns as numbers, once, or say which of them no interval holds."""
    rows, nulls = rows_and_nulls(work.con, layout.names)
    if k > rows:
        raise ValueError(f"k must be at most the number of records, {rows}; got {k}.")
    for name, count in nulls.items():
        if count:
            raise ValueError(f'column "{name}" has {count} NULLs, which no interval contains; remove them.')
    reader = arrow_reader(work.con.sql(f"SELECT {sql.quote_all(layout.names)} FROM {SOURCE}"), _BATCH)
    tables = (pa.Table.from_batches([batch]) for batch in reader)
    return survey_table(tables, layout.names, rows, sample_rows(work, len(layout.names)), seed)


MICROAGGREGATE_BYTES_OF_ROW, MICROAGGREGATE_BYTES_OF_CELL = 160, 80
"""Memory of a part, for each row and for each of its values that are grouped: measured by
`python -m tests.bench.part_memory`, and a quarter more."""


_FAST = METHOD.having(rule=OneOf("fast"), default="fast", meaning="`'mdav'` would take the square of the rows")


@face_of(MICROAGGREGATE.having(_FAST), "large")
def microaggregate(
    source: Source,
    target: Target,
    options: Options,
    *,
    memory: str = "2GB",
    seed: int | None = None,
    temporary: Place | None = None,
    replace: bool = False,
) -> pipeline.Released:
    """Write a table whose numbers and dates are what groups of at least k similar records have in common.

    Args:
        source, target, memory, temporary, replace: As for `workspace`.
        seed: Makes the groups of the same rows in the same order repeatable; the order of the released rows never is.
    """
    k = options["k"]
    with open_workspace("anon.microaggregate", options, source, target, memory, temporary, replace) as (work, layout):
        survey = numbers_of(work, layout, k, seed)
        deviations = [survey.moments.deviation(place) for place in range(len(layout.names))]
        part_rows = work.memory.part // (MICROAGGREGATE_BYTES_OF_ROW + MICROAGGREGATE_BYTES_OF_CELL * len(layout.names))
        weights = combine_sensitivities(survey.moments, layout.names).at(list(survey.sample.values()))
        tree = fit_tree(survey.sample, weights, survey.rows, k, part_rows)
        files = pipeline.route(work, layout.columns, tree, layout.expressions, k, layout.person)
        part_options = options_of_parts(layout, options)
        columns: pipeline.Columns = BoxColumns(layout, set()) if options["label"] == "interval" else _Values(layout)

        def release_part(part: pa.Table) -> pa.Table:
            return microaggregated_table.microaggregate(part, **part_options, deviations=deviations)

        return pipeline.run_pipeline(work, layout, files, release_part, columns, k, survey.rows, part_rows)


class _Values(pipeline.Columns):
    """The columns of groups that are released as one value."""

    def finish(self, block: pa.Table) -> pa.Table:
        """Return the columns that are released, in the table's order."""
        wanted = {*self._layout.names, *self._layout.kept}
        return block.select([name for name in self._layout.types if name in wanted])
