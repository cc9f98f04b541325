"""The ``[method]`` of a policy: one model for each function that makes a release, from its declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from duckanon._core.common.declare import Function
from duckanon._core.common.rules import OneOf, Rule
from duckanon._methods.boxes.declared import BOX, BOXES
from duckanon._methods.microaggregate.declared import MICROAGGREGATE
from duckanon._methods.recode.declared import RECODE
from duckanon._methods.suppress.declared import SUPPRESS_CELLS

Fraction = Annotated[float, Field(ge=0, le=1)]
Several = Annotated[int, Field(ge=2, strict=True)]
Names = list[Annotated[str, Field(min_length=1)]]


class Part(BaseModel):
    """A part of a policy: what it does not know is refused, a typo promises nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Method(Part):
    """A function that makes the release.

    Attributes
    ----------
    makes_classes
        Whether released rows are those of people, in classes of k: else they are new records.
    """

    makes_classes: ClassVar[bool] = True
    name: str


def method_model(declared: Function, makes_classes: bool = True) -> type[Method]:
    """Return the ``[method]`` of a declared function: its parameters that a policy may give."""
    fields: dict[str, Any] = {"name": (Literal[declared.name], ...)}
    for one in declared.flat:
        if "policy" in one.only_in:
            fields[one.name] = (Annotated[Any, AfterValidator(_following(one.rule))], None)
    model = create_model(declared.name, __base__=Method, __doc__=f"{declared.summary} (anon.{declared.name})", **fields)
    model.makes_classes = makes_classes
    return model


def _following(rule: Rule) -> Callable[[Any], Any]:
    """Return a check that a value is what the declaration allows."""

    def check(value: Any) -> Any:
        if value is not None and not rule.holds(value):
            raise ValueError(f"must be {str(rule).removeprefix('NULL or ')}")
        return value

    return check


class Generalize(Method):
    """Columns made coarser, the same way for all rows: anon.generalize."""

    name: Literal["generalize"]
    beta: Fraction | None = None
    population: Several | None = None
    weights: dict[str, float] | None = None
    methods: dict[str, str] | None = None
    narrowing: Names | None = None


Recode = method_model(RECODE)
SuppressCells = method_model(SUPPRESS_CELLS)
Boxes = method_model(BOXES.having(BOX.having(rule=OneOf("parts", "cell", "rounded"))))
Microaggregate = method_model(MICROAGGREGATE)


class _Spectral(Method):
    makes_classes: ClassVar[bool] = False
    nulls: Literal["error", "category"] | None = None
    k: Annotated[int, Field(ge=1, strict=True)] | None = None
    special: Literal["auto", "off"] | dict[str, list[float]] | None = None
    categories: Names | None = None
    derived: Literal["auto", "off"] | None = None


class SvdSwap(_Spectral):
    """Permuted principal components: anon.svd_swap."""

    name: Literal["svd_swap"]
    tolerance: float | None = None
    log: Names | None = None
    checks: Literal["error", "repair"] | None = None


class Pica(_Spectral):
    """Permuted independent components in clusters: anon.pica."""

    name: Literal["pica"]
    cluster_size: Several | None = None
    basis: Literal["ica", "pca"] | None = None
    clustering: Literal["spectral", "bisect", "auto"] | None = None
    log: Names | None = None
    checks: Literal["error", "repair"] | None = None


class SpectralRelease(_Spectral):
    """New records drawn in clusters: anon.spectral_release."""

    name: Literal["spectral_release"]
    cluster_size: Several | None = None
    rows: Several | None = None
    by: Names | None = None
    keep_out: Annotated[int, Field(ge=0, strict=True)] | None = None


if TYPE_CHECKING:
    AnyMethod: TypeAlias = Method
else:
    AnyMethod = Annotated[
        Generalize | Recode | SuppressCells | Boxes | Microaggregate | SvdSwap | Pica | SpectralRelease,
        Field(discriminator="name"),
    ]
