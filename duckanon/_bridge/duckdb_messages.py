"""DuckDB's messages without the values that they quote, for terminals, logs and pages that others read.

DuckDB quotes what it stumbles over: the whole line of a CSV file, a text that is no number, a key that is there twice.
A message that is known is said in words of ours, with the file, the line, the column and the type, and nothing else of
it. Of every other message only the kind is told, but of those about files and names of tables all.

A value may hold anything, also words like DuckDB's: what is taken stands at the beginning of the message, before any
value, or is the last of its kind, behind all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_INTERNAL_TYPES = {
    "BOOL": "BOOLEAN",
    **{f"{sign}INT{bits}": f"{sign}{name}" for bits, name in (
        (8, "TINYINT"), (16, "SMALLINT"), (32, "INTEGER"), (64, "BIGINT"), (128, "HUGEINT")) for sign in ("", "U")},
}  # fmt: skip
"""Types as DuckDB's casts call them, and as SQL does."""

_TYPE = (
    r"(?P<type>U?INT(?:8|16|32|64|128)|BOOL|BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|BIGNUM|FLOAT|DOUBLE|VARCHAR|"
    r"DATE|TIME(?:STAMP)?(?:_S|_MS|_NS|TZ)?(?: WITH TIME ZONE)?|INTERVAL|UUID|BLOB|BIT|JSON|DECIMAL(?:\(\d+, ?\d+\))?|"
    r"ENUM|STRUCT|MAP|UNION|VARIANT|LIST)(?!\w)"
)
"""A type, of an ENUM or a STRUCT without what is in it."""

_NAMES = """visits, clinic.visits or '"my visits"'"""

_APPENDED = re.compile(r"\s*\n\s*LINE \d+: [^\n]*\n[ ]*\^+\s*\Z")
"""DuckDB's addition to a message: the line of the query."""

_CONVERSION = re.compile(
    rf".*\b(?:to|type) '?{_TYPE}(?:\([^\n]*\))?(?P<dimensions>[\[\d\]]*)'?(?:, the size of[^\n]*?)?"
    r"(?: when casting from source column (?P<column>[^\n]*))?\s*\Z",
    re.DOTALL,
)
_CALENDAR = re.compile(
    r"Conversion Error: (?:invalid )?(?P<type>date|timestamp|time) field (?:format|value)"
    r".*?(?:\)|\")(?: when casting from source column (?P<column>[^\n]*))?\s*\Z",
    re.DOTALL,
)


def without_values(message: str) -> str:
    """Say what a message of DuckDB's says, without a full stop and without a value.

    Examples:
        >>> without_values("Conversion Error: Could not convert string 'x' to INT32")
        'a value cannot be converted to INTEGER'
        >>> without_values("Invalid Input Error: P299,m,39")
        'Invalid Input error'
    """
    bare = _APPENDED.sub("", message)
    for begin, describe in _KNOWN:
        if re.match(begin, bare) and (sentence := describe(bare)):
            return sentence
    kind = re.match(r"[A-Z]\w+(?: [A-Za-z]\w+)*?(?= ?Error: )", bare)
    return f"{kind[0]} error" if kind else "an error of DuckDB's"


def _csv_line(message: str) -> str:
    number = re.match(r"[\w ]+: CSV Error on Line: (\d+)", message)
    file = _last(r"^  file = (.*)$", message)
    where = f"line {number[1] if number else '?'} of {file[1] if file else 'the file'}"
    if column := _last(rf"^Column (.*) is being converted as type {_TYPE}", message):
        return f'{where} has a value in column "{column[1]}" that cannot be converted to {column["type"]}'
    if counts := _last(r"^Expected Number of Columns: (\d+) Found: (\d+)$", message):
        few_or_many = "too few" if int(counts[2]) < int(counts[1]) else "too many"
        return f"{where} has {few_or_many} values for {counts[1]} columns"
    for words, fault in (
        ("Invalid unicode", "is not UTF-8 text"),
        ("Value with unterminated quote found", "has a quote that does not end"),
        ("Maximum line size of", "is too long"),
    ):
        if _last(rf"^{words}", message):
            return f"{where} {fault}"
    return f"{where} cannot be read as CSV"


def _of_file(template: str) -> Callable[[str], str]:
    """Say something of the file that a message names first."""

    def describe(message: str) -> str:
        file = re.search(r"""["'](?P<name>[^"'\n]+)["']""", message)
        return template.format(file=file["name"]) if file else ""

    return describe


def _json_line(message: str) -> str:
    match = re.match(r'[\w ]+: [\w ]+ in file "([^"\n]*)",[\w ]* in ([a-z/]+) (\d+)', message)
    return f"{match[2]} {match[3]} of {match[1]} cannot be read as JSON" if match else ""


def _conversion(message: str) -> str:
    match = _CALENDAR.match(message) or _CONVERSION.match(message)
    if match is None:
        return ""
    column = f' of column "{match["column"]}"' if match["column"] else ""
    of_type = match["type"].upper()
    dimensions = match.groupdict().get("dimensions") or ""
    return f"a value{column} cannot be converted to {_INTERNAL_TYPES.get(of_type, of_type)}{dimensions}"


def _overflow(message: str) -> str:
    match = re.match(rf"Out of Range Error: Overflow in ([a-z]+) of {_TYPE}", message)
    return f"an overflow in {match[1]} of {_INTERNAL_TYPES.get(match['type'], match['type'])}" if match else ""


def _duplicate_key(message: str) -> str:
    match = re.match(r'Constraint Error: Duplicate key "([^":\n]+): ', message)
    return f'a value of column "{match[1]}" is there twice, and must not be' if match else ""


def _missing_value(message: str) -> str:
    match = re.fullmatch(r"Constraint Error: NOT NULL constraint failed: (\S+)", message)
    return f"a value of {match[1]} is NULL, and must not be" if match else ""


def _unknown_column(message: str) -> str:
    match = re.match(r'Binder Error: (?:Referenced c|C)olumn "((?:[^"\n]|"")+)" (?:was selected|not found)', message)
    return f'column "{match[1]}" does not exist' if match else ""


def _whole(message: str) -> str:
    return " ".join(message.split()).split(" Did you mean")[0].rstrip(".")


_KNOWN: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"[\w ]+: CSV Error on Line: ", _csv_line),
    (r'[\w ]+: Error when sniffing file "', _of_file("{file} cannot be read as CSV")),
    (r"[\w ]+: (?:Malformed JSON|JSON transform error) in file ", _json_line),
    (r"[\w ]+: (?:No magic bytes found at end of file|File) '", _of_file("{file} is not a Parquet file")),
    (r"[\w ]+: Malformed JSON at byte ", lambda _: "a value is not JSON"),
    (r"Conversion Error: ", _conversion),
    (r"Out of Range Error: Overflow in ", _overflow),
    (r"Constraint Error: Duplicate key ", _duplicate_key),
    (r"Constraint Error: NOT NULL ", _missing_value),
    (r"Binder Error: ", _unknown_column),
    (r"Parser Error: .* qualified name", lambda _: f"a table must be named as in SQL, such as {_NAMES}"),
    (r"(?:IO|Catalog) Error: ", _whole),
    (r"Out of Memory Error: ", lambda message: message.splitlines()[0]),
)
"""How messages begin, and what is said of them; nothing: only the kind is told."""


def _last(pattern: str, message: str) -> re.Match[str] | None:
    return next(reversed([*re.finditer(pattern, message, re.MULTILINE)]), None)
