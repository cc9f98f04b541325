"""Parameters that several functions share, so that each has one name, one meaning and one check everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from duckanon._core.common.declare import Group, Options, Parameter
from duckanon._core.common.rules import ColumnName, ColumnNames, Either, ListOf, MapOf, Number, OneOf, TableName, Whole

LEAST_CLUSTER_SIZE = 10
"""In smaller clusters independent components become single records."""


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


_COLUMN_LIST = ColumnNames(null=True, empty=True)

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
BY = Parameter("by", _COLUMN_LIST, "Columns released as they are; `k` holds within each of their groups", None)
KEEP = Parameter(
    "keep",
    _COLUMN_LIST,
    "Other columns to release as they are; `['*']`: all but those whose names or values look like identifiers",
    None,
).without("policy")
NARROWING = Parameter(
    "narrowing", _COLUMN_LIST, "Columns of `keep` that are released although they narrow down the labels", None
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
CLUSTER_SIZE = Parameter(
    "cluster_size",
    Number(LEAST_CLUSTER_SIZE, null=True),
    "Records per cluster, from half to one and a half times as many: fewer keep more structure and hide less",
    None,
)
LOG = Parameter(
    "log",
    _COLUMN_LIST,
    "Columns of which logarithms are taken. NULL: all numbers that are positive and heavily skewed",
    None,
)
ENCODED_NULLS = Parameter(
    "nulls",
    OneOf("error", "category"),
    "`'error'`: missing values are refused; `'category'`: missing is one more value",
    "error",
)
SPECIAL = Parameter(
    "special",
    Either((OneOf("auto", "off"), MapOf("MAP {'cigarettes': [-8, 0]}", ListOf(Number(), "[-8, 0]"), null=False))),
    "Numbers that stand for something else, such as frequent zeros and negative codes, are treated apart from the "
    "others: `'auto'` finds them, a map lists them by column, `'off'`: there are none",
    "auto",
)
CATEGORIES = Parameter(
    "categories",
    _COLUMN_LIST,
    "Columns of numbers that are categories. NULL: whole numbers with at most twelve different values",
    None,
)
DERIVED = Parameter(
    "derived",
    OneOf("auto", "off"),
    "`'auto'`: columns that follow from others, such as sums, products and coarser columns, are computed again; "
    "`'off'`: they are released like all others",
    "auto",
)
ROWS = Parameter("rows", Whole(1, null=True), "The number of released records. NULL: as many as the table has", None)
UNRELEASED_PERSON = PERSON.having(
    meaning="The column that identifies people, which is not released: `k` then counts different people, and a row "
    "without one counts as nobody. NULL: every row is another person"
)
KEY = Parameter(
    "key",
    ColumnName(null=True),
    "A column of `cols` that stays unchanged, to measure the release with `anon.matching_attack`; never publish it",
    None,
)


def refuse_person_in_cols(options: Options) -> str | None:
    """Refuse a person's column that is to be changed."""
    if _is_among(options["person"], options["cols"]):
        return f"person must not be one of cols; got {options['person']}."
    return None


def refuse_by_in_cols(options: Options) -> str | None:
    """Refuse a column that is grouped by, and changed or a person's."""
    for name in options["by"] or ():
        if _is_among(name, [*(options["cols"] or ()), options["person"] or ""]):
            return f'by must name none of cols and person; got "{name}".'
    return None


def refuse_order_outside_cols(options: Options) -> str | None:
    """Refuse an order of rows that are nobody's, and by a column that is not released."""
    name = options["order_by"]
    if name is None:
        return None
    if options["person"] is None:
        return f"order_by orders the rows of a person: name the column of people in person; got {name}."
    if options["cols"] is not None and not _is_among(name, options["cols"]):
        return f"order_by must be one of cols; got {name}."
    return None


def refuse_keep_in_cols(options: Options) -> str | None:
    """Refuse a column that is both changed and kept."""
    for name in options["keep"] or ():
        if _is_among(name, options["cols"]):
            return f'keep must not name a column of cols; got "{name}".'
    return None


def refuse_sensitive_in_cols(options: Options) -> str | None:
    """Refuse what cannot be asked of a sensitive column."""
    sensitive = options["sensitive"]
    if sensitive is None:
        is_condition = options["l"] > 1 or options["t"] is not None
        return "sensitive must name the column that l and t are about; got NULL." if is_condition else None
    if _is_among(sensitive, [*options["cols"], *(options.get("by") or ()), options["person"] or ""]):
        names = "cols, by and person" if "by" in options else "cols and person"
        return f"sensitive must be none of {names}; got {sensitive}."
    return None


def refuse_fractional_l(options: Options) -> str | None:
    """Refuse a diversity that no number of values has."""
    if options["l_kind"] != "entropy" and options["l"] != round(options["l"]):
        return f"l must be a whole number of at least 1, unless l_kind is 'entropy'; got {options['l']}."
    return None


def refuse_own_names(options: Options) -> str | None:
    """Refuse columns that are called as the steps of a macro are."""
    for parameter in ("cols", "keep", "person", "sensitive"):
        names = options.get(parameter) or ()
        for name in (names,) if isinstance(names, str) else names:
            if name.lower().startswith("_duckanon_"):
                return f"{parameter} must not name a column that begins with _duckanon_; got {name}: rename it first."
    return None


def _is_among(name: str | None, names: Sequence[str] | None) -> bool:
    return name is not None and name.lower() in (known.lower() for known in names or ())


def read_by_column(parameter: str, option: Any, names: Sequence[str]) -> dict[str, Any]:
    """Read a MAP or STRUCT from column names to something, the names in lower case."""
    pairs = option.items() if isinstance(option, dict) else option or []
    named = {str(name).lower(): value for name, value in pairs}
    refuse_other_columns(parameter, named, names)
    return named


def refuse_other_columns(parameter: str, named: Iterable[str], names: Sequence[str]) -> None:
    """Refuse an option that names, in lower case, a column that is none of ``names``."""
    known = {name.lower() for name in names}
    for name in named:
        if name not in known:
            raise ValueError(f'{parameter} must name columns of cols; got "{name}".')


def read_weights(option: Any, names: Sequence[str], cols: Sequence[str]) -> list[float]:
    """Return the weight of each column: from a list parallel to `cols`, or from a map; 1 where none is given."""
    if isinstance(option, list) and not (option and isinstance(option[0], tuple)):
        if len(option) != len(cols):
            raise ValueError(f"weights must have one number for each of the {len(cols)} columns; got {len(option)}.")
        option = dict(zip(cols, option, strict=True))
    if option is not None and not isinstance(option, list | dict):
        raise ValueError(f"weights must be a list of numbers or a map such as MAP {{'age': 2}}; got {option}.")
    by_name = read_by_column("weights", option, names)
    weights = [by_name.get(name.lower(), 1.0) for name in names]
    if not all(map(Number(0).holds, weights)) or not sum(weights) > 0:
        raise ValueError("weights must be numbers of at least 0, not all of them 0.")
    return [float(weight) for weight in weights]
