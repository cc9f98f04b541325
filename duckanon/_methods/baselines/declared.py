"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (
    Release("swap", "duckanon._methods.baselines.swap:swap"),
    Release("additive_noise", "duckanon._methods.baselines.additive_noise:additive_noise", tables=("source",)),
    Release("data_shuffle", "duckanon._methods.baselines.copula_releases:data_shuffle", tables=("source",)),
    Release("copula_synthesize", "duckanon._methods.baselines.copula_releases:copula_synthesize", tables=("source",)),
)
