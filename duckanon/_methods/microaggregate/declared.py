"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (Release("microaggregate", "duckanon._methods.microaggregate.microaggregated_table:microaggregate"),)
