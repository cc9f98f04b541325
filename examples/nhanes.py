"""The experiments of the thesis Spectral Anonymization of Data on NHANES, beside the numbers that it reports.

Sections 4.2 and 5.2: tables 4.1 and 5.1 and what figures 4-3, 4-4 and 5-2 show, with SQL functions only::

    python examples/nhanes.py --samples 5 --seed 1

Every sample is 2,000 people and a reference of 2,000 others; the numbers are means over the samples. The people are the
adults of `nhanes.parquet`, looked for in $DUCKANON_DATA and in ../shared/data beside the project. They resemble the
thesis's table without being it: the survey is that of 1999-2004, and the thirteen laboratory values are a usual panel,
since the thesis names its own in a figure only. Its fifteen binary columns are five columns of categories, of which a
released row has one value each; with ``--binary`` they are fifteen booleans, and a row may have no race or several.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

import duckanon

VALUES = {
    "gender": ["male", "female"],
    "race": ["mexican_american", "other_hispanic", "nh_white", "nh_black", "other"],
    "hiv": ["positive", "negative", "indeterminate", "missing"],
    "drug_use": ["yes", "no", "missing"],
}
CATEGORIES = ["never_married", *VALUES]
BINARIES = ["never_married", *(f"{column}_{value}" for column, values in VALUES.items() for value in values)]
LABS = ["ALB", "ALT", "AST", "ALP", "BUN", "CA", "CHOL", "HCO3", "GLU", "PHOS", "TBIL", "TP", "CREA"]
ROWS = 2000
POINTS = 1296  # how many records the thesis's tests look at: a shift of 5 % is found with a power of .8
K = 5
THESIS = "special := 'off', categories := []"  # columns as they come

STATISTICS = ["mean", "variance", "correlation", "rank_correlation"]
TABLE_4_1 = {
    "svd_swap": [0.014, 0.022, 0.020, 0.024],
    "spectral_rhs": [0.027, 0.380, 0.066, 0.066],
    "data_shuffle": [0.014, 0.018, 0.031, 0.025],
    "additive_noise": [0.015, 0.023, 0.020, 0.020],
    "reference": [0.016, 0.013, 0.017, 0.017],
}
FIGURE_4_4 = {"spectral_rhs": [0.085, 0.52, 0.50, 0.50], "additive_noise": [0.99, 0.90, 0.97, 0.76]}
FIGURE_5_2 = {"pica_100": "p < .02", "pica_200": "p > .15", "pica_300": "p > .7", "svd_swap": "the strongest"}
TABLE_5_1 = {"pica_100": 0, "pica_200": 0, "pica_300": 0, "svd_swap": 11, "reference": 0}
MEASURES = ["distance", "ambiguity", "uncertainty"]
Sample: TypeAlias = dict[str, dict[str, list[Any]]]


def find_data() -> Path | None:
    """Find the survey's file; None where it is not there."""
    folders = [os.environ.get("DUCKANON_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    found = (Path(folder) / "nhanes.parquet" for folder in folders if folder)
    return next((path for path in found if path.exists()), None)


class Experiment:
    """A connection with one sample at a time: the tables `original` and `reference`, and a table per release."""

    def __init__(self, data: Path, binary: bool = False) -> None:
        self.connection = duckanon.connect()
        self.all_columns = [*(BINARIES if binary else CATEGORIES), *LABS]
        self.columns, self.seed = self.all_columns, 0  # lists of names go into SQL as Python writes them
        booleans = (f"{name} = '{value}' AS {name}_{value}" for name, values in VALUES.items() for value in values)
        self.rows(f"""
            CREATE TABLE people AS
            WITH coded AS (
                SELECT * REPLACE (CASE WHEN drug_use IN ('yes', 'no') THEN drug_use ELSE 'missing' END AS drug_use),
                       marital = 'never_married' AS never_married
                FROM '{str(data).replace("'", "''")}')
            SELECT seqn, COLUMNS({[*CATEGORIES, *LABS]}), {", ".join(booleans)} FROM coded""")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and fetch what it returns."""
        return self.connection.execute(sql).fetchall()

    def numbers(self, sql: str) -> list[float]:
        """Run a query that returns one row of numbers."""
        return list(self.rows(sql)[0])

    def draw(self, seed: int, names: Iterable[str] | None = None) -> None:
        """Draw a sample and its reference, and make releases of the sample (by default all)."""
        self.seed = seed
        self.rows(f"CREATE OR REPLACE TABLE drawn AS FROM people ORDER BY hash(hash(seqn, {seed})) LIMIT {2 * ROWS}")
        self.rows(f"CREATE OR REPLACE TABLE parts AS FROM anon.split_reference('drawn', seed := {seed})")
        for name, kept in (("original", "NOT is_reference"), ("reference", "is_reference")):
            self.rows(f"CREATE OR REPLACE TABLE {name} AS FROM parts WHERE {kept}")
        differing = {name: f"SELECT count(DISTINCT {name}) FROM original" for name in self.all_columns}
        self.columns = [name for name, query in differing.items() if self.numbers(query)[0] > 1]
        calls = self.releases()
        for name in calls if names is None else names:
            self.rows(f"CREATE OR REPLACE TABLE {name} AS FROM {calls[name]}")

    def releases(self) -> dict[str, str]:
        """Write the call that makes each release of the table `original`, unchecked: it is measured afterwards."""
        common = f"log := {LABS}, seed := {self.seed}"
        thesis = f"k := 1, derived := 'off', {THESIS}, {common}"  # columns as they come
        keyed = f"key := 'seqn', {common}"  # the key says whose image a row is: for measuring, never to be given away
        columns, with_key = self.columns, ["seqn", *self.columns]
        pica = "anon.pica('original', {}, cluster_size := {}, checks := 'off', {})"
        return {
            "svd_swap": f"anon.svd_swap('original', {columns}, checks := 'off', {thesis})",
            "spectral_rhs": f"anon.spectral_rhs('original', {with_key}, {K}, {keyed})",
            "rhs": f"anon.rhs('original', {with_key}, {K}, checks := 'off', {keyed})",
            "data_shuffle": f"anon.data_shuffle('original', {columns}, seed := {self.seed})",
            "additive_noise": f"anon.additive_noise('original', {with_key}, noise_fraction := 0.1, {keyed})",
            **{f"pica_{size}": pica.format(columns, size, thesis) for size in (100, 200, 300)},
        }

    def statistics(self, released: str) -> list[float]:
        """Table 4.1: the median differences of means, variances, correlations and rank correlations."""
        found = self.rows(f"""
            SELECT DISTINCT statistic, median_difference
            FROM anon.utility('original', '{released}', {self.columns}, log := {LABS})""")
        return [dict(found)[statistic] for statistic in STATISTICS]

    def risk(self, released: str) -> list[float]:
        """Figure 4-3: the medians of distance, ambiguity and uncertainty."""
        return self.numbers(f"""
            SELECT median(distance), median(ambiguity), median(uncertainty)
            FROM anon.prediction_risk('original', '{released}', {self.columns}, k := {K}, log := {LABS},
                                      {THESIS})""")

    def matching(self, released: str) -> list[float]:
        """Figure 4-4: the share of right matches, and how well each measure tells them from wrong ones."""
        return self.numbers(f"""
            SELECT matched, distance_auc, ambiguity_auc, uncertainty_auc
            FROM anon.matching_attack('original', '{released}', {self.columns}, key := 'seqn', k := {K},
                                      log := {LABS}, {THESIS})""")

    def small_groups(self, released: str) -> list[float]:
        """Count the rows that fewer than k records share, and those that stand alone."""
        return self.numbers(f"""
            SELECT coalesce(sum(size) FILTER (size < {K}), 0), count(*) FILTER (size = 1)
            FROM (SELECT count(*) AS size FROM {released} GROUP BY {", ".join(self.columns)})""")

    def privacy(self, released: str) -> dict[str, tuple[float | None, bool]]:
        """Figure 5-2: the one-sided p-value and the verdict of every measure."""
        found = self.rows(f"""
            SELECT measure, p_value, pass
            FROM anon.privacy_test('original', '{released}', {self.columns}, reference := 'reference', k := {K},
                                   sample := {POINTS}, log := {LABS}, seed := {self.seed}, {THESIS})""")
        return {measure: (p_value, passed) for measure, p_value, passed in found}

    def kernel(self, released: str, standardize: bool) -> float:
        """Table 5.1: how many of the top 20 kernel components have p < .05."""
        return self.numbers(f"""
            SELECT count(*) FILTER (p_value < 0.05)
            FROM anon.kernel_utility('original', '{released}', {self.columns}, components := 20, points := {POINTS},
                                     standardize := {standardize}, log := {LABS}, seed := {self.seed},
                                     {THESIS})""")[0]


def run(experiment: Experiment) -> Sample:
    """Measure the sample that was drawn: for each table and figure, and each release, a list of results."""
    return {
        "statistics": {name: experiment.statistics(name) for name in TABLE_4_1},
        "risk": {name: experiment.risk(name) for name in {**TABLE_4_1, **FIGURE_5_2}},
        "matching": {name: experiment.matching(name) for name in FIGURE_4_4},
        "small_groups": {"rhs": experiment.small_groups("rhs")},
        "privacy": {name: [experiment.privacy(name)] for name in FIGURE_5_2},
        "kernel": {name: [experiment.kernel(name, scaled) for scaled in (False, True)] for name in TABLE_5_1},
    }


def average(samples: Sequence[Sample], what: str, name: str) -> list[float]:
    """Average the results of one release over the samples, one by one."""
    return [fmean(values) for values in zip(*(sample[what][name] for sample in samples), strict=True)]


def show(title: str, header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a table as Markdown, its columns aligned."""
    cells = [list(header), *map(list, lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    print(f"\n{title}\n")
    for line in cells:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")


def beside(ours: Iterable[float], thesis: Iterable[float]) -> list[str]:
    """Write our numbers with the thesis's in brackets."""
    return [f"{number:.3f} ({other:g})" for number, other in zip(ours, thesis, strict=True)]


def show_tests(samples: Sequence[Sample]) -> None:
    """Print figure 5-2: the medians of the p-values, and in how many samples all measures pass."""
    lines = []
    for name, thesis in FIGURE_5_2.items():
        found = [sample["privacy"][name][0] for sample in samples]
        p_values = [f"{median(tests[measure][0] for tests in found):.2g}" for measure in MEASURES]
        shifts = sum(all(tests[measure][1] for measure in MEASURES) for tests in found)
        everything = sum(all(passed for _, passed in tests.values()) for tests in found)
        lines.append([name, *p_values, thesis, f"{shifts} of {len(found)}", f"{everything} of {len(found)}"])
    header = ["release", *(f"p, {measure}" for measure in MEASURES), "thesis", "these three pass", "and no copies"]
    show("Figure 5-2: one-sided p-values against the reference (medians), and anon.privacy_test", header, lines)


def show_all(samples: Sequence[Sample]) -> None:
    """Print all tables."""
    show(
        "Table 4.1: median differences from the original, ours (thesis)",
        ["release", *STATISTICS],
        ([name, *beside(average(samples, "statistics", name), thesis)] for name, thesis in TABLE_4_1.items()),
    )
    show(
        "Figures 4-3 and 5-2: medians over the records (thesis: curves only)",
        ["release", *MEASURES],
        ([name, *(f"{number:.3f}" for number in average(samples, "risk", name))] for name in samples[0]["risk"]),
    )
    show(
        "Figure 4-4: records found again, and AUC of telling right matches from wrong ones, ours (thesis)",
        ["release", "matched", *(f"{measure} AUC" for measure in MEASURES)],
        ([name, *beside(average(samples, "matching", name), thesis)] for name, thesis in FIGURE_4_4.items()),
    )
    small, alone = average(samples, "small_groups", "rhs")
    print(f"\nNonspectral RHS: {small:.0f} of {ROWS} rows in groups below {K}, {alone:.0f} of them alone (1998).")
    show_tests(samples)
    counts = {name: average(samples, "kernel", name) for name in TABLE_5_1}
    show(
        "Table 5.1: how many of the top 20 kernel components differ (p < .05), ours (thesis)",
        ["release", "logarithms as they are", "standardised"],
        ([name, f"{plain:.1f} ({TABLE_5_1[name]})", f"{scaled:.1f}"] for name, (plain, scaled) in counts.items()),
    )


def main() -> None:
    """Read the command line, run the samples and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=5, help="how many samples to average over (default: 5)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first sample (default: 1)")
    parser.add_argument("--binary", action="store_true", help="make a boolean column of every category")
    options = parser.parse_args()
    if options.samples < 1:
        parser.error(f"--samples must be at least 1; got {options.samples}.")
    data = find_data()
    if data is None:
        print("nhanes.parquet is not there: name its folder in $DUCKANON_DATA, or put it into ../shared/data.")
        return
    experiment = Experiment(data, options.binary)
    samples = []
    for seed in range(options.seed, options.seed + options.samples):
        experiment.draw(seed)
        samples.append(run(experiment))
        print(f"sample {len(samples)} of {options.samples} done", flush=True)
    show_all(samples)


if __name__ == "__main__":
    main()
