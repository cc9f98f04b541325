"""Long work in threads: how far it is, how to stop it, what came of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import duckdb

from duckanon._bridge import sql
from duckanon._core.common.progress import StoppedError
from duckanon.job.errors import JobError, PromiseBroken

_LOOK_EVERY = 0.1


class Work:
    """One piece of work in a thread.

    Attributes:
        lines: The steps that it said.
        result: What came of it, or of its parts so far.
        error: Why it failed, in sentences without a value of the data.
        broken: The record of a release that broke a promise.
    """

    def __init__(self, do: Callable[[Work], Any], key: Any = None) -> None:
        self.key = key
        self.lines: list[str] = []
        self.result: Any = None
        self.error: str | None = None
        self.broken: Any = None
        self.stop = threading.Event()
        self._connections: list[sql.Connection] = []
        self._began, self._ended = time.monotonic(), 0.0
        self._thread = threading.Thread(target=self._run, args=(do,), name="duckanon-workbench", daemon=True)
        self._thread.start()

    def _run(self, do: Callable[[Work], Any]) -> None:
        threading.Thread(target=self._watch, name="duckanon-workbench-stop", daemon=True).start()
        try:
            self.result = do(self)
        except (Exception, StoppedError) as error:
            if self.stop.is_set():
                self.error = "Cancelled."
            elif isinstance(error, JobError):
                self.error = str(error)
                self.broken = error.record if isinstance(error, PromiseBroken) else None
            else:
                why = sql.reason(error)
                self.error = f"{why}." if why.startswith("anon.") else f"It failed ({why})."
        finally:
            for con in self._connections:
                con.close()
            self._ended = time.monotonic()

    def _watch(self) -> None:
        """Interrupt statements again and again: an interrupt is lost on one that has not begun yet."""
        while self.is_running:
            if self.stop.wait(_LOOK_EVERY):
                for con in list(self._connections):
                    with contextlib.suppress(duckdb.Error):  # one that was closed just now
                        con.interrupt()
                self._thread.join(_LOOK_EVERY)

    def cursor(self, con: sql.Connection) -> sql.Connection:
        """Return a cursor that is interrupted when the work is cancelled, and closed when it ends."""
        opened = con.cursor()
        self._connections.append(opened)
        return opened

    def say(self, line: str) -> None:
        """Tell a step, and stop here if the work is cancelled."""
        self.lines.append(line)
        self.check()

    def check(self) -> None:
        """Stop here if the work is cancelled."""
        if self.stop.is_set():
            raise StoppedError

    def cancel(self) -> None:
        """Ask the work to stop."""
        self.stop.set()

    def wait(self, seconds: float | None = None) -> Work:
        """Wait until the work has ended, at most so long."""
        self._thread.join(seconds)
        return self

    @property
    def is_running(self) -> bool:
        """Whether it is still at work."""
        return self._thread.is_alive()

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return (self._ended or time.monotonic()) - self._began


class Works:
    """The work of a workbench, one of each kind at a time: a new one takes the place of the old, which is cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: dict[str, Work] = {}
        self._all: list[Work] = []

    def start(self, kind: str, do: Callable[[Work], Any], key: object = None) -> Work:
        """Start a piece of work of a kind; `key` says what it is about."""
        with self._lock:
            if kind in self._works:
                self._works[kind].cancel()
            self._all = [work for work in self._all if work.is_running]
            work = self._works[kind] = Work(do, key)
            self._all.append(work)
            return work

    def get(self, kind: str, key: object = None) -> Work | None:
        """Return the last work of a kind; with a key only if it is about that."""
        work = self._works.get(kind)
        return work if work and (key is None or work.key == key) else None

    def ensure(self, kind: str, key: object, do: Callable[[Work], Any]) -> Work:
        """Return the work about a key, and start it where the last one was about another."""
        return self.get(kind, key) or self.start(kind, do, key)

    def stop(self, seconds: float = 20) -> bool:
        """Cancel everything and wait for it; tell whether all of it has ended."""
        with self._lock:
            for work in self._all:
                work.cancel()
            end = time.monotonic() + seconds
            for work in self._all:
                work.wait(max(end - time.monotonic(), 0))
            return not any(work.is_running for work in self._all)
