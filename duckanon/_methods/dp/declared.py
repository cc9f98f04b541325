"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.contracts import InvariantUnder
from duckanon._core.common.declare import Options, Parameter, Release
from duckanon._core.common.parameters import PERSON, TBL
from duckanon._core.common.rules import ColumnNames, Flag, ListOf, MapOf, Number, TableName, Text, Whole
from duckanon._methods.dp.aggregates import parse_aggregates


def _aggregates_are_valid(options: Options) -> str | None:
    """Refuse aggregates that are none, or lack bounds."""
    try:
        aggregates = parse_aggregates(options["aggregates"], options["bounds"], options["max_rows"])
    except ValueError as error:
        return str(error)
    names = {name.lower() for aggregate in aggregates for name in (aggregate.name, aggregate.error_name)}
    for name in options["by"]:
        if name.lower() in names:
            return f'by must not name a column that the answer has too; got "{name}": rename it first.'
        if name.lower() == (options["person"] or "").lower():
            return f'by must not name the column of person; got "{name}".'
    return None


def _groups_fit(options: Options) -> str | None:
    """Refuse a delta that nothing spends, and groups to be found without one."""
    if not options["by"] and options["groups"] is not None:
        return "groups must be NULL where by has no columns: there is one group, of all rows."
    is_known = options["groups"] is not None or not options["by"]
    if is_known and options["delta"]:
        return f"delta must be 0 where the groups are public: nothing would spend it; got {options['delta']}."
    if not is_known and not options["delta"]:
        return "delta must be above 0 (1e-6, say) to find groups in the data; or name a table of all groups in groups."
    if options["max_groups"] > 1 and (options["person"] is None or not options["by"]):
        where = "person is NULL, since a row is in one group" if options["by"] else "by has no columns"
        return f"max_groups must be 1 where {where}; got {options['max_groups']}."
    return None


def _has_account(options: Options) -> str | None:
    """Refuse to draw without an account, unless the call says so."""
    account = [name for name in ("account", "dataset", "consumer") if options[name] is not None]
    if options["unaccounted"]:
        return f"{account[0]} must be NULL where unaccounted is true." if account else None
    if options["account"] is None:
        return (
            "account must name the file that keeps the budget (duckanon account budget makes it); "
            "unaccounted := true draws without one, and nothing then adds up what is given away."
        )
    return None if options["dataset"] else "dataset must name the data set whose budget is spent; got NULL."


DP_TABLE = Release(
    name="dp_table",
    algorithm="duckanon._methods.dp.dp_table:dp_table",
    stage="release",
    summary="Returns counts, sums, means and quantiles by group with the noise of differential privacy.",
    promises=(InvariantUnder(),),
    parameters=(
        TBL,
        Parameter("by", ColumnNames(empty=True), "The columns that make the groups; `[]`: one group of all rows"),
        Parameter(
            "epsilon",
            Number(1e-6, 100),
            "How much the whole answer may tell about a person; the aggregates share it in equal parts",
        ),
        Parameter(
            "aggregates",
            ListOf(Text("'count'"), "['count', 'sum(cost)', 'mean(age)', 'quantile(age, 0.5)']"),
            "What is computed of each group: `count` people, `rows` of them, `sum`, `mean` or `quantile` of a column",
            ("count",),
        ),
        Parameter(
            "delta",
            Number(0, 0.01),
            "The probability with which a group may be found that only one person has; far below 1 / people",
            0,
        ),
        PERSON.having(
            meaning="The column that identifies people, who are protected with all their rows; rows without one "
            "are left out. NULL: every row is another person"
        ),
        Parameter(
            "max_groups",
            Whole(1, 1_000_000),
            "In how many groups a person counts at most; of more, as many are chosen at random",
            1,
        ),
        Parameter(
            "max_rows", Whole(1, 1_000_000, null=True), "How many rows of a person count in a group, for `rows`", None
        ),
        Parameter(
            "bounds",
            MapOf("MAP {'age': [0, 120]}", ListOf(Number(), "[0, 120]")),
            "The smallest and the largest contribution of a person by column, or by aggregate (`'sum(cost)'`); others "
            "are moved there. They must be public: never computed from the data",
            None,
        ),
        Parameter(
            "groups",
            TableName(null=True),
            "A public table of all groups, which are returned, those without people too. NULL: groups are found in the "
            "data, and returned if many people have them",
            None,
        ),
        Parameter("account", Text("'account.sqlite'", null=True), "The file that keeps the budget", None),
        Parameter("dataset", Text("'visits'", null=True), "The data set whose budget is spent", None),
        Parameter(
            "consumer", Text("'research'", null=True), "Who gets the answer, and has a budget of their own", None
        ),
        Parameter("unaccounted", Flag(), "Draw although no account adds up what was given away", False),
    ),
    checks=(_aggregates_are_valid, _groups_fit, _has_account),
    body="duckanon._bridge.dp_query:query",
    columns=(),
)

FUNCTIONS = (DP_TABLE,)
