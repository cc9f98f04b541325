"""The catalog ``anon``: finds the files of ``sql/``, puts them in order, registers everything in a DuckDB database."""

from __future__ import annotations

import functools
import graphlib
import re
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from duckanon.assess import column_sets
from duckanon.boxes import functions as box_release
from duckanon.bridge import calls as bridge
from duckanon.bridge import parcels
from duckanon.generalize import plans
from duckanon.generalize.partition import functions as partition_reports
from duckanon.intervals import functions as box_reports
from duckanon.measure import compare, utility_functions
from duckanon.measure import functions as privacy_functions
from duckanon.measure.attacks import inference, matching, singling_out
from duckanon.measure.queries import answers
from duckanon.measure.utility import classifiers, kernel_components, statistics
from duckanon.release import baselines
from duckanon.release import functions as spectral_functions

STAGES = ("catalog", "assess", "generalize", "release", "measure")
"""The folders of ``sql/`` that hold public functions, in the order in which they are listed."""

RELEASES: dict[str, bridge.Algorithm] = {
    "_identity": lambda table: table,
    "swap": baselines.swap,
    "boxes": box_release.boxes,
    "svd_swap": spectral_functions.svd_swap,
    "spectral_rhs": spectral_functions.spectral_rhs,
    "rhs": spectral_functions.rhs,
    "additive_noise": spectral_functions.additive_noise,
    "data_shuffle": spectral_functions.data_shuffle,
    "copula_synthesize": spectral_functions.copula_synthesize,
}
"""The algorithms that return a table like the one they take: ``anon.swap`` calls ``_anon_swap``, `baselines.swap`."""

REPORTS: dict[str, tuple[bridge.Algorithm, str]] = {
    "quasi_identifiers": (column_sets.exact, column_sets.REPORT_TYPE),
    "optimal_uncertainty": (box_release.optimum, box_release.OPTIMUM_TYPE),
    "interval_statistics": (box_reports.statistics, box_reports.STATISTICS_TYPE),
    "interval_regression": (box_reports.regression, box_reports.REGRESSION_TYPE),
    "dismissal": (box_reports.left_out, box_reports.DISMISSAL_TYPE),
    "box_weights": (box_reports.weighted, box_reports.WEIGHTS_TYPE),
}
"""The algorithms that report on a table, with the type of their report; called like those of `RELEASES`."""

RELEASES_OF_TWO: dict[str, bridge.Algorithm] = {
    "pica": spectral_functions.pica,
    "prediction_risk": privacy_functions.prediction_risk,
}
"""Those that take a second table after the one that they return the like of."""

REPORTS_OF_SEVERAL: dict[str, tuple[bridge.Algorithm, int, str]] = {
    "pica_report": (spectral_functions.pica_report, 2, spectral_functions.REPORT_TYPE),
    "privacy_test": (privacy_functions.privacy_test, 4, privacy_functions.PRIVACY_TYPE),
    "matching_attack": (privacy_functions.matching_attack, 2, matching.REPORT_TYPE),
    "linkage_risk": (privacy_functions.linkage_risk, 3, inference.REPORT_TYPE),
    "singling_out_risk": (privacy_functions.singling_out_risk, 3, singling_out.REPORT_TYPE),
    "utility": (utility_functions.utility, 2, statistics.UTILITY_TYPE),
    "kernel_utility": (utility_functions.kernel_utility, 3, kernel_components.KERNEL_UTILITY_TYPE),
    "classifier_utility": (utility_functions.classifier_utility, 3, classifiers.CLASSIFIER_UTILITY_TYPE),
    "detectability": (utility_functions.detectability, 2, classifiers.DETECTABILITY_TYPE),
    "compare_releases": (compare.compare_releases, 3, compare.COMPARISON_TYPE),
    "query_utility": (utility_functions.query_utility, 2, answers.QUERY_UTILITY_TYPE),
}
"""The algorithms that report on several tables, with their number and the type of the report."""

COLUMN_REPORTS: dict[str, tuple[bridge.Algorithm, str]] = {
    "quantile_partition": (partition_reports.quantile, partition_reports.REPORT_TYPE),
    "optimal_partition": (partition_reports.optimal, partition_reports.REPORT_TYPE),
}
"""The same for those that look at one column."""

_KEPT: list[object] = []
"""The functions of every database that was registered. DuckDB calls them for as long as the database is open, but only
the connection that created them holds on to them, and that one is closed once the work of registering is done."""

ATTACH = "ATTACH IF NOT EXISTS ':memory:' AS anon (READ_WRITE);"


@dataclass(frozen=True)
class MacroFile:
    """One file of ``sql/``: a macro, its comment, and what it needs."""

    name: str
    stage: str
    parameters: str
    needs_python: bool
    sql: str

    @property
    def is_public(self) -> bool:
        """Whether the macro is meant for users: helpers begin with an underscore."""
        return not self.name.startswith("_")

    @property
    def calls(self) -> set[str]:
        """The macros that this one calls and that must therefore exist before it."""
        code = re.sub(r"--[^\n]*", "", self.sql)
        return set(re.findall(r"\banon\.(\w+)\(", code)) - {self.name}


