"""New records of tables that are larger than memory, drawn in parts: `duckanon.large.synthesize`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._bridge.shared_values import shared_values
from duckanon._core.common import progress
from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import person_numbers
from duckanon._core.common.progress import within
from duckanon._core.common.threads import one_thread
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_columns import (
    Counted,
    Scheme,
    applied,
    choice_counts,
    read_counted,
    split_whole,
)
from duckanon._methods.synthesize.declared import SYNTHESIZE
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.table_groups import with_digits
from duckanon._methods.synthesize.table_parts import Synthesis, few_valued_columns, fewest_people, whole_redrawing
from duckanon.large import pipeline
from duckanon.large.checks import Checked, opened, refuse_columns
from duckanon.large.split_tree import divided
from duckanon.large.synthesize_people import part_sizes, people_with_rows
from duckanon.large.value_counts import CLEANED, counted_columns
from duckanon.large.workspace import Place, Source, Target, Workspace

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
    given: Options,
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
    k, seed = given["k"], given["seed"]
    with opened("anon.synthesize", given, source, target, memory, temporary, replace) as (work, what):
        refuse_columns(what)
        random = generator(seed)
        counted, types = read_counted(counted_columns(work, what, k))
        fewest = fewest_people(k, given["leaf"], given["keep_out"])
        rows = _rows(work, what, fewest)
        whole = _whole(counted, given, random)
        people = people_with_rows(work, what, counted, whole.columns, given, random)
        del counted
        bytes_of_row = (BYTES_OF_ROW + BYTES_OF_CELL * len(what.names)) * (1 if people is None else BESIDE)
        part_rows = max(1, work.memory.part // bytes_of_row)
        chance = {_CHANCE: _chance(what, seed, random)}
        tree = divided(0, {0: rows}, part_rows, _CHANCE)
        files = pipeline.route(work, what.columns, tree, chance, fewest, what.person, CLEANED)
        wanted = rows if given["rows"] is None else given["rows"]
        sizes = np.array([sum(pq.read_metadata(path).num_rows for path in paths) for paths in files])
        if people is not None and what.person is not None:
            sizes = np.array(part_sizes(work, files, what.person))
            wanted = max(1, round(wanted * int(sizes.sum()) / rows))
        counts = apportioned(sizes, wanted).tolist()
        parts = enumerate(counts)
        with one_thread():
            synthesis = _synthesis(whole, types, files[0], what, given, random) if people is None else None

            def released(part: pa.Table) -> pa.Table:
                if seed is not None:  # the order in which DuckDB's threads wrote them is another each time
                    part = part.sort_by([(name, "ascending") for name in part.column_names])
                part = types.read(part)
                chance, whose = random.spawn(1)[0], _whose(part, what)
                place, count = next(parts)
                tell = within(progress.at, place / len(counts), (place + 1) / len(counts))
                if people is not None and whose is not None:
                    made, new = people.drawn(part, whose, count, chance, tell)
                else:
                    assert synthesis is not None
                    schema, new = part.select(what.names).schema, np.arange(count)
                    made = synthesis.drawn(applied(whole.schemes, part), whose, count, schema, chance, tell)
                if what.person is None:
                    return made
                numbers = 1 + sum(counts[:place]) + chance.permutation(count)  # no two parts have the same
                return made.add_column(0, what.person, pa.array(numbers[new]))

            results = pipeline.made(work, files, released, pipeline.blocks_of(given["rows"] or rows, part_rows))
        written = pipeline.mixed(work, results, types.write, None, False)
        smallest = _smallest_shared(work, what, written, k, results.rows)
        return pipeline.Released(results.rows, len(files), smallest, reader=work.reader())


class _Whole(NamedTuple):
    """The columns of the table in small with their people, how each is split, and the rows of its choices."""

    columns: list[tuple[ColumnParts, Ints | None]]
    schemes: list[Scheme]
    counts: list[Ints]


def _whole(counted: Sequence[Counted], given: Options, random: np.random.Generator) -> _Whole:
    """Decide over the whole table what is a choice and what is releasable."""
    names = [one.name for one in counted]
    if given["categories"] is None:
        categories = few_valued_columns(counted, given["k"])
    else:
        categories = known_columns("categories", given["categories"], names)
    special = special_choices(given["special"], names)
    split = split_whole(counted, given["k"], special, categories, given["nulls"], random)
    columns = [(with_digits(column), people) for column, people in split]
    schemes = [Scheme.of(column) for column, _ in columns]
    counts = [choice_counts(scheme, one) for scheme, one in zip(schemes, counted, strict=True)]
    return _Whole(columns, schemes, counts)


def _rows(work: Workspace, what: Checked, fewest: int) -> int:
    """Count the rows, and refuse a table of too few people."""
    people = "count(*)" if what.person is None else f"count(DISTINCT {sql.name(what.person)})"
    rows, found = sql.one(work.con, f"SELECT count(*), {people} FROM {CLEANED}")
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if found < fewest:
        who = "rows" if what.person is None else "people"
        raise ValueError(f"at least {fewest:,} {who} are needed; got {found:,}.")
    return int(rows)


def _chance(what: Checked, seed: int | None, random: np.random.Generator) -> str:
    """Return the SQL of a number from 0 to 1: one for all rows of a person, and repeatable by a seed."""
    key = int(random.integers(2**62))
    of_row = "random()" if seed is None else f"(hash({sql.names(what.columns)}, {key}) / 18446744073709551616.0)"
    if what.person is None:
        return of_row
    person = sql.name(what.person)
    return f"CASE WHEN {person} IS NULL THEN {of_row} ELSE hash({person}, {key}) / 18446744073709551616.0 END"


def _whose(part: pa.Table, what: Checked) -> Ints | None:
    return None if what.person is None else person_numbers(part.column(what.person))


def _synthesis(
    whole: _Whole,
    types: NumberTypes,
    files: Sequence[Path],
    what: Checked,
    given: Options,
    random: np.random.Generator,
) -> Synthesis:
    """Find what is computed on a sample, some rows of a part; which values are releasable the whole table tells."""
    rows = pa.concat_tables([pq.ParquetFile(path).read() for path in files])
    if given["seed"] is not None:
        rows = rows.sort_by([(name, "ascending") for name in rows.column_names])
    if rows.num_rows > _SAMPLE:
        rows = rows.take(pa.array(np.sort(random.choice(rows.num_rows, _SAMPLE, replace=False))))
    columns = applied(whole.schemes, types.read(rows))
    redrawing = whole_redrawing(columns, _whose(rows, what), given["k"], given["derived"], random, whole.columns)
    return Synthesis.of(redrawing, whole.counts, given["leaf"], given["keep_out"], given["derived"], random)


def _smallest_shared(work: Workspace, what: Checked, written: str, k: int, rows: int) -> int:
    """Count what was promised on the written rows, over all people; return how many share the rarest category."""
    (found,) = sql.one(work.con, f"SELECT count(*) FROM {written}")
    if found != rows:
        raise AssertionError("rows are missing in the written release.")
    shared = shared_values(work.con, CLEANED, written, what.names, k, what.person)
    if shared.rare:
        raise AssertionError(f"a value of the written release is shared by fewer than {k} people.")
    return rows if shared.fewest is None else shared.fewest
