"""The page: a record and its pictures as one HTML file, with nothing to load and nothing that runs."""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import PurePath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError
from markupsafe import Markup

import duckanon
from duckanon._core.common import quantities
from duckanon._core.common.release_record import KEY_WARNING
from duckanon.report.pictures import Figure
from duckanon.report.safe import NOT_TOLD, is_small, k_of_release, significant
from duckanon.report.signing import Signing
from duckanon.report.tables import MEASURES, NEW_RECORDS, REFUSE_NARROWING, ROLES, STATISTICS, role_of

_SECRET = re.compile(r"seed|key|salt|secret|password|token", re.IGNORECASE)  # parameters that a report never shows
_MOST_CORRELATIONS = 10
_PICTURE = re.compile(
    r"<figure>\n<svg\b(?:(?!</?(?:div|figure|foreignObject|script)\b).)*?</svg>\n\n"
    r"<figcaption><strong>[^<]*</strong>[^<]*</figcaption>\n</figure>\n"
    r'|<p class="quiet missing"><strong>[^<]*</strong>: [^<]*</p>\n',
    re.DOTALL,
)
_PARTS = ("classes", "risk", "coarseness", "narrowing", "prediction", "utility")


@functools.cache
def _templates() -> Environment:
    """Return the templates, which take longer to compile than a page to render."""
    return Environment(
        loader=PackageLoader("duckanon.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html(record: Mapping[str, Any], figures: Mapping[str, Sequence[Figure]]) -> str:
    """Write the report of a run.

    Args:
        record: The record of the run, each table with its `measures`. Every number in the page comes from it, in an
            element `data` that says where it stands there (`data-path`, a JSON pointer).
        figures: The pictures of each table, by its name, as `duckanon.report.figures` draws them.

    Returns:
        A whole page. Counts of fewer than k people of the original are written as `fewer than k`. Hashes of the
        original, seeds and keys are not written: somebody who knows nearly everything could try values.
    """
    tables = [_complete_entry(table) for table in record["tables"]]
    record = {"warnings": [], "linked": None, "account": None, **record, "tables": tables}
    page = _Page(record)
    signing = Signing(record, page.number, page.measured)
    return (
        _templates()
        .get_template("report.html.j2")
        .render(
            record=record,
            figures={name: [(figure, Markup(figure.svg)) for figure in of] for name, of in figures.items()},
            number=page.number,
            counted=page.counted,
            measured=page.measured,
            in_words=page.in_words,
            few_left_out=page.few_left_out,
            originals=page.originals,
            broken=page.broken(),
            caveats=signing.caveats(),
            signing=signing,
            noun=_noun,
            kept=sum(promise["passed"] is True for table in record["tables"] for promise in table.get("promises", [])),
            k_of=k_of_release,
            new_records=NEW_RECORDS,
            refuse_narrowing=REFUSE_NARROWING,
            largest=_largest_differences,
            not_told=NOT_TOLD,
            role=lambda column: ROLES.get(role_of(column), str(column.get("role", ""))),
            place=_place,
            parameters=_parameters,
            style=Markup(_templates().get_template("style.css").render()),
            meaning=quantities.explain_entry,
            unit_of=quantities.choose_unit,
            words={"measures": MEASURES, "statistics": STATISTICS},
        )
    )


def differing_numbers(page: str, record: Mapping[str, Any]) -> list[str]:
    """Return the places in a record of the numbers that a report, made of it, shows otherwise.

    A copy of a record that lacks what is about the original has no number to compare there.
    """
    places = []
    whole = {**record, "tables": [_complete_entry(table) for table in record["tables"]]}
    for shown, pointer, text in re.findall(r'<data value="([^"]*)" data-path="([^"]*)">([^<]*)<', page):
        path = [part.replace("~1", "/").replace("~0", "~") for part in unescape(pointer).split("/")[1:]]
        value: Any = whole
        try:
            for part in path:
                value = value[int(part) if isinstance(value, list) else part]
        except (LookupError, TypeError, ValueError):
            value = None
        is_rounded = path[-1] == "measured" and isinstance(value, float)  # as `_Page.measured` does
        values = [value, significant(value)] if is_rounded else [value]
        forms = [(json.dumps(one), form(one)) for one in values for form in _FORMS.values()]
        is_left_out = value is None and path[2:3] in (["rows"], ["people"], ["suppressed"])
        if (unescape(shown), unescape(text)) not in forms and not is_left_out:
            places.append("/".join(path))
    return list(dict.fromkeys(places))


def is_page_of(page: str, record: Mapping[str, Any]) -> bool | None:
    """Tell whether a page is the report of a record, but for its pictures; None where it cannot be written again.

    Another version may write another page, and a copy for recipients lacks what the report says of the original. No
    page was ever written of a record whose measures do not have the form that the job gives them.
    """
    if record["duckanon"] != duckanon.__version__ or any("rows" not in table for table in record["tables"]):
        return None
    warnings = [warning for warning in record["warnings"] if not warning.endswith(KEY_WARNING)]
    try:
        written = html({**record, "warnings": warnings}, {})
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, TemplateError):
        return False
    return written == _PICTURE.sub("", page)


class _Page:
    """Values and texts for the template, read from a record."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record

    def number(self, *path: Any, form: str = "number") -> Markup:
        """Write the value at a place of the record, together with the place."""
        return _write_value(functools.reduce(operator.getitem, path, self._record), path, form)

    def counted(self, place: int, *path: Any) -> Markup:
        """Write a count of suppressed rows or people; a count below k is not shown."""
        table = self._record["tables"][place]
        if is_small(functools.reduce(operator.getitem, path, table), k_of_release(table)):
            return Markup("fewer than {}").format(k_of_release(table))
        return self.number("tables", place, *path, form="count")

    def few_left_out(self, place: int) -> bool:
        """Tell whether so few were suppressed that the report does not count them."""
        table = self._record["tables"][place]
        gone = table.get("suppressed") or {}
        return any(is_small(gone.get(what), k_of_release(table)) for what in ("rows", "people"))

    def measured(self, place: int, position: int) -> Markup:
        """Write the measured value of a promise to two digits: an exact one could be solved for original values."""
        table = self._record["tables"][place]
        promise = table["promises"][position]
        if "suppressed" in str(promise["name"]) and self.few_left_out(place):
            return Markup("fewer than {} people or rows").format(k_of_release(table))
        path = ("tables", place, "promises", position, "measured")
        if isinstance(promise["measured"], float):
            return _write_value(significant(promise["measured"]), path, "number")
        return self.number(*path)

    def in_words(self, place: int, position: int) -> str:
        """Return the sentence of a promise; one that counts fewer than k people is replaced."""
        promise = self._record["tables"][place]["promises"][position]
        is_told = not ("suppressed" in str(promise["name"]) and self.few_left_out(place))
        return str(promise["words"] or "") if is_told else "Nearly everybody is in the release."

    def originals(self, place: int, unit: str) -> Markup:
        """Write how many rows or people the original has; minus the released ones, that would count the suppressed."""
        table = self._record["tables"][place]
        k = k_of_release(table)
        if is_small((table.get("suppressed") or {}).get(unit), k) and table.get("output"):
            released = self.number("tables", place, "output", unit, form="count")
            return Markup("{}, and fewer than {} more").format(released, k)
        return self.number("tables", place, unit, form="count")

    def broken(self) -> list[tuple[int, int]]:
        """Return the places of the promises that were not kept, by table and promise."""
        return [
            (place, position)
            for place, table in enumerate(self._record["tables"])
            for position, promise in enumerate(table.get("promises", []))
            if promise["passed"] is not True
        ]


def _complete_entry(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's entry with None for missing parts, such as the output of a dry run."""
    missing = dict.fromkeys(("people", "output", "suppressed", "memory", "cells", "cohorts"))
    whole: dict[str, Any] = {**missing, "promises": [], **table}
    whole["measures"] = {**dict.fromkeys(_PARTS), "erased": [], **(table.get("measures") or {})}
    whole["promises"] = [
        {"words": "", "asked": None, "measured": None, **promise} for promise in whole["promises"] or []
    ]
    if whole["output"]:
        whole["output"] = {"people": None, "sha256": None, **whole["output"]}
    if whole["suppressed"]:
        whole["suppressed"] = {"people": None, "limit": None, **whole["suppressed"]}
    return whole


def _write_value(value: Any, path: Sequence[Any], form: str) -> Markup:
    pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)
    return Markup('<data value="{}" data-path="{}">{}</data>').format(json.dumps(value), pointer, _FORMS[form](value))


