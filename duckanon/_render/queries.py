"""A stored plan as one SELECT: `duckanon.render`.

With `k` the classes are counted by the numbers of the labels, not by the labels: to a collation ``F`` and ``f``, or
``F`` and ``F`` with a space behind it, may be the same, and NULL is equal to nothing; a number is only equal to itself.
So two labels that a reader can tell apart are never counted together. A window counts the very rows that are returned,
and the rows come in random order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.names import refuse_unknown_options
from duckanon._core.common.rules import ColumnNames, Whole
from duckanon._render import expressions
from duckanon._render.dialects import Dialect, column, dialect_called, source_table
from duckanon._render.expressions import Lookup, Recoder
from duckanon._render.plans import PlannedColumn, read_plan

_CODED = "_duckanon_coded"
_RANKED = "_duckanon_ranked"
_SIZED = "_duckanon_sized"
_PERSON = "_duckanon_person"
_RANK = "_duckanon_rank"
_PEOPLE = "_duckanon_people"


@refuse_unknown_options("duckanon")
def render(
    plan: Any,
    dialect: str = "duckdb",
    table: str = "patients",
    k: int | None = None,
    keep: Sequence[str] | None = None,
    person: str | None = None,
    types: Any = None,
) -> str:
    """Write a stored plan as one SELECT of another engine, whose rows are those of `anon.apply_plan`.

    Args:
        plan: What `anon.plan` made: an Arrow table, or the path of a Parquet file.
        dialect: The engine: one of `duckanon._render.dialects.DIALECTS`.
        table: The name of the table to read there, with its schema if it needs one.
        k: The least people of a class: rows of smaller classes are left out, and the others come in random order. None:
            nothing is counted and nobody left out.
        keep: Other columns to release as they are, by their names.
        person: With k, the name of the column that says whose row it is: k then means k different people, and rows
            where it is NULL count as nobody. None: every row is a person.
        types: The types of the table's columns, where SQL depends on them: a pyarrow.Schema, or a dictionary of the
            names that DuckDB's DESCRIBE shows. A plan does not say them.

    Returns:
        A comment that says whether the tests execute this dialect, and the query, without a semicolon.

    Raises:
        ValueError: For a plan, a name or a type that cannot be rendered so that the engine's labels are the plan's.
    """
    target = dialect_called(dialect)
    source = source_table(table, target)
    refuse_unless(Whole(2, null=True), "k", k)
    columns = read_plan(plan)
    released = {planned.name.lower() for planned in columns}
    kept = _columns_to_keep(keep, released)
    _refuse_person(person, k, released)
    kinds = expressions.kinds_of_columns(types)
    known = [check_kind(planned, kinds.get(planned.name.lower(), expressions.UNKNOWN), target) for planned in columns]
    title = f"a plan of {len(columns)} column{'s' * (len(columns) > 1)}"
    if k is None:
        return target.write(_label_query(columns, known, target, source, kept), f"duckanon.render: {title}")
    query = _count_query(columns, known, target, source, kept, k, person)
    return target.write(query, f"duckanon.render: {title}, classes of at least {k} {'people' if person else 'rows'}")


def _columns_to_keep(keep: Sequence[str] | None, released: set[str]) -> list[str]:
    if keep is None or len(keep) == 0:
        return []
    refuse_unless(ColumnNames(), "keep", keep)
    if "*" in keep:
        raise ValueError("keep must name the columns one by one; got *.")
    for place, name in enumerate(keep):
        if name.lower() in released:
            raise ValueError(f'keep must not name a column of the plan; got "{name}".')
        if name.lower() in {other.lower() for other in keep[:place]}:
            raise ValueError(f'keep must name a column once; got "{name}" twice.')
    _refuse_own_names("keep", keep)
    return list(keep)


def _refuse_person(person: Any, k: int | None, released: set[str]) -> None:
    if person is None:
        return
    if not isinstance(person, str) or not person:
        raise ValueError(f"person must be None or the name of a column; got {person!r}.")
    if k is None:
        raise ValueError("person must be None where no k is asked for; nobody would be counted.")
    if person.lower() in released:
        raise ValueError(f'person must not be a column of the plan; got "{person}".')


def _refuse_own_names(parameter: str, names: Sequence[str]) -> None:
    for name in names:
        if name.lower().startswith("_duckanon_"):
            raise ValueError(
                f"{parameter} must not name a column that begins with _duckanon_; got {name}: rename it first."
            )


def check_kind(planned: PlannedColumn, kind: str, dialect: Dialect) -> str:
    """Return a column's kind after a look whether its values can be told apart by this engine as by DuckDB."""
    _refuse_own_names("plan", [planned.name])
    if kind == expressions.UNKNOWN and planned.covers in ("value", "prefix"):
        kind = (
            expressions.guess_kind(bucket.lower or "" for bucket in planned.buckets)
            if planned.covers == "value"
            else kind
        )
        _refuse_texts(planned.name, kind, dialect, "holds values that look like")
    elif planned.covers == "value" or (planned.covers == "prefix" and kind != expressions.DECIMAL):
        _refuse_texts(planned.name, kind, dialect, "is planned value by value and holds")
    elif planned.covers == "prefix" and dialect.name != "duckdb":
        raise ValueError(f'column "{planned.name}" is planned by prefixes and holds decimals: cast it to text first.')
    if planned.covers == "time" and kind not in expressions.IS_TIME | {expressions.UNKNOWN}:
        raise ValueError(f'column "{planned.name}" must hold dates or timestamps, as the plan\'s does: cast it first.')
    if planned.covers == "number" and kind not in expressions.IS_NUMBER | {expressions.UNKNOWN, expressions.TEXT}:
        raise ValueError(f'column "{planned.name}" must hold numbers, as the plan\'s does: cast it first.')
    if planned.covers == "number" and kind == expressions.TEXT and dialect.name != "duckdb":
        raise ValueError(f'column "{planned.name}" is text and planned by numbers: cast it to a number first.')
    return kind


