"""The ``[method]`` of a policy: one model for each function that makes a release, from its declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, Union

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from duckanon._core.common.declare import Function
from duckanon._core.common.rules import OneOf, Rule, Whole
from duckanon._methods.boxes.declared import BOXES
from duckanon._methods.generalize.declared import GENERALIZE
from duckanon._methods.linked.declared import RELEASE_LINKED
from duckanon._methods.microaggregate.declared import MICROAGGREGATE
from duckanon._methods.recode.declared import RECODE
from duckanon._methods.suppress.declared import SUPPRESS_CELLS
from duckanon._methods.swap.declared import PICA, SVD_SWAP
from duckanon._methods.synthesize.declared import SPECTRAL_RELEASE, SYNTHESIZE
from duckanon._methods.tables.declared import PROTECT_TABLE


class Part(BaseModel):
    """A part of a policy: what it does not know is refused, a typo promises nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Method(Part):
    """A function that makes the release."""

    # whether released rows are those of people, in classes of k: else they are new records
    makes_classes: ClassVar[bool] = True
    makes_cells: ClassVar[bool] = False  # whether it returns counts or sums, with margins, and no rows of people
    name: str


def method_model(declared: Function, makes_classes: bool = True, **rules: Rule) -> type[Method]:
    """Return the ``[method]`` of a declared function: its parameters that a policy may give, some by narrower rules."""
    fields: dict[str, Any] = {"name": (Literal[declared.name], ...)}
    for field in declared.flat:
        if "policy" in field.only_in:
            fields[field.name] = (Annotated[Any, AfterValidator(_following(rules.get(field.name, field.rule)))], None)
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


Generalize = method_model(GENERALIZE, population=Whole(2))  # a policy knows no table of a population
Recode = method_model(RECODE)
SuppressCells = method_model(SUPPRESS_CELLS)
Boxes = method_model(BOXES, box=OneOf("parts", "cell", "rounded"))  # a policy releases no real people's values
Microaggregate = method_model(MICROAGGREGATE)
ReleaseLinked = method_model(RELEASE_LINKED)

_CHECKED = OneOf("error", "repair")
SvdSwap = method_model(SVD_SWAP, makes_classes=False, checks=_CHECKED)
Pica = method_model(PICA, makes_classes=False, checks=_CHECKED)
SpectralRelease = method_model(SPECTRAL_RELEASE, makes_classes=False)
Synthesize = method_model(SYNTHESIZE, makes_classes=False)
ProtectTable = method_model(PROTECT_TABLE, makes_classes=False)  # its previous is a path
ProtectTable.makes_cells = True

MODELS: dict[str, type[Method]] = {
    model.__name__: model
    for model in (
        *(Generalize, Recode, SuppressCells, Boxes, Microaggregate, ReleaseLinked, SvdSwap, Pica),
        *(SpectralRelease, Synthesize, ProtectTable),
    )
}
"""By the names of the functions."""

if TYPE_CHECKING:
    AnyMethod: TypeAlias = Method
else:
    AnyMethod = Annotated[Union[tuple(MODELS.values())], Field(discriminator="name")]  # noqa: UP007 - of a tuple
