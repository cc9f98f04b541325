"""The numbers of a report about one table, rounded so that they may leave with the release.

How coarse each protected column became: the number of its labels, and the label that most rows have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from duckanon._core.common.release_record import TableEntry
from duckanon.plot.assessment import BAND_STARTS, band_name
from duckanon.report.safe import k_of_release, round_to_step, significant, step_for
from duckanon.report.tables import (
    NEW_RECORDS,
    Pair,
    comparable,
    find_erased_columns,
    literal,
    name_list,
    quote,
    role_of,
    sample_tables,
    utility_query,
)

_LONGEST = 40


def coarseness(pair: Pair) -> list[dict[str, Any]]:
    """Return the labels of each quasi-identifier in the release, in the policy's order.

    The typical label is None where it is a value of the original, as in a column that stayed as it is, where it names a
    text that fewer than k rows have, or where fewer than k rows have it: a record holds no value of the data.
    """
    if pair.method in NEW_RECORDS:
        return []
    there, rows = pair.columns_of(pair.released), []
    for column in pair.table["columns"]:
        name = column["name"]
        held = next((held for held in ([name], [f"{name}_lo", f"{name}_hi"]) if set(held) <= set(there)), None)
        if held and role_of(column) == "quasi_identifier":
            rows.append({"column": name, **_labels(pair, name, held)})
    return rows


def _labels(pair: Pair, column: str, held: Sequence[str]) -> dict[str, Any]:
    """Count the labels that a column has in the release, NULL included, and choose the typical one."""
    texts = [f"CAST({quote(one)} AS VARCHAR)" for one in held]
    label = texts[0] if len(texts) == 1 else f"'[' || {texts[0]} || ', ' || {texts[1]} || ']'"
    k, value = k_of_release(pair.table), quote(column)
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


_HIGH_RISK = 5  # people in a class: in smaller ones the chance of finding somebody is above 0.2, the usual threshold
_COMPONENTS = 5
_ATTACKED = 1_000  # people whose neighbours are looked for in the release


def measured(
    con: duckdb.DuckDBPyConnection,
    original: str,
    released: str,
    table: TableEntry,
    reference: str | None = None,
    *,
    plan: str | None = None,
    hierarchies: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Measure a release for its report: plain JSON values, none of them a value of the data.

    Args:
        con: A connection with everything registered.
        original, released: The names of the two tables in it.
        table: The entry of the record: name, rows, method, columns with their roles.
        reference: The name of a sample of other people, with the same columns.
        plan: The name of the plan that generalized the columns; kept columns that narrow them down are then measured.
        hierarchies: Names of tables with hierarchies, by column, for methods that release their labels.

    Returns:
        `classes`, `risk`, `coarseness`, `narrowing`, `prediction` and `utility`; None for parts that this kind of
        release lacks. `erased` names the columns of which nothing is left, and which `utility` does not compare.
    """
    pair = Pair(con, original, released, table, hierarchies or {})
    people = int(table.get("people") or table.get("rows") or pair.count(original))
    step = step_for(people)
    columns = pair.with_role("quasi_identifier")
    is_there = all(pair.count(name) for name in (original, released))
    erased = find_erased_columns(pair) if is_there else []
    classes = _classes(pair, columns, step) if columns and is_there else None
    return {
        "step": step,
        "classes": classes and {key: classes[key] for key in ("columns", "before", "after")},
        "risk": classes and classes["risk"],
        "coarseness": coarseness(pair) if is_there else [],
        "narrowing": _narrowing(pair, columns, plan) if classes and classes["after"] else [],
        "prediction": _prediction(pair, reference, step) if reference and is_there else None,
        "erased": erased,
        "utility": _utility(pair, erased) if is_there else None,
    }


def _classes(pair: Pair, columns: Sequence[str], step: float) -> dict[str, Any]:
    """Count people who look the same, before and after; before only in bands and rounded."""
    before = _sizes(pair, pair.original, columns)
    smallest = min(row["class_size"] for row in before)
    start = max([edge for edge in BAND_STARTS if edge <= smallest] or [1])
    result: dict[str, Any] = {
        "columns": list(columns),
        "before": {
            "smallest": band_name(BAND_STARTS.index(start)) if smallest else "0",  # of rows without a person
            "bands": [{**band, "fraction": round_to_step(band["fraction"], step)} for band in _bands(before)],
        },
        "after": None,
        "risk": {"before": {name: round_to_step(value, step) for name, value in _risk(before).items()}, "after": None},
    }
    result["risk"]["before"]["maximum"] = significant(1 / start)
    if pair.method not in NEW_RECORDS:
        after = _sizes(pair, pair.released, columns)
        result["after"] = {"smallest": min(row["class_size"] for row in after), "bands": _bands(after)}
        result["risk"]["after"] = {name: significant(value, 3) for name, value in _risk(after).items()}
    return result


