"""What the forms of the pages do: each changes the policy, or starts or cancels work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote

from duckanon.job.errors import JobError
from duckanon.workbench import edits, trials
from duckanon.workbench.policy_text import Conflict
from duckanon.workbench.site import ROLES, Site
from duckanon.workbench.trees import Unfit

Form = Mapping[str, str]

PARTS = ("opening", "adds", "stop", "curve", "map", "preview", "distribution", "released")
"""Parts of pages that are asked for again while they are worked on."""

_WORK = ("curve", "map", "preview", "distribution", "released")


def _role(site: Site, form: Form) -> None:
    column, role = form["column"], form["role"]
    if role not in ROLES or column not in site.policy.table().columns:
        raise KeyError(role)
    site.policy.edit(form["seen"], f"{column}: {role}", edits.role(column, role))


def _undo(site: Site, form: Form) -> None:
    site.policy.undo(form["seen"])


def _method(site: Site, form: Form) -> None:
    if form["method"] not in trials.METHODS:
        raise KeyError("method")
    site.policy.edit(form["seen"], f"method {form['method']}", edits.method(form["method"]))
    if form["method"] == "synthesize":  # no class can be counted of new records: the job asks for this promise
        site.policy.edit(site.policy.version, "promise prediction", edits.promise("prediction", True))


def _promise(site: Site, form: Form) -> None:
    name, given = form["name"], form.get("value", "").strip()
    if name not in ("k", "l", "t", "max_suppressed_fraction"):
        raise KeyError(name)
    value: float | int | None = None
    if given and not form.get("none"):
        value = int(given) if name in ("k", "l") else float(given)
    site.policy.edit(form["seen"], f"promise {name} = {value}", edits.promise(name, value))


def _hierarchy(site: Site, form: Form) -> str:
    """Change the draft of a column's hierarchy, save it, or use none."""
    column, level = form["column"], form.get("level", "0")
    if column not in site.policy.table().columns or not level.isdecimal():
        raise KeyError(column)
    where = f"?column={quote(column)}&level={level}"
    try:
        if form["do"] == "none":
            site.policy.edit(form["seen"], f"no hierarchy of {column}", edits.hierarchy(column, None))
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
    site.policy.edit(form["seen"], f"{column} is kept, although it narrows down others", edits.narrowing(column))


def _terms(site: Site, form: Form) -> None:
    site.policy.edit(form["seen"], "who gets the release and why", edits.terms(form))


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
