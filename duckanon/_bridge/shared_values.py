"""Values of new records that fewer people of the original share than was promised, counted by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from duckanon._bridge import sql
from duckanon._core.common.labels import OTHER

_FEWEST = 3  # people who share a released number, at least; categories are shared by k
_MOST_DECIMALS = 12
_NUDGE = (
    1e-13  # of a number: one that is halfway between two rounded ones, but for a computation's error, counts for both
)


class Shared(NamedTuple):
    """Released values that people of the original have, too."""

    rare: int  # those of too few people
    fewest: int | None  # the people who share the rarest category; None where no category is shared


def count_shared_values(
    con: sql.Connection, original: str, released: str, columns: Sequence[str], k: int, person: str | None
) -> Shared:
    """Count the released values that at least one person of the original has, but fewer than promised.

    Categories are promised to be shared by k people, numbers by three; values that nobody has are releasable, and so is
    ``other``, which merged values are called. Numbers are compared at the digits that the release has.

    Args:
        con: A registered connection.
        original, released: Two tables, or queries in parentheses.
        columns: Their columns to count.
        k, person: As in the function that made the release.
    """
    types = {row[0]: str(row[1]) for row in con.execute(f"DESCRIBE FROM {original}").fetchall()}
    people = "count(*)" if person is None else f"count(DISTINCT {sql.quote(person)})"
    person_column = "" if person is None else f", {sql.quote(person)}"
    counts = []
    for column in columns:
        is_number = _has_numbers(con, types[column])
        least = min(k, _FEWEST) if is_number else k
        value = held = sql.quote(column)
        if types[column] in ("FLOAT", "DOUBLE") and (decimals := _decimals(con, released, value)) is not None:
            rounded = [
                f"coalesce(round({held}::DOUBLE{nudge}, {decimals}), 'nan')"
                for nudge in ("", f" - {_NUDGE} * abs({held})")
            ]
            value, held = rounded[0], f"unnest(list_distinct([{', '.join(rounded)}]))"
        elif types[column].startswith("ENUM"):
            value = held = f"{value}::VARCHAR"
        rare, fewest = sql.fetch_row(
            con,
            f"SELECT coalesce(sum(cells) FILTER (holders < {least}), 0)::BIGINT, min(holders) "
            f"FROM (SELECT {value} AS value, count(*) AS cells FROM {released} GROUP BY value) AS shown "
            f"JOIN (SELECT value, {people} AS holders FROM (SELECT {held} AS value{person_column} FROM {original}) "
            "GROUP BY value) AS held ON shown.value IS NOT DISTINCT FROM held.value "
            f"WHERE holders >= {least} OR held.value::VARCHAR IS DISTINCT FROM {sql.literal(OTHER)}",
        )
        counts.append((rare, None if is_number else fewest))
    shared = [fewest for _, fewest in counts if fewest is not None]
    return Shared(sum(rare for rare, _ in counts), min(shared) if shared else None)


def _has_numbers(con: sql.Connection, kind: str) -> bool:
    is_time = kind in ("DATE", "TIME") or kind.startswith("TIMESTAMP")
    return is_time or bool(sql.fetch_row(con, f"SELECT anon._kind({sql.literal(kind)}) = 'numeric'")[0])


def _decimals(con: sql.Connection, released: str, column: str) -> int | None:
    """Return how many decimals released floats have; None where they are not rounded."""
    checks = ", ".join(f"bool_and({column} = round({column}, {places}))" for places in range(_MOST_DECIMALS + 1))
    answers = sql.fetch_row(con, f"SELECT {checks} FROM {released}")
    return next((places for places, is_rounded in enumerate(answers) if is_rounded), None)
