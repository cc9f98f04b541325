"""Tables of PostgreSQL through ADBC, an extra: read into DuckDB, released there, written back after they were counted.

``read`` copies a table or a query into a temporary table of a DuckDB connection. ``write`` makes a table on the server
within one transaction, into which nobody else sees: filled under another name, counted as it is written, and only then
named and committed.
"""

from __future__ import annotations

from duckanon.postgresql.calls import read, write
from duckanon.postgresql.server import ServerProblem

__all__ = ["ServerProblem", "read", "write"]
