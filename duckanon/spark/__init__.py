"""duckanon on Spark: DataFrames in, DataFrames out, with the names and options of SQL.

Only the DataFrame API is used, so that all of it works over Spark Connect too. Checks are computed by the cluster;
plans are fitted on the driver to what the cluster has counted; releases are written (``to``), and what they promise is
counted on what was written before it is published.
"""

from __future__ import annotations

from typing import Any

try:
    import pyspark  # noqa: F401 - here, so that whoever lacks it is told so in one sentence
    import sqlglot  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "duckanon.spark needs pyspark and sqlglot; pip install 'duckanon[spark]' brings them."
    ) from missing

from duckanon.spark.checks import class_sizes, individual_risk, k_anonymity
from duckanon.spark.diversity import l_diversity, t_closeness
from duckanon.spark.generalize import generalize
from duckanon.spark.partwise import boxes, microaggregate, recode
from duckanon.spark.plans import apply_plan, plan
from duckanon.spark.swap_releases import pica, svd_swap
from duckanon.spark.synthesized import spectral_release, synthesize

__all__ = [
    "apply_plan",
    "boxes",
    "class_sizes",
    "generalize",
    "individual_risk",
    "k_anonymity",
    "l_diversity",
    "microaggregate",
    "pica",
    "plan",
    "recode",
    "spectral_release",
    "svd_swap",
    "synthesize",
    "t_closeness",
]


def __getattr__(name: str) -> Any:
    """Refuse a name that does not exist, and say where to find it."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"duckanon.spark.{name} does not exist: on Spark there are {', '.join(__all__)}; call others of anon in DuckDB."
    )
