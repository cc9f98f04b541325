"""What anon.recode releases as values is read as the labels that it would be."""

from __future__ import annotations

import duckdb

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
    inside = """SELECT lower <= (SELECT avg(age) FROM crew) AND (SELECT avg(age) FROM crew) <= upper
                FROM anon.interval_statistics('lists', ['age']) WHERE statistic = 'mean'"""
    assert con.execute(inside).fetchone() == (True,)
