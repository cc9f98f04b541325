"""The spectral releases as the SQL functions call them: tables and options by position, in the macros' order."""

from __future__ import annotations

import pyarrow as pa

from duckanon.common import progress
from duckanon.common.arguments import generator, spelled
from duckanon.common.reports import report_rows
from duckanon.release import api
from duckanon.release.pica import Partitioned

REPORT_TYPE = (
    "STRUCT(step BIGINT, purpose VARCHAR, cluster_size BIGINT, distance_shift DOUBLE, ambiguity_shift DOUBLE, "
    "uncertainty_shift DOUBLE, exact_copies DOUBLE, unique_copies DOUBLE, near_copies DOUBLE, passed BOOLEAN, "
    "chosen BOOLEAN)[]"
)
_PURPOSES = {"whole": "one cluster", "bisect": "search", "confirm": "confirm"}


def svd_swap(
    table: pa.Table, tolerance: float, log: list[str] | None, nulls: str, checks: str, seed: int | None
) -> pa.Table:
    """Release a table by `api.svd_swap`."""
    return api.svd_swap(
        table,
        tolerance=tolerance,
        log=spelled("log", log, table.column_names),
        nulls=nulls,
        checks=checks,
        seed=seed,
        tell=progress.shown("anon.svd_swap"),
    ).read_all()


def pica(
    table: pa.Table,
    reference: pa.Table | None,
    cluster_size: float | None,
    basis: str,
    clustering: str,
    log: list[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
) -> pa.Table:
    """Release a table by `api.pica`."""
    return api.pica(
        table,
        cluster_size=cluster_size,
        basis=basis,
        clustering=clustering,
        reference=reference,
        log=spelled("log", log, table.column_names),
        nulls=nulls,
        checks=checks,
        seed=seed,
        tell=progress.shown("anon.pica"),
    ).read_all()


def pica_report(
    table: pa.Table | None,
    reference: pa.Table | None,
    basis: str,
    clustering: str,
    log: list[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
) -> pa.Table:
    """Report the search for a cluster size."""
    if table is None:
        return report_rows([], REPORT_TYPE)
    names = spelled("log", log, table.column_names)
    partitioned = Partitioned.of(table, None, names, nulls, basis, clustering, checks, generator(seed))
    found = partitioned.search(reference, progress.shown("anon.pica_report"))
    rows = [
        {
            "step": number,
            "purpose": _PURPOSES[step.stage],
            "cluster_size": round(step.cluster_size),
            **{f"{name}_shift": step.verdict.numbers.get(name) for name in ("distance", "ambiguity", "uncertainty")},
            **{name: step.verdict.numbers.get(name) for name in ("exact_copies", "unique_copies", "near_copies")},
            "passed": step.verdict.passed,
            "chosen": step.cluster_size == found.cluster_size,
        }
        for number, step in enumerate(found.steps, 1)
    ]
    return report_rows(rows, REPORT_TYPE)


def spectral_rhs(
    table: pa.Table, k: int, label: str, key: str | None, log: list[str] | None, nulls: str, seed: int | None
) -> pa.Table:
    """Release a table by `api.spectral_rhs`."""
    names = spelled("log", log, table.column_names)
    return api.spectral_rhs(table, k=k, label=label, key=key, log=names, nulls=nulls, seed=seed).read_all()


def rhs(
    table: pa.Table,
    k: int,
    label: str,
    key: str | None,
    log: list[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
) -> pa.Table:
    """Release a table by `api.rhs`."""
    names = spelled("log", log, table.column_names)
    return api.rhs(table, k=k, label=label, key=key, log=names, nulls=nulls, checks=checks, seed=seed).read_all()


def additive_noise(
    table: pa.Table,
    noise_fraction: float,
    correlated: bool,
    key: str | None,
    log: list[str] | None,
    nulls: str,
    seed: int | None,
) -> pa.Table:
    """Release a table by `api.additive_noise`."""
    return api.additive_noise(
        table,
        noise_fraction=noise_fraction,
        correlated=correlated,
        key=key,
        log=spelled("log", log, table.column_names),
        nulls=nulls,
        seed=seed,
    ).read_all()


def data_shuffle(table: pa.Table, nulls: str, seed: int | None) -> pa.Table:
    """Release a table by `api.data_shuffle`."""
    return api.data_shuffle(table, nulls=nulls, seed=seed).read_all()


def copula_synthesize(table: pa.Table, rows: int | None, nulls: str, seed: int | None) -> pa.Table:
    """Release a table by `api.copula_synthesize`."""
    return api.copula_synthesize(table, rows=rows, nulls=nulls, seed=seed).read_all()
