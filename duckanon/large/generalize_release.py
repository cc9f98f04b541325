"""Plans for tables that are larger than memory, and their release: `duckanon.large.generalize`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

import duckdb
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._core.common.declare import Options
from duckanon._core.common.faces import face_of
from duckanon._core.privacy.narrowing import COARSER_TOO, describe_judgements
from duckanon._methods.generalize.declared import GENERALIZE
from duckanon.large import pipeline
from duckanon.large.checks import Checked, is_numeric, open_workspace
from duckanon.large.workspace import SOURCE, Place, Source, Target, Workspace, arrow_reader

BYTES_OF_COMBINATION, BYTES_OF_CELL = 50, 115
"""Memory of planning, for each combination of values and for each value in it: measured by
`python -m tests.bench.part_memory`, and a tenth more."""

BYTES_OF_ROW, BYTES_OF_LABEL = 50, 40
"""Memory of a block whose rows are mixed, for each row and for each of its values: measured by the same, and half more,
since what is kept may be longer than labels are."""

_BLOCK = "_duckanon_block"
_MERGED = "merged_source"
_KEPT = "_duckanon_kept"


@face_of(GENERALIZE, "large")
def generalize(
    source: Source,
    target: Target,
    options: Options,
    *,
    memory: str = "2GB",
    temporary: Place | None = None,
    replace: bool = False,
) -> pipeline.Released:
    """Write columns that are generalized until every class has at least k people, and the columns to keep.

    Args:
        source, target, memory, temporary, replace: As for `workspace`. A hierarchy is an Arrow table: values, labels
            of level 1, of level 2, ...

    Returns:
        Its `notes` say which columns were planned in steps, where their values' combinations do not fit into memory,
        and what that loses: no interval is then finer than such a step. They tell how far a column reaches, and are for
        who has the table.
    """
    k, most_suppressed = options["k"], options["max_suppressed_fraction"]
    hierarchies, methods = options["hierarchies"] or {}, options["methods"] or {}
    with open_workspace("anon.generalize", options, source, target, memory, temporary, replace) as (work, layout):
        from duckanon._render.queries import render  # what it loads is the release's memory

        trees = {column: f"hierarchy_{place}" for place, column in enumerate(hierarchies)}
        for column, table in hierarchies.items():
            work.con.register(trees[column], table)
        fixed = {name.lower() for name in trees}
        fixed |= {name.lower() for name, method in methods.items() if method not in ("interval", "round")}
        planned, steps = _fitting(work, layout, fixed, k)
        plan_options = {name: options[name] for name in ("weights", "methods", "max_suppressed_fraction")}
        _make_plan(
            work, planned, options["cols"], k, plan_options | {"hierarchies": trees or None, "person": layout.person}
        )
        for name, step in steps.items():
            _put_on_steps(work.con, name, step)
        _refuse_narrowing(work.con, layout, options["kept"].narrowing)
        plan = arrow_reader(work.con.sql("FROM plan"), 10_000).read_all()
        passed = [*layout.kept, *([layout.person] if layout.person and layout.person not in layout.kept else [])]
        types = {
            name: "VARCHAR" if kind == '"NULL"' else kind for name, kind in layout.types.items()
        }  # as it is released
        coarse = render(plan, "duckdb", SOURCE, keep=passed, types=types)
        rows = _list_small_classes(work, layout, coarse, k, most_suppressed)
        if not rows:
            raise ValueError("no class has enough people; nothing is left to release.")
        block_rows = max(work.memory.part // (BYTES_OF_ROW + BYTES_OF_LABEL * len(layout.columns)), 1)
        results = _in_blocks(work, layout, coarse, pipeline.blocks_of(rows, block_rows), rows)
        wanted = [*layout.names, *layout.kept]
        written = pipeline.mix_results(
            work, results, lambda block: block.select(wanted), layout.person, layout.person in layout.kept
        )
        smallest = pipeline.count_classes(work, written, layout.names, k, layout.person, rows)
        notes = tuple(_note(work.con, layout, name, step) for name, step in steps.items())
        return pipeline.Released(rows, len(results.pieces), smallest, notes, work.reader())


def _make_plan(work: Workspace, table: str, cols: Sequence[str], k: int, options: Options) -> None:
    """Make the plan, in the table `plan`."""
    named = ", ".join(f"{name} := {sql.literal(value)}" for name, value in options.items() if value is not None)
    try:
        call = f"anon.plan({sql.literal(table)}, {sql.literal(list(cols))}, {k}, {named})"
        work.con.execute(f"CREATE TABLE plan AS FROM {call}").fetchall()
    except duckdb.Error as error:
        raise ValueError(f"{sql.reason(error).replace('anon.plan: ', '')}.") from None


def _put_on_steps(con: duckdb.DuckDBPyConnection, name: str, step: float) -> None:
    """Move the cuts of a column to the next multiples of its step, so that they part the values as they were merged."""
    unit = Decimal(repr(step))

    def move_cut(cut: str | None) -> str | None:
        if cut is None:
            return None
        multiple = (Decimal(cut) / unit).to_integral_value(ROUND_CEILING) * unit
        return format((multiple + 0).normalize(), "f")  # and no -0

    of_column = f"column_name = {sql.literal(name)} AND method = 'interval' AND covers = 'number'"
    for lower, upper, label in con.execute(f"SELECT lower, upper, label FROM plan WHERE {of_column}").fetchall():
        low, high = move_cut(lower), move_cut(upper)
        here = f"{of_column} AND lower IS NOT DISTINCT FROM $lower AND upper IS NOT DISTINCT FROM $upper"
        bucket = {"lower": lower, "upper": upper}
        if low == high and low is not None:
            con.execute(f"DELETE FROM plan WHERE {here}", bucket).fetchall()
            continue
        if label != "*":
            label = f"<{high}" if low is None else f">={low}" if high is None else f"[{low}, {high})"
        bucket |= {"low": low, "high": high, "label": label}
        con.execute(f"UPDATE plan SET lower = $low, upper = $high, label = $label WHERE {here}", bucket).fetchall()


def _fitting(work: Workspace, layout: Checked, fixed: set[str], k: int) -> tuple[str, dict[str, float]]:
    """Return the table to plan with, the source or one whose numbers are merged until they fit, and their steps.

    Where people are counted, a plan looks at the people of each combination. More than k of them decide nothing that k
    do not decide, in whatever class they are: where there are too many, k stand for all others.
    """
    most = work.memory.part // (BYTES_OF_COMBINATION + BYTES_OF_CELL * len(layout.names))
    numbers = [name for name in layout.names if name.lower() not in fixed and is_numeric(work.con, layout.types[name])]
    steps: dict[str, float] = {}
    person = sql.quote(layout.person) if layout.person else None

    def merge_expression(name: str) -> str:
        quoted = sql.quote(name)
        return (
            f"(floor({quoted} / {steps[name]!r}) * {steps[name]!r})::{layout.types[name]}" if name in steps else quoted
        )

    while True:
        expressions = {name: merge_expression(name) for name in layout.names}
        listed = ", ".join(expressions.values())
        with_person = f"{listed}, {person}" if person else listed
        each = "".join(f", approx_count_distinct({expressions[name]})" for name in numbers)
        count, people, *values = sql.fetch_row(
            work.con,
            f"SELECT approx_count_distinct(hash({listed})), approx_count_distinct(hash({with_person})){each} "
            f"FROM {SOURCE}",
        )
        if person and count <= most < people:
            named = ", ".join(f"{expression} AS {sql.quote(name)}" for name, expression in expressions.items())
            (count,) = sql.fetch_row(
                work.con,
                f"SELECT sum(least(size, {k + 1}))::BIGINT FROM (SELECT count(*) AS size FROM "
                f"(SELECT DISTINCT {named}, {person} FROM {SOURCE}) GROUP BY {sql.quote_all(layout.names)})",
            )
        if count <= most:
            break
        if not values or max(values) <= 2:
            of_people = ", with k people of each," if person else ""
            raise ValueError(
                f"cols must have at most {most} combinations of values{of_people} to be planned in this memory; got "
                f"{count}. Give more memory, fewer columns, or coarser values."
            )
        widest = numbers[values.index(max(values))]
        steps[widest] = _next_step(work.con, widest, layout.types[widest], steps.get(widest), k)
    selected = ", ".join(f"{expression} AS {sql.quote(name)}" for name, expression in expressions.items())
    rows = f"SELECT {selected}{f', {person}' if person else ''} FROM {SOURCE}"
    if person and people > most:
        work.con.execute(f"CREATE TABLE {_MERGED} AS {_with_k_people(layout.names, person, rows, k)}").fetchall()
    elif steps:
        work.con.execute(f"CREATE VIEW {_MERGED} AS {rows}").fetchall()
    else:
        return SOURCE, steps
    return _MERGED, steps


def _with_k_people(names: Sequence[str], person: str, rows: str, k: int) -> str:
    """Return the query of rows in which k people of each combination have all rows of it; nobody's stay nobody's."""
    same = " AND ".join(f"rows.{one} IS NOT DISTINCT FROM kept.{one}" for one in map(sql.quote, names))
    return (
        f"WITH rows AS ({rows}), kept AS (SELECT {sql.quote_all(names)}, min({person}, {k}) AS {_KEPT} "
        f"FROM (SELECT DISTINCT * FROM rows) GROUP BY {sql.quote_all(names)}) "
        f"SELECT rows.* REPLACE (CASE WHEN rows.{person} IS NULL OR list_contains({_KEPT}, rows.{person}) "
        f"THEN rows.{person} ELSE {_KEPT}[1] END AS {person}) FROM rows JOIN kept ON {same}"
    )


def _note(con: duckdb.DuckDBPyConnection, layout: Checked, name: str, step: float) -> str:
    """Say what the steps of a column lose by themselves, and what is released of it, as anon.generalization_loss does.

    An interval loses its width as a share of the column's range; of whole numbers, [40, 50) is 40 to 49.
    """
    quoted = sql.quote(name)
    least, largest, is_whole = sql.fetch_row(
        con,
        f"SELECT min({quoted})::DOUBLE, max({quoted})::DOUBLE, bool_and({quoted}::DOUBLE = floor({quoted}::DOUBLE)) "
        f"FROM {SOURCE}",
    )
    unit = 1.0 if is_whole else 0.0
    (width,) = sql.fetch_row(
        con,
        f"SELECT sum(rows * greatest(least(coalesce(upper::DOUBLE - {unit}, {largest!r}), {largest!r}) "
        f"- greatest(coalesce(lower::DOUBLE, {least!r}), {least!r}), 0)) / sum(rows) "
        f"FROM plan WHERE column_name = {sql.literal(name)} AND covers IN ('number', 'value')",
    )
    by_itself = min(step - unit, largest - least) / (largest - least)
    released = "" if width is None else f"; its released intervals lose {width / (largest - least):.4f}"
    return (
        f'the column "{name}" was planned in steps of {step:g}, which lose {by_itself:.4f} of its range by '
        f"themselves{released} (ncp)."
    )


def _next_step(con: duckdb.DuckDBPyConnection, name: str, kind: str, step: float | None, k: int) -> float:
    """Return the next of 1, 2, 5 times a power of ten; the first is about a ten-thousandth of the range.

    Of the range without the k - 1 least and the k - 1 largest values: one person's fortune makes no coarser steps.
    """
    if step is not None:
        leading = int(f"{step:e}"[0])
        return step * {1: 2, 2: 2.5, 5: 2}[leading]
    quoted = sql.quote(name)
    (span,) = sql.fetch_row(con, f"SELECT (max({quoted}, {k})[-1] - min({quoted}, {k})[-1])::DOUBLE FROM {SOURCE}")
    first = float(f"1e{int(f'{max(span, 1e-300) / 10_000:e}'.split('e')[1])}")
    return max(first, 2.0) if "INT" in kind else first


def _refuse_narrowing(con: duckdb.DuckDBPyConnection, layout: Checked, narrowing: Sequence[str] | None) -> None:
    """Refuse kept columns that tell more of a coarse one than its label does."""
    allowed = {name.lower() for name in [*(narrowing or []), *([layout.person] if layout.person else [])]}
    asked = [name for name in layout.kept if name.lower() not in allowed]
    if not asked:
        return
    judged = con.execute(
        f"SELECT kept_column, column_name, narrows FROM anon.kept_column_risk('{SOURCE}', "
        f"{sql.literal(layout.names)}, {sql.literal(asked)}, plan := 'plan', person := {sql.literal(layout.person)})"
    ).fetchall()
    if refused := describe_judgements(judged, COARSER_TOO):
        raise ValueError(refused)


def _list_small_classes(work: Workspace, layout: Checked, coarse: str, k: int, most: float) -> int:
    """List the classes that are too small, and count the rows of all others."""
    classes = sql.quote_all(layout.names)
    size = f"count(DISTINCT {sql.quote(layout.person)})" if layout.person else "count(*)"
    work.con.execute(
        f"CREATE TABLE classes AS SELECT {classes}, {size} AS _duckanon_people, count(*) AS _duckanon_rows "
        f"FROM ({coarse}) GROUP BY {classes}"
    ).fetchall()
    rows, small = sql.fetch_row(
        work.con,
        "SELECT sum(_duckanon_rows)::BIGINT, "
        f"coalesce(sum(_duckanon_rows) FILTER (_duckanon_people < {k}), 0)::BIGINT FROM classes",
    )
    if small > most * rows + 1e-6:
        raise ValueError(f"{small} rows are in classes of fewer than {k} people, more than may be suppressed.")
    work.con.execute(f"DELETE FROM classes WHERE _duckanon_people >= {k}").fetchall()
    return int(rows - small)


def _in_blocks(work: Workspace, layout: Checked, coarse: str, blocks: int, rows: int) -> pipeline.Mixed:
    """Write the rows of all classes that are left, each into a random block."""
    same = " AND ".join(f"coarse.{sql.quote(n)} IS NOT DISTINCT FROM classes.{sql.quote(n)}" for n in layout.names)
    query = (
        f"SELECT coarse.*, least(floor(anon._random() * {blocks}), {blocks - 1})::INTEGER AS {_BLOCK} "
        f"FROM ({coarse}) AS coarse ANTI JOIN classes ON {same}"
    )
    files = work.partition(query, "blocks", _BLOCK, blocks)
    pieces = [
        [(path, group) for path in paths for group in range(pq.read_metadata(path).num_row_groups)] for paths in files
    ]
    schema = pq.read_schema(next(paths[0] for paths in files if paths))
    return pipeline.Mixed(pieces, schema, rows)
