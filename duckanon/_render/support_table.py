"""The functions of ``anon`` that are rendered as SQL of other engines, and by which call; the reference draws it."""

from __future__ import annotations

RENDERED = {
    "k_anonymity": "render_check('k', ...)",
    "l_diversity": "render_check('l', ...)",
    "t_closeness": "render_check('t', ...)",
    "individual_risk": "render_check('individual_risk', ...)",
    "apply_plan": "render(plan, ...)",
    "generalize": "render(plan, ..., k=10)",
}
"""By the name of the function. `generalize` is rendered in two steps: ``anon.plan`` makes the plan in DuckDB."""
