"""The dialects that SQL is rendered for, and where they differ in ways that sqlglot does not know.

The functions of ``anon`` that are rendered as SQL of other engines, and by which call; the reference draws it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import OneOf


@dataclass(frozen=True)
class Dialect:
    """One engine's SQL.

    The collation compares texts byte by byte, whatever the column's own does; None: the engine's default does, or a
    cast takes the column's away. A column of unknown type is cast to `collated_as` where values must be told apart byte
    by byte; None: it may have the collation without a cast, or needs none.
    """

    name: str  # as sqlglot calls it
    is_executed: bool = False  # whether the tests run it and compare it with `anon.apply_plan`; else it is only parsed
    collation: str | None = None
    collated_as: str | None = None
    has_boolean_texts: bool = True  # whether a boolean cast to text is true or false, as in DuckDB
    joins_lists: bool = True  # whether a row finds at most one entry of a joined list of values, and NULL where none
    lists_are_steps: bool = False  # whether such a list is a step of WITH; else it stands in the join

    def text(self, value: exp.Expression) -> exp.Expression:
        """Return a value as text that is compared byte by byte."""
        return self.exact(self.cast_to_text(value))

    def cast_to_text(self, value: exp.Expression) -> exp.Expression:
        """Return a value as text, which may be compared by the rules of the column's collation."""
        return exp.cast(value.copy(), exp.DataType.build("nvarchar(max)" if self.name == "tsql" else "text"))

    def exact(self, text: exp.Expression) -> exp.Expression:
        """Return a text so that it is compared byte by byte."""
        if self.collation is None:
            return text
        return exp.Collate(this=text, expression=exp.to_identifier(self.collation, quoted=self.collation == "C"))

    def key(self, column: exp.Expression) -> exp.Expression:
        """Return a column of any type so that values are grouped together only where a reader cannot tell them apart.

        To a collation, ``F`` and ``f`` may be the same: a class of both would look larger than it is.
        """
        if self.collated_as is not None:
            return exp.cast(column.copy(), exp.DataType.build(self.collated_as))
        return self.exact(column.copy()) if self.name == "sqlite" else column.copy()

    def literal(self, text: str | None) -> exp.Expression:
        """Return a text as a literal; NULL where there is none."""
        if text is None:
            return exp.null()
        if self.name == "tsql" and not text.isascii():  # other literals are in the code page of the database
            return exp.National(this=text)
        return exp.Literal.string(text)

    def random(self) -> exp.Expression:
        """Return an expression that puts rows into a random order; T-SQL's RAND() is the same for all rows."""
        return exp.Anonymous(this="NEWID") if self.name == "tsql" else exp.Rand()

    def write(self, query: exp.Expression, title: str) -> str:
        """Write a query, below a comment that says what it is and whether such queries were ever run.

        ``title`` must hold nothing that was read from a plan: a line break in it would end the comment.
        """
        tried = "executed in duckanon's tests" if self.is_executed else "rendered, not executed in duckanon's tests"
        return f"-- {title} ({self.name}: {tried})\n{query.sql(dialect=self.name, pretty=True)}\n"


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", is_executed=True, collation="C", lists_are_steps=True),
        Dialect("postgres", is_executed=True, collation="C", lists_are_steps=True),
        Dialect("spark", is_executed=True, lists_are_steps=True),
        Dialect("sqlite", is_executed=True, collation="BINARY", has_boolean_texts=False, lists_are_steps=True),
        Dialect("bigquery"),
        Dialect("clickhouse", joins_lists=False),  # an outer join gives 0 and '' instead of NULL there
        Dialect("databricks"),
        Dialect("mysql", collation="utf8mb4_0900_bin", collated_as="binary", has_boolean_texts=False),
        Dialect("redshift", has_boolean_texts=False),
        Dialect("snowflake"),
        Dialect("trino"),
        Dialect(  # spaces at the end of a text do not count there: a value could find two entries
            "tsql",
            collation="Latin1_General_100_BIN2",
            collated_as="varbinary(8000)",
            has_boolean_texts=False,
            joins_lists=False,
        ),
    )
}
"""The dialects by name; those that are executed first."""


def dialect_called(name: object) -> Dialect:
    """Return the dialect of a name, or refuse it."""
    refuse_unless(OneOf(*DIALECTS), "dialect", name)
    return DIALECTS[str(name)]


def source_table(name: object, dialect: Dialect) -> exp.Table:
    """Return the table of a name, which may have a schema and a catalog before it, or refuse what is none.

    A name is split at its points; a part in quotes of the dialect is taken as it stands, all others as the engine reads
    names without quotes.
    """
    sentence = "table must be the name of a table such as 'patients' or 'clinic.patients'; got "
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{sentence}{name!r}.")
    try:
        table = exp.maybe_parse(name, into=exp.Table, dialect=dialect.name)
    except Exception as error:
        raise ValueError(f"{sentence}{name!r}.") from error
    parts = table.parts if isinstance(table, exp.Table) else []
    is_name = parts and all(isinstance(part, exp.Identifier) for part in parts)
    if not is_name or any(value for key, value in table.args.items() if key not in ("this", "db", "catalog")):
        raise ValueError(f"{sentence}{name!r}.")
    table.comments = None
    return table


def column(name: str) -> exp.Column:
    """Return a column by its name, in quotes: it is spelled as the plan or the caller spells it."""
    return exp.column(exp.to_identifier(name, quoted=True))


RENDERED = {
    "k_anonymity": "render_check('k', ...)",
    "l_diversity": "render_check('l', ...)",
    "t_closeness": "render_check('t', ...)",
    "individual_risk": "render_check('individual_risk', ...)",
    "apply_plan": "render(plan, ...)",
    "generalize": "render(plan, ..., k=10)",
}
"""By the name of the function. `generalize` is rendered in two steps: ``anon.plan`` makes the plan in DuckDB."""
