"""Numbers of measures, computed again from their definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from scipy import stats

from tests.oracles.call import Call, different_people, groups, key

Numbers = dict[str, Any]


def _classes(call: Call) -> list[list[int]]:
    """Return the rows of each class of `cols`; none where NULL matches anything."""
    keys = call.table.keys(call.names("cols"))
    if call.options.get("nulls") == "drop":
        kept = [row for row, one in enumerate(keys) if None not in one]
        return [[kept[row] for row in rows] for rows in groups([keys[row] for row in kept]).values()]
    return list(groups(keys).values())


def _sizes(call: Call) -> list[int]:
    return [different_people(rows, call.people) for rows in _classes(call)]


def _k_anonymity(call: Call) -> Numbers:
    classes, sizes = _classes(call), _sizes(call)
    small = {
        f"rows_under_{k}": sum(len(rows) for rows, size in zip(classes, sizes, strict=True) if size < k)
        for k in (2, 3, 5, 10, 20)
    }
    everyone = [row for rows in classes for row in rows]
    return {
        "k": min(sizes),
        "classes": len(sizes),
        "rows": len(everyone),
        "people": different_people(everyone, call.people),
        "singletons": sizes.count(1),
        **small,
    }


def _class_sizes(call: Call) -> list[Numbers]:
    counts = Counter(_sizes(call))
    return [{"class_size": size, "classes": counts[size]} for size in counts]


def _small_classes(call: Call) -> list[Numbers]:
    return [{"class_size": size} for size in _sizes(call) if size < call.k]


def _risky_rows(call: Call) -> list[Numbers]:
    both = zip(_classes(call), _sizes(call), strict=True)
    return [{"class_size": size} for rows, size in both for _ in rows if size < call.k]


def _column_profile(call: Call) -> list[Numbers]:
    def profile(column: str) -> Numbers:
        values = [value for value in call.table.column(column) if value is not None]
        return {
            "column_name": column,
            "rows": len(call.table.rows),
            "nulls": len(call.table.rows) - len(values),
            "distinct_values": len(set(map(key, values))),
        }

    return [profile(column) for column in call.table.columns]


def _reidentification_risk(call: Call) -> Numbers:
    if call.options.get("population") is not None or call.options.get("person") is not None:
        return {}
    return {"maximum_risk": 1 / min(_sizes(call)), "average_risk": len(_sizes(call)) / sum(_sizes(call))}


def _l_diversity(call: Call) -> list[Numbers]:
    """Count the distinct values of each class; a class of nobody has none of people."""
    values = [key(value) for value in call.table.column(call.options["sensitive"])]
    if call.options.get("person") is not None or any(value is None for value in values):
        return []  # people with several values are told in the reference, and not counted here
    return [{"l": min(len({values[row] for row in rows}) for rows in _classes(call))}]


def _t_closeness(call: Call) -> Numbers:
    """Half the sum of the differences between shares in a class and in the table, for values without an order."""
    values = [key(value) for value in call.table.column(call.options["sensitive"])]
    if call.options.get("person") is not None or call.answer.column("distance") != ["equal"]:
        return {}
    rows_of_all = [row for rows in _classes(call) for row in rows]

    def shares(rows: list[int]) -> dict[Hashable, float]:
        return {value: count / len(rows) for value, count in Counter(values[row] for row in rows).items()}

    everyone = shares(rows_of_all)
    distances = []
    for rows in _classes(call):
        here = shares(rows)
        distances.append(sum(abs(here.get(value, 0) - share) for value, share in everyone.items()) / 2)
    return {"t": max(distances)}


def _multiple_domain(call: Call) -> Numbers:
    return {"result": math.prod(call.options["distinct_counts"])}


def _max_unique_fraction(call: Call) -> Numbers:
    distinct, people = call.options["distinct_values"], call.options["population"]
    return {"result": distinct / (math.e * people) if distinct <= people else math.exp(-people / distinct)}


def _pseudonym_collision(call: Call) -> Numbers:
    """The chance of a birthday among 16^length pseudonyms."""
    count, days = call.options["distinct_values"], 16.0 ** call.options["length"]
    return {"result": -math.expm1(-count * (count - 1) / 2 / days)}


def _anonymity_probability(call: Call) -> Numbers:
    """The chance that a class has k people or more, where each of them is in one of so many classes."""
    people, classes, k = (call.options[name] for name in ("population", "distinct_values", "k"))
    if people != int(people) or people > 1e5:
        return {}
    share, fewer = 1 / classes, 0.0
    for count in range(min(k, int(people) + 1)):
        logarithm = math.lgamma(people + 1) - math.lgamma(count + 1) - math.lgamma(people - count + 1)
        if share < 1:
            fewer += math.exp(logarithm + count * math.log(share) + (people - count) * math.log1p(-share))
    return {"probability": 1 - fewer}


def _delta_presence(call: Call) -> Numbers:
    """The share of the people of the population who are in the table, class by class; where both are the same table."""
    if call.options["population"] != call.options["tbl"]:
        return {}
    classes = {tuple(one) for one in _classes(call)}
    everyone = different_people([row for rows in classes for row in rows], call.people)
    return {"delta_max": 1.0, "certain_people": everyone, "absent_people": 0} if everyone else {}


def _quasi_identifier(call: Call) -> Numbers:
    classes, sizes = _classes(call), _sizes(call)
    unique = [row for rows, size in zip(classes, sizes, strict=True) for row in rows if size == 1]
    singletons = different_people(unique, call.people)
    return {"distinct_observed": len(sizes), "singletons": singletons, "smallest_class": min(sizes, default=None)}


DEFINITIONS: dict[str, Callable[[Call], Numbers | list[Numbers]]] = {
    "k_anonymity": _k_anonymity,
    "class_sizes": _class_sizes,
    "small_classes": _small_classes,
    "risky_rows": _risky_rows,
    "column_profile": _column_profile,
    "reidentification_risk": _reidentification_risk,
    "quasi_identifier": _quasi_identifier,
    "l_diversity": _l_diversity,
    "t_closeness": _t_closeness,
    "delta_presence": _delta_presence,
    "multiple_domain": _multiple_domain,
    "max_unique_fraction": _max_unique_fraction,
    "pseudonym_collision": _pseudonym_collision,
    "anonymity_probability": _anonymity_probability,
}
"""The numbers of the only row, or of each row, of a function; none where a case is not computed here."""


def _allocate(call: Call) -> Iterator[str]:
    result = call.answer.column("result")[0]
    if math.prod(result) > call.options["budget"]:
        yield f"{result} have more combinations than {call.options['budget']}"
    for place, (count, distinct) in enumerate(zip(result, call.options["distinct_counts"], strict=True)):
        larger = [*result[:place], count + 1, *result[place + 1 :]]
        if not 1 <= count <= distinct or (count < distinct and math.prod(larger) <= call.options["budget"]):
            yield f"{count} of {distinct} values could be one more in {result}"


def _distinct_for_alpha(call: Call) -> Iterator[str]:
    """Its inverse: D / (e n) up to n, e^(-n / D) beyond."""
    distinct, people = call.answer.column("result")[0], call.options["population"]
    alpha = distinct / (math.e * people) if distinct <= people else math.exp(-people / distinct)
    if not _same(alpha, call.options["alpha"]):
        yield f"{distinct} values have the share {alpha}"


def _distinct_budget(call: Call) -> Iterator[str]:
    result, people = call.answer.column("result")[0], call.options["population"]
    k, beta, method = (call.options[name] for name in ("k", "beta", "method"))
    if method == "bound":  # less than the exact number, which is tested below
        is_right = 0 < result <= max(people, 1)
    else:
        trials, members = (people, k) if method == "class" else (people - 1, k - 1)
        is_right = result == 0 if trials < members else _same(stats.binom.cdf(members - 1, trials, 1 / result), beta)
    if not is_right:
        yield f"{result} classes of {people} people"


def _sample_class_size(call: Call) -> Iterator[str]:
    result = call.answer.column("result")[0]
    if not 1 <= result <= call.options["k"] or result != int(result):
        yield f"{result} people of the sample for {call.options['k']} of the population"


def _box_halfwidths(call: Call) -> Iterator[str]:
    if any(not width > 0 for width in call.answer.column("result")[0]):
        yield "a width that is not positive"


def _text(value: Any) -> str:
    """Return the text of a value as SQL has it: -0.0, which equals 0.0, as 0.0; bytes as DuckDB writes them."""
    if not isinstance(value, bytes):
        return str(value + 0.0 if isinstance(value, float) else value)
    return "".join(chr(byte) if 32 <= byte <= 126 and chr(byte) not in "\\\"'" else f"\\x{byte:02X}" for byte in value)


def _generalize_prefix(call: Call) -> Iterator[str]:
    keep = call.options["keep"]
    for value, result in zip(call.answer.column("value"), call.answer.column("result"), strict=True):
        text = _text(value)
        if value is not None and result != text[:keep] + "*" * (len(text) - keep):
            yield f"{value!r} became {result!r}"
            return


def _mask(call: Call) -> Iterator[str]:
    """No more characters than these stay; an address and a phone keep their signs."""
    keep = call.options["keep_first"] + call.options["keep_last"]
    for value, result in zip(call.answer.column("value"), call.answer.column("result"), strict=True):
        if value is None or result is None or "@" in str(value) or not str(value).isalpha():
            continue
        if len(result) - result.count("*") > keep and "*" not in str(value):
            yield f"{value!r} became {result!r}"
            return


def _safe_harbor_zip(call: Call) -> Iterator[str]:
    for value, result in zip(call.answer.column("value"), call.answer.column("result"), strict=True):
        if result is not None and result not in ("000", str(value).strip()[:3]):
            yield f"{value!r} became {result!r}"
            return


def _hierarchy_level(call: Call) -> Iterator[str]:
    labels = {
        label for label, rows in zip(call.answer.column("label"), call.answer.column("rows"), strict=True) if rows
    }
    if len(labels - {None}) > call.options["max_distinct"] and len(labels) > 1:
        yield f"{len(labels)} labels, at most {call.options['max_distinct']} were asked for"


CHECKS: dict[str, Callable[[Call], Iterator[str]]] = {
    "allocate": _allocate,
    "distinct_for_alpha": _distinct_for_alpha,
    "distinct_budget": _distinct_budget,
    "sample_class_size": _sample_class_size,
    "box_halfwidths": _box_halfwidths,
    "generalize_prefix": _generalize_prefix,
    "mask": _mask,
    "safe_harbor_zip": _safe_harbor_zip,
    "hierarchy_level": _hierarchy_level,
}
"""What the definition of other functions says of their results."""


def equals_definition(call: Call, promise: Any) -> Iterator[str]:
    """Compare numbers, and rows as a multiset."""
    if not call.answer.rows and call.function in CHECKS:
        return
    if call.function in CHECKS:
        yield from CHECKS[call.function](call)
        return
    if call.options.get("nulls") == "any":
        return
    expected = DEFINITIONS[call.function](call)
    if isinstance(expected, dict):
        if not call.answer.rows and call.answer.has("result"):  # a value for each row of a table that has none
            return
        row = dict(zip(call.answer.columns, call.answer.rows[0], strict=True)) if call.answer.rows else {}
        for name, value in expected.items():
            if name not in row or not _same(row[name], value):
                yield f"{name} is {row.get(name)}, by definition {value}"
    elif expected:
        yield from _different_rows(call, expected)


def _different_rows(call: Call, expected: list[Numbers]) -> Iterator[str]:
    names = list(expected[0])
    rows = [dict(zip(call.answer.columns, row, strict=True)) for row in call.answer.rows]
    if call.function == "l_diversity":
        rows = [row for row in rows if row["measure"] == "distinct"]
    counted, defined = (Counter(tuple(map(key, (row[n] for n in names))) for row in some) for some in (rows, expected))
    if counted != defined:
        yield f"{names}: {list((counted - defined).items())[:3]}, by definition {list((defined - counted).items())[:3]}"


def _same(one: Any, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)


def between(call: Call, promise: Any) -> Iterator[str]:
    for column in promise.columns:
        for value in call.answer.column(column):
            if value is not None and not promise.low - 1e-9 <= float(value) <= promise.high + 1e-9:
                yield f"{column} is {value}, not between {promise.low} and {promise.high}"
                return


def estimates_inside(call: Call, promise: Any) -> Iterator[str]:
    for low, value, high in zip(*map(call.answer.column, ("lower", "estimate", "upper")), strict=True):
        if (
            value is not None
            and low is not None
            and high is not None
            and not low - 1e-6 <= value <= high + 1e-6 * abs(high)
        ):
            yield f"the estimate {value} is not between {low} and {high}"
            return


def buckets_of_k_rows(call: Call, promise: Any) -> Iterator[str]:
    rows = call.answer.column("rows")
    values = [value for value in call.table.column(call.options["col"]) if value is not None]
    if sum(rows) != len(values):
        yield f"{sum(rows)} rows in buckets, {len(values)} in the table"
    if call.options.get("k") and min(rows) < call.k:
        yield f"a bucket of {min(rows)} rows, k is {call.k}"
