"""All declarations: every function that a package lets SQL call."""

from __future__ import annotations

import duckanon.assess.declared
import duckanon.boxes.declared
import duckanon.generalize.declared
import duckanon.intervals.declared
import duckanon.measure.declared
import duckanon.microaggregate.declared
import duckanon.new_records.declared
import duckanon.recode.declared
import duckanon.risk.declared
import duckanon.suppress.declared
from duckanon.common.declare import Declaration, Release

DECLARATIONS: tuple[Declaration, ...] = (
    Release(name="identity", algorithm="duckanon.bridge.registry:identity"),
    *duckanon.assess.declared.FUNCTIONS,
    *duckanon.risk.declared.FUNCTIONS,
    *duckanon.generalize.declared.FUNCTIONS,
    *duckanon.boxes.declared.FUNCTIONS,
    *duckanon.intervals.declared.FUNCTIONS,
    *duckanon.recode.declared.FUNCTIONS,
    *duckanon.new_records.declared.FUNCTIONS,
    *duckanon.microaggregate.declared.FUNCTIONS,
    *duckanon.suppress.declared.FUNCTIONS,
    *duckanon.measure.declared.FUNCTIONS,
)

PUBLIC = {declared.name: declared for declared in DECLARATIONS if declared.is_public}
"""Those that users call, by name."""
