"""The workbench as a web application: on 127.0.0.1 only, a token in every address, nothing loaded from elsewhere.

What the forms of the pages do: each changes the policy, or starts or cancels work.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from duckanon._bridge import sql
from duckanon.job.errors import JobError
from duckanon.workbench import policy_text, trials
from duckanon.workbench.policy_text import Conflict
from duckanon.workbench.site import EDITOR, PAGES, ROLES, Site
from duckanon.workbench.trees import Unfit

Form = Mapping[str, str]

PARTS = ("opening", "adds", "stop", "curve", "map", "preview", "distribution", "released")
"""Parts of pages that are asked for again while they are worked on."""

_WORK = ("curve", "map", "preview", "distribution", "released")


def _role(site: Site, form: Form) -> None:
    column, role = form["column"], form["role"]
    if role not in ROLES or column not in site.policy.table().columns:
        raise KeyError(role)
    site.policy.edit(form["seen"], f"{column}: {role}", policy_text.role(column, role))


def _undo(site: Site, form: Form) -> None:
    site.policy.undo(form["seen"])


def _method(site: Site, form: Form) -> None:
    if form["method"] not in trials.METHODS:
        raise KeyError("method")
    site.policy.edit(form["seen"], f"method {form['method']}", policy_text.method(form["method"]))
    if form["method"] == "synthesize":  # no class can be counted of new records: the job asks for this promise
        site.policy.edit(site.policy.version, "promise prediction", policy_text.promise("prediction", True))


def _promise(site: Site, form: Form) -> None:
    name, text = form["name"], form.get("value", "").strip()
    if name not in ("k", "l", "t", "max_suppressed_fraction"):
        raise KeyError(name)
    value: float | int | None = None
    if text and not form.get("none"):
        value = int(text) if name in ("k", "l") else float(text)
    site.policy.edit(form["seen"], f"promise {name} = {value}", policy_text.promise(name, value))


def _hierarchy(site: Site, form: Form) -> str:
    """Change the draft of a column's hierarchy, save it, or use none."""
    column, level = form["column"], form.get("level", "0")
    if column not in site.policy.table().columns or not level.isdecimal():
        raise KeyError(column)
    where = f"?column={quote(column)}&level={level}"
    try:
        if form["do"] == "none":
            site.policy.edit(form["seen"], f"no hierarchy of {column}", policy_text.hierarchy(column, None))
        else:
            site.editor.change(column, int(level), form)
    except IndexError:
        raise KeyError("member") from None
    except (Conflict, Unfit, JobError, ValueError) as error:
        why = "That is no number; nothing was changed." if isinstance(error, ValueError) else str(error)
        return f"{where}&message={quote(why[:1].upper() + why[1:])}"
    return where


def _narrowing(site: Site, form: Form) -> None:
    column = form["column"]
    if column not in site.policy.table().columns:
        raise KeyError(column)
    site.policy.edit(form["seen"], f"{column} is kept, although it narrows down others", policy_text.narrowing(column))


def _terms(site: Site, form: Form) -> None:
    site.policy.edit(form["seen"], "who gets the release and why", policy_text.terms(form))


def _start(site: Site, form: Form) -> str:
    if form["kind"] not in _WORK:
        raise KeyError("kind")
    column = form.get("column")
    if column is not None and column not in site.policy.table().columns:
        raise KeyError("column")
    site.start(form["kind"], column)
    return f"?column={quote(column)}" if column else ""


def _cancel(site: Site, form: Form) -> str:
    work = site.works.get(form["kind"])
    if work:
        work.cancel()
        work.wait(2)
    return f"?column={quote(form['column'])}" if "column" in form else ""


ACTIONS: dict[str, Callable[[Site, Form], str | None]] = {
    "role": _role,
    "undo": _undo,
    "method": _method,
    "promise": _promise,
    "hierarchy": _hierarchy,
    "narrowing": _narrowing,
    "terms": _terms,
    "start": _start,
    "cancel": _cancel,
}


HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_STATIC = {"page.css": "text/css", "page.js": "text/javascript"}
_LOOK_EVERY = 0.5
_MOST_BYTES = 1_000_000


class Windows:
    """The windows that show the workbench, and the requests that are being answered."""

    def __init__(self) -> None:
        self.open = 0
        self.busy = 0
        self.since: float | None = None  # when the last window was closed; None before the first was opened

    def are_closed(self, seconds: float) -> bool:
        """Tell whether all windows have been closed for so long."""
        is_idle = self.open == 0 and self.busy == 0
        return is_idle and self.since is not None and time.monotonic() - self.since > seconds


def application(site: Site, windows: Windows | None = None) -> Starlette:
    """Return the application; its addresses all begin with the token of the site."""
    windows = windows or Windows()
    views, root = _Views(site, windows), site.root
    app = Starlette(
        routes=[
            Route(root, views.begin),
            Route(f"{root}/part/{{part}}", views.part),
            Route(f"{root}/act/{{action}}", views.act, methods=["POST"]),
            Route(f"{root}/download/{{name}}", views.download),
            Route(f"{root}/events", views.events),
            Route(f"{root}/static/{{name}}", views.static),
            Route(f"{root}/{{page}}", views.show),
        ]
    )
    app.add_middleware(_Guard, windows=windows)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return app


