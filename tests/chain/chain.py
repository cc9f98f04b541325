"""A table through the whole chain: draft, check, release, verify, evidence, report and the workbench's panel.

Every step is made by its command, in this process. What each says of a release is compared with plain SQL on the
written file, in a connection that knows nothing of duckanon.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import html
import io
import json
import re
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
from starlette.testclient import TestClient

from duckanon.cli import main as cli
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site
from tests.awkward import TABLES, quoted
from tests.oracles.call import Rows
from tests.seams.bench import NUMBER, TIME, UNUSUAL, fetch, has_endless
from tests.seams.faces import _toml
from tests.seams.literals import sql_of as literal
from tests.seams.outcomes import quoted_values

OF_CLASSES = ("generalize", "recode", "suppress_cells", "boxes", "microaggregate", "release_linked")
OF_NEW_RECORDS = ("synthesize", "spectral_release", "svd_swap", "pica")
METHODS = (*OF_CLASSES, *OF_NEW_RECORDS, "protect_table")
ENDINGS = (".parquet", ".csv", ".duckdb", ".csv.gz")

OF_NUMBERS = ("boxes", "microaggregate")
"""Methods whose quasi-identifiers are numbers or dates."""

_INTERNAL = re.compile(r"unexpectedly|Traceback|\w+Error\b|UDF|LINE \d|Candidate|dictionary<|promise\b.*\bnot kept")
_ONLY_BY_RELEASE = re.compile("no cluster_size passes|would be hidden")
"""Refusals that nothing but the release itself can tell."""
_BY_CHANCE = re.compile("no cluster_size passes")
"""Refusals of a search that draws: the same policy may be released at the next try."""

_MOST_COLUMNS = 3
_PATIENCE = 1200
"""Seconds until the workbench has read a table: one of 300 columns took more than sixty on a busy machine."""
_K = 3

_COPIES = 4
"""People with the same values in other people's place: most methods refuse tables of a hundred rows."""


@dataclass
class Outcome:
    """What became of a table: how far it came, and what is wrong, by the step that says so."""

    name: str
    code: int = 0
    refusal: str = ""
    faults: list[tuple[str, str]] = field(default_factory=list)

    def blame(self, step: str, words: object) -> None:
        self.faults.append((step, str(words)))

    def compare(self, step: str, what: str, told: object, counted: object) -> None:
        """Blame a step whose number is not that of plain SQL; fractions may differ in their last digits."""
        is_near = isinstance(told, float) and isinstance(counted, float) and abs(told - counted) < 1e-9
        if told != counted and not is_near:
            self.blame(step, f"{what}: {told}, and plain SQL {counted}")


