"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.contracts import AtLeastKPeople, InvariantUnder, KeepsRows, KeepsTypes, OnlyColumns
from duckanon._core.common.declare import Parameter, Release, Report
from duckanon._core.common.parameters import (
    CATEGORIES,
    CLUSTER_SIZE,
    COLS,
    DERIVED,
    ENCODED_NULLS,
    KEY,
    LOG,
    SEED,
    SPECIAL,
    TBL,
    UNRELEASED_PERSON,
    K,
    refuse_person_in_cols,
)
from duckanon._core.common.rules import Number, OneOf, TableName, Whole

TRIALS = pa.schema(
    [
        ("step", pa.int64()),
        ("purpose", pa.string()),
        ("cluster_size", pa.int64()),
        *((f"{name}_shift", pa.float64()) for name in ("distance", "ambiguity", "uncertainty")),
        *((name, pa.float64()) for name in ("exact_copies", "unique_copies", "near_copies")),
        ("passed", pa.bool_()),
        ("chosen", pa.bool_()),
    ]
)

_COLS = COLS.having(meaning="The columns to release")
_CHECKS = Parameter(
    "checks",
    OneOf("error", "repair", "off"),
    "The release is searched for copies of records, near copies of isolated records and the order of the rows: "
    "`'error'` refuses a release in which one is found, `'repair'` suppresses those rows, `'off'` does not search",
    "error",
)
_K = Parameter(
    "k",
    Whole(1),
    "The smallest and the largest number of a column become the rounded medians of the `k` most extreme ones, and "
    "categories shared by fewer than `k` people are merged; 1 changes neither",
    10,
)
_READING = (SEED.without("spark"), _K, SPECIAL, CATEGORIES, DERIVED)

SVD_SWAP = Release(
    name="svd_swap",
    algorithm="duckanon._methods.swap.svd:svd_swap",
    stage="release",
    summary="Permutes each principal component: new records with the same means, variances and correlations.",
    promises=(
        KeepsRows(),
        OnlyColumns("cols"),
        KeepsTypes("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        TBL,
        _COLS,
        Parameter(
            "tolerance",
            Number(above=0),
            "The largest correlation of two permuted components, in units of 1/sqrt(rows - 1): below 100,000 rows they "
            "are permuted again until they keep it",
            1.5,
        ),
        LOG,
        ENCODED_NULLS,
        _CHECKS,
        *_READING,
    ),
    tables=("source",),
)

_CLUSTERS = (
    Parameter(
        "basis",
        OneOf("ica", "pca"),
        "`'ica'`: independent components; `'pca'`: principal components, far cheaper to compute and safer for isolated "
        "records",
        "ica",
    ),
    Parameter(
        "clustering",
        OneOf("auto", "spectral", "bisect"),
        "`'spectral'`: spectral clustering, for some thousands of rows; `'bisect'`: repeated 2-means, whose cost is "
        "linear in the rows; `'auto'`: chosen by the number of rows",
        "auto",
    ).without("large"),
    Parameter(
        "reference",
        TableName(null=True),
        "A table of people who are not in `tbl`, to compare with during the search for a cluster size. NULL: every "
        "record is compared with all others",
        None,
    ).without("large", "spark", "policy"),
)

PICA = Release(
    name="pica",
    algorithm="duckanon._methods.swap.svd:pica",
    stage="release",
    summary="Permutes the independent components of clusters: new records that keep nonlinear structure.",
    promises=(
        KeepsRows(),
        OnlyColumns("cols"),
        KeepsTypes("cols"),
        InvariantUnder("storage", "others"),
    ),
    parameters=(
        TBL,
        _COLS,
        CLUSTER_SIZE.having(
            meaning=f"{CLUSTER_SIZE.meaning}. NULL: the smallest size whose release passes the tests of "
            "`anon.privacy_test`; `anon.pica_report` shows the search"
        ),
        *_CLUSTERS,
        LOG,
        ENCODED_NULLS,
        _CHECKS,
        *_READING,
    ),
    tables=("source", "reference"),
)

PICA_REPORT = Report(
    name="pica_report",
    algorithm="duckanon._methods.swap.svd:pica_report",
    stage="release",
    summary="Returns the search for the cluster size of anon.pica: one row per trial release with its privacy "
    "measures.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=(TBL, _COLS, *_CLUSTERS, LOG, ENCODED_NULLS, _CHECKS, *_READING),
    schema=TRIALS,
    tables=("table", "reference"),
)

_K_ROWS = K.having(meaning="The smallest number of rows that share a released record, or of people with `person`")
_LABEL = Parameter(
    "label",
    OneOf("mean", "member"),
    "`'mean'`: the mean of the group, which shrinks variances; `'member'`: the real record nearest to it, whose "
    "categories and decimals are possible ones",
    "mean",
)

SPECTRAL_RHS = Release(
    name="spectral_rhs",
    algorithm="duckanon._methods.swap.rhs:spectral_rhs",
    stage="release",
    summary="Microaggregates along principal components: every released record stands for at least k.",
    promises=(
        AtLeastKPeople("cols"),
        KeepsRows(),
        OnlyColumns("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(TBL, _COLS, _K_ROWS, _LABEL, KEY, LOG, ENCODED_NULLS, SEED, UNRELEASED_PERSON),
    checks=(refuse_person_in_cols,),
    tables=("source",),
)

RHS = Release(
    name="rhs",
    algorithm="duckanon._methods.swap.rhs:rhs",
    stage="release",
    summary="Recursive histogram sanitization, for comparison: splits all columns at once, and fails where there are "
    "many.",
    promises=(
        AtLeastKPeople("cols"),
        KeepsRows(),
        OnlyColumns("cols"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        TBL,
        _COLS,
        K.having(meaning="The group size to aim at: groups of up to 2k rows, or people, are not split"),
        _LABEL,
        KEY,
        LOG,
        ENCODED_NULLS,
        Parameter(
            "checks",
            OneOf("error", "off"),
            "`'error'` refuses a release with groups of fewer than `k` rows, or people; `'off'` returns it",
            "error",
        ),
        SEED,
        UNRELEASED_PERSON,
    ),
    checks=(refuse_person_in_cols,),
    tables=("source",),
)

FUNCTIONS = (SVD_SWAP, PICA, SPECTRAL_RHS, RHS, PICA_REPORT)
