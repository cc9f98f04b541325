"""The functions of this package that SQL can call."""

from __future__ import annotations

import re
from dataclasses import dataclass

from duckanon._core.common import parameters as shared
from duckanon._core.common.contracts import InvariantUnder, KeepsTypes
from duckanon._core.common.declare import Group, Options, Parameter, Release
from duckanon._core.common.rules import ColumnName, Either, ListOf, MapOf, Number, OneOf, TableName, Tables, Text, Whole

TABLE_NAME, ROW_COUNT = "table_name", "row_count"
"""Columns of the result: the table of a row, and the band of the number of rows of its person."""


_ENDINGS = re.compile(r"(\.(parquet|csv|tsv|txt|json|jsonl|ndjson|arrow|feather|xlsx|gz|zst))+$", re.IGNORECASE)


def shorten_name(table: str) -> str:
    """Return what the result calls a table: a file without folders and endings, since paths tell about their owner.

    Examples:
        >>> shorten_name("/home/jane/visits.csv.gz"), shorten_name("visits.parquet"), shorten_name("clinic.visits")
        ('visits', 'visits', 'clinic.visits')
    """
    file = re.split(r"[/\\]", table.split("?")[0] if "://" in table else table)[-1]
    return _ENDINGS.sub("", file) or file


@dataclass(frozen=True)
class SensitiveLimits:
    """How much a choice of events may tell about a column."""

    sensitive: str | None = None
    max_confidence: float | None = None
    l: int = 1  # noqa: E741 - the papers' name
    t: float | None = None


class _Bands(OneOf):
    null = True


def _has_known_of_tables(options: Options) -> str | None:
    known, tables = options["known"], options["tables"]
    if isinstance(known, dict) and sorted(known) != sorted(tables):
        return f"known must have a number for each of tables; got {', '.join(known)}."
    return None


def _names_are_apart(options: Options) -> str | None:
    """Refuse a column that has two tasks."""
    seen: dict[str, str] = {TABLE_NAME: "the result", ROW_COUNT: "the result"}
    for parameter in ("person", "cols", "class"):
        names = options[parameter] or ()
        for name in (names,) if isinstance(names, str) else names:
            if name.lower() in seen:
                return f'{parameter} must not name a column of {seen[name.lower()]}; got "{name}".'
            seen[name.lower()] = parameter
    for name in options["keep"] or ():
        if seen.get(name.lower()) in ("cols", "class", "the result"):
            return f'keep must not name a column of {seen[name.lower()]}; got "{name}".'
    if options["people"] in options["tables"]:
        return f"people must be none of tables; got {options['people']}."
    return None


def _tables_have_names(options: Options) -> str | None:
    """Refuse files that are called alike, which the result could not tell apart."""
    tables = [*options["tables"], *([options["people"]] if options["people"] else [])]
    names = [shorten_name(table).lower() for table in tables]
    alike = [table for table, name in zip(tables, names, strict=True) if names.count(name) > 1]
    if alike:
        return (
            f"tables must be called differently, since the result has no folders and endings; got {', '.join(alike)}."
        )
    return None


def _limits_have_column(options: Options) -> str | None:
    is_asked = options["max_confidence"] is not None or options["l"] > 1 or options["t"] is not None
    if is_asked and options["sensitive"] is None:
        return "sensitive must name the column that max_confidence, l and t are about; got NULL."
    if not is_asked and options["sensitive"] is not None:
        return "max_confidence, l or t must say what may be learned about sensitive; got none of them."
    return None


_SENSITIVE = Group(
    "sensitive",
    SensitiveLimits,
    (
        Parameter("sensitive", ColumnName(null=True), "The column that `max_confidence`, `l` and `t` are about", None),
        Parameter(
            "max_confidence",
            Number(above=0, most=1, null=True),
            "The largest share of one value of `sensitive` among the people who hold a choice of events",
            None,
        ),
        Parameter("l", Whole(1), "The fewest different values of `sensitive` among these people", 1),
        Parameter(
            "t",
            Number(0, 1, null=True),
            "The largest distance between the distribution of `sensitive` among these people and among all: half the "
            "sum of the differences of the shares, as `anon.t_closeness` measures categories",
            None,
        ),
    ),
)


RELEASE_LINKED = Release(
    name="release_linked",
    algorithm="duckanon._methods.linked.release:release_linked",
    stage="release",
    summary="Generalizes linked tables of events: whoever knows any m events of a person finds at least k people.",
    promises=(
        KeepsTypes("keep"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        Parameter("tables", Tables("['visits', 'labs']"), "The tables of events").without("large", "spark", "policy"),
        Parameter("person", ColumnName(), "The column of all tables that says whose row it is").without("policy"),
        shared.COLS.having(meaning="The columns that somebody may know of an event; each table has some of them"),
        shared.K.having(meaning="The smallest number of people who hold a choice of events"),
        Parameter(
            "known",
            Either((Whole(1, 4), MapOf("MAP {'visits': 2, 'labs': 0}", Whole(0, 4), null=False))),
            "How many events of a person somebody may know; a map says how many of each table, and the largest number "
            "is that of all together",
            2,
        ).without("policy"),
        Parameter(
            "class",
            shared._COLUMN_LIST,
            "Columns of the person that somebody may know, already coarse: of `people`, or of all tables. They are "
            "released as they are, and each of their classes must have `k` people",
            None,
        ),
        Parameter(
            "people",
            TableName(null=True),
            "A table with one row for each person, also for those without events, which is part of the result. NULL: "
            "there are no people but those of `tables`",
            None,
        ).without("policy"),
        shared.HIERARCHIES,
        Parameter(
            "ladder",
            ListOf(
                MapOf("MAP {'day': 'month'}", Text("'month'"), null=False),
                "[MAP {'day': 'month'}, MAP {'day': 'year', 'code': '*'}]",
                null=True,
            ),
            "Levels from fine to coarse that rows may show: for each column a period ('day', 'month', 'quarter', "
            "'half-year', 'year', '5 years', 'decade'), the level of its hierarchy ('0', '1'), the width of a range, "
            "such as '10', 'value' or '*'. NULL: they are found by search",
            None,
        ),
        shared.KEPT,
        Parameter(
            "counts",
            _Bands("bands"),
            "`'bands'`: the number of events of a person may be known too, up to bands (1, 2, 3-4, 5-8, ...), which "
            "are released as `row_count` and belong to the class",
            None,
        ),
        _SENSITIVE.without("policy"),
        shared.MAX_SUPPRESSED_FRACTION.having(default=0.01).without("policy"),
        shared.SEED,
    ),
    checks=(_has_known_of_tables, _names_are_apart, _tables_have_names, _limits_have_column),
    body="anon._release_linked",
    hands_over=True,
    coded=True,
)

FUNCTIONS = (RELEASE_LINKED,)
