"""The paired audit of a way to release, as ``anon.membership_audit`` runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked_by, generator, refuse_unless
from duckanon._core.common.arrays import Ints, Matrix, sampled_rows
from duckanon._core.common.declare import report_rows
from duckanon._core.common.imports import imported
from duckanon._core.common.rules import IN_SQL, OneOf
from duckanon._core.encoding.measurement_encoding import measured_encoding
from duckanon._core.encoding.table_encoding import FEWEST_ROWS
from duckanon._core.privacy.audit import LIMIT, audits
from duckanon._measure.attacks.declared import AUDITED, MEMBERSHIP_AUDIT
from duckanon._methods.baselines import declared as baselines
from duckanon._methods.swap import declared as swap
from duckanon._methods.synthesize import declared as synthesize

METHODS = {
    function.name: function
    for function in (*swap.FUNCTIONS, *synthesize.FUNCTIONS, *baselines.FUNCTIONS)
    if function.name in AUDITED
}
"""The releases that can be audited."""
_KEPT_BACK = ("tbl", "cols", "seed", "key", "person", "reference", "by", "rows")
"""Parameters of theirs that are no options here."""


@checked_by(MEMBERSHIP_AUDIT)
def membership_audit(
    table: pa.Table | None,
    *,
    method: str,
    options: Mapping[str, Any] | None,
    splits: int,
    max_rows: int,
    log: list[str] | None,
    special: Any,
    categories: list[str] | None,
    derived: str,
    seed: int | None,
) -> pa.Table:
    """Release random halves of a table, and tell whether isolated people are nearer to releases that they are part of.

    `log`, `special` and `categories` are the release's own too, where it has these options. A row is a scale of
    :func:`duckanon._core.privacy.audit.audits`.
    """
    random = generator(seed)
    rows = 0 if table is None else table.num_rows
    if table is None or rows < 2 * FEWEST_ROWS:
        raise ValueError(
            f"an audit releases halves of at least {FEWEST_ROWS} rows, so it needs {2 * FEWEST_ROWS}; got {rows}."
        )
    if rows > max_rows:
        table = table.take(pa.array(sampled_rows(max_rows, rows, random)))
    encoding = measured_encoding(table, log, special, categories, derived)
    points = encoding.matrix(table)
    make = _maker(method, table.column_names, options or {}, {"log": log, "special": special, "categories": categories})

    def release(places: Ints, draw: np.random.Generator) -> Matrix:
        made = make(table.take(pa.array(places)), seed=int(draw.integers(2**31)))
        return encoding.matrix(made.read_all().select(table.column_names))

    return report_rows(
        [
            {
                "scale": scale,
                "people": audit.people,
                "releases": 2 * splits,
                "win_rate": audit.win_rate,
                "standard_error": audit.standard_error,
                "tolerance": LIMIT,
                "pass": audit.passed,
            }
            for scale, audit in audits(points, release, splits=splits, seed=random).items()
        ],
        MEMBERSHIP_AUDIT.schema,
    )


def _maker(
    method: str, cols: list[str], options: Mapping[str, Any], coding: Mapping[str, Any]
) -> Callable[..., pa.RecordBatchReader]:
    """Return what releases a table by a method, with its options; refuse those that it does not have or allow."""
    declared = METHODS[method]
    known = [one.name for one in declared.flat if one.name not in _KEPT_BACK]
    for name in options:
        refuse_unless(OneOf(*known), f"an option of {method}", name)
    if faults := declared.faults(declared.defaults | {"cols": cols} | dict(options), IN_SQL):
        raise ValueError(" ".join(faults))
    asked = {"checks": "off", **coding, **options}
    given = declared.defaults | {name: asked[name] for name in known if name in asked}
    return lambda table, seed: imported(declared.algorithm)(table, **given | {"seed": seed})
