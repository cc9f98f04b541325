"""The values of the columns of a table larger than memory, with the rows and the people of each."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.whole_columns import Counted, decimals_without_noise
from duckanon.large.checks import Checked
from duckanon.large.workspace import SOURCE, Workspace

BYTES_OF_SMALL = 180
"""Memory of a row of a column in small, while it is split: with 100, ten million incomes took 1,005 of 800 MB."""
CLEANED = "cleaned"
"""The name of the source's rows, floats without what a computation's rounding left behind their decimals."""
_ROWS, _PEOPLE = "_duckanon_rows", "_duckanon_people"


def counted_columns(work: Workspace, what: Checked, k: int) -> list[Counted]:
    """Count the values of all columns; `CLEANED` are the rows with the values that were counted."""
    expressions = {name: sql.name(name) for name in what.columns}
    expressions |= {name: f"{sql.name(name)}::VARCHAR" for name in what.names if what.types[name].startswith("ENUM")}
    most = _most_rows(work, what, expressions, k)
    found = []
    for name in what.names:
        progress.check()
        one = _counted(work, what, name, expressions[name], k, most[name])
        decimals = decimals_without_noise(one.values)
        if decimals is not None:
            expressions[name] = f"round({sql.name(name)}, {decimals})"
            one = _counted(work, what, name, expressions[name], k, most[name])
        found.append(one)
    selected = ", ".join(f"{expression} AS {sql.name(name)}" for name, expression in expressions.items())
    work.con.execute(f"CREATE VIEW {CLEANED} AS SELECT {selected} FROM {SOURCE}").fetchall()
    return found


def _most_rows(work: Workspace, what: Checked, expressions: dict[str, str], k: int) -> dict[str, int]:
    """Share out the memory among the columns in small; refuse values that are more than it holds."""
    needed = {}
    for name in what.names:
        progress.check()
        sizes = f"SELECT count(*) AS size FROM {SOURCE} GROUP BY {expressions[name]}"
        needed[name] = sql.one(work.con, f"SELECT coalesce(sum(least(size, {k})), 0)::BIGINT FROM ({sizes})")[0]
    free = work.memory.part // BYTES_OF_SMALL - sum(needed.values())
    if free < 0:
        raise ValueError(
            f'column "{max(needed, key=lambda name: needed[name])}" has too many different values for the memory; '
            "round it, generalize it, leave it out of cols or give more memory."
        )
    return {name: rows + free // (2 * len(needed)) for name, rows in needed.items()}


def _counted(work: Workspace, what: Checked, name: str, expression: str, k: int, most: int) -> Counted:
    """Count the values of a column, and write it in small of about so many rows."""
    person = sql.name(what.person) if what.person else "NULL"
    pairs = f"SELECT {expression} AS value, {person} AS whose, count(*) AS size FROM {SOURCE} GROUP BY ALL"
    holders = "sum(size)" if what.person is None else "count(whose)"
    sized = f"SELECT value, sum(size)::BIGINT AS {_ROWS}, {holders}::BIGINT AS {_PEOPLE} FROM ({pairs}) GROUP BY value"
    table = _read(work, f"{sized} ORDER BY value ASC NULLS LAST")
    values, rows, people = (table.column(place).combine_chunks() for place in range(3))
    rare = None if what.person is None else partial(_rare_rows, work, pairs, k)
    return Counted.of(name, _plain(values), rows.to_numpy(), people.to_numpy(), k, most, rare)


def _rare_rows(work: Workspace, pairs: str, k: int, share: float) -> tuple[pa.Array, Ints]:
    """Return the values shared by fewer than k people, and numbers of these, for each row in small."""
    query = (
        f"SELECT value, dense_rank() OVER (ORDER BY whose ASC NULLS LAST) AS person, whose IS NULL AS is_nobody, size "
        f"FROM (SELECT *, count(whose) OVER (PARTITION BY value) AS holders FROM ({pairs})) WHERE holders < {k} "
        "ORDER BY value ASC NULLS LAST, person ASC NULLS LAST"
    )
    table = _read(work, query)
    people = np.where(table.column("is_nobody").to_numpy(), NOBODY, table.column("person").to_numpy())
    shown = np.maximum(1, np.rint(table.column("size").to_numpy() * share).astype(np.int64))
    index = np.repeat(np.arange(len(people)), shown)
    return _plain(table.column("value").combine_chunks()).take(pa.array(index)), people[index]


def _read(work: Workspace, query: str) -> pa.Table:
    """Read what is counted as parts are read: from a Parquet file."""
    path = work.folder / "counted.parquet"
    work.con.execute(f"COPY ({query}) TO {sql.literal(str(path))} (FORMAT parquet)").fetchall()
    table = pq.ParquetFile(path).read()
    path.unlink()
    return table


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    return whole.cast(whole.type.value_type) if pa.types.is_dictionary(whole.type) else whole