def sql_folder() -> Path:
    """Find the folder of macros: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("duckanon: the folder sql/ with its macros is missing; install the package again.")


@functools.cache
def macro_files() -> tuple[MacroFile, ...]:
    """Read all macros, each after those that it calls (CREATE MACRO binds its body)."""
    files = {path.stem: _read(path) for path in sorted(sql_folder().glob("*/*.sql"))}
    order = graphlib.TopologicalSorter({file.name: sorted(file.calls & files.keys()) for file in files.values()})
    return tuple(files[name] for name in order.static_order())


def _read(path: Path) -> MacroFile:
    sql = path.read_text(encoding="utf-8")
    signature = re.search(rf"^CREATE OR REPLACE MACRO anon\.{path.stem}\((.*?)\) AS\b", sql, re.MULTILINE | re.DOTALL)
    if signature is None:
        raise ValueError(f"duckanon: {path.name} does not define the macro anon.{path.stem} that it is named after.")
    return MacroFile(
        name=path.stem,
        stage=path.parent.name,
        parameters=" ".join(signature[1].split()),
        needs_python="\n-- needs: python\n" in sql,
        sql=sql,
    )


def script(with_python: bool = False) -> str:
    """Return the macros as one SQL script: the pure-SQL ones for the stock shell, or all of them."""
    files = [file for file in macro_files() if with_python or not file.needs_python]
    return "\n".join([ATTACH, _signatures(files), *(file.sql for file in files)])


def _signatures(files: list[MacroFile]) -> str:
    rows = ",\n    ".join(
        f"('{file.name}', '{file.stage}', {STAGES.index(file.stage)}, $${file.parameters}$$)"
        for file in files
        if file.is_public
    )
    return (
        "CREATE OR REPLACE TABLE anon._signatures AS\n"
        f"FROM (VALUES\n    {rows}\n) AS _(function_name, stage, stage_place, parameters);\n"
    )


def connect(path: str | Path = ":memory:", read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a database with everything registered.

    Parameters
    ----------
    path
        The database file, or ``:memory:``.
    read_only
        Open the file read-only; the functions work all the same.

    Examples
    --------
    >>> import duckanon
    >>> con = duckanon.connect()
    >>> con.sql("SELECT count(*) > 0 AS found FROM anon.functions()").fetchall()
    [(True,)]
    """
    con = duckdb.connect(str(path), read_only=read_only)
    try:
        return register(con)
    except BaseException:
        con.close()
        raise


def register(con: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
    """Load every macro and function into the database of a connection; doing it again is harmless.

    Parameters
    ----------
    con
        Any connection to the database; None means DuckDB's default connection, which notebook SQL cells use.

    Returns
    -------
    duckdb.DuckDBPyConnection
        The same connection. Every other connection, cursor and thread of its database sees the functions too.

    Notes
    -----
    All goes into an attached in-memory catalog called ``anon``: nothing is written to the user's database file. A
    cursor of its own does the work, so that a result which the connection has not finished reading stays as it is.
    """
    con = duckdb.default_connection() if con is None else con
    cursor = con.cursor()
    try:
        _refuse_foreign_catalog(cursor)
        cursor.execute(ATTACH)
        known = cursor.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = '_anon_park'")
        if not known.fetchall():
            _create_functions(cursor)
        cursor.execute(script(with_python=True)).fetchall()
    finally:
        cursor.close()
    return con


def _refuse_foreign_catalog(cursor: duckdb.DuckDBPyConnection) -> None:
    """Refuse to write into a user's own database that happens to be called anon."""
    found = cursor.execute("SELECT path FROM duckdb_databases() WHERE database_name = 'anon' AND path IS NOT NULL")
    for (path,) in found.fetchall():
        raise ValueError(
            f"duckanon.register: the name anon is taken by the database file {path}; "
            f"attach that file under another name (ATTACH '{path}' AS other_name)."
        )


def _create_functions(cursor: duckdb.DuckDBPyConnection) -> None:
    tables = parcels.Parcels(parcels.TableBuilder)
    samples = parcels.Parcels(column_sets.SetSampler)
    sampled_search = bridge.report_function("anon.quasi_identifiers", column_sets.approximate, samples)
    functions = {
        "_anon_park": (tables.park, "BIGINT"),
        "_anon_sample_sets": (bridge.naming_errors("anon.quasi_identifiers", samples.park), "BIGINT"),
        "_anon_sampled_quasi_identifiers": (sampled_search, column_sets.REPORT_TYPE),
    }
    for name, (algorithm, report_type) in REPORTS.items():
        functions[f"_anon_{name}"] = (bridge.report_function(f"anon.{name}", algorithm, tables), report_type)
    for name, (algorithm, count, report_type) in REPORTS_OF_SEVERAL.items():
        functions[f"_anon_{name}"] = (bridge.report_function(f"anon.{name}", algorithm, tables, count), report_type)
    for name, (algorithm, report_type) in COLUMN_REPORTS.items():
        functions[f"_anon_{name}"] = (bridge.column_report_function(f"anon.{name}", algorithm), report_type)
    halfwidths = bridge.scalar_function("anon.box_halfwidths", box_release.halfwidths, pa.list_(pa.float64()))
    functions["_anon_box_halfwidths"] = (halfwidths, "DOUBLE[]")
    functions["_anon_plan"] = (bridge.report_function(None, plans.plan, tables), plans.REPORT_TYPE)
    for name, algorithm in RELEASES.items():
        release = bridge.table_function(f"anon.{name}", algorithm, tables)
        functions[f"_anon_{name.lstrip('_')}"] = (release, bridge.RELEASED_TYPE)
    for name, algorithm in RELEASES_OF_TWO.items():
        release = bridge.table_function(f"anon.{name}", algorithm, tables, others=1)
        functions[f"_anon_{name}"] = (release, bridge.RELEASED_TYPE)
    for name, (function, return_type) in functions.items():
        _KEPT.append(function)
        cursor.create_function(  # type: ignore[call-overload]
            name, function, None, return_type, type="arrow", null_handling="special", side_effects=True
        )
