"""The thesis's methods for tables of people: `svd_swap` and `pica`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.encoding.table_encoding import FEWEST_ROWS, ROWS_PER_COMPONENT, refuse_too_few
from duckanon._methods.swap.components import principal_components
from duckanon._methods.swap.declared import PICA, SVD_SWAP
from duckanon._methods.swap.pica import SEARCHED_ROWS, Partitioned
from duckanon._methods.swap.svd import swapped_block
from duckanon.spark import blocks, plain_encoding, schemes
from duckanon.spark.frames import ordered_columns, public
from duckanon.spark.schemes import Surveyed
from duckanon.spark.targets import Target, target_called

PART_ROWS = {"svd_swap": 200_000, "pica": 50_000}
"""Rows of a part: what an executor works on at a time."""


@face_of(SVD_SWAP, "spark")
@public
def svd_swap(frame: DataFrame, given: Options, *, to: str) -> DataFrame:
    """Write new records with the same means, variances and correlations: each principal component is permuted.

    Components are those of the whole table; records are swapped inside blocks to which they are assigned at random, and
    each block is checked.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its ends and categories were checked.
    """
    tolerance, checks = given["tolerance"], given["checks"]
    with target_called(frame.sparkSession, to) as target:
        survey = _surveyed(frame, given)
        plain, _ = plain_encoding.fitted(survey, given["k"], given["derived"], given["log"], np.random.default_rng())
        moments = plain_encoding.gram(survey, plain)
        rank = int(principal_components(moments.covariance)[1].shape[1])
        refuse_too_few(survey.rows, rank)
        parted = blocks.parted(survey, 0, PART_ROWS["svd_swap"], _fewest(rank))

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            table = plain.table(part, chance)
            return plain.back(swapped_block(table, plain.encoding_of(table), moments, tolerance, checks, chance))

        return _written(survey, plain, blocks.made(parted, survey.schema, release), checks, target)


@face_of(PICA, "spark")
@public
def pica(frame: DataFrame, given: Options, *, to: str) -> DataFrame:
    """Write new records that keep nonlinear structure too: the independent components of clusters are permuted.

    Clusters are inside parts of similar records, each of which is checked. The search for a size works with a sample.

    Args:
        frame, to: As in `generalize`.

    Returns:
        What was written, after its ends and categories were checked.
    """
    size, checks = given["cluster_size"], given["checks"]
    basis, clustering = given["basis"], given["clustering"]
    with target_called(frame.sparkSession, to) as target:
        survey = _surveyed(frame, given)
        random = np.random.default_rng()
        plain, moments = plain_encoding.fitted(survey, given["k"], given["derived"], given["log"], random)
        rank = int(principal_components(moments.covariance)[1].shape[1])
        refuse_too_few(survey.rows, rank)
        if size is None:
            sample = plain.table(survey.sample, random)
            matrix = plain.encoding.matrix(sample, np.float32)
            encoding = plain.encoding_of(sample)
            result = Partitioned(encoding, matrix, rank, basis, clustering, checks, random).search(None)
            if result.cluster_size is None:
                raise ValueError(result.refusal(survey.rows))
            is_all = result.cluster_size >= min(len(matrix), SEARCHED_ROWS)
            size = float(survey.rows) if is_all else result.cluster_size
        part_rows = PART_ROWS["pica"]
        parted = blocks.parted(survey, blocks.tree_of(survey, part_rows), part_rows, _fewest(rank))

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            table = plain.table(part, chance)
            encoding = plain.encoding_of(table)
            matrix = encoding.matrix(table, np.float32)
            own = Partitioned(encoding, matrix, rank, basis, clustering, checks, chance)
            return plain.back(own.enlarged(size) if given["cluster_size"] is None else own.released(size, None))

        return _written(survey, plain, blocks.made(parted, survey.schema, release), checks, target)


def _surveyed(frame: DataFrame, given: Options) -> Surveyed:
    """Survey the columns of a call in the order of the table."""
    return schemes.surveyed(frame, ordered_columns(frame, given["cols"], at_least=2), None, given["k"], given)


def _fewest(rank: int) -> int:
    return max(FEWEST_ROWS, ROWS_PER_COMPONENT * rank)


def _written(
    survey: Surveyed, plain: plain_encoding.Plain, released: DataFrame, checks: str, target: Target
) -> DataFrame:
    """Write a release; a repair may have left rows out, but no more than half."""
    fewest = survey.rows // 2 if checks == "repair" else survey.rows
    return blocks.written(released, fewest, survey.rows, target, plain.refused)
