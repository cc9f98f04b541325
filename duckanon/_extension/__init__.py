"""The DuckDB extension: everything of ``anon`` in the stock DuckDB shell, after ``LOAD``."""
