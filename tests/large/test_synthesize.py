"""`duckanon.large.synthesize`: new records drawn in parts, of values that many people of the whole table share."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import large, spectral
from duckanon._core.common import progress
from duckanon._core.encoding.column_split import SplitOptions, read_special
from duckanon._core.encoding.whole_sources import ColumnCounts, split_counts
from duckanon._methods.synthesize import table_parts
from duckanon._methods.synthesize.sequences import DrawOptions
from duckanon._methods.synthesize.table_parts import SequenceSynthesis, fewest_people
from duckanon.large import synthesize_release, workspace
from duckanon.large.workspace import Budget, interrupt_all

ROWS = 4_000
COLS = ["age", "pay", "share", "job", "smokes", "hours", "both"]
K = 10


@pytest.fixture(autouse=True)
def parts_of_a_thousand_rows(monkeypatch: pytest.MonkeyPatch, small_parts: None) -> None:
    monkeypatch.setattr(workspace, "budget", lambda memory: Budget(300 * 10**6, 1_000_000))
    monkeypatch.setattr(synthesize_release, "BYTES_OF_CELL", 110)
    monkeypatch.setattr("duckanon.large.synthesize_release.BYTES_OF_SMALL", 10)


@pytest.fixture(scope="module")
def patients() -> pa.Table:
    """Pay bends with age, a sum, a code, a job of twelve, jobs of one, a fortune; a third has two rows."""
    draw = np.random.default_rng(8)
    age = draw.integers(18, 90, ROWS)
    pay = np.rint(np.exp(7 + 0.08 * (age - 18) - 0.0009 * (age - 18) ** 2 + 0.4 * draw.normal(size=ROWS)))
    pay[0] = 9_876_543
    hours = np.where(draw.random(ROWS) < 0.2, -8, np.clip(np.rint(38 + 8 * draw.normal(size=ROWS)), 1, 80))
    job = draw.choice(list("abcd"), ROWS).astype(object)
    job[5:17] = "midwife"
    job[20:22] = ["king", "astronaut"]
    return pa.table(
        {
            "age": age,
            "pay": pay.astype(np.int64),
            "share": draw.beta(2, 5, ROWS),
            "job": job.astype(str),
            "smokes": draw.random(ROWS) < 0.2 + 0.4 * (age > 50),
            "hours": hours.astype(np.int32),
            "both": pay.astype(np.int64) + hours.astype(np.int64),
            "person": np.where(np.arange(ROWS) < 2 * ROWS // 3, np.arange(ROWS) // 2, np.arange(ROWS)),
        }
    )


def released(
    source: pa.Table, tmp_path: Path, cols: list[str] = COLS, **options: Any
) -> tuple[large.Released, pa.Table]:
    target = tmp_path / "release.parquet"
    done = large.synthesize(source, target, cols, **options, replace=True)
    return done, pq.read_table(target)


def holders(source: pa.Table, name: str, person: bool) -> Counter[Any]:
    """Count the people of each value, by brute force; unrounded numbers at three decimals."""
    values = source.column(name).to_pylist()
    shown = [round(value, 3) for value in values] if name == "share" else values
    whose = source.column("person").to_pylist() if person else range(len(values))
    return Counter(value for value, _ in set(zip(shown, whose, strict=True)))


@pytest.mark.thorough
@pytest.mark.parametrize("person", [None, "person"])
def test_nothing_of_a_few_people_of_the_whole_table_is_released(
    person: str | None, patients: pa.Table, tmp_path: Path, spill: Path
) -> None:
    done, table = released(patients, tmp_path, temporary=spill, person=person)
    assert done.parts > 3
    if person:
        assert table.column_names == [person, *COLS]
        before, after = (
            Counter(Counter(one.column(person).to_pylist()).values()) for one in (patients, table)
        )  # people by their number of rows
        assert after.keys() == {1, 2}
        assert abs(after[2] - before[2]) < 0.03 * ROWS
        assert abs(table.num_rows - ROWS) < 0.03 * ROWS
        table = table.drop_columns([person])
    else:
        assert done.rows == table.num_rows == ROWS
    assert table.schema.remove_metadata() == patients.select(COLS).schema
    assert not list(spill.iterdir())
    for name in COLS:
        held = holders(patients, name, person is not None)
        least = K if name in ("job", "smokes") else 3
        values = table.column(name).to_pylist()
        if name == "share":  # released at digits that tell people apart, none of them a person's own
            assert not set(values) & set(patients.column(name).to_pylist())
            continue
        assert not [value for value in values if 0 < held[value] < least], name
    # a job of twelve of the table has about three people in a part, and stays
    jobs = Counter(table.column("job").to_pylist())
    assert {"a", "b", "c", "d"} <= set(jobs) <= {"a", "b", "c", "d", "midwife", "other"}
    if person is None:
        assert 1 <= jobs["midwife"] < 40
        assert done.smallest_class == 12
    assert table.column("pay").to_numpy().max() < 200_000
    is_sum = table.column("pay").to_numpy() + table.column("hours").to_numpy() == table.column("both").to_numpy()
    assert is_sum.mean() > (0.97 if person is None else 0.8)  # found in each part, of three hundred rows here


@pytest.mark.thorough
def test_distributions_are_those_of_the_release_in_memory(patients: pa.Table, tmp_path: Path) -> None:
    _, by_parts = released(patients, tmp_path)
    in_memory = spectral.synthesize(patients, COLS, seed=1).read_all()
    for name in ("age", "pay", "hours", "share"):
        original, ours, theirs = (
            np.sort(table.column(name).to_numpy().astype(float)) for table in (patients, by_parts, in_memory)
        )
        at = np.quantile(original, np.linspace(0.02, 0.98, 49))
        below = [np.searchsorted(values, at, "right") / len(values) for values in (original, ours, theirs)]
        assert np.abs(below[1] - below[0]).max() < np.abs(below[2] - below[0]).max() + 0.01
    for name in ("job", "smokes"):
        before, after = (Counter(table.column(name).to_pylist()) for table in (patients, by_parts))
        assert all(abs(before[value] - after[value]) < 0.01 * ROWS for value in after if value != "other")
    for table in (by_parts, in_memory):  # what bends stays
        ages, pay = table.column("age").to_numpy(), table.column("pay").to_numpy()
        for low in (18, 36, 54, 72):
            is_in = (ages >= low) & (ages < low + 18)
            was_in = (patients.column("age").to_numpy() >= low) & (patients.column("age").to_numpy() < low + 18)
            before = np.median(patients.column("pay").to_numpy()[was_in])
            assert abs(np.median(pay[is_in]) / before - 1) < 0.1


@pytest.mark.thorough
def test_seeds_repeat_and_rows_are_as_many_as_asked(patients: pa.Table, tmp_path: Path) -> None:
    order = [(name, "ascending") for name in ("age", "job", "hours")]
    first, again = (
        released(patients, tmp_path, ["age", "job", "hours"], seed=5, rows=700)[1].sort_by(order) for _ in range(2)
    )
    assert first.num_rows == 700
    assert first == again


def test_what_was_interrupted_leaves_nothing_behind(
    patients: pa.Table, tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the second part."""
    (tmp_path / "release.parquet").write_bytes(b"the last release")
    seen = []

    def drawn(self: table_parts.Synthesis, *arguments: Any) -> pa.Table:
        seen.append(len(list(spill.rglob("*.parquet"))))
        if len(seen) == 2:
            interrupt_all()
            progress.check()
        return pa.table({"age": [1], "job": ["a"]})

    monkeypatch.setattr(table_parts.Synthesis, "draw", drawn)
    with pytest.raises(progress.StoppedError):
        released(patients, tmp_path, ["age", "job"], temporary=spill)
    assert seen[1] > 0
    assert (tmp_path / "release.parquet").read_bytes() == b"the last release"
    assert not list(spill.iterdir())


