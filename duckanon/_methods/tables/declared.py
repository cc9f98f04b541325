"""The functions of this package that SQL can call."""

from __future__ import annotations

from collections.abc import Sequence

from duckanon._core.common.contracts import TABLE, CellsOfKPeople, InvariantUnder, TrueCells
from duckanon._core.common.declare import Options, Parameter, Release
from duckanon._core.common.parameters import PERSON, TBL
from duckanon._core.common.rules import (
    ColumnName,
    ColumnNames,
    Either,
    Flag,
    ListOf,
    MapOf,
    Number,
    OneOf,
    TableName,
    Text,
    Whole,
)

_ADDED = ("people", "value", "max_deviation", "published", "interval_checked")

_BY = Parameter("by", ColumnNames(), "The columns of the table; a margin has the label `Total`")
_MEASURE = Parameter(
    "measure",
    ColumnName(null=True),
    "The column whose sums the table shows; a row where it is NULL contributes nothing. NULL: the table counts people",
    None,
)
_K = Parameter("k", Whole(2), "How many people contribute to a published cell, at least", 10).without("policy")
_P = Parameter(
    "p",
    Number(above=0, most=100, null=True),
    "Of a sum, the percentage within which nobody may compute what another contributes; NULL: no such rule",
    10,
)
_DOMINANCE = Parameter(
    "dominance",
    ListOf(Number(above=0, most=100), "[2, 85]", null=True),
    "Of a sum, how many of the largest contributions may have at most what percentage of it; NULL: no such rule",
    None,
)
_HIERARCHIES = Parameter(
    "hierarchies",
    Either(
        (
            MapOf("MAP {'zip': 'zip_hierarchy'}", TableName()),
            MapOf("MAP {'zip': ['by_area', 'by_size']}", ListOf(TableName(), "['by_area']")),
        )
    ),
    "Hierarchy tables by column, or lists of them: the first column holds the values, the next ones ever coarser "
    "groups, which become margins too",
    None,
).without("policy")
_ZEROS = Parameter(
    "zeros",
    OneOf("public", "protected"),
    "`'public'`: everybody may know which cells are empty, and they are not returned. `'protected'`: an empty cell is "
    "a small one",
    "public",
)
_LINKED = Parameter(
    "linked",
    ListOf(ColumnNames(), "[['region', 'sex'], ['region', 'age']]", null=True),
    "The columns of further tables of the same rows: all are protected together, and returned with `Total` in columns "
    "that a table does not have",
    None,
)


def _refuse_clashes(options: Options, answer: Sequence[str], columns: Sequence[str]) -> str | None:
    """Refuse columns that are called like one of the answer's, or that a table cannot be grouped by."""
    used = {options[column].lower() for column in columns if options[column]}
    for name in (name for table in [options["by"], *(options.get("linked") or ())] for name in table):
        if name.lower() in answer:
            return f'by must not name a column that the answer has too; got "{name}": rename it first.'
        if name.lower() in used:
            return f'by must not name the column of {" or ".join(columns)}; got "{name}".'
    return None


def _names_apart(options: Options) -> str | None:
    return _refuse_clashes(options, _ADDED, ("measure", "person"))


def _audit_names_apart(options: Options) -> str | None:
    return _refuse_clashes(options, ("value", "people", "fault", "lower", "upper"), ("value", "people"))


def _dominance_is_a_pair(options: Options) -> str | None:
    """Refuse a rule of dominance that is no number of contributions with a percentage."""
    pair = options["dominance"]
    if pair is None or (len(pair) == 2 and pair[0] in range(1, 6)):
        return None
    return f"dominance must be a whole number from 1 to 5 and a percentage such as [2, 85]; got {list(pair)}."


def _hierarchies_are_of_columns(options: Options) -> str | None:
    """Refuse a hierarchy of a column that no table has."""
    names = {name.lower() for table in [options["by"], *(options.get("linked") or ())] for name in table}
    for name in options["hierarchies"] or ():
        if name.lower() not in names:
            return f'hierarchies must be of columns of by; got "{name}".'
    return None


def _audit_fits_original(options: Options) -> str | None:
    """Refuse options about rows that are not given, and sums without people or rows."""
    if options["original"] is None and (options["measure"] is not None or options["person"] is not None):
        return "original must name the rows of measure and person; got NULL."
    return None


