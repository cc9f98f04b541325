"""Options of a call as one text, in which they travel from the query to the algorithm."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any


def text_of(options: Mapping[str, Any]) -> str:
    """Write options as JSON."""
    return json.dumps(options, default=_as_text)


def known_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a call as the algorithm takes them."""
    known = json.loads(options.pop("_written", "{}"), object_hook=_from_text)
    return {**known, **options}


def _as_text(value: object) -> dict[str, str]:
    """Write what JSON has no form for."""
    if isinstance(value, datetime.date | datetime.time):
        return {f"duckanon {type(value).__name__}": value.isoformat()}
    raise ValueError(f"options must be numbers, texts, dates, lists and maps; got a {type(value).__name__}.")


def _from_text(fields: dict[str, Any]) -> Any:
    if len(fields) == 1:
        ((name, text),) = fields.items()
        for kind in (datetime.datetime, datetime.date, datetime.time):
            if name == f"duckanon {kind.__name__}":
                return kind.fromisoformat(text)
    return fields
