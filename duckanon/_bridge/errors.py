"""Errors: lets the sentences of duckanon reach the user without what DuckDB wraps them in."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, TypeVar

import duckdb

from duckanon._bridge.duckdb_messages import without_values
from duckanon._core.common.names import find_nearest_name, suggest_name

Value = TypeVar("Value")

_FROM_PYTHON = r"Python exception occurred while executing the UDF: "
"""DuckDB's words before the message of any exception in a Python function."""

_SENTENCE = r"anon(?:\.\w+)?: .*"
"""A sentence of ours; a value such as an address, anon.x@example.org, is none."""

_WRAPPED = (
    re.compile(rf"Invalid Input Error: (?:{_FROM_PYTHON}\w+: )?(?P<sentence>{_SENTENCE})", re.DOTALL),
    re.compile(rf"Conversion Error: Could not convert string '(?P<sentence>{_SENTENCE})' to DOUBLE.*", re.DOTALL),
)
"""Sentences as they come out of Python, of SQL's error(), and of ``anon._refuse``."""

_WITHIN_ITSELF = re.compile(
    r'Binder Error: infinite recursion detected: attempting to recursively expand table macro "(?P<name>\w+)".*',
    re.DOTALL,
)
"""DuckDB 2.0 refuses a macro whose table is a view that calls the same macro."""

_OTHER_ARGUMENTS = re.compile(
    r"Binder Error: Macro \"?(?P<name>\w+)\"?(?:\(\))? does not support the supplied arguments.*"
    r"Candidate macros:\s+\w+\((?P<parameters>[^\n]*)\)(?P<query>.*)",
    re.DOTALL,
)
"""DuckDB refuses options that a macro does not have, and calls without what it needs."""

_OTHER_COLUMN = re.compile(
    r'Binder Error: Column "(?P<column>(?:[^"]|"")+)" was selected but was not found in the FROM clause.*', re.DOTALL
)
"""DuckDB refuses a list of columns for COLUMNS, as `cols` and `person` are."""

_OTHER_OBJECT = re.compile(
    r'Catalog Error: (?P<kind>Table|Table Function|Scalar Function) with name "?(?P<name>.+?)"? does not exist!'
    r'(?:\s+Did you mean "(?P<near>[^"\n]+)"\?)?.*',
    re.DOTALL,
)
"""DuckDB refuses a function or table that does not exist, and may offer one of its own or of ours that is private."""

_OF_TABLE = re.compile(r"(?:IO|Catalog) Error: |Parser Error: .* qualified name")
"""What DuckDB says of a table that it cannot find."""

_OF_ROWS = re.compile(
    r"(?:[\w ]+: )?CSV Error on Line: |Conversion Error: |"
    r"[\w ]+: (?:Error when sniffing file|Malformed JSON|JSON transform error|No magic bytes)"
)
"""What DuckDB says of a table that it cannot read: it may quote a whole row."""

_POINTED_AT = re.compile(r"\n\s*(?P<number>LINE \d+: )(?P<line>[^\n]*)\n(?P<space> *)\^")
"""The line of a statement, and what DuckDB points at in it."""

_MISSING = re.compile(
    r'(?P<beginning>anon\.(?P<name>\w+): (?:column "(?P<column>[^"]*)" does not exist in .*|'
    r'\w+ must (?:be one column|name columns) of the table; got "?(?P<other>[^"]*?)"?))\.'
)
"""Our own refusal of a column that does not exist."""

_AMBIGUOUS = re.compile(r'Binder Error: Ambiguous reference to catalog or schema "anon".*', re.DOTALL)

_SUBQUERY = re.compile(
    r"Binder Error: Table function cannot contain subqueries.*?\b(?P<name>anon\.\w+)\(.*", re.DOTALL | re.IGNORECASE
)
"""DuckDB refuses a subquery as an argument of a function whose query is written while it is bound."""

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | [()\[\]{},] | \w+\s*(?::=|=>) | [^'"()\[\]{},\w]+ | \w+""",
    re.VERBOSE,
)
"""The parts of a call in a text of SQL."""

_APPENDED = re.compile(r"\n\s*(?:LINE \d+:|At:).*", re.DOTALL)
"""DuckDB's addition to a message: the line of the query, or the lines of our code."""


