"""Pictures of what the functions of `anon` return: relation in, matplotlib figure out, without pyplot's global state.

Each function takes a DuckDB relation, an Arrow table, or anything that gives one, and returns a
`matplotlib.figure.Figure`, which notebooks show; `figure.savefig` writes it in any format. `svg` writes it as the
report does, the same bytes each time.
"""

from duckanon.plot.assessment import class_sizes, column_sets, quasi_identifiers
from duckanon.plot.privacy import prediction_curves, risk_utility
from duckanon.plot.statistics import boxes, correlations, distributions, kernel_components
from duckanon.plot.vector import svg

__all__ = [
    "boxes",
    "class_sizes",
    "column_sets",
    "correlations",
    "distributions",
    "kernel_components",
    "prediction_curves",
    "quasi_identifiers",
    "risk_utility",
    "svg",
]
