"""Groups of similar records in tables that are larger than memory: `duckanon.large.microaggregate`."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.rules import OneOf
from duckanon._methods.boxes.shaping import sensitivities_of
from duckanon._methods.microaggregate import microaggregated_table
from duckanon._methods.microaggregate.declared import METHOD, MICROAGGREGATE
from duckanon.large import pipeline
from duckanon.large.boxes_release import BoxColumns, numbers_of
from duckanon.large.checks import opened, options_of_parts
from duckanon.large.split_tree import fitted
from duckanon.large.workspace import Place, Source, Target

BYTES_OF_ROW, BYTES_OF_CELL = 160, 80
"""Memory of a part, for each row and for each of its values that are grouped: measured by
`python -m tests.bench.part_memory`, and a quarter more."""


_FAST = METHOD.having(rule=OneOf("fast"), default="fast", meaning="`'mdav'` would take the square of the rows")


@face_of(MICROAGGREGATE.having(_FAST), "large")
def microaggregate(
    source: Source,
    target: Target,
    given: Options,
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
    k = given["k"]
    with opened("anon.microaggregate", given, source, target, memory, temporary, replace) as (work, what):
        survey = numbers_of(work, what, k, seed)
        deviations = [survey.moments.deviation(place) for place in range(len(what.names))]
        part_rows = work.memory.part // (BYTES_OF_ROW + BYTES_OF_CELL * len(what.names))
        weights = sensitivities_of(survey.moments, what.names).at(list(survey.sample.values()))
        tree = fitted(survey.sample, weights, survey.rows, k, part_rows)
        files = pipeline.route(work, what.columns, tree, what.expressions, k, what.person)
        options = options_of_parts(what, given)
        columns: pipeline.Columns = BoxColumns(what, set()) if given["label"] == "interval" else _Values(what)

        def released(part: pa.Table) -> pa.Table:
            return microaggregated_table.microaggregate(part, **options, deviations=deviations)

        return pipeline.released(work, what, files, released, columns, k, survey.rows, part_rows)


class _Values(pipeline.Columns):
    """The columns of groups that are released as one value."""

    def finish(self, block: pa.Table) -> pa.Table:
        """Return the columns that are released, in the table's order."""
        wanted = {*self._what.names, *self._what.kept}
        return block.select([name for name in self._what.types if name in wanted])
