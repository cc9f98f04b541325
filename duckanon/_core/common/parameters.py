"""Parameters that several functions share, so that each has one name, one meaning and one check everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duckanon._core.common.declare import Group, Options, Parameter
from duckanon._core.common.rules import ColumnName, ColumnNames, Either, ListOf, MapOf, Number, OneOf, TableName, Whole


@dataclass(frozen=True)
class Kept:
    """The columns that a release leaves as they are, and those among them that may narrow down what labels say."""

    keep: Sequence[str] | None = None
    narrowing: Sequence[str] | None = None

    def has(self, column: str | None) -> bool:
        """Tell whether a column is released as it is."""
        return column is not None and column.lower() in (name.lower() for name in self.keep or ())


@dataclass(frozen=True)
class Sensitive:
    """The column whose values are to be diverse and close to those of the table, and what that means."""

    sensitive: str | None = None
    l: float = 1  # noqa: E741 - the papers' name
    l_kind: str = "distinct"
    c: float = 3
    t: float | None = None


TBL = Parameter("tbl", TableName(), "The table, view or CTE").without("large", "spark", "policy")
COLS = Parameter("cols", ColumnNames(), "The columns to protect").without("policy")
K = Parameter("k", Whole(2), "The smallest number of people in a class").without("policy")
SEED = Parameter(
    "seed", Whole(0, null=True), "Makes the result repeatable; whoever knows it can repeat the random choices", None
).without("policy")
PERSON = Parameter(
    "person",
    ColumnName(null=True),
    "The column that identifies people: `k` then counts different people, and a row without one counts as nobody. "
    "NULL: every row is another person",
    None,
).without("policy")
BY = Parameter(
    "by",
    ColumnNames(null=True, empty=True),
    "Columns released as they are; `k` holds within each of their groups",
    None,
)
KEEP = Parameter(
    "keep",
    ColumnNames(null=True, empty=True),
    "Other columns to release as they are; `['*']`: all but those whose names or values look like identifiers",
    None,
).without("policy")
NARROWING = Parameter(
    "narrowing",
    ColumnNames(null=True, empty=True),
    "Columns of `keep` that are released although they narrow down the labels",
    None,
)
KEPT = Group("kept", Kept, (KEEP, NARROWING))
SENSITIVE = Group(
    "sensitive",
    Sensitive,
    (
        Parameter("sensitive", ColumnName(null=True), "The column that `l` and `t` are about", None),
        Parameter("l", Number(1), "The diversity of `sensitive` in every class, at least", 1),
        Parameter(
            "l_kind",
            OneOf("distinct", "entropy", "recursive"),
            "What `l` counts: different values; the exponential of their entropy; or the most frequent value occurs "
            "less often than `c` times all from the l-th most frequent on",
            "distinct",
        ),
        Parameter("c", Number(above=0), "The factor of `l_kind := 'recursive'`", 3),
        Parameter(
            "t",
            Number(0, 1, null=True),
            "The largest distance between the distribution of `sensitive` in a class and in the table, as "
            "`anon.t_closeness` measures it",
            None,
        ),
    ),
)
HIERARCHIES = Parameter(
    "hierarchies",
    MapOf("MAP {'zip': 'zip_hierarchy'}"),
    "Hierarchy tables by column: the first column holds the values, the next ones ever coarser labels",
    None,
).without("policy")
WEIGHTS = Parameter(
    "weights",
    Either((MapOf("MAP {'age': 2}", Number(0)), ListOf(Number(0), "[2, 1], parallel to `cols`"))),
    "How much the loss of each column matters; 1 where none is given",
    None,
)
MAX_SUPPRESSED_FRACTION = Parameter(
    "max_suppressed_fraction", Number(0, 1), "The share of the rows that may be suppressed", 0
)


def person_is_no_col(given: Options) -> str | None:
    """Refuse a person's column that is to be changed."""
    if _among(given["person"], given["cols"]):
        return f"person must not be one of cols; got {given['person']}."
    return None


def keep_is_no_col(given: Options) -> str | None:
    """Refuse a column that is both changed and kept."""
    for name in given["keep"] or ():
        if _among(name, given["cols"]):
            return f'keep must not name a column of cols; got "{name}".'
    return None


def sensitive_is_apart(given: Options) -> str | None:
    """Refuse what cannot be asked of a sensitive column."""
    sensitive = given["sensitive"]
    if sensitive is None:
        is_asked = given["l"] > 1 or given["t"] is not None
        return "sensitive must name the column that l and t are about; got NULL." if is_asked else None
    if _among(sensitive, [*given["cols"], *(given.get("by") or ()), given["person"] or ""]):
        return f"sensitive must be none of cols, by and person; got {sensitive}."
    return None


def by_is_apart(given: Options) -> str | None:
    """Refuse to group by a column that is changed, or by people."""
    for name in given["by"] or ():
        if _among(name, [*given["cols"], given["person"] or ""]):
            return f'by must name other columns than cols and person; got "{name}".'
    return None


def _among(name: str | None, names: Sequence[str]) -> bool:
    return name is not None and name.lower() in (one.lower() for one in names)
