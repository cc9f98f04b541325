"""A generated hospital: people with visits, diagnoses and lab results of one year, and the hierarchies of their codes.

Eight states of health send people to the same departments, with the same diagnoses and tests, again and again: of
100,000 people with 637,171 rows, 62 % are unique by two of their events.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duckanon._bridge import sql

TABLES = ["visits", "diagnoses", "labs"]
COLS = ["day", "ward", "code", "test", "value"]
HIERARCHIES = {one: f"{one}_hierarchy" for one in ("ward", "code", "test", "value")}
LADDER = [
    {"day": "month", "ward": "0", "code": "0", "test": "0", "value": "0"},
    {"day": "quarter", "value": "1"},
    {"day": "year"},
    {"value": "*"},
    {"ward": "1", "code": "1", "test": "1"},
]
OPTIONS = (
    f"people := 'patients', hierarchies := MAP {HIERARCHIES}, ladder := [{', '.join(f'MAP {step}' for step in LADDER)}]"
)
"""How the tables are released, beside classes, k and the known events."""

_STATES = 8
_WARDS, _CODES, _TESTS = 12, 250, 30


def hospital(people: int, seed: int = 7) -> dict[str, pa.Table]:
    """Return the tables of a hospital: patients in classes by sex and twenty years, their events, and hierarchies."""
    random = np.random.default_rng(seed)
    sex = random.integers(0, 2, people)
    age = np.minimum(99, (100 * random.random(people) ** 1.2).astype(int))
    random.random(2 * people)  # a place and a household, which no table has
    state = _states(random, age)
    often = np.array([1.2, 2.2, 2.2, 3, 3, 4, 5, 6])[state]
    visits = 1 + np.minimum(11, random.poisson(random.gamma(1.2, often / 1.2 * 0.6)))
    whose = np.repeat(np.arange(people), visits)
    usual = random.integers(0, 365, people)[whose]
    comes_back = random.random(len(whose)) < 0.5
    day = np.where(
        comes_back, (usual + random.geometric(1 / 25, len(whose))) % 365, random.integers(0, 365, len(whose))
    )
    ward = _of_state(random, state[whose], _WARDS, 1.3, 100)
    told = np.repeat(np.arange(len(whose)), random.choice(3, len(whose), p=[0.35, 0.45, 0.2]))
    is_usual = random.random(len(told)) < 0.7
    of_state = _of_state(random, state[whose[told]], _CODES, 1.5, 200)
    code = np.where(is_usual, of_state, random.choice(_CODES, len(told), p=_zipf(_CODES, 1.1)))
    tested = np.repeat(np.arange(len(whose)), random.choice(5, len(whose), p=[0.5, 0.2, 0.15, 0.1, 0.05]))
    test = _of_state(random, state[whose[tested]], _TESTS, 1.2, 300)
    value = random.standard_normal(len(tested)) + 0.4 * (state[whose[tested]] > 2)
    tenth = np.clip(np.floor((value + 2.5) * 2), 0, 9).astype(int)
    date = np.datetime64("2025-01-01") + day
    chapters = np.arange(_CODES) * 7919 % _CODES * 20 // _CODES
    return {
        "patients": pa.table({"patient": np.arange(people), "sex": sex, "age": age // 20}),
        "visits": pa.table({"patient": whose, "day": date, "ward": _texts("w", ward)}),
        "diagnoses": pa.table({"patient": whose[told], "day": date[told], "code": _texts("c", code)}),
        "labs": pa.table(
            {
                "patient": whose[tested],
                "day": date[tested],
                "test": _texts("t", test),
                "value": _texts("v", tenth),
            }
        ),
        "ward_hierarchy": _hierarchy("w", np.arange(_WARDS) // 3),
        "code_hierarchy": _hierarchy("c", chapters),
        "test_hierarchy": _hierarchy("t", np.arange(_TESTS) // 5),
        "value_hierarchy": pa.table(
            {"leaf": _texts("v", np.arange(10)), "band": ["low"] * 2 + ["mid"] * 6 + ["high"] * 2}
        ),
    }


def fill(con: sql.Connection, people: int) -> None:
    """Make the tables of a hospital in a database."""
    for name, table in hospital(people).items():
        con.register("generated", table)
        con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM generated").fetchall()
        con.unregister("generated")


def _states(random: np.random.Generator, age: np.ndarray) -> np.ndarray:
    """Draw the state of health of each person: the older, the less often the first, which is good."""
    older = np.clip((age - 40) / 60, 0, 1)[:, None]
    shares = np.array([0.45, 0.15, 0.12, 0.08, 0.07, 0.06, 0.04, 0.03]) * np.where(
        np.arange(_STATES) == 0, 1.3 - older, 0.5 + 1.5 * older
    )
    shares /= shares.sum(axis=1, keepdims=True)
    return (shares.cumsum(axis=1) < random.random(len(age))[:, None]).sum(axis=1).clip(0, _STATES - 1)


def _of_state(random: np.random.Generator, state: np.ndarray, kinds: int, skew: float, seed: int) -> np.ndarray:
    """Draw a kind for each row, of which each state of health has other frequent ones."""
    ranked = np.array([np.random.default_rng(seed + one).permutation(kinds) for one in range(_STATES)])
    return ranked[state, random.choice(kinds, len(state), p=_zipf(kinds, skew))]


def _zipf(kinds: int, skew: float) -> np.ndarray:
    shares = 1 / np.arange(1, kinds + 1) ** skew
    return shares / shares.sum()


def _texts(letter: str, numbers: np.ndarray) -> np.ndarray:
    return np.char.add(letter, numbers.astype(str))


def _hierarchy(letter: str, groups: np.ndarray) -> pa.Table:
    return pa.table({"leaf": _texts(letter, np.arange(len(groups))), "part": _texts(f"{letter}g", groups)})