class _Views:
    """The answers to requests."""

    def __init__(self, site: Site, windows: Windows) -> None:
        self._site, self._windows = site, windows

    async def begin(self, _: Request) -> Response:
        return RedirectResponse(f"{self._site.root}/columns", 303)

    async def show(self, request: Request) -> Response:
        name, asked = request.path_params["page"], request.query_params
        if name not in (*PAGES, EDITOR):
            return PlainTextResponse("There is no such page.", 404)
        more: dict[str, Any] = {}
        if name == EDITOR:
            more = {
                "column": asked.get("column", ""),
                "level": _number(asked.get("level")) or 0,
                "opened": _number(asked.get("open")),
            }
        return HTMLResponse(await run_in_threadpool(self._site.page, name, asked.get("message"), **more))

    async def part(self, request: Request) -> Response:
        name = request.path_params["part"]
        if name not in PARTS:
            return PlainTextResponse("There is no such part.", 404)
        return HTMLResponse(await run_in_threadpool(self._site.part, name))

    async def act(self, request: Request) -> Response:
        body = bytearray()
        async for block in request.stream():
            if len(body) + len(block) > _MOST_BYTES:  # the rest is not read
                words = f"The form is longer than {_MOST_BYTES:,} bytes; nothing was changed."
                return PlainTextResponse(words, 413, {"Connection": "close"})
            body += block
        try:
            fields = parse_qs(body.decode(), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            return PlainTextResponse("The form cannot be read as text in UTF-8; nothing was changed.", 400)
        form = {key: values[-1] for key, values in fields.items()}
        page = form["page"] if form.get("page") in (*PAGES, EDITOR) else "columns"
        try:
            where = await run_in_threadpool(ACTIONS[request.path_params["action"]], self._site, form)
        except KeyError:
            return PlainTextResponse("The form is not complete.", 400)
        except ValueError:
            where = f"?message={quote('That is no number or date; nothing was changed.')}"
        except (Conflict, JobError) as error:
            where = f"?message={quote(str(error))}"
        return RedirectResponse(f"{self._site.root}/{page}{where or ''}", 303)

    async def download(self, request: Request) -> Response:
        path = (await run_in_threadpool(self._site.downloads)).get(request.path_params["name"])
        if path is None:
            return PlainTextResponse("There is no such file.", 404)
        if path.suffix == ".html" and "save" not in request.query_params:
            # the report brings its own style, and allows itself nothing else
            policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
            return HTMLResponse(path.read_bytes(), headers={"Content-Security-Policy": policy})
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name)}"}
        return Response(path.read_bytes(), media_type="application/octet-stream", headers=headers)

    async def events(self, _: Request) -> Response:
        return StreamingResponse(_events(self._site, self._windows), media_type="text/event-stream")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.", 404)
        return Response((files("duckanon.workbench") / "static" / name).read_bytes(), media_type=_STATIC[name])


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


async def _events(site: Site, windows: Windows) -> AsyncIterator[str]:
    """Tell a window whenever the policy is another one; as long as it listens, it is open."""
    windows.open += 1
    last, looks = None, 0
    try:
        while True:
            await run_in_threadpool(site.policy.look)
            state = {"version": site.policy.version, "refusals": site.policy.refusals}
            if state != last or looks % 10 == 0:  # a line now and then, or nobody notices that the window is gone
                yield f"data: {json.dumps(state)}\n\n"
            last, looks = state, looks + 1
            await asyncio.sleep(_LOOK_EVERY)
    finally:
        windows.open -= 1
        windows.since = time.monotonic()


class _Guard:
    """Put the headers on every answer, refuse forms of other pages, and count the requests."""

    def __init__(self, app: Callable[..., Awaitable[None]], windows: Windows) -> None:
        self._app = app
        self._windows = windows

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        origin = request.headers.get("origin")
        if request.method == "POST" and origin and origin != f"http://{request.headers.get('host')}":
            await PlainTextResponse("Forms of other pages are refused.", 403, HEADERS)(scope, receive, send)
            return

        is_started = False

        async def with_headers(message: Any) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (k.lower().encode(), v.encode())
                        for k, v in HEADERS.items()
                        if k.lower().encode() not in present
                    ),
                ]
            await send(message)

        is_listening = scope["path"].endswith("/events")
        self._windows.busy += not is_listening
        try:
            await self._app(scope, receive, with_headers)
        except Exception as error:  # else the server would log all of it, with what DuckDB quotes of the rows
            if not is_started:
                await PlainTextResponse(f"It failed ({sql.reason(error)}).", 500)(scope, receive, with_headers)
        finally:
            self._windows.busy -= not is_listening
