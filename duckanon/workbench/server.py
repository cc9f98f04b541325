"""The workbench started and ended: one process, which ends when its last window is closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from duckanon.job import policy_file
from duckanon.job.draft import draft
from duckanon.job.errors import FileProblem
from duckanon.job.run import connection
from duckanon.workbench.app import Windows, application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site

_CLOSED_FOR = 10.0
"""Seconds without a window, after which the workbench ends: loading the next page closes a window for a moment."""


_REDIRECT = """\
<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>duckanon workbench</title>
<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open the workbench</a>
"""


def policy_of(source: str, table: str | None, say: Callable[[str], None]) -> tuple[Path, str | None]:
    """Return the policy to open and its table: what was named, or the policy of a file, which is drafted if it is new.

    A policy beside the file that releases another one, as that of people.csv beside people.parquet, is not opened.
    """
    if source.endswith(".toml"):
        return Path(source), table
    path = Path(source)
    stems = (table or path.name.split(".")[0], f"{path.name}.{table}" if table else path.name)
    names = [re.sub(r"\W+", "_", stem) for stem in stems]
    candidates = [path.parent / f"{name}.policy.toml" for name in names]
    for policy in candidates:
        if not policy.exists():
            return _draft_policy(source, table, policy, say), None
        if name := _table_of(policy, path, table):
            say(f"{policy} is there already and is opened")
            return policy, name
        say(f"{policy} is the policy of another table and stays as it is")
    raise FileProblem(
        f"{candidates[-1]}: it is the policy of another table than {source}; open a policy by its name, or draft one "
        "with duckanon policy init."
    )


def _table_of(policy: Path, source: Path, table: str | None) -> str | None:
    """Return the name of the table of a policy that is released from a source, or None."""
    file = policy_file.read(policy)
    for name, entry in file.policy.tables.items():
        is_file = entry.source.path is not None and file.place(entry.source.path).resolve() == source.resolve()
        if is_file and (table is None or (entry.source.table or "").lower() == table.lower()):
            return name
    return None


def _draft_policy(source: str, table: str | None, policy: Path, say: Callable[[str], None]) -> Path:
    """Draft a policy of a source, and return where it is."""
    say(f"looking at {source}, to draft {policy}")
    con = connection()
    try:
        text = draft(con, source, table, None, policy)
    finally:
        con.close()
    try:
        with policy.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileProblem(f"{policy}: the policy cannot be written ({error.strerror}).") from None
    return policy


@contextlib.contextmanager
def _private_page(address: str) -> Iterator[str]:
    """Yield the address of a file that only its owner reads and that leads to a page; it is gone after the block.

    The arguments of a browser's process can be listed by every user of the machine: no token stands in them.
    """
    with tempfile.TemporaryDirectory(prefix="duckanon-workbench-") as folder:  # nobody else may look into it
        page = Path(folder) / "open.html"
        with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_REDIRECT.format(address=address))
        yield page.as_uri()


def serve(policy: Path, table: str | None, *, port: int, open_browser: bool, say: Callable[[str], None]) -> None:
    """Show a policy in the browser until its last window is closed, or the process is interrupted."""
    text = PolicyText(policy, table)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen()  # so that a browser that comes before the server is ready waits
        except OSError as error:
            raise FileProblem(f"port {port} cannot be opened ({error.strerror}).") from None
        root = "/" + secrets.token_urlsafe(24)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}{root}"
        site, windows = Site(text, root), Windows()
        server = uvicorn.Server(
            uvicorn.Config(
                application(site, windows),
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        say(f"the workbench is open at {address}")
        with contextlib.ExitStack() as page:
            if open_browser:
                webbrowser.open(page.enter_context(_private_page(address)))
            try:
                asyncio.run(_until_closed(server, windows, listening, page.close))
            finally:
                if not site.close():
                    say("some work did not end in time; it ends with this process")
    say("the workbench is closed")


async def _until_closed(
    server: uvicorn.Server, windows: Windows, listening: socket.socket, when_open: Callable[[], None]
) -> None:
    """Serve until the last window is closed; `when_open` is called as soon as there is one."""

    async def watch() -> None:
        while not windows.are_closed(_CLOSED_FOR):
            if windows.open:
                when_open()
            await asyncio.sleep(0.5)
        server.should_exit = True

    watching = asyncio.create_task(watch())
    try:
        await server.serve(sockets=[listening])
    finally:
        watching.cancel()
