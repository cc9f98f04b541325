"""It stops when asked to, it says how far it is, it runs once or says so, and nothing stays behind."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

import duckanon
from duckanon._bridge import calls, parcels, registry, waiting
from duckanon._core.common import progress

PEOPLE = """
    CREATE TABLE people AS
    SELECT i, 20 + hash(i) % 60 AS age, hash(i + 1) % 100_000 AS income, (100 + hash(i + 2) % 900)::VARCHAR AS zip,
           hash(i + 3) % 1_000_003 / 1_000_003 AS share, ['m', 'f'][1 + (hash(i + 4) % 2)::INTEGER] AS sex,
           i // 2 AS person
    FROM range({rows}) AS r(i)"""

TAKES_MINUTES = {  # seconds on one core, uninterrupted: more than twenty for each
    "generalize": "anon.generalize('people', ['age', 'zip', 'sex', 'income'], 10, person := 'person')",
    "boxes": "anon.boxes('people', ['age', 'income', 'share'], 5, effort := 'thorough')",
    "microaggregate": "anon.microaggregate('people', ['age', 'income', 'share'], 5)",
    "recode": "anon.recode('people', ['age', 'income', 'zip', 'sex'], 5, effort := 'thorough')",
    "pica": "anon.pica('people', ['age', 'income', 'share', 'sex'], checks := 'off')",
    "singling_out_risk": "anon.singling_out_risk('people', 'people', ['age', 'income', 'share', 'sex'])",
    "prediction_risk": "anon.prediction_risk('people', 'people', ['age', 'income', 'share'])",
}

FAILS_WITH_ROWS = "SELECT error('stopped' || anon._pack('x', 'people', ['i'], NULL)::VARCHAR)"


@pytest.fixture(autouse=True)
def nothing_waits() -> None:
    """What failed queries of other tests have left, on connections that stay open, is not looked for here."""
    registry.WAITING.drop_silent(0)


@pytest.fixture(scope="module")
def many() -> Iterator[duckdb.DuckDBPyConnection]:
    """A plain connection, registered, with a table that takes long."""
    con = duckanon.register(duckdb.connect())
    con.execute(PEOPLE.format(rows=200_000)).fetchall()
    yield con
    con.close()


def wait_until(holds: Callable[[], bool]) -> bool:
    """Wait for what must come, however busy the machine is; a quarter of an hour means that it never does."""
    for _ in range(45_000):
        if holds():
            break
        time.sleep(0.02)
    return holds()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of a clock that stands still, by which queries are heard of; a test sets it."""
    seconds = [0.0]
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: seconds[0], sleep=time.sleep))
    return seconds


@pytest.mark.thorough
@pytest.mark.parametrize("call", TAKES_MINUTES.values(), ids=TAKES_MINUTES)
def test_an_interrupt_ends_the_query_and_then_the_work(many: duckdb.DuckDBPyConnection, call: str) -> None:
    many.execute("CREATE OR REPLACE TEMP TABLE mine AS SELECT 1 AS one").fetchall()
    cursor = many.cursor()
    interrupted: list[float] = []

    def interrupt() -> None:
        wait_until(lambda: bool(registry.TASKS.running()))
        begun = time.process_time()
        wait_until(lambda: time.process_time() > begun + 0.5)
        interrupted.append(time.process_time())
        cursor.interrupt()

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(duckdb.InterruptException):
        cursor.execute(f"FROM {call}").fetchall()
    other.join()
    assert time.process_time() - interrupted[0] < 10  # of the processor: others may keep it busy
    threads = [task.thread for task in registry.TASKS.running()]
    assert many.execute("FROM mine").fetchall() == [(1,)]
    assert cursor.execute("SELECT 2").fetchall() == [(2,)]
    cursor.close()
    assert wait_until(lambda: not any(thread.is_alive() for thread in threads))
    assert len(registry.WAITING) == 0


