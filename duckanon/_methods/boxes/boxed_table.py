"""The table that ``anon.boxes`` releases: numbers and dates as intervals, everything else as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress, values
from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Floats, Ints, is_time
from duckanon._core.common.declare import report_rows
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import label_names, refuse_too_few
from duckanon._core.numbers.ends import HIGH
from duckanon._core.numbers.support import Support, column_support
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.boxes import theory
from duckanon._methods.boxes.declared import OPTIMAL_UNCERTAINTY
from duckanon._methods.boxes.make import make_boxes
from duckanon._methods.boxes.result import Boxes
from duckanon._methods.boxes.shaping import Statistic, Whole
from duckanon._methods.boxes.strata import with_strata
from duckanon._methods.boxes.typed import column_numbers, published_ends, split_people

_KINDS = {"sd": "standard_deviation", "standard deviation": "standard_deviation"}


def boxes(
    table: pa.Table,
    *,
    cols: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float] | None,
    box: str,
    effort: str,
    seconds: float | None,
    person: str | None,
    kept: Kept,
    by: Sequence[str] | None,
    top_code: bool,
    bounds_are_public: bool,
    whole: Whole | None = None,
) -> pa.Table:
    """Put the records of a table into boxes (`boxes.make`) and return it with intervals, in a random order.

    Options are as `BOXES` declares them; `whole` is what is known of the table that this one is a part of, if it is
    one.
    """
    table, names, people = split_people(table, cols, person, kept)
    for name in table.column_names:
        if name.lower() == "box" or name.lower().startswith("_duckanon_"):
            raise ValueError(f'the table has a column "{name}", a name that is needed for the boxes; rename it first.')
    distances = read_distances(table, names, epsilon)
    strata = None
    if by:
        labels, numbers = label_names(table, by), column_numbers(table, names)
        refuse_too_few(k, table.num_rows, people, "records")
        if box == "parts" and l > 1:  # what is coded may be less diverse
            supports = _supports(table, numbers, k, l, people, {})
            numbers = {name: supports[name].coded(column) for name, column in numbers.items()}
        table, strata = with_strata(table, labels, numbers, k, people, l, distances)
    searched = {"epsilon": distances, "effort": effort, "seconds": seconds, "strata": strata}
    made = _made(table, names, k, statistics, box, l, people, whole, **searched, bounds_are_public=bounds_are_public)
    # a box has the labels of one group, whose k people share it
    allowed = {name.lower() for name in [*(kept.narrowing or []), *(by or []), *([person] if person else [])]}
    _refuse_narrowing(table, names, made, box, allowed)
    order = generator(None).permutation(table.num_rows)
    shuffled = table.take(pa.array(order))
    number = made.box[order]
    for index, name in enumerate(names):
        low, high = published_ends(table.column(name), made, index, box, top_code)
        shuffled = shuffled.set_column(shuffled.column_names.index(name), name, low.take(pa.array(number)))
        shuffled = shuffled.append_column(HIGH + name, high.take(pa.array(number)))
    return shuffled.append_column("_duckanon_box", pa.array(number + 1))


def _refuse_narrowing(table: pa.Table, names: Sequence[str], made: Boxes, box: str, allowed: set[str]) -> None:
    """Refuse a kept column that narrows down what the intervals say, unless that is allowed."""
    kept = {
        name: table.column(name) for name in table.column_names if name not in names and name.lower() not in allowed
    }
    if not kept:
        return
    ends = np.stack(made.intervals(box), axis=2)
    labels = {
        name: np.unique(ends[:, index], axis=0, return_inverse=True)[1].reshape(-1)[made.box]
        for index, name in enumerate(names)
    }
    refuse_narrowing(column_numbers(table, names), labels, kept, made.box)


def optimal_uncertainty(
    table: pa.Table | None, *, cols: Sequence[str], k: int, statistics: Sequence[Mapping[str, Any]] | None
) -> pa.Table:
    """Report how wide boxes must be at best, asymptotically, and how wide those that are made are."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    wanted = {name.lower() for name in cols}
    names = [name for name in table.column_names if name.lower() in wanted]
    asked = read_statistics(statistics, names)
    least = theory.optimal_uncertainty(column_numbers(table, names), k, asked)
    row = {"optimum": least}
    for kind in ("parts", "bounds", "cell"):
        made = _made(table, names, k, statistics, kind, bounds_are_public=True)  # only widths are reported
        width = made.uncertainty_of(*_published_numbers(table, names, made, kind))
        row |= {kind: width, f"{kind}_ratio": width / least if least else float("nan")}
    return report_rows([row], OPTIMAL_UNCERTAINTY.schema)


