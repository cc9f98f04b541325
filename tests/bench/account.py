"""`python -m tests.bench.account [study | size]`: what cohorts cost, and what an account of many people takes.

`study` makes twelve monthly releases of 200,000 people in 300 classes, 2 % joining and leaving and 1 % moving a month,
by three ways: cut anew every month, by a fixed plan, and in cohorts. Who moves gets another label of one of three
columns; `study anywhere`: another class, whatever it is. `size` enters 24 releases of a million people into an account,
and prints the processor seconds, the peak memory and the size of the file; `size followed` with pseudonyms.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from duckanon._core.account.cohorts import POOL, CohortRules
from duckanon._core.account.entries import Entry, hash_values
from duckanon._core.account.joint import ABSENT, JointCounts
from duckanon._core.account.releases import Releases
from duckanon._core.account.storage import Account
from duckanon._core.common.arrays import Ints
from tests.account.population import (
    InCohorts,
    Population,
    by_fixed_plan,
    coarser_classes,
    independently,
    only_the_pool,
    release_classes,
)

K, L = 10, 2
SHAPE, CLASSES = (10, 6, 5), 300


def study(how: str = "one column", people: int = 200_000, months: int = 12) -> None:
    """Print what each way of publishing leaves to an attacker, and what it costs an analyst, after each month."""
    for way in ("independent", "fixed plan", "pool, 30", "coarser, 10", "coarser, 30", "coarser, 60", "followed, 30"):
        population = Population(people, CLASSES, months, shape=SHAPE if how == "one column" else None)
        random = np.random.default_rng(1)
        total = len(population.now)
        kind, _, size = way.partition(", ")
        coarser = only_the_pool(CLASSES) if kind == "pool" else coarser_classes(SHAPE)
        rules = CohortRules(K, L, size=int(size or K))
        cohorts = InCohorts(total, population.values, rules, coarser, is_followed=kind == "followed")
        counts = JointCounts.of_nobody(total)
        delays: list[int] = []
        stale, stale_for = np.zeros(total, np.bool_), np.zeros(total, np.int64)
        start = time.process_time()
        for now in population.pass_by():
            if size:
                waited, was_seen = cohorts.waited, cohorts.counts.is_seen
                decided = cohorts.release(now, population.value)
                made, stale = decided.classes, decided.is_stale
                delays += waited[(made != ABSENT) & ~was_seen].tolist() if was_seen.any() else []
                stale_for = np.where(stale, stale_for + 1, 0)
                counts = cohorts.counts
            else:
                made = by_fixed_plan(now, K) if way == "fixed plan" else independently(now, CLASSES, random)
                of_release = release_classes(made, population.value, population.values)
                counts = counts.after(of_release, {"value": population.values})
        here = now != ABSENT
        below = counts.sizes[counts.groups][counts.is_seen] < K
        own = np.unique(counts.groups[counts.is_seen] * population.values + population.value[counts.is_seen])
        values = np.bincount(own // population.values, minlength=len(counts.sizes))[counts.sizes > 0]
        is_coarser = (made > CLASSES) & ~stale
        print(
            f"{way:12} joint_k {counts.k:3}  below k {below.mean():6.1%}  joint_l "
            f"{counts.count_values_left('value'):2}  values of a group {values.min()}  "
            f"waiting {(here & (made == ABSENT)).sum() / here.sum():5.2%}  "
            f"stale {stale.sum() / here.sum():5.2%}  coarser {is_coarser.sum() / here.sum():5.2%}  "
            f"pooled {(made == POOL).sum() / here.sum():5.2%}  "
            f"delay {np.mean(delays or [0]):.2f}  stale for {stale_for[stale].mean() if stale.any() else 0:.1f}  "
            f"error of counts {_error(now, made) if way != 'independent' else float('nan'):.1%}  "
            f"{time.process_time() - start:.1f} s",
            flush=True,
        )


def _error(now: Ints, made: Ints) -> float:
    """Return the mean difference of counts by class, as a share of the true ones."""
    width = int(now.max()) + 1
    true, shown = (np.bincount(one[(one > POOL) & (one < width)], minlength=width)[1:] for one in (now, made))
    return float((np.abs(shown - true) / true).mean())


def size(how: str = "", people: int = 1_000_000, months: int = 24) -> None:
    """Enter releases in cohorts into an account, as a job does, and print what each takes."""
    shape = (15, 10, 10)
    population = Population(people, 1500, months, shape=shape)
    total = len(population.now)
    names = np.array([f"P{number:09}" for number in range(total)])
    rules, is_followed = CohortRules(K, L, size=30), how == "followed"
    cohorts = InCohorts(total, population.values, rules, coarser_classes(shape), is_followed=is_followed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "account.sqlite"
        with Account(path, "a key of sixteen characters", create=True) as account:
            releases = Releases(account)
            for month, now in enumerate(population.pass_by()):
                start = time.process_time()
                cohorts.release(now, population.value)
                decided = time.process_time()
                is_in = np.flatnonzero(cohorts.classes != ABSENT)
                numbers, found = np.unique(cohorts.classes[is_in], return_inverse=True)
                pairs, people_of = np.unique(found * population.values + cohorts.shown_value[is_in], return_counts=True)
                texts = [str(value) for value in pairs % population.values]
                entry = Entry(
                    policy="policy.toml",
                    name="people",
                    sha256=None,
                    naming=b"",
                    people=hash_values(account, "person", names[is_in].tolist(), lambda: None),
                    classes=found,
                    values={"value": (pairs // population.values, hash_values(account, "value", texts, lambda: None))},
                    counts={"value": people_of},
                    sets={"value": cohorts.shown_value[is_in]} if is_followed else {},
                    labels=b"".join(account.hash_value("labels", str(number)) for number in numbers),
                    owners=np.arange(len(is_in)),
                )
                hashing = time.process_time()
                (*_, (_, counts)) = releases.joint([entry])
                left, distance = counts.count_values_left("value"), counts.distance("value")
                told = f"joint_k {counts.k}, joint_l {left}, joint_t {distance:.3f}"
                counted = time.process_time()
                releases.enter([entry], str(month), month)
                entered = time.process_time()
                print(
                    f"release {month + 1:2}: {told}; "
                    f"decided in {decided - start:.1f} s, hashed in {hashing - decided:.1f} s, counted in "
                    f"{counted - hashing:.1f} s, entered in {entered - counted:.1f} s; "
                    f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB, "
                    f"file {path.stat().st_size / 1e6:.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    {"study": study, "size": size}[sys.argv[1] if len(sys.argv) > 1 else "study"](*sys.argv[2:3])