def plain(message: str, statement: str = "") -> str:
    """Return the sentence of duckanon that a message of DuckDB's carries, or the message as it is.

    Only the statement, where it is known, shows what an option was called.

    Examples:
        >>> plain("Invalid Input Error: Python exception occurred while executing the UDF: ValueError: anon.x: no.")
        'anon.x: no.'
        >>> plain("Catalog Error: Table with name anon does not exist!")
        'Catalog Error: Table with name anon does not exist!'
    """
    if (view := _WITHIN_ITSELF.fullmatch(message)) and view["name"] in _macro_names():
        return (
            f"anon.{view['name']}: a table that it reads is a view over anon.{view['name']} itself, which DuckDB "
            f"cannot bind; make a table of the view first."
        )
    if subquery := _SUBQUERY.fullmatch(message):
        return (
            f"{subquery['name'].lower()}: its arguments must be constants, not subqueries; "
            "SET VARIABLE x = (SELECT ...) first, and pass getvariable('x')."
        )
    if _AMBIGUOUS.fullmatch(message):
        return (
            "anon: the database in use has a schema called anon, too, so that DuckDB cannot tell which is meant; USE "
            "another database and name its tables in full, or call the schema something else."
        )
    if (other := _OTHER_ARGUMENTS.fullmatch(message)) and other["name"].lower() in _macro_names():
        return _other_arguments(other["name"].lower(), other["parameters"], statement or other["query"])
    if (other := _OTHER_COLUMN.fullmatch(message)) and (call := _find_call(message, statement)):
        column = other["column"].replace('""', '"')
        return f'anon.{call.name}: column "{column}" does not exist in {" ".join(call.tables) or "the table"}.'
    if other := _OTHER_OBJECT.fullmatch(message):
        return _other_object(other, _find_call(message, statement))
    if wrapped := next(filter(None, (pattern.fullmatch(message) for pattern in _WRAPPED)), None):
        return _APPENDED.sub("", wrapped["sentence"]).strip()
    if call := _reading(message, statement):
        sentence = re.sub(r"^(?:IO|Catalog) Error: ", "", without_values(message))
        return f"anon.{call.name}: {sentence}."
    return message


def _macro_names() -> set[str]:
    from duckanon._bridge.macros import macro_files  # which reads all macros: only where an error asks for them

    return {file.name for file in macro_files()}


def _find_call(message: str, statement: str) -> Call | None:
    """Return the call of ours that DuckDB points at, from the whole statement where it is known: a line may be cut."""
    pointed = _POINTED_AT.search(message)
    if pointed is None:  # as it does in some messages
        return next(calls_of(statement), None)
    rest = pointed["line"][max(len(pointed["space"]) - len(pointed["number"]), 0) :]
    called = re.match(r"anon\s*\.\s*(\w+)", rest, re.IGNORECASE)
    if called is None:
        return None
    return next(itertools.chain(calls_of(statement, called[1]), calls_of(rest)), Call(called[1].lower(), [], {}))


def _reading(message: str, statement: str) -> Call | None:
    """Return the call of ours whose table DuckDB cannot find or read."""
    pointed = _POINTED_AT.search(message)
    if _OF_TABLE.match(message):
        return _find_call(message, statement) if pointed else None
    if not _OF_ROWS.match(message):
        return None
    line = pointed["line"] if pointed else ""  # it points at a step of ours then, or at nothing
    return next(itertools.chain(calls_of(statement), calls_of(line)), None)


def _other_object(other: re.Match[str], call: Call | None) -> str:
    """Say which function or table does not exist, and offer none that is private."""
    near = other["near"] or ""
    is_private = re.fullmatch(r"(?:anon\.)?_\w+|pg_\w+|pg_catalog\.\w+", near) is not None
    if call is None:
        is_ours = near.startswith("anon._")  # tables are the user's business
        return other[0].replace(f'\nDid you mean "{near}"?', "") if is_ours else other[0]
    if other["kind"] == "Table" and call.name != other["name"].lower():
        offered = "." if is_private or not near else f'; did you mean "{near}"?'
        return f"anon.{call.name}: Table with name {other['name']} does not exist{offered}"
    public = {name for name in _macro_names() if not name.startswith("_")}
    if call.name in public:
        used = "FROM" if other["kind"] == "Scalar Function" else "SELECT"
        return f"anon.{call.name}: call it as {used} anon.{call.name}(...)."
    meant = find_nearest_name(call.name, public)
    offered = f"did you mean anon.{meant}?" if meant else "FROM anon.functions() lists all."
    return f"anon.{call.name}: there is no such function; {offered}"


def _other_arguments(name: str, parameters: str, statement: str) -> str:
    """Say which option a function does not have, or what it takes."""
    names = re.findall(r"(?:^|, )(\w+)(?= :=|,|$)", parameters)
    needed = re.findall(r"(?:^|, )(\w+)(?=,|$)", parameters.split(" :=")[0].rpartition(",")[0] or parameters)
    needed = needed if " :=" in parameters else names
    for call in calls_of(statement, name):
        for option in call.options:
            if option.lower() not in names:
                near = suggest_name(option, names, quote="")
                near = near if near != "." else f"; it takes {', '.join(names)}."
                return f"anon.{name}: there is no option {option}{near}"
        missing = [one for one in needed[len(call.positional) :] if one not in map(str.lower, call.options)]
        if missing:
            return f"anon.{name}: {missing[0]} is missing; it takes {', '.join(names)}."
    return f"anon.{name}: it does not take these arguments; it takes {', '.join(names)}."


def with_columns(sentence: str, statement: str, con: duckdb.DuckDBPyConnection) -> str:
    """Add the nearest column to the sentence about one that does not exist: for those who have the connection."""
    match = _MISSING.fullmatch(sentence)
    tables = [table for call in calls_of(statement, match["name"]) for table in call.tables] if match else []
    if match is None or not tables:
        return sentence
    try:
        quoted = tables[0].replace("'", "''")
        columns = [str(row[0]) for row in con.execute(f"DESCRIBE FROM query_table('{quoted}')").fetchall()]
    except duckdb.Error:  # a step of the query, say
        return sentence
    return match["beginning"] + suggest_name(match["column"] or match["other"], columns)


