"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (Release("recode", "duckanon._methods.recode.local_recoding:recode", hands_over=True, coded=True),)
