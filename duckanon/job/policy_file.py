"""A policy read from its file: what is wrong with it is said in one sentence each, with the line.

On which line of a TOML file a value stands: ``tomllib`` does not tell.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from duckanon.job.errors import FileProblem, PolicyError
from duckanon.job.policy import Policy, Table, format_of, is_database, source_format

KeyPath = tuple[str | int, ...]
"""The way to a value: keys of tables, places in arrays."""


def line_of(text: str, path: Sequence[str | int]) -> int:
    r"""Return the line of the value at a path of a TOML document, or of the nearest that is around it.

    Lines are counted from 1, which is also that of a path of which not even the first key is written down.

    Examples:
        >>> line_of('[promises]\nk = 10\nl = 2\n', ("promises", "l"))
        3
        >>> line_of('[promises]\nk = 10\n', ("promises", "t"))
        1
    """
    line_of_path: dict[KeyPath, int] = {}
    for place, line in _places(text):
        for length in range(1, len(place) + 1):
            line_of_path.setdefault(place[:length], line)
    written = (tuple(path[:length]) for length in range(len(path), 0, -1))
    return next((line_of_path[part] for part in written if part in line_of_path), 1)


def _places(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield every key that is written down, with its line.

    A statement of TOML begins on a line of its own and ends where what was read so far can be understood, which lets
    strings and arrays of several lines, quoted keys and comments be as they like.
    """
    header: KeyPath = ()
    lengths: dict[KeyPath, int] = {}  # of the arrays of tables so far
    lines = text.replace("\r\n", "\n").split("\n")  # TOML knows no other ends of lines
    start = 0
    while start < len(lines):
        statement, end = _statement(lines, start)
        if lines[start].lstrip().startswith("["):
            header = _number_arrays(_header(statement), lengths)
            yield header, start + 1
        else:
            for path, offset in _keys(statement, lines[start:end]):
                yield header + path, start + 1 + offset
        start = end


def _statement(lines: list[str], start: int) -> tuple[dict[str, Any], int]:
    for end in range(start + 1, len(lines) + 1):
        try:
            return tomllib.loads("\n".join(lines[start:end]) + "\n"), end
        except tomllib.TOMLDecodeError:
            continue
    return {}, start + 1


def _header(statement: Any) -> KeyPath:
    path: KeyPath = ()
    while statement:
        if isinstance(statement, list):
            return (*path, -1)  # an array of tables; which of them is counted by whoever reads the document
        key, statement = next(iter(statement.items()))
        path = (*path, key)
    return path


def _number_arrays(path: KeyPath, lengths: dict[KeyPath, int]) -> KeyPath:
    """Put the number of the last element after the name of each array of tables."""
    numbered: KeyPath = ()
    for key in path:
        if key == -1:
            lengths[numbered] = lengths.get(numbered, 0) + 1
            numbered = (*numbered, lengths[numbered] - 1)
        else:
            numbered = (*numbered, key)
            if numbered in lengths and path[-1] != -1:
                numbered = (*numbered, lengths[numbered] - 1)
    return numbered


