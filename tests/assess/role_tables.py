"""Generated tables about people with the true roles of their columns, to judge anon.assess by.

A column's truth is a text of letters: the first is its role, the others are accepted as well. P person key, H household
key, I identifier, Q quasi-identifier, O possible quasi-identifier, S sensitive, W weight, D follows from others, C
constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

Columns = dict[str, Any]
Truth = dict[str, str]


def words(text: str) -> list[str]:
    return text.split()


ICD = ["I10", "E11.9", "J44.1", "C50.9", "F32.1", "B20", "K35.8", "S72.0", "M54.5", "N39.0", "F10.2"]
FIRST = words("Anna Marie Louis Paul Emma Hugo Nina Carlos Lucia Jorge Eva Karl Jan Lena Otto Tom Petra Piotr Giulia")
SYLLABLES = words("ber ma ko lan der sen mar tin do val ro chi fer que len tau gri mo")
WORDS = words("the patient reports pain in his back since three weeks without relief after therapy control advised")
EPOCH = np.datetime64("1935-01-01")


def _surnames(random: np.random.Generator, count: int) -> np.ndarray:
    parts = random.choice(SYLLABLES, (count, 3))
    return np.array(["".join(row).capitalize() for row in parts])


def _notes(random: np.random.Generator, count: int) -> list[str]:
    return [" ".join(random.choice(WORDS, random.integers(5, 14))) for _ in range(count)]


def clinic(random: np.random.Generator, language: dict[str, Any]) -> tuple[Columns, Truth]:
    """Visits of patients, with names and words of a language."""
    people = 900
    who = np.repeat(np.arange(people), random.integers(1, 6, people))
    rows = len(who)
    came = np.datetime64("2023-01-01") + random.integers(0, 700, rows)
    stay = random.geometric(0.2, rows)
    names = language["names"]
    columns = {
        names[0]: random.permutation(np.arange(400_000, 400_000 + 37 * people, 37))[who],
        names[1]: _surnames(random, people)[who],
        names[2]: (EPOCH + random.integers(0, 29_000, people))[who],
        names[3]: np.array(language["sex"])[random.integers(0, 2, people)][who],
        names[4]: np.array([f"{zip_code:05d}" for zip_code in random.integers(1000, 99_999, 120)])[
            random.integers(0, 120, people)
        ][who],
        names[5]: np.array(language["marital"])[random.integers(0, 4, people)][who],
        names[6]: np.array(["DE", "TR", "PL", "IT", "SY"])[random.integers(0, 5, people)][who],
        names[7]: came,
        names[8]: stay,
        names[9]: random.choice(ICD, rows),
        names[10]: np.round(np.exp(random.normal(8, 1, rows)), 2),
        names[11]: _notes(random, rows),
        names[12]: 2_300_000 + np.arange(rows),
    }
    shuffled = random.permutation(rows)
    truth = dict(zip(names, words("P I Q Q Q QO QO QO O S SO I I"), strict=True))
    return {name: np.asarray(values)[shuffled] for name, values in columns.items()}, truth


LANGUAGES: dict[str, dict[str, Any]] = {
    "German": {
        "names": words("PatNr Nachname GebDat Geschl PLZ FamStand Staat Aufnahme Dauer Diagnose Kosten Befund FallNr"),
        "sex": ["m", "w"],
        "marital": ["led", "verh", "gesch", "verw"],
    },
    "French": {
        "names": words(
            "id_pat nom naissance sexe code_postal situation nationalite entree jours diagnostic cout note sejour"
        ),
        "sex": ["homme", "femme"],
        "marital": ["célibataire", "marié", "divorcé", "veuf"],
    },
    "Polish": {
        "names": words("pacjent nazwisko data_urodzenia płeć kod stan kraj przyjęcie dni choroba koszt uwagi pobyt"),
        "sex": ["kobieta", "mężczyzna"],
        "marital": ["zamężna", "rozwiedziony", "wdowa", "kawaler"],
    },
    "none": {
        "names": [f"c{place}" for place in range(13)],
        "sex": ["Hombre", "Mujer"],
        "marital": ["soltero", "casado", "viudo", "divorciado"],
    },
}


def survey(random: np.random.Generator, names: Callable[[str], str]) -> tuple[Columns, Truth]:
    """Members of households with a weight by region and size, in files of statistical offices."""
    households = 900
    size = random.integers(1, 6, households)
    home = np.repeat(np.arange(households), size)
    rows = len(home)
    line = np.concatenate([np.arange(1, 1 + count) for count in size])
    head = random.integers(25, 80, households)[home]
    age = np.clip(np.where(line <= 2, head + random.integers(-6, 7, rows), head - random.integers(22, 40, rows)), 0, 95)
    region = random.integers(1, 10, households)
    income = np.where(random.random(rows) < 0.4, 0, np.round(np.exp(random.normal(9.8, 0.8, rows)), 2))
    columns = {
        "household": random.choice(np.arange(10**5, 10**6), households, replace=False)[home],
        "line": line,
        "sex": random.integers(1, 3, rows),
        "age": age,
        "region": region[home],
        "weight": np.round(np.exp(random.normal(6, 0.9, 300)), 3)[random.integers(0, 300, households)][home],
        "income": income,
        "household_income": np.round(np.bincount(home, income)[home], 2),
        "year_of_birth": 2020 - age,
        "longitude": np.round(random.normal(8, 1.2, households), 5)[home],
        "age_squared": age**2,
        "country": np.full(rows, "AT"),
        "health": random.integers(1, 6, rows),
        "serial": random.permutation(rows) + 7,
    }
    truth = dict(zip(columns, words("HI OQ QO Q QO W S SD QDO QO QDO C OSQ PI"), strict=True))
    return {names(name): values for name, values in columns.items()}, {
        names(name): role for name, role in truth.items()
    }


def panel(random: np.random.Generator, names: Callable[[str], str]) -> tuple[Columns, Truth]:
    """Four waves of people with a key of letters, shuffled; ages grow, and a term of 1 and 2 is no sex."""
    people = 600
    who = np.repeat(np.arange(people), 4)
    wave = np.tile(np.arange(1, 5), people)
    columns = {
        "subject": np.array([f"{code:016x}" for code in random.integers(0, 2**62, people)])[who],
        "wave": wave,
        "term": 1 + (wave - 1) % 2,
        "age": random.integers(18, 85, people)[who] + wave // 2,
        "sex": random.integers(1, 3, people)[who],
        "pay": np.round(np.exp(random.normal(10, 0.7, 4 * people)), 2),
        "copy": (random.permutation(people) + 1.0)[who],
        "rating": random.integers(1, 6, 4 * people),
    }
    order = random.permutation(4 * people)
    truth = dict(zip(columns, words("PI OQ OQ Q QO S PI OS"), strict=True))
    columns = {names(name): values[order] for name, values in columns.items()}
    return columns, {names(name): role for name, role in truth.items()}


def payroll(random: np.random.Generator, names: Callable[[str], str]) -> tuple[Columns, Truth]:
    """Twelve months of employees, in order."""
    people = 300
    who = np.repeat(np.arange(people), 12)
    rows = len(who)
    grade = random.integers(5, 15, people)
    gross = np.round(1800 + 350 * grade + random.normal(0, 120, people), 2)
    columns = {
        "pnr": 20_001 + who,
        "employee_name": np.array(
            [f"{a}, {b}" for a, b in zip(_surnames(random, people), random.choice(FIRST, people), strict=True)]
        )[who],
        "iban": np.array([f"DE{code:020d}" for code in random.integers(10**17, 9 * 10**17, people)])[who],
        "gender": random.choice(["female", "male"], people)[who],
        "born": (EPOCH + random.integers(0, 25_000, people))[who],
        "department": random.choice(["IT", "HR", "Sales", "Plant", "Legal"], people)[who],
        "period": np.tile([f"2024-{month:02d}" for month in range(1, 13)], people),
        "gross": gross[who],
        "bonus": np.where(random.random(rows) < 0.08, random.integers(1, 20, rows) * 250, 0),
        "sick_days": random.poisson(0.9, rows),
    }
    truth = dict(zip(columns, words("P I I Q Q QO O S SO SO"), strict=True))
    return {names(name): values for name, values in columns.items()}, {
        names(name): role for name, role in truth.items()
    }


def hidden(name: str) -> str:
    """Return a name that says nothing, always the same for the same."""
    return f"v{sum((place + 1) * ord(letter) for place, letter in enumerate(name)) % 9973}"


def tables(seed: int) -> dict[str, tuple[pa.Table, Truth]]:
    """Generate all tables, with their names and without."""
    random = np.random.default_rng(seed)
    made = {f"clinic, {name}": clinic(random, language) for name, language in LANGUAGES.items()}
    for make in (survey, panel, payroll):
        made[make.__name__] = make(random, str)
        made[f"{make.__name__}, hidden names"] = make(random, hidden)
    return {name: (pa.table(columns), truth) for name, (columns, truth) in made.items()}
