"""Labels of a release, read as the values that they hold, by the values of the original and by hierarchies.

SQL reads them the same way (``anon._label_rules``), for checks that DuckDB computes. Here the tables are at hand, and
nothing has to be bound: reading a column took 74 milliseconds in SQL, whatever it held.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.made_labels import EVERYTHING, OTHER, is_like_label, set_members, value_label
from duckanon._core.common.values import numbers
from duckanon._core.encoding.pairs import kind_of, plain
from duckanon._measure.coarse.label_bounds import held_ends, number_of
from duckanon._measure.queries.labels import Meaning, Meanings, is_text
from duckanon._methods.generalize.hierarchies import HierarchyRow

HierarchyRows: TypeAlias = Sequence[HierarchyRow] | None

_LABEL_OF_TEXTS = r"(?s)^(\{.*\}|.*\*|other)$"
_CODE = r"^-?[\w.]+\*+$"  # the beginning of a number: such columns are read as texts
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_REST = re.compile(r"\{(.*, )?other(, NULL)?\}")  # a set with the values that no label names
_EVERYTHING = Meaning("everything")
_NULL: tuple[str | None, float | None] = (None, None)


def label_meanings(original: pa.Table, released: pa.Table, hierarchies: HierarchyRows) -> dict[str, Meanings]:
    """Return the meanings of the labels of each column, none for labels that are simply values.

    A released column holds labels where it is text and the original has numbers, dates or booleans, or where it has
    texts that the original has not and that look like labels: ``*``, ``other``, ``{a, b}``, ``021**``, a label of a
    hierarchy, NULL, or nothing but prefixes of values. A text that the original has, too, is that value unless the
    release shows that it is made up (`_made_up`). A ValueError refuses a label that is not understood.
    """
    leaves: dict[str, dict[str, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in hierarchies or ():
        if row["leaf"] is not None and row["label"] is not None:
            leaves[row["column_name"]][row["label"]].append((row["leaf"], row["level"]))
    return {
        name: _column_meanings(name, original.column(name), released.column(name), leaves.get(name.lower(), {}))
        for name in original.column_names
        if name in released.column_names
    }


def _column_meanings(
    name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, leaves: Mapping[str, Sequence[tuple[str, int]]]
) -> Meanings:
    if not is_text(released.type):
        return {}
    shown = pc.unique(plain(released))
    tree = {label: [leaf for leaf, _ in below] for label, below in leaves.items()}
    if is_text(original.type):
        values = pc.unique(plain(original))
        made_up = _made_up(original, released)
        is_label = pc.or_(pc.invert(pc.is_in(shown, value_set=values)), pc.is_in(shown, pa.array(made_up, shown.type)))
        unseen = shown.filter(is_label)
        ancestors = [label for label, below in leaves.items() if any(level for _, level in below)]
        if not _looks_like_labels(unseen, values, ancestors):
            return {}
        return _of_texts(name, dict.fromkeys(_texts(values)), shown, tree, made_up, has_null=values.null_count > 0)
    if pa.types.is_boolean(original.type):
        values = pc.unique(original)
        return _of_texts(name, dict.fromkeys(_texts(values)), shown, tree, has_null=values.null_count > 0)
    kind = kind_of(original.type)
    if kind not in ("number", "time"):
        return {}
    if kind == "number" and pc.any(pc.or_(pc.equal(shown, OTHER), pc.match_substring_regex(shown, _CODE))).as_py():
        values = pc.unique(original)
        places, _, _ = numbers(name, values)
        texts = dict(zip(_texts(values), places.tolist(), strict=True))
        return _of_texts(name, texts, shown, tree, has_null=values.null_count > 0)
    if pa.types.is_timestamp(original.type) and original.type.tz is not None:
        original = pc.local_timestamp(original)  # labels tell the time of the session's zone
    places, _, _ = numbers(name, original)
    return _of_numbers(name, np.unique(places), shown, tree, kind == "time", has_null=original.null_count > 0)


def _made_up(original: pa.ChunkedArray, released: pa.ChunkedArray) -> list[str]:
    """Return the labels that a value of the original is written like, too, and that are not this value.

    Another label names the value, or more rows have it than have the value and merged values are called otherwise,
    ``{other}``. ``anon._read_labels`` reads them so, too.
    """
    held, shown = (_rows_of_labels(column) for column in (original, released))
    named = {member for label in shown if label.startswith("{") for member in set_members(label)}
    return [
        label
        for label in shown.keys() & held.keys()
        if label in named or (shown[label] > held[label] and "{" + label + "}" not in shown)
    ]


def _rows_of_labels(column: pa.ChunkedArray) -> dict[str, int]:
    """Count the rows of texts that could be read as a label."""
    texts = plain(column).drop_null()
    is_like = pc.or_(pc.starts_with(texts, "{"), pc.or_(pc.ends_with(texts, EVERYTHING), pc.equal(texts, OTHER)))
    counted = pc.value_counts(texts.filter(is_like))
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def _looks_like_labels(unseen: pa.Array, values: pa.Array, ancestors: Sequence[str]) -> bool:
    """Tell texts that the original does not have and that stand for its values from such as merely are others."""
    if not len(unseen):
        return False
    if unseen.null_count or pc.any(pc.match_substring_regex(unseen, _LABEL_OF_TEXTS)).as_py():
        return True
    if ancestors and pc.any(pc.is_in(unseen, value_set=pa.array(ancestors, unseen.type))).as_py():
        return True
    lengths = pc.utf8_length(unseen)
    for length in pc.unique(lengths).to_pylist():
        beginnings = pc.utf8_slice_codeunits(values, 0, length)
        if not pc.all(pc.is_in(unseen.filter(pc.equal(lengths, length)), value_set=beginnings)).as_py():
            return False
    return True


def _of_numbers(
    name: str, places: Floats, shown: pa.Array, tree: Mapping[str, Sequence[str]], is_date: bool, *, has_null: bool
) -> Meanings:
    """Read labels of numbers or dates, whose places on the number line are given, in order."""
    unit = _unit(places, is_date)
    meanings: dict[str | None, Meaning] = {}
    for label in shown.to_pylist():
        if label == EVERYTHING or (label is None and not has_null):
            meanings[label] = _EVERYTHING
        elif label is None:
            meanings[label] = Meaning("listed", values=[_NULL])
        elif held := _below(tree.get(label, ()), places, is_date):
            meanings[label] = Meaning("listed", values=[(None, place) for place in held])
        else:
            ends = held_ends(label, is_date, unit)
            if ends is None:
                raise _not_understood(name)
            if ends[0] != ends[1] or not _NUMBER.fullmatch(label):
                meanings[label] = Meaning("interval", *ends)
    return meanings


def _unit(places: Floats, is_date: bool) -> float:
    """Return the step between neighbouring values: 1 of whole numbers, a day where all are midnights, otherwise 0."""
    unit = float(MICROSECONDS_PER_DAY if is_date else 1)
    return unit if len(places) and np.all(places % unit == 0) else 0.0


def _below(leaves: Sequence[str], places: Floats, is_date: bool) -> list[float]:
    """Return the places of those leaves of a label that the original has."""
    wanted = [place for leaf in leaves if (place := number_of(leaf, is_date)) is not None]
    return np.intersect1d(wanted, places).tolist() if wanted else []


def _of_texts(
    name: str,
    values: Mapping[str, float | None],
    shown: pa.Array,
    tree: Mapping[str, Sequence[str]],
    made_up: Sequence[str] = (),
    *,
    has_null: bool,
) -> Meanings:
    """Read labels of texts, or of numbers as texts, which have their places on the number line."""
    texts = {
        label if label is None or label not in values or label in made_up else value_label(label): label
        for label in shown.to_pylist()
    }  # values that look like labels in quotation marks
    labels = list(texts)
    null_shown = any(label is None or _names_null(label) for label in labels)
    asked = [label for label in labels if label is not None and label != EVERYTHING]
    held: dict[str, list[str]] = {}
    for label in asked:
        own = [] if is_like_label(label) else [label]
        listed_values = set_members(label) if label.startswith("{") else []
        members = dict.fromkeys([*own, *tree.get(texts[label] or label, ()), *listed_values])
        held[label] = [member for member in members if member is not None and member in values]
    named = {value for members in held.values() for value in members}
    for label, prefixed in _prefixed([label for label in asked if not held[label] and label != OTHER], values):
        held[label] = prefixed
    for label in asked:
        if _REST.fullmatch(label):  # rare values, which no set of the column names (anon.recode)
            held[label] += [value for value in values if value not in named]
    covered = {value for members in held.values() for value in members}
    meanings: dict[str | None, Meaning] = {}
    for label in labels:
        text = texts[label]
        if label == EVERYTHING or (label is None and not has_null):
            meanings[text] = _EVERYTHING
            continue
        own = [] if label is None else held[label]
        if label == OTHER:
            own = [*own, *(value for value in values if value not in covered)]
        elif label is not None and not own:
            raise _not_understood(name)
        listed: list[tuple[str | None, float | None]] = [(value, values[value]) for value in own]
        if has_null and (label is None or _names_null(label) or (not null_shown and _is_rest(label))):
            listed.append(_NULL)
        if not listed:
            meanings[text] = Meaning("nothing")
        elif len(listed) > 1 or listed[0][0] != text or label is None:
            meanings[text] = Meaning("listed", values=listed)
    return meanings


def _names_null(label: str) -> bool:
    return label.startswith("{") and label.endswith(", NULL}")


def _is_rest(label: str) -> bool:
    """Tell labels that hold NULL where no label names it."""
    return label == OTHER or _REST.fullmatch(label) is not None


def _prefixed(labels: Sequence[str], values: Mapping[str, float | None]) -> list[tuple[str, list[str]]]:
    """Return with each of the labels the values that begin like it; of ``021**`` without its stars."""
    prefixes = {label: label.rstrip("*") for label in labels}
    wanted = set(prefixes.values())
    found: dict[str, list[str]] = defaultdict(list)
    for length in {len(prefix) for prefix in wanted}:
        for value in values:
            if len(value) >= length and value[:length] in wanted:
                found[value[:length]].append(value)
    return [(label, list(found[prefix])) for label, prefix in prefixes.items()]


def _texts(values: pa.Array) -> list[str]:
    """Return the values that are not NULL, as DuckDB writes them."""
    known = values.drop_null()
    if pa.types.is_decimal(known.type):
        return [format(value, "f") for value in known.to_pylist()]
    if pa.types.is_floating(known.type):  # Arrow would write 17.0 as 17
        return [str(value) for value in known.to_numpy()]
    return list(known.cast(pa.string()).to_pylist())


def _not_understood(name: str) -> ValueError:
    return ValueError(
        f"column {name} of the release has a label that is no value of the original's column, no range, prefix or set "
        "of them and in no hierarchy of the column; name its hierarchy in hierarchies."
    )
