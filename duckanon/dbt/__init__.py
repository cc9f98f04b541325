"""A plugin of dbt-duckdb: models and tests of a project can call every function of ``anon``.

In ``profiles.yml``::

    outputs:
      dev:
        type: duckdb
        path: clinic.duckdb
        plugins:
          - module: duckanon.dbt
"""

from __future__ import annotations

import duckdb
from dbt.adapters.duckdb.plugins import BasePlugin

from duckanon._bridge.catalog import register

__all__ = ["Plugin"]


class Plugin(BasePlugin):  # type: ignore[misc]  # where dbt-duckdb is not installed, it is Any
    """What dbt-duckdb looks for in the module that a profile names."""

    def configure_connection(self, conn: duckdb.DuckDBPyConnection) -> None:
        """Register everything in the database; the cursors of all models see it."""
        register(conn)