def test_work_pauses_while_its_query_is_not_heard_of_and_goes_on(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query may be slow to ask: the program was stopped, or a result is read in steps."""
    query = waiting.Query(waiting.Owner(1, 1, 1))
    begun, paused, is_enough = threading.Event(), threading.Event(), threading.Event()

    def compute() -> pa.Array:
        while not is_enough.is_set():
            progress.check()
            begun.set()
        return pa.array([True])

    def sleep(seconds: float) -> None:
        paused.set()
        time.sleep(seconds)

    monkeypatch.setattr(calls, "time", SimpleNamespace(sleep=sleep))
    task = calls.Task(query, "anon.x", compute)
    assert begun.wait(900)
    assert not paused.is_set()
    clock[0] = 1.1
    assert paused.wait(900)
    is_enough.set()
    assert not task._is_done.wait(0.2)  # it pauses: it does not even see that it is enough
    assert task.wait(900)
    assert task.result().to_pylist() == [True]


def test_errors_of_the_work_hold_no_rows() -> None:
    """The frames of a traceback keep their variables: people's rows."""
    task = calls.Task(waiting.Query(waiting.Owner(1, 1, 1)), "anon.x", failing)
    assert task.wait(900)
    with pytest.raises(ValueError, match="wrong") as raised:
        task.result()
    frame = raised.tb
    while frame is not None:
        assert frame.tb_frame is not None
        assert "rows_of_people" not in frame.tb_frame.f_locals
        frame = frame.tb_next


def failing() -> pa.Array:
    rows_of_people = [1, 2, 3]
    raise ValueError(f"wrong {len(rows_of_people)}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "setting", ["SET threads = 1", "PRAGMA disable_optimizer", "SET scheduler_process_partial = true"]
)
def test_waiting_does_not_depend_on_settings(setting: str) -> None:
    con = duckanon.connect()
    con.execute(PEOPLE.format(rows=3000)).fetchall()
    try:
        con.execute(setting).fetchall()
    except duckdb.CatalogException:
        pytest.skip("this version of DuckDB does not have the setting")
    for call in ("anon.swap('people', ['age'])", "anon.boxes('people', ['age'], 5)"):
        assert con.execute(f"SELECT count(*) FROM {call}").fetchall() == [(3000,)]
    con.close()


CORRELATED = {
    "subquery": "SELECT (SELECT count(*) FROM {call} WHERE o.i > 3) FROM outer_rows AS o",
    "lateral": "SELECT n FROM outer_rows AS o, LATERAL (SELECT count(*) AS n FROM {call} WHERE o.i > 3)",
    "exists": "SELECT count(*) FROM outer_rows AS o WHERE EXISTS (FROM {call} WHERE o.i > 3)",
}


@pytest.mark.thorough
@pytest.mark.parametrize("query", CORRELATED.values(), ids=CORRELATED)
@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize(
    "call",
    [
        "anon.generalize('people', ['age'], 5)",
        "anon.plan('people', ['age'], 5)",
        "anon.swap('people', ['age'])",
        "anon.optimal_partition('people', 'age', 5)",
    ],
)
def test_a_function_in_a_correlated_subquery_runs_once_or_is_refused(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, query: str, rows: int, call: str
) -> None:
    con.execute(PEOPLE.format(rows=300)).fetchall()
    con.execute(f"CREATE TABLE outer_rows AS SELECT i FROM range({rows}) AS r(i)").fetchall()
    begun = []
    begin = calls.Tasks.begin

    def counted(self: calls.Tasks, *arguments: object) -> pa.Array:
        begun.append(1)
        return begin(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(calls.Tasks, "begin", counted)
    try:
        con.execute(query.format(call=call)).fetchall()
    except duckdb.Error as error:
        assert "it works on whole tables and cannot be called for every row of another one" in str(error)  # noqa: PT017
    assert len(begun) <= 1


def test_rows_of_a_failed_query_go_with_its_cursor(many: duckdb.DuckDBPyConnection) -> None:
    for end in ("close", "collect"):
        cursor = many.cursor()
        with pytest.raises(duckdb.Error, match="stopped"):
            cursor.execute(FAILS_WITH_ROWS).fetchall()
        assert len(registry.PARCELS) == 1
        if end == "close":
            cursor.close()
        else:
            del cursor
            gc.collect()
        assert len(registry.PARCELS) == 0


def test_a_macro_of_a_user_does_not_end_the_queries_of_another_cursor() -> None:
    """Cursors are told apart by DuckDB's own number, whatever a macro of that function's name answers."""
    con = duckanon.connect()
    con.execute(PEOPLE.format(rows=3000)).fetchall()
    cursor = con.cursor()
    ((number,),) = cursor.execute("SELECT current_connection_id()").fetchall()
    con.execute(f"CREATE MACRO current_connection_id() AS {number}").fetchall()
    with pytest.raises(duckdb.Error, match="stopped"):
        cursor.execute(FAILS_WITH_ROWS).fetchall()
    con.cursor().close()
    assert len(registry.PARCELS) == 1
    cursor.close()
    assert len(registry.PARCELS) == 0
    con.close()


def test_rows_of_a_failed_query_go_with_a_plain_connection() -> None:
    con = duckanon.register(duckdb.connect())
    con.execute(PEOPLE.format(rows=3000)).fetchall()
    with pytest.raises(duckdb.Error, match="stopped"):
        con.execute(FAILS_WITH_ROWS).fetchall()
    assert len(registry.PARCELS) == 1
    con.close()
    assert len(registry.PARCELS) == 0


def test_registering_leaves_a_result_that_is_being_read_alone() -> None:
    con = duckdb.connect()
    con.execute("FROM range(10_000)")
    assert con.fetchone() == (0,)
    duckanon.register(con)
    assert con.fetchone() == (1,)
    con.close()


def test_what_a_silent_query_left_behind_goes_in_the_end(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a connection that nobody told us of, and that never comes back."""
    monkeypatch.setattr(waiting, "_LOOK_EVERY", 0.01)
    all_waiting = waiting.Waiting()
    rows = parcels.Parcels(all_waiting)
    (call,) = rows.open(pa.array([[1, 2, 3]])).to_pylist()
    rows.park(parcels.TableBuilder)(pa.array([{"a": 1}]), pa.array([call]))
    assert len(all_waiting) == 1
    clock[0] = waiting.PATIENCE + 1
    assert wait_until(lambda: len(all_waiting) == 0)
    assert wait_until(lambda: all_waiting._watcher is None)  # it does not watch nothing
    with pytest.raises(ValueError, match="the query ended before all its rows were read"):
        rows.redeem([call])


def test_a_query_that_is_heard_of_keeps_what_it_has(clock: list[float]) -> None:
    all_waiting = waiting.Waiting()
    rows = parcels.Parcels(all_waiting)
    first, second = (rows.open(pa.array([[1, 2, 3]]))[0].as_py() for _ in range(2))
    park = rows.park(parcels.TableBuilder)
    park(pa.array([{"a": 1}]), pa.array([first]))
    clock[0] = 2
    park(pa.array([{"a": 1}]), pa.array([second]))  # of the same query: the first table's rows are still wanted
    all_waiting.drop_silent(1.5)
    assert rows.redeem([first]).table().num_rows == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "call", ["anon.generalize('people', ['age', 'zip'], 5)", "anon.boxes('people', ['age', 'income'], 5)"]
)
def test_functions_that_take_long_tell_how_far_they_are(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    con.execute(PEOPLE.format(rows=3000)).fetchall()
    told: list[float] = []

    class Display:
        def __init__(self, caller: str) -> None:
            assert caller == call.partition("(")[0]

        def show(self, share: float) -> None:
            told.append(share)

        def close(self) -> None:
            told.append(2)

    monkeypatch.setattr(progress, "_open_display", Display)
    monkeypatch.setattr(progress.show.__wrapped__, "__defaults__", (0.0, 0.0))  # at once, and every time
    con.execute(f"FROM {call}").fetchall()
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == 2
    assert 0 <= told[0] < told[-2] <= 1