def without_python(message: str) -> str:
    """Leave out that an exception came from a Python function: for those who never see any Python."""
    return re.sub(_FROM_PYTHON, "", without_json(plain(message)))


def without_json(message: str) -> str:
    r"""Return the sentence of an error that DuckDB wrote as JSON into another, as it does where it writes files.

    Examples:
        >>> without_json('IO Error: Write failed: {"exception_type":"IO","exception_message":"Could not \\"write\\""}')
        'IO Error: Could not "write"'
    """
    match = re.search(r'\{"exception_type":.*', message, re.DOTALL)
    if match is None:
        return message
    try:
        inner = json.loads(match[0], strict=False)
    except ValueError:  # cut off, or two of them
        text = re.search(r'"exception_message":"((?:[^"\\]|\\.)*)', match[0])
        inner = {"exception_message": text[1].replace('\\"', '"') if text else ""}
    kind = re.match(r"(?:\w+ )+Error: ", message)
    return (kind[0] if kind else "") + without_json(str(inner.get("exception_message", "")))


def speak_plainly() -> None:
    """Let DuckDB's exceptions show the sentences of duckanon as they were written; doing it again is harmless.

    The exceptions are made by DuckDB, also on connections that are not ours, and keep their types. Connections cannot
    be wrapped instead: DuckDB looks for data frames among the variables of whoever calls it, which would be the
    wrapper. So the types in which our sentences arrive are told how to show them; other messages stay as they are.
    """
    spoken = (
        duckdb.IOException,
        duckdb.ParserException,
        duckdb.InvalidInputException,
        duckdb.ConversionException,
        duckdb.BinderException,
        duckdb.CatalogException,
    )
    for exception in spoken:
        exception.__str__ = _show_error  # type: ignore[method-assign]


def _show_error(error: BaseException) -> str:
    message = BaseException.__str__(error)
    if " does not support the supplied arguments" in message:
        sentences = [plain(message, text) for text in _texts_of(error.__traceback__) if "anon." in text.lower()]
        return next((sentence for sentence in sentences if "there is no option" in sentence), plain(message))
    if (file := re.search(r"CSV Error on Line: .*^  file = (.+?)$", message, re.DOTALL | re.MULTILINE)) is not None:
        texts = _texts_of(error.__traceback__)  # DuckDB does not say which call reads it
        return next((plain(message, text) for text in texts if "anon." in text and file[1] in text), plain(message))
    sentence = plain(message)
    if sentence != message and _OTHER_COLUMN.fullmatch(message):
        for con in _of_type(duckdb.DuckDBPyConnection, error.__traceback__):
            with contextlib.suppress(duckdb.Error), con.cursor() as cursor:  # con may have a result that is being read
                return with_columns(sentence, message, cursor)
    return sentence


def _texts_of(trace: TracebackType | None) -> Iterator[str]:
    """Yield the texts that the code which failed had at hand, among them its SQL, which DuckDB does not tell."""
    return _of_type(str, trace)


def _of_type(kind: type[Value], trace: TracebackType | None) -> Iterator[Value]:
    """Yield the values of a type that the code which failed had at hand."""
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        for value in (*frame.f_locals.values(), *frame.f_code.co_consts):
            if isinstance(value, kind):
                yield value


class Call(NamedTuple):
    """A call."""

    name: str  # the function, without ``anon.``
    positional: list[str]  # the arguments without a name, as they are written
    options: dict[str, str]  # the arguments with one

    @property
    def tables(self) -> list[str]:
        """The texts in quotes of the first argument; the argument itself where it is a name."""
        argument = self.positional[0] if self.positional else ""
        texts = [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", argument)]
        return texts or ([argument] if re.fullmatch(r"\w+", argument) else [])


def calls_of(statement: str, name: str = r"\w+") -> Iterator[Call]:
    """Yield the calls of a function, or of any.

    Examples:
        >>> next(calls_of("FROM anon.plan('t', ['a', 'b'], k := 5, persn := 'id') LIMIT 3"))
        Call(name='plan', positional=["'t'", "['a', 'b']"], options={'k': '5', 'persn': "'id'"})
    """
    for match in re.finditer(rf"\banon\s*\.\s*({name})\s*\(", statement, re.IGNORECASE):
        yield _call(match[1].lower(), statement[match.end() :])


def _call(name: str, rest: str) -> Call:
    call, depth, option, argument = Call(name, [], {}), 1, "", ""
    for token in _TOKEN.findall(rest):
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        if depth == 0 or (depth == 1 and token == ","):
            if option:
                call.options[option] = argument.strip()
            elif argument.strip():
                call.positional.append(argument.strip())
            option = argument = ""
            if depth == 0:
                break
        elif depth == 1 and not argument.strip() and re.fullmatch(r"\w+\s*(?::=|=>)", token):
            option = re.split(r"\W", token)[0]
        elif not token.startswith("--"):
            argument += token
    return call
