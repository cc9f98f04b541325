"""The methods that the study of new records compares, the paired attack on them, and their columns as numbers."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from duckanon import spectral
from duckanon._core.encoding.measurement_encoding import fit_measure_encoding
from duckanon._core.encoding.pairs import pair_tables
from duckanon._measure.attacks.audit import Released, audit_pairs, query_codes

SDV = "DUCKANON_SDV"
"""The variable that names the Python of an environment with SDV 2; without it, SDV is left out."""
_PAIRED_ROWS = 800
_SPECTRAL_SIZE = 1.4  # of which the rows are a share in the paired attack: a search for each release would take hours


def plain(table: pa.Table, like: pa.Table) -> list[np.ndarray]:
    """Take columns as numbers, NaN for NULL; texts as the codes that another table gives them, -1 for others."""
    found = []
    for name in like.column_names:
        column = table.column(name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.int32())
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.array([np.nan if one is None else float(one) for one in column.to_pylist()])
            found.append(np.round(values, 6))
        else:
            codes = {value: code for code, value in enumerate(sorted(set(like.column(name).to_pylist()), key=str))}
            found.append(np.array([codes.get(value, -1) for value in column.to_pylist()], float))
    return found


def is_number(table: pa.Table, name: str, codes: list[str] | None) -> bool:
    type_ = table.schema.field(name).type
    is_amount = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_date(type_)
    return is_amount and name not in (codes or [])


def sequential_cart(members: pa.Table, codes: list[str] | None, seed: int, leaf: int = 5) -> pa.Table:
    """Draw each column from the leaves of a tree on the columns before, as synthpop does: people's own values."""
    random = np.random.default_rng(seed)
    rows = members.num_rows
    columns = plain(members, members)
    taken = [random.integers(0, rows, rows)]
    for place, name in enumerate(members.column_names[1:], 1):
        features = np.column_stack([np.nan_to_num(one, nan=-9.0) for one in columns[:place]])
        new = np.column_stack(
            [np.nan_to_num(one, nan=-9.0)[rows_of] for one, rows_of in zip(columns[:place], taken, strict=True)]
        )
        target = np.nan_to_num(columns[place], nan=-9.0)
        is_wide = len(np.unique(target)) > 50 or is_number(members, name, codes)
        tree = (DecisionTreeRegressor if is_wide else DecisionTreeClassifier)(min_samples_leaf=leaf, random_state=seed)
        tree.fit(features, target)
        leaves, wanted = tree.apply(features), tree.apply(new)
        order = np.argsort(leaves, kind="stable")
        starts = np.searchsorted(leaves[order], wanted, "left")
        sizes = np.searchsorted(leaves[order], wanted, "right") - starts
        taken.append(order[starts + (random.random(rows) * sizes).astype(int)])
    names = members.column_names
    return pa.table({name: members.column(name).take(pa.array(one)) for name, one in zip(names, taken, strict=True)})


def spectral_options(codes: list[str] | None) -> dict[str, Any]:
    return {"nulls": "category", **({"categories": codes} if codes else {})}


_WITHOUT_CATEGORIES = ("copula_synthesize", "data_shuffle")  # they have no such option


def by(method: str, **more: Any) -> Callable[[pa.Table, list[str] | None, int], pa.Table]:
    """Return what releases a table by a function of the package."""

    def release(table: pa.Table, codes: list[str] | None, seed: int) -> pa.Table:
        options = spectral_options(None if method in _WITHOUT_CATEGORIES else codes) | more
        return getattr(spectral, method)(table, seed=seed, **options).read_all().select(table.column_names)

    return release


@functools.cache
def _sdv_worker() -> subprocess.Popen[str]:
    """Start the process that has SDV, once: it takes seconds to begin."""
    command = [os.environ[SDV], str(Path(__file__).with_name("sdv_worker.py"))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def sdv_copula(members: pa.Table, codes: list[str] | None, seed: int) -> pa.Table:
    """Release a table by SDV's Gaussian copula with its defaults, which has no seed."""
    worker = _sdv_worker()
    assert worker.stdin is not None
    assert worker.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("source.parquet", "target.parquet")]
        pq.write_table(members, files[0])
        print(json.dumps([*files, codes or []]), file=worker.stdin, flush=True)
        if worker.stdout.readline().strip() != files[1]:
            raise ValueError("SDV has failed.")
        released = pq.read_table(files[1])
    return pa.table(
        {name: released.column(name).cast(members.schema.field(name).type, safe=False) for name in members.column_names}
    )


METHODS: dict[str, Callable[[pa.Table, list[str] | None, int], pa.Table]] = {
    "synthesize": by("synthesize"),
    "spectral_release": by("spectral_release"),
    "sequential CART": sequential_cart,
    "pica": by("pica", basis="pca", cluster_size=300, checks="off"),
    "svd_swap": by("svd_swap", checks="off"),
    "copula_synthesize": by("copula_synthesize"),
    "data_shuffle": by("data_shuffle"),
} | ({"SDV's Gaussian copula": sdv_copula} if SDV in os.environ else {})


def nearest_row(method: str, members: pa.Table, codes: list[str] | None, releases: int) -> tuple[float, float]:
    """Return how often the nearest row tells which of two releases holds an isolated person, and the standard error."""
    table = members.slice(0, _PAIRED_ROWS)
    encoding = fit_measure_encoding(table, categories=codes)
    release = METHODS[method]
    if method == "spectral_release":
        release = by(method, cluster_size=table.num_rows / _SPECTRAL_SIZE)

    def made(places: np.ndarray, random: np.random.Generator) -> Released:
        released = release(table.take(pa.array(places)), codes, int(random.integers(2**31)))
        of_people, of_release = query_codes(pair_tables(table, released))
        return Released(encoding.matrix(released), of_release, of_people)

    random = np.random.default_rng(1)
    found = audit_pairs(encoding.matrix(table), table.num_columns, made, people=20, releases=releases, random=random)
    return found[0].mean, found[0].standard_error
