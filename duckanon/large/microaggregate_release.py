"""Groups of similar records in tables that are larger than memory: `duckanon.large.microaggregate`."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from duckanon._core.common.faces import face_of
from duckanon._core.common.rules import OneOf
from duckanon._methods.boxes.shaping import Moments, sensitivities_of
from duckanon._methods.microaggregate import microaggregated_table
from duckanon._methods.microaggregate.declared import METHOD, MICROAGGREGATE
from duckanon.large import partition_releases, pipeline
from duckanon.large.boxes_release import BoxColumns, numbers_of
from duckanon.large.checks import kept_in_parts, resolve_columns, translate_errors
from duckanon.large.split_tree import fitted
from duckanon.large.workspace import workspace

CALLER = "anon.microaggregate"

BYTES_OF_ROW, BYTES_OF_CELL = 160, 80
"""Memory of a part, for each row and for each of its values that are grouped: measured by
`python -m tests.bench.part_memory`, and a quarter more."""


_FAST = METHOD.having(rule=OneOf("fast"), default="fast", meaning="`'mdav'` would take the square of the rows")


@face_of(MICROAGGREGATE.having(_FAST), "large")
def microaggregate(
    source: Any,
    target: Any,
    given: dict[str, Any],
    *,
    memory: str = "2GB",
    seed: int | None = None,
    temporary: Any = None,
) -> partition_releases.Released:
    """Write a table whose numbers and dates are what groups of at least k similar records have in common.

    Args:
        source, target, memory, temporary: As for `workspace`.
        seed: Makes the groups of the same rows in the same order repeatable; the order of the released rows never is.
    """
    k = given["k"]
    with translate_errors(CALLER), workspace(source, target, memory, temporary) as work:
        what = resolve_columns(work.con, given)
        survey = numbers_of(work, what, k, seed)
        deviations = [math.sqrt(survey.covariances[place, place]) for place in range(len(what.names))]
        sensitivity = sensitivities_of(Moments.known(survey.means, survey.covariances), what.names)
        part_rows = work.memory.part // (BYTES_OF_ROW + BYTES_OF_CELL * len(what.names))
        weights = sensitivity.at(list(survey.sample.values()))
        tree = fitted(survey.sample, weights, survey.rows, k, part_rows)
        files = pipeline.route(work, what.columns, tree, what.expressions, k, what.person)

        def released(part: pa.Table) -> pa.Table:
            options = {"cols": what.names, "person": what.person, "kept": kept_in_parts(what, given)}
            return microaggregated_table.microaggregate(part, **(given | options), deviations=deviations)

        is_interval = given["label"] == "interval"
        columns: partition_releases.Columns = BoxColumns(what, set()) if is_interval else _Values(what)
        return partition_releases.released(work, what, files, released, columns, k, survey.rows, part_rows)


class _Values(partition_releases.PartColumns):
    """The columns of groups that are released as one value."""

    def finish(self, block: pa.Table) -> pa.Table:
        """Return the columns that are released, in the table's order."""
        wanted = {*self._what.names, *self._what.kept}
        return block.select([name for name in self._what.types if name in wanted])
