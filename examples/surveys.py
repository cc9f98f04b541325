"""Which spectral release for which data: two surveys made up like those of statistical offices, and three real ones.

What each release keeps of a table, and what it gives away, as the table of sql/release/README.md shows it::

    python examples/surveys.py --seed 1

NHANES, Adult and the American Community Survey are looked for in $DUCKANON_DATA and in ../shared/data beside the
project, and left out where they are not there.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import ks_2samp, rankdata

import duckanon
from duckanon import spectral

AGE_GROUPS = ((24, "16-24"), (34, "25-34"), (44, "35-44"), (59, "45-59"), (64, "60-64"), (200, "65+"))


def age_groups(ages: np.ndarray) -> np.ndarray:
    """Put ages into groups."""
    ends = np.array([end for end, _ in AGE_GROUPS])
    return np.array([name for _, name in AGE_GROUPS])[np.searchsorted(ends, ages)]


def income_survey(rows: int, seed: int) -> pa.Table:
    """Make a table like EU-SILC's: incomes of which most are zero, their sum, a few very rich people."""
    random = np.random.default_rng(seed)
    age = np.clip(np.round(random.gamma(6, 8, rows)), 16, 97)
    works = random.random(rows) < 0.75 - 0.004 * (age - 40)
    wage = np.where(works, np.round(np.exp(random.normal(9.6 + 0.01 * (age - 40), 0.7, rows)), 2), 0.0)
    self_employed = np.where(random.random(rows) < 0.08, np.round(np.exp(random.normal(9.0, 1.0, rows)), 2), 0.0)
    pension = np.where(age > 60, np.round(np.exp(random.normal(9.4, 0.4, rows)), 2), 0.0)
    rich = random.choice(rows, 4, replace=False)
    wage[rich] = np.round(wage.max() * np.array([3.0, 5.0, 8.0, 13.0]), 2)
    return pa.table(
        {
            "age": age.astype(np.int64),
            "sex": np.where(random.random(rows) < 0.5, "male", "female"),
            "region": random.choice(["east", "west", "north", "south", "isle"], rows, p=[0.4, 0.3, 0.2, 0.098, 0.002]),
            "status": np.where(works, "works", np.where(age > 60, "retired", "other")),
            "household": np.minimum(1 + random.poisson(1.6, rows), 9),
            "citizenship": random.choice([1, 2, 4, 9], rows, p=[0.85, 0.08, 0.05, 0.02]),
            "wage": wage,
            "self_employed": self_employed,
            "pension": pension,
            "income": np.round(wage + self_employed + pension, 2),
        }
    )


def social_survey(rows: int, seed: int) -> pa.Table:
    """Make a table like SD2011: codes for what does not apply, skipped questions, a body mass index, age groups."""
    random = np.random.default_rng(seed)
    age = np.clip(np.round(random.normal(47, 18, rows)), 16, 97)
    sex = np.where(random.random(rows) < 0.45, "MALE", "FEMALE")
    height = np.round(163 + 13 * (sex == "MALE") - 0.06 * (age - 47) + random.normal(0, 6.5, rows))
    weight = np.round(np.exp(np.log(height - 95) + 0.003 * (age - 47) + random.normal(0, 0.15, rows)))
    smokes = random.random(rows) < 0.27 - 0.002 * (age - 47)
    income = np.round(np.exp(random.normal(7.1, 0.6, rows)) / 50) * 50
    married = random.random(rows) < np.clip((age - 18) / 40, 0, 0.8)
    return pa.table(
        {
            "sex": sex,
            "age": age.astype(np.int64),
            "agegr": age_groups(age),
            "edu": random.choice(
                ["PRIMARY", "VOCATIONAL", "SECONDARY", "POST-SECONDARY"], rows, p=[0.2, 0.3, 0.3, 0.2]
            ),
            "marital": np.where(married, "MARRIED", "SINGLE"),
            "ymarr": pa.array(2011 - np.maximum(age - 24, 1).astype(np.int64), mask=~married),
            "mmarr": pa.array(1 + random.integers(0, 12, rows), mask=~married),
            "smoke": np.where(smokes, "YES", "NO"),
            "nociga": np.where(smokes, np.clip(np.round(random.gamma(4, 4, rows)), 1, 60), -8).astype(np.int64),
            "unempdur": np.where(
                random.random(rows) < 0.06, np.clip(np.round(random.gamma(1, 12, rows)), 1, 60), -8
            ).astype(np.int64),
            "income": np.where(random.random(rows) < 0.13, -8.0, income),
            "height": height,
            "weight": weight,
            "bmi": np.round(weight / (height / 100) ** 2, 4),
        }
    )


