"""The bridge: any table through Python and back, unchanged."""

from __future__ import annotations

import datetime
import gc
import threading
from collections import Counter
from collections.abc import Callable

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import duckanon
from duckanon._bridge import calls, parcels, registry, slots, waiting
from duckanon._core.common.declare import Report
from duckanon._core.common.imports import import_function
from duckanon._methods.baselines.additive_noise import swap
from tests.profiles import cheap, dear

WHOLE = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(10**38) + 1, 10**38 - 1),
    "UHUGEINT": (0, 10**38 - 1),
}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)).map(str)
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)).map(str)
NEAR_TIMES = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 12, 31))


def decimals(digits: int, scale: int) -> st.SearchStrategy[str]:
    def text(unscaled: int) -> str:
        sign, figures = "-" if unscaled < 0 else "", str(abs(unscaled)).rjust(scale + 1, "0")
        return (
            f"{sign}{figures[: len(figures) - scale]}.{figures[len(figures) - scale :]}"
            if scale
            else f"{sign}{figures}"
        )

    return st.integers(-(10**digits) + 1, 10**digits - 1).map(text)


TYPES: dict[str, st.SearchStrategy[str]] = {
    **{name: st.integers(low, high).map(str) for name, (low, high) in WHOLE.items()},
    "FLOAT": st.floats(width=32).map(str),
    "DOUBLE": st.floats().map(str),
    "DECIMAL(4,1)": decimals(4, 1),
    "DECIMAL(15,15)": decimals(15, 15),
    "DECIMAL(15,2)": decimals(15, 2),
    "DECIMAL(18,0)": decimals(18, 0),
    "DECIMAL(38,10)": decimals(38, 10),
    "BOOLEAN": st.booleans().map(str),
    "VARCHAR": TEXT,
    "ENUM('no', 'yes', 'it''s')": st.sampled_from(["no", "yes", "it's"]),
    "DATE": DATES | st.sampled_from(["infinity", "-infinity"]),
    "TIMESTAMP": TIMES | st.sampled_from(["infinity", "-infinity"]),
    "TIMESTAMP_S": TIMES,
    "TIMESTAMP_MS": TIMES,
    "TIMESTAMP_NS": NEAR_TIMES.map(lambda t: f"{t}.123456789" if "." not in str(t) else f"{t}789"),
    "TIMESTAMPTZ": TIMES.map(lambda t: f"{t}+00"),
    "TIME": st.times().map(str),
    "UUID": st.uuids().map(str),
}
NAMES = st.sampled_from(
    [
        "a b",
        'with "quotes"',
        "it's",
        "UPPER",
        "select",
        "from",
        "naïve",
        "日本",
        "released",
        "names",
        "columns",
        "_py",
        "i",
        "s",
        "tbl",
        "cols",
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, str], list[tuple[str | None, ...]]]:
    """Some column names with their types, and rows of texts to be cast to them."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    columns = {name: draw(st.sampled_from(sorted(TYPES))) for name in names}
    rows = st.tuples(*(st.none() | TYPES[column_type] for column_type in columns.values()))
    return columns, draw(st.lists(rows, max_size=30))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(con: duckdb.DuckDBPyConnection, columns: dict[str, str], rows: list[tuple[str | None, ...]]) -> None:
    declared = ", ".join(f"{quoted(name)} {column_type}" for name, column_type in columns.items())
    con.execute(f"CREATE OR REPLACE TABLE source ({declared})").fetchall()
    if rows:
        con.executemany(f"INSERT INTO source VALUES ({', '.join('?' * len(columns))})", rows)


def described(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in con.execute(f"DESCRIBE {query}").fetchall()]


@pytest.mark.thorough
@given(table=tables(), seed=st.none() | st.just(1))
def test_any_table_comes_back_unchanged(shared: duckdb.DuckDBPyConnection, table: tuple, seed: int | None) -> None:
    columns, rows = table
    fill(shared, columns, rows)
    names = "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in columns) + "]"
    call = f"FROM anon._identity('source', {names}, seed := {seed or 'NULL'})"
    types = {name: "VARCHAR" if kind.startswith("ENUM(") else kind for name, kind in described(shared, "FROM source")}
    assert described(shared, call) == list(types.items())
    there = "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM source"
    back = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({call})"
    assert shared.execute(f"{there} EXCEPT ALL {back}").fetchall() == []
    assert shared.execute(f"{back} EXCEPT ALL {there}").fetchall() == []


@pytest.mark.thorough
@pytest.mark.parametrize("column_type", sorted(TYPES))
@dear  # for the number of types
@given(data=st.data())
def test_every_type_travels(shared: duckdb.DuckDBPyConnection, column_type: str, data: st.DataObject) -> None:
    """Each type by itself, so that none depends on being drawn."""
    values = data.draw(st.lists(st.none() | TYPES[column_type], min_size=1, max_size=20))
    fill(shared, {"x": column_type}, [(value,) for value in values])
    there = shared.execute("SELECT x::VARCHAR FROM source ORDER BY ALL").fetchall()
    back = shared.execute("SELECT x::VARCHAR FROM anon._identity('source', ['x']) ORDER BY ALL").fetchall()
    assert back == there


def test_more_rows_than_a_vector_and_several_threads(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE big AS SELECT i, i::VARCHAR AS s, i / 7 AS d FROM range(500_000) AS t(i)").fetchall()
    kept = con.execute("""
        SELECT count(*), count(*) FILTER (s = i::VARCHAR AND d = i / 7), sum(i)
        FROM anon._identity('big', ['i', 's', 'd'])""")
    assert kept.fetchall() == [(500_000, 500_000, 500_000 * 499_999 // 2)]


@pytest.mark.thorough
def test_a_seed_means_the_same_order_whatever_the_scan_did(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE big AS SELECT i, i % 97 AS j FROM range(400_000) AS t(i)").fetchall()
    con.execute("CREATE TABLE turned AS FROM big ORDER BY i DESC").fetchall()
    releases = [
        con.execute(f"SELECT i, j FROM anon.swap('{name}', ['i', 'j'], seed := 3)").fetchall()
        for name in ("big", "big", "turned")
    ]
    assert releases[0] == releases[1] == releases[2]


def check_uniform(draw: Callable[[int], tuple], draws: int = 720) -> None:
    """Over many releases of three rows, all 36 pairs of orders come up, evenly (chi-square, 35 degrees of freedom)."""
    seen = Counter(draw(seed) for seed in range(draws))
    expected = draws / 36
    assert len(seen) == 36
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 66.6  # the 99.9 % point


def test_swapping_is_uniform() -> None:
    three = pa.table({"n": [1, 2, 3], "s": ["a", "b", "c"]})
    check_uniform(lambda seed: tuple(zip(*swap(three, seed).to_pydict().values(), strict=True)))


@pytest.mark.thorough
def test_swapping_is_uniform_through_the_bridge(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE three AS FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) AS t(n, s)").fetchall()
    check_uniform(lambda seed: tuple(con.execute(f"FROM anon.swap('three', ['n', 's'], seed := {seed})").fetchall()))


@pytest.mark.thorough
def test_calls_on_many_threads_keep_apart(own_con: duckdb.DuckDBPyConnection) -> None:
    own_con.execute("CREATE TABLE big AS SELECT i, -i AS j FROM range(60_000) AS t(i)").fetchall()
    wrong: list[object] = []

    def work(number: int) -> None:
        cursor = own_con.cursor()
        low, high = number * 5000, number * 5000 + 5000
        query = f"""
            WITH part AS (FROM big WHERE i >= {low} AND i < {high})
            SELECT count(*), min(i), max(i), sum(i + j) FROM anon._identity('part', ['i', 'j'])"""
        for _ in range(5):
            got = cursor.execute(query).fetchall()
            if got != [(5000, low, high - 1, 0)]:
                wrong.append(got)
        cursor.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_two_calls_in_one_query(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT i FROM range(5000) AS t(i)").fetchall()
    con.execute("CREATE TABLE u AS SELECT -i AS i FROM range(3000) AS t(i)").fetchall()
    query = "SELECT (SELECT sum(i) FROM anon._identity('t', ['i'])), (SELECT sum(i) FROM anon._identity('u', ['i']))"
    assert con.execute(query).fetchall() == [(5000 * 4999 // 2, -3000 * 2999 // 2)]


def test_a_function_runs_once_per_call(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def noted(table: pa.Table) -> pa.Table:
        sizes.append(table.num_rows)
        return table

    monkeypatch.setattr(registry, "identity", noted)
    import_function.cache_clear()
    con.execute("CREATE TABLE t AS SELECT i, i AS j, i AS k FROM range(5000) AS t(i)").fetchall()
    before = len(registry.PARCELS)
    con.execute("CREATE TABLE o AS FROM anon._identity('t', ['i', 'j', 'k'])").fetchall()
    import_function.cache_clear()
    assert sizes == [5000]
    assert con.execute("SELECT count(*) FROM o WHERE i = j AND j = k").fetchall() == [(5000,)]
    assert len(registry.PARCELS) == before


def opened(rows: parcels.Parcels, connection: int, query: int, database: int = 1) -> int:
    return rows.open(pa.array([[database, connection, query]]))[0].as_py()


def test_what_a_failed_query_collected_is_dropped() -> None:
    rows = parcels.Parcels()
    park_block = rows.park(parcels.TableBuilder)

    def park(call: int) -> int | None:
        tickets = park_block(pa.array([{"a": 1}, {"a": 2}]), pa.array([call] * 2)).to_pylist()
        assert tickets[1] is None
        return tickets[0]

    failed = opened(rows, 1, 10)
    park(failed)  # this query fails before it comes to its function
    others = [opened(rows, 2, 11), opened(rows, 1, 10, database=2)]
    assert [park(call) for call in others] == others
    first, second = opened(rows, 1, 12), opened(rows, 1, 12)
    assert (park(first), park(first), park(second)) == (first, None, second)  # a ticket is given once
    assert len(rows) == 4
    assert rows.redeem([first]).table().to_pydict() == {"a": [1, 2, 1, 2]}
    assert [rows.redeem([call]).table().num_rows for call in (second, *others)] == [2, 2, 2]
    assert rows.redeem(None) is None
    assert len(rows) == 0
    with pytest.raises(ValueError, match="the query ended before all its rows were read"):
        park(failed)
    with pytest.raises(ValueError, match="the query ended before all its rows were read"):
        rows.redeem([failed])


def test_a_connection_that_goes_during_a_call_is_not_waited_for() -> None:
    all_waiting = waiting.Waiting()
    rows = parcels.Parcels(all_waiting)
    left = opened(rows, 1, 1)
    rows.park(parcels.TableBuilder)(pa.array([{"a": 1}]), pa.array([left]))
    with all_waiting._lock:  # where the garbage collector may run
        all_waiting.drop_connection(1, 1)
    assert len(rows) == 1
    opened(rows, 2, 1)
    assert len(rows) == 0


@pytest.mark.thorough
def test_calls_of_empty_tables_do_not_pile_up() -> None:
    """Each is of a connection of its own, which never comes back to make its calls go."""
    all_waiting = waiting.Waiting()
    rows = parcels.Parcels(all_waiting)
    with_rows = opened(rows, 0, 1)
    rows.park(parcels.TableBuilder)(pa.array([{"a": 1}]), pa.array([with_rows]))
    for connection in range(1, 3 * waiting.MOST_CALLS):
        opened(rows, connection, 1)
    assert len(all_waiting._calls) <= waiting.MOST_CALLS
    assert rows.redeem([with_rows]).table().num_rows == 1


def test_what_a_closed_connection_left_behind_goes_with_it() -> None:
    con = duckanon.connect()
    con.execute("CREATE TABLE t AS SELECT i FROM range(5000) AS t(i)").fetchall()
    before = len(registry.PARCELS)
    with pytest.raises(duckdb.Error):
        con.execute("SELECT error('stopped' || anon._pack('x', 't', ['i'], NULL)::VARCHAR)").fetchall()
    assert len(registry.PARCELS) == before + 1
    con.close()
    del con
    gc.collect()
    assert len(registry.PARCELS) == before


@pytest.mark.thorough
def test_databases_share_their_functions() -> None:
    """Nothing of a closed database has to be kept: the functions are the same in all of them."""
    before = registry.functions()
    for _ in range(3):
        duckanon.connect().close()
    assert registry.functions() is before


@pytest.mark.thorough
@cheap
@given(
    blocks=st.lists(st.lists(st.tuples(st.none() | st.integers(-5, 5), st.none() | TEXT), min_size=1), min_size=1),
    threads=st.integers(1, 3),
)
def test_builders_keep_every_row(blocks: list[list[tuple]], threads: int) -> None:
    """Blocks added to several builders that are merged: the rows are all there, each with its own values."""
    kind = pa.struct([("n", pa.int16()), ("s", pa.string())])
    arrays = [pa.array([{"n": n, "s": s} for n, s in block], kind) for block in blocks]
    builders = [parcels.TableBuilder(arrays[0]) for _ in range(threads)]
    for number, array in enumerate(arrays):
        builders[number % threads].add(array)
    for other in builders[1:]:
        builders[0].merge(other)
    rows = builders[0].table().to_pylist()
    assert Counter((row["n"], row["s"]) for row in rows) == Counter(row for block in blocks for row in block)


def test_types_that_cannot_travel_are_refused_by_name() -> None:
    for arrow_type in (pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.binary(), pa.month_day_nano_interval()):
        assert slots.slot_of(arrow_type) is None
    with pytest.raises(ValueError, match='column "x" holds values of a type that cannot be released'):
        slots.refuse_types_that_cannot_travel(pa.schema([("ok", pa.int8()), ("x", pa.binary())]))


RELEASES = {
    "swap": "anon.swap({table}, ['mood', 'x'])",
    "svd_swap": "anon.svd_swap({table}, ['mood', 'x'], checks := 'off')",
    "pica": "anon.pica({table}, ['mood', 'x'], cluster_size := 100, checks := 'off')",
    "boxes": "anon.boxes({table}, ['x'], 5, keep := ['mood'])",
    "microaggregate": "anon.microaggregate({table}, ['x'], 5, keep := ['mood'])",
    "suppress_cells": "anon.suppress_cells({table}, ['mood'], 5)",
    "recode": "anon.recode({table}, ['x'], 5, keep := ['mood'], effort := 'quick')",
    "spectral_release": "anon.spectral_release({table}, ['mood', 'x'])",
    "synthesize": "anon.synthesize({table}, ['mood', 'x'])",
    "spectral_rhs": "anon.spectral_rhs({table}, ['mood', 'x'], 5)",
    "rhs": "anon.rhs({table}, ['mood', 'x'], 5, checks := 'off')",
    "additive_noise": "anon.additive_noise({table}, ['mood', 'x'])",
    "data_shuffle": "anon.data_shuffle({table}, ['mood', 'x'])",
    "copula_synthesize": "anon.copula_synthesize({table}, ['mood', 'x'])",
}


@pytest.mark.thorough
@pytest.mark.parametrize("call", RELEASES.values(), ids=RELEASES)
def test_no_type_lists_a_value_that_no_released_row_has(con: duckdb.DuckDBPyConnection, call: str) -> None:
    """An ENUM tells of a diagnosis that one person has, even where the release left that person out."""
    con.execute("CREATE TYPE diagnosis AS ENUM ('cough', 'cold', 'rabies')").fetchall()
    con.execute("""
        CREATE TABLE everybody AS
        SELECT CASE WHEN i = 7 THEN 'rabies' WHEN hash(i) % 3 = 0 THEN 'cold' ELSE 'cough' END::diagnosis AS mood,
               hash(-i) % 97 / 7 AS x
        FROM range(300) AS r(i)""").fetchall()
    con.execute("CREATE VIEW others AS FROM everybody WHERE mood <> 'rabies'").fetchall()
    con.execute("CREATE VIEW nobody AS FROM everybody WHERE false").fetchall()
    others, nobody = "'others'", "'nobody'"
    for table in (others, nobody):
        assert dict(described(con, f"FROM {call.format(table=table)}"))["mood"] == "VARCHAR"
    values = con.execute(f"SELECT DISTINCT mood FROM {call.format(table=others)} ORDER BY mood").fetchall()
    assert values == [("cold",), ("cough",)]


def test_nested_enums_are_refused_and_do_not_list_their_values(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        CREATE TABLE nested AS
        SELECT ['cold'::ENUM('cold', 'rabies')] AS list, {'a': 'cold'::ENUM('cold', 'rabies')} AS struct,
               1 AS x FROM range(9)""").fetchall()
    for column in ("list", "struct"):
        for call in (f"anon.swap('nested', ['{column}'])", f"anon.boxes('nested', ['x'], 2, keep := ['{column}'])"):
            assert "rabies" not in str(described(con, f"FROM {call}"))
            with pytest.raises(duckdb.Error, match="holds values of a type that cannot be released") as refused:
                con.execute(f"FROM {call}").fetchall()
            assert "rabies" not in str(refused.value)


