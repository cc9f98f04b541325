"""A released file in a connection, beside its entry in the record of the release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.release_record import TableEntry
from duckanon._methods.linked.declared import RELEASE_LINKED, ROW_COUNT
from duckanon.job import readback
from duckanon.job.errors import FileProblem
from duckanon.job.policy import format_of

_CATALOG = "verified_file"


@dataclass(frozen=True)
class ReleasedFile:
    """A released file in the connection, and its entry in the record."""

    con: sql.Connection
    entry: TableEntry
    path: Path
    rows: str  # the name of its view
    columns: dict[str, str]  # the names and types of what it holds

    def in_file(self, column: str) -> list[str]:
        """Return the names of a column in the file, two where it holds the ends of intervals, none where it is gone."""
        for names in ([column], [f"'{column}"], [f"{column}_lo", f"{column}_hi"]):
            if all(name in self.columns for name in names):
                return names
        return []

    def with_role(self, role: str) -> list[str]:
        """Return the columns of a role in the policy."""
        return [column["name"] for column in self.entry["columns"] if column["role"] == role]

    @property
    def classes(self) -> list[str]:
        """The columns of the file that make classes."""
        names = self.with_role("quasi_identifier")
        names += [ROW_COUNT] if self.entry["method"]["parameters"].get("counts") else []
        return [name for column in names for name in self.in_file(column)]

    @property
    def known(self) -> int | None:
        """How many of its events somebody may know; None where it is no table of events."""
        found: int | None = self.entry["method"]["parameters"].get("known")
        return found if self.entry["method"]["name"] == RELEASE_LINKED.name else None

    @property
    def linking(self) -> list[str]:
        """The columns of the file by which rows of one person are found, here and in other files."""
        columns = [self.person] if self.person else self.with_role("pseudonym")
        return [name for column in columns for name in self.in_file(column)]

    @property
    def person(self) -> str | None:
        """The policy's column of people."""
        return next(iter(self.with_role("person")), None)

    @property
    def whose(self) -> str | None:
        """The column of the file that tells which rows are one person's."""
        return next(iter(self.in_file(self.person)), None) if self.person else None

    @property
    def tells_people(self) -> bool:
        """Whether people can be counted as the record counts them: rows, or people by a released pseudonym."""
        return self.person is None or self.whose is not None

    def measured(self, query: str) -> float | None:
        """Return the first number of a query about the view."""
        found: float | None = sql.one(self.con, query)[0]
        return found


def open_release(con: sql.Connection, entry: TableEntry, path: Path, view: str) -> ReleasedFile:
    """Open a released file under the name of a view."""
    kind, place = format_of(str(path)), sql.literal(str(path))
    if not path.is_file():
        raise FileProblem(f"{path}: there is no such file.")
    try:
        if kind == "duckdb":
            catalog = f"{_CATALOG}_{view}"
            con.execute(f"DETACH DATABASE IF EXISTS {catalog}").fetchall()  # of another file that was verified
            con.execute(f"ATTACH {place} AS {catalog} (READ_ONLY)").fetchall()
            names = con.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = $name UNION ALL "
                "SELECT view_name FROM duckdb_views() WHERE database_name = $name AND NOT internal",
                {"name": catalog},
            ).fetchall()
            if len(names) != 1:
                raise FileProblem(f"{path}: it has {len(names)} tables, and a release has one.")
            rows = f"{catalog}.main.{sql.name(names[0][0])}"
        elif kind == "csv":
            rows = f"({readback.released_csv(path)})"
        else:
            rows = f"read_parquet({place})"
        con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS FROM {rows}").fetchall()
        return ReleasedFile(con, entry, path, view, sql.columns(con, view))
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the release cannot be read ({sql.why(error)}).") from None
