"""How new records compare with other people: `python -m tests.release.synthesis_quality --rows 3000 --seeds 4`.

Members of a survey are released, and the release is compared with members and with as many people who are none.
``--paired 24`` makes as many releases of 800 people, with and without 20 isolated ones, and attacks them; ``--picture
map.svg`` draws the risk-utility map.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from duckanon import plot
from duckanon._core.common.resources import use_one_thread
from duckanon._measure.utility.classifiers import compare_classifiers
from duckanon._measure.utility.contradictions import contradictions
from examples.surveys import _sample, find_data, income_survey, social_survey
from tests.release.compared_methods import METHODS, is_number, nearest_row, plain
from tests.release.made_surveys import household_survey, treatment_survey

MEASURES = [
    *(
        "KS, median",
        "KS, largest",
        "Cramer's V",
        "AUC",
        "few",
        "copies",
        "broken",
        "TSTR",
        "seconds",
        "nearest",
        "error",
    ),
]
"""Median and largest distance of distributions, mean difference of Cramer's V, AUC against other people, share of
number cells of one or two people, rows that copy a member beyond those of other people and chance, share of the rows
that break the rule which is broken most, what models lose that are trained on the release and tested on other people
(AUC or R squared), processor seconds, win rate of the nearest row in the paired attack and its standard error."""
TARGETS = {
    "Adult": "income",
    "NHANES": "SBP",
    "ACS": "WAGP",
    "CASC": "FEDTAX",
    "households": "wage",
    "treatment": "pressure",
    "incomes": "wage",
    "social": "bmi",
}
_BINS = 8  # of numbers in Cramer's V
_FEW_VALUES = 12

CODES = ["SEX", "RAC1P", "HISP", "MAR", "SCHL", "OCCP", "INDP", "COW", "CIT", "NATIVITY"]
NHANES = """gender, race, marital, education, smoked100, age_years, WEIGHT, HEIGHT, BMI, SBP, ALB, ALT, AST, ALP, BUN,
            CA, CHOL, HCO3, GLU, PHOS, TBIL, TP, CREA"""


def surveys(rows: int, seed: int) -> Iterator[tuple[str, pa.Table, pa.Table, list[str] | None]]:
    """Give the name, the members, as many other people, and the numbers that are categories, of each survey."""
    made = [
        ("households", household_survey(2 * rows, seed), None),
        ("treatment", treatment_survey(2 * rows, seed), None),
        ("incomes", income_survey(2 * rows, seed), None),
        ("social", social_survey(2 * rows, seed), None),
    ]
    for name, file, columns, codes in (
        ("Adult", "adult.csv", "*", None),
        ("NHANES", "nhanes.parquet", NHANES, None),
        ("ACS", "acs_pums_2024_workers.parquet", "* EXCLUDE (PWGTP, ESR, PUMA)", CODES),
        ("CASC", "CASCrefmicrodata.csv", "*", None),
    ):
        if (path := find_data(file)) is not None:
            made.append((name, _sample(path, columns, 2 * rows, seed), codes))
    for name, table, codes in made:
        order = np.random.default_rng(seed).permutation(table.num_rows)
        half = min(rows, len(order) // 2)
        yield name, table.take(pa.array(order[:half])), table.take(pa.array(order[half : 2 * half])), codes


def binned(columns: list[np.ndarray], like: list[np.ndarray]) -> list[np.ndarray]:
    """Cut numbers at quantiles of the original; NULL is a bin of its own."""
    found = []
    for values, before in zip(columns, like, strict=True):
        known = before[~np.isnan(before)]
        distinct = np.unique(known)
        edges = (
            distinct[1:] if len(distinct) <= 3 * _BINS else np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS))
        )
        found.append(np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, "right")))
    return found


def cramers(columns: list[np.ndarray]) -> np.ndarray:
    """Return Cramer's V of all pairs of columns."""
    found = []
    for place, one in enumerate(columns):
        for other in columns[place + 1 :]:
            table = np.zeros((one.max() + 1, other.max() + 1))
            np.add.at(table, (one, other), 1)
            table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
            expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
            least = min(table.shape) - 1
            found.append(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum() / least) if least else 0.0)
    return np.array(found)


def measured(members: pa.Table, others: pa.Table, released: pa.Table, codes: list[str] | None) -> list[float]:
    """Measure what `MEASURES` names, but for the seconds."""
    before, after, apart = (plain(table, members) for table in (members, released, others))
    numbers = [place for place, name in enumerate(members.column_names) if is_number(members, name, codes)]
    wide = [place for place in numbers if len(np.unique(before[place])) > _FEW_VALUES]
    distances = [
        ks_2samp(
            before[place][~np.isnan(before[place])], after[place][~np.isnan(after[place])], method="asymp"
        ).statistic
        for place in wide
    ]
    difference = np.abs(cramers(binned(before, before)) - cramers(binned(after, before))).mean()
    features = np.vstack([np.column_stack(apart), np.column_stack(after)])
    label = np.repeat([0, 1], [len(apart[0]), len(after[0])])
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    with use_one_thread():
        told = cross_val_predict(model, features, label, cv=folds, method="predict_proba")[:, 1]
    cells = []
    for place in numbers:
        holders = Counter(before[place].tolist())
        cells += [0 < holders[value] < 3 for value in after[place].tolist() if value == value]
    known = {tuple(row) for row in np.nan_to_num(np.column_stack(before), nan=-9.0).tolist()}
    copied, usual = (
        sum(tuple(row) in known for row in np.nan_to_num(np.column_stack(one), nan=-9.0).tolist())
        for one in (after, apart)
    )
    copies = max(0.0, copied - usual - 2 * (copied + usual) ** 0.5)  # two standard errors
    auc = float(roc_auc_score(label, told))
    return [float(np.median(distances)), max(distances), float(difference), auc, float(np.mean(cells)), float(copies)]