def test_a_draw_that_shows_people_is_not_published(
    patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count on the written file is another than the one that draws."""

    def drawn(self: table_parts.Synthesis, columns: Any, *arguments: Any) -> pa.Table:
        return pa.table({column.name: column.array for column in columns})

    monkeypatch.setattr(table_parts.Synthesis, "draw", drawn)
    with pytest.raises(AssertionError, match="shared by fewer than 10 people"):
        released(patients, tmp_path, ["pay", "job"])
    assert not (tmp_path / "release.parquet").exists()


@pytest.mark.parametrize(
    ("rows", "options", "sentence"),
    [
        (0, {}, "the table has no rows"),
        (80, {}, "at least 100 rows are needed; got 80"),
        (80, {"keep_out": 0, "leaf": 50}, "at least 100 rows are needed; got 80"),
        (ROWS, {"cols": ["age"]}, "cols must name at least two columns; got 1"),
        (ROWS, {"categories": ["aeg"]}, 'column "aeg" in categories does not exist'),
    ],
)
def test_refusals(rows: int, options: dict[str, Any], sentence: str, patients: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^anon.synthesize: {sentence}"):
        large.synthesize(patients.slice(0, rows), tmp_path / "r.parquet", **{"cols": ["age", "job"], **options})


def test_too_many_values_for_the_memory_are_refused(
    patients: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duckanon.large.synthesize_release.BYTES_OF_SMALL", 500)
    with pytest.raises(ValueError, match=r'column "share" has too many different values for the memory; round it'):
        released(patients, tmp_path, ["job", "share"])


@pytest.mark.thorough
def test_histories_in_parts_are_like_those_of_the_table(tmp_path: Path) -> None:
    """Gaps, transitions and columns of people, as in memory; every date is one of three people or of nobody."""
    draw = np.random.default_rng(4)
    people = 1_500
    lengths = np.minimum(draw.geometric(0.45, people), 7)
    person = np.repeat(np.arange(people), lengths)
    position = np.arange(len(person)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ward = draw.choice(3, people)[person]
    ward = np.where(draw.random(len(ward)) < 0.3, draw.choice(3, len(ward)), ward)
    day = draw.integers(0, 300, people)[person] + 14 * position + draw.integers(0, 8, len(person))
    table = pa.table(
        {
            "person": person,
            "sex": np.array(["f", "m"])[draw.choice(2, people)[person]],
            "day": pa.array(day.astype("int32"), pa.int32()).cast(pa.date32()),
            "ward": np.array(["a", "b", "c"])[ward],
        }
    )
    done, made = released(table, tmp_path, ["sex", "day", "ward"], person="person", seed=2)
    assert done.parts > 3
    assert made.column_names == table.column_names
    found = []
    for one in (table, made):
        rows = one.sort_by([("person", "ascending"), ("day", "ascending")])
        whose, days = rows.column("person").to_numpy(), rows.column("day").cast(pa.int32()).to_numpy()
        follows = whose[1:] == whose[:-1]
        wards = rows.column("ward").to_numpy(zero_copy_only=False)
        stays = np.mean(wards[1:][follows] == wards[:-1][follows])
        found.append((len(set(whose)), np.bincount(np.bincount(whose))[1:], np.diff(days)[follows], stays))
        sexes = set(zip(whose.tolist(), rows.column("sex").to_pylist(), strict=True))
        assert len(sexes) == len(set(whose))
    before, after = found
    assert after[0] == before[0]
    assert np.abs(after[1] / before[0] - before[1][: len(after[1])] / before[0]).max() < 0.03
    assert abs(np.median(after[2]) - np.median(before[2])) <= 1
    assert abs(after[3] - before[3]) < 0.04
    held = Counter(table.column("day").to_pylist())
    assert not [one for one in made.column("day").to_pylist() if 0 < held[one] < 3]
    again = released(table, tmp_path, ["sex", "day", "ward"], person="person", seed=2)[1]
    order = [(name, "ascending") for name in made.column_names]
    assert made.sort_by(order) == again.sort_by(order)


@pytest.mark.parametrize(("k", "leaf", "keep_out"), [(5, 25, 5), (5, 10, 20), (90, 25, 5), (5, 25, 0), (2, 1, 1)])
def test_a_part_has_two_leaves_and_keeps_at_most_a_quarter_out(k: int, leaf: int, keep_out: int) -> None:
    enough = (n for n in range(1, 1000) if n >= k and n // leaf >= 2 and keep_out / n <= 1 / 4)
    assert fewest_people(k, leaf, keep_out) == next(enough)


@pytest.mark.parametrize(("name", "specials"), [("hour", 0), ("dose", 1)])
def test_an_hour_that_many_share_is_no_special_one_where_it_orders_rows(name: str, specials: int) -> None:
    """A third of the rows has the same value: of whole numbers only gaps between rows are drawn."""
    random = np.random.default_rng(1)
    numbers = np.where(random.random(600) < 1 / 3, 0, random.integers(1, 5_000, 600)).astype(np.int32)
    values, rows = np.unique(numbers, return_counts=True)
    array = pa.array(values if name == "hour" else values / 7)
    counted = ColumnCounts.of(name, array, rows, rows, 5, 10_000, None)
    special = read_special("auto", [name])
    reading = SplitOptions(5, special, None, "category", random)
    split = split_counts([counted], 5, special, [], "category", random)
    assert split[0][0].choices == 2
    made = SequenceSynthesis.of(
        [counted], split, pa.schema([(name, array.type)]), [], [name], reading, DrawOptions(5, None, 3, "auto")
    )
    assert made.whole[name].column.choices == specials + 1
