"""How new records compare with other people: `python -m tests.release.synthesis_quality --rows 3000 --seeds 1`.

Members of a survey are released, and the release is compared with members and with as many people who are none.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from duckanon import spectral
from duckanon._core.common.threads import one_thread
from examples.surveys import _sample, find_data, income_survey, social_survey

MEASURES = ["KS, median", "KS, largest", "Cramer's V", "AUC", "few", "copies", "seconds"]
"""Median and largest distance of distributions, mean difference of Cramer's V, AUC against other people, share of
number cells of one or two people, rows that copy a member beyond those of other people, processor seconds."""
_BINS = 8  # of numbers in Cramer's V
_FEW_VALUES = 12

CODES = ["SEX", "RAC1P", "HISP", "MAR", "SCHL", "OCCP", "INDP", "COW", "CIT", "NATIVITY"]
NHANES = """gender, race, marital, education, smoked100, age_years, WEIGHT, HEIGHT, BMI, SBP, ALB, ALT, AST, ALP, BUN,
            CA, CHOL, HCO3, GLU, PHOS, TBIL, TP, CREA"""


def surveys(rows: int, seed: int) -> Iterator[tuple[str, pa.Table, pa.Table, list[str] | None]]:
    """Give the name, the members, as many other people, and the numbers that are categories, of each survey."""
    made = [
        ("incomes", income_survey(2 * rows, seed), None),
        ("social", social_survey(2 * rows, seed), None),
    ]
    for name, file, columns, codes in (
        ("Adult", "adult.csv", "*", None),
        ("NHANES", "nhanes.parquet", NHANES, None),
        ("ACS", "acs_pums_2024_workers.parquet", "* EXCLUDE (PWGTP, ESR, PUMA)", CODES),
    ):
        if (path := find_data(file)) is not None:
            made.append((name, _sample(path, columns, 2 * rows, seed), codes))
    for name, table, codes in made:
        order = np.random.default_rng(seed).permutation(table.num_rows)
        half = min(rows, len(order) // 2)
        yield name, table.take(pa.array(order[:half])), table.take(pa.array(order[half : 2 * half])), codes


def plain(table: pa.Table, like: pa.Table) -> list[np.ndarray]:
    """Take columns as numbers, NaN for NULL; texts as the codes that another table gives them, -1 for others."""
    found = []
    for name in like.column_names:
        column = table.column(name)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.array([np.nan if one is None else float(one) for one in column.to_pylist()])
            found.append(np.round(values, 6))
        else:
            codes = {value: code for code, value in enumerate(sorted(set(like.column(name).to_pylist()), key=str))}
            found.append(np.array([codes.get(value, -1) for value in column.to_pylist()], float))
    return found


def is_number(table: pa.Table, name: str, codes: list[str] | None) -> bool:
    type_ = table.schema.field(name).type
    return (pa.types.is_integer(type_) or pa.types.is_floating(type_)) and name not in (codes or [])


def sequential_cart(members: pa.Table, codes: list[str] | None, seed: int, leaf: int = 5) -> pa.Table:
    """Draw each column from the leaves of a tree on the columns before, as synthpop does: people's own values."""
    random = np.random.default_rng(seed)
    rows = members.num_rows
    columns = plain(members, members)
    taken = [random.integers(0, rows, rows)]
    for place, name in enumerate(members.column_names[1:], 1):
        features = np.column_stack([np.nan_to_num(one, nan=-9.0) for one in columns[:place]])
        new = np.column_stack(
            [np.nan_to_num(one, nan=-9.0)[rows_of] for one, rows_of in zip(columns[:place], taken, strict=True)]
        )
        target = np.nan_to_num(columns[place], nan=-9.0)
        is_wide = len(np.unique(target)) > 50 or is_number(members, name, codes)
        tree = (DecisionTreeRegressor if is_wide else DecisionTreeClassifier)(min_samples_leaf=leaf, random_state=seed)
        tree.fit(features, target)
        leaves, wanted = tree.apply(features), tree.apply(new)
        order = np.argsort(leaves, kind="stable")
        starts = np.searchsorted(leaves[order], wanted, "left")
        sizes = np.searchsorted(leaves[order], wanted, "right") - starts
        taken.append(order[starts + (random.random(rows) * sizes).astype(int)])
    names = members.column_names
    return pa.table({name: members.column(name).take(pa.array(one)) for name, one in zip(names, taken, strict=True)})


def spectral_options(codes: list[str] | None) -> dict[str, Any]:
    return {"nulls": "category", **({"categories": codes} if codes else {})}


METHODS: dict[str, Callable[[pa.Table, list[str] | None, int], pa.Table]] = {
    "synthesize": lambda table, codes, seed: spectral.synthesize(
        table, seed=seed, **spectral_options(codes)
    ).read_all(),
    "spectral_release": lambda table, codes, seed: spectral.spectral_release(
        table, seed=seed, **spectral_options(codes)
    ).read_all(),
    "sequential CART": sequential_cart,
}


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
    with one_thread():
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
    copies = max(0, copied - usual)
    auc = float(roc_auc_score(label, told))
    return [float(np.median(distances)), max(distances), float(difference), auc, float(np.mean(cells)), float(copies)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="surveys whose name contains this")
    parser.add_argument("--method", default="", help="methods whose name contains this")
    given = parser.parse_args()
    print("| " + " | ".join(["survey", "release", *MEASURES]) + " |")
    print("| --- | --- |" + " --- |" * len(MEASURES))
    for name, members, others, codes in surveys(given.rows, 1):
        if given.only not in name:
            continue
        for method, release in METHODS.items():
            if given.method not in method:
                continue
            found = []
            for seed in range(1, given.seeds + 1):
                start = time.process_time()
                try:
                    released = release(members, codes, seed)
                except ValueError as refusal:
                    print(f"| {name} | {method} | {refusal} |", flush=True)
                    break
                seconds = time.process_time() - start
                found.append([*measured(members, others, released, codes), seconds])
            if found:
                cells = " | ".join(f"{one:.3f}" for one in np.mean(found, axis=0))
                print(f"| {name} | {method} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
