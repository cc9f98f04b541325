"""People with several rows of a table larger than memory: which columns are theirs, and new numbers for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql
from duckanon._core.common.arrays import Ints
from duckanon._core.common.declare import Options
from duckanon._core.encoding.column_split import Reading
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_columns import Counted
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.people_with_rows import Drawing
from duckanon._methods.synthesize.sequence_order import ordering_columns
from duckanon._methods.synthesize.sequence_parts import SequenceSynthesis
from duckanon.large.checks import Checked
from duckanon.large.value_counts import CLEANED
from duckanon.large.workspace import Workspace


def people_with_rows(
    work: Workspace,
    what: Checked,
    counted: Sequence[Counted],
    columns: Sequence[tuple[ColumnParts, Ints | None]],
    given: Options,
    random: np.random.Generator,
) -> SequenceSynthesis | None:
    """Return what people are drawn with; None where fewer than k have several rows, and rows are drawn one by one."""
    if what.person is None:
        return None
    person, k = sql.name(what.person), given["k"]
    rows = f"SELECT count(*) AS size FROM {CLEANED} WHERE {person} IS NOT NULL GROUP BY {person}"
    if sql.one(work.con, f"SELECT count(*) FROM ({rows}) WHERE size > 1")[0] < k:
        return None
    names = what.names
    differing = ", ".join(
        f"min({name}) IS DISTINCT FROM max({name}) OR count({name}) NOT IN (0, count(*)) AS c{place}"
        for place, name in enumerate(map(sql.name, names))
    )
    counts = ", ".join(f"count(*) FILTER (c{place})" for place in range(len(names)))
    people = f"SELECT {differing} FROM {CLEANED} WHERE {person} IS NOT NULL GROUP BY {person}"
    exceptions = sql.one(work.con, f"SELECT {counts} FROM ({people})")
    personal = [name for name, count in zip(names, exceptions, strict=True) if count < FEWEST]
    schema = pa.schema([(one.name, one.array.type) for one in counted])
    ordering = ordering_columns(schema.empty_table(), personal, given["order_by"])
    reading = Reading(k, special_choices(given["special"], names), None, given["nulls"], random)
    drawing = Drawing(given["leaf"], None, given["keep_out"], given["derived"])
    return SequenceSynthesis.of(counted, columns, schema, personal, ordering, reading, drawing)


def part_sizes(work: Workspace, files: Sequence[Sequence[Path]], person: str) -> list[int]:
    """Count the people of each part."""
    return [
        int(
            sql.one(
                work.con,
                f"SELECT count(DISTINCT {sql.name(person)}) "
                f"FROM read_parquet({sql.literal([str(path) for path in paths])}, hive_partitioning = false)",
            )[0]
        )
        for paths in files
    ]
