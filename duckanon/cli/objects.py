"""Tables and views of a database, for those who look around in it."""

from __future__ import annotations

import duckdb

_OBJECTS = """
    FROM (SELECT database_name, schema_name, table_name AS name, sql, 1 AS place FROM duckdb_tables() WHERE NOT internal
          UNION ALL SELECT database_name, schema_name, view_name, sql, 2 FROM duckdb_views() WHERE NOT internal
          UNION ALL SELECT database_name, schema_name, table_name, sql, 3 FROM duckdb_indexes())
    WHERE database_name <> 'anon' AND ($pattern IS NULL OR name ILIKE $pattern)
"""


def names(con: duckdb.DuckDBPyConnection, pattern: str | None = None) -> list[str]:
    """Name all tables and views, as they have to be written: those of other schemas and databases with these."""
    return _texts(
        con,
        f"""SELECT CASE WHEN database_name = 'temp' OR (database_name, schema_name)
                                                       = (current_database(), current_schema()) THEN written
                        WHEN database_name = current_database() THEN written_schema || '.' || written
                        ELSE written_database || '.' || written_schema || '.' || written END
            FROM (SELECT *, {_quoted("name")} AS written, {_quoted("schema_name")} AS written_schema,
                         {_quoted("database_name")} AS written_database
                  {_OBJECTS} AND place < 3)
            ORDER BY database_name <> 'temp' ASC NULLS LAST, database_name <> current_database() ASC NULLS LAST,
                     database_name ASC NULLS LAST, schema_name ASC NULLS LAST, name ASC NULLS LAST""",
        pattern,
    )


def definitions(con: duckdb.DuckDBPyConnection, pattern: str | None = None) -> list[str]:
    """Return the statements that make the tables, views and indexes."""
    statements = _texts(
        con,
        f"""SELECT rtrim(sql, ';') || ';' {_OBJECTS} AND sql IS NOT NULL
            ORDER BY database_name ASC NULLS LAST, schema_name ASC NULLS LAST, place = 2 ASC NULLS LAST,
                     name ASC NULLS LAST, place ASC NULLS LAST""",
        pattern,
    )
    if pattern is not None and not statements:
        raise ValueError(f".schema: there is no table or view like {pattern}.")
    return statements


def _quoted(column: str) -> str:
    """Write a name in double quotes where it is not a plain one."""
    return f"""CASE WHEN regexp_full_match({column}, '[a-z_][a-z0-9_]*', 'i') THEN {column}
                    ELSE '"' || replace({column}, '"', '""') || '"' END"""


def _texts(con: duckdb.DuckDBPyConnection, query: str, pattern: str | None) -> list[str]:
    # on the connection itself: a cursor would see neither its temporary tables nor the schema that it uses
    return [text for (text,) in con.execute(query, {"pattern": pattern}).fetchall()]
