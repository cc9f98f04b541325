"""Two surveys that no method was tuned to: households with children, and people in treatment.

Both have skipped questions, computed columns, and contradictions that nobody commits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def household_survey(rows: int, seed: int) -> pa.Table:
    """Make up persons with their households: children without wage, tenants' rent, an equivalence scale, incomes."""
    random = np.random.default_rng([seed, 1])
    size = 1 + random.binomial(5, 0.32, rows)
    children = np.minimum(random.binomial(3, 0.35, rows), size - 1)
    is_child = random.random(rows) < children / size
    age = np.where(is_child, random.integers(0, 16, rows), np.clip(np.round(random.gamma(9, 5.5, rows)), 16, 99))
    region = random.choice(["coast", "capital", "hills", "plain"], rows, p=[0.25, 0.35, 0.1, 0.3])
    status = np.where(age >= 66, "retired", random.choice(["employed", "self-employed", "home", "student"], rows))
    status = np.where((status == "student") & (age > 35), "employed", status)
    status = np.where(is_child, None, status)
    marital = np.where(age < 40, random.choice(["single", "married"], rows, p=[0.6, 0.4]), "married")
    marital = np.where((age > 70) & (random.random(rows) < 0.4), "widowed", marital)
    marital = np.where(age < 18, None, marital)
    earns = np.isin(status.astype(str), ["employed", "self-employed"])
    wage = np.round(np.exp(random.normal(10.1 + 0.2 * (region == "capital"), 0.6, rows)), -1)
    wage = np.where(earns, wage, 0.0)
    pension = np.where(status == "retired", np.round(np.exp(random.normal(9.6, 0.4, rows)), -1), 0.0)
    allowance = 2280.0 * children
    total = wage + pension + allowance
    scale = np.round(1 + 0.5 * (size - children - 1) + 0.3 * children, 1)
    tenant = random.random(rows) < np.where(region == "capital", 0.6, 0.3)
    rent = np.where(tenant, np.round(np.exp(random.normal(6.2, 0.35, rows)) + 60 * size), np.nan)
    return pa.table(
        {
            "region": region,
            "size": size,
            "children": children,
            "age": age.astype(np.int64),
            "sex": random.choice(["f", "m"], rows),
            "status": pa.array(status.tolist(), pa.string()),
            "marital": pa.array(marital.tolist(), pa.string()),
            "wage": pa.array(wage, mask=is_child),
            "pension": pa.array(pension, mask=is_child),
            "allowance": allowance,
            "income": pa.array(total, mask=is_child),
            "scale": scale,
            "equivalent": pa.array(np.round(total / scale, 2), mask=is_child),
            "tenure": np.where(tenant, "rents", "owns"),
            "rent": pa.array(rent, from_pandas=True),
        }
    )


def treatment_survey(rows: int, seed: int) -> pa.Table:
    """Make up patients: dates in order, a body mass index, a dose by weight, questions that only some are asked."""
    random = np.random.default_rng([seed, 2])
    sex = random.choice(["f", "m"], rows, p=[0.55, 0.45])
    age = np.clip(np.round(random.gamma(14, 4, rows)), 18, 96).astype(np.int64)
    height = np.round(random.normal(np.where(sex == "m", 178, 165), 7), 0)
    bmi = np.exp(random.normal(3.26 + 0.002 * (age - 50), 0.17, rows))
    weight = np.round(bmi * (height / 100) ** 2, 1)
    cigarettes = np.where(random.random(rows) < 0.22, 1 + random.poisson(11, rows), 0)
    smoker = np.where(cigarettes > 0, "yes", np.where(random.random(rows) < 0.4, "former", "never"))
    cigarettes = np.where(cigarettes > 0, cigarettes, -8)
    births = np.where(sex == "f", random.poisson(np.clip((age - 18) / 20, 0, 2)), -1).astype(np.int64)
    stage = 1 + random.binomial(3, np.clip(0.15 + 0.004 * (age - 40) + 0.1 * (smoker == "yes"), 0.05, 0.6), rows)
    first = np.datetime64("2015-01-01") + random.integers(0, 2500, rows)
    treated = first + random.geometric(0.02, rows)
    ended = treated + np.round(random.gamma(2, 40 * stage)).astype(np.int64)
    went_home = random.random(rows) < 0.8
    drug = np.where(stage >= 3, "strong", random.choice(["mild", "none"], rows, p=[0.7, 0.3]))
    dose = np.where(drug == "none", 0.0, np.round(weight * np.where(drug == "strong", 1.5, 0.5), 1))
    pressure = np.round(random.normal(112 + 0.35 * age + 0.4 * (bmi - 26), 13))
    return pa.table(
        {
            "sex": sex,
            "age": age,
            "height": height,
            "weight": weight,
            "bmi": np.round(weight / (height / 100) ** 2, 1),
            "smoker": smoker,
            "cigarettes": cigarettes.astype(np.int64),
            "births": births,
            "stage": stage,
            "drug": drug,
            "dose": dose,
            "pressure": pressure,
            "diagnosed": pa.array(first.astype("datetime64[D]")),
            "treated": pa.array(treated.astype("datetime64[D]")),
            "ended": pa.array(ended.astype("datetime64[D]"), mask=~went_home),
        }
    )