def _sizes(pair: Pair, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the histogram of class sizes; cells that were suppressed match anything."""
    is_open = pair.method == "suppress_cells" and name == pair.released and pair.parameters.get("nulls") != "value"
    option = ", nulls := 'any'" if is_open else pair.person_option(name)
    return pair.rows(f"FROM anon.class_sizes({literal(name)}, {name_list(columns)}{option})")


def _bands(sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    total = sum(row["rows"] for row in sizes) or 1
    ends = [*BAND_STARTS[1:], float("inf")]
    return [
        {
            "size": band_name(index),
            "fraction": significant(
                sum(row["rows"] for row in sizes if start <= max(row["class_size"], 1) < end) / total, 4
            ),
        }
        for index, (start, end) in enumerate(zip(BAND_STARTS, ends, strict=True))
    ]


def _risk(sizes: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the prosecutor risk of `anon.reidentification_risk`, from class sizes, by rows."""
    total = sum(row["rows"] for row in sizes) or 1
    return {
        "maximum": max(1 / max(row["class_size"], 1) for row in sizes),
        "average": sum(row["rows"] / max(row["class_size"], 1) for row in sizes) / total,
        "fraction_at_risk": sum(row["rows"] for row in sizes if row["class_size"] < _HIGH_RISK) / total,
    }


def _narrowing(pair: Pair, columns: Sequence[str], plan: str | None) -> list[dict[str, Any]]:
    """Return the k of every kept column together with the others, and the generalized columns that it narrows down."""
    kept = pair.with_role("sensitive", "free")
    if not kept or pair.method == "suppress_cells":
        return []
    narrows: dict[str, list[str]] = {}
    if plan:
        for row in pair.rows(
            f"""FROM anon.kept_column_risk({literal(pair.original)}, {name_list(columns)}, {name_list(kept)},
                                           plan := {literal(plan)}{pair.person_option(pair.original)})"""
        ):
            if row["narrows"] is not False:
                narrows.setdefault(row["kept_column"], []).append(row["column_name"])
    released, option = literal(pair.released), pair.person_option(pair.released)
    result = []
    for name in kept:
        [row] = pair.rows(f"FROM anon.k_anonymity({released}, {name_list([*columns, name])}{option})")
        result.append({"kept": name, "k": row["k"], "narrows": narrows.get(name, []) if plan else None})
    return result


def _prediction(pair: Pair, reference: str, step: float) -> list[dict[str, Any]] | None:
    """Compare the distance from people to released records with the distance to other people's records."""
    with sample_tables(pair) as (sample, _):
        there = set(pair.columns_of(reference))
        columns = comparable(sample, [name for name in pair.columns_of_people if name in there])
        if not columns:
            return None
        try:
            rows = pair.rows(
                f"""FROM anon.privacy_test({literal(sample.original)}, {literal(sample.released)}, {name_list(columns)},
                                           reference := {literal(reference)}, sample := {_ATTACKED}{pair.options()})"""
            )
        except duckdb.Error:  # columns whose kinds the reference does not share
            return None
    return [
        {
            "measure": row["measure"],
            "released": round_to_step(row["value"], step)
            if row["measure"].endswith("copies")
            else significant(row["value"]),
            "reference": significant(row["reference_value"]),
            "moved": round_to_step(row["shift_bound"], step),
            "limit": significant(row["limit"]),
            "passed": bool(row["pass"]),
        }
        for row in rows
    ]


def _utility(pair: Pair, erased: Sequence[str]) -> dict[str, Any] | None:
    """Compare statistics of samples of both tables; categories are not named, only their columns."""
    with sample_tables(pair) as (sample, rows_per_person):
        described = [name for name in pair.columns_of_people if name not in erased]
        columns = comparable(sample, described)
        if not columns:
            return None
        rows = sample.rows(utility_query(sample, columns))
        step = step_for(sample.count(sample.original) // rows_per_person)
        differences = (row["difference"] for row in rows if row["statistic"] == "correlation")
        return {
            "step": step,
            "columns": columns,
            "not_compared": [name for name in described if name not in columns],
            "medians": {
                statistic: round_to_step(
                    next(row["median_difference"] for row in rows if row["statistic"] == statistic), step
                )
                for statistic in dict.fromkeys(row["statistic"] for row in rows)
            },
            "largest_correlation_difference": round_to_step(
                max((abs(difference) for difference in differences if difference is not None), default=None), step
            ),
            "correlations": _correlations(rows, columns, step),
            "marginals": _marginals(rows, columns, step),
            "components": _components(sample, columns, step),
        }


def _correlations(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], step: float) -> list[dict[str, Any]]:
    """Return the correlations of numbers; those of categories would name them."""
    return [
        {
            "column": row["column_name"],
            "other": row["other_column"],
            "original": round_to_step(row["original"], step),
            "released": round_to_step(row["released"], step),
        }
        for row in rows
        if row["statistic"] == "correlation" and row["column_name"] in columns and row["other_column"] in columns
    ]


def _marginals(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], step: float) -> list[dict[str, Any]]:
    """Return how far the distribution of each column moved: the largest difference that any range or set has."""
    distances = {row["column_name"]: row["difference"] for row in rows if row["statistic"] in ("ks", "total_variation")}
    return [{"column": name, "distance": round_to_step(distances[name], step)} for name in columns if name in distances]


def _components(sample: Pair, columns: Sequence[str], step: float) -> list[dict[str, Any]]:
    try:
        rows = sample.rows(
            f"""FROM anon.kernel_utility({literal(sample.original)}, {literal(sample.released)}, {name_list(columns)},
                                         components := {_COMPONENTS}, points := 1000{sample.options()})"""
        )
    except duckdb.Error:  # fewer rows than components, or constant columns: there is nothing to compare
        return []
    return [
        {
            "component": row["component"],
            "cumulative": round_to_step(row["cumulative"], step),
            "distance": round_to_step(row["ks"], step),
        }
        for row in rows
    ]
