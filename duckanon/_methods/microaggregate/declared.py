"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (
    Release(name="microaggregate", algorithm="duckanon._methods.microaggregate.microaggregated_table:microaggregate"),
)
