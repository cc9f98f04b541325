"""The workbench started and ended: one process, which ends when its last window is closed."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from duckanon.job.draft import draft
from duckanon.job.errors import FileProblem
from duckanon.job.run import connection
from duckanon.workbench.app import Windows, application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site

_CLOSED_FOR = 10.0
"""Seconds without a window, after which the workbench ends: loading the next page closes a window for a moment."""


def policy_of(source: str, table: str | None, say: Callable[[str], None]) -> Path:
    """Return the policy to open: the one that was named, or one for a file of people, which is drafted if it is new."""
    if source.endswith(".toml"):
        return Path(source)
    path = Path(source)
    stem = re.sub(r"\W+", "_", table or path.name.split(".")[0])
    policy = path.parent / f"{stem}.policy.toml"
    if policy.exists():
        say(f"{policy} is there already and is opened")
        return policy
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
        if open_browser:
            webbrowser.open(address)
        try:
            asyncio.run(_until_closed(server, windows, listening))
        finally:
            if not site.close():
                say("some work did not end in time; it ends with this process")
    say("the workbench is closed")


async def _until_closed(server: uvicorn.Server, windows: Windows, listening: socket.socket) -> None:
    async def watch() -> None:
        while not windows.are_closed(_CLOSED_FOR):
            await asyncio.sleep(0.5)
        server.should_exit = True

    watching = asyncio.create_task(watch())
    try:
        await server.serve(sockets=[listening])
    finally:
        watching.cancel()
