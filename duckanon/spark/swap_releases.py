"""The thesis's methods for tables of people: `svd_swap` and `pica`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import Number, OneOf, Whole
from duckanon._core.encoding.table_encoding import FEWEST_ROWS, ROWS_PER_COMPONENT, refuse_too_few
from duckanon._core.privacy.self_check import CHECKS
from duckanon._methods.swap.cluster_swap import BASES
from duckanon._methods.swap.clusters import METHODS
from duckanon._methods.swap.components import principal_components
from duckanon._methods.swap.pica import LEAST_CLUSTER_SIZE, SEARCHED_ROWS, Partitioned
from duckanon._methods.swap.svd import swapped_block
from duckanon.spark import blocks, plain_encoding, schemes
from duckanon.spark.frames import column, named_columns, public, refuse_option
from duckanon.spark.schemes import Surveyed
from duckanon.spark.targets import target_called

PART_ROWS = {"svd_swap": 200_000, "pica": 50_000}
"""Rows of a part: what an executor works on at a time."""


@public
def svd_swap(
    frame: Any,
    cols: Any,
    tolerance: float = 1.5,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    checks: str = "error",
    seed: int | None = None,
    k: int = 10,
    special: str | Mapping[str, Any] = "auto",
    categories: Any = None,
    derived: str = "auto",
    *,
    to: str,
) -> Any:
    """Write new records with the same means, variances and correlations: each principal component is permuted.

    Parameters
    ----------
    frame, cols, tolerance, log, nulls, checks, k, special, categories, derived
        As in `anon.svd_swap`. Components are those of the whole table; records are swapped inside blocks to which they
        are assigned at random, and each block is checked.
    seed
        None: it is not there on Spark.
    to
        As in `generalize`.

    Returns
    -------
    pyspark.sql.DataFrame
        What was written, after its ends and categories were looked through.
    """
    refuse_option("seed", seed, None)
    refuse_unless(Number(above=0), "tolerance", tolerance)
    names = _checked_names(frame, cols, nulls, checks, k, derived)
    with target_called(frame.sparkSession, to) as target:
        options = {"special": special, "categories": categories, "nulls": nulls}
        survey = schemes.surveyed(frame, names, None, k, options)
        plain, _ = plain_encoding.fitted(survey, k, derived, log, np.random.default_rng())
        moments = plain_encoding.gram(survey, plain)
        rank = int(principal_components(moments.covariance)[1].shape[1])
        refuse_too_few(survey.rows, rank)
        parted = blocks.parted(survey, 0, PART_ROWS["svd_swap"], _fewest(rank))

        def release(number: int, part: pa.Table, chance: np.random.Generator) -> pa.Table:
            table = plain.table(part, chance)
            return plain.back(swapped_block(table, plain.encoding_of(table), moments, tolerance, checks, chance))

        return _written(survey, plain, blocks.made(parted, _schema(survey), release), checks, target)


@public
def pica(
    frame: Any,
    cols: Any,
    cluster_size: float | None = None,
    basis: str = "ica",
    clustering: str = "auto",
    reference: Any = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    checks: str = "error",
    seed: int | None = None,
    k: int = 10,
    special: str | Mapping[str, Any] = "auto",
    categories: Any = None,
    derived: str = "auto",
    *,
    to: str,
) -> Any:
    """Write new records that keep nonlinear structure too: the independent components of clusters are permuted.

    Parameters
    ----------
    frame, cols, cluster_size, basis, clustering, log, nulls, checks, k, special, categories, derived
        As in `anon.pica`; clusters are inside parts of similar records, each of which is checked. The search for a
        size works with a sample, as it does there.
    reference, seed
        None: they are not there on Spark.
    to
        As in `generalize`.

    Returns
    -------
    pyspark.sql.DataFrame
        What was written, after its ends and categories were looked through.
    """
    refuse_option("reference", reference, None)
    refuse_option("seed", seed, None)
    refuse_unless(Number(LEAST_CLUSTER_SIZE, null=True), "cluster_size", cluster_size)
    refuse_unless(OneOf(*BASES), "basis", basis)
    refuse_unless(OneOf(*METHODS), "clustering", clustering)
    names = _checked_names(frame, cols, nulls, checks, k, derived)
    with target_called(frame.sparkSession, to) as target:
        options = {"special": special, "categories": categories, "nulls": nulls}
        survey = schemes.surveyed(frame, names, None, k, options)
        random = np.random.default_rng()
        plain, moments = plain_encoding.fitted(survey, k, derived, log, random)
        rank = int(principal_components(moments.covariance)[1].shape[1])
        refuse_too_few(survey.rows, rank)
        size = None if cluster_size is None else float(cluster_size)
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
            return plain.back(own.released(size, None) if cluster_size is not None else own.enlarged(size))

        return _written(survey, plain, blocks.made(parted, _schema(survey), release), checks, target)


def _checked_names(frame: Any, cols: Any, nulls: Any, checks: Any, k: Any, derived: Any) -> list[str]:
    """Refuse options that cannot be, and return the columns in the order of the table."""
    refuse_unless(OneOf("error", "category"), "nulls", nulls)
    refuse_unless(OneOf(*CHECKS), "checks", checks)
    refuse_unless(Whole(1), "k", k)
    refuse_unless(OneOf("auto", "off"), "derived", derived)
    named = named_columns(frame, "cols", cols, at_least=2)
    return [name for name in frame.columns if name in named]


def _fewest(rank: int) -> int:
    return max(FEWEST_ROWS, ROWS_PER_COMPONENT * rank)


def _schema(survey: Surveyed) -> Any:
    return survey.frame.select(*(column(name) for name in survey.names)).schema


def _written(survey: Surveyed, plain: plain_encoding.Plain, released: Any, checks: str, target: Any) -> Any:
    """Write a release; a repair may have left rows out, but no more than half."""
    fewest = survey.rows // 2 if checks == "repair" else survey.rows
    return blocks.written(released, fewest, survey.rows, target, plain.refused)
