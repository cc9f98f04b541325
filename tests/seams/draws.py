"""The call of a function on a table of the catalogue, drawn with a seed of these two and a number.

What an option may be is read from its declaration (`tests.signatures`), so that a new option is drawn as soon as it has
one. What a declaration cannot say is in `Draw.named`: which tables and columns go together, expressions, secrets.

Number 0 gives what is required and what lets small tables be released at all (`HELPFUL`); number 1 every other option
with a probability of a quarter, at its ends. Without `HELPFUL` most calls are refused, and no promise is looked at.
"""

from __future__ import annotations

import contextlib
import random
import re
from dataclasses import dataclass
from typing import Any

import duckdb

from tests.awkward import quoted
from tests.oracles.call import ROW
from tests.seams.bench import Bench
from tests.seams.literals import Expression, sql_of, value_of
from tests.signatures import FunctionDeclaration, ParameterDeclaration

HELPFUL: dict[str, Any] = {"keep_out": 3, "leaf": 5, "max_suppressed_fraction": 1, "checks": "off", "delta": 1e-6}
"""What lets a release of a small table come about."""

CHECKED = {"rhs": 0.1, "spectral_rhs": 0.9}
"""Functions that promise no k with `checks := 'off'`, and the share of their calls without it: `rhs` refuses most."""

LARGE_K = "10"
"""A default of `k` that small tables do not reach; 3 is given in its place."""

ALWAYS = {("membership_audit", "releases"), ("membership_audit", "max_rows"), ("dp_table", "delta")}
ALWAYS |= {("pica", "checks"), ("spectral_release", "keep_out")}
"""Options that make calls quick, or possible on small tables."""

NEVER = {("matching_attack", "key"), ("release_linked", "class")}
"""Options that hardly any column suits: few are the same in all rows of a person."""

OF_NO_NULLS = {"boxes", "microaggregate", "optimal_uncertainty", "known_events"}
"""Functions of tables without NULLs in numbers, dates and people."""

OF_MANY_ROWS = {"membership_audit", "pica", "pica_report", "svd_swap", "spectral_release", "copula_synthesize"}
"""Functions that need hundreds of rows: they are given every row six times."""

SEVERAL_COLUMNS = "rhs svd_swap pica pica_report spectral_release synthesize data_shuffle spectral_rhs additive_noise "
SEVERAL_COLUMNS += "copula_synthesize joint_releases interval_regression linkage_risk membership_audit kernel_utility"
"""Functions that need at least two columns."""

OF_VARYING = {"pica", "pica_report", "spectral_release"}
"""Functions that refuse a column of one value, and one of nested values or bytes: nearly all draws have others."""

OF_NUMBERS = {
    "boxes",
    "microaggregate",
    "optimal_uncertainty",
    "rhs",
    "spectral_rhs",
    "additive_noise",
    "kernel_utility",
}
OF_NUMBERS |= {"quantile_partition", "optimal_partition", "sampled_partition", "kernel_components", "membership_audit"}
"""Functions of numbers and dates."""


@dataclass(frozen=True)
class Drawn:
    """A drawn call: its statement, and its options as values."""

    function: str
    statement: str
    options: dict[str, Any]


