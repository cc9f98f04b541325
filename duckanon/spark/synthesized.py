"""New records of values shared by many people: `spectral_release`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.arrays import Ints
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.people import person_numbers
from duckanon._core.common.progress import silent
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.table_encoding import FEWEST_ROWS, ROWS_PER_COMPONENT
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.audited_size import smallest_size, without_some
from duckanon._methods.synthesize.declared import SPECTRAL_RELEASE
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon.spark import blocks, schemes
from duckanon.spark.frames import column, ordered_columns, other_column, public
from duckanon.spark.partwise import PART
from duckanon.spark.schemes import HOLDERS, VALUE, Surveyed, holders
from duckanon.spark.targets import target_called

PART_ROWS = 100_000
"""Rows of a part: what an executor works on at a time."""
_MOST_RANKS = 100_000  # numbers of a column by which ranks are told on the executors
_LEVELS = 1_000  # of a column's distribution, for parts in which fewer than k people have a number
_PER_KEPT_OUT = 4  # people of a part for each that is kept out: at most a quarter is
_DRAWN = "_duckanon_drawn"


@face_of(SPECTRAL_RELEASE, "spark")
@public
def spectral_release(frame: DataFrame, given: Options, *, to: str) -> DataFrame:
    """Write new records that keep what clusters of similar records have in common, of values shared by many people.

    ``keep_out`` people are kept out of every part of the table.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after it was searched for values of fewer people.
    """
    k, rows, keep_out, size = (given[name] for name in ("k", "rows", "keep_out", "cluster_size"))
    names = ordered_columns(frame, given["cols"], at_least=2)
    whose = other_column(frame, "person", given["person"], names)
    with target_called(frame.sparkSession, to) as target:
        survey = schemes.surveyed(frame, names, whose, k, given)
        random = np.random.default_rng()
        redrawing = _redrawing(survey, k, given["derived"], random)
        fewest = max(FEWEST_ROWS, ROWS_PER_COMPONENT * redrawing.rank, k, _PER_KEPT_OUT * keep_out)
        parted = blocks.parted(survey, blocks.tree_of(survey, PART_ROWS), PART_ROWS, fewest)
        counts = _drawn_counts(parted, whose, keep_out, rows or survey.rows, random)
        if size is None:
            size = smallest_size(redrawing, np.arange(redrawing.rows), keep_out, random, silent)
        sent, ways = _without_rows(redrawing), survey.schemes

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            people = None if whose is None else person_numbers(part.column(whose))
            own = _of_part(sent, schemes.applied(ways, part), people)
            used = without_some(np.arange(part.num_rows), people, keep_out, chance)
            return own.table(own.redrawn(used, counts[number], size, chance), part.select(names).schema)

        def refuse_rare(draft: DataFrame) -> None:
            _refuse_rare(survey, draft, dict(zip(names, redrawing.least, strict=True)))

        total = sum(counts.values())
        return blocks.written(blocks.made(parted, survey.schema, release), total, total, target, refuse_rare)


def _refuse_rare(survey: Surveyed, draft: DataFrame, least: Mapping[str, int]) -> None:
    """Count again, on what was written, that no value is there that fewer people hold than a column's least."""
    found = []
    for name, few in least.items():
        held = holders(survey.frame, name, survey.person).where(F.col(HOLDERS) < few).select(VALUE)
        drawn = draft.select(column(name).alias(_DRAWN)).distinct()
        both = drawn.join(held, F.col(_DRAWN).eqNullSafe(F.col(VALUE)), "inner")
        found.append(both.limit(1).select(F.lit(name).alias(_DRAWN)))
    for row in reduce(lambda first, second: first.unionAll(second), found).collect():
        raise ValueError(
            f'column "{row[0]}" would release a value of fewer than {least[row[0]]} people: the promise is not kept.'
        )


def _redrawing(survey: Surveyed, k: int, derived: str, random: np.random.Generator) -> Redrawing:
    """Fit what is drawn and what is computed on the sample, with the numbers that the whole table may give away."""
    people = None if survey.person is None else person_numbers(survey.sample.column(survey.person))
    columns = schemes.applied(survey.schemes, survey.sample)
    redrawing = Redrawing.of(columns, people, k, derived, random, survey.whole)
    numbers = {index: _with_usual(one, *survey.whole[index]) for index, one in redrawing.numbers.items()}
    return replace(redrawing, numbers=numbers)


def _with_usual(numbers: SafeNumbers, whole: ColumnParts, people: Ints | None) -> SafeNumbers:
    """Add places at even levels of the whole table's distribution, for parts in which fewer than k people have any."""
    everybody = numbers.for_rows(whole)
    places = everybody.at_ranks(np.arange(_LEVELS, dtype=np.float64), np.arange(len(whole.codes)), people)
    ordered = numbers.ordered
    if len(ordered) > _MOST_RANKS:
        ordered = ordered[np.linspace(0, len(ordered) - 1, _MOST_RANKS).astype(np.int64)]
    return replace(numbers, usual=places, ordered=ordered)


def _without_rows(redrawing: Redrawing) -> Redrawing:
    """Return what is sent to the executors: nothing of any row."""
    nobody = np.zeros(0, np.int64)
    columns = [replace(one, codes=nobody, array=one.array.slice(0, 0)) for one in redrawing.columns]
    return _of_part(redrawing, columns, None)


def _of_part(redrawing: Redrawing, columns: list[ColumnParts], people: Ints | None) -> Redrawing:
    """Return what is known of the whole table for the rows of a part."""
    return replace(
        redrawing,
        columns=columns,
        people=people,
        computed=[replace(one, column=columns[one.formula.column]) for one in redrawing.computed],
        numbers={index: one.for_rows(columns[index]) for index, one in redrawing.numbers.items()},
    )


def _drawn_counts(
    parted: blocks.Parted, person: str | None, keep_out: int, total: int, random: np.random.Generator
) -> dict[int, int]:
    """Share out the rows to be drawn, as parts have them without some people: exact sizes would tell the last one's."""
    numbers = sorted(parted.parts)
    sizes = np.array([parted.parts[number].rows for number in numbers])
    out = np.zeros(len(numbers), np.int64)
    if len(numbers) > 1 and keep_out:
        if person is None:
            out = random.multivariate_hypergeometric(sizes, keep_out)
        else:
            theirs = _rows_of_some(parted.rows, person, keep_out)
            out = np.array([theirs.get(number, 0) for number in numbers])
    shares = apportioned(sizes - out, total)
    return dict(zip(numbers, shares.tolist(), strict=True))


def _rows_of_some(rows: DataFrame, person: str, count: int) -> dict[int, int]:
    """Count the rows of some people, drawn at random, in each part."""
    drawn = F.xxhash64(F.lit(int.from_bytes(os.urandom(7), "big")), column(person)).alias(_DRAWN)
    people = rows.where(column(person).isNotNull()).select(drawn).distinct()
    chosen = [row[0] for row in people.orderBy(F.col(_DRAWN).asc_nulls_last()).limit(count).collect()]
    theirs = rows.where(column(person).isNotNull()).select(PART, drawn).where(F.col(_DRAWN).isin(chosen))
    return {int(row[0]): row[1] for row in theirs.groupBy(PART).count().collect()}
