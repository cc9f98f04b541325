"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon.common.declare import Release

FUNCTIONS = (Release(name="microaggregate", algorithm="duckanon.microaggregate.functions:microaggregate"),)
