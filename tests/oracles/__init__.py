"""An oracle for each promise of `duckanon._core.common.contracts`, written from its sentence in plain Python.

An oracle takes a call and the promise, and says in short sentences what is broken. It imports nothing of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.oracles import cells, columns, definitions, labels, people
from tests.oracles.call import Call

ORACLES: dict[str, Callable[[Call, Any], Iterator[str]]] = {
    "OneRow": columns.one_row,
    "RowPer": columns.row_per,
    "KeepsRows": columns.keeps_rows,
    "DrawsRows": columns.draws_rows,
    "OnlyColumns": columns.only_columns,
    "KeepsTypes": columns.keeps_types,
    "KeepsValues": columns.keeps_values,
    "KeepsValuesOrNull": columns.keeps_values_or_null,
    "SameDistribution": columns.same_distribution,
    "AtLeastKPeople": people.at_least_k_people,
    "KPeopleAgree": people.k_people_agree,
    "SharedValues": people.shared_values,
    "TrueLabels": labels.true_labels,
    "TrueIntervals": labels.true_intervals,
    "CellsOfKPeople": cells.cells_of_k_people,
    "TrueCells": cells.true_cells,
    "EqualsDefinition": definitions.equals_definition,
    "Between": definitions.between,
    "BucketsOfKRows": definitions.buckets_of_k_rows,
    "EstimatesInside": definitions.estimates_inside,
    "FunctionOfValue": labels.function_of_value,
}
"""By the name of the promise. `InvariantUnder` and `CountsPeople` are about pairs of calls: `tests.seams.changes`."""
