"""The DuckDB extension: everything of ``anon`` in a stock DuckDB shell, after ``LOAD './duckanon.duckdb_extension'``."""
