"""A release on its way into a server: made where nobody looks, read back, counted by others, and named in the end.

All is done in one transaction. Until its commit no other session sees the table, under whatever name and with whatever
rights; who kills the job leaves nothing, since the server forgets what was not committed.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence

import duckdb

from duckanon._bridge.sql_text import literal, quote
from duckanon.postgresql.server import Relation, Server, ServerProblem
from duckanon.postgresql.source import LONGEST_NAME, Outgoing, take

_STAGED = "_duckanon_staged"
_LOCK_SECONDS = 10
"""Time to wait for another run: a server needs a moment to see that a killed one is gone."""


class Delivery:
    """A table that is to be written, named with a schema before it or in the first schema of the search path."""

    def __init__(self, server: Server, table: str) -> None:
        self._server = server
        *schemas, self._name = table.split(".")
        if len(schemas) > 1 or not self._name or len(self._name.encode()) > LONGEST_NAME:
            raise ServerProblem(f"{table}: a table is named name or schema.name, of at most {LONGEST_NAME} bytes.")
        self._schema = schemas[0] if schemas else str(server.rows("SELECT current_schema()::text")[0][0])
        self.table = f"{self._schema}.{self._name}"
        self._hidden = f"_duckanon_{secrets.token_hex(8)}"
        self._columns: Sequence[Outgoing] = ()
        server.run(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        place = literal(f"duckanon {self.table}")
        try:
            server.rows(f"SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended({place}, 0))::text")
        except ServerProblem:
            raise ServerProblem(f"{self.table}: another run writes it at the moment.") from None
        tables = server.rows(f"""
            SELECT c.oid::bigint, c.relkind::text = 'r', c.relrowsecurity FROM pg_catalog.pg_class AS c
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = {literal(self._schema)} AND c.relname = {literal(self._name)}""")
        self._found = tables[0] if tables else None  # its number, whether it is a plain table, and has row security

    @property
    def place(self) -> tuple[str, str]:
        """The server, and the name with its schema."""
        return self._server.identity, self.table

    @property
    def existing(self) -> Relation | None:
        """The table that has the name already."""
        return (self._server.identity, self._found[0]) if self._found else None

    def check(self, *, is_replacing: bool) -> None:
        """Refuse a place where nothing may be written, or where something is that is not to be replaced."""
        may = self._server.rows(f"""
            SELECT has_schema_privilege(oid, 'CREATE') FROM pg_catalog.pg_namespace
            WHERE nspname = {literal(self._schema)}""")
        if not may or not may[0][0]:
            why = "this user may make no table in the schema" if may else "there is no such schema"
            raise ServerProblem(f"{self.table}: {why}.")
        if not self._found:
            return
        _, is_table, has_row_security = self._found
        if not is_replacing:
            raise ServerProblem(f"{self.table}: it is there already; replace = true replaces it.")
        if not is_table or has_row_security:
            reason = "it has row security, which would be lost" if is_table else "it is no plain table"
            raise ServerProblem(f"{self.table}: {reason}; it is not replaced.")

    def refuse_sources(self, sources: Collection[Relation]) -> None:
        """Refuse to replace what was read, by whatever name or view."""
        if self.existing in sources:
            raise ServerProblem(f"{self.table}: the rows come from this table, which must not be replaced.")

    def write(self, con: duckdb.DuckDBPyConnection, query: str, columns: Sequence[Outgoing]) -> None:
        """Write the rows of a query of DuckDB, whose columns are these, into the table that nobody sees yet."""
        self._columns = columns
        sent = ", ".join(
            f"{quote(column.name)}{'::VARCHAR' if column.travels_as_text else ''} AS {quote(column.name)}"
            for column in columns
        )
        rows = con.sql(f"SELECT {sent} FROM ({query})")
        self._server.ingest(_STAGED, getattr(rows, "to_arrow_reader", rows.fetch_record_batch)())
        stored = ", ".join(f"{column.stored} AS {quote(column.name)}" for column in columns)
        self._server.run(f"CREATE TABLE {self.hidden} AS SELECT {stored} FROM pg_temp.{_STAGED}")
        self._server.run(f"DROP TABLE pg_temp.{_STAGED}")

    @property
    def hidden(self) -> str:
        """The table as long as it has not its name, in quotes."""
        return f"{quote(self._schema)}.{quote(self._hidden)}"

    def read_back(self, con: duckdb.DuckDBPyConnection, into: str) -> None:
        """Copy what the server has into a temporary table, in the order in which it was written."""
        asked = ", ".join(column.asked for column in self._columns)
        with self._server.reader(f"SELECT {asked} FROM {self.hidden}") as reader:
            take(con, reader, into)
        for column in self._columns:
            con.execute(f"ALTER TABLE {into} ALTER {quote(column.name)} TYPE {column.duckdb_type}").fetchall()

    def smallest_class(self, columns: Sequence[str], person: str | None = None) -> tuple[int, int]:
        """Return the rows of the table, and the rows (or people) of its smallest class, as the server counts them.

        Texts are told apart byte by byte, whatever the collation of the database holds for equal.
        """
        texts = {column.name for column in self._columns if column.declared.startswith(("text", "character"))}
        keys = ", ".join(f"{quote(column)}{' COLLATE ' + quote('C') if column in texts else ''}" for column in columns)
        size = f"count(DISTINCT {quote(person)})" if person else "count(*)"
        ((rows, smallest),) = self._server.rows(f"""
            SELECT coalesce(sum(row_count), 0)::bigint, coalesce(min(size), 0)::bigint
            FROM (SELECT count(*) AS row_count, {size} AS size FROM {self.hidden} GROUP BY {keys}) AS classes""")
        return rows, smallest

    def put_in_place(self, mark: str) -> None:
        """Give the table its name and the rights of the one that it replaces; others see it after the commit."""
        place, run = f"{quote(self._schema)}.{quote(self._name)}", self._server.run
        if self.existing:
            granted = self._rights(place)
            for _, role, *_ in self._rights(self.hidden):
                run(f"REVOKE ALL ON TABLE {self.hidden} FROM {role}")
            for right, role, is_grantable in granted:
                option = " WITH GRANT OPTION" if is_grantable else ""
                run(f"GRANT {right} ON TABLE {self.hidden} TO {role}{option}")
            run(f"DROP TABLE {place}")
        run(f"ALTER TABLE {self.hidden} RENAME TO {quote(self._name)}")
        run(f"COMMENT ON TABLE {place} IS {literal(mark)}")

    def _rights(self, table: str) -> list[tuple[str, str, bool]]:
        """Return who else but the owner may do what, roles in quotes."""
        rows = self._server.rows(f"""
            SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
                   is_grantable
            FROM pg_catalog.pg_class AS c, aclexplode(c.relacl) AS rights
            WHERE c.oid = {literal(table)}::regclass AND grantee <> c.relowner""")
        return [(right, role, is_grantable) for right, role, is_grantable in rows]

    def mark(self) -> str | None:
        """Return what is written at the table that is there."""
        if not self.existing:
            return None
        ((text,),) = self._server.rows(f"SELECT obj_description({self.existing[1]}, 'pg_class')")
        return None if text is None else str(text)
