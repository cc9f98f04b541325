"""A seed repeats a release of `duckanon.spectral` in whatever order the rows come."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import spectral
from duckanon._core.encoding.whole_sources import sort_by_values

OPTIONS = {
    "copula_synthesize": {"k": 5},
    "pica": {"cluster_size": 100, "checks": "off"},
    "rhs": {"k": 5, "checks": "off"},
    "spectral_rhs": {"k": 5},
}


def people(rows: int = 400) -> pa.Table:
    random = np.random.default_rng(0)
    height = random.normal(170, 10, rows)
    return pa.table(
        {
            "height": np.round(height, 1),
            "weight": np.round(height - 100 + random.normal(0, 8, rows), 1),
            "balance": random.choice([0.0, -0.0, 1.5, 3.25], rows),
            "sex": random.choice(["F", "M"], rows),
        }
    )


@pytest.mark.parametrize("name", spectral.__all__)
def test_rows_in_another_order_give_the_same_release(name: str, tmp_path) -> None:
    table = people()
    release = getattr(spectral, name)
    expected = release(table, list(table.column_names), seed=1, **OPTIONS.get(name, {})).read_all()
    reordered = table.take(np.random.default_rng(1).permutation(table.num_rows))
    with_more = reordered.append_column("row", pa.array(range(reordered.num_rows)))
    pq.write_table(with_more, tmp_path / "people.parquet", row_group_size=70)
    for source in (with_more, str(tmp_path / "people.parquet")):
        assert release(source, list(table.column_names), seed=1, **OPTIONS.get(name, {})).read_all().equals(expected)


def test_the_order_depends_on_values_of_every_type_and_follows_none() -> None:
    rows = 300
    day = datetime.date(2020, 1, 1)
    table = pa.table(
        {
            "list": [[i % 3, i % 2] for i in range(rows)],
            "struct": [{"a": i % 5} for i in range(rows)],
            "nothing": pa.nulls(rows),
            "nan": [[float("nan"), -0.0, 0.0, None][i % 4] for i in range(rows)],
            "device": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([bytes([i % 9] * 16) for i in range(rows)], pa.binary(16))
            ),
            "day": [day + datetime.timedelta(days=i % 7) for i in range(rows)],
            "category": pa.array([["b", "a", None][i % 3] for i in range(rows)]).dictionary_encode(),
            "number": range(rows),
        }
    )
    expected = sort_by_values(table)
    for seed in range(3):
        reordered = table.take(np.random.default_rng(seed).permutation(rows))
        categories = reordered["category"].combine_chunks().cast(pa.string()).dictionary_encode()
        reordered = reordered.set_column(6, "category", categories)
        assert repr(sort_by_values(reordered).to_pylist()) == repr(expected.to_pylist())
    assert sorted(expected["number"].to_pylist()) == list(range(rows))
    assert abs(np.corrcoef(expected["number"].to_numpy(), np.arange(rows))[0, 1]) < 0.3  # 5 standard errors