def broken(members: pa.Table, others: pa.Table, released: pa.Table, codes: list[str] | None) -> float:
    """Return the share of the rows that break a rule beyond that of other people, of the rule where it is largest."""
    of_release, of_others = (
        {
            row["rule"]: row["broken_fraction"] or 0.0
            for row in contradictions(
                members, table, k=10, person=None, order_by=None, special="auto", categories=codes
            ).to_pylist()
        }
        for table in (released, others)
    )
    return max((max(0.0, share - of_others[rule]) for rule, share in of_release.items()), default=0.0)


def lost(members: pa.Table, others: pa.Table, released: pa.Table, target: str) -> float:
    """Return what boosted trees lose that are trained on the release and tested on other people."""
    found = compare_classifiers(members, released, target, random=np.random.default_rng(1), holdout=others).to_pylist()
    return -next(
        row["difference"] for row in found if row["model"] == "boosted_trees" and row["measure"] in ("auc", "r2")
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1, help="of synthesize; the other methods have one")
    parser.add_argument("--paired", type=int, default=0, help="releases of the paired attack, an even number")
    parser.add_argument("--only", default="", help="surveys whose name contains one of these, with commas between")
    parser.add_argument("--method", default="", help="methods whose name contains one of these, with commas between")
    parser.add_argument("--picture", default="", help="the file of the risk-utility map")
    given = parser.parse_args()
    print("| " + " | ".join(["survey", "release", *MEASURES]) + " |")
    print("| --- | --- |" + " --- |" * len(MEASURES))
    points: list[dict[str, Any]] = []
    for name, members, others, codes in surveys(given.rows, 1):
        if not any(part in name for part in given.only.split(",")):
            continue
        for method, release in METHODS.items():
            if not any(part in method for part in given.method.split(",")):
                continue
            try:
                found = [
                    _measured(release, members, others, codes, TARGETS[name], seed)
                    for seed in range(1, (given.seeds if method == "synthesize" else 1) + 1)
                ]
                risk = nearest_row(method, members, codes, given.paired) if given.paired else (np.nan, np.nan)
            except ValueError as refusal:
                print(f"| {name} | {method} | {refusal} |", flush=True)
                continue
            means = [*np.mean(found, axis=0), *risk]
            _print(name, method, means)
            if len(found) > 1:
                _print(name, f"{method}, the largest of {len(found)} seeds", [*np.max(found, axis=0), *risk])
            points += _points(name, method, means)
    if given.picture:
        draw(points, given.picture)


def _print(survey: str, release: str, values: Sequence[float]) -> None:
    print(f"| {survey} | {release} | " + " | ".join(f"{one:.3f}" for one in values) + " |", flush=True)


def _measured(
    release: Callable[[pa.Table, list[str] | None, int], pa.Table],
    members: pa.Table,
    others: pa.Table,
    codes: list[str] | None,
    target: str,
    seed: int,
) -> list[float]:
    """Release the members and measure what `MEASURES` names, but for the paired attack."""
    start = time.process_time()
    released = release(members, codes, seed)
    seconds = time.process_time() - start
    with use_one_thread():
        loss = lost(members, others, released, target)
    return [*measured(members, others, released, codes), broken(members, others, released, codes), loss, seconds]


def _points(survey: str, method: str, means: list[float]) -> list[dict[str, Any]]:
    """Give the rows that `duckanon.plot.risk_utility` draws: how far the paired attack and the AUC are above chance."""
    of = dict(zip(MEASURES, means, strict=True))
    shown = {"survey": survey, "release": method}
    return [
        {
            **shown,
            "kind": "privacy",
            "measure": "win rate of the nearest row, above .5",
            "value": of["nearest"] - 0.5,
            "pass": not of["few"],
        },
        {**shown, "kind": "utility", "measure": "AUC, above .5", "value": of["AUC"] - 0.5, "pass": None},
    ]


def draw(points: list[dict[str, Any]], file: str) -> None:
    """Draw the means over surveys as a risk-utility map; a cross is a release with values of one or two people."""
    rows = []
    for method in dict.fromkeys(row["release"] for row in points):
        for measure in dict.fromkeys(row["measure"] for row in points):
            chosen = [row for row in points if (row["release"], row["measure"]) == (method, measure)]
            value = float(np.mean([row["value"] for row in chosen]))
            passed = all(row["pass"] for row in chosen) if chosen[0]["kind"] == "privacy" else None
            rows.append({**chosen[0], "value": value, "pass": passed})
    figure = plot.risk_utility(pa.Table.from_pylist(rows), *dict.fromkeys(row["measure"] for row in points))
    described = "Methods by how often the nearest row gives an isolated person away, and the AUC against other people."
    Path(file).write_text(plot.svg(figure, "Risk and utility of new records", described, background="white"), "utf-8")


if __name__ == "__main__":
    main()
