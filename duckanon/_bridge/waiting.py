"""State of running queries in Python: collected rows, and work that is under way.

DuckDB does not tell when a query ends. What a query left behind is dropped when its connection runs another one, when
the connection is closed or goes, and at the latest when the query has not been heard of for `PATIENCE` seconds.
"""

from __future__ import annotations

import collections
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

MOST_CALLS = 1_000
"""So many calls are remembered: far more than run at the same time, and a call that is forgotten is refused."""

PATIENCE = 600.0
"""Seconds after which a query that is not heard of counts as over. A living one may be silent for as long as it takes
to compute a view, between the scans of the two tables that a function takes."""

_LOOK_EVERY = 5.0  # seconds

ENDED = "the query ended before all its rows were read; run it again."

FOR_EVERY_ROW = (
    "it works on whole tables and cannot be called for every row of another one; make a table of its result first."
)


class Owner(NamedTuple):
    """Whose call it is: the database, its connection, and the connection's query."""

    database: int
    connection: int
    query: int


class Query:
    """A query that has something on its way: when it was last heard of, and whether it is known to be over."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.is_over = False
        self._heard = time.monotonic()

    def hear(self) -> None:
        """Note that the query is alive."""
        self._heard = time.monotonic()

    @property
    def silence(self) -> float:
        """Seconds since it was last heard of."""
        return time.monotonic() - self._heard


class _Call:
    """Something on its way: whose it is, and what; None as long as no row has come."""

    def __init__(self, query: Query, thing: Any) -> None:
        self.query, self.thing = query, thing


class Waiting:
    """All that is on its way, by the number of the call, of all databases."""

    def __init__(self) -> None:
        self.forget_all()

    def forget_all(self) -> None:
        """Begin with nothing on its way: at first, and in a forked process, where no thread would bring it further."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._gone: collections.deque[tuple[int, int]] = collections.deque()  # databases and their connections
        self._calls: dict[int, _Call] = {}
        self._watcher: threading.Thread | None = None

    def open(self, owner: Owner, make: Callable[[Query], Any] | None = None) -> int:
        """Begin a call and return its number; what earlier queries of its connection have left is dropped."""
        with self._lock:
            self._drop_gone()
            self._drop(lambda query: query.owner[:2] == owner[:2] and query.owner.query != owner.query)
            self._forget_without_rows()
            query = next((call.query for call in self._calls.values() if call.query.owner == owner), Query(owner))
            query.hear()
            number = next(self._numbers)
            self._calls[number] = _Call(query, None if make is None else make(query))
            if self._watcher is None:  # somebody has to look after silent queries as long as anything is on its way
                self._watcher = threading.Thread(target=self._look, name="duckanon-waiting", daemon=True)
                self._watcher.start()
        return number

    def thing(self, number: int, make: Callable[[], Any]) -> Any:
        """Return what is on its way under a number, made now if there is nothing yet; its query is alive."""
        with self._lock:
            call = self._calls.get(number)
            if call is None:
                raise ValueError(ENDED)
            call.query.hear()
            if call.thing is None:
                call.thing = make()
            return call.thing

    def take(self, number: int) -> Any:
        """Return what is on its way under a number and forget about it."""
        with self._lock:
            call = self._calls.pop(number, None)
            if call is None:
                raise ValueError(ENDED)
            call.query.hear()
            return call.thing

    def drop_connection(self, database: int, connection: int) -> None:
        """Drop what a connection that is gone has left behind: now, or when the next call begins.

        Python may collect the connection while this very thread holds the lock, so it cannot be waited for.
        """
        self._gone.append((database, connection))
        if self._lock.acquire(blocking=False):
            try:
                self._drop_gone()
            finally:
                self._lock.release()

    def drop_silent(self, patience: float | None = None) -> None:
        """Drop what belongs to queries that have not been heard of for too long."""
        with self._lock:
            self._drop_gone()
            self._drop(lambda query: query.silence > (PATIENCE if patience is None else patience))

    def things(self) -> list[Any]:
        """List all that is on its way."""
        with self._lock:
            return [call.thing for call in self._calls.values() if call.thing is not None]

    def __len__(self) -> int:
        """Count the calls that have something on its way."""
        return len(self.things())

    def _drop_gone(self) -> None:
        gone = {self._gone.popleft() for _ in range(len(self._gone))}
        if gone:
            self._drop(lambda query: query.owner[:2] in gone)

    def _drop(self, is_over: Callable[[Query], bool]) -> None:
        for number, call in list(self._calls.items()):
            if is_over(call.query):
                call.query.is_over = True
                del self._calls[number]

    def _forget_without_rows(self) -> None:
        """Forget the oldest calls that no row has come for, once there are very many: of empty tables, mostly."""
        if len(self._calls) >= MOST_CALLS:
            for number in [number for number, call in self._calls.items() if call.thing is None][: MOST_CALLS // 2]:
                del self._calls[number]

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK_EVERY)
            self.drop_silent()
            with self._lock:
                if not self._calls:
                    self._watcher = None
                    return


WAITING = Waiting()
"""All that queries have on their way, in all databases."""