def columns_of(table: pa.Table) -> dict[str, np.ndarray]:
    """Take the columns of a table as numpy arrays."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


@dataclass(frozen=True)
class Survey:
    """A table, and what is known about it.

    Attributes:
        name, table: What it is called, and its rows.
        special: Values that many hold and that stand apart, by column.
        contradictions: Tells which rows, given by column, contradict themselves.
        categories: Numbers that are categories; None where whole numbers of few values are.
    """

    name: str
    table: pa.Table
    special: dict[str, float] = field(default_factory=dict)
    contradictions: Callable[[dict[str, Any]], Any] | None = None
    categories: list[str] | None = None


THESIS = {"k": 1, "special": "off", "categories": [], "derived": "off"}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "svd_swap, thesis": ("svd_swap", THESIS),
    "pica, thesis": ("pica", {"cluster_size": 300, "basis": "pca", **THESIS}),
    "svd_swap": ("svd_swap", {}),
    "pica": ("pica", {"cluster_size": 300, "basis": "pca"}),
    "spectral_release, clusters of 300": ("spectral_release", {"cluster_size": 300}),
    "spectral_release, one cluster": ("spectral_release", {"cluster_size": 10**9}),
}
MEASURES = [
    "KS, median",
    "KS, largest",
    "largest error of a special share",
    "values of one or two people",
    "contradictions",
    "median difference of correlations",
    "detectability",
    "paired audit",
]


def find_data(name: str) -> Path | None:
    """Find a survey's file; None where it is not there."""
    folders = [os.environ.get("DUCKANON_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    found = (Path(folder) / name for folder in folders if folder)
    return next((path for path in found if path.exists()), None)


def surveys(seed: int) -> Iterator[Survey]:
    """Make or read the surveys, one after the other."""
    zeros = {"wage": 0.0, "self_employed": 0.0, "pension": 0.0}
    yield Survey("incomes", income_survey(1500, seed), zeros, _wrong_incomes)
    yield Survey(
        "social", social_survey(1500, seed), {"nociga": -8.0, "unempdur": -8.0, "income": -8.0}, _wrong_answers
    )
    if (file := find_data("nhanes.parquet")) is not None:
        columns = """gender, race, marital, smoked100, age_years, WEIGHT, HEIGHT, BMI, SBP, ALB, ALT, AST, ALP, BUN, CA,
                     CHOL, HCO3, GLU, PHOS, TBIL, TP, CREA"""
        yield Survey("NHANES", _sample(file, columns, 2000, seed), {}, _wrong_index)
    if (file := find_data("adult.csv")) is not None:
        zeros = {"capital_gain": 0.0, "capital_loss": 0.0}
        yield Survey("Adult", _sample(file, "* EXCLUDE fnlwgt", 3000, seed), zeros, _wrong_education)
    if (file := find_data("acs_pums_2024_workers.parquet")) is not None:
        codes = ["SEX", "RAC1P", "HISP", "MAR", "SCHL", "OCCP", "INDP", "COW", "CIT", "NATIVITY"]
        people = _sample(file, "* EXCLUDE (PWGTP, ESR)", 3000, seed)
        yield Survey("ACS", people, {"WAGP": 0.0}, _wrong_nativity, codes)


def _sample(file: Path, columns: str, rows: int, seed: int) -> pa.Table:
    with duckanon.connect() as con:
        con.execute("SET threads = 1")  # the same sample each time
        query = f"SELECT {columns} FROM '{file}' USING SAMPLE reservoir({rows} ROWS) REPEATABLE ({seed})"
        return con.sql(query).to_arrow_table()


def _wrong_incomes(made: dict[str, Any]) -> Any:
    return np.abs(made["income"] - made["wage"] - made["self_employed"] - made["pension"]) > 0.005


def _wrong_answers(made: dict[str, Any]) -> Any:
    is_single = made["marital"] == "SINGLE"
    return (
        (age_groups(made["age"]) != made["agegr"])
        | ((made["smoke"] == "NO") != (made["nociga"] == -8))
        | (is_single != np.isnan(made["ymarr"].astype(float)))
        | (is_single != np.isnan(made["mmarr"].astype(float)))
        | (np.abs(made["bmi"] - made["weight"] / (made["height"] / 100) ** 2) > 0.05)
    )


def _wrong_index(made: dict[str, Any]) -> Any:
    return np.abs(made["BMI"] - made["WEIGHT"] / (made["HEIGHT"] / 100) ** 2) > 0.1


def _wrong_education(made: dict[str, Any]) -> Any:
    levels = "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors "
    number = {name: place for place, name in enumerate((levels + "Masters Prof-school Doctorate").split(), 1)}
    return np.array([number.get(name, 0) for name in made["education"]]) != made["education_num"]


def _wrong_nativity(made: dict[str, Any]) -> Any:
    return (made["CIT"] >= 4) != (made["NATIVITY"] == 2)


def measured(survey: Survey, method: str, seed: int, releases: int = 20) -> list[float] | None:
    """Release a survey, and measure what `MEASURES` names; None where the release is refused."""
    called, options = METHODS[method]
    options = {"nulls": "category", **({"categories": survey.categories} if survey.categories else {}), **options}
    if called != "spectral_release":
        options["checks"] = "off"  # measured as they are
    try:
        released = getattr(spectral, called)(survey.table, seed=seed, **options).read_all()
    except ValueError:
        return None
    before, after = columns_of(survey.table), columns_of(released)
    numbers = [name for name in before if before[name].dtype.kind in "if" and name not in (survey.categories or [])]
    numbers = [name for name in numbers if len(set(before[name])) > 12]
    distances = [_distance(before[name], after[name]) for name in numbers]
    shares = [
        abs(np.mean(before[name] == value) - np.mean(after[name] == value)) for name, value in survey.special.items()
    ]
    wrong = np.nan if survey.contradictions is None else float(np.mean(survey.contradictions(after)))
    correlations = [np.corrcoef(_comparable(one, before)) for one in (before, after)]
    apart = np.abs(correlations[0] - correlations[1])[np.triu_indices(len(correlations[0]), 1)]
    return [
        float(np.median(distances)),
        max(distances),
        max(shares, default=np.nan),
        _of_few(survey.table, released),
        wrong,
        float(np.nanmedian(apart)),
        *_attacked(survey, released, called, options, seed, releases),
    ]


def _distance(before: Any, after: Any) -> float:
    known = [one[~np.isnan(one.astype(float))] for one in (before, after)]
    return float(ks_2samp(*known).statistic)


def _of_few(original: pa.Table, released: pa.Table) -> float:
    """Return the share of released values shared by one or two people."""
    found = []
    for name in original.column_names:
        before, after = (_without_noise(table.column(name).to_pylist()) for table in (original, released))
        holders = Counter(before)
        found.append(np.mean([0 < holders[value] < 3 for value in after]))
    return float(np.mean(found))


def _without_noise(values: list[Any]) -> list[Any]:
    """Take 23.900000000000002, the rounding of a division, for 23.9: who holds one holds the other."""
    return [round(value, 9) if isinstance(value, float) else value for value in values]


def _comparable(table: dict[str, Any], original: dict[str, Any]) -> Any:
    """Take ranks of numbers, and indicators of categories that at least 2 % have."""
    rows = []
    for name, values in table.items():
        if values.dtype.kind in "if":
            if not np.isnan(original[name].astype(float)).any():
                rows.append(rankdata(values))
        else:
            shares = Counter(original[name].tolist())
            rows += [values == one for one, count in shares.items() if count >= 0.02 * len(original[name])]
    return np.array(rows, np.float64)


def _attacked(
    survey: Survey, released: pa.Table, called: str, options: dict[str, Any], seed: int, releases: int
) -> list[float]:
    """Return how well rows are told from the original's, and how well isolated people from others."""
    with duckanon.connect() as con:
        con.register("original", survey.table)
        con.register("released", released)
        names = survey.table.column_names
        query = "SELECT auc FROM anon.detectability('original', 'released', ?, seed := ?)"
        detected = con.execute(query, [names, seed]).fetchall()[0][0]
        query = """SELECT max(win_rate)
                   FROM anon.membership_audit('original', ?, method := ?, options := ?, releases := ?, seed := ?)
                   WHERE attack = 'nearest_row'"""
        audited = con.execute(query, [names, called, options, releases, seed]).fetchall()[0][0]
    return [float(detected), float(audited)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--releases", type=int, default=20, help="of the paired audit")
    parser.add_argument("--only", default="", help="surveys whose name contains this")
    options = parser.parse_args()
    print("| " + " | ".join(["survey", "release", *MEASURES]) + " |")
    print("| --- | --- |" + " --- |" * len(MEASURES))
    for survey in surveys(options.seed):
        for method in METHODS if options.only in survey.name else ():
            found = measured(survey, method, options.seed, options.releases)
            cells = ["refused"] if found is None else ["" if np.isnan(one) else f"{one:.3f}" for one in found]
            print("| " + " | ".join([survey.name, method, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
