"""How coarse each protected column became: the number of its labels, and the label that most rows have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duckanon.report.safe import promised_k
from duckanon.report.tables import NEW_RECORDS, Pair, literal, quoted, role_of

_LONGEST = 40


def coarseness(pair: Pair) -> list[dict[str, Any]]:
    """Return the labels of each quasi-identifier in the release, in the policy's order.

    The typical label is None where it is a value of the original, as in a column that stayed as it is, where it names a
    text that fewer than k rows have, or where fewer than k rows have it: a record holds no value of the data.
    """
    if pair.method in NEW_RECORDS:
        return []
    there, found = pair.columns_of(pair.released), []
    for column in pair.table["columns"]:
        name = column["name"]
        held = next((held for held in ([name], [f"{name}_lo", f"{name}_hi"]) if set(held) <= set(there)), None)
        if held and role_of(column) == "quasi_identifier":
            found.append({"column": name, **_labels(pair, name, held)})
    return found


def _labels(pair: Pair, column: str, held: Sequence[str]) -> dict[str, Any]:
    """Count the labels that a column has in the release, NULL included, and choose the typical one."""
    texts = [f"CAST({quoted(one)} AS VARCHAR)" for one in held]
    label = texts[0] if len(texts) == 1 else f"'[' || {texts[0]} || ', ' || {texts[1]} || ']'"
    k, value = promised_k(pair.table), quoted(column)
    rows = pair.rows(
        f"""WITH labels AS (SELECT {label} AS label, count(*) AS size FROM query_table({literal(pair.released)})
                            GROUP BY ALL),
                 top AS (SELECT *, count(*) OVER () AS labels FROM labels ORDER BY size DESC, label ASC NULLS LAST
                         LIMIT 1),
                 known AS (SELECT CAST({value} AS VARCHAR) AS known,
                                  typeof(any_value({value})) = 'VARCHAR' AND count(*) < {k} AS is_rare
                           FROM query_table({literal(pair.original)}) WHERE {value} IS NOT NULL GROUP BY ALL)
            SELECT *, EXISTS (SELECT 1 FROM known WHERE known = label OR (is_rare AND contains(label, known))) AS tells
            FROM top"""
    )
    if not rows:
        return {"labels": 0, "typical": None}
    top = rows[0]
    is_told = top["label"] is not None and not top["tells"] and top["size"] >= k
    shown = str(top["label"]) if len(str(top["label"])) <= _LONGEST else str(top["label"])[: _LONGEST - 1] + "…"
    return {"labels": top["labels"], "typical": shown if is_told else None}
