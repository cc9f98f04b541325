"""The options of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.rules import Number, OneOf, Whole
from duckanon.spark.frames import named_columns, other_column


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan: the options of `anon.plan`, checked, with names as the table spells them."""

    cols: list[str]
    named: Sequence[str]
    k: int
    beta: float
    population: Any
    weights: Any
    hierarchies: Any
    max_suppressed_fraction: float
    methods: Any
    person: str | None
    sensitive: str | None
    l: float  # noqa: E741 - the name that everyone knows it by
    l_kind: str
    c: float
    t: float | None

    @property
    def population_size(self) -> float | None:
        """How many people the table is a sample of; None where they are at hand, or nothing is said."""
        return None if self.population is None or self.has_population_table else float(self.population)

    @property
    def has_population_table(self) -> bool:
        """Whether the people of the population are at hand."""
        return hasattr(self.population, "columns")


def read_plan_options(
    frame: Any,
    cols: Any,
    k: int,
    beta: float,
    population: Any,
    weights: Any,
    hierarchies: Any,
    max_suppressed_fraction: float,
    methods: Any,
    person: Any,
    sensitive: Any,
    l: float,  # noqa: E741
    l_kind: str,
    c: float,
    t: float | None,
) -> PlanOptions:
    """Look at the options of a plan, or refuse them."""
    named = named_columns(frame, "cols", cols)
    ordered = [name for name in frame.columns if name in named]  # as SQL has them: in the order of the table
    refuse_unless(Whole(2), "k", k)
    refuse_unless(Number(0, 1), "max_suppressed_fraction", max_suppressed_fraction)
    if not Number(above=0, most=1).holds(beta) or beta == 1:
        raise ValueError(f"beta must be a number above 0 and below 1; got {beta!r}.")
    if population is not None and not hasattr(population, "columns"):
        refuse_unless(Number(k), "population", population)
    if hasattr(population, "columns"):
        named_columns(population, "population", ordered)
    whose = other_column(frame, "person", person, named)
    secret = other_column(frame, "sensitive", sensitive, named)
    if secret is None and (t is not None or l != 1):
        raise ValueError("sensitive must be given where l or t is; got NULL.")
    if secret is not None and secret == whose:
        raise ValueError(f'sensitive must not be the person; got "{secret}".')
    refuse_unless(Number(0, 1, null=True), "t", t)
    refuse_unless(OneOf("distinct", "entropy", "recursive"), "l_kind", l_kind)
    refuse_unless(Number(above=0), "c", c)
    if not Number(1).holds(l) or (l_kind != "entropy" and l != round(l)):
        raise ValueError(f"l must be a number of at least 1, whole unless l_kind is entropy; got {l!r}.")
    return PlanOptions(
        ordered,
        named,
        k,
        beta,
        population,
        weights,
        hierarchies,
        max_suppressed_fraction,
        methods,
        whose,
        secret,
        l,
        l_kind,
        c,
        t,
    )
