"""All declarations: every function that a package lets SQL call."""

from __future__ import annotations

import duckanon._measure.assess.declared
import duckanon._measure.attacks.declared
import duckanon._measure.declared
import duckanon._measure.queries.declared
import duckanon._measure.risk.declared
import duckanon._measure.utility.declared
import duckanon._methods.baselines.declared
import duckanon._methods.boxes.declared
import duckanon._methods.generalize.declared
import duckanon._methods.intervals.declared
import duckanon._methods.microaggregate.declared
import duckanon._methods.recode.declared
import duckanon._methods.suppress.declared
import duckanon._methods.swap.declared
import duckanon._methods.synthesize.declared
from duckanon._core.common.declare import Declaration, Release

DECLARATIONS: tuple[Declaration, ...] = (
    Release(name="identity", algorithm="duckanon._bridge.registry:identity"),
    *duckanon._measure.assess.declared.FUNCTIONS,
    *duckanon._measure.risk.declared.FUNCTIONS,
    *duckanon._methods.generalize.declared.FUNCTIONS,
    *duckanon._methods.boxes.declared.FUNCTIONS,
    *duckanon._methods.intervals.declared.FUNCTIONS,
    *duckanon._methods.recode.declared.FUNCTIONS,
    *duckanon._methods.swap.declared.FUNCTIONS,
    *duckanon._methods.synthesize.declared.FUNCTIONS,
    *duckanon._methods.baselines.declared.FUNCTIONS,
    *duckanon._methods.microaggregate.declared.FUNCTIONS,
    *duckanon._methods.suppress.declared.FUNCTIONS,
    *duckanon._measure.attacks.declared.FUNCTIONS,
    *duckanon._measure.queries.declared.FUNCTIONS,
    *duckanon._measure.utility.declared.FUNCTIONS,
    *duckanon._measure.declared.FUNCTIONS,
)

PUBLIC = {declared.name: declared for declared in DECLARATIONS if declared.is_public}
"""Those that users call, by name."""
