"""Tables of a PostgreSQL server read and written through `duckanon.postgresql`, compared with what psql says."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from duckanon import postgresql
from duckanon.postgresql import ServerProblem
from duckanon.postgresql.server import Server
from duckanon.postgresql.target import Delivery
from tests.rendered.servers import Postgres

pytestmark = pytest.mark.engines

TYPED = """
    CREATE TABLE clinic.typed (
        whole smallint, number integer, large bigint, amount numeric(12, 3), open numeric, share double precision,
        single real, label varchar(20), padded char(4), note text, born date, at timestamp(3), seen timestamptz,
        hour time, alive boolean, code uuid, ward clinic.ward, extra jsonb, span interval, bytes bytea);
    INSERT INTO clinic.typed VALUES
        (1, -2, 9007199254740993, 123456789.125, 0.1, 0.1, 1.5, 'it''s', 'ab', E'quote " back \\\\ line\\nend',
         '1900-02-28', '2020-01-02 03:04:05.678', '2020-07-01 12:00:00+02', '23:59:59.999999', true,
         'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'west', '{"a": 1}', '1 month 2 days 03:00', '\\x00ff'),
        (NULL, NULL, NULL, NULL, 'NaN', 'NaN', NULL, '', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
         NULL);
"""


def columns(server: Postgres, table: str) -> dict[str, str]:
    rows = server.rows(f"""
        SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
        WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum""")
    return {row["name"]: row["type"] for row in rows}


def hidden(server: Postgres) -> list[Any]:
    return server.rows("SELECT relname FROM pg_class WHERE relname LIKE '%duckanon%'")


def test_values_and_types_come_back_as_they_were(clinic: Postgres, con: duckdb.DuckDBPyConnection) -> None:
    clinic.run(TYPED)
    assert postgresql.read(con, clinic.address(), "clinic.typed", into="typed") == 2
    types = {row[0]: row[1] for row in con.execute("DESCRIBE typed").fetchall()}
    assert types["amount"] == "DECIMAL(12,3)"
    assert types["open"] == "DOUBLE"
    assert types["seen"] == "TIMESTAMP WITH TIME ZONE"
    con.execute("CREATE TABLE twice AS FROM typed UNION ALL FROM typed").fetchall()
    written = postgresql.write(con, "twice", clinic.address(), "clinic.back", cols=["whole"], k=2)
    assert written == 4
    same = "SELECT * FROM clinic.back EXCEPT SELECT * FROM clinic.typed"
    texts = ["open", "ward", "extra"]  # the types of which DuckDB does not have
    as_text = ", ".join(f"{name}::text" if name in texts else name for name in types)
    assert clinic.rows(same.replace("*", as_text)) == []
    kept, before = columns(clinic, "clinic.back"), columns(clinic, "clinic.typed")
    assert {name: kept[name] for name in kept if kept[name] != before[name]} == {
        "open": "double precision",
        "label": "text",
        "padded": "text",
        "at": "timestamp without time zone",
        "ward": "text",
        "extra": "text",
    }


def test_what_cannot_be_protected_is_refused(clinic: Postgres, con: duckdb.DuckDBPyConnection) -> None:
    def refused(query: str) -> str:
        with pytest.raises(ServerProblem) as error:
            postgresql.read(con, clinic.address(), query=query, into="t")
        return str(error.value)

    assert refused("SELECT 1 AS a, ARRAY[2] AS many").startswith("column many has arrays or records")
    assert "more than 15" in refused("SELECT 0.12345678901234567 AS a")
    assert "with NaN" in refused("SELECT 'NaN'::numeric(5, 2) AS a")
    assert refused("SELECT * FROM clinic.nothing") == "there is no such table (SQLSTATE 42P01)."
    assert "Person" not in refused("SELECT name::integer FROM clinic.people")
    assert refused("DELETE FROM clinic.people RETURNING *").startswith("the query cannot be read")
    clinic.run("""CREATE FUNCTION clinic.emptied() RETURNS integer LANGUAGE sql
                  AS 'DELETE FROM clinic.people; SELECT 1'""")
    assert refused("SELECT clinic.emptied()").startswith("the query failed while its rows were read")
    assert clinic.rows("SELECT count(*) AS n FROM clinic.people") == [{"n": 240}]
    con.execute("CREATE TABLE lists AS SELECT 1 AS a, [1] AS many FROM range(4)").fetchall()
    with pytest.raises(ServerProblem, match=r"column many is of type INTEGER\[\], which is not written"):
        postgresql.write(con, "lists", clinic.address(), "clinic.lists", cols=["a"], k=2)
    con.execute(f"CREATE TABLE longer AS SELECT 1 AS {'a' * 64} FROM range(4)").fetchall()
    with pytest.raises(ServerProblem, match="more than 63 bytes"):
        postgresql.write(con, "longer", clinic.address(), "clinic.lists", cols=["a" * 64], k=2)


def test_a_class_that_is_too_small_is_not_written(clinic: Postgres, con: duckdb.DuckDBPyConnection) -> None:
    """Attack: a collation of the server that holds f and F for the same must not make a class of two."""
    con.execute("CREATE TABLE t AS SELECT unnest(['f', 'f', 'F', NULL, NULL]) AS sex, 1 AS n").fetchall()
    with pytest.raises(ValueError, match=r"a class has 1 rows; k = 2 was asked for"):
        postgresql.write(con, "t", clinic.address(), "clinic.released", cols=["sex"], k=2)
    con.execute("CREATE TABLE visits AS SELECT 'f' AS sex, 7 AS pseudonym FROM range(5)").fetchall()
    with pytest.raises(ValueError, match=r"a class has 1 people"):
        postgresql.write(con, "visits", clinic.address(), "clinic.released", cols=["sex"], k=2, person="pseudonym")
    assert clinic.rows("SELECT to_regclass('clinic.released') AS t") == [{"t": None}]
    assert hidden(clinic) == []
    con.execute("CREATE TABLE boxed AS SELECT {'lo': i // 3, 'hi': 1 + i // 3} AS age FROM range(6) AS t(i)").fetchall()
    assert postgresql.write(con, "boxed", clinic.address(), "clinic.boxed", cols=["age"], k=3) == 6
    assert columns(clinic, "clinic.boxed") == {"age_lo": "bigint", "age_hi": "bigint"}


def test_sources_are_never_replaced(clinic: Postgres, con: duckdb.DuckDBPyConnection) -> None:
    """By another name, through a view, or a function: whatever was read is known by its number."""
    clinic.run("""
        CREATE FUNCTION clinic.all_people() RETURNS SETOF clinic.people LANGUAGE plpgsql STABLE
            AS 'BEGIN RETURN QUERY SELECT * FROM clinic.people; END';""")
    for query in ("SELECT * FROM clinic.everybody", "SELECT * FROM clinic.all_people()"):
        postgresql.calls._read.clear()
        assert postgresql.read(con, clinic.address(), query=query, into="people") == 240
        with pytest.raises(ServerProblem, match=r"^clinic\.people: the rows come from this table"):
            postgresql.write(con, "people", clinic.address(), "clinic.people", cols=["sex"], k=2, replace=True)
    with pytest.raises(ServerProblem, match="it is no plain table"):
        postgresql.write(con, "people", clinic.address(), "clinic.everybody", cols=["sex"], k=2, replace=True)
    assert clinic.rows("SELECT count(DISTINCT name) AS n FROM clinic.people") == [{"n": 240}]


def test_a_replaced_table_keeps_who_may_read_it(clinic: Postgres, con: duckdb.DuckDBPyConnection) -> None:
    clinic.run("""
        DROP ROLE IF EXISTS analyst; DROP ROLE IF EXISTS stranger;
        CREATE ROLE analyst LOGIN; CREATE ROLE stranger LOGIN;
        GRANT USAGE ON SCHEMA clinic TO analyst, stranger;
        CREATE TABLE clinic.released AS SELECT 1 AS old; GRANT SELECT ON clinic.released TO analyst;
        ALTER DEFAULT PRIVILEGES IN SCHEMA clinic GRANT SELECT ON TABLES TO stranger;""")
    con.execute("CREATE TABLE t AS SELECT 'f' AS sex FROM range(4)").fetchall()
    address = clinic.address()
    with pytest.raises(ServerProblem, match="it is there already"):
        postgresql.write(con, "t", address, "clinic.released", cols=["sex"], k=2)
    postgresql.write(con, "t", address, "clinic.released", cols=["sex"], k=2, replace=True)
    may = "SELECT has_table_privilege('{}', 'clinic.released', 'SELECT') AS may"
    assert clinic.rows(may.format("analyst")) == [{"may": True}]
    assert clinic.rows(may.format("stranger")) == [{"may": False}]
    with pytest.raises(ServerProblem, match="this user may make no table"):
        postgresql.write(con, "t", clinic.address("analyst"), "clinic.other", cols=["sex"], k=2)
    clinic.run("ALTER TABLE clinic.released ENABLE ROW LEVEL SECURITY")
    with pytest.raises(ServerProblem, match="row security"):
        postgresql.write(con, "t", address, "clinic.released", cols=["sex"], k=2, replace=True)
    clinic.run("ALTER DEFAULT PRIVILEGES IN SCHEMA clinic REVOKE SELECT ON TABLES FROM stranger")


def test_nobody_sees_a_table_before_it_is_counted(clinic: Postgres, con: duckdb.DuckDBPyConnection) -> None:
    """Attack: another session, of a superuser, looks for any new table at every step before the commit."""
    con.execute("CREATE TABLE t AS SELECT 'f' AS sex FROM range(4)").fetchall()
    before = clinic.rows("SELECT count(*) AS n FROM pg_class")
    with Server(clinic.address(), is_reader=False) as server:
        delivery = Delivery(server, "clinic.released")
        delivery.check(is_replacing=False)
        delivery.write(con, "FROM t", [postgresql.source.outgoing("sex", "VARCHAR")])
        assert clinic.rows("SELECT count(*) AS n FROM pg_class") == before
        assert delivery.smallest_class(["sex"]) == (4, 4)
        delivery.put_in_place("mark")
        assert clinic.rows("SELECT count(*) AS n FROM pg_class") == before
        with Server(clinic.address(), is_reader=False) as other:
            other.run("SET statement_timeout = 500")
            with pytest.raises(ServerProblem, match="another run writes it"):
                Delivery(other, "clinic.released")
    assert clinic.rows("SELECT count(*) AS n FROM pg_class") == before
