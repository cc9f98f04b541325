"""The first page of a report, for the person who signs: caveats, the worst remaining risk, questions of the law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from markupsafe import Markup

from duckanon.report.safe import k_of_release
from duckanon.report.tables import MEASURES, NEW_RECORDS, TERMS, role_of

Number = Callable[..., Markup]
Table = Any  # the entry of a record, with None for missing parts
Tables = Sequence[Table]


def people(count: int | None, shown: Markup | None = None) -> Markup:
    """Write a number of people; 0 are rows whose person is missing: they are nobody's.

    Examples:
        >>> str(people(1)), str(people(12)), str(people(0))
        ('1 person', '12 people', '0 people: rows without a person')
    """
    if count == 0:
        return (shown or Markup(0)) + " people: rows without a person"
    return (shown or Markup(f"{count:,}")) + (" person" if count == 1 else " people")


class Signing:
    """Sentences about a whole release, each number with its place in the record."""

    def __init__(self, record: Mapping[str, Any], number: Number, measured: Number) -> None:
        self._record = record
        self._tables: Tables = record["tables"]
        self._number = number
        self._measured = measured

    def terms(self) -> list[tuple[str, Markup | None]]:
        """Return who gets the release and why, as the policy says; None for what it does not say."""
        release = self._record.get("release") or {}
        return [(words, self._number("release", name) if release.get(name) else None) for name, words in TERMS.items()]

    def reviewers(self) -> list[str]:
        """Return who signs: the reviewers of the policy."""
        return list((self._record.get("release") or {}).get("reviewers") or [])

    def columns(self, place: int) -> list[dict[str, Any]]:
        """Return what became of each column: its labels, or the people that it leaves where it is kept."""
        measures = self._tables[place]["measures"]
        labels = {row["column"]: position for position, row in enumerate(measures["coarseness"] or [])}
        left = {row["kept"]: position for position, row in enumerate(measures["narrowing"] or [])}
        uncovered = {row["kept"] for row, _ in self._find_uncovered(place)}
        path, rows = ("tables", place, "measures"), []
        for column in self._tables[place].get("columns", []):
            row: dict[str, Any] = {"column": column, "labels": None, "typical": None, "left": None, "is_low": False}
            row["is_erased"] = column["name"] in measures["erased"]
            if column["name"] in labels:
                position = labels[column["name"]]
                row["labels"] = self._number(*path, "coarseness", position, "labels", form="count")
                if measures["coarseness"][position]["typical"] is not None:
                    row["typical"] = self._number(*path, "coarseness", position, "typical")
            if column["name"] in left:
                position = left[column["name"]]
                count = measures["narrowing"][position]["k"]
                row["left"] = people(count, self._number(*path, "narrowing", position, "k", form="count"))
                row["is_low"] = column["name"] in uncovered and count < k_of_release(self._tables[place])
            rows.append(row)
        return rows

    def _free(self, place: int) -> set[str]:
        return {column["name"] for column in self._tables[place].get("columns", []) if role_of(column) == "free"}

    def _find_uncovered(self, place: int) -> Iterator[tuple[Mapping[str, Any], Markup]]:
        """Yield kept columns that no promise covers: free ones, and sensitive ones without l and t."""
        table = self._tables[place]
        promised = {str(promise["name"]).rpartition(" of ")[2] for promise in table.get("promises", [])}
        roles = {column["name"]: role_of(column) for column in table.get("columns", [])}
        for position, row in enumerate(table["measures"]["narrowing"] or []):
            role = roles.get(row["kept"])
            if role == "free" or (role == "sensitive" and row["kept"] not in promised):
                yield row, self._number("tables", place, "measures", "narrowing", position, "k", form="count")

    def caveats(self) -> list[Markup]:
        """Say what lies below what was promised without breaking a promise.

        Columns that the policy declares free may leave fewer than k people, and people may be easier to find than
        others who did not take part.
        """
        caveats = []
        for place, table in enumerate(self._tables):
            low = [(row, shown) for row, shown in self._find_uncovered(place) if row["k"] < k_of_release(table)]
            for is_free in (True, False):
                pairs = [(row, shown) for row, shown in low if (row["kept"] in self._free(place)) is is_free]
                if pairs:
                    caveats.append(_caveat(table, pairs, is_free))
            failed = [row["measure"] for row in table["measures"]["prediction"] or [] if not row["passed"]]
            if failed:
                names = ", ".join(MEASURES.get(measure, measure) for measure in failed)
                caveats.append(
                    Markup("{}: not shown to be as safe as not taking part ({}).").format(table["name"], names)
                )
        until = (self._record.get("release") or {}).get("valid_until")
        if until and date.fromisoformat(until) < date.fromisoformat(str(self._record["started"])[:10]):
            caveats.append(
                Markup("The release was to be used until {} only.").format(self._number("release", "valid_until"))
            )
        return caveats

    def worst(self) -> Markup:
        """Say the largest risk that remains, in one sentence."""
        risks: list[tuple[int, Markup]] = []
        for place, table in enumerate(self._tables):
            classes = table["measures"]["classes"]
            if classes and classes["after"]:
                path = ("tables", place, "measures", "classes", "after", "smallest")
                size = classes["after"]["smallest"]
                who = Markup("knows all {} protected columns of somebody in <strong>{}</strong>").format(
                    len(classes["columns"]), table["name"]
                )
                risks.append((size, _finds(who, size, self._number(*path, form="count"))))
            for row, shown in self._find_uncovered(place):
                who = Markup("knows the protected columns of somebody in {} and <strong>{}</strong>").format(
                    table["name"], row["kept"]
                )
                risks.append((row["k"], _finds(who, row["k"], shown)))
        for position, row in enumerate((self._record.get("linked") or {}).get("exposure") or []):
            if row["unique"]:
                share = self._number("linked", "exposure", position, "unique", form="percent")
                words = Markup("Who knows of a person {} finds {} of the people alone.").format(row["knows"], share)
                risks.append((1, words))
        if risks:
            return min(risks, key=lambda one: one[0])[1]
        if any((table.get("method") or {}).get("name") in NEW_RECORDS for table in self._tables):
            return Markup(
                "Released records are new and belong to nobody; what remains is that values which many people share "
                "tell something about all of them."
            )
        return Markup("It was not measured: no column is declared as one that others may know.")

    def answers(self) -> list[tuple[str, str, list[Markup]]]:
        """Return the three questions of the opinion on anonymisation, each with what was counted about it."""
        answers: dict[str, list[Markup]] = {"singling out": [], "linkability": [], "inference": []}
        for place, table in enumerate(self._tables):
            for position, promise in enumerate(table.get("promises", [])):
                kind = str(promise["name"]).removeprefix("prediction: ").partition(" of ")[0]
                if kind in _QUESTION_OF and promise["measured"] is not None:
                    asked = self._number("tables", place, "promises", position, "asked")
                    words = Markup("{}, {}: {} promised, {} counted").format(
                        table["name"], promise["name"], asked, self._measured(place, position)
                    )
                    answers[_QUESTION_OF[kind]].append(words)
            low = [row for row, _ in self._find_uncovered(place) if row["k"] < k_of_release(table)]
            if low:
                names = ", ".join(row["kept"] for row in low)
                answers["singling out"].append(Markup("{}: kept columns below k: {}").format(table["name"], names))
            changes = table.get("changes")
            if changes:
                path = ("tables", place, "changes", "small_changes")
                answers["linkability"].append(
                    Markup("{}: classes that changed by fewer than k since the previous release: {}").format(
                        table["name"], self._number(*path, form="count")
                    )
                )
        return [(name, _QUESTIONS[name], told) for name, told in answers.items()]


def _caveat(table: Table, low: Sequence[tuple[Mapping[str, Any], Markup]], is_free: bool) -> Markup:
    """Say which kept columns leave fewer than k people, with the fewest that one of them leaves."""
    fewest, shown = min(low, key=lambda one: int(one[0]["k"]))
    which = "which the policy declares free" if is_free else "for which neither l nor t is promised"
    names = Markup(", ").join(Markup("<strong>{}</strong>").format(row["kept"]) for row, _ in low)
    known = names if len(low) == 1 else Markup("value in one of {} columns").format(len(low))
    words = Markup("{}: who knows a person's {} too, {}, finds {}; k is {}").format(
        table["name"], known, which, _fewest(fewest["k"], shown), k_of_release(table)
    )
    return words + (Markup(".") if len(low) == 1 else Markup(": {}.").format(names))


def _finds(who: Markup, size: int, shown: Markup) -> Markup:
    chance = Markup("a chance of {:.3g} %").format(100 / size) if size else "the chance may be 100 %"
    return Markup("Who {} finds {}: {} to pick the right one.").format(who, _fewest(size, shown), chance)


def _fewest(count: int, shown: Markup) -> Markup:
    """Write how few people are found; rows without a person are found where nobody is."""
    if count:
        return Markup("as few as {}").format(people(count, shown))
    return Markup("in some cases only rows without a person, where {} people are counted").format(shown)


_QUESTIONS = {
    "singling out": "Can one person's records be isolated in the release?",
    "linkability": "Can two records of one person, here or in another table, be linked?",
    "inference": "Can a value of a person be concluded with a high probability?",
}

_QUESTION_OF = {
    "k": "singling out",
    "rare_values": "singling out",
    "exact_copies": "singling out",
    "unique_copies": "singling out",
    "linked_k": "linkability",
    "known_events": "linkability",
    "joint_k": "linkability",
    "max_small_changes": "linkability",
    "l": "inference",
    "recursive l": "inference",
    "t": "inference",
    "joint_l": "inference",
    "joint_t": "inference",
    "max_confidence": "inference",
    "membership": "inference",
    "isolated_membership": "inference",
}
