"""DuckDB's side: the catalog ``anon``, its macros, and the way of tables to Python and back."""