def _percent(share: Any) -> str:
    if not isinstance(share, int | float):
        return "not told"
    return "under 0.01 %" if 0 < share < 0.0001 else f"{100 * share:.3g} %"


def _any(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_any, value)) or "none"
    return "–" if value is None else str(value)


def _format_value(value: Any) -> str:
    return "not told" if value is None else _any(value)


_FORMS = {"number": _any, "count": _any, "percent": _percent, "told": _format_value}


def _place(name: Any) -> str:
    """Write the name of a file or the kind of a database, without folders, addresses and passwords."""
    text = str(name or "–")
    return f"a {text.partition('://')[0]} database" if "://" in text else PurePath(text).name


def _parameters(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the names of parameters that may be shown, with their meanings."""
    method = table.get("method") or {}
    options, called = method.get("parameters") or {}, str(method.get("name"))
    return [
        (name, quantities.explain_parameter(called, name, quantities.choose_unit(table)))
        for name, value in options.items()
        if not _SECRET.search(name) and _is_plain(value)
    ]


def _noun(count: int | None, singular: str, plural: str) -> str:
    return singular if count == 1 else plural


def _largest_differences(correlations: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the ten correlations that changed most, the largest change first."""

    def change(position: int) -> float:
        row = correlations[position]
        return -abs(float(row["original"] or 0) - float(row["released"] or 0))

    return sorted(range(len(correlations)), key=change)[:_MOST_CORRELATIONS]


def _is_plain(value: Any) -> bool:
    """Tell whether a parameter is a number, a word or a list of these: settings of single columns are not shown."""
    if isinstance(value, list):
        return all(isinstance(item, str | int | float) for item in value)
    return isinstance(value, str | int | float)
