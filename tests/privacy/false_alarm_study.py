"""How often the tests of privacy fail fresh people, and how often copies: `python -m tests.privacy.false_alarm_study`.

Members, a release and other people are drawn from a survey, each as many. The release is fresh people, and fresh people
among whom some rows are a member's with noise, or one of whose columns is the members' in other order.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from duckanon._core.common.resources import use_one_thread
from duckanon._core.encoding.measurement_encoding import CodingOptions, encode_tables
from duckanon._core.privacy.copies import CopyTables, count_noisy_copies
from duckanon._core.privacy.rarity import count_rare_values
from duckanon._measure.coarse.coarse_tables import read_tables
from duckanon._measure.privacy_measures import amounts_of, column_codes, privacy_tests, with_digits_of
from examples.surveys import income_survey
from tests.sqltest import data_file

SURVEYS = {
    "Adult": ("adult.csv", None),
    "NHANES": (
        "nhanes.parquet",
        ["gender", "age_years", "ALB", "ALT", "BUN", "CHOL", "GLU", "TRIG", "HGB", "SBP", "race", "education"],
    ),
    "ACS": ("acs_pums_2024_workers.parquet", ["AGEP", "SEX", "WKHP", "WKWN", "PINCP", "WAGP", "POVPIP", "SCHL"]),
    "incomes": (None, None),
}
Tested = Callable[[pa.Table, pa.Table, pa.Table | None, np.random.Generator], list[str]]
NOISE = {"1 % with noise of .01": (0.01, 0.01), "5 % with noise of .05": (0.05, 0.05)}


def people(survey: str) -> pa.Table:
    """Read a survey, 30,000 people at most; each once of those whom Adult has twice.

    There are 24 of them, the same in fifteen columns, weights of five digits among these: of 3,000 fresh people one is
    also among the members in four of ten draws, and `unique_copies` says so.
    """
    file, columns = SURVEYS[survey]
    if file is None:
        return income_survey(15_000, 3)
    path = data_file(file)
    table = pq.read_table(path, columns=columns) if file.endswith("parquet") else pyarrow.csv.read_csv(path)
    if survey == "Adult":
        table = table.group_by(table.column_names, use_threads=False).aggregate([])
    places = np.random.default_rng(0).permutation(table.num_rows)[:30_000]
    return table.select(columns or table.column_names).take(pa.array(places))


def noisy(members: pa.Table, fresh: pa.Table, share: float, noise: float, random: np.random.Generator) -> pa.Table:
    """Replace a share of the rows by members', whose numbers have noise, in standard deviations of their column."""
    count = round(share * fresh.num_rows)
    places = pa.array(random.permutation(members.num_rows)[:count])
    copies, rest = members.take(places), fresh.slice(count)
    for name in members.column_names:
        if not _is_number(members, name):
            continue
        spread = np.nanstd(members.column(name).cast(pa.float64()).to_numpy())
        place = members.column_names.index(name)
        values = copies.column(name).cast(pa.float64()).to_numpy() + random.normal(0, noise * spread, count)
        copies = copies.set_column(place, name, pa.array(values, from_pandas=True))
        rest = rest.set_column(place, name, rest.column(name).cast(pa.float64()))
    return pa.concat_tables([copies, rest])


def with_column_of(members: pa.Table, fresh: pa.Table, random: np.random.Generator) -> pa.Table:
    """Replace the number of most values by the members' column in other order."""
    numbers = [name for name in members.column_names if _is_number(members, name)]
    name = max(numbers, key=lambda one: len(members.column(one).unique()))
    column = members.column(name).take(pa.array(random.permutation(members.num_rows)))
    return fresh.set_column(fresh.column_names.index(name), name, column)


def _is_number(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def list_failed(
    members: pa.Table, release: pa.Table, outsiders: pa.Table | None, random: np.random.Generator
) -> list[str]:
    """Return the names of the tests that a release fails, with other people as reference and holdout or without."""
    read = read_tables(members, release, None, reference=outsiders, holdout=outsiders)
    tests = privacy_tests(read, CodingOptions(), random, k=5, sample=None, replicates=100)
    return [test.name for test in tests if not test.is_within_limit]


def list_failed_counts(
    members: pa.Table, release: pa.Table, outsiders: pa.Table | None, random: np.random.Generator
) -> list[str]:
    """Return which of the tests of noisy copies and rare values a release fails: a tenth of the time of all tests."""
    rounded = with_digits_of(members, release)
    usual, plain = (
        encode_tables(members, rounded, [outsiders], CodingOptions()),
        amounts_of(members, release, outsiders),
    )
    codings = [CopyTables(usual.original, usual.released, usual.outsiders[0]), CopyTables(*plain[:3])]
    tests = {
        "noisy_copies": count_noisy_copies(codings, random, 0.99, plain),
        "rare_values": count_rare_values(column_codes(members, rounded, outsiders), random, 0.99),
    }
    return [name for name, test in tests.items() if not test.is_within_limit]


def draws(
    table: pa.Table, size: int, first: int, count: int, leaks: bool, tested: Tested = list_failed
) -> Iterator[tuple[str, bool, list[str]]]:
    """Give what was released, whether it was tested with other people, and the tests that it failed."""
    for seed in range(first, first + count):
        random = np.random.default_rng(seed)
        places = np.split(random.permutation(table.num_rows)[: 3 * size], 3)
        members, fresh, outsiders = (table.take(pa.array(part)) for part in places)
        compared = outsiders if seed % 2 else None
        releases = {"fresh": fresh}
        if leaks:
            releases |= {name: noisy(members, fresh, *how, random) for name, how in NOISE.items()}
            releases["a column"] = with_column_of(members, fresh, random)
        for name, release in releases.items():
            yield name, compared is not None, tested(members, release, compared, random)


def main() -> None:
    """Print a line for every survey, size and kind of release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--leaky", type=int, default=40, help="draws with releases that must fail")
    parser.add_argument("--sizes", default="300,1000,3000")
    parser.add_argument("--only", default="", help="surveys whose name contains this")
    parser.add_argument("--first", type=int, default=70_000, help="the first seed")
    parser.add_argument("--hits", action="store_true", help="only the tests of noisy copies and rare values")
    options = parser.parse_args()
    tested = list_failed_counts if options.hits else list_failed
    for survey in SURVEYS:
        if options.only not in survey:
            continue
        table = people(survey)
        for size in map(int, options.sizes.split(",")):
            start, result_rows = time.process_time(), {}
            with use_one_thread():
                for leaks, count in ((True, options.leaky), (False, options.draws - options.leaky)):
                    for name, compared, tests in draws(
                        table, size, options.first + 10_000 * leaks, count, leaks, tested
                    ):
                        result_rows.setdefault((name, compared), []).append(tests)
            for (name, compared), results in sorted(result_rows.items()):
                share = sum(map(bool, results))
                tests = Counter(test for result in results for test in result)
                outsiders = "with others" if compared else "without"
                print(f"{survey} {size} | {name} | {outsiders} | {share} of {len(results)} | {dict(tests)}", flush=True)
            print(f"{survey} {size}: {time.process_time() - start:.0f} processor seconds", flush=True)


if __name__ == "__main__":
    main()
