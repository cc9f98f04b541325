"""What anon.generalize and anon.plan promise, on random tables: k people a class, and nothing that tells of fewer."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter, defaultdict
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._methods.generalize import plans
from duckanon._methods.generalize.recoding.axes import Recoding
from duckanon._methods.generalize.recoding.search import recode
from duckanon._methods.generalize.sample_class_sizes import sample_class_size
from tests.profiles import dear
from tests.traces import changed_labels, random_table, released_labels, without_row

Connection = duckdb.DuckDBPyConnection

texts = st.sampled_from(["a", "b", "c", "d", "it's", "", "ü", "a b", "*a", "other"])
CELLS = {
    "whole": st.integers(-5, 40),
    "gaps": st.integers(0, 8).map(lambda x: 3**x),
    "real": st.floats(-1e6, 1e6).map(lambda x: round(x, 2)),
    "few": st.sampled_from([1.5, 2.5, 1e12]),
    "near": st.integers(0, 5).map(lambda x: 1 + x * 2.0**-52),
    "text": texts,
    "day": st.dates(datetime.date(1901, 1, 1), datetime.date(2090, 1, 1)),
    "moment": st.datetimes(datetime.datetime(1960, 1, 1), datetime.datetime(2030, 1, 1)),
    "flag": st.booleans(),
    "code": st.integers(0, 60).map(lambda x: f"{x * 13 % 1000:03}"),
    "exact": st.decimals(0, 99, places=1),
    "empty": st.none(),
}
METHODS = {"day": ["calendar", "interval"], "whole": ["interval", "round"], "gaps": ["interval", "round"]}


def rows(con: Connection, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return con.execute(query, list(parameters)).fetchall()


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, str]]:
    """A table with the columns to make coarser, then whose row it is and a number of its own; and some methods."""
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    size = draw(st.integers(1, 60))
    columns, methods = {}, {}
    for place, kind in enumerate(kinds):
        cell = st.none() | CELLS[kind] if draw(st.booleans()) else CELLS[kind]
        cells = draw(st.lists(cell, min_size=size, max_size=size))
        columns[f"{kind} {place}"] = pa.array(cells, pa.string() if kind in ("text", "code") else None)
        if kind in METHODS and any(item is not None for item in cells):
            methods[f"{kind} {place}"] = draw(st.sampled_from(METHODS[kind]))
    people = st.none() | st.integers(0, max(size // 2, 1))
    columns["person"] = pa.array(draw(st.lists(people, min_size=size, max_size=size)), pa.int64())
    return pa.table(columns).append_column("id", pa.array(range(size))), methods


def as_map(methods: dict[str, str]) -> str:
    return "MAP {" + ", ".join(f"'{name}': '{method}'" for name, method in methods.items()) + "}" if methods else "NULL"


def people_of(table: pa.Table, has_person: bool) -> list[Any]:
    return table.column("person" if has_person else "id").to_pylist()


def holders(table: pa.Table, name: str, has_person: bool) -> dict[Any, int]:
    """How many people have each value of a column."""
    people = defaultdict(set)
    for cell, person in zip(table.column(name).to_pylist(), people_of(table, has_person), strict=True):
        people[cell].add(person)
    return {cell: len(own - {None}) for cell, own in people.items()}


def as_number(cell: Any) -> float:
    if isinstance(cell, datetime.datetime):
        return (cell - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1)
    if isinstance(cell, datetime.date):
        return as_number(datetime.datetime.combine(cell, datetime.time()))
    return float(cell)


def end_of(text: str) -> float:
    """A label's or a plan's end as a number."""
    try:
        return float(text)
    except ValueError:
        return as_number(datetime.datetime.fromisoformat(text))


def span_of(label: str) -> tuple[float, float]:
    """From where to where a label of the method interval reaches, without the latter."""
    if label == "*":
        return -math.inf, math.inf
    if match := re.fullmatch(r"\[(.*), (.*)\)", label):
        return end_of(match[1]), end_of(match[2])
    if label.startswith("<"):
        return -math.inf, end_of(label[1:])
    if label.startswith(">="):
        return end_of(label[2:]), math.inf
    return end_of(label), math.nextafter(end_of(label), math.inf)


def ends_of(label: str | None) -> list[float]:
    return [] if label is None else [end for end in span_of(label) if math.isfinite(end)]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Recoding]:
    """What the searches of a test found, in their order."""
    result: list[Recoding] = []

    def noted(*arguments: Any, **options: Any) -> Recoding:
        result.append(recode(*arguments, **options))
        return result[-1]

    monkeypatch.setattr(plans, "recode", noted)
    return result


@pytest.mark.usefixtures("short_search")
@dear
@given(
    drawn=tables(),
    k=st.integers(2, 8),
    fraction=st.sampled_from([0.0, 0.01, 0.2]),
    has_person=st.booleans(),
)
def test_classes_have_k_people_and_nothing_tells_of_fewer(
    con: Connection,
    searched: list[Recoding],
    drawn: tuple[pa.Table, dict[str, str]],
    k: int,
    fraction: float,
    has_person: bool,
) -> None:
    check_promises(con, searched, *drawn, k=k, fraction=fraction, has_person=has_person)


@pytest.mark.usefixtures("short_search")
@pytest.mark.thorough
@dear
@given(
    kind=st.sampled_from([("whole", "round"), ("whole", "interval"), ("day", "calendar"), ("day", "interval")]),
    data=st.data(),
    k=st.integers(2, 8),
)
def test_columns_of_which_many_groups_are_told_of_nobody(
    con: Connection, searched: list[Recoding], kind: tuple[str, str], data: st.DataObject, k: int
) -> None:
    """With one column and nobody left out, groups beside each other often have too few people."""
    cell, method = kind
    cells = data.draw(st.lists(st.none() | CELLS[cell], min_size=20, max_size=60))
    if all(item is None for item in cells):
        return
    table = pa.table({"x": cells, "person": [0] * len(cells), "id": range(len(cells))})
    check_promises(con, searched, table, {"x": method}, k=k, fraction=0.0, has_person=False)


def check_promises(
    con: Connection,
    searched: list[Recoding],
    table: pa.Table,
    methods: dict[str, str],
    *,
    k: int,
    fraction: float,
    has_person: bool,
) -> None:
    """Make a release and a plan, and compare them with what they promise."""
    con.register("arrow_table", table)
    con.execute("CREATE OR REPLACE TABLE t AS FROM arrow_table").fetchall()
    cols = [name for name in table.column_names if name not in ("person", "id")]
    person = "'person'" if has_person else "NULL"
    options = f"max_suppressed_fraction := {fraction}, person := {person}, methods := {as_map(methods)}"
    people = dict(zip(table.column("id").to_pylist(), people_of(table, has_person), strict=True))
    if len(set(people.values()) - {None}) < k:
        with pytest.raises(duckdb.Error, match=r"k must be at most the number of (rows|people)"):
            rows(con, f"FROM anon.generalize('t', {cols}, {k}, keep := ['id'], narrowing := ['id'], {options})")
        return
    con.execute(f"CREATE OR REPLACE TABLE plan AS FROM anon.plan('t', {cols}, {k}, {options})").fetchall()
    con.execute(
        f"CREATE OR REPLACE TABLE released AS "
        f"FROM anon.generalize('t', {cols}, {k}, keep := ['id'], narrowing := ['id'], {options})"
    ).fetchall()
    released = rows(con, "FROM released")
    members = defaultdict(set)
    for row in released:
        members[row[:-1]].add(people[row[-1]])
    assert all(len(own - {None}) >= k for own in members.values())
    suppressed = table.num_rows - len(released)
    assert suppressed <= fraction * table.num_rows
    assert {suppressed} == {item for (item,) in rows(con, "SELECT DISTINCT suppressed_rows FROM plan")}
    assert len({row[-1] for row in released}) == len(released)  # nobody twice
    coarse = {row[-1]: row for row in rows(con, "FROM anon.apply_plan('t', 'plan', keep := ['id'])")}
    assert len(coarse) == table.num_rows
    assert all(coarse[row[-1]] == row for row in released)
    losses = {name: loss for name, _, loss, *_ in rows(con, f"FROM anon.generalization_loss('t', 'released', {cols})")}
    parts = iter(searched[-1].columns) if searched else iter(())
    left_out = searched[-1].suppressed if searched else 0
    is_coded = any(has_extremes(table, name, k, has_person) for name in cols)
    for place, name in enumerate(cols):
        labels = [(row[-1], row[place]) for row in released]
        check_column(con, table, name, labels, k, has_person, whether_ends=not left_out)
        ((counted,),) = rows(con, 'SELECT sum("rows")::BIGINT FROM plan WHERE column_name = ?', name)
        assert counted == len(released)
        # what the search minimised is what is reported, but for extremes, and for labels that released rows decide
        # alone; columns of nothing are not searched
        part = None if table.column(name).null_count == table.num_rows else next(parts)
        loss = 0.0 if part is None else float(part.losses @ part.rows)
        if not left_out and not is_coded:
            assert losses[name] == pytest.approx((loss + suppressed) / table.num_rows, abs=1e-9)


def has_extremes(table: pa.Table, name: str, k: int, has_person: bool) -> bool:
    """Tell whether fewer than k people have the least or the largest number of a column, or are called "other"."""
    cells = [cell for cell in table.column(name).to_pylist() if cell is not None and not isinstance(cell, str)]
    have = holders(table, name, has_person)
    return have.get("other", k) < k or (bool(cells) and min(have[min(cells)], have[max(cells)]) < k)


def check_column(
    con: Connection,
    table: pa.Table,
    name: str,
    labels: list[tuple[int, str | None]],
    k: int,
    has_person: bool,
    *,
    whether_ends: bool,
) -> None:
    """No label or end is a value of fewer than k people; every label holds its row's value; buckets have k or none.

    Ends that know nothing of those who are left out may by chance be a value of theirs (``whether_ends``).
    """
    have = holders(table, name, has_person)
    cells = table.column(name).to_pylist()
    buckets = rows(con, 'SELECT method, covers, lower, upper, label, "rows" FROM plan WHERE column_name = ?', name)
    said = {label: count for *_, label, count in buckets if count}
    assert said == dict(Counter(label for _, label in labels))
    assert all(count >= k for count in said.values())
    if buckets[0][0] == "interval":
        few = {as_number(cell) for cell, people in have.items() if cell is not None and people < k}
        ends = [end for _, label in labels for end in ends_of(label)]
        ends += [end_of(end) for _, covers, *both, _, _ in buckets for end in both if end is not None]
        ends += [end for *_, label, _ in buckets for end in ends_of(label)]
        assert not whether_ends or not few & set(ends)
        for row, label in labels:
            if label is None:
                assert cells[row] is None
            elif cells[row] is not None:
                low, high = span_of(label)
                assert low <= as_number(cells[row]) < high
    elif buckets[0][0] == "top":
        texts_of = {("true" if c else "false") if isinstance(c, bool) else c: people for c, people in have.items()}
        shown = {text for _, covers, *both, label, _ in buckets if covers == "value" for text in (*both, label)}
        assert all(texts_of.get(text, k) >= k for text in shown - {"*"})  # which says nothing, whoever has it
        for row, label in labels:
            cell = ("true" if cells[row] else "false") if isinstance(cells[row], bool) else cells[row]
            assert label == cell or label not in texts_of or label in ("*", "other", "**")
    elif buckets[0][0] == "prefix":
        for row, label in labels:
            cell = cells[row]
            assert label is cell is None or label == "*" or (cell and label and cell.startswith(label.rstrip("*")))


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
@dear
@given(drawn=tables(), k=st.integers(2, 8), factor=st.sampled_from([1, 3, 1000]), beta=st.sampled_from([0.1, 0.001]))
def test_classes_of_a_sample_have_as_many_people_as_the_population_asks_for(
    con: Connection, drawn: tuple[pa.Table, dict[str, str]], k: int, factor: int, beta: float
) -> None:
    table, _ = drawn
    con.register("arrow_table", table)
    con.execute("CREATE OR REPLACE TABLE t AS FROM arrow_table").fetchall()
    cols = [name for name in table.column_names if name not in ("person", "id")]
    population = max(table.num_rows * factor, k)
    least = sample_class_size(k, beta * 0.8, population, table.num_rows)
    call = f"anon.generalize('t', {cols}, {k}, population := {population}, beta := {beta}, "
    if table.num_rows < least:
        with pytest.raises(duckdb.Error, match=r"must be at most the number of rows"):
            rows(con, f"FROM {call} max_suppressed_fraction := 0.2)")
        return
    released = rows(con, f"FROM {call} max_suppressed_fraction := 0.2)")
    assert len(released) >= 0.8 * table.num_rows
    assert min(Counter(released).values(), default=least) >= least


def test_an_end_of_a_sample_lies_before_the_bucket_that_follows(con: Connection) -> None:
    """Classes of two do here; of the four people at the low end one is left out, and the next one is of the 2000s."""
    con.execute(
        """CREATE OR REPLACE TABLE t AS
           SELECT unnest([date '1904-01-05', '1941-06-03', '1970-03-17', '1981-12-29', '2002-10-24', '2006-12-07',
                          '2011-02-06', '2050-12-17', '2053-02-14', '2070-01-30', '2086-06-14']) AS day,
                  unnest([NULL, 1, NULL, NULL, NULL, NULL, 1, 1, 1, 1, 1]) AS told"""
    ).fetchall()
    call = "('t', ['day', 'told'], 4, population := 11000, beta := 0.1, max_suppressed_fraction := 0.2)"
    assert min(Counter(rows(con, f"FROM anon.generalize{call}")).values()) >= 2
    starts = [start for (start,) in rows(con, f"SELECT lower FROM anon.plan{call} WHERE covers = 'time'") if start]
    assert starts == sorted(starts)


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
@dear
@given(drawn=tables(), k=st.integers(2, 8), data=st.data())
def test_classes_have_k_people_of_a_population_that_is_at_hand(
    con: Connection, drawn: tuple[pa.Table, dict[str, str]], k: int, data: st.DataObject
) -> None:
    """The table is a part of the population; classes are counted in the whole with the same plan."""
    population, _ = drawn
    members = data.draw(st.sets(st.integers(0, population.num_rows - 1), min_size=1), label="members")
    con.register("arrow_table", population)
    con.execute("CREATE OR REPLACE TABLE everybody AS FROM arrow_table").fetchall()
    con.execute("CREATE OR REPLACE TABLE t AS FROM everybody WHERE list_contains(?, id)", [sorted(members)]).fetchall()
    cols = [name for name in population.column_names if name not in ("person", "id")]
    options = f"{k}, population := 'everybody', max_suppressed_fraction := 1"
    con.execute(f"CREATE OR REPLACE TABLE plan AS FROM anon.plan('t', {cols}, {options})").fetchall()
    released = rows(con, f"FROM anon.generalize('t', {cols}, {options})")
    sizes = Counter(rows(con, "FROM anon.apply_plan('everybody', 'plan')"))
    assert all(sizes[row] >= k for row in released)


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize(
    ("of_others", "k", "values"),
    [
        ("30_000 + i * 100", 10, (1_234_567, 7_654_321)),  # a share of the range tells the largest value
        ("1_000 + i % 30 * 10", 100, (1_010, 1_015)),  # a number of values tells whether it is another
    ],
    ids=["largest", "another"],
)
def test_a_plan_does_not_tell_a_value_to_those_who_know_the_others(
    con: Connection, of_others: str, k: int, values: tuple[int, int]
) -> None:
    seen = []
    for value in values:
        con.execute(f"""
            CREATE OR REPLACE TABLE t AS
            SELECT {of_others} AS income FROM range(300) AS r(i) UNION ALL SELECT {value}""").fetchall()
        seen.append(rows(con, f"FROM anon.plan('t', ['income'], {k})"))
    assert seen[0] == seen[1]


@pytest.mark.thorough
def test_a_stored_plan_says_the_same_of_everybody_else(con: Connection) -> None:
    """A plan that is fitted anew without one person often calls everybody otherwise; a stored one never does."""
    table = random_table(2, 80)
    con.register("people", pa.table(table))
    asked = "['age', 'area'], 5, max_suppressed_fraction := 0.1"
    con.execute(f"CREATE TABLE stored AS FROM anon.plan('people', {asked})").fetchall()
    query = "FROM anon.apply_plan('people', 'stored', keep := ['number'])"
    coarse = released_labels(con, query, table)
    sizes = Counter(coarse.values())
    suppressed, released = (
        next(row for row in coarse if (sizes[coarse[row]] < 5) == is_few) for is_few in (True, False)
    )
    for row in (suppressed, released):
        assert changed_labels(con, query, table, without_row(table, row), row) == []
