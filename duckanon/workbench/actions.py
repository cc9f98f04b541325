"""What the forms of the pages do: each changes the policy, or starts or cancels work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote

from duckanon.workbench import edits, hierarchy_files, trials
from duckanon.workbench.site import ROLES, Site

Form = Mapping[str, str]

PARTS = ("opening", "adds", "curve", "map", "preview", "distribution", "released")
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
    """Build a hierarchy, save it as a file, and name the file in the policy."""
    column, kind = form["column"], form["kind"]
    if column not in site.policy.table().columns:
        raise KeyError(column)
    if kind == "none":
        site.policy.edit(form["seen"], f"no hierarchy of {column}", edits.hierarchy(column, None))
        return ""
    if kind == "prefixes":
        levels = hierarchy_files.prefixes(column, min(max(int(form["length"]), 1), 20))
    elif kind == "ranges":
        width = float(form["width"])
        if not width > 0:
            raise ValueError(width)
        levels = hierarchy_files.ranges(column, width)
    else:
        named = {
            key.removeprefix("group:"): value.strip()
            for key, value in form.items()
            if key.startswith("group:") and value.strip()
        }
        levels = hierarchy_files.groups(column, named)
    con = site.bench.con.cursor()
    try:
        path = hierarchy_files.save(site.bench, column, levels, con)
    finally:
        con.close()
    site.policy.edit(form["seen"], f"hierarchy of {column}", edits.hierarchy(column, path))
    return f"?column={quote(column)}"


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


def _cancel(site: Site, form: Form) -> None:
    work = site.works.get(form["kind"])
    if work:
        work.cancel()
        work.wait(2)


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
