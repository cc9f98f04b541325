"""The other faces of a function: a call drawn for SQL, made by `duckanon.large`, `duckanon.spectral` and the job.

A face answers the call with what its declaration says that it takes of it (`Parameter.only_in`); an option that it does
not take has its default. It reads the table as a Parquet file or as Arrow, and so does SQL where answers are compared.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import duckanon
from duckanon import large, spectral
from duckanon._bridge.generated import PUBLIC
from duckanon._core.common.declare import Function
from duckanon.job import JobError, release
from tests.awkward import TABLES, quoted
from tests.oracles import ORACLES
from tests.oracles.call import ROW, Call, Rows
from tests.seams.bench import Bench, fetch
from tests.seams.changes import difference
from tests.seams.draws import Drawn
from tests.seams.literals import sql_of
from tests.seams.matrix import Place
from tests.seams.outcomes import Outcome, refusal_faults, run, traces

OF_JOB = ("boxes", "generalize", "microaggregate", "protect_table", "recode", "suppress_cells")
"""Methods of a policy that make the same release each time. New records must promise a prediction there, which few
small tables keep."""

FACES = {"large": tuple(large.__all__[1:]), "spectral": tuple(spectral.__all__), "job": OF_JOB}
"""The functions of each face."""

SAME_AS_SQL = {("job", name) for name in OF_JOB} | {("large", "generalize")}
SAME_AS_SQL |= {("spectral", name) for name in ("copula_synthesize", "data_shuffle")}
"""Where a face and SQL return the same rows: there is no randomness, or the same with a seed."""

QUICK_TABLES = ("nulls", "labels", "dates", "names_to_quote", "derived", "towns", "two_rows", "enum_uuid_boolean")
"""The tables of `make test`: each function meets two of them, a slow one one."""

SLOW = {"pica", "protect_table", "spectral_release"}
"""Functions of which a call takes some tenths of a second."""

_IN_POLICY = {"job": "policy"}
_MEMORY = "2GB"


@dataclass(frozen=True)
class Source:
    """A table as a face is given it: as Arrow, or the path of a Parquet file, which is what SQL calls it, too."""

    rows: pa.Table | Path
    name: str


@dataclass(frozen=True)
class FaceCall:
    """A drawn call as a face makes it."""

    face: str
    drawn: Drawn  # without the options that the face does not take
    table: str  # the table that the call is about
    options: dict[str, Any]  # those that the face is given: all that are no defaults

    @property
    def declared(self) -> Function:
        return PUBLIC[self.drawn.function]


def face_call(bench: Bench, face: str, place: Place) -> FaceCall:
    """Return the call of a place with the options that a face takes."""
    drawn, declared = place.drawn(bench), PUBLIC[place.function]
    taken = {one.name for one in declared.flat if _IN_POLICY.get(face, face) in one.only_in}
    if face == "job":  # a policy says these elsewhere
        taken |= {"cols", "k", "person", "keep", "hierarchies", "max_suppressed_fraction", "sensitive", "l", "t", "c"}
        taken |= {"l_kind"}
    table = str(drawn.options["tbl"])
    taken -= {one.name for one in declared.flat if one.kind == "table" and one.is_required}
    options = {n: drawn.options[n] for n in drawn.options if n in taken and declared.parameter(n)}
    options = {n: value for n, value in options.items() if value != declared.defaults.get(n, _NO_DEFAULT)}
    options |= {"method": "fast"} if face == "large" and drawn.function == "microaggregate" else {}
    if face == "job":
        options.pop("previous", None)  # a policy has a path there
        kept = [*(options.get("keep") or ()), *filter(None, [options.get("sensitive")])]  # released as it is there
        options["keep"] = [one for one in dict.fromkeys(kept) if one not in options.get("cols", ())]
        how = {"l_kind", "c"} if "l" not in options else {"c"} if options.get("l_kind") != "recursive" else set()
        options = {name: value for name, value in options.items() if name not in how}  # refused in a policy
    if face == "job" and drawn.function == "suppress_cells":  # where people are counted, a NULL is a value
        options.setdefault("nulls", "value")
    whole = {"tbl": table, **declared.defaults, **options}
    return FaceCall(face, replace(drawn, options=whole, statement=statement(declared, whole)), table, options)


_NO_DEFAULT = object()


def statement(declared: Function, options: dict[str, Any]) -> str:
    """Write a call in SQL with all options that are no defaults."""
    arguments = [
        sql_of(options[one.name]) if one.is_required else f"{one.name} := {sql_of(options[one.name])}"
        for one in declared.flat
        if one.is_required or options[one.name] != one.default
    ]
    return f"FROM anon.{declared.name}({', '.join(arguments)})"


class Faces:
    """A database and a folder in which calls of faces are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.con = duckanon.connect()

    @contextmanager
    def opened(self, bench: Bench, table: str, is_file: bool, order: str = "") -> Iterator[Source]:
        """Give a table as a face takes it; Python and SQL read the same types from it."""
        query = f"FROM {quoted(table)} {order}"
        if is_file:
            path = self.folder / "people.parquet"
            bench.con.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)").fetchall()
            try:
                yield Source(path, str(path))
            finally:
                path.unlink()
            return
        rows = _arrow(bench.con, query)
        bench.con.register("people_of_face", rows)
        try:
            yield Source(rows, "people_of_face")
        finally:
            bench.con.execute("SELECT 1").fetchall()
            bench.con.unregister("people_of_face")

    @contextmanager
    def _one_database(self) -> Iterator[None]:
        """Let faces open a cursor of this database, since it takes half a second to register one."""

        def connect(*_: Any, **__: Any) -> duckdb.DuckDBPyConnection:
            cursor = self.con.cursor()
            for kind, name in cursor.execute(_OWN).fetchall():
                cursor.execute(f"DROP {kind} memory.main.{quoted(name)}").fetchall()
            for setting in ("memory_limit", "temp_directory", "file_search_path"):
                cursor.execute(f"RESET {setting}").fetchall()
            return cursor

        with mock.patch.object(duckanon, "connect", connect):
            yield

    def rows_of(self, bench: Bench, face: str, source: Source) -> Rows:
        """Return the rows of a source as a face reads it: Arrow has types for milliseconds that DuckDB has not."""
        if face == "spectral" and isinstance(source.rows, Path):
            return _fetch_arrow(self.con, pq.read_table(source.rows), bench)
        return fetch(bench.con, f"FROM '{source.name}'", bench.times_as_text)

    def run(self, bench: Bench, call: FaceCall, source: Source) -> Outcome:
        """Make a call, and look at everything that does not depend on what the function promises."""
        written = json.dumps([call.face, call.drawn.function, call.options], ensure_ascii=False, default=str)
        outcome = Outcome(replace(call.drawn, statement=f"{written} {source.name} of {call.drawn.statement}"))
        before, began = self._traces(bench, source), time.process_time()
        make = {"large": self._large, "spectral": self._spectral, "job": self._job}[call.face]
        try:
            with self._one_database():
                outcome.rows = make(bench, call, source)
        except (ValueError, OSError, duckdb.Error, JobError) as error:
            outcome.refusal = str(error)
            outcome.faults += refusal_faults(str(error), outcome.drawn, bench.rows_of(call.table), self._starts(call))
        except Exception as error:  # no refusal at all
            outcome.refusal = f"{type(error).__name__}: {error}"
            outcome.blame("words of Python", outcome.refusal[:300])
        outcome.seconds = time.process_time() - began
        if (after := self._traces(bench, source)) != before:
            outcome.blame("traces", f"left behind or changed: {sorted(set(after) ^ set(before))[:3]}")
        return outcome

    def _starts(self, call: FaceCall) -> str:
        """Return how a refusal begins, as a pattern."""
        if call.face == "job":
            return rf"({self.folder}/policy\.toml|people\.parquet)[:,] |anon\.{call.drawn.function}: |table: "
        return rf"(duckanon\.{call.face}|anon)\.{call.drawn.function}: "

    def _traces(self, bench: Bench, source: Source) -> list[str]:
        found = [f"file {path}" for path in self.folder.iterdir()]
        if isinstance(source.rows, Path):
            found.append(f"bytes {hash(source.rows.read_bytes())}")
        return sorted([*found, *traces(bench)])

    # ---- the faces

    def _large(self, bench: Bench, call: FaceCall, source: Source) -> Rows:
        options, target = self._with_hierarchies(bench, call.options), self.folder / "released.parquet"
        by_file = isinstance(source.rows, Path)
        if "seed" not in options and call.drawn.function != "generalize":
            options["seed"] = 1
        made = getattr(large, call.drawn.function)(source.rows, target if by_file else None, memory=_MEMORY, **options)
        if by_file:
            return self._fetched(target, bench)
        return _fetch_arrow(self.con, made.reader.read_all(), bench)

    def _spectral(self, bench: Bench, call: FaceCall, source: Source) -> Rows:
        options = dict(call.options)
        if options.get("reference"):
            options["reference"] = _arrow(bench.con, f"FROM {quoted(options['reference'])}")
        names = [row[0] for row in bench.con.execute(f"DESCRIBE FROM '{source.name}'").fetchall()]
        options["cols"] = sorted(options["cols"], key=names.index)  # SQL takes them in the table's order
        rows = source.rows if isinstance(source.rows, pa.Table) else str(source.rows)
        return _fetch_arrow(self.con, getattr(spectral, call.drawn.function)(rows, **options).read_all(), bench)

    def _job(self, bench: Bench, call: FaceCall, source: Source) -> Rows:
        path, made = self.folder / "policy.toml", [self.folder / "policy.toml"]
        columns = [row[0] for row in bench.con.execute(f"DESCRIBE FROM '{source.name}'").fetchall()]
        try:
            for column, table in (call.options.get("hierarchies") or {}).items():
                made.append(self.folder / f"hierarchy_{len(made)}.parquet")
                bench.con.execute(f"COPY (SELECT COLUMNS(*)::VARCHAR FROM {quoted(table)}) TO '{made[-1]}'").fetchall()
                call = replace(call, options=call.options | {"hierarchies": {column: str(made[-1])}})
            path.write_text(policy(call, columns), encoding="utf-8")
            release(path)
            made.append(self.folder / "released.parquet.record.json")
            return self._fetched(self.folder / "released.parquet", bench)
        finally:
            for file in made:
                file.unlink(missing_ok=True)

    def _fetched(self, path: Path, bench: Bench) -> Rows:
        rows = fetch(self.con, f"FROM '{path}'", bench.times_as_text)
        path.unlink()
        return rows

    @staticmethod
    def _with_hierarchies(bench: Bench, options: dict[str, Any]) -> dict[str, Any]:
        trees = options.get("hierarchies") or {}
        read = {column: _arrow(bench.con, f"FROM {quoted(table)}") for column, table in trees.items()}
        return options | ({"hierarchies": read} if read else {})


