"""What anon.recode releases as values is read as the labels that it would be."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._core.common.labels import is_like_label, label_entry, label_set, read_set
from duckanon._measure.coarse.coarse_tables import with_sets
from tests.profiles import cheap

CREW = """
CREATE TABLE crew AS
SELECT 20 + (i * 7) % 41 AS age, CASE WHEN i % 11 = 0 THEN NULL WHEN i = 7 THEN 'spy'
       ELSE ['cook', 'nurse', 'driver', 'clerk'][1 + (i // 3) % 4] END AS job,
       ['clerk, senior', 'clerk'][1 + i % 2] AS rank
FROM range(240) AS t(i);
CREATE TABLE texts AS FROM anon.recode('crew', ['age', 'job'], 6);
CREATE TABLE lists AS FROM anon.recode('crew', ['age', 'job'], 6, output := 'value');
CREATE TABLE ranks AS FROM anon.recode('crew', ['rank'], 6, output := 'value');
"""


@pytest.mark.thorough
def test_values_are_read_as_labels(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(CREW).fetchall()
    for query in (
        "SELECT \"rows\", round(loss, 9) FROM anon.recode_classes('{}', ['age', 'job']) ORDER BY ALL",
        "SELECT attacker, round(average_risk, 9) FROM anon.containment_risk('crew', '{}', ['age', 'job'])",
        "SELECT labels, round(ncp, 9) FROM anon.generalization_loss('crew', '{}', ['age', 'job'])",
    ):
        texts, lists = (con.execute(query.format(name)).fetchall() for name in ("texts", "lists"))
        assert texts == lists
    assert con.execute("SELECT max(loss) FROM anon.recode_classes('ranks', ['rank'])").fetchone() == (0.0,)
    assert con.execute("FROM anon.detectability('crew', 'lists', ['age', 'job'], seed := 1)").fetchall()
    inside = """SELECT bool_and(lower <= value AND value <= upper), max(upper - lower) < 20
                FROM anon.interval_quantiles('lists', ['age']) JOIN (
                    SELECT unnest([0.25, 0.5, 0.75]) AS quantile,
                           unnest((SELECT quantile_disc(age, [0.25, 0.5, 0.75]) FROM crew)) AS value)
                USING (quantile)"""
    assert con.execute(inside).fetchone() == (True, True)
    open_ends = con.execute("SELECT bool_or(age.lo IS NULL), bool_or(age.hi IS NULL) FROM lists").fetchone()
    assert open_ends == (False, True)  # six people are 20, and five are 60
    with pytest.raises(duckdb.InvalidInputException, match="open ends, beyond which nothing is guaranteed"):
        con.execute("FROM anon.interval_statistics('lists', ['age'])").fetchall()


texts = st.text(st.one_of(st.sampled_from('{},"* NULother'), st.characters(exclude_categories=["Cs"])), max_size=8)
sets = st.lists(st.lists(st.one_of(st.none(), texts), min_size=1, max_size=4, unique=True), min_size=1, max_size=20)


@cheap
@given(values=sets)
def test_sets_of_any_texts_are_read_back(values: list[list[str | None]]) -> None:
    listed = [[label_entry(member) for member in members] for members in values]
    labels = [label_set(members) for members in listed]
    assert [read_set(label) for label in labels] == values
    # merged values are none of the set; a value that is called so is in quotation marks
    assert [read_set(label_set([*members, "other"])) for members in listed] == values
    table = with_sets(pa.table({"x": pa.array(listed, pa.list_(pa.string()))}))
    assert table.column("x").to_pylist() == labels
    # the label of one value is that value, or none that is made up
    assert all(
        len(members) > 1 or label in members or is_like_label(label or "")
        for members, label in zip(values, labels, strict=True)
    )


def test_sql_writes_and_reads_the_same_sets(con: duckdb.DuckDBPyConnection) -> None:
    hard = ["a", "a, b", "{a, b}", "*", "NULL", None, "", '"', '"a"', 'a", "b', "}", ", ", ",", "other", " a ", "a\n"]
    values = [[one] for one in hard] + [[one, other] for one in hard for other in hard if one != other]
    listed = [[label_entry(member) for member in members] for members in values]
    source = pa.table({"members": values, "listed": listed})
    con.register("source", source)
    found = con.execute(
        "SELECT members, label, anon._label_members(label) FROM "
        "(SELECT members, anon._list_text(listed) AS label FROM source)"
    ).fetchall()
    assert len(found) == len(values)
    for members, label, read in found:
        assert label == label_set([label_entry(member) for member in members])
        assert read == members


def test_the_root_of_a_hierarchy_is_all_of_its_values(con: duckdb.DuckDBPyConnection) -> None:
    """A class of places of both provinces may be of any place, whether somebody of the table lives there or not."""
    con.execute(
        """CREATE TABLE t AS SELECT ['Linz', 'Graz'][1 + i // 3] AS place FROM range(6) AS r(i);
        CREATE TABLE places AS FROM (VALUES
            ('Linz', 'Upper Austria', '*'), ('Wels', 'Upper Austria', '*'), ('Graz', 'Styria', '*')
        ) AS v(place, province, everywhere)"""
    ).fetchall()
    query = "SELECT DISTINCT place FROM anon.recode('t', ['place'], 6, hierarchies := MAP {'place': 'places'}"
    assert con.execute(f"{query}, output := 'value')").fetchall() == [(["Graz", "Linz", "Wels"],)]
    assert con.execute(f"{query})").fetchall() == [("*",)]


def test_measures_tell_a_value_with_a_comma_from_a_set(con: duckdb.DuckDBPyConnection) -> None:
    """A class of {'a, b', c} names two values and not three: no original 'a' is in it."""
    con.execute(
        """CREATE TABLE t AS SELECT ['a, b', 'c', 'a', 'b'][1 + i // 3] AS v FROM range(12) AS r(i);
        CREATE TABLE o AS SELECT ['{"a, b", c}', '{a, b}'][1 + i // 6] AS v FROM range(12) AS r(i)"""
    ).fetchall()
    assert con.execute("SELECT DISTINCT loss FROM anon.recode_classes('o', ['v'])").fetchall() == [(1 / 3,)]
    query = "SELECT min(candidates), max(candidates) FROM anon.containment_candidates('t', 'o', ['v'])"
    assert con.execute(query).fetchall() == [(6, 6)]