def _refuse_texts(name: str, kind: str, dialect: Dialect, how: str) -> None:
    """Refuse values whose texts are not DuckDB's in this engine: they would all get the label of the rest."""
    differing = {
        expressions.FLOAT: ("floating-point numbers", dialect.name != "duckdb"),
        expressions.BOOLEAN: ("booleans", not dialect.has_boolean_texts),
        expressions.TIMESTAMP: ("timestamps", dialect.name != "duckdb"),
        expressions.ZONED: ("timestamps", dialect.name != "duckdb"),
    }
    described, differs = differing.get(kind, ("", False))
    if differs:
        raise ValueError(
            f'column "{name}" {how} {described}, whose texts in {dialect.name} are not those of the plan; '
            f"if it is text there, say so: types={{'{name}': 'VARCHAR'}}."
        )


def _label_query(
    columns: list[PlannedColumn], known: list[str], dialect: Dialect, source: exp.Table, kept: list[str]
) -> exp.Select:
    """Return the query that gives every row its labels."""
    recoders, selected = [], []
    for place, (planned, kind) in enumerate(zip(columns, known, strict=True), 1):
        recoders.append(Recoder(planned, kind, dialect, dialect.literal, place))
        has_label = any(label is not None for label in planned.labels)
        selected.append(_named(recoders[-1].expression() if has_label else _no_text(), planned.name))
    query = exp.select(*selected, *(column(name) for name in kept), copy=False).from_(source, copy=False)
    return _join_lists(query, recoders)


_named = functools.partial(exp.alias_, quoted=True)


def _no_text() -> exp.Expression:
    return exp.cast(exp.null(), exp.DataType.build("text"))


