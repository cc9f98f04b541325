"""The five pages: what they show, from the policy and what is known of its table.

Suggestions for columns that nobody has decided yet: no decision is asked for without a hint.

The commands that do on a terminal what the pages do.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duckanon._bridge import sql
from duckanon._core.common import quantities
from duckanon._core.common.progress import StoppedError
from duckanon._core.common.release_record import Record
from duckanon.job import consistency, methods, refusals, run
from duckanon.job.check import check_policy
from duckanon.job.errors import JobError, PolicyError
from duckanon.job.places import places
from duckanon.job.policy import UNDECIDED, Table, source_format
from duckanon.workbench import pictures, trials
from duckanon.workbench.bench import Bench, Glance
from duckanon.workbench.counts import Risk
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.tree_editor import Editor
from duckanon.workbench.works import Work, Works

_ADDS = 0.001
"""Share of the people, from which on a column that makes them unique is suggested as one that others may know."""


def suggestion(column: Glance, now: Risk, with_it: Risk) -> str:
    """Say which role to choose for a column, and why.

    Args:
        column: What was seen in it.
        now: The risk of the columns that others may know.
        with_it: The risk if they may know this column, too.
    """
    if column.follows:
        return f"the same as for {' and '.join(column.follows)}, from which it follows."
    if column.seen == "constant":
        return "“identifies nobody”: it says the same about everybody."
    if column.seen == "weight":
        return "“not needed”, unless results are weighted by it: an exact weight can point at a person."
    people = max(with_it.people, 1)
    if with_it.unique - now.unique >= _ADDS * people:
        shares = f"with it {100 * with_it.unique / people:.3g} % of the people are unique, without it "
        return f"“others may know it”: {shares}{100 * now.unique / people:.3g} %."
    return (
        "“others may know it” if a neighbour, a colleague or a register could know it: it makes hardly anybody unique, "
        "so that protecting it costs little. Else “identifies nobody”."
    )


def shell_word(text: str) -> str:
    r"""Quote a word for a shell, in double quotes where it has only single ones, which is easier to read.

    Examples:
        >>> shell_word("a 'b'")
        '"a \'b\'"'
    """
    is_plain = not set(text) & set('"$`\\!') and "'" in text
    return f'"{text}"' if is_plain else shlex.quote(text)


def command(page: str, policy: PolicyText, trial: Table, report: Path) -> str:
    """Return the command that does what a page does; `trial` is the table without columns that are undecided."""
    table, name = policy.table(), shell_word(policy.path.name)
    source = re.sub(r"(?<=://).*@", "", str(table.source.path or "..."))  # the name and password of a server
    if page == "columns":
        return f"duckanon policy init --from {shell_word(source)} --to {name}"
    if page == "risk":
        quasi, person = sql.literal(table.with_roles("quasi_identifier")), _option("person", table.person)
        counted = f"FROM anon.k_anonymity('people', {quasi}{person})"
        return f"duckanon -c {shell_word(f'{_people(table, source)} {counted}')}"
    if page == "preview" and (table.is_linked or table.method.makes_cells):
        return f"duckanon release {name} --dry-run"
    if page == "preview":
        return f"duckanon -c {shell_word(f'{_people(table, source)} {_write_call(trial)} LIMIT 10')}"
    return (
        f"duckanon policy check {name}"
        if page == "method"
        else f"duckanon release {name} --report {shell_word(report.name)}"
    )


def _people(table: Table, source: str) -> str:
    """Write the statements that make the table of people."""
    origin, file = table.source, sql.literal(source)
    if origin.query:
        return f"CREATE VIEW source AS FROM {file}; CREATE TABLE people AS {origin.query.rstrip(';')};"
    if origin.table and source_format(source) == "duckdb":
        inside = ".".join(map(sql.quote, origin.table.split(".")))
        return f"ATTACH {file} AS opened (READ_ONLY); CREATE TABLE people AS FROM opened.{inside};"
    return f"CREATE TABLE people AS FROM {file};"


def _write_call(trial: Table) -> str:
    """Write the call of the job, with its options: who is counted, what is kept and may narrow down, l and t."""
    trees = {column: paths[0] for column, paths in trial.hierarchies.items() if column in trial.protected}
    called = methods.call(trial, "people", trees)
    if trial.person and trial.method.makes_classes:  # it is kept to be counted
        return f"SELECT * EXCLUDE ({sql.quote(trial.person)}) {called}"
    return called


def _option(name: str, value: str | None) -> str:
    return "" if value is None else f", {name} := {sql.literal(value)}"


PAGES = {"columns": "Columns", "risk": "Risk", "method": "Method", "preview": "Preview", "release": "Release"}

EDITOR = "hierarchy"
"""The page of a column's hierarchy, which belongs to the step of the method."""

