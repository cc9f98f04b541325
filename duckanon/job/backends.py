"""The backend of a release: in memory, or in partitions where it would take more memory than the limit.

Where memory is given, the job's tables are in a file of its temporary folder; else in memory.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import MemoryEntry
from duckanon._core.common.resources import measure_memory, read_memory
from duckanon.job import methods
from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy import Table
from duckanon.job.promises import Tables

if TYPE_CHECKING:
    from duckanon.large import Released

_CATALOG = "job_tables"
_RESTING = "64MB"
"""Memory limit of the job's database while partitions are processed, which need the memory themselves."""


class Cost(NamedTuple):
    """Bytes that a method takes in memory, the original and the release among them."""

    fixed: int  # whatever the table is: libraries, for the most part
    row: int  # for each row
    cell: int  # for each value of a row


COSTS = {
    "boxes": Cost(150_000_000, 0, 110),
    "generalize": Cost(120_000_000, 0, 120),
    "microaggregate": Cost(150_000_000, 160, 65),
    "pica": Cost(200_000_000, 170, 75),
    "protect_table": Cost(150_000_000, 0, 80),
    "recode": Cost(90_000_000, 0, 100),
    "release_linked": Cost(150_000_000, 400, 60),
    "spectral_release": Cost(200_000_000, 170, 75),
    "suppress_cells": Cost(80_000_000, 0, 80),
    "svd_swap": Cost(200_000_000, 30, 50),
    "synthesize": Cost(200_000_000, 240, 100),
}
"""Measured by `python -m tests.bench.limits`, rounded up by a tenth: ACS, two and six columns of whole numbers, 200,000
and a million rows, two threads. That of pica is spectral_release's, and not measured; that of release_linked is of a
hospital of 637,000 events, two of them known, that of
protect_table of 1.4 million rows in half a million cells."""

_ABSENT = {
    "boxes": ("by",),
    "generalize": ("beta", "population", "sensitive"),
    "microaggregate": ("by",),
    "recode": ("by", "sensitive"),
}
"""The methods that `duckanon.large` has, and the parameters that it does not have of them."""

_IN_MEMORY = ("prediction", "max_correlation_difference", "max_marginal_difference", "max_detectability_auc")
"""Promises that are measured on whole tables in memory."""


@dataclass(frozen=True)
class Backend:
    """The backend of a release: in memory, or in partitions."""

    memory: str | None = None  # what the process may take, as it was given; None: nothing was said
    estimate: int = 0  # bytes that the process would take if the release was made in memory
    is_by_parts: bool = False  # whether it is processed in partitions, on the disk

    @property
    def words(self) -> str:
        """The message shown while the release is made."""
        if not self.is_by_parts:
            return ""
        return f", in partitions: in memory it would take about {amount(self.estimate)}, more than {self.memory}"

    def entry(self, released: Released | None) -> MemoryEntry:
        """Return what the record tells."""
        return {
            "given": self.memory,
            "estimated_bytes": self.estimate,
            "by_parts": self.is_by_parts,
            "parts": released.parts if released else None,
            "notes": list(released.notes) if released else [],
        }


def amount(size: int) -> str:
    """Write bytes as people do.

    Examples:
        >>> amount(2_840_000_000)
        '2.8GB'
    """
    return f"{size / 10**9:.1f}GB" if size >= 10**9 else f"{size / 10**6:.0f}MB"


def estimate_bytes(table: Table, rows: int) -> int:
    """Return the bytes that a method takes for so many rows of the columns that the policy lets through."""
    cost = COSTS[table.method.name]
    columns = len(methods.columns_to_protect(table)) + len(methods.columns_to_keep(table))
    return cost.fixed + rows * (cost.row + cost.cell * columns)


def choose_backend(table: Table, rows: int, place: Storage, plan: Path | None) -> Backend:
    """Choose how a table is released, or refuse where no way keeps the memory that was given."""
    memory = place.memory
    if memory is None:
        return Backend()
    estimate = place.begun_with + estimate_bytes(table, rows)
    # a plan that was saved before is applied by DuckDB, which spills what does not fit
    if estimate <= read_memory(memory) or (plan is not None and plan.exists()):
        return Backend(memory, estimate)
    missing = _missing(table, plan)
    if missing:
        raise PolicyError(
            f"memory must be at least {amount(estimate)} for {table.method.name} of {rows} rows; got {memory}, and "
            f"it cannot be processed in partitions {missing}."
        )
    if needs := missing_package(table):
        raise PolicyError(f"memory must be at least {amount(estimate)} here; got {memory}, and {needs}.")
    return Backend(memory, estimate, True)


def missing_package(table: Table) -> str | None:
    """Return, in words, the package that a table needs in partitions, and that is not there."""
    if table.method.name != "generalize" or importlib.util.find_spec("sqlglot"):
        return None
    return 'generalize needs sqlglot to process a table in partitions: pip install "duckanon[render]" brings it'


