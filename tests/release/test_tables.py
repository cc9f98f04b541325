"""Aggregate tables: published examples, audits against plain linear algebra, and attacks on what is returned."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from duckanon._methods.tables import cells as cells_module
from duckanon._methods.tables import hidden_cell_audits as exact_module
from duckanon._methods.tables import hidden_cell_audits as interval_module
from duckanon._methods.tables.cell_key import KEY_BITS, VARIANCE, perturb_counts, tabulate_noise
from duckanon._methods.tables.declared import _method_fits as method_fits
from duckanon._methods.tables.hidden_cell_audits import System, find_narrow_cells, run_exact_audit
from duckanon._methods.tables.patterns import Flow, compute_costs, hide_cells, hide_groups, make_system
from duckanon._methods.tables.primary import CellRule, find_primary_cells
from duckanon._methods.tables.relations import find_relations
from tests.profiles import cheap, dear
from tests.release.tabulated import (
    count_table,
    derivable_by_rank,
    flags,
    interval_by_program,
    names_of,
    relation_matrix,
)
from tests.sqltest import data_file, registered


def test_one_small_cell_of_microdata1_takes_three_more() -> None:
    """All methods of sdcTable hide four cells."""
    rows = duckdb.sql(
        f"SELECT region, gender, count(*) FROM '{data_file('tables/microdata1.csv')}' GROUP BY ALL"
    ).fetchall()
    cells = count_table({(region, gender): count for region, gender, count in rows}, ["region", "gender"])
    hidden = flags(cells, {("A", "female")})
    assert hide_groups(cells, find_relations(cells), hidden, CellRule(2), compute_costs(cells)).sum() == 4


def test_small_and_empty_cells_of_z1_are_six() -> None:
    """As GaussSuppression hides them for at most three people, empty cells included."""
    rows = duckdb.sql(f"SELECT region, hovedint, ant FROM '{data_file('tables/z1.csv')}'").fetchall()
    cells = count_table({row[:2]: row[2] for row in rows}, ["region", "hovedint"], with_empty=True)
    primary = find_primary_cells(cells, CellRule(4), protects_zeros=True).cells
    costs = compute_costs(cells, protects_zeros=True)
    assert hide_groups(cells, find_relations(cells), primary, CellRule(2), costs).sum() == 6


def test_a_cell_that_follows_from_nine_hidden_ones_takes_one_more() -> None:
    """The problem of sdcTable's manual: every row and column has two hidden cells, and yet (w, b) follows."""
    values = {"w": (30, 47, 64, 89), "x": (90, 124, 5, 31), "y": (92, 100, 59, 85), "z": (800, 991, 651, 685)}
    counts = {(row, "abcd"[place]): value for row, each in values.items() for place, value in enumerate(each)}
    cells = count_table(counts, ["row", "column"])
    hidden = flags(cells, set(zip("wwwxxyyzz", "abcacbdbd", strict=True)))
    relations = find_relations(cells)
    assert names_of(cells, run_exact_audit(relations.matrix, hidden).is_derivable) == [("w", "b")]
    system = System(relations.matrix, cells.value, np.zeros(len(cells)))
    (cell,) = np.flatnonzero(flags(cells, {("w", "b")}))
    flow = Flow(system, relations, compute_costs(cells), hidden)
    assert flow.move(int(cell), 10)
    assert (flow.hidden & ~hidden).sum() == 1
    hidden |= flags(cells, {("x", "d")})
    assert interval_by_program(relation_matrix(cells), cells.value, hidden, int(cell)) == pytest.approx((0, 78))
    need = np.where(flags(cells, {("w", "b")}), 1.0, 0)
    asked = need > 0
    assert [len(result) for result in find_narrow_cells(system, hidden, asked, 47 * need, 31 * need)] == [0, 0]
    assert [len(result) for result in find_narrow_cells(system, hidden, asked, 48 * need, 32 * need)] == [0, 1]


