"""Faults that the chain finds and that are not mended yet.

The list is strict: a fault that is not in it fails the tests, and so does one in it that is no longer found. It is to
become empty, and to stay so.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """A fault: the step that says something wrong, a pattern of what it says, and a table and method that show it."""

    step: str
    pattern: str
    words: str
    table: str
    method: str


_WORDS = "check accepts a policy that the release refuses, by what a sample of the rows could have told"

KNOWN: list[Known] = [
    Known("check", "NULLs, which no interval", _WORDS, "nulls", "boxes"),
    Known("check", "person must say whose row it is", _WORDS, "nulls", "release_linked"),
    Known("check", "person must have a value in some row", _WORDS, "nobody", "protect_table"),
    Known("check", "(keep_out|leaf) must be at most", _WORDS, "few_people", "synthesize"),
    Known("check", "holds NaN or infinity", _WORDS, "nan_and_infinities", "recode"),
    Known("check", "holds numbers beyond", _WORDS, "ends_of_double", "pica"),
    Known("check", "of more than 1[58] digits", _WORDS, "decimals", "recode"),
    Known("check", "values too far away", _WORDS, "decimals", "boxes"),
    Known("check", r"whole numbers from 2\^53", _WORDS, "huge", "recode"),
    Known("check", "dates before the year 1", _WORDS, "ends_of_dates", "recode"),
    Known("check", "has no value shared by", _WORDS, "two_rows", "svd_swap"),
    Known("check", "rows are needed for", _WORDS, "two_rows", "spectral_release"),
    Known("check", "a name that is needed for", _WORDS, "names_of_results", "boxes"),
    Known(
        "check",
        "keep must not name a column of cols",
        "names that differ in the case of letters that DuckDB does not fold are taken for one",
        "names_in_two_cases",
        "boxes",
    ),
    Known(
        "verify",
        "the file has (value|people), which the record calls dropped",
        "a dropped column that is called as one of an aggregate table's own is taken for it",
        "names_of_parameters",
        "protect_table",
    ),
]