ROLES = {
    UNDECIDED: "decide: what is it?",
    "identifier": "names a person: drop",
    "person": "says whose row it is",
    "quasi_identifier": "others may know it: protect",
    "sensitive": "nobody should learn it: keep",
    "free": "identifies nobody: keep",
    "drop": "not needed: drop",
}
"""Roles that a click gives, with what they mean."""

_MOVES = 8
_SETTLED = 0.5
"""Seconds without another change, after which a policy is checked against its data."""
_NARROWS = re.compile(r"columns\.(\S+) narrows down (\S+);")


class Site:
    """The workbench of one policy: its pages, and the work behind them."""

    def __init__(self, policy: PolicyText, root: str) -> None:
        self.root = root  # the path before every address: the token
        self.policy = policy
        self.bench = Bench(policy)
        self.works = Works()
        self.editor = Editor(self.bench)
        self.moves: list[tuple[str, Risk]] = []
        self._lock = threading.Lock()
        self._pages = Environment(
            loader=PackageLoader("duckanon.workbench"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.globals["meaning"] = quantities.explain_entry
        self._pages.filters["number"] = lambda value: f"{value:,}"
        self.opening = self.works.start("open", self.bench.open)

    def close(self) -> bool:
        """End all work and let go of the table; tell whether all work has ended."""
        is_over = self.works.stop()
        if is_over:
            self.bench.close()
        return is_over

    def page(self, name: str, message: str | None = None, **more: Any) -> str:
        """Render a page, or one that says that the table is still being read."""
        if self.opening.is_running or self.opening.error:
            return self._render("opening.html.j2", name, message, work=self.opening)
        try:
            context = getattr(self, f"_{name}")(**more)
            return self._render(f"{name}.html.j2", name, message, **context)
        except JobError as error:  # somebody wrote a wrong policy into the file
            return self._render("wrong.html.j2", name, str(error))

    def part(self, name: str) -> str:
        """Render a part of a page that is asked for again until it is whole."""
        context = {"adds": self._adds, "stop": self._stop, "curve": self._curve, "map": self._map}.get(name)
        work = None if context else self.works.get(name)
        if work and name in ("preview", "distribution") and work.key[0] != self._table():
            work = None  # of another policy than the one that is shown
        shown: dict[str, Any] = context() if context else {"work": work, "result": work.result if work else None}
        if name == "released":
            shown |= self._outcome()
        if name == "distribution" and shown["result"]:
            shown["result"] = [
                {**row, "bars": pictures.pair(row["original"], row["released"])} for row in shown["result"]
            ]
        if name == "opening":
            shown = {"work": self.opening}
        shown["least"] = self.bench.least_shown if name == "preview" else 0
        shown["narrowing"] = _narrowing(work.error if work else None)
        return self._pages.get_template(f"part_{name}.html.j2").render(
            root=self.root, kind=name, version=self.policy.version, **shown
        )

    def _render(self, template: str, name: str, message: str | None, **more: Any) -> str:
        is_ready = not (self.opening.is_running or self.opening.error) and template != "wrong.html.j2"
        return self._pages.get_template(template).render(
            root=self.root,
            page=name,
            step="method" if name == EDITOR else name,
            pages=PAGES,
            message=message,
            policy=self.policy,
            bench=self.bench,
            include_part=lambda part: Markup(self.part(part)),
            command=self._command("method" if name == EDITOR else name) if is_ready else "",
            **(self._aside() if is_ready else {}),
            **more,
        )

    def _command(self, page: str) -> str:
        return command(page, self.policy, self.bench.trial(), self.report)

    def _aside(self) -> dict[str, Any]:
        """Count the risk of the columns as they are now, and remember how it moved."""
        table = self.policy.table()
        quasi, k = table.with_roles("quasi_identifier"), table.promises.k
        risk = self.bench.risk(quasi) if quasi else None
        with self._lock:
            if risk and (not self.moves or self.moves[-1][1] != risk):
                words = self.policy.last.what if self.policy.last and self.moves else "at the beginning"
                self.moves = [*self.moves[1 - _MOVES :], (words, risk)]
        return {
            "risk": risk,
            "k": k,
            "quasi": quasi,
            "undecided": table.with_roles(UNDECIDED),
            "table": table,
            "has_aside": True,
        }

    def _stop(self) -> dict[str, Any]:
        """Say what would stop the release, beside columns that are undecided.

        Where the parts of the policy contradict each other, that is said at once; else `duckanon policy check` looks at
        a sample of the rows.
        """
        try:
            consistency.check(self.policy.file())
        except JobError as error:
            return {"work": None, "faults": self._sentences(str(error))}

        def do(work: Work) -> list[str]:
            if work.stop.wait(_SETTLED):  # the policy was changed again
                raise StoppedError
            return check_policy(self.policy.path)

        work = self.works.ensure("stop", self.policy.version, do)
        return {"work": work, "faults": self._sentences(work.error or ""), "rows": f"{refusals.MOST_ROWS:,}"}

    def _sentences(self, words: str) -> list[str]:
        """Return the sentences of an error, without the name of the policy and without undecided columns."""
        place = re.compile(rf"^{re.escape(str(self.policy.path))}(, line \d+)?: ")
        lines = [place.sub("", line) for line in words.splitlines()]
        return [line for line in lines if "columns must be decided" not in line and line != "Cancelled."]

    # the pages

    def _columns(self) -> dict[str, Any]:
        return {"columns": self.bench.glances, "roles": ROLES, "advice": self._advice()}

    def _advice(self) -> dict[str, str]:
        """Suggest roles for the columns that are undecided, by their risk in the sample."""
        quasi, undecided = self.bench.quasi_identifiers(), self.policy.table().with_roles(UNDECIDED)
        con = self.bench.con.cursor()
        try:
            now = self.bench.risk(quasi, con, "sample") if quasi else Risk(0, 0, 0)
            return {
                glance.name: suggestion(glance, now, self.bench.risk([*quasi, glance.name], con, "sample"))
                for glance in self.bench.glances
                if glance.name in undecided
            }
        finally:
            con.close()

    def _risk(self) -> dict[str, Any]:
        con = self.bench.con.cursor()
        try:
            population = self.bench.population(con)
        finally:
            con.close()
        return {"moves": list(reversed(self.moves)), "population": population}

    def _method(self) -> dict[str, Any]:
        named = {column: ", ".join(paths) for column, paths in self.policy.table().hierarchies.items()}
        unit: quantities.Unit = "people" if self.policy.table().person else "rows"
        counted = {name: quantities.explain_promise(name, unit) for name in ("k", "l", "t", "max_suppressed_fraction")}
        return {
            "fitting": trials.fitting(self.bench),
            "meanings": trials.METHODS,
            "hierarchies": named,
            "counted": counted,
        }

    def _hierarchy(self, column: str, level: int, opened: int | None) -> dict[str, Any]:
        if column not in self.policy.table().columns:
            raise PolicyError("The policy has no such column.")
        work = self.works.get("distribution", (self._table(), column))
        kind = next((one.kind for one in self.bench.glances if one.name == column), "")
        return {
            **self.editor.context(column, level, opened),
            "title": f"Hierarchy of {column}",
            "kind": kind,
            "is_used": column in self.policy.table().hierarchies,
            "is_compared": work is not None,
        }

    def _preview(self) -> dict[str, Any]:
        return {}

    def _release(self) -> dict[str, Any]:
        said = self.policy.file().policy.release
        return {"terms": said.model_dump(mode="json"), "target": self.policy.table().target.path}

    # the parts that take a while

    def _adds(self) -> dict[str, Any]:
        """Count what each column adds to the risk, column by column."""
        quasi = self.bench.quasi_identifiers()
        person = self.policy.table().person

        def do(work: Work) -> list[tuple[str, int]]:
            con, additions = work.cursor(self.bench.con), []
            everything = self.bench.risk(quasi, con).unique
            for column, without in self.bench.risks_without(quasi, con):
                work.check()
                additions.append((column, everything - without.unique))
                work.result = sorted(additions, key=lambda one: -one[1])
            return sorted(additions, key=lambda one: -one[1])

        work = self.works.ensure("adds", (person, *quasi), do) if quasi else None
        rows = (work.result if work else None) or []
        most = max([added for _, added in rows] + [1])
        return {"work": work, "rows": [(name, added, pictures.bar(added / most)) for name, added in rows]}

    def _curve(self) -> dict[str, Any]:
        work = self.works.get("curve", self._trial_key())
        points = (work.result if work else None) or []
        picture = pictures.curve(points, trials.KS, self.policy.table().promises.k)
        return {"work": work, "picture": picture, "points": points}

    def _map(self) -> dict[str, Any]:
        work = self.works.get("map", self._trial_key())
        compared = (work.result if work else None) or []
        good = [(one.method, one.risk, one.loss) for one in compared if one.failed is None]
        return {"work": work, "compared": compared, "picture": pictures.risk_utility_map(good)}

    def _table(self) -> str:
        """Return what a preview depends on: all that the policy says of the table, and not to whom it goes."""
        return self.policy.table().model_dump_json()

    def _trial_key(self) -> object:
        """Return what a trial depends on: the policy without k, which is on the curve."""
        table = self.policy.table()
        return table.model_copy(update={"promises": table.promises.model_copy(update={"k": None})}).model_dump_json()

    def start(self, kind: str, column: str | None = None) -> None:
        """Start work that somebody asked for."""
        trial: dict[str, tuple[Callable[[Work], Any], object]] = {
            "curve": (trials.curve(self.bench), self._trial_key()),
            "map": (trials.comparison(self.bench), self._trial_key()),
            "preview": (trials.preview(self.bench), (self._table(),)),
            "released": (self._job(), self.policy.version),
        }
        if column:
            trial["distribution"] = (trials.distribution(self.bench, column), (self._table(), column))
        do, key = trial[kind]
        self.works.start(kind, do, key)

    # the release

    @property
    def report(self) -> Path:
        """Where the report goes: where the policy says, or beside it."""
        said = self.policy.file().policy.report
        return self.policy.path.parent / (said or f"{self.policy.path.stem.removesuffix('.policy')}_report.html")

    def _job(self) -> Callable[[Work], Record]:
        """Return the release of the policy as it is now: what is changed later is not in it."""
        text, report = self.policy.text, self.report

        def do(work: Work) -> Record:
            return run.release(
                self.policy.path, report=report, say=work.lines.append, cancel=work.stop, policy_text=text
            )

        return do

    def _outcome(self) -> dict[str, Any]:
        work = self.works.get("released")
        record: Mapping[str, Any] | None = (work.result or work.broken) if work else None
        changed = bool(work and work.key != self.policy.version)
        return {"record": record, "is_changed": changed, "downloads": self.downloads() if record else {}}

    def downloads(self) -> dict[str, Path]:
        """Return the files that belong to the policy and its last release, by the names of their links."""
        file = self.policy.file()
        where = places(file)
        files = {"policy": self.policy.path, "report": self.report, "record": where.record}
        files["report of the refusal"] = self.report.with_name(f"{self.report.stem}.not-released{self.report.suffix}")
        for column, paths in self.policy.table().hierarchies.items():
            for number, path in enumerate(paths, 1):
                name = f"hierarchy {number}" if len(paths) > 1 else "hierarchy"
                files[f"{name} of {column}"] = file.place(path)
        return {name: path for name, path in files.items() if path.is_file()}


def _narrowing(error: str | None) -> list[str]:
    """Return the columns that a release refused, since they narrow down others."""
    return list(dict.fromkeys(found[1] for found in _NARROWS.finditer(error or "")))
