"""The schema of a policy: roles of columns, method, promises, and the formats of sources and targets."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from duckanon._core.common.resources import read_memory
from duckanon._methods.linked.declared import RELEASE_LINKED
from duckanon.job.policy_methods import AnyMethod, Part

UNDECIDED = "?"
"""The role of a column that nobody decided: it stops the job."""

LEFT_OUT = ("identifier", "drop")
"""Roles of columns that are not read."""

Format = Literal["parquet", "csv", "duckdb", "postgresql"]

FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".duckdb": "duckdb",
    ".db": "duckdb",
}
"""Formats that can be written."""

_READ: dict[str, Format] = {**FORMATS, ".tsv": "csv", ".txt": "csv", ".tsv.gz": "csv", ".ddb": "duckdb"}

SYNTHESIZED = ("numeric", "quasi_identifier", "sensitive")
"""Roles of columns of which a method makes new records."""

_USUALLY_KNOWN = 2

Fraction = Annotated[float, Field(ge=0, le=1)]
Several = Annotated[int, Field(ge=2, strict=True)]


class Column(Part):
    """The role of a column."""

    # ``?`` is undecided and stops the job; ``identifier`` names a person and is left out; ``drop`` is left out and
    # nothing else is said about it; ``pseudonym`` is released as a pseudonym; ``person`` says whose row it is, and is
    # left out unless ``pseudonym`` or ``numbered`` is true; ``quasi_identifier`` is protected; ``sensitive`` is
    # released as it is, and l and t are promised of it; ``numeric`` becomes new records; ``free`` is released as it is
    role: Literal["?", "identifier", "drop", "pseudonym", "person", "quasi_identifier", "sensitive", "numeric", "free"]
    pseudonym: bool = False  # for a person: release it as a pseudonym
    numbered: bool = False  # for a person of synthesized rows: release the numbers of the new people
    # before all else the dates of a person are shifted by the same random number of days, at most so many
    shift_days: Annotated[int, Field(ge=1, strict=True)] | None = None

    @property
    def is_pseudonym(self) -> bool:
        """Whether it is released as a pseudonym."""
        return self.role == "pseudonym" or self.pseudonym


HierarchyFiles = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Field(min_length=1),
]
"""A file, or a list of files, in which case the column has several hierarchies."""

ColumnRole = Annotated[Column, BeforeValidator(lambda value: {"role": value} if isinstance(value, str) else value)]


def _as_memory(value: str) -> str:
    try:
        read_memory(value)
    except ValueError:
        raise ValueError("must be an amount of memory such as '800MB' or '2GB'") from None
    return value


class Promises(Part):
    """Promises, counted on the written file before it is published; l, l_kind, c and t as in anon.generalize."""

    k: Several | None = None  # people in every class over the quasi-identifiers, at least
    # people whose rows, in all tables of the job, are in exactly the same classes, at least, where a released pseudonym
    # tells which rows belong together; as large as k if it is not given
    linked_k: Annotated[int, Field(ge=1, strict=True)] | None = None
    # for tables of release_linked: whoever knows so many events of a person, over all tables at most the largest of
    # these numbers, finds at least k people of the same class; 2 if it is not given
    known_events: Annotated[int, Field(ge=0, le=4, strict=True)] | None = None
    # the largest share of one value of a sensitive column among the people who hold such a choice of events
    max_confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    l: Annotated[int | float, Field(ge=1)] | None = None  # noqa: E741 - as the functions call it
    l_kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[float, Field(gt=0)] = 3
    t: Fraction | None = None
    # over all releases of the account: people who were in the same class, or absent, in each of them, at least; values
    # of a sensitive column that are in all classes of such people, at least; the distance between these values and the
    # whole, at most
    joint_k: Several | None = None
    joint_l: Several | None = None
    joint_t: Fraction | None = None
    max_suppressed_fraction: Fraction = 0.01  # share of the people (without a person: of the rows) left out, at most
    # classes whose number of rows differs from the previous release's by fewer than k, at most; else only reported
    max_small_changes: Annotated[int, Field(ge=0, strict=True)] | None = None
    prediction: bool = False  # the measures of anon.privacy_test, against the reference where there is one
    # what analysts may lose at most: the median difference of correlations, how well a classifier tells released from
    # original, the largest difference of one column's distributions
    max_correlation_difference: Annotated[float, Field(ge=0)] | None = None
    max_detectability_auc: Annotated[float, Field(ge=0.5, le=1)] | None = None
    max_marginal_difference: Fraction | None = None


class Source(Part):
    """Where a table comes from: a file, a table of it, or a query."""

    path: Annotated[str, Field(min_length=1)] | None = None
    table: Annotated[str, Field(min_length=1)] | None = None
    query: Annotated[str, Field(min_length=1)] | None = None
    types: dict[str, str] | None = None


class Target(Part):
    """Where the release goes."""

    path: Annotated[str, Field(min_length=1)]  # a file, or the address of a server
    table: Annotated[str, Field(min_length=1)] | None = None  # the table of a DuckDB file or of a server
    replace: bool = False  # whether a table of a server may be there already; a former release in a file may
    no_formulas: bool = False  # for CSV files: an apostrophe before texts that a spreadsheet would compute


class Key(Part):
    """Where a key is to be found, never the key itself."""

    environment: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$", max_length=80)] | None = None
    file: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Key:
        if (self.environment is None) == (self.file is None):
            raise ValueError("must name either an environment variable or a file")
        return self


class Account(Part):
    """The account of all releases, which stays at home."""

    path: Annotated[str, Field(min_length=1)]  # the file; made by the first release
    key: Key  # turns people and values into hashes; policies that share an account give the same


class Cohorts(Part):
    """Newcomers enter the classes of a plan in cohorts, and leave in parts of k people."""

    # people in every class of the plan when it is made; thirty times joint_k if not given: the smaller classes are, the
    # more people wait, and the more records are stale
    class_size: Several | None = None
    # people of a cohort that enter without further waiting; three times joint_k if not given
    size: Several | None = None
    # releases after which k people are a cohort, and after which people who moved may lose all labels; after twice as
    # many, newcomers enter with coarser labels
    patience: Annotated[int, Field(ge=1, strict=True)] = 3
    # whether people who stay show new values of sensitive and free columns: records that never change are then those of
    # people who are gone; else a record stays as it was when the person entered the class
    refresh: bool = False
    # a CSV or Parquet file whose first column has people who must not be in the release
    erase: Annotated[str, Field(min_length=1)] | None = None


class ReleaseTerms(Part):
    """Who gets the release and why: for the report, whose first page marks what is missing."""

    recipient: Annotated[str, Field(min_length=1)] | None = None
    purpose: Annotated[str, Field(min_length=1)] | None = None
    legal_basis: Annotated[str, Field(min_length=1)] | None = None
    valid_until: date | None = None
    reviewers: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)  # a line to sign for each


class Table(Part):
    """A table of the job."""

    kind: Literal["records", "aggregate"] | None = None  # what is released, as the method makes it
    source: Source
    target: Target
    columns: Annotated[dict[str, ColumnRole], Field(min_length=1)]
    method: AnyMethod
    promises: Promises = Promises()
    hierarchies: dict[str, HierarchyFiles] = Field(default_factory=dict)
    reference: Annotated[str, Field(min_length=1)] | None = None
    plan: Annotated[str, Field(min_length=1)] | None = None  # of this table, where the policy has several

    @property
    def is_linked(self) -> bool:
        """Whether its rows are events of people, released together with those of other tables."""
        return self.method.name == RELEASE_LINKED.name

    @property
    def known(self) -> int:
        """How many events of this table somebody may know."""
        return _USUALLY_KNOWN if self.promises.known_events is None else self.promises.known_events

    def with_roles(self, *roles: str) -> list[str]:
        """Return the columns of these roles, in the policy's order."""
        return [name for name, column in self.columns.items() if column.role in roles]

    @property
    def protected(self) -> list[str]:
        """The columns that the method changes or groups by."""
        has_classes = self.method.makes_classes or self.method.makes_cells
        return self.with_roles(*(("quasi_identifier",) if has_classes else SYNTHESIZED))

    @property
    def person(self) -> str | None:
        """The column that says whose row it is."""
        return next(iter(self.with_roles("person")), None)


