"""Tables like those of statistical offices: zeros of many, codes, columns that follow from others, isolated people."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

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