@pytest.mark.parametrize("eliminated", [0, 1_500])
def test_cells_that_determine_each_other_are_one_class(eliminated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By projection and by elimination: (w, b) follows, which leaves two squares of four cells."""
    monkeypatch.setattr(exact_module, "ELIMINATED", eliminated)
    cells = count_table(dict.fromkeys(itertools.product("wxyz", "abcd"), 5), ["row", "column"])
    hidden = flags(cells, set(zip("wwwxxyyzz", "abcacbdbd", strict=True)))
    audit = run_exact_audit(find_relations(cells).matrix, hidden)
    assert names_of(cells, audit.is_derivable) == [("w", "b")]
    numbers = set(audit.determined_with.tolist()) - {-1}
    assert sorted(sorted(names_of(cells, audit.determined_with == number)) for number in numbers) == [
        [("w", "a"), ("w", "c"), ("x", "a"), ("x", "c")],
        [("y", "b"), ("y", "d"), ("z", "b"), ("z", "d")],
    ]


def test_two_hierarchies_of_one_column_are_protected_together() -> None:
    """UserSupport 136: K follows from both hierarchies, and sdcTable 0.31 missed it; hiding N helps."""
    people = dict(zip("ABIJKLMN", (2, 2, 8, 8, 3, 3, 3, 7), strict=True))
    county = {region: ["county 1" if region in "ABIJ" else "county 2"] for region in people}
    size = {region: ["big" if region in "LM" else "small"] for region in people}
    cells = count_table({(region,): count for region, count in people.items()}, ["region"], {"region": [county, size]})
    primary = find_primary_cells(cells, CellRule(4)).cells
    assert names_of(cells, run_exact_audit(find_relations(cells).matrix, primary).is_derivable) == [("K",)]
    pattern = hide_cells(cells, CellRule(4))
    assert ("N",) in names_of(cells, pattern.withheld)
    assert len(pattern.faults.cells) == 0


def test_too_many_empty_cells_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three labels and four, totals among them, have twelve cells; nine of them have somebody."""
    counts = {("a", "x"): 3, ("a", "y"): 2, ("b", "z"): 4}
    monkeypatch.setattr(cells_module, "MOST_CELLS", 12)
    assert len(count_table(counts, ["one", "two"], with_empty=True)) == 12
    monkeypatch.setattr(cells_module, "MOST_CELLS", 11)
    with pytest.raises(ValueError, match="zeros must be 'public' for a table of 12 cells: empty cells are too many"):
        count_table(counts, ["one", "two"], with_empty=True)
    assert len(count_table(counts, ["one", "two"])) == 9


@st.composite
def tables(draw: st.DrawFn) -> dict[tuple[str, ...], int]:
    """Draw the inner cells of a table of two or three columns."""
    sizes = draw(st.sampled_from([(2, 3), (4, 4), (2, 3, 3)]))
    inner = itertools.product(*("abcd"[:size] for size in sizes))
    return {cell: draw(st.sampled_from([0, 1, 2, 4, 6, 9, 15, 40])) for cell in inner}


@pytest.mark.thorough
@cheap
@given(tables(), st.integers(0, 10**6), st.booleans())
def test_the_exact_audit_is_that_of_ranks(counts: dict[tuple[str, ...], int], seed: int, projects: bool) -> None:
    """By elimination and by projection, on patterns of all kinds: a hundred in a thorough run."""
    cells = count_table(counts, ["one", "two", "three"][: len(next(iter(counts)))], with_empty=True)
    random = np.random.default_rng(seed)
    hidden = random.random(len(cells)) < random.choice([0.2, 0.4, 0.6])
    relations = find_relations(cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_module, "ELIMINATED", 0 if projects else 1_500)
        audit = run_exact_audit(relations.matrix, hidden)
    matrix = relation_matrix(cells)
    assert (audit.is_derivable == derivable_by_rank(matrix, hidden)).all()
    for first, second in itertools.combinations(np.flatnonzero(hidden & ~audit.is_derivable)[:4], 2):
        knows_first = hidden.copy()
        knows_first[first] = False
        gives_away = derivable_by_rank(matrix, knows_first)[second]
        assert (audit.determined_with[first] == audit.determined_with[second]) == gives_away


@pytest.mark.thorough
@dear
@given(tables(), st.integers(0, 10**6))
def test_the_interval_audit_is_that_of_one_program_per_cell(counts: dict[tuple[str, ...], int], seed: int) -> None:
    cells = count_table(counts, ["one", "two", "three"][: len(next(iter(counts)))], with_empty=True)
    random = np.random.default_rng(seed)
    hidden = random.random(len(cells)) < 0.5
    asked = hidden & (random.random(len(cells)) < 0.5)
    below, above = random.integers(0, 8, len(cells)).astype(float), random.integers(0, 8, len(cells)).astype(float)
    below = np.minimum(below, cells.value)
    system = System(find_relations(cells).matrix, cells.value, np.zeros(len(cells)))
    low, high = find_narrow_cells(system, hidden, asked, below, above)
    for cell in np.flatnonzero(asked):
        least, most = interval_by_program(relation_matrix(cells), cells.value, hidden, int(cell))
        assert (cell in low) == (least > cells.value[cell] - below[cell] + 1e-6)
        assert (cell in high) == (most < cells.value[cell] + above[cell] - 1e-6)


def test_many_small_cells_fail_without_a_program_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What margins leave for their cells shows most of them; those that fail are those of one program per cell."""
    programs: list[bool] = []

    def solve(*args: object, **options: object) -> object:
        programs.append(True)
        return linprog(*args, **options)

    monkeypatch.setattr(interval_module, "linprog", solve)
    for rows, sizes, most in [(24, (24, 11, 4), 0), (60, (12, 7), 15)]:
        people = {tuple(f"v{row % size}" for size in sizes): 1 + row % (4 - len(sizes)) for row in range(rows)}
        cells = count_table(people, ["one", "two", "three"][: len(sizes)])
        system, primary = make_system(cells, find_relations(cells)), find_primary_cells(cells, CellRule(10))
        programs.clear()
        _, high = find_narrow_cells(system, primary.cells, primary.cells, primary.below, primary.above)
        assert len(programs) <= most
        for cell in np.flatnonzero(primary.cells)[::6].tolist():
            _, largest = interval_by_program(relation_matrix(cells), cells.value, primary.cells, cell, 1)
            assert (cell in high) == (largest < cells.value[cell] + primary.above[cell] - 1e-6)


def _values(shown: dict[tuple[str | None, ...], float | None]) -> str:
    return ", ".join(
        f"({', '.join(map(repr, cell))}, {'NULL' if value is None else value})" for cell, value in shown.items()
    )


@pytest.mark.thorough
@dear
@given(tables(), st.sampled_from([3, 5]))
def test_an_attacker_learns_nothing_about_small_cells(counts: dict[tuple[str, ...], int], k: int) -> None:
    """Ranks, subtractions and a program per cell, on the rows that SQL returns."""
    names = ["one", "two", "three"][: len(next(iter(counts)))]
    if sum(counts.values()) < k:
        return
    cells = count_table({cell: count for cell, count in counts.items() if count}, names)
    con = registered().cursor()
    values = ", ".join(str((*cell, count)) for cell, count in counts.items())
    con.execute(f"CREATE OR REPLACE TEMP TABLE inner_cells AS FROM (VALUES {values}) AS t({', '.join(names)}, people)")
    con.execute("CREATE OR REPLACE TEMP TABLE rows AS SELECT *, unnest(range(people)) AS i FROM inner_cells").fetchall()
    released = con.execute(
        f"SELECT {', '.join(names)}, value "
        f"FROM anon.protect_table('rows', {names}, k := {k}, max_suppressed_fraction := 1)"
    ).fetchall()
    shown = {row[:-1]: row[-1] for row in released}
    assert set(shown) == set(names_of(cells, np.arange(len(cells))))
    hidden = np.array([shown[name] is None for name in names_of(cells, np.arange(len(cells)))])
    published = [value for value in shown.values() if value is not None]
    assert sorted(published) == sorted(cells.value[~hidden])
    columns = ", ".join(names)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE shown AS FROM (VALUES {_values(shown)}) AS t({columns}, value)"
    ).fetchall()
    audit = (
        f"SELECT count(*) FROM anon.audit_table('shown', {names}, k := {k}, original := 'rows') WHERE fault IS NOT NULL"
    )
    assert con.execute(audit).fetchall() == [(0,)]
    small = cells.value < k
    assert not (small & ~hidden).any()
    matrix = relation_matrix(cells)
    assert not (derivable_by_rank(matrix, hidden) & small).any()
    for relation in matrix:
        parts = (relation > 0) & hidden
        if parts.any() and not hidden[relation < 0].any():
            assert cells.value[parts].sum() >= k
    inner = names_of(cells, cells.is_inner)
    for cell, name in zip(np.flatnonzero(small), names_of(cells, small), strict=True):
        # empty cells are not returned, so that each hidden one has somebody in it, and a margin as many as inner cells
        least, most = interval_by_program(matrix, cells.value, hidden, int(cell), least=1)
        parts = [item for item in inner if all(label in (own, "Total") for own, label in zip(item, name, strict=True))]
        assert least <= len(parts) + 1e-6
        assert most >= k - 1 - 1e-6


@pytest.mark.parametrize("k", [3, 10])
def test_noise_has_no_bias_a_given_variance_and_no_small_counts(k: int) -> None:
    """By the table of perturbations, and by drawing: every fraction of the keys is as frequent as its probability."""
    for count, (noise, probability) in enumerate(tabulate_noise(k), 1):
        assert abs(probability @ noise) < 1e-6
        assert probability @ noise**2 >= VARIANCE - 1e-6
        assert not ((count + noise > 0) & (count + noise < k)).any()
    keys = np.random.default_rng(0).integers(0, 1 << KEY_BITS, 20_000)
    for count in (1, k, 500):
        drawn = perturb_counts(np.full(len(keys), count), keys, k) - count
        deviation = np.sqrt((drawn**2).mean())
        assert abs(drawn.mean()) < 5 * deviation / np.sqrt(len(keys))
    assert deviation == pytest.approx(np.sqrt(VARIANCE), rel=0.03)


@pytest.mark.thorough
def test_an_attacker_who_averages_splits_finds_the_count() -> None:
    """Why noise is for a fixed set of tables: cells of 3 to 30 people, and splits of them by free queries."""
    random, exact = np.random.default_rng(1), {}
    for splits in (0, 100):
        hits = 0
        for _ in range(60):
            keys = random.integers(0, 1 << KEY_BITS, int(random.integers(3, 31)))
            parts = [np.ones(len(keys), dtype=bool), *(random.random(len(keys)) < 0.5 for _ in range(splits))]
            both = [part for item in parts for part in (item, ~item)]
            people, sums = np.array([part.sum() for part in both]), np.array([keys[part].sum() for part in both])
            counts = perturb_counts(people, sums, 3).reshape(-1, 2).sum(axis=1)
            hits += round(float(counts.mean())) == len(keys)
        exact[splits] = hits / 60
    assert exact[0] < 0.5
    assert exact[100] > 0.6


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    """Return a connection with 300 people, few of them in some regions, ages and jobs."""
    cursor = registered().cursor()
    cursor.execute(
        """CREATE OR REPLACE TEMP TABLE workers AS
        SELECT i AS id, 'r' || (i % 4) AS region, 'a' || (i // 4 % 3) AS age,
               'j' || least(i * 11 % 7, i * 13 % 5) AS job, 100 + i * 17 % 900 AS wage
        FROM range(300) AS t(i)"""
    ).fetchall()
    return cursor


@pytest.mark.thorough
def test_linked_tables_are_protected_together(con: duckdb.DuckDBPyConnection) -> None:
    """The audit with the rows finds nothing, not even in the cells that no table shows."""
    call = "['region', 'job'], k := 12, linked := [['job', 'age']]"
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE two AS FROM anon.protect_table('workers', {call}, max_suppressed_fraction := 1)"
    ).fetchall()
    assert con.execute("SELECT bool_or(published) AND bool_or(NOT published) FROM two").fetchall() == [(True,)]
    result = con.execute(
        f"FROM anon.audit_table('two', {call}, original := 'workers') WHERE fault IS NOT NULL"
    ).fetchall()
    assert result == []


@pytest.mark.thorough
def test_a_release_knows_the_former_one(con: duckdb.DuckDBPyConnection) -> None:
    """What both releases show together gives no cell away that the first one had hidden."""
    by = "['region', 'job']"
    con.execute(
        "CREATE OR REPLACE TEMP TABLE earlier AS "
        f"FROM anon.protect_table('workers', {by}, k := 3, max_suppressed_fraction := 1)"
    ).fetchall()
    result = {}
    for name, more in (("unaware", ""), ("aware", ", previous := 'earlier'")):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS "
            f"FROM anon.protect_table('workers', {by}, k := 6, max_suppressed_fraction := 1{more})"
        ).fetchall()
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE together AS SELECT region, job, coalesce(t.value, earlier.value) AS value "
            f"FROM {name} AS t JOIN earlier USING (region, job)"
        ).fetchall()
        (result[name],) = con.execute(
            f"SELECT count(*) FROM anon.audit_table('together', {by}, k := 6, original := 'workers') "
            "WHERE fault = 'derivable'"
        ).fetchone()
    assert result["aware"] == 0


def test_a_cell_that_few_people_joined_is_hidden(con: duckdb.DuckDBPyConnection) -> None:
    """The difference between two published counts would show them."""
    con.execute(
        "CREATE OR REPLACE TEMP TABLE before AS FROM anon.protect_table('workers', ['region'], k := 5)"
    ).fetchall()
    con.execute(
        "CREATE OR REPLACE TEMP TABLE more AS FROM workers UNION ALL SELECT -1, 'r0', 'a1', 'j1', 500"
    ).fetchall()
    rows = con.execute(
        "SELECT region FROM anon.protect_table('more', ['region'], k := 5, previous := 'before', "
        "max_suppressed_fraction := 1) WHERE NOT published"
    ).fetchall()
    assert {("r0",), ("Total",)} <= set(rows)


def test_people_in_several_cells_count_once(con: duckdb.DuckDBPyConnection) -> None:
    """Margins are counts of different people, and agree with the rules in pure SQL."""
    con.execute(
        "CREATE OR REPLACE TEMP TABLE visits AS SELECT *, id // 3 AS patient FROM workers WHERE id < 150"
    ).fetchall()
    both = con.execute(
        """SELECT count(*), bool_and(t.people = r.people AND t.value = r.value), bool_and(NOT r.is_primary)
        FROM anon.protect_table('visits', ['region', 'age'], k := 4, person := 'patient') AS t
        JOIN anon.cell_rules('visits', ['region', 'age'], k := 4, person := 'patient') AS r USING (region, age)
        WHERE t.published"""
    ).fetchall()
    assert both[0][0] > 10
    assert both[0][1:] == (True, True)


@pytest.mark.thorough
def test_sums_meet_every_rule(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TEMP TABLE wages AS FROM anon.protect_table('workers', ['region', 'job'], 'wage', k := 3, "
        "dominance := [2, 80], max_suppressed_fraction := 1)"
    ).fetchall()
    result = con.execute(
        "SELECT fault FROM anon.audit_table('wages', ['region', 'job'], people := 'people', k := 3, "
        "original := 'workers', measure := 'wage') WHERE fault IS NOT NULL"
    ).fetchall()
    assert result == []
    assert con.execute(
        "SELECT count(*) FROM wages "
        "JOIN anon.cell_rules('workers', ['region', 'job'], 'wage', k := 3, dominance := [2, 80]) "
        "USING (region, job) WHERE is_primary AND published"
    ).fetchall() == [(0,)]


def test_who_is_alone_in_a_hidden_cell_computes_no_small_one(con: duckdb.DuckDBPyConnection) -> None:
    """A cell of one person and two of two are the corners of a rectangle: by plain ranks, knowing the one."""
    sizes = {"a": (2, 9, 9, 2), "b": (1, 7, 7, 8), "c": (7, 8, 9, 9), "d": (9, 9, 8, 9)}
    counts = {(row, "wxyz"[place]): size for row, each in sizes.items() for place, size in enumerate(each)}
    values = ", ".join(f"('{row}', '{column}', {size})" for (row, column), size in counts.items())
    con.execute(
        "CREATE OR REPLACE TEMP TABLE paid AS SELECT one, two, 50 + hash(one, two, i) % 100 AS v "
        f"FROM (VALUES {values}) AS t(one, two, n), range(n) AS r(i)"
    ).fetchall()
    rows = con.execute(
        "SELECT one, two FROM anon.protect_table('paid', ['one', 'two'], 'v', k := 3, max_suppressed_fraction := 1) "
        "WHERE NOT published"
    ).fetchall()
    cells = count_table(counts, ["one", "two"])
    hidden, is_small = flags(cells, set(rows)), cells.value < 3
    assert hidden[is_small].all()
    for alone in np.flatnonzero(cells.value == 1):
        is_unknown = hidden.copy()
        is_unknown[alone] = False
        assert not (derivable_by_rank(relation_matrix(cells), is_unknown) & is_small).any()


@pytest.mark.thorough
def test_few_cells_of_a_survey_are_hidden() -> None:
    """As many cells as elimination alone hides, which leaves unsafe subtractions and narrow intervals."""
    con, name = registered().cursor(), data_file("acs_pums_2024_workers.parquet")
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE survey AS
        SELECT STATE AS state, 'division ' || STATE::INT % 9 AS division, SEX AS sex, 'o' || OCCP // 400 AS occupation
        FROM '{name}'"""
    ).fetchall()
    con.execute("CREATE OR REPLACE TEMP TABLE divisions AS SELECT DISTINCT state, division FROM survey").fetchall()
    call = "['state', 'occupation', 'sex'], k := 10, hierarchies := MAP {'state': 'divisions'}"
    con.execute(f"CREATE OR REPLACE TEMP TABLE counted AS FROM anon.protect_table('survey', {call})").fetchall()
    cells, hidden = con.execute("SELECT count(*), count(*) FILTER (NOT published) FROM counted").fetchall()[0]
    assert cells > 3_000
    assert hidden < 0.1 * cells
    result = con.execute(
        f"SELECT fault FROM anon.audit_table('counted', {call}, original := 'survey') WHERE fault IS NOT NULL"
    )
    assert result.fetchall() == []


def _known(con: duckdb.DuckDBPyConnection, query: str, columns: list[str], k: int) -> int:
    """Count the cells of fewer than k people that follow exactly from the cells that a query returns."""
    rows = con.execute(f"SELECT {', '.join(columns)}, count(*) FROM staff GROUP BY ALL").fetchall()
    cells = count_table({row[:-1]: row[-1] for row in rows}, columns)
    shown = {row[:-1] for row in con.execute(query).fetchall() if row[-1] is not None}
    hidden = np.array([name not in shown for name in names_of(cells, np.arange(len(cells)))])
    is_known = ~hidden | derivable_by_rank(relation_matrix(cells), hidden)
    return int((is_known & (cells.value < k)).sum())


@pytest.mark.thorough
def test_tables_and_releases_that_do_not_know_each_other_give_cells_away(con: duckdb.DuckDBPyConnection) -> None:
    """By plain ranks: without `linked` and `previous` the attack succeeds, with them it fails or is refused."""

    def staff(seed: int) -> None:
        con.execute(
            f"""CREATE OR REPLACE TEMP TABLE staff AS
            SELECT 'r' || hash(i, {seed}) % 4 AS region, 'a' || hash(i, 1, {seed}) % 3 AS age,
                   'j' || least(hash(i, 2, {seed}) % 9, hash(i, 3, {seed}) % 7) AS job FROM range(60) AS t(i)"""
        ).fetchall()

    def protect(name: str, call: str) -> None:
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS "
            f"FROM anon.protect_table('staff', {call}, max_suppressed_fraction := 1)"
        ).fetchall()

    staff(1)
    protect("by_region", "['region', 'job'], k := 5")
    protect("by_age", "['job', 'age'], k := 5")
    protect("as_one", "['region', 'job'], k := 5, linked := [['job', 'age']]")
    columns = ["region", "job", "age"]
    apart = "SELECT region, job, 'Total', value FROM by_region UNION ALL SELECT 'Total', job, age, value FROM by_age"
    assert _known(con, apart, columns, 5) > 0
    assert _known(con, "SELECT region, job, age, value FROM as_one", columns, 5) == 0
    staff(0)
    protect("first", "['region', 'job'], k := 3")
    protect("unaware", "['region', 'job'], k := 6")
    both = "SELECT region, job, value FROM first UNION ALL SELECT region, job, value FROM "
    assert _known(con, f"{both} unaware", ["region", "job"], 3) > 0
    with pytest.raises(duckdb.Error, match="could not be protected; coarsen a column"):
        protect("aware", "['region', 'job'], k := 6, previous := 'first'")


