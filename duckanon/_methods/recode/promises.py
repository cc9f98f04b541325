"""What a recoded table promises: which rows can be in a class at all, and a count of all classes in the end."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, run_starts
from duckanon._core.common.people import people_in
from duckanon._methods.recode.diversity import Diversity


def kept_rows(
    groups: Ints | None,
    people: Ints | None,
    k: int,
    diversity: Diversity | None,
    rows: int,
    max_suppressed_fraction: float,
) -> Bools:
    """Tell which rows are in groups that can be classes; refuse to leave out more of the others than may be.

    Parameters
    ----------
    groups
        The group of each row; None: all rows are one.
    people
        Whose each row is; None: each is another person.
    k, diversity
        What a class must hold.
    rows
        The number of rows.
    max_suppressed_fraction
        The share of the rows that may be left out.
    """
    group_of = np.zeros(rows, np.int64) if groups is None else groups
    count = int(group_of.max()) + 1
    is_kept = np.ones(rows, np.bool_)
    while is_kept.any():
        own_people = None if people is None else people[is_kept]
        enough = people_in(group_of[is_kept], own_people, count) >= k
        if (
            diversity is not None and diversity.rule.is_asked
        ):  # what is left out changes the shares that t compares with
            some = diversity.of_rows(is_kept, own_people)
            enough &= some.holds(some.histograms(group_of[is_kept], own_people, count))
        left = is_kept & enough[group_of]
        if left.sum() == is_kept.sum():
            break
        is_kept = left
    lost = rows - int(is_kept.sum())
    if groups is None and lost:
        raise ValueError("l must be such that all rows together are diverse enough; they are not, so no class can be.")
    if lost > max_suppressed_fraction * rows + 1e-6 or lost == rows:
        raise ValueError(
            f"{lost} of {rows} rows are in groups of by that cannot be classes, of fewer than {k} people or with too "
            "few sensitive values; name fewer columns in by, or allow a larger max_suppressed_fraction."
        )
    return is_kept


def promise(classes: Ints, groups: Ints | None, people: Ints | None, k: int, diversity: Diversity | None) -> None:
    """Count what is promised on the rows that are released."""
    count = int(classes.max()) + 1
    present = np.bincount(classes, minlength=count) > 0
    if (people_in(classes, people, count)[present] < k).any():
        raise AssertionError(f"a class has fewer than {k} people.")
    if diversity is not None and diversity.rule.is_asked:
        histograms = diversity.histograms(classes, people, count)[present]
        if not diversity.holds(histograms).all():
            raise AssertionError("a class is not diverse enough, or too far from the table.")
    if groups is not None:
        order = np.argsort(classes, kind="stable")
        starts = run_starts(classes[order])
        if (np.minimum.reduceat(groups[order], starts) != np.maximum.reduceat(groups[order], starts)).any():
            raise AssertionError("a class has rows of two groups.")
