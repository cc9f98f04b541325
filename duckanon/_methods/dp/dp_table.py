"""``anon.dp_table``: numbers by group with the noise of differential privacy.

The query has bounded what each person contributes, and sends one row a group (`duckanon._bridge.dp_query`). Here the
budget is spent, and only then the noise drawn. Nothing that is returned or refused depends on the data in any other
way than through the mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.account.budget import amount, spend
from duckanon._core.account.storage import Account, AccountError
from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.dp.aggregates import PEOPLE, UNITS, Aggregate, parse, part
from duckanon._methods.dp.mechanisms import Laplace, Quantile, Threshold, shares

FEWEST_DEVIATIONS = 2
"""A mean is returned where the noisy number of its people is above so many standard deviations of its noise."""

Answer = tuple[pa.Array, pa.Array]
"""The values of an aggregate and their standard errors, by group."""


def dp_table(
    table: pa.Table,
    *,
    by: Sequence[str],
    aggregates: Sequence[str],
    epsilon: float,
    delta: float,
    person: str | None,
    max_groups: int,
    max_rows: int | None,
    bounds: Mapping[str, Sequence[float]] | None,
    groups: str | None,
    account: str | None,
    dataset: str | None,
    consumer: str | None,
    unaccounted: bool,
) -> pa.Table:
    """Spend the budget, then return the noisy table. Options are as `DP_TABLE` declares them."""
    asked = parse(aggregates, bounds, max_rows)
    finds_groups = bool(by) and groups is None
    counts = next((place for place, one in enumerate(asked) if one.kind == "count"), None)
    if not unaccounted:
        _spend(account or "", dataset or "", consumer, epsilon, delta, f"{', '.join(aggregates)} by {', '.join(by)}")
    parts = shares(epsilon, len(asked) + (finds_groups and counts is None))
    table = _in_order(table.filter(pc.is_valid(table.column(PEOPLE))), len(by))
    answers: dict[int, Answer] = {}
    if finds_groups:
        selected = Threshold(max_groups, parts[-1], delta)
        found = selected.draw(_whole(table, PEOPLE))
        places = sorted(found)
        table = table.take(pa.array(places, pa.int64()))
        if counts is not None:
            answers[counts] = _with_error(np.array([found[place] for place in places], np.int64), selected.deviation)
    for place, one in enumerate(asked):
        progress.at(place / len(asked))
        if place not in answers:
            answers[place] = _answer(table, place, one, parts[place], max_groups)
    columns = {table.column_names[place]: table.column(place) for place in range(len(by))}
    for place, one in enumerate(asked):
        columns[one.name], columns[one.error_name] = answers[place]
    return pa.table(columns)


def _spend(account: str, dataset: str, consumer: str | None, epsilon: float, delta: float, question: str) -> None:
    """Spend the budget, or refuse the call with nothing drawn."""
    try:
        with Account(account, None) as opened:
            spend(opened, dataset, consumer, amount(epsilon, delta), question)
    except AccountError as error:
        raise ValueError(str(error)) from error


def _answer(table: pa.Table, place: int, one: Aggregate, epsilon: float, most: int) -> Answer:
    """Draw one aggregate of all groups."""
    if one.kind == "count":
        noise = Laplace(most, epsilon)
        return _with_error(noise.draw(_whole(table, PEOPLE)), noise.deviation)
    if one.kind == "rows":
        noise = Laplace(most * int(one.upper), epsilon)
        return _with_error(noise.draw(_whole(table, part(place, "sum"))), noise.deviation)
    if one.kind == "sum":
        noise = Laplace(most * max(map(abs, one.span)), epsilon)
        return _with_error(
            noise.draw(_whole(table, part(place, "sum"))).astype(np.float64) * one.unit, noise.deviation * one.unit
        )
    if one.kind == "mean":
        return _mean(_whole(table, part(place, "sum")), _whole(table, part(place, "people")), one, epsilon, most)
    quantile = Quantile(most, epsilon, one.share, one.steps)
    steps = []
    for text in table.column(part(place, "steps")).to_pylist():
        progress.check()
        steps.append(quantile.draw(_repeated(text)))
    values = (one.lower * one.steps + np.array(steps, np.float64) * (one.upper - one.lower)) / one.steps
    return _with_error(values, quantile.deviation)


def _mean(above: Ints, people: Ints, one: Aggregate, epsilon: float, most: int) -> Answer:
    """Draw means: of how far people are above the lower bound, and how far below the upper one.

    The two add up to the same for everybody, so that one person changes both together by no more than a sum alone, and
    their total is the number of people. That halves the variance of a sum and a count with half of epsilon each.
    """
    noise = Laplace(most * UNITS, epsilon)
    drawn = noise.draw(np.concatenate([above, people * UNITS - above])).astype(np.float64)
    above_noisy, below_noisy = drawn[: len(above)], drawn[len(above) :]
    total = above_noisy + below_noisy
    is_known = total > FEWEST_DEVIATIONS * math.sqrt(2) * noise.deviation
    total = np.where(is_known, total, 1.0)
    width = one.upper - one.lower
    mean: Floats = one.lower + width * np.clip(above_noisy / total, 0, 1)
    error = width * noise.deviation * np.hypot(above_noisy, below_noisy) / total**2
    return pa.array(mean, mask=~is_known), pa.array(error, mask=~is_known)


def _with_error(values: Ints | Floats, deviation: float) -> Answer:
    return pa.array(values), pa.array(np.full(len(values), deviation))


def _whole(table: pa.Table, name: str) -> Ints:
    return np.asarray(pc.fill_null(table.column(name), 0).to_numpy(), dtype=np.int64)


def _repeated(text: str | None) -> Ints:
    """Read ``{3=2, 7=1}``, how often each step occurs, as the steps of all people."""
    if not text or text == "{}":
        return np.zeros(0, np.int64)
    pairs = np.array([pair.split("=") for pair in text.strip("{}").split(",")], dtype=np.int64)
    return np.repeat(pairs[:, 0], pairs[:, 1])


def _in_order(table: pa.Table, columns: int) -> pa.Table:
    """Sort groups by their values: an order that came from the data could tell of groups that are not released."""
    keys = []
    for place in range(columns):
        column = table.column(place)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        elif pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        keys.append(column)
    if not keys:
        return table
    names = [str(place) for place in range(columns)]
    order = pc.sort_indices(pa.table(keys, names=names), sort_keys=[(name, "ascending") for name in names])
    return table.take(order)
