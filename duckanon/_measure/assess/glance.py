"""`anon.assess`: a table at a glance, from a sample that keeps people and households whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common import codes
from duckanon._measure.assess import profiles, relations, roles
from duckanon._measure.assess.declared import ASSESS_ROWS
from duckanon._measure.assess.keys import Role

_MOST_UNIQUE = 0.5
"""A column in which more of the people are unique determines nearly everything, and is not asked for it."""


def assess(
    table: pa.Table | None,
    row_count: int,
    names: list[str],
    kinds: list[str],
    distinct: list[int],
    known_rows: list[int],
    unique_fractions: list[float],
    categories: list[list[str]],
    keys: list[int],
    person: str | None,
) -> pa.Table:
    """Find the role of every column from a sample: the number of the ``row``, and its values as ``texts``.

    For each of `keys`, columns by their places from 1, ``whole`` says whether all rows with the same value are in the
    sample; None where the table has no rows. The other lists are about every column, counted in the whole table of
    `row_count` rows: kinds (numeric, date, text, boolean or other), different values, rows with a value, the share of
    people with a value of their own, and the categories of anon.direct_identifiers. `person` names the column that
    identifies people, where that is known.
    """
    if table is None or not names:
        return _report(
            [(place, Role.UNDECIDED, "the table has no rows.", None, [], []) for place, _ in enumerate(names, 1)]
        )
    table = table.take(np.argsort(table["row"].to_numpy())).combine_chunks()
    whole = np.array(table["whole"].to_pylist(), dtype=bool).reshape(table.num_rows, -1)
    cells = table["texts"].combine_chunks().flatten()
    texts = [cells.take(np.arange(place, len(cells), len(names))) for place in range(len(names))]
    is_sample = table.num_rows < row_count
    columns = [
        profiles.profile(
            name,
            texts[place],
            kinds[place],
            distinct[place] / max(known_rows[place], 1) if is_sample else None,
            unique_fractions[place],
            categories[place],
            whole[:, keys.index(place + 1)] if place + 1 in keys else None,
        )
        for place, name in enumerate(names)
    ]
    findings = roles.find(columns, row_count, person)
    follow = relations.find_determined(
        [
            column_codes.astype(np.int64)
            for column_codes, _ in codes.encode_columns(pa.table(texts, names=list(map(str, range(len(names))))))
        ],
        [
            share <= _MOST_UNIQUE and count + (rows < row_count) > 1  # NULL is a value
            for share, count, rows in zip(unique_fractions, distinct, known_rows, strict=True)
        ],
    )
    return _report(
        [
            (
                place + 1,
                findings.roles[name],
                f"{findings.reasons[name]}{_unique(findings.roles[name], unique_fractions[place])}.",
                findings.growth.get(name),
                [names[other] for other in follow[place]],
                [names[other] for other in range(len(names)) if place in follow[other]],
            )
            for place, name in enumerate(names)
        ]
    )


def _unique(role: str, share: float) -> str:
    """Say how many people are unique in a column, where that is not why it has its role."""
    if role in (Role.PERSON, Role.HOUSEHOLD, Role.IDENTIFIER) or share == 0:
        return ""
    return f"; {'fewer than 0.01' if share < 0.0001 else f'{100 * share:.4g}'} % of the people are unique in it"


def _report(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ASSESS_ROWS.names, row, strict=True)) for row in rows], schema=ASSESS_ROWS)