def _missing(table: Table, plan: Path | None) -> str | None:
    """Return the part of a policy that partitions do not support, in words."""
    method = table.method.name
    if method not in _ABSENT:
        return "at all"
    if plan is not None:
        return "with a plan to save"
    options = methods.parameters(table)
    for parameter in _ABSENT[method]:
        if parameter in options:
            return "with l or t" if parameter == "sensitive" else f"with {parameter}"
    if method == "microaggregate" and options.get("method") != "fast":
        return 'without method = "fast"'
    for promise in _IN_MEMORY:
        if getattr(table.promises, promise):
            return f"where {promise} is promised, which is measured in memory"
    return None


def parameters(table: Table, backend: Backend) -> dict[str, Any]:
    """Return the parameters that the function is called with, without columns."""
    options = methods.parameters(table)
    if backend.is_by_parts and table.method.name == "recode":
        del options["max_suppressed_fraction"]  # in partitions nobody is suppressed
    return options


def release(con: sql.Connection, table: Table, tables: Tables, backend: Backend, folder: Path) -> Released:
    """Release a table in partitions, in the job's temporary folder; the job reads the result as `tables.released`."""
    from duckanon import large
    from duckanon.large.workspace import arrow_reader

    source, target = (folder / f"{name}.parquet" for name in (tables.original, tables.released))
    con.execute(f"COPY {tables.original} TO {sql.literal(str(source))} (FORMAT parquet, COMPRESSION lz4)").fetchall()
    _refuse_other_types(con, tables.original, source, sql.columns(con, tables.original))
    options = parameters(table, backend) | methods.keeping(table)
    k = options.pop("k")
    if tables.hierarchies:
        options["hierarchies"] = {
            column: arrow_reader(con.sql(f"FROM {name}"), 10_000).read_all()
            for column, name in tables.hierarchies.items()
        }
    with resting(con), _translate_errors():
        released: Released = getattr(large, table.method.name)(
            source,
            target,
            methods.columns_to_protect(table),
            k,
            **options,
            person=table.person,
            memory=backend.memory,
            temporary=folder,
        )
    source.unlink()
    _refuse_other_types(con, tables.original, target, methods.columns_to_keep(table))
    con.execute(f"CREATE VIEW {tables.released} AS FROM read_parquet({sql.literal(str(target))})").fetchall()
    return released


def _refuse_other_types(con: sql.Connection, original: str, path: Path, columns: Mapping[str, str] | list[str]) -> None:
    """Refuse columns that a Parquet file has as another type: what is released is what the policy's source has."""
    before = sql.columns(con, original)
    rows = con.execute(f"DESCRIBE FROM read_parquet({sql.literal(str(path))})").fetchall()
    after = {row[0]: str(row[1]) for row in rows}
    for column in columns:
        if before[column] != after.get(column):
            raise PolicyError(
                f"columns.{column} has the type {before[column]}, which cannot be processed in partitions; cast it in "
                "source.query, or give more memory."
            )


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate refusals of `duckanon.large` into those of the same function in SQL."""
    try:
        yield
    except ValueError as error:
        raise duckdb.InvalidInputException(str(error)) from None
    except ImportError as error:
        raise PolicyError(f"{error}") from None
    except OSError as error:
        raise FileProblem(
            f"processing in partitions failed ({error.strerror or 'a file cannot be read or written'})."
        ) from None


@dataclass(frozen=True)
class Storage:
    """The memory limit of the tables of a job."""

    schema: str  # the schema in which they are made
    folder: Path  # the job's temporary folder, in which originals may be
    memory: str | None  # what the process may take, such as '2GB'; None: nothing was said
    begun_with: int  # bytes that the process had before it read anything


@contextmanager
def open_storage(con: sql.Connection, memory: str | None, folder: Path) -> Iterator[Storage]:
    """Make the place of the job's tables; where memory is given, DuckDB takes its share and spills beyond."""
    if memory is None:
        yield Storage("memory.main", folder, None, 0)
        return
    from duckanon.large.workspace import budget, bytes_before, counting_what_is_kept

    used = bytes_before()
    try:
        share = budget(memory).database
    except ValueError as error:
        raise PolicyError(str(error)) from None
    before = sql.fetch_row(con, "SELECT current_setting('memory_limit')")[0]
    con.execute(f"ATTACH {sql.literal(str(folder / 'job.duckdb'))} AS {_CATALOG}").fetchall()
    try:
        con.execute(f"SET memory_limit = '{share}B'").fetchall()
        with counting_what_is_kept():
            yield Storage(f"{_CATALOG}.main", folder, memory, used)
    finally:
        with contextlib.suppress(duckdb.Error):  # an interrupted connection is closed soon
            con.execute(f"SET memory_limit = '{before}'").fetchall()
            con.execute("USE memory.main").fetchall()
            con.execute(f"DETACH {_CATALOG}").fetchall()


@contextmanager
def resting(con: sql.Connection) -> Iterator[None]:
    """Let the job's database give its memory back, as long as the block lasts."""
    limit = sql.fetch_row(con, "SELECT current_setting('memory_limit')")[0]
    con.execute(f"SET memory_limit = '{_RESTING}'").fetchall()
    yield
    con.execute(f"SET memory_limit = '{limit}'").fetchall()


def widen(con: sql.Connection, memory: str) -> None:
    """Let the job's database take all that is free: a function that works in memory returns its rows at once."""
    free = max(read_memory(memory) - measure_memory(), read_memory(_RESTING))
    con.execute(f"SET memory_limit = '{free}B'").fetchall()
