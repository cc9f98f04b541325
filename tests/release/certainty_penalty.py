"""GCP, the global certainty penalty of a recoded table: the mean over rows and columns of what each label leaves open.

Of a number or a date: the width of its interval, as a share of the column's range. Of a category: the other values that
the label stands for, as a share of all other values that occur. A label of a hierarchy stands for the values below it.
It reads the released text alone, and none of the code that made it.
"""

from __future__ import annotations

import csv
import datetime
import re
from collections import Counter
from collections.abc import Mapping, Sequence


def global_certainty_penalty(
    original: Mapping[str, Sequence],
    released: Mapping[str, Sequence[str | None]],
    hierarchies: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> float:
    """Return the mean over all rows and columns; hierarchies have one row a leaf: itself, level 1, level 2, ..."""
    losses = [
        column_penalty(original[name], labels, (hierarchies or {}).get(name)) for name, labels in released.items()
    ]
    return sum(losses) / len(losses)


def column_penalty(values: Sequence, labels: Sequence[str | None], hierarchy: Sequence[Sequence[str]] | None) -> float:
    """Return the mean over the rows of one column."""
    known = [value for value in values if value is not None]
    if hierarchy is None and not isinstance(known[0], str):
        loss_of = {label: _interval(label, known) for label in set(labels)}
    else:
        loss_of = _categories({None if value is None else str(value) for value in values}, set(labels), hierarchy)
    return sum(loss_of[label] * count for label, count in Counter(labels).items()) / len(labels)


def _interval(label: str | None, known: Sequence) -> float:
    if label is None:
        return 0.0
    if label == "*":
        return 1.0
    numbers = [_number(str(value)) for value in (min(known), max(known))]
    if label[:2] == "<=":
        ends = [numbers[0], max(numbers[0], _number(label[2:]))]
    elif label[:2] == ">=":
        ends = [min(numbers[1], _number(label[2:])), numbers[1]]
    else:
        ends = [_number(end) for end in label.strip("[]").split(", ")]
    return min(1.0, (ends[-1] - ends[0]) / (numbers[1] - numbers[0])) if numbers[0] < numbers[1] else 0.0


def _number(text: str) -> float:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return float(datetime.date.fromisoformat(text).toordinal())
    return float(text)


def _categories(values: set, labels: set, hierarchy: Sequence[Sequence[str]] | None) -> dict[str | None, float]:
    below: dict[str, set[str]] = {}
    for leaf, *above in hierarchy or []:
        for label in (leaf, *above):
            if leaf in values:
                below.setdefault(label, set()).add(leaf)
    named = {part for label in labels if label is not None for part in _parts(label)}
    pooled = {value for value in values if value is not None and value not in named} if hierarchy is None else set()
    sizes = {}
    for label in labels:
        if label is None:
            sizes[label] = 1
        elif label == "*":
            sizes[label] = len(values)
        elif label in below:
            sizes[label] = len(below[label])
        else:
            sizes[label] = sum(len(pooled) if part == "other" else 1 for part in _parts(label))
    return {label: (size - 1) / max(len(values) - 1, 1) for label, size in sizes.items()}


def _parts(label: str) -> list[str]:
    """Split a set at its commas; those within quotation marks are a value's own, and marks within them are doubled."""
    if not (label.startswith("{") and label.endswith("}")):
        return [label]
    return next(csv.reader([label[1:-1]], skipinitialspace=True))