def _keys(statement: Any, lines: list[str], path: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
    """Yield the keys of a statement, also those inside its arrays and inline tables.

    In a value of several lines a key stands on the first line that has its name; of others it is the first line.
    """
    pairs = statement.items() if isinstance(statement, dict) else enumerate(statement)
    for key, value in pairs:
        names = [part for part in (*path, key) if isinstance(part, str)]
        offset = next((place for place, line in enumerate(lines) if names and names[-1] in line), 0)
        yield (*path, key), offset
        if isinstance(value, dict | list):
            yield from _keys(value, lines, (*path, key))


_OF_JOB = ("key", "release", "report", "record", "plan", "memory")
_OF_TABLE = ("kind", "source", "target", "columns", "method", "promises", "hierarchies", "reference")
_ALONE = "table"
"""The name of a policy's only table, if the policy names neither tables nor the table of its source."""
_DEEPEST = 20
"""Brackets within brackets: parameters of methods have four."""


@dataclass(frozen=True)
class PolicyFile:
    """A policy and the file that it stands in."""

    path: Path  # the file
    text: str  # what is written in it
    policy: Policy  # what that means

    @property
    def sha256(self) -> str:
        """The hash of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def place(self, path: str | Path) -> Path:
        """Return a path that the policy names, which is meant from the folder of the policy."""
        return self.path.parent / Path(path).expanduser()

    def wrong(self, table: str, path: Sequence[str | int], text: str) -> PolicyError:
        """Make the error about a value of a table, with its line."""
        return PolicyError(f"{self.path}, line {_line(self.text, ('tables', table, *path))}: {text}")


def read(path: str | Path, changes: Mapping[str, Any] | None = None, text: str | None = None) -> PolicyFile:
    """Read a policy, changed by what the command line says (`changes_of`); errors say where and how it is wrong.

    `text` is what the file said when somebody decided to run it, where it may have been changed since.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig") if text is None else text
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise FileProblem(f"{path}: the policy cannot be read ({why}).") from None
    try:
        document = tomllib.loads(text)
        _check_numbers(path, text, document)
        policy = Policy.model_validate(_normal(path, text, document, changes or {}))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(_not_toml(path, error)) from None
    except ValidationError as error:
        raise PolicyError(_sentence(path, text, error)) from None
    except RecursionError:
        raise PolicyError(f"{path}: its brackets are nested too deeply.") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise PolicyError(f"{path}: a number in it has too many digits.") from None
    return PolicyFile(path, text, policy)


def changes_of(*, no_formulas: bool = False, **options: str | Path | None) -> dict[str, Any]:
    """Return what the command line says in place of the policy, by the names of the policy."""
    source: dict[str, Any] = {}
    if options.get("source") is not None:
        source["path"] = _outside(options["source"])
        source |= {} if source_format(source["path"]) == "csv" else {"types": None}
    if options.get("table") is not None:
        source |= {"table": options["table"], "query": None}
    if options.get("query") is not None:
        source |= {"query": options["query"], "table": None}
    changes: dict[str, Any] = {"source": source} if source else {}
    if options.get("target") is not None:
        path = _outside(options["target"])
        changes["target"] = {"path": path} | ({} if is_database(path) else {"table": None, "replace": False})
    for name in ("report", "plan"):
        if options.get(name) is not None:
            changes[name] = _outside(options[name])
    if options.get("memory") is not None:
        changes["memory"] = options["memory"]
    if no_formulas:
        changes["no_formulas"] = True
    return changes


def _outside(path: str | Path | None) -> str:
    text = str(path)
    return text if "://" in text else str(Path.cwd() / Path(text).expanduser())


def _check_numbers(path: Path, text: str, document: dict[str, Any]) -> None:
    """Refuse numbers that TOML does not have: whole ones have 64 bits, and no promise is infinite."""
    values: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while values:
        place, value = values.pop()
        if len(place) > _DEEPEST:
            raise RecursionError
        if isinstance(value, dict | list):
            values += [
                ((*place, key), item) for key, item in (value.items() if isinstance(value, dict) else enumerate(value))
            ]
        elif isinstance(value, int | float) and not (abs(value) < 2**63):
            name = ".".join(map(str, place))
            kind = "a finite number" if isinstance(value, float) else "a number of at most 64 bits"
            raise PolicyError(f"{path}, line {line_of(text, place)}: {name} must be {kind}.")


def _not_toml(path: Path, error: tomllib.TOMLDecodeError) -> str:
    match = re.search(r"^(.*?) \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    reason, line = (match[1], match[2]) if match else (str(error), None)
    reason = re.sub(r"(?<=[a-z]) ['\"].*", "", reason)  # it may quote the line, and a key stands there perhaps
    return f"{path}, {f'line {line}' if line else 'at the end'}: it is no TOML; {reason[:1].lower()}{reason[1:]}."


def _normal(path: Path, text: str, document: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Bring both ways to write a policy to one: a dictionary of tables, each with all that is said for all of them."""
    common = {key: value for key, value in document.items() if key in _OF_TABLE}
    rest = {key: value for key, value in document.items() if key not in _OF_TABLE}
    rest |= {key: value for key, value in changes.items() if key in _OF_JOB}
    no_formulas = bool(changes.get("no_formulas"))
    changes = {key: value for key, value in changes.items() if key in _OF_TABLE}
    tables = rest.get("tables")
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not isinstance(table, dict):
            raise PolicyError(f"{path}, line {_line(text, ('tables', name))}: tables.{name} must be a table.")
    if changes and isinstance(tables, dict) and len(tables) > 1:
        names = ", ".join(changes)
        raise PolicyError(f"{path}: {names} cannot be given from outside for a policy of {len(tables)} tables.")
    if tables is None:
        table = _merge_sections(common, changes)
        source = table.get("source")
        name = source.get("table") if isinstance(source, dict) else None
        rest["tables"] = {name if isinstance(name, str) and name else _ALONE: table}
    elif isinstance(tables, dict):
        rest["tables"] = {
            name: _merge_sections(_merge_sections(common, table), changes) for name, table in tables.items()
        }
    if no_formulas and not _defuse(rest["tables"]):
        raise PolicyError(f"{path}: --no-formulas is for CSV files, and no table of the policy becomes one.")
    return rest


def _defuse(tables: Any) -> bool:
    """Let no CSV file have formulas, and tell whether there is one."""
    targets = [table.get("target") for table in tables.values()] if isinstance(tables, dict) else []
    csv_targets = [to for to in targets if isinstance(to, dict) and format_of(str(to.get("path"))) == "csv"]
    for target in csv_targets:
        target["no_formulas"] = True
    return bool(csv_targets)


def _merge_sections(common: Mapping[str, Any], section: Mapping[str, Any]) -> dict[str, Any]:
    """Join what is said for all tables with what is said for one, which counts more.

    Only the parts of a source, of a target and of the promises are joined one by one: columns and methods belong to one
    table.
    """
    merged = dict(common)
    for key, value in section.items():
        before = merged.get(key)
        if key in ("source", "target", "promises") and isinstance(before, dict) and isinstance(value, Mapping):
            merged[key] = {**before, **value}
        else:
            merged[key] = value
    return merged


def _line(text: str, path: Sequence[str | int]) -> int:
    """Return the line of a value of a table: under the table's own name, or where it is said for all of them."""
    path, document = tuple(path), tomllib.loads(text)
    if path[:1] == ("tables",) and _depth(document, path[2:]) > max(_depth(document, path) - 2, 0):
        path = path[2:]
    return line_of(text, path)


def _depth(value: Any, path: Sequence[str | int]) -> int:
    """Return how many keys of a path are written down."""
    for depth, key in enumerate(path):
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)


def _sentence(path: Path, text: str, error: ValidationError) -> str:
    """Say all that is wrong, a line each, in the order of the policy's lines."""
    sentences = []
    for problem in error.errors(include_url=False):
        place = [*_place(problem["loc"]), *(["name"] if problem["type"] == "union_tag_invalid" else [])]
        line = _line(text, place)
        shown = place[2:] if place[:1] == ["tables"] and "tables" not in tomllib.loads(text) else place
        name = ".".join(str(part) for part in shown) or "the policy"
        sentences.append((line, name, f"{path}, line {line}: {name} {_what(problem, place)}."))
    first = {(line, name): sentence for line, name, sentence in sorted(sentences, reverse=True)}
    return "\n".join(first[place] for place in sorted(first))


def _place(path: Sequence[str | int]) -> list[str | int]:
    """Return a path of pydantic's as it is in the file: without the name of the method before its parameters."""
    path = path[:-1] if path[-2:-1] == ("l",) else path  # a whole number or another one, of which it says both
    of_method = path[:1] == ("tables",) and path[2:3] == ("method",) and path[3:4] and path[3] in _tags()
    return [*path[:3], *path[4:]] if of_method else list(path)


def _tags() -> set[str]:
    """Return the names of the methods."""
    union = Table.model_fields["method"].annotation
    return {model.model_fields["name"].annotation.__args__[0] for model in union.__args__}  # type: ignore[union-attr]


def _what(problem: Mapping[str, Any], place: Sequence[str | int]) -> str:
    """Say what a value must be; what it was only where it cannot be a key."""
    kind, context = problem["type"], problem.get("ctx", {})
    is_secret = "key" in place
    got = "" if is_secret or not isinstance(problem["input"], int | float | str) else f"; got {problem['input']!r}"
    if kind == "extra_forbidden":
        hint = ": a key comes from key.environment or key.file, never from the policy"
        return f"is not a field of a policy{hint if is_secret else ''}"
    if kind == "missing":
        return "is missing"
    if kind == "string_pattern_mismatch":
        return "must be the name of an environment variable: capital letters, digits and underscores"
    if kind == "value_error":
        return str(context["error"])
    must = {
        "greater_than_equal": f"at least {context.get('ge', 0):g}",
        "greater_than": f"above {context.get('gt', 0):g}",
        "less_than_equal": f"at most {context.get('le', 0):g}",
        "literal_error": f"one of {context.get('expected')}",
        "union_tag_invalid": f"one of {context.get('expected_tags')}",
        "int_type": "a whole number",
        "float_type": "a number",
        "int_parsing": "a whole number",
        "float_parsing": "a number",
        "bool_type": "true or false",
        "bool_parsing": "true or false",
        "string_type": "a text",
        "string_too_short": "a text that is not empty",
        "string_too_long": "the name of an environment variable",
        "dict_type": "a table of names and values",
        "list_type": "a list",
        "model_type": "a table of names and values",
        "model_attributes_type": "a table of names and values",
        "too_short": "a table or a list with something in it",
    }.get(kind)
    if kind == "union_tag_invalid":
        got = f"; got {context['tag']!r}"
    if kind == "union_tag_not_found":
        return "must have a name: " + ", ".join(sorted(_tags()))
    return f"must be {must}{got}" if must else f"is wrong: {problem['msg'][:1].lower()}{problem['msg'][1:]}"