class Policy(Part):
    """A whole policy."""

    tables: Annotated[dict[str, Table], Field(min_length=1)]  # by their names, in the order of the file
    key: Key | None = None  # where the key of the pseudonyms is
    account: Account | None = None  # counts what all releases give away together
    cohorts: Cohorts | None = None  # keeps the joint promises
    release: ReleaseTerms = ReleaseTerms()
    # where the report, the record of the run and the plan go; the record goes beside the first release if not named
    report: Annotated[str, Field(min_length=1)] | None = None
    record: Annotated[str, Field(min_length=1)] | None = None
    plan: Annotated[str, Field(min_length=1)] | None = None
    # the memory limit of the process, such as '2GB'; larger tables are processed in partitions
    memory: Annotated[str, AfterValidator(_as_memory)] | None = None

    def plan_of(self, name: str) -> str | None:
        """Return the file of a table's plan."""
        return self.tables[name].plan or self.plan


def format_of(path: str) -> Format | None:
    """Return the format of what is to be written."""
    return "postgresql" if is_server(path) else _ending(path, FORMATS)


def source_format(path: str) -> Format | None:
    """Return the format of a file, or of the files of a glob, to be read."""
    return _ending(path, _READ)


def is_database(path: str) -> bool:
    """Tell whether a path has tables with names in it."""
    return is_server(path) or source_format(path) == "duckdb"


def is_server(path: str) -> bool:
    """Tell whether a path is the address of a PostgreSQL server."""
    return path.startswith(("postgresql://", "postgres://"))


def _ending(path: str, endings: dict[str, Format]) -> Format | None:
    lower = path.lower()
    return next((kind for ending, kind in endings.items() if lower.endswith(ending)), None)
