"""Which estimate of risk is near the truth: the American Community Survey as a population, of which samples are drawn.

The population is known here, so that everything that `anon.population_uniques`, `anon.individual_risk`,
`anon.reidentification_risk` and `anon.k_map` estimate from a sample can be counted::

    python examples/acs.py --samples 3 --seed 1

Samples are 1 %, 5 % and 20 % of the 1,366,293 workers of `acs_pums_2024_workers.parquet`, looked for in $DUCKANON_DATA
and in ../shared/data beside the project; an attacker knows state, age, sex, race, marital status and schooling. The
numbers are means over the samples.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import fmean
from typing import Any

import duckanon

FILE = "acs_pums_2024_workers.parquet"
COLUMNS = ["STATE", "AGEP", "SEX", "RAC1P", "MAR", "SCHL"]
INTERACTIONS = [["AGEP", "MAR"], ["AGEP", "SCHL"], ["STATE", "RAC1P"]]
FRACTIONS = [0.01, 0.05, 0.2]
K = 5

UNIQUES = "alone in the sample, and in the population"
MATCHES = "found by a guess among all with their values, of those alone in the sample"
AVERAGE = "average risk of the journalist"
UNDER_K = f"classes taken for {K}-mapped that are not"


def find_data() -> Path | None:
    """Find the survey's file; None where it is not there."""
    folders = [os.environ.get("DUCKANON_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    found = (Path(folder) / FILE for folder in folders if folder)
    return next((path for path in found if path.exists()), None)


class Survey:
    """The population, and one sample of it after the other."""

    def __init__(self, data: Path) -> None:
        self.con = duckanon.connect()
        self.rows(f"CREATE TABLE acs AS FROM '{data}'")
        self.people = int(self.rows("SELECT count(*) FROM acs")[0][0])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.con.execute(query).fetchall()

    def draw(self, fraction: float, seed: int) -> None:
        """Draw a simple random sample."""
        size = round(fraction * self.people)
        self.rows(f"CREATE OR REPLACE TABLE sample AS FROM acs ORDER BY hash(hash(rowid), {seed}) LIMIT {size}")
        keys = ", ".join(COLUMNS)
        self.rows(f"""
            CREATE OR REPLACE TABLE classes AS
            SELECT * FROM (SELECT {keys}, count(*) AS in_sample FROM sample GROUP BY {keys})
                          JOIN (SELECT {keys}, count(*) AS in_population FROM acs GROUP BY {keys}) USING ({keys})""")

    def estimates(self) -> dict[tuple[str, str], float]:
        """Return what is true and what each method says, by the question and the method."""
        ((alone, matches),) = self.rows("""
            SELECT count(*) FILTER (in_population = 1), sum(1 / in_population) FROM classes WHERE in_sample = 1""")
        found = {(UNIQUES, "true"): float(alone), (MATCHES, "true"): float(matches)}
        found |= self.uniques()
        risk = f"anon.individual_risk('sample', {COLUMNS}, population := {self.people})"
        ((expected,),) = self.rows(f"SELECT sum(risk) FROM {risk} WHERE sample_frequency = 1")
        found[MATCHES, "individual_risk, the sum"] = expected
        for name, population in (("true", "'acs'"), ("reidentification_risk", self.people)):
            ((average,),) = self.rows(f"""
                SELECT average_risk FROM anon.reidentification_risk('sample', {COLUMNS}, population := {population})
                WHERE attacker = 'journalist'""")
            found[AVERAGE, name] = average
        for model in ("poisson", "truncated"):
            call = f"anon.k_map('sample', {COLUMNS}, {self.people}, k := {K}, model := '{model}')"
            ((needed,),) = self.rows(f"SELECT needed_class FROM {call}")
            ((wrong,),) = self.rows(f"""
                SELECT coalesce(avg((in_population < {K})::INTEGER), 0) FROM classes WHERE in_sample >= {needed}""")
            found[UNDER_K, f"k_map, {model}"] = wrong
        return found

    def uniques(self) -> dict[tuple[str, str], float]:
        """Return the rows of anon.population_uniques, with and without interactions."""
        found = {}
        call = f"anon.population_uniques('sample', {COLUMNS}, {self.people}"
        for more, options in (
            ("", ""),
            (", interactions", f", interactions := {INTERACTIONS}"),
            (" as in sdcMicro", ", variant := 'sdcmicro'"),
        ):
            for method, people in self.rows(f"SELECT method, in_table FROM {call}{options})"):
                if not more or method.startswith("log_linear"):
                    found[MATCHES if method.endswith("matches") else UNIQUES, method + more] = people
        return found


def main() -> None:
    """Print a table for each question: one line a method, one column a sampling fraction."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=3, help="how many samples of each size (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first sample (default: 1)")
    options = parser.parse_args()
    if options.samples < 1:
        parser.error(f"--samples must be at least 1; got {options.samples}.")
    data = find_data()
    if data is None:
        print(f"{FILE} is not there: name its folder in $DUCKANON_DATA, or put it into ../shared/data.")
        return
    survey = Survey(data)
    samples: dict[float, list[dict[tuple[str, str], float]]] = {}
    for fraction in FRACTIONS:
        for seed in range(options.seed, options.seed + options.samples):
            survey.draw(fraction, seed)
            samples.setdefault(fraction, []).append(survey.estimates())
    for question in (UNIQUES, MATCHES, AVERAGE, UNDER_K):
        print(f"\n| {question} | " + " | ".join(f"{fraction:.0%}" for fraction in FRACTIONS) + " |")
        print("| --- |" + " ---: |" * len(FRACTIONS))
        for method in dict.fromkeys(method for asked, method in samples[FRACTIONS[0]][0] if asked == question):
            means = [fmean(found[question, method] for found in samples[fraction]) for fraction in FRACTIONS]
            shown = [f"{mean:.4f}" if mean < 1 else f"{mean:,.0f}" for mean in means]
            print(f"| {method} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main()