@pytest.mark.thorough
def test_people_beside_sums_are_withheld_where_they_would_tell(con: duckdb.DuckDBPyConnection) -> None:
    """Sums of 500 and 1,000 protect each other; 5 people and 2 do not: margins leave 3 to 17 for the five."""
    con.execute(
        """CREATE OR REPLACE TEMP TABLE paid AS SELECT one, two, v FROM (VALUES
        ('a', 'x', 5, 100), ('a', 'y', 12, 100), ('a', 'z', 500, 1000), ('b', 'x', 400, 1000), ('b', 'y', 500, 1000),
        ('b', 'z', 600, 1000), ('c', 'x', 12, 100), ('c', 'y', 2, 500), ('c', 'z', 900, 900)) AS t(one, two, n, v),
        range(n)"""
    ).fetchall()
    con.execute(
        "CREATE OR REPLACE TEMP TABLE sums AS FROM anon.protect_table('paid', ['one', 'two'], 'v', p := 0.1)"
    ).fetchall()
    shown, values = con.execute("SELECT count(people), count(value) FROM sums").fetchall()[0]
    assert values == 12
    assert 6 <= shown < 12
    con.execute(
        "CREATE OR REPLACE TEMP TABLE counts AS SELECT one, two, CASE WHEN published THEN c.people END AS people "
        "FROM sums JOIN anon.cell_rules('paid', ['one', 'two'], 'v') AS c USING (one, two)"
    ).fetchall()
    audit = "FROM anon.audit_table('{}', ['one', 'two'], value := 'people', original := 'paid') WHERE fault = 'narrow'"
    assert con.execute(f"SELECT one, two, lower, upper {audit.format('counts')}").fetchall() == [("a", "x", 3, 17)]
    assert con.execute(f"SELECT one, two, lower, upper {audit.format('sums')}").fetchall() == []
    alone = "SELECT count(fault) FROM anon.audit_table('sums', ['one', 'two'], value := 'people')"
    assert con.execute(alone).fetchall() == [(0,)]


@pytest.mark.parametrize(("letters", "is_refused"), [(0, True), (15, True), (16, False), (17, False)])
def test_a_key_of_sixteen_letters_is_a_secret(letters: int, is_refused: bool) -> None:
    given = dict.fromkeys(("linked", "measure", "previous"), None) | {"person": "p", "key": "x" * letters}
    for method in ("cell_key", "round"):
        sentence = method_fits({**given, "method": method})
        assert (
            sentence == f"key must be a secret text of at least 16 letters where method is '{method}'."
        ) is is_refused