def _count_query(
    columns: list[PlannedColumn],
    known: list[str],
    dialect: Dialect,
    source: exp.Table,
    kept: list[str],
    k: int,
    person: str | None,
) -> exp.Select:
    """Return the query that leaves out small classes: numbers of labels, their counts, the labels."""
    recoders = [
        Recoder(planned, kind, dialect, _numbering(planned), place)
        for place, (planned, kind) in enumerate(zip(columns, known, strict=True), 1)
    ]
    code_names = [f"_duckanon_code_{recoder.place}" for recoder in recoders]
    inner = [_named(recoder.expression(), name) for recoder, name in zip(recoders, code_names, strict=True)]
    passed = [column(name) for name in [*code_names, *kept]]
    person_columns = [] if person is None else [_named(column(person), _PERSON)]
    coded = exp.select(*inner, *(column(name) for name in kept), *person_columns, copy=False).from_(source, copy=False)
    below = _join_lists(coded, recoders).subquery(_CODED, copy=False)
    if person is None:
        people = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[column(name) for name in code_names])
    else:
        below = _rank_query(passed, code_names, below)
        rank = exp.Case().when(exp.not_(column(_PERSON).is_(exp.null())), column(_RANK)).else_(exp.Literal.number(0))
        people = exp.Window(this=exp.Max(this=rank), partition_by=[column(name) for name in code_names])
    sized = exp.select(*passed, _named(people, _PEOPLE), copy=False).from_(below, copy=False)
    labelled = [
        _named(_label_of_code(recoder, name), recoder.planned.name)
        for recoder, name in zip(recoders, code_names, strict=True)
    ]
    return (
        exp.select(*labelled, *(column(name) for name in kept), copy=False)
        .from_(sized.subquery(_SIZED, copy=False), copy=False)
        .where(exp.GTE(this=column(_PEOPLE), expression=exp.Literal.number(k)), copy=False)
        .order_by(dialect.random(), copy=False)
    )


def _rank_query(passed: list[exp.Column], code_names: list[str], below: exp.Subquery) -> exp.Subquery:
    """Rank the people of each class, those without a name last: the largest rank of the others is their number.

    Few engines count different values in a window.
    """
    has_none = exp.Case().when(column(_PERSON).is_(exp.null()), exp.Literal.number(1)).else_(exp.Literal.number(0))
    order = exp.Order(expressions=[exp.Ordered(this=has_none), exp.Ordered(this=column(_PERSON), nulls_first=True)])
    rank = exp.Window(
        this=exp.Anonymous(this="DENSE_RANK"), partition_by=[column(name) for name in code_names], order=order
    )
    ranked = exp.select(*(name.copy() for name in passed), column(_PERSON), _named(rank, _RANK), copy=False)
    return ranked.from_(below, copy=False).subquery(_RANKED, copy=False)


def _numbering(planned: PlannedColumn) -> Any:
    codes = {label: code for code, label in enumerate(planned.labels, 1)}
    return lambda label: exp.Literal.number(codes[label])


def _label_of_code(recoder: Recoder, name: str) -> exp.Expression:
    case = exp.Case(this=column(name))
    for code, label in enumerate(recoder.planned.labels, 1):
        if label is not None:
            case = case.when(exp.Literal.number(code), recoder.dialect.literal(label), copy=False)
    return case if case.args.get("ifs") else _no_text()


def _join_lists(query: exp.Select, recoders: list[Recoder]) -> exp.Select:
    """Join the lists of columns that have very many texts."""
    for recoder in recoders:
        for lookup in recoder.lookups():
            query = _with_list(query, lookup, recoder)
    return query


def _with_list(query: exp.Select, lookup: Lookup, recoder: Recoder) -> exp.Select:
    rows = [
        exp.Tuple(expressions=[recoder.dialect.literal(entry.lower), recoder.outcome(entry.label)])
        for entry in lookup.entries
    ]
    names = [lookup.text.this, lookup.outcome.this]
    alias = exp.TableAlias(this=exp.to_identifier(lookup.name, quoted=True), columns=names)
    condition = exp.EQ(this=lookup.key, expression=lookup.text)
    if not recoder.dialect.lists_are_steps:
        return query.join(exp.Values(expressions=rows, alias=alias), on=condition, join_type="left", copy=False)
    step = exp.CTE(this=exp.Values(expressions=rows), alias=alias)
    with_ = query.args.get("with_")
    if with_ is None:
        query.set("with_", exp.With(expressions=[step]))
    else:
        with_.append("expressions", step)
    joined = exp.to_table(lookup.name)
    joined.this.set("quoted", True)
    return query.join(joined, on=condition, join_type="left", copy=False)
