"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (
    Release(name="swap", algorithm="duckanon._methods.baselines.swap:swap"),
    Release(
        name="additive_noise", algorithm="duckanon._methods.baselines.additive_noise:additive_noise", tables=("source",)
    ),
    Release(
        name="data_shuffle", algorithm="duckanon._methods.baselines.copula_releases:data_shuffle", tables=("source",)
    ),
    Release(
        name="copula_synthesize",
        algorithm="duckanon._methods.baselines.copula_releases:copula_synthesize",
        tables=("source",),
    ),
)
