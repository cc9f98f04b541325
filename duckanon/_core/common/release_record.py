"""The record of a release, as the job writes it and the report reads it: JSON without any value of the data.

The types are also the schema by which a record of somebody else is read (`duckanon.job.record.read`).
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict  # pydantic reads no others before Python 3.12

Count: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Amount: TypeAlias = Annotated[float, Field(ge=0)]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Time: TypeAlias = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
Sentence: TypeAlias = Annotated[str, Field(pattern=r"(?s)^.+\.$")]
Hash: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName: TypeAlias = Annotated[Name, AfterValidator(lambda name: _without_folder(name))]
KEY_WARNING = "may be read or written by others; let nobody but its user do so (chmod 600)."
"""The end of warnings about the files of keys, which no report has: they are for whoever has the keys."""

Role: TypeAlias = Literal[
    "identifier", "drop", "pseudonym", "person", "quasi_identifier", "sensitive", "numeric", "free"
]


def _without_folder(name: str) -> str:
    if PurePath(name).name != name or "\0" in name:
        raise ValueError
    return name


class PromiseEntry(TypedDict):
    """What was promised, what was measured, and both in words."""

    name: Name
    asked: float | int | bool
    measured: float | int | None
    passed: bool
    words: Sentence


class ColumnEntry(TypedDict):
    """A column of the policy and what becomes of it."""

    name: Name
    role: Role
    treatment: str


class MethodEntry(TypedDict):
    """The method and its options, none of which is a key or a seed."""

    name: str
    parameters: dict[str, Any]


class OutputEntry(TypedDict):
    """The file, or the table of a server, that was written."""

    path: str | None
    format: Literal["parquet", "csv", "duckdb", "postgresql"]
    rows: Count
    people: Count | None
    sha256: Hash | None  # of a dry run: None
    columns: list[Name]  # as they are in the file, in their order
    labels: dict[str, Count]  # of each quasi-identifier, in the file


class SuppressedEntry(TypedDict):
    """Who is not in the release: people where the policy says whose rows they are, rows otherwise."""

    rows: Count
    people: Count | None
    fraction: Share
    limit: Share


class MemoryEntry(TypedDict):
    """The memory that was allowed and estimated, and whether the release was made in partitions."""

    given: str | None
    estimated_bytes: Count
    by_parts: bool
    parts: Count | None
    notes: list[str]


class PlanEntry(TypedDict):
    """The stored plan of a release and how well it fits."""

    path: str
    reused: bool
    coverage: list[dict[str, Any]]
    small_classes_left_out: Count


class CohortsEntry(TypedDict):
    """Who waits, whose record is that of an earlier release, and how far counts by class are from the table's.

    Times are counted in releases. People who are `coarser` have labels coarser than the plan's, those who are `pooled`
    none at all. `count_error` is the mean, over the classes of at least k people, of the difference between released
    and true people as a share of the true ones.
    """

    people: Count
    waiting: Count
    mean_wait: Amount
    longest_wait: Count
    stale: Count
    mean_stale: Amount
    longest_stale: Count
    coarser: Count
    pooled: Count
    erased: Count
    count_error: Amount


class ChangesEntry(TypedDict):
    """The classes that differ from the last release by a few people."""

    previous_sha256: Hash
    counted: Literal["people", "rows"]
    classes: Count
    classes_before: Count
    classes_in_both: Count
    small_changes: Count
    came_in_small_changes: Count
    went_in_small_changes: Count


class MarginEntry(TypedDict):
    """The cells of an aggregate table with values in some columns and the total in all others."""

    columns: list[str]
    cells: Count
    hidden: Count
    hidden_value: Share  # the share of their value that is hidden


class CellsEntry(TypedDict):
    """The cells of an aggregate table, and what an audit of the written file found."""

    cells: Count
    hidden: Count
    margins: list[MarginEntry]
    faults: dict[str, Count]
    narrowest_interval: Amount | None  # of the values that a hidden cell may have; None: not computed
    median_interval: Amount | None
    max_deviation: Count | None  # of a shown number from the true one
    # by column and hierarchy, the groups of each value, by the places of their labels among those of the file in
    # ascending order; -1: the group of all values
    hierarchies: dict[str, list[str]]


class TableEntry(TypedDict):
    """One table of a release; `measures` are those of the report."""

    name: Name
    source: Name
    rows: NotRequired[Count]  # these four only a copy for recipients lacks
    people: NotRequired[Count | None]
    sha256: NotRequired[Hash]
    output: OutputEntry
    method: MethodEntry
    columns: Annotated[list[ColumnEntry], Field(min_length=1)]
    suppressed: NotRequired[SuppressedEntry]
    promises: Annotated[list[PromiseEntry], Field(min_length=1)]
    memory: NotRequired[MemoryEntry]
    plan: NotRequired[PlanEntry]
    cohorts: NotRequired[CohortsEntry]
    changes: NotRequired[ChangesEntry | None]
    measures: NotRequired[dict[str, Any]]
    cells: NotRequired[CellsEntry]


class AccountEntry(TypedDict):
    """The account that the release was entered into, and what all of its releases leave together."""

    path: str
    id: NotRequired[str]  # what tells the account from all others
    releases: Count
    people: Count
    joint_k: Count | None
    lost: NotRequired[Count]  # releases that the account has lost, and that are not counted


class ExposureEntry(TypedDict):
    """The share of people whom an attacker finds who knows more of linked tables than was promised."""

    knows: str
    people: Count
    unique: Share
    under_k: Share


class LinkedEntry(TypedDict):
    """Tables of events that were released together."""

    tables: list[Name]
    k: Count
    known: Count
    exposure: list[ExposureEntry]


class PolicyEntry(TypedDict):
    """The policy file of a release."""

    path: str
    sha256: Hash


class ReportEntry(TypedDict):
    """The report of a release."""

    path: FileName
    sha256: Hash


class SignatureEntry(TypedDict):
    """Who made a release: a public key of Ed25519, and what it signed, all in base64.

    Only the full record has `record`: with it a recipient could try values for what their copy leaves out.
    """

    public_key: Name
    record: NotRequired[Name]
    copy: Name  # of the copy for recipients


class TermsEntry(TypedDict):
    """Who gets a release and why, as the policy says; None for what it does not say."""

    recipient: str | None
    purpose: str | None
    legal_basis: str | None
    valid_until: str | None
    reviewers: list[str]


class Record(TypedDict):
    """A run of the job."""

    duckanon: Name
    duckdb: Name
    python: Name
    started: Time
    finished: Time | None
    outcome: Literal["released", "dry run", "promise broken"] | None
    policy: PolicyEntry
    release: TermsEntry
    tables: Annotated[list[TableEntry], Field(min_length=1)]
    report: ReportEntry | None
    account: NotRequired[AccountEntry]
    linked: NotRequired[LinkedEntry]
    warnings: list[str]
    signature: NotRequired[SignatureEntry]