class Draw:
    """The arguments of one call."""

    def __init__(self, bench: Bench, function: FunctionDeclaration, number: int) -> None:
        self.bench, self.function, self.number = bench, function, number
        self.random = random.Random(f"{bench.name}/{function.name}/{number}")
        self.is_plain = number == 0
        self.parameters = {one.name: one for one in function.parameters}
        has_release = {"released", "releases", "draws"} & self.parameters.keys()
        self.released = bench.made(self.random.choice(self._kinds_of_release())) if has_release else ""
        self.cols = self._some_columns()
        if function.name == "audit_table":
            self.cols = self._shared(bench.made("published"))[:2]
        self.has_person = bench.table.person is not None and "person" in self.parameters and self.random.random() < 0.7
        if function.name == "contradictions":
            self.has_person = self.has_person and bench.table.person in self._names(self.released)

    def call(self, is_table: bool) -> Drawn:
        """Return the statement and its options."""
        given: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if self._is_wanted(parameter, given):
                given[name] = self._value(parameter)
        if {"keep", "narrowing"} <= self.parameters.keys() and "keep" not in given:
            given |= {"keep": [ROW], "narrowing": [ROW]}
        required = {name for name, parameter in self.parameters.items() if parameter.default is None}
        arguments = ", ".join(
            sql_of(value) if name in required else f"{name} := {sql_of(value)}" for name, value in given.items()
        )
        call = f"anon.{self.function.name}({arguments})"
        statement = f"FROM {call}"
        if not is_table:  # the value that a label is of stands beside it
            values = [value for value in given.values() if isinstance(value, Expression)]
            value = f"{values[0]} AS value, " if values else ""
            statement = f"SELECT {value}{call} AS result FROM {quoted(self.bench.name)}"
        defaults = {n: value_of(p.default) for n, p in self.parameters.items() if p.default is not None}
        return Drawn(self.function.name, statement, defaults | given)

    # ---- which options

    def _is_wanted(self, parameter: ParameterDeclaration, given: dict[str, Any]) -> bool:
        name = parameter.name
        of_function = self._is_wanted_there(name, given)
        if of_function is not None:
            return of_function
        if name == "person":
            return parameter.default is None or self.has_person
        if (name == "population" and "weight" in given) or (name == "weights" and "boxed" in self.parameters):
            return False
        if name in ("draws", "seconds"):
            needed = {"draws": "reference", "seconds": "effort"}[name]
            return given.get(needed) not in (None, "quick", "default") and self.random.random() < 0.5
        if parameter.default is None or name in ("seed", "unaccounted"):
            return True
        if (self.function.name, name) in ALWAYS:
            return True
        if (self.function.name, name) in NEVER:
            return False
        if name in ("order_by", "household", "account", "dataset", "consumer", "groups", "options", "narrowing"):
            return name == "order_by" and "person" in given and self.random.random() < 0.3
        if name in ("l", "t", "l_kind", "c") and "sensitive" in self.parameters:
            return "sensitive" in given and self.random.random() < 0.5
        if name == "nulls" and "'error'" in parameter.allowed:
            return True
        if name == "k" and parameter.default == LARGE_K and (self.is_plain or self.function.stage == "release"):
            return True
        if self.function.stage == "release" and name in (*HELPFUL, "nulls"):
            return self.is_plain or self.random.random() < 0.8
        return not self.is_plain and self.random.random() < 0.25

    def _is_wanted_there(self, name: str, given: dict[str, Any]) -> bool | None:
        """Tell whether a function's own option is given; None where that is drawn as for other functions."""
        chance = self.random.random()
        match self.function.name, name:
            case "audit_table", "person":
                return self.has_person and "original" in given
            case "audit_table", "original" | "measure" | "linked" | "hierarchies":
                return name == "original" and chance < 0.3
            case "quantile_partition", "k" | "buckets":
                return chance < 0.7 if name == "k" else "k" not in given
            case "protect_table", "method":
                return self.has_person and not {"measure", "previous"} & given.keys() and chance < 0.3
            case "protect_table", "key":
                return given.get("method") == "cell_key"
            case "membership_audit", "person" | "categories":
                return False  # it looks for people who are unlike others, hundreds of them
            case "synthesize" | "spectral_release", "by" if not set(self.bench.usual) - set(self.cols):
                return False
            case "protect_table", "measure" if not set(self.bench.numbers) - set(self.cols):
                return False
            case "pica", "cluster_size":
                return self.is_plain or chance < 0.7
            case function, "checks" if function in CHECKED:
                return chance > CHECKED[function]
            case "rhs" | "spectral_rhs", "key" if len(self.cols) < 3:
                return False
            case _, "log" if not self._logged:
                return False
        return None

    def _some_columns(self) -> list[str]:
        bench, chance = self.bench, self.random.random()
        pool = bench.few if self.is_plain and chance < 0.8 else bench.usual if chance < 0.7 else bench.columns
        if self.function.name == "interval_disclosure":
            pool = bench.numbers or pool
        if self.function.name in OF_NUMBERS and (self.is_plain or chance < 0.9):
            numbers = [*bench.numbers, *bench.times]
            pool = [one for one in numbers if one in pool] or numbers or pool
        many = 60 if bench.name == "wide" and chance < 0.2 else 3
        if bench.table.hierarchies and "hierarchies" in self.parameters and chance < 0.5:
            return list(bench.table.hierarchies)
        if "released" in self.parameters or "releases" in self.parameters:
            pool = [one for one in self._shared(self.released) if one in pool] or self._shared(self.released)
        is_several = self.function.name in SEVERAL_COLUMNS.split()
        pool = bench.usual if is_several and len(pool) < 2 else pool
        if self.function.name in OF_VARYING and (self.is_plain or chance < 0.9):
            varying = list({one.lower(): one for one in pool if self._suits_components(one)}.values())
            pool = varying if len(varying) > 1 else pool
        least = 2 if is_several or self.is_plain else 1
        return self.random.sample(pool, self.random.randint(min(least, len(pool)), min(len(pool), many)))

    def _suits_components(self, column: str) -> bool:
        """Tell whether the column has two values, all of them finite, and no nested ones or bytes."""
        values = set(map(str, self.bench.rows.column(column)))
        is_flat = "DECIMAL" in self.bench.types[column] or not re.search(r"[(\[]|BLOB|BIT", self.bench.types[column])
        return is_flat and len(values) > 1 and not values & {"nan", "inf", "-inf", "infinity", "-infinity"}

    def _kinds_of_release(self) -> list[str]:
        if self.function.name in ("containment_risk", "containment_candidates", "recode_classes"):
            return ["recoded", "generalized"]
        if self.function.name == "compare_releases":
            return ["recoded"]
        if self.function.name in ("matching_attack", "interval_disclosure", "contradictions"):
            return ["swapped", "same"]
        kinds = ["recoded", "swapped", "generalized", "synthetic", "same"]
        return kinds if self.is_plain or self.random.random() < 0.8 else ["empty"]

    def _names(self, table: str) -> list[str]:
        """Return the columns of a table."""
        return [row[0] for row in self.bench.con.execute(f"DESCRIBE {quoted(table)}").fetchall()]

    def _shared(self, table: str) -> list[str]:
        """Return the columns that the table has in common with another one."""
        names = self._names(table)
        return [one for one in self.bench.columns if one in names] or self.bench.usual

    # ---- their values

    def _value(self, parameter: ParameterDeclaration) -> Any:
        is_helped = parameter.name in HELPFUL and self.function.stage == "release"
        if is_helped and (self.is_plain or self.random.random() < 0.9):
            return HELPFUL[parameter.name]
        found = self._table(parameter)
        found = self._column(parameter) if found is None else found
        found = self._special(parameter.name) if found is None else found
        return self._allowed(parameter) if found is None else found

    def _other_column(self) -> str:
        pool = self._shared(self.released) if self.released else self.bench.usual
        return self.random.choice([one for one in pool if one not in self.cols] or self.bench.columns)

    def _group(self) -> str | None:
        """Return a column of few values, where a function needs hundreds of rows in each group."""
        if self.function.name not in OF_MANY_ROWS:
            return None
        return next((one for one in self.bench.few if one not in self.cols), None)

    def _table(self, parameter: ParameterDeclaration) -> Any:
        """Return the name of a table, or several."""
        bench, name, function = self.bench, parameter.name, self.function.name
        if name in ("tbl", "original") and not (name == "original" and function == "audit_table"):
            return self._first_table()
        if name in ("hierarchy", "hierarchies"):
            column = self.cols[0] if name == "hierarchy" else self.random.choice(self.cols)
            table = bench.table.hierarchy_of(column) or bench.made("hierarchy", column)
            return table if name == "hierarchy" else {column: table}
        if name == "releases" and function == "compare_releases":
            return {"one": bench.made("swapped"), "two": bench.made("recoded")}
        if name == "releases" and function == "joint_releases":
            return [bench.name, bench.made("same")]
        if name == "tables":
            linked = [one for one in bench.table.linked if not one.endswith("people")]
            is_complete = bench.table.person is not None or self.function.name == "known_events"
            return [bench.name, *linked] if linked else [bench.made("complete") if is_complete else bench.name]
        if name == "population":
            is_named = "name of a table" in parameter.allowed or "a text" in parameter.allowed
            is_table = is_named and (parameter.allowed == "a text" or self.random.random() < 0.5)
            return bench.name if is_table else self.random.choice([1000.0, 1e6])
        kinds = {"box_table": "box_list", "previous": "published", "original": "same"}
        kind = kinds.get(name, name)
        if name in ("reference", "holdout", "control"):
            kind = self.random.choice(["same", "swapped"])
        if name in ("boxed", "plan", "partition", "published", "box_table", "previous", "original", "reference"):
            return bench.made(kind)
        if name in ("holdout", "control"):
            return bench.made(kind)
        return {"released": self.released, "draws": [self.released]}.get(name)

    def _first_table(self) -> str:
        """Return the table that a call is about."""
        kind = None
        if self.function.name == "unflatten_boxes":
            kind = "flat"
        elif self.function.name in OF_MANY_ROWS:
            kind = "copies"
        elif self.function.name in OF_NO_NULLS and self.random.random() < 0.8:
            kind = "complete"
        return self.bench.made(kind) if kind else self.bench.name

    def _column(self, parameter: ParameterDeclaration) -> Any:
        """Return a column, or several."""
        bench, name, function, pick = self.bench, parameter.name, self.function.name, self.random.choice
        if name == "person" and function != "shift_date":
            return bench.table.person or ROW
        if bench.table.person and name in ("person", "key") and function == "shift_date":
            return Expression(quoted(bench.table.person)) if name == "person" else None
        if name in ("value", "day", "code", "age", "zip", "person") and self._is_scalar:
            column = pick(self._for_scalar(name))
            return Expression(f"DATE '2001-01-31' + {ROW}" if name == "day" and column == ROW else quoted(column))
        if name == "target" and function == "interval_regression":
            return (self._boxed_columns or self.cols)[0]
        if name == "by" and "boxed" in self.parameters:
            return ["box"]
        if name in ("value", "people") and function == "audit_table":
            return name
        if name == "col" and function == "apply_partition":
            return ([one for one in [*bench.numbers, *bench.times] if one in bench.usual] or bench.usual)[0]
        if name == "measure" or (name == "target" and function == "classifier_utility"):
            return self._one_of_numbers()
        if name in ("col", "key") and function not in ("pseudonym", "protect_table", "shift_date"):
            return self.cols[0]
        if name in ("cols", "known_cols", "predictors") or (name == "by" and parameter.default is None):
            return self._columns_for(name)
        if name in ("secret_cols", "sensitive"):
            return [self._other_column()] if name == "secret_cols" else self._other_column()
        if name in ("keep", "by") and ("names" in parameter.allowed):
            return [ROW] if name == "keep" and parameter.default is None else [self._group() or self._other_column()]
        return self._one_for(name)

    def _one_for(self, name: str) -> Any:
        """Return a column of the type that an option needs."""
        bench, pick = self.bench, self.random.choice
        if name == "log":
            return [pick(self._logged)]
        if name in ("categories", "importance"):
            return [pick(self.cols)]
        if name == "order_by":
            return pick([one for one in self.cols if one in (*bench.numbers, *bench.times)] or self.cols)
        if name in ("household", "weight", "class"):
            return pick(bench.numbers or self.cols)
        return None

    def _columns_for(self, name: str) -> list[str]:
        if "boxed" in self.parameters or self.function.name == "label_boxes":
            columns = self._boxed_columns[name == "predictors" :] or self.cols
            return columns[:1] if "statistic" in self.parameters else columns
        return self.cols[:2] if name == "by" else self.cols

    @property
    def _boxed_columns(self) -> list[str]:
        """The columns of intervals."""
        with contextlib.suppress(duckdb.Error):
            rows = self.bench.con.execute(f"DESCRIBE {quoted(self.bench.made('boxed'))}").fetchall()
            return [name for name, kind, *_ in rows if kind.startswith("STRUCT(lo")]
        return []

    @property
    def _logged(self) -> list[str]:
        """The columns that have logarithms."""
        values = {one: self.bench.rows.column(one) for one in self.cols if one in self.bench.numbers}
        return [one for one, some in values.items() if all(value is None or value > 0 for value in some)]

    def _one_of_numbers(self) -> str:
        apart = [one for one in self.bench.numbers if one not in self.cols]
        return self.random.choice(apart or self.bench.numbers or self.bench.columns)

    @property
    def _is_scalar(self) -> bool:
        return "tbl" not in self.parameters and "boxed" not in self.parameters and "original" not in self.parameters

    def _for_scalar(self, name: str) -> list[str]:
        bench = self.bench
        if name == "day" and not bench.times and self.random.random() < 0.9:
            return [ROW]
        texts = [column for column, kind in bench.types.items() if kind == "VARCHAR"]
        pools = {"day": bench.times, "age": bench.numbers, "zip": texts, "code": texts}
        wanted = pools.get(name) or bench.columns
        if name == "value" and self.function.name not in ("mask", "pseudonym"):
            wanted = bench.numbers
        return wanted if wanted and (self.is_plain or self.random.random() < 0.7) else bench.columns

    def _special(self, name: str) -> Any:
        """Return what only the function's meaning tells."""
        first, pick = self.cols[0], self.random.choice
        number = self._one_of_numbers()
        if name == "delta" and self.function.name != "dp_table":
            return None
        values = {
            "seed": 1,
            "unaccounted": True,
            "key": "a secret of 16 letters",
            "aggregates": pick([["count"], ["count", f"sum({quoted(number)})"]]),
            "bounds": {number: [0, 100]},
            "seconds": 0.5,
            "statistics": [{"statistic": "variance", "columns": [first]}],
            "linked": [[first]],
            "interactions": [[first, self.cols[-1]]],
            "dominance": [2, 85],
            "methods": {first: "prefix"},
            "condition": f"{quoted(self._columns_for('cols')[0])} >= 3",
            "quantiles": [0, 0.5, 1],
            "ladder": [{first: "*"}],
            "cap": 50,
            "floor": 30,
            "step": pick([5, 0.1]),
            "small_zip3": ["036"],
            "as_of": Expression("DATE '2020-01-01'"),
            "density": 0.5,
            "sensitivities": [1, 2.5],
            "distinct_counts": [3, 9, 100],
            "budget": 100,
            "known": pick([1, 2]),
            "k": pick([2, 3, 3, 5]),
            "l": pick([1, 2]),
            "attacks": 30,
            "queries": 30,
            "points": 30,
            "cluster_size": 100,
            "sample": 20,
            "weights": {first: 2},
            "special": pick(["auto", "off", {first: [0]}]),
            "releases": 4,
            "max_rows": 400,
            "people": 10,
            "statistic": "mean" if self.is_plain else pick(["mean", "variance", "standard_deviation"]),
            "delta": 1e-6,
        }
        if name in ("cap", "floor") and self.bench.times and not self.bench.numbers:
            return Expression("DATE '2000-01-01'")
        if name == "epsilon" and self.function.name == "boxes":
            return {first: 1}
        if name == "epsilon" and self.function.name == "box_halfwidths":
            return [0.5, 1]
        if name == "people" and self.function.name in ("known_events", "release_linked"):
            return f"{self.bench.name}_people" if len(self.bench.table.linked) > 1 else self.bench.made("people")
        if name == "weights" and self.function.name == "allocate":
            return [1, 2, 3]
        if name in ("max_rows", "releases") and self.function.name not in ("membership_audit", "compare_releases"):
            return None
        return values.get(name)

    def _allowed(self, parameter: ParameterDeclaration) -> Any:
        """Return one of the values that a declaration allows: an end of them, or one between."""
        allowed, pick = parameter.allowed, self.random.choice
        if parameter.name == "nulls" and "'error'" in allowed:
            other = "category" if "'category'" in allowed else "drop"
            return other if self.is_plain or self.random.random() < 0.8 else "error"
        if "one of" in allowed or re.fullmatch(r"NULL or '.*'", allowed):
            choices = re.findall(r"'([^']*)'", allowed.split(" or a map")[0])
            return pick([one for one in choices if one != "any" or not self.has_person])
        if "true or false" in allowed:
            return pick([True, False])
        if "whole number" in allowed:
            return pick(_whole_numbers(allowed))
        if "number" in allowed:
            return pick(_numbers(allowed))
        raise AssertionError(f"draws.py does not know what {self.function.name} allows as {parameter.name}: {allowed}")


def _whole_numbers(allowed: str) -> list[int]:
    low = re.search(r"(?:at least|from) (\d+)", allowed)
    least = int(low[1]) if low else 0
    high = re.search(r"(?:to|at most) ([\d,]+)", allowed)
    most = [int(high[1].replace(",", ""))] if high else [least + 10]
    return [least, least + 1, *(most if most[0] < 1e5 else [1000])]


def _numbers(allowed: str) -> list[float]:
    if span := re.search(r"(?:from|between) ([\d.e-]+) (?:to|and) ([\d.]+)", allowed):
        low, high = float(span[1]), float(span[2])
        return [(low + high) / 2, *([low, high] if "from" in allowed else [])]
    if "below 1" in allowed:
        return [0.01, 0.5]
    least = re.search(r"at least (\d+)", allowed)
    return [float(least[1]), float(least[1]) + 9] if least else [1.0, 2.5]