_OWN = """
    SELECT 'VIEW', view_name FROM duckdb_views() WHERE database_name = 'memory' AND NOT internal
    UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables() WHERE database_name = 'memory'
    UNION ALL SELECT 'TYPE', type_name FROM duckdb_types() WHERE database_name = 'memory' AND NOT internal"""


def _arrow(con: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    con.execute("SELECT 1").fetchall()  # what was refused may have left a result
    return con.sql(query).to_arrow_table()


def _fetch_arrow(con: duckdb.DuckDBPyConnection, rows: pa.Table, bench: Bench) -> Rows:
    con.register("released_arrow", rows)
    try:
        return fetch(con, "FROM released_arrow", bench.times_as_text)
    finally:
        con.unregister("released_arrow")


# ---- a policy


def policy(call: FaceCall, columns: list[str]) -> str:
    """Write the policy of a call: each named column has the role of its parameter, all others are dropped."""
    options, declared = call.options, call.declared
    role_of = dict.fromkeys(columns, "drop")
    for parameter, role in _ROLES.items():
        named = options.get(parameter) or []
        role_of |= dict.fromkeys([named] if isinstance(named, str) else named, role)
    in_method = {one.name for one in declared.flat if "policy" in one.only_in}
    method = {n: value for n, value in options.items() if n in in_method and value is not None}
    if call.drawn.function == "protect_table":
        method.pop("by", None)
    promises = {n: options[n] for n in _PROMISES if options.get(n) is not None}
    parts = {
        "source": {"path": "people.parquet"},
        "target": {"path": "released.parquet"},
        "columns": role_of,
        "method": {"name": declared.name, **method},
        "promises": {"k": call.drawn.options["k"], **promises},
        "hierarchies": options.get("hierarchies") or {},
    }
    head = 'kind = "aggregate"\n' if call.drawn.function == "protect_table" else ""
    return head + "".join(f"{name} = {_toml(part)}\n" for name, part in parts.items())


_ROLES = {"keep": "free", "sensitive": "sensitive", "measure": "numeric", "person": "person"}
_ROLES |= {"cols": "quasi_identifier", "by": "quasi_identifier"}
_PROMISES = ("l", "l_kind", "c", "t", "max_suppressed_fraction")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---- what is looked at


def places(face: str, function: str, is_quick: bool) -> Iterator[tuple[Place, bool]]:
    """Return places of a function, and whether the table is given as a file: every third table in the thorough run."""
    number = FACES[face].index(function)
    tables = list(QUICK_TABLES if is_quick else TABLES)
    step = (4 if is_quick else 3) * (2 if function in SLOW else 1)
    for place, table in enumerate(tables):
        if place % step == number % step:
            yield Place(function, table, (place // step) % 2), (place // step + number) % 2 == 0


def look_at(faces: Faces, bench: Bench, face: str, place: Place, is_file: bool) -> Outcome:
    """Make the call of a place by a face, hold its rows against the promises, and compare them with those of SQL."""
    call = face_call(bench, face, place)
    is_file = is_file or face == "job" or bench.name == "huge"  # Arrow has no HUGEINT
    with faces.opened(bench, call.table, is_file) as source:
        table = faces.rows_of(bench, face, source)
        outcome = faces.run(bench, call, source)
        if (face, place.function) in SAME_AS_SQL:
            in_sql = statement(call.declared, call.drawn.options | {"tbl": source.name})
            expected = run(bench, replace(call.drawn, statement=in_sql))
            if fault := _unlike_sql(face, expected, outcome):
                outcome.blame("unlike SQL", fault)
    if outcome.rows is None:
        return outcome
    about = Call(place.function, call.drawn.options, table, outcome.rows)
    for promise in place.declaration.promises:
        oracle = ORACLES.get(type(promise).__name__)
        for fault in oracle(about, promise) if oracle else ():
            outcome.blame(type(promise).__name__, fault)
    if face == "spectral":
        with faces.opened(bench, call.table, is_file, f"ORDER BY md5({ROW}::VARCHAR)") as source:
            if fault := difference(outcome.rows, faces.run(bench, call, source)):
                outcome.blame("order", fault)
    return outcome


def _unlike_sql(face: str, expected: Outcome, outcome: Outcome) -> str | None:
    """Say how the answer of a face differs from that of SQL; both may refuse, each in its words."""
    if expected.rows is not None and outcome.rows is not None:
        return difference(expected.rows, outcome)
    # a source without rows stops a job, where SQL releases none; a policy allows less than a call, and reads no columns
    # but those that it names; which columns narrow down others is a test by chance
    refusals = f"{expected.refusal} {outcome.refusal}"
    is_usual = face == "spectral" or re.search(
        "table has no rows|policy.toml, line|same in lower case|narrows|begins with _duckanon_", refusals
    )
    if is_usual or (expected.rows is None) == (outcome.rows is None):
        return None
    return f"SQL: {expected.refusal or 'rows'}; the face: {outcome.refusal or 'rows'}"