def _published_numbers(table: pa.Table, names: Sequence[str], made: Boxes, box: str) -> tuple[Floats, Floats]:
    """Return the ends that are released, which may be rounded, as numbers again; boxes by columns."""
    ends = [published_ends(table.column(name), made, index, box) for index, name in enumerate(names)]
    lower, upper = (
        np.stack([values.numbers(name, pair[side])[0] for name, pair in zip(names, ends, strict=True)], axis=1)
        for side in (0, 1)
    )
    return lower, upper


def box_halfwidths(
    *,
    sensitivities: Sequence[float] | None,
    density: float | None,
    k: int | None,
    l: int | None,  # noqa: E741
    epsilon: Sequence[float] | None,
) -> list[float] | None:
    """Return the best half-widths of a box around one point; None where something is not known."""
    if sensitivities is None or density is None or k is None or l is None:
        return None
    widths = theory.halfwidths(np.array(sensitivities, np.float64), density, k, l, epsilon)
    return [float(width) for width in widths]


def _made(
    table: pa.Table,
    names: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    box: str,
    l: int = 1,  # noqa: E741
    people: Ints | None = None,
    whole: Whole | None = None,
    **options: Any,
) -> Boxes:
    """Make boxes of a table's columns; `options` are those of `make_boxes`."""
    asked, numbers = read_statistics(statistics, names), column_numbers(table, names)
    known = {} if whole is None else whole.supports
    supports = _supports(table, numbers, k, l, people, known) if box == "parts" else {}
    options |= {"people": people, "kind": box, "supports": supports, "whole": whole, "progress": progress.at}
    return make_boxes(numbers, k, asked, l, **options)


def _supports(
    table: pa.Table,
    numbers: Mapping[str, Floats],
    k: int,
    l: int,  # noqa: E741
    people: Ints | None,
    known: Mapping[str, Support],
) -> dict[str, Support]:
    """Find the units and ends of columns, where they are not known; diverse values are not rounded."""
    return {
        name: known.get(name) or column_support(table.schema.field(name).type, column, k, people, is_exact=l > 1)
        for name, column in numbers.items()
    }


def read_distances(table: pa.Table, names: Sequence[str], epsilon: Mapping[str, float] | None) -> dict[str, float]:
    """Read how far apart values must be to be different, for days and moments in microseconds."""
    spelling = {name.lower(): name for name in names}
    apart = {spelling.get(name.lower(), name): float(value) for name, value in (epsilon or {}).items()}
    for name in apart:
        if name in spelling.values() and is_time(table.schema.field(name).type):
            apart[name] *= MICROSECONDS_PER_DAY
    return apart


def read_statistics(given: Sequence[Mapping[str, Any]] | None, names: Sequence[str]) -> list[Statistic] | None:
    """Read the statistics as the caller wrote them: structs of statistic, columns, probability, accuracy."""
    if given is None:
        return None
    spelling = {name.lower(): name for name in names}
    statistics = []
    for request in given:
        if not isinstance(request, Mapping) or not {"statistic", "columns"} <= request.keys():
            raise ValueError(
                "statistics must be a list such as [{'statistic': 'variance', 'columns': ['age']}], with probability "
                f"and accuracy where they matter; got {request}."
            )
        if unknown := request.keys() - {"statistic", "columns", "probability", "accuracy"}:
            raise ValueError(f"a statistic has statistic, columns, probability and accuracy; got {min(unknown)}.")
        listed = request["columns"] if isinstance(request["columns"], list) else [request["columns"]]
        columns = tuple(spelling.get(str(name).lower(), str(name)) for name in listed)
        kind = str(_KINDS.get(request["statistic"], request["statistic"]))
        more = {key: float(request[key]) for key in ("probability", "accuracy") if request.get(key) is not None}
        statistics.append(Statistic(kind, columns, **more))
    return statistics
