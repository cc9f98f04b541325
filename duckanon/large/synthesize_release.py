"""New records of tables that are larger than memory, drawn in parts: `duckanon.large.synthesize`.

The values of the columns of a table larger than memory, with the rows and the people of each.

People with several rows of a table larger than memory: which columns are theirs, and new numbers for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._bridge.shared_values import count_shared_values
from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.names import match_columns
from duckanon._core.common.people import NOBODY, number_people
from duckanon._core.common.resources import use_one_thread
from duckanon._core.encoding.column_split import SplitOptions, read_special
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import (
    ColumnCounts,
    SplitScheme,
    apply_schemes,
    count_choices,
    find_clean_decimals,
    read_counts_exactly,
    split_counts,
)
from duckanon._methods.synthesize.declared import SYNTHESIZE
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.sequence_columns import find_ordering_columns
from duckanon._methods.synthesize.sequences import DrawOptions
from duckanon._methods.synthesize.table_groups import with_digits
from duckanon._methods.synthesize.table_parts import (
    SequenceSynthesis,
    Synthesis,
    fewest_people,
    fit_redrawing,
    name_category_numbers,
)
from duckanon.large import pipeline
from duckanon.large.checks import Checked, open_workspace, refuse_columns
from duckanon.large.split_tree import divide_parts
from duckanon.large.workspace import SOURCE, Place, Source, Target, Workspace

BYTES_OF_SMALL = 180
"""Memory of a row of a column in small, while it is split: with 100, ten million incomes took 1,005 of 800 MB."""
CLEANED = "cleaned"
"""The name of the source's rows, floats without what a computation's rounding left behind their decimals."""
_ROWS, _PEOPLE = "_duckanon_rows", "_duckanon_people"


def count_columns(work: Workspace, layout: Checked, k: int) -> list[ColumnCounts]:
    """Count the values of all columns; `CLEANED` are the rows with the values that were counted."""
    expressions = {name: sql.quote(name) for name in layout.columns}
    expressions |= {
        name: f"{sql.quote(name)}::VARCHAR" for name in layout.names if layout.types[name].startswith("ENUM")
    }
    most = _most_rows(work, layout, expressions, k)
    counts = []
    for name in layout.names:
        progress.check()
        column_counts = _count_column(work, layout, name, expressions[name], k, most[name])
        decimals = find_clean_decimals(column_counts.values)
        if decimals is not None:
            expressions[name] = f"round({sql.quote(name)}, {decimals})"
            column_counts = _count_column(work, layout, name, expressions[name], k, most[name])
        counts.append(column_counts)
    selected = ", ".join(f"{expression} AS {sql.quote(name)}" for name, expression in expressions.items())
    work.con.execute(f"CREATE VIEW {CLEANED} AS SELECT {selected} FROM {SOURCE}").fetchall()
    return counts


def _most_rows(work: Workspace, layout: Checked, expressions: dict[str, str], k: int) -> dict[str, int]:
    """Share out the memory among the columns in small; refuse values that are more than it holds."""
    needed = {}
    for name in layout.names:
        progress.check()
        sizes = f"SELECT count(*) AS size FROM {SOURCE} GROUP BY {expressions[name]}"
        needed[name] = sql.fetch_row(work.con, f"SELECT coalesce(sum(least(size, {k})), 0)::BIGINT FROM ({sizes})")[0]
    free = work.memory.part // BYTES_OF_SMALL - sum(needed.values())
    if free < 0:
        raise ValueError(
            f'column "{max(needed, key=lambda name: needed[name])}" has too many different values for the memory; '
            "round it, generalize it, leave it out of cols or give more memory."
        )
    return {name: rows + free // (2 * len(needed)) for name, rows in needed.items()}


def _count_column(work: Workspace, layout: Checked, name: str, expression: str, k: int, most: int) -> ColumnCounts:
    """Count the values of a column, and write it in small of about so many rows."""
    person = sql.quote(layout.person) if layout.person else "NULL"
    pairs = f"SELECT {expression} AS value, {person} AS whose, count(*) AS size FROM {SOURCE} GROUP BY ALL"
    holders = "sum(size)" if layout.person is None else "count(whose)"
    sized = f"SELECT value, sum(size)::BIGINT AS {_ROWS}, {holders}::BIGINT AS {_PEOPLE} FROM ({pairs}) GROUP BY value"
    table = _read(work, f"{sized} ORDER BY value ASC NULLS LAST")
    values, rows, people = (table.column(place).combine_chunks() for place in range(3))
    rare = None if layout.person is None else partial(_rare_rows, work, pairs, k)
    return ColumnCounts.of(name, _plain(values), rows.to_numpy(), people.to_numpy(), k, most, rare)


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


def people_with_rows(
    work: Workspace,
    layout: Checked,
    counted: Sequence[ColumnCounts],
    columns: Sequence[tuple[ColumnParts, Ints | None]],
    options: Options,
    random: np.random.Generator,
) -> SequenceSynthesis | None:
    """Return what people are drawn with; None where fewer than k have several rows, and rows are drawn one by one."""
    if layout.person is None:
        return None
    person, k = sql.quote(layout.person), options["k"]
    rows = f"SELECT count(*) AS size FROM {CLEANED} WHERE {person} IS NOT NULL GROUP BY {person}"
    if sql.fetch_row(work.con, f"SELECT count(*) FROM ({rows}) WHERE size > 1")[0] < k:
        return None
    names = layout.names
    differing = ", ".join(
        f"min({name}) IS DISTINCT FROM max({name}) OR count({name}) NOT IN (0, count(*)) AS c{place}"
        for place, name in enumerate(map(sql.quote, names))
    )
    counts = ", ".join(f"count(*) FILTER (c{place})" for place in range(len(names)))
    people = f"SELECT {differing} FROM {CLEANED} WHERE {person} IS NOT NULL GROUP BY {person}"
    exceptions = sql.fetch_row(work.con, f"SELECT {counts} FROM ({people})")
    personal = [name for name, count in zip(names, exceptions, strict=True) if count < FEWEST]
    schema = pa.schema([(one.name, one.array.type) for one in counted])
    ordering = find_ordering_columns(schema.empty_table(), personal, options["order_by"])
    reading = SplitOptions(k, read_special(options["special"], names), None, options["nulls"], random)
    drawing = DrawOptions(options["leaf"], None, options["keep_out"], options["derived"])
    return SequenceSynthesis.of(counted, columns, schema, personal, ordering, reading, drawing)


def part_sizes(work: Workspace, files: Sequence[Sequence[Path]], person: str) -> list[int]:
    """Count the people of each part."""
    return [
        int(
            sql.fetch_row(
                work.con,
                f"SELECT count(DISTINCT {sql.quote(person)}) "
                f"FROM read_parquet({sql.literal([str(path) for path in paths])}, hive_partitioning = false)",
            )[0]
        )
        for paths in files
    ]


BYTES_OF_ROW, BYTES_OF_CELL = 240, 100
"""Memory of drawing from a part, for each row and for each of its values."""

BESIDE = 3
"""Times as much for a row that follows others: the last one and its person stand beside it."""

_SAMPLE = 50_000
"""Rows by which sums, coarser columns and the like are found: those of a part, which is drawn at random."""

_CHANCE = "_duckanon_chance"


@face_of(SYNTHESIZE, "large")
def synthesize(
    source: Source,
    target: Target,
    options: Options,
    *,
    memory: str = "2GB",
    temporary: Place | None = None,
    replace: bool = False,
) -> pipeline.Released:
    """Write new records that keep what belongs together, drawn column by column, of values shared by many people.

    The table is divided at random into parts that fit into memory, all rows of a person in one. Each part is drawn by
    trees of its own. Which values are releasable, and how often each choice is drawn, is decided over the whole table.
    ``keep_out`` people are kept out of every part. Where ``person`` names a column, the first one has new numbers of
    people under its name, who have as many rows as people have. ``seed`` makes the records of the same rows repeatable;
    the order of the released rows never is.

    Args:
        source, target, memory, temporary, replace: As for `workspace`.

    Returns:
        Its `smallest_class` are the people of the source who share the rarest category that was written.
    """
    k, seed = options["k"], options["seed"]
    with open_workspace("anon.synthesize", options, source, target, memory, temporary, replace) as (work, layout):
        refuse_columns(layout)
        random = make_generator(seed)
        counted, types = read_counts_exactly(count_columns(work, layout, k))
        fewest = fewest_people(k, options["leaf"], options["keep_out"])
        rows = _rows(work, layout, fewest)
        whole = _whole(counted, options, random)
        people = people_with_rows(work, layout, counted, whole.columns, options, random)
        del counted
        bytes_of_row = (BYTES_OF_ROW + BYTES_OF_CELL * len(layout.names)) * (1 if people is None else BESIDE)
        part_rows = max(1, work.memory.part // bytes_of_row)
        chance = {_CHANCE: _chance(layout, seed, random)}
        tree = divide_parts(0, {0: rows}, part_rows, _CHANCE)
        files = pipeline.route(work, layout.columns, tree, chance, fewest, layout.person, CLEANED)
        wanted = rows if options["rows"] is None else options["rows"]
        sizes = np.array([sum(pq.read_metadata(path).num_rows for path in paths) for paths in files])
        if people is not None and layout.person is not None:
            sizes = np.array(part_sizes(work, files, layout.person))
            wanted = max(1, round(wanted * int(sizes.sum()) / rows))
        counts = apportion(sizes, wanted).tolist()
        parts = enumerate(counts)
        with use_one_thread():
            synthesis = _synthesis(whole, types, files[0], layout, options, random) if people is None else None

            def release_part(part: pa.Table) -> pa.Table:
                if seed is not None:  # the order in which DuckDB's threads wrote them is another each time
                    part = part.sort_by([(name, "ascending") for name in part.column_names])
                part = types.read(part)
                chance, person_of_row = random.spawn(1)[0], _whose(part, layout)
                place, count = next(parts)
                if people is not None and person_of_row is not None:
                    result, new = people.draw(part, person_of_row, count, chance)
                else:
                    assert synthesis is not None
                    schema, new = part.select(layout.names).schema, np.arange(count)
                    result = synthesis.draw(apply_schemes(whole.schemes, part), person_of_row, count, schema, chance)
                if layout.person is None:
                    return result
                numbers = 1 + sum(counts[:place]) + chance.permutation(count)  # no two parts have the same
                return result.add_column(0, layout.person, pa.array(numbers[new]))

            results = pipeline.release_parts(
                work, files, release_part, pipeline.blocks_of(options["rows"] or rows, part_rows)
            )
        written = pipeline.mix_results(work, results, types.write, None, False)
        smallest = _smallest_shared(work, layout, written, k, results.rows)
        return pipeline.Released(results.rows, len(files), smallest, reader=work.reader())


class _Whole(NamedTuple):
    """The columns of the table in small with their people, how each is split, and the rows of its choices."""

    columns: list[tuple[ColumnParts, Ints | None]]
    schemes: list[SplitScheme]
    counts: list[Ints]


def _whole(counted: Sequence[ColumnCounts], options: Options, random: np.random.Generator) -> _Whole:
    """Decide over the whole table what is a choice and what is releasable."""
    names = [one.name for one in counted]
    if options["categories"] is None:
        categories = name_category_numbers(counted, options["k"])
    else:
        categories = match_columns("categories", options["categories"], names)
    special = read_special(options["special"], names)
    split = split_counts(counted, options["k"], special, categories, options["nulls"], random)
    columns = [(with_digits(column), people) for column, people in split]
    schemes = [SplitScheme.of(column) for column, _ in columns]
    counts = [count_choices(scheme, one) for scheme, one in zip(schemes, counted, strict=True)]
    return _Whole(columns, schemes, counts)


def _rows(work: Workspace, layout: Checked, fewest: int) -> int:
    """Count the rows, and refuse a table of too few people."""
    people = "count(*)" if layout.person is None else f"count(DISTINCT {sql.quote(layout.person)})"
    rows, count = sql.fetch_row(work.con, f"SELECT count(*), {people} FROM {CLEANED}")
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if count < fewest:
        who = "rows" if layout.person is None else "people"
        raise ValueError(f"at least {fewest:,} {who} are needed; got {count:,}.")
    return int(rows)


def _chance(layout: Checked, seed: int | None, random: np.random.Generator) -> str:
    """Return the SQL of a number from 0 to 1: one for all rows of a person, and repeatable by a seed."""
    key = int(random.integers(2**62))
    of_row = "random()" if seed is None else f"(hash({sql.quote_all(layout.columns)}, {key}) / 18446744073709551616.0)"
    if layout.person is None:
        return of_row
    person = sql.quote(layout.person)
    return f"CASE WHEN {person} IS NULL THEN {of_row} ELSE hash({person}, {key}) / 18446744073709551616.0 END"


def _whose(part: pa.Table, layout: Checked) -> Ints | None:
    return None if layout.person is None else number_people(part.column(layout.person))


def _synthesis(
    whole: _Whole,
    types: NumberTypes,
    files: Sequence[Path],
    layout: Checked,
    options: Options,
    random: np.random.Generator,
) -> Synthesis:
    """Find what is computed on a sample, some rows of a part; which values are releasable the whole table tells."""
    rows = pa.concat_tables([pq.ParquetFile(path).read() for path in files])
    if options["seed"] is not None:
        rows = rows.sort_by([(name, "ascending") for name in rows.column_names])
    if rows.num_rows > _SAMPLE:
        rows = rows.take(pa.array(np.sort(random.choice(rows.num_rows, _SAMPLE, replace=False))))
    columns = apply_schemes(whole.schemes, types.read(rows))
    redrawing = fit_redrawing(columns, _whose(rows, layout), options["k"], options["derived"], random, whole.columns)
    return Synthesis.of(redrawing, whole.counts, options["leaf"], options["keep_out"], options["derived"], random)


def _smallest_shared(work: Workspace, layout: Checked, written: str, k: int, rows: int) -> int:
    """Count what was promised on the written rows, over all people; return how many share the rarest category."""
    (count,) = sql.fetch_row(work.con, f"SELECT count(*) FROM {written}")
    if count != rows:
        raise AssertionError("rows are missing in the written release.")
    shared = count_shared_values(work.con, CLEANED, written, layout.names, k, layout.person)
    if shared.rare:
        raise AssertionError(f"a value of the written release is shared by fewer than {k} people.")
    return rows if shared.fewest is None else shared.fewest
