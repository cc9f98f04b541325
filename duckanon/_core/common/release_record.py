"""The record of a release, as the job writes it and the report reads it: JSON without any value of the data."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class PromiseEntry(TypedDict):
    """What was promised, what was measured, and both in words."""

    name: str
    asked: float | int | bool
    measured: float | int | None
    passed: bool
    words: str


class ColumnEntry(TypedDict):
    """A column of the policy and what becomes of it."""

    name: str
    role: str
    treatment: str


class MethodEntry(TypedDict):
    """The method and its options, none of which is a key or a seed."""

    name: str
    parameters: dict[str, Any]


class OutputEntry(TypedDict):
    """The file, or the table of a server, that was written."""

    path: str | None
    format: str
    rows: int
    people: int | None
    sha256: str | None
    labels: NotRequired[dict[str, int]]  # of each quasi-identifier, in the file


class SuppressedEntry(TypedDict):
    """Who is not in the release: people where the policy says whose rows they are, rows otherwise."""

    rows: int
    people: int | None
    fraction: float
    limit: float


class MemoryEntry(TypedDict):
    """The memory that was allowed and estimated, and whether the release was made in partitions."""

    given: str | None
    estimated_bytes: int
    by_parts: bool
    parts: int | None
    notes: list[str]


class PlanEntry(TypedDict):
    """The stored plan of a release and how well it fits."""

    path: str
    reused: bool
    coverage: list[dict[str, Any]]
    small_classes_left_out: int


class CohortsEntry(TypedDict):
    """Who waits, whose record is that of an earlier release, and how far counts by class are from the table's.

    Times are counted in releases. People who are `coarser` have labels coarser than the plan's, those who are `pooled`
    none at all. `count_error` is the mean, over the classes of at least k people, of the difference between released
    and true people as a share of the true ones.
    """

    people: int
    waiting: int
    mean_wait: float
    longest_wait: int
    stale: int
    mean_stale: float
    longest_stale: int
    coarser: int
    pooled: int
    erased: int
    count_error: float


class ChangesEntry(TypedDict):
    """The classes that differ from the last release by a few people."""

    previous_sha256: str
    counted: str
    classes: int
    classes_before: int
    classes_in_both: int
    small_changes: int
    came_in_small_changes: int
    went_in_small_changes: int


class MarginEntry(TypedDict):
    """The cells of an aggregate table with values in some columns and the total in all others."""

    columns: list[str]
    cells: int
    hidden: int
    hidden_value: float  # the share of their value that is hidden


class CellsEntry(TypedDict):
    """The cells of an aggregate table, and what an audit of the written file found."""

    cells: int
    hidden: int
    margins: list[MarginEntry]
    faults: dict[str, int]
    narrowest_interval: float | None  # of the values that a hidden cell may have; None: not computed
    median_interval: float | None
    max_deviation: int | None  # of a shown number from the true one
    # by column and hierarchy, the groups of each value, by the places of their labels among those of the file in
    # ascending order; -1: the group of all values
    hierarchies: NotRequired[dict[str, list[str]]]


class TableEntry(TypedDict):
    """One table of a release; `measures` are those of the report."""

    name: str
    source: str
    rows: int
    people: int | None
    sha256: str | None
    output: OutputEntry
    method: MethodEntry
    columns: list[ColumnEntry]
    suppressed: SuppressedEntry
    promises: list[PromiseEntry]
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
    releases: int
    people: int
    joint_k: int | None
    lost: NotRequired[int]  # releases that the account has lost, and that are not counted


class ExposureEntry(TypedDict):
    """The share of people whom an attacker finds who knows more of linked tables than was promised."""

    knows: str
    people: int
    unique: float
    under_k: float


class LinkedEntry(TypedDict):
    """Tables of events that were released together."""

    tables: list[str]
    k: int
    known: int
    exposure: list[ExposureEntry]


class PolicyEntry(TypedDict):
    """The policy file of a release."""

    path: str
    sha256: str


class TermsEntry(TypedDict):
    """Who gets a release and why, as the policy says; None for what it does not say."""

    recipient: str | None
    purpose: str | None
    legal_basis: str | None
    valid_until: str | None
    reviewers: list[str]


class Record(TypedDict):
    """A run of the job."""

    duckanon: str
    duckdb: str
    python: str
    started: str
    finished: str | None
    outcome: str | None
    policy: PolicyEntry
    release: NotRequired[TermsEntry]
    tables: list[TableEntry]
    account: NotRequired[AccountEntry]
    linked: NotRequired[LinkedEntry]
    warnings: list[str]
