"""New records of values shared by many people: `synthesize` and `spectral_release`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.common.labels import OTHER
from duckanon._core.common.people import number_people
from duckanon._core.encoding.column_codecs import FEWEST_ROWS, ROWS_PER_COMPONENT
from duckanon._core.encoding.whole_sources import apply_schemes
from duckanon._methods.synthesize.declared import SPECTRAL_RELEASE, SYNTHESIZE
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.table_groups import find_smallest_size, leave_out_people
from duckanon._methods.synthesize.table_parts import (
    Synthesis,
    drop_rows,
    fewest_people,
    fit_redrawing,
    name_category_numbers,
    restrict_to_part,
)
from duckanon.spark import blocks, schemes
from duckanon.spark.frames import column, find_ordered_columns, other_column, public
from duckanon.spark.partwise import PART
from duckanon.spark.schemes import HOLDERS, VALUE, Surveyed, holders
from duckanon.spark.targets import target_called

PART_ROWS = 100_000
"""Rows of a part: what an executor works on at a time."""
_PER_KEPT_OUT = 4  # people of a part for each that is kept out: at most a quarter is
_DRAWN = "_duckanon_drawn"


@face_of(SPECTRAL_RELEASE, "spark")
@public
def spectral_release(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write new records that keep what clusters of similar records have in common, of values shared by many people.

    ``keep_out`` people are kept out of every part of the table.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after it was searched for values of fewer people.
    """
    k, rows, keep_out, size = (options[name] for name in ("k", "rows", "keep_out", "cluster_size"))
    names = find_ordered_columns(frame, options["cols"], at_least=2)
    person = other_column(frame, "person", options["person"], names)
    with target_called(frame.sparkSession, to) as target:
        survey = schemes.survey_columns(frame, names, person, k, options)
        random = np.random.default_rng()
        redrawing = _redrawing(survey, k, options["derived"], random)
        fewest = max(FEWEST_ROWS, ROWS_PER_COMPONENT * redrawing.rank, k, _PER_KEPT_OUT * keep_out)
        parted = blocks.send_to_parts(survey, blocks.tree_of(survey, PART_ROWS), PART_ROWS, fewest)
        counts = _draw_counts(parted, person, keep_out, rows or survey.rows, random)
        if size is None:
            size = find_smallest_size(redrawing, np.arange(redrawing.rows), keep_out, random)
        sent, ways, types = drop_rows(redrawing), survey.schemes, survey.types

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            people, part = None if person is None else number_people(part.column(person)), types.read(part)
            model = restrict_to_part(sent, apply_schemes(ways, part), people)
            used = leave_out_people(np.arange(part.num_rows), people, keep_out, chance)
            return types.write(model.table(model.redraw(used, counts[number], size, chance), part.select(names).schema))

        def refuse_rare(draft: DataFrame) -> None:
            _refuse_rare(survey, draft, dict(zip(names, redrawing.least, strict=True)))

        total = sum(counts.values())
        return blocks.write_release(
            blocks.release_parts(parted, survey.schema, release), total, total, target, refuse_rare
        )


@face_of(SYNTHESIZE, "spark")
@public
def synthesize(frame: DataFrame, options: Options, *, to: str) -> DataFrame:
    """Write new records that keep what belongs together, drawn column by column, of values shared by many people.

    The table is divided at random into parts, all rows of a person in one. Each is drawn by trees of its own; which
    values are releasable, and how often each choice is drawn, is decided over the whole table. ``keep_out`` people are
    kept out of every part.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after it was searched for values of fewer people.
    """
    k, rows, keep_out = (options[name] for name in ("k", "rows", "keep_out"))
    names = find_ordered_columns(frame, options["cols"], at_least=2)
    person = other_column(frame, "person", options["person"], names)
    with target_called(frame.sparkSession, to) as target:
        survey = schemes.survey_columns(frame, names, person, k, options, name_category_numbers)
        random = np.random.default_rng()
        redrawing = _redrawing(survey, k, options["derived"], random)
        synthesis = Synthesis.of(redrawing, survey.counts, options["leaf"], keep_out, options["derived"], random)
        parted = blocks.send_to_parts(survey, 0, PART_ROWS, fewest_people(k, options["leaf"], keep_out))
        counts = _draw_counts(parted, person, keep_out, rows or survey.rows, random)
        ways, types = survey.schemes, survey.types

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            people, part = None if person is None else number_people(part.column(person)), types.read(part)
            schema = part.select(names).schema
            return types.write(synthesis.draw(apply_schemes(ways, part), people, counts[number], schema, chance))

        def refuse_rare(draft: DataFrame) -> None:
            _refuse_rare(survey, draft, dict(zip(names, redrawing.least, strict=True)))

        total = sum(counts.values())
        return blocks.write_release(
            blocks.release_parts(parted, survey.schema, release), total, total, target, refuse_rare
        )


def _refuse_rare(survey: Surveyed, draft: DataFrame, least: Mapping[str, int]) -> None:
    """Count again, on what was written, that no value is there that fewer people hold than a column's least.

    ``other`` is what merged values are called, whoever has a value that is written so.
    """
    rare_values = []
    for name, few in least.items():
        held = holders(survey.frame, name, survey.person).where(F.col(HOLDERS) < few).select(VALUE)
        held = held.where(~F.col(VALUE).cast("string").eqNullSafe(OTHER))
        drawn = draft.select(column(name).alias(_DRAWN)).distinct()
        both = drawn.join(held, F.col(_DRAWN).eqNullSafe(F.col(VALUE)), "inner")
        rare_values.append(both.limit(1).select(F.lit(name).alias(_DRAWN)))
    for row in reduce(lambda first, second: first.unionAll(second), rare_values).collect():
        raise ValueError(
            f'column "{row[0]}" would release a value of fewer than {least[row[0]]} people: the promise is not kept.'
        )


def _redrawing(survey: Surveyed, k: int, derived: str, random: np.random.Generator) -> Redrawing:
    """Fit what is drawn and what is computed on the sample."""
    people = None if survey.person is None else number_people(survey.sample.column(survey.person))
    return fit_redrawing(
        apply_schemes(survey.schemes, survey.types.read(survey.sample)), people, k, derived, random, survey.whole
    )


def _draw_counts(
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
    shares = apportion(sizes - out, total)
    return dict(zip(numbers, shares.tolist(), strict=True))


def _rows_of_some(rows: DataFrame, person: str, count: int) -> dict[int, int]:
    """Count the rows of some people, drawn at random, in each part."""
    drawn = F.xxhash64(F.lit(int.from_bytes(os.urandom(7), "big")), column(person)).alias(_DRAWN)
    people = rows.where(column(person).isNotNull()).select(drawn).distinct()
    chosen = [row[0] for row in people.orderBy(F.col(_DRAWN).asc_nulls_last()).limit(count).collect()]
    theirs = rows.where(column(person).isNotNull()).select(PART, drawn).where(F.col(_DRAWN).isin(chosen))
    return {int(row[0]): row[1] for row in theirs.groupBy(PART).count().collect()}
