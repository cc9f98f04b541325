"""Values of new records that fewer people of the original share than was promised, counted by SQL."""

from __future__ import annotations

from duckanon._bridge import sql

_FEWEST = 3  # people who share a released number, at least; categories are shared by k
_MOST_DECIMALS = 12
_NUDGE = 1e-9  # a number halfway between two rounded ones counts for both


def rare_cells(
    con: sql.Connection, original: str, released: str, columns: list[str], k: int, person: str | None
) -> int:
    """Count the released values shared by at least one person of the original, but too few.

    Values that nobody has are releasable. Numbers are compared at the digits that the release has.
    """
    types, found = sql.columns(con, original), 0
    people = "count(*)" if person is None else f"count(DISTINCT {sql.name(person)})"
    whose = "" if person is None else f", {sql.name(person)}"
    for column in columns:
        own, least = sql.name(column), k
        value, held = own, own
        if _has_numbers(con, types[column]):
            least = min(k, _FEWEST)
        if types[column] in ("FLOAT", "DOUBLE") and (decimals := _decimals(con, released, own)) is not None:
            value = f"round({own}::DOUBLE, {decimals})"
            nudged = f"round({own}::DOUBLE - {_NUDGE}, {decimals})"
            held = f"unnest(list_distinct([coalesce({value}, 'nan'), coalesce({nudged}, 'nan')]))"
            value = f"coalesce({value}, 'nan')"
        (cells,) = sql.one(
            con,
            f"SELECT count(*) FROM (SELECT {value} AS value FROM {released}) AS shown JOIN "
            f"(SELECT value FROM (SELECT {held} AS value{whose} FROM {original}) GROUP BY value "
            f"HAVING {people} < {least}) AS few ON shown.value IS NOT DISTINCT FROM few.value",
        )
        found += cells
    return found


def _has_numbers(con: sql.Connection, kind: str) -> bool:
    is_time = kind in ("DATE", "TIME") or kind.startswith("TIMESTAMP")
    return is_time or bool(sql.one(con, f"SELECT anon._kind({sql.literal(kind)}) = 'numeric'")[0])


def _decimals(con: sql.Connection, released: str, column: str) -> int | None:
    """Return how many decimals released floats have; None where they are not rounded."""
    checks = ", ".join(f"bool_and({column} = round({column}, {places}))" for places in range(_MOST_DECIMALS + 1))
    answers = sql.one(con, f"SELECT {checks} FROM {released}")
    return next((places for places, is_rounded in enumerate(answers) if is_rounded), None)
