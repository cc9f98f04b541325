"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (
    Release(
        name="spectral_release",
        algorithm="duckanon._methods.synthesize.spectral_release:spectral_release",
        tables=("source",),
    ),
)