def test_an_error_names_the_function_once(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.InvalidInputException, match=r"anon\.swap: seed must be") as caught:
        con.execute("WITH t AS (SELECT 1 AS i) FROM anon.swap('t', ['i'], seed := -3)").fetchall()
    assert str(caught.value).count("anon.swap") == 1


def test_a_call_for_several_rows_is_refused() -> None:
    """DuckDB hands over several rows where an argument is a column of another table; there is one table to work on."""
    all_tasks = calls.Tasks(waiting.Waiting())
    called = calls.report_function(Report(name="x", algorithm="unused:unused"), parcels.Parcels(), all_tasks)
    with pytest.raises(ValueError, match=r"^anon\.x: it works on whole tables and cannot be called for every row"):
        called(pa.array([[1, 1, 1]] * 2), pa.array([None, None], pa.list_(pa.int64())), pa.array([None, None]))


def test_dictionaries_travel_as_codes_where_a_release_says_so():
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int8()), pa.array(["a", "b"]))
    table = pa.table({"label": labels, "number": [4, 5, 6, 7]})
    label, number = slots.pack([table], coded=True)[0].as_py()["columns"]
    assert (label["s"], label["c"]) == (["a", "b"], [1, 2, 1, None])  # as lists count in SQL
    assert (number["i"], number["c"]) == ([4, 5, 6, 7], None)
    spelled = slots.pack([table])[0].as_py()["columns"][0]
    assert (spelled["s"], spelled["c"]) == (["a", "b", "a", None], None)
