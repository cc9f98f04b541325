"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.contracts import (
    DrawsRows,
    InvariantUnder,
    KeepsRows,
    KeepsTypes,
    OnlyColumns,
    SameDistribution,
    SharedValues,
)
from duckanon._core.common.declare import Parameter, Release
from duckanon._core.common.parameters import (
    COLS,
    ENCODED_NULLS,
    KEY,
    LOG,
    ROWS,
    SEED,
    TBL,
    UNRELEASED_PERSON,
    K,
    refuse_person_in_cols,
)
from duckanon._core.common.rules import Flag, Number

SWAP = Release(
    name="swap",
    algorithm="duckanon._methods.baselines.additive_noise:swap",
    stage="release",
    summary="Permutes each column independently: keeps every distribution, and no relation between columns.",
    promises=(
        SameDistribution("cols"),
        KeepsRows(),
        OnlyColumns("cols"),
        KeepsTypes("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(TBL, COLS.having(meaning="The columns to permute; unique values are released as they are"), SEED),
)

ADDITIVE_NOISE = Release(
    name="additive_noise",
    algorithm="duckanon._methods.baselines.additive_noise:additive_noise",
    stage="release",
    summary="Adds noise with the table's own covariance: keeps means and covariances, and protects nobody; for "
    "comparison.",
    promises=(
        KeepsRows(),
        OnlyColumns("cols"),
        KeepsTypes("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns to release"),
        Parameter("noise_fraction", Number(above=0), "The variance of the noise as a share of the column's", 0.1),
        Parameter(
            "correlated",
            Flag(),
            "true: the noise has the covariance of the table; false: it is independent between columns, and "
            "correlations shrink",
            True,
        ),
        KEY,
        LOG,
        ENCODED_NULLS,
        SEED,
    ),
    tables=("source",),
)

DATA_SHUFFLE = Release(
    name="data_shuffle",
    algorithm="duckanon._methods.baselines.copulas:data_shuffle",
    stage="release",
    summary="Rearranges every column to the ranks of a normal sample: keeps distributions exactly and rank "
    "correlations nearly.",
    promises=(
        SameDistribution("cols"),
        KeepsRows(),
        OnlyColumns("cols"),
        KeepsTypes("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns to rearrange; unique values are released as they are"),
        ENCODED_NULLS,
        SEED,
    ),
    tables=("source",),
)

COPULA_SYNTHESIZE = Release(
    name="copula_synthesize",
    algorithm="duckanon._methods.baselines.copulas:copula_synthesize",
    stage="release",
    summary="Draws new records with the table's rank correlations and distributions, and no value shared by fewer "
    "than k people.",
    promises=(
        SharedValues(),
        DrawsRows(),
        OnlyColumns("cols"),
        KeepsTypes("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns to release"),
        ROWS,
        K.having(
            meaning="The smallest number of people who share a released value; numbers and dates that nobody has are "
            "released too. Rarer categories, and rare missing values, are left out",
            default=10,
        ),
        ENCODED_NULLS,
        SEED,
        UNRELEASED_PERSON,
    ),
    checks=(refuse_person_in_cols,),
    tables=("source",),
)

FUNCTIONS = (SWAP, ADDITIVE_NOISE, DATA_SHUFFLE, COPULA_SYNTHESIZE)