def _method_fits(options: Options) -> str | None:
    """Refuse noise and rounding without a secret or of sums, and noise without people."""
    method, is_linked = options["method"], bool(options["linked"])
    if method == "suppress":
        return None if options["key"] is None else "key must be NULL where method is 'suppress'."
    if options["key"] is None or len(options["key"]) < 16:
        return f"key must be a secret text of at least 16 letters where method is '{method}'."
    if method == "cell_key" and (options["person"] is None or options["measure"] or options["previous"]):
        return "method := 'cell_key' counts people: person must name their column, measure and previous must be NULL."
    if method == "round" and options["measure"] is not None:
        return (
            "method := 'round' counts people: measure must be NULL, since a base that hides the largest contribution "
            "to a sum would round most sums to 0; method := 'suppress' is for sums."
        )
    if method == "round" and options["previous"] is not None and is_linked:
        return (
            "previous must be NULL where method is 'round' and tables are linked: it does not show their inner cells."
        )
    return None


PROTECT_TABLE = Release(
    name="protect_table",
    algorithm="duckanon._methods.tables.protect_table:protect_table",
    stage="release",
    summary="Returns a table of counts or sums with all margins, in which cells that give people away are hidden.",
    promises=(
        CellsOfKPeople(),
        TrueCells(),
        InvariantUnder(*TABLE),
    ),
    parameters=(
        TBL,
        _BY,
        _MEASURE,
        _K,
        _P,
        _DOMINANCE,
        PERSON.having(
            meaning="The column that identifies people: all rows of a person are one contribution, and a row without "
            "one counts as nobody. NULL: every row is another person"
        ),
        _HIERARCHIES,
        _ZEROS,
        _LINKED,
        Parameter(
            "previous",
            TableName(null=True),
            "A table of the same columns that was given away before, as this function returned it: its published cells "
            "count as known",
            None,
        ),
        Parameter(
            "method",
            OneOf("suppress", "round", "cell_key"),
            "`'suppress'`: cells are hidden. `'round'`: counts of people become multiples of `k`, and margins stay the "
            "sums of their parts. `'cell_key'`: counts of people get noise, the same for the same people in every "
            "table, and none is from 1 to `k` - 1; for a fixed set of tables only",
            "suppress",
        ),
        Parameter(
            "max_suppressed_fraction",
            Number(0, 1),
            "The share of the value of the inner cells that may be hidden; more is refused, with the column to coarsen",
            0.5,
        ).without("policy"),
        Parameter(
            "key",
            Text("'a secret of 16 letters or more'", null=True),
            "The secret of `'round'` and `'cell_key'`, of at least 16 letters: the same key gives the same numbers, "
            "and whoever has it can narrow down the true ones",
            None,
        ).without("policy"),
    ),
    checks=(_names_apart, _dominance_is_a_pair, _hierarchies_are_of_columns, _method_fits),
    body="anon._protected_table",
    tables=("table", "previous"),
    columns=(),
)

AUDIT_TABLE = Release(
    name="audit_table",
    algorithm="duckanon._methods.tables.audit_table:audit_table",
    stage="release",
    summary="Finds what readers can compute of the hidden cells of a table of counts or sums, whoever made it.",
    promises=(InvariantUnder(*TABLE),),
    parameters=(
        Parameter(
            "published",
            TableName(),
            "The table that leaves: the columns of `by`, with `Total` for margins, and one with the numbers, NULL in "
            "hidden cells",
        ),
        _BY,
        Parameter("value", ColumnName(), "The column of the numbers", "value"),
        Parameter(
            "people",
            ColumnName(null=True),
            "The column with the number of people of each cell, NULL in hidden ones, where `value` is a sum. NULL: "
            "`value` counts people",
            None,
        ),
        _K,
        _P,
        _HIERARCHIES,
        _LINKED.having(
            meaning="The columns of further tables that `published` has rows of, with `Total` in all others"
        ),
        Parameter(
            "original",
            TableName(null=True),
            "The rows that the table was made of. With them it is known which cells are to be protected, by how much, "
            "and from whom",
            None,
        ),
        _MEASURE.having(meaning="The column of `original` whose sums the table shows; NULL: it counts people"),
        PERSON.having(meaning="The column of `original` that identifies people; NULL: every row is another person"),
        Parameter(
            "overlapping",
            Flag(),
            "Whether a person may be in several cells, so that a margin has fewer people than its parts together",
            False,
        ),
    ),
    checks=(_audit_names_apart, _hierarchies_are_of_columns, _audit_fits_original),
    body="anon._audited_table",
    tables=("table", "original"),
    columns=(),
)

FUNCTIONS = (PROTECT_TABLE, AUDIT_TABLE)
