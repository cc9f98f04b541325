"""The options of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duckanon._core.common.parameters import Sensitive
from duckanon.spark.frames import named_columns, other_column


@dataclass(frozen=True)
class PlanOptions:
    """The options of `anon.plan` that are needed again, with names as the table spells them.

    Attributes:
        cols: In the order of the table, as SQL has them.
        named: In the order of the call, to which a list of weights is parallel.
    """

    cols: list[str]
    named: Sequence[str]
    k: int
    beta: float
    population: Any
    max_suppressed_fraction: float
    person: str | None
    spread: Sensitive

    @property
    def sensitive(self) -> str | None:
        """The column whose values are to be diverse."""
        return self.spread.sensitive

    @property
    def population_size(self) -> float | None:
        """How many people the table is a sample of; None where they are at hand, or unspecified."""
        return None if self.population is None or self.has_population_table else float(self.population)

    @property
    def has_population_table(self) -> bool:
        """Whether the people of the population are at hand."""
        return hasattr(self.population, "columns")


def read_plan_options(frame: Any, given: Mapping[str, Any]) -> PlanOptions:
    """Find the columns that a call names, or refuse it."""
    named = named_columns(frame, "cols", given["cols"])
    population, spread = given["population"], given["sensitive"]
    if hasattr(population, "columns"):
        named_columns(population, "population", named)
    return PlanOptions(
        [name for name in frame.columns if name in named],
        named,
        given["k"],
        given["beta"],
        population,
        given["max_suppressed_fraction"],
        other_column(frame, "person", given["person"], named),
        replace(spread, sensitive=other_column(frame, "sensitive", spread.sensitive, named)),
    )
