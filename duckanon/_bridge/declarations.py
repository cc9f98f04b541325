"""All declarations: every function that a package lets SQL call."""

from __future__ import annotations

from duckanon._core.common.declare import Declaration, Release
from duckanon._measure import declared as measure
from duckanon._measure.assess import declared as assess
from duckanon._measure.attacks import declared as attacks
from duckanon._measure.risk import declared as risk
from duckanon._measure.utility import declared as utility
from duckanon._methods.baselines import declared as baselines
from duckanon._methods.boxes import declared as boxes
from duckanon._methods.dp import declared as dp
from duckanon._methods.generalize import declared as generalize
from duckanon._methods.intervals import declared as intervals
from duckanon._methods.linked import declared as linked
from duckanon._methods.microaggregate import declared as microaggregate
from duckanon._methods.recode import declared as recode
from duckanon._methods.suppress import declared as suppress
from duckanon._methods.swap import declared as swap
from duckanon._methods.synthesize import declared as synthesize
from duckanon._methods.tables import declared as tables

_MODULES = (
    assess,
    risk,
    generalize,
    boxes,
    intervals,
    recode,
    linked,
    swap,
    synthesize,
    baselines,
    microaggregate,
    suppress,
    tables,
    dp,
    attacks,
    utility,
    measure,
)

DECLARED_IN: dict[str, str] = {declared.name: module.__name__ for module in _MODULES for declared in module.FUNCTIONS}
"""The module that declares each function."""

DECLARATIONS: tuple[Declaration, ...] = (
    Release(name="identity", algorithm="duckanon._bridge.registry:identity"),
    *(declared for module in _MODULES for declared in module.FUNCTIONS),
)

PUBLIC = {declared.name: declared for declared in DECLARATIONS if declared.is_public}
"""The functions that users call, by name."""
