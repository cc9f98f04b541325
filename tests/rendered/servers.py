"""Engines that a test starts for itself: a PostgreSQL server in a folder of its own, and Spark in this process."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.rendered.cases import Case, by_id

POSTGRES_TYPES = {"DOUBLE": "DOUBLE PRECISION", "VARCHAR": "TEXT"}


class Postgres:
    """A server that answers through a socket in its folder, to psql."""

    def __init__(self, binaries: Path, folder: Path, as_user: list[str]) -> None:
        self._folder = folder
        self._command = [
            *as_user,
            str(binaries / "psql"),
            "-h",
            str(folder),
            "-U",
            "postgres",
            "-XAtq",
            "-d",
            "postgres",
        ]

    def address(self, user: str = "postgres", password: str = "") -> str:
        """Return the address for a user, who is believed without a password."""
        return f"postgresql://{user}{password and ':' + password}@/postgres?host={self._folder}"

    def run(self, script: str) -> str:
        """Run statements and return what they print; an error ends the test."""
        command = [*self._command, "-v", "ON_ERROR_STOP=1", "-f", "-"]
        done = subprocess.run(command, input=script, text=True, capture_output=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query by the names of its columns."""
        return json.loads(self.run(f"SELECT coalesce(json_agg(q), '[]') FROM ({query}) AS q;"))

    def load(self, name: str, table: pa.Table, types: dict[str, str]) -> None:
        """Make a table anew, of the types that DuckDB calls so."""
        columns = ", ".join(f"{_quoted(name)} {POSTGRES_TYPES.get(types[name], types[name])}" for name in types)
        cells = json.dumps([{key: _plain(value) for key, value in row.items()} for row in table.to_pylist()])
        source = f"json_to_recordset('{cells.replace(chr(39), chr(39) * 2)}') AS x({columns})"
        self.run(f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} AS SELECT * FROM {source};")

    def labels(self, case: Case, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a rendered plan for a case."""
        self.load("patients", case.table, case.types)
        names = [*case.planned, "id"]
        return by_id([tuple(row[name] for name in names) for row in self.rows(query)])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; numbers that JSON lacks, and times, as texts that PostgreSQL reads."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if isinstance(value, float) and math.isnan(value) else str(value)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Start a server; skip the test where Debian's package is not installed, or nobody may run it.

    A server does not run as root: root takes the user that the package made.
    """
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed:
        pytest.skip("PostgreSQL is not installed")
    binaries = installed[-1].parent
    is_root = os.geteuid() == 0
    if is_root and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    as_user = ["runuser", "-u", "postgres", "--"] if is_root else []
    folder = Path(tempfile.mkdtemp(prefix="duckanon_postgres_"))
    try:
        if is_root:
            shutil.chown(folder, "postgres")
        data = folder / "data"

        def call(*command: str) -> None:
            subprocess.run([*as_user, *command], check=True, cwd="/", stdout=subprocess.DEVNULL)

        control = [str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
        call(str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        call(*control, "-o", f"-k {folder} -c listen_addresses= -c fsync=off", "-t", "300", "start")
        try:
            yield Postgres(binaries, folder, as_user)
        finally:
            call(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Spark:
    """Spark on two threads of this machine."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def load(self, name: str, table: pa.Table) -> None:
        """Make a table anew, by way of Parquet."""
        self._session.createDataFrame(table).createOrReplaceTempView(name)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query by the names of its columns."""
        return [row.asDict() for row in self._session.sql(query).collect()]

    def labels(self, case: Case, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a rendered plan for a case."""
        self.load("patients", case.table)
        return by_id([tuple(row[name] for name in [*case.planned, "id"]) for row in self.rows(query)])


@contextmanager
def spark_session() -> Iterator[Spark]:
    """Start Spark; skip the test where PySpark or Java is not installed."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    try:
        yield Spark(session)
    finally:
        session.stop()
