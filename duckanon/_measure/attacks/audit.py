"""The paired audit of a way to release, as ``anon.membership_audit`` runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked_by, generator, refuse_unless
from duckanon._core.common.arrays import Ints, sampled_rows
from duckanon._core.common.declare import report_rows
from duckanon._core.common.imports import imported
from duckanon._core.common.rules import IN_SQL, OneOf
from duckanon._core.encoding.measurement_encoding import measured_encoding
from duckanon._core.encoding.pairs import paired
from duckanon._core.encoding.table_encoding import FEWEST_ROWS
from duckanon._measure.attacks.declared import AUDITED, MEMBERSHIP_AUDIT
from duckanon._measure.attacks.paired import PASS, TOLERANCE, WORST_TOLERANCE, Released, paired_findings, query_codes
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
    releases: int,
    people: int,
    max_rows: int,
    log: list[str] | None,
    special: Any,
    categories: list[str] | None,
    derived: str,
    seed: int | None,
) -> pa.Table:
    """Release a table with and without isolated people, and tell how well an attacker knows who is part of which.

    `log`, `special` and `categories` are the release's own too, where it has these options. A row is an attack of
    :func:`duckanon._measure.attacks.paired.paired_findings`.
    """
    random = generator(seed)
    rows = 0 if table is None else table.num_rows
    if table is None or rows < 2 * FEWEST_ROWS:
        raise ValueError(f"an audit needs at least {2 * FEWEST_ROWS} rows; got {rows}.")
    if 4 * people > rows:
        raise ValueError(f"people must be at most a quarter of the rows, {rows // 4}; got {people}.")
    if rows > max_rows:
        table = table.take(pa.array(sampled_rows(max_rows, rows, random)))
    encoding = measured_encoding(table, log, special, categories, derived)
    make = _maker(method, table.column_names, options or {}, {"log": log, "special": special, "categories": categories})

    def release(places: Ints, draw: np.random.Generator) -> Released:
        made = make(table.take(pa.array(places)), seed=int(draw.integers(2**31)))
        released = made.read_all().select(table.column_names)
        people_codes, codes = query_codes(paired(table, released))
        return Released(encoding.matrix(released), codes, people_codes)

    points = encoding.matrix(table)
    found = paired_findings(points, table.num_columns, release, people=people, releases=releases, random=random)
    return report_rows(
        [
            {
                "attack": finding.attack,
                "scale": finding.scale,
                "people": len(finding.rates),
                "releases": releases,
                "win_rate": finding.mean,
                "standard_error": finding.standard_error,
                "win_rate_bound": finding.bounds[1],
                "tolerance": TOLERANCE,
                "worst_rate": finding.worst,
                "worst_standard_error": finding.worst_standard_error,
                "worst_bound": finding.worst_bound,
                "worst_tolerance": WORST_TOLERANCE,
                "pass": finding.answer == PASS,
                "answer": finding.answer,
            }
            for finding in found
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
