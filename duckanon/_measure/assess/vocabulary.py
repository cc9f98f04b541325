"""Words by which columns about people are told: their names, and the values of some, in eight languages.

The words are in ``vocabulary.toml``. Names count less than what a column's values and its place among the others say
(`assess.roles`): they decide only where the values do not contradict them.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

_LETTERS = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "đ": "d", "œ": "oe"})
"""Letters that Unicode does not take apart into a plain one and an accent."""

KNOWN_BY_OTHERS = frozenset(
    {"sex", "age", "birth", "place", "marital", "origin", "education", "work", "family", "body"}
)
CONFIDENTIAL = frozenset({"health", "money", "belief"})


@cache
def _read_words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def _values(kind: str) -> frozenset[str]:
    return frozenset(_read_words()["values"][kind].split())


def plain(text: str) -> str:
    """Return a text in lower case without accents."""
    return unicodedata.normalize("NFKD", text.translate(_LETTERS)).encode("ascii", "ignore").decode().lower()


@cache
def topics(name: str) -> tuple[str, ...]:
    """Return what a column's name says that it is about."""
    parted = plain(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    short_words = _read_words()["short_words"].split()
    words = [word for word in re.split(r"[^a-z]+", parted) if len(word) > 2 or word in short_words]
    joined = re.sub(r"[^a-z]", "", parted)
    return tuple(topic for topic, known in _read_words()["names"].items() if _is_about(words, joined, known))


def _is_about(words: list[str], joined: str, known: dict[str, str]) -> bool:
    whole, stems = known["words"].split(), known["beginnings"].split()
    return (
        any(word in whole for word in words)
        or (len(joined) > 2 and joined in whole)
        or any(text.startswith(stem) for stem in stems for text in (joined, *words))
        or any(len(stem) > 5 and stem in joined for stem in stems)
    )


def is_missing(text: str) -> bool:
    """Tell whether a text stands for NULL."""
    return len(text) < 20 and text.strip().lower() in _read_words()["missing"]


def tells_sex(values: Collection[str]) -> bool:
    """Tell whether plain values are those of sex."""
    sexes = [set(pair.split("/")) for pair in _values("sexes")]
    return set(values) - _values("third_sex") in sexes or set(values) in sexes


def tells_marital_status(values: Collection[str]) -> bool:
    """Tell whether at least half of the plain values are words for marital status."""
    return 3 <= len(values) <= 12 and _share(values, _begins_marital) >= 0.5


def tells_education(values: Collection[str]) -> bool:
    """Tell whether at least half of the plain values are words for degrees and schools."""
    words = _values("education")
    return 3 <= len(values) <= 40 and _share(values, lambda value: any(word in value for word in words)) >= 0.5


def tells_country(values: Collection[str]) -> bool:
    """Tell whether plain values are countries, nationalities or states."""
    if len(values) < 3:
        return False
    upper = [value.upper() for value in values]
    coded = max(_share(upper, _values(kind).__contains__) for kind in ("country_codes", "state_codes"))
    return coded > 0.8 or _share(values, _values("countries").__contains__) > 0.3


def tells_names(values: Collection[str]) -> bool:
    """Tell whether plain values begin with first names."""
    firsts = [re.split(r"[\s,.]+", value)[0] for value in values]
    return len(values) >= 8 and _share(firsts, _values("first_names").__contains__) > 0.3


def _begins_marital(value: str) -> bool:
    return any(part.startswith(tuple(_values("marital"))) for part in re.split(r"[\s_,/-]+", value))


def _share(values: Collection[str], test: Callable[[str], bool]) -> float:
    return sum(map(bool, map(test, values))) / max(len(values), 1)
