"""Boxes of tables that are larger than memory: `duckanon.large.boxes`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from duckanon.boxes import functions
from duckanon.boxes.parts import fences_of
from duckanon.boxes.shaping import Moments, sensitivities_of
from duckanon.boxes.whole import Whole
from duckanon.bridge import sql
from duckanon.common.arguments import generator
from duckanon.large import parts
from duckanon.large.checks import Checked, checked
from duckanon.large.routing import fitted
from duckanon.large.survey import Survey, surveyed
from duckanon.large.workspace import SOURCE, arrow_reader, workspace

CALLER = "anon.boxes"
SAMPLE = 200_000
"""Rows that the routing tree is fitted on: the sizes of twenty parts are right to within a percent."""

BYTES_OF_ROW, BYTES_OF_CELL = 60, 90
"""Memory of a part, for each row and for each of its values that become intervals."""

_BATCH = 100_000


@dataclass(frozen=True)
class Released:
    """What was written.

    Attributes
    ----------
    rows
        How many rows.
    parts
        How many parts they were made in.
    smallest_class
        The people of the smallest class, counted in the written file.
    """

    rows: int
    parts: int
    smallest_class: int


def boxes(
    source: Any,
    target: Any,
    cols: Sequence[str],
    k: int,
    *,
    statistics: Sequence[Mapping[str, Any]] | None = None,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None = None,
    box: str = "parts",
    effort: str = "default",
    seconds: float | None = None,
    person: str | None = None,
    keep: Sequence[str] | None = None,
    narrowing: Sequence[str] | None = None,
    top_code: bool = False,
    bounds_are_public: bool = False,
    memory: str = "2GB",
    seed: int | None = None,
    temporary: Any = None,
) -> Released:
    """Write a table whose numbers and dates are intervals that at least k people share, as `anon.boxes` makes them.

    Parameters
    ----------
    source, target, memory, temporary
        As for `workspace`.
    cols, k, statistics, l, epsilon, box, effort, seconds, person, keep, narrowing, top_code, bounds_are_public
        As for `anon.boxes`.
    seed
        Makes the boxes of the same rows in the same order repeatable; the order of the released rows never is.
    """
    options: dict[str, Any] = {"k": k, "l": l, "epsilon": epsilon, "box": box, "bounds_are_public": bounds_are_public}
    options |= {"top_code": top_code, "effort": effort, "seconds": seconds}
    with workspace(source, target, memory, temporary) as work:
        what = checked(work.con, CALLER, "_checked_boxes", options, cols, keep, person)
        survey = _survey(work.con, what, k, seed)
        statistics_asked = functions.read_statistics(statistics, what.names)
        shape = arrow_reader(work.con.sql(f"SELECT {sql.names(what.columns)} FROM {SOURCE} LIMIT 0"), 1).read_all()
        distances = functions.read_distances(shape, what.names, epsilon)
        moments = Moments.known(survey.means, survey.covariances)
        sensitivity = sensitivities_of(moments, what.names, statistics_asked)
        whole = Whole(sensitivity, survey.grids, {name: fences_of(values) for name, values in survey.sample.items()})
        part_rows = work.memory.part // (BYTES_OF_ROW + BYTES_OF_CELL * len(what.names))
        weights = sensitivity.at(list(survey.sample.values()))
        apart = [distances.get(name, 0.0) for name in what.names]
        tree = fitted(survey.sample, weights, survey.rows, k, part_rows, l, apart)
        files = parts.route(work, what.columns, tree, what.expressions, k, what.person)

        def released(part: pa.Table) -> pa.Table:
            return functions.boxes(
                part,
                cols=what.names,
                k=k,
                statistics=statistics,
                l=l,
                epsilon=epsilon,
                box=box,
                effort=effort,
                seconds=None if seconds is None else seconds / len(files),
                person=what.person,
                keeps_person=True,
                narrowing=narrowing,
                by=None,
                top_code=top_code,
                refused=None,
                whole=whole,
            )

        numbering = _Numbering()
        results = parts.made(
            work, files, lambda part: numbering.apart(released(part)), parts.blocks_of(survey.rows, part_rows)
        )
        numbering.settle()
        keeps_person = what.person in what.kept
        written = parts.mixed(work, results, lambda block: _finished(block, what, numbering), what.person, keeps_person)
        smallest = parts.counted(work, written, what.names, k, what.person, survey.rows)
        return Released(survey.rows, len(files), smallest)


class _Numbering:
    """Numbers for the boxes of all parts, which do not tell the part."""

    def __init__(self) -> None:
        self.count = 0
        self._order = np.zeros(0, np.int64)

    def apart(self, result: pa.Table) -> pa.Table:
        """Tell the boxes of a part from those of the parts before."""
        place = result.column_names.index("_duckanon_box")
        numbers = result.column(place).to_numpy() + self.count
        self.count = int(numbers.max())
        return result.set_column(place, "_duckanon_box", pa.array(numbers))

    def settle(self) -> None:
        """Draw the numbers."""
        self._order = generator(None).permutation(self.count) + 1

    def of(self, boxes: pa.ChunkedArray) -> pa.Array:
        """Return the numbers of boxes."""
        return pa.array(self._order[boxes.to_numpy() - 1])


def _finished(block: pa.Table, what: Checked, numbering: _Numbering) -> pa.Table:
    """Return the columns that are released: the box, the intervals, and what is kept."""
    columns = {"box": numbering.of(block.column("_duckanon_box"))}
    for name in what.names:
        ends = [block.column(which).combine_chunks() for which in (name, functions.HIGH + name)]
        columns[name] = pa.StructArray.from_arrays(ends, ["lo", "hi"])
    return pa.table(columns | {name: block.column(name) for name in what.kept})


def _survey(con: duckdb.DuckDBPyConnection, what: Checked, k: int, seed: int | None) -> Survey:
    counts = ", ".join(f"count({sql.name(name)})" for name in what.names)
    rows, *known = sql.one(con, f"SELECT count(*), {counts} FROM {SOURCE}")
    if k > rows:
        raise ValueError(f"{CALLER}: k must be at most the number of records, {rows}; got {k}.")
    for name, count in zip(what.names, known, strict=True):
        if count < rows:
            raise ValueError(
                f'{CALLER}: column "{name}" has {rows - count} NULLs, which no interval holds; leave them out.'
            )
    return surveyed(_batches(con, what.names), what.names, rows, SAMPLE, seed)


def _batches(con: duckdb.DuckDBPyConnection, names: Sequence[str]) -> Iterator[pa.Table]:
    for batch in arrow_reader(con.sql(f"SELECT {sql.names(names)} FROM {SOURCE}"), _BATCH):
        yield pa.Table.from_batches([batch])
