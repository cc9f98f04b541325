"""The recorded ratios as they are read, and a guard: what became three times as slow cannot land unseen."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import duckanon
from tests.bench import __main__ as bench
from tests.bench import bench_assess, harness, recorded

GENEROUS = 3.0
GUARDED = {
    ("bench_assess", "k_anonymity, Adult", 32_561),
    ("bench_assess", "reidentification_risk, Adult", 32_561),
    ("bench_assess", "l_diversity, Adult", 32_561),
    ("bench_assess", "t_closeness of diagnosis, 2 columns, person", 100_000),
    ("bench_assess", "column_profile, 10 columns", 100_000),
    ("bench_bridge", "bridge, 10 mixed columns", 100_000),
    ("bench_bridge", "swap, 10 doubles", 100_000),
    ("bench_generalize", "apply a stored plan, 500 buckets", 100_000),
    ("bench_generalize", "quantile_partition and apply, 500 buckets", 100_000),
    ("bench_measure", "prediction_risk, 2,000 originals, 28 columns", 10_000),
}
RESULT = harness.Result("swap", 1_000, 0.5, "a copy", 0.25, 2.0, 3.0, 200, 100, 2.0)


def test_a_recorded_result_is_read_back_and_what_is_worse_is_named() -> None:
    page = recorded.record(
        [RESULT], "# Bench\n\n" + recorded.table(["| other | 7 | | floor | | | | | | |"]) + "\nend\n"
    )
    assert recorded.recorded_ratios(page) == {("swap", 1_000): 2.0}
    worse = dataclasses.replace(RESULT, ratio=2.7)
    assert recorded.slower([RESULT, worse], recorded.recorded_ratios(page)) == [worse]
    assert not recorded.slower([dataclasses.replace(worse, task="new")], recorded.recorded_ratios(page))
    again = recorded.record([worse], page)
    assert recorded.recorded_ratios(again) == {("swap", 1_000): 2.7}
    assert again.endswith("\nend\n")
    assert again.count("swap") == 1
    moved = recorded.record([RESULT], recorded.table([]) + "\n" + again)
    assert moved.count("swap") == 1
    assert moved.index("swap") < moved.index("other")


def test_a_whole_run_leaves_one_table(tmp_path: Path) -> None:
    earlier = "\n### Measured earlier\n\nAt other times.\n\n" + recorded.table(
        ["| old | 7 | | floor | | 3.0 | | | | |"]
    )
    page = recorded.replace_all([RESULT], "# Bench\n\n" + recorded.table([]) + earlier + "\nend\n")
    assert recorded.recorded_ratios(page) == {("swap", 1_000): 2.0}
    assert "earlier" not in page
    assert page.endswith("\nend\n")
    harness.save([RESULT], tmp_path / "run.json")
    assert harness.saved(tmp_path / "run.json") == [RESULT]
    assert harness.saved(tmp_path / "none.json") == []


@pytest.mark.thorough
@pytest.mark.parametrize("population", [300, 500, 3e8])
def test_the_numbers_by_hand_are_those_of_the_check(population: float) -> None:
    con = duckanon.connect()
    con.execute("CREATE TABLE t AS SELECT (i * i) % 70 AS age, i % 3 AS sex FROM range(300) AS r(i)")
    returned, by_hand = (
        con.execute(query).fetchall()
        for query in (
            f"FROM anon.reidentification_risk('t', ['age', 'sex'], population := {population})",
            bench_assess.risks(["age", "sex"], population),
        )
    )
    for row, other in zip(returned, by_hand, strict=True):
        assert [value is None for value in row] == [value is None for value in other]
        assert [value or 0 for value in row[1:]] == pytest.approx([value or 0 for value in other[1:]], rel=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize(("module", "name", "rows"), sorted(GUARDED))
def test_no_ratio_of_processor_seconds_is_three_times_the_recorded_one(module: str, name: str, rows: int) -> None:
    """Both sides run in this process, so that what else the machine does slows both down."""
    task = next((task for task in bench.tasks_of(module) if task.name == name), None)
    if task is None:
        pytest.skip("the survey is not there")
    state = task.prepare(rows)
    seconds = {side: harness.measure(task, side, state)["processor"] for side in ("ours", "other")}
    assert seconds["ours"] / seconds["other"] < GENEROUS * recorded.recorded_ratios()[name, rows]
