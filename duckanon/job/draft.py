"""A policy drafted from what anon.assess sees in a table: a beginning for a person to read and to correct."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import duckdb

from duckanon._bridge import sql
from duckanon.job import refusals, sources
from duckanon.job.errors import FileProblem
from duckanon.job.policy import UNDECIDED, Source, is_database, is_server

_ROLES = {
    "identifier": "identifier",
    "person key": "person",
    "household key": "identifier",
    "quasi-identifier": "quasi_identifier",
    "sensitive": "sensitive",
}
"""Roles that a draft assigns; for all others of anon.assess a person decides."""

_BEGINNING = """\
# Drafted by duckanon policy init. Roles are suggestions from names, values and structure: review every line, and
# replace every "?" by a role.
# duckanon policy check {policy}
# duckanon release {policy}

[source]
path = {path}
{table}
[target]
path = {target}  # .parquet, .csv, .csv.gz or .duckdb

# The role of every column; a column without one, or with "?", stops the job.
#   ?                 undecided: the comment says what was found
#   identifier        names a person or a household: dropped
#   drop              dropped
#   pseudonym         replaced by a code that is the same in every table; needs [key]
#   person            identifies people, whom promises count: dropped, or {{ role = "person", pseudonym = true }}
#   quasi_identifier  others may know it: protected by the method
#   sensitive         released as it is; l and t are promised for it
#   free              released as it is; only you can know that it identifies nobody
[columns]
"""

_K = 10

_PASSWORD = re.compile(r"(//[^:@/?]*)(?::(?!\d+/\w*\?).*|@.*)?@", re.DOTALL)
"""A user and a password in an address, up to the last @: a password may have others, and a question mark."""

_ENDING = """
[method]
# generalize, recode, suppress_cells, boxes, microaggregate; new records: synthesize, spectral_release, svd_swap, pica
{linked}name = "generalize"
{narrowing}
# Counted on the written file before it is published.
[promises]
k = {k}                          # people in every class, at least
{diversity}max_suppressed_fraction = 0.01  # of the people may be suppressed
"""


def draft(con: sql.Connection, path: str, table: str | None, query: str | None, policy: Path | None = None) -> str:
    """Write a policy for a table of a source, or for a query; paths are meant from where the policy will stand."""
    source = Source(path=path, table=table, query=query)
    if is_database(path) and not (table or query):
        raise FileProblem(f"{path}: --table must say which table of the database is meant.")
    files = [] if is_server(path) else sources.matching(path, path)
    try:
        rows = sources.open_source(con, source, files).query
        con.execute(f"CREATE TABLE memory.main.drafted AS {rows}").fetchall()
        con.execute("USE memory.main").fetchall()
        columns = con.execute("SELECT column_name, role, why FROM anon.assess('drafted')").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the table cannot be read ({sql.reason(error)}).") from None
    folder = policy.parent if policy else Path()
    shown = without_password(path) if is_server(path) else os.path.relpath(path, folder)
    stem = re.sub(r"\W+", "_", table or ("table" if is_server(path) else Path(path).name.split(".")[0]))
    is_secret = is_server(path) and shown != path
    which = "# The password stays out of here: it comes from PGPASSWORD or ~/.pgpass.\n" if is_secret else ""
    which += f"table = {_text(table)}\n" if table else f"query = {_text(query)}\n" if query else ""
    beginning = _BEGINNING.format(
        policy=policy or "policy.toml", path=_text(shown), table=which, target=_text(f"{stem}_release.parquet")
    )
    roles = _one_person(columns)
    lines = "".join(f"{_key(name)} = {_text(role)}  # {_comment(why)}\n" for name, role, why in roles)
    comments, narrowing = narrowing_comments(con, {name: role for name, role, _ in roles})
    sensitive = [name for name, role, _ in columns if role == "sensitive"]
    parts = {"diversity": _diversity(sensitive), "linked": _comment_on_events(con, roles), "narrowing": narrowing}
    return beginning + lines + comments + _ENDING.format(k=_K, **parts)


def _comment_on_events(con: sql.Connection, roles: list[tuple[str, str, str]]) -> str:
    """Return the comment about events: people with several rows, which a receiver may have to see together."""
    person = next((name for name, role, _ in roles if role == "person"), None)
    if person is None:
        return ""
    rows, people = sql.fetch_row(con, f"SELECT count(*), count(DISTINCT {sql.quote(person)}) FROM memory.main.drafted")
    if rows <= people:
        return ""
    return (
        '# People have several rows. To release which rows are one person\'s: release_linked, { role = "person", '
        "pseudonym = true }\n# above, [key] with a file, and known_events = 2 under [promises]: the events that "
        "somebody may know.\n"
    )


def narrowing_comments(con: sql.Connection, roles: dict[str, str]) -> tuple[str, str]:
    """Return comments about the columns that would narrow down a quasi-identifier if they were released as they are.

    The second is the option that lets those be released whose role the draft knows, commented out.
    """
    protected = [name for name, role in roles.items() if role == "quasi_identifier"]
    kept = [name for name, role in roles.items() if role not in ("identifier", "person", "drop", "quasi_identifier")]
    judged = refusals.foreseen(con, "FROM memory.main.drafted", protected, kept, _K)
    if not judged:
        return "", ""
    lines = "".join(f"#   {_comment(refusals.finding(*pair))}\n" for pair in judged)
    names = [kept for kept in dict.fromkeys(kept for kept, *_ in judged) if roles[kept] != UNDECIDED]
    option = f"# narrowing = {_comment(json.dumps(names, ensure_ascii=False))}\n" if names else ""
    return (
        f"\n# A release refuses columns that reveal more about a quasi-identifier than its released values do:\n{lines}"
        "# Give them the role quasi_identifier (protected, too) or identifier (dropped); or, to release them\n"
        "# all the same, list them in narrowing under [method].\n"
    ), option


def without_password(address: str) -> str:
    """Return an address without the password before its host, and without passwords behind it; the user stays.

    Examples:
        >>> without_password("postgresql://me:a?b@c@server:5432/clinic?sslmode=require&password=x")
        'postgresql://me@server:5432/clinic?sslmode=require'
    """
    place, _, parameters = _PASSWORD.sub(r"\1@", address, count=1).replace("://@", "://").partition("?")
    options = [parameter for parameter in parameters.split("&") if parameter and "pass" not in parameter.lower()]
    return place + ("?" + "&".join(options) if options else "")


def _diversity(sensitive: list[str]) -> str:
    """Return the line about l: methods shape classes for one column, so that several seldom keep it by themselves."""
    if not sensitive:
        return ""
    if len(sensitive) == 1:
        return "l = 2                           # values of the sensitive column in every class\n"
    shaped = _comment(sensitive[0])
    return f"# l = 2                         # values in every class: shaped for {shaped}, counted for all of them\n"


def _one_person(columns: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Translate roles; of several keys of people the first is taken."""
    translated, has_person = [], False
    for name, seen, why in columns:
        role = _ROLES.get(seen, UNDECIDED)
        why = why if seen == "undecided" else f"{seen}: {why}" if role == UNDECIDED else why
        if role == "person" and has_person:
            role, why = "identifier", f"{why} Another column is the person key already."
        has_person = has_person or role == "person"
        translated.append((name, role, why))
    return translated


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str | None) -> str:
    """Write a text of TOML, whose basic strings are JSON's, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