def command(*arguments: str | Path) -> tuple[int, str, str]:
    """Run a command here; return its exit code, what it printed, and its errors."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = cli.main(list(map(str, arguments)))
    return code, out.getvalue(), errors.getvalue()


class Chain:
    """A table of the catalogue in a folder of its own, as a file, with the draft of its policy."""

    def __init__(self, folder: Path, name: str, *, is_database: bool) -> None:
        self.table = TABLES[name]
        self.folder = folder
        folder.mkdir()
        self.con = duckdb.connect()
        self.table.create(self.con)
        whose = quoted(self.table.person or "")
        person = f", {whose}::VARCHAR || '.' || copy AS {whose}" if self.table.person else ""
        others = f"* EXCLUDE (rid, copy{f', {whose}' if self.table.person else ''})"
        rows = f"""SELECT rid + 1000 * copy AS rid{person}, {others} FROM {quoted(name)}, range({_COPIES}) AS r(copy)"""
        self.source: dict[str, str] = {"path": "people.duckdb", "table": "people"}
        if is_database:
            self.con.execute(f"ATTACH '{folder}/people.duckdb' AS f").fetchall()
            self.con.execute(f"CREATE TABLE f.people AS {rows}").fetchall()
            self.con.execute("CREATE TABLE people AS FROM f.people").fetchall()
            self.con.execute("DETACH f").fetchall()
        else:
            self.source = {"path": "people.parquet"}
            self.con.execute(f"COPY ({rows}) TO '{folder}/people.parquet' (FORMAT parquet)").fetchall()
            self.con.execute(f"CREATE TABLE people AS FROM '{folder}/people.parquet'").fetchall()
        self.types = {row[0]: str(row[1]) for row in self.con.execute("DESCRIBE people").fetchall()}
        (folder / "key").write_text("a key of at least sixteen characters")
        (folder / "key").chmod(0o600)

    @cached_property
    def values(self) -> Rows:
        """The rows, to look for in what must show none of them."""
        rows = fetch(self.con, "FROM people")
        return fetch(self.con, "FROM people", True) if has_endless(rows) else rows

    @cached_property
    def distinct(self) -> dict[str, int]:
        """The columns that releases take, with how many values they have: those of few first, as a person chooses."""
        columns = [name for name in self.types if name not in ("rid", self.table.person, *self.table.constant)]
        columns = [name for name in columns if not UNUSUAL.match(self.types[name])]
        counts = ", ".join(f"count(DISTINCT {quoted(name)}::VARCHAR)" for name in columns)
        found = self.con.execute(f"SELECT {counts} FROM people").fetchall()[0] if columns else ()
        counted = dict(zip(columns, found, strict=True))
        return dict(sorted(counted.items(), key=lambda item: item[1] > self.table.size / 4))

    def draft(self, outcome: Outcome) -> dict[str, Any]:
        """Draft a policy, look at it, and return it."""
        named = ["--table", self.source["table"]] if "table" in self.source else []
        code, _, errors = command(
            "policy", "init", "--from", self.folder / self.source["path"], *named, "--to", "draft.toml"
        )
        if code:
            self.look_at_refusal(outcome, "draft", code, errors, "")
            return {}
        text = (self.folder / "draft.toml").read_text(encoding="utf-8")
        drafted = tomllib.loads(text)
        outcome.compare("draft", "columns", sorted(drafted["columns"]), sorted(self.types))
        code, _, errors = command("policy", "check", "draft.toml")
        if code:
            self.look_at_refusal(outcome, "check of the draft", code, errors, text)
        return drafted

    # ---- a policy

    def policy(self, drafted: dict[str, Any], method: str, ending: str, *, number: int) -> dict[str, Any] | None:
        """Decide the draft for a method, in one of several ways; None where the table has nothing for it."""
        person = self.table.person
        is_new, is_table = method in OF_NEW_RECORDS, method == "protect_table"
        is_followed = method == "release_linked" or (not is_new and not is_table and number % 2 == 0)
        if method == "release_linked" and person is None:
            return None
        quasi = [name for name in self.distinct if self._fits(name, method)]
        suggested = [name for name in quasi if drafted["columns"].get(name) == "quasi_identifier"]
        quasi = list(dict.fromkeys([*suggested, *quasi]))[number % 2 :][:_MOST_COLUMNS]
        if is_table:
            quasi = sorted(self.distinct, key=lambda name: self.distinct[name])[:2]
        if not quasi or (is_new and len(quasi) < 2):
            return None
        roles: dict[str, Any] = dict.fromkeys(self.types, "drop")
        for name in quasi:
            roles[name] = "numeric" if is_new and NUMBER.match(self.types[name]) else "quasi_identifier"
        kept = [name for name in self.distinct if name not in quasi][:1] if not is_new and not is_table else []
        for name in kept:
            roles[name] = "sensitive"
        if person:
            roles[person] = {"role": "person", "pseudonym": True} if is_followed else "person"
        promises: dict[str, Any] = {"k": _K, "max_suppressed_fraction": 0.9 if is_table else 0.6}
        if kept and number % 3 == 0 and method not in ("boxes", "release_linked"):
            promises["l"] = 2
        if is_new:
            promises = {"prediction": True, "max_suppressed_fraction": 0.6}
        if method == "release_linked":
            promises |= {"known_events": 1}
        elif is_followed and person:
            promises["linked_k"] = 1
        options: dict[str, Any] = {"name": method}
        if is_new:
            options |= {"k": _K, "nulls": "category"} if method != "svd_swap" else {"nulls": "category"}
        if method == "synthesize":
            options |= {"leaf": 5}
        if kept:
            options["narrowing"] = kept
        found = {
            **({"kind": "aggregate"} if is_table else {}),
            "source": self.source,
            "target": {"path": f"release{ending}"},
            "columns": roles,
            "method": options,
            "promises": promises,
        }
        if is_followed and person:
            found["key"] = {"file": "key"}
        return found

    def _fits(self, name: str, method: str) -> bool:
        kind = self.types[name]
        is_measure = bool(NUMBER.match(kind) or TIME.match(kind))
        has_few = self.distinct[name] <= self.table.size / 4
        return is_measure or (method not in OF_NUMBERS and (has_few or method not in OF_NEW_RECORDS))

    # ---- the links of the chain

    def run(
        self, drafted: dict[str, Any], method: str, ending: str, *, number: int, has_report: bool
    ) -> Outcome | None:
        """Release by a policy, and hold what everybody says of it against the file."""
        outcome = Outcome(f"{self.table.name} {method} {ending}")
        policy = self.policy(drafted, method, ending, number=number)
        if policy is None:
            return None
        if has_report:
            policy = {"report": "report.html", **policy}
        for path in self.folder.glob("re[lp]*"):
            path.unlink()
        text = "".join(f"{name} = {_toml(part)}\n" for name, part in policy.items())
        (self.folder / "policy.toml").write_text(text, encoding="utf-8")
        checked, _, refused = command("policy", "check", "policy.toml")
        if checked:
            self.look_at_refusal(outcome, "check", checked, refused, text)
        code, printed, errors = command("release", "policy.toml", "--progress")
        errors = "".join(line for line in errors.splitlines(keepends=True) if not line.endswith(" ...\n"))
        outcome.code, outcome.refusal = code, errors
        if code in (2, 3) and not checked and not _ONLY_BY_RELEASE.search(errors):
            outcome.blame("check", f"it accepts what the release refuses: {errors}")
        if code == 0 and checked and not _BY_CHANCE.search(refused):
            outcome.blame("check", "it refuses what the release accepts")
        if code:
            self.look_at_refusal(outcome, "release", code, errors, text)
            if list(self.folder.glob("release*")):
                outcome.blame("release", "files were left by a release that was refused")
            return outcome
        self.look_at_release(outcome, policy, printed)
        return outcome

    def look_at_refusal(self, outcome: Outcome, step: str, code: int, errors: str, policy: str) -> None:
        """A refusal is one sentence a fault, with the exit code of its kind, and quotes no value."""
        lines = errors.splitlines()
        sentences = [line for line in lines if not line.startswith(("warning: ", "A report of it"))]
        if code not in (1, 2, 3) or not sentences:
            outcome.blame(step, f"exit code {code}: {errors}")
        if _INTERNAL.search(errors):
            outcome.blame(step, f"internal words: {errors}")
        if wrong := [line for line in sentences if not line.endswith(".")]:
            outcome.blame(step, f"no sentence: {wrong}")
        said = errors.replace("all other records", "")
        if values := quoted_values(said, policy + str(self.folder), self.values):
            outcome.blame(step, f"values {values[:3]} in: {errors}")

    def look_at_release(self, outcome: Outcome, policy: dict[str, Any], printed: str) -> None:
        """Compare the record, the terminal, `verify`, the evidence and the report with the file."""
        target = self.folder / policy["target"]["path"]
        record = json.loads((self.folder / f"{target.name}.record.json").read_text(encoding="utf-8"))
        (entry,) = record["tables"]
        with Facts(self, policy, target) as facts:
            self.compare(outcome, "record", entry, facts, policy)
        for promise in entry["promises"]:
            if promise["words"] not in printed:
                outcome.blame("terminal", f"without the words: {promise['words']}")
        code, verified, errors = command("verify", target.name)
        if code or "DIFFERS" in verified:
            lines = [line for line in verified.splitlines() if ": confirmed:" not in line]
            outcome.blame("verify", f"exit code {code}: {lines} {errors}")
        for promise in entry["promises"]:
            if f": {promise['name']}: " not in verified:
                outcome.blame("verify", f"without {promise['name']}")
        code, _, errors = command("evidence", "policy.toml", "--to", "evidence.zip")
        if code:
            outcome.blame("evidence", f"exit code {code}: {errors}")
        else:
            with zipfile.ZipFile(self.folder / "evidence.zip") as evidence:
                outcome.compare("evidence", "record", json.loads(evidence.read("record.json")), record)
                outcome.compare("evidence", "verify", evidence.read("verify.txt").decode(), verified)
            (self.folder / "evidence.zip").unlink()
        if "report" in policy:
            with Facts(self, policy, target) as facts:
                self.look_at_report(outcome, entry, facts.erased)

    def compare(self, outcome: Outcome, step: str, entry: dict[str, Any], facts: Facts, policy: dict[str, Any]) -> None:
        """Compare the entry of a table with the file."""
        output, suppressed = entry["output"], entry["suppressed"]
        measured = {promise["name"]: promise["measured"] for promise in entry["promises"]}
        for promise in entry["promises"]:
            if not promise["passed"]:
                outcome.blame(step, f"released with a broken promise: {promise}")
        outcome.compare(step, "rows", output["rows"], facts.rows)
        outcome.compare(step, "rows before", entry["rows"], facts.rows_before)
        outcome.compare(step, "people before", entry["people"], facts.people_before)
        dropped = {name for name, role in policy["columns"].items() if role in ("drop", "identifier", "person")}
        left = dropped & facts.columns.keys()
        if left and policy["method"]["name"] != "protect_table":  # whose columns are called as it calls them
            outcome.blame(step, f"columns that are dropped are in the file: {left}")
        if policy["method"]["name"] == "protect_table":
            outcome.compare(step, "hidden cells", entry["cells"]["hidden"], facts.hidden)
            if facts.total is not None:
                outcome.compare(
                    step, "the total", facts.total, facts.rows_before if facts.person is None else facts.people_before
                )
            return
        if policy["method"]["name"] in OF_NEW_RECORDS:
            return
        if missing := [name for name in facts.expected if not facts.held(name)]:
            outcome.blame(step, f"columns are not in the file: {missing}")
            return
        if facts.whose or not facts.person:
            outcome.compare(step, "people", output["people"], facts.people)
            if policy["method"]["name"] != "release_linked":
                outcome.compare(step, "k", measured["k"], facts.k)
            outcome.compare(step, "fraction suppressed", suppressed["fraction"], facts.fraction(policy))
        else:
            if measured["k"] > facts.k:
                outcome.blame(step, f"k: {measured['k']}, and there are {facts.k} rows in a class of the file")
            if output["people"] > facts.rows:
                outcome.blame(step, f"people: {output['people']}, and {facts.rows} rows")
        outcome.compare(step, "rows suppressed", suppressed["rows"], facts.rows_before - facts.rows)
        for name in facts.sensitive:
            if f"l of {name}" in measured:
                outcome.compare(step, f"l of {name}", measured[f"l of {name}"], facts.l(name))
        for name, count in output["labels"].items():
            outcome.compare(step, f"labels of {name}", count, facts.labels(name))

    def look_at_report(self, outcome: Outcome, entry: dict[str, Any], erased: set[str]) -> None:
        """The report says what the record says, and compares no column of which nothing is left."""
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"(?s)<(style|svg).*?</\1>", "", page))).split())
        for promise in entry["promises"]:
            if " ".join(promise["words"].split()) not in text:
                outcome.blame("report", f"without the words: {promise['words']}")
        measures = entry.get("measures") or {}
        classes = (measures.get("classes") or {}).get("after")
        k = next((promise["measured"] for promise in entry["promises"] if promise["name"] == "k"), None)
        compared = {row["column"] for row in (measures.get("utility") or {}).get("marginals") or ()}
        if compared & erased:
            outcome.blame("report", f"it compares columns of which nothing is left: {sorted(compared & erased)}")
        if "erased" in measures:
            outcome.compare("report", "erased columns", sorted(measures["erased"]), sorted(erased))
        if classes and k is not None and str(classes["smallest"]) != str(k):
            outcome.blame("report", f"smallest class: {classes['smallest']}, and the record {k}")

    def look_at_panel(self, drafted: dict[str, Any], number: int) -> Outcome:
        """Open the workbench on a policy, and compare its panel with plain SQL on the source."""
        outcome = Outcome(f"{self.table.name} workbench")
        policy = self.policy(drafted, "generalize", ".parquet", number=number)
        if policy is None:
            return outcome
        text = "".join(f"{name} = {_toml(part)}\n" for name, part in policy.items())
        (self.folder / "panel.toml").write_text(text, encoding="utf-8")
        site = Site(PolicyText(self.folder / "panel.toml"), "/token")
        try:
            site.opening.wait(_PATIENCE)
            if site.opening.error:
                self.look_at_refusal(outcome, "workbench", 2, site.opening.error, text)
                return outcome
            page = TestClient(application(site), base_url="http://127.0.0.1:8000").get("/token/risk").text
        finally:
            site.close()
        told = html.unescape(re.sub(r"<[^>]+>|\s+", " ", page))
        found = re.search(
            r"([\d, ]+) of ([\d, ]+) (?:person|people) (?:is|are) unique .*?smallest class has ([\d, ]+)",
            " ".join(told.split()),
        )
        if not found:
            outcome.blame("workbench", "the panel says nothing of the risk")
            return outcome
        unique, people, k = (int(re.sub(r"\D", "", text)) for text in found.groups())
        columns = [name for name, role in policy["columns"].items() if role == "quasi_identifier"]
        for what, said, counted in zip(("unique", "people", "k"), (unique, people, k), self.risk(columns), strict=True):
            outcome.compare("workbench", what, said, counted)
        return outcome

    def risk(self, columns: Sequence[str]) -> tuple[int, int, int]:
        """Count unique people, people, and those of the smallest class: a class of nobody has none."""
        names = ", ".join(map(quoted, columns))
        person = quoted(self.table.person or "rid")
        sizes = f"SELECT count(DISTINCT {person}) AS n, min({person}) AS one FROM people GROUP BY {names}"
        unique, k = self.con.execute(f"SELECT count(DISTINCT one) FILTER (n = 1), min(n) FROM ({sizes})").fetchall()[0]
        return unique, self.con.execute(f"SELECT count(DISTINCT {person}) FROM people").fetchall()[0][0], k


class Facts:
    """What plain SQL says of a written file."""

    def __init__(self, chain: Chain, policy: dict[str, Any], target: Path) -> None:
        self.con = duckdb.connect()
        self.chain = chain
        self.policy = policy
        path = str(target)
        if path.endswith(".duckdb"):
            self.con.execute(f"ATTACH '{path}' AS f (READ_ONLY)").fetchall()
            ((name,),) = self.con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'f'").fetchall()
            self.file = f"f.{quoted(name)}"
        elif path.endswith(".parquet"):
            self.file = f"read_parquet('{path}')"
        else:
            with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="") as file:
                names = next(csv.reader(file))  # DuckDB trims them where it guesses the form
            columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
            form = f"""header = true, columns = {{{columns}}}, delim = ',', quote = '"', escape = '"'"""
            self.file = f"read_csv('{path}', auto_detect = false, {form})"
        self.columns = {row[0]: str(row[1]) for row in self.con.execute(f"DESCRIBE FROM {self.file}").fetchall()}
        roles = policy["columns"]
        self.quasi = [name for name, role in roles.items() if role == "quasi_identifier"]
        self.sensitive = [name for name, role in roles.items() if role == "sensitive"]
        self.person = chain.table.person
        self.whose = self.person if self.person and roles[self.person] != "person" else None
        self.expected = [*self.quasi, *self.sensitive, *([self.whose] if self.whose else [])]

    def __enter__(self) -> Facts:
        return self

    def __exit__(self, *_: object) -> None:
        self.con.close()

    def one(self, query: str) -> Any:
        return self.con.execute(query).fetchall()[0][0]

    def held(self, name: str) -> list[str]:
        """Return the columns of the file that hold a column, two where they are the ends of intervals."""
        ends = [f"{name}_lo", f"{name}_hi"]
        return [name] if name in self.columns else ends if set(ends) <= self.columns.keys() else []

    @property
    def rows(self) -> int:
        return self.one(f"SELECT count(*) FROM {self.file}")

    @property
    def rows_before(self) -> int:
        return self.chain.con.execute("SELECT count(*) FROM people").fetchall()[0][0]

    @property
    def people_before(self) -> int | None:
        if self.person is None:
            return None
        return self.chain.con.execute(f"SELECT count(DISTINCT {quoted(self.person)}) FROM people").fetchall()[0][0]

    @property
    def people(self) -> int | None:
        return self.one(f"SELECT count(DISTINCT {quoted(self.whose)}) FROM {self.file}") if self.whose else None

    @property
    def classes(self) -> str:
        return ", ".join(quoted(one) for name in self.quasi for one in self.held(name))

    @property
    def k(self) -> int:
        size = f"count(DISTINCT {quoted(self.whose)})" if self.whose else "count(*)"
        return self.one(f"SELECT min(n) FROM (SELECT {size} AS n FROM {self.file} GROUP BY {self.classes})")

    def l(self, name: str) -> int:  # noqa: E743 - as the promise is called
        """Count the values of a column in the class that has the fewest; a missing one is a value."""
        values = f"count(DISTINCT {quoted(name)}) + (count(*) > count({quoted(name)}))::INTEGER"
        return self.one(f"SELECT min(n) FROM (SELECT {values} AS n FROM {self.file} GROUP BY {self.classes})")

    def labels(self, name: str) -> int:
        names = ", ".join(map(quoted, self.held(name)))
        return self.one(f"SELECT count(*) FROM (SELECT DISTINCT {names} FROM {self.file})")

    @property
    def erased(self) -> set[str]:
        """The columns that are the same in all rows of the file, and were not before."""
        return {
            name
            for name in (*self.quasi, *self.sensitive)
            if self.held(name) and self.labels(name) == 1 and self.chain.distinct[name] > 1
        }

    def fraction(self, policy: dict[str, Any]) -> float:
        """Return the share of people all of whose rows are gone; of rows, where rows count."""
        if self.whose and policy["method"]["name"] != "release_linked":
            before = self.people_before or 0
            return (before - (self.people or 0)) / max(before, 1)
        return (self.rows_before - self.rows) / self.rows_before

    @property
    def _value(self) -> str:
        return next(name for name in self.columns if name not in self.quasi)

    @property
    def hidden(self) -> int:
        return self.one(f"SELECT count(*) FROM {self.file} WHERE {quoted(self._value)} IS NULL")

    @property
    def total(self) -> int | None:
        """Return the largest count that an aggregate table shows, unless the grand total is hidden."""
        cells = " AND ".join(f"{quoted(name)} = 'Total'" for name in self.quasi)
        return self.one(f"SELECT max({quoted(self._value)}::BIGINT) FROM {self.file} WHERE {cells}")
