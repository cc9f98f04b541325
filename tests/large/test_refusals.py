"""What is refused, with the sentences of SQL, and that nothing is left behind then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from duckanon import large
from duckanon._core.common.resources import read_memory
from duckanon.large import pipeline, workspace
from duckanon.large.workspace import budget

THOROUGH = pytest.mark.thorough  # every release opens a database of its own, which takes a second


@pytest.mark.parametrize(
    ("road", "options", "sentence"),
    [
        (large.boxes, {"k": 1}, "duckanon.large.boxes: k must be a whole number of at least 2; got 1."),
        pytest.param(
            large.boxes,
            {"k": 9_999},
            "anon.boxes: k must be at most the number of records, 3000; got 9999.",
            marks=THOROUGH,
        ),
        pytest.param(
            large.boxes,
            {"box": "big"},
            "duckanon.large.boxes: box must be one of 'parts', 'cell', 'bounds', 'rounded'; got 'big'.",
            marks=THOROUGH,
        ),
        pytest.param(
            large.boxes,
            {"keep": ["none"]},
            'anon.boxes: column "none" in keep does not exist; the columns are age, pay, ',
            marks=THOROUGH,
        ),
        pytest.param(
            large.boxes,
            {"person": "none"},
            'anon.boxes: column "none" in person does not exist; the columns are age, pay, ',
            marks=THOROUGH,
        ),
        pytest.param(
            large.boxes,
            {"seed": -1},
            "anon.boxes: seed must be NULL or a whole number of at least 0; got -1.",
            marks=THOROUGH,
        ),
        pytest.param(
            large.boxes,
            {"cols": []},
            "duckanon.large.boxes: cols must be a list of column names such as ['age', 'zip'], each once; got [].",
            marks=THOROUGH,
        ),
        (large.boxes, {"keep": ["twin"]}, 'anon.boxes: the column "twin" in keep narrows down "age"; '),
        pytest.param(
            large.microaggregate,
            {"method": "mdav"},
            "duckanon.large.microaggregate: method must be 'fast'; got 'mdav'.",
            marks=THOROUGH,
        ),
        (
            large.recode,
            {"by": ["pay"]},
            "duckanon.large.recode: by must be None here, only anon.recode takes others; got ['pay'].",
        ),
        (large.recode, {"l": 2}, "duckanon.large.recode: l must be 1 here, only anon.recode takes others; got 2."),
        # said as it is anyway
        (large.recode, {"l": 1, "k": 1}, "duckanon.large.recode: k must be a whole number of at least 2; got 1."),
        pytest.param(
            large.recode,
            {"effort": "some"},
            "duckanon.large.recode: effort must be one of 'quick', 'default', 'thorough'; got 'some'.",
            marks=THOROUGH,
        ),
    ],
)
def test_wrong_options_are_refused_as_in_sql(
    road: Callable[..., Any], options: dict[str, Any], sentence: str, people: pa.Table, tmp_path: Path, spill: Path
) -> None:
    table = people.append_column("twin", people.column("age"))
    given = {"cols": ["age", "pay"], "k": 5, "temporary": spill} | options
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is looked at
        road(table, tmp_path / "release.parquet", **given)
    assert str(caught.value).startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["spill"]
    assert not list(spill.iterdir())


@pytest.mark.thorough
def test_nulls_are_counted_in_the_whole_table(people: pa.Table, tmp_path: Path) -> None:
    holes = people.set_column(0, "age", pa.array([None, None, *people.column("age").to_pylist()[2:]]))
    with pytest.raises(ValueError, match=r'anon\.boxes: column "age" has 2 NULLs, which no interval contains'):
        large.boxes(holes, tmp_path / "release.parquet", ["age"], 5)


@pytest.mark.thorough
def test_a_release_that_breaks_its_promise_gets_no_name(
    people: pa.Table, tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad release: rows of one block lose their class on the way to the file."""
    target = tmp_path / "release.parquet"
    target.write_bytes(b"the last release")
    blocks = pipeline._blocks

    def broken(results: pipeline.Mixed) -> Any:
        for block in blocks(results):
            ages = pa.array([1_000, *block.column("age").to_pylist()[1:]])
            yield block.set_column(block.column_names.index("age"), "age", ages)

    monkeypatch.setattr(pipeline, "_blocks", broken)
    with pytest.raises(AssertionError, match="fewer than 5 people"):
        large.boxes(people, target, ["age", "pay"], 5, temporary=spill, replace=True)
    assert target.read_bytes() == b"the last release"
    assert not list(spill.iterdir())


def test_amounts_of_memory() -> None:
    assert read_memory("800MB") == 800_000_000
    assert read_memory("1GiB") == 2**30
    for wrong in ("2", 2, None, "lots", "-1GB"):
        with pytest.raises(ValueError, match="memory must be an amount such as '800MB' or '2GB'; got"):
            read_memory(wrong)
    with pytest.raises(ValueError, match=r"memory must be at least \d+MB here; got 1MB"):
        budget("1MB")


@pytest.mark.parametrize(
    "kind", ["file", pytest.param("folder", marks=THOROUGH), pytest.param("dataset", marks=THOROUGH)]
)
def test_a_source_is_not_overwritten(kind: str, people: pa.Table, tmp_path: Path) -> None:
    """The target was written over the file, or over one of the folder, that the rows came from."""
    for part in ("a", "b"):
        pq.write_table(people, tmp_path / f"{part}.parquet")
    os.link(tmp_path / "b.parquet", tmp_path / "b2.parquet")
    before = (tmp_path / "b.parquet").read_bytes()
    source = {"file": tmp_path / "b.parquet", "folder": tmp_path, "dataset": ds.dataset(tmp_path)}[kind]
    with pytest.raises(ValueError, match=r"target must be another file than the source"):
        large.boxes(source, tmp_path / "b2.parquet", ["age", "pay"], 5, replace=True)
    assert (tmp_path / "b2.parquet").read_bytes() == before


@pytest.mark.thorough
def test_a_target_that_is_there_is_not_replaced_unless_asked(people: pa.Table, tmp_path: Path, spill: Path) -> None:
    target = tmp_path / "release.parquet"
    target.write_bytes(b"the last release")
    given: dict[str, Any] = {"cols": ["age"], "k": 5, "temporary": spill}
    with pytest.raises(ValueError, match=r"target must be new, and .* is there already; .* give replace=True\."):
        large.microaggregate(people, target, **given)
    assert target.read_bytes() == b"the last release"
    large.microaggregate(people, target, **given, replace=True)
    assert pq.read_metadata(target).num_rows == people.num_rows


def test_the_least_memory_is_the_same_for_each_release_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first release loaded was counted against the second: 500MB were accepted once."""
    has = [300_000_000]
    monkeypatch.setattr(workspace, "measure_memory", lambda: has[0])
    monkeypatch.setattr(workspace, "_kept", 0)
    for _ in range(3):
        budget("500MB")
        with pytest.raises(ValueError, match="at least 501MB here"):
            budget("499MB")
        with workspace.counting_what_is_kept():
            has[0] += 30_000_000  # libraries
            with workspace.counting_what_is_kept():  # in partitions
                has[0] += 20_000_000
    has[0] += 400_000_000  # of somebody else
    with pytest.raises(ValueError, match="at least 901MB here"):
        budget("899MB")
